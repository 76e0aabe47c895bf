"""Expert parallelism whose products run while tokens are on their way: `dispatch_gemm` and `gemm_combine`, one launch each.

Slots, places, experts of a rank and what is dropped: low_latency.py. The rows of a rank lie in one matrix, by expert, then by source, then by slot, and
so does what is known of them, as if a dispatch and routing.tile_rows had made them.

**dispatch_gemm.** The first SENDERS blocks send, the others multiply; who has sent multiplies too.

1. Each sender counts a part of the slots by expert, then, when all have, places them. The slots of a rank are sent in *turns*: expert 0 of the own rank, of
   the next rank, ..., expert 1 of the own rank, and so on. All ranks do so, and multiply in the order of the experts: what is multiplied first comes first,
   and the weights of an expert are read once, whoever its rows are from.
2. Each rank tells all ranks how many rows each expert gets from it. Who has heard from all knows where all rows lie, at all ranks: a row is stored
   straight to its place, and nothing is moved again.
3. A sender stores UNIT rows together, then counts each at its receiver, in the box of BLOCK_M rows in which it lies. A tile of the product waits for the boxes
   that it has rows of: those of the next expert at its end, which are read and not used, too.

**gemm_combine.** The tiles of the second product are stored straight to the slots of the tokens that their rows are of, at the tokens' ranks. The last block of a
rank says so to all; who has heard from all adds up each token's slots, in their order.

**Why nothing is overwritten too early.** A rank that sends rows has heard from all ranks in this call. Each told its counts when all that it had enqueued before
was done, and its boxes were emptied. Counts themselves have two sets of words, used in turns: who sends those of call g + 2 has received the rows of g + 1, so that
all ranks have read the counts of g. Results are stored behind the dispatch of the same call.

**Calls** are counted by pairs: each of the two kernels counts for the other, so that no block sees the number change (`skip_combine` counts where nothing is to come back). Of dispatch_gemm the senders wait for those of all ranks
and for each other, the other blocks for them; of gemm_combine all blocks wait for those of all ranks: they must find a place at once.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, atomic_add, cp_async_bulk_commit_group, cp_async_bulk_global_to_shared,
                                                       cp_async_bulk_shared_to_global, cp_async_bulk_wait_group, fence_async_shared, ld,
                                                       mbarrier_arrive_expect_tx, mbarrier_init, mbarrier_wait_parity, num_threads, st, tid)

from ..collectives.pairs import report
from ..moe.grouped_gemm import store_rows
from ..product.product import activated, can_fetch_ahead, exact_depth, grouped_tile, result_columns, sum_type
from .low_latency import DROPS_ROWS, DROPS_SLOTS

# What a sender notes for itself, EXPERTS words of each: where its turns begin among the slots that are sent; by expert, how many slots go to it; where its
# rows begin among those of all ranks; how many come; what is to be added to the number of a slot that is sent to get its row; and the
# place of the next slot of each turn.
TURN_BEGINS = tl.constexpr(0)
SENT = tl.constexpr(1)
ROW_BEGINS = tl.constexpr(2)
CAME = tl.constexpr(3)
SHIFT = tl.constexpr(4)
NEXT_PLACE = tl.constexpr(5)
NOTES = tl.constexpr(6)
# Stands for the place of a row that there is not: less than any, even with an offset.
NOWHERE = tl.constexpr(-(1 << 40))
# Where bulk copies send rows (compute capability 9.0): moves through shared memory of which so many may be on their way, the copies in so many moves before the
# copies out; and moves of which it is not yet known at the end of a unit whether they have arrived.
STAGES = tl.constexpr(6)
AHEAD = tl.constexpr(4)
UNKNOWN = tl.constexpr(8)
# Tiles that a sender writes to the table at a time.
TABLE_TILES = tl.constexpr(16)


@triton.jit
def meet(meeting_ptr, arrivals):
    """All senders of the rank; a token behind which all is visible that they have stored before."""
    tl.atomic_add(meeting_ptr, 1, sem="acq_rel", scope="gpu")
    return dl.wait(meeting_ptr, 1, "gpu", "acquire", waitValue=arrivals, compare="ge")


@triton.jit
def turns_of(ids, experts, local, rank, WORLD: tl.constexpr):
    """Of experts, -1 for those that there are not."""
    turn = ids % local * WORLD + (ids // local + WORLD - rank) % WORLD
    return tl.where((ids >= 0) & (ids < experts), turn, -1)


@triton.jit
def expert_of(turn, local, rank, WORLD: tl.constexpr):
    return (turn % WORLD + rank) % WORLD * local + turn // WORLD


@triton.jit
def count_part(ids_ptr, counts_ptr, first, end, experts, local, rank, WORLD: tl.constexpr, EXPERTS: tl.constexpr):
    """counts_ptr [EXPERTS]: of the slots from first to end, by turn."""
    tl.store(counts_ptr + tl.arange(0, EXPERTS), tl.zeros((EXPERTS,), tl.int32))
    __syncthreads()
    for slot in range(first + tid(0), end, num_threads()):
        turn = turns_of(ld(ids_ptr + slot), experts, local, rank, WORLD)
        if turn >= 0:
            atomic_add(counts_ptr + turn, 1, scope="gpu", semantic="relaxed")


@triton.jit
def note_turns(counts_ptr, notes_ptr, error_ptr, sender, experts, local, capacity, rank, WORLD: tl.constexpr, SENDERS: tl.constexpr, EXPERTS: tl.constexpr):
    """From the counts of all senders [SENDERS, EXPERTS]. How many slots are sent."""
    turn = tl.arange(0, EXPERTS)
    before = tl.zeros((EXPERTS,), tl.int32)
    chosen = tl.zeros((EXPERTS,), tl.int32)
    for other in range(SENDERS):
        counts = tl.load(counts_ptr + other * EXPERTS + turn)
        chosen += counts
        before += tl.where(other < sender, counts, 0)
    sent = tl.minimum(chosen, capacity)
    expert = expert_of(turn, local, rank, WORLD)
    tl.store(notes_ptr + TURN_BEGINS * EXPERTS + turn, tl.cumsum(sent, axis=0) - sent)
    tl.store(notes_ptr + NEXT_PLACE * EXPERTS + turn, before)
    tl.store(notes_ptr + SENT * EXPERTS + expert, sent, mask=turn < experts)
    tl.store(notes_ptr + CAME * EXPERTS + expert, chosen, mask=turn < experts)
    __syncthreads()
    if sender == 0:
        for each in range(tid(0), experts, num_threads()):
            count = ld(notes_ptr + CAME * EXPERTS + each).to(tl.int64)
            if count > capacity:
                report(error_ptr, DROPS_SLOTS, each, count, tl.cast(capacity, tl.int64))
    return tl.sum(sent, axis=0)


@triton.jit
def place_part(ids_ptr, notes_ptr, list_ptr, places_ptr, first, end, experts, local, capacity, rank, WORLD: tl.constexpr, PART: tl.constexpr,
               EXPERTS: tl.constexpr):
    """This sender's part of list_ptr, the slots in the order in which they are sent, and of places_ptr [slots], -1 for slots that have no row."""
    number = tl.arange(0, PART)
    for part in range(first, end, PART):
        slot = part + number
        turn = turns_of(tl.load(ids_ptr + slot, mask=slot < end, other=-1), experts, local, rank, WORLD)
        is_same = turn[:, None] == turn[None, :]
        earlier = tl.sum((is_same & (number[:, None] > number[None, :])).to(tl.int32), axis=1)
        later = tl.sum((is_same & (number[:, None] < number[None, :])).to(tl.int32), axis=1)
        place = tl.load(notes_ptr + NEXT_PLACE * EXPERTS + turn, mask=turn >= 0, other=0) + earlier
        begin = tl.load(notes_ptr + TURN_BEGINS * EXPERTS + turn, mask=turn >= 0, other=0)
        has_row = (turn >= 0) & (place < capacity)
        tl.store(list_ptr + begin + place, slot.to(tl.int32), mask=has_row)
        tl.store(places_ptr + slot, tl.where(has_row, place, -1), mask=slot < end)
        __syncthreads()
        tl.store(notes_ptr + NEXT_PLACE * EXPERTS + turn, place + 1, mask=(turn >= 0) & (later == 0))
        __syncthreads()


@triton.jit
def note_rows(words_ptr, notes_ptr, experts, local, rank, WORLD: tl.constexpr, EXPERTS: tl.constexpr):
    """From the counts of all ranks: words_ptr [WORLD, experts], all there."""
    expert = tl.arange(0, EXPERTS)
    is_expert = expert < experts
    came = tl.zeros((EXPERTS,), tl.int32)
    of_earlier = tl.zeros((EXPERTS,), tl.int32)
    for source in range(WORLD):
        counts = (tl.load(words_ptr + source * experts + expert, mask=is_expert, other=0) & 0xFFFFFFFF).to(tl.int32)
        came += counts
        of_earlier += tl.where(source < rank, counts, 0)
    begins = tl.cumsum(came, axis=0) - came
    tl.store(notes_ptr + ROW_BEGINS * EXPERTS + expert, begins)
    tl.store(notes_ptr + CAME * EXPERTS + expert, came)
    __syncthreads()
    first_there = tl.load(notes_ptr + ROW_BEGINS * EXPERTS + expert // local * local, mask=is_expert, other=0)
    turn = tl.where(is_expert, turns_of(expert, experts, local, rank, WORLD), 0)
    tl.store(notes_ptr + SHIFT * EXPERTS + expert, begins - first_there + of_earlier - tl.load(notes_ptr + TURN_BEGINS * EXPERTS + turn), mask=is_expert)
    __syncthreads()


@triton.jit
def write_table(notes_ptr, offsets_ptr, tiles_ptr, arrived_ptr, error_ptr, sender, local, max_rows, rank, SENDERS: tl.constexpr, EXPERTS: tl.constexpr,
                LOCAL: tl.constexpr, BLOCK_M: tl.constexpr):
    """This sender's part of offsets and tiles, as routing.tile_rows would have them. LOCAL: of experts, a power of two."""
    expert = tl.arange(0, LOCAL)
    is_own = expert < local
    own = rank * local + expert
    first = tl.load(notes_ptr + ROW_BEGINS * EXPERTS + rank * local)
    begins = tl.load(notes_ptr + ROW_BEGINS * EXPERTS + own, mask=is_own, other=0) - first
    came = tl.load(notes_ptr + CAME * EXPERTS + own, mask=is_own, other=0)
    ends = tl.minimum(begins + came, max_rows)
    begins = tl.minimum(begins, ends)
    tiles = tl.where(is_own, tl.cdiv(ends - begins, BLOCK_M), 0)
    tile_ends = tl.cumsum(tiles, axis=0)
    number = tl.sum(tiles, axis=0)
    for begin in range(sender * TABLE_TILES, number, SENDERS * TABLE_TILES):
        tile = begin + tl.arange(0, TABLE_TILES)
        of_tile = tl.sum((tile_ends[None, :] <= tile[:, None]).to(tl.int32), axis=1)
        is_of = of_tile[:, None] == expert[None, :]
        row = tl.sum(tl.where(is_of, begins[None, :] + (tile[:, None] - (tile_ends - tiles)[None, :]) * BLOCK_M, 0), axis=1)
        tl.store(tiles_ptr + 1 + 2 * tile, of_tile, mask=tile < number)
        tl.store(tiles_ptr + 2 + 2 * tile, row, mask=tile < number)
    if sender == 0:
        tl.store(tiles_ptr, number)
        tl.store(offsets_ptr + 1 + expert, ends, mask=is_own)
        tl.store(offsets_ptr, 0)
        total = tl.sum(came, axis=0)
        kept = tl.minimum(total, max_rows)
        if tid(0) == 0:
            if total > max_rows:
                report(error_ptr, DROPS_ROWS, rank, total.to(tl.int64), tl.cast(max_rows, tl.int64))
            # The last box is as full as the others when what there is has come.
            if kept % BLOCK_M != 0:
                atomic_add(arrived_ptr + kept // BLOCK_M, (BLOCK_M - kept % BLOCK_M).to(tl.int64), scope="sys", semantic="relaxed")


@triton.jit
def rows_of_unit(list_ptr, ids_ptr, shift_ptr, unit, sent, local, UNIT: tl.constexpr):
    """Of each row that is sent together: its slot, the rank that it goes to, -1 for rows that there are not, and its row there."""
    number = unit * UNIT + tl.arange(0, UNIT)
    is_row = number < sent
    slot = tl.load(list_ptr + number, mask=is_row, other=0)
    expert = tl.load(ids_ptr + slot, mask=is_row, other=0)
    row = number + tl.load(shift_ptr + expert, mask=is_row, other=0)
    return slot, tl.where(is_row, expert // local, -1), row


@triton.jit
def send_rows(x_ptr, ids_ptr, list_ptr, places_ptr, shift_ptr, rows_ptr, origins_ptr, arrived_ptr, sender, sent, hidden, local, max_rows, max_slots,
              rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SENDERS: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr, BLOCK_M: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    slot, peer, row = rows_of_unit(list_ptr, ids_ptr, shift_ptr, sender, sent, local, UNIT)
    for unit in range(sender, tl.cdiv(sent, UNIT), SENDERS):
        # Of the next ones, while these are on their way.
        next_slot, next_peer, next_row = rows_of_unit(list_ptr, ids_ptr, shift_ptr, unit + SENDERS, sent, local, UNIT)
        is_kept = (peer >= 0) & (row < max_rows)
        tl.store(places_ptr + slot, tl.full((UNIT,), -1, tl.int32), mask=(peer >= 0) & (row >= max_rows))
        first_peer = tl.min(tl.where(is_kept, peer, WORLD), axis=0)
        end_peer = tl.max(tl.where(is_kept, peer, -1), axis=0) + 1
        # Rows of a unit are seldom of more than one rank, unless experts have few.
        for target in range(first_peer, end_peer):
            is_there = is_kept & (peer == target)
            from_row = tl.where(is_there, (slot // TOP_K).to(tl.int64) * hidden, NOWHERE)[:, None] + lanes[None, :]
            to_row = (row.to(tl.int64) * hidden)[:, None] + lanes[None, :]
            to_ptr = dl.symm_at(rows_ptr, target)
            for begin in range(0, hidden, CHUNK):
                # By elements, as addresses are: rows' own masks would go through shared memory each time.
                mask = (from_row >= 0) & (lanes < hidden - begin)[None, :]
                tl.store(to_ptr + begin + to_row, tl.load(x_ptr + begin + from_row, mask=mask), mask=mask)
            tl.store(dl.symm_at(origins_ptr, target) + row, slot + rank * max_slots, mask=is_there)
        __syncthreads()
        for target in range(first_peer, end_peer):
            tl.atomic_add(dl.symm_at(arrived_ptr, target) + row // BLOCK_M, tl.full((UNIT,), 1, tl.int64), mask=is_kept & (peer == target),
                          sem="release", scope="sys")
        slot = next_slot
        peer = next_peer
        row = next_row


@triton.jit
def look_up_row(table, which, lane, number, list_ptr, ids_ptr, places_ptr, shift_ptr, origins_ptr, sent, local, max_rows, max_slots, rank, TOP_K: tl.constexpr):
    """One thread: what table [3, units, UNIT] has of a row that is sent: its token, the rank that it goes to, -1 for none, and its row there."""
    token = 0
    peer = -1
    row = 0
    if number < sent:
        slot = ld(list_ptr + number)
        expert = ld(ids_ptr + slot)
        row = number + ld(shift_ptr + expert)
        if row < max_rows:
            token = slot // TOP_K
            peer = expert // local
            st(dl.symm_at(origins_ptr, peer) + row, slot + rank * max_slots)
        else:
            st(places_ptr + slot, -1)
    dl.smem_store(table, token, [0, which, lane])
    dl.smem_store(table, peer, [1, which, lane])
    dl.smem_store(table, row, [2, which, lane])


@triton.jit
def count_row(table, which, lane, arrived_ptr, BLOCK_M: tl.constexpr):
    peer = dl.smem_load(table, [1, which, lane])
    if peer >= 0:
        atomic_add(dl.symm_at(arrived_ptr, peer) + dl.smem_load(table, [2, which, lane]) // BLOCK_M, tl.cast(1, tl.int64), scope="sys", semantic="release")


@triton.jit
def bytes_of_move(table, which, move, hidden, element: tl.constexpr, STAGE: tl.constexpr, CHUNKS: tl.constexpr):
    """0 where there is no row."""
    size = 0
    if dl.smem_load(table, [1, which, move // CHUNKS]) >= 0:
        size = min(hidden - move % CHUNKS * STAGE, STAGE).to(tl.int32) * (element.primitive_bitwidth // 8)
    return size


@triton.jit
def move_in(stages, bars, table, move, x_ptr, hidden, UNIT: tl.constexpr, STAGE: tl.constexpr, CHUNKS: tl.constexpr):
    """One thread; a row is CHUNKS moves, a unit UNIT rows."""
    element: tl.constexpr = x_ptr.dtype.element_ty
    # All older moves but one have read their stages: also the one that had this one's.
    cp_async_bulk_wait_group(1, read=True)
    which = move // (UNIT * CHUNKS) % 4
    step = move % (UNIT * CHUNKS)
    bar = dl.smem_get_ptr(bars, [move % STAGES])
    size = bytes_of_move(table, which, step, hidden, element, STAGE, CHUNKS)
    mbarrier_arrive_expect_tx(bar, size)
    if size > 0:
        token = dl.smem_load(table, [0, which, step // CHUNKS]).to(tl.int64)
        cp_async_bulk_global_to_shared(dl.smem_get_ptr(stages, [move % STAGES, 0]), x_ptr + token * hidden + step % CHUNKS * STAGE, size, bar)


@triton.jit
def move_out(stages, bars, table, move, rows_ptr, hidden, UNIT: tl.constexpr, STAGE: tl.constexpr, CHUNKS: tl.constexpr):
    which = move // (UNIT * CHUNKS) % 4
    step = move % (UNIT * CHUNKS)
    mbarrier_wait_parity(dl.smem_get_ptr(bars, [move % STAGES]), move // STAGES % 2)
    size = bytes_of_move(table, which, step, hidden, rows_ptr.dtype.element_ty, STAGE, CHUNKS)
    if size > 0:
        row = dl.smem_load(table, [2, which, step // CHUNKS]).to(tl.int64)
        there = dl.symm_at(rows_ptr, dl.smem_load(table, [1, which, step // CHUNKS]))
        cp_async_bulk_shared_to_global(there + row * hidden + step % CHUNKS * STAGE, dl.smem_get_ptr(stages, [move % STAGES, 0]), size)
    cp_async_bulk_commit_group()


@triton.jit
def copy_rows_out(x_ptr, ids_ptr, list_ptr, places_ptr, shift_ptr, rows_ptr, origins_ptr, arrived_ptr, sender, sent, hidden, local, max_rows, max_slots,
                  rank, TOP_K: tl.constexpr, SENDERS: tl.constexpr, UNIT: tl.constexpr, STAGE: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr):
    """As send_rows, by bulk copies: one thread moves a unit while UNIT threads of the other warps look up the next one; when all is known to have
    arrived of the unit before, they count it. STAGE elements at a time; a unit is AHEAD moves or more."""
    stages = dl.allocate_smem(x_ptr.dtype.element_ty, [STAGES, STAGE])
    bars = dl.allocate_smem(tl.int64, [STAGES])
    table = dl.allocate_smem(tl.int32, [3, 4, UNIT])
    thread = tid(0)
    lane = thread - 32
    is_lane = (lane >= 0) & (lane < UNIT)
    if thread == 0:
        for stage in tl.static_range(STAGES):
            mbarrier_init(dl.smem_get_ptr(bars, [stage]), 1)
        fence_async_shared()
    if is_lane:
        look_up_row(table, 0, lane, sender * UNIT + lane, list_ptr, ids_ptr, places_ptr, shift_ptr, origins_ptr, sent, local, max_rows, max_slots, rank, TOP_K)
    __syncthreads()
    units = tl.cdiv(max(tl.cdiv(sent, UNIT) - sender, 0), SENDERS)
    for turn in range(0, units):
        if thread == 0:
            for move in range(turn * (UNIT * CHUNKS), (turn + 1) * (UNIT * CHUNKS)):
                move_in(stages, bars, table, move, x_ptr, hidden, UNIT, STAGE, CHUNKS)
                if move >= AHEAD:
                    move_out(stages, bars, table, move - AHEAD, rows_ptr, hidden, UNIT, STAGE, CHUNKS)
            # The last moves of the unit before are older than these.
            cp_async_bulk_wait_group(UNKNOWN if UNKNOWN < UNIT * CHUNKS - AHEAD else UNIT * CHUNKS - AHEAD)
        if is_lane:
            look_up_row(table, (turn + 1) % 4, lane, (sender + (turn + 1) * SENDERS) * UNIT + lane, list_ptr, ids_ptr, places_ptr, shift_ptr, origins_ptr,
                        sent, local, max_rows, max_slots, rank, TOP_K)
        __syncthreads()
        if is_lane & (turn > 0):
            count_row(table, (turn - 1) % 4, lane, arrived_ptr, BLOCK_M)
    if thread == 0:
        for move in range(max(units * (UNIT * CHUNKS) - AHEAD, 0), units * (UNIT * CHUNKS)):
            move_out(stages, bars, table, move, rows_ptr, hidden, UNIT, STAGE, CHUNKS)
        cp_async_bulk_wait_group(0)
    __syncthreads()
    if is_lane & (units > 0):
        count_row(table, (units - 1) % 4, lane, arrived_ptr, BLOCK_M)


@triton.jit
def send(x_ptr, ids_ptr, push_ptr, origins_ptr, arrived_ptr, words_ptr, counts_ptr, notes_ptr, list_ptr, places_ptr, offsets_ptr, tiles_ptr, meeting_ptr,
         ready_ptr, combine_call_ptr, error_ptr, call, tokens, hidden, experts, capacity, max_rows, max_slots, rank, WORLD: tl.constexpr,
         TOP_K: tl.constexpr, SENDERS: tl.constexpr, PART: tl.constexpr, EXPERTS: tl.constexpr, LOCAL: tl.constexpr, UNIT: tl.constexpr,
         CHUNK: tl.constexpr, CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr):
    """What the first SENDERS blocks do of dispatch_gemm before they multiply."""
    sender = tl.program_id(0)
    local = experts // WORLD
    slots = (tokens * TOP_K).to(tl.int32)
    share = tl.cdiv(tl.cdiv(slots, SENDERS), PART) * PART
    first = min(sender * share, slots)
    end = min(first + share, slots)
    notes_ptr += sender * NOTES * EXPERTS
    for box in range(sender * num_threads() + tid(0), tl.cdiv(max_rows, BLOCK_M), SENDERS * num_threads()):
        st(arrived_ptr + box, tl.cast(0, tl.int64), scope="sys", semantic="relaxed")
    count_part(ids_ptr, counts_ptr + sender * EXPERTS, first, end, experts, local, rank, WORLD, EXPERTS)
    counted = meet(meeting_ptr, (2 * call - 1) * SENDERS)
    sent = note_turns(dl.consume_token(counts_ptr, counted), notes_ptr, error_ptr, sender, experts, local, capacity, rank, WORLD, SENDERS, EXPERTS)
    words_ptr += (call % 2) * WORLD * experts
    for peer in range(sender, WORLD, SENDERS):
        for expert in range(tid(0), experts, num_threads()):
            st(dl.symm_at(words_ptr + rank * experts, peer) + expert, (call << 32) | ld(notes_ptr + SENT * EXPERTS + expert).to(tl.int64), scope="sys",
               semantic="release")
    if (sender == 0) & (tid(0) == 0):
        st(combine_call_ptr, call)
    place_part(ids_ptr, notes_ptr, list_ptr, places_ptr, first, end, experts, local, capacity, rank, WORLD, PART, EXPERTS)
    placed = meet(meeting_ptr, 2 * call * SENDERS)
    told = dl.wait(words_ptr, WORLD * experts, "sys", "acquire", waitValue=call << 32, compare="ge")
    note_rows(dl.consume_token(words_ptr, told), notes_ptr, experts, local, rank, WORLD, EXPERTS)
    write_table(notes_ptr, offsets_ptr, tiles_ptr, arrived_ptr, error_ptr, sender, local, max_rows, rank, SENDERS, EXPERTS, LOCAL, BLOCK_M)
    tl.atomic_add(ready_ptr, 1, sem="acq_rel", scope="gpu")
    list_ptr = dl.consume_token(list_ptr, placed)
    push_ptr = dl.consume_token(push_ptr, told)
    if CHUNKS > 0:
        copy_rows_out(x_ptr, ids_ptr, list_ptr, places_ptr, notes_ptr + SHIFT * EXPERTS, push_ptr, origins_ptr, arrived_ptr, sender, sent, hidden, local, max_rows,
                      max_slots, rank, TOP_K, SENDERS, UNIT, CHUNK, CHUNKS, BLOCK_M)
    else:
        send_rows(x_ptr, ids_ptr, list_ptr, places_ptr, notes_ptr + SHIFT * EXPERTS, push_ptr, origins_ptr, arrived_ptr, sender, sent, hidden, local, max_rows,
                  max_slots, rank, WORLD, TOP_K, SENDERS, UNIT, CHUNK, BLOCK_M)


@triton.jit
def product_of_rows(a_desc, b_desc, expert, row, column, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                    B_TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr):
    """Sums of a tile of the rows of an expert."""
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=sum_type(a_desc.dtype))
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 0)
    for k in range(0, steps):
        a = a_desc.load([row, k * BLOCK_K])
        if B_TRANSPOSED:
            b = b_desc.load([expert * N + column, k * BLOCK_K])
            sums = tl.dot(a, b.T, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
        else:
            b = b_desc.load([expert * K + k * BLOCK_K, column])
            sums = tl.dot(a, b, sums, input_precision=PRECISION, max_num_imprecise_acc=exact_depth(BLOCK_K))
    return sums


@triton.jit
def weights_descriptor(b_ptr, weight_rows, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, B_TRANSPOSED: tl.constexpr):
    """Of all experts, one after the other."""
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[weight_rows, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[weight_rows, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    return b_desc


@triton.jit(do_not_specialize=["tokens", "experts", "capacity", "max_rows", "max_slots", "rank"], do_not_specialize_on_alignment=["ids_ptr"])
def dispatch_gemm(x_ptr, ids_ptr, b_ptr, c_ptr, rows_ptr, push_ptr, origins_ptr, arrived_ptr, words_ptr, counts_ptr, notes_ptr, list_ptr, places_ptr,
                  offsets_ptr, tiles_ptr, ends_ptr, table_ptr, meeting_ptr, ready_ptr, call_ptr, combine_call_ptr, error_ptr, tokens, N, K, rows,
                  weight_rows, experts, capacity, max_rows, max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, SENDERS: tl.constexpr,
                  PACE: tl.constexpr, PART: tl.constexpr, EXPERTS: tl.constexpr, LOCAL: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr,
                  CHUNKS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                  ACTIVATION: tl.constexpr, PRECISION: tl.constexpr):
    """x_ptr [tokens, K] goes to the ranks of the experts ids_ptr [tokens, TOP_K] int32; c_ptr [max_rows, N], with an activation fewer columns, becomes what came times the weights b_ptr of
    its experts, [LOCAL experts, N, K] or [.., K, N].

    Left for gemm_combine: offsets_ptr [local experts + 1], tiles_ptr [1 + 2 * tiles]; of each row that came origins_ptr, source * max_slots + slot; of each own
    slot places_ptr, -1 where it has no row. Symmetric: rows_ptr [max_rows, K], origins_ptr [max_rows], arrived_ptr [boxes], words_ptr [2, WORLD, experts]. Of the rank:
    counts_ptr [SENDERS, EXPERTS], notes_ptr [SENDERS, NOTES, EXPERTS], list_ptr [max_slots]; meeting_ptr, ready_ptr, call_ptr, combine_call_ptr, words;
    error_ptr [4]. push_ptr, ends_ptr and table_ptr are rows_ptr, offsets_ptr and tiles_ptr: the producer warp takes its copies and its tiles from arguments that the kernel does
    not write, behind waits. EXPERTS and LOCAL: powers of two, no less than experts and those of a rank. A sender moves UNIT rows together, CHUNK elements of each at a time; where CHUNKS is not 0, by bulk copies, each row in so many; PACE: how many in the
    time of a tile, so that who sends gets fewer tiles.
    """
    call = tl.load(call_ptr) + 1
    program = tl.program_id(0)
    if program < SENDERS:
        send(x_ptr, ids_ptr, push_ptr, origins_ptr, arrived_ptr, words_ptr, counts_ptr, notes_ptr, list_ptr, places_ptr, offsets_ptr, tiles_ptr, meeting_ptr,
             ready_ptr, combine_call_ptr, error_ptr, call, tokens, tl.cast(K, tl.int64), experts.to(tl.int32), capacity.to(tl.int32), max_rows.to(tl.int32),
             max_slots.to(tl.int32), rank, WORLD, TOP_K, SENDERS, PART, EXPERTS, LOCAL, UNIT, CHUNK, CHUNKS, BLOCK_M)
    a_desc = tl.make_tensor_descriptor(rows_ptr, shape=[rows, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weights_descriptor(b_ptr, weight_rows, N, K, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    ready = dl.wait(ready_ptr, 1, "gpu", "acquire", waitValue=call * SENDERS, compare="ge")
    table = dl.consume_token(table_ptr, ready)
    row_ends = dl.consume_token(ends_ptr, ready)
    tiles_m = tl.load(table)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tiles_m * tiles_n
    total = tl.load(row_ends + experts.to(tl.int32) // WORLD)
    # While others send, the multiplying blocks have the first tiles to themselves.
    blocks = tl.num_programs(0)
    multipliers = blocks - SENDERS
    ahead = tl.cdiv(tl.cdiv((tokens * TOP_K).to(tl.int32), SENDERS), PACE) * multipliers
    first_tiles = min(ahead, tiles)
    own = program - SENDERS
    place = own
    own_first = tl.cdiv(max(first_tiles - own, 0), multipliers)
    if program < SENDERS:
        place = multipliers + program
        own_first = 0
    own_tiles = own_first + tl.cdiv(max(tiles - first_tiles - place, 0), blocks)
    RESULT_N: tl.constexpr = result_columns(BLOCK_N, ACTIVATION)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for index in tl.range(0, own_tiles, 1, warp_specialize=FETCH_AHEAD):
        tile = first_tiles + (index - own_first) * blocks + place
        if index < own_first:
            tile = index * multipliers + own
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        expert = tl.load(table + 1 + 2 * tile_m)
        row = tl.load(table + 2 + 2 * tile_m)
        end = tl.load(row_ends + expert + 1)
        box = row // BLOCK_M
        boxes = min((row + BLOCK_M - 1) // BLOCK_M, (total - 1) // BLOCK_M) - box + 1
        token = dl.wait(arrived_ptr + box, boxes, "sys", "acquire", waitValue=BLOCK_M, compare="ge")
        sums = product_of_rows(dl.consume_token(a_desc, token), b_desc, expert, row, tile_n * BLOCK_N, N, K, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        result = activated(sums.to(tl.float32), ACTIVATION, BLOCK_M, BLOCK_N).to(c_ptr.dtype.element_ty)
        store_rows(c_ptr, result, row, end, tile_n * RESULT_N, result_columns(N, ACTIVATION), result_columns(N, ACTIVATION), BLOCK_M, RESULT_N)


@triton.jit
def distances_of(slots_ptr, WORLD: tl.constexpr):
    """From an element of the own slots to the same one of each rank's, in elements; multiples of 16."""
    SIXTEEN: tl.constexpr = 16 * (slots_ptr.dtype.element_ty.primitive_bitwidth // 8)
    own = slots_ptr.to(tl.int64)
    distances = ()
    for target in tl.static_range(WORLD):
        distances = distances + ((dl.symm_at(slots_ptr, target).to(tl.int64) - own) // SIXTEEN,)
    return distances


@triton.jit
def return_tile(result, origins_ptr, slots_ptr, distances, row, end, column, N, max_slots, WORLD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile of results to the slots of its rows' tokens, at their ranks, all in one store: the addresses of rows are made of distances_of."""
    is_row = tl.arange(0, BLOCK_M) < end - row
    origin = tl.load(origins_ptr + row + tl.arange(0, BLOCK_M), mask=is_row, other=0)
    source = origin // max_slots
    distance = tl.zeros((BLOCK_M,), tl.int64)
    for target in tl.static_range(WORLD):
        distance = tl.where(source == target, distances[target], distance)
    place = distance * 16 + (origin % max_slots).to(tl.int64) * N
    columns = tl.arange(0, BLOCK_N)
    tl.store(slots_ptr + column + (place[:, None] + columns[None, :]), result, mask=is_row[:, None] & (columns < N - column)[None, :])


@triton.jit
def add_results(out_ptr, addend_ptr, weights_ptr, places_ptr, slots_ptr, tokens, hidden, TOP_K: tl.constexpr, CHUNK: tl.constexpr):
    lanes = tl.arange(0, CHUNK)
    chunks = tl.cdiv(hidden, CHUNK)
    for part in range(tl.cast(tl.program_id(0), tl.int64), tokens * chunks, tl.num_programs(0)):
        token = part // chunks
        begin = part % chunks * CHUNK
        is_lane = lanes < hidden - begin
        places = ()
        weights = ()
        for j in tl.static_range(TOP_K):
            places = places + (tl.load(places_ptr + token * TOP_K + j),)
            if weights_ptr is not None:
                weights = weights + (tl.load(weights_ptr + token * TOP_K + j),)
            else:
                weights = weights + (1.0,)
        total = tl.zeros((CHUNK,), tl.float32)
        if addend_ptr is not None:
            total += tl.load(addend_ptr + token * hidden + begin + lanes, mask=is_lane, other=0.0).to(tl.float32)
        for j in tl.static_range(TOP_K):
            # No branch: all slots are on their way at the same time.
            has_row = places[j] >= 0
            values = tl.load(slots_ptr + (token * TOP_K + j) * hidden + begin + lanes, mask=is_lane & has_row, other=0.0)
            total += tl.where(has_row, values.to(tl.float32) * weights[j], 0.0)
        tl.store(out_ptr + token * hidden + begin + lanes, total.to(out_ptr.dtype.element_ty), mask=is_lane)


@triton.jit(do_not_specialize=["tokens", "max_slots", "rank"], do_not_specialize_on_alignment=["weights_ptr"])
def gemm_combine(a_ptr, b_ptr, out_ptr, weights_ptr, offsets_ptr, tiles_ptr, origins_ptr, places_ptr, slots_ptr, words_ptr, arrivals_ptr, call_ptr,
                 dispatch_call_ptr, tokens, N, K, rows, weight_rows, max_slots, rank, WORLD: tl.constexpr, TOP_K: tl.constexpr, CHUNK: tl.constexpr,
                 BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, B_TRANSPOSED: tl.constexpr,
                 PRECISION: tl.constexpr, addend_ptr=None):
    """out_ptr [tokens, N] becomes the sum of addend_ptr, of the same shape or None, and of each token's slots, each times its weight in weights_ptr [tokens, TOP_K] fp32 (or None: ones),
    in fp32 and in this order. The result of a slot is its row of a_ptr [rows, K] times the weights b_ptr of its expert, [experts, N, K] or [experts, K, N], of the type of the slots.

    Of dispatch_gemm: offsets_ptr, tiles_ptr, origins_ptr, places_ptr. Symmetric: slots_ptr [max_slots, N], words_ptr [WORLD]. Of the rank: arrivals_ptr, call_ptr, dispatch_call_ptr,
    words.
    """
    call = tl.load(call_ptr)
    if (tl.program_id(0) == 0) & (tid(0) == 0):
        st(dispatch_call_ptr, call)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[rows, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = weights_descriptor(b_ptr, weight_rows, N, K, BLOCK_N, BLOCK_K, B_TRANSPOSED)
    tiles_m = tl.load(tiles_ptr)
    tiles_n = tl.cdiv(N, BLOCK_N)
    distances = distances_of(slots_ptr, WORLD)
    FETCH_AHEAD: tl.constexpr = can_fetch_ahead(b_ptr.dtype.element_ty, B_TRANSPOSED)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), warp_specialize=FETCH_AHEAD):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        expert = tl.load(tiles_ptr + 1 + 2 * tile_m)
        row = tl.load(tiles_ptr + 2 + 2 * tile_m)
        end = tl.load(offsets_ptr + expert + 1)
        sums = product_of_rows(a_desc, b_desc, expert, row, tile_n * BLOCK_N, N, K, BLOCK_M, BLOCK_N, BLOCK_K, B_TRANSPOSED, PRECISION)
        return_tile(sums.to(slots_ptr.dtype.element_ty), origins_ptr, slots_ptr, distances, row, end, tile_n * BLOCK_N, N, max_slots.to(tl.int32), WORLD, BLOCK_M, BLOCK_N)
    blocks = tl.cast(tl.num_programs(0), tl.int64)
    if tl.atomic_add(arrivals_ptr, 1, sem="acq_rel", scope="gpu") % blocks == blocks - 1:
        for peer in range(tid(0), WORLD, num_threads()):
            st(dl.symm_at(words_ptr + rank, peer), call, scope="sys", semantic="release")
    token = dl.wait(words_ptr, WORLD, "sys", "acquire", waitValue=call, compare="ge")
    add_results(out_ptr, addend_ptr, weights_ptr, places_ptr, dl.consume_token(slots_ptr, token), tokens, tl.cast(N, tl.int64), TOP_K, CHUNK)


@triton.jit
def skip_combine(call_ptr, dispatch_call_ptr):
    """In the place of a gemm_combine, on all ranks."""
    if tid(0) == 0:
        st(dispatch_call_ptr, ld(call_ptr))
