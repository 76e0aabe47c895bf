# A product whose depth, 40, is no multiple of the tile's 32: the last step reads the next row's elements, and behind the last row.
import triton
import triton.language as tl


@triton.jit
def buggy(a_ptr, b_ptr, c_ptr, depth):
    i = tl.arange(0, 16)
    inner = tl.arange(0, 32)
    c = tl.zeros([16, 16], tl.float32)
    for k in range(0, depth, 32):
        a = tl.load(a_ptr + i[:, None] * depth + k + inner[None, :])  # !access
        b = tl.load(b_ptr + (k + inner)[:, None] * 16 + i[None, :], mask=(k + inner)[:, None] < depth, other=0.0)
        c += tl.dot(a, b)
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], c)


@triton.jit
def fixed(a_ptr, b_ptr, c_ptr, depth):
    i = tl.arange(0, 16)
    inner = tl.arange(0, 32)
    c = tl.zeros([16, 16], tl.float32)
    for k in range(0, depth, 32):
        a = tl.load(a_ptr + i[:, None] * depth + k + inner[None, :], mask=(k + inner)[None, :] < depth, other=0.0)
        b = tl.load(b_ptr + (k + inner)[:, None] * 16 + i[None, :], mask=(k + inner)[:, None] < depth, other=0.0)
        c += tl.dot(a, b)
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], c)
