"""How fast stores of all threads leave a GPU for all others at once, with no flag, no signal and nobody who reads: what a collective by such stores can reach (docs/ops/collectives.md).

    ditron run bench/gpu/push_rate.py:push_tiles --target cuda --ranks 4 --grid 132 --num-warps 16 --arg 'x_ptr=ones:bf16[33554432]' --arg 'slots_ptr=symm:zeros:bf16[33554432]' \\
        --arg n=8388608 --arg 'rank={rank}' --arg turns=8 --constexpr WORLD=4 --constexpr CHUNK=4096 --trace push.json

Bytes that leave a GPU: (WORLD - 1) * n * 2 * turns (403 MB there); the kernel's duration on each rank is in the trace.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld_vector, num_threads, st_vector, tid


@triton.jit(do_not_specialize=["rank"])
def push_tiles(x_ptr, slots_ptr, n, rank, turns, WORLD: tl.constexpr, CHUNK: tl.constexpr):
    """x_ptr, slots_ptr (symmetric): [WORLD, n], n a multiple of CHUNK; part r of x_ptr goes to rank r."""
    lanes = tl.arange(0, CHUNK)
    for turn in range(0, turns):
        for start in range(tl.program_id(0) * CHUNK, n, tl.num_programs(0) * CHUNK):
            for distance in tl.static_range(1, WORLD):
                target = (rank + distance) % WORLD
                values = tl.load(x_ptr + target * n + start + lanes)
                tl.store(dl.symm_at(slots_ptr, target) + rank * n + start + lanes, values)


@triton.jit(do_not_specialize=["rank"])
def push_words(x_ptr, slots_ptr, n, rank, turns, WORLD: tl.constexpr):
    """The same with 16 bytes of each thread, by relaxed stores, as packets are sent. x_ptr, slots_ptr: i64; n is even."""
    for turn in range(0, turns):
        for word in range((tl.program_id(0) * num_threads() + tid(0)) * 2, n, tl.num_programs(0) * num_threads() * 2):
            for distance in tl.static_range(1, WORLD):
                target = (rank + distance) % WORLD
                st_vector(dl.symm_at(slots_ptr, target) + rank * n + word, ld_vector(x_ptr + target * n + word, 2), scope="sys", semantic="relaxed")
