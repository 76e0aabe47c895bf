# A put, then a signal by itself: nothing says that the put arrives first.
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
    else:
        shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 1)
        if tid(0) == 0:
            shmem.fence()
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    else:
        shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(data_ptr + i))
