"""Device code of the collectives' form `two_level` (host side: ditron/ops/collectives/TwoLevelProtocol.cpp), for ranks on several nodes.

A node has LOCAL ranks; rank = node * LOCAL + place. Inside of a node data goes by loads and stores, between nodes by puts with
signal, and only between ranks with the same place. ReduceScatter: each rank adds what its node's ranks have for the parts of the ranks
with its place, one part per node, and sends one sum to each. AllGather: a rank sends its part to the ranks with its place; each
hands what it gets so to its node. So each byte goes to a node once. AllReduce is one after the other, chunk by chunk.

A block meets the blocks of its number only, and counts its chunks in generation_ptr[b] (README.md). Chunk i uses
slot i % SLOTS, and each slot has signal words of its own: puts of two chunks may overtake each other, and so may their signals, so
that one word for both could go back.

**Why no slot is overwritten too early.** In one turn of its loop a block does for one chunk after the other: spread contributions of
chunk i; node_sums and totals of chunk i - 1 and send_result of it; take_results of chunk i - 2 (an AllGather has no sums: send_result of i,
take_results of i - 1). A block that spreads chunk i has had contributions of i - 2 from all ranks of its node; these had then ended
the turn in which they spread i - 3, that is totals of i - 4. One that sends node_sums of i to a rank has had the sums of i - 2 from it. One
that sends the result of i has had the results of i - 2 from all ranks; these had then ended take_results of i - 4. SLOTS = 4. For the
same reasons what has been put from a slot is long at its place when the slot is filled again: nobody waits for a quiet.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, st, tid

from .chunks import SLOTS, scaled_tile
from .reduction import accumulator_type, combine, finish


@triton.jit
def raise_on_node(word_ptr, value, first, LOCAL: tl.constexpr):
    """Sets a word on all ranks of the node, of which `first` is the first, behind all stores of the block."""
    __syncthreads()
    if tid(0) < LOCAL:
        st(dl.symm_at(word_ptr, first + tid(0)), value, scope="sys", semantic="release")


@triton.jit
def elements_of(owner, n, part, start):
    """How many elements of an owner's part there are from `start` on, at most as many as the part has."""
    return min(n - tl.cast(owner, tl.int64) * part, part) - start


@triton.jit
def spread(x_ptr, slot_ptr, word_ptr, number, n, part, start, node, place, stride, scale, NODES: tl.constexpr, LOCAL: tl.constexpr,
           CHUNK: tl.constexpr, SCALED: tl.constexpr):
    """Contributions to each other rank of the node: a chunk of the part of each rank with its place. slot_ptr: [NODES, LOCAL]."""
    lanes = tl.arange(0, CHUNK)
    for each in range(NODES):
        for distance in tl.static_range(1, LOCAL):
            target = (place + distance) % LOCAL
            owner = each * LOCAL + target
            mask = lanes < elements_of(owner, n, part, start)
            values = scaled_tile(tl.load(x_ptr + (tl.cast(owner, tl.int64) * part + start) + lanes, mask=mask), scale, SCALED)
            theirs_ptr = dl.symm_at(slot_ptr + (each * LOCAL + place) * stride, node * LOCAL + target)
            tl.store(theirs_ptr + lanes, values, mask=mask)
    raise_on_node(word_ptr + place, number, node * LOCAL, LOCAL)


@triton.jit
def node_sum(x_ptr, slot_ptr, n, part, start, to_node, place, stride, scale, wire: tl.constexpr, LOCAL: tl.constexpr,
             CHUNK: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """What the node's ranks have for the rank of to_node with this place, in the order of their places, as it is sent."""
    accumulator: tl.constexpr = accumulator_type(x_ptr.dtype.element_ty)
    lanes = tl.arange(0, CHUNK)
    owner = to_node * LOCAL + place
    mask = lanes < elements_of(owner, n, part, start)
    total = tl.zeros((CHUNK,), accumulator)
    for source in tl.static_range(LOCAL):
        if source == place:
            value = scaled_tile(tl.load(x_ptr + (tl.cast(owner, tl.int64) * part + start) + lanes, mask=mask), scale, SCALED)
        else:
            value = tl.load(slot_ptr + (to_node * LOCAL + source) * stride + lanes, mask=mask)
        if source == 0:
            total = value.to(accumulator)
        else:
            total = combine(total, value.to(accumulator), REDUCTION)
    return total.to(wire)


@triton.jit
def node_sums(x_ptr, slot_ptr, sums_ptr, word_ptr, number, n, part, start, node, place, stride, scale, NODES: tl.constexpr,
              LOCAL: tl.constexpr, CHUNK: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """To each other node its sum, to this node's place in sums_ptr [NODES] there; sent from the second [NODES] here, one for each."""
    wire: tl.constexpr = sums_ptr.dtype.element_ty
    lanes = tl.arange(0, CHUNK)
    for distance in range(1, NODES):
        to_node = (node + distance) % NODES
        count = elements_of(to_node * LOCAL + place, n, part, start)
        total = node_sum(x_ptr, slot_ptr, n, part, start, to_node, place, stride, scale, wire, LOCAL, CHUNK, REDUCTION, SCALED)
        from_ptr = sums_ptr + (NODES + to_node) * stride
        tl.store(from_ptr + lanes, total, mask=lanes < count)
        size = max(min(count, CHUNK), 0) * (wire.primitive_bitwidth // 8)
        libshmem_device.putmem_signal_nbi_block(sums_ptr + node * stride, from_ptr, size, word_ptr + node, number,
                                                libshmem_device.NVSHMEM_SIGNAL_SET, to_node * LOCAL + place)


@triton.jit
def node_totals(x_ptr, slot_ptr, sums_ptr, word_ptr, number, n, part, start, node, place, stride, scale, NODES: tl.constexpr,
                LOCAL: tl.constexpr, CHUNK: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """The sum over all nodes, in their order, of the chunk of this rank's part."""
    element: tl.constexpr = x_ptr.dtype.element_ty
    accumulator: tl.constexpr = accumulator_type(element)
    lanes = tl.arange(0, CHUNK)
    mask = lanes < elements_of(node * LOCAL + place, n, part, start)
    own = node_sum(x_ptr, slot_ptr, n, part, start, node, place, stride, scale, sums_ptr.dtype.element_ty, LOCAL, CHUNK, REDUCTION,
                   SCALED)
    total = own.to(accumulator)
    for each in tl.static_range(NODES):
        value = own
        if each != node:
            token = dl.wait(word_ptr + each, 1, "sys", "acquire", waitValue=number, compare="ge")
            value = tl.load(dl.consume_token(sums_ptr + each * stride, token) + lanes, mask=mask)
        if each == 0:
            total = value.to(accumulator)
        else:
            total = combine(total, value.to(accumulator), REDUCTION)
    return finish(total, REDUCTION, NODES * LOCAL).to(element)


@triton.jit
def send_result(values, out_ptr, slot_ptr, word_ptr, number, n, part, start, rank, stride, NODES: tl.constexpr, LOCAL: tl.constexpr,
                CHUNK: tl.constexpr):
    """The chunk of this rank's part to its node and to the ranks with its place; slot_ptr: [ranks]."""
    lanes = tl.arange(0, CHUNK)
    count = elements_of(rank, n, part, start)
    mask = lanes < count
    first = rank // LOCAL * LOCAL
    tl.store(out_ptr + (tl.cast(rank, tl.int64) * part + start) + lanes, values, mask=mask)
    own_ptr = slot_ptr + rank * stride
    for distance in tl.static_range(LOCAL):
        tl.store(dl.symm_at(own_ptr, first + (rank + distance) % LOCAL) + lanes, values, mask=mask)
    raise_on_node(word_ptr + rank, number, first, LOCAL)
    size = max(min(count, CHUNK), 0) * (slot_ptr.dtype.element_ty.primitive_bitwidth // 8)
    for distance in range(1, NODES):
        libshmem_device.putmem_signal_nbi_block(own_ptr, own_ptr, size, word_ptr + rank, number, libshmem_device.NVSHMEM_SIGNAL_SET,
                                                (rank + distance * LOCAL) % (NODES * LOCAL))


@triton.jit
def take_results(out_ptr, slot_ptr, word_ptr, number, n, part, start, rank, stride, NODES: tl.constexpr, LOCAL: tl.constexpr,
                 CHUNK: tl.constexpr):
    """Hands what comes from the ranks with this place to the node, and all other ranks' chunks to out_ptr."""
    lanes = tl.arange(0, CHUNK)
    first = rank // LOCAL * LOCAL
    for distance in range(1, NODES):
        source = (rank + distance * LOCAL) % (NODES * LOCAL)
        mask = lanes < elements_of(source, n, part, start)
        token = dl.wait(word_ptr + source, 1, "sys", "acquire", waitValue=number, compare="ge")
        from_ptr = dl.consume_token(slot_ptr + source * stride, token)
        values = tl.load(from_ptr + lanes, mask=mask)
        for step in tl.static_range(1, LOCAL):
            tl.store(dl.symm_at(from_ptr, first + (rank + step) % LOCAL) + lanes, values, mask=mask)
        tl.store(out_ptr + (tl.cast(source, tl.int64) * part + start) + lanes, values, mask=mask)
        __syncthreads()
        if (tid(0) < LOCAL) & (first + tid(0) != rank):
            st(dl.symm_at(word_ptr + source, first + tid(0)), number, scope="sys", semantic="release")
    token = dl.wait(word_ptr, NODES * LOCAL, "sys", "acquire", waitValue=number, compare="ge")
    from_ptr = dl.consume_token(slot_ptr, token)
    for node in range(NODES):
        for distance in tl.static_range(1, LOCAL):
            source = node * LOCAL + (rank + distance) % LOCAL
            mask = lanes < elements_of(source, n, part, start)
            tl.store(out_ptr + (tl.cast(source, tl.int64) * part + start) + lanes,
                     tl.load(from_ptr + source * stride + lanes, mask=mask), mask=mask)


@triton.jit(do_not_specialize=["rank"])
def two_level_exchange(x_ptr, out_ptr, contributions_ptr, sums_ptr, results_ptr, words_ptr, generation_ptr, n, part, rank,
                       slot_elements, scale, NODES: tl.constexpr, LOCAL: tl.constexpr, CHUNK: tl.constexpr, REDUCE: tl.constexpr,
                       GATHER: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """ReduceScatter (REDUCE): x_ptr [ranks, part], out_ptr [part]. AllGather (GATHER): [part] to [ranks, part]. AllReduce (both): [n] to
    [n], cut into parts of `part` elements. n: of the whole.

    Symmetric, with ranks = NODES * LOCAL: contributions_ptr [blocks, SLOTS, NODES, LOCAL, slot_elements]; sums_ptr [blocks, SLOTS, 2 *
    NODES, slot_elements], of the type in which sums are sent: received, sent; results_ptr [blocks, SLOTS, ranks, slot_elements]; words_ptr [blocks, SLOTS, LOCAL +
    NODES + ranks]. generation_ptr: [blocks], chunks so far.
    """
    WORLD: tl.constexpr = NODES * LOCAL
    WORDS: tl.constexpr = LOCAL + NODES + WORLD
    # Turns of the loop between the first step of a chunk and its result.
    DELAY: tl.constexpr = 1 if REDUCE else 0
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    node = rank // LOCAL
    place = rank % LOCAL
    before = tl.load(generation_ptr + block)
    contributions_ptr += block * SLOTS * WORLD * stride
    sums_ptr += block * SLOTS * 2 * NODES * stride
    results_ptr += block * SLOTS * WORLD * stride
    words_ptr += block * SLOTS * WORDS
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    chunks = tl.cdiv(part - block * CHUNK, step_elements)
    for turn in range(0, chunks + DELAY + (1 if GATHER else 0)):
        if REDUCE:
            if turn < chunks:
                slot = (before + turn) % SLOTS
                spread(x_ptr, contributions_ptr + slot * WORLD * stride, words_ptr + slot * WORDS, before + turn + 1, n, part,
                       turn * step_elements + block * CHUNK, node, place, stride, scale, NODES, LOCAL, CHUNK, SCALED)
        chunk = turn - DELAY
        if (chunk >= 0) & (chunk < chunks):
            slot = (before + chunk) % SLOTS
            start = chunk * step_elements + block * CHUNK
            number = before + chunk + 1
            word_ptr = words_ptr + slot * WORDS
            if REDUCE:
                token = dl.wait(word_ptr, LOCAL, "sys", "acquire", waitValue=number, compare="ge")
                slot_ptr = dl.consume_token(contributions_ptr + slot * WORLD * stride, token)
                chunk_sums_ptr = sums_ptr + slot * 2 * NODES * stride
                node_sums(x_ptr, slot_ptr, chunk_sums_ptr, word_ptr + LOCAL, number, n, part, start, node, place, stride, scale, NODES,
                          LOCAL, CHUNK, REDUCTION, SCALED)
                values = node_totals(x_ptr, slot_ptr, chunk_sums_ptr, word_ptr + LOCAL, number, n, part, start, node, place, stride,
                                     scale, NODES, LOCAL, CHUNK, REDUCTION, SCALED)
            else:
                values = tl.load(x_ptr + start + lanes, mask=lanes < part - start)
            if GATHER:
                send_result(values, out_ptr, results_ptr + slot * WORLD * stride, word_ptr + (LOCAL + NODES), number, n, part, start,
                            rank, stride, NODES, LOCAL, CHUNK)
            else:
                tl.store(out_ptr + start + lanes, values, mask=lanes < part - start)
        if GATHER:
            if turn > DELAY:
                chunk = turn - DELAY - 1
                slot = (before + chunk) % SLOTS
                take_results(out_ptr, results_ptr + slot * WORLD * stride, words_ptr + (slot * WORDS + LOCAL + NODES),
                             before + chunk + 1, n, part, chunk * step_elements + block * CHUNK, rank, stride, NODES, LOCAL, CHUNK)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(chunks, 0))
