"""Elementwise functions: mathematics, selection, minima and maxima, and what they refuse."""
import math

import numpy as np

from formats import ALL, FLOATS, INTS, NUMPY, TL, UINTS, bits_of, convert, decode, encode, is_float, is_int, is_signed, promote
from suite import Input, Output, Suite, bell, ints, listed, numbers, uniform

N = 256
ONE = """
    @triton.jit
    def kernel(x, z, N: tl.constexpr):
        i = tl.arange(0, N)
        a = tl.load(x + i)
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z + i, r)
"""
TWO = """
    @triton.jit
    def kernel(x, y, z, N: tl.constexpr):
        i = tl.arange(0, N)
        a = tl.load(x + i)
        b = tl.load(y + i)
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z + i, r)
"""
SPECIAL = ["nan", "inf", "-inf", "-0.0", 0, 1, -1, 0.5]
erf = np.vectorize(math.erf)
REFERENCES = {
    "exp": (np.exp, bell, {"scale": 8}), "exp2": (np.exp2, bell, {"scale": 8}), "log": (np.log, uniform, {"low": 0, "high": 100}),
    "log2": (np.log2, uniform, {"low": 0, "high": 100}), "sin": (np.sin, bell, {"scale": 5}), "cos": (np.cos, bell, {"scale": 5}),
    "sqrt": (np.sqrt, uniform, {"low": 0, "high": 1000}), "rsqrt": (lambda v: 1 / np.sqrt(v), uniform, {"low": 0, "high": 1000}),
    "erf": (lambda v: erf(v), bell, {"scale": 1}), "floor": (np.floor, bell, {"scale": 10}), "ceil": (np.ceil, bell, {"scale": 10}),
    "sigmoid": (lambda v: 1 / (1 + np.exp(-v)), bell, {"scale": 4}), "abs": (np.abs, bell, {"scale": 3}),
}


def unary(s):
    s.kernel("one", ONE)
    seed = 1
    for name, (f, make, rule) in REFERENCES.items():
        for t in ("fp32", "fp64"):
            exact = name in ("floor", "ceil", "abs")
            close = {} if exact else {"rtol": 1e-5 if t == "fp32" else 1e-12, "atol": 1e-6 if t == "fp32" else 1e-12}
            for form, expr in (("function", f"tl.{name}(a)"), ("member", f"a.{name}()")) if t == "fp32" else (("function", f"tl.{name}(a)"),):
                seed += 1
                x = make(t, N, seed, **rule, first=SPECIAL)
                with np.errstate(all="ignore"):
                    r = f(x.values.astype("f8"))
                s.case(f"{name}-{t}-{form}", "one", {"x": x, "z": Output(t, r, **close), "N": N}, with_={"EXPR": expr, "T": TL[t]})
        if name in ("abs", "sigmoid"):
            continue
        for t in ("fp16", "bf16", "i32", "u8"):
            s.case(f"{name}-{t}-reject", "one", {"x": numbers(t, N, 1), "z": Output("fp32", np.zeros(N)), "N": N}, with_={"EXPR": f"tl.{name}(a)", "T": TL[t]},
                   error=["Expected dtype ['fp32', 'fp64'] but got"])
    # Through a scalar, tl.math, and blocks of two dimensions.
    for name in ("exp", "sqrt", "log2", "cos"):
        f, make, rule = REFERENCES[name]
        x = make("fp32", N, 400, **rule)
        r = f(x.values.astype("f8"))
        s.case(f"{name}-math", "one", {"x": x, "z": Output("fp32", r, rtol=1e-5, atol=1e-6), "N": N}, with_={"EXPR": f"tl.math.{name}(a)", "T": "tl.float32"})
        s.case(f"{name}-scalar", "one", {"x": x, "z": Output("fp32", np.full(N, r[3]), rtol=1e-5, atol=1e-6), "N": N},
               with_={"EXPR": f"tl.{name}(tl.load(x + 3)) + tl.zeros([N], tl.float32)", "T": "tl.float32"})
        s.case(f"{name}-2d", "one", {"x": x, "z": Output("fp32", r, rtol=1e-5, atol=1e-6), "N": N}, warps=2,
               with_={"EXPR": f"tl.{name}(a.reshape(16, 16)).reshape(N)", "T": "tl.float32"})
    for t in ALL:
        first = {"i8": [-128, 127, -1], "i16": [-32768], "i32": [-2**31], "i64": [-2**63]}.get(t, SPECIAL if is_float(t) else [])
        x = Input(t, N, {**numbers(t, N, 9).rule, "first": first})
        with np.errstate(all="ignore"):
            s.case(f"abs-{t}", "one", {"x": x, "z": Output(t, np.abs(x.values)), "N": N}, with_={"EXPR": "tl.abs(a)", "T": TL[t]})
    for t in ("fp8e5", "fp8e4nv"):
        x = Input(t, 256, {"fill": "count"})
        s.case(f"abs-{t}", "one", {"x": x, "z": Output(t, x.bits & 0x7F, bits=True), "N": 256}, with_={"EXPR": "tl.abs(a)", "T": TL[t]})
    # Correctly rounded forms.
    x = uniform("fp32", N, 21, low=0, high=1e6, first=[0, "-0.0", "inf", "nan", -1, "1e-45", "1e-38", 2, 3])
    with np.errstate(all="ignore"):
        s.case("sqrt-rn", "one", {"x": x, "z": Output("fp32", np.sqrt(x.values)), "N": N}, with_={"EXPR": "tl.sqrt_rn(a)", "T": "tl.float32"})


def binary(s):
    s.kernel("two", TWO)
    x, y = bell("fp32", N, 31, first=SPECIAL), bell("fp32", N, 32, scale=3, nonzero=True)
    with np.errstate(all="ignore"):
        exact = Output("fp32", x.values / y.values)
        close = Output("fp32", x.values / y.values, rtol=1e-6)
        s.case("div-rn", "two", {"x": x, "y": y, "z": exact, "N": N}, with_={"EXPR": "tl.div_rn(a, b)", "T": "tl.float32"})
        s.case("fdiv-ieee", "two", {"x": x, "y": y, "z": exact, "N": N}, with_={"EXPR": "tl.fdiv(a, b, ieee_rounding=True)", "T": "tl.float32"})
        s.case("fdiv", "two", {"x": x, "y": y, "z": close, "N": N}, with_={"EXPR": "tl.fdiv(a, b)", "T": "tl.float32"})
        s.case("divide", "two", {"x": x, "y": y, "z": close, "N": N}, with_={"EXPR": "a / b", "T": "tl.float32"})
    s.case("fdiv-reject", "two", {"x": ints("i32", N, 1), "y": ints("i32", N, 2), "z": Output("fp32", np.zeros(N)), "N": N},
           with_={"EXPR": "tl.fdiv(a, b)", "T": "tl.float32"}, error="fdiv")
    for t in ALL:  # minimum and maximum: bf16 gives fp32
        first = [1, "nan", 3, "nan", "inf", "-inf", -2, 5] if is_float(t) else [1, 2, 3, 4]
        second = [2, 7, "nan", "nan", 1, 1, "inf", "-inf"] if is_float(t) else [4, 3, 2, 1]
        x = Input(t, N, {**numbers(t, N, 41).rule, "first": first})
        y = Input(t, N, {**numbers(t, N, 42).rule, "first": second})
        tz = "fp32" if t == "bf16" else t
        for name, f, g in (("maximum", np.fmax, np.maximum), ("minimum", np.fmin, np.minimum)):
            s.case(f"{name}-{t}", "two", {"x": x, "y": y, "z": Output(tz, f(x.values, y.values)), "N": N}, with_={"EXPR": f"tl.{name}(a, b)", "T": TL[tz]})
            if t in ("fp16", "fp32", "fp64", "bf16"):
                s.case(f"{name}-{t}-nan-all", "two", {"x": x, "y": y, "z": Output(tz, g(x.values, y.values)), "N": N},
                       with_={"EXPR": f"tl.{name}(a, b, propagate_nan=tl.PropagateNan.ALL)", "T": TL[tz]})
                s.case(f"{name}-{t}-nan-none", "two", {"x": x, "y": y, "z": Output(tz, f(x.values, y.values)), "N": N},
                       with_={"EXPR": f"tl.{name}(a, b, propagate_nan=tl.PropagateNan.NONE)", "T": TL[tz]})
    for tx, ty in (("i8", "i32"), ("u8", "i32"), ("fp16", "fp32"), ("i32", "fp32"), ("u32", "i32"), ("bf16", "fp32"), ("i64", "i16")):
        x, y = numbers(tx, N, 43), numbers(ty, N, 44)
        t = promote(tx, ty)
        for name, f in (("maximum", np.fmax), ("minimum", np.fmin)):
            s.case(f"{name}-{tx}-{ty}", "two", {"x": x, "y": y, "z": Output(t, f(convert(x.values, tx, t), convert(y.values, ty, t))), "N": N},
                   with_={"EXPR": f"tl.{name}(a, b)", "T": TL[t]})
    # Python's min and max: chained tl.minimum, literals become tensors first.
    x, y = numbers("i32", N, 45), numbers("i32", N, 46)
    s.case("python-min", "two", {"x": x, "y": y, "z": Output("i32", np.minimum(np.minimum(x.values, y.values), 100)), "N": N}, with_={"EXPR": "min(a, b, 100)", "T": "tl.int32"})
    s.case("python-max", "two", {"x": x, "y": y, "z": Output("i32", np.maximum(x.values, y.values)), "N": N}, with_={"EXPR": "max(a, b)", "T": "tl.int32"})
    x16 = numbers("fp16", N, 47)
    s.case("maximum-literal", "two", {"x": x16, "y": x16, "z": Output("fp32", np.maximum(x16.values.astype("f4"), np.float32(0.5))), "N": N},
           with_={"EXPR": "tl.maximum(a, 0.5)", "T": "tl.float32"})
    # clamp
    for t in ("fp16", "fp32", "fp64", "bf16"):
        x = bell(t, N, 48, scale=3, first=["inf", "-inf", "-0.0", 1, -1, 0.5])
        tz = "fp32" if t in ("bf16", "fp16") else t
        if t in ("fp32", "fp64"):
            s.case(f"clamp-{t}", "two", {"x": x, "y": x, "z": Output(tz, np.clip(x.values, -1, 1)), "N": N}, with_={"EXPR": "tl.clamp(a, -1.0, 1.0)", "T": TL[tz]})
        y = uniform(t, N, 49, low=0, high=2)
        with np.errstate(all="ignore"):
            r = np.minimum(np.maximum(x.values, -y.values), y.values)
        tz = "fp32" if t == "bf16" else t
        s.case(f"clamp-symmetric-{t}", "two", {"x": x, "y": y, "z": Output(tz, r, compare="equal"), "N": N}, with_={"EXPR": "tl.clamp(a, -b, b)", "T": TL[tz]})
    x = listed("fp32", ["nan", 2, -2, 0.5])
    s.case("clamp-nan-all", "two", {"x": x, "y": x, "z": Output("fp32", np.array([np.nan, 1, -1, 0.5])), "N": 4},
           with_={"EXPR": "tl.clamp(a, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)", "T": "tl.float32"})
    s.case("clamp-ints", "two", {"x": ints("i32", N, 1), "y": ints("i32", N, 1), "z": Output("i32", np.zeros(N, "i4")), "N": N},
           with_={"EXPR": "tl.clamp(a, 0, 1)", "T": "tl.int32"}, error="clamp")
    for t in ("i32", "i64", "u32", "u64"):
        x, y = Input(t, N, {"fill": "bits", "seed": 51}), Input(t, N, {"fill": "bits", "seed": 52})
        w = bits_of(t)
        r = np.array([(int(a) % 2**w * (int(b) % 2**w)) >> w for a, b in zip(x.values, y.values)], dtype=np.uint64).astype(NUMPY[t][1])
        s.case(f"umulhi-{t}", "two", {"x": x, "y": y, "z": Output(t, r), "N": N}, with_={"EXPR": "tl.umulhi(a, b)", "T": TL[t]})
    x, y = ints("i32", N, 53, low=0, high=10**6), ints("i32", N, 54, low=1, high=1000)
    s.case("cdiv-blocks", "two", {"x": x, "y": y, "z": Output("i32", -(-x.values // y.values)), "N": N}, with_={"EXPR": "tl.cdiv(a, b)", "T": "tl.int32"})
    s.case("cdiv-literal", "two", {"x": x, "y": y, "z": Output("i32", -(-x.values // 128)), "N": N}, with_={"EXPR": "tl.cdiv(a, 128)", "T": "tl.int32"})
    for name, op in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        for t in ("i32", "fp32"):
            x, y = numbers(t, N, 55), numbers(t, N, 56)
            with np.errstate(all="ignore"):
                s.case(f"tl-{name}-{t}", "two", {"x": x, "y": y, "z": Output(t, op(x.values, y.values)), "N": N}, with_={"EXPR": f"tl.{name}(a, b)", "T": TL[t]})


def three(s):
    s.kernel("three", """
        @triton.jit
        def kernel(x, y, w, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            c = tl.load(w + i)
            r = ${EXPR}
            tl.static_assert(r.dtype == ${T})
            tl.store(z + i, r)
    """)
    for t in ("fp32", "fp64"):
        x, y, w = (numbers(t, N, seed) for seed in (61, 62, 63))
        a, b, c = x.values.astype(np.longdouble), y.values.astype(np.longdouble), w.values.astype(np.longdouble)
        r = (a * b + c).astype(x.values.dtype)
        s.case(f"fma-{t}", "three", {"x": x, "y": y, "w": w, "z": Output(t, r, **({} if t == "fp32" else {"rtol": 1e-15})), "N": N}, with_={"EXPR": "tl.fma(a, b, c)", "T": TL[t]})
        s.case(f"contraction-{t}", "three", {"x": x, "y": y, "w": w, "z": Output(t, r, rtol=1e-5, atol=1e-6), "N": N}, with_={"EXPR": "a * b + c", "T": TL[t]})
    # where
    for t in ALL:
        x, y, c = numbers(t, N, 71), numbers(t, N, 72), ints("i1", N, 73)
        s.case(f"where-{t}", "three", {"x": x, "y": y, "w": c, "z": Output(t, np.where(c.values, x.values, y.values)), "N": N}, with_={"EXPR": "tl.where(c, a, b)", "T": TL[t]})
    for t in ("i8", "i32", "fp16", "fp32"):
        x, c = numbers(t, N, 74), ints("i1", N, 75)
        with np.errstate(all="ignore"):
            r = np.where(c.values, x.values, x.values.dtype.type(7))
        s.case(f"where-literal-{t}", "three", {"x": x, "y": x, "w": c, "z": Output(t, r), "N": N}, with_={"EXPR": "tl.where(c, a, 7)", "T": TL[t]})
    for tx, ty in (("i32", "fp32"), ("i8", "i32"), ("fp16", "fp32"), ("u8", "i64"), ("bf16", "fp16")):
        x, y, c = numbers(tx, N, 76), numbers(ty, N, 77), ints("i1", N, 78)
        t = promote(tx, ty)
        with np.errstate(all="ignore"):
            r = np.where(c.values, convert(x.values, tx, t), convert(y.values, ty, t))
        s.case(f"where-{tx}-{ty}", "three", {"x": x, "y": y, "w": c, "z": Output(t, r), "N": N}, with_={"EXPR": "tl.where(c, a, b)", "T": TL[t]})
    x, y, c = numbers("i32", N, 79), numbers("i32", N, 80), ints("i32", N, 81, low=0, high=2)
    s.case("where-int-condition", "three", {"x": x, "y": y, "w": c, "z": Output("i32", np.where(c.values != 0, x.values, y.values)), "N": N},
           with_={"EXPR": "tl.where(c, a, b)", "T": "tl.int32"})
    s.case("where-scalar-condition", "three", {"x": x, "y": y, "w": c, "z": Output("i32", x.values if c.values[0] > 0 else y.values), "N": N},
           with_={"EXPR": "tl.where(tl.load(w) > 0, a, b)", "T": "tl.int32"})
    s.kernel("where-pointers", """
        @triton.jit
        def kernel(x, y, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, tl.load(tl.where(i % 3 == 0, x + i, y + i)))
            p = tl.where(tl.program_id(0) == 0, y, x)
            tl.store(z + N + i, tl.load(p + i))
    """)
    i = np.arange(N)
    s.case("where-pointers", "where-pointers", {"x": x, "y": y, "z": Output("i32", np.concatenate([np.where(i % 3 == 0, x.values, y.values), y.values])), "N": N})


def softmax(s):
    s.kernel("softmax", """
        @triton.jit
        def kernel(x, z, M: tl.constexpr, N: tl.constexpr):
            i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
            tl.store(z + i, tl.softmax(tl.load(x + i)${ARGS}))
    """)
    for m, n in ((8, 32), (32, 8), (1, 128)):
        x = bell("fp32", (m, n), m, scale=4)
        for name, axis, args in (("default", 0, ""), ("dim-0", 0, ", dim=0"), ("dim-1", 1, ", dim=1, keep_dims=True"), ("dim-1-alone", 1, ", dim=1"), ("ieee", 1, ", dim=-1, ieee_rounding=True")):
            v = x.values.astype("f8")
            e = np.exp(v - v.max(axis=axis, keepdims=True))
            s.case(f"softmax-{name}-{m}x{n}", "softmax", {"x": x, "z": Output("fp32", e / e.sum(axis=axis, keepdims=True), rtol=1e-4, atol=1e-6), "M": m, "N": n}, with_={"ARGS": args})


def build():
    s = Suite("math")
    for function in (unary, binary, three, softmax):
        function(s)
    yield s
