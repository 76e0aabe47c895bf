# The flag of another block is acquired with the scope of a block.
import triton
import triton.language as tl


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if tl.program_id(0) == 0:
        tl.store(data_ptr + i, i + 1)  # !or store
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1, sem="release", scope="gpu")  # !store
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope="cta") != 1:  # !load
            pass
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !or load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if tl.program_id(0) == 0:
        tl.store(data_ptr + i, i + 1)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1, sem="release", scope="gpu")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope="gpu") != 1:
            pass
        tl.store(out_ptr + i, tl.load(data_ptr + i))
