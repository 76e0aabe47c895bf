"""What the kernels of attention share: which keys a query sees, what becomes of a score, and online softmax. All in powers of two: scores are
multiplied by log2(e) beforehand.

Options are compile-time constants or None, so that a kernel without them has nothing of them in it:
    CAUSAL       query i, whose place among the keys is i + keys - queries, sees no key behind its place
    window       nor one that is more than so many keys in front of it
    soft_cap     a score s becomes soft_cap * tanh(s / soft_cap); here and in score_scale with the factor log2(e)
    slopes_ptr   float32 [heads]: a score loses the head's slope for every key between a key and the query's place (ALiBi)
    sinks_ptr    float32 [heads]: a score that each row has besides those of its keys, and that has no value
"""
import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def sequence(offsets_ptr, batch, rows):
    """Where the rows of a batch begin and how many there are, packed one batch behind the other or [batch, rows]."""
    begin = 0
    if offsets_ptr is not None:
        begin = tl.load(offsets_ptr + batch)
        rows = tl.load(offsets_ptr + batch + 1) - begin
    return begin, rows


@triton.jit
def key_range(first_query, queries, keys, window, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Keys from `begin` to `end` are seen by some of the tile's queries, those of tiles from `partial` to `unmasked` by all of them."""
    shift = keys - queries
    begin = 0
    partial = 0
    unmasked = (keys // BLOCK_N) * BLOCK_N
    end = keys
    if CAUSAL:
        end = max(min(keys, first_query + BLOCK_M + shift), 0)
        unmasked = min(unmasked, max(first_query + 1 + shift, 0) // BLOCK_N * BLOCK_N)
    if window is not None:
        begin = max(first_query + shift - window, 0) // BLOCK_N * BLOCK_N
        partial = max(first_query + BLOCK_M - 1 + shift - window, 0)
    return begin, partial, unmasked, end


@triton.jit
def query_range(first_key, queries, keys, window, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Queries from `begin` to `end` see some of the tile's keys, those of tiles from `unmasked` to `partial` all of them."""
    shift = keys - queries
    begin = 0
    unmasked = 0
    partial = queries
    end = queries
    if CAUSAL:
        begin = max(first_key - shift, 0) // BLOCK_M * BLOCK_M
        unmasked = first_key + BLOCK_N - 1 - shift
    if window is not None:
        end = max(min(queries, first_key + BLOCK_N + window - shift), 0)
        partial = first_key + window - shift + 1 - BLOCK_M
    return begin, unmasked, partial, end


@triton.jit
def is_seen(place, key, left, window, CAUSAL: tl.constexpr):
    """place: of queries among the keys, key: of keys; both counted from the tile's first key, behind which there are `left`."""
    if CAUSAL:  # the last query's place is the last key
        seen = key <= place
    else:
        seen = key < left
    if window is not None:
        seen = seen & (key >= place - window)
    return seen


@triton.jit
def changed_scores(scores, score_scale, place, key, slope, soft_cap):
    """Scores of products with a cap or a slope."""
    scores = scores * score_scale
    if soft_cap is not None:
        # soft_cap * tanh(scores / soft_cap)
        scores = soft_cap - 2.0 * soft_cap / (1.0 + tl.exp2(scores * (2.0 * LOG2E / soft_cap)))
    if slope is not None:
        scores -= slope * tl.abs(place - key).to(tl.float32)
    return scores


@triton.jit
def slope_of_change(scores, score_scale, soft_cap):
    """Derivative of changed_scores by the scaled product."""
    if soft_cap is None:
        return 1.0
    ratio = 1.0 - 2.0 / (1.0 + tl.exp2(scores * (score_scale * 2.0 * LOG2E / soft_cap)))
    return 1.0 - ratio * ratio


@triton.jit
def share_of_steps(items, PAIRED: tl.constexpr):
    """Items of a persistent program: `together` that follow each other, then those of the programs beside it; steps of this program. PAIRED: two
    follow each other, of which one has much to do and one has little."""
    programs = tl.num_programs(0)
    together = 1
    if PAIRED:
        together = tl.where(items > programs, 2, 1)
    groups = tl.cdiv(items, together)
    steps = tl.cdiv(groups - tl.program_id(0), programs) * together
    if (groups - 1) % programs == tl.program_id(0):
        steps -= groups * together - items
    return together, steps


@triton.jit
def item_of_step(step, together):
    return (step // together * tl.num_programs(0) + tl.program_id(0)) * together + step % together


@triton.jit
def tile_of_item(item, heads, tiles, PAIRED: tl.constexpr, LAST_FIRST: tl.constexpr):
    """Batch, head and tile of an item. PAIRED: first and last tiles come by turns, of which those at one end have much to do; LAST_FIRST: from the last one on."""
    tile = item % tiles
    if PAIRED:
        if LAST_FIRST:
            tile = tl.where(tile % 2 == 0, tiles - 1 - tile // 2, tile // 2)
        else:
            tile = tl.where(tile % 2 == 0, tile // 2, tiles - 1 - tile // 2)
    return item // tiles // heads, item // tiles % heads, tile


@triton.jit
def softmax_begin(sinks_ptr, head, POWER: tl.constexpr, BLOCK_M: tl.constexpr):
    """Largest score and sum of powers of no keys."""
    if sinks_ptr is not None:
        largest = tl.zeros((BLOCK_M,), tl.float32) + tl.load(sinks_ptr + head) * LOG2E
        total = tl.full((BLOCK_M,), 2.0 ** POWER, dtype=tl.float32)
    else:
        largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    return largest, total


@triton.jit
def softmax_turn(scores, factor, largest, total, POWER: tl.constexpr):
    """With more scores, times the positive factor: the largest one, the sum of powers, the factor for what was summed before, and the powers
    2 ** (score - largest + POWER)."""
    new_largest = tl.maximum(largest, tl.max(scores, axis=1) * factor)
    # A row of which every key so far is masked has no maximum: any finite number does.
    finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    rescale = tl.exp2(largest - finite)
    if POWER > 0:
        finite -= POWER
    powers = tl.exp2(scores * factor - finite[:, None])
    return new_largest, total * rescale + tl.sum(powers, axis=1), rescale, powers


@triton.jit
def log_sum_exp(largest, total, POWER: tl.constexpr):
    """Natural logarithm of the sum of exp(score), of what the turns left; -inf of a row that sees no key."""
    return (largest + tl.log2(total) - POWER) * LN2


@triton.jit
def power_of(dtype: tl.constexpr):
    """The power of two with which powers are multiplied: 8 bits have no room for small ones, and for 2 ** 8."""
    return 8.0 if dtype.primitive_bitwidth == 8 else 0.0
