# A fence orders puts to one and the same rank. Here the put goes to rank 2, the signal to rank 1, which passes it on.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, tid


@triton.jit
def buggy(src_ptr, box_ptr, sig_ptr, out_ptr):
    i = tl.arange(0, 128)
    me = shmem.my_pe()
    if me == 0:
        shmem.putmem_nbi_block(box_ptr, src_ptr, 512, 2)  # !put
        if tid(0) == 0:
            shmem.fence()
            shmem.signal_op(sig_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    elif me == 1:
        shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        __syncthreads()
        dl.notify(sig_ptr, 2, signal=1, sig_op="set", comm_scope="intra_node")
    else:
        shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(box_ptr + i))  # !load


@triton.jit
def fixed(src_ptr, box_ptr, sig_ptr, out_ptr):
    i = tl.arange(0, 128)
    me = shmem.my_pe()
    if me == 0:
        shmem.putmem_nbi_block(box_ptr, src_ptr, 512, 2)
        if tid(0) == 0:
            shmem.quiet()
            shmem.signal_op(sig_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, 1)
    elif me == 1:
        shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        __syncthreads()
        dl.notify(sig_ptr, 2, signal=1, sig_op="set", comm_scope="intra_node")
    else:
        shmem.signal_wait_until(sig_ptr, shmem.NVSHMEM_CMP_EQ, 1)
        tl.store(out_ptr + i, tl.load(box_ptr + i))
