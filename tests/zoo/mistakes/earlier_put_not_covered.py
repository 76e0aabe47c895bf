# A put with signal says that its own bytes are there, not those of the put before it.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)  # !put
        shmem.putmem_signal_nbi_block(data_ptr + 128, source_ptr + 128, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
        shmem.quiet()
    else:
        shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load
        tl.store(out_ptr + 128 + i, tl.load(data_ptr + 128 + i))


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)
        shmem.fence()
        tl.debug_barrier()
        shmem.putmem_signal_nbi_block(data_ptr + 128, source_ptr + 128, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
        shmem.quiet()
    else:
        shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(data_ptr + i))
        tl.store(out_ptr + 128 + i, tl.load(data_ptr + 128 + i))
