"""Attention, of a rank's heads and of its tokens, as operators of torch.library."""
import typing
import weakref
from typing import Optional

import torch

from .. import _native
from .._attention import Attention, RingAttention
from .._errors import InvalidArgumentError
from ._tensors import dense, lend, world_of


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


def _check_operands(name, q, k, v):
    torch._check(q.dim() == k.dim() == v.dim() == 4, lambda: f"{name}: q has {q.dim()} dimensions, k {k.dim()}, v {v.dim()}; all need 4")
    torch._check(q.dtype == k.dtype == v.dtype and q.dtype in (torch.bfloat16, torch.float16),
                 lambda: f"{name}: q is {q.dtype}, k {k.dtype}, v {v.dtype}; bfloat16 and float16 are accepted, the same of all")


@torch.library.custom_op("ditron::attention", mutates_args=())
def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, world: str, causal: bool, scale: Optional[float], window: Optional[int],
               soft_cap: Optional[float], rows_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    results = _like_attention(q, k, v, world, causal, scale, window, soft_cap, rows_first)
    _attend(world, _AttentionCall.of(q, k, v, causal, scale, window, soft_cap, rows_first, False), (q, k, v, *results))
    return results


@_attention.register_fake
def _like_attention(q, k, v, world, causal, scale, window, soft_cap, rows_first):
    _check_operands("attention", q, k, v)
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
    world = world_of(world_name)
    tensors = tuple(dense(each.detach()) for each in tensors)  # results are dense
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
    _check_operands("ring_attention", q, k, v)
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
    world = world_of(world_name)
    tensors = tuple(dense(each.detach()) for each in tensors)  # results are dense
    if offsets is not None:  # the sequences that it has not are empty ones behind the last
        offsets = dense(torch.cat([offsets, offsets[-1:].expand(call.sequences + 1 - offsets.numel())]))
    rank = world.rank_of(tensors[0])
    world.collective(rank, call, lambda: _PreparedRing(weakref.proxy(world), call), lambda made: made.enqueue(rank, tensors, offsets))


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
        lend(device, tensors)
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
        lend(device, [each for each in (*tensors, offsets) if each is not None])
        enqueue = _native.ring_attention_backward if self.call.is_backward else _native.ring_attention_enqueue
        enqueue(self.ring.handle, device.stream(), self.call.tokens, *(tensor.data_ptr() for tensor in tensors), 0 if offsets is None else offsets.data_ptr())
