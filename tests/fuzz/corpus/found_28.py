from triton_dist.language.extra import libshmem_device
        
from triton_dist.language.extrit import libshmem_device
 t
