"""Mistakes in kernels are exceptions that name the user's own file, line and column, and the next launch works."""
import inspect

import numpy as np
import pytest

import ditron
import ditron.language as tl

PLAIN = 5


@ditron.jit
def helper(x):
    return x + undefined_name  # noqa: F821


@ditron.jit
def calls_helper(x):
    tl.store(x, helper(1))


@ditron.jit
def reads_plain(x):
    tl.store(x, PLAIN)


@ditron.jit
def store_at(x, i):
    tl.store(x + i, 1)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function.fn)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_place_in_a_called_function():
    with pytest.raises(ditron.CompilationError) as caught:
        calls_helper[(1,)](np.zeros(1, np.int32))
    error = caught.value
    assert error.file.endswith("test_errors.py")
    assert error.line == line_of(helper, "undefined_name") and error.column == 16
    assert "    return x + undefined_name" in str(error) and "\n               ^~~~" in str(error)
    assert f"test_errors.py:{line_of(calls_helper, 'tl.store')}:" in str(error)


def test_place_in_an_inner_function():
    @ditron.jit
    def inner(x):
        tl.store(x, tl.laod(x))

    with pytest.raises(ditron.CompilationError, match="module 'triton.language' has no 'laod'") as caught:
        inner[(1,)](np.zeros(1, np.int32))
    assert caught.value.line == line_of(inner, "laod") and caught.value.column == 24


def test_plain_globals_are_refused():
    with pytest.raises(ditron.CompilationError, match="Cannot access global variable 'PLAIN'"):
        reads_plain[(1,)](np.zeros(1, np.int32))


def test_out_of_bounds_and_after():
    x = np.zeros(4, np.int32)
    with pytest.raises(ditron.OutOfBoundsError, match=f"test_errors.py:{line_of(store_at, 'tl.store')}:5: kernel store_at"):
        store_at[(1,)](x, 5000000)
    store_at[(1,)](x, 3)
    assert x.tolist() == [0, 0, 0, 1]


def test_language_is_for_kernels():
    with pytest.raises(ValueError, match="can only be called in a kernel"):
        tl.load(0)
    with pytest.raises(AttributeError, match="no attribute 'loda'"):
        tl.loda


def test_a_kernel_without_source():
    names = {"ditron": ditron, "tl": tl}
    exec("def made(x):\n    tl.store(x, 1)\n", names)
    with pytest.raises(ditron.CompilationError, match=r"source of function 'made' cannot be read .*: kernels are compiled from their text"):
        ditron.jit(names["made"])[(1,)](np.zeros(1, np.int32))
