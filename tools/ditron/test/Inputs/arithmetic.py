import triton
import triton.language as tl


@triton.jit
def divide(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(x_ptr + i) // tl.load(y_ptr + i))


@triton.jit
def remainder(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(x_ptr + i) % tl.load(y_ptr + i))


@triton.jit
def shift(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(x_ptr + i) << tl.load(y_ptr + i))
