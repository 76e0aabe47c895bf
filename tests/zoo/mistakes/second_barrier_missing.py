# Two rounds through one scratch row: a barrier stands between store and load, none between the load and the next round's store.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr, scratch_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(2):
        tl.store(scratch_ptr + i, tl.load(x_ptr + 128 * step + i))  # !store
        tl.debug_barrier()
        tl.store(out_ptr + 128 * step + i, tl.load(scratch_ptr + 127 - i))  # !load


@triton.jit
def fixed(x_ptr, scratch_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(2):
        tl.store(scratch_ptr + i, tl.load(x_ptr + 128 * step + i))
        tl.debug_barrier()
        tl.store(out_ptr + 128 * step + i, tl.load(scratch_ptr + 127 - i))
        tl.debug_barrier()
