"""Device code of GEMM+AllReduce (host side: ditron/ops/tensor_parallel/GemmAllReduce; the mathematics and the choice of a form: docs/ops/gemm_all_reduce.md).

out[M, N] = sum over ranks of A[M, K_r] @ B[K_r, N] on every rank, added in fp32 in ascending rank order, so that all ranks have the same bits.

Two-shot (`gemm_all_reduce`, `reduce_rows_beside`, `reduce_rows`, `gather_rows`): the rows are cut into chunks, the rows of a chunk into a segment for
each rank. The product goes through the chunks, in each of them through the segments of the ranks rank + 1, ..., rank; a second
stream pushes complete segments to their owners with the copy engine; the owner adds, and every rank fetches the sums from the owners
into its own result, which is ordinary memory. The last of several chunks, which nothing hides, goes by the library's AllReduce
(kernels/collectives) instead, but for partial results of another type than the result's. What the words mean is in kernels/tensor_parallel_gemm, whose `enter` begins these calls too.

Few rows are one launch and nothing else: kernels/one_launch.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, st, tid

from ..product.product import can_fetch_ahead, grouped_tile, matmul_tile, scaled_tile, weight_descriptor
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
