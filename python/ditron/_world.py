"""Several ranks: simulated GPUs of this process, its real ones, or one rank of a job that torchrun, mpirun or srun started.

    with ditron.World(4) as world:                      # four simulated GPUs where there is no real one
        inbox = world.symmetric((4,), np.int32)         # memory that kernels of every rank find
        for rank in world.local_ranks:
            with world.on(rank):
                exchange[(1,)](inbox[rank])             # enqueued: the ranks run at the same time
        world.synchronize()
"""
import contextlib
import ctypes
import math
import os
import sys
import weakref

from . import _device, _native
from ._errors import Error, InvalidArgumentError
from ._tensors import extent, pointer_of, type_name
from ._values import BY_SIGNATURE


class RankDevice(_device.Device):
    """One rank of a world as the place of launches, which are only enqueued: ranks may wait for each other."""

    def __init__(self, world, rank):
        self.world, self.rank = world, rank
        self.handle, self.target, self.index = world.handle, world.target, world.gpu_of(rank)
        self.key = world.key
        self.own_stream = None
        self.streams = {}

    def stream(self):
        """PyTorch's current stream of the rank's GPU, so that its work and ours stay in order; else one of the rank's own."""
        torch = sys.modules.get("torch")
        if self.world.is_gpu and torch is not None:
            return self.adopted(torch.cuda.current_stream(self.index).cuda_stream)
        if self.own_stream is None:
            self.own_stream = _native.stream_create(self.handle, self.rank, f"rank {self.rank}")
        return self.own_stream

    @property
    def is_usable_here(self):
        return True

    def adopted(self, native):
        stream = self.streams.get(native)
        if stream is None:
            stream = self.streams[native] = _native.stream_adopt(self.handle, self.rank, native)
        return stream

    def run(self, enqueue, ranges):
        for address, size in ranges:
            self.lend(address, size)
        enqueue(self.stream())

    def lend(self, address, size):
        """Host memory that kernels of the rank may touch until the world is synchronised."""
        if size and not self.is_gpu_rank() and not self.world.owns(self.rank, address):
            self.world.lent.append(_native.memory_adopt(self.handle, self.rank, address, size, None))

    def is_gpu_rank(self):
        return self.world.is_gpu


class World:
    """Ranks that share memory. `ranks` of this process; or with from_environment=True one rank of a job."""

    def __init__(self, ranks=1, target=None, from_environment=False, heap_bytes=0, time_limit=0.0, seed=0):
        if not from_environment and ranks < 1:
            raise InvalidArgumentError(f"a world has at least one rank, not {ranks}")
        self.handle = _native.context_create(target, 0 if from_environment else ranks, int(from_environment), -1, heap_bytes, time_limit, seed, 0, 0)
        self._finalizer = weakref.finalize(self, _native.context_call, "destroy", self.handle)
        self.target = _native.context_call("target", self.handle)
        self.is_gpu = not self.target.startswith("sim")
        self.from_environment = from_environment
        self.ranks = _native.context_call("ranks", self.handle)
        first = _native.context_call("first_rank", self.handle)
        self.local_ranks = range(first, first + 1) if from_environment else range(self.ranks)
        self.key = next(_device._keys)
        self.ended = None
        self.lent = []
        self.memories = []
        self._devices = {rank: RankDevice(self, rank) for rank in self.local_ranks}

    def gpu_of(self, rank):
        """PyTorch's number of the GPU that a rank of this process has; None for a simulated one."""
        if not self.is_gpu:
            return None
        if not self.from_environment:
            return rank
        # As the library chooses: the only one that is visible, else that of the place among this machine's processes.
        places = (os.environ.get(name) for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"))
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.device_count() == 1:
            return 0
        return int(next((place for place in places if place), rank))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.synchronize()
        return None

    @contextlib.contextmanager
    def on(self, rank):
        """Launches in the block go to this rank."""
        self._check()
        if rank not in self._devices:
            raise InvalidArgumentError(f"rank {rank} is not of this process, which has {list(self._devices)}")
        before = _device.placement[0]
        _device.placement[0] = self._devices[rank]
        try:
            yield self._devices[rank]
        finally:
            _device.placement[0] = before

    def synchronize(self):
        """Waits for the work of all ranks of this process; errors of kernels are raised here. Then the world has ended."""
        self._check()
        try:
            _native.context_call("synchronize", self.handle)
        except Error as error:
            self.ended = error
            self._restart()
            raise
        finally:
            for memory in self.lent:
                _native.memory_destroy(memory)
            self.lent = []

    def _check(self):
        if self.ended is not None:
            raise InvalidArgumentError(f"the world ended with an error, and its tensors with it; make another: {self.ended}")

    def _restart(self):
        if self.is_gpu:
            return
        for device in self._devices.values():
            device.drop_stream()
        _native.context_call("restart", self.handle)

    def owns(self, rank, address):
        return any(memory.contains(rank, address) for memory in self.memories)

    def symmetric(self, shape, dtype):
        """A tensor of every rank, zero at first, that kernels of any rank find from their own."""
        self._check()
        tensor = SymmetricTensor(self, shape, dtype)
        self.memories.append(tensor)
        return tensor


class SymmetricTensor:
    """A tensor of each rank; tensor[rank] is that of a rank of this process, as an array (NumPy) or a tensor (PyTorch)."""

    def __init__(self, world, shape, dtype):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype, self.type = dtype, type_name(_numpy_dtype(dtype))
        self.world = world
        self.bytes = math.prod(self.shape) * BY_SIGNATURE[self.type].primitive_bitwidth // 8 or 1
        if self.type == "i1":
            self.bytes = math.prod(self.shape)
        self.handle = _native.memory_allocate(world.handle, -1, self.bytes, None)
        self._finalizer = weakref.finalize(self, _native.memory_destroy, self.handle)

    def address(self, rank):
        return _native.memory_address(self.handle, rank)

    def contains(self, rank, address):
        begin = self.address(rank)
        return begin <= address < begin + self.bytes

    def __getitem__(self, rank):
        if rank not in self.world.local_ranks:
            raise InvalidArgumentError(f"rank {rank} is not of this process, which has {list(self.world.local_ranks)}")
        torch = sys.modules.get("torch")
        uses_torch = torch is not None and isinstance(self.dtype, torch.dtype)
        if self.world.is_gpu:
            return _on_gpu(self, rank)
        buffer = (ctypes.c_char * self.bytes).from_address(self.address(rank))
        buffer.owner = self  # the memory lives as long as the array
        if uses_torch:
            return torch.frombuffer(buffer, dtype=self.dtype).view(self.shape)
        import numpy
        return numpy.frombuffer(buffer, dtype=self.dtype).reshape(self.shape)


def _numpy_dtype(dtype):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return dtype
    import numpy
    return numpy.dtype(dtype)


def _on_gpu(tensor, rank):
    import torch
    code = {"fp16": "<f2", "fp32": "<f4", "fp64": "<f8"}.get(tensor.type) or f"<{tensor.type[0]}{BY_SIGNATURE[tensor.type].itemsize}"
    words = "<i2" if tensor.type == "bf16" else code
    holder = type("Holder", (), {"__cuda_array_interface__": {"shape": tensor.shape, "typestr": words, "data": (tensor.address(rank), False), "version": 3}})()
    holder.owner = tensor
    made = torch.as_tensor(holder, device=f"cuda:{tensor.world.gpu_of(rank)}")
    return made.view(torch.bfloat16) if tensor.type == "bf16" else made


class _Operator:
    """An operator over all ranks: created for sizes, prepared for shapes, called with the tensors of this process's ranks."""

    kind = 0

    def __init__(self, world, m, n, k, dtype, weight_transposed=True, chunks_per_rank=0):
        self.world = world
        self.type = type_name(_numpy_dtype(dtype))
        number = BY_SIGNATURE[self.type].number
        self.handle = _native.operator_create(world.handle, self.kind, number, m, n, k, int(weight_transposed), chunks_per_rank)
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
        """Rows of the scattered matrix that a rank holds."""
        return _native.plan_rows(self.prepare(m, n, k), rank)

    def _shape(self, a, b):
        n, k = tuple(b.shape) if self.weight_transposed else tuple(b.shape)[::-1]
        return n, k

    def __call__(self, a, b, out, m=None):
        """Lists of tensors by local rank (or single ones, where this process has one rank). Enqueued; world.synchronize() waits."""
        self.world._check()
        a, b, out = ([each] if hasattr(each, "shape") else list(each) for each in (a, b, out))
        if not len(a) == len(b) == len(out) == len(self.world.local_ranks):
            raise InvalidArgumentError(f"this process has {len(self.world.local_ranks)} ranks; given are {len(a)}, {len(b)} and {len(out)} tensors")
        n, k = self._shape(a[0], b[0])
        plan = self.prepare(m if m is not None else self.whole_rows(a, out), n, k)
        for rank, tensors in zip(self.world.local_ranks, zip(a, b, out)):
            device = self.world._devices[rank]
            words = []
            for tensor in tensors:
                pointer = pointer_of(tensor)
                if not self.world.is_gpu:
                    device.lend(*extent(pointer.owner))
                strides = tensor.stride() if hasattr(tensor, "stride") else [each // tensor.itemsize for each in tensor.strides]
                words.append((pointer.address, BY_SIGNATURE[pointer.type].number, *tensor.shape, *strides))
            _native.plan_enqueue(plan, device.stream(), *words)
        return out


class AllGatherGemm(_Operator):
    """C[m, n] = allgather(A[m / ranks, k]) B on every rank; B is [n, k], or [k, n] with weight_transposed=False."""

    kind = 1

    @staticmethod
    def whole_rows(a, out):
        return out[0].shape[0]


class GemmReduceScatter(_Operator):
    """C[m / ranks, n] = reduce_scatter(A[m, k] B)."""

    kind = 2

    @staticmethod
    def whole_rows(a, out):
        return a[0].shape[0]
