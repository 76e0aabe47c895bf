"""Reductions, scans, sorts."""
import itertools

import numpy as np

from formats import ALL, FLOATS, INTS, NUMPY, TL, UINTS, bits_of, convert, decode, encode, is_float, is_int, is_signed
from suite import Input, Output, Suite, bell, ints, listed, numbers

ONE = """
    @triton.jit
    def kernel(x, z, N: tl.constexpr):
        a = tl.load(x + tl.arange(0, N))
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z, r)
"""
TWO = """
    @triton.jit
    def kernel(x, z, M: tl.constexpr, N: tl.constexpr, R: tl.constexpr):
        a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z + tl.arange(0, R), r.reshape(R))
"""


def result_type(op, t):
    if op in ("argmax", "argmin"):
        return "i32"
    if op in ("max", "min"):
        return "fp32" if t in ("bf16", "fp16") else ("i32" if is_int(t) and bits_of(t) < 32 else t)
    if op == "sum" and is_int(t) and bits_of(t) < 32:
        return "i32" if is_signed(t) else "u32"
    if op in ("max", "min") and t == "bf16":
        return "fp32"
    return t


def tolerance(op, t):
    return {"rtol": 0.01, "atol": {"fp16": 0.05, "bf16": 0.1}.get(t, 1e-3)} if op == "sum" and is_float(t) else {}


def values(op, t, shape, seed):
    if op in ("argmax", "argmin") and is_int(t):
        return ints(t, shape, seed, low=0, high=50)  # with ties
    if op == "sum" and is_float(t):
        return bell(t, shape, seed)
    return numbers(t, shape, seed)


def reduced(op, t, v, axis=None, keep=False):
    tz = result_type(op, t)
    kind = NUMPY[tz][1]
    if op == "sum":
        with np.errstate(all="ignore"):
            return v.astype("f8").sum(axis=axis, keepdims=keep) if is_float(t) else v.astype(kind).sum(axis=axis, keepdims=keep, dtype=kind)
    if op in ("max", "min"):
        return convert(getattr(v, op)(axis=axis, keepdims=keep), t, tz)
    if op in ("argmax", "argmin"):
        return getattr(v, op)(axis=axis).astype("i4")
    return np.bitwise_xor.reduce(v, axis=axis, keepdims=keep) if op == "xor_sum" else np.bitwise_or.reduce(v, axis=axis, keepdims=keep)


def unsigned_max(op, t):
    """uint8 and uint16 are upcast to int32, as the library does: the values stay."""
    return result_type(op, t)


def reductions(s):
    s.kernel("one", ONE)
    seed = 1
    for t in ALL:
        for op in ("sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce_or"):
            if op in ("xor_sum", "reduce_or") and is_float(t):
                continue
            for n, warps in ((1, 4), (2, 4), (16, 1), (128, 4), (1024, 8)):
                if n in (1, 16) and t not in ("i32", "fp32", "i8", "bf16") or n == 2 and t not in ("u64", "fp16", "i64"):
                    continue
                seed += 1
                x = values(op, t, n, seed)
                tz = result_type(op, t)
                axis = ", axis=0" if op.startswith("arg") or seed % 2 else ""
                s.case(f"{op}-{t}-{n}", "one", {"x": x, "z": Output(tz, np.atleast_1d(reduced(op, t, x.values)), **tolerance(op, t)), "N": n},
                       with_={"EXPR": f"tl.{op}(a{axis})", "T": TL[tz]}, warps=warps)
    s.kernel("two", TWO)
    for op, t in itertools.product(("sum", "max", "min", "argmax", "argmin"), ("i8", "i32", "u16", "i64", "fp16", "bf16", "fp32", "fp64")):
        for k, ((m, n), axis, keep) in enumerate((((1, 1024), 1, False), ((1, 1024), 0, False), ((64, 32), 0, True), ((64, 32), 1, False), ((4, 128), -1, True), ((128, 4), 0, False), ((2, 2), 1, True))):
            if (k + len(t) + len(op)) % 2 and t not in ("fp32",):
                continue
            seed += 1
            x = values(op, t, (m, n), seed)
            tz = result_type(op, t)
            r = reduced(op, t, x.values, axis)
            s.case(f"{op}-{t}-{m}x{n}-{axis}{'-keep' if keep else ''}", "two", {"x": x, "z": Output(tz, r, **tolerance(op, t)), "M": m, "N": n, "R": int(r.size)},
                   with_={"EXPR": f"tl.{op}(a, {axis}{', keep_dims=True' if keep else ''})", "T": TL[tz]}, warps=(1, 2, 4, 8)[seed % 4])
    x = bell("fp32", (16, 32), 5)
    s.case("sum-all-2d", "two", {"x": x, "z": Output("fp32", np.full(1, x.values.sum(dtype="f8")), rtol=1e-3), "M": 16, "N": 32, "R": 1}, with_={"EXPR": "tl.sum(a) + tl.zeros([1], tl.float32)", "T": "tl.float32"})
    s.case("sum-all-keep", "two", {"x": x, "z": Output("fp32", np.full(1, x.values.sum(dtype="f8")), rtol=1e-3), "M": 16, "N": 32, "R": 1}, with_={"EXPR": "tl.sum(a, keep_dims=True)", "T": "tl.float32"})
    s.case("max-member", "two", {"x": x, "z": Output("fp32", x.values.max(axis=1)), "M": 16, "N": 32, "R": 16}, with_={"EXPR": "a.max(axis=1)", "T": "tl.float32"})
    for t, dtype, tz in (("i8", "tl.int64", "i64"), ("i32", "tl.float32", "fp32"), ("fp16", "tl.float32", "fp32"), ("u8", "tl.int32", "i32"), ("i1", None, "u32"), ("i32", "tl.int64", "i64")):
        x = ints("i1", 128, 8) if t == "i1" else bell(t, 128, 8) if is_float(t) else ints(t, 128, 8, low=0 if t == "u8" else None)
        v = x.values.astype(NUMPY[tz][1])
        s.case(f"sum-dtype-{t}-{tz}", "one", {"x": x, "z": Output(tz, np.atleast_1d(v.sum(dtype="f8" if tz == "fp32" else v.dtype)), **({"rtol": 1e-3} if tz == "fp32" else {})), "N": 128},
               with_={"EXPR": f"tl.sum(a, 0{f', dtype={dtype}' if dtype else ''})", "T": TL[tz]})
    # NaN is ignored by max and min; ties go to the left unless asked otherwise.
    x = listed("fp32", ["nan", 1, 2, "nan", -5, 7, 3, "nan"])
    s.case("max-nan", "one", {"x": x, "z": Output("fp32", np.full(1, 7.0)), "N": 8}, with_={"EXPR": "tl.max(a, 0)", "T": "tl.float32"})
    s.case("min-nan", "one", {"x": x, "z": Output("fp32", np.full(1, -5.0)), "N": 8}, with_={"EXPR": "tl.min(a, 0)", "T": "tl.float32"})
    x = listed("fp32", [1, "nan", 7, 2, -5, 7, 3, -5])
    s.case("argmax-nan-later", "one", {"x": x, "z": Output("i32", np.full(1, 2, "i4")), "N": 8}, with_={"EXPR": "tl.argmax(a, 0)", "T": "tl.int32"})
    s.case("argmin-nan-later", "one", {"x": x, "z": Output("i32", np.full(1, 4, "i4")), "N": 8}, with_={"EXPR": "tl.argmin(a, 0)", "T": "tl.int32"})
    for t in ("i32", "fp32"):
        x = Input(t, 256, {"fill": "zeros"})
        s.case(f"argmax-ties-{t}", "one", {"x": x, "z": Output("i32", np.zeros(1, "i4")), "N": 256}, with_={"EXPR": "tl.argmax(a, 0)", "T": "tl.int32"})
    x = Input("fp32", 32, {"values": ["-inf"]})
    s.case("max-returns-minus-inf", "one", {"x": x, "z": Output("fp32", np.full(1, -np.inf)), "N": 32}, with_={"EXPR": "tl.max(a, 0)", "T": "tl.float32"})
    x = numbers("fp32", (16, 32), 9)
    for op in ("max", "min"):
        s.case(f"{op}-with-indices", "two", {"x": x, "z": Output("fp32", getattr(x.values, op)(axis=1) + getattr(x.values, "arg" + op)(axis=1).astype("f4"), rtol=1e-6), "M": 16, "N": 32, "R": 16},
               with_={"EXPR": f"tl.{op}(a, 1, return_indices=True)[0] + tl.{op}(a, 1, return_indices=True)[1]", "T": "tl.float32"})
    for name, expr in (("xor", "tl.xor_sum(a, 0)"), ("or", "tl.reduce_or(a, 0)")):
        s.case(f"{name}-float-reject", "one", {"x": numbers("fp32", 32, 1), "z": Output("fp32", np.zeros(1)), "N": 32}, with_={"EXPR": expr, "T": "tl.float32"}, error="int")
    s.case("axis-reject", "one", {"x": numbers("fp32", 32, 1), "z": Output("fp32", np.zeros(1)), "N": 32}, with_={"EXPR": "tl.sum(a, 1)", "T": "tl.float32"}, error="axis")


def general(s):
    """tl.reduce and tl.associative_scan with functions of the user."""
    s.kernel("general", """
        @triton.jit
        def multiply(a, b):
            return a * b

        @triton.jit
        def larger(a, b):
            return tl.where(a > b, a, b)

        @triton.jit
        def welford(m1, s1, n1, m2, s2, n2):
            n = n1 + n2
            d = m2 - m1
            return m1 + d * n2 / n, s1 + s2 + d * d * n1 * n2 / n, n

        @triton.jit
        def left(a, b):
            return a

        @triton.jit
        def affine(a1, b1, a2, b2):
            return a1 * a2, b1 * a2 + b2

        @triton.jit
        def positive_sum(a, b):
            zero = tl.zeros_like(a)
            one = tl.full(a.shape, 1, a.dtype)
            return tl.where(a > zero, a, zero) * one + tl.where(b > tl.zeros(b.shape, b.dtype), b, zero)

        @triton.jit
        def branchy(a, b):
            if a > b:
                r = a
            else:
                r = b
            return r

        @triton.jit
        def kernel(x, z, M: tl.constexpr, N: tl.constexpr, R: tl.constexpr):
            a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
            r = ${EXPR}
            tl.store(z + tl.arange(0, R), r.reshape(R))
    """)
    x = Input("fp32", (8, 32), {"fill": "uniform", "low": 0.5, "high": 1.5, "seed": 3})
    v = x.values.astype("f8")
    for axis in (0, 1):
        s.case(f"product-{axis}", "general", {"x": x, "z": Output("fp32", v.prod(axis=axis), rtol=1e-4), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"tl.reduce(a, {axis}, multiply)"})
        s.case(f"larger-{axis}", "general", {"x": x, "z": Output("fp32", v.max(axis=axis)), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"a.reduce({axis}, larger)"})
        s.case(f"branches-{axis}", "general", {"x": x, "z": Output("fp32", v.max(axis=axis)), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"tl.reduce(a, {axis}, branchy)"})
        for k, r in ((0, v.mean(axis=axis)), (1, ((v - v.mean(axis=axis, keepdims=True)) ** 2).sum(axis=axis))):
            s.case(f"welford-{axis}-{k}", "general", {"x": x, "z": Output("fp32", r, rtol=1e-4, atol=1e-5), "M": 8, "N": 32, "R": v.shape[1 - axis]},
                   with_={"EXPR": f"tl.reduce((a, a * 0, a * 0 + 1), {axis}, welford)[{k}]"})
        s.case(f"scan-product-{axis}", "general", {"x": x, "z": Output("fp32", np.cumprod(v, axis=axis), rtol=1e-4), "M": 8, "N": 32, "R": 256}, with_={"EXPR": f"tl.associative_scan(a, {axis}, multiply)"})
        s.case(f"shape-of-operand-{axis}", "general", {"x": x, "z": Output("fp32", v.sum(axis=axis), rtol=1e-5), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"tl.reduce(a, {axis}, positive_sum)"})
        s.case(f"scan-shape-of-operand-{axis}", "general", {"x": x, "z": Output("fp32", v.cumsum(axis=axis), rtol=1e-5), "M": 8, "N": 32, "R": 256}, with_={"EXPR": f"tl.associative_scan(a, {axis}, positive_sum)"})
        for name, r in (("_sum_combine", v.sum(axis=axis)), ("_prod_combine", v.prod(axis=axis)), ("_elementwise_max", v.max(axis=axis)), ("_elementwise_min", v.min(axis=axis))):
            s.case(f"standard{name}-{axis}", "general", {"x": x, "z": Output("fp32", r, rtol=1e-4), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"tl.reduce(a, {axis}, tl.standard.{name})"})
        for name, r in (("_argmax_combine_tie_break_left", v.argmax(axis=axis)), ("_argmin_combine_tie_break_left", v.argmin(axis=axis))):
            place = "tl.broadcast_to(tl.arange(0, N)[None, :], a.shape)" if axis == 1 else "tl.broadcast_to(tl.arange(0, M)[:, None], a.shape)"
            s.case(f"standard{name}-{axis}", "general", {"x": x, "z": Output("fp32", r.astype("f4")), "M": 8, "N": 32, "R": v.shape[1 - axis]}, with_={"EXPR": f"tl.reduce((a, {place}), {axis}, tl.standard.{name})[1].to(tl.float32)"})
        first = np.broadcast_to(v.take([0], axis=axis), v.shape)
        s.case(f"scan-left-{axis}", "general", {"x": x, "z": Output("fp32", first), "M": 8, "N": 32, "R": 256}, with_={"EXPR": f"tl.associative_scan(a, {axis}, left)"})
        last = np.broadcast_to(v.take([-1], axis=axis), v.shape)
        s.case(f"scan-left-reverse-{axis}", "general", {"x": x, "z": Output("fp32", last), "M": 8, "N": 32, "R": 256}, with_={"EXPR": f"tl.associative_scan(a, {axis}, left, reverse=True)"})
        state = np.zeros_like(v.take(0, axis=axis))
        rows = []
        for k in range(v.shape[axis]):
            state = state * v.take(k, axis=axis) + 1
            rows.append(state)
        s.case(f"scan-affine-{axis}", "general", {"x": x, "z": Output("fp32", np.stack(rows, axis=axis), rtol=1e-3), "M": 8, "N": 32, "R": 256},
               with_={"EXPR": f"tl.associative_scan((a, a * 0 + 1), {axis}, affine)[1]"})
    s.case("keep-dims", "general", {"x": x, "z": Output("fp32", v.max(axis=1)), "M": 8, "N": 32, "R": 8}, with_={"EXPR": "tl.reduce(a, 1, larger, keep_dims=True)"})
    s.case("none-axis", "general", {"x": x, "z": Output("fp32", np.full(1, v.max())), "M": 8, "N": 32, "R": 1}, with_={"EXPR": "tl.reduce(a, None, larger) + tl.zeros([1], tl.float32)"})
    s.case("chained", "general", {"x": x, "z": Output("fp32", np.full(1, v.max())), "M": 8, "N": 32, "R": 1}, with_={"EXPR": "tl.max(tl.max(a, 0), 0) + tl.zeros([1], tl.float32)"})
    s.kernel("chained", """
        @triton.jit
        def kernel(x, z, R: tl.constexpr):
            a = tl.load(x + tl.arange(0, 256)).reshape(${SHAPE})
            tl.store(z + tl.arange(0, R), ${EXPR})
    """)
    x = ints("i32", 256, 4, low=0, high=1000)
    for name, shape, perm, axes in (("a", (4, 8, 8), (2, 1, 0), (2, 0)), ("b", (2, 32, 4), (1, 0, 2), (2, 1)), ("c", (2, 2, 2, 32), (3, 0, 1, 2), (1, 1, 1)), ("d", (4, 4, 4, 4), (0, 3, 2, 1), (3, 0, 0))):
        r = x.values.reshape(shape).transpose(perm)
        expr = f"tl.permute(a, {perm})"
        for axis in axes:
            r, expr = r.sum(axis=axis), f"tl.sum({expr}, {axis})"
        s.case(f"chained-permuted-{name}", "chained", {"x": x, "z": Output("i32", r.astype("i4")), "R": int(r.size)}, with_={"SHAPE": ", ".join(map(str, shape)), "EXPR": expr})


def scans(s):
    s.kernel("scan", TWO)
    s.kernel("scan-1d", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            r = ${EXPR}
            tl.static_assert(r.dtype == ${T})
            tl.store(z + i, r)
    """)
    seed = 1
    for t in ALL:
        tz = "fp32" if t == "bf16" else ("i32" if is_signed(t) else "u32") if is_int(t) and bits_of(t) < 32 else t
        for k, ((m, n), axis, reverse) in enumerate(itertools.product(((8, 32), (32, 16), (2, 256), (16, 1), (1, 64)), (0, 1), (False, True))):
            if (k * 7 + len(t)) % 4 > (2 if t in ("i32", "fp32") else 0):
                continue
            seed += 1
            x = bell(t, (m, n), seed) if is_float(t) else ints(t, (m, n), seed)
            v = np.flip(x.values, axis) if reverse else x.values
            with np.errstate(all="ignore"):
                r = np.cumsum(v.astype("f8"), axis=axis) if is_float(t) else np.cumsum(v.astype(NUMPY[tz][1]), axis=axis, dtype=NUMPY[tz][1])
            r = np.flip(r, axis) if reverse else r
            rule = {"rtol": 0.01, "atol": 0.05 if t == "fp16" else 1e-3} if is_float(t) else {}
            s.case(f"cumsum-{t}-{m}x{n}-{axis}{'-reverse' if reverse else ''}", "scan", {"x": x, "z": Output(tz, r, **rule), "M": m, "N": n, "R": m * n},
                   with_={"EXPR": f"tl.cumsum(a, axis={axis}, reverse={reverse})", "T": TL[tz]}, warps=(4, 8, 1, 2)[seed % 4])
            tp = "fp32" if t == "bf16" else t
            xp = Input(t, (m, n), {"fill": "uniform", "low": 0.7, "high": 1.3, "seed": seed}) if is_float(t) else ints(t, (m, n), seed, low=1, high=3)
            v = np.flip(xp.values, axis) if reverse else xp.values
            with np.errstate(all="ignore"):
                r = np.cumprod(v.astype("f8"), axis=axis) if is_float(t) else np.cumprod(v, axis=axis, dtype=v.dtype)
            r = np.flip(r, axis) if reverse else r
            rule = {"rtol": 0.1 if t == "fp16" else 0.01, "atol": 1e-3} if is_float(t) else {}
            s.case(f"cumprod-{t}-{m}x{n}-{axis}{'-reverse' if reverse else ''}", "scan", {"x": xp, "z": Output(tp, r, **rule), "M": m, "N": n, "R": m * n},
                   with_={"EXPR": f"tl.cumprod(a, {axis}, {reverse})", "T": TL[tp]}, warps=(1, 4, 2, 8)[seed % 4])
    for n, warps in ((1, 4), (4, 2), (32, 1), (128, 4), (1024, 4), (2048, 8), (512, 2)):
        x = ints("i32", n, n)
        s.case(f"cumsum-1d-{n}", "scan-1d", {"x": x, "z": Output("i32", np.cumsum(x.values, dtype="i4")), "N": n}, with_={"EXPR": "tl.cumsum(tl.load(x + i))", "T": "tl.int32"}, warps=warps)
    x = ints("i8", 128, 9)
    s.case("cumsum-dtype", "scan-1d", {"x": x, "z": Output("i64", np.cumsum(x.values, dtype="i8")), "N": 128}, with_={"EXPR": "tl.cumsum(tl.load(x + i), dtype=tl.int64)", "T": "tl.int64"})
    x = ints("i1", 128, 9)
    s.case("cumsum-bool", "scan-1d", {"x": x, "z": Output("i32", np.cumsum(x.values, dtype="i4")), "N": 128}, with_={"EXPR": "tl.cumsum(tl.load(x + i), dtype=tl.int32)", "T": "tl.int32"})
    s.kernel("scan-functions", """
        @triton.jit
        def maximum(a, b):
            return tl.maximum(a, b)

        @triton.jit
        def last_index(a, i, b, j):
            return tl.where(b >= a, b, a), tl.where(b >= a, j, i)

        @triton.jit
        def linear(a1, a2, b1, b2):
            return a1 * b1, a2 * b1 + b2

        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, ${EXPR})
    """)
    for t in ("i32", "fp32"):
        for n, warps in ((16, 1), (128, 4), (1024, 8)):
            x = numbers(t, n, n)
            r = np.maximum.accumulate(x.values)
            s.case(f"cummax-{t}-{n}", "scan-functions", {"x": x, "z": Output(t, r), "N": n}, with_={"EXPR": "tl.associative_scan(tl.load(x + i), 0, maximum)"}, warps=warps)
            r = np.flip(np.maximum.accumulate(np.flip(x.values)))
            s.case(f"cummax-reverse-{t}-{n}", "scan-functions", {"x": x, "z": Output(t, r), "N": n}, with_={"EXPR": "tl.associative_scan(tl.load(x + i), 0, maximum, reverse=True)"}, warps=warps)
        x = ints(t, 256, 1, low=0, high=20)
        index, best, where = [], None, 0
        for k, value in enumerate(x.values):
            if best is None or value >= best:
                best, where = value, k
            index.append(where)
        s.case(f"index-of-max-{t}", "scan-functions", {"x": x, "z": Output("i32", np.array(index, "i4")), "N": 256}, with_={"EXPR": "tl.associative_scan((tl.load(x + i), i), 0, last_index)[1]"})


def sorts(s):
    s.kernel("sort", TWO)
    seed = 1
    for t in ("i32", "fp16", "fp32", "bf16", "i8", "u32", "i64", "u8", "fp64"):
        for (m, n), descending in itertools.product(((1, 512), (8, 64), (64, 8), (16, 16), (1, 2), (8, 1)), (False, True)):
            if t not in ("i32", "fp32") and (m, n) not in ((8, 64), (16, 16)):
                continue
            seed += 1
            x = numbers(t, (m, n), seed)
            r = np.sort(x.values, axis=1)
            s.case(f"{t}-{m}x{n}{'-descending' if descending else ''}", "sort", {"x": x, "z": Output(t, r[:, ::-1] if descending else r), "M": m, "N": n, "R": m * n},
                   with_={"EXPR": f"tl.sort(a, descending={descending})", "T": TL[t]}, warps=(4, 1, 8, 2)[seed % 4])
        tz = "fp32" if t in ("fp16", "bf16") else "i32" if t in ("i8", "u8") else t
        for (m, n), k in itertools.product(((8, 64), (16, 16), (1, 256)), (8, 1)):
            if t not in ("i32", "fp32", "fp16") and (m, n, k) != (8, 64, 8):
                continue
            for largest in (True, False):
                seed += 1
                x = numbers(t, (m, n), seed)
                r = np.sort(x.values, axis=1)
                r = r[:, ::-1][:, :k] if largest else r[:, :k]
                s.case(f"topk-{t}-{m}x{n}-{k}{'' if largest else '-smallest'}", "sort", {"x": x, "z": Output(tz, convert(r, t, tz)), "M": m, "N": n, "R": m * k},
                       with_={"EXPR": f"tl.topk(a, {k}{'' if largest else ', descending=False'})", "T": TL[tz]}, warps=(4, 2, 1, 8)[seed % 4])
    x = numbers("i32", (4, 64), 3)
    s.case("member", "sort", {"x": x, "z": Output("i32", np.sort(x.values, axis=1)), "M": 4, "N": 64, "R": 256}, with_={"EXPR": "a.sort(dim=1)", "T": "tl.int32"})
    s.case("reject-dim", "sort", {"x": x, "z": Output("i32", np.sort(x.values, axis=1)), "M": 4, "N": 64, "R": 256}, with_={"EXPR": "tl.sort(a, dim=0)", "T": "tl.int32"}, error="dim")
    s.case("ties", "sort", {"x": ints("i32", (8, 128), 4, low=0, high=5), "z": Output("i32", np.sort(ints("i32", (8, 128), 4, low=0, high=5).values, axis=1)), "M": 8, "N": 128, "R": 1024},
           with_={"EXPR": "tl.sort(a)", "T": "tl.int32"})
    s.kernel("merge", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.sort(tl.load(x + i).reshape(2, N // 2))
            lower, upper = tl.split(tl.trans(a))
            bitonic = tl.cat(lower, tl.flip(upper, 0))
            tl.store(z + i, tl.bitonic_merge(bitonic${ARGS}))
    """)
    for t in ("i32", "fp32"):
        for args, flip in (("", False), (", descending=True", True)):
            x = numbers(t, 128, 5)
            r = np.sort(x.values)
            s.case(f"bitonic-merge-{t}{'-descending' if flip else ''}", "merge", {"x": x, "z": Output(t, r[::-1] if flip else r), "N": 128}, with_={"ARGS": args})


def private_sorts(s):
    """Sorting by the steps of Triton's library, in its older and its newer form."""
    s.kernel("steps", """
        from triton.language.standard import _bitonic_merge, _bitonic_merge_hypercube, _compare_and_swap, _indicator, _is_power_of_two, _log2, sort_impl
        import triton
        import triton.language as tl

        @triton.jit
        def older(x, N: tl.constexpr):
            n: tl.constexpr = _log2(N)
            for stage in tl.static_range(1, n + 1):
                order: tl.constexpr = 2 if stage < n else 0
                x = _bitonic_merge(x, stage, order, n)
            return x

        @triton.jit
        def swaps(x, N: tl.constexpr):
            n: tl.constexpr = tl.standard._log2(N)
            tl.static_assert(_is_power_of_two(N) and not _is_power_of_two(N + 1))
            for stage in tl.static_range(1, n + 1):
                flip = (tl.arange(0, N) >> stage) & 1
                for i in tl.static_range(stage):
                    x = _compare_and_swap(x, flip, n - stage + i, n)
            return x

        @triton.jit
        def newer(x, N: tl.constexpr):
            n: tl.constexpr = _log2(N)
            h = x.reshape([2] * n)
            for stage in tl.static_range(1, n + 1):
                if stage < n:
                    flip = _indicator(n, stage)
                    for i in tl.static_range(stage):
                        h = _compare_and_swap(h, flip, stage - 1 - i)
                else:
                    h = _bitonic_merge_hypercube(h, stage, 0)
            return h.reshape(N)

        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, ${EXPR})
    """)
    for t, n in (("i32", 64), ("fp32", 128), ("u8", 32), ("fp16", 64)):
        x = numbers(t, n, 7)
        for name in ("older", "swaps", "newer"):
            s.case(f"{name}-{t}-{n}", "steps", {"x": x, "z": Output(t, np.sort(x.values)), "N": n}, with_={"EXPR": f"{name}(tl.load(x + i), N)"})
        s.case(f"sort_impl-{t}-{n}", "steps", {"x": x, "z": Output(t, np.sort(x.values)[::-1]), "N": n}, with_={"EXPR": "sort_impl(tl.load(x + i), descending=True)"})


def build():
    for name, functions in (("reduce", (reductions, general)), ("scan", (scans,)), ("sort", (sorts,)), ("sortsteps", (private_sorts,))):
        s = Suite(name)
        for function in functions:
            function(s)
        yield s
