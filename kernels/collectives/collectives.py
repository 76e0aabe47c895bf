"""Device code of the collectives (host side: ditron/ops/collectives).

All of them are an *exchange*: every rank sends to every rank either the same elements or a part for each (SCATTER), and what
comes from all ranks is added (REDUCE) or laid side by side. AllGather sends the same and lays, AllToAll scatters and lays,
ReduceScatter scatters and adds, a one-shot AllReduce sends the same and adds; a two-shot AllReduce is a ReduceScatter whose result
is gathered. Two protocols carry them:

- *packets* (small messages): 16 bytes that hold 8 bytes of data, each half beside the number of the call. Whoever reads the number
  has the data: no fence, no signal, one way over the link. Costs twice the bytes.
- *chunks* (all other sizes): pieces of the message go to a ring of slots at the receiver and are followed by a signal. The steps of
  a block overlap: while a chunk travels the one before it is added, and the one before that is copied out.

**Nothing is common to the blocks of a call.** Block b of a rank meets block b of the other ranks only, in memory that no other
block uses, and counts its own calls (packets) or chunks in generation_ptr[b], on the device. So calls with different numbers of
blocks may follow each other, there is no barrier and no kernel in front, and no host argument changes from call to call.

**Why no slot is overwritten too early.** Packets have two sets of slots, used in turns. A block that sends for call g + 2 has
finished call g + 1, for which it needed packets of call g + 1 from all ranks, and a rank sends those when it has finished g. Every
block of a call has at least one packet, so that this holds for each. Chunks: see `slots_are_free`.

Sums are made in fp32 (integers: in 32 or 64 bits) in ascending order of the ranks, so that all ranks get the same bits.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__shfl_xor_sync_i32, __syncthreads, laneid, ld, ld_vector, load_v2_b64, num_threads,
                                                       num_warps, pack, st, st_vector, tid, unpack, warp_idx)

# How contributions are combined; average is a sum that is divided at the end.
SUM = tl.constexpr(0)
MAX = tl.constexpr(1)
MIN = tl.constexpr(2)
AVERAGE = tl.constexpr(3)

# Slots of the ring of chunks per source. A block pushes a chunk when it has received the one before the last; then every rank has
# pushed that one, so it has gone through its step before, which has emptied the slot of the chunk two earlier still:
# chunk i needs the slot of i - 4 to be free. The two-shot AllReduce is ahead by less.
SLOTS = tl.constexpr(4)


@triton.jit
def accumulator_type(element: tl.constexpr):
    if element.is_floating():
        return tl.float32
    elif element.primitive_bitwidth == 64:
        return element
    else:
        return tl.int32


@triton.jit
def combine(total, value, REDUCTION: tl.constexpr):
    """Of two scalars or two tiles."""
    if REDUCTION == MAX:
        return tl.maximum(total, value)
    elif REDUCTION == MIN:
        return tl.minimum(total, value)
    else:
        return total + value


@triton.jit
def finish(total, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    if REDUCTION == AVERAGE:
        if total.dtype.is_floating():
            return total / WORLD
        else:
            return total // WORLD
    else:
        return total


# ---------------------------------------------------------------------------------------------------------------- packets


@triton.jit
def load_or_zero(pointer, inside):
    value = tl.zeros((), pointer.dtype.element_ty)
    if inside:
        value = ld(pointer)
    return value


@triton.jit
def load_packet(x_ptr, first, end, PER_PACKET: tl.constexpr, ALIGNED: tl.constexpr):
    """Elements [first, first + PER_PACKET) as a vector, zeros from `end` on. ALIGNED: the addresses of packets are multiples of
    8 bytes, and `end` is one of PER_PACKET."""
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
def combine_packets(words, element: tl.constexpr, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    accumulator: tl.constexpr = accumulator_type(element)
    total = packet_values(words[0], words[1], element).to(accumulator)
    for source in tl.static_range(1, WORLD):
        value = packet_values(words[2 * source], words[2 * source + 1], element).to(accumulator)
        total = dl.make_vector([combine(total[i], value[i], REDUCTION) for i in range(len(total))])
    return dl.make_vector([finish(total[i], REDUCTION, WORLD).to(element) for i in range(len(total))])


@triton.jit
def scaled(values, scale, element: tl.constexpr, SCALED: tl.constexpr):
    """NCCL's premultiplied sum: each rank multiplies before it sends."""
    if SCALED:
        return dl.make_vector([(values[i].to(tl.float32) * scale).to(element) for i in range(len(values))])
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


# ----------------------------------------------------------------------------------------------------------------- chunks


@triton.jit
def signal_all(signals_ptr, value, rank, WORLD: tl.constexpr):
    """Tells every rank's block of this number that what this block has stored there is complete: word `rank` of its WORLD words."""
    __syncthreads()
    thread = tid(0)
    if thread < WORLD:
        st(dl.symm_at(signals_ptr, thread) + rank, value, scope="sys", semantic="release")


@triton.jit
def scaled_tile(values, scale, SCALED: tl.constexpr):
    if SCALED:
        return (values.to(tl.float32) * scale).to(values.dtype)
    else:
        return values


@triton.jit
def combine_chunk(own_ptr, slots_ptr, stride, offsets, mask, rank, scale, REDUCTION: tl.constexpr, SCALED: tl.constexpr,
                  WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """A chunk's sum over the ranks; the own contribution is read from where it is, own_ptr."""
    element: tl.constexpr = own_ptr.dtype.element_ty
    accumulator: tl.constexpr = accumulator_type(element)
    total = tl.zeros((CHUNK,), accumulator)
    for source in tl.static_range(WORLD):
        if source == rank:
            value = scaled_tile(tl.load(own_ptr + offsets, mask=mask), scale, SCALED)
        else:
            value = tl.load(slots_ptr + source * stride + offsets, mask=mask)
        if source == 0:
            total = value.to(accumulator)
        else:
            total = combine(total, value.to(accumulator), REDUCTION)
    return finish(total, REDUCTION, WORLD).to(element)


@triton.jit(do_not_specialize=["rank", "root"])
def chunk_exchange(x_ptr, out_ptr, slots_ptr, signals_ptr, generation_ptr, n, rank, root, slot_elements, scale,
                   WORLD: tl.constexpr, CHUNK: tl.constexpr, SCATTER: tl.constexpr, REDUCE: tl.constexpr,
                   ROOTED: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """One exchange by chunks; x_ptr and out_ptr as for packet_exchange. ROOTED (a broadcast): only `root` has data, and out_ptr is [n].

    slots_ptr: symmetric, [blocks, SLOTS, WORLD, slot_elements] with CHUNK <= slot_elements; signals_ptr: symmetric, [blocks, WORLD];
    generation_ptr: [blocks], chunks so far.
    """
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    slots_ptr += block * SLOTS * WORLD * stride
    signals_ptr += block * WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(n - block * CHUNK, step_elements)
    for step in range(0, steps + 1):
        if step < steps:
            start = step * step_elements + block * CHUNK
            mask = lanes < n - start
            slot_ptr = slots_ptr + ((before + step) % SLOTS * WORLD + rank) * stride
            if ROOTED:
                mask = mask & (rank == root)
            if not SCATTER:
                values = scaled_tile(tl.load(x_ptr + start + lanes, mask=mask), scale, SCALED)
            for distance in tl.static_range(1, WORLD):
                target = (rank + distance) % WORLD
                if SCATTER:
                    part_ptr = x_ptr + tl.cast(target, tl.int64) * n + start
                    values = scaled_tile(tl.load(part_ptr + lanes, mask=mask), scale, SCALED)
                tl.store(dl.symm_at(slot_ptr, target) + lanes, values, mask=mask)
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if step > 0:
            start = (step - 1) * step_elements + block * CHUNK
            mask = lanes < n - start
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + (before + step - 1) % SLOTS * WORLD * stride, token)
            own_ptr = x_ptr + start
            if SCATTER:
                own_ptr += tl.cast(rank, tl.int64) * n
            if REDUCE:
                total = combine_chunk(own_ptr, slot_ptr, stride, lanes, mask, rank, scale, REDUCTION, SCALED, WORLD, CHUNK)
                tl.store(out_ptr + start + lanes, total, mask=mask)
            elif ROOTED:
                source_ptr = slot_ptr + root * stride
                if rank == root:
                    source_ptr = own_ptr
                tl.store(out_ptr + start + lanes, tl.load(source_ptr + lanes, mask=mask), mask=mask)
            else:
                for source in tl.static_range(WORLD):
                    source_ptr = slot_ptr + source * stride
                    if source == rank:
                        source_ptr = own_ptr
                    tl.store(out_ptr + tl.cast(n, tl.int64) * source + start + lanes,
                             tl.load(source_ptr + lanes, mask=mask), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))


@triton.jit(do_not_specialize=["rank"])
def chunk_all_reduce(x_ptr, out_ptr, slots_ptr, signals_ptr, generation_ptr, n, part, rank, slot_elements, scale,
                     WORLD: tl.constexpr, CHUNK: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr):
    """Two-shot AllReduce by chunks. Rank r adds the elements [r * part, (r + 1) * part) of all ranks and sends the sums to all.

    In each step a block pushes contributions of a chunk, adds the chunk before and pushes its sums, and copies out the sums of the
    one before that. slots_ptr: symmetric, [2, blocks, SLOTS, WORLD, slot_elements]: contributions, results; signals_ptr: symmetric,
    [2, blocks, WORLD].
    """
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    slots_ptr += 2 * block * SLOTS * WORLD * stride
    results_ptr = slots_ptr + SLOTS * WORLD * stride
    signals_ptr += 2 * block * WORLD
    result_signals_ptr = signals_ptr + WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = blocks * CHUNK
    steps = tl.cdiv(part - block * CHUNK, step_elements)
    for step in range(0, steps + 2):
        if step < steps:
            start = step * step_elements + block * CHUNK
            slot_ptr = slots_ptr + ((before + step) % SLOTS * WORLD + rank) * stride
            for distance in tl.static_range(1, WORLD):
                target = (rank + distance) % WORLD
                begin = target * part + start
                mask = lanes < min(n - begin, part - start)
                values = scaled_tile(tl.load(x_ptr + begin + lanes, mask=mask), scale, SCALED)
                tl.store(dl.symm_at(slot_ptr, target) + lanes, values, mask=mask)
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if (step > 0) & (step <= steps):
            start = (step - 1) * step_elements + block * CHUNK
            begin = rank * part + start
            mask = lanes < min(n - begin, part - start)
            slot = (before + step - 1) % SLOTS * WORLD
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + slot * stride, token)
            total = combine_chunk(x_ptr + begin, slot_ptr, stride, lanes, mask, rank, scale, REDUCTION, SCALED, WORLD, CHUNK)
            tl.store(out_ptr + begin + lanes, total, mask=mask)
            result_ptr = results_ptr + (slot + rank) * stride
            for distance in tl.static_range(1, WORLD):
                tl.store(dl.symm_at(result_ptr, (rank + distance) % WORLD) + lanes, total, mask=mask)
            signal_all(result_signals_ptr, before + step, rank, WORLD)
        if step > 1:
            start = (step - 2) * step_elements + block * CHUNK
            token = dl.wait(result_signals_ptr, WORLD, "sys", "acquire", waitValue=before + step - 1, compare="ge")
            result_ptr = dl.consume_token(results_ptr + (before + step - 2) % SLOTS * WORLD * stride, token)
            for distance in tl.static_range(1, WORLD):
                owner = (rank + distance) % WORLD
                begin = owner * part + start
                mask = lanes < min(n - begin, part - start)
                tl.store(out_ptr + begin + lanes, tl.load(result_ptr + owner * stride + lanes, mask=mask), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))


# ----------------------------------------------------------------------------------------- AllReduce, residual, RMSNorm


@triton.jit
def block_sum(value, scratch):
    """Over all threads, in a fixed order. `scratch`: a float per warp, in shared memory."""
    for shift in tl.static_range(5):
        bits = __shfl_xor_sync_i32(0xFFFFFFFF, value.to(tl.int32, bitcast=True), 16 >> shift)
        value += bits.to(tl.float32, bitcast=True)
    __syncthreads()
    if laneid() == 0:
        dl.smem_store(scratch, value, [warp_idx()])
    __syncthreads()
    total = 0.0
    for warp in tl.static_range(num_warps()):
        total += dl.smem_load(scratch, [warp])
    return total


@triton.jit
def with_residual(slots_ptr, stride, call, residual_ptr, residual_out_ptr, packet, PACKETS: tl.constexpr,
                  PER_PACKET: tl.constexpr, WORLD: tl.constexpr):
    """The sum of a packet's contributions, rounded, plus the residual, rounded and stored; as fp32. Zeros behind the row's end."""
    element: tl.constexpr = residual_ptr.dtype.element_ty
    values = dl.zeros_vector(PER_PACKET, tl.float32)
    if packet < PACKETS:
        total = combine_packets(receive_packets(slots_ptr + packet * 2, stride, call, WORLD), element, SUM, WORLD)
        residual = ld_vector(residual_ptr + packet * PER_PACKET, PER_PACKET)
        new = (total.to(tl.float32) + residual.to(tl.float32)).to(element)
        st_vector(residual_out_ptr + packet * PER_PACKET, new)
        values = new.to(tl.float32)
    return values


@triton.jit(do_not_specialize=["rows", "rank", "rows_per_block", "capacity"])
def packet_all_reduce_rms_norm(x_ptr, residual_ptr, weight_ptr, out_ptr, residual_out_ptr, slots_ptr, generation_ptr, rows, rank,
                               rows_per_block, capacity, epsilon, WORLD: tl.constexpr, COLUMNS: tl.constexpr,
                               PER_PACKET: tl.constexpr):
    """residual_out = sum over ranks of x + residual; out = residual_out / rms(residual_out) * weight. All [rows, COLUMNS]; one shot.

    slots_ptr, generation_ptr as for packet_exchange; a block's packets are those of its rows.
    """
    PACKETS: tl.constexpr = COLUMNS // PER_PACKET
    TURNS: tl.constexpr = (PACKETS + num_threads() - 1) // num_threads()
    scratch = dl.allocate_smem(tl.float32, [num_warps()])
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    stride = tl.cast(capacity, tl.int64) * 2
    slots_ptr += (tl.cast(block, tl.int64) * 2 + call % 2) * WORLD * stride
    first_row = tl.cast(block, tl.int64) * rows_per_block
    count = min(tl.cast(rows_per_block, tl.int64), rows - first_row)
    for row in range(0, count):
        for turn in tl.static_range(TURNS):
            packet = turn * num_threads() + thread
            if packet < PACKETS:
                values = ld_vector(x_ptr + (first_row + row) * COLUMNS + packet * PER_PACKET, PER_PACKET)
                for step in tl.static_range(WORLD):
                    target = (rank + step) % WORLD
                    send_packet(dl.symm_at(slots_ptr, target) + rank * stride + (row * PACKETS + packet) * 2, values, call)
    for row in range(0, count):
        begin = (first_row + row) * COLUMNS
        parts = [with_residual(slots_ptr + row * PACKETS * 2, stride, call, residual_ptr + begin, residual_out_ptr + begin,
                               turn * num_threads() + thread, PACKETS, PER_PACKET, WORLD) for turn in range(TURNS)]
        square = 0.0
        for turn in tl.static_range(TURNS):
            for i in tl.static_range(PER_PACKET):
                square += parts[turn][i] * parts[turn][i]
        factor = tl.rsqrt(block_sum(square, scratch) / COLUMNS + epsilon)
        for turn in tl.static_range(TURNS):
            packet = turn * num_threads() + thread
            if packet < PACKETS:
                weight = ld_vector(weight_ptr + packet * PER_PACKET, PER_PACKET).to(tl.float32)
                normal = dl.make_vector([(parts[turn][i] * factor * weight[i]).to(element) for i in range(PER_PACKET)])
                st_vector(out_ptr + begin + packet * PER_PACKET, normal)
    __syncthreads()
    if thread == 0:
        st(generation_ptr + block, call)


@triton.jit(do_not_specialize=["rows", "rank"])
def chunk_all_reduce_rms_norm(x_ptr, residual_ptr, weight_ptr, out_ptr, residual_out_ptr, slots_ptr, signals_ptr, generation_ptr,
                              rows, rank, epsilon, WORLD: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr):
    """The same in two shots, as chunk_all_reduce with a row as a chunk: rank r adds the rows whose number is r modulo the ranks; every
    rank adds the residual to all rows, and normalises them.

    slots_ptr: symmetric, [blocks, 2, SLOTS, WORLD, CHUNK]; signals_ptr: symmetric, [blocks, 2, WORLD]; CHUNK >= COLUMNS.
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    block = tl.cast(tl.program_id(0), tl.int64)
    before = tl.load(generation_ptr + block)
    slots_ptr += 2 * block * SLOTS * WORLD * CHUNK
    results_ptr = slots_ptr + SLOTS * WORLD * CHUNK
    signals_ptr += 2 * block * WORLD
    result_signals_ptr = signals_ptr + WORLD
    lanes = tl.arange(0, CHUNK)
    inside = lanes < COLUMNS
    weight = tl.load(weight_ptr + lanes, mask=inside, other=0.0).to(tl.float32)
    steps = tl.cdiv(tl.cdiv(tl.cast(rows, tl.int64), WORLD) - block, blocks)
    for step in range(0, steps + 2):
        if step < steps:
            first_row = (step * blocks + block) * WORLD
            slot_ptr = slots_ptr + ((before + step) % SLOTS * WORLD + rank) * CHUNK
            for distance in tl.static_range(1, WORLD):
                target = (rank + distance) % WORLD
                mask = inside & (first_row + target < rows)
                values = tl.load(x_ptr + (first_row + target) * COLUMNS + lanes, mask=mask)
                tl.store(dl.symm_at(slot_ptr, target) + lanes, values, mask=mask)
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if (step > 0) & (step <= steps):
            row = ((step - 1) * blocks + block) * WORLD + rank
            mask = inside & (row < rows)
            slot = (before + step - 1) % SLOTS * WORLD
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + slot * CHUNK, token)
            total = combine_chunk(x_ptr + row * COLUMNS, slot_ptr, CHUNK, lanes, mask, rank, 1.0, SUM, False, WORLD, CHUNK)
            result_ptr = results_ptr + (slot + rank) * CHUNK
            for distance in tl.static_range(WORLD):
                tl.store(dl.symm_at(result_ptr, (rank + distance) % WORLD) + lanes, total, mask=mask)
            signal_all(result_signals_ptr, before + step, rank, WORLD)
        if step > 1:
            first_row = ((step - 2) * blocks + block) * WORLD
            token = dl.wait(result_signals_ptr, WORLD, "sys", "acquire", waitValue=before + step - 1, compare="ge")
            result_ptr = dl.consume_token(results_ptr + (before + step - 2) % SLOTS * WORLD * CHUNK, token)
            for owner in tl.static_range(WORLD):
                mask = inside & (first_row + owner < rows)
                at = (first_row + owner) * COLUMNS + lanes
                total = tl.load(result_ptr + owner * CHUNK + lanes, mask=mask, other=0.0).to(tl.float32)
                new = (total + tl.load(residual_ptr + at, mask=mask, other=0.0).to(tl.float32)).to(element)
                tl.store(residual_out_ptr + at, new, mask=mask)
                values = new.to(tl.float32)
                factor = tl.rsqrt(tl.sum(values * values, axis=0) / COLUMNS + epsilon)
                tl.store(out_ptr + at, (values * factor * weight).to(element), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))
