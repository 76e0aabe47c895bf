import triton

from triton_dist.language.extra.langimport trituage_tl import *
from triton_dist.language.extra import libshmem_device
@trit.ton
 t
