# Kernels of programs whose mistake is the host's.
import triton
import triton.language as tl
import triton_dist.language as dl


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
