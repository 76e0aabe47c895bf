# One thread puts, one of another warp is quiet and raises the flag: nothing says that the put was begun by then.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, st, tid


@triton.jit
def buggy(data_ptr, source_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        if tid(0) == 0:
            shmem.putmem_nbi(data_ptr, source_ptr, 512, 1)  # !put
        if tid(0) == 64:
            shmem.quiet()
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        dl.wait(flag_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, source_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        if tid(0) == 0:
            shmem.putmem_nbi(data_ptr, source_ptr, 512, 1)
        __syncthreads()
        if tid(0) == 64:
            shmem.quiet()
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        dl.wait(flag_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(data_ptr + i))
