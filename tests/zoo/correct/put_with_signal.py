# Non-blocking puts, each with a signal of its own; the source is used again behind a quiet.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def kernel(data_ptr, source_ptr, signals_ptr, out_ptr):
    i = tl.arange(0, 128)
    peer = 1 - dl.rank()
    for chunk in range(3):
        tl.store(source_ptr + i, 100 * chunk + i)
        tl.debug_barrier()
        shmem.putmem_signal_nbi_block(data_ptr + 128 * chunk, source_ptr, 512, signals_ptr + chunk, 1,
                                      shmem.NVSHMEM_SIGNAL_SET, peer)
        shmem.quiet()
        tl.debug_barrier()
    for chunk in range(3):
        shmem.signal_wait_until(signals_ptr + chunk, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + 128 * chunk + i, tl.load(data_ptr + 128 * chunk + i))
