"""Device code of AllGather+GEMM and GEMM+ReduceScatter (host side: ditron/ops/).

One call on a rank is: `enter` on the compute stream, then the GEMM on the compute stream while a second stream moves
shards with the copy engine, and, for ReduceScatter, `reduce_segments` on the compute stream. What moves inside the rank's
own memory is copied by `enter`: a GPU does that by a kernel in any case, and this one is launched already.

Two kinds of words synchronise a call:
- signals: 64-bit words in the symmetric heap that carry the generation (the number of the call). They only grow; waits
  compare `>=`. `enter` advances the generation on the device, so a call can be replayed without host arguments.
- gates: local words that the GEMM opens and the copy stream of the same rank waits for. `enter` closes them again; stream
  order makes that safe, since the previous call's copy stream has been joined by then.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, num_threads, st, tid

from ..product.product import activated, can_fetch_ahead, grouped_tile, matmul_tile, result_columns, scaled_tile, weight_descriptor
from ..product.split_tail import complete_sums, item_of_split_tail


@triton.jit
def next_generation(generation_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised):
    """Counts the call, closes the own counters and gates and raises the own signals; one block. What its threads have stored comes before
    what follows."""
    thread = tid(0)
    generation = tl.load(generation_ptr) + 1
    __syncthreads()
    if thread == 0:
        st(generation_ptr, generation, scope="gpu", semantic="relaxed")
    if thread < num_segments:
        st(counter_ptr + thread, 0, scope="gpu", semantic="relaxed")
        st(gate_ptr + thread, 0, scope="sys", semantic="relaxed")
    if thread < num_raised:
        st(raised_ptr + thread, generation, scope="sys", semantic="relaxed")
    __syncthreads()
    return generation


@triton.jit
def begin_call(generation_ptr, entered_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised, rank, world_size):
    """Next generation, local counters and gates to zero, then a barrier over all ranks; one block."""
    thread = tid(0)
    generation = next_generation(generation_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised)
    if thread < world_size:
        st(dl.symm_at(entered_ptr, thread) + rank, generation, scope="sys", semantic="release")
    __syncthreads()
    dl.wait(entered_ptr, world_size, "sys", "acquire", waitValue=generation, compare="ge")


@triton.jit
def copy_shard(own_ptr, shard_ptr, own_rows, own_columns, stride_own, stride_shard, own_scale_ptr, shard_scale_ptr, num_scales,
               stride_own_scale, BLOCK: tl.constexpr, SHARD_SCALES: tl.constexpr):
    """What all programs but the first do of `enter`."""
    program = tl.program_id(0) - 1
    num_programs = tl.num_programs(0) - 1
    blocks_of_row = tl.cdiv(own_columns, BLOCK)
    for index in range(program, own_rows * blocks_of_row, num_programs):
        row = tl.cast(index // blocks_of_row, tl.int64)
        column = tl.cast(index % blocks_of_row, tl.int64) * BLOCK
        offsets = tl.arange(0, BLOCK)
        mask = offsets < own_columns - column
        value = tl.load(shard_ptr + row * stride_shard + column + offsets, mask=mask)
        tl.store(own_ptr + row * stride_own + column + offsets, value, mask=mask)
    if shard_scale_ptr is not None:
        SCALES: tl.constexpr = 128
        for first in range(program * SCALES, num_scales, num_programs * SCALES):
            rows = first + tl.arange(0, SCALES)
            scales = tl.load(shard_scale_ptr + rows * SHARD_SCALES, mask=rows < num_scales)
            tl.store(own_scale_ptr + tl.cast(rows, tl.int64) * stride_own_scale, scales, mask=rows < num_scales)


@triton.jit(do_not_specialize=["rank", "own_rows", "num_scales"])
def enter(generation_ptr, entered_ptr, counter_ptr, gate_ptr, raised_ptr, own_ptr, shard_ptr, num_segments, num_raised, own_rows,
          own_columns, stride_own, stride_shard, rank, world_size, BLOCK: tl.constexpr, own_scale_ptr=None, shard_scale_ptr=None,
          num_scales=0, stride_own_scale=1, SHARD_SCALES: tl.constexpr = False, arrival_ptr=None, num_arrivals=0):
    """Begins a call. Program 0 advances the generation, clears the counters and gates, arrival_ptr[0, num_arrivals) too, which are gates that
    other ranks open, and meets the other ranks;
    raised_ptr[0, num_raised) are signals of this rank that no other rank's data belongs to: they get the generation at once.
    The other programs copy own_rows rows of own_columns elements from shard_ptr to own_ptr, where only this rank's previous call has been
    reading, and to own_scale_ptr the scales of num_scales rows, or the one scale of them all where not SHARD_SCALES.

    A rank that has passed knows that every rank has finished the previous call on its compute stream, so that peers'
    workspaces may be overwritten. world_size, num_segments and num_raised are at most the number of threads of a block.
    """
    if tl.program_id(0) == 0:
        if arrival_ptr is not None:
            for arrival in range(tid(0), num_arrivals, num_threads()):
                st(arrival_ptr + arrival, 0, scope="sys", semantic="relaxed")
        begin_call(generation_ptr, entered_ptr, counter_ptr, gate_ptr, raised_ptr, num_segments, num_raised, rank, world_size)
    else:
        copy_shard(own_ptr, shard_ptr, own_rows, own_columns, stride_own, stride_shard, own_scale_ptr, shard_scale_ptr, num_scales,
                   stride_own_scale, BLOCK, SHARD_SCALES)


@triton.jit
def swizzle_all_gather(index, M, rows_per_rank, rank, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr,
                       BLOCK_M: tl.constexpr):
    """The index-th row of tiles to compute, in the order in which the shards arrive.

    Rank r's shard is the rows from r * rows_per_rank on; the last shards may be short or empty. Nodes are visited from the own one upwards, cyclically; inside a node, ranks from the own local rank upwards. A tile
    that reaches into several nodes needs all their shards, so it belongs to the one visited last. For any M, also when
    tiles straddle ranks and nodes, this is a permutation of the rows of tiles.
    """
    LOCAL_SIZE: tl.constexpr = WORLD_SIZE // NUM_NODES
    rows_per_node = rows_per_rank * LOCAL_SIZE
    num_tiles = tl.cdiv(M, BLOCK_M)
    own_node = rank // LOCAL_SIZE
    local_rank = rank % LOCAL_SIZE
    result = index
    remaining = index
    for visit in tl.static_range(NUM_NODES):
        node = (own_node + visit) % NUM_NODES
        begin = 0
        end = 0
        running = 0
        for n in tl.static_range(NUM_NODES):
            boundary = min((n + 1) * rows_per_node, M)
            node_end = boundary // BLOCK_M
            if n + 1 == own_node:
                node_end = tl.cdiv(boundary, BLOCK_M)
            if n == NUM_NODES - 1:
                node_end = num_tiles
            node_end = max(node_end, running)
            if n == node:
                begin = running
                end = node_end
            running = node_end
        size = end - begin
        if (remaining >= 0) & (remaining < size):
            first = tl.cdiv(min((node * LOCAL_SIZE + local_rank) * rows_per_rank, M), BLOCK_M) - begin
            result = begin + (remaining + max(first, 0)) % size
        remaining -= size
    return result


@triton.jit
def swizzle_reduce_scatter(index, M, rows_per_rank, rank, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr,
                           BLOCK_M: tl.constexpr):
    """The index-th row of tiles to compute, so that segments complete in the order in which they are sent.

    The next node's segments come first and the own node's last; inside a node the next local rank's first and the own
    last. A tile that reaches into several nodes is needed by all of them, so it belongs to the one visited first.
    """
    LOCAL_SIZE: tl.constexpr = WORLD_SIZE // NUM_NODES
    rows_per_node = rows_per_rank * LOCAL_SIZE
    num_tiles = tl.cdiv(M, BLOCK_M)
    own_node = rank // LOCAL_SIZE
    local_rank = rank % LOCAL_SIZE
    first_node = (own_node + 1) % NUM_NODES
    result = index
    remaining = index
    for visit in tl.static_range(NUM_NODES):
        node = (first_node + visit) % NUM_NODES
        begin = 0
        end = 0
        running = num_tiles
        for back in tl.static_range(NUM_NODES):
            n = NUM_NODES - 1 - back
            boundary = min(n * rows_per_node, M)
            node_begin = tl.cdiv(boundary, BLOCK_M)
            if n == own_node + 1:
                node_begin = boundary // BLOCK_M
            node_begin = min(node_begin, running)
            if n == node:
                begin = node_begin
                end = running
            running = node_begin
        size = end - begin
        if (remaining >= 0) & (remaining < size):
            next_local = (local_rank + 1) % LOCAL_SIZE
            first = min((node * LOCAL_SIZE + next_local) * rows_per_rank, M) // BLOCK_M - begin
            result = begin + (remaining + max(first, 0)) % size
        remaining -= size
    return result


@triton.jit(do_not_specialize=["rank", "bias_columns", "whole_tiles", "parts"])
def all_gather_gemm(a_ptr, b_ptr, c_ptr, ready_ptr, generation_ptr, M, N, K, stride_a, stride_b, stride_c, rows_per_rank, rows_per_chunk,
                    rank, WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
                    B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, a_scale_ptr=None, stride_a_scale=1, b_scale_ptr=None,
                    bias_ptr=None, bias_columns=0, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False,
                    ACTIVATION: tl.constexpr = "none", sums_ptr=None, tile_counter_ptr=None, whole_tiles=0, parts=1):
    """C = activation(gathered A @ B * scales + bias), each tile as soon as the chunks with its rows have arrived.

    A: [M, K] workspace in the symmetric heap, filled by the peers' copy engines, with the scales of its rows between them; ready_ptr:
    [WORLD_SIZE * CHUNKS] signals, one per chunk of a shard, >= generation once the chunk is complete. Program p computes the tiles p,
    p + num_programs, ... With sums_ptr those behind whole_tiles are split along K into `parts` (product/split_tail.py).
    """
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_a, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weight_descriptor(b_ptr, N, K, stride_b, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, result_columns(N, ACTIVATION)], strides=[stride_c, 1],
                                       block_shape=[BLOCK_M, RESULT_N])
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    generation = tl.load(generation_ptr)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    split_tiles = num_pid_m * num_pid_n - whole_tiles
    for item in tl.range(tl.program_id(0), whole_tiles + split_tiles * parts, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        tile, first, end, piece, split_tile = item_of_split_tail(item, whole_tiles, split_tiles, parts, steps, sums_ptr)
        pid_m, pid_n = grouped_tile(tile, num_pid_m, num_pid_n, GROUP_SIZE_M)
        pid_m = swizzle_all_gather(pid_m, M, rows_per_rank, rank, WORLD_SIZE, NUM_NODES, BLOCK_M)
        first_row = pid_m * BLOCK_M
        last_row = min(first_row + BLOCK_M, M) - 1
        first_chunk = first_row // rows_per_rank * CHUNKS + first_row % rows_per_rank // rows_per_chunk
        last_chunk = last_row // rows_per_rank * CHUNKS + last_row % rows_per_rank // rows_per_chunk
        token = dl.wait(ready_ptr + first_chunk, last_chunk - first_chunk + 1, "sys", "acquire", waitValue=generation,
                        compare="ge")
        arrived = dl.consume_token(a_desc, token)
        sums = matmul_tile(arrived, b_desc, first_row, pid_n * BLOCK_N, first, end, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        sums, is_complete = complete_sums(sums, piece, split_tile, split_tiles, parts, sums_ptr, tile_counter_ptr, 1, BLOCK_M, BLOCK_N)
        if is_complete:
            a_scales = a_scale_ptr
            if a_scale_ptr is not None:
                a_scales = dl.consume_token(a_scale_ptr, token)
            value = scaled_tile(sums, first_row, pid_n * BLOCK_N, M, N, a_scales, stride_a_scale, b_scale_ptr, bias_ptr, bias_columns,
                                ROW_SCALES, COLUMN_SCALES, BLOCK_M, BLOCK_N)
            result = activated(value, ACTIVATION, BLOCK_M, BLOCK_N)
            c_desc.store([first_row, pid_n * RESULT_N], result.to(c_ptr.dtype.element_ty))


@triton.jit(do_not_specialize=["rank", "bias_columns", "whole_tiles", "parts"])
def gemm_reduce_scatter(a_ptr, b_ptr, partial_ptr, counter_ptr, gate_ptr, M, N, K, stride_a, stride_b, rows_per_rank, rank,
                        WORLD_SIZE: tl.constexpr, NUM_NODES: tl.constexpr, BLOCK_M: tl.constexpr,
                        BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
                        B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr, a_scale_ptr=None, b_scale_ptr=None, bias_ptr=None,
                        bias_columns=0, ROW_SCALES: tl.constexpr = False, COLUMN_SCALES: tl.constexpr = False, sums_ptr=None,
                        tile_counter_ptr=None, whole_tiles=0, parts=1):
    """partial = A @ B * scales + bias; opens gate_ptr[s] when the last tile with rows of segment s has been stored.

    Segment s is the rows of rank s's result. Several tiles share a segment: each is counted, and the block that completes
    the count opens the gate, for which the copy stream waits. Program p computes the tiles p, p + num_programs, ... With sums_ptr those behind
    whole_tiles are split along K into `parts` (product/split_tail.py).
    """
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
        pid_m, pid_n = grouped_tile(tile, num_pid_m, num_pid_n, GROUP_SIZE_M)
        pid_m = swizzle_reduce_scatter(pid_m, M, rows_per_rank, rank, WORLD_SIZE, NUM_NODES, BLOCK_M)
        sums = matmul_tile(a_desc, b_desc, pid_m * BLOCK_M, pid_n * BLOCK_N, first, end, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        sums, is_complete = complete_sums(sums, piece, split_tile, split_tiles, parts, sums_ptr, tile_counter_ptr, 1, BLOCK_M, BLOCK_N)
        if is_complete:
            value = scaled_tile(sums, pid_m * BLOCK_M, pid_n * BLOCK_N, M, N, a_scale_ptr, 1, b_scale_ptr, bias_ptr, bias_columns, ROW_SCALES,
                                COLUMN_SCALES, BLOCK_M, BLOCK_N)
            partial_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], value.to(partial_ptr.dtype.element_ty))

            first_segment = pid_m * BLOCK_M // rows_per_rank
            last_segment = (min((pid_m + 1) * BLOCK_M, M) - 1) // rows_per_rank
            __syncthreads()
            segment = first_segment + tid(0)
            if segment <= last_segment:
                first_tile = segment * rows_per_rank // BLOCK_M
                last_tile = (min((segment + 1) * rows_per_rank, M) - 1) // BLOCK_M
                tiles = (last_tile - first_tile + 1) * num_pid_n
                done = atomic_add(counter_ptr + segment, 1, scope="gpu", semantic="acq_rel")
                if done == tiles - 1:
                    st(gate_ptr + segment, 1, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank"])
def reduce_segments(partial_ptr, scatter_ptr, out_ptr, arrived_ptr, generation_ptr, rows, N, stride_out, rank,
                    WORLD_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = sum over ranks of their partial rows for this rank, in fp32 and in ascending rank order.

    scatter_ptr: [WORLD_SIZE, rows, N] in the symmetric heap, slot s filled by rank s (the own slot is not used: the own
    rows are read from partial_ptr, [rows, N]); arrived_ptr: [WORLD_SIZE] signals.

    Programs are fewer than there is room for: tiles of another operator, for which ranks wait that these programs wait for, find a place.
    A program adds to its first tile what has arrived while the rest is on its way; for the others all is there.
    """
    tile_rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    offsets = tile_rows[:, None] * N + columns[None, :]
    slot_elements = tl.cast(rows, tl.int64) * N
    tiles_n = tl.cdiv(N, BLOCK_N)
    generation = tl.load(generation_ptr)
    for tile in range(tl.program_id(0), tl.cdiv(rows, BLOCK_M) * tiles_n, tl.num_programs(0)):
        first_row = tile // tiles_n * BLOCK_M
        first_column = tile % tiles_n * BLOCK_N
        mask = (tile_rows[:, None] < rows - first_row) & (columns[None, :] < N - first_column)
        tile_start = tl.cast(first_row, tl.int64) * N + first_column
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for source in range(WORLD_SIZE):
            slot = scatter_ptr + source * slot_elements
            if source == rank:
                slot = partial_ptr
            elif tile == tl.program_id(0):
                token = dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=generation, compare="ge")
                slot = dl.consume_token(slot, token)
            total += tl.load(slot + tile_start + offsets, mask=mask, other=0.0).to(tl.float32)
        out = out_ptr + tl.cast(first_row, tl.int64) * stride_out + first_column
        tl.store(out + tile_rows[:, None] * stride_out + columns[None, :], total.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def copy_rows(from_ptr, to_ptr, rows, columns, stride_from, stride_to, BLOCK: tl.constexpr):
    """Rows, BLOCK elements at a time, program by program."""
    blocks_of_row = tl.cdiv(columns, BLOCK)
    for index in range(tl.program_id(0), rows * blocks_of_row, tl.num_programs(0)):
        row = tl.cast(index // blocks_of_row, tl.int64)
        column = index % blocks_of_row * BLOCK
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns - column
        value = tl.load(from_ptr + row * stride_from + column + offsets, mask=mask)
        tl.store(to_ptr + row * stride_to + column + offsets, value, mask=mask)
