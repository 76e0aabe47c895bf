# The flag is raised with a release, but the reader polls it without an acquire: its loads of the payload may be older.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, tid


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !store
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "relaxed") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))
