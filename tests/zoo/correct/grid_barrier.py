# All blocks meet three times at a counter that only grows, and read each other's rows in between.
import triton
import triton.language as tl


@triton.jit
def kernel(count_ptr, data_ptr, out_ptr):
    i = tl.arange(0, 128)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    for step in range(3):
        row = data_ptr + step % 2 * 128 * blocks
        tl.store(row + 128 * block + i, 100 * step + block + 0 * i)
        tl.debug_barrier()
        tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu")
        while tl.atomic_add(count_ptr, 0, sem="acquire", scope="gpu") < (step + 1) * blocks:
            pass
        tl.debug_barrier()
        tl.store(out_ptr + 128 * (blocks * step + block) + i, tl.load(row + 128 * ((block + 1) % blocks) + i))
