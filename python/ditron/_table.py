"""The modules of the kernel language as Python objects.

The language is declared in stubs (stubs/triton/**.pyi, written by the compiler from its own table). For every name a stand-in is made
that knows its dotted name: a kernel that captures it imports that name in the text handed to the compiler. Stand-ins cannot be called
on the host, except for the few that Triton calls there (cdiv, constexpr, dtypes).
"""
import os
import re
import types

from ._values import DTYPES, constexpr, const, dtype, make_block_type, make_pointer_type, slice_type, tensor_stub, tuple_value

STUBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stubs")


class KernelFunction:
    """A function of the language: only kernels can call it."""

    __triton_builtin__ = True

    def __init__(self, dotted):
        self.__ditron_name__ = dotted
        self.__name__ = self.__qualname__ = dotted.rpartition(".")[2]
        self.__module__ = dotted.rpartition(".")[0]

    def __call__(self, *arguments, **keywords):
        raise ValueError(f"{self.__ditron_name__} can only be called in a kernel: did you forget to add @triton.jit? "
                         "(`_semantic` argument must be provided outside of JIT functions.)")

    def __repr__(self):
        return f"<function {self.__ditron_name__} of the kernel language>"


class KernelClass(KernelFunction):
    """A class of the language; its members exist in kernels."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return KernelClass(f"{self.__ditron_name__}.{name}")


class LanguageModule(types.ModuleType):
    """A module of the language; a name that it lacks is an error that says so."""

    def __init__(self, name):
        super().__init__(name)
        self.__ditron_name__ = name
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"module '{self.__name__}' has no '{name}': Ditron does not have it")


def _cdiv(x, y):
    """The quotient, rounded up."""
    return (int(x) + int(y) - 1) // int(y)


def _next_power_of_2(n):
    """The smallest power of two that is not below n."""
    n = int(n) - 1
    for shift in (1, 2, 4, 8, 16, 32):
        n |= n >> shift
    return n + 1


def host_function(function, dotted):
    """A function of the language that the host may call, too."""
    function.__ditron_name__ = dotted
    return function


_cdiv.__name__, _next_power_of_2.__name__ = "cdiv", "next_power_of_2"
HOST = {"cdiv": host_function(_cdiv, "triton.language.cdiv"), "next_power_of_2": host_function(_next_power_of_2, "triton.next_power_of_2"),
        "constexpr": constexpr, "const": const, "dtype": dtype, "tensor": tensor_stub, "pointer_type": make_pointer_type,
        "block_type": make_block_type, "tuple": tuple_value, "slice": slice_type, **DTYPES}

_modules = {}
_stars = []  # of modules that are being made: (module, the one whose names it has, too)
_FUNCTION = re.compile(r"^(?:def (\w+)|class (\w+)|(\w+): \S)", re.MULTILINE)
_FROM = re.compile(r"^from (\S+) import (\w+) as (\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^import (\S+) as (\w+)", re.MULTILINE)
_STAR = re.compile(r"^from (\S+) import \*", re.MULTILINE)
_PREFIX = "ditron.stubs."
_HELPERS = ("_Number", "_Shape", "_tl")


def _path(dotted):
    base = os.path.join(STUBS, *dotted.split("."))
    for path in (os.path.join(base, "__init__.pyi"), base + ".pyi"):
        if os.path.exists(path):
            return path
    return None


def module(dotted):
    """The module of the language of that name."""
    made = _make(dotted)
    while _stars:
        into, source = _stars.pop(0)
        into.__dict__.update({key: value for key, value in vars(source).items() if not key.startswith("_")})
    return made


def _make(dotted):
    """Modules import each other: a module's own names are made before those that it imports, and all names of another one are copied at the very end."""
    if dotted in _modules:
        return _modules[dotted]
    path = _path(dotted)
    if path is None:
        raise ImportError(f"Ditron's kernel language has no module {dotted}")
    made = _modules[dotted] = LanguageModule(dotted)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for function, cls, constant in _FUNCTION.findall(text):
        declared = function or cls or constant
        if declared in _HELPERS or (constant and constant.startswith("_")):
            continue
        value = HOST.get(declared) if dotted.startswith("triton.") or dotted == "triton" else None
        setattr(made, declared, value or (KernelClass if cls else KernelFunction)(f"{dotted}.{declared}"))
    package = dotted if path.endswith("__init__.pyi") else dotted.rpartition(".")[0]
    for source, name, alias in _FROM.findall(text):
        if source in ("builtins", "typing"):
            continue
        source = source.removeprefix(_PREFIX)
        if source.startswith("."):
            source = (package + "." + source.lstrip(".")).rstrip(".")
        value = _make(f"{source}.{name}") if _path(f"{source}.{name}") else getattr(_make(source), name, None)
        if value is not None:
            setattr(made, alias, value)
    for source, alias in _IMPORT.findall(text):
        if alias not in _HELPERS:
            setattr(made, alias, _make(source.removeprefix(_PREFIX)))
    for source in _STAR.findall(text):
        _stars.append((made, _make(source.removeprefix(_PREFIX))))
    return made


def all_modules(package="triton.language"):
    """Every module of the language in that package, by its name."""
    root = os.path.join(STUBS, *package.split("."))
    names = []
    for folder, _, files in os.walk(root):
        for file in files:
            dotted = os.path.relpath(os.path.join(folder, file), STUBS).removesuffix(".pyi").replace(os.sep, ".")
            names.append(dotted.removesuffix(".__init__"))
    return {name: module(name) for name in sorted(names)}
