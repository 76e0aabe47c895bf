"""Device code of the collectives' form `ring` (host side: ditron/ops/collectives/RingProtocol.cpp).

Each rank sends to the next one only. A message is a chunk of one part of the data; it goes through a ring of SLOTS slots at the
receiver. Two words of each block synchronise it with its neighbours, both counts of messages since the operator was made: how many
have arrived (raised by the rank before, behind the data) and how many of those that this rank has sent have been consumed, which
gives their slots back (raised by the rank behind).

**Chunks in flight.** A block takes IN_FLIGHT chunks through a hop before it goes on to the next hop, so that while one travels the
others are read, added and sent. Message i of a block is consumed IN_FLIGHT steps of the loop after the step that sent it.

**Why no ring of ranks waits for itself.** Of all blocks of one number take the one that is behind: at step s of its loop, no
other's is smaller. What it wants to receive was sent at step s - IN_FLIGHT of the rank before. The slot that it wants to fill held
message i - SLOTS, which the rank behind consumes at the latest in step s - SLOTS + IN_FLIGHT <= s, at its beginning. So it goes on.

**Order.** The part of rank p is added on its way from p + 1 around to p: every rank gets the same bits, those that p has made. Between
two ranks a sum has the type of the slots; on each it is made in fp32 (integers: 32 or 64 bits).
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid

from .chunks import scaled_tile
from .reduction import accumulator_type, combine, finish

IN_FLIGHT = tl.constexpr(2)
SLOTS = tl.constexpr(4)


@triton.jit
def receive(slots_ptr, words_ptr, number, stride, lanes, mask, left):
    """Message `number` of this block; its slot is free again afterwards."""
    token = dl.wait(words_ptr, 1, "sys", "acquire", waitValue=number + 1, compare="ge")
    slot_ptr = dl.consume_token(slots_ptr + number % SLOTS * stride, token)
    values = tl.load(slot_ptr + lanes, mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(dl.symm_at(words_ptr, left) + 1, number + 1, scope="sys", semantic="release")
    return values


@triton.jit
def send(slots_ptr, words_ptr, number, stride, lanes, mask, values, right):
    """Message `number` of this block, as soon as its slot at the next rank is free."""
    token = dl.wait(words_ptr + 1, 1, "sys", "acquire", waitValue=number + 1 - SLOTS, compare="ge")
    slot_ptr = dl.consume_token(slots_ptr + number % SLOTS * stride, token)
    tl.store(dl.symm_at(slot_ptr, right) + lanes, values.to(slots_ptr.dtype.element_ty), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(dl.symm_at(words_ptr, right), number + 1, scope="sys", semantic="release")


@triton.jit(do_not_specialize=["rank"])
def ring_exchange(x_ptr, out_ptr, slots_ptr, words_ptr, generation_ptr, n, part, rank, slot_elements, scale,
                  WORLD: tl.constexpr, CHUNK: tl.constexpr, REDUCE: tl.constexpr, GATHER: tl.constexpr, REDUCTION: tl.constexpr,
                  SCALED: tl.constexpr):
    """ReduceScatter (REDUCE): x_ptr [WORLD, part], out_ptr [part]. AllGather (GATHER): [part] to [WORLD, part]. AllReduce (both):
    [n] to [n], cut into parts of `part` elements. n: of the whole.

    With REDUCE a part travels WORLD - 1 hops to its owner and is added on the way, with GATHER as many from its owner to all others.
    slots_ptr: symmetric, [blocks, SLOTS, slot_elements] with CHUNK <= slot_elements; words_ptr: symmetric, [blocks, 2]: arrived,
    consumed; generation_ptr: [blocks], messages so far.
    """
    HOPS: tl.constexpr = 2 * WORLD - 1 if REDUCE and GATHER else WORLD
    # The last hop that reads this rank's own contribution. There the part is complete.
    OWNED: tl.constexpr = WORLD - 1 if REDUCE else 0
    element: tl.constexpr = x_ptr.dtype.element_ty
    accumulator: tl.constexpr = accumulator_type(element)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    slots_ptr += block * SLOTS * stride
    words_ptr += block * 2
    left = (rank + WORLD - 1) % WORLD
    right = (rank + 1) % WORLD
    sent = tl.load(generation_ptr + block)
    received = sent
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    chunks = tl.cdiv(part - block * CHUNK, step_elements)
    for first in range(0, chunks, IN_FLIGHT):
        for hop in range(HOPS):
            owner = (rank + OWNED + WORLD * 2 - hop) % WORLD
            for chunk in range(first, min(first + IN_FLIGHT, chunks)):
                start = chunk * step_elements + block * CHUNK
                begin = tl.cast(owner, tl.int64) * part + start
                mask = lanes < min(n - begin, part - start)
                # Where the operand has this rank's part alone.
                own_begin = begin if REDUCE else start
                out_begin = begin if GATHER else start
                if hop == 0:
                    values = scaled_tile(tl.load(x_ptr + own_begin + lanes, mask=mask), scale, SCALED)
                    if OWNED == 0:
                        result = values
                        if REDUCE:
                            result = finish(values.to(accumulator), REDUCTION, WORLD).to(element)
                        tl.store(out_ptr + out_begin + lanes, result, mask=mask)
                    if HOPS > 1:
                        send(slots_ptr, words_ptr, sent, stride, lanes, mask, values, right)
                        sent += 1
                elif hop <= OWNED:
                    partial = receive(slots_ptr, words_ptr, received, stride, lanes, mask, left).to(accumulator)
                    received += 1
                    values = scaled_tile(tl.load(x_ptr + own_begin + lanes, mask=mask), scale, SCALED)
                    total = combine(partial, values.to(accumulator), REDUCTION)
                    if hop == OWNED:
                        result = finish(total, REDUCTION, WORLD).to(element)
                        tl.store(out_ptr + out_begin + lanes, result, mask=mask)
                        if GATHER:
                            send(slots_ptr, words_ptr, sent, stride, lanes, mask, result, right)
                            sent += 1
                    else:
                        send(slots_ptr, words_ptr, sent, stride, lanes, mask, total, right)
                        sent += 1
                else:
                    values = receive(slots_ptr, words_ptr, received, stride, lanes, mask, left).to(element)
                    received += 1
                    tl.store(out_ptr + out_begin + lanes, values, mask=mask)
                    if hop < HOPS - 1:
                        send(slots_ptr, words_ptr, sent, stride, lanes, mask, values, right)
                        sent += 1
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, sent)


@triton.jit(do_not_specialize=["rank", "root"])
def ring_broadcast(x_ptr, out_ptr, slots_ptr, words_ptr, generation_ptr, n, rank, root, slot_elements, WORLD: tl.constexpr,
                   CHUNK: tl.constexpr):
    """x_ptr [n] of `root` to out_ptr [n] of all, along the ring from the root to the rank before it. Memory as for ring_exchange.

    The root is the same in all calls: nothing ever goes from the rank before it to it.
    """
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    slots_ptr += block * SLOTS * stride
    words_ptr += block * 2
    left = (rank + WORLD - 1) % WORLD
    right = (rank + 1) % WORLD
    distance = (rank + WORLD - root) % WORLD
    before = tl.load(generation_ptr + block)
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    chunks = tl.cdiv(n - block * CHUNK, step_elements)
    for chunk in range(0, chunks):
        start = chunk * step_elements + block * CHUNK
        mask = lanes < n - start
        if distance == 0:
            values = tl.load(x_ptr + start + lanes, mask=mask)
        else:
            values = receive(slots_ptr, words_ptr, before + chunk, stride, lanes, mask, left)
        tl.store(out_ptr + start + lanes, values, mask=mask)
        if distance < WORLD - 1:
            send(slots_ptr, words_ptr, before + chunk, stride, lanes, mask, values, right)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(chunks, 0))
