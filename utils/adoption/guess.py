"""Plausible signatures of a kernel, the most plausible first.

An attempt gives every parameter a type or a compile-time value. It follows one Flavour: which float type tensors have, which
integer type indices, whether switches are on, how large blocks are. What is known (autotune configurations, launches, default
values, annotations) is taken over; the rest follows from usage.py and from names.
"""

import ast
import dataclasses
import re

from launches import Dtype, Launch
from dataflow import POINTER_NAME
from usage import DTYPE_NAMES

SHORT = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
}
SHORT.update({f"int{n}": f"i{n}" for n in (1, 8, 16, 32, 64)}, **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)})
SIGNATURE_TYPE = re.compile(r"^\*?(i1|[iu](8|16|32|64)|fp16|bf16|fp32|fp64|fp8\w+)$")

INDEX_NAME = re.compile(
    r"(^|_)(idx|idxs|ids?|index|indices|indptr|indexes|seqlens?|lens?|lengths?|table|tables|slots?|map|mapping|cu|"
    r"pos|position|positions|locs?|pages?|count|counts|counter|locks?|req|token|tokens|perm|order|labels?|target|"
    r"seeds?|seq_?starts?\w*|seq_?lens?\w*|signal|signals|barrier|barriers|flag|flags|sync|offsets?|num|splits|expert)(_|$|\d)",
    re.I,
)
BOOL_NAME = re.compile(r"(^|_)(mask|masks|bool)(_|$)|_mask$", re.I)
ACCUMULATED_NAME = re.compile(
    r"lse|rstd|mean|delta|stats?(_|$)|scales?(_|$)|logsumexp|workspace|(^|_)acc(_|$)|partial|(^|_)g(_|$)|beta_cum", re.I
)
FLOAT_NAME = re.compile(
    r"(^|_)(eps|epsilon|scale|scaling|alpha|beta|p|prob|dropout|softcap|soft_?cap\w*|lr|decay|smoothing|gamma|theta|weight|"
    r"temperature|momentum|factor|slope|value|val|limit|clamp|min|max|lambda|ratio|base|threshold|coeff|"
    r"negative_slope|lower|upper|rate|log2e|std|mean|bound)(_|$)",
    re.I,
)
SWITCH_NAME = re.compile(
    r"^_?(use|has|is|allow|do|enable|with|need|needs|store|save|return|output|apply|causal|even|mask|skip|reverse|"
    r"transpose|trans|keep|compute|should|add|add_\w+|include|training|inplace|varlen)(_|$)|"
    r"_(enabled|flag|only)$|^(causal|reverse|varlen|training|inplace)$",
    re.I,
)
SIZES = (  # names of compile-time integers that are no block lengths
    (re.compile(r"dtype_min|q_?min", re.I), -127.0),
    (re.compile(r"dtype_max|q_?max", re.I), 127.0),
    (re.compile(r"num_?warps", re.I), 4),
    (re.compile(r"num_?stages|stages?$", re.I), 2),
    (re.compile(r"num_?sms?|nsm", re.I), 132),
    (re.compile(r"group(_size)?_?m$", re.I), 8),
    (re.compile(r"split_?k|splits?$", re.I), 1),
    (re.compile(r"world|ranks?$|n_?pes", re.I), 8),
    (re.compile(r"top_?k", re.I), 8),
    (re.compile(r"^stride|_stride|stride_", re.I), 64),
    (re.compile(r"(^|_)(eps|epsilon)$", re.I), 1e-6),
    (re.compile(r"scale|softcap|alpha|beta|slope|theta|dropout|^p$", re.I), 0.5),
    (re.compile(r"heads?$|^h[qvk]?$|^g$|group", re.I), 4),
    (re.compile(r"bits$", re.I), 4),
    (re.compile(r"(axis|dim|rank|pos|offset|start|shift)(_|$)$", re.I), 0),
)
LENGTH_NAME = re.compile(r"BLOCK|B[A-Z]$|TILE")
HEAD_NAME = re.compile(r"(^|_)(d|dim|dmodel|head|headdim|head_dim|hidden|k|v)(_|$)|head|hidden|dim", re.I)


OTHER_VENDOR = re.compile(r"(^|_)(hip|rocm|amd|npu|xpu|musa|mlu|interpret\w*|cpu)(_|$)", re.I)


class Unguessable(Exception):
    """A parameter for which no value can be made up; the text says which and why."""


@dataclasses.dataclass(frozen=True)
class Constant:
    """A compile-time value: None, bool, int, float, str, a Dtype, or a tuple of them."""

    value: object

    def text(self):
        value = self.value
        if isinstance(value, Dtype):
            return str(value)
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(value)


@dataclasses.dataclass(frozen=True)
class Flavour:
    """How the open questions of one attempt are answered."""

    floats: str
    indices: str
    switches: bool
    small: bool = False
    choice: int = 0  # which of several compared strings or numbers


FLAVOURS = (
    Flavour("bf16", "i32", True),
    Flavour("fp32", "i32", True),
    Flavour("fp16", "i64", False),
    Flavour("fp32", "i64", False),
    Flavour("bf16", "i64", False, choice=1),
    Flavour("fp32", "i32", True, small=True, choice=1),
    Flavour("fp32", "i32", False, small=True),
    Flavour("fp16", "i32", True, small=True, choice=2),
    Flavour("i32", "i32", True),
    Flavour("i8", "i32", True),
    Flavour("u8", "u8", True),
)


@dataclasses.dataclass
class Attempt:
    """A signature: parameter -> a type's text or a Constant; and the options of the configuration it came from."""

    arguments: dict
    num_warps: int = 4
    num_stages: int = 3

    def signature(self):
        return ", ".join(
            f"constexpr {name}={value.text()}" if isinstance(value, Constant) else f"{name}={value}"
            for name, value in self.arguments.items()
        )


def attempts(function, usage, launches, configs):
    """Distinct attempts for a kernel. configs: (values by parameter, num_warps, num_stages) as the compiler lists them."""
    result, seen, problem = [], set(), None
    launch = _merge(launches)
    shapes = _count_shapes(function, usage, configs)
    for index, flavour in enumerate(FLAVOURS):
        values, warps, stages = configs[min(index // 3, len(configs) - 1)] if configs else ({}, 4, 3)
        guesser = _Guesser(function, usage, launch, values, flavour, shapes)
        try:
            attempt = Attempt({name: guesser.argument(name) for name in function.parameters}, warps, stages)
        except Unguessable as reason:
            problem = problem or str(reason)
            continue
        text = (attempt.signature(), warps)
        if text not in seen:
            seen.add(text)
            result.append(attempt)
    if not result and problem:
        raise Unguessable(problem)
    return result


def _merge(launches):
    merged = Launch()
    for launch in reversed(launches):
        for field in ("constants", "kinds", "descriptors"):
            getattr(merged, field).update(getattr(launch, field))
    return merged


def _count_shapes(function, usage, configs):
    tuned = configs[0][0] if configs else {}
    return sum(1 for name in function.parameters if usage.uses[name].shape and name not in tuned)


class _Guesser:
    def __init__(self, function, usage, launch, config, flavour, shapes):
        self.function, self.launch, self.config, self.flavour, self.shapes = function, launch, config, flavour, shapes
        self.usage = usage
        self.text = ast.unparse(function.node)

    def argument(self, name):
        use = self.usage.uses[name]
        if name in self.config:
            return Constant(self.config[name])
        if self.function.is_constexpr(name):
            return Constant(self.constant(name, use))
        return self.run_time(name, use)

    # Run-time parameters

    def run_time(self, name, use):
        annotated = self._annotated_type(name)
        kind = self.launch.kinds.get(name, "")
        if annotated:
            return annotated
        if use.descriptor:
            return self._descriptor(name, use)
        if use.tuple_size and not use.descriptor_rank:
            one = f"*{self.element(name, use)}:16" if use.pointer else "i32"
            return "(" + ", ".join([one] * use.tuple_size) + ("," if use.tuple_size == 1 else "") + ")"
        if use.pointer or kind.startswith("*"):
            return f"*{kind[1:] if kind.startswith('*') else self.element(name, use)}:16"
        if use.is_last_stride:
            return Constant(1)
        default = self.function.defaults.get(name)
        if kind == "int" or use.integer:
            return "i32:16" if "stride" in name else "i32"
        if isinstance(default, ast.Constant) and not use.number:
            return (
                Constant(None)
                if default.value is None
                else "i1" if isinstance(default.value, bool) else "fp32" if isinstance(default.value, float) else "i32"
            )
        if use.called:
            raise Unguessable(f"parameter '{name}' is a function")
        if POINTER_NAME.search(name) and not use.number:
            return f"*{self.element(name, use)}:16"
        if kind == "float" or FLOAT_NAME.search(name):
            return "fp32"
        if SWITCH_NAME.search(name) and use.truth:
            return "i1"
        return "i32"

    def _annotated_type(self, name):
        text = self.function.annotations.get(name, "").strip("'\"")
        last = text.rsplit(".", 1)[-1]
        if last in DTYPE_NAMES and last in SHORT:
            return SHORT[last]
        return text + (":16" if text.startswith("*") else "") if SIGNATURE_TYPE.match(text) else ""

    def element(self, name, use):
        if use.loads_pointers:
            return "i64"
        if use.loads_integers or INDEX_NAME.search(name):
            return self.flavour.indices
        if BOOL_NAME.search(name):
            return "i1"
        if ACCUMULATED_NAME.search(name):
            return "fp32"
        return self.flavour.floats

    def _descriptor(self, name, use):
        shape = self.launch.descriptors.get(name) or []
        if len(shape) != use.descriptor_rank or all(size == 1 for size in shape):  # set later, by a hook
            shape = [None] * use.descriptor_rank
        rank = len(shape)
        sizes = [size or (1 if index < rank - 2 else 64) for index, size in enumerate(shape)]
        return f"tensordesc<{self.element(name, use)}[{','.join(map(str, sizes))}]>:16"

    # Compile-time parameters

    def constant(self, name, use):
        known = self.launch.constants.get(name)
        default = self._default(name)
        is_switch = self._is_switch(name, use, known, default)
        if is_switch:
            return self.flavour.switches and not OTHER_VENDOR.search(name)
        if use.called:
            raise Unguessable(f"compile-time parameter '{name}' is a function")
        if isinstance(known, str) and not isinstance(known, Dtype) and use.strings and self.flavour.choice:
            known = None
        if known is not None and not (self.flavour.small and use.shape):
            return known
        if default is not None and not (self.flavour.small and use.shape) and default != ():
            return default
        if use.may_be_none and not self.flavour.switches and not use.shape:
            return None
        return self._invented(name, use)

    def _default(self, name):
        node = self.function.defaults.get(name)
        while isinstance(node, ast.Call) and len(node.args) == 1:  # tl.constexpr(3)
            node = node.args[0]
        try:
            return ast.literal_eval(node) if node is not None else None
        except ValueError:
            last = ast.unparse(node).rsplit(".", 1)[-1]
            return Dtype(SHORT[last]) if last in SHORT else None

    @staticmethod
    def _is_switch(name, use, known, default):
        if isinstance(known, bool) or isinstance(default, bool):
            return True
        if known is not None or default is not None or use.shape or use.dtype or use.strings or use.number:
            return False
        return bool(SWITCH_NAME.search(name)) or (use.truth > 0 and use.other == 0)

    def _invented(self, name, use):
        if use.strings:
            distinct = list(dict.fromkeys(use.strings))
            return distinct[min(self.flavour.choice, len(distinct) - 1)]
        if use.dtype or re.search(r"dtype(?!_m)|^(out|output|compute|acc|elem|element)_?type$", name, re.I):
            return Dtype(
                "fp32"
                if re.search(r"acc|compute", name, re.I) and self.flavour.floats[0] != "i"
                else self.flavour.indices if re.search(r"int|idx|index", name, re.I) else self.flavour.floats
            )
        if re.search(r"precision", name, re.I):
            return "ieee"
        is_length = use.shape and (self.flavour.small or LENGTH_NAME.match(name))
        if use.ints and not is_length:
            distinct = list(dict.fromkeys(use.ints))
            return distinct[min(self.flavour.choice, len(distinct) - 1)]
        if use.shape or LENGTH_NAME.match(name):
            return self._length(name)
        for pattern, value in SIZES:
            if pattern.search(name):
                return 1 if use.truth and isinstance(value, float) else value  # `if` takes no floats
        return 64

    def _length(self, name):
        if name == "BC":
            return 16
        if self.flavour.small:
            return 16
        if self.shapes >= 3 and "dot(" not in self.text:
            return 32
        return 64 if self.shapes >= 2 or "None]" in self.text or ", None" in self.text or HEAD_NAME.search(name) else 1024
