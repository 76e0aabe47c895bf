    i}port triton
import triton.language as tl
    import trt
import triton. 2, x - 1


@triton.jit
from tri.extra import libdeviton_dist.lang
