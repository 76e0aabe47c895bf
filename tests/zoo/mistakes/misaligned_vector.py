# A wide access of 16 bytes at an address that is a multiple of 4.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import ld_vector, st, tid


@triton.jit
def buggy(x_ptr, out_ptr):
    x = ld_vector(x_ptr + 1 + 4 * tid(0), 4)  # !access
    st(out_ptr + tid(0), x[0] + x[1] + x[2] + x[3])


@triton.jit
def fixed(x_ptr, out_ptr):
    x = ld_vector(x_ptr + 4 + 4 * tid(0), 4)
    st(out_ptr + tid(0), x[0] + x[1] + x[2] + x[3])
