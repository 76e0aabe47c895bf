"""Expert parallelism for few tokens: each row goes straight to the ranks of its experts, and each result straight back.

Rank r has the experts [r * LOCAL, (r + 1) * LOCAL). A *slot* is one choice of one token (kernels/moe/routing.py). A slot whose expert is
none of [0, experts) has no row, nor has one that is not among the first `capacity` slots of its expert on its rank.

**Dispatch.** A token's row is stored once in the memory of each rank that has experts of it, at [source][token]. Beside it, of each slot, its
*origin*, which slot it is, at [expert there][source][place], where the place is the number of slots before it that have the same expert: known without
asking anybody. The last block of the sender to arrive tells each receiver how many slots each of its experts has: one word [expert there][source]
with the number of the call above the count. The receiver has waited for all words when it knows where each row goes in the result: by expert,
then by source, then by slot.

**Combine.** The result of a row is stored at [slot] in the memory of the rank that it came from; the last block to arrive says so to all
ranks. Who has heard from all adds the slots of each token, in their order.

**Why no row is overwritten too early.** There are two sets of memory, used in turns. A rank that sends call g + 2 has received call g + 1, so
that all ranks have sent that, and a rank sends g + 1 when it has copied out all that came in g. Every rank tells every other one in every
call, even that it has nothing for it.

**Between nodes** there are no stores: rows are put, and each block waits with its arrival until its puts have arrived (quiet), so that the
words that the last one sends come behind all of them. A row that is made on the way, as fp8, is put from `staged`, memory of the block.

Blocks read the number of the call in a word of their own, sent_ptr[block] or received_ptr[block], and count it up there.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, ld, num_threads, st, tid

from ..collectives.pairs import report
from ..moe.block_scales import SCALED, quantize, scaled_lanes

# What report() says (ditron/ops/collectives/TransferReport.cpp).
DROPS_SLOTS = tl.constexpr(6)
DROPS_ROWS = tl.constexpr(7)

# The handle that dispatch leaves for combine, of 32-bit words: in the first the number of rows that came, which may be more than are kept;
# from here on of each slot its place or -1, then of each slot its weight, then of each row that came where from: source * max_slots + slot.
HANDLE_BEGIN = tl.constexpr(16)


@triton.jit
def is_last_block(arrivals_ptr, call):
    """Whether all other blocks of the call have been here; what they stored is then visible to this one, and to whom it tells."""
    return tl.atomic_add(arrivals_ptr, 1, sem="acq_rel", scope="gpu") + 1 == call * tl.num_programs(0)


@triton.jit
def is_here(peer, rank, NODE_SIZE: tl.constexpr):
    """Whether the rank is on this one's node, of NODE_SIZE ranks."""
    return peer // NODE_SIZE == rank // NODE_SIZE


@triton.jit
def end_of_puts(NODE_SIZE: tl.constexpr, WORLD: tl.constexpr):
    """What this block has put is at its place when all of its threads have been here."""
    if NODE_SIZE < WORLD:
        __syncthreads()
        if tid(0) == 0:
            libshmem_device.quiet()
        __syncthreads()


@triton.jit
def raise_word(word_ptr, value, peer, rank, NODE_SIZE: tl.constexpr, WORLD: tl.constexpr):
    """By any thread: the peer's word becomes the value, behind all that has arrived or is visible to this thread."""
    if NODE_SIZE == WORLD:
        st(dl.symm_at(word_ptr, peer), value, scope="sys", semantic="release")
    elif is_here(peer, rank, NODE_SIZE):
        st(dl.symm_at(word_ptr, peer), value, scope="sys", semantic="release")
    else:
        libshmem_device.signal_op(word_ptr, value, libshmem_device.NVSHMEM_SIGNAL_SET, peer)


@triton.jit
def count_slots_of(ids_ptr, expert, slots, SCAN: tl.constexpr):
    lanes = tl.arange(0, SCAN)
    found = tl.zeros((SCAN,), tl.int32)
    for first in range(0, slots, SCAN):
        ids = tl.load(ids_ptr + first + lanes, mask=lanes < slots - first, other=-1)
        found += (ids == expert).to(tl.int32)
    return tl.sum(found, axis=0)


@triton.jit
def place_token(ids_ptr, weights_ptr, places_ptr, max_slots, token, experts, capacity, TOP_K: tl.constexpr, SLOTS: tl.constexpr,
                SCAN: tl.constexpr):
    """Places and weights of a token's slots. All threads see them when it ends."""
    slot = tl.arange(0, SLOTS)
    lanes = tl.arange(0, SCAN)
    first = token * TOP_K
    is_slot = slot < TOP_K
    own = tl.load(ids_ptr + first + slot, mask=is_slot, other=-1)
    earlier = tl.zeros((SLOTS, SCAN), tl.int32)
    for begin in range(0, first + TOP_K, SCAN):
        other = begin + lanes
        ids = tl.load(ids_ptr + other, mask=other < first + TOP_K, other=-1)
        earlier += ((ids[None, :] == own[:, None]) & (other[None, :] < first + slot[:, None])).to(tl.int32)
    place = tl.sum(earlier, axis=1)
    has_row = (own >= 0) & (own < experts) & (place < capacity)
    tl.store(places_ptr + first + slot, tl.where(has_row, place, -1), mask=is_slot)
    weight = tl.full((SLOTS,), 1.0, tl.float32)
    if weights_ptr is not None:
        weight = tl.load(weights_ptr + first + slot, mask=is_slot, other=0.0)
    tl.store(places_ptr + max_slots + first + slot, weight.to(tl.int32, bitcast=True), mask=is_slot)
    __syncthreads()


@triton.jit
def scales_at(scales_ptr, row, hidden):
    """Those of a row, or None where there are none."""
    if scales_ptr is not None:
        return scales_ptr + row * tl.cdiv(hidden, SCALED)
    else:
        return None


@triton.jit
def targets_of(ids_ptr, places_ptr, source, local, capacity, WORLD: tl.constexpr, TOP_K: tl.constexpr):
    """Of the slots of a source's token, whose experts and places begin at the pointers: the rank of the expert, -1 if it has no row; where the origin
    lies there; and whether the row goes to that rank with this slot, the first that is there."""
    # All of them before the rows: the latency of memory is paid once.
    targets = ()
    origins = ()
    for j in tl.static_range(TOP_K):
        place = tl.load(places_ptr + j)
        expert = tl.load(ids_ptr + j)
        targets = targets + (tl.where(place >= 0, expert // local, -1),)
        origins = origins + (((expert % local) * WORLD + source).to(tl.int64) * capacity + place,)
    takes_row = ()
    for j in tl.static_range(TOP_K):
        is_first = targets[j] >= 0
        for i in tl.static_range(j):
            is_first = is_first & (targets[i] != targets[j])
        takes_row = takes_row + (is_first,)
    return targets, origins, takes_row


@triton.jit
def store_origins(origins_ptr, targets, origins, first, rank, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr):
    """Of the slots from `first` on, to the ranks of this node."""
    for j in tl.static_range(TOP_K):
        if (targets[j] >= 0) & is_here(targets[j], rank, NODE_SIZE):
            tl.store(dl.symm_at(origins_ptr, targets[j]) + origins[j], (first + j).to(tl.int32))


@triton.jit
def store_part(row, scale, slots_ptr, scales_ptr, targets, takes_row, begin, lanes, hidden, rank, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr,
               CHUNK: tl.constexpr):
    """CHUNK elements of a row from `begin` on and, where there are some, their scales, to the ranks of this node that take it. slots_ptr, scales_ptr:
    where the row lies on each of them."""
    blocks = tl.arange(0, CHUNK // SCALED)
    for j in tl.static_range(TOP_K):
        if takes_row[j] & is_here(targets[j], rank, NODE_SIZE):
            tl.store(dl.symm_at(slots_ptr, targets[j]) + begin + lanes, row, mask=lanes < hidden - begin)
            if scales_ptr is not None:
                tl.store(dl.symm_at(scales_ptr, targets[j]) + begin // SCALED + blocks, scale, mask=blocks < tl.cdiv(hidden, SCALED) - begin // SCALED)


@triton.jit
def store_token(x_ptr, slots_ptr, scales_ptr, staged_ptr, staged_scales_ptr, targets, takes_row, hidden, rank, NODE_SIZE: tl.constexpr,
                TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    """The row x_ptr [hidden], narrow where there are scales, to the ranks of this node that take it, and to staged_ptr unless that is None."""
    scales = tl.cdiv(hidden, SCALED)
    for begin in range(0, hidden, CHUNK):
        if scales_ptr is not None:
            blocks = tl.arange(0, CHUNK // SCALED)
            lanes = scaled_lanes(CHUNK)
            row, scale = quantize(x_ptr + begin, hidden - begin, slots_ptr.dtype.element_ty, CHUNK)
            if staged_ptr is not None:
                tl.store(staged_scales_ptr + begin // SCALED + blocks, scale, mask=blocks < scales - begin // SCALED)
        else:
            lanes = tl.arange(0, CHUNK)
            row = tl.load(x_ptr + begin + lanes, mask=lanes < hidden - begin)
            scale = None
        if staged_ptr is not None:
            tl.store(staged_ptr + begin + lanes, row, mask=lanes < hidden - begin)
        store_part(row, scale, slots_ptr, scales_ptr, targets, takes_row, begin, lanes, hidden, rank, NODE_SIZE, TOP_K, CHUNK)


@triton.jit
def send_token(x_ptr, ids_ptr, places_ptr, slots_ptr, scales_ptr, origins_ptr, staged_ptr, staged_scales_ptr, first, hidden, local, capacity, rank,
               WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    """The row x_ptr [hidden] of the token whose first slot is `first`, to the ranks of all experts that it has chosen. slots_ptr, scales_ptr: where it lies
    on each of them; origins_ptr: that of this call's set; staged_ptr, staged_scales_ptr: those of the block."""
    targets, origins, takes_row = targets_of(ids_ptr + first, places_ptr + first, rank, local, capacity, WORLD, TOP_K)
    store_origins(origins_ptr, targets, origins, first, rank, NODE_SIZE, TOP_K)
    store_token(x_ptr, slots_ptr, scales_ptr, staged_ptr, staged_scales_ptr, targets, takes_row, hidden, rank, NODE_SIZE, TOP_K, CHUNK)
    if NODE_SIZE < WORLD:
        row_bytes = hidden * (slots_ptr.dtype.element_ty.primitive_bitwidth // 8)
        for j in tl.static_range(TOP_K):
            if (targets[j] >= 0) & (not is_here(targets[j], rank, NODE_SIZE)):
                if takes_row[j]:
                    if scales_ptr is not None:
                        libshmem_device.putmem_block(slots_ptr, staged_ptr, row_bytes, targets[j])
                        libshmem_device.putmem_block(scales_ptr, staged_scales_ptr, tl.cdiv(hidden, SCALED) * 4, targets[j])
                    else:
                        libshmem_device.putmem_block(slots_ptr, x_ptr, row_bytes, targets[j])
                if tid(0) == 0:
                    libshmem_device.int_p(origins_ptr + origins[j], (first + j).to(tl.int32), targets[j])


@triton.jit
def send_tokens(x_ptr, ids_ptr, weights_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, staged_ptr, staged_scales_ptr, counts_ptr,
                sent_ptr, arrivals_ptr, error_ptr, tokens, hidden, stride, experts, capacity, max_slots, rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr,
                TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr, SCAN: tl.constexpr):
    block = tl.cast(tl.program_id(0), tl.int64)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    call = tl.load(sent_ptr + block) + 1
    set = call % 2
    local = experts // WORLD
    slots = tokens * TOP_K
    for expert in range(block, experts, blocks):
        count = count_slots_of(ids_ptr, expert.to(tl.int32), slots, SCAN)
        tl.store(counts_ptr + expert, min(count.to(tl.int64), capacity))
        if (count > capacity) & (tid(0) == 0):
            report(error_ptr, DROPS_SLOTS, expert, count.to(tl.int64), capacity)
    origins_ptr += set * experts * capacity
    rows = (set * WORLD + rank) * (max_slots // TOP_K)
    if staged_ptr is not None:
        staged_ptr += block * stride
        staged_scales_ptr += block * tl.cdiv(hidden, SCALED)
    for own in range(block, tokens, blocks):
        place_token(ids_ptr, weights_ptr, handle_ptr + HANDLE_BEGIN, max_slots, own, experts, capacity, TOP_K, SLOTS, SCAN)
        send_token(x_ptr + own * hidden, ids_ptr, handle_ptr + HANDLE_BEGIN, slots_ptr + (rows + own) * stride, scales_at(scales_ptr, rows + own, hidden),
                   origins_ptr, staged_ptr, staged_scales_ptr, own * TOP_K, hidden, local, capacity, rank, WORLD, NODE_SIZE, TOP_K, CHUNK)
    end_of_puts(NODE_SIZE, WORLD)
    if is_last_block(arrivals_ptr, call):
        for expert in range(tid(0), experts, num_threads()):
            word_ptr = words_ptr + (set * local + expert % local) * WORLD + rank
            raise_word(word_ptr, (call << 32) | ld(counts_ptr + expert), expert // local, rank, NODE_SIZE, WORLD)
    if tid(0) == 0:
        st(sent_ptr + block, call)


@triton.jit
def copy_rows(to_ptr, to_starts, from_ptr, from_starts, is_row, elements, CHUNK: tl.constexpr):
    """Rows, together, CHUNK elements of each at a time."""
    lanes = tl.arange(0, CHUNK)
    for begin in range(0, elements, CHUNK):
        mask = is_row[:, None] & (lanes < elements - begin)[None, :]
        values = tl.load(from_ptr + (from_starts + begin)[:, None] + lanes[None, :], mask=mask)
        tl.store(to_ptr + (to_starts + begin)[:, None] + lanes[None, :], values, mask=mask)


@triton.jit
def count_rows(words_ptr, offsets_ptr, handle_ptr, error_ptr, tells, experts, max_rows, rank, WORLD: tl.constexpr, EXPERTS: tl.constexpr):
    """From words_ptr [LOCAL, WORLD], all there: the rows of each segment, where they end, and how many there are. A segment is what an expert has from
    a source; there are as many as experts on all ranks. The block that `tells` leaves what others want to know of it."""
    segment = tl.arange(0, EXPERTS)
    words = tl.load(words_ptr + segment, mask=segment < experts, other=0)
    counts = (words & 0xFFFFFFFF).to(tl.int32)
    ends = tl.cumsum(counts, axis=0)
    total = tl.sum(counts, axis=0)
    if tells:
        tl.store(offsets_ptr + 1 + segment // WORLD, tl.minimum(ends, max_rows).to(tl.int32), mask=(segment < experts) & (segment % WORLD == WORLD - 1))
        tl.store(offsets_ptr, 0)
        tl.store(handle_ptr, total)
        if (total > max_rows) & (tid(0) == 0):
            report(error_ptr, DROPS_ROWS, rank, total.to(tl.int64), max_rows)
    return counts, ends, total


@triton.jit
def receive_tokens(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, received_ptr,
                   error_ptr, hidden, stride, experts, capacity, max_rows, max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr,
                   EXPERTS: tl.constexpr, ROWS: tl.constexpr, ROW_CHUNK: tl.constexpr):
    block = tl.cast(tl.program_id(0), tl.int64)
    call = tl.load(received_ptr + block) + 1
    set = call % 2
    token = dl.wait(words_ptr + set * experts, experts, "sys", "acquire", waitValue=call << 32, compare="ge")
    words_ptr = dl.consume_token(words_ptr + set * experts, token)
    slots_ptr = dl.consume_token(slots_ptr, token)
    origins_ptr = dl.consume_token(origins_ptr, token)
    if scales_ptr is not None:
        scales_ptr = dl.consume_token(scales_ptr, token)
    segment = tl.arange(0, EXPERTS)
    counts, ends, total = count_rows(words_ptr, offsets_ptr, handle_ptr, error_ptr, block == 0, experts, max_rows, rank, WORLD, EXPERTS)
    origin_ptr = handle_ptr + HANDLE_BEGIN + 2 * max_slots
    for first in range(tl.program_id(0) * ROWS, total, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        is_row = row < total
        own = tl.sum((ends[None, :] <= row[:, None]).to(tl.int32), axis=1)
        begin = tl.sum(tl.where(segment[None, :] < own[:, None], counts[None, :], 0), axis=1)
        source = own % WORLD
        slot = tl.load(origins_ptr + (set * experts + own) * capacity + (row - begin), mask=is_row, other=0)
        tl.store(origin_ptr + row, slot + source * tl.cast(max_slots, tl.int32), mask=is_row)
        at = (set * WORLD + source) * (max_slots // TOP_K) + slot // TOP_K
        is_kept = is_row & (row < max_rows)
        number = row.to(tl.int64)
        copy_rows(rows_ptr, number * hidden, slots_ptr, at * stride, is_kept, hidden, ROW_CHUNK)
        if scales_ptr is not None:
            scales = tl.cdiv(hidden, SCALED)
            copy_rows(row_scales_ptr, number * scales, scales_ptr, at * scales, is_kept, scales, ROW_CHUNK // SCALED)
    if tid(0) == 0:
        st(received_ptr + block, call)


@triton.jit(do_not_specialize=["tokens", "experts", "capacity", "max_rows", "max_slots", "rank"],
            do_not_specialize_on_alignment=["ids_ptr", "weights_ptr", "offsets_ptr", "handle_ptr"])
def dispatch(x_ptr, ids_ptr, weights_ptr, rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr,
             staged_ptr, staged_scales_ptr, counts_ptr, sent_ptr, received_ptr, arrivals_ptr, error_ptr, tokens, hidden, stride, experts, capacity,
             max_rows, max_slots, rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr, CHUNK: tl.constexpr,
             SCAN: tl.constexpr, ROWS: tl.constexpr, ROW_CHUNK: tl.constexpr, SEND: tl.constexpr, RECEIVE: tl.constexpr):
    """SEND: x_ptr [tokens, hidden] goes to the ranks of the experts ids_ptr [tokens, TOP_K] int32, weights_ptr (or None: ones) of the same
    shape to the handle. RECEIVE: rows_ptr [max_rows, hidden] becomes what came, row_scales_ptr [max_rows, ceil(hidden / SCALED)] its scales
    where there are some, offsets_ptr [LOCAL + 1] where each expert's rows begin.

    Symmetric: slots_ptr [2, WORLD, max_slots / TOP_K, stride], scales_ptr [2, WORLD, max_slots / TOP_K, ceil(hidden / SCALED)] (or None: rows
    go as they are), origins_ptr [2, LOCAL, WORLD, capacity], words_ptr [2, LOCAL, WORLD]. Of the rank: counts_ptr
    [experts]; sent_ptr, received_ptr [blocks]; arrivals_ptr [1]; error_ptr [4], see report(); where there are several nodes and scales, else
    None, staged_ptr [blocks, stride], staged_scales_ptr [blocks, ceil(hidden / SCALED)]. With SEND and RECEIVE all blocks must find a
    place at once, since those of all ranks wait for each other. SLOTS and EXPERTS are powers of two, no less than TOP_K and experts. A sender moves
    a token CHUNK elements at a time, a receiver ROWS rows, ROW_CHUNK elements of each.
    """
    if SEND:
        send_tokens(x_ptr, ids_ptr, weights_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, staged_ptr, staged_scales_ptr,
                    counts_ptr, sent_ptr, arrivals_ptr, error_ptr, tokens, hidden, stride, experts, capacity, max_slots, rank, WORLD, NODE_SIZE, TOP_K,
                    SLOTS, CHUNK, SCAN)
    if RECEIVE:
        receive_tokens(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr,
                       received_ptr, error_ptr, hidden, stride, experts, capacity, max_rows, max_slots, rank, WORLD, TOP_K, EXPERTS, ROWS,
                       ROW_CHUNK)


@triton.jit
def return_rows(rows_ptr, handle_ptr, slots_ptr, words_ptr, zeros_ptr, sent_ptr, arrivals_ptr, hidden, stride, max_rows, most_rows, max_slots,
                rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, ROWS: tl.constexpr, ROW_CHUNK: tl.constexpr):
    block = tl.cast(tl.program_id(0), tl.int64)
    call = tl.load(sent_ptr + block) + 1
    slots_ptr += call % 2 * max_slots * stride
    lanes = tl.arange(0, ROW_CHUNK)
    # A handle that dispatch has not filled must not become an address.
    total = min(tl.load(handle_ptr).to(tl.int64), most_rows)
    origins_ptr = handle_ptr + HANDLE_BEGIN + 2 * max_slots
    for first in range(block * ROWS, total, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        origin = tl.load(origins_ptr + row, mask=row < total, other=-1).to(tl.int64)
        is_origin = (origin >= 0) & (origin < WORLD * max_slots)
        target = tl.where(is_origin, origin // max_slots, -1)
        to = tl.where(is_origin, origin % max_slots, 0) * stride
        for begin in range(0, hidden, ROW_CHUNK):
            is_lane = (lanes < hidden - begin)[None, :]
            # Rows that dispatch had no place for add nothing.
            values = tl.load(rows_ptr + (row * hidden + begin)[:, None] + lanes[None, :], mask=(is_origin & (row < max_rows))[:, None] & is_lane, other=0)
            for peer in tl.static_range(WORLD):
                if is_here(peer, rank, NODE_SIZE):
                    tl.store(dl.symm_at(slots_ptr, peer) + (to + begin)[:, None] + lanes[None, :], values, mask=(target == peer)[:, None] & is_lane)
        if NODE_SIZE < WORLD:
            for other in range(first, min(first + ROWS, total)):
                origin_there = tl.load(origins_ptr + other).to(tl.int64)
                target_there = (origin_there // max_slots).to(tl.int32)
                if (origin_there >= 0) & (origin_there < WORLD * max_slots) & (not is_here(target_there, rank, NODE_SIZE)):
                    from_ptr = zeros_ptr
                    if other < max_rows:
                        from_ptr = rows_ptr + other * hidden
                    libshmem_device.putmem_block(slots_ptr + origin_there % max_slots * stride, from_ptr,
                                                 hidden * (rows_ptr.dtype.element_ty.primitive_bitwidth // 8), target_there)
    end_of_puts(NODE_SIZE, WORLD)
    if is_last_block(arrivals_ptr, call):
        for peer in range(tid(0), WORLD, num_threads()):
            raise_word(words_ptr + rank, call, peer, rank, NODE_SIZE, WORLD)
    if tid(0) == 0:
        st(sent_ptr + block, call)


@triton.jit
def add_slots(out_ptr, addend_ptr, handle_ptr, slots_ptr, words_ptr, received_ptr, tokens, hidden, stride, max_slots, rank,
              WORLD: tl.constexpr, TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    block = tl.cast(tl.program_id(0), tl.int64)
    call = tl.load(received_ptr + block) + 1
    token = dl.wait(words_ptr, WORLD, "sys", "acquire", waitValue=call, compare="ge")
    slots_ptr = dl.consume_token(slots_ptr + call % 2 * max_slots * stride, token)
    lanes = tl.arange(0, CHUNK)
    chunks = tl.cdiv(hidden, CHUNK)
    places_ptr = handle_ptr + HANDLE_BEGIN
    for part in range(block, tokens * chunks, tl.num_programs(0)):
        first = part // chunks * TOP_K
        begin = part % chunks * CHUNK
        weights = ()
        places = ()
        for j in tl.static_range(TOP_K):
            places = places + (tl.load(places_ptr + first + j),)
            weights = weights + (tl.load(places_ptr + max_slots + first + j).to(tl.float32, bitcast=True),)
        total = tl.zeros((CHUNK,), tl.float32)
        if addend_ptr is not None:
            total += tl.load(addend_ptr + part // chunks * hidden + begin + lanes, mask=lanes < hidden - begin, other=0.0).to(tl.float32)
        for j in tl.static_range(TOP_K):
            # No branch: all slots are on their way at the same time.
            has_row = places[j] >= 0
            values = tl.load(slots_ptr + (first + j) * stride + begin + lanes, mask=(lanes < hidden - begin) & has_row, other=0.0)
            total += tl.where(has_row, values.to(tl.float32) * weights[j], 0.0)
        tl.store(out_ptr + part // chunks * hidden + begin + lanes, total.to(out_ptr.dtype.element_ty), mask=lanes < hidden - begin)
    if tid(0) == 0:
        st(received_ptr + block, call)


@triton.jit(do_not_specialize=["tokens", "max_rows", "most_rows", "max_slots", "rank"], do_not_specialize_on_alignment=["handle_ptr"])
def combine(rows_ptr, out_ptr, handle_ptr, slots_ptr, words_ptr, zeros_ptr, sent_ptr, received_ptr, arrivals_ptr, tokens, hidden, stride,
            max_rows, most_rows, max_slots, rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, CHUNK: tl.constexpr,
            ROWS: tl.constexpr, ROW_CHUNK: tl.constexpr, SEND: tl.constexpr, RECEIVE: tl.constexpr, addend_ptr=None):
    """SEND: rows_ptr [max_rows, hidden], laid out as dispatch's rows, go back to where those came from. RECEIVE: out_ptr [tokens, hidden]
    becomes the sum of addend_ptr, of the same shape or None, and each token's slots, each times its weight, in fp32 and in this order.

    Symmetric: slots_ptr [2, max_slots, stride], words_ptr [WORLD]; the rest as for dispatch; zeros_ptr [hidden], zeros, where there are several nodes. most_rows: that a handle has words for.
    """
    if SEND:
        return_rows(rows_ptr, handle_ptr, slots_ptr, words_ptr, zeros_ptr, sent_ptr, arrivals_ptr, hidden, stride, max_rows, most_rows, max_slots,
                    rank, WORLD, NODE_SIZE, ROWS, ROW_CHUNK)
    if RECEIVE:
        add_slots(out_ptr, addend_ptr, handle_ptr, slots_ptr, words_ptr, received_ptr, tokens, hidden, stride, max_slots, rank, WORLD, TOP_K,
                  CHUNK)
