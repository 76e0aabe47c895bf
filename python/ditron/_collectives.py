"""AllReduce, AllGather, ReduceScatter, AllToAll and Broadcast over the ranks of a world, one kernel launch each."""
import sys
import weakref

from . import _device, _native
from ._errors import InvalidArgumentError
from ._operators import canonical_dtype, enqueue_all
from ._sizes import check_counts, check_sizes
from ._tensors import is_tensor, pointer_of, type_name
from ._values import BY_SIGNATURE

REDUCTIONS = {"sum": 0, "max": 1, "min": 2, "average": 3}


class Collective:
    """A collective over all ranks, created for a largest size and called with any up to it.

        reduce = ditron.AllReduce(world, max_elements=1 << 20, dtype=torch.bfloat16)
        reduce.prepare(4096)      # each size before the first call anywhere
        reduce(x)                 # in place, on this rank
        reduce(xs, outs)          # lists by local rank

    Sizes are in elements of a part: of x where that has one part, else of a rank's part of x."""

    kind, name = 0, ""
    in_has_parts = out_has_parts = False  # one for each rank

    def __init__(self, world, max_elements, dtype, *, op="sum", scale=None, root=0):
        if world.threads is not None and _device.of_thread.placed is not None and len(world.local_ranks) > 1:
            raise InvalidArgumentError(f"{self.name}: make it before world.run starts a thread for each rank, and use it in all of them")
        check_sizes(self.name, max_elements=max_elements)
        check_counts(self.name, root=root)
        if op not in REDUCTIONS:
            raise InvalidArgumentError(f"{self.name}: op '{op}'; accepted are {', '.join(REDUCTIONS)}")
        self.world = world
        self.type = type_name(canonical_dtype(dtype))
        if self.type == "i1":
            raise InvalidArgumentError(f"{self.name}: elements of type bool; send them as uint8")
        self.handle = _native.collective_create(world.context.handle, self.kind, BY_SIGNATURE[self.type].number, REDUCTIONS[op],
                                                scale is not None, scale or 0.0, root, max_elements)
        self._finalizer = weakref.finalize(self, _native.collective_destroy, self.handle)

    def prepare(self, elements):
        """Compiles and loads what calls of this size need, on all ranks of this process."""
        _native.collective_prepare(self.handle, elements)

    def __call__(self, x, out=None):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. Enqueued;
        world.synchronize() waits. Without `out` in place; AllGather and ReduceScatter need `out`, of which x may be the rank's part,
        or which may be the rank's part of x. Gives `out`."""
        if out is None:
            if self.in_has_parts != self.out_has_parts:
                raise InvalidArgumentError(f"{self.name}: out is not given; only calls whose result is as large as x are made in place")
            out = x
        if is_tensor(x):
            rank = self.world.rank
            device = self.world.device(rank)
            given = rank, x, out, self.elements(x, out)
            device.at_home(self.enqueue, *given) if device.is_elsewhere else self.enqueue(*given)
            return out
        xs, outs, ranks = list(x), list(out), self.world.local_ranks
        if not len(xs) == len(outs) == len(ranks):
            raise InvalidArgumentError(f"{self.name}: this process has {len(ranks)} ranks; given are {len(xs)} and {len(outs)} tensors")
        sizes = [self.elements(*each) for each in zip(xs, outs)]
        if len(set(sizes)) > 1:
            raise InvalidArgumentError(f"{self.name}: {sizes} elements on the ranks of this process; accepted is the same number on all")
        calls = [self.arguments(rank, *tensors, sizes[0]) for rank, *tensors in zip(ranks, xs, outs)]
        enqueue_all(calls, _native.collective_check, _native.collective_enqueue)
        return out

    def elements(self, x, out):
        """Of a part; types, sizes and layout are checked."""
        ranks = self.world.ranks
        for word, tensor in (("x", x), ("out", out)):
            if not is_tensor(tensor):
                raise InvalidArgumentError(f"{self.name}: {word} is {type(tensor).__name__}; a tensor is accepted")
            if type_name(tensor.dtype) != self.type:
                raise InvalidArgumentError(f"{self.name}: {word} is of type {tensor.dtype}; the collective was made for {self.type}")
            if not _is_dense(tensor):
                raise InvalidArgumentError(f"{self.name}: {word} has gaps or another order; accepted are contiguous tensors")
        given, result = _count(x), _count(out)
        elements = given // ranks if self.in_has_parts else given
        wanted = elements * ranks if self.out_has_parts else elements
        if (self.in_has_parts and given % ranks) or result != wanted:
            part = "a multiple of the ranks, " if self.in_has_parts else ""
            raise InvalidArgumentError(f"{self.name}: x has {given} elements and out {result}, on {ranks} ranks; {part}"
                                       f"{given} and {wanted} are accepted")
        return elements

    def enqueue(self, rank, x, out, elements):
        """One rank's part of a call, on the rank's current stream."""
        _native.collective_enqueue(*self.arguments(rank, x, out, elements))

    def arguments(self, rank, x, out, elements):
        device = self.world.device(rank)
        device.keep((self,))
        pointers = pointer_of(x), pointer_of(out)
        for pointer in pointers:
            device.lend_tensor(pointer)
        return self.handle, device.stream(), pointers[0].address, pointers[1].address, elements

    def enqueue_at(self, device, x, out, elements):
        """The same with addresses, which are not checked."""
        _native.collective_enqueue(self.handle, device.stream(), x, out, elements)


class AllReduce(Collective):
    """out = the sum of all ranks' x, or their max, min or average: the same bits on every rank. With `scale` each rank's x is
    multiplied by it first."""

    kind, name = 1, "all_reduce"

    def __init__(self, world, max_elements, dtype, op="sum", scale=None):
        super().__init__(world, max_elements, dtype, op=op, scale=scale)


class AllGather(Collective):
    """out [ranks, n] = the ranks' x [n] one after the other."""

    kind, name, out_has_parts = 2, "all_gather", True

    def __init__(self, world, max_elements, dtype):
        super().__init__(world, max_elements, dtype)


class ReduceScatter(Collective):
    """out [n] = the sum (max, min, average) of all ranks' parts for this rank, of x [ranks, n]."""

    kind, name, in_has_parts = 3, "reduce_scatter", True

    def __init__(self, world, max_elements, dtype, op="sum", scale=None):
        super().__init__(world, max_elements, dtype, op=op, scale=scale)


class AllToAll(Collective):
    """Part r of x [ranks, n] becomes part `rank` of rank r's out [ranks, n]."""

    kind, name, in_has_parts, out_has_parts = 4, "all_to_all", True, True

    def __init__(self, world, max_elements, dtype):
        super().__init__(world, max_elements, dtype)


class Broadcast(Collective):
    """out = the root's x; what other ranks give is not read."""

    kind, name = 5, "broadcast"

    def __init__(self, world, max_elements, dtype, root=0):
        super().__init__(world, max_elements, dtype, root=root)


def _count(tensor):
    return tensor.size if isinstance(tensor.size, int) else tensor.numel()


def _is_dense(tensor):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return tensor.is_contiguous()
    return tensor.flags.c_contiguous if hasattr(tensor, "flags") else True
