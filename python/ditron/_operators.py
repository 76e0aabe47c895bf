"""AllGather+GEMM, GEMM+ReduceScatter and GEMM+AllReduce over the ranks of a world."""
import sys
import weakref

from . import _native
from ._errors import InvalidArgumentError
from ._tensors import pointer_of, type_name
from ._values import BY_SIGNATURE


class Operator:
    """An operator over all ranks: created for sizes, prepared for shapes, called with the tensors of this process's ranks."""

    kind, name = 0, ""

    def __init__(self, world, m, n, k, dtype, weight_transposed=True, chunks_per_rank=0):
        self.world = world
        self.type = type_name(canonical_dtype(dtype))
        number = BY_SIGNATURE[self.type].number
        self.handle = _native.operator_create(world.context.handle, self.kind, number, m, n, k, int(weight_transposed), chunks_per_rank)
        self._finalizer = weakref.finalize(self, _native.operator_destroy, self.handle)
        self.weight_transposed = weight_transposed
        self.plans = {}

    def prepare(self, m, n, k):
        """Compiles what calls of this shape need."""
        plan = self.plans.get((m, n, k))
        if plan is None:
            plan = self.plans[m, n, k] = _native.operator_prepare(self.handle, m, n, k)
            weakref.finalize(self, _native.plan_destroy, plan)
        return plan

    def rows(self, rank, m, n, k):
        """Rows of the scattered matrix that a rank holds; GemmAllReduce: all m."""
        return _native.plan_rows(self.prepare(m, n, k), rank)

    def __call__(self, a, b, out, m=None):
        """Lists of tensors by local rank (or single ones, where this process has one rank). Enqueued; world.synchronize() waits."""
        a, b, out = ([each] if hasattr(each, "shape") else list(each) for each in (a, b, out))
        ranks = self.world.local_ranks
        if not len(a) == len(b) == len(out) == len(ranks):
            raise InvalidArgumentError(f"this process has {len(ranks)} ranks; given are {len(a)}, {len(b)} and {len(out)} tensors")
        n, k = tuple(b[0].shape) if self.weight_transposed else tuple(b[0].shape)[::-1]
        plan = self.prepare(m if m is not None else self.whole_rows(a, out), n, k)
        for rank, tensors in zip(ranks, zip(a, b, out)):
            self.enqueue(plan, rank, tensors)
        return out

    def enqueue(self, plan, rank, tensors):
        """One rank's part of a call, on the rank's current stream."""
        device = self.world.device(rank)
        words = []
        for tensor in tensors:
            pointer = pointer_of(tensor)
            device.lend_tensor(pointer)
            strides = tensor.stride() if hasattr(tensor, "stride") else [each // tensor.itemsize for each in tensor.strides]
            words.append((pointer.address, BY_SIGNATURE[pointer.type].number, *tensor.shape, *strides))
        _native.plan_enqueue(plan, device.stream(), *words)


class AllGatherGemm(Operator):
    """C[m, n] = allgather(A[m / ranks, k]) B on every rank; B is [n, k], or [k, n] with weight_transposed=False."""

    kind, name = 1, "ag_gemm"

    @staticmethod
    def whole_rows(a, out):
        return out[0].shape[0]


class GemmReduceScatter(Operator):
    """C[m / ranks, n] = reduce_scatter(A[m, k] B)."""

    kind, name = 2, "gemm_rs"

    @staticmethod
    def whole_rows(a, out):
        return a[0].shape[0]


class GemmAllReduce(Operator):
    """C[m, n] = all_reduce(A[m, k] B), the same bits on every rank."""

    kind, name = 3, "gemm_ar"

    @staticmethod
    def whole_rows(a, out):
        return a[0].shape[0]


def canonical_dtype(dtype):
    """A PyTorch dtype as it is, anything else as NumPy's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return dtype
    import numpy
    return numpy.dtype(dtype)
