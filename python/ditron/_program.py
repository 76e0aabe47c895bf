"""Run files: programs of several hosts as data (docs/run-files.md).

    result = ditron.run_program("ring.json", seed=3)
    result["out_ptr"][1]            # what rank 1's buffer holds after the run, a NumPy array
    result.mismatches               # what `expect` steps found wrong; empty is good

    ditron.run_program({"ranks": 2, "buffers": {...}, "steps": [...]})     # the same from Python's own dicts and lists
"""
import json
import os
import sys

from . import _native
from ._errors import InvalidArgumentError
from ._values import DTYPES

# What NumPy calls the types of ditron.h, by their numbers; those that it has no name for are words.
_WORDS = {"int1": "bool", "bfloat16": "uint16", "float8e5": "uint8", "float8e4nv": "uint8"}
_NUMPY_TYPES = {dtype.number: _WORDS.get(name, name) for name, dtype in DTYPES.items() if getattr(dtype, "number", None) is not None}


class ProgramResult:
    """What a program has left: its buffers by name, each a list of NumPy arrays by rank."""

    def __init__(self, handle):
        self._handle = handle
        self.ranks = _native.program_ranks(handle)
        self.mismatches = _native.program_mismatches(handle)

    def array(self, buffer, rank=0):
        """The buffer on one rank."""
        import numpy
        number, shape, data = _native.program_get(self._handle, buffer, rank)
        return numpy.frombuffer(data, _NUMPY_TYPES[number]).reshape(shape).copy()

    def __getitem__(self, buffer):
        return [self.array(buffer, rank) for rank in range(self.ranks)]

    def __del__(self):
        if _native is not None:
            _native.program_destroy(self._handle)


def run_program(program, *, target=None, ranks=0, multiprocessors=0, seed=0, data_seed=0, time_limit=0.0, check=True, folder=None,
                print=None, ranks_per_node=0):
    """Runs a run file, or a dict of the same form, to its end.

    `target`, `ranks`, `ranks_per_node` and `multiprocessors` take the place of the program's own; `seed` chooses the interleaving, `data_seed` the
    numbers of rand:. `folder` is where a dict's kernel files are looked for. `print` gets what `print` steps say, sys.stdout.write
    without it. Errors of the running program (a deadlock, a race) are raised as those of kernels are."""
    path, text = None, None
    if isinstance(program, (str, os.PathLike)):
        path = os.fspath(program)
        if folder is not None:
            raise InvalidArgumentError("run_program: a run file's kernels are looked for beside it; `folder` is for programs that are no file")
    elif isinstance(program, dict):
        text = json.dumps(program, indent=1)
    else:
        raise InvalidArgumentError(f"run_program takes the path of a run file, or a dict; not {type(program).__name__}")
    handle = _native.program_run(path, text, folder, target, ranks, multiprocessors, seed, data_seed, time_limit, not check,
                                 print or sys.stdout.write, ranks_per_node)
    return ProgramResult(handle)
