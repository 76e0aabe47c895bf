# All blocks meet at a counter, but count and look without an order.
import triton
import triton.language as tl


@triton.jit
def buggy(count_ptr, data_ptr, out_ptr):
    block, blocks = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, 128)
    tl.store(data_ptr + 128 * block + i, block + i)  # !store
    tl.debug_barrier()
    tl.atomic_add(count_ptr, 1, sem="relaxed", scope="gpu")  # !atomic
    while tl.atomic_add(count_ptr, 0, sem="relaxed", scope="gpu") < blocks:  # !atomic
        pass
    tl.debug_barrier()
    tl.store(out_ptr + 128 * block + i, tl.load(data_ptr + 128 * (blocks - 1 - block) + i))  # !load


@triton.jit
def fixed(count_ptr, data_ptr, out_ptr):
    block, blocks = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, 128)
    tl.store(data_ptr + 128 * block + i, block + i)
    tl.debug_barrier()
    tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < blocks:
        pass
    tl.debug_barrier()
    tl.store(out_ptr + 128 * block + i, tl.load(data_ptr + 128 * (blocks - 1 - block) + i))
