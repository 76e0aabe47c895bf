"""Collectives of any size by *chunks*: pieces of the message go to a ring of slots at the receiver and are followed by a signal. The
steps of a block overlap: while a chunk travels the one before it is added, and the one before that is copied out.

Block b of a rank meets block b of the other ranks only (README.md) and counts its chunks in generation_ptr[b].
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid

from .reduction import accumulator_type, combine, finish

# Slots of the ring of chunks per source. A block pushes a chunk when it has received the one before the last; then every rank has
# pushed that one, so it has gone through its step before, which has emptied the slot of the chunk two earlier still:
# chunk i needs the slot of i - 4 to be free. The two-shot AllReduce is ahead by less.
SLOTS = tl.constexpr(4)


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
        return (values.to(accumulator_type(values.dtype)) * scale).to(values.dtype)
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


@triton.jit
def copy_elsewhere(to_ptr, from_ptr, offsets, mask):
    """Copies, but not what is there already: the own part of a call in place. Where a block has more threads than elements several of them
    load each element, and one that is late would race with the store."""
    mask = mask & (to_ptr.to(tl.int64) != from_ptr.to(tl.int64))
    tl.store(to_ptr + offsets, tl.load(from_ptr + offsets, mask=mask), mask=mask)


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
                copy_elsewhere(out_ptr + start, source_ptr, lanes, mask)
            else:
                for source in tl.static_range(WORLD):
                    source_ptr = slot_ptr + source * stride
                    if source == rank:
                        source_ptr = own_ptr
                    copy_elsewhere(out_ptr + tl.cast(n, tl.int64) * source + start, source_ptr, lanes, mask)
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
    part = tl.cast(part, tl.int64)
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
