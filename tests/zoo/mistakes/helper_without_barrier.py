# A function that sends stores by all threads and raises the flag by one, with no block barrier in between.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, ld_acquire, tid


@triton.jit
def send_buggy(dst, flag, v, i):
    tl.store(dst + i, v)  # !store
    if tid(0) == 0:
        atomic_add(flag, 1, scope="sys", semantic="release")


@triton.jit
def recv_buggy(flag, count):
    if tid(0) == 0:
        while ld_acquire(flag, "sys") < count:
            pass
    __syncthreads()


@triton.jit
def buggy(box_ptr, flag_ptr, out_ptr):
    r = dl.rank()
    nxt = (r + 1) % dl.num_ranks()
    i = tl.arange(0, 128)
    for c in range(4):
        v = (i + c).to(tl.float16)
        send_buggy(dl.symm_at(box_ptr, nxt) + 128 * c, dl.symm_at(flag_ptr, nxt), v, i)
        recv_buggy(flag_ptr, c + 1)
        tl.store(out_ptr + 128 * c + i, tl.load(box_ptr + 128 * c + i))  # !load


@triton.jit
def send_fixed(dst, flag, v, i):
    tl.store(dst + i, v)
    __syncthreads()
    if tid(0) == 0:
        atomic_add(flag, 1, scope="sys", semantic="release")


@triton.jit
def recv_fixed(flag, count):
    if tid(0) == 0:
        while ld_acquire(flag, "sys") < count:
            pass
    __syncthreads()


@triton.jit
def fixed(box_ptr, flag_ptr, out_ptr):
    r = dl.rank()
    nxt = (r + 1) % dl.num_ranks()
    i = tl.arange(0, 128)
    for c in range(4):
        v = (i + c).to(tl.float16)
        send_fixed(dl.symm_at(box_ptr, nxt) + 128 * c, dl.symm_at(flag_ptr, nxt), v, i)
        recv_fixed(flag_ptr, c + 1)
        tl.store(out_ptr + 128 * c + i, tl.load(box_ptr + 128 * c + i))
