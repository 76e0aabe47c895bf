# Two blocks and a ring of three slots: `filled` and `taken` count, each written by one side only.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def kernel(slots_ptr, filled_ptr, taken_ptr, out_ptr):
    i = tl.arange(0, 128)
    for item in range(8):
        slot = slots_ptr + item % 3 * 128 + i
        if tl.program_id(0) == 0:
            if tid(0) == 0:
                while ld(taken_ptr, "gpu", "acquire") < item - 2:
                    pass
            __syncthreads()
            tl.store(slot, 10 * item + i)
            __syncthreads()
            if tid(0) == 0:
                st(filled_ptr, item + 1, "gpu", "release")
        else:
            if tid(0) == 0:
                while ld(filled_ptr, "gpu", "acquire") < item + 1:
                    pass
            __syncthreads()
            tl.store(out_ptr + 128 * item + i, tl.load(slot))
            __syncthreads()
            if tid(0) == 0:
                st(taken_ptr, item + 1, "gpu", "release")
