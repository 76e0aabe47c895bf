# Kernels of programs whose mistake is the host's.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def fill(x_ptr, value):
    i = tl.arange(0, 128)
    tl.store(x_ptr + i, value + i)


@triton.jit
def add(x_ptr, sum_ptr):
    i = tl.arange(0, 128)
    tl.store(sum_ptr + i, tl.load(sum_ptr + i) + tl.load(x_ptr + i))


@triton.jit
def count(count_ptr):
    tl.store(count_ptr, tl.load(count_ptr) + 1)


@triton.jit
def receive(box_ptr, flag_ptr, count_ptr, out_ptr):
    i = tl.arange(0, 128)
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=tl.load(count_ptr), compare="ge")
    box_ptr = dl.consume_token(box_ptr, token)
    tl.store(out_ptr + i, tl.load(box_ptr + i))


@triton.jit
def add_one(row_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(out_ptr + i, tl.load(row_ptr + i) + 1)


@triton.jit
def pull(row_ptr, out_ptr):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    tl.store(out_ptr + i, tl.load(dl.symm_at(row_ptr, right) + i))


@triton.jit
def send(row_ptr, inbox_ptr, flag_ptr, call_ptr):
    i = tl.arange(0, 128)
    right = (dl.rank() + 1) % dl.num_ranks()
    call = tl.load(call_ptr) + 1
    tl.debug_barrier()
    tl.store(call_ptr, call)
    tl.store(dl.symm_at(inbox_ptr, right) + i, tl.load(row_ptr + i))
    dl.notify(flag_ptr, right, signal=call, comm_scope="intra_node")


@triton.jit
def receive_next(inbox_ptr, flag_ptr, taken_ptr, out_ptr):
    i = tl.arange(0, 128)
    call = tl.load(taken_ptr) + 1
    tl.debug_barrier()
    tl.store(taken_ptr, call)
    token = dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=call, compare="ge")
    tl.store(out_ptr + i, tl.load(dl.consume_token(inbox_ptr, token) + i))


@triton.jit
def wait_for_flag(flag_ptr, out_ptr):
    dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=1, compare="ge")
    tl.store(out_ptr, 1)


@triton.jit
def raise_flag(flag_ptr):
    dl.notify(flag_ptr, 1 - dl.rank(), signal=1, comm_scope="intra_node")


@triton.jit
def put(row_ptr, inbox_ptr):
    shmem.putmem_nbi_block(inbox_ptr, row_ptr, 512, 1 - dl.rank())


@triton.jit
def meet_and_read(inbox_ptr, out_ptr):
    i = tl.arange(0, 128)
    shmem.barrier_all_block()
    tl.store(out_ptr + i, tl.load(inbox_ptr + i))
