# One thread counts the block as done while the others still store: its release is not for their stores.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, st, tid


@triton.jit
def buggy(part_ptr, count_ptr, out_ptr, last_ptr):
    pid = tl.program_id(0)
    i = tl.arange(0, 128)
    tl.store(part_ptr + pid * 128 + i, 1.0 + 0.0 * i)  # !store
    if tid(0) == 0:
        st(last_ptr + pid, atomic_add(count_ptr, 1, scope="gpu", semantic="acq_rel"))
    __syncthreads()
    if tl.load(last_ptr + pid) == 4:
        acc = tl.zeros([128], tl.float32)
        for b in range(5):
            acc += tl.load(part_ptr + b * 128 + i)  # !load
        tl.store(out_ptr + i, acc)


@triton.jit
def fixed(part_ptr, count_ptr, out_ptr, last_ptr):
    pid = tl.program_id(0)
    i = tl.arange(0, 128)
    tl.store(part_ptr + pid * 128 + i, 1.0 + 0.0 * i)
    __syncthreads()
    if tid(0) == 0:
        st(last_ptr + pid, atomic_add(count_ptr, 1, scope="gpu", semantic="acq_rel"))
    __syncthreads()
    if tl.load(last_ptr + pid) == 4:
        acc = tl.zeros([128], tl.float32)
        for b in range(5):
            acc += tl.load(part_ptr + b * 128 + i)
        tl.store(out_ptr + i, acc)
