# Every block waits for its right neighbour, which starts later and may find no place to run.
import triton
import triton.language as tl


@triton.jit
def buggy(done_ptr, out_ptr):
    block = tl.program_id(0)
    if block + 1 < tl.num_programs(0):
        while tl.atomic_add(done_ptr + block + 1, 0, sem="acquire", scope="gpu") == 0:  # !wait
            pass
    tl.store(out_ptr + block, 1)
    tl.debug_barrier()
    tl.atomic_xchg(done_ptr + block, 1, sem="release", scope="gpu")


@triton.jit
def fixed(done_ptr, out_ptr):
    block = tl.program_id(0)
    if block > 0:
        while tl.atomic_add(done_ptr + block - 1, 0, sem="acquire", scope="gpu") == 0:
            pass
    tl.store(out_ptr + block, 1)
    tl.debug_barrier()
    tl.atomic_xchg(done_ptr + block, 1, sem="release", scope="gpu")
