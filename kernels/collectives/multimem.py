"""Device code of the collectives' forms `multimem` and `one_shot_multimem` (host side: ditron/ops/collectives/MultimemProtocol.cpp): NVLink
switches add what all ranks have at an address (multimem.ld_reduce), and store at an address of all ranks (multimem.st).

Both work on words of symmetric memory, so that operands pass through slots there. All is done by chunks, in the steps of chunks.py; what a
slot of theirs holds is read from a multicast address by other ranks instead of being stored there by this one, or the other way round,
in the same steps, so that SLOTS is the same.

**Order.** A switch adds in an order that it does not tell, in fp32, and rounds once. In two shots each sum is made by one rank, so that all
ranks have the same bits; in one shot each rank asks for itself.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import (__syncthreads, load_v4_b32, multimem_ld_reduce_v4, multimem_st_v4, num_threads, st,
                                                       st_v4_b32, tid)

from .chunks import SLOTS, scaled_tile, signal_all


@triton.jit
def on_all_ranks(ptr):
    return libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEMX_TEAM_NODE, ptr)


@triton.jit
def stage(x_ptr, staged_ptr, lanes, mask, scale, SCALED: tl.constexpr):
    tl.store(staged_ptr + lanes, scaled_tile(tl.load(x_ptr + lanes, mask=mask), scale, SCALED), mask=mask)


@triton.jit
def per_access(element: tl.constexpr):
    """Elements of 16 bytes."""
    return 128 // element.primitive_bitwidth


@triton.jit
def store_everywhere(from_ptr, slot_ptr, count):
    """From this rank's memory to all ranks' slots, as words in accesses of 16 bytes."""
    words = tl.cdiv(count * (from_ptr.dtype.element_ty.primitive_bitwidth // 8), 4)
    from_ptr = from_ptr.to(tl.pi32_t, bitcast=True)
    everywhere_ptr = on_all_ranks(slot_ptr.to(tl.pi32_t, bitcast=True))
    for first in range(tid(0) * 4, words, num_threads() * 4):
        a, b, c, d = load_v4_b32(from_ptr + first)
        multimem_st_v4(everywhere_ptr + first, a, b, c, d)


@triton.jit(do_not_specialize=["rank"])
def multimem_all_gather(x_ptr, out_ptr, staged_ptr, slots_ptr, signals_ptr, generation_ptr, n, rank, slot_elements,
                        WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """x_ptr [n] to out_ptr [WORLD, n]. Symmetric: staged_ptr [blocks, slot_elements], slots_ptr [blocks, SLOTS, WORLD, slot_elements],
    signals_ptr [blocks, WORLD]. generation_ptr: [blocks], chunks so far."""
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    staged_ptr += block * stride
    slots_ptr += block * SLOTS * WORLD * stride
    signals_ptr += block * WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(n - block * CHUNK, step_elements)
    for step in range(0, steps + 1):
        if step < steps:
            start = step * step_elements + block * CHUNK
            count = n - start
            __syncthreads()
            stage(x_ptr + start, staged_ptr, lanes, lanes < count, 1.0, False)
            __syncthreads()
            store_everywhere(staged_ptr, slots_ptr + ((before + step) % SLOTS * WORLD + rank) * stride, min(count, CHUNK))
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if step > 0:
            start = (step - 1) * step_elements + block * CHUNK
            mask = lanes < n - start
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + (before + step - 1) % SLOTS * WORLD * stride, token)
            for source in tl.static_range(WORLD):
                tl.store(out_ptr + tl.cast(n, tl.int64) * source + start + lanes,
                         tl.load(slot_ptr + source * stride + lanes, mask=mask), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))


@triton.jit(do_not_specialize=["rank"])
def multimem_one_shot_all_reduce(x_ptr, out_ptr, staged_ptr, sums_ptr, signals_ptr, generation_ptr, n, rank, slot_elements, scale,
                                 WORLD: tl.constexpr, CHUNK: tl.constexpr, SCALED: tl.constexpr):
    """x_ptr [n] to out_ptr [n]. Symmetric: staged_ptr [blocks, SLOTS, slot_elements], sums_ptr [blocks, slot_elements], signals_ptr [blocks,
    WORLD]. generation_ptr: [blocks], chunks so far."""
    PER: tl.constexpr = per_access(x_ptr.dtype.element_ty)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    staged_ptr += block * SLOTS * stride
    sums_ptr += block * stride
    signals_ptr += block * WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(n - block * CHUNK, step_elements)
    for step in range(0, steps + 1):
        if step < steps:
            start = step * step_elements + block * CHUNK
            stage(x_ptr + start, staged_ptr + (before + step) % SLOTS * stride, lanes, lanes < n - start, scale, SCALED)
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if step > 0:
            start = (step - 1) * step_elements + block * CHUNK
            count = n - start
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            everywhere_ptr = on_all_ranks(dl.consume_token(staged_ptr + (before + step - 1) % SLOTS * stride, token))
            for first in range(tid(0) * PER, min(count, CHUNK), num_threads() * PER):
                a, b, c, d = multimem_ld_reduce_v4(everywhere_ptr + first, acc_dtype=tl.float32)
                st_v4_b32(sums_ptr + first, a, b, c, d)
            __syncthreads()
            tl.store(out_ptr + start + lanes, tl.load(sums_ptr + lanes, mask=lanes < count), mask=lanes < count)
            __syncthreads()
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))


@triton.jit(do_not_specialize=["rank"])
def multimem_all_reduce(x_ptr, out_ptr, staged_ptr, sums_ptr, signals_ptr, generation_ptr, n, part, rank, slot_elements, scale,
                        WORLD: tl.constexpr, CHUNK: tl.constexpr, SCALED: tl.constexpr):
    """Two shots: rank r asks for the sums of the elements [r * part, (r + 1) * part) and stores them on all ranks. Symmetric: staged_ptr,
    sums_ptr [blocks, SLOTS, WORLD, slot_elements], signals_ptr [blocks, 2, WORLD]. generation_ptr: [blocks], chunks so far."""
    PER: tl.constexpr = per_access(x_ptr.dtype.element_ty)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    staged_ptr += block * SLOTS * WORLD * stride
    sums_ptr += block * SLOTS * WORLD * stride
    signals_ptr += 2 * block * WORLD
    sum_signals_ptr = signals_ptr + WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(part - block * CHUNK, step_elements)
    own_begin = tl.cast(rank, tl.int64) * part
    for step in range(0, steps + 2):
        if step < steps:
            start = step * step_elements + block * CHUNK
            slot_ptr = staged_ptr + (before + step) % SLOTS * WORLD * stride
            for owner in tl.static_range(WORLD):
                begin = owner * tl.cast(part, tl.int64)
                stage(x_ptr + begin + start, slot_ptr + owner * stride, lanes, lanes < min(n - begin, part) - start, scale, SCALED)
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if (step > 0) & (step <= steps):
            start = (step - 1) * step_elements + block * CHUNK
            count = min(min(n - own_begin, part) - start, CHUNK)
            place = ((before + step - 1) % SLOTS * WORLD + rank) * stride
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            contributions_ptr = on_all_ranks(dl.consume_token(staged_ptr + place, token))
            everywhere_ptr = on_all_ranks(sums_ptr + place)
            for first in range(tid(0) * PER, count, num_threads() * PER):
                a, b, c, d = multimem_ld_reduce_v4(contributions_ptr + first, acc_dtype=tl.float32)
                multimem_st_v4(everywhere_ptr + first, a, b, c, d)
            signal_all(sum_signals_ptr, before + step, rank, WORLD)
        if step > 1:
            start = (step - 2) * step_elements + block * CHUNK
            token = dl.wait(sum_signals_ptr, WORLD, "sys", "acquire", waitValue=before + step - 1, compare="ge")
            slot_ptr = dl.consume_token(sums_ptr + (before + step - 2) % SLOTS * WORLD * stride, token)
            for owner in tl.static_range(WORLD):
                begin = owner * tl.cast(part, tl.int64)
                mask = lanes < min(n - begin, part) - start
                tl.store(out_ptr + begin + start + lanes, tl.load(slot_ptr + owner * stride + lanes, mask=mask), mask=mask)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))
