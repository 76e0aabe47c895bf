"""The module tree `triton`, made of Ditron's parts, as far as programs look at it."""
import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import types

import ditron
from ditron import _device, _errors, _hooks, _jit, _table, _tensors, _tuning, descriptors

from ditron._values import DTYPES

from . import profiler, testing

VERSION = "3.6.0"  # of the language that Ditron follows


class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"module '{self.__name__}' has no '{name}': Ditron does not have it (ditron.as_triton stands for Triton {VERSION})")


def _adopt(name, module):
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    module.__file__ = getattr(module, "__file__", None) or __file__
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


def _module(name, **members):
    module = Module(name)
    module.__dict__.update(members)
    return _adopt(name, module)


class GPUTarget:
    """What a target is: backend "cuda", compute capability as a number, threads of a warp."""

    def __init__(self, backend, arch, warp_size):
        self.backend, self.arch, self.warp_size = backend, arch, warp_size

    def __eq__(self, other):
        return isinstance(other, GPUTarget) and vars(self) == vars(other)

    def __hash__(self):
        return hash(tuple(vars(self).values()))

    def __repr__(self):
        return f"GPUTarget(backend={self.backend!r}, arch={self.arch!r}, warp_size={self.warp_size!r})"


class _Utilities:
    @staticmethod
    def get_device_properties(index=0):
        _, multiprocessors, warp, shared, _ = _device.current().properties
        return {"max_shared_mem": shared, "max_num_regs": 65536, "multiprocessor_count": multiprocessors, "warpSize": warp,
                "sm_clock_rate": 1500000, "mem_clock_rate": 1500000, "mem_bus_width": 5120}


class _Driver:
    """triton.runtime.driver.active"""

    utils = _Utilities()

    def get_current_device(self):
        return _device.current_index() or 0

    def set_current_device(self, index):
        import torch
        torch.cuda.set_device(index)

    def get_current_stream(self, index=None):
        index = _device.current_index()
        if index is None:
            return 0
        import torch
        return torch.cuda.current_stream(index).cuda_stream

    def get_current_target(self):
        return GPUTarget("cuda", _device.current().capability, 32)

    def get_device_capability(self, index=0):
        return divmod(_device.current().capability, 10)

    def get_active_torch_device(self):
        import torch
        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self):
        import torch
        return torch.cuda

    def get_benchmarker(self):
        return testing.do_bench

    def get_empty_cache_for_benchmark(self):
        import torch
        return torch.empty(1024, dtype=torch.int, device="cuda")

    def clear_cache(self, cache):
        cache.zero_()

    @staticmethod
    def is_active():
        return True

    def map_python_to_cpp_type(self, kind):
        return {"i1": "int8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "fp32": "double"}.get(kind, "void*")


class _DriverHolder(Module):
    """triton.runtime.driver: a module and an object in one, as in Triton."""

    active = default = _Driver()

    def set_active(self, driver):
        raise NotImplementedError("Ditron has no drivers of others")

    def reset_active(self):
        pass


class _Knobs:
    """A group of settings; those of Triton's that programs read, with the values that hold here."""

    def __init__(self, **values):
        self.__dict__.update(values)

    @contextlib.contextmanager
    def scope(self):
        """What is set inside holds until its end."""
        before = {name: getattr(self, name) for name in self._names()}
        try:
            yield
        finally:
            for name in self._names() - before.keys():
                delattr(self, name)
            for name, value in before.items():
                setattr(self, name, value)

    def _names(self):
        return set(self.__dict__)


def _launch_hook(place):
    return property(lambda self: _hooks.of_launches.given[place], lambda self, hook: _hooks.of_launches.set(place, hook))


class _RuntimeKnobs(_Knobs):
    """With hooks, which hold from the next launch on."""

    launch_enter_hook, launch_exit_hook = _launch_hook(0), _launch_hook(1)

    def _names(self):
        return {*self.__dict__, "launch_enter_hook", "launch_exit_hook"}


class OutOfResources(_errors.ResourceExhaustedError):
    """A kernel needs more of something than a block can have."""

    def __init__(self, required=None, limit=None, name=None):
        super().__init__(f"out of resource: {name}, Required: {required}, Hardware limit: {limit}" if limit is not None else str(required))
        self.required, self.limit, self.name = required, limit, name


class CompileTimeAssertionFailure(_errors.CompilationError):
    """tl.static_assert failed. Ditron raises CompilationError."""


class InterpretedFunction:
    """There for isinstance; Ditron has no interpreter."""


def _unavailable(name):
    def function(*arguments, **keywords):
        raise NotImplementedError(f"{name}: Ditron does not have it")
    function.__name__ = name.rpartition(".")[2]
    return function


def _must_use_result(fn=None, message=None):
    return fn if callable(fn) else lambda function: function


_allocator = [None]


def _set_allocator(function):
    """Kept; Ditron allocates what descriptors made in kernels need by itself."""
    _allocator[0] = function


def install():
    """Puts `triton` and its submodules into sys.modules."""
    if getattr(sys.modules.get("triton"), "__ditron__", False):
        return
    if "triton" in sys.modules:
        for name in [name for name in sys.modules if name == "triton" or name.startswith("triton.")]:
            del sys.modules[name]
    _install_root()
    for name, module in _table.all_modules().items():
        _adopt(name, module)
    if importlib.util.find_spec("triton_dist") is None:  # its host side is not Ditron's: a package that is installed keeps its name
        for name, module in _table.all_modules("triton_dist").items():
            _adopt(name, module)
    _install_runtime()
    _install_rest()


def _install_root():
    triton = _module("triton", __ditron__=True, __ditron_name__="triton", __version__=VERSION, jit=ditron.jit, autotune=ditron.autotune,
                     heuristics=ditron.heuristics, Config=ditron.Config, cdiv=ditron.cdiv, next_power_of_2=ditron.next_power_of_2,
                     constexpr_function=ditron.constexpr_function, must_use_result=_must_use_result, reinterpret=ditron.reinterpret,
                     TensorWrapper=ditron.TensorWrapper, MockTensor=ditron.MockTensor, JITFunction=ditron.JITFunction,
                     KernelInterface=ditron.KernelInterface, Autotuner=ditron.Autotuner, CompilationError=ditron.CompilationError,
                     TritonError=ditron.Error, OutOfResources=OutOfResources, InterpreterError=_errors.InterpreterError, aggregate=ditron.aggregate,
                     set_allocator=_set_allocator, compile=_unavailable("triton.compile"))
    triton.__doc__ = ditron.__doc__
    core = _table.module("triton.language.core")
    core._aggregate = ditron.aggregate
    language = _table.module("triton.language")
    language.constexpr_function = core.constexpr_function = ditron.constexpr_function
    triton.aggregate_replace = language.aggregate_replace
    core.base_value, core.base_type = type("base_value", (), {}), type("base_type", (), {})
    language.base_value, language.base_type = core.base_value, core.base_type
    core.builtin = lambda function: function
    for module in (core, language):
        for name, value in DTYPES.items():  # those of other vendors, too: programs name them, kernels that use one do not compile
            module.__dict__.setdefault(name, value)
        module.extern = _unavailable("tl.extern")
    return triton


def _install_runtime():
    driver = _DriverHolder("triton.runtime.driver")
    errors = dict(OutOfResources=OutOfResources, InterpreterError=_errors.InterpreterError, PTXASError=type("PTXASError", (_errors.InternalError,), {}),
                  TritonError=ditron.Error, AutotunerError=ditron.Error)
    tuning = dict(Autotuner=ditron.Autotuner, Heuristics=ditron.Heuristics, Config=ditron.Config, autotune=ditron.autotune,
                  heuristics=ditron.heuristics, OutOfResources=OutOfResources, PTXASError=errors["PTXASError"])
    jit = dict(JITFunction=ditron.JITFunction, KernelInterface=ditron.KernelInterface, MockTensor=ditron.MockTensor, KernelParam=_jit.KernelParam,
               TensorWrapper=ditron.TensorWrapper, reinterpret=ditron.reinterpret, jit=ditron.jit, JITCallable=_jit.JITCallable,
               ConstexprFunction=_jit.ConstexprFunction, constexpr_function=ditron.constexpr_function)
    _module("triton.runtime", Autotuner=ditron.Autotuner, Config=ditron.Config, Heuristics=ditron.Heuristics, JITFunction=ditron.JITFunction,
            KernelInterface=ditron.KernelInterface, MockTensor=ditron.MockTensor, TensorWrapper=ditron.TensorWrapper, autotune=ditron.autotune,
            heuristics=ditron.heuristics, reinterpret=ditron.reinterpret, OutOfResources=OutOfResources, InterpreterError=_errors.InterpreterError)
    _adopt("triton.runtime.driver", driver)
    _module("triton.runtime.errors", **errors)
    _module("triton.runtime.autotuner", **tuning)
    _module("triton.runtime.jit", **jit)
    _module("triton.runtime.interpreter", InterpretedFunction=InterpretedFunction, GridExecutor=InterpretedFunction)
    _module("triton.runtime.cache", default_cache_dir=lambda: os.path.expanduser("~/.triton/cache"))
    _module("triton.runtime._allocation", set_allocator=_set_allocator)


def _install_rest():
    errors = dict(CompilationError=ditron.CompilationError, CompileTimeAssertionFailure=ditron.CompilationError,
                  UnsupportedLanguageConstruct=ditron.CompilationError)
    _module("triton.compiler", CompiledKernel=ditron.CompiledKernel, LazyDict=_hooks.LazyDict, CompilationError=ditron.CompilationError,
            ASTSource=type("ASTSource", (), {"__init__": _unavailable("triton.compiler.ASTSource")}), compile=_unavailable("triton.compiler.compile"))
    _module("triton.compiler.errors", **errors)
    _module("triton.compiler.compiler", CompiledKernel=ditron.CompiledKernel, LazyDict=_hooks.LazyDict, triton_key=lambda: "ditron " + ditron._version_text(),
            ASTSource=sys.modules["triton.compiler"].ASTSource, compile=_unavailable("triton.compiler.compile"))
    _module("triton.compiler.code_generator", CompilationError=ditron.CompilationError)
    _module("triton.errors", TritonError=ditron.Error, CompilationError=ditron.CompilationError)
    _adopt("triton.testing", testing)
    sys.modules["triton"].testing = testing
    _module("triton.profiler", start=profiler.start, activate=profiler.activate, deactivate=profiler.deactivate, finalize=profiler.finalize,
            scope=profiler.scope)
    _module("triton.profiler.viewer", parse=profiler.parse, print_tree=profiler.print_tree)
    _module("triton.tools")
    _module("triton.tools.tensor_descriptor", TensorDescriptor=descriptors.TensorDescriptor)
    _module("triton.backends", backends={"nvidia": types.SimpleNamespace(compiler=None, driver=_Driver)})
    _module("triton.backends.compiler", GPUTarget=GPUTarget, BaseBackend=type("BaseBackend", (), {}))
    _module("triton.backends.nvidia")
    _module("triton.backends.nvidia.driver")
    _module("triton.knobs", build=_Knobs(), autotuning=_Knobs(print=False, cache=False, warmup=25, rep=100), cache=_Knobs(dir=os.path.expanduser("~/.triton/cache")),
            compilation=_Knobs(override=False, always_compile=False, debug=False, use_ir_loc=None, enable_asan=False, listener=None,
                               instrumentation_mode="", store_binary_only=False, disable_line_info=False),
            HookChain=_hooks.HookChain,
            runtime=_RuntimeKnobs(interpret=False, override_arch=os.environ.get("TRITON_OVERRIDE_ARCH") or None, debug=False, jit_cache_hook=None,
                                  jit_post_compile_hook=None, kernel_load_start_hook=None, kernel_load_end_hook=None, sanitize_overflow=True,
                                  add_stages_inspection_hook=None),
            language=_Knobs(fp32_default=None, default_fp_fusion=True), nvidia=_Knobs(ptxas=types.SimpleNamespace(path="ptxas", version="12.8"), disable_ptxas_opt=False,
                                                                                  mock_ptx_version=None, dump_nvdisasm=False),
            amd=_Knobs(use_buffer_ops=False, use_block_pingpong=None), proton=_Knobs(disable=True))
    from . import _internal_testing
    _adopt("triton._internal_testing", _internal_testing)
    _module("triton._utils", TRITON_MAX_TENSOR_NUMEL=1048576)
