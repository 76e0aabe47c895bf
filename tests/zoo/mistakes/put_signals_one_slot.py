# Each put has a signal, and the receiver waits for both: it has the bytes of the two, in the one slot.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def receive(box_ptr, signal_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=2)
    for slot in range(2):
        tl.store(out_ptr + 128 * slot + i, tl.load(dl.consume_token(box_ptr, token) + 128 * slot + i))


@triton.jit
def buggy(box_ptr, source_ptr, signal_ptr, out_ptr):
    if dl.rank() != 0:
        shmem.putmem_signal_block(box_ptr, source_ptr, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, 0)  # !put
    else:
        receive(box_ptr, signal_ptr, out_ptr)


@triton.jit
def fixed(box_ptr, source_ptr, signal_ptr, out_ptr):
    me = dl.rank()
    if me != 0:
        shmem.putmem_signal_block(box_ptr + 128 * (me - 1), source_ptr, 512, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, 0)
    else:
        receive(box_ptr, signal_ptr, out_ptr)
