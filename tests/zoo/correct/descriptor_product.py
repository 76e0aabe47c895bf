# The same by tensor descriptors: copies of the accelerator with mbarriers, and a store by a copy.
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, rows, columns, depth):
    row, column = 64 * tl.program_id(0), 64 * tl.program_id(1)
    a_tiles = tl.make_tensor_descriptor(a_ptr, [rows, depth], [depth, 1], [64, 32])
    b_tiles = tl.make_tensor_descriptor(b_ptr, [depth, columns], [columns, 1], [32, 64])
    c_tiles = tl.make_tensor_descriptor(c_ptr, [rows, columns], [columns, 1], [64, 64])
    c = tl.zeros([64, 64], tl.float32)
    for k in range(0, depth, 32):
        c = tl.dot(a_tiles.load([row, k]), b_tiles.load([k, column]), c)
    c_tiles.store([row, column], c)
