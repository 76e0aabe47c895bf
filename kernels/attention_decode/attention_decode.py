"""Attention of few queries over many keys, as a decoder has it for each token (host side: ditron/ops/attention_decode).

out[s, h, i] = softmax(Q[s, h, i] K[s]^T * score_scale / log2(e)) V[s] over the first lengths[s, i] keys of sequence s, with a window over the last
window + 1 of these; Q [batch, heads, queries, HEAD_DIM], out [batch, heads, queries, VALUE_DIM], contiguous, lengths [batch, queries] on the device. A query
that sees no key gives zeros. `group` query heads share a head of K and V, and are, with all queries, the rows of one tile: what is read of K and V is read once.

**Heads of any size.** A head is the largest power of two that is in it, and a rest: 576 = 512 + 64, 192 = 128 + 64, 96 = 64 + 32. Rests of K are a tile of
their own, those of V are masked. VALUES_IN_KEYS (multi-head latent attention, whose keys are a latent and a rotary part): V is what K has without the rest,
and read with it.

**Keys lie in pages.** Key k of sequence s is row k % PAGE_SIZE of page block_table[s, k // PAGE_SIZE]; PAGE_SIZE 0: one page a sequence, its own.
Strides say where a page, a row and a head begin, in elements, of K, and of V unless it lies alike (value_page None).

**How the work is cut.** The time is that of reading K and V, so all programs read as much, whatever the lengths are. An item is a head of K and V of
a sequence; tiles of BLOCK_N keys of all items are numbered through, and each program has as many that follow
each other, the first T % P of P programs one more. It goes through the items that these belong to. (Where an item has several tiles of rows, P counts groups
of so many programs, which go over the same keys beside each other, a tile of rows each: what one reads the others find in the cache.) With T = 20, P = 2 and items of 8, 4 and 8 tiles:

    program 0: item 0, tiles 0-1 of item 1             program 1: tiles 2-3 of item 1, item 2

A program that goes on with another item waits for memory once more before it reads: for Q, and until the first tiles are there; about as long as it reads a
tile. So without EVEN, where P is enough for as many programs for each item, n, items are cut into n shares, or as few as are no larger, one item a
program, unless some program reads more than one tile more by that. With P = 6 and the same items n is 2, shares have 4 and 2 tiles; evenly cut they had 3 or 4, and program 2 had two items:

    programs 0, 1: item 0             programs 2, 3: item 1             programs 4, 5: item 2

What is not a whole item is a *part*, and of those a program has two at most: one that ends an item that another began, and one that begins an item. Parts
go to memory with their logarithms of sums; the last program of an item to arrive combines its parts in their order, or where they are many, the last of each
group of programs those of the group, and the last of these what the groups give. So results depend on lengths and P,
never on who comes first.

**Over ranks** (`attention_decode_over_ranks`) each rank has some keys of every sequence, perhaps none, and all have Q. What a rank's keys give goes to all ranks
by packets (kernels/collectives/packets.py), item by item, and each combines what the ranks give in ascending order, so that all have the same bits.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
from triton_dist.language.extra.language_extra import __syncthreads, ld, ld_vector, num_threads, st, st_vector, tid

from ..attention.scores import LN2, LOG2E, changed_scores, softmax_begin, softmax_turn
from ..collectives.packets import packet_values, receive_packets, send_packet


@triton.jit
def first_part(HEAD_DIM: tl.constexpr):
    """The largest power of two that is not above it."""
    if triton.next_power_of_2(HEAD_DIM) == HEAD_DIM:
        return HEAD_DIM
    return triton.next_power_of_2(HEAD_DIM) // 2


@triton.jit
def tiles_between(begin, end, BLOCK_N: tl.constexpr):
    """The first tile of the keys that an item sees, and how many there are. An item has a tile even if it has no key: somebody must write its zeros."""
    first = begin // BLOCK_N
    return first, tl.maximum(tl.cdiv(end, BLOCK_N) - first, 1)


@triton.jit
def first_seen(length, window):
    """The first key that a query with so many keys sees."""
    if window is None:
        return length * 0
    return tl.maximum(length - 1 - window, 0)


@triton.jit
def ends_of_sequences(lengths_ptr, batch, queries, window, items, BATCH: tl.constexpr, BLOCK_N: tl.constexpr):
    """For each sequence the number of tiles up to its end, and of each of its items, [BATCH], where each has `items` items; and what keys_of gives."""
    sequences = tl.arange(0, BATCH)
    end_of_all: tl.constexpr = 2**31 - 1
    begin = tl.full((BATCH,), end_of_all, tl.int32)
    end = tl.zeros((BATCH,), tl.int32)
    for query in range(queries):
        length = tl.load(lengths_ptr + sequences * queries + query, mask=sequences < batch, other=0)
        begin = tl.minimum(begin, tl.where(length > 0, first_seen(length, window), end_of_all))
        end = tl.maximum(end, length)
    begin = tl.minimum(begin, end)
    _, tiles = tiles_between(begin, end, BLOCK_N)
    tiles = tl.where(sequences < batch, tiles, 0)
    return tl.cumsum(tiles, 0) * items, tiles, begin, end


@triton.jit
def first_tile_of(program, total_tiles, programs):
    return program * (total_tiles // programs) + min(program, total_tiles % programs)


@triton.jit
def program_of(tile, total_tiles, programs):
    share = total_tiles // programs
    larger = total_tiles % programs
    return tl.where(tile < larger * (share + 1), tile // (share + 1), (tile - larger) // share)


@triton.jit
def shares_of_item(tiles, per_item):
    """How many of an item's per_item programs have tiles of it: as few as read no more for it, each, than all would, for fewer parts are combined sooner."""
    return tl.cdiv(tiles, max(tl.cdiv(tiles, per_item), 1))


@triton.jit
def share_of_item(program, per_item, ends, tiles, items, BATCH: tl.constexpr):
    """The tiles of a program where each item has per_item programs of its own: the first one, and the end. Programs beyond have none."""
    sequences = tl.arange(0, BATCH)
    item = program // per_item
    sequence = item // items
    own_tiles = tl.sum(tl.where(sequences == sequence, tiles, 0), axis=0)
    begin = tl.max(tl.where(sequences < sequence, ends, 0), axis=0) + item % items * own_tiles
    shares = max(shares_of_item(own_tiles, per_item), 1)
    share = program % per_item
    return begin + first_tile_of(min(share, shares), own_tiles, shares), begin + first_tile_of(min(share + 1, shares), own_tiles, shares)


@triton.jit
def keys_of(lengths_ptr, sequence, queries, window):
    """The first key that a query of the sequence sees, and the end of those that any sees."""
    begin = 2**31 - 1
    end = 0
    for query in range(queries):
        length = tl.load(lengths_ptr + sequence * queries + query)
        if length > 0:
            begin = min(begin, first_seen(length, window))
        end = max(end, length)
    return min(begin, end), end


@triton.jit
def is_there(keys, begin, end, window):
    """Keys that some query sees: others may be gone, and their pages with them."""
    if window is None:
        return keys < end
    return (keys >= begin) & (keys < end)


@triton.jit
def pages_of_tile(table_ptr, first, begin, end, window, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr):
    """The pages in which keys first, first + 1, ... lie, one where it is that of all; table_ptr: the pages of the sequence."""
    if PAGE_SIZE == 0:
        return 0
    elif PAGE_SIZE % BLOCK_N == 0:
        return tl.load(table_ptr + first // PAGE_SIZE, mask=first < end, other=0)
    else:
        keys = first + tl.arange(0, BLOCK_N)
        return tl.load(table_ptr + keys // PAGE_SIZE, mask=is_there(keys, begin, end, window), other=0)


@triton.jit
def rows_of_tile(pages, first, stride_page, stride_row, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where the rows of keys first, first + 1, ... begin."""
    rows = tl.arange(0, BLOCK_N)
    if PAGE_SIZE == 0:
        return (first + rows).to(tl.int64) * stride_row
    elif PAGE_SIZE % BLOCK_N == 0:
        return tl.cast(pages, tl.int64) * stride_page + (first % PAGE_SIZE + rows) * stride_row
    else:
        return pages.to(tl.int64) * stride_page + ((first + rows) % PAGE_SIZE) * stride_row


@triton.jit
def attend(q, q_rest, k_ptr, v_ptr, table_ptr, visible, first_key, longest, first_tile, end_tile, stride_page, stride_row, value_page, value_row, score_scale,
           window, soft_cap, HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES_IN_KEYS: tl.constexpr, PAGE_SIZE: tl.constexpr,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Rows of Q over tiles of keys: what they give, [BLOCK_M, VALUE_BLOCK], and the logarithms to base 2 of their sums, [BLOCK_M], -inf of rows that
    see none of the keys. visible: the end of the keys that each row sees."""
    FIRST: tl.constexpr = q.shape[1]
    VALUE_BLOCK: tl.constexpr = triton.next_power_of_2(VALUE_DIM)
    depths = tl.arange(0, FIRST)
    columns = tl.arange(0, VALUE_BLOCK)
    largest, total = softmax_begin(None, 0, 0.0, BLOCK_M)
    accumulator = tl.zeros((BLOCK_M, VALUE_BLOCK), dtype=tl.float32)
    following = pages_of_tile(table_ptr, first_tile * BLOCK_N, first_key, longest, window, PAGE_SIZE, BLOCK_N)
    for tile in range(first_tile, end_tile):
        # Numbers of pages are asked for one tile earlier than the addresses that come of them.
        pages = following
        following = pages_of_tile(table_ptr, (tile + 1) * BLOCK_N, first_key, longest, window, PAGE_SIZE, BLOCK_N)
        places = rows_of_tile(pages, tile * BLOCK_N, stride_page, stride_row, PAGE_SIZE, BLOCK_N)
        keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        is_key = is_there(keys, first_key, longest, window)[:, None]
        k = tl.load(k_ptr + (places[:, None] + depths[None, :]), mask=is_key, other=0.0)
        scores = tl.dot(q, k.T)
        if FIRST < HEAD_DIM:
            rest = tl.arange(0, HEAD_DIM - FIRST)
            k_rest = tl.load(k_ptr + (places[:, None] + (FIRST + rest)[None, :]), mask=is_key, other=0.0)
            scores = tl.dot(q_rest, k_rest.T, scores)
        if soft_cap is None:
            scores *= score_scale
        else:
            scores = changed_scores(scores, score_scale, 0, 0, None, soft_cap)
        seen = keys[None, :] < visible[:, None]
        if window is not None:
            seen = seen & (keys[None, :] >= first_seen(visible, window)[:, None])
        largest, total, rescale, powers = softmax_turn(tl.where(seen, scores, float("-inf")), 1.0, largest, total, 0.0)
        if VALUES_IN_KEYS:
            v = k
        else:
            if value_page is not None:
                places = rows_of_tile(pages, tile * BLOCK_N, value_page, value_row, PAGE_SIZE, BLOCK_N)
            is_value = is_key
            if VALUE_DIM < VALUE_BLOCK:
                is_value = is_key & (columns < VALUE_DIM)[None, :]
            v = tl.load(v_ptr + (places[:, None] + columns[None, :]), mask=is_value, other=0.0)
        accumulator = tl.dot(powers.to(k_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
    some = tl.where(total == 0.0, 1.0, total)
    return accumulator / some[:, None], largest + tl.log2(some)


@triton.jit
def places_of_parts(first_program, stride, begins_item, first, BLOCK_M: tl.constexpr, PARTS: tl.constexpr):
    """Where the rows of parts from the first-th on begin, of programs each `stride`-th from first_program on; begins_item: whose own part begins its item."""
    part = first + tl.arange(0, PARTS)
    return part, (2 * (first_program + part * stride) + ((part == 0) & begins_item).to(tl.int32)) * BLOCK_M


@triton.jit
def logs_of_parts(sums_ptr, first_program, stride, begins_item, first, parts, rows, BLOCK_M: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr):
    part, places = places_of_parts(first_program, stride, begins_item, first, BLOCK_M, PARTS)
    row = tl.arange(0, ROWS)
    return tl.load(sums_ptr + places[:, None] + row[None, :], mask=(part < parts)[:, None] & (row < rows)[None, :], other=float("-inf"))


@triton.jit
def values_of_parts(parts_ptr, first_program, stride, begins_item, first, parts, rows, VALUE_BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, ROWS: tl.constexpr,
                    PARTS: tl.constexpr):
    part, places = places_of_parts(first_program, stride, begins_item, first, BLOCK_M, PARTS)
    row = tl.arange(0, ROWS)
    is_row = (part < parts)[:, None] & (row < rows)[None, :]
    return tl.load(parts_ptr + (places[:, None] + row[None, :])[:, :, None] * VALUE_BLOCK + tl.arange(0, VALUE_BLOCK)[None, None, :],
                   mask=is_row[:, :, None], other=0.0)


@triton.jit
def combine_parts(parts_ptr, sums_ptr, first_program, stride, begins_item, parts, rows, VALUE_BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, ROWS: tl.constexpr,
                  PARTS: tl.constexpr):
    """Parts, PARTS of them at a time, each weighted by its sum: [ROWS, VALUE_BLOCK] and logarithms [ROWS]."""
    largest = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    value = tl.zeros((ROWS, VALUE_BLOCK), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        # Both are asked for before either is there: nothing else runs meanwhile, and a turn waits for memory once.
        values = values_of_parts(parts_ptr, first_program, stride, begins_item, first, parts, rows, VALUE_BLOCK, BLOCK_M, ROWS, PARTS)
        logs = logs_of_parts(sums_ptr, first_program, stride, begins_item, first, parts, rows, BLOCK_M, ROWS, PARTS)
        higher = tl.maximum(largest, tl.max(logs, axis=0))
        finite = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(logs - finite[None, :])
        rescale = tl.exp2(largest - finite)
        total = total * rescale + tl.sum(weights, axis=0)
        value = value * rescale[:, None] + tl.sum(values * weights[:, :, None], axis=0)
        largest = higher
    some = tl.where(total == 0.0, 1.0, total)
    return value / some[:, None], largest + tl.log2(some)


@triton.jit
def store_part(value, log, parts_ptr, sums_ptr, place, rows_left):
    """Rows of a part, which begins at row `place` of all."""
    rows = tl.arange(0, value.shape[0])
    tl.store(parts_ptr + (place + rows)[:, None] * value.shape[1] + tl.arange(0, value.shape[1])[None, :], value, mask=(rows < rows_left)[:, None])
    tl.store(sums_ptr + place + rows, log, mask=rows < rows_left)


@triton.jit
def is_last(own_counter_ptr, arrivals):
    """Counts a program that has stored its part; true for the last one, which finds all parts and leaves the counter at zero."""
    last = tl.atomic_add(own_counter_ptr, 1, sem="acq_rel", scope="gpu") == arrivals - 1
    if last:
        tl.store(own_counter_ptr, 0)
    return last


@triton.jit
def parts_of_group(parts, PARTS: tl.constexpr):
    """Of how many parts a group of programs combines its own first: about as many turns as there are groups; all where one program takes few turns."""
    turns = tl.cdiv(parts, PARTS)
    MOST_TURNS: tl.constexpr = 8
    return tl.where(turns > MOST_TURNS, tl.ceil(tl.sqrt(turns.to(tl.float32))).to(tl.int32) * PARTS, parts)


@triton.jit
def with_sinks(value, log, sinks_ptr, heads):
    """What rows give when each has besides its keys the score of its head's sink, without a value."""
    if sinks_ptr is None:
        return value, log
    sinks = tl.load(sinks_ptr + heads) * LOG2E
    largest = tl.maximum(log, sinks)
    own = tl.exp2(log - largest)
    total = own + tl.exp2(sinks - largest)
    return value * (own / total)[:, None], largest + tl.log2(total)


@triton.jit
def give(value, log, out_ptr, lse_ptr, sinks_ptr, row_place, rows_left, first_head, first_row, queries, VALUE_DIM: tl.constexpr):
    """Stores what an item gives, [rows, VALUE_BLOCK]; its rows are those from first_row on of the heads from first_head on."""
    rows = tl.arange(0, value.shape[0])
    columns = tl.arange(0, value.shape[1])
    is_row = rows < rows_left
    value, log = with_sinks(value, log, sinks_ptr, first_head + tl.where(is_row, (first_row + rows) // queries, 0))
    is_element = is_row[:, None]
    if VALUE_DIM < value.shape[1]:
        is_element = is_element & (columns < VALUE_DIM)[None, :]
    tl.store(out_ptr + row_place * VALUE_DIM + rows[:, None] * VALUE_DIM + columns[None, :], value.to(out_ptr.dtype.element_ty), mask=is_element)
    if lse_ptr is not None:
        tl.store(lse_ptr + row_place + rows, log * LN2, mask=is_row)


@triton.jit
def send_rows(out_ptr, lse_ptr, slots_ptr, first_row, rows, most_rows, call, rank, WORLD: tl.constexpr, VALUE_DIM: tl.constexpr):
    """Rows that this block has stored to all ranks: VALUE_DIM / 2 packets each, and one with the logarithm behind those of all rows."""
    PACKETS: tl.constexpr = VALUE_DIM // 2
    __syncthreads()
    own_ptr = slots_ptr + rank * most_rows * (PACKETS + 1) * 2
    for i in range(tid(0), rows * (PACKETS + 1), num_threads()):
        row = first_row + i // (PACKETS + 1)
        packet = i % (PACKETS + 1)
        place = row * PACKETS + packet
        values = dl.zeros_vector(2, tl.float32)
        if packet < PACKETS:
            values = ld_vector(out_ptr + place * 2, 2)
        else:
            place = most_rows * PACKETS + row
            log = ld(lse_ptr + row)
            values = dl.make_vector([log, log])
        for step in tl.static_range(WORLD):
            send_packet(dl.symm_at(own_ptr, (rank + step) % WORLD) + place * 2, values, call)


@triton.jit
def attend_and_give(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, sinks_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group,
                    queries, stride_page, stride_row, stride_head, stride_table, value_page, value_row, value_head, score_scale, window, soft_cap,
                    HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES_IN_KEYS: tl.constexpr, PAGE_SIZE: tl.constexpr, BATCH: tl.constexpr,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr, EVEN: tl.constexpr, slots_ptr, most_rows, call,
                    rank, WORLD: tl.constexpr):
    """A program's tiles. Items that it completes go to out_ptr and lse_ptr, and with slots_ptr from there to all ranks."""
    FIRST: tl.constexpr = first_part(HEAD_DIM)
    VALUE_BLOCK: tl.constexpr = triton.next_power_of_2(VALUE_DIM)
    tile_rows = group * queries
    row_tiles = tl.cdiv(tile_rows, BLOCK_M)
    program = tl.program_id(0) // row_tiles
    row_tile = tl.program_id(0) % row_tiles
    ends, tiles_of_items, begins_of_keys, ends_of_keys = ends_of_sequences(lengths_ptr, batch, queries, window, kv_heads, BATCH, BLOCK_N)
    total_tiles = tl.max(ends, axis=0)
    # Programs without a tile would be parts without a value.
    programs = min(tl.num_programs(0) // row_tiles, total_tiles)
    next_tile = first_tile_of(min(program, programs), total_tiles, programs)
    end = first_tile_of(min(program + 1, programs), total_tiles, programs)
    if not EVEN:
        per_item = tl.num_programs(0) // row_tiles // (batch * kv_heads)
        if per_item > 0 and tl.cdiv(tl.max(tiles_of_items, axis=0), max(per_item, 1)) <= tl.cdiv(total_tiles, programs) + 1:
            next_tile, end = share_of_item(program, per_item, ends, tiles_of_items, kv_heads, BATCH)
            # What parts are numbered by, in the registers that have it for equal shares: the loop needs all that there are.
            programs = per_item
            total_tiles = -1 - program
    first_row = row_tile * BLOCK_M
    rows_left = min(tile_rows - first_row, BLOCK_M)
    rows = tl.arange(0, BLOCK_M)
    while next_tile < end:
        sequence = tl.sum((ends <= next_tile).to(tl.int32), axis=0)
        sequence_begin = tl.max(tl.where(ends <= next_tile, ends, 0), axis=0)
        # What one warp holds is quicker to find than memory is to answer; wide heads leave no registers for it.
        if BATCH <= 32 and HEAD_DIM < 256:
            is_own = tl.arange(0, BATCH) == sequence
            first_key = tl.sum(tl.where(is_own, begins_of_keys, 0), axis=0)
            longest = tl.sum(tl.where(is_own, ends_of_keys, 0), axis=0)
        else:
            first_key, longest = keys_of(lengths_ptr, sequence, queries, window)
        window_tile, tiles = tiles_between(first_key, longest, BLOCK_N)
        head = (next_tile - sequence_begin) // tiles
        first_tile = (next_tile - sequence_begin) % tiles
        count = min(tiles - first_tile, end - next_tile)
        # Rows of the query heads of a head of K and V lie behind each other.
        row_place = (tl.cast(sequence, tl.int64) * kv_heads + head) * tile_rows + first_row
        is_row = rows < rows_left
        q_rows = q_ptr + row_place * HEAD_DIM + rows[:, None] * HEAD_DIM
        q = tl.load(q_rows + tl.arange(0, FIRST)[None, :], mask=is_row[:, None], other=0.0)
        q_rest = q
        if FIRST < HEAD_DIM:
            q_rest = tl.load(q_rows + FIRST + tl.arange(0, HEAD_DIM - FIRST)[None, :], mask=is_row[:, None], other=0.0)
        visible = tl.load(lengths_ptr + sequence * queries + (first_row + rows) % queries, mask=is_row, other=0)
        place = tl.cast(head, tl.int64) * stride_head
        value_place = place
        if value_page is not None:
            value_place = tl.cast(head, tl.int64) * value_head
        if PAGE_SIZE == 0:
            place += tl.cast(sequence, tl.int64) * stride_page
            value_place += tl.cast(sequence, tl.int64) * (stride_page if value_page is None else value_page)
        value, log = attend(q, q_rest, k_ptr + place, v_ptr + value_place, table_ptr + tl.cast(sequence, tl.int64) * stride_table, visible, first_key,
                            longest, window_tile + first_tile, window_tile + first_tile + count, stride_page, stride_row, value_page, value_row, score_scale,
                            window, soft_cap, HEAD_DIM, VALUE_DIM, VALUES_IN_KEYS, PAGE_SIZE, BLOCK_M, BLOCK_N)
        is_whole = count == tiles
        if is_whole:
            give(value, log, out_ptr, lse_ptr, sinks_ptr, row_place, rows_left, head * group, first_row, queries, VALUE_DIM)
        else:
            store_part(value, log, parts_ptr, sums_ptr, (2 * tl.program_id(0) + (first_tile == 0).to(tl.int32)) * BLOCK_M, rows_left)
            item_begin = next_tile - first_tile
            if total_tiles < 0:
                first_program = (-1 - total_tiles) // programs * programs
                parts = shares_of_item(tiles, programs)
            else:
                first_program = program_of(item_begin, total_tiles, programs)
                parts = program_of(item_begin + tiles - 1, total_tiles, programs) - first_program + 1
            first_of_item = first_program * row_tiles + row_tile
            stride = row_tiles
            is_whole = True
            together = parts_of_group(parts, PARTS)
            if together < parts:
                # The last of a group to arrive leaves what its parts give in the place of the group's first. Counters: that of a program of the item each.
                number = (program - first_program) // together
                first_of_group = first_of_item + number * together * row_tiles
                own_parts = min(parts - number * together, together)
                is_whole = is_last(counter_ptr + first_of_item + (number + 1) * row_tiles, own_parts)
                if is_whole:
                    begins_item = number == 0
                    group_place = (2 * first_of_group + begins_item.to(tl.int32)) * BLOCK_M
                    for piece in range(0, rows_left, ROWS):
                        some, some_log = combine_parts(parts_ptr + piece * VALUE_BLOCK, sums_ptr + piece, first_of_group, row_tiles, begins_item, own_parts,
                                                       rows_left - piece, VALUE_BLOCK, BLOCK_M, ROWS, PARTS)
                        __syncthreads()  # all have read what is overwritten
                        store_part(some, some_log, parts_ptr, sums_ptr, group_place + piece, rows_left - piece)
                stride = row_tiles * together
                parts = tl.cdiv(parts, together)
            if is_whole:
                is_whole = is_last(counter_ptr + first_of_item, parts)
            if is_whole:
                for piece in range(0, rows_left, ROWS):
                    whole, whole_log = combine_parts(parts_ptr + piece * VALUE_BLOCK, sums_ptr + piece, first_of_item, stride, True, parts, rows_left - piece,
                                                     VALUE_BLOCK, BLOCK_M, ROWS, PARTS)
                    give(whole, whole_log, out_ptr, lse_ptr, sinks_ptr, row_place + piece, rows_left - piece, head * group, first_row + piece, queries,
                         VALUE_DIM)
        if slots_ptr is not None:
            if is_whole:
                send_rows(out_ptr, lse_ptr, slots_ptr, row_place, rows_left, most_rows, call, rank, WORLD, VALUE_DIM)
        next_tile += count


@triton.jit
def attention_decode(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, sinks_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group,
                     queries, stride_page, stride_row, stride_head, stride_table, value_page, value_row, value_head, score_scale, window, soft_cap,
                     HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES_IN_KEYS: tl.constexpr, PAGE_SIZE: tl.constexpr, BATCH: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr, EVEN: tl.constexpr,
                     STARTS_EARLY: tl.constexpr):
    """The whole on one GPU. lse_ptr: natural logarithms of the sums, fp32 [batch, heads, queries], or None; sinks_ptr: fp32 [heads], or None. window
    and soft_cap, with the factor log2(e), may be None.

    parts_ptr, sums_ptr: fp32 [2 programs, BLOCK_M, VALUE_DIM up to a power of two] and [2 programs, BLOCK_M]; counter_ptr: i32 [programs], zeros before and
    after a call. BATCH: a power of two that is not below the sequences; ROWS, PARTS: rows and parts of an item that are combined at a time, powers of two.
    STARTS_EARLY: its blocks take their places while the kernel before it ends, on GPUs that can do that.
    """
    if STARTS_EARLY:
        gdc_launch_dependents()
        gdc_wait()
    attend_and_give(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, sinks_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group,
                    queries, stride_page, stride_row, stride_head, stride_table, value_page, value_row, value_head, score_scale, window, soft_cap,
                    HEAD_DIM, VALUE_DIM, VALUES_IN_KEYS, PAGE_SIZE, BATCH, BLOCK_M, BLOCK_N, ROWS, PARTS, EVEN, None, 0, 0, 0, 1)


@triton.jit
def receive_row(slots_ptr, row, packet, most_rows, call, sink, WORLD: tl.constexpr, VALUE_DIM: tl.constexpr):
    """Two elements of a row, combined over the ranks, and the logarithm of the sum of all; sink: a score without a value, or None."""
    PACKETS: tl.constexpr = VALUE_DIM // 2
    stride = most_rows * (PACKETS + 1) * 2
    words = receive_packets(slots_ptr + (row * PACKETS + packet) * 2, stride, call, WORLD)
    log_words = receive_packets(slots_ptr + (most_rows * PACKETS + row) * 2, stride, call, WORLD)
    logs = [packet_values(log_words[2 * source], log_words[2 * source + 1], tl.float32)[0] for source in range(WORLD)]
    largest = logs[0]
    for source in tl.static_range(1, WORLD):
        largest = tl.maximum(largest, logs[source])
    if sink is not None:
        largest = tl.maximum(largest, sink)
    finite = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros((), tl.float32)
    sums = dl.zeros_vector(2, tl.float32)
    for source in tl.static_range(WORLD):
        weight = tl.exp(logs[source] - finite)
        values = packet_values(words[2 * source], words[2 * source + 1], tl.float32)
        total += weight
        sums = dl.make_vector([sums[i] + weight * values[i] for i in range(2)])
    if sink is not None:
        total += tl.exp(sink - finite)
    some = tl.where(total == 0.0, 1.0, total)
    return dl.make_vector([sums[i] / some for i in range(2)]), largest + tl.log(some)


@triton.jit(do_not_specialize=["rank"])
def attention_decode_over_ranks(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, sinks_ptr, parts_ptr, sums_ptr, counter_ptr, own_ptr,
                                own_lse_ptr, slots_ptr, call_ptr, batch, kv_heads, group, queries, stride_page, stride_row, stride_head, stride_table,
                                value_page, value_row, value_head, score_scale, soft_cap, most_rows, finishers, rank, WORLD: tl.constexpr,
                                HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES_IN_KEYS: tl.constexpr, PAGE_SIZE: tl.constexpr,
                                BATCH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr,
                                EVEN: tl.constexpr):
    """The same of keys that are spread over the ranks: lengths_ptr says how many of this rank's each query sees.

    own_ptr, own_lse_ptr: what this rank's keys give, fp32, like out_ptr and lse_ptr. slots_ptr: symmetric, [2, WORLD, most_rows * (VALUE_DIM / 2 + 1)] packets;
    call_ptr: i64 [3]: calls that have ended, and how many programs of the present one have attended, and ended.

    The last `finishers` programs to have attended to their tiles wait for what the ranks send; when they do, at most as many others are still to come,
    and these wait for nobody: no more than `finishers` programs must find places at once. Two sets of slots, in turns: a rank that sends in call g + 2 has
    ended g + 1, for which it needed packets of g + 1 from all, who had ended g.
    """
    call = tl.load(call_ptr) + 1
    slots_ptr += (call % 2) * WORLD * most_rows * (VALUE_DIM // 2 + 1) * 2
    attend_and_give(q_ptr, k_ptr, v_ptr, own_ptr, own_lse_ptr, lengths_ptr, table_ptr, None, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group,
                    queries, stride_page, stride_row, stride_head, stride_table, value_page, value_row, value_head, score_scale, None, soft_cap,
                    HEAD_DIM, VALUE_DIM, VALUES_IN_KEYS, PAGE_SIZE, BATCH, BLOCK_M, BLOCK_N, ROWS, PARTS, EVEN, slots_ptr, most_rows, call, rank, WORLD)
    finisher = tl.atomic_add(call_ptr + 1, 1, sem="acq_rel", scope="gpu") - (tl.num_programs(0) - finishers)
    if finisher >= 0:
        PACKETS: tl.constexpr = VALUE_DIM // 2
        rows = tl.cast(batch, tl.int64) * kv_heads * group * queries
        for i in range(finisher * num_threads() + tid(0), rows * PACKETS, finishers * num_threads()):
            sink = None
            if sinks_ptr is not None:
                sink = ld(sinks_ptr + i // PACKETS // queries % (kv_heads * group))
            values, log = receive_row(slots_ptr, i // PACKETS, i % PACKETS, most_rows, call, sink, WORLD, VALUE_DIM)
            st_vector(out_ptr + i * 2, dl.make_vector([values[j].to(out_ptr.dtype.element_ty) for j in range(2)]))
            if lse_ptr is not None:
                if i % PACKETS == 0:
                    st(lse_ptr + i // PACKETS, log)
        __syncthreads()
        if tl.atomic_add(call_ptr + 2, 1, sem="acq_rel", scope="gpu") == finishers - 1:
            tl.store(call_ptr + 1, 0)
            tl.store(call_ptr + 2, 0)
            tl.store(call_ptr, call)
