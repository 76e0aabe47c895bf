"""Rows of several experts, each times the weights of its own (host side: ditron/ops/moe/GroupedGemm).

    C[r] = activation(A[r] @ B[e] * scales),   offsets[e] <= r < offsets[e + 1]

B is [experts, N, K] (B_TRANSPOSED) or [experts, K, N]. `tiles_ptr` says which tiles of rows there are (routing.tile_rows): offsets and
tiles are read on the device, and any number of rows is right that the host has room for, none included.

Row r of the product is row r of A, or, gathered, row slot_of_row[r] // SLOTS. `grouped_gemm` moves tiles by tensor descriptors, gathered rows by
copies of 16 bytes; a producer fetches both. Rows that are not gathered may be those of the next expert at the end of a tile: they are multiplied and
not stored. `grouped_gemm_pointers` loads through pointers: for strides that descriptors do not take, and for GPUs without TMA.

Block scales, of fp8 (BLOCK_SCALES): a_scale [rows, ceil(K / 128)] of A's rows, b_scale [experts, ceil(N / 128), ceil(K / 128)].

Over several ranks the tiles have an order, and spans_ptr says from which to which chunk of tokens their rows are (tensor_parallel.order_tiles).
With ready_ptr, a signal for each chunk of A, a tile waits for those of its rows; with gate_ptr, a stored tile is counted for the ranks whose tokens
it has, and the last one of a rank opens its gate.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, ld, st, tid

from ..product.product import activated, can_fetch_ahead, exact_depth, grouped_tile, result_columns, sum_type

# Elements of a block that has one scale, in each direction.
SCALED = tl.constexpr(128)


@triton.jit
def store_rows(c_ptr, result, row, end, column, columns, stride_c, BLOCK_M: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, BLOCK_M)
    offsets = tl.arange(0, COLUMNS)
    pointers = c_ptr + tl.cast(row, tl.int64) * stride_c + column + (rows[:, None] * stride_c + offsets[None, :])
    tl.store(pointers, result, mask=(rows[:, None] < end - row) & (offsets[None, :] < columns - column))


@triton.jit
def scales_of_rows(a_scale_ptr, rows, K):
    """Where the scales of the first block of each row of A are; the others follow."""
    return a_scale_ptr + rows.to(tl.int64) * tl.cdiv(K, SCALED)


@triton.jit
def scales_of_columns(b_scale_ptr, expert, columns, N, K):
    """The same of columns of an expert's weights."""
    return b_scale_ptr + (tl.cast(expert, tl.int64) * tl.cdiv(N, SCALED) + columns // SCALED) * tl.cdiv(K, SCALED)


@triton.jit
def count_tile(spans_ptr, segment_tiles_ptr, counter_ptr, gate_ptr, tile_m, tiles_n, first_rank, WORLD_SIZE: tl.constexpr):
    """What this block has stored for a tile is there; the chunks of its span are whole shards."""
    first = tl.load(spans_ptr + 2 * tile_m)
    last = tl.load(spans_ptr + 2 * tile_m + 1)
    __syncthreads()
    stage = first + tid(0)
    if stage <= last:
        segment = (first_rank + stage) % WORLD_SIZE
        tiles = ld(segment_tiles_ptr + segment, scope="gpu", semantic="relaxed") * tiles_n
        done = atomic_add(counter_ptr + segment, 1, scope="gpu", semantic="acq_rel")
        if done == tiles - 1:
            st(gate_ptr + segment, 1, scope="sys", semantic="release")


@triton.jit
def wait_for_tile(spans_ptr, ready_ptr, generation, tile_m):
    """For the chunks that have a tile's rows."""
    first_chunk = tl.load(spans_ptr + 2 * tile_m)
    chunks = tl.load(spans_ptr + 2 * tile_m + 1) - first_chunk + 1
    return dl.wait(ready_ptr + first_chunk, chunks, "sys", "acquire", waitValue=generation, compare="ge")


@triton.jit(do_not_specialize=["first_rank"])
def grouped_gemm(a_ptr, b_ptr, c_ptr, offsets_ptr, tiles_ptr, rows, weight_rows, N, K, stride_a, stride_c, BLOCK_M: tl.constexpr,
                 BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr, ACTIVATION: tl.constexpr,
                 PRECISION: tl.constexpr, a_scale_ptr=None, b_scale_ptr=None, spans_ptr=None, segment_tiles_ptr=None, counter_ptr=None,
                 gate_ptr=None, first_rank=0, WORLD_SIZE: tl.constexpr = 1, slot_of_row_ptr=None, SLOTS: tl.constexpr = 1, ready_ptr=None,
                 generation_ptr=None, EVEN_K: tl.constexpr = False, MASK_ROWS: tl.constexpr = True):
    """weight_rows: those of B as [weight_rows, K] or [weight_rows, N], all experts one after the other. With block scales BLOCK_K is one
    block or a part of it, and B is transposed, as the tensor cores read 8-bit operands. Of gathered
    rows: EVEN_K, K is a multiple of BLOCK_K; MASK_ROWS, what a tile has behind its expert's rows is not read. Else it is the last row again, which costs
    more reads and less than masks where tiles are mostly full."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[rows, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[weight_rows, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[weight_rows, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    tiles_m = tl.load(tiles_ptr)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    tl.assume(k_tiles > 0)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    depths = tl.arange(0, BLOCK_K)
    if ready_ptr is not None:
        generation = tl.load(generation_ptr)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        expert = tl.load(tiles_ptr + 1 + 2 * tile_m)
        row = tl.load(tiles_ptr + 2 + 2 * tile_m)
        end = tl.load(offsets_ptr + expert + 1)
        column = tile_n * BLOCK_N
        is_row = tl.arange(0, BLOCK_M) < end - row
        if slot_of_row_ptr is not None:
            if MASK_ROWS:
                slots = tl.load(slot_of_row_ptr + row + tl.arange(0, BLOCK_M), mask=is_row, other=0)
            else:
                slots = tl.load(slot_of_row_ptr + row + tl.minimum(tl.arange(0, BLOCK_M), end - row - 1))
            source = slots // SLOTS
            rows_ptr = a_ptr
            if ready_ptr is not None:
                rows_ptr = dl.consume_token(a_ptr, wait_for_tile(spans_ptr, ready_ptr, generation, tile_m))
            source_ptrs = rows_ptr + source.to(tl.int64)[:, None] * stride_a
        if a_scale_ptr is not None:
            is_column = tl.arange(0, BLOCK_N) < N - column
            a_scales = scales_of_rows(a_scale_ptr, row + tl.arange(0, BLOCK_M), K)
            b_scales = scales_of_columns(b_scale_ptr, expert, column + tl.arange(0, BLOCK_N), N, K)
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_ptr.dtype.element_ty))
        for k in range(0, k_tiles):
            if slot_of_row_ptr is not None:
                depth = k * BLOCK_K + depths
                if EVEN_K and MASK_ROWS:
                    a = tl.load(source_ptrs + depth[None, :], mask=is_row[:, None], other=0.0)
                elif EVEN_K:
                    a = tl.load(source_ptrs + depth[None, :])
                elif MASK_ROWS:
                    a = tl.load(source_ptrs + depth[None, :], mask=is_row[:, None] & (depth < K)[None, :], other=0.0)
                else:
                    a = tl.load(source_ptrs + depth[None, :], mask=(depth < K)[None, :], other=0.0)
            else:
                a = a_desc.load([row, k * BLOCK_K])
            if a_scale_ptr is not None:
                b = b_desc.load([expert * N + column, k * BLOCK_K])
                products = tl.dot(a, b.T, max_num_imprecise_acc=exact_depth(BLOCK_K))
                block = k * BLOCK_K // SCALED
                a_scale = tl.load(a_scales + block, mask=is_row, other=0.0)
                b_scale = tl.load(b_scales + block, mask=is_column, other=0.0)
                sums += products * a_scale[:, None] * b_scale[None, :]
            elif B_TRANSPOSED:
                b = b_desc.load([expert * N + column, k * BLOCK_K])
                sums = tl.dot(a, b.T, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
            else:
                b = b_desc.load([expert * K + k * BLOCK_K, column])
                sums = tl.dot(a, b, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        result = activated(sums.to(tl.float32), ACTIVATION, BLOCK_M, BLOCK_N).to(c_ptr.dtype.element_ty)
        store_rows(c_ptr, result, row, end, tile_n * RESULT_N, result_columns(N, ACTIVATION), stride_c, BLOCK_M, RESULT_N)
        if gate_ptr is not None:
            count_tile(spans_ptr, segment_tiles_ptr, counter_ptr, gate_ptr, tile_m, tiles_n, first_rank, WORLD_SIZE)


@triton.jit(do_not_specialize=["first_rank"])
def grouped_gemm_pointers(a_ptr, b_ptr, c_ptr, offsets_ptr, tiles_ptr, slot_of_row_ptr, a_scale_ptr, b_scale_ptr, N, K, stride_a, stride_c,
                          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                          B_TRANSPOSED: tl.constexpr, ACTIVATION: tl.constexpr, PRECISION: tl.constexpr, SLOTS: tl.constexpr,
                          BLOCK_SCALES: tl.constexpr, spans_ptr=None, ready_ptr=None, generation_ptr=None, segment_tiles_ptr=None,
                          counter_ptr=None, gate_ptr=None, first_rank=0, WORLD_SIZE: tl.constexpr = 1):
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    offsets_m = tl.arange(0, BLOCK_M)
    offsets_n = tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    tiles_m = tl.load(tiles_ptr)
    tiles_n = tl.cdiv(N, BLOCK_N)
    if ready_ptr is not None:
        generation = tl.load(generation_ptr)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        expert = tl.load(tiles_ptr + 1 + 2 * tile_m)
        row = tl.load(tiles_ptr + 2 + 2 * tile_m)
        end = tl.load(offsets_ptr + expert + 1)
        column = tile_n * BLOCK_N
        is_row = offsets_m < end - row
        is_column = offsets_n < N - column
        source = row + offsets_m
        if slot_of_row_ptr is not None:
            source = tl.load(slot_of_row_ptr + source, mask=is_row, other=0) // SLOTS
        source = source.to(tl.int64)
        rows_ptr = a_ptr
        row_scales_ptr = a_scale_ptr
        if ready_ptr is not None:
            token = wait_for_tile(spans_ptr, ready_ptr, generation, tile_m)
            rows_ptr = dl.consume_token(a_ptr, token)
            if BLOCK_SCALES:
                row_scales_ptr = dl.consume_token(a_scale_ptr, token)
        a_ptrs = rows_ptr + source[:, None] * stride_a + depths[None, :]
        weights_ptr = b_ptr + tl.cast(expert, tl.int64) * N * K
        if B_TRANSPOSED:
            b_ptrs = weights_ptr + tl.cast(column, tl.int64) * K + (offsets_n[None, :] * K + depths[:, None])
            b_step = BLOCK_K
        else:
            b_ptrs = weights_ptr + column + (depths[:, None] * N + offsets_n[None, :])
            b_step = BLOCK_K * N
        if BLOCK_SCALES:
            a_scales = scales_of_rows(row_scales_ptr, source, K)
            b_scales = scales_of_columns(b_scale_ptr, expert, column + offsets_n, N, K)
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_ptr.dtype.element_ty))
        for k in range(0, tl.cdiv(K, BLOCK_K)):
            left = K - k * BLOCK_K
            a = tl.load(a_ptrs, mask=is_row[:, None] & (depths[None, :] < left), other=0)
            b = tl.load(b_ptrs, mask=(depths[:, None] < left) & is_column[None, :], other=0)
            if BLOCK_SCALES:
                products = tl.dot(a, b, max_num_imprecise_acc=exact_depth(BLOCK_K))
                block = k * BLOCK_K // SCALED
                a_scale = tl.load(a_scales + block, mask=is_row, other=0.0)
                b_scale = tl.load(b_scales + block, mask=is_column, other=0.0)
                sums += products * a_scale[:, None] * b_scale[None, :]
            else:
                sums = tl.dot(a, b, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
            a_ptrs += BLOCK_K
            b_ptrs += b_step
        result = activated(sums.to(tl.float32), ACTIVATION, BLOCK_M, BLOCK_N).to(c_ptr.dtype.element_ty)
        store_rows(c_ptr, result, row, end, tile_n * RESULT_N, result_columns(N, ACTIVATION), stride_c, BLOCK_M, RESULT_N)
        if gate_ptr is not None:
            count_tile(spans_ptr, segment_tiles_ptr, counter_ptr, gate_ptr, tile_m, tiles_n, first_rank, WORLD_SIZE)


@triton.jit(do_not_specialize=["peer"])
def sum_slots(rows_ptr, row_of_slot_ptr, weights_ptr, out_ptr, tokens, columns, stride_rows, stride_out, TOP_K: tl.constexpr,
              TOKENS: tl.constexpr, BLOCK: tl.constexpr, peer=None):
    """out[t] = sum over j of weights[t, j] * rows[row_of_slot[t, j]], in fp32, in the order of j; a slot without a row adds nothing. The grid
    is (ceil(tokens / TOKENS), ceil(columns / BLOCK)); weights_ptr may be None. peer: the rank to whose memory out_ptr, of the symmetric heap,
    leads."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_token = token < tokens
    is_column = (column < columns)[None, :]
    first_slot = token.to(tl.int64) * TOP_K
    total = tl.zeros((TOKENS, BLOCK), tl.float32)
    for j in tl.static_range(TOP_K):
        row = tl.load(row_of_slot_ptr + first_slot + j, mask=is_token, other=-1)
        has_row = (row >= 0)[:, None]
        value = tl.load(rows_ptr + row.to(tl.int64)[:, None] * stride_rows + column[None, :], mask=is_column & has_row, other=0.0).to(tl.float32)
        if weights_ptr is not None:
            value *= tl.load(weights_ptr + first_slot + j, mask=is_token, other=0.0)[:, None]
        # What has no row adds nothing, whatever its weight is.
        total += tl.where(has_row, value, 0.0)
    if peer is not None:
        out_ptr = dl.symm_at(out_ptr, peer)
    tl.store(out_ptr + token.to(tl.int64)[:, None] * stride_out + column[None, :], total.to(out_ptr.dtype.element_ty),
             mask=is_token[:, None] & is_column)
