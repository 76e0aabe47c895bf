"""Expert parallelism between nodes: a token goes over the wire to a node once, however many of its experts are there, and one sum comes back.

Slots, places, experts of a rank, sets of memory and what is dropped: low_latency.py. A node has NODE_SIZE ranks; rank = node * NODE_SIZE +
place. Between nodes only ranks with the same place talk to each other, by puts with signal, which may overtake each other; all else is stores.

**Dispatch.** For experts on the own node a token is stored as in low_latency.py. For each other node that has experts of it, it is put, as one
*record*, into the inbox of the rank with the sender's place there: its row, its scales, then of each slot expert, place and weight, and its number. Records
lie in an inbox in the order in which the sender's blocks came; where rows go stands in the record, so that this order decides nothing. At the end the
sender puts how many rows each expert of that node gets, and, as the signal, how many records there are. Whoever has an inbox *forwards*: stores each row once to each
rank of its experts on the node, as the sender would, and tells these the counts in the sender's name. So a receiver sees no difference, and is low_latency's.

**Combine.** Results of tokens of the own node are stored there, those of others at the rank that had forwarded them. That rank adds the slots
of a token, times the weights that came with it, in fp32 in their order, and puts the sum, rounded, to the token's rank, which adds the nodes in their order; the own
node's slots it adds in fp32, not rounded.

**Why nothing is overwritten too early.** Every rank tells every other one in every call of a dispatch, itself or by a forwarder. A rank that sends or forwards call g + 2
has received g + 1, so that all ranks have sent g + 1, and are done with all of g. In a combine the ranks of a node tell each other, and those of a
place: a rank that stores results of call g + 2 has heard in g + 1 from its node, and one that puts sums has heard in g + 1 from those of its place.
Words that other nodes raise are of a set for the same reason: what is put in call g + 1 may overtake what was put in g.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, ld, num_threads, st, tid

from ..collectives.pairs import report
from ..moe.block_scales import SCALED
from .low_latency import (DROPS_SLOTS, HANDLE_BEGIN, count_slots_of, is_last_block, place_token, receive_tokens, scales_at, store_origins, store_part,
                          store_token, targets_of)

# The handle has places, weights and origins as low_latency.py's; behind them [max_slots] the node of each slot's expert or -1, then of the inbox of
# each node: [NODES] how many records there were, [NODES, max_tokens] their tokens, [NODES, max_slots] the weights of their slots, and whether those are of this node.


@triton.jit
def begin_of_nodes(max_slots, most_rows):
    """Where in a handle the nodes of the slots begin."""
    return HANDLE_BEGIN + 2 * max_slots + most_rows


@triton.jit
def row_of_record(record_ptr, keys, hidden, element: tl.constexpr):
    """Row and scales of a record. keys: words of it before those of its slots."""
    return (tl.cast(record_ptr, tl.pointer_type(element)), tl.cast(record_ptr + (keys - tl.cdiv(hidden, SCALED)), tl.pointer_type(tl.float32)))


@triton.jit
def record_token(x_ptr, ids_ptr, places_ptr, record_ptr, slots_ptr, scales_ptr, origins_ptr, first, hidden, keys, local, capacity, max_slots, rank,
                 WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr):
    """The row x_ptr [hidden] of the token whose first slot is `first` to the own node's ranks that it has chosen, and into a record. slots_ptr,
    scales_ptr: where it lies on each of them."""
    row_ptr, row_scales_ptr = row_of_record(record_ptr, keys, hidden, slots_ptr.dtype.element_ty)
    targets, origins, takes_row = targets_of(ids_ptr + first, places_ptr + first, rank, local, capacity, WORLD, TOP_K)
    store_origins(origins_ptr, targets, origins, first, rank, NODE_SIZE, TOP_K)
    store_token(x_ptr, slots_ptr, scales_ptr, row_ptr, row_scales_ptr, targets, takes_row, hidden, rank, NODE_SIZE, TOP_K, CHUNK)
    slot = tl.arange(0, SLOTS)
    is_slot = slot < TOP_K
    keys_ptr = record_ptr + keys
    tl.store(keys_ptr + slot, tl.load(ids_ptr + first + slot, mask=is_slot, other=0), mask=is_slot)
    tl.store(keys_ptr + TOP_K + slot, tl.load(places_ptr + first + slot, mask=is_slot, other=-1), mask=is_slot)
    tl.store(keys_ptr + 2 * TOP_K + slot, tl.load(places_ptr + max_slots + first + slot, mask=is_slot, other=0), mask=is_slot)
    tl.store(keys_ptr + 3 * TOP_K, (first // TOP_K).to(tl.int32))


@triton.jit
def send_records(x_ptr, ids_ptr, weights_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, record_ptr, inbox_ptr, signals_ptr, counts_in_ptr,
                 told_ptr, counts_ptr, records_ptr, sent_ptr, arrivals_ptr, error_ptr, tokens, hidden, stride, record_words, keys, experts, capacity,
                 max_slots, most_rows, rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr,
                 CHUNK: tl.constexpr, SCAN: tl.constexpr):
    NODES: tl.constexpr = WORLD // NODE_SIZE
    block = tl.cast(tl.program_id(0), tl.int64)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    call = tl.load(sent_ptr + block) + 1
    set = call % 2
    local = experts // WORLD
    node = rank // NODE_SIZE
    max_tokens = max_slots // TOP_K
    for expert in range(block, experts, blocks):
        count = count_slots_of(ids_ptr, expert.to(tl.int32), tokens * TOP_K, SCAN)
        tl.store(counts_ptr + expert, min(count.to(tl.int64), capacity))
        if (count > capacity) & (tid(0) == 0):
            report(error_ptr, DROPS_SLOTS, expert, count.to(tl.int64), capacity)
    origins_ptr += set * experts * capacity
    rows = (set * WORLD + rank) * max_tokens
    record_ptr += block * record_words
    places_ptr = handle_ptr + HANDLE_BEGIN
    nodes_ptr = handle_ptr + begin_of_nodes(max_slots, most_rows)
    slot = tl.arange(0, SLOTS)
    inbox = (set * NODES + node) * max_tokens
    for own in range(block, tokens, blocks):
        first = own * TOP_K
        place_token(ids_ptr, weights_ptr, places_ptr, max_slots, own, experts, capacity, TOP_K, SLOTS, SCAN)
        record_token(x_ptr + own * hidden, ids_ptr, places_ptr, record_ptr, slots_ptr + (rows + own) * stride, scales_at(scales_ptr, rows + own, hidden),
                     origins_ptr, first, hidden, keys, local, capacity, max_slots, rank, WORLD, NODE_SIZE, TOP_K, SLOTS, CHUNK)
        places = tl.load(places_ptr + first + slot, mask=slot < TOP_K, other=-1)
        nodes = tl.load(ids_ptr + first + slot, mask=slot < TOP_K, other=0) // local // NODE_SIZE
        nodes = tl.where(places >= 0, nodes, -1)
        tl.store(nodes_ptr + first + slot, nodes, mask=slot < TOP_K)
        for distance in range(1, NODES):
            target = (node + distance) % NODES
            if tl.max((nodes == target).to(tl.int32), axis=0) > 0:
                at = inbox + tl.atomic_add(records_ptr + target, 1, sem="relaxed", scope="gpu")
                libshmem_device.putmem_signal_block(inbox_ptr + at * record_words, record_ptr, record_words * 4, signals_ptr + at, call,
                                                    libshmem_device.NVSHMEM_SIGNAL_SET, target * NODE_SIZE + rank % NODE_SIZE)
        # The next token's record is not begun before all threads have sent this one's.
        __syncthreads()
    if is_last_block(arrivals_ptr, call):
        of_node = NODE_SIZE * local
        for i in range(tid(0), of_node, num_threads()):
            own_expert = node * of_node + i
            st(dl.symm_at(words_ptr + (set * local + own_expert % local) * WORLD + rank, own_expert // local),
               (call << 32) | ld(counts_ptr + own_expert), scope="sys", semantic="release")
        for distance in range(1, NODES):
            target = (node + distance) % NODES
            records = tl.load(records_ptr + target)
            libshmem_device.putmem_signal_block(counts_in_ptr + (set * NODES + node) * of_node, counts_ptr + target * of_node, of_node * 8,
                                                told_ptr + set * NODES + node, (call << 32) | records, libshmem_device.NVSHMEM_SIGNAL_SET,
                                                target * NODE_SIZE + rank % NODE_SIZE)
            tl.store(records_ptr + target, 0)
    if tid(0) == 0:
        st(sent_ptr + block, call)


@triton.jit
def forward_record(record_ptr, slots_ptr, scales_ptr, origins_ptr, tokens_ptr, weights_ptr, item, source, rows, hidden, stride, keys, local, capacity,
                   rank, has_slots, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr):
    """One record of an inbox to the ranks of this node. rows: where those of the source begin, counted in rows; tokens_ptr, weights_ptr: the handle's of that
    inbox; has_slots words behind the latter stands which slots are of this node."""
    row_ptr, row_scales_ptr = row_of_record(record_ptr, keys, hidden, slots_ptr.dtype.element_ty)
    keys_ptr = record_ptr + keys
    token = tl.load(keys_ptr + 3 * TOP_K)
    slot = tl.arange(0, SLOTS)
    is_slot = slot < TOP_K
    experts = tl.load(keys_ptr + slot, mask=is_slot, other=0)
    places = tl.load(keys_ptr + TOP_K + slot, mask=is_slot, other=-1)
    is_own = (places >= 0) & (experts // local // NODE_SIZE == rank // NODE_SIZE)
    tl.store(tokens_ptr + item, token)
    kept_ptr = weights_ptr + item * TOP_K
    tl.store(kept_ptr + slot, tl.load(keys_ptr + 2 * TOP_K + slot, mask=is_slot, other=0), mask=is_slot)
    tl.store(kept_ptr + has_slots + slot, is_own.to(tl.int32), mask=is_slot)
    targets, origins, takes_row = targets_of(keys_ptr, keys_ptr + TOP_K, source, local, capacity, WORLD, TOP_K)
    store_origins(origins_ptr, targets, origins, token * TOP_K, rank, NODE_SIZE, TOP_K)
    slots_ptr += (rows + token) * stride
    scales_ptr = scales_at(scales_ptr, rows + token, hidden)
    lanes = tl.arange(0, CHUNK)
    blocks = tl.arange(0, CHUNK // SCALED)
    for begin in range(0, hidden, CHUNK):
        row = tl.load(row_ptr + begin + lanes, mask=lanes < hidden - begin)
        scale = None
        if scales_ptr is not None:
            scale = tl.load(row_scales_ptr + begin // SCALED + blocks, mask=blocks < tl.cdiv(hidden, SCALED) - begin // SCALED, other=0.0)
        store_part(row, scale, slots_ptr, scales_ptr, targets, takes_row, begin, lanes, hidden, rank, NODE_SIZE, TOP_K, CHUNK)


@triton.jit
def forward_records(handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, inbox_ptr, signals_ptr, counts_in_ptr, told_ptr, received_ptr,
                    arrivals_ptr, hidden, stride, record_words, keys, experts, capacity, max_slots, most_rows, rank, WORLD: tl.constexpr,
                    NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr):
    """arrivals_ptr: [NODES], of the blocks that are done with the inbox of each node."""
    NODES: tl.constexpr = WORLD // NODE_SIZE
    block = tl.cast(tl.program_id(0), tl.int64)
    call = tl.load(received_ptr + block) + 1
    set = call % 2
    local = experts // WORLD
    node = rank // NODE_SIZE
    max_tokens = max_slots // TOP_K
    origins_ptr += set * experts * capacity
    records_of_ptr = handle_ptr + begin_of_nodes(max_slots, most_rows) + max_slots
    tokens_ptr = records_of_ptr + NODES
    weights_ptr = tokens_ptr + NODES * max_tokens
    for distance in range(1, NODES):
        other = (node + NODES - distance) % NODES
        source = other * NODE_SIZE + rank % NODE_SIZE
        token = dl.wait(told_ptr + set * NODES + other, 1, "sys", "acquire", waitValue=call << 32, compare="ge")
        told = tl.load(dl.consume_token(told_ptr + set * NODES + other, token))
        records = told & 0xFFFFFFFF
        if block == 0:
            tl.store(records_of_ptr + other, records.to(tl.int32))
        for item in range(block, records, tl.num_programs(0)):
            at = (set * NODES + other) * max_tokens + item
            came = dl.wait(signals_ptr + at, 1, "sys", "acquire", waitValue=call, compare="ge")
            forward_record(dl.consume_token(inbox_ptr + at * record_words, came), slots_ptr, scales_ptr, origins_ptr, tokens_ptr + other * max_tokens,
                           weights_ptr + other * max_slots, item, source, (set * WORLD + source) * max_tokens, hidden, stride, keys, local, capacity, rank,
                           NODES * max_slots, WORLD, NODE_SIZE, TOP_K, SLOTS, CHUNK)
        if is_last_block(arrivals_ptr + other, call):
            of_node = NODE_SIZE * local
            for i in range(tid(0), of_node, num_threads()):
                expert = node * of_node + i
                count = ld(counts_in_ptr + (set * NODES + other) * of_node + i)
                st(dl.symm_at(words_ptr + (set * local + expert % local) * WORLD + source, expert // local), (call << 32) | count, scope="sys",
                   semantic="release")


@triton.jit(do_not_specialize=["tokens", "experts", "capacity", "max_rows", "max_slots", "most_rows", "rank"],
            do_not_specialize_on_alignment=["ids_ptr", "weights_ptr", "offsets_ptr", "handle_ptr"])
def dispatch_by_nodes(x_ptr, ids_ptr, weights_ptr, rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr,
                      record_ptr, inbox_ptr, signals_ptr, counts_in_ptr, told_ptr, counts_ptr, records_ptr, sent_ptr, received_ptr, arrivals_ptr,
                      error_ptr, tokens, hidden, stride, record_words, keys, experts, capacity, max_rows, max_slots, most_rows, rank,
                      WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr,
                      CHUNK: tl.constexpr, SCAN: tl.constexpr, ROWS: tl.constexpr, ROW_CHUNK: tl.constexpr, SEND: tl.constexpr, RECEIVE: tl.constexpr):
    """Operands as low_latency.py's dispatch has them. SEND waits for nobody; RECEIVE forwards, and then receives.

    Symmetric, besides low_latency's: inbox_ptr [2, NODES, max_tokens, record_words] int32, signals_ptr [2, NODES, max_tokens], counts_in_ptr [2, NODES, experts / NODES],
    told_ptr [2, NODES]. Of the rank: record_ptr [blocks, record_words]; counts_ptr [experts]; records_ptr [NODES], zeros between calls;
    sent_ptr, received_ptr [blocks]; arrivals_ptr [1 + NODES]; error_ptr [4]. Of a record `keys` words are the row and its scales.
    """
    if SEND:
        send_records(x_ptr, ids_ptr, weights_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, record_ptr, inbox_ptr, signals_ptr, counts_in_ptr,
                     told_ptr, counts_ptr, records_ptr, sent_ptr, arrivals_ptr, error_ptr, tokens, hidden, stride, record_words, keys, experts, capacity,
                     max_slots, most_rows, rank, WORLD, NODE_SIZE, TOP_K, SLOTS, CHUNK, SCAN)
    if RECEIVE:
        forward_records(handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, inbox_ptr, signals_ptr, counts_in_ptr, told_ptr, received_ptr,
                        arrivals_ptr + 1, hidden, stride, record_words, keys, experts, capacity, max_slots, most_rows, rank, WORLD, NODE_SIZE, TOP_K,
                        SLOTS, CHUNK)
        receive_tokens(rows_ptr, row_scales_ptr, offsets_ptr, handle_ptr, slots_ptr, scales_ptr, origins_ptr, words_ptr, received_ptr, error_ptr, hidden,
                       stride, experts, capacity, max_rows, max_slots, rank, WORLD, TOP_K, EXPERTS, ROWS, ROW_CHUNK)


@triton.jit
def store_results(rows_ptr, handle_ptr, slots_ptr, through_ptr, words_ptr, sent_ptr, arrivals_ptr, hidden, stride, max_rows, most_rows, max_slots, rank,
                  WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, CHUNK: tl.constexpr):
    """Of each row to the rank of its token, or, of another node's token, to the one that had forwarded it."""
    NODES: tl.constexpr = WORLD // NODE_SIZE
    block = tl.cast(tl.program_id(0), tl.int64)
    call = tl.load(sent_ptr + block) + 1
    set = call % 2
    node = rank // NODE_SIZE
    lanes = tl.arange(0, CHUNK)
    # A handle that dispatch has not filled must not become an address.
    total = min(tl.load(handle_ptr).to(tl.int64), most_rows)
    for row in range(block, total, tl.num_programs(0)):
        origin = tl.load(handle_ptr + HANDLE_BEGIN + 2 * max_slots + row).to(tl.int64)
        source = (origin // max_slots).to(tl.int32)
        slot = origin % max_slots
        if (origin >= 0) & (origin < WORLD * max_slots):
            target = node * NODE_SIZE + source % NODE_SIZE
            to_ptr = slots_ptr + (set * max_slots + slot) * stride
            if source // NODE_SIZE != node:
                to_ptr = through_ptr + ((set * NODES + source // NODE_SIZE) * max_slots + slot) * stride
            to_ptr = dl.symm_at(to_ptr, target)
            for begin in range(0, hidden, CHUNK):
                # Rows that dispatch had no place for add nothing.
                values = tl.load(rows_ptr + row * hidden + begin + lanes, mask=(lanes < hidden - begin) & (row < max_rows), other=0)
                tl.store(to_ptr + begin + lanes, values, mask=lanes < hidden - begin)
    if is_last_block(arrivals_ptr, call):
        for peer in range(tid(0), NODE_SIZE, num_threads()):
            st(dl.symm_at(words_ptr + rank % NODE_SIZE, node * NODE_SIZE + peer), call, scope="sys", semantic="release")
    if tid(0) == 0:
        st(sent_ptr + block, call)


@triton.jit
def send_sums(handle_ptr, through_ptr, sums_ptr, row_ptr, signals_ptr, heard_ptr, call, arrivals_ptr, hidden, stride, most_rows, max_slots, rank,
              WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    """Of each token that was forwarded the sum of this node, to its rank. row_ptr: memory of the block."""
    NODES: tl.constexpr = WORLD // NODE_SIZE
    block = tl.cast(tl.program_id(0), tl.int64)
    set = call % 2
    node = rank // NODE_SIZE
    max_tokens = max_slots // TOP_K
    lanes = tl.arange(0, CHUNK)
    records_of_ptr = handle_ptr + begin_of_nodes(max_slots, most_rows) + max_slots
    tokens_ptr = records_of_ptr + NODES
    weights_ptr = tokens_ptr + NODES * max_tokens
    for distance in range(1, NODES):
        other = (node + distance) % NODES
        source = other * NODE_SIZE + rank % NODE_SIZE
        records = min(max(tl.load(records_of_ptr + other).to(tl.int64), 0), max_tokens)
        for item in range(block, records, tl.num_programs(0)):
            token = min(max(tl.load(tokens_ptr + other * max_tokens + item).to(tl.int64), 0), max_tokens - 1)
            kept_ptr = weights_ptr + other * max_slots + item * TOP_K
            from_ptr = through_ptr + ((set * NODES + other) * max_slots + token * TOP_K) * stride
            for begin in range(0, hidden, CHUNK):
                total = tl.zeros((CHUNK,), tl.float32)
                for j in tl.static_range(TOP_K):
                    if tl.load(kept_ptr + NODES * max_slots + j) == 1:
                        weight = tl.load(kept_ptr + j).to(tl.float32, bitcast=True)
                        values = tl.load(from_ptr + j * stride + begin + lanes, mask=lanes < hidden - begin, other=0.0)
                        total += values.to(tl.float32) * weight
                tl.store(row_ptr + begin + lanes, total.to(row_ptr.dtype.element_ty), mask=lanes < hidden - begin)
            at = (set * NODES + node) * max_tokens + token
            libshmem_device.putmem_signal_block(sums_ptr + at * stride, row_ptr, hidden * (row_ptr.dtype.element_ty.primitive_bitwidth // 8),
                                                signals_ptr + at, call, libshmem_device.NVSHMEM_SIGNAL_SET, source)
            __syncthreads()
    if is_last_block(arrivals_ptr, call):
        for i in range(1 + tid(0), NODES, num_threads()):
            other = (node + i) % NODES
            libshmem_device.signal_op(heard_ptr + set * NODES + node, call, libshmem_device.NVSHMEM_SIGNAL_SET, other * NODE_SIZE + rank % NODE_SIZE)


@triton.jit
def add_nodes(out_ptr, addend_ptr, handle_ptr, slots_ptr, sums_ptr, signals_ptr, heard_ptr, call, tokens, hidden, stride, most_rows, max_slots, rank,
              WORLD: tl.constexpr, NODE_SIZE: tl.constexpr, TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr):
    NODES: tl.constexpr = WORLD // NODE_SIZE
    set = call % 2
    node = rank // NODE_SIZE
    max_tokens = max_slots // TOP_K
    lanes = tl.arange(0, CHUNK)
    slot = tl.arange(0, SLOTS)
    chunks = tl.cdiv(hidden, CHUNK)
    weights_ptr = handle_ptr + HANDLE_BEGIN + max_slots
    nodes_ptr = handle_ptr + begin_of_nodes(max_slots, most_rows)
    for part in range(tl.cast(tl.program_id(0), tl.int64), tokens * chunks, tl.num_programs(0)):
        token = part // chunks
        first = token * TOP_K
        begin = part % chunks * CHUNK
        nodes = tl.load(nodes_ptr + first + slot, mask=slot < TOP_K, other=-1)
        total = tl.zeros((CHUNK,), tl.float32)
        if addend_ptr is not None:
            total += tl.load(addend_ptr + token * hidden + begin + lanes, mask=lanes < hidden - begin, other=0.0).to(tl.float32)
        for each in range(NODES):
            if tl.max((nodes == each).to(tl.int32), axis=0) > 0:
                if each == node:
                    for j in tl.static_range(TOP_K):
                        if tl.load(nodes_ptr + first + j) == node:
                            weight = tl.load(weights_ptr + first + j).to(tl.float32, bitcast=True)
                            values = tl.load(slots_ptr + (set * max_slots + first + j) * stride + begin + lanes, mask=lanes < hidden - begin, other=0.0)
                            total += values.to(tl.float32) * weight
                else:
                    at = (set * NODES + each) * max_tokens + token
                    came = dl.wait(signals_ptr + at, 1, "sys", "acquire", waitValue=call, compare="ge")
                    values = tl.load(dl.consume_token(sums_ptr + at * stride, came) + begin + lanes, mask=lanes < hidden - begin, other=0.0)
                    total += values.to(tl.float32)
        tl.store(out_ptr + token * hidden + begin + lanes, total.to(out_ptr.dtype.element_ty), mask=lanes < hidden - begin)
    # Of all nodes, whether or not they had a sum for this rank: what the sets rely on.
    for each in range(NODES):
        if each != node:
            dl.wait(heard_ptr + set * NODES + each, 1, "sys", "acquire", waitValue=call, compare="ge")


@triton.jit(do_not_specialize=["tokens", "max_rows", "most_rows", "max_slots", "rank"], do_not_specialize_on_alignment=["handle_ptr"])
def combine_by_nodes(rows_ptr, out_ptr, handle_ptr, slots_ptr, through_ptr, sums_ptr, row_ptr, words_ptr, signals_ptr, heard_ptr, sent_ptr, received_ptr,
                     arrivals_ptr, tokens, hidden, stride, max_rows, most_rows, max_slots, rank, WORLD: tl.constexpr, NODE_SIZE: tl.constexpr,
                     TOP_K: tl.constexpr, SLOTS: tl.constexpr, CHUNK: tl.constexpr, SEND: tl.constexpr, RECEIVE: tl.constexpr, addend_ptr=None):
    """Operands as low_latency.py's combine has them. SEND waits for nobody; RECEIVE sends what this node has of others' tokens, and adds.

    Symmetric: slots_ptr [2, max_slots, stride], through_ptr [2, NODES, max_slots, stride], sums_ptr [2, NODES, max_tokens, stride], signals_ptr
    [2, NODES, max_tokens], words_ptr [NODE_SIZE], heard_ptr [2, NODES]. Of the rank: row_ptr [blocks, stride]; sent_ptr, received_ptr [blocks];
    arrivals_ptr [2].
    """
    if SEND:
        store_results(rows_ptr, handle_ptr, slots_ptr, through_ptr, words_ptr, sent_ptr, arrivals_ptr, hidden, stride, max_rows, most_rows, max_slots, rank,
                      WORLD, NODE_SIZE, CHUNK)
    if RECEIVE:
        block = tl.cast(tl.program_id(0), tl.int64)
        call = tl.load(received_ptr + block) + 1
        token = dl.wait(words_ptr, NODE_SIZE, "sys", "acquire", waitValue=call, compare="ge")
        send_sums(handle_ptr, dl.consume_token(through_ptr, token), sums_ptr, row_ptr + block * stride, signals_ptr, heard_ptr, call, arrivals_ptr + 1, hidden,
                  stride, most_rows, max_slots, rank, WORLD, NODE_SIZE, TOP_K, CHUNK)
        add_nodes(out_ptr, addend_ptr, handle_ptr, dl.consume_token(slots_ptr, token), sums_ptr, signals_ptr, heard_ptr, call, tokens, hidden, stride, most_rows,
                  max_slots, rank, WORLD, NODE_SIZE, TOP_K, SLOTS, CHUNK)
        if tid(0) == 0:
            st(received_ptr + block, call)
