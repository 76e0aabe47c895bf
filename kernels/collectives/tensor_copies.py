"""Device code of the collectives' form `tensor_copies` (host side: ditron/ops/collectives/TensorCopyProtocol.cpp): what goes to other
ranks, comes from them, or is laid into place is carried by bulk copies through shared memory (compute capability 9.0), which one thread
of a block starts. So few warps keep a link busy.

AllGather and AllToAll push chunks into the receivers' slots, as chunk_exchange does and with the same memory and signals: ranks whose
operands bulk copies cannot take (addresses and sizes that are no multiples of 16 bytes) run that kernel instead, in the same call.
ReduceScatter pulls: a rank lays its contributions into slots of its own, and their owners fetch them. AllReduce is that in the first shot
and pushes the sums.

**Moves.** A move is a copy from global memory into a stage of shared memory, for which a mbarrier waits, and copies from there, which
are a group. Moves are counted for the whole kernel, move m uses stage m % STAGES. The copies in are AHEAD moves before the copies out.

**Steps** are those of chunks.py, but that a chunk is signalled at the end of the step that has sent it, after the wait for all copies. A
block that sends chunk i has in the step before seen signals of chunk i - 2 from all ranks, which were raised when these had received
i - 3; so SLOTS may be as in chunks.py. The sums of chunk i are sent when signals of i have been seen, that is when all have taken the
sums of i - 2.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, cp_async_bulk_commit_group, cp_async_bulk_global_to_shared,
                                                       cp_async_bulk_shared_to_global, cp_async_bulk_wait_group, fence_async_shared,
                                                       mbarrier_arrive_expect_tx, mbarrier_init, mbarrier_wait_parity, st, tid)

from .chunks import SLOTS, scaled_tile, signal_all
from .reduction import accumulator_type, combine, finish

STAGES = tl.constexpr(4)
AHEAD = tl.constexpr(2)


@triton.jit
def bytes_of(count, CHUNK: tl.constexpr, element: tl.constexpr):
    """Of a chunk of which `count` elements are left, 0 for less; rounded up to what bulk copies take, for memory that is the operator's."""
    return (max(min(count, CHUNK), 0) * (element.primitive_bitwidth // 8) + 15).to(tl.int32) // 16 * 16


@triton.jit
def begin_moves(bars):
    if tid(0) == 0:
        for stage in tl.static_range(STAGES):
            mbarrier_init(dl.smem_get_ptr(bars, [stage]), 1)
        fence_async_shared()
    __syncthreads()


@triton.jit
def move_in(stages, bars, move, source_ptr, size):
    """One thread. A size of 0 arrives at once."""
    # Of the groups of moves up to move - AHEAD - 1 the last may not have read its stage yet: that of move - STAGES is older.
    cp_async_bulk_wait_group(1, read=True)
    stage = (move % STAGES).to(tl.int32)
    bar = dl.smem_get_ptr(bars, [stage])
    mbarrier_arrive_expect_tx(bar, size)
    if size > 0:
        cp_async_bulk_global_to_shared(dl.smem_get_ptr(stages, [stage, 0]), source_ptr, size, bar)


@triton.jit
def arrived(stages, bars, move):
    """The stage of a move, when it is filled."""
    stage = (move % STAGES).to(tl.int32)
    mbarrier_wait_parity(dl.smem_get_ptr(bars, [stage]), (move // STAGES % 2).to(tl.int32))
    return dl.smem_get_ptr(stages, [stage, 0])


@triton.jit
def move_out(target_ptr, stage_ptr, size):
    if size > 0:
        cp_async_bulk_shared_to_global(target_ptr, stage_ptr, size)


@triton.jit
def push(stages, bars, move, x_ptr, out_ptr, slot_ptr, n, start, size, rank, WORLD: tl.constexpr, SCATTER: tl.constexpr):
    """One thread: the chunk at `start` to slot_ptr of all other ranks, and the own part to its place in out_ptr."""
    MOVES: tl.constexpr = WORLD if SCATTER else 1
    own_ptr = out_ptr + (tl.cast(rank, tl.int64) * n + start)
    for step in range(MOVES + AHEAD):
        if step < MOVES:
            source_ptr = x_ptr + start
            if SCATTER:
                source_ptr += tl.cast((rank + 1 + step) % WORLD, tl.int64) * n
            move_in(stages, bars, move + step, source_ptr, size)
        if step >= AHEAD:
            stage_ptr = arrived(stages, bars, move + step - AHEAD)
            if SCATTER:
                target = (rank + 1 + step - AHEAD) % WORLD
                if target == rank:
                    move_out(own_ptr, stage_ptr, size)
                else:
                    move_out(dl.symm_at(slot_ptr, target), stage_ptr, size)
            else:
                for distance in range(1, WORLD):
                    move_out(dl.symm_at(slot_ptr, (rank + distance) % WORLD), stage_ptr, size)
                move_out(own_ptr, stage_ptr, size)
            cp_async_bulk_commit_group()


@triton.jit
def lay_out(stages, bars, move, slots_ptr, stride, out_ptr, n, part, start, rank, WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """One thread: what has come from all other ranks to their parts of out_ptr [n]."""
    element: tl.constexpr = out_ptr.dtype.element_ty
    for step in range(WORLD - 1 + AHEAD):
        if step < WORLD - 1:
            source = (rank + WORLD - 1 - step) % WORLD
            size = bytes_of(min(n - tl.cast(source, tl.int64) * part, part) - start, CHUNK, element)
            move_in(stages, bars, move + step, slots_ptr + source * stride, size)
        if step >= AHEAD:
            source = (rank + WORLD - 1 - (step - AHEAD)) % WORLD
            begin = tl.cast(source, tl.int64) * part
            size = bytes_of(min(n - begin, part) - start, CHUNK, element)
            move_out(out_ptr + begin + start, arrived(stages, bars, move + step - AHEAD), size)
            cp_async_bulk_commit_group()


@triton.jit(do_not_specialize=["rank"])
def tensor_copy_exchange(x_ptr, out_ptr, slots_ptr, signals_ptr, generation_ptr, n, rank, slot_elements, WORLD: tl.constexpr,
                         CHUNK: tl.constexpr, SCATTER: tl.constexpr):
    """AllGather, with SCATTER AllToAll; all as for chunk_exchange. x_ptr, out_ptr and the bytes of n elements are multiples of 16."""
    element: tl.constexpr = x_ptr.dtype.element_ty
    MOVES: tl.constexpr = WORLD if SCATTER else 1
    stages = dl.allocate_smem(element, [STAGES, CHUNK])
    bars = dl.allocate_smem(tl.int64, [STAGES])
    begin_moves(bars)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    slots_ptr += block * SLOTS * WORLD * stride
    signals_ptr += block * WORLD
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(n - block * CHUNK, step_elements)
    move = 0
    for step in range(0, steps + 1):
        if step < steps:
            start = step * step_elements + block * CHUNK
            if tid(0) == 0:
                push(stages, bars, move, x_ptr, out_ptr, slots_ptr + ((before + step) % SLOTS * WORLD + rank) * stride, n, start,
                     bytes_of(n - start, CHUNK, element), rank, WORLD, SCATTER)
            move += MOVES
        if step > 0:
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + (before + step - 1) % SLOTS * WORLD * stride, token)
            if tid(0) == 0:
                lay_out(stages, bars, move, slot_ptr, stride, out_ptr, tl.cast(n, tl.int64) * WORLD, n, (step - 1) * step_elements + block * CHUNK, rank,
                        WORLD, CHUNK)
            move += WORLD - 1
        if tid(0) == 0:
            cp_async_bulk_wait_group(0)
        if step < steps:
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))


@triton.jit
def stage_contributions(stages, bars, move, x_ptr, slot_ptr, stride, n, part, start, rank, WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """One thread: a chunk of each other rank's part of x_ptr [n] to its place in slot_ptr, in this rank's memory."""
    element: tl.constexpr = x_ptr.dtype.element_ty
    for step in range(WORLD - 1 + AHEAD):
        if step < WORLD - 1:
            begin = tl.cast((rank + 1 + step) % WORLD, tl.int64) * part
            move_in(stages, bars, move + step, x_ptr + begin + start, bytes_of(min(n - begin, part) - start, CHUNK, element))
        if step >= AHEAD:
            target = (rank + 1 + step - AHEAD) % WORLD
            size = bytes_of(min(n - tl.cast(target, tl.int64) * part, part) - start, CHUNK, element)
            move_out(slot_ptr + target * stride, arrived(stages, bars, move + step - AHEAD), size)
            cp_async_bulk_commit_group()


@triton.jit
def fetch_contribution(stages, bars, move, slot_ptr, stride, size, source, rank):
    """One thread; of a source's slot for this rank."""
    move_in(stages, bars, move, dl.symm_at(slot_ptr + rank * stride, source), size)


@triton.jit
def pull_total(stages, bars, move, own_ptr, slot_ptr, stride, count, rank, scale, REDUCTION: tl.constexpr, SCALED: tl.constexpr,
               WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """A chunk's sum over the ranks, in their order; `count` > 0. Contributions come by moves move ... move + WORLD - 1, but the own one."""
    element: tl.constexpr = own_ptr.dtype.element_ty
    accumulator: tl.constexpr = accumulator_type(element)
    lanes = tl.arange(0, CHUNK)
    mask = lanes < count
    size = bytes_of(count, CHUNK, element)
    if tid(0) == 0:
        cp_async_bulk_wait_group(0, read=True)
        for source in tl.static_range(AHEAD):
            if source < WORLD:
                if source != rank:
                    fetch_contribution(stages, bars, move + source, slot_ptr, stride, size, source, rank)
                else:
                    mbarrier_arrive_expect_tx(dl.smem_get_ptr(bars, [((move + source) % STAGES).to(tl.int32)]), 0)
    total = tl.zeros((CHUNK,), accumulator)
    for source in tl.static_range(WORLD):
        # All threads have read what was in the stage that is filled now.
        __syncthreads()
        if source + AHEAD < WORLD:
            if tid(0) == 0:
                if source + AHEAD != rank:
                    fetch_contribution(stages, bars, move + source + AHEAD, slot_ptr, stride, size, source + AHEAD, rank)
                else:
                    mbarrier_arrive_expect_tx(dl.smem_get_ptr(bars, [((move + source + AHEAD) % STAGES).to(tl.int32)]), 0)
        stage_ptr = arrived(stages, bars, move + source)
        if source == rank:
            value = scaled_tile(tl.load(own_ptr + lanes, mask=mask), scale, SCALED)
        else:
            value = tl.load(stage_ptr + lanes, mask=mask)
        if source == 0:
            total = value.to(accumulator)
        else:
            total = combine(total, value.to(accumulator), REDUCTION)
    __syncthreads()
    return finish(total, REDUCTION, WORLD).to(element)


@triton.jit(do_not_specialize=["rank"])
def tensor_copy_reduce(x_ptr, out_ptr, slots_ptr, results_ptr, signals_ptr, generation_ptr, n, part, rank, slot_elements, scale,
                       WORLD: tl.constexpr, CHUNK: tl.constexpr, GATHER: tl.constexpr, REDUCTION: tl.constexpr, SCALED: tl.constexpr,
                       X_ALIGNED: tl.constexpr, OUT_ALIGNED: tl.constexpr):
    """ReduceScatter: x_ptr [WORLD, part], out_ptr [part], n = WORLD * part. AllReduce (GATHER): [n] to [n]; rank r adds elements
    [r * part, (r + 1) * part).

    slots_ptr, results_ptr: symmetric, [blocks, SLOTS, WORLD, slot_elements]: contributions for each rank, at their sources; sums of each
    rank. signals_ptr: symmetric, [blocks, 2, WORLD]; generation_ptr: [blocks], chunks so far. X_ALIGNED, OUT_ALIGNED: that address, and the
    bytes of n and part, are multiples of 16.
    """
    element: tl.constexpr = x_ptr.dtype.element_ty
    # Scaling is arithmetic, and the source's: another rank's scale is not known here.
    STAGED: tl.constexpr = X_ALIGNED and not SCALED
    stages = dl.allocate_smem(element, [STAGES, CHUNK])
    bars = dl.allocate_smem(tl.int64, [STAGES])
    sums = dl.allocate_smem(element, [CHUNK])
    begin_moves(bars)
    block = tl.cast(tl.program_id(0), tl.int64)
    stride = tl.cast(slot_elements, tl.int64)
    before = tl.load(generation_ptr + block)
    slots_ptr += block * SLOTS * WORLD * stride
    results_ptr += block * SLOTS * WORLD * stride
    signals_ptr += 2 * block * WORLD
    result_signals_ptr = signals_ptr + WORLD
    lanes = tl.arange(0, CHUNK)
    step_elements = tl.cast(tl.num_programs(0), tl.int64) * CHUNK
    steps = tl.cdiv(part - block * CHUNK, step_elements)
    own_begin = tl.cast(rank, tl.int64) * part
    move = 0
    for step in range(0, steps + (2 if GATHER else 1)):
        if step < steps:
            start = step * step_elements + block * CHUNK
            slot_ptr = slots_ptr + (before + step) % SLOTS * WORLD * stride
            if STAGED:
                if tid(0) == 0:
                    stage_contributions(stages, bars, move, x_ptr, slot_ptr, stride, n, part, start, rank, WORLD, CHUNK)
                move += WORLD - 1
            else:
                for distance in tl.static_range(1, WORLD):
                    target = (rank + distance) % WORLD
                    begin = tl.cast(target, tl.int64) * part
                    mask = lanes < min(n - begin, part) - start
                    values = scaled_tile(tl.load(x_ptr + begin + start + lanes, mask=mask), scale, SCALED)
                    tl.store(slot_ptr + target * stride + lanes, values, mask=mask)
        if (step > 0) & (step <= steps):
            start = (step - 1) * step_elements + block * CHUNK
            count = min(n - own_begin, part) - start
            slot = (before + step - 1) % SLOTS * WORLD
            token = dl.wait(signals_ptr, WORLD, "sys", "acquire", waitValue=before + step, compare="ge")
            slot_ptr = dl.consume_token(slots_ptr + slot * stride, token)
            if count > 0:
                total = pull_total(stages, bars, move, x_ptr + own_begin + start, slot_ptr, stride, count, rank, scale, REDUCTION,
                                   SCALED, WORLD, CHUNK)
                move += WORLD
                if GATHER:
                    tl.store(out_ptr + own_begin + start + lanes, total, mask=lanes < count)
                    tl.store(dl.smem_get_ptr(sums, [0]) + lanes, total)
                    fence_async_shared()
                    __syncthreads()
                    if tid(0) == 0:
                        for distance in range(1, WORLD):
                            move_out(dl.symm_at(results_ptr + (slot + rank) * stride, (rank + distance) % WORLD),
                                     dl.smem_get_ptr(sums, [0]), bytes_of(count, CHUNK, element))
                        cp_async_bulk_commit_group()
                else:
                    tl.store(out_ptr + start + lanes, total, mask=lanes < count)
        if GATHER:
            if step > 1:
                start = (step - 2) * step_elements + block * CHUNK
                token = dl.wait(result_signals_ptr, WORLD, "sys", "acquire", waitValue=before + step - 1, compare="ge")
                result_ptr = dl.consume_token(results_ptr + (before + step - 2) % SLOTS * WORLD * stride, token)
                if OUT_ALIGNED:
                    if tid(0) == 0:
                        lay_out(stages, bars, move, result_ptr, stride, out_ptr, n, part, start, rank, WORLD, CHUNK)
                    move += WORLD - 1
                else:
                    for distance in tl.static_range(1, WORLD):
                        owner = (rank + distance) % WORLD
                        begin = tl.cast(owner, tl.int64) * part
                        mask = lanes < min(n - begin, part) - start
                        tl.store(out_ptr + begin + start + lanes, tl.load(result_ptr + owner * stride + lanes, mask=mask), mask=mask)
        if tid(0) == 0:
            cp_async_bulk_wait_group(0)
        if step < steps:
            signal_all(signals_ptr, before + step + 1, rank, WORLD)
        if GATHER:
            if (step > 0) & (step <= steps):
                signal_all(result_signals_ptr, before + step, rank, WORLD)
    __syncthreads()
    if tid(0) == 0:
        st(generation_ptr + block, before + max(steps, 0))
