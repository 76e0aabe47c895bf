# A matrix product whose tensors the host describes; the tiles' shapes are those of the descriptors.
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, M, N, K):
    columns = tl.cdiv(N, b.block_shape[0])
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, a.block_shape[0]) * columns, tl.num_programs(0), warp_specialize=True):
        row = tile // columns * a.block_shape[0]
        column = tile % columns * b.block_shape[0]
        acc = tl.zeros(c.block_shape, dtype=tl.float32)
        for k in range(0, K, a.block_shape[1]):
            acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
        c.store([row, column], acc.to(c.dtype))
