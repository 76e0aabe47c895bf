"""Several ranks: simulated GPUs of this process, its real ones, or one rank of a job of processes.

    with ditron.World(4) as world:                      # four simulated GPUs where there is no real one
        inbox = world.symmetric((4,), np.int32)         # memory that kernels of every rank find
        for rank in world.local_ranks:
            with world.on(rank):
                exchange[(1,)](inbox[rank])             # enqueued: the ranks run at the same time
        world.synchronize()

    def program(world):                                 # the same on every rank, as under torchrun
        inbox = world.symmetric((4,), np.int32)
        exchange[(1,)](inbox[world.rank])
        world.synchronize()

    ditron.World(4).run(program)                        # a thread for each rank
    ditron.World(from_environment=True).run(program)    # in a job of torchrun's: this process's rank
"""
import contextlib
import ctypes
import functools
import math
import os
import sys
import threading
import uuid
import weakref

from . import _device, _native
from ._errors import Error, InvalidArgumentError, UnsupportedError
from ._operators import canonical_dtype
from ._ranks import RankThreads
from ._tensors import extent, type_name


class RankDevice(_device.Device):
    """One rank of a world as the place of launches, which are only enqueued: ranks may wait for each other."""

    def __init__(self, world, rank):
        super().__init__(world.context, rank, _gpu_of(rank, world) if world.is_gpu else None)
        self.world = weakref.proxy(world)
        self.compiling = world.compiling

    def run(self, enqueue, ranges, owners=()):
        for address, size in ranges:
            self.lend(address, size)
        self.keep(owners)
        enqueue(self.stream())

    def lend(self, address, size):
        """Host memory that kernels of the rank may touch until the world is synchronised."""
        if size and self.index is None and not self.world.owns(self.rank, address):
            self.world.lent.append(_native.memory_adopt(self.context.handle, self.rank, address, size, None))

    def keep(self, owners):
        """Tensors and operators whose memory kernels of the rank may touch until the world is synchronised, also when the program has dropped them."""
        if self.index is None:
            self.world.kept.extend(owners)

    def lend_tensor(self, pointer):
        """The same for a tensor, which has to lie where the rank is."""
        if pointer.device != self.index:
            words = ["the host" if where is None else f"GPU {where}" for where in (pointer.device, self.index)]
            raise InvalidArgumentError(f"a tensor on {words[0]} was given to rank {self.rank}, whose memory is that of {words[1]}")
        if self.index is None:
            self.lend(*extent(pointer.owner))
            self.keep((pointer.owner,))

    @property
    def is_elsewhere(self):
        """True in a thread that must not touch the world itself."""
        return self.index is None and threading.get_ident() != self.world.home

    def at_home(self, function, *arguments):
        """Runs a function in the world's thread, with launches going to this rank."""
        def call():
            with self.world.on(self.rank):
                return function(*arguments)
        return self.world.threads.at_home(self.rank, call)


class World:
    """Ranks that share memory. `ranks` of this process; or with from_environment=True one rank of a job. Simulated ranks may be on
    nodes of `ranks_per_node`, with puts, gets and signals between them; 0: one node."""

    def __init__(self, ranks=1, target=None, from_environment=False, heap_bytes=0, time_limit=0.0, seed=0, ranks_per_node=0):
        if not from_environment and ranks < 1:
            raise InvalidArgumentError(f"a world has at least one rank, not {ranks}")
        self.context = _device.Context(target, 0 if from_environment else ranks, from_environment, None, heap_bytes, time_limit, seed,
                                      ranks_per_node)
        self.is_gpu = self.context.is_gpu
        self.from_environment = from_environment
        self.ranks = _native.context_call("ranks", self.context.handle)
        self.local_ranks = [rank for rank in range(self.ranks) if _native.context_is_local(self.context.handle, rank)]
        self.name = f"ditron:{self.context.key}"
        self.ended = None
        self.lent, self.kept = [], []
        self.memories = weakref.WeakSet()
        self.plans = {}  # of collective calls, by what they are
        self.collectives = {}  # that calls of all sizes share
        self.threads = None  # inside run()
        self.home = threading.get_ident()
        self.compiling = threading.Lock()
        self._devices = {rank: RankDevice(self, rank) for rank in self.local_ranks}
        worlds[self.name] = self

    @classmethod
    def from_process_group(cls, group=None, **options):
        """The ranks of a process group of torch.distributed (any backend; None: all processes), one GPU each, on one machine.
        Collective over the group."""
        import torch
        from torch import distributed

        if not distributed.is_initialized():
            raise InvalidArgumentError("World.from_process_group: torch.distributed has no process group; call init_process_group first")
        rank, size = distributed.get_rank(group), distributed.get_world_size(group)
        if rank < 0:
            raise InvalidArgumentError("World.from_process_group: this process is not of the group")
        index = torch.cuda.current_device() if torch.version.cuda and torch.cuda.is_available() else None
        own = {"machine": os.uname().nodename, "gpu": index if index is None else str(torch.cuda.get_device_properties(index).uuid),
               "place": rank if torch.cuda.device_count() == 1 else index, "job": uuid.uuid4().hex}
        places = [None] * size
        distributed.all_gather_object(places, own, group=group)
        _check_places(places)
        with _environment(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=own["place"], LOCAL_WORLD_SIZE=size, DITRON_JOB_ID=places[0]["job"]):
            return cls(from_environment=True, **options)

    @property
    def target(self):
        """"cuda:sm_90a", "sim:sm_80"."""
        return self.context.target

    @property
    def rank(self):
        """The rank of this process, or of this thread in run() and on()."""
        if len(self.local_ranks) == 1:
            return self.local_ranks[0]
        placed = _device.of_thread.placed
        if placed is None or placed.context is not self.context:
            raise InvalidArgumentError(f"this process has the ranks {self.local_ranks}: which one is meant is known in a function that "
                                       "world.run starts, and inside `with world.on(rank)`")
        return placed.rank

    def rank_of(self, tensor):
        """The rank that a collective call with this tensor is of."""
        if self.is_gpu and len(self.local_ranks) > 1:  # PyTorch computes gradients in threads of its own
            return self._rank_by_gpu.get(tensor.device.index, self.local_ranks[0])
        return self.rank

    @functools.cached_property
    def _rank_by_gpu(self):
        return {device.index: rank for rank, device in self._devices.items()}

    def device(self, rank):
        """The place of a rank's launches."""
        self._check()
        if rank not in self._devices:
            raise InvalidArgumentError(f"rank {rank} is not of this process, which has {list(self._devices)}")
        return self._devices[rank]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.synchronize()
        return None

    @contextlib.contextmanager
    def on(self, rank):
        """Launches in the block go to this rank."""
        before = _device.of_thread.placed
        _device.of_thread.placed = self.device(rank)
        try:
            yield self._devices[rank]
        finally:
            _device.of_thread.placed = before

    def run(self, function, *arguments):
        """function(world, *arguments) on every rank of this process, as the same program; gives the results by rank. Several ranks run
        as threads, in which launches go to the thread's rank and collective calls wait for the other ranks."""
        def start(rank):
            with self.on(rank):
                if self.is_gpu and "torch" in sys.modules:
                    sys.modules["torch"].cuda.set_device(self._devices[rank].index)
                return function(self, *arguments)

        self._check()
        if len(self.local_ranks) == 1:
            return [start(self.local_ranks[0])]
        if self.threads is not None or threading.get_ident() != self.home:
            raise InvalidArgumentError("world.run is called by the thread that made the world, and not again inside of it")
        self.threads = RankThreads(self.local_ranks, takes_turns=not self.is_gpu)
        try:
            return self.threads.run(start)
        finally:
            self.threads = None

    def meet(self, rank, what, value, action):
        """A collective call: when every rank of this process has come, action gets their values by rank and gives their results."""
        self._check()
        if self.threads is not None:
            return self.threads.meet(rank, what, value, action)
        if len(self.local_ranks) > 1:
            raise InvalidArgumentError(f"{what} is a call of all ranks: make it in a function that world.run starts on each of the "
                                       f"{len(self.local_ranks)} ranks of this process")
        results = action([value])
        return results[0] if results is not None else None

    def collective(self, rank, what, prepare, enqueue):
        """A call that all ranks make: enqueue(plan) is this rank's part. The plan is what prepare() gives, once for every `what`."""
        def plan_all(_):
            if what not in self.plans:
                self._synchronize()  # loading code waits for a GPU, on which a call of the other ranks must not wait then
                self.plans[what] = prepare()

        def simulate(parts):
            plan_all(parts)
            for part in parts:
                part(self.plans[what])
            self._synchronize()  # PyTorch takes tensors of the host for computed

        if not self.is_gpu:
            self.meet(rank, what, enqueue, simulate)
            return
        if what not in self.plans:
            if sys.modules["torch"].cuda.is_current_stream_capturing():
                raise InvalidArgumentError(f"{what} is captured before it was ever called: call it once on all ranks, then capture")
            self.meet(rank, f"preparing {what}", None, plan_all)
        enqueue(self.plans[what])

    def synchronize(self):
        """Waits for the work of all ranks of this process; errors of kernels are raised here. Then the world has ended."""
        self._check()
        if self.threads is not None and _device.of_thread.placed is not None and not self.is_gpu:
            self.meet(self.rank, "world.synchronize", None, lambda _: self._synchronize())
        else:
            self._synchronize()

    def _synchronize(self):
        try:
            _native.context_call("synchronize", self.context.handle)
        except (Error, KeyboardInterrupt) as error:
            self.ended = error
            for device in self._devices.values():
                device.drop_streams()
            raise
        finally:
            for memory in self.lent:
                _native.memory_destroy(memory)
            self.lent, self.kept = [], []

    def _check(self):
        if self.ended is not None:
            raise InvalidArgumentError(f"the world ended with an error, and its tensors with it; make another: {self.ended}")

    def owns(self, rank, address):
        return any(memory.contains(rank, address) for memory in self.memories)

    def symmetric(self, shape, dtype):
        """A tensor of every rank, zero at first, that kernels of any rank find from their own. In run() a collective call."""
        self._check()
        if self.threads is None or _device.of_thread.placed is None:
            return SymmetricTensor(self, shape, dtype)
        shape = _sizes(shape)
        return self.meet(self.rank, f"world.symmetric({shape}, {dtype})", None, lambda ranks: [SymmetricTensor(self, shape, dtype)] * len(ranks))


worlds = weakref.WeakValueDictionary()  # by name, by which torch.library operators know them


@contextlib.contextmanager
def _environment(**variables):
    """Environment variables for the duration of a block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: str(value) for name, value in variables.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _check_places(places):
    """What the processes of a group have said of themselves, by rank."""
    without = [rank for rank, place in enumerate(places) if place["gpu"] is None]
    if without:
        raise UnsupportedError(f"World.from_process_group: the processes of ranks {without} have no GPU, and simulated ranks cannot be spread over "
                               f"processes: they live in one, ditron.World({len(places)}).run(function)")
    machines = sorted({place["machine"] for place in places})
    if len(machines) > 1:
        raise UnsupportedError(f"World.from_process_group: the group is spread over the machines {', '.join(machines)}; this version runs on one")
    if len({place["gpu"] for place in places}) < len(places):
        raise InvalidArgumentError(f"World.from_process_group: ranks share a GPU: {[place['gpu'] for place in places]}; each needs one of its own "
                                   "(torch.cuda.set_device)")
    beyond = [place["place"] for place in places if place["place"] >= len(places)]
    if beyond:
        raise UnsupportedError(f"World.from_process_group: a group of {len(places)} on the GPUs {beyond}; accepted are GPUs below {len(places)}, or "
                               "processes that see one GPU each (CUDA_VISIBLE_DEVICES)")


def _gpu_of(rank, world):
    """PyTorch's number of the GPU that a rank of this process has."""
    if not world.from_environment:
        return rank
    # As the library chooses: the only one that is visible, else that of the place among this machine's processes.
    places = (os.environ.get(name) for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.device_count() == 1:
        return 0
    return int(next((place for place in places if place), rank))


def _sizes(shape):
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"a symmetric tensor of shape {sizes}: sizes are from 0")
    return sizes


class SymmetricTensor:
    """A tensor of each rank; tensor[rank] is that of a rank of this process, as an array (NumPy) or a tensor (PyTorch)."""

    def __init__(self, world, shape, dtype):
        self.shape = _sizes(shape)
        self.dtype = canonical_dtype(dtype)
        type_name(self.dtype)  # refuses what kernels do not have
        self.world = world
        self.bytes = math.prod(self.shape) * self.dtype.itemsize
        self.handle = _native.memory_allocate(world.context.handle, -1, max(self.bytes, 1), None)
        self._finalizer = weakref.finalize(self, _native.memory_destroy, self.handle)
        world.memories.add(self)

    def address(self, rank):
        return _native.memory_address(self.handle, rank)

    def contains(self, rank, address):
        begin = self.address(rank)
        return begin <= address < begin + max(self.bytes, 1)

    def __getitem__(self, rank):
        self.world.device(rank)  # refuses other processes' ranks
        torch = sys.modules.get("torch")
        if self.world.is_gpu:
            return self._on_gpu(rank)
        buffer = (ctypes.c_char * max(self.bytes, 1)).from_address(self.address(rank))
        buffer.owner = self  # the memory lives as long as the array
        if torch is not None and isinstance(self.dtype, torch.dtype):
            return torch.frombuffer(buffer, dtype=torch.uint8)[:self.bytes].view(self.dtype).view(self.shape)
        import numpy
        return numpy.frombuffer(buffer, dtype=numpy.uint8)[:self.bytes].view(self.dtype).reshape(self.shape)

    def _on_gpu(self, rank):
        import torch
        dtype = self.dtype if isinstance(self.dtype, torch.dtype) else getattr(torch, self.dtype.name)
        holder = type("Holder", (), {"__cuda_array_interface__": {"shape": (max(self.bytes, 1),), "typestr": "|u1", "data": (self.address(rank), False),
                                                                  "version": 3}})()
        holder.owner = self
        made = torch.as_tensor(holder, device=f"cuda:{self.world.device(rank).index}")
        return made[:self.bytes].view(dtype).view(self.shape)
