"""@jit: Python functions as kernels, and what a launch does.

A launch binds the arguments to the parameters, writes the signature that they select ("*fp32:16, i32, constexpr BLOCK=64"), compiles the
variant for it unless it is there already, packs the values that are left for run time, and enqueues. Dispatcher in _dispatch.c
remembers what simple arguments led to and skips all of this.
"""
import functools
import inspect
import os
import sys
import types

from . import _capture, _device, _native
from ._compiled import CompiledKernel, grid_of
from ._errors import CompilationError, InvalidArgumentError
from ._specialise import KernelParam, Specialiser
from ._tensors import MockTensor, tell_native
from ._values import constexpr

# Options of a launch that change the code, and those of other compilers that have no meaning here.
_OPTIONS = ("num_warps", "num_stages", "debug", "launch_cooperative_grid")
_IGNORED = {"num_ctas", "maxnreg", "enable_fp_fusion", "launch_pdl", "cluster_dims", "ptx_version", "ptx_options", "ir_override", "num_buffers_warp_spec",
            "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer", "sanitize_overflow", "allow_fp8e4nv", "default_dot_input_precision",
            "allowed_dot_input_precisions", "max_num_imprecise_acc_default", "supported_fp8_dtypes", "extern_libs", "backend_name", "arch",
            "enable_warp_specialization", "instrumentation_mode", "early_config_prune", "minRegAutoWS", "maxRegAutoWS", "pingpongAutoWS", "device", "device_type", "stream"}


class KernelInterface:
    """What a grid can be given to."""

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid, warmup=False)


_MISSING = object()


def _options(keywords, parameters):
    """Takes the launch options out of the keywords; one that is a parameter's name, too, stays."""
    taken = {}
    for name in _OPTIONS:
        if name in keywords:
            taken[name] = keywords[name] if name in parameters else keywords.pop(name)
    for name in [name for name in keywords if name in _IGNORED and name not in parameters]:
        value = keywords.pop(name)
        if name == "num_ctas" and value not in (None, 1):
            raise InvalidArgumentError(f"num_ctas={value}: clusters of blocks are not supported, only num_ctas=1")
    return taken


class JITCallable:
    """A function that kernels may call: it can be captured."""

    __triton_jit__ = True

    def __init__(self, fn):
        self.fn = fn = fn.fn if isinstance(fn, JITCallable) else fn
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__
        self.__globals__ = fn.__globals__
        self.signature = inspect.signature(fn)
        self._module = None

    decorator = "@__ditron_triton.jit"

    def ditron_module(self):
        """The text that stands for this function."""
        if self._module is None:
            known = _capture._modules.get(id(self))
            if known is not None:  # being made: it calls itself
                return known[0]
            try:
                self._module = _capture.function_module(self, self.fn, self.decorator)
            except _capture.Unrepresentable as problem:
                raise CompilationError(str(problem)) from None
        return self._module

    @functools.cached_property
    def raw_src(self):
        return inspect.getsourcelines(self.fn)[0]

    @functools.cached_property
    def src(self):
        import textwrap
        text = textwrap.dedent("".join(self.raw_src))
        return text[text.index("def "):] if not text.startswith("def ") else text

    @property
    def starting_line_number(self):
        return inspect.getsourcelines(self.fn)[1]

    @property
    def cache_key(self):
        import hashlib
        module = self.ditron_module()
        return hashlib.sha256("\0".join([module.text, *[each.text for each in module.all()]]).encode()).hexdigest()

    def __hash__(self):
        return id(self)

    def __reduce__(self):
        """As a function of Python's: copies are the same object, and it is pickled by its name."""
        return self.__qualname__

    def parse(self):
        import ast
        return ast.parse(self.src)


class ConstexprFunction(JITCallable):
    """A function that runs while compiling; the host may call it, too."""

    decorator = "@__ditron_triton.constexpr_function"

    def __call__(self, *arguments, **keywords):
        plain = [each.value if isinstance(each, constexpr) else each for each in arguments]
        return self.fn(*plain, **{name: each.value if isinstance(each, constexpr) else each for name, each in keywords.items()})

    def __get__(self, owner, cls=None):
        return self if owner is None else types.MethodType(self, owner)


class JITFunction(JITCallable, KernelInterface):
    """A kernel, or a function that kernels call."""

    def __init__(self, fn, version=None, do_not_specialize=None, do_not_specialize_on_alignment=None, debug=None, noinline=None, repr=None,
                 launch_metadata=None):
        super().__init__(fn)
        self.version = version
        self.do_not_specialize = tuple(do_not_specialize or ())
        self.do_not_specialize_on_alignment = tuple(do_not_specialize_on_alignment or ())
        self.debug = debug
        self.noinline = noinline
        self.launch_metadata = launch_metadata
        self._repr = repr
        self.params = [KernelParam(number, each, {number, each.name} & set(self.do_not_specialize) != set(),
                                   {number, each.name} & set(self.do_not_specialize_on_alignment) != set())
                       for number, each in enumerate(self.signature.parameters.values())]
        self.arg_names = [each.name for each in self.params]
        self.constexprs = [each.num for each in self.params if each.is_constexpr]
        self.pre_run_hooks = []
        self.kernels = {}  # (context, text): Loaded
        self.variants = {}  # (context, signature, ...): CompiledKernel
        self.device_caches = {}
        self._dispatcher = _native.Dispatcher(self.run_slowly, tuple(self.arg_names), tuple(each.is_constexpr for each in self.params),
                                              tuple(each.default if each.has_default else _MISSING for each in self.params), _MISSING)

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid) if self.pre_run_hooks or _device.of_thread.placed else self._dispatcher[grid]

    @property
    def used_global_vals(self):
        return {}

    def repr(self, _=None):
        return self._repr(_) if self._repr else self.__name__

    def __repr__(self):
        return f"JITFunction({self.__module__}:{self.__qualname__})"

    def __call__(self, *arguments, **keywords):
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")

    def add_pre_run_hook(self, hook):
        self.pre_run_hooks.append(hook)

    def bind(self, arguments, keywords):
        """The value of every parameter, in order."""
        names = self.arg_names
        if len(arguments) > len(names):
            raise TypeError(f"{self.__name__}() takes {len(names)} positional arguments but {len(arguments)} were given ({', '.join(names)})")
        values = list(arguments)
        used = 0
        missing = []
        for param in self.params[:len(values)]:
            if param.name in keywords:
                raise TypeError(f"{self.__name__}() got multiple values for argument '{param.name}'")
        for param in self.params[len(values):]:
            if param.name in keywords:
                values.append(keywords[param.name])
                used += 1
            elif param.has_default:
                values.append(param.default)
            else:
                missing.append(param.name)
                values.append(None)
        if missing:
            raise TypeError(f"{self.__name__}() missing {len(missing)} required positional argument{'s' * (len(missing) > 1)}: "
                            f"{', '.join(repr(name) for name in missing)}")
        if used != len(keywords):
            unknown = [name for name in keywords if name not in names]
            raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised: kernel '{self.__name__}' has the parameters "
                           f"{', '.join(names)}, and launches take {', '.join(_OPTIONS)}")
        return values

    def specialise(self, values):
        call = Specialiser()
        call.arguments = values
        items = []
        for param, value in zip(self.params, values):
            text = call.item(param.name, value, param, param.is_constexpr)
            items.append(f"constexpr {param.name}={text[10:]}" if text.startswith("constexpr ") else f"{param.name}={text}")
        return ", ".join(items), call

    def kernel(self, context, bindings):
        """This kernel, loaded into a context."""
        module = self.ditron_module()
        text, modules = module.text, module.all()
        if bindings:
            extended = _capture.Module(module.name, module.path)
            extended.imports = list(module.imports)
            writer = _capture.Writer(extended)
            writer.statements = list(module.writer.statements)
            writer.aliases = dict(module.writer.aliases)
            for number, value in enumerate(bindings):
                try:
                    expression = writer.expression(value)
                except _capture.Unrepresentable:
                    raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} cannot be a compile-time argument of kernel "
                                    f"'{self.__name__}': {value!r}") from None
                writer.statements.append(f"__ditron_argument_{number} = {expression}")
            statements = "; ".join(writer.statements)
            text = statements + text[len(module.writer.first_line()):]
            modules = extended.all()
        found = self.kernels.get((context.key, text))
        if found is None:
            handle = _native.kernel_load(context.handle, _capture.display_path(module.path), text, self.__name__,
                                         [(each.name, _capture.display_path(each.path), each.text) for each in modules])
            found = _device.Loaded(context, self.kernels, (context.key, text), _native.kernel_destroy, handle)
        return found

    def variant(self, device, signature, options, bindings):
        """The compiled kernel for a signature."""
        debug = options.get("debug")
        if debug is None:
            debug = self.debug if self.debug is not None else os.environ.get("TRITON_DEBUG", "0") == "1"
        numbers = (int(options.get("num_warps") or 0), int(options.get("num_stages") or 0), int(bool(debug)),
                   int(bool(options.get("launch_cooperative_grid"))))
        return self.compiled_variant(device, signature, numbers, bindings)

    def compiled_variant(self, device, signature, numbers, bindings):
        context = device.context
        key = (context.key, signature, numbers, tuple(map(_identity, bindings)))
        found = self.variants.get(key)
        if found is None:
            with device.compiling:
                found = self.variants.get(key)
                if found is None:
                    handle = _native.kernel_compile(self.kernel(context, bindings).handle, *numbers, signature)
                    found = CompiledKernel(self, device, key, handle, signature, numbers, bindings)
        return found

    def run(self, *arguments, grid, warmup=False, **keywords):
        if warmup or self.pre_run_hooks or _device.of_thread.placed:
            return self.run_slowly(grid, arguments, keywords, warmup)
        return self._dispatcher.launch(grid, arguments, keywords)

    def run_slowly(self, grid, arguments, keywords, warmup=False):
        """A launch in Python, with everything checked. The Dispatcher calls it for what it does not know yet."""
        placed = _device.of_thread.placed
        if placed is not None and placed.is_elsewhere:
            return placed.at_home(self.run_slowly, grid, arguments, keywords, warmup)
        keywords = dict(keywords or ())
        tell_native(_device)
        options = _options(keywords, self.arg_names)
        values = self.bind(arguments, keywords)
        for hook in self.pre_run_hooks:
            hook(*arguments, **keywords)
        signature, call = self.specialise(values)
        device = placed or (_device.current() if call.device == "unset" else _device.device(call.device))
        compiled = self.variant(device, signature, options, call.bindings)
        if warmup:
            return compiled
        compiled.launch(grid_of(grid, dict(zip(self.arg_names, values))), call, device)
        return compiled

    def warmup(self, *arguments, grid, **keywords):
        return self.run(*[MockTensor.wrap_dtype(each) for each in arguments], grid=grid, warmup=True, **keywords)

    def preload(self, *_):
        return None


def _identity(value):
    try:
        hash(value)
        return type(value), value
    except TypeError:
        return type(value), repr(value)


def jit(fn=None, *, version=None, repr=None, launch_metadata=None, do_not_specialize=None, do_not_specialize_on_alignment=None, debug=None,
        noinline=None):
    """Decorator: the function is a kernel, or called by kernels; its body is the kernel language."""

    def decorate(function):
        if not callable(function):
            raise TypeError(f"@jit is for functions, not {type(function).__name__}")
        return JITFunction(function, version, do_not_specialize, do_not_specialize_on_alignment, debug, noinline, repr, launch_metadata)

    return decorate if fn is None else decorate(fn)


def constexpr_function(fn):
    """Decorator: the function runs while compiling, on compile-time values; the host may call it as it is."""
    return ConstexprFunction(fn)


def aggregate(cls):
    """Decorator: instances of the class are values in kernels, with annotated fields and methods."""
    cls.__triton_aggregate__ = True
    frame = sys._getframe(1)
    cls.__ditron_scope__ = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
    return cls


jit.__ditron_name__ = "triton.jit"
constexpr_function.__ditron_name__ = "triton.constexpr_function"
aggregate.__ditron_name__ = "triton.language.core._aggregate"
