"""Element types: their names, how values become bits and back. Written from the formats' definitions, for NumPy.

Values of narrow floats (bf16, fp8) are kept as float32 arrays that hold exactly representable numbers.
"""
import numpy as np

INTS = ["i8", "i16", "i32", "i64"]
UINTS = ["u8", "u16", "u32", "u64"]
FLOATS = ["fp16", "bf16", "fp32", "fp64"]
ALL = INTS + UINTS + FLOATS

# name -> (NumPy type of the bits, NumPy type of the values)
NUMPY = {
    "i1": ("u1", "?"), "i8": ("i1", "i1"), "i16": ("i2", "i2"), "i32": ("i4", "i4"), "i64": ("i8", "i8"),
    "u8": ("u1", "u1"), "u16": ("u2", "u2"), "u32": ("u4", "u4"), "u64": ("u8", "u8"),
    "fp16": ("u2", "f2"), "bf16": ("u2", "f4"), "fp32": ("u4", "f4"), "fp64": ("u8", "f8"),
    "fp8e5": ("u1", "f4"), "fp8e4nv": ("u1", "f4"), "fp8e4b15": ("u1", "f4"),
}
# Triton's names of types in kernels.
TL = {"i1": "tl.int1", "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64", "u8": "tl.uint8",
      "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64", "fp16": "tl.float16", "bf16": "tl.bfloat16",
      "fp32": "tl.float32", "fp64": "tl.float64", "fp8e5": "tl.float8e5", "fp8e4nv": "tl.float8e4nv",
      "fp8e4b15": "tl.float8e4b15"}
# mantissa bits, smallest normal exponent, largest finite value, has infinities
NARROW = {"fp16": (10, -14, 65504.0, True), "bf16": (7, -126, float.fromhex("0x1.fep127"), True),
          "fp8e5": (2, -14, 57344.0, True), "fp8e4nv": (3, -6, 448.0, False), "fp32": (23, -126, float.fromhex("0x1.fffffep127"), True)}


def is_float(t):
    return t.startswith("fp") or t.startswith("bf")


def is_int(t):
    return not is_float(t)


def is_signed(t):
    return t.startswith("i") and t != "i1"


def bits_of(t):
    return 1 if t == "i1" else 64 if t.endswith("64") else 32 if t.endswith("32") else 16 if t.endswith("16") else 8


def size_of(t):
    return np.dtype(NUMPY[t][0]).itemsize


def round_to(t, values, mode="rtne", saturate=False):
    """Values (any float array) rounded to a narrow format, as float64. Overflow: infinity, or the largest value."""
    mantissa, least, largest, has_infinity = NARROW[t]
    v = np.asarray(values, dtype=np.float64)
    magnitude = np.abs(v)
    finite = np.isfinite(magnitude)
    _, exponent = np.frexp(np.where(finite & (magnitude > 0), magnitude, 1.0))
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, least) - mantissa)
    scaled = np.where(finite, magnitude, 0.0) / quantum
    result = (np.rint(scaled) if mode == "rtne" else np.trunc(scaled)) * quantum
    over = result > largest
    if saturate or not has_infinity or mode == "rtz":
        result = np.where(over, largest, result)
    else:
        result = np.where(over, np.inf, result)
    if saturate or not has_infinity:
        result = np.where(np.isinf(magnitude), largest, result)
    else:
        result = np.where(np.isinf(magnitude), np.inf, result)
    result = np.where(np.isnan(v), np.nan, result)
    return np.where(np.signbit(v), -result, result)


def _narrow_bits(t, rounded):
    mantissa, least, _, _ = NARROW[t]
    width = bits_of(t)
    bias = 1 - least
    magnitude = np.abs(rounded)
    finite = np.isfinite(magnitude)
    m = np.where(finite, magnitude, 0.0)
    fraction, exponent = np.frexp(np.where(m > 0, m, 1.0))
    e = np.maximum(exponent - 1, least)
    units = np.ldexp(m, mantissa - e).astype(np.int64)  # with the implicit bit where normal
    normal = units >= (1 << mantissa)
    bits = np.where(normal, ((e + bias) << mantissa) + units - (1 << mantissa), units)
    exponents = (1 << (width - 1 - mantissa)) - 1
    bits = np.where(np.isinf(magnitude), exponents << mantissa, bits)
    nan = 0x7F if t == "fp8e4nv" else (exponents << mantissa) | (1 << (mantissa - 1))
    bits = np.where(np.isnan(rounded), nan, bits)
    return bits | (np.signbit(rounded).astype(np.int64) << (width - 1))


def encode(t, values, mode="rtne", saturate=False):
    """Bits (an unsigned array) of values; floats are rounded, integers wrap."""
    kind = NUMPY[t][0]
    values = np.asarray(values)
    if t == "i1":
        return (values != 0).astype("u1")
    if is_int(t):
        assert values.dtype.kind in "iub", f"{t} from {values.dtype}"
        return values.astype(kind)
    if t == "fp64":
        return values.astype("f8").view("u8")
    if t == "fp32" and mode == "rtne":
        with np.errstate(over="ignore"):
            return values.astype("f4").view("u4")
    return _narrow_bits(t, round_to(t, values, mode, saturate)).astype(kind)


def decode(t, bits):
    """Values of bits, in the type that arithmetic on them uses here."""
    bits = np.asarray(bits)
    if t == "i1":
        return bits != 0
    if is_int(t):
        return bits.astype(NUMPY[t][0])
    if t == "fp64":
        return bits.astype("u8").view("f8")
    if t == "fp32":
        return bits.astype("u4").view("f4")
    if t == "fp16":
        return bits.astype("u2").view("f2")
    if t == "bf16":
        return (bits.astype("u4") << 16).astype("u4").view("f4")
    mantissa, least, _, has_infinity = NARROW[t]
    b = bits.astype(np.int64)
    field, fraction = (b & 0x7F) >> mantissa, b & ((1 << mantissa) - 1)
    value = np.where(field > 0, np.ldexp(1.0 + fraction / (1 << mantissa), field - 1 + least), np.ldexp(fraction / (1 << mantissa), least))
    top = (1 << (7 - mantissa)) - 1
    if has_infinity:
        value = np.where(field == top, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where((b & 0x7F) == 0x7F, np.nan, value)
    return np.where(b & 0x80, -value, value).astype("f4")


def promote(x, y, division=False):
    """The common type of two tensors (triton_language.md 3.2)."""
    for wide in ("fp64", "fp32"):
        if wide in (x, y):
            return wide
    narrow = "fp32" if division else None
    if "fp16" in (x, y):
        return narrow or "fp16"
    if "bf16" in (x, y):
        return (narrow or "bf16") if x == y else "fp32"
    if is_float(x) and is_float(y):
        return x if x == y else "fp16"
    if x == y:
        return x
    if "i1" in (x, y):
        return y if x == "i1" else x
    if is_signed(x) == is_signed(y):
        return x if bits_of(x) >= bits_of(y) else y
    unsigned, signed = (x, y) if is_signed(y) else (y, x)
    return unsigned if bits_of(unsigned) >= bits_of(signed) else signed


def convert(values, source, target, mode="rtne"):
    """Values of `source` as values of `target` (triton_language.md 3.5); floats to integers truncate."""
    v = np.asarray(values)
    if source == target:
        return v
    if target == "i1":
        return v != 0
    with np.errstate(invalid="ignore", over="ignore"):
        if is_int(target):
            if is_int(source):
                return v.astype(NUMPY[target][0])
            v = v.astype("f8")
            v = np.where(np.isnan(v), 0.0, v)
            info = np.iinfo(NUMPY[target][0])
            limited = np.clip(np.trunc(v), float(info.min), float(info.max))
            exact = np.array([min(max(int(a), info.min), info.max) for a in limited.ravel()], dtype=object)
            return exact.astype(NUMPY[target][0]).reshape(v.shape)
        if is_int(source):
            if target in ("fp16", "bf16") or target.startswith("fp8"):
                v = v.astype("f4")  # by way of fp32
            return decode(target, encode(target, v.astype("f8") if v.dtype.kind != "f" else v, mode))
        if source == "fp64" and bits_of(target) < 32:
            v = decode("fp32", encode("fp32", v, mode))
        return decode(target, encode(target, v, mode, saturate=target.startswith("fp8")))
