# dl.notify orders what the block has stored; a put that is under way is not among it.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def buggy(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)  # !put
        dl.notify(signal_ptr, 1, signal=1, comm_scope="intra_node")
        shmem.quiet()
    else:
        token = dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))  # !load


@triton.jit
def fixed(data_ptr, source_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        shmem.putmem_nbi_block(data_ptr, source_ptr, 512, 1)
        shmem.quiet()
        dl.notify(signal_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        token = dl.wait(signal_ptr, 1, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(dl.consume_token(data_ptr, token) + i))
