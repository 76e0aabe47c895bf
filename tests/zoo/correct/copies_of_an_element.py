# A row of 64 elements on 128 threads, updated in place: two threads hold each element and both load it, one of them stores it. The
# program has one access of each kind and says nothing of copies; what the second thread loads is used by nobody.
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    i = 64 * tl.program_id(0) + tl.arange(0, 64)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)
