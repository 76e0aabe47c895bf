"""Collectives as operators of torch.library."""
import math
import typing
import weakref

import torch

from .. import _native
from .._collectives import REDUCTIONS, AllGather, AllReduce, AllToAll, ReduceScatter
from .._errors import InvalidArgumentError
from .._rms_norm import AllReduceRmsNorm
from .._transfers import AllToAllV
from ._tensors import dense, lend, world_of


def all_gather(x, world):
    """The ranks' x, [m / ranks, ...] each, one after the other: [m, ...]. Has no gradient of its own."""
    return all_gather_by_name(x, world.name)


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


def all_reduce_rms_norm(x, residual, weight, world, epsilon=1e-6):
    """(out, residual_out): residual_out = the sum of the ranks' x + residual, out = residual_out / sqrt(mean(residual_out ** 2) + epsilon) * weight, row by
    row, in one launch, as ditron.AllReduceRmsNorm. x and residual [..., columns], weight [columns]. Has no gradient."""
    return _all_reduce_rms_norm(x, residual, weight, world.name, epsilon)


def check_transfers(world):
    """Waits, and raises if a count of an all_to_all_v since the last check could not be. In world.run all ranks call it."""
    for made in list(world.collectives.values()):
        if isinstance(made, AllToAllV):
            made.check()


@torch.library.custom_op("ditron::all_gather", mutates_args=())
def all_gather_by_name(x: torch.Tensor, world: str) -> torch.Tensor:
    return _move(AllGather, world, x, _like_all_gather(x, world), 1)


@all_gather_by_name.register_fake
def _like_all_gather(x, world):
    if x.dim() < 1:
        raise InvalidArgumentError("all_gather: x is a scalar; accepted are tensors with rows")
    return x.new_empty((x.shape[0] * world_of(world).ranks, *x.shape[1:]))


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
    return _move(AllToAll, world, x, _like_all_to_all(x, world), world_of(world).ranks)


@_all_to_all.register_fake
def _like_all_to_all(x, world):
    _rows_of_part("all_to_all", x, world)
    return x.new_empty(x.shape)


@torch.library.custom_op("ditron::all_to_all_v", mutates_args=())
def _all_to_all_v(x: torch.Tensor, send_counts: torch.Tensor, world: str, max_rows: int, out_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    out, receive_counts = _like_all_to_all_v(x, send_counts, world, max_rows, out_rows)
    out.zero_()
    world = world_of(world)
    row_bytes = math.prod(x.shape[1:]) * x.element_size()
    if row_bytes == 0:  # rows of nothing
        raise InvalidArgumentError(f"all_to_all_v: x is of the shape {tuple(x.shape)}; accepted are rows of one element and more")
    counts = dense(send_counts)
    tensors = dense(x.detach()), counts, counts.cumsum(0) - counts, out, receive_counts, torch.empty_like(receive_counts)
    call = _UnevenCall(row_bytes, max_rows)
    proxy, rank = weakref.proxy(world), world.rank_of(x)
    world.collective(rank, call, lambda: _PreparedUneven(proxy, call), lambda made: made.enqueue(rank, tensors))
    return out, receive_counts


@_all_to_all_v.register_fake
def _like_all_to_all_v(x, send_counts, world, max_rows, out_rows):
    ranks = world_of(world).ranks
    if x.dim() < 1:
        raise InvalidArgumentError("all_to_all_v: x is a scalar; accepted are tensors with rows")
    if send_counts.dtype != torch.int64 or tuple(send_counts.shape) != (ranks,):
        raise InvalidArgumentError(f"all_to_all_v: send_counts is {send_counts.dtype} {list(send_counts.shape)}; int64 [{ranks}] is accepted")
    return x.new_empty((out_rows, *x.shape[1:])), send_counts.new_empty(ranks)


@torch.library.custom_op("ditron::all_reduce_rms_norm", mutates_args=())
def _all_reduce_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, world: str, epsilon: float) -> tuple[torch.Tensor, torch.Tensor]:
    results = _like_all_reduce_rms_norm(x, residual, weight, world, epsilon)
    if x.numel():
        world = world_of(world)
        call = _NormCall(x.shape[-1], x.numel() // x.shape[-1], x.dtype, epsilon)
        rank, tensors = world.rank_of(x), (*(dense(each.detach()) for each in (x, residual, weight)), *results)
        proxy = weakref.proxy(world)
        world.collective(rank, call, lambda: _PreparedNorm(proxy, call), lambda made: made.enqueue(rank, tensors))
    return results


@_all_reduce_rms_norm.register_fake
def _like_all_reduce_rms_norm(x, residual, weight, world, epsilon):
    torch._check(x.dim() >= 1 and x.shape == residual.shape and weight.shape == x.shape[-1:],
                 lambda: f"all_reduce_rms_norm: x is {list(x.shape)}, residual {list(residual.shape)}, weight {list(weight.shape)}; "
                         "[..., columns] of x and residual and [columns] are accepted")
    torch._check(math.isfinite(epsilon) and epsilon > 0, lambda: f"all_reduce_rms_norm: epsilon is {epsilon}; positive, finite numbers are accepted")
    torch._check(x.dtype == residual.dtype == weight.dtype,
                 lambda: f"all_reduce_rms_norm: x is {x.dtype}, residual {residual.dtype}, weight {weight.dtype}; all need the same type")
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _rows_of_part(name, x, world):
    ranks = world_of(world).ranks
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
        world = world_of(world)
        rank, tensors = world.rank_of(x), (dense(x.detach()), out)
        call = _CollectiveCall(collective, elements, dtype, op)
        proxy = weakref.proxy(world)
        world.collective(rank, call, lambda: _PreparedCollective(proxy, call), lambda made: made.enqueue(rank, tensors))
    return out


def _keep_call(ctx, inputs, output):
    ctx.world, ctx.op = inputs[1], inputs[2]


def _all_reduce_backward(context, gradient):
    """What follows on every rank is the same, and so is its gradient, as that of gemm_ar."""
    return _gradient_of_reduction("all_reduce", context, gradient), None, None


def _reduce_scatter_backward(context, gradient):
    return all_gather_by_name(_gradient_of_reduction("reduce_scatter", context, gradient), context.world), None, None


def _gradient_of_reduction(name, context, gradient):
    if context.op not in ("sum", "average"):
        raise InvalidArgumentError(f"{name}: op '{context.op}' has no gradient; sum and average have")
    return gradient / world_of(context.world).ranks if context.op == "average" else gradient


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
        lend(device, tensors)
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
        lend(device, tensors)
        self.collective.enqueue_at(device, *[tensor.data_ptr() for tensor in tensors], self.elements)


class _NormCall(typing.NamedTuple):
    """What ranks have to agree on."""

    columns: int
    rows: int
    dtype: torch.dtype
    epsilon: float

    def __str__(self):
        return f"all_reduce_rms_norm of {self.rows} rows of {self.columns} {self.dtype}, epsilon={self.epsilon}"


class _PreparedNorm:
    """A number of rows of an AllReduceRmsNorm of a world, which has one for about as many."""

    def __init__(self, world, call):
        self.world, self.rows = world, call.rows
        most = 1 << (call.rows - 1).bit_length()
        key = AllReduceRmsNorm, call.columns, most, call.dtype, call.epsilon
        if key not in world.collectives:
            world.collectives[key] = AllReduceRmsNorm(world, most, call.columns, call.dtype, epsilon=call.epsilon)
        self.norm = world.collectives[key]
        self.norm.prepare(call.rows)

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        lend(device, tensors)
        _native.all_reduce_rms_norm_enqueue(self.norm.handle, device.stream(), self.rows, *[tensor.data_ptr() for tensor in tensors])
