# RUN: ditron-import %s:kernel --signature "*fp32" | FileCheck %s
# Native functions: what Python's own modules, and the few packages that every program has, give while compiling. Each
# group is a constant of the module level, so that a failure names its number. The groups up to PATHS hold under CPython too.
import collections
import copy
import functools
import importlib.metadata
import importlib.util
import itertools
import math
import operator
import os
import platform
import sys
import typing
from functools import partial, reduce
from typing import Optional

import triton
import triton.language as tl


def good(results):
    bad = [index for index, result in enumerate(results) if result is not True]
    assert not bad, f"wrong: {bad}"
    return True


def raised(function, *arguments):
    try:
        function(*arguments)
    except ArithmeticError:
        return "arithmetic"
    except LookupError:
        return "lookup"
    except (TypeError, ValueError) as error:
        return "argument"
    return "nothing"


NUMBERS = tl.constexpr(good([
    divmod(-7, 2) == (-4, 1), pow(3, 200, 1000007) == 3 ** 200 % 1000007, abs(-2 ** 70) == 2 ** 70, round(2.675, 2) == 2.67,
    round(0.5) == 0, round(1.5) == 2, round(12345, -2) == 12300, round(-1234.5, -2) == -1200.0, hex(-255) == "-0xff",
    oct(8) == "0o10", bin(5) == "0b101", int("ff", 16) == 255, int("0b11", 0) == 3, int(-3.9) == -3, float("1e3") == 1000.0,
    (255).bit_length() == 8, (255).bit_count() == 8, (0.75).as_integer_ratio() == (3, 4), (2.0).is_integer(),
    raised(int, "x") == "argument", raised(divmod, 1, 0) == "arithmetic",
]))

MATH = tl.constexpr(good([
    math.gcd(12, 18, 27) == 3, math.lcm(4, 6) == 12, math.isqrt(10 ** 30) == 10 ** 15, math.comb(10, 3) == 120, math.perm(5, 2) == 20,
    math.factorial(20) == 2432902008176640000, math.ceil(-1.5) == -1, math.floor(1e20) == 10 ** 20, math.trunc(-1.9) == -1,
    math.log2(2 ** 100) == 100.0, math.log(8, 2) == 3.0, math.log10(1000) == 3.0, math.sqrt(2.25) == 1.5, math.fsum([0.1] * 10) == 1.0,
    math.prod([2, 3, 7]) == 42, math.hypot(3, 4) == 5.0, math.copysign(1, -0.0) == -1.0, math.fmod(-7, 3) == -1.0,
    math.remainder(7, 4) == -1.0, math.frexp(8.0) == (0.5, 4), math.ldexp(0.5, 4) == 8.0, math.isclose(0.1 + 0.2, 0.3),
    math.isinf(math.inf), math.isnan(math.nan), math.isfinite(math.tau), math.degrees(math.pi) == 180.0, math.exp(0) == 1.0,
    raised(math.sqrt, -1) == "argument", raised(math.exp, 1000) == "arithmetic", raised(math.log, 0) == "argument",
]))

SEQUENCES = tl.constexpr(good([
    sorted([3, 1, 2], reverse=True) == [3, 2, 1], sorted(["bb", "a"], key=len) == ["a", "bb"], sum([[1], [2]], []) == [1, 2],
    min([], default=4) == 4, max("ab", "c", key=lambda text: len(text)) == "ab", list(zip("ab", [1, 2])) == [("a", 1), ("b", 2)],
    list(enumerate("ab", 1)) == [(1, "a"), (2, "b")], list(map(pow, [2, 3], [3, 2])) == [8, 9], next(iter({5: 6})) == 5,
    next(iter([]), None) is None, list(filter(None, [0, 1, 2])) == [1, 2], list(reversed((1, 2))) == [2, 1], len(range(0, 10, 3)) == 4,
    all([]), not any([0, ""]), dict([("a", 1)], b=2) == {"a": 1, "b": 2}, dict.fromkeys("ab", 0) == {"a": 0, "b": 0},
    list(itertools.product("ab", repeat=2))[1] == ("a", "b"), list(itertools.permutations([1, 2, 3], 2))[-1] == (3, 2),
    list(itertools.combinations(range(4), 2))[-1] == (2, 3), list(itertools.chain([1], (2,))) == [1, 2],
    list(itertools.chain.from_iterable([[1], [2]])) == [1, 2], list(itertools.accumulate([1, 2, 3], operator.mul)) == [1, 2, 6],
    list(itertools.islice(range(10), 2, 8, 3)) == [2, 5], list(itertools.repeat(1, 2)) == [1, 1],
    list(itertools.pairwise([1, 2, 3])) == [(1, 2), (2, 3)], list(itertools.zip_longest([1], "ab")) == [(1, "a"), (None, "b")],
    reduce(operator.add, [1, 2], 3) == 6, partial(divmod, 7)(2) == (3, 1), partial(int, base=2)("101") == 5,
    operator.itemgetter(1, 0)([4, 5]) == (5, 4), operator.contains([1], 1), operator.floordiv(7, 2) == 3,
    collections.Counter("aab")["a"] == 2, collections.OrderedDict([(1, 2)]) == {1: 2}, copy.deepcopy([[1]]) == [[1]],
    isinstance(True, int), not isinstance("a", (int, float)), isinstance((1,), tuple), isinstance({}, dict), callable(len),
    type(1.0) is float, type([]).__name__ == "list", issubclass(KeyError, LookupError),
]))


def table():
    lists = collections.defaultdict(list)
    lists["a"].append(1)
    lists["a"].insert(0, 2)
    numbers = [3, 1, 2]
    numbers.sort(key=lambda x: -x)
    numbers.extend((5, 6))
    last = numbers.pop()
    numbers.remove(1)
    seen = set()
    for x in [1, 2, 1]:
        seen.add(x)
    seen |= {7}
    options = {"x": 1}
    options.setdefault("y", 2)
    options.update(z=3)
    taken = options.pop("x")
    return [lists == {"a": [2, 1]}, numbers == [3, 2, 5], last == 6, seen == {7, 2, 1}, len(seen) == 3, {1, 2} < seen,
            sorted(seen - {1}) == [2, 7], seen & {1, 9} == {1}, seen.issuperset([7]), seen.isdisjoint({3}), options == {"y": 2, "z": 3},
            taken == 1, list(options.items())[0] == ("y", 2), options.get("w") is None, numbers.index(2) == 1,
            raised(operator.getitem, options, "w") == "lookup", raised(numbers.pop, 9) == "lookup"]


CONTAINERS = tl.constexpr(good(table()))

TEXT = tl.constexpr(good([
    "aXbX".replace("X", "-", 1) == "a-bX", " a b ".split() == ["a", "b"], "a,b,c".rsplit(",", 1) == ["a,b", "c"],
    "a\nb\r\n".splitlines() == ["a", "b"], "x=1=2".partition("=") == ("x", "=", "1=2"), "abc".rpartition("-") == ("", "", "abc"),
    "-7".zfill(4) == "-007", "ab".center(5, "*") == "**ab*", "ab".ljust(3) == "ab ", "xxabxx".strip("x") == "ab",
    "banana".find("an", 2) == 3, "banana".rindex("an") == 3, "banana".count("a", 2) == 2, "file.py".endswith((".c", ".py")),
    "hello world".title() == "Hello World", "aB".swapcase() == "Ab", "x1".isidentifier(), not "".isdigit(), ",".join("abc") == "a,b,c",
    "float32".removeprefix("float") == "32", "{0}-{1!r:>4}{{{x[0]:0{w}d}}}".format("a", "b", x=[7], w=3) == "a- 'b'{007}",
    "%-4s|%05.2f|%#x|%3d%%" % ("ab", 3.14159, 255, 7) == "ab  |03.14|0xff|  7%", "%(n)s" % {"n": 1} == "1",
    format(1234567, ",") == "1,234,567", repr("a'b") == '"a\'b"', ord("€") == 8364, chr(8364) == "€", "€5".index("5") == 1,
    raised("{} {0}".format, 1) == "argument", raised("ab".index, "x") == "argument",
]))

PATHS = tl.constexpr(good([
    os.path.join("a", "b/", "c") == "a/b/c", os.path.join("a", "/b") == "/b", os.path.dirname("/a/b.py") == "/a",
    os.path.basename("/a/b.py") == "b.py", os.path.splitext("a/b.tar.gz") == ("a/b.tar", ".gz"), os.path.normpath("a/../b//c/.") == "b/c",
    os.path.isabs("/a"), os.name == "posix", os.environ.get("DITRON_NATIVES_TEST_NOT_SET") is None,
    os.getenv("DITRON_NATIVES_TEST_NOT_SET", "x") == "x", "DITRON_NATIVES_TEST_NOT_SET" not in os.environ,
    raised(operator.getitem, os.environ, "DITRON_NATIVES_TEST_NOT_SET") == "lookup",
    os.environ.setdefault("DITRON_NATIVES_TEST_SET", "1") == "1", os.environ["DITRON_NATIVES_TEST_SET"] == "1",
    sys.version_info >= (3, 8), sys.version_info[0] == 3, sys.version_info.major == 3, sys.maxsize == 2 ** 63 - 1,
    platform.python_version().startswith("3."), not typing.TYPE_CHECKING, Optional[int] is not None,
    typing.cast(int, 3) == 3, importlib.util.find_spec("math") is not None,
]))


# ---- Under CPython what follows needs torch, packaging and a GPU of the target.
import numpy as np
import torch
from packaging import version
from packaging.version import Version, parse


@functools.lru_cache(maxsize=None)
def cached(x):
    return x + 1


@torch.compiler.disable
@functools.cache
def cached_too(x):
    return x + 2


VERSIONS = tl.constexpr(good([
    parse("1.0.dev1") < parse("1.0a1") < parse("1.0b2") < parse("1.0rc1") < parse("1.0") < parse("1.0+cu12") < parse("1.0.post1"),
    version.parse("1.10") > version.parse("1.9"), Version("1.0") == Version("1.0.0"), Version("1!0.1") > Version("9"),
    parse("v2.9.0+cu128").release == (2, 9, 0), parse("2.9.0rc1").base_version == "2.9.0", parse("2.9.0rc1").is_prerelease,
    str(parse("1.0-alpha.1")) == "1.0a1", parse("3.6").minor == 6, parse("3.6").micro == 0,
    version.parse(triton.__version__) >= version.parse("3.0.0"), Version(torch.__version__) >= Version("2.4"),
    importlib.metadata.version("triton") == triton.__version__,
]))

TORCH = tl.constexpr(good([
    torch.half == torch.float16, torch.float16 != torch.bfloat16, torch.float32.itemsize == 4, torch.bfloat16.is_floating_point,
    str(torch.int64) == "torch.int64", {torch.float16: "a"}[torch.half] == "a", torch.float16 in (torch.bfloat16, torch.float16),
    isinstance(torch.int8, torch.dtype), torch.finfo(torch.float16).max == 65504.0, torch.finfo(torch.float32).eps == 2.0 ** -23,
    torch.finfo(torch.bfloat16).tiny == 2.0 ** -126, torch.iinfo(torch.int8).min == -128, torch.iinfo(torch.uint8).max == 255,
    np.finfo(np.float32).max == torch.finfo(torch.float32).max, np.pi == math.pi, torch.cuda.is_available(),
    len(torch.cuda.get_device_capability()) == 2, torch.version.hip is None, hasattr(torch, "float8_e4m3fn"), cached(1) == 2,
    cached_too(1) == 3, torch.device("cuda:1").index == 1,
]))

TRITON = tl.constexpr(good([
    triton.cdiv(7, 2) == 4, triton.next_power_of_2(17) == 32, triton.Config({"A": 1}, num_warps=8).num_warps == 8,
    triton.Config({"A": 1}, 2).kwargs == {"A": 1}, triton.runtime.driver.active.get_current_target().backend == "cuda",
    triton.runtime.driver.active.get_current_target().arch == 10 * torch.cuda.get_device_capability()[0] + torch.cuda.get_device_capability()[1],
    triton.runtime.driver.active.get_current_target().warp_size == 32,
    triton.Config({"A": 1}, num_warps=8).all_kwargs() == {"A": 1, "num_warps": 8, "num_ctas": 1, "num_stages": 3},
]))


def found(name, places=("triton.language.extra.libdevice", "triton.language.math")):
    for place in places:
        if spec := importlib.util.find_spec(place):
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return getattr(module, name)


rsqrt = found("rsqrt")


@triton.jit
def kernel(out):
    # CHECK: func.func @kernel
    # A kernel reads the constants of modules, as Triton does.
    tl.static_assert(torch.version.hip is None and np.pi > 3.14)
    # CHECK: math.rsqrt
    tl.store(out + 1, rsqrt(tl.load(out)))
    tl.static_assert(NUMBERS)
    tl.static_assert(MATH)
    tl.static_assert(SEQUENCES)
    tl.static_assert(CONTAINERS)
    tl.static_assert(TEXT)
    tl.static_assert(PATHS)
    tl.static_assert(VERSIONS)
    tl.static_assert(TORCH)
    tl.static_assert(TRITON)
    tl.store(out, 1.0)
