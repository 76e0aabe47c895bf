"""From the arguments of a call to the signature that they select, "*fp32:16, i32, constexpr BLOCK=64"."""
import inspect

from ._tensors import MockTensor, is_tensor, is_type, pointer_of
from ._values import BY_SIGNATURE, constexpr, dtype, pointer_dtype

_ALIGNMENT = 16


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
