"""AllGather+GEMM, GEMM+ReduceScatter and GEMM+AllReduce as operators of torch.library."""
import typing
import weakref
from typing import Optional

import torch

from .. import _native
from .._errors import InvalidArgumentError
from .._operators import AllGatherGemm, GemmAllReduce, GemmReduceScatter, row_stride
from .._tensors import type_name
from .._values import BY_SIGNATURE
from ._collectives import all_gather_by_name
from ._tensors import dense, lend, rows_of, world_of

# All three take, besides: scales_x and scales_weight, float32 tensors of one element or of one for each row of x and column of the
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


@torch.library.custom_op("ditron::ag_gemm", mutates_args=())
def _ag_gemm(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool, scales_x: Optional[torch.Tensor] = None,
             scales_weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
             activation: Optional[str] = None, out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    return _multiply(AllGatherGemm, _like_ag_gemm, x, weight, world, weight_transposed, (scales_x, scales_weight, bias), activation, out_dtype)


@_ag_gemm.register_fake
def _like_ag_gemm(x, weight, world, weight_transposed, scales_x=None, scales_weight=None, bias=None, activation=None, out_dtype=None):
    n = _columns("ag_gemm", x, weight, weight_transposed)
    return x.new_empty((x.shape[0] * world_of(world).ranks, n // 2 if activation == "swiglu" else n), dtype=_result_type(x, out_dtype))


@torch.library.custom_op("ditron::gemm_rs", mutates_args=())
def _gemm_rs(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool, scales_x: Optional[torch.Tensor] = None,
             scales_weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None,
             out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    return _multiply(GemmReduceScatter, _like_gemm_rs, x, weight, world, weight_transposed, (scales_x, scales_weight, bias), None, out_dtype)


@_gemm_rs.register_fake
def _like_gemm_rs(x, weight, world, weight_transposed, scales_x=None, scales_weight=None, bias=None, out_dtype=None):
    ranks = world_of(world).ranks
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
        for_weight = _weight_gradient(all_gather_by_name(x, context.world), gradient, context.weight_transposed)
    return _gradients(context, for_x, for_weight)


def _gemm_rs_backward(context, gradient):
    x, weight = _operands_of(context)
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = _ag_gemm(gradient, weight, context.world, not context.weight_transposed)
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(x, all_gather_by_name(gradient, context.world), context.weight_transposed)
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


def _columns(name, x, weight, weight_transposed):
    """n; what the shapes have to have in common is checked."""
    torch._check(x.dim() == 2 and weight.dim() == 2, lambda: f"{name}: x has {x.dim()} dimensions and weight {weight.dim()}; both need 2")
    torch._check(x.dtype == weight.dtype, lambda: f"{name}: x is {x.dtype} and weight {weight.dtype}; both need the same type")
    n, k = weight.shape if weight_transposed else weight.shape[::-1]
    torch._check(x.shape[1] == k, lambda: f"{name}: x has {x.shape[1]} columns, weight takes {k}")
    return n


def _result_type(x, out_dtype):
    return out_dtype or (x.dtype if x.dtype in (torch.bfloat16, torch.float16, torch.float32) else torch.bfloat16)


def _multiply(operator, like, x, weight, world_name, weight_transposed, extras, activation, out_dtype):
    world = world_of(world_name)
    x, weight = rows_of(x), rows_of(weight)
    extras = tuple(None if each is None else dense(each.reshape(-1)) for each in extras)
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
        lend(device, [each for each in tensors if each is not None])
        _native.plan_enqueue(self.plan, device.stream(), *[(0 if tensor is None else tensor.data_ptr(), *words)
                                                           for tensor, words in zip(tensors, self.words)])
