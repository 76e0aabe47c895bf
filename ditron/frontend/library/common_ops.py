"""Barriers of a grid and of the ranks of a node over plain words, and searches in sorted arrays.

What the modules common_ops of Triton-distributed offer, by the same names. Every block of a grid must be resident at the same time
for a grid barrier to end: launch it as cooperative, which is refused where that cannot be.
"""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, atomic_add, atomic_cas, ld, membar, num_threads, st,
                                                       tid)


@triton.jit
def unsafe_barrier_on_this_grid(ptr):
    """All blocks of the launch meet. `ptr` is a 32-bit word that only barriers use; it is never reset.

    The additions of all blocks together change nothing but the highest bit: one block adds 2^31 less what the others add. So the
    word is ready for the next barrier, and a block knows by that bit that all have come.
    """
    word = ptr.to(tl.pointer_type(tl.int32))
    __syncthreads()
    if tid(0) == 0:
        blocks = tl.num_programs(0) * tl.num_programs(1) * tl.num_programs(2)
        number = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
        step = tl.full((), 1, tl.int32)
        if number == 0:
            step = -2147483648 - (blocks - 1)
        membar("gl")
        old = atomic_add(word, step, "gpu", "acq_rel")
        while (ld(word, "gpu", "acquire") ^ old) >= 0:
            pass
    __syncthreads()


@triton.jit
def cooperative_barrier_on_this_grid(ptr=None):
    """The same in a cooperative launch. It needs its word: the one that CUDA's cooperative groups use is the driver's own."""
    tl.static_assert(ptr is not None,
                     "cooperative_barrier_on_this_grid needs a 32-bit word here: pass a pointer, as to barrier_on_this_grid")
    unsafe_barrier_on_this_grid(ptr)


@triton.jit
def barrier_on_this_grid(ptr, use_cooperative: tl.constexpr = False):
    unsafe_barrier_on_this_grid(ptr)


@triton.jit
def barrier_all_intra_node_atomic_cas_block(local_rank, rank, local_world_size, symm_flag_ptr):
    """The ranks of a node meet, one block of each. One flag per rank, zero before and after.

    Thread i raises this rank's flag at rank i as soon as the one of the last barrier has been taken down, then takes down the flag
    of rank i here. Needs atomic operations between the GPUs.
    """
    __syncthreads()
    thread = tid(0)
    if thread < local_world_size:
        membar("sys")
        there = dl.symm_at(symm_flag_ptr + local_rank, rank - local_rank + thread)
        while atomic_cas(there, 0, 1, "sys", "release") != 0:
            pass
        while atomic_cas(symm_flag_ptr + thread, 1, 0, "sys", "acquire") != 1:
            pass
        membar("sys")
    __syncthreads()


@triton.jit
def barrier_all_intra_node_non_atomic_block(local_rank, rank, num_ranks, symm_flags, target_value):
    """The same with plain stores; 2 * num_ranks flags, and a value that differs from that of the last call.

    The second round lets no rank begin the next barrier, with flags of another value, before all have seen these.
    """
    __syncthreads()
    thread = tid(0)
    if thread < num_ranks:
        membar("sys")
        for step in tl.static_range(2):
            flags = symm_flags + step * num_ranks
            st(dl.symm_at(flags + local_rank, rank - local_rank + thread), target_value, "sys", "release")
            while ld(flags + thread, "sys", "acquire") != target_value:
                pass
    __syncthreads()


@triton.jit
def barrier_all_intra_node_non_atomic(local_rank, rank, num_ranks, symm_flags, target_value,
                                      use_cooperative: tl.constexpr = False):
    """The same by all blocks of a grid. One word more, behind the flags, is that of the grid's barrier."""
    if tl.program_id(0) + tl.program_id(1) + tl.program_id(2) == 0:
        barrier_all_intra_node_non_atomic_block(local_rank, rank, num_ranks, symm_flags, target_value)
    barrier_on_this_grid(symm_flags + 2 * num_ranks, use_cooperative)


@triton.jit
def bisect_left_kernel(sorted_values_ptr, target_value, N):
    """Index of the first of N ascending values that is not less than the target; N if there is none."""
    low = tl.full((), 0, tl.int32)
    high = tl.full((), 0, tl.int32) + N
    while low < high:
        middle = (low + high) // 2
        if tl.load(sorted_values_ptr + middle) < target_value:
            low = middle + 1
        else:
            high = middle
    return low


@triton.jit
def bisect_right_kernel(sorted_values_ptr, target_value, N):
    """Index of the first of N ascending values that is greater than the target; N if there is none."""
    low = tl.full((), 0, tl.int32)
    high = tl.full((), 0, tl.int32) + N
    while low < high:
        middle = (low + high) // 2
        if tl.load(sorted_values_ptr + middle) <= target_value:
            low = middle + 1
        else:
            high = middle
    return low


@triton.jit
def bisect_left_kernel_aligned(sorted_values_ptr, target_value, N: tl.constexpr):
    """The same for N a power of two, in one load of all values."""
    values = tl.load(sorted_values_ptr + tl.arange(0, N))
    return tl.sum((values < target_value).to(tl.int32))


@triton.jit
def bisect_right_kernel_aligned(sorted_values_ptr, target_value, N: tl.constexpr):
    values = tl.load(sorted_values_ptr + tl.arange(0, N))
    return tl.sum((values <= target_value).to(tl.int32))
