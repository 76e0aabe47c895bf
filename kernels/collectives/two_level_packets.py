"""Device code of the collectives' form `two_level_packets` (host side: ditron/ops/collectives/TwoLevelPacketProtocol.cpp): small messages of
ranks on several nodes, after the two-dimensional low-latency AllGather of Triton-distributed (paper 001, algorithm 4).

A rank with the same place on another node gets a block's data by one put with signal. All else goes by packets (packets.py): a rank sends
to its node what it has, and what other nodes have put into its memory. So data makes one way through the network and one through the node,
and nobody waits for a barrier. The paper's packets go through the network too, which needs that 8 bytes of a put arrive together;
OpenSHMEM does not promise that, and a put with signal carries half the bytes.

**Why nothing is overwritten too early.** As for packets: memory has two sets, used in turns. A rank that sends or puts for call g + 2 has
finished call g + 1, for which it needed what all ranks sent in g + 1, and they send, and hand on, for g + 1 when they have finished g.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, num_threads, st, tid

from .packets import load_packet, packet_values, receive_packets, scaled, send_packet, store_packet
from .reduction import accumulator_type, combine, finish


@triton.jit
def send_on_node(slots_ptr, source, packet, capacity, values, call, rank, LOCAL: tl.constexpr):
    """A packet of `source` to all ranks of this node, this one too."""
    first = rank // LOCAL * LOCAL
    slot_ptr = slots_ptr + (tl.cast(source, tl.int64) * capacity + packet) * 2
    for step in tl.static_range(LOCAL):
        send_packet(dl.symm_at(slot_ptr, first + (rank + step) % LOCAL), values, call)


@triton.jit(do_not_specialize=["n", "rank", "packets_per_block", "capacity"])
def two_level_packet_exchange(x_ptr, out_ptr, slots_ptr, wire_ptr, words_ptr, generation_ptr, n, rank, packets_per_block, capacity, scale,
                              NODES: tl.constexpr, LOCAL: tl.constexpr, PER_PACKET: tl.constexpr, REDUCE: tl.constexpr,
                              REDUCTION: tl.constexpr, SCALED: tl.constexpr, ALIGNED: tl.constexpr):
    """AllGather: x_ptr [n] to out_ptr [ranks, n]. AllReduce (REDUCE): [n] to [n], in one shot.

    Symmetric, with ranks = NODES * LOCAL: slots_ptr [blocks, 2, ranks, capacity] packets of two words; wire_ptr [blocks, 2, NODES, capacity,
    PER_PACKET] elements, by the node they come from; words_ptr [blocks, 2, NODES] signals. generation_ptr: [blocks], calls so far.
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    accumulator: tl.constexpr = accumulator_type(element)
    block = tl.cast(tl.program_id(0), tl.int64)
    node = rank // LOCAL
    call = tl.load(generation_ptr + block) + 1
    turn = block * 2 + call % 2
    stride = tl.cast(capacity, tl.int64) * 2
    slots_ptr += turn * (NODES * LOCAL) * stride
    wire_stride = tl.cast(capacity, tl.int64) * PER_PACKET
    wire_ptr += turn * NODES * wire_stride
    words_ptr += turn * NODES
    own_ptr = wire_ptr + node * wire_stride
    first_packet = block * packets_per_block
    count = min(tl.cast(packets_per_block, tl.int64), tl.cdiv(tl.cast(n, tl.int64), PER_PACKET) - first_packet)
    size = (count * PER_PACKET * (element.primitive_bitwidth // 8)).to(tl.int32)
    for packet in range(tid(0), count, num_threads()):
        values = scaled(load_packet(x_ptr, (first_packet + packet) * PER_PACKET, n, PER_PACKET, ALIGNED), scale, element, SCALED)
        store_packet(own_ptr, packet * PER_PACKET, count * PER_PACKET, values, PER_PACKET, True)
        send_on_node(slots_ptr, rank, packet, capacity, values, call, rank, LOCAL)
    for distance in range(1, NODES):
        libshmem_device.putmem_signal_block(own_ptr, own_ptr, size, words_ptr + node, call, libshmem_device.NVSHMEM_SIGNAL_SET,
                                            (rank + distance * LOCAL) % (NODES * LOCAL))
    for distance in range(1, NODES):
        # From the nearest sender on: all have put to their next node first.
        from_node = (node + NODES - distance) % NODES
        token = dl.wait(words_ptr + from_node, 1, "sys", "acquire", waitValue=call, compare="ge")
        from_ptr = dl.consume_token(wire_ptr + from_node * wire_stride, token)
        for packet in range(tid(0), count, num_threads()):
            values = load_packet(from_ptr, packet * PER_PACKET, count * PER_PACKET, PER_PACKET, True)
            send_on_node(slots_ptr, from_node * LOCAL + rank % LOCAL, packet, capacity, values, call, rank, LOCAL)
    for packet in range(tid(0), count, num_threads()):
        first = (first_packet + packet) * PER_PACKET
        total = dl.zeros_vector(PER_PACKET, accumulator)
        for each in tl.static_range(NODES):
            words = receive_packets(slots_ptr + each * LOCAL * stride + packet * 2, stride, call, LOCAL)
            for source in tl.static_range(LOCAL):
                values = packet_values(words[2 * source], words[2 * source + 1], element)
                if not REDUCE:
                    store_packet(out_ptr + tl.cast(n, tl.int64) * (each * LOCAL + source), first, n, values, PER_PACKET, ALIGNED)
                elif each == 0 and source == 0:
                    total = values.to(accumulator)
                else:
                    value = values.to(accumulator)
                    total = dl.make_vector([combine(total[i], value[i], REDUCTION) for i in range(PER_PACKET)])
        if REDUCE:
            result = dl.make_vector([finish(total[i], REDUCTION, NODES * LOCAL).to(element) for i in range(PER_PACKET)])
            store_packet(out_ptr, first, n, result, PER_PACKET, ALIGNED)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, call)
