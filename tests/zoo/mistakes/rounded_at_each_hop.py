# Sums over all ranks, rounded to bf16 after each of them: small numbers are lost beside a large one.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(x_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.barrier_all_block()
    total = tl.zeros([128], tl.bfloat16)
    for peer in range(dl.num_ranks()):
        total = (total.to(tl.float32) + tl.load(dl.symm_at(x_ptr, peer) + i)).to(tl.bfloat16)
    tl.store(out_ptr + i, total)


@triton.jit
def fixed(x_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.barrier_all_block()
    total = tl.zeros([128], tl.float32)
    for peer in range(dl.num_ranks()):
        total += tl.load(dl.symm_at(x_ptr, peer) + i)
    tl.store(out_ptr + i, total.to(tl.bfloat16))
