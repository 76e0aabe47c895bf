"""What expressions are made of: which parameters may be the base of a pointer, what is loaded, what is an index.

Local variables stand for all expressions that are assigned to them, wherever that is; @jit functions that are called are looked
through by what they return. No order of statements is kept: for telling pointers from integers it is seldom needed.
"""

import ast
import re

from project import callee, dotted

SAME_POINTER = set(
    "multiple_of max_contiguous max_constancy broadcast_to expand_dims reshape cast to advance view trans "
    "consume_token symm_at bitcast".split()
)
POINTER_NAME = re.compile(r"(^|_)(ptr|ptrs|pointer|pointers|buf|buffer)($|_|\d)|^p_|ptr$", re.I)


class Dataflow:
    """The variables of one function. A subclass has `uses`, a Use for every parameter, and the table of all functions."""

    def __init__(self, table, function, uses):
        self.table, self.function, self.uses = table, function, uses
        self.values = {}  # local variable -> expressions that it may be
        self.increments = {}  # ... and what is added to it in place
        self.loop_variables = set()
        self._root_memo = {}
        self._chosen = set()  # variables whose alternatives have been looked at
        self._collect_variables()

    def _collect_variables(self):
        for node in ast.walk(self.function.node):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._bind(node.target, node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.increments.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                self.loop_variables.add(node.target.id)

    def _bind(self, target, value):
        if isinstance(target, ast.Name):
            self.values.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for index, element in enumerate(target.elts):
                if len(parts) == len(target.elts):
                    self._bind(element, parts[index])
                elif isinstance(element, ast.Name) and isinstance(value, ast.Call):
                    self.values.setdefault(element.id, []).append(ast.Subscript(value, ast.Constant(index), ast.Load()))

    def roots(self, node):
        """Parameters that may be the pointer that an expression is made of, the leftmost first."""
        if isinstance(node, ast.Name):
            return self._variable_roots(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.roots(node.left) + self.roots(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return self.roots(node.left)
        if isinstance(node, ast.IfExp):
            return self.roots(node.body) + self.roots(node.orelse)
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Call):
                return self._call_roots(node.value, node.slice)
            return self.roots(node.value)
        if isinstance(node, ast.Call):
            return self._call_roots(node, None)
        return []

    def _variable_roots(self, name):
        if name in self._root_memo:
            return self._root_memo[name]
        found = [name] if name in self.uses else []
        self._root_memo[name] = found  # for variables that depend on themselves
        for value in self.values.get(name, ()):
            found = found + self.roots(value)
        self._root_memo[name] = list(dict.fromkeys(found))
        return self._root_memo[name]

    def _call_roots(self, call, index):
        name = callee(call)
        if name == "where" and len(call.args) == 3:
            return self.roots(call.args[1]) + self.roots(call.args[2])
        if name in SAME_POINTER:
            first = (
                call.func.value
                if isinstance(call.func, ast.Attribute)
                and name in ("to", "reshape", "view")
                and dotted(call.func.value) not in ("tl", "triton.language")
                else (call.args[0] if call.args else None)
            )
            return self.roots(first) if first is not None else []
        target, analysis = self._called(call)
        if analysis is None:
            return []
        position = index.value if isinstance(index, ast.Constant) else None
        wanted = set(analysis.returned_pointers.get(position, ()))
        return [root for name, argument in bind_arguments(target, call) if name in wanted for root in self.roots(argument)]

    def _called(self, call):
        """The @jit function that is called, and its analysis; None, None if it is none of the project's."""
        name = dotted(call.func)
        target = self.table.project.resolve(self.function.module, name) if name else None
        analysis = self.table.of(target) if target is not None and target is not self.function else None
        return (target, analysis) if analysis is not None else (None, None)

    def _returned_pointers(self):
        """Position in the returned tuple (None: the only value) -> parameters that are its base."""
        result = {}
        for node in ast.walk(self.function.node):
            if isinstance(node, ast.Return) and node.value is not None:
                parts = enumerate(node.value.elts) if isinstance(node.value, ast.Tuple) else [(None, node.value)]
                for position, value in parts:
                    result.setdefault(position, set()).update(self.roots(value))
        return result

    def _loaded(self, node, seen):
        """Parameters behind which values lie that an expression is made of."""
        if isinstance(node, ast.Name):
            inner = seen | {node.id}
            return [] if node.id in seen else [r for value in self.values.get(node.id, ()) for r in self._loaded(value, inner)]
        if isinstance(node, ast.Call) and callee(node) == "load" and node.args:
            return self.roots(node.args[0])[:1]
        if isinstance(node, ast.Call):
            return []
        return [root for child in ast.iter_child_nodes(node) for root in self._loaded(child, seen)]

    def _loaded_pointers(self, node, seen=frozenset()):
        """Parameters behind which the pointers lie of which an expression is made."""
        if isinstance(node, ast.Name) and node.id in self.values and node.id not in seen:
            return [base for value in self.values[node.id] for base in self._loaded_pointers(value, seen | {node.id})]
        if isinstance(node, ast.BinOp):
            return self._loaded_pointers(node.left, seen) + self._loaded_pointers(node.right, seen)
        if isinstance(node, ast.Call):
            if callee(node) == "load" and node.args:
                return [root for root in self.roots(node.args[0]) if self.uses[root].pointer or POINTER_NAME.search(root)][:1]
            inner = (
                node.func.value
                if isinstance(node.func, ast.Attribute) and callee(node) == "to"
                else node.args[0] if node.args and callee(node) in SAME_POINTER else None
            )
            return self._loaded_pointers(inner, seen) if inner is not None else []
        return []

    def _is_index(self, node, depth=0):
        """Whether an expression is surely an integer: made of program ids, ranges, loop variables."""
        if depth > 6:
            return False
        if isinstance(node, ast.Name):
            if node.id in self.loop_variables:
                return True
            return any(self._is_index(value, depth + 1) for value in self.values.get(node.id, ()))
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, ast.Div) and (
                self._is_index(node.left, depth + 1) or self._is_index(node.right, depth + 1)
            )
        if isinstance(node, ast.Subscript):
            return self._is_index(node.value, depth + 1)
        return isinstance(node, ast.Call) and callee(node) in ("program_id", "num_programs", "arange", "cdiv")


def bind_arguments(function, call):
    """(parameter, argument) of a call, as far as names tell."""
    names = function.parameters
    pairs = []
    for name, argument in zip(names, call.args):
        if isinstance(argument, ast.Starred):
            break
        pairs.append((name, argument))
    pairs += [(k.arg, k.value) for k in call.keywords if k.arg in names]
    return pairs
