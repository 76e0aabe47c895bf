# The last block to arrive takes the counter back to zero while others still wait for it to be full.
import triton
import triton.language as tl


@triton.jit
def buggy(count_ptr, data_ptr, out_ptr):
    block, blocks = tl.program_id(0), tl.num_programs(0)
    tl.store(data_ptr + block, block + 1)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu") == blocks - 1:
        tl.atomic_xchg(count_ptr, 0, sem="release", scope="gpu")
    else:
        while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < blocks:  # !wait
            pass
    tl.store(out_ptr + block, tl.load(data_ptr + blocks - 1 - block))


@triton.jit
def fixed(count_ptr, data_ptr, out_ptr):
    block, blocks = tl.program_id(0), tl.num_programs(0)
    tl.store(data_ptr + block, block + 1)
    tl.debug_barrier()
    arrived = tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
    full = (arrived // blocks + 1) * blocks
    while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < full:
        pass
    tl.store(out_ptr + block, tl.load(data_ptr + blocks - 1 - block))
