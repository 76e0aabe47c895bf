# A tile is changed by single threads inside of a region, with barriers of the block in between.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads


@triton.jit
def kernel(out_ptr):
    i = tl.arange(0, 256)
    x = i + 0
    with dl.simt_exec_region() as (thread, threads):
        for at in range(thread, 128, threads):
            low = x[at]
            high = x[255 - at]
            x[at] = high
            x[255 - at] = low
        __syncthreads()
        if thread == 0:
            x[0] = x[1] + 1
    tl.store(out_ptr + i, x)
