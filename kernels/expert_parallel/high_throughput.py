"""Expert parallelism for many tokens: a token goes to a rank once, however many of its experts are there, and one sum comes back.

Slots, places, experts of a rank and what is dropped: low_latency.py. Which place each slot has is found before, by `count_slots_of_call`
and `place_slots_of_call`.

**Channels.** The tokens of a rank are cut into *windows* of WINDOW tokens, dealt out to the channels in turns: window w is the business of
channel w % channels. All tokens of a window are moved together, CHUNK elements of each at a time, so that the latency of memory is paid once for all of
them. A channel is a pair of blocks on each rank, one that sends and one that receives, with memory of their own: for each
source a ring of SLOTS windows at the receiver. A window has room for all of its tokens, so that a token lies where its number says, and a
token that has nothing to do there is left out. `arrived` at the receiver counts the windows that have come, `freed` at the sender those that
were taken; both grow for ever, and are compared with >=.

**Dispatch.** Beside each token's row lie its keys: for each of its slots expert there * capacity + place, or -1. Before the first window each
sender tells how many rows each expert gets from it, and how many tokens it has: words as in low_latency.py. So the receiver knows where a
row goes, whatever comes first, and stores it once for each of its experts. The handle keeps the places and weights.

**Combine.** The other way round, over rings of its own: the rank of the experts adds the results of a token, times their weights, in fp32 in
the order of the slots, and sends the sum; the token's rank adds the sums of all ranks in their order.

**Why no block waits for ever.** Look at the block that is least far, in step k, its k-th window. One that sends waits for a ring that was
full: until window k - SLOTS is taken, by a block that has then left step k - SLOTS < k. One that receives waits for what is sent in step k,
by a block that waits for nobody less far than itself. All blocks of a call must find a place at once.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, num_threads, st, tid

from ..collectives.pairs import report
from ..moe.block_scales import MOST_FP8, SCALED
from ..moe.routing import count_slots, place_slots
from .low_latency import DROPS_SLOTS, HANDLE_BEGIN, count_rows

# Windows of a channel that may be on their way between two ranks.
SLOTS_OF_RING = tl.constexpr(4)
# What stands in a handle for a slot of a token that came: its row, or one of these.
NO_ROW = tl.constexpr(-1)
DROPPED_ROW = tl.constexpr(-2)


@triton.jit(do_not_specialize=["slots", "experts"], do_not_specialize_on_alignment=["ids_ptr"])
def count_slots_of_call(ids_ptr, counts_ptr, slots, experts, CHUNK: tl.constexpr, PART: tl.constexpr, EXPERTS: tl.constexpr):
    """routing.py's, for any number of slots up to those that the grid is for."""
    count_slots(ids_ptr, counts_ptr, slots, experts, 0, CHUNK, PART, EXPERTS)


@triton.jit(do_not_specialize=["slots", "experts"], do_not_specialize_on_alignment=["ids_ptr"])
def place_slots_of_call(ids_ptr, counts_ptr, own_offsets_ptr, slot_of_row_ptr, row_of_slot_ptr, slots, experts, CHUNK: tl.constexpr,
                        PART: tl.constexpr, EXPERTS: tl.constexpr, COUNTS: tl.constexpr):
    place_slots(ids_ptr, counts_ptr, own_offsets_ptr, slot_of_row_ptr, row_of_slot_ptr, slots, experts, 0, CHUNK, PART, EXPERTS, COUNTS)


@triton.jit
def windows_of(tokens, channel, channels, WINDOW: tl.constexpr):
    """Of a channel."""
    return max(tl.cdiv(tl.cdiv(tokens, WINDOW) - channel, channels), 0)


@triton.jit
def tokens_of_window(window, tokens, WINDOW: tl.constexpr, ROWS: tl.constexpr):
    """Their numbers among the tokens of the call, [ROWS], of which WINDOW are a window's, and which of them there are."""
    number = tl.arange(0, ROWS)
    own = window * WINDOW + number
    return own, (number < WINDOW) & (own < tokens)


@triton.jit
def column(values, j: tl.constexpr, COLUMNS: tl.constexpr):
    """The j-th of each row."""
    return tl.sum(tl.where(tl.arange(0, COLUMNS)[None, :] == j, values, 0), axis=1)


@triton.jit
def quantize_rows(x_ptr, starts, is_row, left, element: tl.constexpr, CHUNK: tl.constexpr):
    """The `left` elements from `starts` of each row on, at most CHUNK, as [rows, CHUNK / SCALED, SCALED] of the narrow type, and a scale for each
    SCALED of them."""
    lanes = tl.arange(0, CHUNK // SCALED)[:, None] * SCALED + tl.arange(0, SCALED)[None, :]
    mask = is_row[:, None, None] & (lanes < left)[None, :, :]
    values = tl.load(x_ptr + starts[:, None, None] + lanes[None, :, :], mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(values), axis=2)
    scale = tl.where(largest > 0, tl.div_rn(largest, tl.full(largest.shape, MOST_FP8, tl.float32)), 1.0)
    return tl.div_rn(values, tl.broadcast_to(scale[:, :, None], values.shape)).to(element), scale


@triton.jit
def tell(words_ptr, place, value, WORLD: tl.constexpr):
    """Every rank's word at the place becomes the value, behind all that this block has stored."""
    __syncthreads()
    for peer in range(tid(0), WORLD, num_threads()):
        st(dl.symm_at(words_ptr, peer) + place, value, scope="sys", semantic="release")


@triton.jit
def tell_one(words_ptr, place, value, peer):
    __syncthreads()
    if tid(0) == 0:
        st(dl.symm_at(words_ptr, peer) + place, value, scope="sys", semantic="release")


@triton.jit
def send_windows(x_ptr, ids_ptr, weights_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr, key_weights_ptr, words_ptr, arrived_ptr, freed_ptr,
                 offsets_ptr, row_of_slot_ptr, sent_ptr, windows_ptr, error_ptr, channel, channels, tokens, hidden, stride, experts, capacity,
                 rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr,
                 CHUNK: tl.constexpr):
    """Of a channel. The pointers to rings and to their words are those of the channel, but windows_ptr [channels]."""
    call = tl.load(sent_ptr + channel) + 1
    sent = tl.load(windows_ptr + channel)
    local = experts // WORLD
    words_ptr += call % 2 * (experts + WORLD)
    for expert in range(channel * num_threads() + tid(0), experts, channels * num_threads()):
        count = (ld(offsets_ptr + expert + 1) - ld(offsets_ptr + expert)).to(tl.int64)
        st(dl.symm_at(words_ptr + expert % local * WORLD + rank, expert // local), (call << 32) | min(count, capacity), scope="sys",
           semantic="release")
        if count > capacity:
            report(error_ptr, DROPS_SLOTS, expert, count, capacity)
    if channel == 0:
        tell(words_ptr, experts + rank, (call << 32) | tokens, WORLD)
    slot = tl.arange(0, SLOTS)[None, :]
    lanes = tl.arange(0, CHUNK)
    for window in range(channel, tl.cdiv(tokens, WINDOW), channels):
        own, is_token = tokens_of_window(window, tokens, WINDOW, ROWS)
        is_choice = is_token[:, None] & (slot < TOP_K)
        choice = own[:, None] * TOP_K + slot
        ids = tl.load(ids_ptr + choice, mask=is_choice, other=-1)
        is_expert = (ids >= 0) & (ids < experts)
        chosen = tl.where(is_expert, ids, 0)
        row = tl.load(row_of_slot_ptr + choice, mask=is_choice, other=-1)
        place = row - tl.load(offsets_ptr + chosen)
        target = tl.where(is_expert & (place < capacity), chosen // local, -1)
        tl.store(handle_ptr + HANDLE_BEGIN + WORLD + choice, target, mask=is_choice)
        key = (chosen % local).to(tl.int64) * capacity + place
        weight = tl.full((ROWS, SLOTS), 1.0, tl.float32)
        if weights_ptr is not None:
            weight = tl.load(weights_ptr + choice, mask=is_choice, other=0.0)
        token = dl.wait(freed_ptr, WORLD, "sys", "acquire", waitValue=sent + 1 - SLOTS_OF_RING, compare="ge")
        there = (rank * SLOTS_OF_RING + sent % SLOTS_OF_RING) * WINDOW + tl.arange(0, ROWS)
        keys_here_ptr = dl.consume_token(keys_ptr, token)
        ring_here_ptr = dl.consume_token(ring_ptr, token)
        goes = ()
        for distance in tl.static_range(WORLD):
            peer = (rank + distance) % WORLD
            at = there[:, None] * TOP_K + slot
            tl.store(dl.symm_at(keys_here_ptr, peer) + at, tl.where(target == peer, key, -1), mask=is_choice)
            tl.store(dl.symm_at(key_weights_ptr, peer) + at, weight, mask=is_choice)
            goes = goes + (tl.max((target == peer).to(tl.int32), axis=1) > 0,)
        for begin in range(0, hidden, CHUNK):
            if scales_ptr is not None:
                scales = tl.cdiv(hidden, SCALED)
                blocks = tl.arange(0, CHUNK // SCALED)
                parts = blocks[:, None] * SCALED + tl.arange(0, SCALED)[None, :]
                values, scale = quantize_rows(x_ptr, own * hidden + begin, is_token, hidden - begin, ring_ptr.dtype.element_ty, CHUNK)
                for distance in tl.static_range(WORLD):
                    peer = (rank + distance) % WORLD
                    tl.store(dl.symm_at(ring_here_ptr, peer) + (there * stride + begin)[:, None, None] + parts[None, :, :], values,
                             mask=goes[distance][:, None, None] & (parts < hidden - begin)[None, :, :])
                    tl.store(dl.symm_at(scales_ptr, peer) + (there * scales + begin // SCALED)[:, None] + blocks[None, :], scale,
                             mask=goes[distance][:, None] & (blocks < scales - begin // SCALED)[None, :])
            else:
                is_lane = (lanes < hidden - begin)[None, :]
                values = tl.load(x_ptr + (own * hidden + begin)[:, None] + lanes[None, :], mask=is_token[:, None] & is_lane)
                for distance in tl.static_range(WORLD):
                    peer = (rank + distance) % WORLD
                    tl.store(dl.symm_at(ring_here_ptr, peer) + (there * stride + begin)[:, None] + lanes[None, :], values,
                             mask=goes[distance][:, None] & is_lane)
        sent += 1
        tell(arrived_ptr, rank, sent, WORLD)
    __syncthreads()
    if tid(0) == 0:
        st(sent_ptr + channel, call)
        st(windows_ptr + channel, sent)


@triton.jit
def receive_windows(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr, key_weights_ptr, words_ptr, arrived_ptr,
                    freed_ptr, begins_ptr, received_ptr, taken_ptr, error_ptr, channel, channels, hidden, stride, experts, capacity, max_rows,
                    max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr,
                    WINDOW: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr):
    """The pointers to rings and to their words are those of the channel, like begins_ptr [experts] and taken_ptr [WORLD]."""
    call = tl.load(received_ptr + channel) + 1
    words_ptr += call % 2 * (experts + WORLD)
    token = dl.wait(words_ptr, experts + WORLD, "sys", "acquire", waitValue=call << 32, compare="ge")
    words_ptr = dl.consume_token(words_ptr, token)
    segment = tl.arange(0, EXPERTS)
    counts, ends, total = count_rows(words_ptr, offsets_ptr, handle_ptr, error_ptr, channel == 0, experts, max_rows, rank, WORLD, EXPERTS)
    tl.store(begins_ptr + segment, ends - counts, mask=segment < experts)
    if channel == 0:
        for source in range(tid(0), WORLD, num_threads()):
            st(handle_ptr + HANDLE_BEGIN + source, (ld(words_ptr + experts + source) & 0xFFFFFFFF).to(tl.int32))
    __syncthreads()
    items_ptr = handle_ptr + HANDLE_BEGIN + WORLD + max_slots
    slot = tl.arange(0, SLOTS)[None, :]
    lanes = tl.arange(0, CHUNK)
    blocks = tl.arange(0, CHUNK // SCALED)
    scales = tl.cdiv(hidden, SCALED)
    steps = tl.cast(0, tl.int64)
    for source in range(WORLD):
        tokens = tl.load(words_ptr + experts + source) & 0xFFFFFFFF
        steps = max(steps, windows_of(tokens, channel, channels, WINDOW))
    for step in range(0, steps):
        window = step * channels + channel
        for distance in range(WORLD):
            source = (rank + WORLD - distance) % WORLD
            tokens = tl.load(words_ptr + experts + source) & 0xFFFFFFFF
            if window * WINDOW < tokens:
                taken = tl.load(taken_ptr + source) + step
                token = dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=taken + 1, compare="ge")
                here = (source * SLOTS_OF_RING + taken % SLOTS_OF_RING) * WINDOW + tl.arange(0, ROWS)
                keys_here_ptr = dl.consume_token(keys_ptr, token)
                ring_here_ptr = dl.consume_token(ring_ptr, token)
                number, is_token = tokens_of_window(window, tokens, WINDOW, ROWS)
                is_choice = is_token[:, None] & (slot < TOP_K)
                key = tl.load(keys_here_ptr + here[:, None] * TOP_K + slot, mask=is_choice, other=-1)
                own = tl.where(key >= 0, key, 0)
                row = tl.load(begins_ptr + own // capacity * WORLD + source) + own % capacity
                row = tl.where(key >= 0, tl.where(row < max_rows, row, DROPPED_ROW), NO_ROW)
                item = source * max_slots + number[:, None] * TOP_K + slot
                tl.store(items_ptr + item, row.to(tl.int32), mask=is_choice)
                weight = tl.load(key_weights_ptr + here[:, None] * TOP_K + slot, mask=is_choice, other=0.0)
                tl.store(items_ptr + WORLD * max_slots + item, weight.to(tl.int32, bitcast=True), mask=is_choice)
                is_kept = tl.max(row, axis=1) >= 0
                rows = ()
                for j in tl.static_range(TOP_K):
                    rows = rows + (column(row, j, SLOTS),)
                for begin in range(0, hidden, CHUNK):
                    is_lane = (lanes < hidden - begin)[None, :]
                    values = tl.load(ring_here_ptr + (here * stride + begin)[:, None] + lanes[None, :], mask=is_kept[:, None] & is_lane)
                    for j in tl.static_range(TOP_K):
                        tl.store(rows_ptr + (rows[j] * hidden + begin)[:, None] + lanes[None, :], values, mask=(rows[j] >= 0)[:, None] & is_lane)
                    if scales_ptr is not None:
                        is_block = (blocks < scales - begin // SCALED)[None, :]
                        scale = tl.load(scales_ptr + (here * scales + begin // SCALED)[:, None] + blocks[None, :], mask=is_kept[:, None] & is_block)
                        for j in tl.static_range(TOP_K):
                            tl.store(row_scales_ptr + (rows[j] * scales + begin // SCALED)[:, None] + blocks[None, :], scale,
                                     mask=(rows[j] >= 0)[:, None] & is_block)
                tell_one(freed_ptr, rank, taken + 1, source)
    __syncthreads()
    for source in range(tid(0), WORLD, num_threads()):
        tokens = ld(words_ptr + experts + source) & 0xFFFFFFFF
        st(taken_ptr + source, ld(taken_ptr + source) + windows_of(tokens, channel, channels, WINDOW))
    if tid(0) == 0:
        st(received_ptr + channel, call)


@triton.jit(do_not_specialize=["tokens", "experts", "capacity", "max_rows", "max_slots", "rank"],
            do_not_specialize_on_alignment=["ids_ptr", "weights_ptr", "offsets_ptr", "handle_ptr"])
def dispatch_by_channels(x_ptr, ids_ptr, weights_ptr, rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr,
                         key_weights_ptr, words_ptr, arrived_ptr, freed_ptr, own_offsets_ptr, row_of_slot_ptr, begins_ptr, sent_ptr,
                         received_ptr, windows_ptr, taken_ptr, error_ptr, tokens, hidden, stride, experts, capacity, max_rows, max_slots, rank,
                         WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr, WINDOW: tl.constexpr,
                         ROWS: tl.constexpr, CHUNK: tl.constexpr):
    """Operands as low_latency.py's dispatch has them. Two blocks for each channel, the even ones send. ROWS: a power of two, no less than
    WINDOW.

    Symmetric: ring_ptr [channels, WORLD, SLOTS_OF_RING, WINDOW, stride], scales_ptr, keys_ptr, key_weights_ptr as many of
    ceil(hidden / SCALED), TOP_K, TOP_K; words_ptr [2, experts + WORLD]; arrived_ptr, freed_ptr [channels, WORLD]. Of the rank: own_offsets_ptr
    [experts + 1], row_of_slot_ptr [max_slots]: what place_slots_of_call has found; begins_ptr [channels, experts]; sent_ptr, received_ptr,
    windows_ptr [channels]; taken_ptr [channels, WORLD]; error_ptr [4]. Handle: tokens of each source [WORLD], rank of each slot's expert
    or -1 [max_slots], then of each slot of a token that came its row [WORLD, max_slots] and its weight [WORLD, max_slots].
    """
    channel = tl.cast(tl.program_id(0) // 2, tl.int64)
    channels = tl.cast(tl.num_programs(0) // 2, tl.int64)
    places = channel * WORLD * SLOTS_OF_RING * WINDOW
    ring_ptr += places * stride
    keys_ptr += places * TOP_K
    key_weights_ptr += places * TOP_K
    if scales_ptr is not None:
        scales_ptr += places * tl.cdiv(hidden, SCALED)
    arrived_ptr += channel * WORLD
    freed_ptr += channel * WORLD
    if tl.program_id(0) % 2 == 0:
        send_windows(x_ptr, ids_ptr, weights_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr, key_weights_ptr, words_ptr, arrived_ptr, freed_ptr,
                     own_offsets_ptr, row_of_slot_ptr, sent_ptr, windows_ptr, error_ptr, channel, channels, tokens, hidden, stride, experts,
                     capacity, rank, WORLD, TOP_K, SLOTS, WINDOW, ROWS, CHUNK)
    else:
        receive_windows(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr, key_weights_ptr, words_ptr, arrived_ptr,
                        freed_ptr, begins_ptr + channel * experts, received_ptr, taken_ptr + channel * WORLD, error_ptr, channel, channels,
                        hidden, stride, experts, capacity, max_rows, max_slots, rank, WORLD, TOP_K, SLOTS, EXPERTS, WINDOW, ROWS, CHUNK)


@triton.jit
def tokens_of(handle_ptr, source, max_slots, TOP_K: tl.constexpr):
    """Of a source, in the call of the handle. One that dispatch has not filled must not become an address."""
    return min(max(tl.load(handle_ptr + HANDLE_BEGIN + source).to(tl.int64), 0), max_slots // TOP_K)


@triton.jit
def return_sums(rows_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, returned_ptr, channel, channels, hidden, stride, max_rows, max_slots, rank,
                WORLD: tl.constexpr, TOP_K: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    items_ptr = handle_ptr + HANDLE_BEGIN + WORLD + max_slots
    steps = tl.cast(0, tl.int64)
    for source in range(WORLD):
        steps = max(steps, windows_of(tokens_of(handle_ptr, source, max_slots, TOP_K), channel, channels, WINDOW))
    for step in range(0, steps):
        window = step * channels + channel
        for distance in range(WORLD):
            source = (rank + distance) % WORLD
            tokens = tokens_of(handle_ptr, source, max_slots, TOP_K)
            if window * WINDOW < tokens:
                returned = tl.load(returned_ptr + source) + step
                token = dl.wait(freed_ptr + source, 1, "sys", "acquire", waitValue=returned + 1 - SLOTS_OF_RING, compare="ge")
                there = (rank * SLOTS_OF_RING + returned % SLOTS_OF_RING) * WINDOW + tl.arange(0, ROWS)
                sums_ptr = dl.symm_at(dl.consume_token(ring_ptr, token), source)
                number, is_token = tokens_of_window(window, tokens, WINDOW, ROWS)
                item_ptr = items_ptr + source * max_slots + number * TOP_K
                came = tl.zeros((ROWS,), tl.int32)
                rows = ()
                weights = ()
                for j in tl.static_range(TOP_K):
                    row = tl.load(item_ptr + j, mask=is_token, other=NO_ROW)
                    came |= (row != NO_ROW).to(tl.int32)
                    rows = rows + (tl.where(row < max_rows, row, DROPPED_ROW).to(tl.int64),)
                    weights = weights + (tl.load(item_ptr + WORLD * max_slots + j, mask=is_token, other=0).to(tl.float32, bitcast=True),)
                for begin in range(0, hidden, CHUNK):
                    is_lane = (lanes < hidden - begin)[None, :]
                    total = tl.zeros((ROWS, CHUNK), tl.float32)
                    for j in tl.static_range(TOP_K):
                        has_row = (rows[j] >= 0)[:, None]
                        values = tl.load(rows_ptr + (rows[j] * hidden + begin)[:, None] + lanes[None, :], mask=has_row & is_lane, other=0.0)
                        total += tl.where(has_row, values.to(tl.float32) * weights[j][:, None], 0.0)
                    tl.store(sums_ptr + (there * stride + begin)[:, None] + lanes[None, :], total.to(ring_ptr.dtype.element_ty),
                             mask=(came > 0)[:, None] & is_lane)
                tell_one(arrived_ptr, rank, returned + 1, source)
    __syncthreads()
    for source in range(tid(0), WORLD, num_threads()):
        tokens = min(max(ld(handle_ptr + HANDLE_BEGIN + source).to(tl.int64), 0), max_slots // TOP_K)
        st(returned_ptr + source, ld(returned_ptr + source) + windows_of(tokens, channel, channels, WINDOW))


@triton.jit
def add_sums(out_ptr, addend_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, channel, channels, tokens, hidden, stride, max_slots, rank,
             WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    slot = tl.arange(0, SLOTS)[None, :]
    taken = tl.load(windows_ptr + channel)
    targets_ptr = handle_ptr + HANDLE_BEGIN + WORLD
    # As many windows as were dispatched, and as others send; `tokens` says only how many of them are wanted.
    dispatched = tokens_of(handle_ptr, rank, max_slots, TOP_K)
    for window in range(channel, tl.cdiv(dispatched, WINDOW), channels):
        own, is_token = tokens_of_window(window, min(dispatched, tokens), WINDOW, ROWS)
        target = tl.load(targets_ptr + own[:, None] * TOP_K + slot, mask=is_token[:, None] & (slot < TOP_K), other=-1)
        went = ()
        for peer in tl.static_range(WORLD):
            went = went + (tl.max((target == peer).to(tl.int32), axis=1) > 0,)
        token = dl.wait(arrived_ptr, WORLD, "sys", "acquire", waitValue=taken + 1, compare="ge")
        sums_ptr = dl.consume_token(ring_ptr, token)
        here = taken % SLOTS_OF_RING * WINDOW + tl.arange(0, ROWS)
        for begin in range(0, hidden, CHUNK):
            is_lane = (lanes < hidden - begin)[None, :]
            total = tl.zeros((ROWS, CHUNK), tl.float32)
            if addend_ptr is not None:
                total += tl.load(addend_ptr + (own * hidden + begin)[:, None] + lanes[None, :], mask=is_token[:, None] & is_lane, other=0.0).to(tl.float32)
            for peer in tl.static_range(WORLD):
                at = (here + peer * SLOTS_OF_RING * WINDOW) * stride + begin
                values = tl.load(sums_ptr + at[:, None] + lanes[None, :], mask=went[peer][:, None] & is_lane, other=0.0)
                total += values.to(tl.float32)
            tl.store(out_ptr + (own * hidden + begin)[:, None] + lanes[None, :], total.to(out_ptr.dtype.element_ty),
                     mask=is_token[:, None] & is_lane)
        taken += 1
        tell(freed_ptr, rank, taken, WORLD)
    __syncthreads()
    if tid(0) == 0:
        st(windows_ptr + channel, taken)


@triton.jit(do_not_specialize=["tokens", "max_rows", "max_slots", "rank"], do_not_specialize_on_alignment=["handle_ptr"])
def combine_by_channels(rows_ptr, out_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, returned_ptr, tokens, hidden, stride,
                        max_rows, max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr,
                        ROWS: tl.constexpr, CHUNK: tl.constexpr, addend_ptr=None):
    """Operands as low_latency.py's combine has them; tokens is what was dispatched. Two blocks for each channel, the even ones send.

    Symmetric: ring_ptr [channels, WORLD, SLOTS_OF_RING, WINDOW, stride], arrived_ptr, freed_ptr [channels, WORLD]. Of the rank: windows_ptr
    [channels], returned_ptr [channels, WORLD].
    """
    channel = tl.cast(tl.program_id(0) // 2, tl.int64)
    channels = tl.cast(tl.num_programs(0) // 2, tl.int64)
    ring_ptr += channel * WORLD * SLOTS_OF_RING * WINDOW * stride
    arrived_ptr += channel * WORLD
    freed_ptr += channel * WORLD
    if tl.program_id(0) % 2 == 0:
        return_sums(rows_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, returned_ptr + channel * WORLD, channel, channels, hidden, stride,
                    max_rows, max_slots, rank, WORLD, TOP_K, WINDOW, ROWS, CHUNK)
    else:
        add_sums(out_ptr, addend_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, channel, channels, tokens, hidden, stride, max_slots,
                 rank, WORLD, TOP_K, SLOTS, WINDOW, ROWS, CHUNK)
