"""What a @jit function does with its parameters: which are pointers, descriptors, indices, shapes, switches.

The type of a parameter is nowhere written, so it is read off its uses. A use *demands* something of an expression, and a
demand goes from the expression to the parameters that it is made of, through local variables and through called @jit
functions:

    rows = x_ptr + row * stride          tl.load(rows + cols) demands a pointer of `rows + cols`: x_ptr is one; the rest of
    x = tl.load(rows + cols)             the sum (row, stride, cols) are integers

Where a sum has several names that could be the pointer, the one that looks most like a pointer is taken. The result is a
guess by construction; guess.py makes signatures of it, and what a wrong guess costs is told apart when they are compiled.
"""

import ast
import re

from dataflow import POINTER_NAME, Dataflow, bind_arguments
from project import callee, dotted

ACCESSES = set(
    "load store make_block_ptr make_tensor_descriptor _experimental_make_tensor_descriptor atomic_add "
    "atomic_max atomic_min atomic_cas atomic_xchg atomic_and atomic_or atomic_xor wait notify symm_at "
    "consume_token remote_ptr ld st ld_acquire st_release ld_vector st_vector atomic_add_per_warp "
    "red_release ld_b32 st_b32 load_v4_u32 store_v4_u32".split()
)
SIGNALS = {"wait", "notify", "atomic_cas", "atomic_and", "atomic_or", "atomic_xor", "ld_acquire", "st_release", "red_release"}
SYMMETRIC_TWO = re.compile(r"(put|get)mem|(int|float|long|uint\d*|int\d*)_(put|get)")
SYMMETRIC_ONE = re.compile(r"signal_|broadcast|fcollect|_p$|_g$|remote_ptr|remote_mc_ptr")
DESCRIPTOR_METHODS = {"load", "store", "gather", "scatter", "atomic_add", "atomic_max", "atomic_min"}
DESCRIPTOR_FUNCTIONS = {
    "load_tensor_descriptor",
    "store_tensor_descriptor",
    "_experimental_descriptor_load",
    "_experimental_descriptor_store",
}
DTYPE_NAMES = set(
    "float16 bfloat16 float32 float64 float8e4nv float8e5 int8 int16 int32 int64 uint8 uint16 uint32 " "uint64 int1".split()
)
SHAPES = {"zeros", "full", "arange", "reshape", "broadcast_to", "view"}


class Use:
    """What was seen of one parameter."""

    def __init__(self):
        self.pointer = self.integer = self.shape = self.dtype = self.number = self.called = self.descriptor = False
        self.loads_integers = False  # what is loaded through it serves as an index
        self.loads_pointers = False  # ... or is made a pointer
        self.descriptor_rank = 0
        self.is_last_stride = False
        self.truth = self.other = 0  # uses as a condition, all other uses
        self.strings, self.ints = [], []  # what it is compared with
        self.may_be_none = False
        self.tuple_size = 0

    def take(self, other):
        """A parameter of a called function receives this one."""
        for flag in (
            "integer",
            "shape",
            "dtype",
            "number",
            "called",
            "loads_integers",
            "loads_pointers",
            "is_last_stride",
            "may_be_none",
        ):
            setattr(self, flag, getattr(self, flag) or getattr(other, flag))
        self.pointer, self.descriptor = self.pointer or other.pointer, self.descriptor or other.descriptor
        self.descriptor_rank = self.descriptor_rank or other.descriptor_rank
        self.truth, self.other = self.truth + other.truth, self.other + other.other
        self.strings += other.strings
        self.ints += other.ints
        self.tuple_size = max(self.tuple_size, other.tuple_size)


class UsageTable:
    """The uses of the parameters of all functions of a project, each function analysed once."""

    def __init__(self, project):
        self.project = project
        self._done = {}

    def of(self, function):
        if function not in self._done:
            self._done[function] = None  # functions that call themselves
            self._done[function] = _Analysis(self, function)
        return self._done[function]


class _Analysis(Dataflow):
    def __init__(self, table, function):
        super().__init__(table, function, {name: Use() for name in function.parameters})
        self._integers, self._shapes = set(), set()  # variables that have been seen as such
        self._count_uses()
        for node in ast.walk(function.node):
            self._visit(node)
        self.returned_pointers = self._returned_pointers()
        self.returned_loads = {
            root
            for node in ast.walk(function.node)
            if isinstance(node, ast.Return) and node.value is not None
            for root in self._loaded(node.value, frozenset())
        }

    def _count_uses(self):
        conditions, handed_on = set(), set()
        for node in ast.walk(self.function.node):
            tests = [node.test] if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) else []
            if isinstance(node, ast.BoolOp):
                tests = node.values
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                tests = [node.operand]
            conditions.update(id(test) for test in tests)
            if isinstance(node, ast.Call) and self._called(node)[1] is not None:  # the called function says what it is
                handed_on.update(id(argument) for _, argument in bind_arguments(self._called(node)[0], node))
        for node in ast.walk(self.function.node):
            if isinstance(node, ast.Name) and node.id in self.uses and isinstance(node.ctx, ast.Load):
                if id(node) in conditions:
                    self.uses[node.id].truth += 1
                elif id(node) not in handed_on:
                    self.uses[node.id].other += 1

    # Demands

    def _visit(self, node):
        if isinstance(node, ast.Call):
            self._visit_call(node)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow)):
                self._flag(node.left, "number")
                self._flag(node.right, "number")
            if isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)):
                self._integer(node.left)
                self._integer(node.right)
        elif isinstance(node, ast.Compare):
            self._visit_compare(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
            if node.value.id in self.uses and isinstance(node.slice.value, int):
                use = self.uses[node.value.id]
                use.tuple_size = max(use.tuple_size, node.slice.value + 1)
        elif isinstance(node, ast.keyword) and node.arg in ("dtype", "out_dtype"):
            self._flag(node.value, "dtype")

    def _visit_compare(self, node):
        sides = [node.left] + node.comparators
        for a, b in list(zip(sides, sides[1:])) + list(zip(sides[1:], sides)):
            if isinstance(a, ast.Name) and a.id in self.uses and isinstance(b, ast.Constant):
                use = self.uses[a.id]
                if b.value is None:
                    use.may_be_none = True
                elif isinstance(b.value, str):
                    use.strings.append(b.value)
                elif isinstance(b.value, int) and not isinstance(b.value, bool):
                    use.ints.append(b.value)
            if isinstance(a, ast.Name) and a.id in self.uses and isinstance(b, ast.Name):
                constant = self.function.module.constants.get(b.id)
                if isinstance(constant, int):
                    self.uses[a.id].ints.append(constant)
                elif isinstance(constant, str):
                    self.uses[a.id].strings.append(constant)
            if self._is_index(b):
                self._integer(a)
            if isinstance(a, ast.Name) and a.id in self.uses and dotted(b).split(".")[-1] in DTYPE_NAMES:
                self.uses[a.id].dtype = True

    def _visit_call(self, call):
        name = callee(call)
        full = dotted(call.func)
        target = self.table.project.resolve(self.function.module, full) if full else None
        if target is not None and target is not self.function:
            self._visit_jit_call(call, target)
            return
        if isinstance(call.func, ast.Name) and call.func.id in self.uses:
            self.uses[call.func.id].called = True
        self._visit_language_call(call, name, full)

    def _visit_language_call(self, call, name, full):
        arguments = call.args
        if isinstance(call.func, ast.Attribute) and name in DESCRIPTOR_METHODS and self._descriptor(call):
            return
        if name in DESCRIPTOR_FUNCTIONS and arguments:
            self._mark_descriptor(arguments[0], arguments[1] if len(arguments) > 1 else None)
        elif name in ACCESSES and (arguments or call.keywords):
            base = arguments[0] if arguments else next((k.value for k in call.keywords if k.arg in ("base", "pointer")), None)
            if base is not None:
                self._pointer(base)
                if name in SIGNALS:
                    for root in self.roots(base)[:1]:
                        self.uses[root].loads_integers = True
            self._last_stride(call, name)
            self._masks(call, name)
        elif "libshmem" in full or "shmem" in full:
            count = 2 if SYMMETRIC_TWO.search(name) else 1 if SYMMETRIC_ONE.search(name) else 0
            for argument in arguments[:count]:
                self._pointer(argument)
        elif name in ("range", "static_range", "arange", "program_id", "cdiv"):
            for argument in arguments:
                self._integer(argument)
        elif name == "to" and arguments:
            self._flag(arguments[0], "dtype")
        elif name == "cast" and len(arguments) > 1:
            self._flag(arguments[1], "dtype")
        if name in SHAPES:
            for argument in arguments[
                0 if name in ("zeros", "full", "arange") else 1 : 2 if name == "arange" else len(arguments)
            ]:
                self._shape(argument)
            if name in ("zeros", "full") and len(arguments) > 1:
                self._flag(arguments[-1], "dtype")
        if name in ("make_block_ptr", "make_tensor_descriptor"):
            for position, argument in enumerate(arguments):
                if position == (4 if name == "make_block_ptr" else 3):
                    self._shape(argument)
            for keyword in call.keywords:
                if keyword.arg == "block_shape":
                    self._shape(keyword.value)
                elif keyword.arg in ("shape", "strides", "offsets"):
                    self._integer(keyword.value)

    def _visit_jit_call(self, call, target):
        analysis = self.table.of(target)
        if analysis is None:
            return
        for name, argument in bind_arguments(target, call):
            inner = analysis.uses[name]
            if inner.pointer:
                self._pointer(argument, inner)
            elif inner.descriptor:
                self._mark_descriptor(argument, None, inner.descriptor_rank)
            elif inner.integer:
                self._integer(argument)
            if inner.shape:
                self._shape(argument)
            if isinstance(argument, ast.Name) and argument.id in self.uses:
                self.uses[argument.id].take(inner)

    def _masks(self, call, name):
        masks = [k.value for k in call.keywords if k.arg == "mask"]
        position = {"load": 1, "store": 2}.get(name)
        if position and len(call.args) > position:
            masks.append(call.args[position])
        for mask in masks:
            for node in ast.walk(mask):
                if isinstance(node, ast.Compare):
                    for side in [node.left] + node.comparators:
                        self._integer(side)

    def _last_stride(self, call, name):
        strides = next((k.value for k in call.keywords if k.arg == "strides"), None)
        if strides is None and len(call.args) > 2 and "make_" in name:
            strides = call.args[2]
        if "descriptor" in name and isinstance(strides, (ast.List, ast.Tuple)) and strides.elts:
            self._flag(strides.elts[-1], "is_last_stride")

    def _descriptor(self, call):
        base = call.func.value
        if not call.args or not isinstance(base, ast.Name) or base.id not in self.uses:
            return False
        self._mark_descriptor(base, call.args[0])
        return True

    def _mark_descriptor(self, node, offsets, rank=0):
        if isinstance(node, ast.Name) and node.id in self.uses:
            use = self.uses[node.id]
            use.descriptor = True
            use.descriptor_rank = (
                rank or use.descriptor_rank or (len(offsets.elts) if isinstance(offsets, (ast.List, ast.Tuple)) else 2)
            )
        if offsets is not None:
            self._integer(offsets)

    def _flag(self, node, flag):
        if isinstance(node, ast.Name):
            if node.id in self.uses:
                setattr(self.uses[node.id], flag, True)

    def _pointer(self, node, inner=None):
        """The expression is a pointer: one parameter is its base, the others are integers."""
        alternatives = self._alternatives(node)
        if alternatives is not None:
            for alternative in alternatives:
                self._pointer(alternative, inner)
            return
        candidates = list(dict.fromkeys(self.roots(node)))
        if not candidates:
            for base in self._loaded_pointers(node):
                self.uses[base].loads_pointers = True
            return
        best = max(
            candidates,
            key=lambda name: (
                self.uses[name].pointer,
                bool(POINTER_NAME.search(name)),
                not self.uses[name].integer,
                not self.uses[name].number,
                not self.function.is_constexpr(name),
                -candidates.index(name),
            ),
        )
        if isinstance(node, ast.BinOp):
            side, other = (node.left, node.right) if best in self.roots(node.left) else (node.right, node.left)
            self._integer(other)
            self._pointer(side, inner)
            return
        self.uses[best].pointer = True
        if inner:
            self.uses[best].loads_integers |= inner.loads_integers
            self.uses[best].loads_pointers |= inner.loads_pointers
        self._index_part(node, best, set())

    def _alternatives(self, node):
        """The pointers between which a program chooses, each of which is one; None if there is no choice."""
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and (node.id in self.values or node.id in self.increments)
        ):
            if node.id in self._chosen:
                return []
            self._chosen.add(node.id)
            for value in self.increments.get(node.id, ()):
                self._integer(value)
            return self.values.get(node.id, []) + ([ast.Name(node.id, ast.Store())] if node.id in self.uses else [])
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, ast.Call) and callee(node) == "where" and len(node.args) == 3:
            return node.args[1:]
        return None

    def _index_part(self, node, base, seen):
        """Everything of a pointer's sum but the base is an integer."""
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            for value in self.increments.get(node.id, ()):
                self._integer(value)
            for value in self.values.get(node.id, ()):
                if base in self.roots(value):
                    self._index_part(value, base, seen)
                else:
                    self._integer(value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            for side in (node.left, node.right):
                if base in self.roots(side):
                    self._index_part(side, base, seen)
                else:
                    self._integer(side)
        elif isinstance(node, ast.Call) and node.args:
            target, analysis = self._called(node)
            for name, argument in bind_arguments(target, node) if analysis else [("", node.args[0])]:
                if not analysis or base in self.roots(argument):
                    self._index_part(argument, base, seen)
                elif not analysis.uses[name].pointer:
                    self._integer(argument)

    def _integer(self, node):
        """All names of the expression are integers; what it loads are integers as well."""
        if isinstance(node, ast.Name):
            if node.id in self.uses:
                self.uses[node.id].integer = True
            if node.id in self.values and node.id not in self._integers:
                self._integers.add(node.id)
                for value in self.values[node.id] + self.increments.get(node.id, []):
                    self._integer(value)
        elif isinstance(node, (ast.Tuple, ast.List)):
            for element in node.elts:
                self._integer(element)
        elif isinstance(node, ast.BinOp):
            self._integer(node.left)
            self._integer(node.right)
        elif isinstance(node, ast.UnaryOp):
            self._integer(node.operand)
        elif isinstance(node, ast.IfExp):
            self._integer(node.body)
            self._integer(node.orelse)
        elif isinstance(node, ast.Subscript):
            self._integer(node.value)
        elif isinstance(node, ast.Call):
            self._integer_call(node)

    def _integer_call(self, call):
        name = callee(call)
        if name in ("load", "atomic_add", "atomic_cas", "atomic_xchg", "ld", "ld_acquire") and call.args:
            for root in self.roots(call.args[0])[:1]:
                self.uses[root].loads_integers = True
        elif name in ("minimum", "maximum", "min", "max", "cdiv", "multiple_of", "max_contiguous", "sum"):
            for argument in call.args:
                self._integer(argument)
        elif name == "where" and len(call.args) == 3:
            self._integer(call.args[1])
            self._integer(call.args[2])
        elif self._called(call)[1] is not None:
            target, analysis = self._called(call)
            for parameter, argument in bind_arguments(target, call):
                for root in self.roots(argument)[:1] if parameter in analysis.returned_loads else ():
                    self.uses[root].loads_integers = True
        elif name == "to" and isinstance(call.func, ast.Attribute):
            if not (call.args and "float" in ast.unparse(call.args[0])):
                self._integer(call.func.value)

    def _shape(self, node):
        """The names of the expression are lengths of blocks: powers of two."""
        elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        for element in elements:
            if isinstance(element, ast.BinOp) and isinstance(element.op, (ast.Mult, ast.FloorDiv)):
                self._shape(element.left)
                self._shape(element.right)
            elif isinstance(element, ast.Name):
                if element.id in self.uses:
                    self.uses[element.id].shape = True
                if element.id not in self._shapes:
                    self._shapes.add(element.id)
                    for value in self.values.get(element.id, ()):
                        self._shape(value)
