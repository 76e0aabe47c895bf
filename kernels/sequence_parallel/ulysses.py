"""Products around attention whose heads are dealt out to the ranks, and whose tokens are dealt out everywhere else (host side:
ditron/ops/sequence_parallel): before it GEMM + all-to-all, after it all-to-all + GEMM.

Rank r has the tokens from r * rows_per_rank on of each of `batch` sequences of `rows` tokens, own_rows of them (the last ranks fewer, or none).

    gemm_all_to_all:  result of rank p [batch, rows, N] = all tokens' A [own_rows, K] @ B [K, N of rank p]       B's columns for rank p begin at p * N
    all_to_all_gemm:  C [batch, own_rows, N] = sum over ranks p of operand of rank p [own tokens, K] @ B [K of rank p, N]   B's rows for it at p * K

A call begins with `enter` (kernels/tensor_parallel_gemm): behind it all ranks have ended what read the memory that is written now.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, st, tid

from ..product.product import activated, can_fetch_ahead, exact_depth, grouped_tile, matmul_tile, result_columns, scaled_tile, sum_type, weight_descriptor


@triton.jit
def place_of_tile(pid_m, own_rows, BLOCK_M: tl.constexpr):
    """The sequence that a row of tiles belongs to, and its first token in there. No tile has tokens of two sequences."""
    tiles = tl.cdiv(own_rows, BLOCK_M)
    return pid_m // tiles, pid_m % tiles * BLOCK_M


@triton.jit(do_not_specialize=["rank", "bias_columns"])
def gemm_all_to_all(a_ptr, b_ptr, result_ptr, counter_ptr, arrived_ptr, generation_ptr, batch, rows, own_rows, rows_per_rank, all_own_rows, N, all_columns, K,
                    stride_a, stride_b, rank, WORLD_SIZE: tl.constexpr, TO_PEERS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                    GROUP_SIZE_M: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, a_scale_ptr=None, b_scale_ptr=None,
                    bias_ptr=None, bias_columns=0, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False):
    """Tiles of the next rank's columns first, of the own ones last; each goes straight into the result of its rank, symmetric memory, and the last one of a
    rank raises arrived_ptr[rank] there. The last program waits until all ranks' tiles are here. counter_ptr: [WORLD_SIZE + 1], cleared by `enter`.

    all_own_rows, all_columns: batch * own_rows, N * WORLD_SIZE. Without TO_PEERS result_ptr is [WORLD_SIZE, batch, own_rows, N] of this rank's memory, and copies take it from there.
    """
    tiles_m = batch * tl.cdiv(own_rows, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_of_rank = tiles_m * tiles_n
    tiles = tiles_of_rank * WORLD_SIZE
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[all_own_rows, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, all_columns, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    generation = tl.load(generation_ptr)
    tile_rows = tl.arange(0, BLOCK_M)
    tile_columns = tl.arange(0, BLOCK_N)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        owner = (rank + 1 + tile // tiles_of_rank) % WORLD_SIZE
        pid_m, pid_n = grouped_tile(tile % tiles_of_rank, tiles_m, tiles_n, GROUP_SIZE_M)
        sequence, row = place_of_tile(pid_m, own_rows, BLOCK_M)
        column = pid_n * BLOCK_N
        sums = matmul_tile(a_desc, b_desc, sequence * own_rows + row, owner * N + column, 0, steps, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        value = scaled_tile(sums, sequence * own_rows + row, owner * N + column, all_own_rows, all_columns, a_scale_ptr, 1, b_scale_ptr, bias_ptr,
                            bias_columns, ROW_SCALES, COLUMN_SCALES, BLOCK_M, BLOCK_N)
        mask = (tile_rows < own_rows - row)[:, None] & (tile_columns < N - column)[None, :]
        offsets = tile_rows[:, None] * N + tile_columns[None, :]
        if TO_PEERS:
            place = (tl.cast(sequence, tl.int64) * rows + rank * rows_per_rank + row) * N + column
            tl.store(dl.symm_at(result_ptr, owner) + place + offsets, value.to(result_ptr.dtype.element_ty), mask=mask)
            __syncthreads()
            if tid(0) == 0:
                done = atomic_add(counter_ptr + owner, 1, scope="gpu", semantic="acq_rel")
                if done == tiles_of_rank - 1:
                    st(dl.symm_at(arrived_ptr, owner) + rank, generation, scope="sys", semantic="release")
        else:
            place = ((tl.cast(owner, tl.int64) * batch + sequence) * own_rows + row) * N + column
            tl.store(result_ptr + place + offsets, value.to(result_ptr.dtype.element_ty), mask=mask)
    if TO_PEERS:
        if tl.atomic_add(counter_ptr + WORLD_SIZE, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1:
            if tiles == 0:
                # Nobody has said to the others that nothing comes from here.
                peer = tid(0)
                if peer < WORLD_SIZE:
                    st(dl.symm_at(arrived_ptr, peer) + rank, generation, scope="sys", semantic="release")
            token = dl.wait(arrived_ptr, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
            tl.store(dl.consume_token(counter_ptr, token) + WORLD_SIZE, 0)


@triton.jit
def wait_for_ranks(arrived_ptr, generation_ptr, WORLD_SIZE: tl.constexpr):
    """Until what copies have brought from all ranks is here; one program."""
    dl.wait(arrived_ptr, WORLD_SIZE, "sys", "acquire", waitValue=tl.load(generation_ptr), compare="ge")


@triton.jit
def add_products(sums, a_desc, b_desc, place, row, column, first_depth, steps, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                 PRECISION: tl.constexpr):
    """sums + A's rows of a sequence, the place-th of [sequences, rows, depth], times B's rows from first_depth on."""
    for k in range(0, steps):
        a = a_desc.load([place, row, k * BLOCK_K]).reshape([BLOCK_M, BLOCK_K])
        if B_TRANSPOSED:
            b = b_desc.load([column, first_depth + k * BLOCK_K])
            sums = tl.dot(a, b.T, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        else:
            b = b_desc.load([first_depth + k * BLOCK_K, column])
            sums = tl.dot(a, b, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
    return sums


@triton.jit(do_not_specialize=["rank", "bias_columns"])
def all_to_all_gemm(operand_ptr, a_ptr, b_ptr, c_ptr, ready_ptr, generation_ptr, batch, rows, own_rows, rows_per_rank, rows_per_chunk, all_batch, N, K,
                    all_depth, stride_operand, stride_a, stride_b, stride_c, stride_sequence, rank, WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, b_scale_ptr=None, bias_ptr=None,
                    bias_columns=0, COLUMN_SCALES: tl.constexpr = False, ACTIVATION: tl.constexpr = "none"):
    """Each tile adds the ranks' parts of the depth as they come, the own one first, then that of the next rank and so on.

    operand_ptr: this rank's, [batch, rows, K]. a_ptr: [WORLD_SIZE, batch, rows_per_rank, K], own tokens from each rank, brought by copy engines; the own part is
    not used. ready_ptr: [WORLD_SIZE, batch, CHUNKS] signals, >= generation when a chunk of tokens is there. BLOCK_K divides K. all_batch, all_depth: WORLD_SIZE
    times batch and K; stride_operand, stride_a, stride_sequence: elements from sequence to sequence of the operand, of A and of C.
    """
    tiles_m = batch * tl.cdiv(own_rows, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    operand_desc = tl.make_tensor_descriptor(operand_ptr, shape=[batch, rows, K], strides=[stride_operand, K, 1], block_shape=[1, BLOCK_M, BLOCK_K])
    # A tile must not read what nobody has waited for: tokens of another sequence.
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[all_batch, own_rows, K], strides=[stride_a, K, 1], block_shape=[1, BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, all_depth, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[batch, own_rows, result_columns(N, ACTIVATION)],
                                       strides=[stride_sequence, stride_c, 1], block_shape=[1, BLOCK_M, RESULT_N])
    steps = K // BLOCK_K
    tl.assume(steps > 0)
    generation = tl.load(generation_ptr)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        pid_m, pid_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_SIZE_M)
        sequence, row = place_of_tile(pid_m, own_rows, BLOCK_M)
        column = pid_n * BLOCK_N
        first_chunk = row // rows_per_chunk
        last_chunk = (min(row + BLOCK_M, own_rows) - 1) // rows_per_chunk
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_ptr.dtype.element_ty))
        sums = add_products(sums, operand_desc, b_desc, sequence, rank * rows_per_rank + row, column, rank * K, steps, BLOCK_M, BLOCK_K, B_TRANSPOSED, PRECISION)
        for step in range(1, WORLD_SIZE):
            source = (rank + step) % WORLD_SIZE
            token = dl.wait(ready_ptr + (source * batch + sequence) * CHUNKS + first_chunk, last_chunk - first_chunk + 1, "sys", "acquire",
                            waitValue=generation, compare="ge")
            sums = add_products(sums, dl.consume_token(a_desc, token), b_desc, source * batch + sequence, row, column, source * K, steps, BLOCK_M, BLOCK_K,
                                B_TRANSPOSED, PRECISION)
        value = scaled_tile(sums, sequence * own_rows + row, column, batch * own_rows, N, None, 1, b_scale_ptr, bias_ptr, bias_columns, False, COLUMN_SCALES,
                            BLOCK_M, BLOCK_N)
        result = activated(value, ACTIVATION, BLOCK_M, BLOCK_N)
        c_desc.store([sequence, row, pid_n * RESULT_N], result.to(c_ptr.dtype.element_ty).reshape([1, BLOCK_M, RESULT_N]))
