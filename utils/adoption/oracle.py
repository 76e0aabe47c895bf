"""Which attempts does Triton itself accept? Run by a Python that has the package triton; no GPU is needed.

usage: PYTHON oracle.py < requests > answers      (adoption --triton PYTHON does this)

A request is a line of JSON: {"file", "qualname", "line", "attempts": [{"arguments": {name: value}, "num_warps"}], "enough":
how many accepted attempts are enough}, sorted by file; a value is a type's text, or {"value": ...}, or {"dtype": name}. The
answer to it is a line as well: {"verdicts": [null or Triton's message, ...]} or {"unknown": why}. Modules are imported for
real, each in a process of its own; packages that are not installed (torch on a machine for compiling) are replaced by
objects that agree to everything.
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import itertools
import json
import os
import pathlib
import re
import signal
import sys
import types

LIMIT = 20  # seconds for one attempt
IMPORT_LIMIT = 120
# What an NVIDIA machine does not have: other vendors' packages.
ABSENT = re.compile(
    r"(^|_)(npu|mlu|musa|xpu|hip|xla|hpu|gcu|ppu|mps|maca|tpu|habana|neuron|cambricon|ascend|kunlunxin)(_|$)", re.I
)


class Agreeable(types.ModuleType):
    """Stands for a package that is not installed, and for everything in it."""

    def __init__(self, name="agreeable"):
        super().__init__(name)
        self.__path__, self.__version__ = [], "9.9.9"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__") or ABSENT.search(name):
            raise AttributeError(name)
        value = {"get_device_capability": lambda *_: (9, 0), "is_available": lambda *_: True}.get(name) or Agreeable(name)
        setattr(self, name, value)
        return value

    def __call__(self, *args, **kwargs):
        plain = len(args) == 1 and not kwargs and (isinstance(args[0], types.FunctionType) or isinstance(args[0], type))
        return args[0] if plain else Agreeable()  # a decorator gives back what it decorates

    def __mro_entries__(self, bases):
        return (AgreeableBase,)

    def __bool__(self): return True
    def __int__(self): return 1
    def __index__(self): return 1
    def __float__(self): return 1.0
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __getitem__(self, key): return Agreeable()
    def __setitem__(self, key, value): pass
    def __contains__(self, key): return False
    def __enter__(self): return self
    def __exit__(self, *_): return False
    def __lt__(self, other): return False
    def __le__(self, other): return False
    def __gt__(self, other): return True
    def __ge__(self, other): return True
    def __hash__(self): return id(self)
    def __eq__(self, other): return self is other
    def __str__(self): return "9.9.9"


class AgreeableClass(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Agreeable(name)


class AgreeableBase(metaclass=AgreeableClass):
    """The base class of classes that inherit from something that is not installed."""

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        pass


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "or", "and", "xor"):
    for _form in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(Agreeable, _form, lambda self, other: self)


class AgreeableFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("triton", "numpy", "__main__") or any(ABSENT.search(word) for word in name.split(".")):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Agreeable(spec.name)

    def exec_module(self, module):
        pass


def record_jit_functions():
    """Every @jit function that is made from here on, by file and line; decorators around it cannot hide it."""
    from triton.runtime.jit import JITFunction

    made, original = {}, JITFunction.__init__

    def init(self, fn, *args, **kwargs):
        original(self, fn, *args, **kwargs)
        made[(os.path.realpath(fn.__code__.co_filename), fn.__qualname__)] = self

    JITFunction.__init__ = init
    return made


class TolerantFinder(importlib.abc.MetaPathFinder):
    """Modules of the project: what their module level wants of the machine (devices, tuning tables) may fail.

    Imports are as strict as ever: a kernel whose helpers are missing must not be judged.
    """

    def __init__(self, folder):
        self.folder = str(folder) + os.sep

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not (spec.origin or "").startswith(self.folder) or not spec.origin.endswith(".py"):
            return None
        spec.loader = TolerantLoader(spec.loader.name, spec.loader.path)
        return spec


class TolerantLoader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        tree = ast.parse(self.get_data(self.path))
        tree.body = [self._tolerant(statement) for statement in tree.body]
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    @staticmethod
    def _tolerant(statement):
        if isinstance(statement, ast.FunctionDef):  # tuning is none of our business
            jit = [d for d in statement.decorator_list if re.search(r"\bjit\b", ast.unparse(d))]
            statement.decorator_list = jit or statement.decorator_list
        if (
            isinstance(statement, (ast.Import, ast.ImportFrom))
            or isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        ):
            return statement
        skip = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
        return ast.copy_location(ast.Try([statement], [skip], [], []), statement)


def locate(file):
    """The folder that holds a file's outermost package, and the words of the module's name; the folder becomes importable."""
    path = pathlib.Path(file).resolve()
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        sys.meta_path.insert(0, TolerantFinder(folder))
    return folder, parts[:-1] if parts[-1] == "__init__" else parts


def import_file(file):
    folder, parts = locate(file)
    try:
        importlib.import_module(".".join(parts))
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == parts[0]]:
            del sys.modules[name]
        for length in range(1, len(parts)):  # without what the packages' __init__.py want of the machine
            _add_package(".".join(parts[:length]), folder.joinpath(*parts[:length]))
        importlib.import_module(".".join(parts))


def _add_package(name, folder):
    """A package whose __init__.py runs when something is asked of it that only it gives."""
    package = types.ModuleType(name)
    package.__path__, package.__file__ = [str(folder)], str(folder / "__init__.py")
    sys.modules[name] = package

    def ask(attribute):
        if attribute.startswith("__") or "_is_run" in package.__dict__:
            raise AttributeError(attribute)
        package._is_run = True
        try:
            exec(TolerantLoader(name, package.__file__).get_code(name), package.__dict__)
        except Exception as error:
            raise AttributeError(f"{name}.{attribute}: {error}") from error
        if attribute not in package.__dict__:
            raise AttributeError(attribute)
        return package.__dict__[attribute]

    package.__getattr__ = ask


def verdict(function, attempt):
    """None, or why Triton refuses the attempt."""
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource, make_backend

    types_, constants, attributes = {}, {}, {}
    names = {
        "fp16": "float16",
        "bf16": "bfloat16",
        "fp32": "float32",
        "fp64": "float64",
        "fp8e4nv": "float8e4nv",
        "fp8e5": "float8e5",
        "i1": "int1",
        **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
        **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    }
    for index, (name, value) in enumerate(attempt["arguments"].items()):
        if isinstance(value, dict):
            types_[name] = "constexpr"
            constants[name] = getattr(tl, names[value["dtype"]]) if "dtype" in value else value["value"]
        elif value.startswith("("):
            types_[name] = tuple(item.strip().split(":")[0] for item in value.strip("(),").split(","))
        else:
            base, _, divisor = value.partition(":")
            types_[name] = base.replace(",", ", ") if base.startswith("tensordesc") else base
            if divisor and not base.startswith("tensordesc"):
                attributes[(index,)] = [["tt.divisibility", int(divisor.split(":")[0])]]
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": attempt["num_warps"]})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(function, types_, constants, attributes)
    try:
        source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
        return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]
    return None


def lacks(function, message):
    """Whether Triton's refusal is about a name that this machine lacks."""
    named = re.search(r"global variable (\w+)", message)
    if named:
        return isinstance(function.fn.__globals__.get(named.group(1)), Agreeable)
    named = re.search(r"NameError.*?(\w+) is not defined", message)
    if named and named.group(1) in function.fn.__code__.co_varnames:
        return False  # a variable of the kernel's own, which these arguments leave unassigned
    return "is not defined" in message or "agreeable" in message.lower()


def in_child(limit, work):
    """What work() gives, computed in a process of its own, or the reason why it gave nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(limit)
        try:
            answer = work()
        except BaseException as error:  # SystemExit as well: the child ends here
            answer = {"failed": f"{type(error).__name__}: {error}"[:400]}
        with os.fdopen(writer, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": "the process ended (a crash, or the time limit)"}


def judge(requests, made):
    """Answers to the requests of one file."""
    file = os.path.realpath(requests[0]["file"])
    problem = ""
    try:
        import_file(file)
    except BaseException as error:  # part of the file may have been executed
        problem = f"{type(error).__name__}: {error}"[:300]
    answers = []
    for request in requests:
        function = made.get((file, request["qualname"]))
        if function is None:
            answers.append({"unknown": problem or "importing the file does not make this kernel"})
            continue
        verdicts = []
        for attempt in request["attempts"]:
            if verdicts.count(None) == request["enough"]:
                verdicts.append("not asked")
                continue
            answer = in_child(LIMIT, lambda: {"verdict": verdict(function, attempt)})
            verdicts.append(answer["verdict"] if "verdict" in answer else answer["failed"])
        missing = [v for v in verdicts if v and lacks(function, v)]
        is_unknown = missing and None not in verdicts  # a helper of the kernel's that this machine lacks
        answers.append({"unknown": missing[0]} if is_unknown else {"verdicts": verdicts})
    return answers


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print while they are imported is no answer
    sys.meta_path.append(AgreeableFinder())
    import triton  # noqa: F401  fails here, with a message, where it is not installed

    made = record_jit_functions()
    requests = [json.loads(line) for line in sys.stdin]
    for package in sorted({locate(request["file"])[1][0] for request in requests if len(locate(request["file"])[1]) > 1}):

        def import_package():
            importlib.import_module(package)
            return {}

        if in_child(IMPORT_LIMIT, import_package) == {}:  # once for all files, where it does no harm
            import_package()
    for _, batch in itertools.groupby(requests, key=lambda request: request["file"]):
        batch = list(batch)
        limit = IMPORT_LIMIT + LIMIT * sum(len(request["attempts"]) for request in batch)
        answers = in_child(limit, lambda: judge(batch, made))
        if isinstance(answers, dict):
            answers = [{"unknown": answers["failed"]}] * len(batch)
        for answer in answers:
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
