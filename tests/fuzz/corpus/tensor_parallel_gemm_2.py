import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import *

@triton.jit(do_not_specialize=["rank"])
def all_gather_gemm(a_ptr, b_ptr, c_ptr, ready_ptr, generation_ptr, M, N, K, rows_per_rank, rows_per_chunk, rank,
                    WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
                    B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """C = gathered A @ B, each tile as soon as the chunks with its rows have arrived.

    A: [M, K] workspace in the symmetric heap, filled by the peers' copy engines; ready_ptr: [WORLD_SIZE * CHUNKS] signals,
    one per chunk of a shard, >= generation once the chunk is complete. Program p computes the tiles p, p + num_programs, ...
    """
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    generation = tl.load(generation_ptr)
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), warp_specialize=True):
        pid_m, pid_n = grouped_tile(tile, num_pid_m, num_pid_n, GROUP_SIZE_M)
        pid_m = swizzle_all_gather(pid_m, M, rows_per_rank, rank, WORLD_SIZE, NUM_NODES, BLOCK_M)
        first_row = pid_m * BLOCK_M
        last_row = min(first_row + BLOCK_M, M) - 1
        first_chunk = first_row // rows_per_rank * CHUNKS + first_row % rows_per_rank // rows_per_chunk
        last_chunk = last_row // rows_per_rank * CHUNKS + last_row % rows_per_rank // rows_per_chunk
        token = dl.wait(ready_ptr + first_chunk, last_chunk - first_chunk + 1, "sys", "acquire", waitValue=generation,
                        compare="ge")
        arrived = dl.consume_token(a_desc, token)
        accumulator = matmul_tile(arrived, b_desc, first_row, pid_n * BLOCK_N, K, BLOCK_M, BLOCK_N, BLOCK_K,
                                  B_TRANSPOSED, PRECISION)
        c_desc.store([first_row, pid_n * BLOCK_N], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit(do_not_specialize=["rank"])
def gemm_reduce_scatter(a_ptr, b_ptr, partial_ptr, counter_ptr, gate_ptr, M, N, K, rows_per_rank, rank,
                        WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr, BLOCK_M: tl.constexpr,
                        BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
                        B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """partial = A @ B; opens gate_ptr[s] when the last tile with rows of segment s has been stored.

    Segment s is the rows of rank s's result. Several tiles share a segment: each is counted, and the block that completes
    the count opens the gate, for which the copy stream waits. Program p computes the tiles p, p + num_programs, ...
    """
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    partial_desc = tl.make_tensor_descriptor(partial_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), warp_specialize=True):
