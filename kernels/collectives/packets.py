"""Collectives of small messages by *packets*: 16 bytes that hold 8 bytes of data, each half beside the number of the call. Whoever
reads the number has the data: no fence, no signal, one way over the link. Costs twice the bytes.

Block b of a rank meets block b of the other ranks only (README.md) and counts its calls in generation_ptr[b].

**Why no slot is overwritten too early.** There are two sets of slots, used in turns. A block that sends for call g + 2 has finished
call g + 1, for which it needed packets of call g + 1 from all ranks, and a rank sends those when it has finished g. Every block of a
call has at least one packet, so that this holds for each.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, ld, ld_vector, load_v2_b64, num_threads, pack, st, st_vector, tid,
                                                       unpack)

from .reduction import accumulator_type, combine, finish


@triton.jit
def load_or_zero(pointer, inside):
    value = tl.zeros((), pointer.dtype.element_ty)
    if inside:
        value = ld(pointer)
    return value


@triton.jit
def load_packet(x_ptr, first, end, PER_PACKET: tl.constexpr, ALIGNED: tl.constexpr):
    """Elements [first, first + PER_PACKET) as a vector, zeros from `end` on. ALIGNED: the addresses of packets are multiples of
    their data's size, and `end` is one of PER_PACKET."""
    if ALIGNED and PER_PACKET > 1:
        values = ld_vector(x_ptr + first, PER_PACKET)
    else:
        values = dl.make_vector([load_or_zero(x_ptr + first + i, first + i < end) for i in range(PER_PACKET)])
    return values


@triton.jit
def store_packet(out_ptr, first, end, values, PER_PACKET: tl.constexpr, ALIGNED: tl.constexpr):
    if ALIGNED and PER_PACKET > 1:
        st_vector(out_ptr + first, values)
    else:
        for i in tl.static_range(PER_PACKET):
            if first + i < end:
                st(out_ptr + first + i, values[i])


@triton.jit
def send_packet(slot_ptr, values, call):
    """The 8 bytes of `values`, each half with the number of the call. A 64-bit half arrives whole, so that its number vouches for it."""
    bits = pack(values, tl.uint64)
    number = call.to(tl.uint64, bitcast=True) << 32
    low = (bits & 0xFFFFFFFF) | number
    high = (bits >> 32) | number
    st_vector(slot_ptr, dl.make_vector([low.to(tl.int64, bitcast=True), high.to(tl.int64, bitcast=True)]), scope="sys",
              semantic="relaxed")


@triton.jit
def packet_values(low, high, element: tl.constexpr):
    bits = (low.to(tl.uint64, bitcast=True) & 0xFFFFFFFF) | (high.to(tl.uint64, bitcast=True) << 32)
    return unpack(bits, element)


@triton.jit
def receive_packets(slots_ptr, stride, call, COUNT: tl.constexpr):
    """The words of one packet from each of COUNT sources, `stride` words apart. All are asked for before one is looked at: they come
    from memory, not from a cache."""
    words = dl.zeros_vector(2 * COUNT, tl.int64)
    number = call & 0xFFFFFFFF
    missing = True
    while missing:
        pairs = [load_v2_b64(slots_ptr + source * stride) for source in range(COUNT)]
        words = dl.make_vector([pairs[i // 2][i % 2] for i in range(2 * COUNT)])
        missing = False
        for i in tl.static_range(2 * COUNT):
            missing = missing | (((words[i] >> 32) & 0xFFFFFFFF) != number)
    return words


@triton.jit
def combine_vectors(parts, element: tl.constexpr, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    """Of a vector of elements from each rank."""
    accumulator: tl.constexpr = accumulator_type(element)
    total = parts[0].to(accumulator)
    for source in tl.static_range(1, WORLD):
        value = parts[source].to(accumulator)
        total = dl.make_vector([combine(total[i], value[i], REDUCTION) for i in range(len(total))])
    return dl.make_vector([finish(total[i], REDUCTION, WORLD).to(element) for i in range(len(total))])


@triton.jit
def combine_packets(words, element: tl.constexpr, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    return combine_vectors([packet_values(words[2 * source], words[2 * source + 1], element) for source in range(WORLD)], element, REDUCTION, WORLD)


@triton.jit
def scaled(values, scale, element: tl.constexpr, SCALED: tl.constexpr):
    """NCCL's premultiplied sum: each rank multiplies before it sends."""
    if SCALED:
        accumulator: tl.constexpr = accumulator_type(element)
        return dl.make_vector([(values[i].to(accumulator) * scale).to(element) for i in range(len(values))])
    else:
        return values


@triton.jit(do_not_specialize=["n", "rank", "packets_per_block", "capacity"])
def packet_exchange(x_ptr, out_ptr, slots_ptr, generation_ptr, n, rank, packets_per_block, capacity, scale,
                    WORLD: tl.constexpr, PER_PACKET: tl.constexpr, SCATTER: tl.constexpr, REDUCE: tl.constexpr,
                    REDUCTION: tl.constexpr, SCALED: tl.constexpr, ALIGNED: tl.constexpr):
    """One exchange. x_ptr: [n], or with SCATTER [WORLD, n]; out_ptr: [n] with REDUCE, else [WORLD, n]. May be the same memory
    where the shapes are.

    slots_ptr: symmetric, [blocks, 2, WORLD, capacity] packets of two words; generation_ptr: [blocks].
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    slots_ptr += ((tl.cast(block, tl.int64) * 2 + call % 2) * WORLD * capacity) * 2
    first_packet = tl.cast(block, tl.int64) * packets_per_block
    count = min(tl.cast(packets_per_block, tl.int64), tl.cdiv(tl.cast(n, tl.int64), PER_PACKET) - first_packet)
    for packet in range(thread, count, num_threads()):
        first = (first_packet + packet) * PER_PACKET
        values = scaled(load_packet(x_ptr, first, n, PER_PACKET, ALIGNED), scale, element, SCALED)
        for step in tl.static_range(WORLD):
            target = (rank + step) % WORLD
            if SCATTER:
                part_ptr = x_ptr + tl.cast(target, tl.int64) * n
                values = scaled(load_packet(part_ptr, first, n, PER_PACKET, ALIGNED), scale, element, SCALED)
            send_packet(dl.symm_at(slots_ptr, target) + (tl.cast(rank, tl.int64) * capacity + packet) * 2, values, call)
    for packet in range(thread, count, num_threads()):
        first = (first_packet + packet) * PER_PACKET
        words = receive_packets(slots_ptr + packet * 2, tl.cast(capacity, tl.int64) * 2, call, WORLD)
        if REDUCE:
            store_packet(out_ptr, first, n, combine_packets(words, element, REDUCTION, WORLD), PER_PACKET, ALIGNED)
        else:
            for source in tl.static_range(WORLD):
                store_packet(out_ptr + tl.cast(n, tl.int64) * source, first, n,
                             packet_values(words[2 * source], words[2 * source + 1], element), PER_PACKET, ALIGNED)
    __syncthreads()
    if thread == 0:
        st(generation_ptr + block, call)


@triton.jit(do_not_specialize=["n", "rank", "packets_per_block", "capacity"])
def packet_all_reduce(x_ptr, out_ptr, slots_ptr, generation_ptr, n, rank, packets_per_block, capacity, scale,
                      WORLD: tl.constexpr, PER_PACKET: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr,
                      ALIGNED: tl.constexpr):
    """Two-shot AllReduce: the packets are dealt out to the ranks, each adds its own and sends the sums to all.

    slots_ptr: symmetric, [blocks, 2, 2 * WORLD, capacity] packets: contributions by source, then results by owner.
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    slots_ptr += ((tl.cast(block, tl.int64) * 2 + call % 2) * (2 * WORLD) * capacity) * 2
    stride = tl.cast(capacity, tl.int64) * 2
    packets = tl.cdiv(tl.cast(n, tl.int64), PER_PACKET)
    own_packets = tl.cdiv(packets, WORLD)
    first_packet = tl.cast(block, tl.int64) * packets_per_block
    count = min(tl.cast(packets_per_block, tl.int64), own_packets - first_packet)
    for packet in range(thread, count, num_threads()):
        for step in tl.static_range(WORLD):
            target = (rank + step) % WORLD
            place = tl.cast(target, tl.int64) * own_packets + first_packet + packet
            if place < packets:
                values = scaled(load_packet(x_ptr, place * PER_PACKET, n, PER_PACKET, ALIGNED), scale, element, SCALED)
                send_packet(dl.symm_at(slots_ptr, target) + rank * stride + packet * 2, values, call)
    results_ptr = slots_ptr + WORLD * stride
    for packet in range(thread, count, num_threads()):
        if rank * own_packets + first_packet + packet < packets:
            values = combine_packets(receive_packets(slots_ptr + packet * 2, stride, call, WORLD), element, REDUCTION, WORLD)
            for step in tl.static_range(WORLD):
                target = (rank + step) % WORLD
                send_packet(dl.symm_at(results_ptr, target) + rank * stride + packet * 2, values, call)
    for packet in range(thread, count, num_threads()):
        for owner in tl.static_range(WORLD):
            place = owner * own_packets + first_packet + packet
            if place < packets:
                words = receive_packets(results_ptr + owner * stride + packet * 2, stride, call, 1)
                store_packet(out_ptr, place * PER_PACKET, n, packet_values(words[0], words[1], element), PER_PACKET, ALIGNED)
    __syncthreads()
    if thread == 0:
        st(generation_ptr + block, call)
