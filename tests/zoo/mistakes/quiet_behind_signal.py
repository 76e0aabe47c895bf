# The quiet of each thread comes behind the signal. That those of other threads may be there first does not make it right.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 1)  # !put
        if tid(0) == 0:
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
        shmem.quiet()
    else:
        dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 1)
        shmem.quiet()
        if tid(0) == 0:
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    else:
        dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(data_ptr + i))
