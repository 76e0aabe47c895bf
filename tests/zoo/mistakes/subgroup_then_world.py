# Half of the ranks meet in their pair and then with all, the other half with all and then in their pair.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def meet(word_ptr, first, members):
    tl.debug_barrier()
    tl.atomic_add(dl.symm_at(word_ptr, first), 1, sem="release", scope="sys")
    while tl.atomic_add(dl.symm_at(word_ptr, first), 0, sem="acquire", scope="sys") < members:  # !wait
        pass
    tl.debug_barrier()


@triton.jit
def buggy(pair_ptr, world_ptr, out_ptr):
    rank = dl.rank()
    pair = rank // 2 * 2
    if rank % 2 == 0:
        meet(pair_ptr, pair, 2)
        meet(world_ptr, 0, dl.num_ranks())
    else:
        meet(world_ptr, 0, dl.num_ranks())
        meet(pair_ptr, pair, 2)
    tl.store(out_ptr, 1)


@triton.jit
def fixed(pair_ptr, world_ptr, out_ptr):
    rank = dl.rank()
    meet(pair_ptr, rank // 2 * 2, 2)
    meet(world_ptr, 0, dl.num_ranks())
    tl.store(out_ptr, 1)
