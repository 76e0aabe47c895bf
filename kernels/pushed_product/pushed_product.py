"""Device code of the pushed form of GEMM+ReduceScatter and GEMM+AllReduce (host side: ditron/ops/tensor_parallel/PushedProduct; docs/ops/gemm_all_reduce.md).

Rank r owns rows [r * rows_per_rank, (r + 1) * rows_per_rank) of the sum: its segment, fewer at the end of the matrix. The rows of tiles of all segments are cut
into chunks alike. A block stores a tile that it has computed of another rank's segment right into the owner's memory, over the link. Tiles of the own segment come
when those of the other ranks that belong to them have come: the block that computes one adds all ranks' parts, in fp32 in ascending rank order. No kernel waits; streams
do, between launches.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, st, tid

from ..product.product import can_fetch_ahead, grouped_tile, matmul_tile, scaled_tile, weight_descriptor


@triton.jit
def launched_tile(index, other_tiles, other_chunk, own_chunk, segment_tiles, chunk_tiles, tiles_n, rank, WORLD_SIZE: tl.constexpr, GROUP_M: tl.constexpr):
    """The index-th tile of a launch, as (owner, row of tiles in the owner's segment, column). First come other_tiles of the others' segments of other_chunk, from the
    next rank's on, then those of the own one of own_chunk. The longest segment has segment_tiles rows of tiles, a chunk chunk_tiles of them, the last one perhaps fewer."""
    is_own = index >= other_tiles
    first = tl.where(is_own, own_chunk, other_chunk) * chunk_tiles
    rows = min(segment_tiles - first, chunk_tiles)
    row, column = grouped_tile(tl.where(is_own, index - other_tiles, index), tl.where(is_own, rows, rows * (WORLD_SIZE - 1)), tiles_n, GROUP_M)
    owner = (rank + tl.where(is_own, WORLD_SIZE, 1 + row // rows)) % WORLD_SIZE
    return owner, first + row % rows, column


@triton.jit
def add_parts_of_ranks(scatter_ptr, reduced_ptr, out_ptr, row, out_row, column, rows, N, stride_out, rows_per_rank, WORLD_SIZE: tl.constexpr,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PART_M: tl.constexpr):
    """The tile at `row` of the own segment, which has `rows` rows: the sum of all ranks' parts of it, to the result and, if there is a reduced_ptr, to the same place of the
    segment there. PART_M rows at a time, all of whose loads are on their way together."""
    place = tl.cast(row, tl.int64) * N + column
    result = out_ptr + tl.cast(out_row, tl.int64) * stride_out + column
    part_rows = tl.arange(0, PART_M)[:, None]
    part_columns = tl.arange(0, BLOCK_N)[None, :]
    for part in range(0, min(rows - row, BLOCK_M), PART_M):
        mask = (part_rows < rows - row - part) & (part_columns < N - column)
        offsets = (part + part_rows) * N + part_columns
        parts = ()
        for source in tl.static_range(WORLD_SIZE):
            slot = scatter_ptr + tl.cast(source * rows_per_rank, tl.int64) * N + place
            parts = parts + (tl.load(slot + offsets, mask=mask, other=0.0),)
        total = tl.zeros((PART_M, BLOCK_N), dtype=tl.float32)
        for source in tl.static_range(WORLD_SIZE):
            total += parts[source].to(tl.float32)
        value = total.to(out_ptr.dtype.element_ty)
        if reduced_ptr is not None:
            tl.store(reduced_ptr + place + offsets, value, mask=mask)
        tl.store(result + (part + part_rows) * stride_out + part_columns, value, mask=mask)


@triton.jit
def store_to_owner(slots, owner, row, column, tile, rows_per_rank, N, WORLD_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile into this rank's slot on the owner. Tensor copies, where there are some, run on beside the next tile: links take their time."""
    for peer in tl.static_range(WORLD_SIZE):
        if peer == owner:
            slot = tl.make_tensor_descriptor(slots[peer], shape=[rows_per_rank, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
            slot.store([row, column], tile)


@triton.jit
def open_gates(arrival_ptr, fetch_ptr, M, rows_per_rank, chunk_rows, has_others, other_chunk, has_own, own_chunk, rank, WORLD_SIZE: tl.constexpr,
               CHUNKS: tl.constexpr):
    """By one thread when all blocks of a launch are done: the others have their parts of other_chunk, and can fetch the own sums of own_chunk."""
    for step in range(1, WORLD_SIZE):
        peer = (rank + step) % WORLD_SIZE
        peer_rows = min(M - min(peer * rows_per_rank, M), rows_per_rank)
        if has_others & (peer_rows > other_chunk * chunk_rows):
            st(dl.symm_at(arrival_ptr, peer) + rank * CHUNKS + other_chunk, 1, scope="sys", semantic="release")
        if fetch_ptr is not None:
            if has_own:
                st(dl.symm_at(fetch_ptr, peer) + rank * CHUNKS + own_chunk, 1, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank", "bias_columns", "launch", "tiles", "other_tiles", "other_chunk", "own_chunk"])
def pushed_product(a_ptr, b_ptr, scatter_ptr, out_ptr, counter_ptr, arrival_ptr, M, N, K, stride_a, stride_b, stride_out, rows_per_rank, segment_tiles,
                   chunk_tiles, launch, tiles, other_tiles, other_chunk, own_chunk, rank, WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr,
                   PART_M: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
                   B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, slot0_ptr=None, slot1_ptr=None, slot2_ptr=None, slot3_ptr=None, slot4_ptr=None,
                   slot5_ptr=None, slot6_ptr=None, slot7_ptr=None, reduced_ptr=None, fetch_ptr=None, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None,
                   bias_columns=0, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False):
    """The tiles of A @ B * scales + bias that launched_tile says, into this rank's slot on their owners, [rows_per_rank, N]: slotR_ptr is that of rank R, here
    scatter_ptr[rank] of [WORLD_SIZE, rows_per_rank, N]. And the sums of those of the own segment, all of whose other parts have come before, to out_ptr.

    When all of a launch is done it opens the gates arrival_ptr[rank, chunk] on the owners for what it has stored there. With reduced_ptr, [rows_per_rank, N] in
    symmetric memory, out_ptr is the whole matrix on every rank; fetch_ptr[rank, own_chunk] is opened on the others when the own segment's sums can be
    fetched from there. Without it out_ptr is the own segment. Gates that nobody waits for stay closed: those of segments without rows in a chunk.
    counter_ptr[launch] is zero before.
    """
    num_pid_n = tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    slots = (slot0_ptr, slot1_ptr, slot2_ptr, slot3_ptr, slot4_ptr, slot5_ptr, slot6_ptr, slot7_ptr)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        owner, tile_row, pid_n = launched_tile(tile, other_tiles, other_chunk, own_chunk, segment_tiles, chunk_tiles, num_pid_n, rank, WORLD_SIZE,
                                               GROUP_SIZE_M)
        segment_first = min(owner * rows_per_rank, M)
        segment_rows = min(M - segment_first, rows_per_rank)
        row = tile_row * BLOCK_M
        column = pid_n * BLOCK_N
        sums = matmul_tile(a_desc, b_desc, segment_first + row, column, 0, steps, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        value = scaled_tile(sums, segment_first + row, column, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES, COLUMN_SCALES,
                            BLOCK_M, BLOCK_N)
        # Behind the end of a segment nobody waits for what comes.
        if row < segment_rows:
            store_to_owner(slots, owner, row, column, value.to(scatter_ptr.dtype.element_ty), rows_per_rank, N, WORLD_SIZE, BLOCK_M, BLOCK_N)
        if owner == rank:
            out_row = row
            if reduced_ptr is not None:
                out_row += segment_first
            __syncthreads()
            add_parts_of_ranks(scatter_ptr, reduced_ptr, out_ptr, row, out_row, column, segment_rows, N, stride_out, rows_per_rank, WORLD_SIZE, BLOCK_M,
                               BLOCK_N, PART_M)
    __syncthreads()
    if tid(0) == 0:
        # In scope of the system: what this block has stored on other ranks comes before the gates that another block may open.
        done = atomic_add(counter_ptr + launch, 1, scope="sys", semantic="acq_rel") + 1
        if done == tl.num_programs(0):
            open_gates(arrival_ptr, fetch_ptr, M, rows_per_rank, chunk_tiles * BLOCK_M, other_tiles > 0, other_chunk, tiles > other_tiles, own_chunk, rank,
                       WORLD_SIZE, CHUNKS)
