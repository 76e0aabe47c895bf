"""What host code says about a kernel's arguments: `kernel[grid](x, n, BLOCK=128, dtype=tl.float16)`.

Only what can be read without running anything: literals, variables that hold literals, defaults of the host function's
parameters, powers of two, torch dtypes of tensors that the host function makes.
"""

import ast

from project import callee, dotted

UNKNOWN = object()
TORCH_TYPES = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float64": "fp64",
    "double": "fp64",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "int32": "i32",
    "int": "i32",
    "int64": "i64",
    "long": "i64",
    "bool": "i1",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "uint32": "u32",
    "uint64": "u64",
}
MAKERS = {"empty", "zeros", "ones", "full", "arange", "tensor", "empty_like", "zeros_like", "ones_like", "full_like", "randint"}


class Dtype(str):
    """A dtype as a compile-time value, by its short name."""


class Launch:
    """One launch: parameter -> what is known of the argument."""

    def __init__(self):
        self.constants = {}  # parameter -> value of the language, or Dtype
        self.kinds = {}  # parameter -> "int", "float", or the element type of a tensor ("*i32"), "none"
        self.descriptors = {}  # parameter -> block shape, unknown sizes None


def find_launches(project):
    """kernel name -> launches, from all host functions of the project (and from module level)."""
    result = {}
    for module in project.modules.values():
        constants = _literals(module.tree.body)
        for host in module.hosts + [module.tree]:
            scope = _Scope(constants, host)
            for node in ast.walk(host) if host is not module.tree else _outside_functions(module.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                    name = dotted(node.func.value).rsplit(".", 1)[-1]
                    for function in project.by_name(name):
                        result.setdefault(function, []).append(_read(function, node, scope))
    return result


def _outside_functions(tree):
    for child in tree.body:
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from ast.walk(child)


def _literals(body):
    result = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            result.setdefault(node.targets[0].id, node.value)
    return result


class _Scope:
    def __init__(self, module_constants, host):
        self.values = dict(module_constants)
        arguments = getattr(host, "args", None)
        if arguments is not None:
            names = [a.arg for a in arguments.posonlyargs + arguments.args]
            for name in names + [a.arg for a in arguments.kwonlyargs]:
                self.values.pop(name, None)
            self.values.update(zip(reversed(names), reversed(arguments.defaults)))
        seen = set()
        for node in ast.walk(host) if arguments is not None else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id not in seen:
                    seen.add(node.targets[0].id)
                    self.values[node.targets[0].id] = node.value

    def value(self, node, depth=0):
        """The value of an expression, or UNKNOWN."""
        if depth > 8:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return UNKNOWN if node.value is None or node.value is Ellipsis else node.value
        if isinstance(node, ast.Name):
            return self.value(self.values[node.id], depth + 1) if node.id in self.values else UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.value(node.operand, depth + 1)
            return -inner if isinstance(inner, (int, float)) else UNKNOWN
        if isinstance(node, ast.IfExp):
            first = self.value(node.body, depth + 1)
            return first if first is not UNKNOWN else self.value(node.orelse, depth + 1)
        if isinstance(node, ast.Attribute) and node.attr in TORCH_TYPES and dotted(node.value) in ("torch", "tl"):
            return Dtype(TORCH_TYPES[node.attr])
        if isinstance(node, ast.Call) and callee(node) in ("max", "min"):
            known = [v for v in (self.value(a, depth + 1) for a in node.args) if isinstance(v, (int, float))]
            return (max if callee(node) == "max" else min)(known) if known else UNKNOWN
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Add)):
            left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
            if isinstance(left, int) and isinstance(right, int) and right:
                return (
                    left * right
                    if isinstance(node.op, ast.Mult)
                    else left + right if isinstance(node.op, ast.Add) else left // right
                )
        return UNKNOWN

    def kind(self, node, depth=0):
        """'int', 'float', '*TYPE' of a tensor whose maker is seen, 'none', or ''."""
        if depth > 8:
            return ""
        if isinstance(node, ast.Name) and node.id in self.values:
            return self.kind(self.values[node.id], depth + 1)
        if isinstance(node, ast.Constant):
            return (
                "none"
                if node.value is None
                else "int" if isinstance(node.value, int) else "float" if isinstance(node.value, float) else ""
            )
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr in ("shape", "strides")
        ):
            return "int"
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Div, ast.Pow)):
                return "float"
            kinds = {self.kind(node.left, depth + 1), self.kind(node.right, depth + 1)}
            return "float" if "float" in kinds else "int" if kinds == {"int"} else ""
        if isinstance(node, ast.Call):
            return self._call_kind(node, depth)
        return ""

    def _call_kind(self, call, depth):
        name = callee(call)
        if name in ("stride", "size", "numel", "len", "cdiv", "next_power_of_2", "dim", "element_size"):
            return "int"
        if name in ("sqrt", "float", "rsqrt"):
            return "float"
        if name in MAKERS and dotted(call.func).startswith("torch"):
            for keyword in call.keywords:
                if keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute) and keyword.value.attr in TORCH_TYPES:
                    return "*" + TORCH_TYPES[keyword.value.attr]
            return ""
        if name == "to" and call.args and isinstance(call.args[0], ast.Attribute) and call.args[0].attr in TORCH_TYPES:
            return "*" + TORCH_TYPES[call.args[0].attr]
        if name in ("contiguous", "cuda", "view", "reshape", "flatten") and isinstance(call.func, ast.Attribute):
            return self.kind(call.func.value, depth + 1)
        return ""

    def descriptor(self, node, depth=0):
        """The block shape of TensorDescriptor(...), TensorDescriptor.from_tensor(x, shape), or None."""
        if isinstance(node, ast.Name) and node.id in self.values and depth < 4:
            return self.descriptor(self.values[node.id], depth + 1)
        if isinstance(node, ast.Call) and "TensorDescriptor" in dotted(node.func):
            shape = next((k.value for k in node.keywords if k.arg == "block_shape"), node.args[-1] if node.args else None)
            shape = self.values.get(shape.id) if isinstance(shape, ast.Name) else shape
            if isinstance(shape, (ast.List, ast.Tuple)):
                sizes = [self.value(size) for size in shape.elts]
                return [size if isinstance(size, int) else None for size in sizes]
        return None


def _read(function, call, scope):
    launch = Launch()
    pairs = [(n, a) for n, a in zip(function.parameters, call.args)]
    if any(isinstance(a, ast.Starred) for a in call.args):
        pairs = []
    for name, argument in pairs + [(k.arg, k.value) for k in call.keywords if k.arg]:
        value = scope.value(argument)
        if value is not UNKNOWN:
            launch.constants[name] = value
        kind = scope.kind(argument)
        if kind:
            launch.kinds[name] = kind
        shape = scope.descriptor(argument)
        if shape:
            launch.descriptors[name] = shape
    return launch
