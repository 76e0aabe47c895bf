"""Which token goes to which expert, and where its row lies (host side: ditron/ops/moe/Routing).

A *slot* is one choice of one token: the j-th expert of token t is slot t * TOP_K + j. *Rows* are the slots that have an expert, sorted by
expert, those of one expert in the order of their slots; row offsets[e] is the first of expert e, offsets[experts] is their number.
A slot whose expert is not in [0, experts) has no row: a token that is not there, or whose expert is elsewhere.
The order of the slots begins at slot first_slot and goes round: a rank whose tokens arrive one rank after the other from its own on
gets the rows of an expert in the order of their arrival.

Everything is in two launches, and the same in every run: `count_slots` counts each chunk of slots by expert, `place_slots` finds
from the counts of all chunks where each slot of its own goes. `tile_rows` cuts the rows of each expert into tiles of a product, `tile_slabs` those
of experts that have room for as many rows each.
"""
import triton
import triton.language as tl


@triton.jit
def router_scores(logits, SIGMOID: tl.constexpr):
    """Of each row of logits the softmax, or of each logit its sigmoid; -inf is where there is no expert."""
    if SIGMOID:
        scores = tl.sigmoid(logits)
    else:
        powers = tl.exp(logits - tl.max(logits, axis=1)[:, None])
        scores = powers / tl.sum(powers, axis=1)[:, None]
    return scores


@triton.jit
def choose_experts(logits_ptr, bias_ptr, ids_ptr, weights_ptr, tokens, experts, stride, scale, TOP_K: tl.constexpr, SLOTS: tl.constexpr,
                   EXPERTS: tl.constexpr, BLOCK: tl.constexpr, SIGMOID: tl.constexpr, NORMALIZED: tl.constexpr):
    """The TOP_K experts of each token with the highest scores, best first, the lower number first among equals. Scores are the softmax of
    the logits, or their sigmoid; the bias [experts] counts for the choice only. Weights are the scores of the chosen ones, times
    `scale`; NORMALIZED: divided by their sum first. SLOTS and EXPERTS are powers of two, no less than TOP_K and experts."""
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = tl.arange(0, EXPERTS)
    is_token = token < tokens
    is_expert = (expert < experts)[None, :]
    logits = tl.load(logits_ptr + token[:, None].to(tl.int64) * stride + expert[None, :], mask=is_token[:, None] & is_expert,
                     other=0.0).to(tl.float32)
    logits = tl.where(is_expert, logits, float("-inf"))
    scores = router_scores(logits, SIGMOID)
    left = scores
    if bias_ptr is not None:
        left += tl.load(bias_ptr + expert, mask=expert < experts, other=0.0)[None, :]
    left = tl.where(is_expert, left, float("-inf"))
    slot = tl.arange(0, SLOTS)
    ids = tl.zeros((BLOCK, SLOTS), tl.int32)
    weights = tl.zeros((BLOCK, SLOTS), tl.float32)
    for j in tl.static_range(TOP_K):
        best = tl.argmax(left, axis=1, tie_break_left=True)
        is_best = expert[None, :] == best[:, None]
        weight = tl.sum(tl.where(is_best, scores, 0.0), axis=1)
        ids = tl.where(slot[None, :] == j, best[:, None], ids)
        weights = tl.where(slot[None, :] == j, weight[:, None], weights)
        left = tl.where(is_best, float("-inf"), left)
    if NORMALIZED:
        weights = weights / tl.sum(weights, axis=1)[:, None]
    place = token[:, None].to(tl.int64) * TOP_K + slot[None, :]
    is_slot = is_token[:, None] & (slot < TOP_K)[None, :]
    tl.store(ids_ptr + place, ids, mask=is_slot)
    tl.store(weights_ptr + place, weights * scale, mask=is_slot)


@triton.jit
def slots_in_order(first, slots, first_slot, PART: tl.constexpr):
    """Numbers first to first + PART in the order of the slots -> the slots, and which of them there are."""
    number = first + tl.arange(0, PART)
    before_end = slots - first_slot
    return tl.where(number < before_end, number + first_slot, number - before_end), number < slots


@triton.jit
def is_of_expert(ids_ptr, slot, is_slot, experts, EXPERTS: tl.constexpr):
    """[PART, EXPERTS]: 1 where the slot has expert e, else 0."""
    ids = tl.load(ids_ptr + slot, mask=is_slot, other=-1)
    expert = tl.arange(0, EXPERTS)
    return ((ids[:, None] == expert[None, :]) & (expert < experts)[None, :]).to(tl.int32)


@triton.jit(do_not_specialize=["first_slot"])
def count_slots(ids_ptr, counts_ptr, slots, experts, first_slot, CHUNK: tl.constexpr, PART: tl.constexpr, EXPERTS: tl.constexpr):
    """counts[c, e]: the slots of chunk c, CHUNK slots, that have expert e. A program for each chunk; EXPERTS as above."""
    chunk = tl.program_id(0)
    counts = tl.zeros((EXPERTS,), tl.int32)
    for part in range(0, CHUNK, PART):
        slot, is_slot = slots_in_order(chunk * CHUNK + part, slots, first_slot, PART)
        counts += tl.sum(is_of_expert(ids_ptr, slot, is_slot, experts, EXPERTS), axis=0)
    expert = tl.arange(0, EXPERTS)
    tl.store(counts_ptr + chunk * experts + expert, counts, mask=expert < experts)


@triton.jit(do_not_specialize=["first_slot"])
def place_slots(ids_ptr, counts_ptr, offsets_ptr, slot_of_row_ptr, row_of_slot_ptr, slots, experts, first_slot, CHUNK: tl.constexpr,
                PART: tl.constexpr, EXPERTS: tl.constexpr, COUNTS: tl.constexpr):
    """offsets [experts + 1]; slot_of_row [rows]; row_of_slot [slots], -1 for slots that have none. A program for each chunk; the counts of
    COUNTS chunks are read at once."""
    chunk = tl.program_id(0)
    expert = tl.arange(0, EXPERTS)
    earlier_counts = tl.zeros((COUNTS, EXPERTS), tl.int32)
    all_counts = tl.zeros((COUNTS, EXPERTS), tl.int32)
    for first in range(0, tl.num_programs(0), COUNTS):
        other = first + tl.arange(0, COUNTS)[:, None]
        counts = tl.load(counts_ptr + other * experts + expert[None, :], mask=(other < tl.num_programs(0)) & (expert < experts)[None, :], other=0)
        all_counts += counts
        earlier_counts += tl.where(other < chunk, counts, 0)
    totals = tl.sum(all_counts, axis=0)
    before = tl.sum(earlier_counts, axis=0)
    ends = tl.cumsum(totals, axis=0)
    if chunk == 0:
        tl.store(offsets_ptr + expert + 1, ends, mask=expert < experts)
        tl.store(offsets_ptr, 0)
    next_row = ends - totals + before
    for part in range(0, CHUNK, PART):
        slot, is_slot = slots_in_order(chunk * CHUNK + part, slots, first_slot, PART)
        matches = is_of_expert(ids_ptr, slot, is_slot, experts, EXPERTS)
        # Of the slots of one expert each counts those before it.
        row = tl.sum(matches * (next_row[None, :] + tl.cumsum(matches, axis=0) - 1), axis=1)
        has_row = tl.sum(matches, axis=1) > 0
        tl.store(slot_of_row_ptr + row, slot, mask=has_row)
        tl.store(row_of_slot_ptr + slot, tl.where(has_row, row, -1), mask=is_slot)
        next_row += tl.sum(matches, axis=0)


@triton.jit
def write_tiles(tiles_ptr, begins, counts, most_tiles, EXPERTS: tl.constexpr, TILES: tl.constexpr, BLOCK_M: tl.constexpr):
    """tiles [1 + 2 * most_tiles]: their number, then of each its expert and its first row; an expert's are its counts rows from begins on.
    No tile has rows of two experts. A program writes TILES of them."""
    expert = tl.arange(0, EXPERTS)
    tiles = tl.cdiv(counts, BLOCK_M)
    ends = tl.cumsum(tiles, axis=0)
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    of_tile = tl.sum((ends[None, :] <= tile[:, None]).to(tl.int32), axis=1)
    is_expert = of_tile[:, None] == expert[None, :]
    row = tl.sum(tl.where(is_expert, begins[None, :] + (tile[:, None] - (ends - tiles)[None, :]) * BLOCK_M, 0), axis=1)
    is_tile = (of_tile < EXPERTS) & (tile < most_tiles)
    tl.store(tiles_ptr + 1 + 2 * tile, of_tile, mask=is_tile)
    tl.store(tiles_ptr + 2 + 2 * tile, row, mask=is_tile)
    if tl.program_id(0) == 0:
        tl.store(tiles_ptr, tl.sum(tiles, axis=0))


@triton.jit
def tile_rows(offsets_ptr, tiles_ptr, experts, most_tiles, EXPERTS: tl.constexpr, TILES: tl.constexpr, BLOCK_M: tl.constexpr):
    """The tiles of rows that follow each other."""
    expert = tl.arange(0, EXPERTS)
    begins = tl.load(offsets_ptr + expert, mask=expert < experts, other=0)
    counts = tl.load(offsets_ptr + expert + 1, mask=expert < experts, other=0) - begins
    write_tiles(tiles_ptr, begins, counts, most_tiles, EXPERTS, TILES, BLOCK_M)


@triton.jit
def tile_slabs(counts_ptr, offsets_ptr, tiles_ptr, experts, capacity, most_tiles, EXPERTS: tl.constexpr, TILES: tl.constexpr,
               BLOCK_M: tl.constexpr):
    """The tiles of slabs of `capacity` rows, one for each expert, of which the first counts[e] are there; a count beyond the slab counts as
    all of it. offsets[e + 1]: where the rows of expert e end."""
    expert = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + expert, mask=expert < experts, other=0)
    counts = tl.minimum(tl.maximum(counts, 0), capacity)
    begins = expert * capacity
    if tl.program_id(0) == 0:
        tl.store(offsets_ptr + expert + 1, begins + counts, mask=expert < experts)
        tl.store(offsets_ptr, 0)
    write_tiles(tiles_ptr, begins, counts, most_tiles, EXPERTS, TILES, BLOCK_M)
