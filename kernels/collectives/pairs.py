"""Transfers between pairs of ranks whose sizes differ: AllToAllV with sizes on the device, send/receive, and the barrier.

Where sizes differ the ranks of a call do not keep step, so that nothing follows from what other ranks have sent, as it does in
chunks.py. Here a sender knows of each receiver how much it has taken:

- `arrived`, at the receiver: how many pieces a sender's block has stored in this block's ring so far;
- `freed`, at the sender: how many of those the receiver has copied out. Piece i is stored when i + 1 - SLOTS are freed.

Both are counted by block and pair, from the first call on, and read with >=; nothing is common to the blocks of a call (README.md).

**Why no rank waits for ever.** send_receive: a block waits for none of its messages as long as one of them can go on. all_to_all_v, whose
calls all ranks make in step: in step k a block stores piece k for each target and then takes piece k - 1 of each source. Look at the
block that is least far, in step k. The piece k - 1 that it waits for has been stored, since the sender is in step k or beyond; the
piece k - SLOTS that must be freed has been taken in step k - SLOTS + 1 < k, which the receiver has left.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_cas, ld, num_threads, st, tid

from .packets import load_packet, packet_values, receive_packets, send_packet, store_packet

# Pieces of a block that may be on their way between two ranks.
SLOTS = tl.constexpr(4)

# What report() says (ditron/ops/collectives/TransferReport.cpp).
SENDS_TOO_MANY = tl.constexpr(1)
SENDS_FROM_OUTSIDE = tl.constexpr(2)
RECEIVES_TOO_MANY = tl.constexpr(3)
RECEIVES_TO_OUTSIDE = tl.constexpr(4)
SIZES_DIFFER = tl.constexpr(5)


@triton.jit
def report(error_ptr, problem, peer, value, limit):
    """By any thread. The first problem stays until the host has read it."""
    if atomic_cas(error_ptr, tl.cast(0, tl.int64), tl.cast(problem, tl.int64)) == 0:
        st(error_ptr + 1, tl.cast(peer, tl.int64))
        st(error_ptr + 2, value)
        st(error_ptr + 3, tl.cast(limit, tl.int64))


@triton.jit
def piece_of(elements, blocks, CHUNK: tl.constexpr, LINE: tl.constexpr):
    """How the elements for one rank are cut: into as many pieces as there are blocks, of whole cache lines, of at most CHUNK."""
    return min(max(tl.cdiv(tl.cdiv(elements, blocks), LINE) * LINE, LINE), CHUNK)


@triton.jit
def steps_of(elements, block, blocks, CHUNK: tl.constexpr, LINE: tl.constexpr):
    """The pieces of a block."""
    piece = piece_of(elements, blocks, CHUNK, LINE)
    return max(tl.cdiv(elements - block * piece, blocks * piece), 0)


@triton.jit
def copy_piece(to_ptr, from_ptr, count, CHUNK: tl.constexpr):
    """Wide accesses up to the last multiple of 16 elements, if the addresses allow them."""
    lanes = tl.arange(0, CHUNK)
    whole = count // 16 * 16
    tl.store(to_ptr + lanes, tl.load(from_ptr + lanes, mask=lanes < whole), mask=lanes < whole)
    if whole < count:
        last = tl.arange(0, 16)
        tl.store(to_ptr + whole + last, tl.load(from_ptr + whole + last, mask=last < count - whole), mask=last < count - whole)


@triton.jit
def outside(count, offset, rows):
    """Whether a part that is not empty lies elsewhere than in the rows."""
    return (count > 0) & ((offset < 0) | (offset > rows - count))


@triton.jit
def place_part(counts_ptr, given_offsets_ptr, source, most, WORLD: tl.constexpr, PACKED: tl.constexpr):
    """Where the rows from a source go: where the caller says, or behind those of the sources before."""
    if PACKED:
        offset = tl.cast(0, tl.int64)
        for other in tl.static_range(WORLD):
            count = ld(counts_ptr + other)
            if (other < source) & (count > 0) & (count <= most):
                offset += count
    else:
        offset = ld(given_offsets_ptr + source)
    return offset


@triton.jit(do_not_specialize=["x_rows", "out_rows", "most", "small", "capacity", "rank"],
            do_not_specialize_on_alignment=["send_counts_ptr", "send_offsets_ptr", "receive_counts_ptr", "receive_offsets_ptr"])
def all_to_all_v(x_ptr, out_ptr, send_counts_ptr, send_offsets_ptr, receive_counts_ptr, receive_offsets_ptr, slots_ptr, ring_ptr, arrived_ptr,
                 freed_ptr, counters_ptr, parts_ptr, error_ptr, x_rows, out_rows, row, most, small, capacity, rank, WORLD: tl.constexpr,
                 PER_PACKET: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr, PACKED: tl.constexpr, RINGS: tl.constexpr,
                 ALIGNED: tl.constexpr):
    """AllToAll of parts whose sizes stand on the device, in rows of `row` elements: send_counts_ptr [WORLD] rows from send_offsets_ptr
    [WORLD] on in x_ptr [x_rows, row] go to the ranks; receive_counts_ptr [WORLD] becomes what came from each, which is in out_ptr [out_rows,
    row] from receive_offsets_ptr [WORLD] on. PACKED: behind each other, and the offsets are written. Parts of up to `small` rows go by packets,
    larger ones, of at most `most`, through rings (RINGS: there are such).

    slots_ptr: symmetric, [blocks, 2, WORLD, 1 + capacity] packets, the first for the count; ring_ptr: symmetric, [blocks, WORLD, SLOTS, CHUNK];
    arrived_ptr, freed_ptr: symmetric, [blocks, WORLD]; counters_ptr: [blocks, 1 + 2 * WORLD]: calls, pieces sent, pieces taken;
    parts_ptr: [blocks, 3, WORLD]: rows to send, rows to receive, their places; error_ptr: [4], see report().
    """
    block = tl.cast(tl.program_id(0), tl.int64)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    thread = tid(0)
    row = tl.cast(row, tl.int64)
    counters_ptr += block * (1 + 2 * WORLD)
    parts_ptr += block * (3 * WORLD)
    receive_ptr = parts_ptr + WORLD
    places_ptr = receive_ptr + WORLD
    call = tl.load(counters_ptr) + 1
    stride = (1 + tl.cast(capacity, tl.int64)) * 2
    slots_ptr += (block * 2 + call % 2) * WORLD * stride
    for peer in range(thread, WORLD, num_threads()):
        count = ld(send_counts_ptr + peer)
        offset = ld(send_offsets_ptr + peer)
        problem = 0
        # Who cannot be sent so much is told how much it was.
        header = count
        if (count < 0) | (count > most):
            problem = SENDS_TOO_MANY
        elif outside(count, offset, x_rows):
            problem = SENDS_FROM_OUTSIDE
            header = tl.cast(0, tl.int64)
        send_packet(dl.symm_at(slots_ptr, peer) + rank * stride, dl.make_vector([header]), call)
        if problem == 0:
            st(parts_ptr + peer, count)
        else:
            st(parts_ptr + peer, tl.cast(0, tl.int64))
            if block == 0:
                if problem == SENDS_TOO_MANY:
                    report(error_ptr, problem, peer, count, most)
                else:
                    report(error_ptr, problem, peer, offset + count, x_rows)
    __syncthreads()
    # Small parts: packet i is of block i / threads % blocks.
    first = block * num_threads() + thread
    together = blocks * num_threads()
    for distance in range(1, WORLD):
        target = (rank + distance) % WORLD
        count = tl.load(parts_ptr + target)
        if (count > 0) & (count <= small):
            elements = count * row
            part_ptr = x_ptr + tl.load(send_offsets_ptr + target) * row
            slot_ptr = dl.symm_at(slots_ptr, target) + rank * stride + 2
            for packet in range(first, tl.cdiv(elements, PER_PACKET), together):
                values = load_packet(part_ptr, packet * PER_PACKET, elements, PER_PACKET, ALIGNED)
                send_packet(slot_ptr + (packet // together * num_threads() + thread) * 2, values, call)
    for peer in range(thread, WORLD, num_threads()):
        words = receive_packets(slots_ptr + peer * stride, stride, call, 1)
        st(receive_ptr + peer, packet_values(words[0], words[1], tl.int64)[0])
    __syncthreads()
    # Places are found from the counts as they came: they are replaced when all threads have.
    for peer in range(thread, WORLD, num_threads()):
        st(places_ptr + peer, place_part(receive_ptr, receive_offsets_ptr, peer, most, WORLD, PACKED))
    __syncthreads()
    for peer in range(thread, WORLD, num_threads()):
        count = ld(receive_ptr + peer)
        place = ld(places_ptr + peer)
        if PACKED and block == 0:
            st(receive_offsets_ptr + peer, place)
        stored = count
        if (count < 0) | (count > most):
            stored = tl.cast(0, tl.int64)
            st(receive_ptr + peer, stored)
            if block == 0:
                report(error_ptr, RECEIVES_TOO_MANY, peer, count, most)
        elif outside(count, place, out_rows):
            # It is taken from the sender, and dropped.
            stored = tl.cast(0, tl.int64)
            st(places_ptr + peer, tl.cast(-1, tl.int64))
            if block == 0:
                report(error_ptr, RECEIVES_TO_OUTSIDE, peer, place + count, out_rows)
        if block == 0:
            st(receive_counts_ptr + peer, stored)
    __syncthreads()
    steps = tl.cast(0, tl.int64)
    for peer in range(WORLD):
        count = tl.load(parts_ptr + peer)
        own_place = tl.load(places_ptr + peer)
        if peer == rank:
            elements = count * row
            if own_place >= 0:
                piece = piece_of(elements, blocks, CHUNK, LINE)
                for begin in range(block * piece, elements, blocks * piece):
                    copy_piece(out_ptr + own_place * row + begin, x_ptr + tl.load(send_offsets_ptr + peer) * row + begin,
                               min(piece, elements - begin), CHUNK)
        else:
            count = max(count, tl.load(receive_ptr + peer))
            if count > small:
                steps = max(steps, steps_of(count * row, block, blocks, CHUNK, LINE))
    for distance in range(1, WORLD):
        source = (rank + WORLD - distance) % WORLD
        count = tl.load(receive_ptr + source)
        if (count > 0) & (count <= small):
            elements = count * row
            place = tl.load(places_ptr + source)
            slot_ptr = slots_ptr + source * stride + 2
            for packet in range(first, tl.cdiv(elements, PER_PACKET), together):
                words = receive_packets(slot_ptr + (packet // together * num_threads() + thread) * 2, stride, call, 1)
                if place >= 0:
                    store_packet(out_ptr + place * row, packet * PER_PACKET, elements,
                                 packet_values(words[0], words[1], x_ptr.dtype.element_ty), PER_PACKET, ALIGNED)
    if RINGS:
        large_parts(x_ptr, out_ptr, send_offsets_ptr, ring_ptr + block * WORLD * SLOTS * CHUNK, arrived_ptr + block * WORLD,
                    freed_ptr + block * WORLD, counters_ptr + 1, parts_ptr, steps, row, small, rank, WORLD, CHUNK, LINE)
    __syncthreads()
    if thread == 0:
        st(counters_ptr, call)


@triton.jit
def large_parts(x_ptr, out_ptr, send_offsets_ptr, ring_ptr, arrived_ptr, freed_ptr, counters_ptr, parts_ptr, steps, row, small, rank,
                WORLD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr):
    """What all_to_all_v sends through rings. The pointers are those of this block."""
    block = tl.cast(tl.program_id(0), tl.int64)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    thread = tid(0)
    receive_ptr = parts_ptr + WORLD
    places_ptr = receive_ptr + WORLD
    taken_ptr = counters_ptr + WORLD
    for step in range(0, steps + (steps > 0).to(tl.int64)):
        for distance in range(1, WORLD):
            target = (rank + distance) % WORLD
            count = tl.load(parts_ptr + target)
            elements = count * row
            if (count > small) & (step < steps_of(elements, block, blocks, CHUNK, LINE)):
                number = tl.load(counters_ptr + target) + step
                piece = piece_of(elements, blocks, CHUNK, LINE)
                begin = (step * blocks + block) * piece
                token = dl.wait(freed_ptr + target, 1, "sys", "acquire", waitValue=number + 1 - SLOTS, compare="ge")
                slot_ptr = dl.consume_token(ring_ptr + (rank * SLOTS + number % SLOTS) * CHUNK, token)
                copy_piece(dl.symm_at(slot_ptr, target), x_ptr + tl.load(send_offsets_ptr + target) * row + begin,
                           min(piece, elements - begin), CHUNK)
        __syncthreads()
        for peer in range(thread, WORLD, num_threads()):
            count = ld(parts_ptr + peer)
            if (peer != rank) & (count > small):
                if step < steps_of(count * row, block, blocks, CHUNK, LINE):
                    st(dl.symm_at(arrived_ptr, peer) + rank, ld(counters_ptr + peer) + step + 1, scope="sys", semantic="release")
        for distance in range(1, WORLD):
            source = (rank + WORLD - distance) % WORLD
            count = tl.load(receive_ptr + source)
            elements = count * row
            if (step > 0) & (count > small) & (step <= steps_of(elements, block, blocks, CHUNK, LINE)):
                number = tl.load(taken_ptr + source) + step
                piece = piece_of(elements, blocks, CHUNK, LINE)
                begin = ((step - 1) * blocks + block) * piece
                place = tl.load(places_ptr + source)
                token = dl.wait(arrived_ptr + source, 1, "sys", "acquire", waitValue=number, compare="ge")
                slot_ptr = dl.consume_token(ring_ptr + (source * SLOTS + (number - 1) % SLOTS) * CHUNK, token)
                if place >= 0:
                    copy_piece(out_ptr + place * row + begin, slot_ptr, min(piece, elements - begin), CHUNK)
        __syncthreads()
        for peer in range(thread, WORLD, num_threads()):
            count = ld(receive_ptr + peer)
            if (peer != rank) & (step > 0) & (count > small):
                if step <= steps_of(count * row, block, blocks, CHUNK, LINE):
                    st(dl.symm_at(freed_ptr, peer) + rank, ld(taken_ptr + peer) + step, scope="sys", semantic="release")
    __syncthreads()
    for peer in range(thread, WORLD, num_threads()):
        for part in tl.static_range(2):
            count = ld(parts_ptr + part * WORLD + peer)
            if (peer != rank) & (count > small):
                st(counters_ptr + part * WORLD + peer,
                   ld(counters_ptr + part * WORLD + peer) + steps_of(count * row, block, blocks, CHUNK, LINE))


# What a block can do for one end of a message.
DONE = tl.constexpr(0)
HELD_UP = tl.constexpr(1)
READY = tl.constexpr(2)


@triton.jit
def look_at(states, place, count_ptr, last_ptr, word_ptr, free: tl.constexpr):
    """One thread: whether piece number count_ptr[0] + 1 - free has been counted in word_ptr, which the next piece of an end needs."""
    # First, since reports of deadlocks name the word that a loop reads first.
    word = ld(word_ptr, scope="sys", semantic="acquire")
    count = ld(count_ptr)
    state = DONE
    if count < ld(last_ptr):
        state = HELD_UP
        if word >= count + 1 - free:
            state = READY
    dl.smem_store(states, state, [place])


@triton.jit(do_not_specialize=["send_elements", "receive_elements", "rank"])
def send_receive(send_ptrs, send_elements, receive_ptrs, receive_elements, ring_ptr, sizes_ptr, arrived_ptr, freed_ptr, counters_ptr,
                 error_ptr, rank, WORLD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr):
    """At most one message to each rank and one from each: tuples of WORLD addresses and numbers of elements, -1 for no message. Ends when
    the receivers have taken everything.

    Ranks need not make their calls in step: a message of this call may meet the next call of its receiver, which begins only when another
    message of this call has been received. So a block waits for no message as long as another can go on: in each turn it looks at the words of all,
    and moves a piece of those that are ready. When one end of one message is left it waits.

    ring_ptr: symmetric, [blocks, WORLD, SLOTS, CHUNK]; sizes_ptr: symmetric, [blocks, WORLD, SLOTS]: elements of the message whose piece is in
    the slot; arrived_ptr, freed_ptr: symmetric, [blocks, WORLD]; counters_ptr: [blocks, 5, WORLD]: pieces sent, pieces taken; what both are at
    the end of this call; pieces taken before it. error_ptr: [4], see report(). A message has a piece in every block, even if that is empty: so
    sizes are compared.
    """
    states = dl.allocate_smem(tl.int32, [2 * WORLD])
    block = tl.cast(tl.program_id(0), tl.int64)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    thread = tid(0)
    ring_ptr += block * WORLD * SLOTS * CHUNK
    sizes_ptr += block * WORLD * SLOTS
    arrived_ptr += block * WORLD
    freed_ptr += block * WORLD
    counters_ptr += block * 5 * WORLD
    taken_ptr = counters_ptr + WORLD
    last_sent_ptr = taken_ptr + WORLD
    last_taken_ptr = last_sent_ptr + WORLD
    before_ptr = last_taken_ptr + WORLD
    if thread == 0:
        for peer in tl.static_range(WORLD):
            sent = ld(counters_ptr + peer)
            taken = ld(taken_ptr + peer)
            if send_elements[peer] >= 0:
                sent += max(steps_of(tl.cast(send_elements[peer], tl.int64), block, blocks, CHUNK, LINE), 1)
            st(last_sent_ptr + peer, sent)
            st(before_ptr + peer, taken)
            # Until the first piece says how many there are.
            st(last_taken_ptr + peer, taken + tl.where(receive_elements[peer] >= 0, 1, 0).to(tl.int64))
    __syncthreads()
    left = 1
    while left > 0:
        for peer in range(thread, WORLD, num_threads()):
            look_at(states, peer, counters_ptr + peer, last_sent_ptr + peer, freed_ptr + peer, SLOTS)
            look_at(states, WORLD + peer, taken_ptr + peer, last_taken_ptr + peer, arrived_ptr + peer, 0)
        __syncthreads()
        left = 0
        for end in tl.static_range(2 * WORLD):
            left += (tl.load(dl.smem_get_ptr(states, [end])) != DONE).to(tl.int32)
        # The least state that is gone on from.
        least = HELD_UP if left == 1 else READY
        for peer in tl.static_range(WORLD):
            if tl.load(dl.smem_get_ptr(states, [peer])) >= least:
                elements = tl.cast(send_elements[peer], tl.int64)
                number = tl.load(counters_ptr + peer)
                step = number - tl.load(last_sent_ptr + peer) + max(steps_of(elements, block, blocks, CHUNK, LINE), 1)
                piece = piece_of(elements, blocks, CHUNK, LINE)
                begin = (step * blocks + block) * piece
                token = dl.wait(freed_ptr + peer, 1, "sys", "acquire", waitValue=number + 1 - SLOTS, compare="ge")
                slot = rank * SLOTS + number % SLOTS
                slot_ptr = dl.consume_token(ring_ptr + slot * CHUNK, token)
                copy_piece(dl.symm_at(slot_ptr, peer), send_ptrs[peer] + begin, max(min(piece, elements - begin), 0), CHUNK)
                __syncthreads()
                if thread == 0:
                    st(counters_ptr + peer, number + 1)
                    st(dl.symm_at(sizes_ptr, peer) + slot, elements, scope="sys")
                    st(dl.symm_at(arrived_ptr, peer) + rank, number + 1, scope="sys", semantic="release")
        for peer in tl.static_range(WORLD):
            if tl.load(dl.smem_get_ptr(states, [WORLD + peer])) >= least:
                number = tl.load(taken_ptr + peer)
                step = number - tl.load(before_ptr + peer)
                token = dl.wait(arrived_ptr + peer, 1, "sys", "acquire", waitValue=number + 1, compare="ge")
                slot = peer * SLOTS + number % SLOTS
                slot_ptr = dl.consume_token(ring_ptr + slot * CHUNK, token)
                sent = tl.load(dl.consume_token(sizes_ptr + slot, token))
                if sent == receive_elements[peer]:
                    piece = piece_of(sent, blocks, CHUNK, LINE)
                    begin = (step * blocks + block) * piece
                    copy_piece(receive_ptrs[peer] + begin, slot_ptr, max(min(piece, sent - begin), 0), CHUNK)
                __syncthreads()
                if thread == 0:
                    if (sent != receive_elements[peer]) & (block == 0):
                        report(error_ptr, SIZES_DIFFER, peer, sent, receive_elements[peer])
                    st(taken_ptr + peer, number + 1)
                    st(last_taken_ptr + peer, number - step + max(steps_of(sent, block, blocks, CHUNK, LINE), 1))
                    st(dl.symm_at(freed_ptr, peer) + rank, number + 1, scope="sys", semantic="release")
        __syncthreads()
    for peer in tl.static_range(WORLD):
        if send_elements[peer] >= 0:
            last = tl.load(last_sent_ptr + peer)
            dl.wait(freed_ptr + peer, 1, "sys", "acquire", waitValue=last, compare="ge")
            __syncthreads()


@triton.jit(do_not_specialize=["rank"])
def barrier(words_ptr, counter_ptr, rank, WORLD: tl.constexpr):
    """No rank's call ends before all ranks have begun theirs; what they did before is then visible. One block.

    words_ptr: symmetric, [WORLD]: calls of each rank; counter_ptr: [1], calls of this one.
    """
    thread = tid(0)
    call = tl.load(counter_ptr) + 1
    __syncthreads()
    for peer in range(thread, WORLD, num_threads()):
        st(dl.symm_at(words_ptr, peer) + rank, call, scope="sys", semantic="release")
    token = dl.wait(words_ptr, WORLD, "sys", "acquire", waitValue=call, compare="ge")
    if thread == 0:
        st(dl.consume_token(counter_ptr, token), call)
