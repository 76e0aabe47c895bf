# Two ranks put to one slot of a third: the barrier behind them says that both are over, and nothing says which was first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(box_ptr, source_ptr, out_ptr):
    me = dl.rank()
    i = tl.arange(0, 128)
    if me != 0:
        shmem.putmem_block(box_ptr, source_ptr, 512, 0)  # !put
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(box_ptr + i))


@triton.jit
def fixed(box_ptr, source_ptr, out_ptr):
    me = dl.rank()
    i = tl.arange(0, 128)
    if me == 1:
        shmem.putmem_block(box_ptr, source_ptr, 512, 0)
    shmem.barrier_all_block()
    if me == 2:
        shmem.putmem_block(box_ptr, source_ptr, 512, 0)
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(box_ptr + i))
