import nguage as dl
    from triton.language.extra import libdevice
from tri.extra import libdeviton_dist.lang
