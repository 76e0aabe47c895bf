"""The operators for PyTorch: functions of tensors with gradients, which torch.compile and CUDA graphs take.

    import ditron.torch

    h = ditron.torch.ag_gemm(x, w_up, world)       # x [tokens / ranks, d], w_up [hidden / ranks, d]: h [tokens, hidden / ranks]
    y = ditron.torch.gemm_rs(h, w_down, world)     # w_down [d, hidden / ranks]: y [tokens / ranks, d]
    y = ditron.torch.gemm_ar(h, w_down, world)     # the whole sum on every rank: y [tokens, d]
    y = ditron.torch.all_reduce(y, world)          # also reduce_scatter, all_gather, all_to_all and all_to_all_v
    y, r = ditron.torch.all_reduce_rms_norm(y, r, weight, world)    # the sum + r, and its norm
    o = ditron.torch.attention(q, k, v, world)     # of this rank's heads
    o = ditron.torch.ring_attention(q, k, v, world, tokens)     # of this rank's tokens, to the keys of all ranks

They are torch.ops.ditron.ag_gemm, gemm_rs, gemm_ar, all_reduce and so on, which know a world by its name. Every rank makes the same calls in the same
order, backward too: the gradient of one operator is a call of the other. On GPUs calls go to PyTorch's current stream; on simulated
ranks (`world.run`) a call returns when all ranks have made it and the result is there.
"""
from ._attention import attention, ring_attention
from ._collectives import all_gather, all_reduce, all_reduce_rms_norm, all_to_all, all_to_all_v, check_transfers, reduce_scatter
from ._products import ag_gemm, gemm_ar, gemm_rs

__all__ = ["ag_gemm", "all_gather", "all_reduce", "all_reduce_rms_norm", "all_to_all", "all_to_all_v", "attention", "check_transfers", "gemm_ar", "gemm_rs", "reduce_scatter",
           "ring_attention"]
