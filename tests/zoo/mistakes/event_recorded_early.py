# The event that another stream waits for is recorded in front of the kernel that it stands for.
import triton
import triton.language as tl


@triton.jit
def first(row_ptr):
    i = tl.arange(0, 128)
    tl.store(row_ptr + i, i + 1)  # !store


@triton.jit
def second(row_ptr, out_ptr):
    i = tl.arange(0, 128)
    tl.store(out_ptr + i, tl.load(row_ptr + i))  # !load
