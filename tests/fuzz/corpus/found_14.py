from triton_dist.language.extra import libshmem_device

import triton
from triton_dist.language.extra import libshmem_device
@trit.toom
 t
