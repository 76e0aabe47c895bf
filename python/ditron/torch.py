"""The operators for PyTorch: functions of tensors with gradients, which torch.compile and CUDA graphs take.

    import ditron.torch

    h = ditron.torch.ag_gemm(x, w_up, world)       # x [tokens / ranks, d], w_up [hidden / ranks, d]: h [tokens, hidden / ranks]
    y = ditron.torch.gemm_rs(h, w_down, world)     # w_down [d, hidden / ranks]: y [tokens / ranks, d]
    y = ditron.torch.gemm_ar(h, w_down, world)     # the whole sum on every rank: y [tokens, d]
    y = ditron.torch.all_reduce(y, world)          # also reduce_scatter, all_gather, all_to_all and all_to_all_v
    o = ditron.torch.attention(q, k, v, world)     # of this rank's heads
    o = ditron.torch.ring_attention(q, k, v, world, tokens)     # of this rank's tokens, to the keys of all ranks

They are torch.ops.ditron.ag_gemm, gemm_rs, gemm_ar, all_reduce and so on, which know a world by its name. Every rank makes the same calls in the same
order, backward too: the gradient of one operator is a call of the other. On GPUs calls go to PyTorch's current stream; on simulated
ranks (`world.run`) a call returns when all ranks have made it and the result is there.
"""
import math
import typing
import weakref
from typing import Optional

import torch

from . import _native
from ._attention import Attention, RingAttention
from ._collectives import REDUCTIONS, AllGather, AllReduce, AllToAll, ReduceScatter
from ._errors import InvalidArgumentError
from ._operators import AllGatherGemm, GemmAllReduce, GemmReduceScatter, row_stride
from ._tensors import pointer_of, type_name
from ._transfers import AllToAllV
from ._values import BY_SIGNATURE
from ._world import worlds


# The three products take, besides: scales_x and scales_weight, float32 tensors of one element or of one for each row of x and column of the
# product; bias [n]; out_dtype (default that of x, of fp8 and int8 bfloat16). What they compute with these has no gradient.


def ag_gemm(x, weight, world, weight_transposed=True, *, scales_x=None, scales_weight=None, bias=None, activation=None, out_dtype=None):
    """allgather(x) @ weight.T: x is this rank's [m / ranks, k], weight its [n, k] (or [k, n] with weight_transposed=False); [m, n].
    activation: relu, gelu, silu or swiglu, which takes rows 2j of weight for the gates of rows 2j + 1; [m, n / 2]."""
    return _ag_gemm(x, weight, world.name, weight_transposed, scales_x, scales_weight, bias, activation, out_dtype)


def gemm_rs(x, weight, world, weight_transposed=True, *, scales_x=None, scales_weight=None, bias=None, out_dtype=None):
    """The rank's rows of the sum over ranks of x @ weight.T: x is [m, k], weight [n, k] (or [k, n]); [m / ranks, n]. The bias, the same on
    all ranks, is added once."""
    return _gemm_rs(x, weight, world.name, weight_transposed, scales_x, scales_weight, bias, out_dtype)


def gemm_ar(x, weight, world, weight_transposed=True, *, scales_x=None, scales_weight=None, bias=None, out_dtype=None):
    """The sum over ranks of x @ weight.T, whole and with the same bits on every rank: x is [m, k], weight [n, k] (or [k, n]); [m, n]. The
    bias, the same on all ranks, is added once."""
    return _gemm_ar(x, weight, world.name, weight_transposed, scales_x, scales_weight, bias, out_dtype)


def all_gather(x, world):
    """The ranks' x, [m / ranks, ...] each, one after the other: [m, ...]. Has no gradient of its own."""
    return _all_gather(x, world.name)


def all_reduce(x, world, op="sum"):
    """The sum of the ranks' x (or "average", "max", "min"), the same bits on every rank. What follows on every rank has to be the same for
    its gradient to be right; max and min have none."""
    return _all_reduce(x, world.name, op)


def reduce_scatter(x, world, op="sum"):
    """The rank's part, [m / ranks, ...], of the sum (or "average", "max", "min") of the ranks' x, [m, ...]. max and min have no gradient."""
    return _reduce_scatter(x, world.name, op)


def all_to_all(x, world):
    """Part r of x, [m, ...] in as many parts as there are ranks, goes to rank r: the parts that came, in the order of the ranks."""
    return _all_to_all(x, world.name)


def all_to_all_v(x, send_counts, world, max_rows, out_rows):
    """The first send_counts[0] rows of x go to rank 0, the next send_counts[1] to rank 1 and so on; the counts, int64 [ranks], are read on
    the GPU only. Gives (out, receive_counts): out [out_rows, ...] has what came from the ranks, in their order, then zeros;
    receive_counts, int64 [ranks], says how much came from each. `max_rows`: the most that one rank sends another; rows, type and max_rows
    are the same on all ranks. A part that is larger, or that does not fit into out, is left out: check_transfers(world) tells."""
    return _all_to_all_v(x, send_counts, world.name, max_rows, out_rows)


def attention(q, k, v, world, *, causal=False, scale=None, window=None, soft_cap=None, rows_first=False):
    """softmax(q @ k.T * scale) @ v of this rank's heads: q [batch, heads, queries, dim], k and v [batch, kv_heads, keys, dim], or with rows_first
    [batch, rows, heads, dim]. Options as of ditron.Attention. Its gradient is the same bits every time; it takes bfloat16 and float16, dim up to 128."""
    return _attention(q, k, v, world.name, causal, scale, window, soft_cap, rows_first)[0]


def ring_attention(q, k, v, world, tokens, *, causal=False, scale=None, offsets=None):
    """Attention of this rank's tokens of sequences of `tokens` to the keys of all ranks: q [batch, heads, own tokens, dim], k and v [batch, kv_heads, own tokens,
    dim], dealt out as ditron.RingAttention.sections_of says. offsets int32 [sequences + 1], the same on all ranks: the tokens are those of several sequences, one behind
    the other. Its gradient is the same bits every time, with dim up to 128; bfloat16 and float16."""
    needs_gradient = torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v))
    return _ring_attention(q, k, v, world.name, tokens, causal, scale, offsets, needs_gradient)[0]


def check_transfers(world):
    """Waits, and raises if a count of an all_to_all_v since the last check could not be. In world.run all ranks call it."""
    for made in list(world.collectives.values()):
        if isinstance(made, AllToAllV):
            made.check()


@torch.library.custom_op("ditron::ag_gemm", mutates_args=())
def _ag_gemm(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool, scales_x: Optional[torch.Tensor] = None,
             scales_weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
             activation: Optional[str] = None, out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    return _multiply(AllGatherGemm, _like_ag_gemm, x, weight, world, weight_transposed, (scales_x, scales_weight, bias), activation, out_dtype)


@_ag_gemm.register_fake
def _like_ag_gemm(x, weight, world, weight_transposed, scales_x=None, scales_weight=None, bias=None, activation=None, out_dtype=None):
    n = _columns("ag_gemm", x, weight, weight_transposed)
    return x.new_empty((x.shape[0] * _world(world).ranks, n // 2 if activation == "swiglu" else n), dtype=_result_type(x, out_dtype))


@torch.library.custom_op("ditron::gemm_rs", mutates_args=())
def _gemm_rs(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool, scales_x: Optional[torch.Tensor] = None,
             scales_weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
             out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    return _multiply(GemmReduceScatter, _like_gemm_rs, x, weight, world, weight_transposed, (scales_x, scales_weight, bias), None, out_dtype)


@_gemm_rs.register_fake
def _like_gemm_rs(x, weight, world, weight_transposed, scales_x=None, scales_weight=None, bias=None, out_dtype=None):
    ranks = _world(world).ranks
    n = _columns("gemm_rs", x, weight, weight_transposed)
    torch._check(x.shape[0] % ranks == 0, lambda: f"gemm_rs: x has {x.shape[0]} rows, which {ranks} ranks cannot share equally")
    return x.new_empty((x.shape[0] // ranks, n), dtype=_result_type(x, out_dtype))


@torch.library.custom_op("ditron::gemm_ar", mutates_args=())
def _gemm_ar(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool, scales_x: Optional[torch.Tensor] = None,
             scales_weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
             out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    return _multiply(GemmAllReduce, _like_gemm_ar, x, weight, world, weight_transposed, (scales_x, scales_weight, bias), None, out_dtype)


@_gemm_ar.register_fake
def _like_gemm_ar(x, weight, world, weight_transposed, scales_x=None, scales_weight=None, bias=None, out_dtype=None):
    return x.new_empty((x.shape[0], _columns("gemm_ar", x, weight, weight_transposed)), dtype=_result_type(x, out_dtype))


@torch.library.custom_op("ditron::all_gather", mutates_args=())
def _all_gather(x: torch.Tensor, world: str) -> torch.Tensor:
    return _move(AllGather, world, x, _like_all_gather(x, world), 1)


@_all_gather.register_fake
def _like_all_gather(x, world):
    if x.dim() < 1:
        raise InvalidArgumentError("all_gather: x is a scalar; accepted are tensors with rows")
    return x.new_empty((x.shape[0] * _world(world).ranks, *x.shape[1:]))


@torch.library.custom_op("ditron::all_reduce", mutates_args=())
def _all_reduce(x: torch.Tensor, world: str, op: str) -> torch.Tensor:
    return _call_collective(AllReduce, world, x, _like_all_reduce(x, world, op), x.numel(), x.dtype, op)


@_all_reduce.register_fake
def _like_all_reduce(x, world, op):
    return x.new_empty(x.shape)


@torch.library.custom_op("ditron::reduce_scatter", mutates_args=())
def _reduce_scatter(x: torch.Tensor, world: str, op: str) -> torch.Tensor:
    out = _like_reduce_scatter(x, world, op)
    return _call_collective(ReduceScatter, world, x, out, out.numel(), x.dtype, op)


@_reduce_scatter.register_fake
def _like_reduce_scatter(x, world, op):
    return x.new_empty((_rows_of_part("reduce_scatter", x, world), *x.shape[1:]))


@torch.library.custom_op("ditron::all_to_all", mutates_args=())
def _all_to_all(x: torch.Tensor, world: str) -> torch.Tensor:
    return _move(AllToAll, world, x, _like_all_to_all(x, world), _world(world).ranks)


@_all_to_all.register_fake
def _like_all_to_all(x, world):
    _rows_of_part("all_to_all", x, world)
    return x.new_empty(x.shape)


@torch.library.custom_op("ditron::all_to_all_v", mutates_args=())
def _all_to_all_v(x: torch.Tensor, send_counts: torch.Tensor, world: str, max_rows: int, out_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    out, receive_counts = _like_all_to_all_v(x, send_counts, world, max_rows, out_rows)
    out.zero_()
    world = _world(world)
    row_bytes = math.prod(x.shape[1:]) * x.element_size()
    if row_bytes == 0:  # rows of nothing
        raise InvalidArgumentError(f"all_to_all_v: x is of the shape {tuple(x.shape)}; accepted are rows of one element and more")
    counts = _dense(send_counts)
    tensors = _dense(x.detach()), counts, counts.cumsum(0) - counts, out, receive_counts, torch.empty_like(receive_counts)
    call = _UnevenCall(row_bytes, max_rows)
    proxy, rank = weakref.proxy(world), world.rank_of(x)
    world.collective(rank, call, lambda: _PreparedUneven(proxy, call), lambda made: made.enqueue(rank, tensors))
    return out, receive_counts


@_all_to_all_v.register_fake
def _like_all_to_all_v(x, send_counts, world, max_rows, out_rows):
    ranks = _world(world).ranks
    if x.dim() < 1:
        raise InvalidArgumentError("all_to_all_v: x is a scalar; accepted are tensors with rows")
    if send_counts.dtype != torch.int64 or tuple(send_counts.shape) != (ranks,):
        raise InvalidArgumentError(f"all_to_all_v: send_counts is {send_counts.dtype} {list(send_counts.shape)}; int64 [{ranks}] is accepted")
    return x.new_empty((out_rows, *x.shape[1:])), send_counts.new_empty(ranks)


@torch.library.custom_op("ditron::attention", mutates_args=())
def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, world: str, causal: bool, scale: Optional[float], window: Optional[int],
               soft_cap: Optional[float], rows_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    results = _like_attention(q, k, v, world, causal, scale, window, soft_cap, rows_first)
    _attend(world, _AttentionCall.of(q, k, v, causal, scale, window, soft_cap, rows_first, False), (q, k, v, *results))
    return results


@_attention.register_fake
def _like_attention(q, k, v, world, causal, scale, window, soft_cap, rows_first):
    torch._check(q.dim() == k.dim() == v.dim() == 4, lambda: f"attention: q has {q.dim()} dimensions, k {k.dim()}, v {v.dim()}; all need 4")
    torch._check(q.dtype == k.dtype == v.dtype and q.dtype in (torch.bfloat16, torch.float16),
                 lambda: f"attention: q is {q.dtype}, k {k.dtype}, v {v.dtype}; bfloat16 and float16 are accepted, the same of all")
    heads, queries = (q.shape[2], q.shape[1]) if rows_first else (q.shape[1], q.shape[2])
    return q.new_empty((*q.shape[:3], v.shape[3])), q.new_empty((q.shape[0], heads, queries), dtype=torch.float32)


@torch.library.custom_op("ditron::attention_backward", mutates_args=())
def _attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, gradient: torch.Tensor, world: str,
                        causal: bool, scale: Optional[float], window: Optional[int], soft_cap: Optional[float],
                        rows_first: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    results = _like_attention_backward(q, k, v, out, lse, gradient, world, causal, scale, window, soft_cap, rows_first)
    _attend(world, _AttentionCall.of(q, k, v, causal, scale, window, soft_cap, rows_first, True), (q, k, v, out, lse, gradient, *results))
    return results


@_attention_backward.register_fake
def _like_attention_backward(q, k, v, out, lse, gradient, world, causal, scale, window, soft_cap, rows_first):
    return tuple(each.new_empty(each.shape) for each in (q, k, v))


def _attend(world_name, call, tensors):
    world = _world(world_name)
    tensors = tuple(_dense(each.detach()) for each in tensors)  # results are dense
    rank = world.rank_of(tensors[0])
    world.collective(rank, call, lambda: _PreparedAttention(weakref.proxy(world), call), lambda made: made.enqueue(rank, tensors))


@torch.library.custom_op("ditron::ring_attention", mutates_args=())
def _ring_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, world: str, tokens: int, causal: bool, scale: Optional[float],
                    offsets: Optional[torch.Tensor], needs_gradient: bool) -> tuple[torch.Tensor, torch.Tensor]:
    results = _like_ring_attention(q, k, v, world, tokens, causal, scale, offsets, needs_gradient)
    _attend_ring(world, _RingCall.of(q, k, tokens, causal, scale, offsets, needs_gradient, False), (q, k, v, *results), offsets)
    return results


@_ring_attention.register_fake
def _like_ring_attention(q, k, v, world, tokens, causal, scale, offsets, needs_gradient):
    torch._check(q.dim() == k.dim() == v.dim() == 4, lambda: f"ring_attention: q has {q.dim()} dimensions, k {k.dim()}, v {v.dim()}; all need 4")
    torch._check(q.dtype == k.dtype == v.dtype and q.dtype in (torch.bfloat16, torch.float16),
                 lambda: f"ring_attention: q is {q.dtype}, k {k.dtype}, v {v.dtype}; bfloat16 and float16 are accepted, the same of all")
    wanted = (q.shape[0], k.shape[1], q.shape[2], q.shape[3])
    torch._check(tuple(k.shape) == tuple(v.shape) == wanted,
                 lambda: f"ring_attention: k is {list(k.shape)} and v {list(v.shape)}; {list(wanted)} is accepted of both beside q {list(q.shape)}")
    torch._check(tokens >= 1, lambda: f"ring_attention: {tokens} tokens; 1 and more are accepted")
    torch._check(offsets is None or (offsets.dim() == 1 and offsets.numel() >= 2 and offsets.dtype == torch.int32),
                 lambda: f"ring_attention: offsets are {offsets.dtype} {list(offsets.shape)}; int32 [sequences + 1] of 1 sequence and more is accepted")
    return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)


@torch.library.custom_op("ditron::ring_attention_backward", mutates_args=())
def _ring_attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, gradient: torch.Tensor, world: str,
                             tokens: int, causal: bool, scale: Optional[float],
                             offsets: Optional[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    results = _like_ring_attention_backward(q, k, v, out, lse, gradient, world, tokens, causal, scale, offsets)
    _attend_ring(world, _RingCall.of(q, k, tokens, causal, scale, offsets, True, True), (q, k, v, out, lse, gradient, *results), offsets)
    return results


@_ring_attention_backward.register_fake
def _like_ring_attention_backward(q, k, v, out, lse, gradient, world, tokens, causal, scale, offsets):
    return tuple(each.new_empty(each.shape) for each in (q, k, v))


def _attend_ring(world_name, call, tensors, offsets):
    world = _world(world_name)
    tensors = tuple(_dense(each.detach()) for each in tensors)  # results are dense
    if offsets is not None:  # the sequences that it has not are empty ones behind the last
        offsets = _dense(torch.cat([offsets, offsets[-1:].expand(call.sequences + 1 - offsets.numel())]))
    rank = world.rank_of(tensors[0])
    world.collective(rank, call, lambda: _PreparedRing(weakref.proxy(world), call), lambda made: made.enqueue(rank, tensors, offsets))


def _rows_of_part(name, x, world):
    ranks = _world(world).ranks
    if x.dim() < 1:
        raise InvalidArgumentError(f"{name}: x is a scalar; accepted are tensors with rows")
    torch._check(x.shape[0] % ranks == 0, lambda: f"{name}: x has {x.shape[0]} rows, which {ranks} ranks cannot share equally")
    return x.shape[0] // ranks


def _move(collective, world, x, out, parts):
    """A call that only moves data: by the widest words that fit, so that all types share buffers."""
    size = x.numel() * x.element_size() // parts
    word = torch.int32 if size % torch.int32.itemsize == 0 else torch.uint8
    return _call_collective(collective, world, x, out, size // word.itemsize, word, "sum")


def _call_collective(collective, world, x, out, elements, dtype, op):
    if op not in REDUCTIONS:
        raise InvalidArgumentError(f"{collective.name}: op '{op}'; accepted are {', '.join(REDUCTIONS)}")
    if dtype == torch.bool:
        raise InvalidArgumentError(f"{collective.name}: elements of type bool; convert them to uint8")
    if elements:
        world = _world(world)
        rank, tensors = world.rank_of(x), (_dense(x.detach()), out)
        call = _CollectiveCall(collective, elements, dtype, op)
        proxy = weakref.proxy(world)
        world.collective(rank, call, lambda: _PreparedCollective(proxy, call), lambda made: made.enqueue(rank, tensors))
    return out


def _keep_inputs(ctx, inputs, output):
    x, weight, ctx.world, ctx.weight_transposed, *epilogue = inputs
    ctx.count = len(inputs)
    ctx.has_epilogue = any(each is not None for each in epilogue)
    ctx.save_for_backward(x, weight)


def _gradients(context, for_x, for_weight):
    return for_x, for_weight, *[None] * (context.count - 2)


def _operands_of(context):
    if context.has_epilogue:
        raise InvalidArgumentError("a product with scales, bias, activation or out_dtype has no gradient; without any of them it has one")
    return context.saved_tensors


def _weight_gradient(gathered, gradient, weight_transposed):
    return gradient.t() @ gathered if weight_transposed else gathered.t() @ gradient


def _ag_gemm_backward(context, gradient):
    x, weight = _operands_of(context)
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = _gemm_rs(gradient, weight, context.world, not context.weight_transposed)
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(_all_gather(x, context.world), gradient, context.weight_transposed)
    return _gradients(context, for_x, for_weight)


def _gemm_rs_backward(context, gradient):
    x, weight = _operands_of(context)
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = _ag_gemm(gradient, weight, context.world, not context.weight_transposed)
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(x, _all_gather(gradient, context.world), context.weight_transposed)
    return _gradients(context, for_x, for_weight)


def _gemm_ar_backward(context, gradient):
    """What follows on every rank is the same, and so is its gradient: that of the sum is the gradient of each rank's part."""
    x, weight = _operands_of(context)
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = gradient @ (weight if context.weight_transposed else weight.t())
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(x, gradient, context.weight_transposed)
    return _gradients(context, for_x, for_weight)


_ag_gemm.register_autograd(_ag_gemm_backward, setup_context=_keep_inputs)
_gemm_rs.register_autograd(_gemm_rs_backward, setup_context=_keep_inputs)
_gemm_ar.register_autograd(_gemm_ar_backward, setup_context=_keep_inputs)


def _keep_call(ctx, inputs, output):
    ctx.world, ctx.op = inputs[1], inputs[2]


def _all_reduce_backward(context, gradient):
    """What follows on every rank is the same, and so is its gradient, as that of gemm_ar."""
    return _gradient_of_reduction("all_reduce", context, gradient), None, None


def _reduce_scatter_backward(context, gradient):
    return _all_gather(_gradient_of_reduction("reduce_scatter", context, gradient), context.world), None, None


def _gradient_of_reduction(name, context, gradient):
    if context.op not in ("sum", "average"):
        raise InvalidArgumentError(f"{name}: op '{context.op}' has no gradient; sum and average have")
    return gradient / _world(context.world).ranks if context.op == "average" else gradient


_all_reduce.register_autograd(_all_reduce_backward, setup_context=_keep_call)
_reduce_scatter.register_autograd(_reduce_scatter_backward, setup_context=_keep_call)
def _keep_uneven_call(ctx, inputs, output):
    x, _, ctx.world, ctx.max_rows, _ = inputs
    ctx.rows = x.shape[0]
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _all_to_all_v_backward(context, gradient, _):
    """What came goes back to where it came from; rows that were not sent have no gradient."""
    receive_counts, = context.saved_tensors
    returned, _ = _all_to_all_v(gradient, receive_counts, context.world, context.max_rows, context.rows)
    return returned, None, None, None, None


_all_to_all_v.register_autograd(_all_to_all_v_backward, setup_context=_keep_uneven_call)
_all_to_all.register_autograd(lambda context, gradient: (_all_to_all(gradient, context.world), None),
                              setup_context=lambda ctx, inputs, output: setattr(ctx, "world", inputs[1]))


def _keep_attention(ctx, inputs, output):
    q, k, v, ctx.world, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(output[1])


def _gradients_of_attention(context, gradient, _):
    return *_attention_backward(*context.saved_tensors, gradient, context.world, *context.options), *[None] * 6


_attention.register_autograd(_gradients_of_attention, setup_context=_keep_attention)


def _keep_ring_attention(ctx, inputs, output):
    q, k, v, ctx.world, ctx.tokens, ctx.causal, ctx.scale, offsets, _ = inputs
    ctx.save_for_backward(q, k, v, *output, offsets)
    ctx.mark_non_differentiable(output[1])


def _gradients_of_ring_attention(context, gradient, _):
    *saved, offsets = context.saved_tensors
    return *_ring_attention_backward(*saved, gradient, context.world, context.tokens, context.causal, context.scale, offsets), *[None] * 6


_ring_attention.register_autograd(_gradients_of_ring_attention, setup_context=_keep_ring_attention)


def _world(name):
    world = worlds.get(name)
    if world is None:
        raise InvalidArgumentError(f"the world '{name}' is gone; there are {sorted(worlds) or 'none'}")
    return world


def _columns(name, x, weight, weight_transposed):
    """n; what the shapes have to have in common is checked."""
    torch._check(x.dim() == 2 and weight.dim() == 2, lambda: f"{name}: x has {x.dim()} dimensions and weight {weight.dim()}; both need 2")
    torch._check(x.dtype == weight.dtype, lambda: f"{name}: x is {x.dtype} and weight {weight.dtype}; both need the same type")
    n, k = weight.shape if weight_transposed else weight.shape[::-1]
    torch._check(x.shape[1] == k, lambda: f"{name}: x has {x.shape[1]} columns, weight takes {k}")
    return n


def _result_type(x, out_dtype):
    return out_dtype or (x.dtype if x.dtype in (torch.bfloat16, torch.float16, torch.float32) else torch.bfloat16)


def _dense(tensor):
    """Rows one behind the other, at a multiple of 16 bytes."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def _rows(tensor):
    """Rows without gaps in them, at a multiple of 16 bytes, as the products take them; there may be gaps between them."""
    is_row_major = tensor.dim() == 2 and tensor.stride(1) == 1 and tensor.stride(0) >= tensor.shape[1]
    return tensor if is_row_major and tensor.data_ptr() % 16 == 0 else _dense(tensor)


def _multiply(operator, like, x, weight, world_name, weight_transposed, extras, activation, out_dtype):
    world = _world(world_name)
    x, weight = _rows(x), _rows(weight)
    extras = tuple(None if each is None else _dense(each.reshape(-1)) for each in extras)
    described = tuple(None if each is None else (each.shape[0], each.dtype) for each in extras)
    call = _Call(operator.name, x.shape, weight.shape, x.dtype, weight.dtype, weight_transposed, tuple(row_stride(each) if each.dim() == 2 else 0 for each in (x, weight)), described,
                 activation, _result_type(x, out_dtype))
    known = world.plans.get(call)
    if known is None:  # like() checks what it is given
        out = like(x, weight, world_name, weight_transposed, out_dtype=out_dtype, **({"activation": activation} if activation else {}))
    else:
        out = x.new_empty(known.shape, dtype=call.out_dtype)
    tensors = x, weight, out, *extras
    rank = world.rank_of(x)
    world.collective(rank, call, lambda: _Product(operator, weakref.proxy(world), call, tensors), lambda made: made.enqueue(rank, tensors))
    return out


class _Call(typing.NamedTuple):
    """What ranks have to agree on."""

    name: str
    x: torch.Size
    weight: torch.Size
    dtype: torch.dtype
    weight_dtype: torch.dtype
    weight_transposed: bool
    row_strides: tuple
    extras: tuple  # of scales and bias: None, or elements and type
    activation: Optional[str]
    out_dtype: torch.dtype

    def __str__(self):
        names = [name for name, each in zip(("scales_x", "scales_weight", "bias"), self.extras) if each is not None]
        more = "".join(f", {each}" for each in names + ([self.activation] if self.activation else []))
        return f"{self.name} of x {list(self.x)}, weight {list(self.weight)}{'' if self.weight_transposed else ' (plain)'}, {self.dtype}{more}"


class _Product:
    """A prepared operator for tensors like these."""

    def __init__(self, operator, world, call, tensors):
        x, weight, out, scales_x, scales_weight, bias = tensors
        self.world, self.shape = world, out.shape
        n, k = weight.shape if call.weight_transposed else weight.shape[::-1]
        m = max(x.shape[0], out.shape[0])
        scaling = [None if each is None else "tensor" if each.shape[0] == 1 else "vector" for each in (scales_x, scales_weight)]
        self.operator = operator(world, m, n, k, x.dtype, call.weight_transposed, out_dtype=call.out_dtype, scales_a=scaling[0],
                                 scales_b=scaling[1], bias_dtype=None if bias is None else bias.dtype, activation=call.activation)
        self.plan = self.operator.prepare(m, n, k, (*call.row_strides, 0))
        numbers = [0 if each is None else BY_SIGNATURE[type_name(each.dtype)].number for each in tensors]
        self.words = [(number, *each.shape, *each.stride()) for number, each in zip(numbers, (x, weight, out))]
        self.words += [(number, 0 if each is None else each.shape[0]) for number, each in zip(numbers[3:], (scales_x, scales_weight, bias))]

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        _lend(device, [each for each in tensors if each is not None])
        _native.plan_enqueue(self.plan, device.stream(), *[(0 if tensor is None else tensor.data_ptr(), *words)
                                                           for tensor, words in zip(tensors, self.words)])


class _AttentionCall(typing.NamedTuple):
    """What ranks have to agree on."""

    shape: tuple  # batch, queries, keys and what is not used here, as native functions take them
    options: tuple  # of Attention: heads, head_dim, dtype, then by name
    is_backward: bool

    @classmethod
    def of(cls, q, k, v, causal, scale, window, soft_cap, rows_first, is_backward):
        at, head = (1, 2) if rows_first else (2, 1)
        named = (("kv_heads", k.shape[head]), ("value_dim", v.shape[3]), ("scale", scale), ("causal", causal), ("window", window), ("soft_cap", soft_cap),
                 ("rows_first", rows_first))
        found = cls((q.shape[0], q.shape[at], k.shape[at], 0, 0, 0), (q.shape[head], q.shape[3], q.dtype, named), is_backward)
        batch, queries, keys = found.shape[:3]
        rows = lambda heads, count, dim: (batch, count, heads, dim) if rows_first else (batch, heads, count, dim)
        for word, tensor, wanted in (("k", k, rows(k.shape[head], keys, q.shape[3])), ("v", v, rows(k.shape[head], keys, v.shape[3]))):
            if tuple(tensor.shape) != wanted:
                raise InvalidArgumentError(f"attention: {word} is {list(tensor.shape)}; {list(wanted)} is accepted")
        return found

    def __str__(self):
        heads, head_dim, dtype, _ = self.options
        return (f"attention{' (backward)' if self.is_backward else ''} of {heads} heads of {head_dim}, batch {self.shape[0]}, {self.shape[1]} queries, "
                f"{self.shape[2]} keys, {dtype}")


class _PreparedAttention:
    """An Attention of a world, for all shapes with the same options."""

    def __init__(self, world, call):
        self.world, self.call = world, call
        key = Attention, call.options
        if key not in world.collectives:
            heads, head_dim, dtype, named = call.options
            world.collectives[key] = Attention(world, heads, head_dim, dtype, **dict(named))
        self.attention = world.collectives[key]
        prepare = _native.attention_prepare_backward if call.is_backward else _native.attention_prepare
        prepare(self.attention.handle, call.shape, *self.operands([16] * (9 if call.is_backward else 5)))  # only alignment counts

    def operands(self, addresses):
        """And those that are not given."""
        return (*addresses, *[0] * ((14 if self.call.is_backward else 11) - len(addresses)))

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        _lend(device, tensors)
        enqueue = _native.attention_backward if self.call.is_backward else _native.attention_enqueue
        enqueue(self.attention.handle, device.stream(), self.call.shape, *self.operands([tensor.data_ptr() for tensor in tensors]))


class _RingCall(typing.NamedTuple):
    """What ranks have to agree on."""

    tokens: int
    options: tuple  # of RingAttention: heads, head_dim, dtype, max_tokens, then by name
    is_backward: bool

    @classmethod
    def of(cls, q, k, tokens, causal, scale, offsets, needs_gradient, is_backward):
        rounded = lambda count: 1 << max(count - 1, 0).bit_length()  # one operator for about as many
        most, sequences = rounded(tokens), 0 if offsets is None else rounded(offsets.numel() - 1)
        named = (("batch", q.shape[0]), ("kv_heads", k.shape[1]), ("scale", scale), ("causal", causal), ("packed_sequences", sequences),
                 ("backward", needs_gradient))
        return cls(tokens, (q.shape[1], q.shape[3], q.dtype, most, named), is_backward)

    @property
    def sequences(self):
        return dict(self.options[-1])["packed_sequences"]

    def __str__(self):
        heads, head_dim, dtype, _, named = self.options
        return (f"ring_attention{' (backward)' if self.is_backward else ''} of {heads} heads of {head_dim}, {self.tokens} tokens, {dtype}, "
                + ", ".join(f"{word}={value}" for word, value in named))


class _PreparedRing:
    """A RingAttention of a world, for all numbers of tokens with the same options."""

    def __init__(self, world, call):
        self.world, self.call = world, call
        key = RingAttention, call.options
        if key not in world.collectives:
            heads, head_dim, dtype, most, named = call.options
            world.collectives[key] = RingAttention(world, heads, head_dim, dtype, most, **dict(named))
        self.ring = world.collectives[key]
        if call.is_backward:
            self.ring.prepare_backward(call.tokens)
        else:
            self.ring.prepare(call.tokens, with_lse=True)

    def enqueue(self, rank, tensors, offsets):
        own = sum(count for _, count in self.ring.sections(rank, self.call.tokens))
        if tensors[0].shape[2] != own:
            raise InvalidArgumentError(f"ring_attention: q has {tensors[0].shape[2]} tokens; rank {rank} has {own} of {self.call.tokens}")
        device = self.world.device(rank)
        _lend(device, [each for each in (*tensors, offsets) if each is not None])
        enqueue = _native.ring_attention_backward if self.call.is_backward else _native.ring_attention_enqueue
        enqueue(self.ring.handle, device.stream(), self.call.tokens, *(tensor.data_ptr() for tensor in tensors), 0 if offsets is None else offsets.data_ptr())


class _UnevenCall(typing.NamedTuple):
    """What ranks have to agree on."""

    row_bytes: int
    max_rows: int

    def __str__(self):
        return f"all_to_all_v of at most {self.max_rows} rows of {self.row_bytes} bytes"


class _PreparedUneven:
    """An AllToAllV of a world, for all types with rows of so many bytes: moved by the widest words that fit."""

    def __init__(self, world, call):
        self.world, self.call = world, call
        word = torch.int32 if call.row_bytes % torch.int32.itemsize == 0 else torch.uint8
        if call not in world.collectives:
            world.collectives[call] = AllToAllV(world, call.max_rows, word, call.row_bytes // word.itemsize, packed=True)
        self.exchange = world.collectives[call]
        self.exchange.prepare()

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        _lend(device, tensors)
        x, counts, offsets, out, receive_counts, receive_offsets = (tensor.data_ptr() for tensor in tensors)
        _native.all_to_all_v_enqueue(self.exchange.handle, device.stream(), x, tensors[0].shape[0], counts, offsets, out, tensors[3].shape[0],
                                     receive_counts, receive_offsets)


class _CollectiveCall(typing.NamedTuple):
    """What ranks have to agree on."""

    collective: type
    elements: int
    dtype: torch.dtype
    op: str

    def __str__(self):
        return f"{self.collective.name}{'' if self.op == 'sum' else f' ({self.op})'} of {self.elements} elements, {self.dtype}"


class _PreparedCollective:
    """A size of a collective, of which a world has one for each kind, type and reduction."""

    MOST_ELEMENTS = 1 << 40  # buffers do not grow with it

    def __init__(self, world, call):
        self.world, self.elements = world, call.elements
        key = call.collective, call.dtype, call.op
        if key not in world.collectives:
            options = (call.op,) if call.collective in (AllReduce, ReduceScatter) else ()
            world.collectives[key] = call.collective(world, self.MOST_ELEMENTS, call.dtype, *options)
        self.collective = world.collectives[key]
        self.collective.prepare(call.elements)

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        _lend(device, tensors)
        self.collective.enqueue_at(device, *[tensor.data_ptr() for tensor in tensors], self.elements)


def _lend(device, tensors):
    for tensor in tensors:
        if device.index is None or tensor.get_device() != device.index:
            device.lend_tensor(pointer_of(tensor))  # which refuses other GPUs' tensors
