"""Without a GPU: PyTorch's device "cuda" is the simulated GPU, and its tensors lie in host memory.

A TorchFunctionMode turns device="cuda" into device="cpu" wherever a function takes a device, tensors say that they are on cuda:0, and
torch.cuda answers as one GPU would. What PyTorch computes itself it computes on the CPU. With a GPU nothing is changed.
"""
import contextlib
import functools
import importlib.abc
import importlib.util
import os
import sys
import time
import types

from ditron import _device

NAME = "Ditron's simulated GPU"


def simulated_target():
    """Which GPU the simulator is: TRITON_OVERRIDE_ARCH as Triton writes it, "sm80", else a Hopper."""
    architecture = os.environ.get("TRITON_OVERRIDE_ARCH") or "sm90a"
    return f"sim:sm_{architecture[2:].removeprefix('_')}" if architecture.startswith("sm") else f"sim:{architecture}"


def install():
    """Chooses the simulated GPU; maps the device of torch now if that is imported already, else when it is."""
    _device.set_simulated_target(simulated_target())
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        _map_device(torch)
    else:
        sys.meta_path.insert(0, _AfterImport())


class _AfterImport(importlib.abc.MetaPathFinder):
    """Lets torch be found as ever, and maps its device when it has been executed."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _map_device(module)

        spec.loader.exec_module = exec_module
        return spec


def _is_cuda(device):
    return str(device).partition(":")[0] in ("cuda", "gpu")


def _to_host(torch, value):
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def _map_device(torch):
    if getattr(torch, "_ditron_maps_device", False) or torch.cuda.is_available():
        return
    torch._ditron_maps_device = True
    # torch.compile makes code for real GPUs: here what it is given runs as it is.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    torch.cuda._ditron_is_available = lambda: False
    _map_tensors(torch)
    _map_module(torch)
    _map_mode(torch)
    _map_factories(torch)


# What makes tensors and takes a device.
_FACTORIES = """arange asarray as_tensor bartlett_window blackman_window empty empty_like empty_permuted empty_strided eye full full_like
    hamming_window hann_window kaiser_window linspace logspace ones ones_like rand rand_like randint randint_like randn randn_like randperm range
    scalar_tensor sparse_coo_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros zeros_like""".split()
_METHODS = "new_empty new_empty_strided new_full new_ones new_tensor new_zeros".split()


def _map_factories(torch):
    """The mode is off inside of functions of PyTorch's that are written in Python, and in backward functions that they call."""

    def on_host(function, takes_position=False):
        @functools.wraps(function)
        def call(*arguments, **keywords):
            if keywords.get("device") is not None:
                keywords["device"] = _to_host(torch, keywords["device"])
            if keywords.get("pin_memory"):
                keywords["pin_memory"] = False
            if takes_position:
                arguments = (arguments[0], *[_to_host(torch, each) for each in arguments[1:]])
            return function(*arguments, **keywords)

        return call

    for name in _FACTORIES:
        setattr(torch, name, on_host(getattr(torch, name)))
    for name in _METHODS:
        setattr(torch.Tensor, name, on_host(getattr(torch.Tensor, name)))
    torch.Tensor.to = on_host(torch.Tensor.to, takes_position=True)


def _map_tensors(torch):
    cuda = torch.device("cuda", 0)
    plain = torch._C.TensorBase.device
    kind = torch._C.TensorBase

    def device(self):
        real = plain.__get__(self)
        return cuda if real.type == "cpu" else real

    torch.Tensor.device = property(device)
    torch.Tensor.is_cuda = property(lambda self: True)
    torch.Tensor.is_cpu = property(lambda self: False)
    torch.Tensor.get_device = lambda self: 0
    torch.Tensor.cuda = lambda self, device=None, non_blocking=False, memory_format=None: self
    torch.Tensor.pin_memory = lambda self, *_: self
    torch.Tensor.is_pinned = lambda self, *_: False
    torch.Tensor.record_stream = lambda self, stream: None
    torch.nn.Module.cuda = lambda self, device=None: self
    del kind


def _map_mode(torch):
    from torch.overrides import TorchFunctionMode

    takes_device = {torch.Tensor.to}

    class HostMode(TorchFunctionMode):
        """device="cuda" means the host."""

        def __torch_function__(self, function, kinds, arguments=(), keywords=None):
            keywords = keywords or {}
            if function is torch.device:
                return function(*arguments, **keywords)
            if "device" in keywords:
                keywords = {**keywords, "device": _to_host(torch, keywords["device"])}
            if function in takes_device or any(isinstance(each, torch.device) for each in arguments):
                arguments = tuple(_to_host(torch, each) for each in arguments)
            if keywords.get("pin_memory"):
                keywords = {**keywords, "pin_memory": False}
            return function(*arguments, **keywords)

    mode = HostMode()
    mode.__enter__()
    torch._ditron_mode = mode  # as long as the process
    load = torch.load
    torch.load = lambda file, map_location=None, **keywords: load(file, map_location=_to_host(torch, map_location) or "cpu", **keywords)
    set_default = torch.set_default_device
    torch.set_default_device = lambda device: set_default(_to_host(torch, device))
    generator = torch.Generator

    class Generator(generator):
        def __new__(cls, device="cpu"):
            return generator.__new__(cls, device=_to_host(torch, device))

        def __init__(self, device="cpu"):
            pass

    torch.Generator = Generator
    autocast = torch.amp.autocast_mode.autocast
    plain_init = autocast.__init__

    def autocast_init(self, device_type, *arguments, **keywords):
        plain_init(self, _to_host(torch, device_type), *arguments, **keywords)

    autocast.__init__ = autocast_init
    for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype", "is_autocast_available"):
        function = getattr(torch, name, None)
        if function is not None:
            setattr(torch, name, lambda *arguments, function=function: function(*[_to_host(torch, each) for each in arguments]))


class Stream:
    """A stream of the simulated GPU: work on it is done when it has been enqueued."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_, **__):
        pass

    def synchronize(self):
        pass

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def query(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __eq__(self, other):
        return isinstance(other, Stream)

    def __hash__(self):
        return 0


class Event:
    """An event; elapsed_time is this process's clock."""

    def __init__(self, *_, **__):
        self.time = 0.0

    def record(self, stream=None):
        self.time = time.perf_counter()

    def elapsed_time(self, end):
        return (end.time - self.time) * 1000

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass

    def query(self):
        return True


def _properties(*_):
    name, multiprocessors, warp, shared, threads = _device.device(None).properties
    major, minor = divmod(_device.device(None).capability, 10)
    return types.SimpleNamespace(name=NAME, major=major, minor=minor, total_memory=80 * 2**30, multi_processor_count=multiprocessors, warp_size=warp,
                                 shared_memory_per_block=49152, shared_memory_per_block_optin=shared, shared_memory_per_multiprocessor=shared + 1024,
                                 max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, L2_cache_size=50 * 2**20, is_integrated=False,
                                 gcnArchName="", max_threads_per_block=threads)


def _map_module(torch):
    cuda = torch.cuda
    nothing = lambda *_, **__: None
    zero = lambda *_, **__: 0
    answers = dict(
        is_available=lambda: True, device_count=lambda: 1, current_device=lambda: 0, get_device_name=lambda *_: NAME, is_initialized=lambda: True,
        get_device_capability=lambda *_: divmod(_device.device(None).capability, 10), get_device_properties=_properties, is_bf16_supported=lambda *_, **__: True,
        synchronize=nothing, set_device=nothing, init=nothing, _lazy_init=nothing, empty_cache=nothing, reset_peak_memory_stats=nothing,
        reset_max_memory_allocated=nothing, ipc_collect=nothing, memory_allocated=zero, max_memory_allocated=zero, memory_reserved=zero,
        max_memory_reserved=zero, utilization=zero, clock_rate=zero, mem_get_info=lambda *_: (64 * 2**30, 80 * 2**30), memory_stats=lambda *_: {},
        current_stream=lambda *_: Stream(), default_stream=lambda *_: Stream(), Stream=Stream, Event=Event, ExternalStream=Stream,
        stream=lambda *_: contextlib.nullcontext(), device=_DeviceContext, device_of=_DeviceContext, manual_seed=nothing,
        manual_seed_all=nothing, seed=nothing, seed_all=nothing, initial_seed=zero, get_rng_state=lambda *_: torch.get_rng_state(),
        set_rng_state=lambda state, *_: torch.set_rng_state(state), get_arch_list=lambda: ["sm_90"], is_current_stream_capturing=lambda: False,
        can_device_access_peer=lambda *_: False, StreamContext=_DeviceContext)
    for name, value in answers.items():
        # TorchDynamo tells functions apart by identity.
        setattr(cuda, name, value if isinstance(value, type) else _own(value))
    torch._C._cuda_getCurrentRawStream = zero
    cuda.graph = cuda.CUDAGraph = CUDAGraph
    nvtx = types.SimpleNamespace(range_push=nothing, range_pop=nothing, mark=nothing, range=lambda *_, **__: contextlib.nullcontext())
    cuda.nvtx = nvtx
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in dict(is_available=lambda: True, device_count=lambda: 1, current_accelerator=lambda *_, **__: torch.device("cuda"),
                                synchronize=nothing, current_device_index=lambda: 0, set_device_index=nothing, empty_cache=nothing,
                                current_stream=lambda *_: Stream()).items():
            setattr(accelerator, name, _own(value))


def _own(function):
    """The same function as an object of its own."""
    return lambda *arguments, **keywords: function(*arguments, **keywords)


class _DeviceContext:
    """with torch.cuda.device(0): there is one."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class CUDAGraph:
    """CUDA graphs are refused where one is made."""

    def __init__(self, *_, **__):
        raise NotImplementedError("CUDA graphs: not on the simulated GPU")
