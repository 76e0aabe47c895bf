"""Small kernels that together use every leaf of the NVIDIA target (ptxas.test compiles each for every architecture)."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra import libdevice
from triton_dist.language.extra.language_extra import (__syncthreads, atomic_add, atomic_cas, ld, st, tid)
from triton_dist.language.extra.cuda.language_extra import (__ballot_sync, __shfl_sync_i32, __shfl_xor_sync_i32, laneid,
                                                            multimem_ld_reduce_v4, multimem_st_b32, multimem_st_b64,
                                                            multimem_st_v4)


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def copy_aligned(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def copy_hints(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x_ptr + offsets, mask=mask, other=1, cache_modifier=".cg")
    b = tl.load(x_ptr + offsets, mask=mask, eviction_policy="evict_first")
    c = tl.load(x_ptr + offsets, mask=mask, volatile=True)
    tl.store(out_ptr + offsets, a + b + c, mask=mask, cache_modifier=".cs")
    tl.store(out_ptr + BLOCK + offsets, c, mask=mask, volatile=True)


@triton.jit
def mathematics(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.exp(x) + tl.exp2(x) + tl.log(x) + tl.log2(x) + tl.sqrt(x) + tl.rsqrt(x) + tl.sin(x) + tl.cos(x)
    y += tl.floor(x) + tl.ceil(x) + tl.abs(x) + libdevice.tanh(x) + tl.erf(x) + x / y + tl.sigmoid(x) + x % y
    tl.store(out_ptr + offsets, tl.fma(x, y, tl.maximum(x, y)), mask=mask)


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * columns + offsets, e / tl.sum(e, 0), mask=offsets < columns)


@triton.jit
def scan(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), 0))


@triton.jit
def transpose(x_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)[:, None]
    columns = tl.arange(0, N)[None, :]
    tl.store(out_ptr + columns * N + rows, tl.load(x_ptr + rows * N + columns))


@triton.jit
def dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + m * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + n)
    tl.store(c_ptr + m * N + n, tl.dot(a, b, input_precision=PRECISION))


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
         BLOCK_K: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def descriptor_product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                       LIMIT: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=c_ptr.dtype.element_ty)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([row, k * BLOCK_K])
        b = b_desc.load([column, k * BLOCK_K])
        acc = tl.dot(a, b.T, acc, max_num_imprecise_acc=LIMIT)
    rows = row + tl.arange(0, BLOCK_M)[:, None]
    columns = column + tl.arange(0, BLOCK_N)[None, :]
    tl.store(c_ptr + rows * N + columns, acc, mask=(rows < M) & (columns < N))


@triton.jit
def atomics_int(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.atomic_add(out_ptr + offsets, x)
    tl.atomic_max(out_ptr + offsets, x, mask=x > 0, sem="relaxed")
    tl.atomic_min(out_ptr + offsets, x, scope="sys")
    tl.atomic_and(out_ptr + offsets, x, sem="acquire")
    tl.atomic_or(out_ptr + offsets, x, sem="release")
    tl.atomic_xor(out_ptr + offsets, x, scope="cta")
    old = tl.atomic_xchg(out_ptr + offsets, x)
    tl.store(x_ptr + offsets, old + tl.atomic_cas(out_ptr + offsets, x, old))


@triton.jit
def atomics_float(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.atomic_max(out_ptr + offsets, x)
    tl.atomic_min(out_ptr + offsets, x, mask=x > 0)
    tl.store(x_ptr + offsets, tl.atomic_add(out_ptr + offsets, x))


@triton.jit
def atomic_add_only(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offsets, tl.load(x_ptr + offsets))
    tl.atomic_add(out_ptr, tl.load(x_ptr))


@triton.jit
def threads(x_ptr, out_ptr, n):
    thread = tid(0)
    value = ld(x_ptr + thread, scope="gpu", semantic="acquire")
    value += __shfl_xor_sync_i32(0xFFFFFFFF, value, 16)
    value += __shfl_sync_i32(0xFFFFFFFF, value, 0)
    if __ballot_sync(0xFFFFFFFF, value > n) != 0:
        atomic_add(out_ptr, value, scope="sys", semantic="release")
    __syncthreads()
    while ld(x_ptr, scope="sys", semantic="acquire") < n:
        pass
    if laneid() == 0:
        st(out_ptr + thread, atomic_cas(out_ptr, 0, 1, scope="gpu", semantic="acq_rel"), scope="sys", semantic="release")


@triton.jit
def signals(x_ptr, signal_ptr, n):
    rank = dl.rank()
    peer = (rank + 1) % dl.num_ranks()
    offsets = tl.arange(0, 128)
    token = dl.wait(signal_ptr, n, "sys", "acquire", waitValue=1)
    x = tl.load(dl.consume_token(x_ptr, token) + offsets)
    tl.store(dl.symm_at(x_ptr, peer) + offsets, x)
    dl.notify(signal_ptr, peer, signal=1, sig_op="add", comm_scope="intra_node")


@triton.jit
def pack_halves(low_ptr, high_ptr, word_ptr, TYPE: tl.constexpr):
    """Words of two 16-bit floats, put together with shifts."""
    offsets = tl.arange(0, 1024)
    low = tl.cast(tl.cast(tl.load(low_ptr + offsets), TYPE), tl.uint16, bitcast=True).to(tl.uint32)
    high = tl.cast(tl.cast(tl.load(high_ptr + offsets), TYPE), tl.uint16, bitcast=True).to(tl.uint32)
    tl.store(word_ptr + offsets, tl.cast(low | (high << 16), tl.int32, bitcast=True))


@triton.jit
def multicast(x_ptr, words_ptr, out_ptr):
    """Every form of access through a multicast address."""
    thread = tid(0)
    a, b, c, d = multimem_ld_reduce_v4(x_ptr + thread * 4)
    multimem_st_v4(out_ptr + thread * 4, a, b, c, d)
    multimem_st_b32(x_ptr + thread, a)
    multimem_st_b64(words_ptr + thread, 7)


@triton.jit
def debug(x_ptr, y_ptr, n):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    tl.device_print("x", x, i)
    tl.device_print("hex", tl.load(y_ptr + i), hex=True)
    print("n", n)
    tl.device_print("here")
    tl.device_assert(x < 3, "small")
    tl.device_assert(n < 100, "few", mask=n > 0)


@triton.jit
def print_scalars(n):
    tl.device_print("n", n)
    tl.device_print("here")


@triton.jit
def with_place(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@triton.jit
def reductions(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Both orders, along rows, columns and both."""
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    rows = tl.sum(x, axis=1) + tl.sum(x, axis=1, reduction_ordering=tl.ReductionOrdering.INNER_TREE)
    columns = tl.sum(x, axis=0) + tl.sum(x, axis=0, reduction_ordering=tl.ReductionOrdering.INNER_TREE)
    high, place = tl.reduce((x, x + 1.0), 1, with_place)
    tl.store(out_ptr + tl.arange(0, M), rows + high + place)
    tl.store(out_ptr + M + tl.arange(0, N), columns + tl.sum(x) + tl.cumsum(columns, 0))


@triton.jit
def eight_bit_floats(x_ptr, narrow_ptr, wide_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(narrow_ptr + offsets, tl.load(x_ptr + offsets).to(narrow_ptr.dtype.element_ty))
    tl.store(wide_ptr + offsets, tl.load(narrow_ptr + offsets).to(tl.float32))
