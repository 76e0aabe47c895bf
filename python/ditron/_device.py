"""Where kernels run: one context of one rank for each simulated GPU and for each GPU of this process, made when first needed."""
import contextlib
import itertools
import os
import sys
import threading
import weakref

from . import _library  # noqa: F401  opens libditron
from . import _native
from ._errors import Error

_keys = itertools.count()  # of contexts, in tables of compiled kernels: never used again, unlike id()


class Context:
    """A context of the library. What was loaded into it goes with it: a compiled kernel that is still known somewhere would keep
    all of its memory alive."""

    def __init__(self, target=None, ranks=1, from_environment=False, gpu=None, heap_bytes=0, time_limit=0.0, seed=0,
                 ranks_per_node=0):
        self.handle = _native.context_create(target, ranks, int(from_environment), -1 if gpu is None else gpu, heap_bytes, time_limit, seed, 0, 0,
                                             ranks_per_node)
        self.target = _native.context_call("target", self.handle)
        self.key = next(_keys)
        self.process = os.getpid()
        self.loaded = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, _close, self.handle, self.process, self.loaded)

    @property
    def is_gpu(self):
        return not self.target.startswith("sim")


def _close(handle, process, loaded):
    if process != os.getpid():  # a forked child: it is the parent's
        return
    for each in list(loaded):
        each.release()
    _native.context_destroy(handle)


class Loaded:
    """A handle made from a context, known in a table of the function that it belongs to."""

    def __init__(self, context, table, key, destroy, handle):
        self.handle = handle
        self.context = weakref.ref(context)
        self._finalizer = weakref.finalize(self, destroy, handle)
        self._finalizer.atexit = False  # the context's does it, if this is the context's process
        self._place = table, key
        table[key] = self
        context.loaded.add(self)

    def release(self):
        """Gives the handle back."""
        self._finalizer()
        table, key = self._place
        table.pop(key, None)


class Device:
    """A rank of a context as the place of launches, and its streams. `index` is the GPU's number, None for a simulated one."""

    # Held while a kernel is compiled for the device.
    compiling = contextlib.nullcontext()

    def __init__(self, context, rank, index):
        self.context, self.rank, self.index = context, rank, index
        self.streams = {}  # by CUDA's handle; None for a simulated one
        weakref.finalize(self, _destroy_streams, context.process, self.streams).atexit = False

    @property
    def capability(self):
        digits = "".join(c for c in self.context.target.rpartition("sm_")[2] if c.isdigit())
        return int(digits or 80)

    @property
    def properties(self):
        """(name, multiprocessors, warp size, shared bytes of a block, most threads of a block)"""
        return _native.context_device(self.context.handle, self.rank)

    def stream(self):
        """The handle of the stream that launches go to: on a GPU PyTorch's current one, so that its work and ours stay in order."""
        if self.index is None:
            if None not in self.streams:
                self.streams[None] = _native.stream_create(self.context.handle, self.rank, f"rank {self.rank}")
            return self.streams[None]
        return self.adopted(self.native_stream)

    @property
    def native_stream(self):
        """CUDA's handle of the stream that launches go to; of a simulated GPU, and without PyTorch, 0."""
        torch = sys.modules.get("torch")
        return 0 if self.index is None or torch is None else torch.cuda.current_stream(self.index).cuda_stream

    def adopted(self, native):
        """The handle of a stream of PyTorch's."""
        stream = self.streams.get(native)
        if stream is None:
            stream = self.streams[native] = _native.stream_adopt(self.context.handle, self.rank, native)
        return stream

    def drop_streams(self):
        """Gives back the streams of a run that ended, which keep all of that run alive."""
        _destroy_streams(self.context.process, self.streams)


def _destroy_streams(process, streams):
    while streams:
        stream = streams.popitem()[1]
        if process == os.getpid():
            _native.stream_destroy(stream)


class OwnDevice(Device):
    """A GPU with a context of its own. Launches on a simulated one are waited for."""

    def __init__(self, index, target):
        super().__init__(Context(target, gpu=index), 0, index)

    def run(self, enqueue, ranges, owners=()):
        """Enqueues work on the stream. On the simulator host memory is lent to it, that of `owners`, and the work is waited for."""
        if self.index is not None:
            enqueue(self.stream())
            return
        lent = []
        try:
            for address, size in ranges:
                if size:
                    lent.append(_native.memory_adopt(self.context.handle, 0, address, size, None))
            enqueue(self.stream())
            _native.context_call("synchronize", self.context.handle)
        except Error:
            self.recover()
            raise
        except KeyboardInterrupt:
            self.restart()  # also when it came between the launch and the run
            raise
        finally:
            for memory in lent:
                _native.memory_destroy(memory)

    def recover(self):
        """After an error that ended the simulated run: begins again."""
        try:
            _native.context_call("check", self.context.handle)
        except Error:
            self.restart()

    def restart(self):
        self.drop_streams()
        _native.context_call("restart", self.context.handle)


class _OfThread(threading.local):
    """What each thread has of its own."""

    placed = None  # the device of launches inside `with world.on(rank)`
    simulated = None  # the simulated GPU: it is used by the thread that made it


of_thread = _OfThread()
_gpus = {}
_lock = threading.Lock()
_target = "sim"


def device(index=None):
    """The device of a GPU, or the simulated one, of which each thread has its own. A forked child makes its own."""
    if index is None:
        found = of_thread.simulated
        if found is None or found.context.process != os.getpid():
            found = of_thread.simulated = OwnDevice(None, _target)
        return found
    found = _gpus.get(index)
    if found is None or found.context.process != os.getpid():
        with _lock:
            found = _gpus.get(index)
            if found is None or found.context.process != os.getpid():
                found = _gpus[index] = OwnDevice(index, "cuda")
    return found


def set_simulated_target(target):
    """Which GPU the simulator is, for example "sim:sm_90a". Before the first launch."""
    global _target
    _target = target
    of_thread.simulated = None


def current_index():
    """The GPU that launches without tensors go to; None: the simulator."""
    torch = sys.modules.get("torch")
    if torch is None or not getattr(torch.version, "cuda", None) or not _has_gpu(torch):
        return None
    return torch.cuda.current_device()


def _has_gpu(torch):
    check = getattr(torch.cuda, "_ditron_is_available", torch.cuda.is_available)
    return check()


def current():
    return device(current_index())
