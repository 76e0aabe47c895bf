"""Where kernels run: one context of one rank for the simulator and for each GPU of this process, made when first needed."""
import itertools
import os
import sys
import threading
import weakref

from . import _library  # noqa: F401  opens libditron
from . import _native
from ._errors import Error


_keys = itertools.count()  # of devices and worlds, in tables of compiled kernels: never used again, unlike id()


class Device:
    """A context with one rank, and its streams. `index` is the GPU's number, None for the simulated one."""

    def __init__(self, index, target=None, seed=0):
        self.index = index
        target = target or ("sim" if index is None else "cuda")
        self.handle = _native.context_create(target, 1, 0, -1 if index is None else index, 0, 0.0, seed, 0, 0)
        self._finalizer = weakref.finalize(self, _native.context_call, "destroy", self.handle)
        self.target = _native.context_call("target", self.handle)
        self.streams = {}
        self.own_stream = None
        self.process = os.getpid()
        self.key = next(_keys)

    @property
    def is_usable_here(self):
        """A simulated GPU belongs to the thread that made it."""
        return self.index is not None or self is getattr(_of_thread, "device", None)

    @property
    def is_simulated(self):
        return self.index is None

    @property
    def capability(self):
        digits = "".join(c for c in self.target.rpartition("sm_")[2] if c.isdigit())
        return int(digits or 80)

    @property
    def properties(self):
        """(name, multiprocessors, warp size, shared bytes of a block, most threads of a block)"""
        return _native.context_device(self.handle, 0)

    def stream(self):
        """The handle of the stream that launches go to: PyTorch's current one on a GPU."""
        if self.index is None:
            if self.own_stream is None:
                self.own_stream = _native.stream_create(self.handle, 0, "python")
            return self.own_stream
        torch = sys.modules.get("torch")
        native = torch.cuda.current_stream(self.index).cuda_stream if torch is not None else 0
        return self.adopted(native)

    def adopted(self, native):
        """The handle of a stream of PyTorch's."""
        stream = self.streams.get(native)
        if stream is None:
            stream = self.streams[native] = _native.stream_adopt(self.handle, 0, native)
        return stream

    def run(self, enqueue, ranges):
        """Enqueues work on the stream. On the simulator host memory is lent to it and the work is waited for."""
        if self.index is not None:
            enqueue(self.stream())
            return
        lent = []
        try:
            for address, size in ranges:
                if size:
                    lent.append(_native.memory_adopt(self.handle, 0, address, size, None))
            enqueue(self.stream())
            _native.context_call("synchronize", self.handle)
        except Error:
            self.recover()
            raise
        finally:
            for memory in lent:
                _native.memory_destroy(memory)

    def recover(self):
        """After an error that ended the simulated run: begins again."""
        try:
            _native.context_call("check", self.handle)
        except Error:
            self.drop_stream()
            _native.context_call("restart", self.handle)

    def drop_stream(self):
        """Gives back a stream of a run that ended, which keeps all of that run alive."""
        if self.own_stream is not None:
            _native.stream_destroy(self.own_stream)
            self.own_stream = None


# The place of launches inside `with world.on(rank)`; None elsewhere.
placement = [None]
_devices = {}
_lock = threading.Lock()


def device(index=None):
    """The device of a GPU, or the simulated one, of which each thread has its own. A forked child makes its own."""
    if index is None:
        return _simulated()
    found = _devices.get(index)
    if found is not None and found.process == os.getpid():
        return found
    with _lock:
        found = _devices.get(index)
        if found is None or found.process != os.getpid():
            if found is not None:
                found._finalizer.detach()
            found = _devices[index] = Device(index)
        return found


_of_thread = threading.local()


def _simulated():
    """A simulated GPU is used by the thread that made it."""
    found = getattr(_of_thread, "device", None)
    if found is None or found.process != os.getpid():
        if found is not None:
            found._finalizer.detach()
        found = _of_thread.device = Device(None, _target)
    return found


_target = None


def set_simulated_target(target):
    """Which GPU the simulator is, for example "sim:sm_90a". Before the first launch."""
    global _target
    _target = target
    _of_thread.device = None


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
