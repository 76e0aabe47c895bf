# Two puts to a rank on another node, the second of a flag: without a fence either may arrive first.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import tid


@triton.jit
def receive(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))  # !load


@triton.jit
def buggy(data_ptr, source_ptr, flag_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 1)  # !put
        if tid(0) == 0:
            shmem.int_p(flag_ptr, 1, 1)
    else:
        receive(data_ptr, flag_ptr, out_ptr)


@triton.jit
def fixed(data_ptr, source_ptr, flag_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_block(data_ptr, source_ptr, 512, 1)
        if tid(0) == 0:
            shmem.fence()
            shmem.int_p(flag_ptr, 1, 1)
    else:
        receive(data_ptr, flag_ptr, out_ptr)
