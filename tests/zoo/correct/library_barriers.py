# The barriers of common_ops: blocks of a grid, then the first blocks of all ranks, then the grid again, each round with other data.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.kernels.nvidia.common_ops import barrier_all_intra_node_atomic_cas_block, barrier_on_this_grid


@triton.jit
def kernel(grid_word_ptr, flags_ptr, data_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank, ranks = dl.rank(), dl.num_ranks()
    block, blocks = tl.program_id(0), tl.num_programs(0)
    for step in range(2):
        tl.store(data_ptr + 128 * block + i, 100 * step + 10 * rank + block + 0 * i)
        barrier_on_this_grid(grid_word_ptr)
        if block == 0:
            barrier_all_intra_node_atomic_cas_block(rank, rank, ranks, flags_ptr)
        barrier_on_this_grid(grid_word_ptr)
        row = tl.load(dl.symm_at(data_ptr, (rank + 1) % ranks) + 128 * (blocks - 1 - block) + i)
        tl.store(out_ptr + 128 * (blocks * step + block) + i, row)
        barrier_on_this_grid(grid_word_ptr)
        if block == 0:
            barrier_all_intra_node_atomic_cas_block(rank, rank, ranks, flags_ptr)
        barrier_on_this_grid(grid_word_ptr)
