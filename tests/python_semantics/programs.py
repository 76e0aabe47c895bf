"""Programs of Python for the comparison of two evaluators: files with many small functions, each of which prints values."""

import random
import string

from expressions import Body, FLOATS, INTS, TEXTS
from snippets import SNIPPETS

PROLOGUE = '''\
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import types
import typing

import triton
import triton.language as tl

GLOBALS = {}


def shown(value):
    if isinstance(value, (set, frozenset)):
        return type(value).__name__ + str(sorted(value, key=repr))
    return repr(value)


def run(probe):
    lines = []

    def log(value):
        lines.append(shown(value))

    try:
        probe(log)
    except Exception as error:
        lines.append("raised " + type(error).__name__)
    return ascii(" | ".join(lines))[:20000]


'''


def typed(rng):
    """A function of random expressions and statements."""
    body = Body(rng)
    for _ in range(rng.randrange(3, 7)):
        body.bind()
    for _ in range(rng.randrange(1, 4)):
        body.statement()
    return "\n".join(body.lines)


def filled(rng, snippet):
    holes = {name: str(rng.randrange(0, 7)) for name in "ijk"}
    holes |= {"b": str(rng.randrange(2)), "n": rng.choice(INTS[:-6] + ["123456789012345678901234567890"]), "f": rng.choice([each for each in FLOATS if "'" not in each]),
              "t": rng.choice(TEXTS), "l": "[" + ", ".join(str(rng.randrange(-4, 12)) for _ in range(rng.randrange(0, 6))) + "]",
              "o": rng.choice(["add", "neg", "x"])}
    holes["n"] = f"({holes['n']})"
    text = string.Template(snippet.strip("\n")).substitute(holes)
    # Without some of its prints, so that one that is refused does not hide the others.
    kept = rng.choice([1.0, 0.5, 0.1])
    lines = []
    for line in text.splitlines():
        parts = line.split("; ") if line.startswith("log(") and ": log" not in line else [line]
        lines += [part for part in parts if len(parts) == 1 or not part.startswith("log(") or rng.random() < kept]
    text = "\n".join(lines)
    return "\n".join("    " + line for line in [*text.splitlines(), "log('end')"])


def program(rng, number):
    """The body of function `number`; every third is a snippet, in turn."""
    if number % 3 == 2:
        return filled(rng, SNIPPETS[(number // 3) % len(SNIPPETS)])
    return typed(rng)


def assemble(bodies, in_kernel=False):
    """The file of functions that are given as text: they run at the module level, or as constexpr functions of a kernel."""
    text = PROLOGUE
    for number, body in bodies:
        text += f"def probe_{number}(log):\n{body}\n\n\n"
        if in_kernel:
            text += f"@triton.constexpr_function\ndef entry_{number}():\n    return run(probe_{number})\n\n\n"
        else:
            text += f"RESULT_{number} = tl.constexpr(run(probe_{number}))\n\n\n"
    text += "@triton.jit\ndef kernel(x):\n"
    for number, _ in bodies:
        text += f"    tl.static_print('probe', {number}, {f'entry_{number}()' if in_kernel else f'RESULT_{number}'})\n"
    return text


def file_of(seed, first, count):
    """Functions first .. first + count - 1 of a seed, each of which depends on the seed and its number alone."""
    return [(number, program(random.Random(f"{seed}.{number}"), number)) for number in range(first, first + count)]


def bodies_of_case(text):
    """The functions of a file of cases: `# name` begins one, what follows is its body."""
    pieces = text.split("\n# ---")[1:]
    return [(number, "\n".join("    " + line for line in piece.split("\n", 1)[1].splitlines())) for number, piece in enumerate(pieces)]
