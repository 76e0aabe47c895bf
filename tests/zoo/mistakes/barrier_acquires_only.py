# A barrier of all ranks whose arrival acquires but does not release.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def barrier_buggy(count_ptr):
    tl.debug_barrier()
    tl.atomic_add(dl.symm_at(count_ptr, 0), 1, sem="acquire", scope="sys")
    while tl.atomic_add(dl.symm_at(count_ptr, 0), 0, sem="acquire", scope="sys") < 4:
        pass
    tl.debug_barrier()


@triton.jit
def buggy(box_ptr, count_ptr, out_ptr):
    r = dl.rank()
    i = tl.arange(0, 128)
    for peer in range(4):
        tl.store(dl.symm_at(box_ptr, peer) + 128 * r + i, i + r)  # !store
    barrier_buggy(count_ptr)
    acc = tl.zeros([128], tl.int32)
    for peer in range(4):
        acc += tl.load(box_ptr + 128 * peer + i)  # !load
    tl.store(out_ptr + i, acc)


@triton.jit
def barrier_fixed(count_ptr):
    tl.debug_barrier()
    tl.atomic_add(dl.symm_at(count_ptr, 0), 1, sem="acq_rel", scope="sys")
    while tl.atomic_add(dl.symm_at(count_ptr, 0), 0, sem="acquire", scope="sys") < 4:
        pass
    tl.debug_barrier()


@triton.jit
def fixed(box_ptr, count_ptr, out_ptr):
    r = dl.rank()
    i = tl.arange(0, 128)
    for peer in range(4):
        tl.store(dl.symm_at(box_ptr, peer) + 128 * r + i, i + r)
    barrier_fixed(count_ptr)
    acc = tl.zeros([128], tl.int32)
    for peer in range(4):
        acc += tl.load(box_ptr + 128 * peer + i)
    tl.store(out_ptr + i, acc)
