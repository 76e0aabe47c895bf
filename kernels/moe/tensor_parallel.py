"""What AllGather+MoE, MoE+ReduceScatter and MoE+AllReduce do besides routing and grouped products (host side: ditron/ops/moe/AllGatherMoe,
ditron/ops/moe/MoeReduction).

Tokens are dealt out to the ranks, tokens_per_rank to each, and the tokens of a rank are cut into CHUNKS. Routing has sorted the rows of each
expert by their tokens, from those of first_rank on and round. So the rows of a tile are of a range of chunks, counted from first_rank's on:
its *span*. Where tokens arrive from other ranks first_rank is the own one, and few tiles need more than they must.
"""
import triton
import triton.language as tl
import triton_dist.language as dl

from ..one_launch.one_launch import raise_flags


@triton.jit(do_not_specialize=["rank", "own_tokens"])
def share_choices(ids_ptr, weights_ptr, all_ids_ptr, all_weights_ptr, shared_ptr, generation_ptr, tokens_per_rank, own_tokens, rank,
                  WORLD_SIZE: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """ids and weights [own_tokens, TOP_K] of every rank to every rank's [WORLD_SIZE, tokens_per_rank, TOP_K], all in the symmetric heap;
    tokens that a rank does not have get the id -1. shared_ptr: [programs, WORLD_SIZE] signals; all ranks have as many programs.
    A program waits only for those of its own number, and after it has stored its part.
    """
    program = tl.program_id(0)
    generation = tl.load(generation_ptr)
    slots = tokens_per_rank * TOP_K
    own_ids = all_ids_ptr + tl.cast(rank, tl.int64) * slots
    own_weights = all_weights_ptr + tl.cast(rank, tl.int64) * slots
    for first in range(program * BLOCK, slots, tl.num_programs(0) * BLOCK):
        slot = first + tl.arange(0, BLOCK)
        is_own = slot < own_tokens * TOP_K
        ids = tl.load(ids_ptr + slot, mask=is_own, other=-1)
        weights = tl.load(weights_ptr + slot, mask=is_own, other=0.0)
        for step in range(1, WORLD_SIZE + 1):
            peer = (rank + step) % WORLD_SIZE
            tl.store(dl.symm_at(own_ids, peer) + slot, ids, mask=slot < slots)
            tl.store(dl.symm_at(own_weights, peer) + slot, weights, mask=slot < slots)
    raise_flags(shared_ptr, program, generation, rank, WORLD_SIZE)
    dl.wait(shared_ptr + program * WORLD_SIZE, WORLD_SIZE, "sys", "acquire", waitValue=generation, compare="ge")


@triton.jit
def token_in_order(slot_of_row_ptr, row, is_row, first_token, tokens, TOP_K: tl.constexpr):
    """A row's token, counted from first_token on, round."""
    token = tl.load(slot_of_row_ptr + row, mask=is_row, other=0) // TOP_K
    return tl.where(token >= first_token, token - first_token, token + (tokens - first_token))


@triton.jit
def chunk_of(token, tokens_per_rank, tokens_per_chunk, CHUNKS: tl.constexpr):
    return token // tokens_per_rank * CHUNKS + token % tokens_per_rank // tokens_per_chunk


@triton.jit
def tile_spans(offsets_ptr, tiles_ptr, slot_of_row_ptr, tile, tiles, tokens_per_rank, tokens_per_chunk, first_rank,
               WORLD_SIZE: tl.constexpr, CHUNKS: tl.constexpr, TOP_K: tl.constexpr, BLOCK_M: tl.constexpr):
    """Expert and first row of tiles, and the first and the last chunk of their spans."""
    is_tile = tile < tiles
    expert = tl.load(tiles_ptr + 1 + 2 * tile, mask=is_tile, other=0)
    row = tl.load(tiles_ptr + 2 + 2 * tile, mask=is_tile, other=0)
    last = tl.minimum(row + BLOCK_M, tl.load(offsets_ptr + expert + 1, mask=is_tile, other=0)) - 1
    tokens = tokens_per_rank * WORLD_SIZE
    first_token = first_rank * tokens_per_rank
    begin = token_in_order(slot_of_row_ptr, row, is_tile, first_token, tokens, TOP_K)
    end = token_in_order(slot_of_row_ptr, last, is_tile, first_token, tokens, TOP_K)
    return (expert, row, chunk_of(begin, tokens_per_rank, tokens_per_chunk, CHUNKS), chunk_of(end, tokens_per_rank, tokens_per_chunk, CHUNKS))


@triton.jit
def turn_of(first_chunk, last_chunk, first_rank, rank, ARRIVAL: tl.constexpr, CHUNKS: tl.constexpr, WORLD_SIZE: tl.constexpr):
    """When it is a tile's turn, in [0, WORLD_SIZE). ARRIVAL: when its last tokens arrive, the own ones first, then those of the next rank.
    Else when its first tokens leave, those of the next rank first, the own ones last."""
    if ARRIVAL:
        first_turn = rank
    else:
        first_turn = rank + 1
    begin = (first_chunk // CHUNKS + first_rank + 2 * WORLD_SIZE - first_turn) % WORLD_SIZE
    end = (last_chunk // CHUNKS + first_rank + 2 * WORLD_SIZE - first_turn) % WORLD_SIZE
    # A span that goes round has tokens of the first turn and of the last.
    if ARRIVAL:
        return tl.where(end < begin, WORLD_SIZE - 1, end)
    else:
        return tl.where(end < begin, 0, begin)


@triton.jit(do_not_specialize=["first_rank", "rank"])
def order_tiles(offsets_ptr, tiles_ptr, slot_of_row_ptr, ordered_ptr, spans_ptr, segment_tiles_ptr, gate_ptr, tokens_per_rank,
                tokens_per_chunk, first_rank, rank, WORLD_SIZE: tl.constexpr, TURNS: tl.constexpr, CHUNKS: tl.constexpr, TOP_K: tl.constexpr,
                TILES: tl.constexpr, BLOCK_M: tl.constexpr, ARRIVAL: tl.constexpr):
    """The tiles of routing.tile_rows in the order of their turns, those of one turn as they were: ordered [1 + 2 * tiles] like them, and
    spans [2 * tiles]. TURNS: WORLD_SIZE or the next power of two. Programs of TILES tiles each.

    Where segment_tiles_ptr is not None, [WORLD_SIZE]: how many tiles have rows of each rank's tokens; the gates of ranks that have none
    are opened, since no tile will do it.
    """
    tiles = tl.load(tiles_ptr)
    own = tl.program_id(0) * TILES
    turns = tl.arange(0, TURNS)
    before = tl.zeros((TURNS,), tl.int32)
    totals = tl.zeros((TURNS,), tl.int32)
    users = tl.zeros((TURNS,), tl.int32)
    for first in range(0, tiles, TILES):
        tile = first + tl.arange(0, TILES)
        expert, row, first_chunk, last_chunk = tile_spans(offsets_ptr, tiles_ptr, slot_of_row_ptr, tile, tiles, tokens_per_rank,
                                                          tokens_per_chunk, first_rank, WORLD_SIZE, CHUNKS, TOP_K, BLOCK_M)
        turn = turn_of(first_chunk, last_chunk, first_rank, rank, ARRIVAL, CHUNKS, WORLD_SIZE)
        is_tile = (tile < tiles)[:, None]
        counts = tl.sum(((turn[:, None] == turns[None, :]) & is_tile).to(tl.int32), axis=0)
        totals += counts
        before += tl.where(first < own, counts, 0)
        is_user = ((first_chunk // CHUNKS)[:, None] <= turns[None, :]) & (turns[None, :] <= (last_chunk // CHUNKS)[:, None])
        users += tl.sum((is_user & is_tile).to(tl.int32), axis=0)
    next_place = tl.cumsum(totals, axis=0) - totals + before

    tile = own + tl.arange(0, TILES)
    is_tile = tile < tiles
    expert, row, first_chunk, last_chunk = tile_spans(offsets_ptr, tiles_ptr, slot_of_row_ptr, tile, tiles, tokens_per_rank,
                                                      tokens_per_chunk, first_rank, WORLD_SIZE, CHUNKS, TOP_K, BLOCK_M)
    turn = turn_of(first_chunk, last_chunk, first_rank, rank, ARRIVAL, CHUNKS, WORLD_SIZE)
    matches = ((turn[:, None] == turns[None, :]) & is_tile[:, None]).to(tl.int32)
    # Of the tiles of one turn each counts those before it.
    place = tl.sum(matches * (next_place[None, :] + tl.cumsum(matches, axis=0) - 1), axis=1)
    tl.store(ordered_ptr + 1 + 2 * place, expert, mask=is_tile)
    tl.store(ordered_ptr + 2 + 2 * place, row, mask=is_tile)
    tl.store(spans_ptr + 2 * place, first_chunk, mask=is_tile)
    tl.store(spans_ptr + 2 * place + 1, last_chunk, mask=is_tile)
    if own == 0:
        tl.store(ordered_ptr, tiles)
        if segment_tiles_ptr is not None:
            segment = (first_rank + turns) % WORLD_SIZE
            tl.store(segment_tiles_ptr + segment, users, mask=turns < WORLD_SIZE)
            tl.store(gate_ptr + segment, tl.full((TURNS,), 1, tl.int64), mask=(turns < WORLD_SIZE) & (users == 0))


@triton.jit(do_not_specialize=["rank"])
def add_ranks(slots_ptr, out_ptr, arrived_ptr, generation_ptr, tokens, columns, rank, WORLD_SIZE: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr):
    """out [tokens, columns] = the sum of slots [WORLD_SIZE, tokens, columns], of which each rank has filled its own, in fp32 and in ascending
    order. arrived_ptr: [WORLD_SIZE] signals; the own slot has been filled by an earlier kernel.

    Programs are fewer than there is room for: those of another operator, for which ranks wait that these programs wait for, find a place.
    """
    generation = tl.load(generation_ptr)
    for source in range(WORLD_SIZE):
        if source != rank:
            token = dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=generation, compare="ge")
            slots_ptr = dl.consume_token(slots_ptr, token)
    tiles_n = tl.cdiv(columns, BLOCK_N)
    tile_rows = tl.arange(0, BLOCK_M)
    tile_columns = tl.arange(0, BLOCK_N)
    slot_elements = tl.cast(tokens, tl.int64) * columns
    for tile in range(tl.program_id(0), tl.cdiv(tokens, BLOCK_M) * tiles_n, tl.num_programs(0)):
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        mask = (tile_rows[:, None] < tokens - row) & (tile_columns[None, :] < columns - column)
        start = tl.cast(row, tl.int64) * columns + column
        offsets = tile_rows[:, None] * columns + tile_columns[None, :]
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for source in tl.static_range(WORLD_SIZE):
            total += tl.load(slots_ptr + source * slot_elements + start + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + start + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)
