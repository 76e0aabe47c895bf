"""Expressions on scalars of a kernel, as Triton has them: what a constexpr gives, to which type run-time values promote.

    scalars.py --triton PYTHON > scalars.expected      asks Triton (no GPU is needed) with a Python that has the package
    scalars.py DITRON_IMPORT                           compares with scalars.expected

A line of scalars.expected is `expression => answer`: the value of a constexpr, the type of a run-time value, or `refused`.
"""

import itertools
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ["i1", "i8", "u8", "i16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64"]
CONSTANTS = ["0", "1", "-1", "3", "-7", "True", "2.5", "-0.5", "127", "128", "-129", "255", "256", "2147483647", "2147483648", "-2147483649",
             "4294967295", "9223372036854775807", "9223372036854775808", "1e40", "0.1"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", "**"]
FUNCTIONS = ["min({}, {})", "max({}, {})", "tl.minimum({}, {})", "tl.maximum({}, {})", "tl.where(v_i1, {}, {})", "tl.cdiv({}, {})"]
UNARY = ["-{}", "+{}", "~{}", "not {}", "abs({})", "tl.abs({})", "tl.exp({})", "tl.sqrt({})", "tl.floor({})", "int({})", "float({})",
         "{}.to(tl.float16)", "{}.to(tl.int8)", "tl.cast({}, tl.int64)", "tl.full([], {}, tl.float32)", "{} if True else 1"]


def expressions():
    """All of them, in an order that does not change."""
    rng = random.Random(36)
    run_time = [f"v_{kind}" for kind in TYPES]
    constants = [f"C({text})" for text in CONSTANTS]
    chosen = []
    for operator in OPERATORS:
        chosen += [f"{a} {operator} {b}" for a, b in rng.sample(list(itertools.product(run_time, run_time)), 20)]
        chosen += [f"{a} {operator} {b}" for a, b in rng.sample(list(itertools.product(run_time, constants)), 14)]
        chosen += [f"{a} {operator} {b}" for a, b in rng.sample(list(itertools.product(constants, run_time)), 8)]
        chosen += [f"{a} {operator} {b}" for a, b in rng.sample(list(itertools.product(constants[:17], constants[:11])), 14)]
    for function in FUNCTIONS:
        pairs = list(itertools.product(run_time + constants, run_time + constants))
        chosen += [function.format(a, b) for a, b in rng.sample(pairs, 30)]
    for form in UNARY:
        chosen += [form.format(a) for a in rng.sample(run_time, 8) + rng.sample(constants, 6)]
    return chosen


def kernel_text(cases):
    """A kernel that prints number and answer of each case; C(x) is a constexpr."""
    lines = ["import triton", "import triton.language as tl", "", "@triton.jit", "def kernel(" + ", ".join(f"v_{kind}" for kind in TYPES) + "):"]
    for number, expression in cases:
        written = re.sub(r"C\((.*?)\)", r"tl.constexpr(\1)", expression)
        lines += [f"    r{number}: tl.constexpr = {written}", f"    tl.static_print('case', {number}, r{number})"]
    return "\n".join(lines) + "\n"


def answer_of(text):
    """The printed answer in one form for both: Triton writes a scalar's type with brackets."""
    return text.strip().removesuffix("[]")


TRITON = r'''
import io, sys, json, contextlib, tempfile, importlib.util
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton._C.libtriton import ir
TYPES = json.loads(sys.argv[1])
target = GPUTarget("cuda", 90, 32)
backend = make_backend(target)
for line in sys.stdin:
    number, text = json.loads(line)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        spec = importlib.util.spec_from_file_location("m", file.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        out = io.StringIO()
        try:
            source = ASTSource(module.kernel, {f"v_{kind}": kind for kind in TYPES}, {})
            options = backend.parse_options({})
            context = ir.context()
            ir.load_dialects(context)
            backend.load_dialects(context)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
            print(json.dumps([number, out.getvalue()]), flush=True)
        except Exception as error:
            print(json.dumps([number, None]), flush=True)
'''


def ask_triton(python):
    import json
    cases = list(enumerate(expressions()))
    requests = "".join(json.dumps([number, kernel_text([(number, text)])]) + "\n" for number, text in cases)
    done = subprocess.run([python, "-c", TRITON, json.dumps(TYPES)], input=requests, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    for line in done.stdout.splitlines():
        number, printed = json.loads(line)
        answer = re.search(r"^case \d+ (.*)$", printed or "", re.M)
        print(f"{cases[number][1]} => {answer_of(answer[1]) if answer else 'refused'}")


if __name__ == "__main__" and sys.argv[1] == "--triton":
    ask_triton(sys.argv[2])


def ask_ditron(tool, cases):
    """The answers by number; a file has at most twenty messages."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scalars.py"
        for first in range(0, len(cases), 18):
            path.write_text(kernel_text(cases[first : first + 18]))
            done = subprocess.run([tool, f"{path}:kernel", "--signature", ",".join(TYPES)], capture_output=True, text=True, timeout=60)
            if done.returncode not in (0, 1, 2):
                sys.exit(f"exit code {done.returncode}: {done.stderr[-2000:]}\n{path.read_text()}")
            for number, value in re.findall(r"^// static_print: case (\d+) (.*)$", done.stdout, re.M):
                answers[int(number)] = answer_of(value)
    return answers


def main():
    expected = [line.split(" => ") for line in (HERE / "scalars.expected").read_text().splitlines()]
    answers = ask_ditron(sys.argv[1], [(number, expression) for number, (expression, _) in enumerate(expected)])
    accepted = {line for line in (HERE / "scalars.accepted").read_text().splitlines() if not line.startswith("#")}
    equal, more, failures = 0, 0, []
    for number, (expression, answer) in enumerate(expected):
        given = answers.get(number, "refused")
        if given == answer:
            equal += 1
        elif f"{expression} => {given}" in accepted:
            more += 1
        else:
            failures.append(f"{expression}: Triton {answer}, Ditron {given}")
    if failures:
        print("\n".join(failures))
    print(f"{len(expected)} expressions: {equal} equal, {more} otherwise on purpose (scalars.accepted), {len(failures)} different")
    return 1 if failures else 0


if __name__ == "__main__" and sys.argv[1] != "--triton":
    sys.exit(main())
