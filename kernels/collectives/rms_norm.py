"""AllReduce with a residual and RMSNorm behind it, row by row: by Lamport packets, in one shot or two, and by chunks in two."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__shfl_xor_sync_i32, __syncthreads, laneid, ld_vector, num_threads, num_warps, st,
                                                       st_vector, tid, warp_idx)

from .chunks import SLOTS, combine_chunk, signal_all
from .lamport import combine_words, elements_of, send_words, take_words, words_of
from .reduction import SUM


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
def with_residual(slots_ptr, doubts_ptr, stride, residual_ptr, residual_out_ptr, packet, PACKETS: tl.constexpr, PER_PACKET: tl.constexpr, IS_SUM: tl.constexpr,
                  WORLD: tl.constexpr):
    """The sum of a packet's contributions, rounded, or with IS_SUM what has arrived as such, plus the residual, rounded and stored; as fp32. Zeros behind the row's end."""
    element: tl.constexpr = residual_ptr.dtype.element_ty
    values = dl.zeros_vector(PER_PACKET, tl.float32)
    if packet < PACKETS:
        words = take_words(slots_ptr + packet * 2, doubts_ptr + packet * 2, stride, 1 if IS_SUM else WORLD)
        if IS_SUM:
            total = elements_of(words[0], words[1], element)
        else:
            total = combine_words(words, element, SUM, WORLD)
        residual = ld_vector(residual_ptr + packet * PER_PACKET, PER_PACKET)
        new = (total.to(tl.float32) + residual.to(tl.float32)).to(element)
        st_vector(residual_out_ptr + packet * PER_PACKET, new)
        values = new.to(tl.float32)
    return values


@triton.jit(do_not_specialize=["rows", "rank", "rows_per_block", "capacity"])
def lamport_all_reduce_rms_norm(x_ptr, residual_ptr, weight_ptr, out_ptr, residual_out_ptr, slots_ptr, doubts_ptr, generation_ptr, rows, rank, rows_per_block, capacity, epsilon,
                                WORLD: tl.constexpr, COLUMNS: tl.constexpr, PER_PACKET: tl.constexpr, TWO_SHOT: tl.constexpr):
    """residual_out = sum over ranks of x + residual; out = residual_out / rms(residual_out) * weight. All [rows, COLUMNS].

    TWO_SHOT: the packets of a row are dealt out to the ranks, OWN in a row to each, so that what a warp sends to a rank lies together there; each adds its own and sends the sums to all; every
    rank adds the residual to all of them.
    slots_ptr, doubts_ptr: symmetric, [blocks, 2, WORLD + 1, capacity] packets of two words (lamport.py): contributions, and sums; generation_ptr: [blocks]. A block's packets are those
    of its rows, of which it has some.
    """
    PACKETS: tl.constexpr = COLUMNS // PER_PACKET
    OWN: tl.constexpr = (PACKETS + WORLD - 1) // WORLD
    TURNS: tl.constexpr = (PACKETS + num_threads() - 1) // num_threads()
    scratch = dl.allocate_smem(tl.float32, [num_warps()])
    element: tl.constexpr = x_ptr.dtype.element_ty
    block = tl.program_id(0)
    thread = tid(0)
    call = tl.load(generation_ptr + block) + 1
    stride = tl.cast(capacity, tl.int64) * 2
    set_words = (tl.cast(block, tl.int64) * 2 + call % 2) * (WORLD + 1) * stride
    slots_ptr += set_words
    doubts_ptr += set_words
    sums_ptr = slots_ptr + WORLD * stride
    sum_doubts_ptr = doubts_ptr + WORLD * stride
    first_row = tl.cast(block, tl.int64) * rows_per_block
    count = min(tl.cast(rows_per_block, tl.int64), rows - first_row)
    for row in range(0, count):
        for turn in tl.static_range(TURNS):
            packet = turn * num_threads() + thread
            if packet < PACKETS:
                words = words_of(ld_vector(x_ptr + (first_row + row) * COLUMNS + packet * PER_PACKET, PER_PACKET))
                place = rank * stride + (row * PACKETS + packet) * 2
                if TWO_SHOT:
                    owner = packet // OWN
                    send_words(dl.symm_at(slots_ptr, owner) + place, dl.symm_at(doubts_ptr, owner) + place, words)
                else:
                    for step in tl.static_range(1, WORLD + 1):
                        target = (rank + step) % WORLD
                        send_words(dl.symm_at(slots_ptr, target) + place, dl.symm_at(doubts_ptr, target) + place, words)
    if TWO_SHOT:
        for index in range(thread, count * OWN, num_threads()):
            packet = rank * OWN + index % OWN
            if packet < PACKETS:
                place = (index // OWN * PACKETS + packet) * 2
                words = words_of(combine_words(take_words(slots_ptr + place, doubts_ptr + place, stride, WORLD), element, SUM, WORLD))
                for step in tl.static_range(1, WORLD + 1):
                    target = (rank + step) % WORLD
                    send_words(dl.symm_at(sums_ptr, target) + place, dl.symm_at(sum_doubts_ptr, target) + place, words)
        slots_ptr = sums_ptr
        doubts_ptr = sum_doubts_ptr
    for row in range(0, count):
        begin = (first_row + row) * COLUMNS
        parts = [with_residual(slots_ptr + row * PACKETS * 2, doubts_ptr + row * PACKETS * 2, stride, residual_ptr + begin, residual_out_ptr + begin,
                               turn * num_threads() + thread, PACKETS, PER_PACKET, TWO_SHOT, WORLD) for turn in range(TURNS)]
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
