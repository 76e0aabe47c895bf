# A sum in two shots, in place: the second shot stores where slower ranks still read.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(x_ptr, out_ptr):
    r = dl.rank()
    i = tl.arange(0, 128)
    shmem.barrier_all_block()
    acc = tl.zeros([128], tl.float32)
    for p in range(4):
        acc += tl.load(dl.symm_at(x_ptr, p) + 128 * r + i)  # !load
    for p in range(4):
        tl.store(dl.symm_at(x_ptr, p) + 128 * r + i, acc)  # !store, or store
    j = tl.arange(0, 512)
    tl.store(out_ptr + j, tl.load(x_ptr + j))  # !or load


@triton.jit
def fixed(x_ptr, out_ptr):
    r = dl.rank()
    i = tl.arange(0, 128)
    shmem.barrier_all_block()
    acc = tl.zeros([128], tl.float32)
    for p in range(4):
        acc += tl.load(dl.symm_at(x_ptr, p) + 128 * r + i)
    tl.debug_barrier()
    for p in range(4):
        tl.store(dl.symm_at(x_ptr, p) + 128 * r + i, acc)
    shmem.barrier_all_block()
    j = tl.arange(0, 512)
    tl.store(out_ptr + j, tl.load(x_ptr + j))
