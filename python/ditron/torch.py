"""The operators for PyTorch: functions of tensors with gradients, which torch.compile and CUDA graphs take.

    import ditron.torch

    h = ditron.torch.ag_gemm(x, w_up, world)       # x [tokens / ranks, d], w_up [hidden / ranks, d]: h [tokens, hidden / ranks]
    y = ditron.torch.gemm_rs(h, w_down, world)     # w_down [d, hidden / ranks]: y [tokens / ranks, d]
    y = ditron.torch.gemm_ar(h, w_down, world)     # the whole sum on every rank: y [tokens, d]

They are torch.ops.ditron.ag_gemm, gemm_rs, gemm_ar and all_gather, which know a world by its name. Every rank makes the same calls in the same
order, backward too: the gradient of one operator is a call of the other. On GPUs calls go to PyTorch's current stream; on simulated
ranks (`world.run`) a call returns when all ranks have made it and the result is there.
"""
import typing
import weakref

import torch

from . import _native
from . import language as tl
from ._errors import InvalidArgumentError
from ._jit import jit
from ._operators import AllGatherGemm, GemmAllReduce, GemmReduceScatter
from ._tensors import pointer_of
from ._values import BY_SIGNATURE
from ._world import SymmetricTensor, worlds


def ag_gemm(x, weight, world, weight_transposed=True):
    """allgather(x) @ weight.T: x is this rank's [m / ranks, k], weight its [n, k] (or [k, n] with weight_transposed=False); [m, n]."""
    return _ag_gemm(x, weight, world.name, weight_transposed)


def gemm_rs(x, weight, world, weight_transposed=True):
    """The rank's rows of the sum over ranks of x @ weight.T: x is [m, k], weight [n, k] (or [k, n]); [m / ranks, n]."""
    return _gemm_rs(x, weight, world.name, weight_transposed)


def gemm_ar(x, weight, world, weight_transposed=True):
    """The sum over ranks of x @ weight.T, whole and with the same bits on every rank: x is [m, k], weight [n, k] (or [k, n]); [m, n]."""
    return _gemm_ar(x, weight, world.name, weight_transposed)


def all_gather(x, world):
    """The ranks' x, [m / ranks, ...] each, one after the other: [m, ...]. Has no gradient of its own."""
    return _all_gather(x, world.name)


@torch.library.custom_op("ditron::ag_gemm", mutates_args=())
def _ag_gemm(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool) -> torch.Tensor:
    return _multiply(AllGatherGemm, _like_ag_gemm, x, weight, world, weight_transposed)


@_ag_gemm.register_fake
def _like_ag_gemm(x, weight, world, weight_transposed):
    n = _columns("ag_gemm", x, weight, weight_transposed)
    return x.new_empty((x.shape[0] * _world(world).ranks, n))


@torch.library.custom_op("ditron::gemm_rs", mutates_args=())
def _gemm_rs(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool) -> torch.Tensor:
    return _multiply(GemmReduceScatter, _like_gemm_rs, x, weight, world, weight_transposed)


@_gemm_rs.register_fake
def _like_gemm_rs(x, weight, world, weight_transposed):
    ranks = _world(world).ranks
    n = _columns("gemm_rs", x, weight, weight_transposed)
    torch._check(x.shape[0] % ranks == 0, lambda: f"gemm_rs: x has {x.shape[0]} rows, which {ranks} ranks cannot share equally")
    return x.new_empty((x.shape[0] // ranks, n))


@torch.library.custom_op("ditron::gemm_ar", mutates_args=())
def _gemm_ar(x: torch.Tensor, weight: torch.Tensor, world: str, weight_transposed: bool) -> torch.Tensor:
    return _multiply(GemmAllReduce, _like_gemm_ar, x, weight, world, weight_transposed)


@_gemm_ar.register_fake
def _like_gemm_ar(x, weight, world, weight_transposed):
    return x.new_empty((x.shape[0], _columns("gemm_ar", x, weight, weight_transposed)))


@torch.library.custom_op("ditron::all_gather", mutates_args=())
def _all_gather(x: torch.Tensor, world: str) -> torch.Tensor:
    out = _like_all_gather(x, world)
    world = _world(world)
    if out.numel():
        rank = world.rank_of(x)
        x = x.detach().contiguous()
        world.collective(rank, f"all_gather of {x.numel()} elements, {x.dtype}", lambda: _Gather(weakref.proxy(world), x),
                         lambda gather: gather.enqueue(rank, x, out))
    return out


@_all_gather.register_fake
def _like_all_gather(x, world):
    if x.dim() < 1:
        raise InvalidArgumentError("all_gather: x is a scalar; accepted are tensors with rows")
    return x.new_empty((x.shape[0] * _world(world).ranks, *x.shape[1:]))


def _keep_inputs(ctx, inputs, output):
    x, weight, ctx.world, ctx.weight_transposed = inputs
    ctx.save_for_backward(x, weight)


def _weight_gradient(gathered, gradient, weight_transposed):
    return gradient.t() @ gathered if weight_transposed else gathered.t() @ gradient


def _ag_gemm_backward(context, gradient):
    x, weight = context.saved_tensors
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = _gemm_rs(gradient, weight, context.world, not context.weight_transposed)
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(_all_gather(x, context.world), gradient, context.weight_transposed)
    return for_x, for_weight, None, None


def _gemm_rs_backward(context, gradient):
    x, weight = context.saved_tensors
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = _ag_gemm(gradient, weight, context.world, not context.weight_transposed)
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(x, _all_gather(gradient, context.world), context.weight_transposed)
    return for_x, for_weight, None, None


def _gemm_ar_backward(context, gradient):
    """What follows on every rank is the same, and so is its gradient: that of the sum is the gradient of each rank's part."""
    x, weight = context.saved_tensors
    for_x = for_weight = None
    if context.needs_input_grad[0]:
        for_x = gradient @ (weight if context.weight_transposed else weight.t())
    if context.needs_input_grad[1]:
        for_weight = _weight_gradient(x, gradient, context.weight_transposed)
    return for_x, for_weight, None, None


_ag_gemm.register_autograd(_ag_gemm_backward, setup_context=_keep_inputs)
_gemm_rs.register_autograd(_gemm_rs_backward, setup_context=_keep_inputs)
_gemm_ar.register_autograd(_gemm_ar_backward, setup_context=_keep_inputs)


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


def _dense(tensor):
    """Rows one behind the other, at a multiple of 16 bytes, as the operators take them."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def _multiply(operator, like, x, weight, world_name, weight_transposed):
    world = _world(world_name)
    call = _Call(operator.name, x.shape, weight.shape, x.dtype, weight.dtype, weight_transposed)
    known = world.plans.get(call)
    out = like(x, weight, world_name, weight_transposed) if known is None else x.new_empty(known.shape)  # like() checks what it is given
    tensors = _dense(x), _dense(weight), out
    rank = world.rank_of(x)
    world.collective(rank, call, lambda: _Product(operator, weakref.proxy(world), *tensors, weight_transposed), lambda made: made.enqueue(rank, tensors))
    return out


class _Call(typing.NamedTuple):
    """What ranks have to agree on."""

    name: str
    x: torch.Size
    weight: torch.Size
    dtype: torch.dtype
    weight_dtype: torch.dtype
    weight_transposed: bool

    def __str__(self):
        return f"{self.name} of x {list(self.x)}, weight {list(self.weight)}{'' if self.weight_transposed else ' (plain)'}, {self.dtype}"


class _Product:
    """A prepared operator for tensors like these."""

    def __init__(self, operator, world, x, weight, out, weight_transposed):
        self.world, self.shape = world, out.shape
        n, k = weight.shape if weight_transposed else weight.shape[::-1]
        m = max(x.shape[0], out.shape[0])
        self.operator = operator(world, m, n, k, x.dtype, weight_transposed)
        self.plan = self.operator.prepare(m, n, k)
        number = BY_SIGNATURE[self.operator.type].number
        self.words = [(number, *each.shape, each.shape[1], 1) for each in (x, weight, out)]

    def enqueue(self, rank, tensors):
        device = self.world.device(rank)
        for tensor in tensors:
            if device.index is None or tensor.get_device() != device.index:
                device.lend_tensor(pointer_of(tensor))  # which refuses other GPUs' tensors
        _native.plan_enqueue(self.plan, device.stream(), *[(tensor.data_ptr(), *words) for tensor, words in zip(tensors, self.words)])


class _Gather:
    """all_gather of so many elements: each rank puts its own into symmetric memory, and takes those of all when all have."""

    BLOCK = 4096

    def __init__(self, world, x):
        self.world, self.count = world, x.numel()
        self.memory = SymmetricTensor(world, (self.count,), x.dtype)
        calls, arrived = SymmetricTensor(world, (1,), torch.int64), SymmetricTensor(world, (world.ranks,), torch.int64)
        self.rows = {rank: self.memory[rank] for rank in world.local_ranks}
        # Compiled and loaded now: that may wait for the GPU, on which others' calls wait for us later.
        first = world.local_ranks[0]
        with world.on(first):
            self.meet = _meet.warmup(calls[first], arrived[first], RANKS=world.ranks, grid=(1,))
            self.take = _take.warmup(self.rows[first], self.rows[first], self.count, BLOCK=self.BLOCK, grid=(1, 1))
        self.meetings = {rank: self.meet.pack({"calls": calls.address(rank), "arrived": arrived.address(rank)}) for rank in world.local_ranks}
        self.words = calls, arrived

    def enqueue(self, rank, x, out):
        device = self.world.device(rank)
        device.lend_tensor(pointer_of(out))
        self.rows[rank].copy_(x.view(-1))
        self.meet.launch_packed((1, 1, 1), self.meetings[rank], (), device)
        blocks = -(-self.count // self.BLOCK), self.world.ranks, 1
        arguments = self.take.pack({"rows": self.memory.address(rank), "out": out.data_ptr(), "count": self.count})
        self.take.launch_packed(blocks, arguments, (), device)
        self.meet.launch_packed((1, 1, 1), self.meetings[rank], (), device)  # nobody's rows are overwritten before all have them


@jit
def _meet(calls, arrived, RANKS: tl.constexpr):
    """Waits for all ranks. The number of the meeting is kept on the device, so that a graph can replay it."""
    number = tl.load(calls) + 1
    tl.debug_barrier()
    tl.store(calls, number)
    for peer in range(RANKS):
        tl.notify(arrived + tl.rank(), peer, signal=number, sig_op="set", comm_scope="intra_node")
    tl.wait(arrived, RANKS, "sys", "acquire", waitValue=number, compare="ge")


@jit
def _take(rows, out, count, BLOCK: tl.constexpr):
    peer = tl.program_id(1)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + peer.to(tl.int64) * count + i, tl.load(tl.symm_at(rows, peer) + i, mask=i < count), mask=i < count)
