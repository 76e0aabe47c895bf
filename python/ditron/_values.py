"""Values of the kernel language that host code holds: dtypes and compile-time values."""
import operator


class constexpr:
    """A compile-time value. Arithmetic on it gives compile-time values, as in kernels."""

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value = value
        self.type = constexpr

    __ditron_name__ = "triton.language.constexpr"

    def __repr__(self):
        return f"constexpr[{self.value}]"

    def __index__(self):
        return operator.index(self.value)

    def __bool__(self):
        return bool(self.value)

    def __hash__(self):
        return hash((constexpr, self.value))

    def __call__(self, *arguments, **keywords):
        return self.value(*arguments, **keywords)

    def __getitem__(self, item):
        return self.value[_plain(item)]

    def __iter__(self):
        return iter(self.value)

    def __len__(self):
        return len(self.value)

    def logical_and(self, other):
        return constexpr(self.value and _plain(other))

    def logical_or(self, other):
        return constexpr(self.value or _plain(other))


def _plain(value):
    return value.value if isinstance(value, constexpr) else value


def _add_operators():
    def binary(function, reflected):
        if reflected:
            return lambda self, other: constexpr(function(_plain(other), self.value))
        return lambda self, other: constexpr(function(self.value, _plain(other)))

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
        function = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(constexpr, f"__{name}__", binary(function, False))
        setattr(constexpr, f"__r{name}__", binary(function, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(constexpr, f"__{name}__", binary(getattr(operator, name), False))
    for name in ("neg", "pos", "invert", "abs"):
        setattr(constexpr, f"__{name}__", lambda self, function=getattr(operator, name): constexpr(function(self.value)))


_hash = constexpr.__hash__
_add_operators()
constexpr.__hash__ = _hash

const = type("const", (), {"__ditron_name__": "triton.language.const"})

# name: (attribute in tl, bits, mantissa bits, exponent bias, number in ditron.h)
_KINDS = {
    "void": ("void", 0, 0, 0, None), "int1": ("int1", 1, 0, 0, 0), "int8": ("int8", 8, 0, 0, 1), "int16": ("int16", 16, 0, 0, 2),
    "int32": ("int32", 32, 0, 0, 3), "int64": ("int64", 64, 0, 0, 4), "uint8": ("uint8", 8, 0, 0, 5), "uint16": ("uint16", 16, 0, 0, 6),
    "uint32": ("uint32", 32, 0, 0, 7), "uint64": ("uint64", 64, 0, 0, 8), "fp8e5": ("float8e5", 8, 2, 15, 9),
    "fp8e4nv": ("float8e4nv", 8, 3, 7, 10), "fp8e4b15": ("float8e4b15", 8, 3, 15, None),
    "fp8e4b8": ("float8e4b8", 8, 3, 8, None), "fp8e5b16": ("float8e5b16", 8, 2, 16, None), "fp16": ("float16", 16, 10, 15, 11),
    "bf16": ("bfloat16", 16, 7, 127, 12), "fp32": ("float32", 32, 23, 127, 13), "fp64": ("float64", 64, 52, 1023, 14),
}
_SIGNATURE = {"int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
              "uint64": "u64"}


class dtype:
    """A scalar type of the kernel language."""

    class SIGNEDNESS:
        SIGNED, UNSIGNED = 0, 1

    class KIND:
        BOOLEAN, INTEGRAL, FLOATING = 0, 1, 2

    def __init__(self, name):
        name = getattr(name, "value", name)
        if name not in _KINDS:
            raise ValueError(f"'{name}' is no dtype of the kernel language; there are {', '.join(_KINDS)}")
        attribute, bits, mantissa, bias, self.number = _KINDS[name]
        self.name = name
        self.primitive_bitwidth = bits
        self.itemsize = bits // 8
        self.__ditron_name__ = f"triton.language.{attribute}"
        if self.is_floating():
            self.fp_mantissa_width, self.exponent_bias = mantissa, bias
        else:
            self.int_bitwidth = bits
            self.int_signedness = dtype.SIGNEDNESS.UNSIGNED if name[0] == "u" else dtype.SIGNEDNESS.SIGNED

    def is_floating(self):
        return self.name[0] in "fb"

    def is_standard_floating(self):
        return self.name in ("fp16", "bf16", "fp32", "fp64")

    def is_fp8(self):
        return self.name.startswith("fp8")

    def is_int(self):
        return "int" in self.name

    def is_int_signed(self):
        return self.name.startswith("int")

    def is_int_unsigned(self):
        return self.name.startswith("uint")

    def is_bool(self):
        return self.name == "int1"

    def is_void(self):
        return self.name == "void"

    def is_block(self):
        return False

    def is_ptr(self):
        return False

    def is_const(self):
        return False

    def kind(self):
        return dtype.KIND.BOOLEAN if self.is_bool() else dtype.KIND.INTEGRAL if self.is_int() else dtype.KIND.FLOATING

    def get_int_max_value(self):
        return 2 ** (self.int_bitwidth - (1 if self.is_int_signed() else 0)) - 1

    def get_int_min_value(self):
        return -(2 ** (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    @staticmethod
    def is_dtype(name):
        return name in _KINDS

    @property
    def scalar(self):
        return self

    @property
    def signature(self):
        """As signatures write it: "fp32", "i32"."""
        return _SIGNATURE.get(self.name, self.name)

    @property
    def cache_key_part(self):
        return self.name

    def codegen_name(self):
        return self.__ditron_name__.rpartition(".")[2]

    def __eq__(self, other):
        other = _plain(other)
        return isinstance(other, dtype) and type(other) is type(self) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"triton.language.{self.codegen_name()}"


for _name in ("fp8e5", "fp8e4nv", "fp8e4b15", "fp16", "bf16", "fp32", "fp64", "int1", "int8", "int16", "int32", "int64", "uint8", "uint16",
              "uint32", "uint64"):
    setattr(dtype, f"is_{_name}", lambda self, name=_name: self.name == name)


class pointer_dtype(dtype):
    """A pointer to a type."""

    def __init__(self, element_ty, address_space=1, const=False):
        self.element_ty = _plain(element_ty)
        self.const = bool(_plain(const))
        self.address_space = address_space
        self.name = f"pointer<{self.element_ty}>"
        self.primitive_bitwidth, self.itemsize = 64, 8

    def is_ptr(self):
        return True

    def is_const(self):
        return self.const

    def is_floating(self):
        return False

    def is_int(self):
        return False

    @property
    def signature(self):
        return f"*{'k' if self.const else ''}{self.element_ty.signature}"

    def codegen_name(self):
        return f"pointer_type({self.element_ty!r})"


class block_dtype(dtype):
    """The type of a block."""

    def __init__(self, element_ty, shape):
        self.element_ty = _plain(element_ty)
        self.shape = tuple(_plain(size) for size in shape)
        self.name = f"<{list(self.shape)}, {self.element_ty}>"
        self.primitive_bitwidth = self.element_ty.primitive_bitwidth

    def is_block(self):
        return True

    @property
    def scalar(self):
        return self.element_ty


def make_pointer_type(element_ty, address_space=1, const=False):
    return pointer_dtype(element_ty, address_space, const)


def make_block_type(element_ty, shape):
    return block_dtype(element_ty, shape)


make_pointer_type.__ditron_name__ = "triton.language.pointer_type"
make_block_type.__ditron_name__ = "triton.language.block_type"

DTYPES = {attribute: dtype(name) for name, (attribute, *_) in _KINDS.items()}
DTYPES["pi32_t"] = pointer_dtype(DTYPES["int32"])
BY_SIGNATURE = {each.signature: each for each in DTYPES.values()}


class tensor_stub:
    """tl.tensor: there for annotations; kernels make tensors."""

    __ditron_name__ = "triton.language.tensor"

    def __init__(self, *arguments, **keywords):
        raise ValueError("tl.tensor exists in kernels only")


class tuple_value(tuple):
    """tl.tuple: a tuple."""

    __ditron_name__ = "triton.language.tuple"


slice_type = slice
tensor_stub.__name__ = "tensor"
tuple_value.__name__ = "tuple"
