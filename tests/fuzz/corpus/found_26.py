import triton_dist.language as dl
import triton.language as tl
from triton. libdevice
from tri.extra t libdeviton_dist.lang
