# Every block loads a counter, adds one and stores it: two of them may start from the same number.
import triton
import triton.language as tl


@triton.jit
def buggy(counter_ptr):
    count = tl.load(counter_ptr)  # !load
    tl.store(counter_ptr, count + 1)  # !store


@triton.jit
def fixed(counter_ptr):
    tl.atomic_add(counter_ptr, 1)
