# Flags that are puts of a word: polled, waited for, put again after the answer, and the same word put by all threads at once.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import __syncthreads, ld, tid


@triton.jit
def kernel(box_ptr, source_ptr, flag_ptr, ready_ptr, answer_ptr, out_ptr):
    me = dl.rank()
    peer = 1 - me
    i = tl.arange(0, 128)
    shmem.int_p(ready_ptr, 1, peer)  # by each thread
    if tid(0) == 0:
        while ld(ready_ptr, "sys", "relaxed") != 1:
            pass
    __syncthreads()
    for turn in range(3):
        if me == 0:
            shmem.putmem_nbi_block(box_ptr, source_ptr + 128 * turn, 512, 1)
            if tid(0) == 0:
                shmem.fence()
                shmem.int_p(flag_ptr, turn + 1, 1)
            token = dl.wait(answer_ptr, 1, "sys", "acquire", waitValue=turn + 1)
        else:
            token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=turn + 1)
            tl.store(out_ptr + 128 * turn + i, tl.load(dl.consume_token(box_ptr, token) + i))
            tl.debug_barrier()
            if tid(0) == 0:
                shmem.int_p(answer_ptr, turn + 1, 0)
