"""Three overlapped kernels written with the tile-centric primitives (TileLink, section 5, figures 4 to 6).

Each shows another combination: communication by blocks of the same launch or by the copy engine, affine or table maps, a
producer and a consumer on one rank or tiles of one operator handed from rank to rank. Host side: tests/e2e/distributed/tile_link_test.cpp; the words
of a channel belong to ops::TileChannel, which also begins every call.
"""
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def multiply(a_ptr, b_ptr, rows, columns, row_mask, column_mask, depth, a_stride, b_stride, BLOCK_K: tl.constexpr):
    """fp32 product of the rows `rows` of A and the columns `columns` of B."""
    accumulator = tl.zeros((rows.shape[0], columns.shape[0]), dtype=tl.float32)
    steps = tl.arange(0, BLOCK_K)
    for k in range(0, depth, BLOCK_K):
        inside = k + steps < depth
        a = tl.load(a_ptr + rows.to(tl.int64)[:, None] * a_stride + (k + steps)[None, :],
                    mask=row_mask[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptr + (k + steps).to(tl.int64)[:, None] * b_stride + columns[None, :],
                    mask=inside[:, None] & column_mask[None, :], other=0.0)
        accumulator = tl.dot(a, b, accumulator)
    return accumulator


@triton.jit
def gemm_ring_reduce_scatter(a_ptr, b_ptr, product_ptr, inbox_ptr, out_ptr, barriers_ptr, peers_ptr, generation_ptr, M, N, K,
                             rows_per_rank, channels, RING_BLOCKS: tl.constexpr, BLOCK_M: tl.constexpr,
                             BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, RING_M: tl.constexpr, RING_N: tl.constexpr):
    """out[rows of this rank] = sum over ranks of A_r @ B_r, A_r [M, K], B_r [K, N] (figure 4).

    The first blocks multiply, the last RING_BLOCKS pass partial sums around the ring, in tiles of their own size. A shard's sum
    starts at the rank behind its owner and ends with the owner, so the order of summation is fixed. product: fp32 [M, N] of this rank; inbox:
    fp32 [M, N] in the symmetric heap.
    """
    rows = dl.tile_axis(M, RING_M, per_rank=rows_per_rank, channels=channels, SHARDED=True)
    columns = dl.tile_axis(N, RING_N)
    product_rows = dl.tile_axis(M, BLOCK_M, per_rank=rows_per_rank, channels=channels)
    product_columns = dl.tile_axis(N, BLOCK_N)
    # What the GEMM produces the ring consumes, a whole row of channels at a time.
    produce = dl.block_channel(barriers_ptr, generation_ptr, product_rows, product_columns, rows, columns, FIRST=1)
    # Tiles that go from rank to rank.
    ring = dl.block_channel(barriers_ptr, generation_ptr, rows, columns, rows, columns, peers=peers_ptr)
    num_multipliers = tl.num_programs(0) - RING_BLOCKS
    if tl.program_id(0) < num_multipliers:
        num_columns = product_columns.num_tiles()
        for index in range(tl.program_id(0), product_rows.num_tiles() * num_columns, num_multipliers):
            row = produce.producer_row(index // num_columns)
            column = index % num_columns
            row_offsets = row * BLOCK_M + tl.arange(0, BLOCK_M)
            column_offsets = column * BLOCK_N + tl.arange(0, BLOCK_N)
            row_mask = row_offsets < M
            column_mask = column_offsets < N
            partial = multiply(a_ptr, b_ptr, row_offsets, column_offsets, row_mask, column_mask, K, K, N, BLOCK_K)
            tl.store(product_ptr + row_offsets.to(tl.int64)[:, None] * N + column_offsets[None, :], partial,
                     mask=row_mask[:, None] & column_mask[None, :])
            dl.producer_tile_notify(produce, (row, column))
    else:
        rank = ring.rank
        world_size = ring.world_size
        to_rank = (rank - 1 + world_size) % world_size
        inbox = dl.tile_tensor(inbox_ptr, N)
        num_columns = columns.num_tiles()
        first = tl.program_id(0) - num_multipliers
        for index in range(first, rows.tiles_per_rank() * num_columns, RING_BLOCKS):
            column = index % num_columns
            for stage in range(0, world_size):
                shard = (rank + stage + 1) % world_size
                row = shard * rows.tiles_per_rank() + index // num_columns
                dl.consumer_tile_wait(produce, (row, column))
                low, high = rows.range(row)
                row_offsets = low + tl.arange(0, RING_M)
                column_offsets = column * RING_N + tl.arange(0, RING_N)
                mask = (row_offsets < high)[:, None] & (column_offsets < N)[None, :]
                places = row_offsets.to(tl.int64)[:, None] * N + column_offsets[None, :]
                data = tl.load(product_ptr + places, mask=mask, other=0.0)
                if stage > 0:
                    dl.peer_tile_wait(ring, (row, column), rank)
                    data += tl.load(inbox_ptr + places, mask=mask, other=0.0)
                if stage == world_size - 1:
                    own = places - tl.cast(rank, tl.int64) * rows_per_rank * N
                    tl.store(out_ptr + own, data.to(out_ptr.dtype.element_ty), mask=mask)
                else:
                    dl.tile_push_data(ring, inbox, (row, column), data, rank=to_rank)
                    dl.peer_tile_notify(ring, (row, column), to_rank)


@triton.jit
def all_gather_moe(shard_ptr, tokens_ptr, weights_ptr, sorted_ids_ptr, expert_ptr, low_ptr, high_ptr, rank_ptr,
                   channel_low_ptr, channel_high_ptr, order_ptr, out_ptr, barriers_ptr, generation_ptr, M, H, N, tiles,
                   rows_per_rank, channels, TOPK: tl.constexpr, GATHER_BLOCKS: tl.constexpr, GATHER_M: tl.constexpr,
                   GATHER_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """out[id] = tokens[id // TOPK] @ weights[expert of id] for every pair id of a token and one of its experts (figure 5).

    shard: [rows_per_rank, H] of each rank in the symmetric heap. The first GATHER_BLOCKS blocks pull the shards into tokens [M, H];
    the others multiply. Tile t of the product takes the pairs sorted_ids[low[t], high[t]), all of expert[t]; its tokens come from
    the channels [channel_low[t], channel_high[t]): tables made by routing.
    """
    rows = dl.tile_axis(M, GATHER_M, per_rank=rows_per_rank, channels=channels, SHARDED=True)
    depths = dl.tile_axis(H, GATHER_N)
    routed = dl.table_axis(tiles, low_ptr, high_ptr, rank_ptr, channel_low_ptr, channel_high_ptr, order_ptr)
    channel = dl.block_channel(barriers_ptr, generation_ptr, rows, depths, routed, depths)
    if tl.program_id(0) < GATHER_BLOCKS:
        shards = dl.tile_tensor(shard_ptr, H, SHARDED=True)
        num_columns = depths.num_tiles()
        for index in range(tl.program_id(0), rows.num_tiles() * num_columns, GATHER_BLOCKS):
            row = channel.producer_row(index // num_columns)
            column = index % num_columns
            data = dl.tile_pull_data(channel, shards, (row, column))
            low, high = rows.range(row)
            row_offsets = low + tl.arange(0, GATHER_M)
            column_offsets = column * GATHER_N + tl.arange(0, GATHER_N)
            tl.store(tokens_ptr + row_offsets.to(tl.int64)[:, None] * H + column_offsets[None, :], data,
                     mask=(row_offsets < high)[:, None] & (column_offsets < H)[None, :])
            dl.producer_tile_notify(channel, (row, column))
    else:
        num_columns = tl.cdiv(N, BLOCK_N)
        stride = tl.num_programs(0) - GATHER_BLOCKS
        for index in range(tl.program_id(0) - GATHER_BLOCKS, tiles * num_columns, stride):
            tile = channel.consumer_row(index // num_columns)
            low, high = routed.range(tile)
            places = low + tl.arange(0, BLOCK_M)
            pair_mask = places < high
            pairs = tl.load(sorted_ids_ptr + places, mask=pair_mask, other=0)
            columns = index % num_columns * BLOCK_N + tl.arange(0, BLOCK_N)
            expert = tl.load(expert_ptr + tile)
            dl.consumer_tile_wait(channel, tile)
            product = multiply(tokens_ptr, weights_ptr + tl.cast(expert, tl.int64) * H * N, pairs // TOPK, columns,
                               pair_mask, columns < N, H, H, N, BLOCK_K)
            tl.store(out_ptr + pairs.to(tl.int64)[:, None] * N + columns[None, :],
                     product.to(out_ptr.dtype.element_ty), mask=pair_mask[:, None] & (columns < N)[None, :])


@triton.jit
def all_gather_attention(q_ptr, k_ptr, v_ptr, out_ptr, barriers_ptr, generation_ptr, queries, keys, keys_per_rank, scale,
                         HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = softmax(Q K^T * scale) V of this rank's queries and everybody's keys (figure 6).

    q, out: [heads, queries, HEAD_DIM] of this rank. k, v: [heads, keys, HEAD_DIM], of which the copy engine brings the other
    ranks' parts while this kernel runs; the host notifies a channel twice (K and V) when a rank's keys are there. Grid: (tiles of queries,
    heads). Keys are visited from the own part on.
    """
    # One channel per rank: two notifications each, which the producer's two "columns" stand for.
    parts = dl.tile_axis(keys, BLOCK_N, per_rank=keys_per_rank)
    arrivals = dl.tile_axis(keys, 1 << 30, per_rank=keys_per_rank, SHARDED=True)
    tensors = dl.tile_axis(2, 1)
    channel = dl.block_channel(barriers_ptr, generation_ptr, arrivals, tensors, parts, tensors)
    head = tl.cast(tl.program_id(1), tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depths = tl.arange(0, HEAD_DIM)
    row_mask = (rows < queries)[:, None]
    q = tl.load(q_ptr + head * queries * HEAD_DIM + rows[:, None] * HEAD_DIM + depths[None, :], mask=row_mask, other=0.0)
    largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for index in range(0, parts.num_tiles()):
        tile = channel.consumer_row(index)
        dl.consumer_tile_wait(channel, tile)
        low, high = parts.range(tile)
        key_rows = low + tl.arange(0, BLOCK_N)
        key_mask = key_rows < high
        places = head * keys * HEAD_DIM + key_rows[:, None] * HEAD_DIM + depths[None, :]
        k = tl.load(k_ptr + places, mask=key_mask[:, None], other=0.0)
        v = tl.load(v_ptr + places, mask=key_mask[:, None], other=0.0)
        scores = tl.where(key_mask[None, :], tl.dot(q, k.T) * (scale * 1.4426950408889634), float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new_largest[:, None])
        rescale = tl.exp2(largest - new_largest)
        total = total * rescale + tl.sum(powers, axis=1)
        accumulator = accumulator * rescale[:, None]
        accumulator = tl.dot(powers.to(v.dtype), v, accumulator)
        largest = new_largest
    tl.store(out_ptr + head * queries * HEAD_DIM + rows[:, None] * HEAD_DIM + depths[None, :],
             (accumulator / total[:, None]).to(out_ptr.dtype.element_ty), mask=row_mask)


@triton.jit
def begin_call(generation_ptr, entered_ptr, words_ptr, gates_ptr, num_words):
    dl.block_channel_begin(generation_ptr, entered_ptr, words_ptr, gates_ptr, num_words)
