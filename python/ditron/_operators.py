"""AllGather+GEMM, GEMM+ReduceScatter and GEMM+AllReduce over the ranks of a world."""
import sys
import weakref

from . import _native
from ._errors import InvalidArgumentError
from ._sizes import check_counts, check_sizes
from ._tensors import is_tensor, pointer_of, type_name
from ._values import BY_SIGNATURE


SCALES = {None: 0, "tensor": 1, "vector": 2}
ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "silu": 3, "swiglu": 4}


def enqueue_all(calls, check, enqueue):
    """The calls of several ranks, by their arguments: none before all have been checked, since a call that some ranks make and others do not ends the world."""
    for call in calls if len(calls) > 1 else ():
        check(*call)
    for call in calls:
        enqueue(*call)


class Operator:
    """An operator over all ranks: created for sizes, prepared for shapes, called with the tensors of this process's ranks.

    dtype is that of A and B: bfloat16, float16, float32, fp8 or int8; out_dtype that of the result, by default the same, of 8-bit ones
    bfloat16. The sums are multiplied with scales_a and scales_b, in float32: "tensor", one number, or "vector", one for each row of A or
    column of B. Then a bias [n] of bias_dtype is added, once where the ranks are added up. AllGatherGemm may have an activation: relu,
    gelu, silu or swiglu, for which n counts pairs of columns, gate first, and the result has n / 2."""

    kind, name = 0, ""

    def __init__(self, world, m, n, k, dtype, weight_transposed=True, chunks_per_rank=0, *, out_dtype=None, scales_a=None, scales_b=None,
                 bias_dtype=None, activation=None):
        check_sizes(self.name, m=m, n=n, k=k)
        check_counts(self.name, chunks_per_rank=chunks_per_rank)
        self.world = world
        self.type = type_name(canonical_dtype(dtype))
        number = BY_SIGNATURE[self.type].number
        for what, given, accepted in (("scales_a", scales_a, SCALES), ("scales_b", scales_b, SCALES), ("activation", activation, ACTIVATIONS)):
            if given not in accepted:
                raise InvalidArgumentError(f"{self.name}: {what}={given!r}; accepted are {', '.join(repr(each) for each in accepted)}")
        numbers = [0 if each is None else BY_SIGNATURE[type_name(canonical_dtype(each))].number for each in (out_dtype, bias_dtype)]
        self.handle = _native.operator_create(world.context.handle, self.kind, number, m, n, k, int(weight_transposed), chunks_per_rank,
                                              numbers[0], SCALES[scales_a], SCALES[scales_b], numbers[1], ACTIVATIONS[activation])
        self._finalizer = weakref.finalize(self, _native.operator_destroy, self.handle)
        self.weight_transposed = weight_transposed
        self.plans = {}

    def prepare(self, m, n, k, row_strides=(0, 0, 0)):
        """Compiles what calls of this shape need. row_strides: elements from row to row of a, b and out, on all ranks; 0: dense rows."""
        plan = self.plans.get((m, n, k, row_strides))
        if plan is None:
            check_sizes(self.name, m=m, n=n, k=k)
            check_sizes(self.name, 0, **dict(zip(("row_stride_a", "row_stride_b", "row_stride_out"), row_strides)))
            plan = self.plans[m, n, k, row_strides] = _native.operator_prepare(self.handle, m, n, k, row_strides)
            weakref.finalize(self, _native.plan_destroy, plan)
        return plan

    def rows(self, rank, m, n, k):
        """Rows of the scattered matrix that a rank holds; GemmAllReduce: all m."""
        return _native.plan_rows(self.prepare(m, n, k), rank)

    def __call__(self, a, b, out, m=None, *, scales_a=None, scales_b=None, bias=None):
        """Lists of tensors by local rank (or single ones, where this process has one rank). Rows may be padded, alike on all ranks. Enqueued;
        world.synchronize() waits."""
        ranks = self.world.local_ranks
        lists = [[each] if hasattr(each, "shape") else [None] * len(ranks) if each is None else list(each)
                 for each in (a, b, out, scales_a, scales_b, bias)]
        if any(len(each) != len(ranks) for each in lists):
            raise InvalidArgumentError(f"this process has {len(ranks)} ranks; given are {', '.join(str(len(each)) for each in lists[:3])} tensors")
        for word, tensors in zip(("a", "b", "out"), lists):
            for rank, tensor in zip(ranks, tensors):
                if not is_tensor(tensor) or len(tensor.shape) != 2:
                    found = list(tensor.shape) if is_tensor(tensor) else type(tensor).__name__
                    raise InvalidArgumentError(f"{self.name}: {word} of rank {rank} is {found}; a matrix is accepted")
        a, b, out = lists[:3]
        n, k = tuple(b[0].shape) if self.weight_transposed else tuple(b[0].shape)[::-1]
        strides = tuple(max(row_stride(tensor) for tensor in tensors) for tensors in lists[:3])
        plan = self.prepare(m if m is not None else self.whole_rows(a, out), n, k, strides)
        calls = [self.arguments(plan, rank, tensors) for rank, tensors in zip(ranks, zip(*lists))]
        enqueue_all(calls, _native.plan_check, _native.plan_enqueue)
        return out

    def arguments(self, plan, rank, tensors):
        """One rank's part of a call, on the rank's current stream: a, b, out, and the scales of a and b and the bias, or None."""
        device = self.world.device(rank)
        device.keep((self,))
        words = []
        for tensor in tensors:
            if tensor is None:
                words.append((0, 0, 0))
                continue
            pointer = pointer_of(tensor)
            device.lend_tensor(pointer)
            number = BY_SIGNATURE[pointer.type].number
            if len(words) < 3:
                words.append((pointer.address, number, *tensor.shape, *element_strides(tensor)))
            else:
                words.append((pointer.address, number, elements_of(tensor)))
        return plan, device.stream(), *words


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


def element_strides(tensor):
    return tensor.stride() if hasattr(tensor, "stride") else [each // tensor.itemsize for each in tensor.strides]


def row_stride(tensor):
    """For a plan: 0 where rows follow each other, or there is no second one."""
    stride = element_strides(tensor)[0]
    return 0 if tensor.shape[0] <= 1 or stride == tensor.shape[1] else stride


def elements_of(tensor):
    """Of a dense vector, or a single number."""
    count = 1
    for size in tensor.shape:
        count *= size
    if len(tensor.shape) > 1 or (len(tensor.shape) == 1 and count > 1 and element_strides(tensor)[0] != 1):
        raise InvalidArgumentError(f"scales and biases are dense vectors; given is shape {tuple(tensor.shape)} with strides {tuple(element_strides(tensor))}")
    return count


def canonical_dtype(dtype):
    """A PyTorch dtype as it is, anything else as NumPy's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return dtype
    import numpy
    return numpy.dtype(dtype)
