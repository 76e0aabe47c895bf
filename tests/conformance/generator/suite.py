"""Builds `.cases` files with their references. The rules for inputs are those of ArrayFill.cpp, bit for bit."""
import hashlib
import json
import math
import pathlib
import struct
import textwrap
import zlib

import numpy as np

from formats import NUMPY, decode, encode, is_int, size_of

GAMMA = np.uint64(0x9E3779B97F4A7C15)


def random_words(seed, count):
    with np.errstate(over="ignore"):
        z = np.uint64(seed % 2**64) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def listed_bits(t, values):
    """Bits of values written as in JSON."""
    result = []
    for v in values:
        if isinstance(v, str) and v.startswith("0x"):
            result.append(int(v, 16))
        elif isinstance(v, str):
            result.append(int(encode(t, np.array([np.float32(float(v)) if t != "fp64" else float(v)]))[0]))
        elif is_int(t):
            result.append((1 if v else 0) if t == "i1" else int(v) % 2 ** (8 * size_of(t)))
        else:
            single = np.float64(v) if t == "fp64" or isinstance(v, (int, bool)) else np.float32(v)
            result.append(int(encode(t, np.array([single]))[0]))
    return np.array(result, dtype=np.uint64)


def fill_bits(t, n, rule, seed_offset=0):
    """The bits of an array by a rule."""
    seed = rule.get("seed", 0) + seed_offset
    kind = rule.get("fill", "zeros")
    size = size_of(t)
    mask = np.uint64(2 ** (8 * size) - 1)

    def integers(values):  # int64 array -> bits
        if t == "i1":
            return (values != 0).astype(np.uint64)
        return values.astype(np.uint64) & mask if is_int(t) else encode(t, values.astype("f8")).astype(np.uint64)

    def floats(values):
        if is_int(t):
            return np.trunc(values).astype(np.int64).astype(np.uint64) & mask
        return encode(t, values if t == "fp64" else values.astype("f4")).astype(np.uint64)

    if "values" in rule:
        listed = listed_bits(t, rule["values"])
        bits = np.resize(listed, n)
    elif kind == "zeros":
        bits = np.zeros(n, np.uint64)
    elif kind == "ints":
        span = np.uint64((rule["high"] - rule["low"] + 1) % 2**64)
        words = random_words(seed, n)
        with np.errstate(over="ignore"):
            values = (np.uint64(rule["low"] % 2**64) + (words if span == 0 else words % span)).astype(np.int64)
        if rule.get("nonzero"):
            values = np.where(values == 0, 1, values)
        bits = integers(values)
    elif kind == "bits":
        bits = random_words(seed, n) & mask
    elif kind == "uniform":
        low, high = float(rule.get("low", -1)), float(rule.get("high", 1))
        bits = floats(low + (high - low) * (random_words(seed, n) >> np.uint64(40)).astype("f8") * 2.0**-24)
    elif kind == "bell":
        words = random_words(seed, n)
        part = np.uint64(0xFFFF)
        total = (words & part) + ((words >> np.uint64(16)) & part) + ((words >> np.uint64(32)) & part) + (words >> np.uint64(48))
        bits = floats((total.astype("f8") * 2.0**-15 - 4) * float(rule.get("scale", 1)))
    elif kind == "arange":
        values = rule.get("start", 0) + np.arange(n, dtype=np.int64) * rule.get("step", 1)
        modulo = rule.get("modulo", 0)
        bits = integers(np.fmod(values, modulo) if modulo else values)
    elif kind == "count":
        bits = (np.arange(n, dtype=np.uint64) * np.uint64(rule.get("step", 1)) + np.uint64(rule.get("start", 0))) & mask
    elif kind == "patterns":
        bits = np.uint64(rule["low"]) + random_words(seed, n) % np.uint64(rule["high"] - rule["low"] + 1)
    elif kind == "permutation":
        order, words = list(range(n)), random_words(seed, n + 1)
        for i in range(n, 1, -1):
            j = int(words[i]) % i
            order[i - 1], order[j] = order[j], order[i - 1]
        bits = integers(np.array(order, dtype=np.int64))
    else:
        raise ValueError(kind)
    if "and" in rule:
        bits = bits & np.uint64(int(rule["and"], 16))
    if "first" in rule:
        first = listed_bits(t, rule["first"])[:n]
        bits = bits.copy()
        bits[: len(first)] = first
    return bits.astype(NUMPY[t][0] if is_int(t) and t != "i1" else "u%d" % size)


class Input:
    """An input array: its rule, its values here."""

    def __init__(self, t, shape, rule, seed_offset=0):
        self.t, self.shape, self.rule = t, (shape,) if isinstance(shape, int) else tuple(shape), rule
        self.n = math.prod(self.shape)
        self.bits = fill_bits(t, self.n, rule, seed_offset)
        self.extra = {}

    @property
    def values(self):
        return decode(self.t, self.bits).reshape(self.shape)

    def rank(self, r):
        """The same array on another rank."""
        return Input(self.t, self.shape, self.rule, r * 1000003)

    def with_(self, **extra):
        self.extra.update(extra)
        return self

    def spec(self, suite):
        fields = {"array": self.t, "n": self.n}
        fields.update(self.rule)
        fields.update(self.extra)
        if "reference" in fields:
            fields.update(suite.reference(fields.pop("reference"), self.n))
        return fields


def ints(t, shape, seed, low=None, high=None, **rule):
    info = None if t == "i1" else np.iinfo(NUMPY[t][0]) if is_int(t) else None
    low = (0 if t == "i1" else int(info.min)) if low is None else low
    high = (1 if t == "i1" else int(info.max)) if high is None else high
    if high > 2**63 - 1:  # u64: all bits
        return Input(t, shape, {"fill": "bits", "seed": seed, **rule})
    return Input(t, shape, {"fill": "ints", "seed": seed, "low": low, "high": high, **rule})


def bell(t, shape, seed, scale=1, **rule):
    return Input(t, shape, {"fill": "bell", "seed": seed, "scale": scale, **rule})


def uniform(t, shape, seed, low=-1, high=1, **rule):
    return Input(t, shape, {"fill": "uniform", "seed": seed, "low": low, "high": high, **rule})


def numbers(t, shape, seed, **rule):
    """What the area's tests take for a type: integers of the whole range without 0, floats around 0."""
    return ints(t, shape, seed, **{"nonzero": True, **rule}) if is_int(t) else bell(t, shape, seed, **rule)


def listed(t, values, shape=None):
    return Input(t, shape or len(values), {"values": values})


class Output:
    """An output array with its reference: values of the type, or bits."""

    def __init__(self, t, values, bits=False, initial=None, sample=None, ranks=1, **rule):
        values = np.asarray(values)
        self.t, self.rule = t, rule
        data = values if bits else encode(t, values)
        self.bits = np.ascontiguousarray(data).astype("u%d" % size_of(t) if data.dtype.kind == "u" else data.dtype).ravel()
        self.n = self.bits.size // ranks
        self.initial, self.sample, self.ranks = initial, sample, ranks

    def spec(self, suite):
        fields = {"array": self.t, "n": self.n, **(self.initial.rule if self.initial else {}), **self.rule}
        fields.update(suite.reference(self, self.n))
        return fields


class Suite:
    """One `.cases` file."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.kernels = {}
        self.blob = bytearray()
        self.offsets = {}
        self.in_cases = False
        self.names = set()

    def kernel(self, name, text):
        text = textwrap.dedent(text).strip("\n")
        assert name not in self.kernels, name
        self.kernels[name] = text
        self.lines += [f"--- kernel {name}", text, ""]
        self.in_cases = False
        return name

    def reference(self, output, n):
        """Fields that name a reference, its bytes kept."""
        parts = output.bits.reshape(output.ranks, -1)
        fields = {}
        sample = output.sample
        if sample is None and n * size_of(output.t) > 8192:
            sample = 1024  # enough to meet every row and column
        if sample and sample < n:
            step = int(n * 0.6180339887) | 1
            while math.gcd(step, n) != 1:
                step += 2
            positions = (np.arange(sample, dtype=np.int64) * step) % n
            parts = parts[:, positions]
            fields["sample"] = [sample, step]
        data = np.ascontiguousarray(parts).tobytes()
        key = hashlib.sha1(data).digest()
        if key not in self.offsets:
            self.offsets[key] = len(self.blob)
            self.blob += data
        return {"ref": self.offsets[key], **fields}

    def case(self, name, kernel, args=None, **fields):
        assert kernel in self.kernels, kernel
        name = f"{self.name}/{name}"
        assert name not in self.names, name
        self.names.add(name)
        if not self.in_cases:
            self.lines.append("--- cases")
            self.in_cases = True
        record = {"name": name, "kernel": kernel}
        if "with_" in fields:
            record["with"] = {k: str(v) for k, v in fields.pop("with_").items()}
        record["args"] = {k: v.spec(self) if hasattr(v, "spec") else v for k, v in (args or {}).items()}
        record.update(fields)
        self.lines.append(json.dumps(record, separators=(", ", ":"), allow_nan=False))

    def error(self, name, text, message, args=None, **fields):
        """A case of its own kernel that must not compile. `«` in the text marks the place of the error."""
        text = textwrap.dedent(text).strip("\n")
        if "«" in text:
            before = text[: text.index("«")]
            entry = fields.get("entry", "kernel")
            lines = before.split("\n")
            def_line = next(i for i, line in enumerate(text.split("\n")) if line.startswith(f"def {entry}("))
            fields["at"] = [len(lines) - def_line, len(lines[-1])]
            text = text.replace("«", "")
        self.kernel(name, text)
        self.case(name, name, args, error=message, **fields)

    def write(self, folder):
        path = pathlib.Path(folder) / f"{self.name}.cases"
        header = "# Made by tests/conformance/generate.py; do not edit."
        # The header is a comment of an empty list of cases, since kernels begin at `---`.
        path.write_text("--- cases\n" + header + "\n" + "\n".join(self.lines) + "\n")
        if self.blob:
            path.with_suffix(".ref").write_bytes(struct.pack("<Q", len(self.blob)) + zlib.compress(bytes(self.blob), 9))
        return len(self.names)
