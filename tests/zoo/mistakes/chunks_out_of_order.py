# Two puts with signals that add to one word. The receiver takes a count of one for the first chunk, but the second may come first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        for chunk in range(2):
            shmem.putmem_signal_nbi_block(data_ptr + 128 * chunk, source_ptr + 128 * chunk, 512, signal_ptr, 1,  # !put
                                          shmem.NVSHMEM_SIGNAL_ADD, 1)
        shmem.quiet()
    else:
        for chunk in range(2):
            shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_GE, chunk + 1)
            tl.store(out_ptr + 128 * chunk + i, tl.load(data_ptr + 128 * chunk + i))  # !load


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        for chunk in range(2):
            shmem.putmem_signal_nbi_block(data_ptr + 128 * chunk, source_ptr + 128 * chunk, 512, signal_ptr + chunk, 1,
                                          shmem.NVSHMEM_SIGNAL_ADD, 1)
        shmem.quiet()
    else:
        for chunk in range(2):
            shmem.signal_wait_until(signal_ptr + chunk, shmem.NVSHMEM_CMP_GE, 1)
            tl.store(out_ptr + 128 * chunk + i, tl.load(data_ptr + 128 * chunk + i))
