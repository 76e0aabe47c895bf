"""Attention of few queries over many keys, as a decoder has it for each token (host side: ditron/ops/attention_decode).

out[s, h, i] = softmax(Q[s, h, i] K[s]^T * score_scale / log2(e)) V[s] over the first lengths[s, i] keys of sequence s; Q, out [batch, heads,
queries, HEAD_DIM], contiguous, lengths [batch, queries] on the device. A query that sees no key gives zeros. `group` query heads share a
head of K and V, and are, with all queries, the rows of one tile: what is read of K and V is read once.

**Keys lie in pages.** Key k of sequence s is row k % PAGE_SIZE of page block_table[s, k // PAGE_SIZE]; PAGE_SIZE 0: one page a sequence, its own.
Strides say where a page, a row and a head begin, in elements, of K and V alike.

**How the work is cut.** The time is that of reading K and V, so all programs read as much, whatever the lengths are. An item is a head of K and V of
a sequence (or BLOCK_M rows of it, where there are more); tiles of BLOCK_N keys of all items are numbered through, and each program has as many that follow
each other, the first T % P of P programs one more. It goes through the items that these belong to. With T = 20, P = 3 and items of 8, 4 and 8 tiles:

    program 0: tiles 0-6 of item 0             program 1: tile 7 of item 0, item 1, tiles 0-1 of item 2        program 2: tiles 2-7 of item 2

What is not a whole item is a *part*, and of those a program has two at most: one that ends an item that another began, and one that begins an item. Parts
go to memory with their logarithms of sums; the last program of an item to arrive combines its parts in their order. So results depend on lengths and P,
never on who comes first.

**Over ranks** (`attention_decode_over_ranks`) each rank has some keys of every sequence, perhaps none, and all have Q. What a rank's keys give goes to all ranks
by packets (kernels/collectives/packets.py), item by item, and each combines what the ranks give in ascending order, so that all have the same bits.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, ld_vector, num_threads, st, st_vector, tid

from ..attention.scores import LN2, softmax_begin, softmax_turn
from ..collectives.packets import packet_values, receive_packets, send_packet


@triton.jit
def tiles_of(lengths, BLOCK_N: tl.constexpr):
    """An item has a tile even if it has no key: somebody must write its zeros."""
    return tl.maximum(tl.cdiv(lengths, BLOCK_N), 1)


@triton.jit
def ends_of_sequences(lengths_ptr, batch, queries, items, BATCH: tl.constexpr, BLOCK_N: tl.constexpr):
    """For each sequence the number of tiles up to its end, [BATCH], where each has `items` items."""
    sequences = tl.arange(0, BATCH)
    longest = tl.zeros((BATCH,), tl.int32)
    for query in range(queries):
        longest = tl.maximum(longest, tl.load(lengths_ptr + sequences * queries + query, mask=sequences < batch, other=0))
    tiles = tl.where(sequences < batch, tiles_of(longest, BLOCK_N), 0)
    return tl.cumsum(tiles, 0) * items


@triton.jit
def first_tile_of(program, total_tiles, programs):
    return program * (total_tiles // programs) + min(program, total_tiles % programs)


@triton.jit
def program_of(tile, total_tiles, programs):
    share = total_tiles // programs
    larger = total_tiles % programs
    return tl.where(tile < larger * (share + 1), tile // (share + 1), (tile - larger) // share)


@triton.jit
def longest_of(lengths_ptr, sequence, queries):
    longest = 0
    for query in range(queries):
        longest = max(longest, tl.load(lengths_ptr + sequence * queries + query))
    return longest


@triton.jit
def rows_of_tile(table_ptr, first, end, stride_page, stride_row, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where the rows of keys first, first + 1, ... are; table_ptr: the pages of the sequence."""
    rows = tl.arange(0, BLOCK_N)
    if PAGE_SIZE == 0:
        places = (first + rows).to(tl.int64) * stride_row
    elif PAGE_SIZE % BLOCK_N == 0:
        page = tl.load(table_ptr + first // PAGE_SIZE, mask=first < end, other=0)
        places = tl.cast(page, tl.int64) * stride_page + (first % PAGE_SIZE + rows) * stride_row
    else:
        keys = first + rows
        pages = tl.load(table_ptr + keys // PAGE_SIZE, mask=keys < end, other=0)
        places = pages.to(tl.int64) * stride_page + (keys % PAGE_SIZE) * stride_row
    return places


@triton.jit
def attend(q, k_ptr, v_ptr, table_ptr, visible, longest, first_tile, end_tile, stride_page, stride_row, score_scale, HEAD_DIM: tl.constexpr,
           PAGE_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Rows of Q over tiles of keys: what they give, [BLOCK_M, HEAD_DIM], and the logarithms to base 2 of their sums, [BLOCK_M], -inf of rows that
    see none of the keys. visible: keys that each row sees."""
    depths = tl.arange(0, HEAD_DIM)
    largest, total = softmax_begin(None, 0, 0.0, BLOCK_M)
    accumulator = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    following = rows_of_tile(table_ptr, first_tile * BLOCK_N, longest, stride_page, stride_row, PAGE_SIZE, BLOCK_N)
    for tile in range(first_tile, end_tile):
        # Numbers of pages are asked for one tile earlier than the addresses that come of them.
        places = following
        following = rows_of_tile(table_ptr, (tile + 1) * BLOCK_N, longest, stride_page, stride_row, PAGE_SIZE, BLOCK_N)
        keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        offsets = places[:, None] + depths[None, :]
        is_key = (keys < longest)[:, None]
        k = tl.load(k_ptr + offsets, mask=is_key, other=0.0)
        scores = tl.where(keys[None, :] < visible[:, None], tl.dot(q, k.T) * score_scale, float("-inf"))
        largest, total, rescale, powers = softmax_turn(scores, 1.0, largest, total, 0.0)
        v = tl.load(v_ptr + offsets, mask=is_key, other=0.0)
        accumulator = tl.dot(powers.to(v_ptr.dtype.element_ty), v, accumulator * rescale[:, None])
    some = tl.where(total == 0.0, 1.0, total)
    return accumulator / some[:, None], largest + tl.log2(some)


@triton.jit
def places_of_parts(first_program, first, BLOCK_M: tl.constexpr, PARTS: tl.constexpr):
    """Where the rows of the parts of an item from the first-th on begin."""
    part = first + tl.arange(0, PARTS)
    return part, (2 * (first_program + part) + (part == 0).to(tl.int32)) * BLOCK_M


@triton.jit
def logs_of_parts(sums_ptr, first_program, first, parts, rows, BLOCK_M: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr):
    part, places = places_of_parts(first_program, first, BLOCK_M, PARTS)
    row = tl.arange(0, ROWS)
    return tl.load(sums_ptr + places[:, None] + row[None, :], mask=(part < parts)[:, None] & (row < rows)[None, :], other=float("-inf"))


@triton.jit
def values_of_parts(parts_ptr, first_program, first, parts, rows, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, ROWS: tl.constexpr,
                    PARTS: tl.constexpr):
    part, places = places_of_parts(first_program, first, BLOCK_M, PARTS)
    row = tl.arange(0, ROWS)
    is_there = (part < parts)[:, None] & (row < rows)[None, :]
    return tl.load(parts_ptr + (places[:, None] + row[None, :])[:, :, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, None, :],
                   mask=is_there[:, :, None], other=0.0)


@triton.jit
def combine_parts(parts_ptr, sums_ptr, first_program, parts, rows, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, ROWS: tl.constexpr,
                  PARTS: tl.constexpr):
    """The parts of an item, PARTS of them at a time, each weighted by its sum: [ROWS, HEAD_DIM] and logarithms [ROWS]."""
    row = tl.arange(0, ROWS)
    values = values_of_parts(parts_ptr, first_program, 0, parts, rows, HEAD_DIM, BLOCK_M, ROWS, PARTS)
    largest = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    for first in range(0, parts, 4 * PARTS):
        logs = logs_of_parts(sums_ptr, first_program, first, parts, rows, BLOCK_M, ROWS, 4 * PARTS)
        largest = tl.maximum(largest, tl.max(logs, axis=0))
    finite = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    value = tl.zeros((ROWS, HEAD_DIM), dtype=tl.float32)
    for first in range(0, parts, PARTS):
        # While these are added the next ones are on their way.
        following = values_of_parts(parts_ptr, first_program, first + PARTS, parts, rows, HEAD_DIM, BLOCK_M, ROWS, PARTS)
        weights = tl.exp2(logs_of_parts(sums_ptr, first_program, first, parts, rows, BLOCK_M, ROWS, PARTS) - finite[None, :])
        total += tl.sum(weights, axis=0)
        value += tl.sum(values * weights[:, :, None], axis=0)
        values = following
    some = tl.where(total == 0.0, 1.0, total)
    return value / some[:, None], largest + tl.log2(some)


@triton.jit
def give(value, log, out_ptr, lse_ptr, row_place, rows_left, HEAD_DIM: tl.constexpr, ROWS: tl.constexpr):
    """Stores what an item gives, [ROWS, HEAD_DIM]."""
    rows = tl.arange(0, ROWS)
    places = row_place * HEAD_DIM + rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    tl.store(out_ptr + places, value.to(out_ptr.dtype.element_ty), mask=(rows < rows_left)[:, None])
    if lse_ptr is not None:
        tl.store(lse_ptr + row_place + rows, log * LN2, mask=rows < rows_left)


@triton.jit
def send_rows(out_ptr, lse_ptr, slots_ptr, first_row, rows, most_rows, call, rank, WORLD: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Rows that this block has stored to all ranks: HEAD_DIM / 2 packets each, and one with the logarithm behind those of all rows."""
    PACKETS: tl.constexpr = HEAD_DIM // 2
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
def attend_and_give(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group, queries,
                    stride_page, stride_row, stride_head, stride_table, score_scale, HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr,
                    BATCH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr, slots_ptr,
                    most_rows, call, rank, WORLD: tl.constexpr):
    """A program's tiles. Items that it completes go to out_ptr and lse_ptr, and with slots_ptr from there to all ranks."""
    program = tl.program_id(0)
    tile_rows = group * queries
    row_tiles = tl.cdiv(tile_rows, BLOCK_M)
    ends = ends_of_sequences(lengths_ptr, batch, queries, kv_heads * row_tiles, BATCH, BLOCK_N)
    total_tiles = tl.max(ends, axis=0)
    # Programs without a tile would be parts without a value.
    programs = min(tl.num_programs(0), total_tiles)
    next_tile = first_tile_of(min(program, programs), total_tiles, programs)
    end = first_tile_of(min(program + 1, programs), total_tiles, programs)
    rows = tl.arange(0, BLOCK_M)
    depths = tl.arange(0, HEAD_DIM)
    while next_tile < end:
        sequence = tl.sum((ends <= next_tile).to(tl.int32), axis=0)
        sequence_begin = tl.max(tl.where(ends <= next_tile, ends, 0), axis=0)
        longest = longest_of(lengths_ptr, sequence, queries)
        tiles = tiles_of(longest, BLOCK_N)
        item = (next_tile - sequence_begin) // tiles
        first_tile = (next_tile - sequence_begin) % tiles
        count = min(tiles - first_tile, end - next_tile)
        head = item // row_tiles
        first_row = item % row_tiles * BLOCK_M
        rows_left = min(tile_rows - first_row, BLOCK_M)
        # Rows of the query heads of a head of K and V lie behind each other.
        row_place = (tl.cast(sequence, tl.int64) * kv_heads + head) * tile_rows + first_row
        is_row = rows < rows_left
        q = tl.load(q_ptr + row_place * HEAD_DIM + rows[:, None] * HEAD_DIM + depths[None, :], mask=is_row[:, None], other=0.0)
        visible = tl.load(lengths_ptr + sequence * queries + (first_row + rows) % queries, mask=is_row, other=0)
        place = tl.cast(head, tl.int64) * stride_head
        if PAGE_SIZE == 0:
            place += tl.cast(sequence, tl.int64) * stride_page
        value, log = attend(q, k_ptr + place, v_ptr + place, table_ptr + tl.cast(sequence, tl.int64) * stride_table, visible, longest, first_tile,
                            first_tile + count, stride_page, stride_row, score_scale, HEAD_DIM, PAGE_SIZE, BLOCK_M, BLOCK_N)
        is_whole = count == tiles
        if is_whole:
            give(value, log, out_ptr, lse_ptr, row_place, rows_left, HEAD_DIM, BLOCK_M)
        else:
            part = (2 * program + (first_tile == 0).to(tl.int32)) * BLOCK_M
            tl.store(parts_ptr + (part + rows)[:, None] * HEAD_DIM + depths[None, :], value, mask=is_row[:, None])
            tl.store(sums_ptr + part + rows, log, mask=is_row)
            item_begin = next_tile - first_tile
            first_program = program_of(item_begin, total_tiles, programs)
            parts = program_of(item_begin + tiles - 1, total_tiles, programs) - first_program + 1
            is_whole = tl.atomic_add(counter_ptr + first_program, 1, sem="acq_rel", scope="gpu") == parts - 1
            if is_whole:
                tl.store(counter_ptr + first_program, 0)
                whole, whole_log = combine_parts(parts_ptr, sums_ptr, first_program, parts, rows_left, HEAD_DIM, BLOCK_M, ROWS, PARTS)
                give(whole, whole_log, out_ptr, lse_ptr, row_place, rows_left, HEAD_DIM, ROWS)
        if slots_ptr is not None:
            if is_whole:
                send_rows(out_ptr, lse_ptr, slots_ptr, row_place, rows_left, most_rows, call, rank, WORLD, HEAD_DIM)
        next_tile += count


@triton.jit
def attention_decode(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group, queries,
                     stride_page, stride_row, stride_head, stride_table, score_scale, HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr,
                     BATCH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr):
    """The whole on one GPU. lse_ptr: natural logarithms of the sums, fp32 [batch, heads, queries], or None.

    parts_ptr, sums_ptr: fp32 [2 programs, BLOCK_M, HEAD_DIM] and [2 programs, BLOCK_M]; counter_ptr: i32 [programs], zeros before and after a call.
    BATCH, ROWS: powers of two that are not below the sequences, and the rows of an item (at most BLOCK_M).
    """
    attend_and_give(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group, queries,
                    stride_page, stride_row, stride_head, stride_table, score_scale, HEAD_DIM, PAGE_SIZE, BATCH, BLOCK_M, BLOCK_N, ROWS, PARTS,
                    None, 0, 0, 0, 1)


@triton.jit
def receive_row(slots_ptr, row, packet, most_rows, call, WORLD: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Two elements of a row, combined over the ranks, and the logarithm of the sum of all."""
    PACKETS: tl.constexpr = HEAD_DIM // 2
    stride = most_rows * (PACKETS + 1) * 2
    words = receive_packets(slots_ptr + (row * PACKETS + packet) * 2, stride, call, WORLD)
    log_words = receive_packets(slots_ptr + (most_rows * PACKETS + row) * 2, stride, call, WORLD)
    logs = [packet_values(log_words[2 * source], log_words[2 * source + 1], tl.float32)[0] for source in range(WORLD)]
    largest = logs[0]
    for source in tl.static_range(1, WORLD):
        largest = tl.maximum(largest, logs[source])
    finite = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros((), tl.float32)
    sums = dl.zeros_vector(2, tl.float32)
    for source in tl.static_range(WORLD):
        weight = tl.exp(logs[source] - finite)
        values = packet_values(words[2 * source], words[2 * source + 1], tl.float32)
        total += weight
        sums = dl.make_vector([sums[i] + weight * values[i] for i in range(2)])
    some = tl.where(total == 0.0, 1.0, total)
    return dl.make_vector([sums[i] / some for i in range(2)]), largest + tl.log(some)


@triton.jit(do_not_specialize=["rank"])
def attention_decode_over_ranks(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lengths_ptr, table_ptr, parts_ptr, sums_ptr, counter_ptr, own_ptr, own_lse_ptr,
                                slots_ptr, call_ptr, batch, kv_heads, group, queries, stride_page, stride_row, stride_head, stride_table, score_scale,
                                most_rows, finishers, rank, WORLD: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr,
                                BATCH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr):
    """The same of keys that are spread over the ranks: lengths_ptr says how many of this rank's each query sees.

    own_ptr, own_lse_ptr: what this rank's keys give, fp32, like out_ptr and lse_ptr. slots_ptr: symmetric, [2, WORLD, most_rows * (HEAD_DIM / 2 + 1)] packets;
    call_ptr: i64 [3]: calls that have ended, and how many programs of the present one have attended, and ended.

    The last `finishers` programs to have attended to their tiles wait for what the ranks send; when they do, at most as many others are still to come,
    and these wait for nobody: no more than `finishers` programs must find places at once. Two sets of slots, in turns: a rank that sends in call g + 2 has
    ended g + 1, for which it needed packets of g + 1 from all, who had ended g.
    """
    call = tl.load(call_ptr) + 1
    slots_ptr += (call % 2) * WORLD * most_rows * (HEAD_DIM // 2 + 1) * 2
    attend_and_give(q_ptr, k_ptr, v_ptr, own_ptr, own_lse_ptr, lengths_ptr, table_ptr, parts_ptr, sums_ptr, counter_ptr, batch, kv_heads, group,
                    queries, stride_page, stride_row, stride_head, stride_table, score_scale, HEAD_DIM, PAGE_SIZE, BATCH, BLOCK_M, BLOCK_N, ROWS,
                    PARTS, slots_ptr, most_rows, call, rank, WORLD)
    finisher = tl.atomic_add(call_ptr + 1, 1, sem="acq_rel", scope="gpu") - (tl.num_programs(0) - finishers)
    if finisher >= 0:
        PACKETS: tl.constexpr = HEAD_DIM // 2
        rows = tl.cast(batch, tl.int64) * kv_heads * group * queries
        for i in range(finisher * num_threads() + tid(0), rows * PACKETS, finishers * num_threads()):
            values, log = receive_row(slots_ptr, i // PACKETS, i % PACKETS, most_rows, call, WORLD, HEAD_DIM)
            st_vector(out_ptr + i * 2, dl.make_vector([values[j].to(out_ptr.dtype.element_ty) for j in range(2)]))
            if lse_ptr is not None:
                if i % PACKETS == 0:
                    st(lse_ptr + i // PACKETS, log)
        __syncthreads()
        if tl.atomic_add(call_ptr + 2, 1, sem="acq_rel", scope="gpu") == finishers - 1:
            tl.store(call_ptr + 1, 0)
            tl.store(call_ptr + 2, 0)
            tl.store(call_ptr, call)
