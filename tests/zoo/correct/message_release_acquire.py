# A payload and a flag that is raised with release and read with acquire, from rank to rank and from block to block.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def kernel(data_ptr, flag_ptr, local_ptr, local_flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    block = tl.program_id(0)
    if dl.rank() == 0:
        if block == 0:
            tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
            __syncthreads()
            if tid(0) == 0:
                st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    elif block == 0:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 1:
                pass
        __syncthreads()
        tl.store(local_ptr + i, 2 * tl.load(data_ptr + i))
        tl.debug_barrier()
        tl.atomic_xchg(local_flag_ptr, 1, sem="release", scope="gpu")
    else:
        while tl.atomic_add(local_flag_ptr, 0, sem="acquire", scope="gpu") != 1:
            pass
        tl.store(out_ptr + i, tl.load(local_ptr + i) + tl.load(data_ptr + i))
