import torch

import triton
import triton.language as tl


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


def get_autotune_config():
    return [
        triton.Config({'BLOCK_M': bm, 'BLOCK_N': bn, 'GROUP_M': 8}, num_stages=s, num_warps=w)
        for bm in (64, 128)
        for bn in [32, 256] if bm * bn <= 128 * 256
        for s, w in zip([3, 4], [4, 8])
    ]


@triton.autotune(configs=get_autotune_config(), key=['M', 'N', 'K'])
@triton.heuristics({'EVEN_K': lambda args: args['K'] % args['BLOCK_K'] == 0})
@triton.jit(do_not_specialize=["M"], launch_metadata=None)
def matmul_kernel(
        a_ptr, b_ptr, c_ptr,
        M, N, K,
        stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr = 32, *,
        EVEN_K: tl.constexpr, GROUP_M: tl.constexpr = 8,
        ACTIVATION: "tl.constexpr" = ""):
    """Computes C = A x B.

    A has shape (M, K), B has shape (K, N).
    """
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs)
        else:
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float8e4nv if c_ptr.dtype.element_ty == tl.float8e4nv else tl.float16)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    c_mask = (offs_cm[:, None] < M) & (offs_cm[None, :] < N)
    tl.store(c_ptr + stride_cm * offs_cm[:, None], c, mask=c_mask)


# Used above, defined below: only the call needs it.
@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def _softmax_step(acc, l_i, m_i, q, K_block_ptr, V_block_ptr, start_m, qk_scale,
                  BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr, STAGE: tl.constexpr, fp8_v: tl.constexpr):
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, HEAD_DIM
    for start_n in tl.range(lo, hi, BLOCK_M, warp_specialize=True, num_stages=None):
        qk = tl.dot(q, tl.load(K_block_ptr))
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        acc = acc * tl.math.exp2(m_i - m_ij)[:, None]
        p = p.to(tl.float8e5 if fp8_v else tl.float16)
        l_i, m_i = l_i * 1.0 + tl.sum(p, 1), m_ij
        V_block_ptr = tl.advance(V_block_ptr, (BLOCK_M, 0))
    return acc, l_i, m_i


class _attention(torch.autograd.Function):

    @staticmethod
    def forward(ctx, q, k, v, causal: bool, sm_scale, *args, warp_specialize=True, **kwargs):
        HEAD_DIM_Q, HEAD_DIM_K = q.shape[-1], k.shape[-1]
        assert HEAD_DIM_Q == HEAD_DIM_K and HEAD_DIM_K in {16, 32, 64, 128, 256}, f"bad {HEAD_DIM_Q=}"
        extra_kern_args = {"waves_per_eu": 3 if HEAD_DIM_K <= 64 else 2, **kwargs}
        M = torch.empty((q.shape[0], q.shape[1], q.shape[2]), device=q.device, dtype=torch.float32)

        def grid(META):
            return (triton.cdiv(q.shape[2], META["BLOCK_M"]), q.shape[0] * q.shape[1], 1)

        matmul_kernel[grid](q, k, v, *args, **extra_kern_args)
        ctx.save_for_backward(q, k, v, M)
        return M

    @property
    def name(self) -> "str | None":
        return getattr(self, "_name", None)


try:
    from flash_attn.flash_attn_interface import flash_attn_qkvpacked_func as flash_attn_func
    HAS_FLASH = True
except BaseException:
    HAS_FLASH = False
finally:
    pass

TORCH_HAS_FP8 = hasattr(torch, 'float8_e5m2')
configs = []
for mode in ["fwd", "bwd"]:
    for causal in [True, False]:
        if mode == "bwd" and not causal:
            continue
        configs.append((mode, causal))
else:
    del mode

with torch.inference_mode(), torch.cuda.device(0) as dev:
    pass
