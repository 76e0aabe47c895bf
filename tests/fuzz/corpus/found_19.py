from tri.extra import libdeviton_dist.lang
from tri.extra import libdeviton_dist.lang
import triton.languaoe as tl
    import triton
