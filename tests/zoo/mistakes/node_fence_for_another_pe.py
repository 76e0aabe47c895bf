# Rank 0 puts to rank 2 and tells rank 1, which tells rank 2: a fence orders what goes to one rank, only a quiet completes.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid


@triton.jit
def hand_on(data_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(signal_ptr, 1, "sys", "acquire")
    if dl.rank() == 1:
        if tid(0) == 0:
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 2)
    else:
        tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))  # !load


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 2)  # !put
        if tid(0) == 0:
            shmem.fence()
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    else:
        hand_on(data_ptr, signal_ptr, out_ptr)


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 2)
        if tid(0) == 0:
            shmem.quiet()
            shmem.signal_op(signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    else:
        hand_on(data_ptr, signal_ptr, out_ptr)
