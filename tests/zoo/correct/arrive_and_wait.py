# The thread-level pair of the library: arrive_inc of each block, wait_eq of the last one; then its rows are read.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import arrive_inc, tid, wait_eq


@triton.jit
def kernel(count_ptr, rows_ptr, out_ptr):
    i = tl.arange(0, 128)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    tl.store(rows_ptr + 128 * block + i, block + i)
    if block > 0:
        arrive_inc(count_ptr, tid(0), 1, "gpu")
    else:
        wait_eq(count_ptr, tid(0), blocks - 1, "gpu")
        total = tl.zeros([128], tl.int32)
        for other in range(blocks):
            total += tl.load(rows_ptr + 128 * other + i)
        tl.store(out_ptr + i, total)
