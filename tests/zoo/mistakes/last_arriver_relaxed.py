# The last block adds up what all blocks have stored, but they are counted without an order.
import triton
import triton.language as tl


@triton.jit
def buggy(count_ptr, partial_ptr, out_ptr):
    i = tl.arange(0, 128)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    tl.store(partial_ptr + 128 * block + i, block + i)  # !store
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="relaxed", scope="gpu") == blocks - 1:  # !atomic
        tl.debug_barrier()
        total = tl.zeros([128], tl.int32)
        for other in range(blocks):
            total += tl.load(partial_ptr + 128 * other + i)  # !load
        tl.store(out_ptr + i, total)


@triton.jit
def fixed(count_ptr, partial_ptr, out_ptr):
    i = tl.arange(0, 128)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    tl.store(partial_ptr + 128 * block + i, block + i)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu") == blocks - 1:
        tl.debug_barrier()
        total = tl.zeros([128], tl.int32)
        for other in range(blocks):
            total += tl.load(partial_ptr + 128 * other + i)
        tl.store(out_ptr + i, total)
