"""The ragged last wave of a persistent product, split along K: what kernels share whose tiles behind `whole_tiles` are computed in parts. No
kernels of its own.

Items are numbered: the whole tiles, then the first parts of all the others, then their second ones, and so on. Blocks that run at the same time have
the same place along K, as in a whole wave, and share what they read in the L2 cache. (Stream-K, arXiv 2301.03598, gives each block an equal run
of steps, so that all are somewhere else: measured, docs/bench.md.) Tiles are counted by clusters.
"""
import triton
import triton.language as tl


@triton.jit
def in_register_order(tile, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The elements of an accumulator in a row, so that neighbours are what a thread of a Hopper's warpgroup holds, then what its lanes
    hold: stores and loads of 16 bytes a thread without a detour through shared memory, which is full of operands."""
    tile = tl.reshape(tile, (BLOCK_M // 16, 2, 8, BLOCK_N // 8, 4, 2))
    return tl.reshape(tl.permute(tile, (3, 0, 2, 4, 1, 5)), (BLOCK_M * BLOCK_N,))


@triton.jit
def from_register_order(row, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.reshape(row, (BLOCK_N // 8, BLOCK_M // 16, 8, 4, 2, 2))
    return tl.reshape(tl.permute(row, (1, 4, 2, 0, 3, 5)), (BLOCK_M, BLOCK_N))


@triton.jit
def item_of_split_tail(item, whole_tiles, split_tiles, parts, steps, sums_ptr):
    """(tile, first step along K, end of the steps, piece, split tile) of an item. `piece` numbers the parts of all split tiles and is negative
    for whole tiles; the split tile is counted from whole_tiles. `parts`: 2 to the number of steps. Where sums_ptr is None items are whole tiles."""
    tile = item
    piece = item - whole_tiles
    split_tile = 0
    first = 0
    end = steps
    if sums_ptr is not None and piece >= 0:
        split_tile = piece % split_tiles
        part = piece // split_tiles
        tile = whole_tiles + split_tile
        first = part * steps // parts
        end = (part + 1) * steps // parts
    tl.assume(first < end)
    return tile, first, end, piece, split_tile


@triton.jit
def complete_sums(accumulator, piece, split_tile, split_tiles, parts, sums_ptr, counter_ptr, CLUSTER: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr):
    """(sums, whether they are those of the whole tile) of an item_of_split_tail that has been multiplied.

    Sums of parts go to sums_ptr, fp32 (of int8 operands int32) [parts, split tiles, CLUSTER, BLOCK_M * BLOCK_N]. Each block counts itself at counter_ptr, i64
    [split tiles, CLUSTER]; the last one to come puts it back to zero, for a call of perhaps other parts, and adds the parts of its tile in the order
    of K, whoever it is: results are the same bits each time, and no block waits for another. Where sums_ptr is None all are complete.
    """
    is_complete = True
    if sums_ptr is not None and piece >= 0:
        member = tl.program_id(0) % CLUSTER
        places = sums_ptr + tl.cast(member, tl.int64) * (BLOCK_M * BLOCK_N) + tl.arange(0, BLOCK_M * BLOCK_N)
        tl.store(places + tl.cast(piece, tl.int64) * (CLUSTER * BLOCK_M * BLOCK_N), in_register_order(accumulator, BLOCK_M, BLOCK_N))
        counter = counter_ptr + split_tile * CLUSTER + member
        come = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") + 1
        is_complete = come == parts
        if is_complete:
            tl.store(counter, 0)
            sum = tl.zeros((BLOCK_M * BLOCK_N,), dtype=accumulator.dtype)
            for other in tl.range(split_tile, split_tiles * parts, split_tiles, loop_unroll_factor=1):
                sum += tl.load(places + tl.cast(other, tl.int64) * (CLUSTER * BLOCK_M * BLOCK_N))
            accumulator = from_register_order(sum, BLOCK_M, BLOCK_N)
    return accumulator, is_complete
