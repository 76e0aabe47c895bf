"""Collectives by *Lamport packets* (as the small AllReduce of TensorRT-LLM and FlashInfer has them): 16 bytes of data and nothing else. A slot is empty until its data has arrived, word by
word of 64 bits, and who has read it empties it again: no flag, no fence, no signal, and no byte over the link that is not data.

**All bits arrive.** A word is sent inverted, so that 0, which the memory has at first, means empty. What would be 0 is sent as DOUBTFUL, and its slot's word of doubts_ptr says that it is
not the other word that looks like this; for that one it says so too. Only who reads DOUBTFUL looks there.

Block b of a rank meets block b of the other ranks only (README.md) and counts its calls in generation_ptr[b].

**Why no slot is filled before it has been emptied.** There are two sets of slots, used in turns. A block that sends for call g + 2 has finished call g + 1, for which it needed words
of call g + 1 from all ranks, and a rank sends those when it has finished g, in which it emptied what it had read. Every block of a call has at least one packet. That the words have come is
seen by relaxed loads, which order nothing; it is enough that the kernel of g has ended (docs/memory-model.md, "Streams"). Telling of it with release and acquire besides took 1.2 us more of
2.6, and 2.7 more of 5.6 with 1 MiB (2 x H200).
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, load_v2_b64, num_threads, pack, st, st_vector, tid, unpack

from .packets import combine_vectors, load_packet, scaled, store_packet

DOUBTFUL = tl.constexpr(-(1 << 63))
IS_EMPTY_ONE = tl.constexpr(1)
IS_ITSELF = tl.constexpr(2)


@triton.jit
def words_of(values):
    """The two words of 16 bytes, inverted."""
    HALF: tl.constexpr = len(values) // 2
    low = ~pack(dl.make_vector([values[i] for i in range(HALF)]), tl.uint64)
    high = ~pack(dl.make_vector([values[HALF + i] for i in range(HALF)]), tl.uint64)
    return dl.make_vector([low.to(tl.int64, bitcast=True), high.to(tl.int64, bitcast=True)])


@triton.jit
def elements_of(low, high, element: tl.constexpr):
    first = unpack((~low).to(tl.uint64, bitcast=True), element)
    second = unpack((~high).to(tl.uint64, bitcast=True), element)
    return dl.make_vector([first[i] for i in range(len(first))] + [second[i] for i in range(len(second))])


@triton.jit
def send_words(slot_ptr, doubt_ptr, words):
    """Of one packet, to another rank's slot."""
    st_vector(slot_ptr, dl.make_vector([tl.where(words[i] == 0, DOUBTFUL, words[i]) for i in range(2)]), scope="sys", semantic="relaxed")
    for i in tl.static_range(2):
        if (words[i] == 0) | (words[i] == DOUBTFUL):
            st(doubt_ptr + i, tl.where(words[i] == 0, IS_EMPTY_ONE, IS_ITSELF).to(tl.int64), scope="sys", semantic="relaxed")


@triton.jit
def without_doubt(word, doubt_ptr):
    if word == DOUBTFUL:
        answer = tl.cast(0, tl.int64)
        while answer == 0:
            answer = ld(doubt_ptr, scope="sys", semantic="relaxed")
        st(doubt_ptr, tl.cast(0, tl.int64), scope="sys", semantic="relaxed")
        if answer == IS_EMPTY_ONE:
            word = tl.cast(0, tl.int64)
    return word


@triton.jit
def take_words(slots_ptr, doubts_ptr, stride, COUNT: tl.constexpr):
    """The words of one packet from each of COUNT sources, `stride` words apart, when all are there; the slots are empty then. All are asked for before one is looked at."""
    words = dl.zeros_vector(2 * COUNT, tl.int64)
    missing = True
    while missing:
        pairs = [load_v2_b64(slots_ptr + source * stride) for source in range(COUNT)]
        words = dl.make_vector([pairs[i // 2][i % 2] for i in range(2 * COUNT)])
        missing = False
        for i in tl.static_range(2 * COUNT):
            missing = missing | (words[i] == 0)
    doubtful = False
    for source in tl.static_range(COUNT):
        st_vector(slots_ptr + source * stride, dl.zeros_vector(2, tl.int64), scope="sys", semantic="relaxed")
        doubtful = doubtful | (words[2 * source] == DOUBTFUL) | (words[2 * source + 1] == DOUBTFUL)
    if doubtful:
        words = dl.make_vector([without_doubt(words[i], doubts_ptr + i // 2 * stride + i % 2) for i in range(2 * COUNT)])
    return words


@triton.jit
def combine_words(words, element: tl.constexpr, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    return combine_vectors([elements_of(words[2 * source], words[2 * source + 1], element) for source in range(WORLD)], element, REDUCTION, WORLD)


@triton.jit(do_not_specialize=["n", "rank", "packets_per_block", "capacity"])
def lamport_exchange(x_ptr, out_ptr, slots_ptr, doubts_ptr, generation_ptr, n, rank, packets_per_block, capacity, scale, WORLD: tl.constexpr, PER_PACKET: tl.constexpr,
                     SCATTER: tl.constexpr, REDUCE: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr, ALIGNED: tl.constexpr):
    """One exchange, as packet_exchange.

    slots_ptr, doubts_ptr: symmetric, [blocks, 2, WORLD, capacity] packets of two words, 0 before the first call; generation_ptr: [blocks].
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    set_words = ((tl.cast(block, tl.int64) * 2 + call % 2) * WORLD * capacity) * 2
    slots_ptr += set_words
    doubts_ptr += set_words
    stride = tl.cast(capacity, tl.int64) * 2
    first_packet = tl.cast(block, tl.int64) * packets_per_block
    count = min(tl.cast(packets_per_block, tl.int64), tl.cdiv(tl.cast(n, tl.int64), PER_PACKET) - first_packet)
    for packet in range(thread, count, num_threads()):
        first = (first_packet + packet) * PER_PACKET
        if not SCATTER:
            words = words_of(scaled(load_packet(x_ptr, first, n, PER_PACKET, ALIGNED), scale, element, SCALED))
        for step in tl.static_range(1, WORLD + 1):
            target = (rank + step) % WORLD
            if SCATTER:
                part_ptr = x_ptr + tl.cast(target, tl.int64) * n
                words = words_of(scaled(load_packet(part_ptr, first, n, PER_PACKET, ALIGNED), scale, element, SCALED))
            place = rank * stride + packet * 2
            send_words(dl.symm_at(slots_ptr, target) + place, dl.symm_at(doubts_ptr, target) + place, words)
    for packet in range(thread, count, num_threads()):
        first = (first_packet + packet) * PER_PACKET
        words = take_words(slots_ptr + packet * 2, doubts_ptr + packet * 2, stride, WORLD)
        if REDUCE:
            store_packet(out_ptr, first, n, combine_words(words, element, REDUCTION, WORLD), PER_PACKET, ALIGNED)
        else:
            for source in tl.static_range(WORLD):
                store_packet(out_ptr + tl.cast(n, tl.int64) * source, first, n, elements_of(words[2 * source], words[2 * source + 1], element), PER_PACKET, ALIGNED)
    __syncthreads()
    if thread == 0:
        st(generation_ptr + block, call)


@triton.jit(do_not_specialize=["n", "rank", "packets_per_block", "capacity"])
def lamport_all_reduce(x_ptr, out_ptr, slots_ptr, doubts_ptr, generation_ptr, n, rank, packets_per_block, capacity, scale, WORLD: tl.constexpr, PER_PACKET: tl.constexpr,
                       REDUCTION: tl.constexpr, SCALED: tl.constexpr, ALIGNED: tl.constexpr):
    """Two-shot AllReduce: the packets are dealt out to the ranks, each adds its own and sends the sums to the others.

    slots_ptr, doubts_ptr: symmetric, [blocks, 2, 2 * WORLD, capacity] packets: contributions by source, then results by owner; 0 before the first call.
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    set_words = ((tl.cast(block, tl.int64) * 2 + call % 2) * (2 * WORLD) * capacity) * 2
    slots_ptr += set_words
    doubts_ptr += set_words
    stride = tl.cast(capacity, tl.int64) * 2
    packets = tl.cdiv(tl.cast(n, tl.int64), PER_PACKET)
    own_packets = tl.cdiv(packets, WORLD)
    first_packet = tl.cast(block, tl.int64) * packets_per_block
    count = min(tl.cast(packets_per_block, tl.int64), own_packets - first_packet)
    own_place = rank * stride
    for packet in range(thread, count, num_threads()):
        for step in tl.static_range(1, WORLD + 1):
            target = (rank + step) % WORLD
            place = tl.cast(target, tl.int64) * own_packets + first_packet + packet
            if place < packets:
                words = words_of(scaled(load_packet(x_ptr, place * PER_PACKET, n, PER_PACKET, ALIGNED), scale, element, SCALED))
                send_words(dl.symm_at(slots_ptr, target) + own_place + packet * 2, dl.symm_at(doubts_ptr, target) + own_place + packet * 2, words)
    results_ptr = slots_ptr + WORLD * stride
    result_doubts_ptr = doubts_ptr + WORLD * stride
    for packet in range(thread, count, num_threads()):
        place = rank * own_packets + first_packet + packet
        if place < packets:
            values = combine_words(take_words(slots_ptr + packet * 2, doubts_ptr + packet * 2, stride, WORLD), element, REDUCTION, WORLD)
            words = words_of(values)
            for step in tl.static_range(1, WORLD):
                target = (rank + step) % WORLD
                send_words(dl.symm_at(results_ptr, target) + own_place + packet * 2, dl.symm_at(result_doubts_ptr, target) + own_place + packet * 2, words)
            store_packet(out_ptr, place * PER_PACKET, n, values, PER_PACKET, ALIGNED)
    for packet in range(thread, count, num_threads()):
        for step in tl.static_range(1, WORLD):
            owner = (rank + step) % WORLD
            place = tl.cast(owner, tl.int64) * own_packets + first_packet + packet
            if place < packets:
                slot = owner * stride + packet * 2
                words = take_words(results_ptr + slot, result_doubts_ptr + slot, stride, 1)
                store_packet(out_ptr, place * PER_PACKET, n, elements_of(words[0], words[1], element), PER_PACKET, ALIGNED)
    __syncthreads()
    if thread == 0:
        st(generation_ptr + block, call)
