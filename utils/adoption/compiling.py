"""Runs the compiler on attempts and says what came of it.

A compiler that dies of a signal, reports a bug of its own or exceeds the time limit is never one refusal among others: each
of these is an outcome of its own, whatever later attempts give.
"""

import dataclasses
import os
import re
import resource
import signal
import subprocess

from launches import Dtype

COMPILED, UNSUPPORTED, UNKNOWN = "compiled", "unsupported", "needs --define"
GUESS, RESOURCES, UNCLEAR, UNGUESSABLE = "guess", "resources", "refused", "unguessable"
CRASH, BUG, HANG = "crash", "compiler bug", "hang"
LOUD = (CRASH, BUG, HANG)

BUSY = 10  # the limit is of processor time; one that only waits is ended after this many times the limit

# Texts of refusals that say a feature is missing here, whoever's types they are.
MISSING = re.compile(
    r"is not supported by this version|not supported|unsupported|is not part of the kernel language|"
    r"cannot be (evaluated|executed|called) at compile time|at compile time$|not known at compile time|"
    r"has no (attribute|method|'|field)|is not defined|cannot find|no such module|is not decorated with|"
    r"cannot be handed|only list comprehensions|is not implemented|cannot be called|cannot be subscripted"
)
# Texts of refusals that Triton has as well: the types or values of this attempt do not fit the kernel.
MISFIT = re.compile(
    r"Expected dtype|has initial type|incompatible dimensions|must be a power of 2|Only|Both inputs|Cannot bitcast|"
    r"same type|one type|different types|Cannot make_shape|cannot change total number|does not take|must have|"
    r"must be at least|Return type mismatch|needs (int1|32|floating|integers)|out of range|assertion failed|"
    r"this assertion is false|was raised|at most|Cannot store to|unsupported operand|cannot cast|must be a|must be an|"
    r"cannot be combined|cannot choose between|invalid operands|but got|integer division|division|expected a pointer|"
    r"must be same dtype|conditionals can only accept|only int8 supported|the signature"
)
# Refusals of ours for which Triton has no message of its own in the frontend: that it goes through there proves nothing.
LATE = re.compile(r"fills \d+ registers? with pack=")


@dataclasses.dataclass
class Outcome:
    """What one attempt came to."""

    kind: str
    reason: str = ""
    place: str = ""
    signature: str = ""
    warnings: tuple = ()  # (text, place), of a compilation that went through


class Compiler:
    """The program, with the options that all compilations share."""

    def __init__(self, program, target="cuda:sm_90a", emit="asm", limit=60, source_options=()):
        self.program, self.limit = program, limit
        self.common = ["--target", target, "--emit", emit, "-o", os.devnull, "--quiet"]
        self.source_options = list(source_options)

    def run(self, arguments):
        """(exit code or None when the limit passed, standard output, standard error)."""
        try:
            done = subprocess.run(
                [self.program, "compile"] + arguments,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.limit * BUSY,
                preexec_fn=self._confine,
            )
        except subprocess.TimeoutExpired:
            return None, "", ""
        return None if done.returncode == -signal.SIGXCPU else done.returncode, done.stdout, done.stderr

    def _confine(self):
        os.nice(1)
        resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit + 1))

    def configs(self, function):
        """The autotune configurations that can be compiled, and why there are none if the decorators cannot be evaluated."""
        code, out, err = self.run(self._kernel(function) + ["--list-configs"] + self.source_options)
        if code != 0:
            return [], _first_error(err)[0]
        found = []
        for line in out.splitlines():
            match = re.match(r"\d+: (.*)$", line)
            if match and "(refused:" not in line:
                found.append(_parse_config(match.group(1)))
        return found, ""

    def compile(self, function, attempt):
        options = [
            "--signature",
            attempt.signature(),
            "--num-warps",
            str(attempt.num_warps),
            "--num-stages",
            str(attempt.num_stages),
        ]
        code, _, err = self.run(self._kernel(function) + self.source_options + self.common + options)
        outcome = classify(code, err, self.limit)
        unassigned = re.match(r"name '(\w+)' is not defined", outcome.reason)
        if unassigned and outcome.kind == UNSUPPORTED and unassigned.group(1) in function.assigned():
            outcome.kind = GUESS  # these values lead along a path that assigns it nowhere
        outcome.signature = attempt.signature()
        if outcome.kind == COMPILED:
            outcome.warnings = _warnings(err)
        return outcome

    @staticmethod
    def _kernel(function):
        folders = [option for folder in function.module.import_folders for option in ("--path", str(folder))]
        return [f"{function.module.path}:{function.reference}"] + folders


def _parse_config(text):
    values = {}
    for name, quoted, plain in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))', text):
        values[name] = quoted if not plain else _number(plain)
    warps, stages = values.pop("num_warps", 4), values.pop("num_stages", 3)
    for option in ("num_ctas", "maxnreg"):
        values.pop(option, None)
    return values, warps, stages


def _number(text):

    named = {"True": True, "False": False, "None": None}
    if text in named:
        return named[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return Dtype(text)


def _first_error(text):
    """(message, place) of the first error in the compiler's output."""
    for line in text.splitlines():
        match = re.match(r"(.+?:\d+):\d+: error: (.*)", line) or re.match(r"()error: (.*)", line)
        if match:
            return match.group(2), match.group(1)
    lines = text.strip().splitlines()
    return (lines[-1] if lines else "no message"), ""


def _warnings(text):
    """(text, place) of each warning in the compiler's output, in order."""
    found = re.findall(r"^(?:(.+?:\d+):\d+: )?warning: (.*)", text, re.MULTILINE)
    return tuple(dict.fromkeys((message, place) for place, message in found))


def classify(code, err, limit):
    """The outcome of an exit code and the text of standard error."""
    message, place = _first_error(err)
    if code is None:
        return Outcome(HANG, f"no end within {limit} s of processor time")
    if code < 0 or code in (134, 136, 137, 139):
        return Outcome(CRASH, f"signal {-code if code < 0 else code - 128}: {message}", place)
    if code == 4 or "compiler bug" in err:
        return Outcome(BUG, message, place)
    if code == 0:
        return Outcome(COMPILED)
    if code == 3 or re.search(r"bytes of shared memory", message):
        return Outcome(RESOURCES, message, place)
    if re.search(r"depends on `.*which is not known at compile time", message):
        return Outcome(UNKNOWN, message, place)
    kind = GUESS if LATE.search(message) else UNSUPPORTED if MISSING.search(message) else GUESS if MISFIT.search(message) else UNCLEAR
    return Outcome(kind, message, place)


def group(reason):
    """A reason without what varies from kernel to kernel; names of functions and modules stay."""
    reason = re.sub(r"^(ditron: )?error: ", "", reason)
    reason = re.sub(r"\S+\.py has no kernels?( '\w+\.[\w.]+'|: no function).*", "a kernel inside of a host function", reason)
    reason = re.sub(r"\S*/\S+\.py", "FILE", reason)
    reason = re.sub(r"\b\d+(\.\d+)?\b", "N", reason)
    reason = re.sub(r"<[\[\]\dxNa-z*,. ]+>|\b(block|tensor) of \S+", "T", reason)
    if "is not supported by this version" in reason or "has no" in reason:
        return reason  # the name is the reason
    return re.sub(r"'[^']*'", "'...'", reason)
