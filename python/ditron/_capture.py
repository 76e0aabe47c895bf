"""From a Python function to texts for the compiler.

Every function that kernels use becomes a module text of its own: its lines stand where they stand in the user's file, so that messages
name the user's lines and columns; the first line binds the names that it takes from outside, with the values that Python has for them
now. What is bound decides how: constants are written out, modules and functions of the language are imported, other functions and
classes are imported from texts made the same way, and of other modules only what the function reads goes into a text ("view").
"""
import ast
import enum
import inspect
import os
import sys
import textwrap
import types

from ._table import KernelFunction, LanguageModule
from ._values import block_dtype, constexpr, dtype, pointer_dtype

# Modules that the compiler knows by name; it is told to import them rather than what they hold.
_KNOWN_MODULES = {"math", "torch", "numpy", "enum", "typing", "functools", "itertools", "operator", "collections", "dataclasses", "os", "sys",
                  "builtins", "abc", "contextlib", "platform", "importlib", "warnings", "re", "types", "__future__"}


class Unrepresentable(Exception):
    """A value that no text can stand for."""


class Module:
    """A text for the compiler under a name by which other texts import it."""

    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.text = ""
        self.imports = []  # modules

    def all(self):
        """Every module that this one leads to, without itself."""
        found, queue = {}, list(self.imports)
        while queue:
            module = queue.pop()
            if module.name not in found and module is not self:
                found[module.name] = module
                queue.extend(module.imports)
        return [found[name] for name in sorted(found)]


_names = {}


def _fresh_name(base):
    base = "ditron_text_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in base)
    count = _names[base] = _names.get(base, 0) + 1
    return base if count == 1 else f"{base}_{count}"


def dotted_name(value):
    """The name in the kernel language of a stand-in; None for anything else."""
    if isinstance(value, (KernelFunction, LanguageModule, dtype)) or isinstance(value, (type, types.FunctionType)):
        name = vars(value).get("__ditron_name__") if not isinstance(value, dtype) else getattr(value, "__ditron_name__", None)
        return name
    return None


def _chains(tree, skip=()):
    """Names that a tree reads, each with the attribute chains that are read of it: {"tl": {("load",)}, "BLOCK": {()}}."""
    found = {}

    def visit(node):
        if isinstance(node, ast.Attribute):
            chain, inner = [node.attr], node.value
            while isinstance(inner, ast.Attribute):
                chain.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                found.setdefault(inner.id, set()).add(tuple(reversed(chain)))
                return
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, set()).add(())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("tl."):
            found.setdefault("tl", set()).add(())  # an annotation in quotes
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return {name: chains for name, chains in found.items() if name not in skip}


class Writer:
    """Writes the first line of a module: what binds the names."""

    def __init__(self, module):
        self.module = module
        self.statements = ["import triton as __ditron_triton, triton.language as __ditron_tl"]
        self.aliases = {}

    def refer(self, module):
        if module not in self.module.imports:
            self.module.imports.append(module)
        return module.name

    def alias(self, value):
        """A name for a function or class."""
        key = id(value)
        if key not in self.aliases:
            module, symbol = self.place(value)
            alias = f"__ditron_{len(self.aliases)}"
            self.aliases[key] = (alias, value)
            self.statements.append(f"from {module} import {symbol} as {alias}")
        return self.aliases[key][0]

    def place(self, value):
        """(module, name) from which a function or class is imported."""
        dotted = dotted_name(value)
        if dotted:
            return tuple(dotted.rsplit(".", 1))
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            home = value.__module__ or ""
            if home.partition(".")[0] in _KNOWN_MODULES:
                return home, value.__qualname__
        module = module_of(value)
        if module is None:
            raise Unrepresentable(f"{value!r}")
        return self.refer(module), module.symbol

    def expression(self, value, depth=0):
        """Text that gives the value."""
        if depth > 16:
            raise Unrepresentable("nested too deep")
        if value is None or value is Ellipsis or type(value) in (bool, int, str, bytes):
            return repr(value)
        if type(value) is float:
            return repr(value) if value - value == 0 else f'float("{value}")'
        if isinstance(value, constexpr):
            return f"__ditron_tl.constexpr({self.expression(value.value, depth + 1)})"
        if isinstance(value, pointer_dtype):
            return f"__ditron_tl.pointer_type({self.expression(value.element_ty, depth + 1)})"
        if isinstance(value, block_dtype):
            return f"__ditron_tl.block_type({self.expression(value.element_ty, depth + 1)}, {list(value.shape)})"
        if isinstance(value, dtype):
            return f"__ditron_tl.{value.codegen_name()}"
        if isinstance(value, enum.Enum):
            return f"{self.alias(type(value))}.{value.name}"
        if isinstance(value, tuple):
            items = [self.expression(item, depth + 1) for item in value]
            if hasattr(value, "_fields"):
                return f"{self.alias(type(value))}({', '.join(items)})"
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(self.expression(item, depth + 1) for item in value)}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.expression(key, depth + 1)}: {self.expression(item, depth + 1)}" for key, item in value.items()) + "}"
        if isinstance(value, (int, float)):  # subclasses
            return self.expression(int(value) if isinstance(value, int) else float(value), depth + 1)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.dtype):
            self.import_once("torch")
            return str(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            return self.expression(value.item(), depth + 1)
        if isinstance(value, types.ModuleType):
            raise Unrepresentable(f"{value!r}")
        return self.alias(value)

    def import_once(self, name):
        statement = f"import {name}"
        if statement not in self.statements:
            self.statements.append(statement)

    def bind(self, name, value, chains):
        """Binds a name; what cannot be represented is left out, and is an error where the kernel reads it."""
        try:
            if isinstance(value, types.ModuleType):
                self.bind_module(name, value, chains)
            elif dotted_name(value) or isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) or module_of(value, False):
                if isinstance(value, type) and not is_kernel_class(value) and any(chains - {()}):
                    self.statements.append(f"import {self.refer(view_of(value, chains))} as {name}")
                    return
                module, symbol = self.place(value)
                self.statements.append(f"from {module} import {symbol} as {name}")
            else:
                self.statements.append(f"{name} = {self.expression(value)}")
        except Unrepresentable:
            if any(chains - {()}):
                self.statements.append(f"import {self.refer(view_of(value, chains))} as {name}")

    def bind_module(self, name, value, chains):
        dotted = getattr(value, "__ditron_name__", None)
        if dotted is None and value.__name__.partition(".")[0] in _KNOWN_MODULES:
            dotted = value.__name__
        if dotted is None and value.__name__ in ("ditron", "ditron.language"):
            # triton and triton.language, unless the kernel uses what is Ditron's own.
            stand_in = "triton" + value.__name__[len("ditron"):]
            if not any(chain and is_own(value, chain) for chain in chains):
                dotted = stand_in
        if dotted is not None:
            self.statements.append(f"import {dotted} as {name}")
        else:
            self.statements.append(f"import {self.refer(view_of(value, chains))} as {name}")

    def first_line(self):
        return "; ".join(self.statements)


def is_own(owner, chain):
    """True if an attribute chain of ditron or ditron.language leads to what Triton does not have."""
    for name in chain:
        owner = getattr(owner, name, None)
    dotted = dotted_name(owner) or getattr(owner, "__ditron_name__", "")
    return isinstance(dotted, str) and dotted.startswith("triton_dist")


def view_of(owner, chains):
    """A module with those attributes of a module, class or object that a kernel reads."""
    title = getattr(owner, "__name__", None) or type(owner).__name__
    module = Module(_fresh_name(f"view_{title}"), getattr(owner, "__file__", None) or f"<{title}>")
    writer = Writer(module)
    inner = {}
    for chain in chains:
        if chain:
            inner.setdefault(chain[0], set()).add(chain[1:])
    for name in sorted(inner):
        try:
            value = inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)
        except AttributeError:
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        writer.bind(name, value, inner[name])
    module.text = writer.first_line() + "\n"
    return module


def is_kernel_class(cls):
    """Classes whose source the compiler reads: enumerations, named tuples, aggregates."""
    return issubclass(cls, enum.Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")) or getattr(cls, "__triton_aggregate__", False)


_modules = {}  # id of a function or class: (module, the object)


def module_of(value, makes=True):
    """The text of a function or class; None if it can have none."""
    known = _modules.get(id(value))
    if known is not None:
        return known[0]
    if hasattr(type(value), "ditron_module"):
        return value.ditron_module()
    if not makes or not isinstance(value, (type, types.FunctionType)):
        return None
    if isinstance(value, type):
        return class_module(value)
    return function_module(value, value, None)


def remember(value, module):
    _modules[id(value)] = (module, value)


def read_source(value):
    """(path, lines with their line ends, number of the first) as the user's file has them."""
    path = inspect.getsourcefile(value) or inspect.getfile(value)
    lines, first = inspect.getsourcelines(value)
    return path, lines, max(first, 1)


def lay_out(first_line, decorator, lines, number, indented):
    """The text with `lines` at their place; the decorator and, for an inner definition, an enclosing block are put above."""
    above = [f"{indented}{decorator}"] if decorator else []
    if indented:
        above.insert(0, "if True:")
    padding = [""] * max(0, number - 2 - len(above))
    return "\n".join([first_line, *padding, *above, *[line.rstrip("\r\n") for line in lines]]) + "\n"


def function_module(owner, fn, decorator):
    """The text of a Python function. `owner` is what others find it by; the decorator takes the place of the user's."""
    try:
        path, lines, number = read_source(fn)
    except (OSError, TypeError) as error:
        raise Unrepresentable(f"the source of function '{fn.__qualname__}' cannot be read ({error}): kernels are compiled from their text, so a function "
                              "from exec() or an interactive prompt has to be put into a file") from None
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise Unrepresentable(f"{fn!r} is no function that was defined with def")
    skipped = tree.lineno - 1
    body, number = lines[skipped:], number + skipped
    indented = body[0][:len(body[0]) - len(body[0].lstrip())]
    module = Module(_fresh_name(f"{fn.__module__}_{fn.__qualname__}"), path)
    module.symbol = fn.__name__
    module.line = number
    remember(owner, module)
    writer = Writer(module)
    for name, chains in sorted(outside_names(fn, tree).items()):
        found, value = look_up(fn, name)
        if not found:
            continue
        if value is owner or value is fn:
            continue
        writer.bind(name, value, chains)
    module.writer = writer
    module.finish = lambda: lay_out(writer.first_line(), decorator, body, number, indented)
    module.text = module.finish()
    return module


def outside_names(fn, tree):
    """What a function reads from outside: in its body all that is not its own, in its header everything."""
    own = set(fn.__code__.co_varnames) | set(fn.__code__.co_cellvars)
    found = _chains(ast.Module(body=tree.body, type_ignores=[]), own)
    header = [*tree.args.defaults, *[default for default in tree.args.kw_defaults if default is not None]]
    header += [arg.annotation for arg in [*tree.args.args, *tree.args.kwonlyargs, *tree.args.posonlyargs] if arg.annotation is not None]
    if tree.returns is not None:
        header.append(tree.returns)
    for node in header:
        for name, chains in _chains(node).items():
            found.setdefault(name, set()).update(chains)
    return found


def look_up(fn, name):
    code = fn.__code__
    if name in code.co_freevars:
        try:
            return True, fn.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return False, None
    if name in fn.__globals__:
        return True, fn.__globals__[name]
    return False, None


def class_module(cls):
    """The text of a class, decorators and all."""
    try:
        path, lines, number = read_source(cls)
    except (OSError, TypeError) as error:
        raise Unrepresentable(f"the source of {cls!r} cannot be read: {error}") from None
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    indented = lines[0][:len(lines[0]) - len(lines[0].lstrip())]
    module = Module(_fresh_name(f"{cls.__module__}_{cls.__qualname__}"), path)
    module.symbol = cls.__name__
    remember(cls, module)
    writer = Writer(module)
    home = vars(sys.modules.get(cls.__module__, None) or types.ModuleType(""))
    scope = {**home, **getattr(cls, "__ditron_scope__", {})}
    for member in vars(cls).values():
        member = getattr(member, "__func__", member)
        member = getattr(member, "fn", member)
        if isinstance(member, types.FunctionType) and member.__closure__:
            for name in member.__code__.co_freevars:
                found, value = look_up(member, name)
                if found:
                    scope.setdefault(name, value)
    for name, chains in sorted(_chains(tree).items()):
        if name in scope and scope[name] is not cls and name != cls.__name__:
            writer.bind(name, scope[name], chains)
    module.text = lay_out(writer.first_line(), "", lines, number, indented)
    return module


def display_path(path):
    """As messages name a file: relative when it is below the working folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return path if relative.startswith("..") else relative
