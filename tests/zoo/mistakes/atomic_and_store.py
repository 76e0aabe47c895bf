# All blocks add to a sum, which one of them sets to zero first, by an ordinary store that nobody waits for.
import triton
import triton.language as tl


@triton.jit
def buggy(sum_ptr):
    if tl.program_id(0) == 0:
        tl.store(sum_ptr, 0)  # !store
    tl.atomic_add(sum_ptr, 1)  # !add


@triton.jit
def fixed(sum_ptr):
    tl.atomic_add(sum_ptr, 1)
