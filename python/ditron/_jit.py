"""@jit: Python functions as kernels, and what a launch does.

A launch binds the arguments to the parameters, writes the signature that they select ("*fp32:16, i32, constexpr BLOCK=64"), compiles the
variant for it unless it is there already, packs the values that are left for run time, and enqueues. Dispatcher in _dispatch.c
remembers what simple arguments led to and skips all of this.
"""
import functools
import inspect
import os
import struct
import sys
import types
import weakref

from . import _capture, _device, _native
from ._errors import CompilationError, InvalidArgumentError, UnsupportedError
from ._tensors import MockTensor, extent, is_tensor, is_type, pointer_of, tell_native
from ._values import BY_SIGNATURE, constexpr, dtype, pointer_dtype, tensor_stub

_PACK = {"i1": "?7x", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q", "u8": "B7x", "u16": "H6x", "u32": "I4x", "u64": "Q", "fp16": "e6x",
         "fp32": "f4x", "fp64": "d"}
_ALIGNMENT = 16
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)

# Options of a launch that change the code, and those of other compilers that have no meaning here.
_OPTIONS = ("num_warps", "num_stages", "debug", "launch_cooperative_grid")
_IGNORED = {"num_ctas", "maxnreg", "enable_fp_fusion", "launch_pdl", "cluster_dims", "ptx_version", "ptx_options", "ir_override", "num_buffers_warp_spec",
            "num_consumer_groups", "reg_dec_producer", "reg_inc_consumer", "sanitize_overflow", "allow_fp8e4nv", "default_dot_input_precision",
            "allowed_dot_input_precisions", "max_num_imprecise_acc_default", "supported_fp8_dtypes", "extern_libs", "backend_name", "arch",
            "enable_warp_specialization", "instrumentation_mode", "early_config_prune", "minRegAutoWS", "maxRegAutoWS", "pingpongAutoWS", "device", "device_type", "stream"}


class KernelParam:
    """One parameter as the function declares it."""

    def __init__(self, number, parameter, do_not_specialize, do_not_specialize_on_alignment):
        self.num = number
        self.name = parameter.name
        self._parameter = parameter
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment
        note = parameter.annotation
        if note is inspect.Parameter.empty:
            note = ""
        self.annotation = note if isinstance(note, str) else getattr(note, "__name__", str(note))
        self.is_constexpr = note is constexpr or "constexpr" in self.annotation
        self.is_const = "const" in self.annotation and not self.is_constexpr
        self.forced = None if self.is_constexpr else _forced_type(note)

    @property
    def annotation_type(self):
        return self.forced or ""

    @property
    def default(self):
        return self._parameter.default

    @property
    def has_default(self):
        return self._parameter.default is not inspect.Parameter.empty


def _forced_type(annotation):
    """The type that an annotation such as tl.int64 or "*fp16" forces; None for others (int, torch.Tensor)."""
    if isinstance(annotation, dtype):
        return annotation.signature
    if not isinstance(annotation, str):
        return None
    text = annotation.strip().removeprefix("tl.").removeprefix("triton.language.")
    if text.startswith("*"):
        inner = _forced_type(text[1:].removeprefix("k"))
        return f"*{inner}" if inner else None
    if text in BY_SIGNATURE:
        return text
    names = {repr(each).rpartition(".")[2]: each.signature for each in BY_SIGNATURE.values() if not isinstance(each, pointer_dtype)}
    return names.get(text)


def _literal(value):
    """A compile-time value as signatures write it; None if only Python text can say it."""
    if value is None or type(value) in (bool, int):
        return repr(value)
    if type(value) is float:
        return repr(value)
    if type(value) is str:
        if all(c.isprintable() or c in "\n\t" for c in value):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
        return None
    if isinstance(value, dtype) and value.number is not None and not isinstance(value, pointer_dtype):
        return value.signature
    return None


class Specialiser:
    """Writes the signature of one call. `values` are the run-time values by the names of the compiled kernel's parameters."""

    def __init__(self):
        self.values = {}
        self.owners = []
        self.bindings = []  # values that the kernel's text has to bind
        self.device = "unset"
        self.uses_descriptors = False

    def item(self, path, value, param, is_constexpr=False):
        """What stands in the signature for a value."""
        if isinstance(value, constexpr):
            value, is_constexpr = value.value, True
        if is_constexpr:
            return self.compile_time(value)
        if value is None or isinstance(value, (str, dtype)):
            return self.compile_time(value)
        if isinstance(value, bool):
            return self.scalar(path, value, param.forced or "i1")
        if isinstance(value, int):
            return self.integer(path, value, param)
        if isinstance(value, float):
            return self.scalar(path, value, param.forced or "fp32")
        if isinstance(value, tuple):
            return self.sequence(path, value, param)
        if is_type(value):
            value = MockTensor(value)
        if hasattr(value, "block_shape"):
            return self.descriptor(path, value)
        if is_tensor(value):
            return self.pointer(path, pointer_of(value), param)
        if callable(value) and not hasattr(value, "__index__"):
            return self.compile_time(value)
        if hasattr(value, "__index__") and not isinstance(value, list):
            return self.integer(path, value.__index__(), param)
        if hasattr(value, "dtype") and hasattr(value, "item"):  # a scalar of NumPy
            return self.item(path, value.item(), param)
        return self.other(path, value, param)

    def other(self, path, value, param):
        fields = getattr(type(value), "__triton_aggregate__", None)
        if fields:
            return self.compile_time(value)
        if isinstance(value, list):
            return self.sequence(path, tuple(value), param)
        raise TypeError(f"argument '{path}' is a {type(value).__module__}.{type(value).__qualname__}, which kernels cannot take: tensors, numbers, "
                        "None, strings, dtypes, tuples of these and tensor descriptors can be given")

    def compile_time(self, value):
        text = _literal(value)
        if text is None:
            self.bindings.append(value)
            text = f"@__ditron_argument_{len(self.bindings) - 1}"
        return f"constexpr {text}"

    def scalar(self, path, value, kind):
        self.values[path] = value
        return kind

    def integer(self, path, value, param):
        kind = param.forced
        if kind in ("fp16", "bf16", "fp32", "fp64"):
            return self.scalar(path, float(value), kind)
        if kind is None and value == 1 and not param.do_not_specialize:
            return "constexpr 1"
        if kind is None:
            kind = "i32" if -2**31 <= value < 2**31 else "i64" if -2**63 <= value < 2**63 else "u64"
            if not -2**63 <= value < 2**64:
                raise OverflowError(f"argument '{path}' is {value}, which does not fit into 64 bits")
        self.values[path] = value
        aligned = value % _ALIGNMENT == 0 and not (param.do_not_specialize or param.do_not_specialize_on_alignment) and kind != "i1"
        return f"{kind}:{_ALIGNMENT}" if aligned else kind

    def pointer(self, path, pointer, param):
        self.values[path] = pointer.address
        self.owners.append(pointer.owner)
        if not isinstance(pointer.owner, MockTensor):
            self.place(path, pointer.device)
        aligned = pointer.address % _ALIGNMENT == 0 and not (param.do_not_specialize or param.do_not_specialize_on_alignment)
        kind = f"*{pointer.type}"
        if param.forced and param.forced != kind:
            raise TypeError(f"parameter '{path}' is annotated {param.forced}, given a tensor of {pointer.type}")
        return f"{kind}:{_ALIGNMENT}" if aligned else kind

    def place(self, path, device):
        if self.device == "unset":
            self.device = device
        elif self.device != device:
            words = ["the host" if where is None else f"GPU {where}" for where in (device, self.device)]
            raise ValueError(f"Pointer argument '{path}' cannot be accessed from Triton: it lies on {words[0]}, others on {words[1]}")

    def sequence(self, path, value, param):
        names = getattr(value, "_fields", None)
        items = []
        for number, element in enumerate(value):
            name = names[number] if names else str(number)
            text = self.item(f"{path}.{name}", element, _Plain)
            items.append(f"{name}={text}" if names and not text.startswith("constexpr ") else
                         f"constexpr {name}={text.removeprefix('constexpr ')}" if names else text)
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def descriptor(self, path, value):
        """A TensorDescriptor of the host: base, sizes and strides are passed."""
        self.uses_descriptors = True
        base = pointer_of(value.base)
        self.owners.append(base.owner)
        if not isinstance(base.owner, MockTensor):
            self.place(path, base.device)
        size = BY_SIGNATURE[base.type].itemsize
        shape = [int(each) for each in value.shape]
        strides = [int(each) for each in value.strides]
        self.values[path] = base.address
        for number, each in enumerate(shape):
            self.values[f"{path}.shape.{number}"] = each
        for number, each in enumerate(strides[:-1]):
            self.values[f"{path}.stride.{number}"] = each
        aligned = base.address % _ALIGNMENT == 0 and all(stride * size % _ALIGNMENT == 0 for stride in strides[:-1])
        fills_nan = getattr(value, "padding", "zero") == "nan"
        block = ",".join(str(int(each)) for each in value.block_shape)
        return (f"tensordesc<{base.type}[{block}]{',nan' if fills_nan else ''}>" +
                f":{_ALIGNMENT if aligned else 1}:{_ALIGNMENT if shape[-1] % _ALIGNMENT == 0 else 1}")


class _Plain:
    """The rules for elements of tuples."""

    forced = None
    do_not_specialize = False
    do_not_specialize_on_alignment = False


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


def _grid(grid, meta):
    """Three numbers of blocks."""
    if callable(grid):
        grid = grid(meta)
    if isinstance(grid, int):
        grid = (grid,)
    sizes = [int(getattr(size, "value", size)) for size in grid]
    if len(sizes) > 3 or not sizes:
        raise InvalidArgumentError(f"a grid has one to three dimensions, this one has {len(sizes)}: {tuple(sizes)}")
    for size, most in zip(sizes, _MOST_BLOCKS):
        if not 0 <= size <= most:
            raise InvalidArgumentError(f"grid {tuple(sizes)}: a dimension is from 0 to {_MOST_BLOCKS[0]} (x) or {_MOST_BLOCKS[1]} (y, z) blocks")
    return tuple(sizes + [1] * (3 - len(sizes)))


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
        self._kernels = {}  # (device, bindings): handle
        self._variants = {}
        self.device_caches = {}
        self._dispatcher = _native.Dispatcher(self.run_slowly, tuple(self.arg_names), tuple(each.is_constexpr for each in self.params),
                                              tuple(each.default if each.has_default else _MISSING for each in self.params), _MISSING)

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid) if self.pre_run_hooks or _device.placement[0] else self._dispatcher[grid]

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

    def kernel(self, device, bindings):
        """The library's handle of this kernel."""
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
        key = (device.key, text)
        handle = self._kernels.get(key)
        if handle is None:
            handle = _native.kernel_load(device.handle, _capture.display_path(module.path), text,
                                         self.__name__, [(each.name, _capture.display_path(each.path), each.text) for each in modules])
            self._kernels[key] = handle
            weakref.finalize(self, _native.kernel_destroy, handle)
        return handle

    def variant(self, device, signature, options, bindings):
        """The compiled kernel for a signature."""
        debug = options.get("debug")
        if debug is None:
            debug = self.debug if self.debug is not None else os.environ.get("TRITON_DEBUG", "0") == "1"
        numbers = (int(options.get("num_warps") or 0), int(options.get("num_stages") or 0), int(bool(debug)),
                   int(bool(options.get("launch_cooperative_grid"))))
        key = (device.key, signature, numbers, tuple(map(_identity, bindings)))
        found = self._variants.get(key)
        if found is None:
            kernel = self.kernel(device, bindings)
            handle = _native.kernel_compile(kernel, *numbers, signature)
            found = self._variants[key] = CompiledKernel(self, device, handle, signature, numbers, bindings)
        return found

    def run(self, *arguments, grid, warmup=False, **keywords):
        if warmup or self.pre_run_hooks or _device.placement[0]:
            return self.run_slowly(grid, arguments, keywords, warmup)
        return self._dispatcher.launch(grid, arguments, keywords)

    def run_slowly(self, grid, arguments, keywords, warmup=False):
        """A launch in Python, with everything checked. The Dispatcher calls it for what it does not know yet."""
        keywords = dict(keywords or ())
        tell_native(_device)
        options = _options(keywords, self.arg_names)
        values = self.bind(arguments, keywords)
        for hook in self.pre_run_hooks:
            hook(*arguments, **keywords)
        signature, call = self.specialise(values)
        device = _device.placement[0] or (_device.current() if call.device == "unset" else _device.device(call.device))
        compiled = self.variant(device, signature, options, call.bindings)
        if warmup:
            return compiled
        blocks = _grid(grid, dict(zip(self.arg_names, values)))
        if all(blocks):
            compiled.launch(blocks, call, device)
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


class CompiledKernel:
    """A variant: its texts and figures, and its launch."""

    class Metadata:
        def __init__(self, **fields):
            self.__dict__.update(fields)

        def _asdict(self):
            return dict(self.__dict__)

        def __repr__(self):
            return f"KernelMetadata({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __init__(self, function, device, handle, signature, numbers, bindings):
        self.function, self.device, self.handle, self.numbers = function, device, handle, numbers
        self._finalizer = weakref.finalize(self, _native.variant_destroy, handle)
        self.signature = signature
        self.name, target, warps, self.threads, shared, self.parameters = _native.variant_info(handle)
        self.metadata = CompiledKernel.Metadata(name=self.name, target=target, num_warps=warps, num_stages=numbers[1] or 3, num_ctas=1, shared=shared,
                                                debug=bool(numbers[2]), launch_cooperative_grid=bool(numbers[3]), hash=f"{abs(hash(signature)):x}")
        self.hash = self.metadata.hash
        self.src = function
        self.asm = _Texts(handle, device)
        self._format = struct.Struct("=" + "".join(_PACK.get("u64" if kind[0] == "*" else "u16" if kind == "bf16" else kind, "Q") for _, kind in self.parameters))

    @property
    def n_regs(self):
        return self.asm.figure("registers")

    @property
    def n_spills(self):
        return self.asm.figure("spills")

    n_max_threads = property(lambda self: self.device.properties[4])

    @property
    def kernel(self):
        return self.asm[self.device_code]

    @property
    def device_code(self):
        return "ptx" if self.device.index is not None else "asm"

    def launch(self, blocks, call, device=None):
        values = call.values
        if call.uses_descriptors and self.needs_tensor_maps(device or self.device):
            self.launch_checked(blocks, call, device or self.device)
            return
        self.launch_packed(blocks, self._format.pack(*[_bits(values[name], kind) for name, kind in self.parameters]), call.owners, device)

    @staticmethod
    def needs_tensor_maps(device):
        """On GPUs descriptors become tensor maps, which the library makes."""
        return device.index is not None

    def launch_checked(self, blocks, call, device):
        """Through the library's own binding of arguments."""
        arguments = [_native_argument(name, value) for name, value in zip(self.function.arg_names, call.arguments)]
        kernel = self.function.kernel(device, call.bindings)
        ranges = [extent(owner) for owner in call.owners] if device.index is None else ()
        device.run(lambda stream: _native.kernel_launch(kernel, stream, blocks, *self.numbers, arguments), ranges)

    def launch_packed(self, blocks, raw, owners, device=None):
        """With 8 bytes for each parameter."""
        device = device or self.device
        ranges = [extent(owner) for owner in owners] if device.index is None else ()
        device.run(lambda stream: _native.variant_launch(self.handle, stream, *blocks, raw), ranges)

    @property
    def plan(self):
        """What the Dispatcher needs to launch this: (handle, ((argument, code), ...)); None where only Python can."""
        numbers = {name: number for number, name in enumerate(self.function.arg_names)}
        if any(name not in numbers or kind in ("fp16", "bf16") for name, kind in self.parameters):
            return None
        codes = {"fp32": "f", "fp64": "d"}
        return self.handle, tuple((numbers[name], codes.get(kind, "i")) for name, kind in self.parameters)

    def _init_handles(self):
        """There for programs that call it: the code is loaded already."""

    def __getitem__(self, grid):
        def runner(*arguments, **keywords):
            keywords.pop("stream", None)
            signature, call = self.function.specialise(self.function.bind(arguments, keywords))
            self.launch(_grid(grid, {}), call)
        return runner


def _bits(value, kind):
    if kind == "bf16":
        bits = struct.unpack("=I", struct.pack("=f", value))[0]
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF if value == value else 0x7FC0
    if kind[0] in "iu":
        value = int(value)
        width = int(kind[1:])
        if kind == "i1":
            return bool(value)
        value &= (1 << width) - 1
        return value - (1 << width) if kind[0] == "i" and value >> (width - 1) else value
    if kind == "fp32":
        try:
            struct.pack("=f", value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value


def _native_argument(name, value):
    """(name, kind, dtype, value) as ditron.h has them."""
    value = value.value if isinstance(value, constexpr) else value
    if value is None:
        return name, 0, 0, None
    if isinstance(value, bool):
        return name, 1, 0, int(value)
    if isinstance(value, int):
        return name, 2 if value < 2**63 else 3, 0, value
    if isinstance(value, float):
        return name, 4, 0, value
    if isinstance(value, str):
        return name, 6, 0, value
    if isinstance(value, dtype) and value.number is not None:
        return name, 7, value.number, None
    if hasattr(value, "block_shape"):
        base = pointer_of(value.base)
        sizes = [tuple(int(each) for each in sizes) for sizes in (value.shape, value.strides, value.block_shape)]
        return name, 8, BY_SIGNATURE[base.type].number, (base.address, *sizes, int(getattr(value, "padding", "zero") == "nan"))
    if is_tensor(value):
        pointer = pointer_of(value)
        return name, 5, BY_SIGNATURE[pointer.type].number, pointer.address
    raise UnsupportedError(f"argument '{name}': a kernel that takes tensor descriptors on a GPU cannot take a {type(value).__name__} from Python yet")


class _Texts(dict):
    """The stages of a compilation as texts, fetched when asked for: source, ttir, ttgir, llir, ptx (or asm)."""

    STAGES = {"source": "source", "ttir": "tile", "ttgir": "layout", "llir": "llvm", "ptx": "asm", "asm": "asm", "tile": "tile", "layout": "layout",
              "llvm": "llvm", "sass": "asm", "cubin": "asm"}

    def __init__(self, handle, device):
        super().__init__()
        self.handle, self.device = handle, device

    def __missing__(self, stage):
        if stage not in self.STAGES:
            raise KeyError(f"'{stage}': there are {', '.join(self.STAGES)}")
        text = self[stage] = _native.variant_text(self.handle, self.STAGES[stage])
        return text

    def __contains__(self, stage):
        return stage in self.STAGES

    def keys(self):
        return [stage for stage in ("source", "ttir", "ttgir", "llir", "ptx")]

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def items(self):
        return [(stage, self[stage]) for stage in self.keys()]

    def values(self):
        return [self[stage] for stage in self.keys()]

    def get(self, stage, default=None):
        return self[stage] if stage in self else default

    def figure(self, _):
        """Registers and spills are the driver's to say; simulated GPUs have none."""
        return 0


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
