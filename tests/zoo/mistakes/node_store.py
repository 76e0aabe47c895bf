# A store through symm_at to a rank on another node, which no load or store reaches.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def receive(data_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(signal_ptr, 1, "sys", "acquire")
    tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, tl.load(source_ptr + i))  # !store
        dl.notify(signal_ptr, 1, signal=1, comm_scope="inter_node")
    else:
        receive(data_ptr, signal_ptr, out_ptr)


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    if dl.rank() == 0:
        shmem.putmem_signal_block(data_ptr, source_ptr, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    else:
        receive(data_ptr, signal_ptr, out_ptr)
