"""Expert parallelism for many tokens: a token goes to a rank once, however many of its experts are there, and one sum comes back.

Slots, places, experts of a rank and what is dropped: low_latency.py. Which place each slot has is found before, by `count_slots_of_call`
and `place_slots_of_call`.

**Channels.** The tokens of a rank are cut into *windows* of WINDOW tokens, dealt out to the channels in turns: window w is the business of
channel w % channels. A channel is a pair of blocks on each rank, one that sends and one that receives, with memory of their own: for each
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
from ..moe.routing import count_slots, place_slots
from .low_latency import DROPS_SLOTS, HANDLE_BEGIN, SCALED, copy_row, count_rows, quantize, scaled_lanes

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
                        PART: tl.constexpr, EXPERTS: tl.constexpr):
    place_slots(ids_ptr, counts_ptr, own_offsets_ptr, slot_of_row_ptr, row_of_slot_ptr, slots, experts, 0, CHUNK, PART, EXPERTS)


@triton.jit
def windows_of(tokens, channel, channels, WINDOW: tl.constexpr):
    """Of a channel."""
    return max(tl.cdiv(tl.cdiv(tokens, WINDOW) - channel, channels), 0)


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
                 rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr, CHUNK: tl.constexpr):
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
    slot = tl.arange(0, SLOTS)
    is_slot = slot < TOP_K
    for window in range(channel, tl.cdiv(tokens, WINDOW), channels):
        token = dl.wait(freed_ptr, WORLD, "sys", "acquire", waitValue=sent + 1 - SLOTS_OF_RING, compare="ge")
        first_place = (rank * SLOTS_OF_RING + sent % SLOTS_OF_RING) * WINDOW
        keys_here_ptr = dl.consume_token(keys_ptr, token)
        for i in range(0, min(tokens - window * WINDOW, WINDOW)):
            own = window * WINDOW + i
            place_here = first_place + i
            ids = tl.load(ids_ptr + own * TOP_K + slot, mask=is_slot, other=-1)
            is_expert = (ids >= 0) & (ids < experts)
            chosen = tl.where(is_expert, ids, 0)
            row = tl.load(row_of_slot_ptr + own * TOP_K + slot, mask=is_slot, other=-1)
            place = row - tl.load(offsets_ptr + chosen)
            is_sent = is_expert & (place < capacity)
            target = tl.where(is_sent, chosen // local, -1)
            tl.store(handle_ptr + HANDLE_BEGIN + WORLD + own * TOP_K + slot, target, mask=is_slot)
            key = (chosen % local).to(tl.int64) * capacity + place
            weight = tl.full((SLOTS,), 1.0, tl.float32)
            if weights_ptr is not None:
                weight = tl.load(weights_ptr + own * TOP_K + slot, mask=is_slot, other=0.0)
            goes = tl.cast(0, tl.int64)
            for distance in tl.static_range(WORLD):
                peer = (rank + distance) % WORLD
                at = place_here * TOP_K + slot
                tl.store(dl.symm_at(keys_here_ptr, peer) + at, tl.where(target == peer, key, -1), mask=is_slot)
                tl.store(dl.symm_at(key_weights_ptr, peer) + at, weight, mask=is_slot)
                goes |= tl.max((target == peer).to(tl.int64), axis=0) << distance
            for begin in range(0, hidden, CHUNK):
                if scales_ptr is not None:
                    blocks = tl.arange(0, CHUNK // SCALED)
                    lanes = scaled_lanes(CHUNK)
                    values, scale = quantize(x_ptr + own * hidden + begin, hidden - begin, ring_ptr.dtype.element_ty, CHUNK)
                else:
                    lanes = tl.arange(0, CHUNK)
                    values = tl.load(x_ptr + own * hidden + begin + lanes, mask=lanes < hidden - begin)
                for distance in tl.static_range(WORLD):
                    if ((goes >> distance) & 1) != 0:
                        peer = (rank + distance) % WORLD
                        tl.store(dl.symm_at(ring_ptr, peer) + place_here * stride + begin + lanes, values, mask=lanes < hidden - begin)
                        if scales_ptr is not None:
                            scales = tl.cdiv(hidden, SCALED)
                            tl.store(dl.symm_at(scales_ptr, peer) + place_here * scales + begin // SCALED + blocks, scale,
                                     mask=blocks < scales - begin // SCALED)
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
                    WINDOW: tl.constexpr, CHUNK: tl.constexpr):
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
    slot = tl.arange(0, SLOTS)
    is_slot = slot < TOP_K
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
                first_place = (source * SLOTS_OF_RING + taken % SLOTS_OF_RING) * WINDOW
                keys_here_ptr = dl.consume_token(keys_ptr + first_place * TOP_K, token)
                window_ptr = dl.consume_token(ring_ptr + first_place * stride, token)
                for i in range(0, min(tokens - window * WINDOW, WINDOW)):
                    key = tl.load(keys_here_ptr + i * TOP_K + slot, mask=is_slot, other=-1)
                    own = tl.where(key >= 0, key, 0)
                    row = tl.load(begins_ptr + own // capacity * WORLD + source) + own % capacity
                    row = tl.where(key >= 0, tl.where(row < max_rows, row, DROPPED_ROW), NO_ROW)
                    item = (source * max_slots + (window * WINDOW + i) * TOP_K)
                    tl.store(items_ptr + item + slot, row.to(tl.int32), mask=is_slot)
                    weight = tl.load(key_weights_ptr + (first_place + i) * TOP_K + slot, mask=is_slot, other=0.0)
                    tl.store(items_ptr + WORLD * max_slots + item + slot, weight.to(tl.int32, bitcast=True), mask=is_slot)
                    if tl.max(row, axis=0) >= 0:
                        __syncthreads()
                        keep_row(rows_ptr, row_scales_ptr, items_ptr + item, window_ptr + i * stride, scales_ptr, first_place + i, hidden, TOP_K,
                                 CHUNK)
                tell_one(freed_ptr, rank, taken + 1, source)
    __syncthreads()
    for source in range(tid(0), WORLD, num_threads()):
        tokens = ld(words_ptr + experts + source) & 0xFFFFFFFF
        st(taken_ptr + source, ld(taken_ptr + source) + windows_of(tokens, channel, channels, WINDOW))
    if tid(0) == 0:
        st(received_ptr + channel, call)


@triton.jit
def keep_row(rows_ptr, row_scales_ptr, item_ptr, from_ptr, scales_ptr, place, hidden, TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    """A token's row, from its ring, to all of its rows."""
    lanes = tl.arange(0, CHUNK)
    for begin in range(0, hidden, CHUNK):
        values = tl.load(from_ptr + begin + lanes, mask=lanes < hidden - begin)
        for j in tl.static_range(TOP_K):
            row = tl.load(item_ptr + j).to(tl.int64)
            if row >= 0:
                tl.store(rows_ptr + row * hidden + begin + lanes, values, mask=lanes < hidden - begin)
                if scales_ptr is not None:
                    if begin == 0:
                        scales = tl.cdiv(hidden, SCALED)
                        copy_row(row_scales_ptr + row * scales, scales_ptr + place * scales, scales, CHUNK // SCALED)


@triton.jit(do_not_specialize=["tokens", "experts", "capacity", "max_rows", "max_slots", "rank"],
            do_not_specialize_on_alignment=["ids_ptr", "weights_ptr", "offsets_ptr", "handle_ptr"])
def dispatch_by_channels(x_ptr, ids_ptr, weights_ptr, rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr,
                         key_weights_ptr, words_ptr, arrived_ptr, freed_ptr, own_offsets_ptr, row_of_slot_ptr, begins_ptr, sent_ptr,
                         received_ptr, windows_ptr, taken_ptr, error_ptr, tokens, hidden, stride, experts, capacity, max_rows, max_slots, rank,
                         WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr, WINDOW: tl.constexpr,
                         CHUNK: tl.constexpr):
    """Operands as low_latency.py's dispatch has them. Two blocks for each channel, the even ones send.

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
                     capacity, rank, WORLD, TOP_K, SLOTS, WINDOW, CHUNK)
    else:
        receive_windows(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, ring_ptr, scales_ptr, keys_ptr, key_weights_ptr, words_ptr, arrived_ptr,
                        freed_ptr, begins_ptr + channel * experts, received_ptr, taken_ptr + channel * WORLD, error_ptr, channel, channels,
                        hidden, stride, experts, capacity, max_rows, max_slots, rank, WORLD, TOP_K, SLOTS, EXPERTS, WINDOW, CHUNK)


@triton.jit
def tokens_of(handle_ptr, source, max_slots, TOP_K: tl.constexpr):
    """Of a source, in the call of the handle. One that dispatch has not filled must not become an address."""
    return min(max(tl.load(handle_ptr + HANDLE_BEGIN + source).to(tl.int64), 0), max_slots // TOP_K)


@triton.jit
def return_sums(rows_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, returned_ptr, channel, channels, hidden, stride, max_rows, max_slots, rank,
                WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr, CHUNK: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    slot = tl.arange(0, SLOTS)
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
                first_place = (rank * SLOTS_OF_RING + returned % SLOTS_OF_RING) * WINDOW
                window_ptr = dl.symm_at(dl.consume_token(ring_ptr + first_place * stride, token), source)
                for i in range(0, min(tokens - window * WINDOW, WINDOW)):
                    item_ptr = items_ptr + source * max_slots + (window * WINDOW + i) * TOP_K
                    items = tl.load(item_ptr + slot, mask=slot < TOP_K, other=NO_ROW)
                    if tl.max((items != NO_ROW).to(tl.int32), axis=0) > 0:
                        for begin in range(0, hidden, CHUNK):
                            total = tl.zeros((CHUNK,), tl.float32)
                            for j in tl.static_range(TOP_K):
                                row = tl.load(item_ptr + j).to(tl.int64)
                                if (row >= 0) & (row < max_rows):
                                    weight = tl.load(item_ptr + WORLD * max_slots + j).to(tl.float32, bitcast=True)
                                    values = tl.load(rows_ptr + row * hidden + begin + lanes, mask=lanes < hidden - begin, other=0.0)
                                    total += values.to(tl.float32) * weight
                            tl.store(window_ptr + i * stride + begin + lanes, total.to(ring_ptr.dtype.element_ty), mask=lanes < hidden - begin)
                tell_one(arrived_ptr, rank, returned + 1, source)
    __syncthreads()
    for source in range(tid(0), WORLD, num_threads()):
        tokens = min(max(ld(handle_ptr + HANDLE_BEGIN + source).to(tl.int64), 0), max_slots // TOP_K)
        st(returned_ptr + source, ld(returned_ptr + source) + windows_of(tokens, channel, channels, WINDOW))


@triton.jit
def add_sums(out_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, channel, channels, tokens, hidden, stride, max_slots, rank,
             WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr, CHUNK: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    slot = tl.arange(0, SLOTS)
    taken = tl.load(windows_ptr + channel)
    targets_ptr = handle_ptr + HANDLE_BEGIN + WORLD
    # As many windows as were dispatched, and as others send; `tokens` says only how many of them are wanted.
    dispatched = tokens_of(handle_ptr, rank, max_slots, TOP_K)
    for window in range(channel, tl.cdiv(dispatched, WINDOW), channels):
        token = dl.wait(arrived_ptr, WORLD, "sys", "acquire", waitValue=taken + 1, compare="ge")
        sums_ptr = dl.consume_token(ring_ptr + taken % SLOTS_OF_RING * WINDOW * stride, token)
        for i in range(0, min(min(dispatched, tokens) - window * WINDOW, WINDOW)):
            own = window * WINDOW + i
            target = tl.load(targets_ptr + own * TOP_K + slot, mask=slot < TOP_K, other=-1)
            went = tl.cast(0, tl.int64)
            for peer in tl.static_range(WORLD):
                went |= tl.max((target == peer).to(tl.int64), axis=0) << peer
            for begin in range(0, hidden, CHUNK):
                total = tl.zeros((CHUNK,), tl.float32)
                for peer in tl.static_range(WORLD):
                    if ((went >> peer) & 1) != 0:
                        values = tl.load(sums_ptr + (peer * SLOTS_OF_RING * WINDOW + i) * stride + begin + lanes, mask=lanes < hidden - begin,
                                         other=0.0)
                        total += values.to(tl.float32)
                tl.store(out_ptr + own * hidden + begin + lanes, total.to(out_ptr.dtype.element_ty), mask=lanes < hidden - begin)
        taken += 1
        tell(freed_ptr, rank, taken, WORLD)
    __syncthreads()
    if tid(0) == 0:
        st(windows_ptr + channel, taken)


@triton.jit(do_not_specialize=["tokens", "max_rows", "max_slots", "rank"], do_not_specialize_on_alignment=["handle_ptr"])
def combine_by_channels(rows_ptr, out_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, returned_ptr, tokens, hidden, stride,
                        max_rows, max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, WINDOW: tl.constexpr,
                        CHUNK: tl.constexpr):
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
                    max_rows, max_slots, rank, WORLD, TOP_K, SLOTS, WINDOW, CHUNK)
    else:
        add_sums(out_ptr, handle_ptr, ring_ptr, arrived_ptr, freed_ptr, windows_ptr, channel, channels, tokens, hidden, stride, max_slots, rank,
                 WORLD, TOP_K, SLOTS, WINDOW, CHUNK)
