"""Control flow, functions, constexpr rules, specialisation: each kernel is small and its result known."""
import numpy as np

from suite import Input, Output, Suite, ints, listed, numbers


class Small:
    """Cases that store a few numbers: `body` is the kernel's, arguments beside z are given."""

    def __init__(self, suite):
        self.s = suite

    def __call__(self, name, body, result, t="i32", params="", args=None, helpers="", error=None, globals_="", **fields):
        indented = "\n".join("    " + line if line else "" for line in body.strip("\n").split("\n"))
        text = (globals_ + "\n" if globals_ else "") + (helpers + "\n\n" if helpers else "") + f"@triton.jit\ndef kernel(z{', ' + params if params else ''}):\n{indented}"
        if error:
            self.s.error(name, text, error, {"z": Input(t, 16, {}), **(args or {})}, **fields)
            return
        self.s.kernel(name, text)
        kind = "i4" if t == "i32" else "i8" if t == "i64" else "u4" if t == "u32" else "?" if t == "i1" else "f8"
        rule = {"rtol": 1e-6} if t == "fp32" else {}
        self.s.case(name, name, {"z": Output(t, np.array(np.atleast_1d(result), dtype=kind), **rule), **(args or {})}, **fields)


def control(s):
    c = Small(s)
    # if
    for n, r in ((5, 1), (0, 2), (-3, 2)):
        c(f"if-else-{n}", "if n > 0:\n    a = 1\nelse:\n    a = 2\ntl.store(z, a)", r, params="n", args={"n": n})
        c(f"if-expression-{n}", "a = 10 if n > 0 else 20\ntl.store(z, a)", 10 * r, params="n", args={"n": n})
    for n, r in ((1, 10), (2, 20), (3, 30), (9, 40)):
        c(f"elif-{n}", "if n == 1:\n    a = 10\nelif n == 2:\n    a = 20\nelif n == 3:\n    a = 30\nelse:\n    a = 40\ntl.store(z, a)", r, params="n", args={"n": n})
        c(f"elif-constexpr-{n}", "if n == 1:\n    a = 10\nelif n == 2:\n    a = 20\nelif n == 3:\n    a = 30\nelse:\n    a = 40\ntl.store(z, a)", r, params="n: tl.constexpr", args={"n": n})
        c(f"if-only-{n}", "a = 40\nif n < 4:\n    a = n * 10\ntl.store(z, a)", r, params="n", args={"n": n})
        c(f"if-return-{n}", "if n == 9:\n    tl.store(z, 40)\n    return\ntl.store(z, n * 10)", r, params="n", args={"n": n})
    for k in range(8):
        p, q, w = k & 1, (k >> 1) & 1, (k >> 2) & 1
        r = 100 if p and q else 200 if p else 300 if w else 400
        c(f"nested-return-{k}", "if p:\n    if q:\n        tl.store(z, 100)\n        return\n    tl.store(z, 200)\nelse:\n    if w:\n        tl.store(z, 300)\n    else:\n        tl.store(z, 400)", r,
          params="p, q, w", args={"p": p * 2, "q": q * 2, "w": w * 2})
    c("if-condition-int", "if tl.load(z + 1):\n    tl.store(z, 3)\nelse:\n    tl.store(z, 4)", [4, 0])
    c("if-condition-pointer-null", "if n is None:\n    tl.store(z, 3)\nelse:\n    tl.store(z, n)", 3, params="n", args={"n": None})
    c("if-both-new", "if n > 2:\n    a = 1\n    b = 5\nelse:\n    b = 6\n    a = 2\ntl.store(z, a * 10 + b)", 15, params="n", args={"n": 4})
    c("if-block", "i = tl.arange(0, 4)\na = i\nif n > 2:\n    a = i * 10\ntl.store(z + i, a)", [0, 10, 20, 30], params="n", args={"n": 4})
    c("if-and-or", "if (n > 2 and n < 10) or n == 50:\n    tl.store(z, 1)\nelse:\n    tl.store(z, 0)", 1, params="n", args={"n": 50})
    c("if-not", "if not (n > 2):\n    tl.store(z, 1)\nelse:\n    tl.store(z, 2)", 2, params="n", args={"n": 50})
    c("if-tuple", "a = (1, 2)\nif n > 2:\n    a = (3, 4)\ntl.store(z, a[0] * 10 + a[1])", 34, params="n", args={"n": 4})
    c("static-dead-branch", "if False:\n    this_is_not_defined(1)\n    raise Problem\nelse:\n    tl.store(z, 5)", 5)
    c("static-types-differ", "if FLAG:\n    a = 1.5\nelse:\n    a = tl.arange(0, 4)\ntl.store(z, (a * 2).to(tl.int32))", 3, params="FLAG: tl.constexpr", args={"FLAG": True})
    c("unsplat", "if tl.load(z + tl.arange(0, 1)) == 0:\n    tl.store(z, 7)", 7)
    # for
    for lo, hi, step in ((0, 10, 1), (3, 20, 4), (5, 5, 1), (8, 3, 1), (10, 0, -1), (10, 0, -3), (-5, 5, 2)):
        r = 0
        for i in range(lo, hi, step):
            r = r * 3 + i
        wrapped = (r + 2**31) % 2**32 - 2**31
        c(f"for-{lo}-{hi}-{step}", f"r = 0\nfor i in range({lo}, {hi}, {step}):\n    r = r * 3 + i\ntl.store(z, r)", wrapped)
        c(f"static-range-{lo}-{hi}-{step}", f"r = 0\nfor i in tl.static_range({lo}, {hi}, {step}):\n    r = r * 3 + i\ntl.store(z, r)", wrapped)
        if step > 0:
            c(f"for-runtime-{lo}-{hi}-{step}", "r = 0\nfor i in range(lo, hi, step):\n    r = r * 3 + i\ntl.store(z, r)", wrapped, params="lo, hi, step", args={"lo": lo, "hi": hi, "step": step})
    for option in ("num_stages=3", "loop_unroll_factor=2", "disallow_acc_multi_buffer=True", "flatten=True", "warp_specialize=False", "disable_licm=True", "num_stages=None", "loop_unroll_factor=None, num_stages=0"):
        c(f"range-{option.split('=')[0]}-{option.split('=')[-1]}", f"r = 0\nfor i in tl.range(0, 13, {option}):\n    r += i * i\ntl.store(z, r)", sum(i * i for i in range(13)))
    c("for-nested", "r = 0\nfor i in range(n):\n    for j in range(i, n):\n        r += i * j\ntl.store(z, r)", sum(i * j for i in range(7) for j in range(i, 7)), params="n", args={"n": 7})
    c("for-carried-block", "i = tl.arange(0, 4)\na = i\nfor k in range(n):\n    a = a * 2 + k\ntl.store(z + i, a)", [(lambda a: [a := a * 2 + k for k in range(5)][-1])(v) for v in range(4)], params="n", args={"n": 5})
    c("for-two-carried", "a, b = 0, 1\nfor k in range(n):\n    a, b = b, a + b\ntl.store(z, a)", 55, params="n", args={"n": 10})
    c("for-target-after", "for k in range(7):\n    pass\ntl.store(z, k)", 6)
    c("for-target-modified", "r = 0\nfor k in range(6):\n    k += 10\n    r += k\ntl.store(z, r)", sum(k + 10 for k in range(6)))
    c("for-int64", "r = n * 0\nfor k in range(n, n + 3):\n    r += k\ntl.store(z, r)", 3 * 2**33 + 3, t="i64", params="n", args={"n": 2**33})
    c("for-pointer", "p = z\nfor k in range(4):\n    tl.store(p, k * k)\n    p += 1", [0, 1, 4, 9])
    c("for-in-if", "if n > 3:\n    r = 0\n    for k in range(n):\n        r += k\n    tl.store(z, r)", 45, params="n", args={"n": 10})
    c("if-in-for", "r = 0\nfor k in range(n):\n    if k % 2 == 0:\n        r += k\n    else:\n        r -= 1\ntl.store(z, r)", sum(k if k % 2 == 0 else -1 for k in range(10)), params="n", args={"n": 10})
    c("for-breaks", "r = 0\nfor k in range(n):\n    if k == 5:\n        break\n    if k % 2 == 0:\n        continue\n    r += k\ntl.store(z, r)", 4, params="n", args={"n": 10})
    c("static-range-types", "a = 1\nfor k in tl.static_range(3):\n    a = a * 1.5\ntl.store(z, a)", 1.5**3, t="fp32")
    c("static-range-shape", "r = 0\nfor k in tl.static_range(1, 4):\n    r += tl.sum(tl.arange(0, 2 ** k), 0)\ntl.store(z, r)", 1 + 6 + 28)
    # while
    c("while", "r = 0\ni = 0\nwhile i < n:\n    r += i\n    i += 3\ntl.store(z, r)", sum(range(0, 20, 3)), params="n", args={"n": 20})
    c("while-nested", "r = 0\ni = 0\nwhile i < n:\n    j = 0\n    while j < i:\n        r += j\n        j += 1\n    i += 1\ntl.store(z, r)", sum(j for i in range(8) for j in range(i)), params="n", args={"n": 8})
    c("while-never", "r = 5\nwhile n < 0:\n    r = 6\n    n += 1\ntl.store(z, r)", 5, params="n", args={"n": 8})
    c("while-load", "i = 0\nwhile tl.load(x + i) != 0:\n    i += 1\ntl.store(z, i)", 3, params="x", args={"x": listed("i32", [4, 2, 9, 0, 1])})
    c("while-call", "i = 0\nwhile below(i, n):\n    i += 1\ntl.store(z, i)", 8, params="n", args={"n": 8}, helpers="@triton.jit\ndef below(a, b):\n    return a < b")
    # logic
    c("short-circuit", "if True or this_is_not_defined:\n    tl.store(z, 1)\nif False and this_is_not_defined:\n    tl.store(z, 2)", 1)
    c("logic-mixed", "a = True and (n > 3)\nb = False or (n > 30)\ntl.store(z, a)\ntl.store(z + 1, b)", [1, 0], params="n", args={"n": 5})
    c("is-none", "a = None\ntl.store(z, 1 if a is None else 2)\ntl.store(z + 1, 1 if a is not None else 2)", [1, 2])
    c("walrus", "if (a := n + 1) > 3:\n    tl.store(z, a)", 6, params="n", args={"n": 5})
    c("augmented", "a = n\na += 1\na -= 2\na *= 3\na //= 2\na %= 4\na <<= 2\na >>= 1\na |= 8\na &= 12\na ^= 5\ntl.store(z, a)", (((((((5 + 1 - 2) * 3) // 2) % 4) << 2) >> 1 | 8) & 12) ^ 5, params="n", args={"n": 5})
    # errors
    c("reject-loop-type", "a = 0\nfor k in range(n):\n    a = a + 1.5\ntl.store(z, a)", None, params="n", args={"n": 4}, error=["Loop-carried variable", "a"])
    c("reject-return-in-loop", "for k in range(n):\n    if k > 2:\n        return\ntl.store(z, 1)", None, params="n", args={"n": 4}, error="Cannot have `return` statements inside `while` or `for` statements in triton")
    c("reject-while-return", "while n < 9:\n    return\ntl.store(z, 1)", None, params="n", args={"n": 4}, error="Cannot have `return` statements inside `while` or `for` statements in triton")
    c("reject-one-branch", "if n > 3:\n    a = 1\ntl.store(z, a)", None, params="n", args={"n": 4}, error="is not defined")
    c("reject-loop-local", "for k in range(n):\n    a = k\ntl.store(z, a)", None, params="n", args={"n": 4}, error="is not defined")
    c("reject-branch-types", "if n > 3:\n    a = 1\nelse:\n    a = 1.5\ntl.store(z, a)", None, params="n", args={"n": 4}, error="a")
    c("reject-block-condition", "if tl.arange(0, 4) > 2:\n    tl.store(z, 1)", None, error="condition")
    c("reject-iterate", "for k in (1, 2, 3):\n    tl.store(z, k)", None, error="range")
    c("reject-for-else", "for k in range(3):\n    tl.store(z, k)\nelse:\n    tl.store(z, 9)", None, error="else")
    c("reject-condition-object", "if 'text':\n    tl.store(z, 1)", None, error="`if` conditionals can only accept values of type {bool, int, NoneType}, not objects of type")
    c("reject-chained", "if 0 < n < 9:\n    tl.store(z, 1)", None, params="n", args={"n": 4}, error="comparison")
    c("reject-while-true", "while True:\n    tl.store(z, 1)", None, error="while")
    c("reject-constexpr-loop", "a: tl.constexpr = 1\nfor k in range(n):\n    a = 2\ntl.store(z, a)", None, params="n", args={"n": 4}, error="constexpr")


def functions(s):
    c = Small(s)
    add = "@triton.jit\ndef add(a, b):\n    return a + b"
    c("call", "tl.store(z, add(n, 2))", 7, params="n", args={"n": 5}, helpers=add)
    c("call-keywords", "tl.store(z, add(b=n, a=2))", 7, params="n", args={"n": 5}, helpers=add)
    c("call-default", "tl.store(z, f(n))\ntl.store(z + 1, f(n, 1))", [50, 5], params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a, b=10):\n    return a * b")
    c("call-starred", "t = (n, 3)\ntl.store(z, add(*t))", 8, params="n", args={"n": 5}, helpers=add)
    c("varargs", "tl.store(z, f(n, 1, 2, 3))", 5 + 3 + 1 + 2 + 3, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a, *rest):\n    r = a + len(rest)\n    for k in tl.static_range(len(rest)):\n        r += rest[k]\n    return r")
    c("two-results", "a, b = f(n)\ntl.store(z, a)\ntl.store(z + 1, b)", [6, 4], params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a):\n    return a + 1, a - 1")
    c("no-result", "f(z, n)", 5, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(p, a):\n    tl.store(p, a)")
    c("early-return", "tl.store(z, f(n))\ntl.store(z + 1, f(-n))", [10, 5], params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a):\n    if a > 0:\n        return a * 2\n    return -a")
    c("early-return-nested", "for k in range(4):\n    tl.store(z + k, f(k))", [100, 200, 300, 300], helpers="@triton.jit\ndef f(a):\n    if a < 2:\n        if a == 0:\n            return 100\n        return 200\n    return 300")
    c("static-return-types", "tl.store(z, f(n, True))\ntl.store(z + 1, f(n, False).to(tl.int32))", [6, 7], params="n", args={"n": 5},
      helpers="@triton.jit\ndef f(a, FLAG: tl.constexpr):\n    if FLAG:\n        return a + 1\n    else:\n        return a * 1.5")
    c("recursion", "tl.store(z, f(n, 5))", 5 * 32, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a, N: tl.constexpr):\n    if N == 0:\n        return a\n    return f(a * 2, N - 1)")
    c("function-argument", "tl.store(z, apply(add, n))", 15, params="n", args={"n": 5}, helpers=add + "\n\n\n@triton.jit\ndef apply(f, a):\n    return f(a, 10)")
    c("function-list", "fs = [add, mul]\ntl.store(z, fs[0](n, 3))\ntl.store(z + 1, fs[1](n, 3))", [8, 15], params="n", args={"n": 5}, helpers=add + "\n\n\n@triton.jit\ndef mul(a, b):\n    return a * b")
    c("constexpr-through-call", "tl.store(z + tl.arange(0, 4), f(4))", [0, 1, 2, 3], helpers="@triton.jit\ndef f(N):\n    return tl.arange(0, N)")
    c("noinline", "tl.store(z, f(n, 2))", 7, params="n", args={"n": 5}, helpers="@triton.jit(noinline=True)\ndef f(a, b):\n    return a + b")
    c("noinline-block", "tl.store(z + tl.arange(0, 4), f(n))", [5, 6, 7, 8], params="n", args={"n": 5}, helpers="@triton.jit(noinline=True)\ndef f(a):\n    return a + tl.arange(0, 4)")
    c("noinline-reject", "tl.store(z + tl.arange(0, 4), f(tl.arange(0, 4)))", None, helpers="@triton.jit(noinline=True)\ndef f(a):\n    return a + 1", error="marked noinline, but was called with non-scalar argument")
    c("in-loop", "r = 0\nfor k in range(n):\n    r = add(r, k)\ntl.store(z, r)", 10, params="n", args={"n": 5}, helpers=add)
    c("return-promotion", "tl.store(z, f(n))", 2, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a):\n    if a > 3:\n        return 2\n    else:\n        return 3")
    c("return-mismatch", "tl.store(z, f(n))", None, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(a):\n    if a > 3:\n        return 2\n    else:\n        return 1.5", error="Return type mismatch")
    c("must-use", "f(n)", None, params="n", args={"n": 5}, helpers="@triton.must_use_result\n@triton.jit\ndef f(a):\n    return a", error="The result of f is not being used")
    c("missing-argument", "tl.store(z, add(n))", None, params="n", args={"n": 5}, helpers=add, error="b")
    c("too-many", "tl.store(z, add(n, 1, 2))", None, params="n", args={"n": 5}, helpers=add, error="add")
    c("nested-def", "def g(a):\n    return a\ntl.store(z, g(1))", None, error="nested function definitions are not allowed")
    c("lambda", "f = lambda a: a\ntl.store(z, f(1))", None, error="lambda")
    # tuples
    c("tuple-index", "t = (n, 2, n * 3)\ntl.store(z, t[0] + t[1] + t[2] + t[-1])", 5 + 2 + 15 + 15, params="n", args={"n": 5})
    c("tuple-slice", "t = (1, 2, 3, 4)\na, b = t[1:3]\ntl.store(z, a * 10 + b)\ntl.store(z + 1, len(t[::2]))", [23, 2])
    c("tuple-add", "t = (1, 2) + (n,)\ntl.store(z, t[2])\ntl.store(z + 1, len(t * 2))", [5, 6], params="n", args={"n": 5})
    c("tuple-nested", "t = ((1, n), (3, (4, 5)))\n(a, b), (d, (e, f)) = t\ntl.store(z, a + b + d + e + f)", 18, params="n", args={"n": 5})
    c("tuple-equal", "a: tl.constexpr = (1, 2) == (1, 2)\nb: tl.constexpr = (1, 2) == (1, 3)\ntl.store(z, a)\ntl.store(z + 1, b)", [1, 0])
    c("tuple-swap", "a = n\nb = 2\na, b = b, a\ntl.store(z, a * 10 + b)", 25, params="n", args={"n": 5})
    c("tuple-loop", "t = (0, 1)\nfor k in range(n):\n    t = (t[1], t[0] + t[1])\ntl.store(z, t[0])", 5, params="n", args={"n": 5})
    c("tuple-comprehension", "t = [k * 2 for k in (1, 2, 3)]\ntl.store(z, t[0] + t[1] + t[2])", 12)
    c("tuple-call", "tl.store(z, f((n, 2)))", 7, params="n", args={"n": 5}, helpers="@triton.jit\ndef f(t):\n    a, b = t\n    return a + b")
    c("tuple-pointers", "ps = (z, z + 2)\nfor k in tl.static_range(2):\n    tl.store(ps[k], k + 7)", [7, 0, 8])
    c("tuple-unpack-reject", "a, b = (1, 2, 3)\ntl.store(z, a)", None, error="unpack")
    c("tuple-assign-reject", "t = (1, 2)\nt[0] = 5\ntl.store(z, t[0])", None, error="t")
    named = "from typing import NamedTuple\nimport triton\nimport triton.language as tl\n\n\nclass Pair(NamedTuple):\n    first: tl.tensor\n    second: tl.tensor"
    c("named-tuple", "p = Pair(n, 3)\ntl.store(z, p.first * 10 + p.second)\ntl.store(z + 1, p[1])", [53, 3], params="n", args={"n": 5}, globals_=named)
    c("named-tuple-loop", "p = Pair(n, 3)\nfor k in range(3):\n    p = Pair(p.second, p.first + p.second)\ntl.store(z, p.first * 100 + p.second)", 11 * 100 + 19, params="n", args={"n": 5}, globals_=named)
    c("named-tuple-function", "p = f(Pair(second=n, first=2))\ntl.store(z, p.second)", 7, params="n", args={"n": 5}, globals_=named, helpers="@triton.jit\ndef f(p):\n    return Pair(p.first, p.first + p.second)")
    # aggregates
    agg = "import triton\nimport triton.language as tl\n\n\n@triton.aggregate\nclass Box:\n    value: tl.tensor\n    N: tl.constexpr = 3\n\n    @triton.jit\n    def total(self, extra):\n        return self.value * self.N + extra\n\n\n@triton.aggregate\nclass Big(Box):\n    other: tl.tensor = None"
    agg = "import triton\nimport triton.language as tl\n\n\n@triton.aggregate\nclass Box:\n    value: tl.tensor\n    N: tl.constexpr\n\n    @triton.jit\n    def total(self, extra):\n        return self.value * self.N + extra"
    c("aggregate", "b = Box(n, 3)\ntl.store(z, b.value)\ntl.store(z + 1, b.total(1))\ntl.store(z + 2 + tl.arange(0, b.N + 1), 9)", [5, 16, 9, 9, 9, 9], params="n", args={"n": 5}, globals_=agg)
    c("aggregate-replace", "b = tl.aggregate_replace(Box(n, 3), value=n + 1)\ntl.store(z, b.total(0))", 18, params="n", args={"n": 5}, globals_=agg)
    c("aggregate-loop", "b = Box(n, 3)\nfor k in range(4):\n    b = Box(b.value + k, 3)\ntl.store(z, b.total(0))", 33, params="n", args={"n": 5}, globals_=agg)
    c("aggregate-inherits", "b = Wide(n, 3, n * 2)\ntl.store(z, b.total(b.other))", 25, params="n", args={"n": 5}, globals_=agg + "\n\n\n@triton.aggregate\nclass Wide(Box):\n    other: tl.tensor")
    c("aggregate-default", "b = Opt(n)\ntl.store(z, b.value * b.factor)", 20, params="n", args={"n": 5}, globals_="import triton\nimport triton.language as tl\n\n\n@triton.aggregate\nclass Opt:\n    value: tl.tensor\n    factor: tl.constexpr = 4")
    c("aggregate-no-field", "b = tl.aggregate_replace(Box(n, 3), z=n)\ntl.store(z, b.value)", None, params="n", args={"n": 5}, globals_=agg, error="has no field 'z'")
    c("aggregate-immutable", "b = Box(n, 3)\nb.value = n\ntl.store(z, b.value)", None, params="n", args={"n": 5}, globals_=agg, error="cannot assign to field 'value' on immutable aggregate")
    c("aggregate-replace-other", "b = tl.aggregate_replace((n, 3), value=n)\ntl.store(z, n)", None, params="n", args={"n": 5}, globals_=agg, error="expects an aggregate instance")
    # map_elementwise
    c("map-elementwise", "i = tl.arange(0, 8)\ntl.store(z + i, tl.map_elementwise(f, i, i * 2))", [(a if a % 2 else a * 10) + 2 * a for a in range(8)], helpers="@triton.jit\ndef f(a, b):\n    if a % 2 == 0:\n        r = a * 10\n    else:\n        r = a\n    return r + b")
    c("map-elementwise-two", "i = tl.arange(0, 4)\na, b = tl.map_elementwise(f, i)\ntl.store(z + i, a)\ntl.store(z + 4 + i, b)", [1, 2, 3, 4, 0, 2, 4, 6], helpers="@triton.jit\ndef f(a):\n    return a + 1, a * 2")
    for pack in (1, 2, 4):
        c(f"map-elementwise-pack-{pack}", f"i = tl.arange(0, 1024)\ntl.store(z + i, tl.map_elementwise(f{pack}, i, pack={pack}))", np.arange(1024) * 3, helpers=f"@triton.jit\ndef f{pack}({', '.join('abcd'[:pack])}):\n    return {', '.join(v + ' * 3' for v in 'abcd'[:pack])}")


def constexprs(s):
    c = Small(s)
    c("decay", "a = 4\nb: tl.constexpr = 4\ntl.store(z + tl.arange(0, b), a)", [4] * 4)
    c("decay-reject", "a = 4\ntl.store(z + tl.arange(0, a), 1)", None, error="arange")
    for value, dtype in ((True, "tl.int1"), (5, "tl.int32"), (-2**31, "tl.int32"), (2**31, "tl.uint32"), (2**32 - 1, "tl.uint32"), (2**32, "tl.int64"), (-2**31 - 1, "tl.int64"), (2**63, "tl.uint64"), (1.5, "tl.float32"), (0.0, "tl.float32"),
                         ("1e300", "tl.float64"), ("1e-40", "tl.float64"), ("float('inf')", "tl.float32"), ("float('nan')", "tl.float32")):
        c(f"decay-type-{len(s.names)}", f"a = {value}\ntl.static_assert(a.dtype == {dtype})\ntl.store(z, 1)", 1)
    c("decay-too-large", "a = 18446744073709551616\ntl.store(z, 1)", None, error="18446744073709551616")
    c("declared-twice", "a: tl.constexpr = 1\na: tl.constexpr = 2\ntl.store(z, a)", None, error="is already defined. constexpr cannot be reassigned")
    c("annotation-later", "a: tl.constexpr\na = 4\ntl.store(z + tl.arange(0, a), 2)", [2] * 4)
    c("walrus-decays", "b = (a := 4) + 1\ntl.static_assert(a.dtype == tl.int32)\ntl.store(z, b)", 5)
    c("string", "s: tl.constexpr = 'abc'\nif s == 'abc':\n    tl.store(z, len(s))", 3)
    c("f-string", "tl.static_assert(f'{N}-{N + 1:03d}' == '4-005')\ntl.store(z, N)", 4, params="N: tl.constexpr", args={"N": 4})
    c("shape-attribute", "a = tl.zeros([4, 8], tl.int32)\ntl.static_assert(a.shape[0] == 4 and a.shape[1] == 8)\ntl.store(z, a.shape[0] * a.shape[1] + a.numel)", 64)
    c("dtype-attributes", "tl.static_assert(z.dtype.element_ty == tl.int32)\ntl.static_assert(z.dtype.element_ty.primitive_bitwidth == 32)\ntl.static_assert(not z.dtype.element_ty.is_floating())\ntl.store(z, tl.float16.primitive_bitwidth)", 16)
    c("static-assert", "tl.static_assert(N == 5, 'N must be 5')\ntl.store(z, N)", None, params="N: tl.constexpr", args={"N": 4}, error="N must be 5")
    c("static-assert-passes", "tl.static_assert(N % 2 == 0)\ntl.store(z, N)", 4, params="N: tl.constexpr", args={"N": 4})
    c("python-min-max", "a: tl.constexpr = min(3, 5, 1)\nb: tl.constexpr = max(2, 9)\ntl.store(z, a * 10 + b)", 19)
    c("big-numbers", "a: tl.constexpr = 2 ** 100\nb: tl.constexpr = a // 2 ** 98\ntl.store(z, b)", 4)
    c("isinstance", "tl.store(z, isinstance(n, tl.tensor))\ntl.store(z + 1, isinstance(N, tl.constexpr))\ntl.store(z + 2, isinstance(N, tl.tensor))", [1, 1, 0], params="n, N: tl.constexpr", args={"n": 5, "N": 3})
    c("hasattr", "tl.store(z, hasattr(tl, 'load'))\ntl.store(z + 1, hasattr(tl, 'no_such_name'))", [1, 0])
    c("cdiv", "a: tl.constexpr = tl.cdiv(N, 4)\nb: tl.constexpr = triton.next_power_of_2(N)\ntl.store(z + tl.arange(0, b), a)", [3] * 16, params="N: tl.constexpr", args={"N": 9})
    c("list", "t: tl.constexpr = [1, 2, 3]\ntl.store(z, t[1] + len(t) + t[-1])", 8)
    module = "import triton\nimport triton.language as tl\n\nLIMIT = tl.constexpr(7)\nTABLE = tl.constexpr((1, 2, 3))\nTYPE = tl.float16\nPLAIN = 5"
    c("global", "tl.store(z, LIMIT)\ntl.store(z + 1, TABLE[2])\ntl.store(z + 2, tl.zeros([1], TYPE).dtype.primitive_bitwidth)", [7, 3, 16], globals_=module)
    c("global-reject", "tl.store(z, PLAIN)", None, globals_=module, error="Cannot access global variable")
    c("global-annotated-reject", "tl.store(z, G)", None, globals_="import triton\nimport triton.language as tl\n\nG: tl.constexpr = 42", error="Cannot access global variable")
    c("constexpr-function", "a: tl.constexpr = log2(N)\ntl.store(z, a)", 5, params="N: tl.constexpr", args={"N": 32}, globals_="import triton\nimport triton.language as tl\n\n\n@triton.constexpr_function\ndef log2(n):\n    k = 0\n    while n > 1:\n        n //= 2\n        k += 1\n    return k")
    c("constexpr-function-list", "a: tl.constexpr = total([1, 2, N])\ntl.store(z, a)", 35, params="N: tl.constexpr", args={"N": 32}, globals_="import triton\nimport triton.language as tl\n\n\n@triton.constexpr_function\ndef total(values):\n    s = 0\n    for v in values:\n        s += v\n    return s")
    c("constexpr-function-reject", "a: tl.constexpr = f(n)\ntl.store(z, a)", None, params="n", args={"n": 32}, globals_="import triton\nimport triton.language as tl\n\n\n@triton.constexpr_function\ndef f(n):\n    return n + 1", error="run-time")
    # Specialisation of run-time arguments
    for value, dtype in ((0, "int32"), (16, "int32"), (17, "int32"), (-1, "int32"), (2**31 - 1, "int32"), (-2**31, "int32"), (2**31, "int64"), (2**62, "int64"), (2**63, "uint64"), (2**64 - 1, "uint64")):
        c(f"argument-{value}", f"tl.static_assert(n.dtype == tl.{dtype})\ntl.store(z, (n == {value}).to(tl.int32))", 1, params="n", args={"n": value})
    c("argument-1", "tl.static_assert(isinstance(n, tl.constexpr))\ntl.store(z + tl.arange(0, n), 6)", 6, params="n", args={"n": 1})

    c("argument-float", "tl.static_assert(f.dtype == tl.float32)\ntl.store(z, f * 2)", 3.0, t="fp32", params="f", args={"f": 1.5})
    c("argument-bool", "tl.static_assert(b.dtype == tl.int1)\ntl.store(z, b)", 1, params="b", args={"b": True})
    c("argument-none", "if p is not None:\n    tl.store(z, 9)\nelse:\n    tl.store(z, 8)", 8, params="p", args={"p": None})
    c("argument-string", "if MODE == 'sum':\n    tl.store(z, 8)", 8, params="MODE: tl.constexpr", args={"MODE": "sum"})
    c("argument-dtype", "a = tl.zeros([4], D) + 1.5\ntl.store(z + tl.arange(0, 4), a * 2)", [3.0] * 4, t="fp32", params="D: tl.constexpr", args={"D": {"dtype": "fp16"}})
    c("argument-default", "tl.store(z, n + M)", 12, params="n, M: tl.constexpr = 7", args={"n": 5})
    for annotation, value, dtype in (("tl.int64", 5, "int64"), ("tl.uint8", 200, "uint8"), ("tl.int16", -3, "int16"), ("'tl.uint32'", 7, "uint32"), ("tl.float64", 1.5, "float64"), ("tl.float16", 1.5, "float16"), ("int", 5, "int32"), ("tl.uint64", 9, "uint64"), ("tl.bfloat16", 2.5, "bfloat16")):
        c(f"annotation-{len(s.names)}", f"tl.static_assert(n.dtype == tl.{dtype})\ntl.store(z, n)", value, t="fp32" if "float" in dtype else "i32", params=f"n: {annotation}", args={"n": value})
    c("literal-or-scalar", "a = tl.zeros([1], tl.int8) + n\ntl.static_assert(a.dtype == tl.int8)\ntl.store(z, 1)", 1, params="n", args={"n": 1})
    c("scalar-or-literal", "a = tl.zeros([1], tl.int8) + n\ntl.static_assert(a.dtype == tl.int32)\ntl.store(z, 1)", 1, params="n", args={"n": 2})
    s.kernel("not-specialised", "@triton.jit(do_not_specialize=['n'])\ndef kernel(z, n):\n    tl.static_assert(n.dtype == tl.int32)\n    tl.store(z, n + 5)")
    s.case("not-specialised", "not-specialised", {"z": Output("i32", np.array([6], "i4")), "n": 1})
    s.error("not-specialised-reject", "@triton.jit(do_not_specialize=['N'])\ndef kernel(z, N: tl.constexpr):\n    tl.store(z, N)", "marked as constexpr and listed in do_not_specialize", {"z": Input("i32", 1, {}), "N": 4})
    for warps in (3, 5, 0):
        s.case(f"warps-{warps}", "not-specialised", {"z": Input("i32", 1, {}), "n": 3}, warps=warps, error="power of 2")
    # Hints change nothing.
    for name, expr in (("multiple-of", "tl.multiple_of(i, 4)"), ("contiguous", "tl.max_contiguous(i, 4)"), ("both", "tl.max_contiguous(tl.multiple_of(i, 16), 16)"), ("constancy", "tl.max_constancy(i // 4 * 4, 4) + i % 4")):
        c(f"hint-{name}", f"i = tl.arange(0, 16)\ntl.store(z + {expr}, i + 1)", list(range(1, 17)))
    c("assume", "tl.assume(n > 3)\ntl.store(z, n)", 5, params="n", args={"n": 5})
    c("barrier", "tl.store(z, 1)\ntl.debug_barrier()\ntl.store(z, 2)", 2)


def errors(s):
    """Messages with their places."""
    c = Small(s)
    c("undefined", "tl.store(z, «missing)", None, error="is not defined")
    c("binary-operator", "a = tl.arange(0, 4)\nb = tl.arange(0, 8)\ntl.store(z + a, «a + b)", None, error="shape")
    c("unary-operator", "a = «-z\ntl.store(z, 1)", None, error="pointer")
    c("static-assert", "«tl.static_assert(1 == 2)\ntl.store(z, 1)", None, error="assert")
    c("builtin", "a = tl.zeros([4], tl.int32)\nb = tl.expand_dims(a, «5)\ntl.store(z, 1)", None, error="axis")
    c("attribute", "a = tl.arange(0, 4)\ntl.store(z, a.«no_such_thing)", None, error="no_such_thing")
    c("module-attribute", "tl.store(z, tl.«no_such_function(1))", None, error="no_such_function")
    c("nested-call", "tl.store(z, f(1))", None, helpers="@triton.jit\ndef f(a):\n    return a + missing", error=["is not defined", "called from here"])
    c("unknown-keyword", "tl.store(z, 1, bogus=3)", None, error="bogus")
    c("missing-argument", "tl.store(«z)", None, error="value") if False else c("missing-argument", "«tl.store(z)", None, error="value")
    c("subscript-scalar", "a = tl.load(z)\ntl.store(z, «a[0])", None, error="subscript")
    c("program-id", "tl.store(z, tl.program_id(«3))", None, error="program_id axis must be 0, 1, or 2")
    c("store-shape", "tl.store(z, «tl.arange(0, 4))", None, error="store")
    c("mask-type", "tl.store(z + tl.arange(0, 4), 1, mask=«tl.arange(0, 4))", None, error="mask")
    c("load-int", "a = tl.load(«5)\ntl.store(z, a)", None, error="pointer")
    c("sqrt-int", "a = tl.sqrt(«tl.arange(0, 4))\ntl.store(z, 1)", None, error=["Expected dtype ['fp32', 'fp64'] but got"])
    c("store-block-to-scalar", "tl.store(z, tl.zeros([2, 2], tl.int32))", None, error="store")
    c("full-none", "a = tl.full([4], 1, «None)\ntl.store(z, 1)", None, error="dtype")
    c("full-too-large", "a = tl.full([4], 300, tl.int8)\ntl.store(z, 1)", None, error="out of range")
    c("del", "a = 1\n«del a\ntl.store(z, 1)", None, error="del")
    c("global", "«global G\ntl.store(z, 1)", None, error="global")
    c("try", "«try:\n    tl.store(z, 1)\nexcept:\n    pass", None, error="try")
    c("import", "«import math\ntl.store(z, 1)", None, error="import")
    c("dict", "a = «{1: 2}\ntl.store(z, 1)", None, error="dict")
    c("set", "a = «{1, 2}\ntl.store(z, 1)", None, error="set")
    c("raise", "«raise ValueError('x')", None, error="raise")
    c("generator", "a = «(k for k in (1, 2))\ntl.store(z, 1)", None, error="comprehension")
    c("yield", "«yield 3", None, error="yield")
    c("class", "«class A:\n    pass\ntl.store(z, 1)", None, error="class")
    c("matmul-operator", "a = tl.zeros([16, 16], tl.float16)\nb = «a @ a\ntl.store(z, 1)", None, error="@")
    c("multiple-targets", "a = b = 1\ntl.store(z, a)", None, error="target")
    c("in-operator", "if «3 in (1, 2):\n    tl.store(z, 1)", None, error="in")
    c("power", "tl.store(z, «tl.load(z) ** 2)", None, error="**")
    c("shift-float", "tl.store(z, «1.5 << tl.load(z))", None, error="invalid operands of type")
    c("string-assign", "«a = 'text'\ntl.store(z, 1)", None, error="constexpr")
    c("kernel-returns", "tl.store(z, 1)\nreturn 5", None, error="return")
    c("num-ctas-large-block", "a = tl.zeros([1048576, 2], tl.int8)\ntl.store(z, 1)", None, error="1048576")


def build():
    for name, function in (("control", control), ("function", functions), ("constexpr", constexprs), ("error", errors)):
        s = Suite(name)
        function(s)
        yield s
