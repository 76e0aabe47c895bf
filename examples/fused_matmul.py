# C = relu(A * B + bias), where every rank has some rows of A in symmetric memory and reads those of the others while it multiplies:
# the gathering is fused into the product. A second kernel computes the same by plain sums, and --expect compares.
#
#   build/bin/ditron run examples/fused_matmul.py:gather_matmul --ranks 2 --grid 'RANKS * cdiv(ROWS, BLOCK_M), cdiv(N, BLOCK_N)' \
#       --arg 'a_ptr=symm:rand({rank}):fp16[32,64]' --arg 'b_ptr=rand(7):fp16[64,32]' --arg 'bias_ptr=arange(-16):fp32[32]' \
#       --arg 'c_ptr=zeros:fp32[64,32]' --constexpr ROWS=32 --constexpr N=32 --constexpr K=64 --constexpr BLOCK_M=16 \
#       --constexpr BLOCK_N=16 --constexpr BLOCK_K=32 \
#     --then examples/fused_matmul.py:plain_matmul --arg 'wanted_ptr=zeros:fp32[64,32]' --grid 64 --constexpr ROWS=32 \
#       --constexpr N=32 --constexpr K=64 --expect c_ptr=ptr:wanted_ptr --tolerance 1e-4
#
# > gather_matmul: grid 4x2x1, 4 warps per block
# > plain_matmul: grid 64x1x1, 4 warps per block
# > c_ptr is as expected: 4096 elements on 2 ranks
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def gather_matmul(a_ptr, b_ptr, bias_ptr, c_ptr, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M
    owner = row // ROWS
    rows = tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a = dl.symm_at(a_ptr, owner) + (row % ROWS + rows)[:, None] * K + depth[None, :]
    b = b_ptr + depth[:, None] * N + columns[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        sums = tl.dot(tl.load(a + k), tl.load(b + k * N), sums)
    sums += tl.load(bias_ptr + columns)[None, :]
    tl.store(c_ptr + (row + rows)[:, None] * N + columns[None, :], tl.maximum(sums, 0.0))


@triton.jit
def plain_matmul(a_ptr, b_ptr, bias_ptr, wanted_ptr, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    depth = tl.arange(0, K)
    columns = tl.arange(0, N)
    a = tl.load(dl.symm_at(a_ptr, row // ROWS) + row % ROWS * K + depth).to(tl.float32)
    b = tl.load(b_ptr + depth[:, None] * N + columns[None, :]).to(tl.float32)
    sums = tl.sum(a[:, None] * b, axis=0) + tl.load(bias_ptr + columns)
    tl.store(wanted_ptr + row * N + columns, tl.maximum(sums, 0.0))
