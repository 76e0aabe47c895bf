"""Reports which kernels of a Triton project compile, and why the others do not.

usage: python3 utils/adoption PROJECT... [--ditron PROGRAM] [--json FILE] [--triton PYTHON] ...

A project is a checkout, the folder of an installed package, a single file, a wheel or an sdist. Nothing of it is executed
unless --triton asks for it, and nothing but Python and the program `ditron` is needed. For every kernel signatures are made
up from how it uses its parameters and from its launches (guess.py), and compiled until one goes through; a kernel counts as
compiled only then. With --triton, a Python that has Triton says of each signature that was refused whether Triton accepts
it: if so, the kernel counts as refused even if another signature compiles; if not, the signature was a bad guess. So no
refusal of ours hides behind a guess. Exit code 0; 1 if the compiler crashed, hung or reported a bug of its own; 2 for a
mistake in the command line.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import report
from compiling import COMPILED, GUESS, LATE, LOUD, RESOURCES, UNCLEAR, UNGUESSABLE, UNKNOWN, UNSUPPORTED, Compiler, Outcome, group
from guess import Constant, Dtype, Unguessable, attempts
from launches import find_launches
from project import AdoptionError, Project, open_project
from usage import UsageTable

NOT_MADE = "importing the file does not make this kernel"  # says oracle.py
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclasses.dataclass
class Kernel:
    """A kernel, its attempts, and what became of them."""

    function: object
    place: str
    attempts: list = dataclasses.field(default_factory=list)
    outcomes: list = dataclasses.field(default_factory=list)  # of the first attempts, in their order
    verdicts: dict | None = None  # number of a refused attempt -> None (Triton accepts it) or Triton's message
    outcome: Outcome | None = None  # of the kernel
    note: str = ""

    @property
    def name(self):
        return self.function.qualname

    @property
    def kind(self):
        return self.outcome.kind

    @property
    def loud(self):
        """crash, compiler bug, hang -> the first such outcome, whatever the other attempts gave."""
        return {outcome.kind: outcome for outcome in reversed(self.outcomes) if outcome.kind in LOUD}

    def as_json(self):
        result = {
            "kernel": self.name,
            "place": self.place,
            "kind": self.kind,
            "tried": len(self.outcomes),
            "compiled_attempts": sum(outcome.kind == COMPILED for outcome in self.outcomes),
        }
        for key in ("reason", "place", "signature"):
            if getattr(self.outcome, key):
                result["reason_place" if key == "place" else key] = getattr(self.outcome, key)
        if self.loud:
            result["loud"] = {kind: [outcome.reason, outcome.signature] for kind, outcome in self.loud.items()}
        if self.verdicts is not None:
            result["accepted_by_triton"] = sum(verdict is None for verdict in self.verdicts.values())
        if self.kind == COMPILED and self.outcome.warnings:
            result["warnings"] = [list(warning) for warning in self.outcome.warnings]
        if self.note:
            result["note"] = self.note
        return result


def measure(compiler, function, project, usage, launches, wanted):
    """Compiles the attempts of a kernel, in order, until as many as wanted went through."""
    root = project.root if project.root.is_dir() else project.root.parent
    kernel = Kernel(function, f"{function.module.path.relative_to(root)}:{function.node.lineno}")
    configs, problem = compiler.configs(function) if function.is_autotuned else ([], "")
    if problem:
        kernel.note = f"configurations: {problem}"
    try:
        if function.is_variadic:
            raise Unguessable("the kernel has '*' parameters")
        kernel.attempts = attempts(function, usage.of(function), launches.get(function, []), configs)
    except Unguessable as reason:
        kernel.outcome = Outcome(UNGUESSABLE, str(reason))
    for attempt in kernel.attempts:
        kernel.outcomes.append(compiler.compile(function, attempt))
        if sum(outcome.kind == COMPILED for outcome in kernel.outcomes) == wanted:
            break
    return kernel


def ask_triton(python, kernels):
    """Fills in the verdicts: does Triton accept what was refused?"""
    questions = []
    for kernel in kernels:
        refused, asked = [], collections.Counter()
        for number, outcome in enumerate(kernel.outcomes):
            reason = (outcome.place, group(outcome.reason))
            asked[reason] += 1
            if outcome.kind not in (COMPILED, *LOUD) and asked[reason] <= 2:  # the same again and again takes long to ask
                refused.append(number)
        if refused:
            questions.append((kernel, refused))
    lines = []
    for kernel, refused in questions:
        encoded = [
            {
                "arguments": {n: _encode(v) for n, v in kernel.attempts[number].arguments.items()},
                "num_warps": kernel.attempts[number].num_warps,
            }
            for number in refused
        ]
        lines.append(
            json.dumps({"file": os.path.abspath(kernel.function.module.path), "qualname": kernel.name, "attempts": encoded, "enough": 2})
        )
    program = shutil.which(python) or python
    with tempfile.TemporaryDirectory() as folder:  # modules that are imported may write where they are run
        done = subprocess.run(
            [os.path.abspath(program), str(HERE / "oracle.py")], input="\n".join(lines), text=True, capture_output=True, cwd=folder
        )
    answers = done.stdout.splitlines()
    if len(answers) != len(questions):
        raise AdoptionError(
            f"--triton {python}: {len(answers)} answers to {len(questions)} questions; it printed\n{done.stderr[-2000:]}"
        )
    for (kernel, refused), answer in zip(questions, map(json.loads, answers)):
        if "verdicts" in answer:
            kernel.verdicts = dict(zip(refused, answer["verdicts"]))
        else:
            kernel.note += f"; not judged by Triton: {answer['unknown']}"


def _encode(value):
    if not isinstance(value, Constant):
        return value
    return {"dtype": str(value.value)} if isinstance(value.value, Dtype) else {"value": value.value}


def is_not_made(kernel):
    """Whether we and Python agree that the module level, executed for this target, makes no such kernel."""
    return (
        NOT_MADE in kernel.note
        and "." not in kernel.name  # kernels of host functions are made by a call
        and all(f"has no kernel '{kernel.name}'" in outcome.reason for outcome in kernel.outcomes)
    )


def conclude(kernel):
    """The outcome of a kernel from those of its attempts."""
    if is_not_made(kernel):
        return Outcome(UNGUESSABLE, "the module level makes no such kernel for this target, here and in Python")
    compiled = [outcome for outcome in kernel.outcomes if outcome.kind == COMPILED]
    refused = [outcome for outcome in kernel.outcomes if outcome.kind not in (COMPILED, *LOUD)]
    if kernel.verdicts is not None:
        refused = [kernel.outcomes[number] for number, verdict in kernel.verdicts.items() if verdict is None]
        refused = [r for r in refused if not LATE.search(r.reason)]
        # What Triton accepts is refused by us alone, whatever the message says.
        refused = [dataclasses.replace(r, kind=UNSUPPORTED) if r.kind == GUESS else r for r in refused]
        if not refused and not compiled:
            number, verdict = next(iter(kernel.verdicts.items()))
            return Outcome(GUESS, f"Triton: {verdict}", "", kernel.outcomes[number].signature)
    elif compiled:
        refused = []
    if compiled and all(outcome.kind == RESOURCES for outcome in refused):
        refused = []  # other sizes fit
    order = [*LOUD, UNSUPPORTED, UNKNOWN, UNCLEAR, RESOURCES, GUESS, COMPILED]
    candidates = [*kernel.loud.values(), *refused] or compiled
    return (
        min(candidates, key=lambda outcome: order.index(outcome.kind)) if candidates else Outcome(UNGUESSABLE, "no signature")
    )


def progress(text):
    """A line on a terminal that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="" if text else "\r", file=sys.stderr, flush=True)


def survey(path, options, compiler, pool, keep):
    project = Project(open_project(path, keep).resolve(), options.exclude)
    for file, why in project.unreadable:
        print(f"adoption: {file} cannot be read: {why}", file=sys.stderr)
    usage, launches = UsageTable(project), find_launches(project)
    found = [f for f in project.kernels() if not options.only or options.only in f"{f.module.path}:{f.qualname}"]
    for function in found:
        usage.of(function)  # not by several threads at a time
    kernels = []
    for kernel in pool.map(lambda f: measure(compiler, f, project, usage, launches, options.signatures), found):
        kernels.append(kernel)
        progress(f"{project.root.name}: {len(kernels)} of {len(found)} kernels")
    if options.triton:
        progress(f"{project.root.name}: asking Triton")
        ask_triton(options.triton, kernels)
    progress("")
    for kernel in kernels:
        kernel.outcome = kernel.outcome or conclude(kernel)
        for kind, outcome in kernel.loud.items():
            print(
                f"adoption: {kind.upper()}: {kernel.place} {kernel.name}: {outcome.reason}\n"
                f"  --signature '{outcome.signature}'",
                file=sys.stderr,
            )
    return kernels


def parse_arguments():
    parser = argparse.ArgumentParser(prog="adoption", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "projects", nargs="+", metavar="PROJECT", help="a folder, a .py file, a wheel or an sdist; NAME=PATH names it"
    )
    parser.add_argument(
        "--ditron", default=str(ROOT / "build/bin/ditron"), metavar="PROGRAM", help="the compiler (%(default)s)"
    )
    parser.add_argument("--target", default="cuda:sm_90a", help="what to compile for (%(default)s)")
    parser.add_argument(
        "--import-only", action="store_true", help="stop after the frontend: faster, and finds what is refused by name"
    )
    parser.add_argument("--triton", metavar="PYTHON", help="a Python that has Triton, which says what signatures are right")
    parser.add_argument(
        "--signatures",
        type=int,
        default=1,
        metavar="N",
        help="compile a kernel until this many of its signatures went through (%(default)s)",
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="files to leave out, relative to the project"
    )
    parser.add_argument("--only", metavar="TEXT", help="kernels whose FILE:NAME contains the text")
    parser.add_argument("--path", action="append", default=[], metavar="FOLDER", help="where the project's imports lie besides")
    parser.add_argument(
        "--define",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what the projects' module level asks of the machine, as ditron compile takes it",
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="compilations at a time (%(default)s)")
    parser.add_argument(
        "--limit", type=int, default=60, metavar="SECONDS", help="limit of a compilation's processor time (%(default)s)"
    )
    parser.add_argument("--examples", type=int, default=1, metavar="N", help="examples of each reason (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write every kernel's outcome")
    return parser.parse_args()


def main():
    options = parse_arguments()
    compiler = Compiler(
        options.ditron,
        options.target,
        "tile" if options.import_only else "asm",
        options.limit,
        [f"--path={path}" for path in options.path] + [f"--define={define}" for define in options.define],
    )
    projects, keep = {}, []
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for text in options.projects:
                name, separator, path = text.partition("=")
                path = path if separator else text
                name = name if separator else pathlib.Path(path).resolve().name
                projects[name] = survey(path, options, compiler, pool, keep)
    except (AdoptionError, OSError) as problem:
        print(f"adoption: {problem}", file=sys.stderr)
        return 2
    print(report.as_text(projects, options.examples), end="")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report.as_json(projects), indent=1) + "\n")
    return 1 if any(result.loud for results in projects.values() for result in results) else 0


sys.exit(main())
