"""The sources of a project: files, @jit functions, who calls whom, and which of the functions are kernels.

Nothing of the project is executed; files are read with Python's own parser.
"""

import ast
import fnmatch
import pathlib
import tarfile
import tempfile
import zipfile

TUNERS = {"autotune", "heuristics", "libtuner", "libentry", "aot_compile_spaces"}


class AdoptionError(Exception):
    """A mistake of the caller's; its text is what the user reads."""


def open_project(path, keep):
    """The folder of a project; a wheel or sdist is unpacked into a temporary folder that lives as long as the list keep."""
    path = pathlib.Path(path)
    if path.is_dir() or path.suffix == ".py":
        return path
    if not path.exists():
        raise AdoptionError(f"'{path}' does not exist; give a folder, a .py file, a wheel (.whl) or an sdist (.tar.gz, .zip)")
    keep.append(tempfile.TemporaryDirectory(prefix="adoption-"))
    folder = pathlib.Path(keep[-1].name)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".py")])
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(
                folder, [m for m in archive.getmembers() if m.isfile() and m.name.endswith(".py")], filter="data"
            )
    else:
        raise AdoptionError(f"'{path}' is neither a folder nor a .py file, a wheel or an sdist")
    return folder


def dotted(node):
    """'a.b.c' of an attribute chain, '' of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def callee(node):
    """The last word of what a call or decorator names: 'load' of tl.load(p)."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class Function:
    """A @jit function."""

    def __init__(self, module, node, qualname):
        self.module, self.node, self.qualname = module, node, qualname
        self.name = node.name
        self.reference = qualname  # what the compiler calls it
        self.is_autotuned = any(callee(d) in TUNERS for d in node.decorator_list)
        arguments = node.args
        self.parameters = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
        every = arguments.posonlyargs + arguments.args
        self.annotations = {a.arg: ast.unparse(a.annotation) for a in every + arguments.kwonlyargs if a.annotation}
        self.defaults = dict(zip([a.arg for a in reversed(every)], reversed(arguments.defaults)))
        self.defaults.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None})
        self.is_variadic = bool(arguments.vararg or arguments.kwarg)

    @property
    def place(self):
        return f"{self.module.path}:{self.node.lineno}"

    def is_constexpr(self, parameter):
        return "constexpr" in self.annotations.get(parameter, "")

    def returns_value(self):
        return any(isinstance(n, ast.Return) and n.value is not None and not is_none(n.value) for n in ast.walk(self.node))

    def assigned(self):
        """The names of variables."""
        return {n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def calls(self):
        return [n for n in ast.walk(self.node) if isinstance(n, ast.Call)]


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def is_jit(node, imports):
    """Whether @triton.jit, @triton_dist.jit, or a jit imported from such a module; not numba's, CuTe's or Gluon's."""
    for decorator in node.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        first = name.split(".")[0]
        if (
            name.split(".")[-1] == "jit"
            and first != "gluon"
            and ("triton" in first or "triton" in imports.get(first, (0, "", ""))[1])
        ):
            return True
    return False


def literal(node):
    """The value of a literal, also inside tl.constexpr(...); None of anything else."""
    while isinstance(node, ast.Call) and callee(node) == "constexpr" and len(node.args) == 1:
        node = node.args[0]
    return node.value if isinstance(node, ast.Constant) else None


class Module:
    """One file: its @jit functions by qualified name, its imports, and its host functions."""

    import_folders = ()  # what the project says of the file

    def __init__(self, path, tree):
        self.path, self.tree = path, tree
        self.functions = {}
        self.imports = {}  # name -> (dots, module, name in it or None)
        self.hosts = []  # host functions, with which launches are read
        self.constants = {}  # name -> literal at module level, also as tl.constexpr(literal)
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.constants[node.targets[0].id] = literal(node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.constants[node.target.id] = literal(node.value)
        self._visit(tree, "", None)
        self._find_aliases(tree.body)

    def _find_aliases(self, body):
        """`add_kernel = add` before `def add(x, y)`: the kernel add is launched, and named, as add_kernel."""
        aliases = {}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and isinstance(node.targets[0], ast.Name):
                aliases.setdefault(node.value.id, node.targets[0].id)
            elif isinstance(node, ast.FunctionDef) and node.name in aliases and not is_jit(node, self.imports):
                if node.name in self.functions:
                    self.functions[node.name].reference = aliases[node.name]

    def _visit(self, node, prefix, host):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "__name__" in ast.unparse(child.test):
                continue  # a script's own tests, which an import does not see
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                qualname = prefix + child.name
                if is_jit(child, self.imports):
                    self.functions.setdefault(qualname, Function(self, child, qualname))
                else:
                    self.hosts.append(child)
                    self._visit(child, qualname + ".", child)
            elif isinstance(child, ast.ClassDef):
                self._visit(child, prefix + child.name + ".", host)
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    self.imports[alias.asname or alias.name] = (child.level, child.module or "", alias.name)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    self.imports[alias.asname or alias.name.split(".")[0]] = (0, alias.name, None)
            else:
                self._visit(child, prefix, host)


class Project:
    """All files below a folder that hold @jit functions, and what the names in them mean."""

    def __init__(self, root, excludes=()):
        self.root = pathlib.Path(root)
        self.modules = {}
        self.unreadable = []  # (path, why)
        files = [self.root] if self.root.is_file() else sorted(self.root.rglob("*.py"))
        for file in files:
            relative = str(file.relative_to(self.root)) if file != self.root else file.name
            if not any(fnmatch.fnmatch(relative, pattern) for pattern in excludes):
                self._read(file)
        self._by_name = {}
        for module in self.modules.values():
            for function in module.functions.values():
                for name in {function.name, function.reference}:
                    self._by_name.setdefault(name, []).append(function)

    def _read(self, file):
        try:
            text = file.read_text(encoding="utf-8")
            if "jit" in text:
                self.modules[file] = Module(file, ast.parse(text))
                self.modules[file].import_folders = self.import_folders(file)
        except (SyntaxError, ValueError, RecursionError, OSError) as problem:
            self.unreadable.append((str(file), f"{type(problem).__name__}: {problem}"))

    def by_name(self, name):
        """All @jit functions that somebody calls by that name."""
        return self._by_name.get(name, [])

    def import_folders(self, file):
        """Where Python would begin to search for the file's own package, also one that has folders without __init__.py.

        A package within a package (a copy of somebody else's, say) may be imported by its own name as well, and the project may
        be a part of a package: `import fla.ops` in a file below a/b/fla/ is looked for in a/b, too.
        """
        root = self.root if self.root.is_dir() else self.root.parent
        packages = [folder for folder in file.parents if root in folder.parents and (folder / "__init__.py").exists()]
        first = packages[-1].parent if packages else root
        words = {module.split(".")[0] for dots, module, _ in self.modules[file].imports.values() if not dots}
        named = [folder.parent for folder in file.parents if folder.name in words]
        return [first] + [folder for folder in named if folder != first]

    def functions(self):
        return [function for module in self.modules.values() for function in module.functions.values()]

    def resolve(self, module, name):
        """The @jit function that a name in a module means, or None."""
        last = name.rsplit(".", 1)[-1]
        found = module.functions.get(name) or next((f for f in module.functions.values() if f.reference == name), None)
        if found:
            return found
        candidates = self._by_name.get(last, [])
        local = [f for f in candidates if f.module is module]
        if local:
            return local[0]
        imported = module.imports.get(name.split(".")[0])
        if not imported or not candidates:
            return None
        words = set(imported[1].split(".")) | {imported[2] or ""}
        return max(candidates, key=lambda f: (f.module.path.stem in words, f.module.path.parent == module.path.parent))

    def kernels(self):
        """Functions that a host launches, tunes, or that nobody calls and that give no value."""
        launched, called = self._uses()
        result = []
        for function in self.functions():
            if {"_builder", "_semantic"} & set(function.parameters):
                continue  # it extends the compiler
            is_launched = function in launched and (function not in called or not function.returns_value())
            if is_launched or function.is_autotuned or (function not in called and not function.returns_value()):
                result.append(function)
        return result

    def _uses(self):
        launched, called = set(), set()
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                    launched.add(self.resolve(module, dotted(node.func.value)))
            for function in module.functions.values():
                for node in ast.walk(function.node):
                    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
                    target = self.resolve(module, name) if name else None
                    if target and target is not function:
                        called.add(target)
        return launched, called
