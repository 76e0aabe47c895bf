"""Products of few rows, a call in one launch: GEMM+AllReduce and GEMM+ReduceScatter (`gemm_all_reduce_one_launch`; host side: ditron/ops/tensor_parallel/OneLaunch) and AllGather+GEMM
(`all_gather_gemm_one_launch`; OneLaunchGather). Forms, limits and figures: docs/ops/gemm_all_reduce.md.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid

from ..product.product import activated, can_fetch_ahead, matmul_tile, matmul_tile_turned, result_columns, scaled_tile, weight_descriptor
from .sent_tiles import bits_to_send, empty_slots, sent_values, sum_of_sent, take_tiles, word_pointer


@triton.jit
def raise_flags(flags_ptr, tile, generation, rank, WORLD_SIZE: tl.constexpr):
    """Tells all ranks that what this block has stored for a tile so far is there."""
    __syncthreads()
    thread = tid(0)
    if thread < WORLD_SIZE:
        st(dl.symm_at(flags_ptr, thread) + tile * WORLD_SIZE + rank, generation, scope="sys", semantic="release")


@triton.jit
def tile_place(tile, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    tiles_n = tl.cdiv(N, BLOCK_N)
    return tile // tiles_n * BLOCK_M, tile % tiles_n * BLOCK_N


@triton.jit
def tile_offsets(row, column, M, N, stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where a tile begins in [M, N], where its elements are from there, and which of them there are. Rows are `stride` apart."""
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    start = tl.cast(row, tl.int64) * stride + column
    return start, rows[:, None] * stride + columns[None, :], (rows[:, None] < M - row) & (columns[None, :] < N - column)


@triton.jit
def last_of_tile(row, column, M, N, stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where a tile's last element is, from its first; below 0 where it has no rows."""
    return (min(M - row, BLOCK_M) - 1) * stride + min(N - column, BLOCK_N) - 1


@triton.jit
def sum_of_slots(slots, slot_elements, offsets, mask, WORLD_SIZE: tl.constexpr):
    """Ascending rank order, in fp32."""
    total = tl.load(slots + offsets, mask=mask, other=0.0).to(tl.float32)
    for source in tl.static_range(1, WORLD_SIZE):
        total += tl.load(slots + source * slot_elements + offsets, mask=mask, other=0.0).to(tl.float32)
    return total


@triton.jit
def sum_when_all_have_come(slots, slot_elements, start, offsets, mask, last, flags_ptr, tile, generation, element: tl.constexpr, LAMPORT: tl.constexpr, WORLD_SIZE: tl.constexpr):
    """Waits for all ranks' parts of a tile and adds them. Without flags the slots are still to be emptied."""
    if LAMPORT:
        total = sum_of_sent(take_tiles(slots + start, slot_elements, offsets, mask, last, WORLD_SIZE), element)
    else:
        token = dl.wait(flags_ptr + tile * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
        total = sum_of_slots(dl.consume_token(slots, token) + start, slot_elements, offsets, mask, WORLD_SIZE)
    return total


@triton.jit
def product_of_tile(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                    TURNED: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    if TURNED:
        total = tl.trans(matmul_tile_turned(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION))
    else:
        total = matmul_tile(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
    return total


@triton.jit
def work_of_program(program, tiles, steps, splits, SPLIT: tl.constexpr):
    """Which part of the depth a program has, its first tile and the end of its tiles, and the same of the steps along the depth: every num_programs-th tile with all steps, or
    with SPLIT one of the `splits` parts of a single one."""
    split = 0
    first_tile = program
    end_tile = tiles
    first_step = 0
    end_step = steps
    if SPLIT:
        split = program // tiles
        first_tile = program % tiles
        end_tile = first_tile + 1
        first_step = steps * split // splits
        end_step = steps * (split + 1) // splits
    return split, first_tile, end_tile, first_step, end_step


@triton.jit
def add_parts(total, split_ptr, split_counter_ptr, tile, split, splits, mask, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A block's part of a tile's depth into scratch memory. The last block to come gets True and the sum of all in their order."""
    parts = split_ptr + tl.cast(tile, tl.int64) * splits * (BLOCK_M * BLOCK_N)
    parts += tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    tl.store(parts + split * (BLOCK_M * BLOCK_N), total, mask=mask)
    is_whole = tl.atomic_add(split_counter_ptr + tile, 1, sem="acq_rel", scope="gpu") == splits - 1
    if is_whole:
        tl.store(split_counter_ptr + tile, 0)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=split_ptr.dtype.element_ty)
        for part in tl.range(splits, loop_unroll_factor=1):
            total += tl.load(parts + part * (BLOCK_M * BLOCK_N), mask=mask, other=0)
    return is_whole, total


@triton.jit
def end_call(call_ptr, generation):
    """call_ptr[0] is the number of calls that have ended; the last block of a call advances it. call_ptr[1] counts the blocks."""
    if tl.atomic_add(call_ptr + 1, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1:
        tl.store(call_ptr + 1, 0)
        tl.store(call_ptr, generation)


@triton.jit(do_not_specialize=["rank", "bias_columns"])
def gemm_all_reduce_one_launch(a_ptr, b_ptr, out_ptr, split_ptr, split_counter_ptr, slots_ptr, sums_ptr, flags_ptr, call_ptr, M, N, K,
                               stride_a, stride_b, stride_out, slot_elements, sum_flags, splits, rank, WORLD_SIZE: tl.constexpr, SPLIT: tl.constexpr,
                               TWO_SHOT: tl.constexpr, SCATTER: tl.constexpr, LAMPORT: tl.constexpr, PART_M: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                               BLOCK_K: tl.constexpr, TURNED: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr,
                               a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0, ROW_SCALES: tl.constexpr = False,
                               COLUMN_SCALES: tl.constexpr = False):
    """The whole of GEMM+AllReduce, or of GEMM+ReduceScatter, in one launch; all of its blocks must find a place at once.

    Program p computes the tiles p, p + num_programs, ... With SPLIT there is a program for each part of the depth of each tile instead:
    each puts its part into split_ptr, in the type of the sums, and the last one to come adds them in their order and goes on; the others are done.

    One-shot: a tile goes, in the type of the slots, into this rank's slot on every rank; when it has come from all ranks, the block adds the slots in ascending rank order.
    TWO_SHOT: the rows of a tile are dealt out to the ranks. Each rank's part goes into this rank's slot there; the owner adds the slots
    and puts the sum into sums_ptr on every rank; when all of it has come, the block copies the tile from there. Ranks send
    2 (W - 1) / W of the result this way, instead of W - 1 times, and wait once more. With SCATTER besides, owners keep the sums: out_ptr has
    this rank's rows of a matrix that is one row of tiles.

    That a tile has come is said by flags_ptr, [2, sum_flags / WORLD_SIZE tiles, WORLD_SIZE] signals, or, LAMPORT, by its elements themselves (sent_tiles.py). Calls with and without flags
    have slots and call_ptr of their own.

    call_ptr[0] is the number of calls that have ended; the last block of a call advances it (call_ptr[1] counts them). Slots and sums
    are there twice, [2, WORLD_SIZE, slot_elements] and [2, slot_elements], for even and odd calls. A rank that is in call g has ended
    g - 1, hence got g - 1's tiles from all, who therefore had ended g - 2: nobody reads what is of g - 2 any more, and without flags it has been emptied, which the end of g - 2's kernel has
    performed (docs/memory-model.md, "Streams"). No call needs to begin with a meeting. Calls of other shapes in between change nothing in this.
    """
    program = tl.program_id(0)
    num_programs = tl.num_programs(0)
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    generation = tl.load(call_ptr) + 1
    slots = slots_ptr + (generation % 2) * WORLD_SIZE * slot_elements
    sums = sums_ptr + (generation % 2) * slot_elements
    if LAMPORT:
        slots = tl.cast(slots, word_pointer(slots_ptr.dtype.element_ty))
        sums = tl.cast(sums, word_pointer(sums_ptr.dtype.element_ty))
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    split, first_tile, end_tile, first_step, end_step = work_of_program(program, tiles, steps, splits, SPLIT)

    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(first_tile, end_tile, num_programs, warp_specialize=FETCH_AHEAD):
        row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
        total = product_of_tile(a_desc, b_desc, row, column, first_step, end_step, BLOCK_M, BLOCK_N, BLOCK_K, TURNED, B_TRANSPOSED, PRECISION)
        start, offsets, mask = tile_offsets(row, column, M, N, N, BLOCK_M, BLOCK_N)
        tile_rows = tl.arange(0, BLOCK_M)[:, None]
        is_whole = True
        if SPLIT:
            is_whole, total = add_parts(total, split_ptr, split_counter_ptr, tile, split, splits, mask, BLOCK_M, BLOCK_N)
            if not is_whole:
                end_tile = first_tile  # nothing is left to do
        if is_whole:
            value = scaled_tile(total, row, column, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES, COLUMN_SCALES,
                                BLOCK_M, BLOCK_N).to(slots_ptr.dtype.element_ty)
            part_rows = tl.cdiv(min(M - row, BLOCK_M), WORLD_SIZE)
            if LAMPORT:
                value = bits_to_send(value)
            for step in range(1, WORLD_SIZE + 1):
                peer = (rank + step) % WORLD_SIZE
                if TWO_SHOT:
                    begin = peer * part_rows
                    sent = mask & (tile_rows >= begin) & (tile_rows < begin + part_rows)
                else:
                    sent = mask
                tl.store(dl.symm_at(slots, peer) + (rank * slot_elements + start) + offsets, value, mask=sent, volatile=LAMPORT)
            if not LAMPORT:
                raise_flags(flags_ptr, tile, generation, rank, WORLD_SIZE)

    if TWO_SHOT:
        for tile in range(first_tile, end_tile, num_programs):
            row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
            part_rows = tl.cdiv(min(M - row, BLOCK_M), WORLD_SIZE)
            part_row = row + rank * part_rows
            part_end = min(part_row + part_rows, min(row + BLOCK_M, M))
            start, offsets, mask = tile_offsets(part_row, column, part_end, N, N, PART_M, BLOCK_N)
            last = last_of_tile(part_row, column, part_end, N, N, PART_M, BLOCK_N)
            value = sum_when_all_have_come(slots, slot_elements, start, offsets, mask, last, flags_ptr, tile, generation, slots_ptr.dtype.element_ty, LAMPORT,
                                           WORLD_SIZE).to(out_ptr.dtype.element_ty)
            if SCATTER:
                own_start, own_offsets, own_mask = tile_offsets(0, column, part_end - part_row, N, stride_out, PART_M, BLOCK_N)
                tl.store(out_ptr + own_start + own_offsets, value, mask=own_mask)
            else:
                if LAMPORT:
                    value = bits_to_send(value)
                for step in range(1, WORLD_SIZE + 1):
                    tl.store(dl.symm_at(sums, (rank + step) % WORLD_SIZE) + start + offsets, value, mask=mask, volatile=LAMPORT)
                if not LAMPORT:
                    raise_flags(flags_ptr + sum_flags, tile, generation, rank, WORLD_SIZE)
            if LAMPORT:
                empty_slots(slots + start, slot_elements, offsets, mask, WORLD_SIZE)

    if not SCATTER:
        for tile in range(first_tile, end_tile, num_programs):
            row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
            start, offsets, mask = tile_offsets(row, column, M, N, N, BLOCK_M, BLOCK_N)
            last = last_of_tile(row, column, M, N, N, BLOCK_M, BLOCK_N)
            if not TWO_SHOT:
                value = sum_when_all_have_come(slots, slot_elements, start, offsets, mask, last, flags_ptr, tile, generation, slots_ptr.dtype.element_ty, LAMPORT,
                                               WORLD_SIZE).to(out_ptr.dtype.element_ty)
            elif LAMPORT:
                value = sent_values(take_tiles(sums + start, 0, offsets, mask, last, 1)[0], out_ptr.dtype.element_ty)
            else:
                token = dl.wait(flags_ptr + sum_flags + tile * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
                value = tl.load(dl.consume_token(sums, token) + start + offsets, mask=mask)
            out_start, out_offsets, out_mask = tile_offsets(row, column, M, N, stride_out, BLOCK_M, BLOCK_N)
            tl.store(out_ptr + out_start + out_offsets, value, mask=out_mask)
            if LAMPORT:
                if TWO_SHOT:
                    empty_slots(sums + start, 0, offsets, mask, 1)
                else:
                    empty_slots(slots + start, slot_elements, offsets, mask, WORLD_SIZE)

    end_call(call_ptr, generation)


@triton.jit(do_not_specialize=["rank", "bias_columns", "push_rows"])
def all_gather_gemm_one_launch(shard_ptr, a_ptr, push_ptr, b_ptr, c_ptr, split_ptr, split_counter_ptr, flags_ptr, call_ptr, generation_ptr, M, N, K,
                               stride_shard, stride_a, stride_b, stride_c, push_rows, push_columns, rows_per_rank, half_rows, all_rows, pushes, splits, rank, WORLD_SIZE: tl.constexpr, SPLIT: tl.constexpr,
                               BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                               TURNED: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, shard_scale_ptr=None,
                               a_scale_ptr=None, stride_a_scale=1, b_scale_ptr=None, bias_ptr=None, bias_columns=0,
                               SHARD_SCALES: tl.constexpr = False, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False,
                               ACTIVATION: tl.constexpr = "none"):
    """The whole of AllGather+GEMM for few rows in one launch, with tiles and calls as in gemm_all_reduce_one_launch.

    The rank's rows, as push_rows rows of push_columns elements, are cut into `pushes` parts of the same number on all ranks. The first blocks store them into every rank's workspace,
    [all_rows, stride_a], half of it for even and half for odd calls, and raise flags_ptr[part, rank] there; then, as all blocks, they wait for the parts of all
    ranks. A block never waits before it has pushed. push_ptr is a_ptr and generation_ptr call_ptr: the producer warp takes its copies and its generation from
    arguments that the kernel does not write, the one behind a wait, the other before the block can end.
    """
    program = tl.program_id(0)
    num_programs = tl.num_programs(0)
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    split, first_tile, end_tile, first_step, end_step = work_of_program(program, tiles, steps, splits, SPLIT)
    generation = tl.load(generation_ptr) + 1
    half = tl.cast(generation % 2, tl.int32) * half_rows
    first_row = min(rank * rows_per_rank, M)
    own = push_ptr + tl.cast(half + first_row, tl.int64) * stride_a
    blocks_of_row = tl.cdiv(push_columns, BLOCK)
    for part in range(program, pushes, num_programs):
        for index in range(part, push_rows * blocks_of_row, pushes):
            push_row = tl.cast(index // blocks_of_row, tl.int64)
            push_column = index % blocks_of_row * BLOCK
            block = tl.arange(0, BLOCK)
            inside = block < push_columns - push_column
            pushed = tl.load(shard_ptr + push_row * stride_shard + push_column + block, mask=inside)
            for step in range(1, WORLD_SIZE + 1):
                tl.store(dl.symm_at(own, (rank + step) % WORLD_SIZE) + push_row * stride_a + push_column + block, pushed, mask=inside)
        if shard_scale_ptr is not None:
            own_scales = a_scale_ptr + tl.cast(half + first_row, tl.int64) * stride_a_scale
            for scale_row in range(part, min(M - first_row, rows_per_rank), pushes):
                scale = tl.load(shard_scale_ptr + scale_row * SHARD_SCALES)
                for step in range(1, WORLD_SIZE + 1):
                    tl.store(dl.symm_at(own_scales, (rank + step) % WORLD_SIZE) + scale_row * stride_a_scale, scale)
        raise_flags(flags_ptr, part, generation, rank, WORLD_SIZE)

    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[all_rows, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(first_tile, end_tile, num_programs, warp_specialize=FETCH_AHEAD):
        row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
        token = dl.wait(flags_ptr, pushes * WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
        total = product_of_tile(dl.consume_token(a_desc, token), b_desc, half + row, column, first_step, end_step, BLOCK_M, BLOCK_N, BLOCK_K,
                                TURNED, B_TRANSPOSED, PRECISION)
        start, offsets, mask = tile_offsets(row, column, M, N, N, BLOCK_M, BLOCK_N)
        is_whole = True
        if SPLIT:
            is_whole, total = add_parts(total, split_ptr, split_counter_ptr, tile, split, splits, mask, BLOCK_M, BLOCK_N)
        if is_whole:
            a_scales = a_scale_ptr
            if a_scale_ptr is not None:
                a_scales = dl.consume_token(a_scale_ptr, token) + tl.cast(half, tl.int64) * stride_a_scale
            value = scaled_tile(total, row, column, M, N, a_scales, stride_a_scale, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                COLUMN_SCALES, BLOCK_M, BLOCK_N)
            result = activated(value, ACTIVATION, BLOCK_M, BLOCK_N)
            RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
            c_start, c_offsets, c_mask = tile_offsets(row, result_columns(column, ACTIVATION), M, result_columns(N, ACTIVATION), stride_c,
                                                      BLOCK_M, RESULT_N)
            tl.store(c_ptr + c_start + c_offsets, result.to(c_ptr.dtype.element_ty), mask=c_mask)
    end_call(call_ptr, generation)
