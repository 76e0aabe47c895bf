# A signal comes behind the bytes of its own put; those of the put before it are another matter.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def receive(data_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))  # !load


@triton.jit
def buggy(data_ptr, source_ptr, tail_ptr, signal_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)  # !put
        shmem.putmem_signal_nbi_block(tail_ptr, source_ptr, 16, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
        shmem.quiet()
    else:
        receive(data_ptr, signal_ptr, out_ptr)


@triton.jit
def fixed(data_ptr, source_ptr, tail_ptr, signal_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)
        shmem.fence()
        shmem.putmem_signal_nbi_block(tail_ptr, source_ptr, 16, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
        shmem.quiet()
    else:
        receive(data_ptr, signal_ptr, out_ptr)
