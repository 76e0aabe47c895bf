"""Device code of GEMM+AllReduce (host side: ditron/ops/tensor_parallel/GemmAllReduce; the mathematics and the choice of a form: docs/ops/gemm_all_reduce.md).

out[M, N] = sum over ranks of A[M, K_r] @ B[K_r, N] on every rank, added in fp32 in ascending rank order, so that all ranks have the same bits.

Two-shot (`gemm_all_reduce`, `reduce_rows_beside`, `reduce_rows`, `gather_rows`): the rows are cut into chunks, the rows of a chunk into a segment for
each rank. The product goes through the chunks, in each of them through the segments of the ranks rank + 1, ..., rank; a second
stream pushes complete segments to their owners with the copy engine; the owner adds, and every rank fetches the sums from the owners
into its own result, which is ordinary memory. The last of several chunks, which nothing hides, goes by the library's AllReduce
(kernels/collectives) instead, but for partial results of another type than the result's. What the words mean is in kernels/tensor_parallel_gemm, whose `enter` begins these calls too.

One launch and nothing else, for few rows, one- or two-shot: `gemm_all_reduce_one_launch`, which does GEMM+ReduceScatter as well; and
`all_gather_gemm_one_launch`, its counterpart. See there.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, st, tid

from ..product.product import (activated, can_fetch_ahead, grouped_tile, matmul_tile, matmul_tile_turned, result_columns, scaled_tile,
                               weight_descriptor)
from ..product.split_tail import complete_sums, item_of_split_tail


@triton.jit
def chunked_tile(index, M, tiles_n, chunk_rows, rank, WORLD_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, GROUP_M: tl.constexpr):
    """The index-th tile that a rank computes, as (chunk, row, column) of tiles: chunk after chunk, in each from the next rank's segment
    on. Several chunks have a multiple of BLOCK_M rows each, the last one perhaps fewer."""
    chunk_tiles = tl.cdiv(chunk_rows, BLOCK_M)
    chunk = index // (chunk_tiles * tiles_n)
    rows = min(M - chunk * chunk_rows, chunk_rows)
    tiles_m = tl.cdiv(rows, BLOCK_M)
    tile_m, tile_n = grouped_tile(index % (chunk_tiles * tiles_n), tiles_m, tiles_n, GROUP_M)
    first = min((rank + 1) % WORLD_SIZE * tl.cdiv(rows, WORLD_SIZE), rows) // BLOCK_M
    return chunk, chunk * chunk_tiles + (tile_m + first) % tiles_m, tile_n


@triton.jit
def segment_of(chunk, owner, M, chunk_rows, WORLD_SIZE: tl.constexpr):
    """A rank's segment of a chunk: its first row in the matrix, its number of rows, the rows of the chunk's longest segment, and the rows
    of the longest segment of all."""
    first = chunk * chunk_rows
    rows = min(M - first, chunk_rows)
    longest = tl.cdiv(rows, WORLD_SIZE)
    begin = min(owner * longest, rows)
    return first + begin, min(rows - begin, longest), longest, tl.cdiv(chunk_rows, WORLD_SIZE)


@triton.jit
def reduce_chunk(partial_ptr, scatter_ptr, reduced_ptr, out_ptr, arrived_ptr, gate_ptr, generation, chunk, M, N, stride_out, chunk_rows, rank, block,
                 num_blocks, WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """This block's tiles (block, block + num_blocks, ...) of the own segment of a chunk: the sum of all ranks' rows, to the own result and
    to reduced_ptr, from where the other ranks fetch it."""
    first_row, rows, longest, longest_of_all = segment_of(chunk, rank, M, chunk_rows, WORLD_SIZE)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(rows, BLOCK_M) * tiles_n
    if block < tiles:
        token = dl.wait(gate_ptr + chunk * WORLD_SIZE + rank, 1, "gpu", "acquire", waitValue=1, compare="ge")
        partial_ptr = dl.consume_token(partial_ptr, token)
        for source in range(WORLD_SIZE):
            if source != rank:
                arrival = dl.wait(arrived_ptr + source * CHUNKS + chunk, 1, "sys", "acquire", waitValue=generation, compare="ge")
                scatter_ptr = dl.consume_token(scatter_ptr, arrival)
        slot_elements = tl.cast(longest, tl.int64) * N
        slots = scatter_ptr + tl.cast(chunk, tl.int64) * WORLD_SIZE * longest_of_all * N
        own_slot = partial_ptr + tl.cast(first_row, tl.int64) * N
        reduced = reduced_ptr + tl.cast(chunk, tl.int64) * longest_of_all * N
        result = out_ptr + tl.cast(first_row, tl.int64) * stride_out
        # Looked up before the loop, for a tile's loads are on their way together only where nothing stands between them.
        sources = ()
        for source in tl.static_range(WORLD_SIZE):
            slot = slots + source * slot_elements
            if source == rank:
                slot = own_slot
            sources = sources + (slot,)
        tile_rows = tl.arange(0, BLOCK_M)
        tile_columns = tl.arange(0, BLOCK_N)
        for tile in range(block, tiles, num_blocks):
            row = tile // tiles_n * BLOCK_M
            column = tile % tiles_n * BLOCK_N
            mask = (tile_rows[:, None] < rows - row) & (tile_columns[None, :] < N - column)
            start = tl.cast(row, tl.int64) * N + column
            offsets = tile_rows[:, None] * N + tile_columns[None, :]
            parts = ()
            for source in tl.static_range(WORLD_SIZE):
                parts = parts + (tl.load(sources[source] + start + offsets, mask=mask, other=0.0),)
            total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for source in tl.static_range(WORLD_SIZE):
                total += parts[source].to(tl.float32)
            value = total.to(out_ptr.dtype.element_ty)
            tl.store(reduced + start + offsets, value, mask=mask)
            place = tl.cast(row, tl.int64) * stride_out + column
            tl.store(result + place + tile_rows[:, None] * stride_out + tile_columns[None, :], value, mask=mask)


@triton.jit(do_not_specialize=["rank", "bias_columns", "whole_tiles", "parts"])
def gemm_all_reduce(a_ptr, b_ptr, partial_ptr, counter_ptr, gate_ptr, M, N, K, stride_a, stride_b, chunk_rows, rank,
                    WORLD_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                    PRECISION: tl.constexpr, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0,
                    ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False, sums_ptr=None, tile_counter_ptr=None,
                    whole_tiles=0, parts=1):
    """partial = A @ B * scales + bias; opens gate_ptr[chunk, s] when the last tile with rows of segment s of a chunk has been stored. With
    sums_ptr the tiles behind whole_tiles are split along K into `parts` (product/split_tail.py)."""
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    partial_desc = tl.make_tensor_descriptor(partial_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    split_tiles = num_pid_m * num_pid_n - whole_tiles
    for item in tl.range(tl.program_id(0), whole_tiles + split_tiles * parts, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        tile, first, end, piece, split_tile = item_of_split_tail(item, whole_tiles, split_tiles, parts, steps, sums_ptr)
        chunk, pid_m, pid_n = chunked_tile(tile, M, num_pid_n, chunk_rows, rank, WORLD_SIZE, BLOCK_M, GROUP_SIZE_M)
        sums = matmul_tile(a_desc, b_desc, pid_m * BLOCK_M, pid_n * BLOCK_N, first, end, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        sums, is_complete = complete_sums(sums, piece, split_tile, split_tiles, parts, sums_ptr, tile_counter_ptr, 1, BLOCK_M, BLOCK_N)
        if is_complete:
            value = scaled_tile(sums, pid_m * BLOCK_M, pid_n * BLOCK_N, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                COLUMN_SCALES, BLOCK_M, BLOCK_N)
            partial_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], value.to(partial_ptr.dtype.element_ty))

            chunk_start = chunk * chunk_rows
            rows = min(M - chunk_start, chunk_rows)
            segment_rows = tl.cdiv(rows, WORLD_SIZE)
            first_segment = (pid_m * BLOCK_M - chunk_start) // segment_rows
            last_segment = (min((pid_m + 1) * BLOCK_M - chunk_start, rows) - 1) // segment_rows
            __syncthreads()
            segment = first_segment + tid(0)
            if segment <= last_segment:
                first_tile = segment * segment_rows // BLOCK_M
                last_tile = (min((segment + 1) * segment_rows, rows) - 1) // BLOCK_M
                tiles = (last_tile - first_tile + 1) * num_pid_n
                word = chunk * WORLD_SIZE + segment
                done = atomic_add(counter_ptr + word, 1, scope="gpu", semantic="acq_rel")
                if done == tiles - 1:
                    st(gate_ptr + word, 1, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank", "chunks"])
def reduce_rows_beside(partial_ptr, scatter_ptr, reduced_ptr, out_ptr, arrived_ptr, gate_ptr, ticket_ptr, fetch_ptr, generation_ptr, chunks, M, N,
                       stride_out, chunk_rows, rank, WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr, EXCHANGE_M: tl.constexpr,
                       EXCHANGE_N: tl.constexpr):
    """The first half of the exchange of the first `chunks` chunks while the product goes on with the next: few programs, on multiprocessors that the
    product leaves. The last one to end a chunk opens the gates of the copies that fetch the chunk's sums from here. ticket_ptr: a zero for each."""
    num_blocks = tl.num_programs(0)
    generation = tl.load(generation_ptr)
    for chunk in range(chunks):
        reduce_chunk(partial_ptr, scatter_ptr, reduced_ptr, out_ptr, arrived_ptr, gate_ptr, generation, chunk, M, N, stride_out, chunk_rows, rank,
                     tl.program_id(0), num_blocks, WORLD_SIZE, CHUNKS, EXCHANGE_M, EXCHANGE_N)
        if tl.atomic_add(ticket_ptr + chunk, 1, sem="acq_rel", scope="gpu") == num_blocks - 1:
            tl.store(ticket_ptr + chunk, 0)
            peer = tid(0)
            if (peer < WORLD_SIZE) & (peer != rank):
                st(dl.symm_at(fetch_ptr, peer) + rank * CHUNKS + chunk, 1, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank", "chunk"])
def reduce_rows(partial_ptr, scatter_ptr, reduced_ptr, out_ptr, arrived_ptr, gate_ptr, finished_ptr, generation_ptr, chunk, M, N,
                stride_out, chunk_rows, rank, WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr, BLOCKS: tl.constexpr,
                EXCHANGE_M: tl.constexpr, EXCHANGE_N: tl.constexpr):
    """The first half of the last chunk's exchange: behind its tiles a program raises finished_ptr[rank, chunk, program] on the others. All
    ranks launch the same number of programs, at most BLOCKS."""
    generation = tl.load(generation_ptr)
    reduce_chunk(partial_ptr, scatter_ptr, reduced_ptr, out_ptr, arrived_ptr, gate_ptr, generation, chunk, M, N, stride_out, chunk_rows, rank,
                 tl.program_id(0), tl.num_programs(0), WORLD_SIZE, CHUNKS, EXCHANGE_M, EXCHANGE_N)
    __syncthreads()
    peer = tid(0)
    if (peer < WORLD_SIZE) & (peer != rank):
        word = (rank * CHUNKS + chunk) * BLOCKS + tl.program_id(0)
        st(dl.symm_at(finished_ptr, peer) + word, generation, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank", "chunk"])
def gather_rows(reduced_ptr, out_ptr, finished_ptr, generation_ptr, chunk, M, N, stride_out, chunk_rows, rank, WORLD_SIZE: tl.constexpr,
                CHUNKS: tl.constexpr, BLOCKS: tl.constexpr, EXCHANGE_M: tl.constexpr, EXCHANGE_N: tl.constexpr):
    """The second half, by as many programs: tiles of the other ranks' segments, which the programs of the same number have made there, into
    the result."""
    generation = tl.load(generation_ptr)
    block = tl.program_id(0)
    num_blocks = tl.num_programs(0)
    tiles_n = tl.cdiv(N, EXCHANGE_N)
    tile_rows = tl.arange(0, EXCHANGE_M)
    tile_columns = tl.arange(0, EXCHANGE_N)
    sums = ()
    results = ()
    counts = ()
    for step in tl.static_range(1, WORLD_SIZE):
        owner = (rank + step) % WORLD_SIZE
        first_row, rows, longest, longest_of_all = segment_of(chunk, owner, M, chunk_rows, WORLD_SIZE)
        word = (owner * CHUNKS + chunk) * BLOCKS + block
        token = dl.wait(finished_ptr + word, 1, "sys", "acquire", waitValue=generation, compare="ge")
        reduced = dl.consume_token(dl.symm_at(reduced_ptr, owner), token)
        sums = sums + (reduced + tl.cast(chunk, tl.int64) * longest_of_all * N,)
        results = results + (out_ptr + tl.cast(first_row, tl.int64) * stride_out,)
        counts = counts + (rows,)
    longest = tl.cdiv(min(M - chunk * chunk_rows, chunk_rows), WORLD_SIZE)
    for tile in range(block, tl.cdiv(longest, EXCHANGE_M) * tiles_n, num_blocks):
        row = tile // tiles_n * EXCHANGE_M
        column = tile % tiles_n * EXCHANGE_N
        offsets = tl.cast(row, tl.int64) * N + column + (tile_rows[:, None] * N + tile_columns[None, :])
        place = tl.cast(row, tl.int64) * stride_out + column + (tile_rows[:, None] * stride_out + tile_columns[None, :])
        # The tiles of all owners are on their way together.
        values = ()
        for i in tl.static_range(WORLD_SIZE - 1):
            mask = (tile_rows[:, None] < counts[i] - row) & (tile_columns[None, :] < N - column)
            values = values + (tl.load(sums[i] + offsets, mask=mask),)
        for i in tl.static_range(WORLD_SIZE - 1):
            mask = (tile_rows[:, None] < counts[i] - row) & (tile_columns[None, :] < N - column)
            tl.store(results[i] + place, values[i], mask=mask)


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
def sum_of_slots(slots, slot_elements, offsets, mask, WORLD_SIZE: tl.constexpr):
    """Ascending rank order, in fp32."""
    total = tl.load(slots + offsets, mask=mask, other=0.0).to(tl.float32)
    for source in tl.static_range(1, WORLD_SIZE):
        total += tl.load(slots + source * slot_elements + offsets, mask=mask, other=0.0).to(tl.float32)
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
                               TWO_SHOT: tl.constexpr, SCATTER: tl.constexpr, PART_M: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                               BLOCK_K: tl.constexpr, TURNED: tl.constexpr, B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr,
                               a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None, bias_columns=0, ROW_SCALES: tl.constexpr = False,
                               COLUMN_SCALES: tl.constexpr = False):
    """The whole of GEMM+AllReduce, or of GEMM+ReduceScatter, in one launch; all of its blocks must find a place at once.

    Program p computes the tiles p, p + num_programs, ... With SPLIT there is a program for each part of the depth of each tile instead:
    each puts its part into split_ptr, in the type of the sums, and the last one to come adds them in their order and goes on; the others are done.

    One-shot: a tile goes, in the type of the slots, into this rank's slot on every rank; when all ranks' flags of the tile are up, the
    block adds the slots in ascending rank order.
    TWO_SHOT: the rows of a tile are dealt out to the ranks. Each rank's part goes into this rank's slot there; the owner adds the slots
    and puts the sum into sums_ptr on every rank; when all ranks' second flags are up, the block copies the tile from there. Ranks send
    2 (W - 1) / W of the result this way, instead of W - 1 times, and wait once more. With SCATTER besides, owners keep the sums: out_ptr has
    this rank's rows of a matrix that is one row of tiles.

    call_ptr[0] is the number of calls that have ended; the last block of a call advances it (call_ptr[1] counts them). Slots and sums
    are there twice, [2, WORLD_SIZE, slot_elements] and [2, slot_elements], for even and odd calls. A rank that is in call g has ended
    g - 1, hence got g - 1's tiles from all, who therefore had ended g - 2: nobody reads what is of g - 2 any more, and no call needs to
    begin with a meeting. flags_ptr: [2, sum_flags / WORLD_SIZE tiles, WORLD_SIZE] signals. Calls of other shapes in between change
    nothing in this.
    """
    program = tl.program_id(0)
    num_programs = tl.num_programs(0)
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    generation = tl.load(call_ptr) + 1
    slots = slots_ptr + (generation % 2) * WORLD_SIZE * slot_elements
    sums = sums_ptr + (generation % 2) * slot_elements
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
            for step in range(1, WORLD_SIZE + 1):
                peer = (rank + step) % WORLD_SIZE
                if TWO_SHOT:
                    begin = peer * part_rows
                    sent = mask & (tile_rows >= begin) & (tile_rows < begin + part_rows)
                else:
                    sent = mask
                tl.store(dl.symm_at(slots, peer) + (rank * slot_elements + start) + offsets, value, mask=sent)
            raise_flags(flags_ptr, tile, generation, rank, WORLD_SIZE)

    if TWO_SHOT:
        for tile in range(first_tile, end_tile, num_programs):
            row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
            part_rows = tl.cdiv(min(M - row, BLOCK_M), WORLD_SIZE)
            part_row = row + rank * part_rows
            part_end = min(part_row + part_rows, min(row + BLOCK_M, M))
            start, offsets, mask = tile_offsets(part_row, column, part_end, N, N, PART_M, BLOCK_N)
            token = dl.wait(flags_ptr + tile * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
            value = sum_of_slots(dl.consume_token(slots, token) + start, slot_elements, offsets, mask, WORLD_SIZE).to(out_ptr.dtype.element_ty)
            if SCATTER:
                own_start, own_offsets, own_mask = tile_offsets(0, column, part_end - part_row, N, stride_out, PART_M, BLOCK_N)
                tl.store(out_ptr + own_start + own_offsets, value, mask=own_mask)
            else:
                for step in range(1, WORLD_SIZE + 1):
                    tl.store(dl.symm_at(sums, (rank + step) % WORLD_SIZE) + start + offsets, value, mask=mask)
                raise_flags(flags_ptr + sum_flags, tile, generation, rank, WORLD_SIZE)

    if not SCATTER:
        for tile in range(first_tile, end_tile, num_programs):
            row, column = tile_place(tile, M, N, BLOCK_M, BLOCK_N)
            start, offsets, mask = tile_offsets(row, column, M, N, N, BLOCK_M, BLOCK_N)
            if TWO_SHOT:
                token = dl.wait(flags_ptr + sum_flags + tile * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
                value = tl.load(dl.consume_token(sums, token) + start + offsets, mask=mask)
            else:
                token = dl.wait(flags_ptr + tile * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")
                value = sum_of_slots(dl.consume_token(slots, token) + start, slot_elements, offsets, mask, WORLD_SIZE).to(out_ptr.dtype.element_ty)
            out_start, out_offsets, out_mask = tile_offsets(row, column, M, N, stride_out, BLOCK_M, BLOCK_N)
            tl.store(out_ptr + out_start + out_offsets, value, mask=out_mask)

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
