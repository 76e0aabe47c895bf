# The last to arrive lets the others go before it resets the count: they may have arrived at the next barrier by then.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, atomic_add, ld, st, tid


@triton.jit
def bar_buggy(count_ptr, sense_ptr, sense):
    __syncthreads()
    if tid(0) == 0:
        if atomic_add(count_ptr, 1, "gpu", "acq_rel") == 3:
            st(sense_ptr, sense, "gpu", "release")
            st(count_ptr, 0)
        else:
            while ld(sense_ptr, "gpu", "acquire") != sense:  # !wait
                pass
    __syncthreads()


@triton.jit
def buggy(count_ptr, sense_ptr, data_ptr, out_ptr):
    pid = tl.program_id(0)
    for k in range(1, 4):
        tl.store(data_ptr + pid, k * 10 + pid)
        bar_buggy(count_ptr, sense_ptr, 2 * k - 1)
        tl.store(out_ptr + pid, tl.load(data_ptr + (pid + 1) % 4))
        bar_buggy(count_ptr, sense_ptr, 2 * k)


@triton.jit
def bar_fixed(count_ptr, sense_ptr, sense):
    __syncthreads()
    if tid(0) == 0:
        if atomic_add(count_ptr, 1, "gpu", "acq_rel") == 3:
            st(count_ptr, 0)
            st(sense_ptr, sense, "gpu", "release")
        else:
            while ld(sense_ptr, "gpu", "acquire") != sense:
                pass
    __syncthreads()


@triton.jit
def fixed(count_ptr, sense_ptr, data_ptr, out_ptr):
    pid = tl.program_id(0)
    for k in range(1, 4):
        tl.store(data_ptr + pid, k * 10 + pid)
        bar_fixed(count_ptr, sense_ptr, 2 * k - 1)
        tl.store(out_ptr + pid, tl.load(data_ptr + (pid + 1) % 4))
        bar_fixed(count_ptr, sense_ptr, 2 * k)
