"""The GEMM of Triton's tutorial, one block per tile, loads through pointers: what compile_time.py has both compile."""
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, M, N, K, stride_am, stride_bn, stride_cm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
         BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * columns
    first = (pid // in_group) * GROUP
    height = min(rows - first, GROUP)
    tile_m = first + (pid % in_group) % height
    tile_n = (pid % in_group) // height
    offs_m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b + offs_n[None, :] * stride_bn + offs_k[:, None]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    offs_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c + offs_m[:, None] * stride_cm + offs_n[None, :], accumulator.to(tl.bfloat16),
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))
