# Which of 256 buckets a number falls into: number * 256 does not fit 32 bits, becomes negative, and so does the bucket.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr, counts_ptr):
    x = tl.load(x_ptr + tl.arange(0, 128))
    bucket = x * 256 // (1 << 24)
    tl.atomic_add(counts_ptr + bucket, 1)  # !access


@triton.jit
def fixed(x_ptr, counts_ptr):
    x = tl.load(x_ptr + tl.arange(0, 128))
    bucket = x.to(tl.int64) * 256 // (1 << 24)
    tl.atomic_add(counts_ptr + bucket, 1)
