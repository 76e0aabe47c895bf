"""Device functions of the made-up project: no kernels, their uses of pointers show in those who call them."""
import triton
import triton.language as tl


@triton.jit
def row_of(base, row, stride):
    return base + row * stride


@triton.jit
def take(table, index):
    return tl.load(table + index)
