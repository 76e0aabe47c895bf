"""libdevice: every function that NumPy or Python's math module can answer for."""
import math

import numpy as np

from formats import NUMPY, TL, is_float
from suite import Input, Output, Suite, bell, ints, listed, uniform

N = 128
F = ("fp32", "fp64")


def vector(f):
    return np.vectorize(f, otypes=["f8"])


def gamma(v):
    try:
        return math.gamma(v)
    except (ValueError, OverflowError):
        return math.nan


def bessel(n, x, hyperbolic=False):
    """J_n or I_n by the trapezoidal rule on Bessel's integral, which converges geometrically."""
    k = 400
    tau = (np.arange(k) + 0.5) * np.pi / k
    x = np.asarray(x, "f8")[..., None]
    return (np.exp(x * np.cos(tau)) * np.cos(n * tau) if hyperbolic else np.cos(n * tau - x * np.sin(tau))).mean(axis=-1)


# name -> (reference in float64, low, high, rtol, atol)
UNARY = {
    "sin": (np.sin, -10, 10), "cos": (np.cos, -10, 10), "tan": (np.tan, -1.4, 1.4), "sinh": (np.sinh, -5, 5), "cosh": (np.cosh, -5, 5), "tanh": (np.tanh, -3, 3),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -10, 10), "asinh": (np.arcsinh, -10, 10), "acosh": (np.arccosh, 1, 20), "atanh": (np.arctanh, -0.95, 0.95),
    "exp": (np.exp, -5, 5), "exp2": (np.exp2, -8, 8), "exp10": (lambda v: 10.0**v, -3, 3), "expm1": (np.expm1, -2, 2), "log": (np.log, 0.01, 100), "log2": (np.log2, 0.01, 100),
    "log10": (np.log10, 0.01, 100), "log1p": (np.log1p, -0.9, 10), "sqrt": (np.sqrt, 0, 100), "rsqrt": (lambda v: 1 / np.sqrt(v), 0.01, 100), "cbrt": (np.cbrt, -50, 50),
    "rcbrt": (lambda v: 1 / np.cbrt(v), 0.1, 50), "erf": (vector(math.erf), -3, 3), "erfc": (vector(math.erfc), -3, 3), "erfcx": (lambda v: np.exp(v * v) * vector(math.erfc)(v), -2, 4),
    "normcdf": (lambda v: 0.5 * vector(math.erfc)(-v / math.sqrt(2)), -4, 4), "lgamma": (vector(math.lgamma), 0.2, 20), "tgamma": (vector(gamma), 0.2, 10), "sinpi": (lambda v: np.sin(np.pi * v), -1, 1),
    "cospi": (lambda v: np.cos(np.pi * v), -1, 1), "j0": (lambda v: bessel(0, v), -8, 8), "j1": (lambda v: bessel(1, v), -8, 8), "cyl_bessel_i0": (lambda v: bessel(0, v, True), -4, 4),
    "cyl_bessel_i1": (lambda v: bessel(1, v, True), -4, 4), "logb": (lambda v: np.floor(np.log2(np.abs(v))), 0.3, 100),
    "floor": (np.floor, -10, 10), "ceil": (np.ceil, -10, 10), "trunc": (np.trunc, -10, 10), "rint": (np.rint, -10, 10), "nearbyint": (np.rint, -10, 10),
    "round": (lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v), -10, 10), "abs": (np.abs, -10, 10),
}
EXACT = {"floor", "ceil", "trunc", "rint", "nearbyint", "round", "abs", "logb"}
BINARY = {
    "atan2": (np.arctan2, -5, 5), "pow": (np.power, 0.1, 5), "hypot": (np.hypot, -5, 5), "rhypot": (lambda a, b: 1 / np.hypot(a, b), 0.5, 5), "fmod": (np.fmod, -9, 9), "fdim": (lambda a, b: np.maximum(a - b, 0), -5, 5),
    "copysign": (np.copysign, -5, 5), "remainder": (vector(math.remainder), -9, 9), "nextafter": (None, -5, 5),
}


def unary(s):
    s.kernel("one", """
        from triton.language.extra import libdevice
        import triton
        import triton.language as tl


        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            r = libdevice.${NAME}(tl.load(x + i))
            tl.static_assert(r.dtype == ${T})
            tl.store(z + i, r)
    """)
    for name, (f, low, high) in UNARY.items():
        for t in F:
            x = uniform(t, N, len(s.names), low=low, high=high)
            with np.errstate(all="ignore"):
                r = f(x.values.astype("f8"))
            loose = name in ("tgamma", "lgamma", "j0", "j1", "erfcx", "tan", "cyl_bessel_i1", "cyl_bessel_i0")
            rule = {} if name in EXACT else {"rtol": (1e-5 if loose else 2e-6) if t == "fp32" else 1e-11, "atol": 1e-6 if t == "fp32" else 1e-12}
            s.case(f"{name}-{t}", "one", {"x": x, "z": Output(t, r, **rule), "N": N}, with_={"NAME": name, "T": TL[t]})
        if name in ("sin", "tanh", "floor"):
            s.case(f"{name}-fp16-reject", "one", {"x": uniform("fp16", N, 1), "z": Output("fp32", np.zeros(N)), "N": N}, with_={"NAME": name, "T": "tl.float32"}, error=name)
    for name, f in (("fast_sinf", np.sin), ("fast_cosf", np.cos), ("fast_expf", np.exp), ("fast_exp10f", lambda v: 10.0**v), ("fast_tanf", np.tan), ("saturatef", lambda v: np.clip(v, 0, 1))):
        x = uniform("fp32", N, 7, low=-1.4, high=1.4)
        s.case(f"{name}", "one", {"x": x, "z": Output("fp32", f(x.values.astype("f8")), rtol=1e-4, atol=1e-5), "N": N}, with_={"NAME": name, "T": "tl.float32"})
    for name, f in (("fast_logf", np.log), ("fast_log2f", np.log2), ("fast_log10f", np.log10)):
        x = uniform("fp32", N, 8, low=0.1, high=50)
        s.case(f"{name}", "one", {"x": x, "z": Output("fp32", f(x.values.astype("f8")), rtol=1e-4, atol=1e-5), "N": N}, with_={"NAME": name, "T": "tl.float32"})
    # Inverse functions through the functions themselves.
    for name, forward, low, high in (("erfinv", lambda v: vector(math.erf)(v), -2, 2), ("erfcinv", lambda v: vector(math.erfc)(v), -1, 2), ("normcdfinv", lambda v: 0.5 * vector(math.erfc)(-v / math.sqrt(2)), -3, 3)):
        for t in F:
            r = np.linspace(low, high, 16)
            x = listed(t, [float(v) for v in forward(r)])
            s.case(f"{name}-{t}", "one", {"x": x, "z": Output(t, r, rtol=1e-4 if t == "fp32" else 1e-9, atol=1e-5 if t == "fp32" else 1e-10), "N": 16}, with_={"NAME": name, "T": TL[t]})
    special = ["nan", "inf", "-inf", 0, "-0.0", 1, -2.5, "1e-40"]
    for t in F:
        x = Input(t, 16, {"values": special})
        for name, f in (("isinf", np.isinf), ("isnan", np.isnan), ("signbit", None)) + ((("finitef", np.isfinite),) if t == "fp32" else (("isfinited", np.isfinite),)):
            r = f(x.values) if f else np.signbit(x.values)
            if name == "signbit":
                x = Input(t, 16, {"values": special[1:]})
                r = np.signbit(x.values)
            s.kernel(f"{name}-{t}", f"""
                from triton.language.extra import libdevice
                import triton
                import triton.language as tl


                @triton.jit
                def kernel(x, z, N: tl.constexpr):
                    i = tl.arange(0, N)
                    tl.store(z + i, libdevice.{name}(tl.load(x + i)) != 0)
            """)
            s.case(f"{name}-{t}", f"{name}-{t}", {"x": x, "z": Output("i1", r), "N": 16})
    for t in ("i32", "i64"):
        w = 32 if t == "i32" else 64
        x = ints(t, N, 9, first=[0, 1, -1, 2**(w - 1) - 1, -2**(w - 1), 16])
        unsigned = [int(v) % 2**w for v in x.values]
        for name, f, tz in (("clz", lambda v: w - v.bit_length(), "i32"), ("popc", lambda v: bin(v).count("1"), "i32"), ("ffs", lambda v: (v & -v).bit_length(), "i32"),
                            ("brev", lambda v: (lambda r: r - 2**w if r >= 2**(w - 1) else r)(int(f"{v:0{w}b}"[::-1], 2)), t)):
            s.case(f"{name}-{t}", "one", {"x": x, "z": Output(tz, np.array([f(v) for v in unsigned], dtype=NUMPY[tz][1])), "N": N}, with_={"NAME": name, "T": TL[tz]})
    # Conversions with a rounding mode.
    def rounded(v, mode):
        return {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}[mode](v)

    for mode in ("rn", "rz", "rd", "ru"):
        for source, t in (("float", "fp32"), ("double", "fp64")):
            for target, tz in (("int", "i32"), ("ll", "i64"), ("uint", "i32"), ("ull", "i64")):
                x = uniform(t, N, 11, low=0 if target.startswith("u") else -1000, high=1000, first=[0.5, 1.5, 2.5, 0.49])
                s.case(f"{source}2{target}_{mode}", "one", {"x": x, "z": Output(tz, rounded(x.values.astype("f8"), mode).astype(NUMPY[tz][1])), "N": N}, with_={"NAME": f"{source}2{target}_{mode}", "T": TL[tz]})

        def narrowed(exact, mode):
            near = exact.astype("f4")
            low = np.where(near.astype("f8") > exact, np.nextafter(near, np.float32(-np.inf)), near)
            high = np.where(near.astype("f8") < exact, np.nextafter(near, np.float32(np.inf)), near)
            return {"rn": near, "rd": low, "ru": high, "rz": np.where(exact > 0, low, high)}[mode]

        x = uniform("fp64", N, 12, low=-3, high=3)
        s.case(f"double2float_{mode}", "one", {"x": x, "z": Output("fp32", narrowed(x.values, mode)), "N": N}, with_={"NAME": f"double2float_{mode}", "T": "tl.float32"})
        x = ints("i32", N, 13)
        s.case(f"int2float_{mode}", "one", {"x": x, "z": Output("fp32", narrowed(x.values.astype("f8"), mode)), "N": N}, with_={"NAME": f"int2float_{mode}", "T": "tl.float32"})
        # One operation with a rounding mode: the exact result fits float64 for sums and products of fp32.
        s.kernel(f"rounding-{mode}", f"""
            from triton.language.extra import libdevice
            import triton
            import triton.language as tl


            @triton.jit
            def kernel(x, y, plus, minus, times, N: tl.constexpr):
                i = tl.arange(0, N)
                a = tl.load(x + i)
                b = tl.load(y + i)
                tl.store(plus + i, libdevice.add_{mode}(a, b))
                tl.store(minus + i, libdevice.sub_{mode}(a, b))
                tl.store(times + i, libdevice.mul_{mode}(a, b))
        """)
        a, b = uniform("fp32", N, 14, low=1, high=2), uniform("fp32", N, 15, low=-2, high=2)
        a8, b8 = a.values.astype("f8"), b.values.astype("f8")
        s.case(f"rounding-{mode}", f"rounding-{mode}", {"x": a, "y": b, "plus": Output("fp32", narrowed(a8 + b8, mode)), "minus": Output("fp32", narrowed(a8 - b8, mode)), "times": Output("fp32", narrowed(a8 * b8, mode)), "N": N})
    x = Input("fp32", N, {"fill": "bell", "seed": 16, "scale": 3})
    s.case("float_as_int", "one", {"x": x, "z": Output("i32", x.bits.view("i4")), "N": N}, with_={"NAME": "float_as_int", "T": "tl.int32"})
    x = ints("i32", N, 17, low=0, high=2**30)
    s.case("int_as_float", "one", {"x": x, "z": Output("fp32", x.values.view("u4"), bits=True), "N": N}, with_={"NAME": "int_as_float", "T": "tl.float32"})
    x = Input("fp64", N, {"fill": "bell", "seed": 18})
    s.case("double_as_longlong", "one", {"x": x, "z": Output("i64", x.bits.view("i8")), "N": N}, with_={"NAME": "double_as_longlong", "T": "tl.int64"})
    s.case("double2hiint", "one", {"x": x, "z": Output("i32", (x.bits >> np.uint64(32)).astype("u4").view("i4")), "N": N}, with_={"NAME": "double2hiint", "T": "tl.int32"})
    s.case("double2loint", "one", {"x": x, "z": Output("i32", (x.bits & np.uint64(0xFFFFFFFF)).astype("u4").view("i4")), "N": N}, with_={"NAME": "double2loint", "T": "tl.int32"})
    for t in F:
        x = uniform(t, N, 19, low=0.01, high=300)
        s.case(f"ilogb-{t}", "one", {"x": x, "z": Output("i32", np.floor(np.log2(x.values)).astype("i4")), "N": N}, with_={"NAME": "ilogb", "T": "tl.int32"})
        x = uniform(t, N, 20, low=-300, high=300)
        s.case(f"llrint-{t}", "one", {"x": x, "z": Output("i64", np.rint(x.values).astype("i8")), "N": N}, with_={"NAME": "llrint", "T": "tl.int64"})
        s.case(f"llround-{t}", "one", {"x": x, "z": Output("i64", np.copysign(np.floor(np.abs(x.values) + 0.5), x.values).astype("i8")), "N": N}, with_={"NAME": "llround", "T": "tl.int64"})


def several(s):
    s.kernel("two", """
        from triton.language.extra import libdevice
        import triton
        import triton.language as tl


        @triton.jit
        def kernel(x, y, w, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            c = tl.load(w + i)
            tl.store(z + i, libdevice.${CALL})
    """)
    for name, (f, low, high) in BINARY.items():
        for t in F:
            x, y = uniform(t, N, 31, low=low, high=high), uniform(t, N, 32, low=low, high=high)
            a, b = x.values.astype("f8"), y.values.astype("f8")
            r = np.nextafter(x.values, y.values) if name == "nextafter" else f(a, b)
            exact = name in ("fmod", "fdim", "copysign", "remainder", "nextafter")
            rule = ({} if name in ("copysign", "nextafter") else {"rtol": 1e-6, "atol": 1e-6 if t == "fp32" else 1e-13}) if exact else {"rtol": 1e-5 if t == "fp32" else 1e-11, "atol": 1e-6 if t == "fp32" else 1e-12}
            s.case(f"{name}-{t}", "two", {"x": x, "y": y, "w": x, "z": Output(t, r, **rule), "N": N}, with_={"CALL": f"{name}(a, b)"})
    for t in F:
        x, y, w = (uniform(t, N, seed, low=-3, high=3) for seed in (33, 34, 35))
        a, b, c = (v.values.astype(np.longdouble) for v in (x, y, w))
        rule = {"rtol": 1e-5 if t == "fp32" else 1e-12, "atol": 1e-6 if t == "fp32" else 1e-14}
        s.case(f"fma-{t}", "two", {"x": x, "y": y, "w": w, "z": Output(t, (a * b + c).astype("f8"), **rule), "N": N}, with_={"CALL": "fma(a, b, c)"})
        s.case(f"norm3d-{t}", "two", {"x": x, "y": y, "w": w, "z": Output(t, np.sqrt(a * a + b * b + c * c).astype("f8"), **rule), "N": N}, with_={"CALL": "norm3d(a, b, c)"})
        s.case(f"rnorm3d-{t}", "two", {"x": x, "y": y, "w": w, "z": Output(t, (1 / np.sqrt(a * a + b * b + c * c)).astype("f8"), **rule), "N": N}, with_={"CALL": "rnorm3d(a, b, c)"})
        k = ints("i32", N, 36, low=-5, high=5)
        for name in ("ldexp", "scalbn"):
            s.case(f"{name}-{t}", "two", {"x": x, "y": k, "w": k, "z": Output(t, np.ldexp(x.values, k.values)), "N": N}, with_={"CALL": f"{name}(a, b)"})
        s.case(f"jn-{t}", "two", {"x": listed("i32", [2] * N, N), "y": x, "w": x, "z": Output(t, bessel(2, x.values), rtol=1e-4, atol=1e-6), "N": N}, with_={"CALL": "jn(a, b)"})
    for t in ("i32", "u32"):
        x, y, w = (Input(t, N, {"fill": "bits", "seed": seed}) for seed in (37, 38, 39))
        a, b, c = ([int(v) for v in q.values] for q in (x, y, w))

        def wrap(v):
            return np.array([q % 2**32 for q in v], "u8").astype("u4").view(NUMPY[t][1])

        for name, f in (("mulhi", lambda p, q: (p * q) >> 32), ("hadd", lambda p, q: (p + q) >> 1), ("rhadd", lambda p, q: (p + q + 1) >> 1)):
            s.case(f"{name}-{t}", "two", {"x": x, "y": y, "w": w, "z": Output(t, wrap([f(p, q) for p, q in zip(a, b)])), "N": N}, with_={"CALL": f"{name}(a, b)"})
        u = Input("u32", N, {"fill": "bits", "seed": 39})
        s.case(f"sad-{t}", "two", {"x": x, "y": y, "w": u, "z": Output(t, wrap([abs(p - q) + int(r) for p, q, r in zip(a, b, u.values)])), "N": N}, with_={"CALL": "sad(a, b, c)"})
    x, y = ints("i32", N, 40, low=-1000, high=1000), ints("i32", N, 41, low=-1000, high=1000)
    s.case("mul24", "two", {"x": x, "y": y, "w": x, "z": Output("i32", x.values * y.values), "N": N}, with_={"CALL": "mul24(a, b)"})
    x, y, w = Input("i32", N, {"fill": "bits", "seed": 42}), Input("i32", N, {"fill": "bits", "seed": 43}), Input("i32", N, {"fill": "ints", "low": 0, "high": 0x7777, "seed": 44, "and": "0x7777"})
    r = []
    for p, q, sel in zip(x.values, y.values, w.values):
        data = (int(p) % 2**32).to_bytes(4, "little") + (int(q) % 2**32).to_bytes(4, "little")
        r.append(int.from_bytes(bytes(data[(int(sel) >> (4 * k)) & 7] for k in range(4)), "little", signed=True))
    s.case("byte_perm", "two", {"x": x, "y": y, "w": w, "z": Output("i32", np.array(r, "i4")), "N": N}, with_={"CALL": "byte_perm(a, b, c)"})
    x, y = uniform("fp32", N, 45, low=0.5, high=5), uniform("fp32", N, 46, low=0.5, high=3)
    a, b = x.values.astype("f8"), y.values.astype("f8")
    s.case("fast_dividef", "two", {"x": x, "y": y, "w": y, "z": Output("fp32", a / b, rtol=1e-5), "N": N}, with_={"CALL": "fast_dividef(a, b)"})
    s.case("fast_powf", "two", {"x": x, "y": y, "w": y, "z": Output("fp32", a**b, rtol=1e-3), "N": N}, with_={"CALL": "fast_powf(a, b)"})


def build():
    s = Suite("libdevice")
    unary(s)
    several(s)
    yield s
