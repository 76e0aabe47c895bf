"""Matrix products: types, precisions, shapes, warps, epilogues, three dimensions, scaled formats, whole matmuls."""
import itertools

import numpy as np

from formats import NUMPY, TL, bits_of, convert, decode, encode, is_float, is_int
from suite import Input, Output, Suite, bell, ints, listed, numbers, uniform

DOT = """
    @triton.jit
    def kernel(x, y, w, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
        m = tl.arange(0, M)
        n = tl.arange(0, N)
        k = tl.arange(0, K)
        a = tl.load(x + ${A})
        b = tl.load(y + ${B})
        c = ${EXPR}
        tl.static_assert(c.dtype == ${T})
        tl.store(z + m[:, None] * N + n[None, :], c)
"""
ROWS = {"row": "m[:, None] * K + k[None, :]", "column": "m[:, None] + k[None, :] * M"}
COLUMNS = {"row": "k[:, None] * N + n[None, :]", "column": "k[:, None] + n[None, :] * K"}


def operand(t, shape, seed, precision=""):
    if t == "i8":
        return ints("i8", shape, seed)
    if t.startswith("fp8"):
        return Input(t, shape, {"fill": "patterns", "low": 20, "high": 39 if t == "fp8e5" else 60, "seed": seed})
    rule = {"and": "0xffffe000"} if t == "fp32" and precision in ("tf32", "") else {}
    return bell(t, shape, seed, scale=0.25, **rule)


def wide(v):
    return v.astype("i8") if v.dtype.kind == "i" else v.astype("f8")


def tolerance(tx, tz):
    if is_int(tz):
        return {}
    if tz in ("fp16", "bf16") or tx == "bf16":
        return {"rtol": 0.01, "atol": 1e-2}
    return {"rtol": 0.01, "atol": 1e-3}


def plain(s):
    s.kernel("dot", DOT)
    kinds = [("fp16", "fp32", ""), ("fp16", "fp16", ""), ("bf16", "fp32", ""), ("fp32", "fp32", "tf32"), ("fp32", "fp32", "ieee"), ("fp32", "fp32", "tf32x3"),
             ("fp32", "fp32", "bf16x3"), ("fp32", "fp32", "bf16x6"), ("fp64", "fp64", ""), ("i8", "i32", ""), ("fp8e5", "fp32", ""), ("fp8e4nv", "fp32", ""), ("fp8e5", "fp16", "")]
    shapes = [(16, 16, 16, 4), (32, 32, 32, 1), (64, 64, 32, 4), (128, 64, 32, 8), (16, 64, 64, 2), (64, 16, 64, 4), (32, 128, 64, 4), (128, 128, 64, 4), (64, 128, 128, 8),
              (1, 16, 32, 4), (16, 8, 32, 1), (2, 2, 32, 4), (8, 128, 32, 2), (128, 256, 32, 8)]
    seed = 1
    for kind, (tx, tz, precision) in enumerate(kinds):
        for number, (m, n, k, warps) in enumerate(shapes):
            least = {8: 32, 16: 16, 32: 8, 64: 4}[bits_of(tx)]
            if k < least:
                k = least
            if tx == "fp64" and m * n > 4096 or (precision in ("tf32x3", "bf16x3", "bf16x6", "ieee") or tx == "fp64") and (number + kind) % 2:
                continue
            seed += 1
            col_a, col_b = [("row", "row"), ("column", "row"), ("row", "column"), ("column", "column")][(number + kind) % 4]
            a, b = operand(tx, (m, k), seed, precision), operand(tx, (k, n), seed + 500, precision)
            va = a.values if col_a == "row" else a.values.ravel().reshape(k, m).T
            vb = b.values if col_b == "row" else b.values.ravel().reshape(n, k).T
            r = wide(va) @ wide(vb)
            options = (f", input_precision='{precision}'" if precision else "") + (", out_dtype=tl.float16" if tz == "fp16" else "")
            name = f"{tx}-{tz}{'-' + precision if precision else ''}-{m}x{n}x{k}-warps-{warps}-{col_a}-{col_b}"
            s.case(name, "dot", {"x": a, "y": b, "w": Input("fp32", 1, {}), "z": Output(tz, r.astype("i4") if is_int(tz) else r, **tolerance(tx, tz)), "M": m, "N": n, "K": k},
                   with_={"A": ROWS[col_a], "B": COLUMNS[col_b], "EXPR": f"tl.dot(a, b{options})", "T": TL[tz]}, warps=warps, **({"slow": True} if m * n * k > 500000 else {}))
    # What surrounds a product.
    for (tx, tz), warps in itertools.product((("fp16", "fp32"), ("fp32", "fp32"), ("bf16", "fp32"), ("fp16", "fp16"), ("i8", "i32")), (4, 8)):
        m, n, k = 64, 64, 32
        seed += 1
        a, b = operand(tx, (m, k), seed), operand(tx, (k, n), seed + 500)
        p = wide(a.values) @ wide(b.values)
        out = "" if tz != "fp16" else ", out_dtype=tl.float16"
        d = f"tl.dot(a, b{out})"
        w = ints(tz, (m, n), seed, low=-100, high=100) if is_int(tz) else bell(tz, (m, n), seed)
        v = wide(w.values)
        forms = {"add-matrix": (f"{d} + tl.load(w + m[:, None] * N + n[None, :])", p + v), "accumulator": (f"tl.dot(a, b, tl.load(w + m[:, None] * N + n[None, :]){out})", p + v),
                 "add-rows": (f"{d} + tl.load(w + m)[:, None]", p + v.ravel()[:m, None]), "add-columns": (f"{d} + tl.load(w + n)[None, :]", p + v.ravel()[None, :n]),
                 "trans": (f"tl.trans(tl.trans({d}))", p), "trans-out": (f"tl.trans({d})", p.T), "twice": (f"tl.dot(a, b, {d}{out})", 2 * p)}
        if tz == "fp32":
            e = np.exp(p - p.max(axis=1, keepdims=True))
            forms["softmax"] = (f"tl.softmax({d}, dim=1, keep_dims=True)", e / e.sum(axis=1, keepdims=True))
            forms["row-max"] = (f"tl.max({d}, 1)[:, None] + tl.zeros([M, N], tl.float32)", np.broadcast_to(p.max(axis=1, keepdims=True), p.shape))
            forms["trans-operand"] = ("tl.dot(tl.trans(tl.trans(a)), tl.trans(tl.trans(b)))", p)
        for name, (expr, r) in forms.items():
            rule = {"rtol": 0.01, "atol": 2e-2} if tz == "fp16" else tolerance(tx, tz)
            s.case(f"{name}-{tx}-{tz}-warps-{warps}", "dot", {"x": a, "y": b, "w": w, "z": Output(tz, r.astype("i4") if is_int(tz) else r, **rule), "M": m, "N": n, "K": k},
                   with_={"A": ROWS["row"], "B": COLUMNS["row"], "EXPR": expr, "T": TL[tz]}, warps=warps)
    s.kernel("chain", """
        @triton.jit
        def kernel(x, y, w, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
            m = tl.arange(0, M)
            n = tl.arange(0, N)
            k = tl.arange(0, K)
            a = tl.load(x + m[:, None] * K + k[None, :])
            b = tl.load(y + k[:, None] * N + n[None, :])
            c = tl.load(w + n[:, None] * N + n[None, :])
            d = tl.dot(a, b)
            tl.store(z + m[:, None] * N + n[None, :], tl.dot(d.to(c.dtype), c))
    """)
    for t, (m, n, k), warps in itertools.product(("fp16", "bf16", "fp32"), ((64, 64, 32), (16, 32, 64), (128, 32, 32)), (4,)):
        a, b, c = operand(t, (m, k), 1), operand(t, (k, n), 2), operand(t, (n, n), 3)
        d = decode(t, encode(t, wide(a.values) @ wide(b.values)))
        s.case(f"chain-{t}-{m}x{n}x{k}", "chain", {"x": a, "y": b, "w": c, "z": Output("fp32", wide(d) @ wide(c.values), rtol=0.01, atol=2e-2), "M": m, "N": n, "K": k}, warps=warps)
    # Integer accumulators; operands that are computed.
    a, b = listed("i8", [-128] * (16 * 32), (16, 32)), listed("i8", [-128] * (32 * 16), (32, 16))
    s.case("i8-extreme", "dot", {"x": a, "y": b, "w": Input("fp32", 1, {}), "z": Output("i32", np.full((16, 16), 32 * 128 * 128, "i4")), "M": 16, "N": 16, "K": 32},
           with_={"A": ROWS["row"], "B": COLUMNS["row"], "EXPR": "tl.dot(a, b)", "T": "tl.int32"})
    for name, expr, f in (("scaled", "tl.dot(a * 2, b)", lambda p: 2 * p), ("exp", "tl.dot((a - a).to(tl.float16) + 1, b)", None), ("cast", "tl.dot(a.to(tl.float32), b.to(tl.float32))", lambda p: p),
                          ("where", "tl.dot(tl.where(m[:, None] < 5, a, 0.0), b)", None)):
        a, b = operand("fp16", (32, 32), 4), operand("fp16", (32, 32), 5)
        p = wide(a.values) @ wide(b.values)
        r = f(p) if f else np.broadcast_to(wide(b.values).sum(axis=0), p.shape) if name == "exp" else np.where(np.arange(32)[:, None] < 5, p, 0)
        s.case(f"operand-{name}", "dot", {"x": a, "y": b, "w": Input("fp32", 1, {}), "z": Output("fp32", r, rtol=0.01, atol=1e-2), "M": 32, "N": 32, "K": 32},
               with_={"A": ROWS["row"], "B": COLUMNS["row"], "EXPR": expr, "T": "tl.float32"})
    # Refusals
    zeros = Output("fp32", np.zeros((16, 16)))
    for name, tx, ty, k, expr, message in (("types", "fp16", "bf16", 32, "tl.dot(a, b)", "dtype"), ("small-k-16", "fp16", "fp16", 8, "tl.dot(a, b)", "Input shapes should have M >= 1, N >= 1 and K >= 16"),
                                           ("small-k-8", "i8", "i8", 16, "tl.dot(a, b)", "Input shapes should have M >= 1, N >= 1 and K >= 32"), ("u8", "u8", "u8", 32, "tl.dot(a, b)", "only int8 supported"),
                                           ("precision", "fp32", "fp32", 32, "tl.dot(a, b, input_precision='fast')", "input_precision"), ("inner", "fp16", "fp16", 32, "tl.dot(a, tl.trans(b))", "dot"),
                                           ("acc-shape", "fp16", "fp16", 32, "tl.dot(a, b, tl.zeros([32, 32], tl.float32))", "acc"), ("bf16-out", "bf16", "bf16", 32, "tl.dot(a, b, out_dtype=tl.bfloat16)", "out_dtype"),
                                           ("imprecise", "fp8e5", "fp8e5", 64, "tl.dot(a, b, max_num_imprecise_acc=128)", "max_num_imprecise_acc (128) must be <= K (64)"),
                                           ("int16", "i16", "i16", 32, "tl.dot(a, b)", "dtype")):
        a = operand(tx, (16, k), 1) if tx not in ("u8", "i16") else ints(tx, (16, k), 1)
        b = operand(ty, (k, 16), 2) if ty not in ("u8", "i16") else ints(ty, (k, 16), 2)
        s.case(f"reject-{name}", "dot", {"x": a, "y": b, "w": Input("fp32", 1, {}), "z": zeros, "M": 16, "N": 16, "K": k},
               with_={"A": ROWS["row"], "B": COLUMNS["row"], "EXPR": expr, "T": "tl.float32"}, error=message)


def batched(s):
    s.kernel("batched", """
        @triton.jit
        def kernel(x, y, z, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
            g = tl.arange(0, B)[:, None, None]
            m = tl.arange(0, M)
            n = tl.arange(0, N)
            k = tl.arange(0, K)
            a = tl.load(x + g * M * K + m[None, :, None] * K + k[None, None, :])
            b = tl.load(y + g * K * N + k[None, :, None] * N + n[None, None, :])
            tl.store(z + g * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(a, b${ARGS}))
    """)
    for (g, m, n, k, warps), (tx, tz) in itertools.product(((1, 32, 32, 32, 4), (2, 32, 32, 32, 4), (4, 16, 64, 32, 4), (8, 16, 16, 32, 8), (2, 64, 32, 64, 8), (4, 32, 16, 32, 2), (2, 1, 32, 32, 4)),
                                                           (("fp16", "fp32"), ("fp16", "fp16"), ("fp32", "fp32"), ("i8", "i32"), ("bf16", "fp32"), ("fp64", "fp64"))):
        if tx == "fp64" and g != 2:
            continue
        a, b = operand(tx, (g, m, k), g), operand(tx, (g, k, n), g + 50)
        r = np.einsum("gmk,gkn->gmn", wide(a.values), wide(b.values))
        rule = {} if is_int(tz) else {"rtol": 0.01, "atol": 1e-2}
        s.case(f"{tx}-{tz}-{g}x{m}x{n}x{k}-warps-{warps}", "batched", {"x": a, "y": b, "z": Output(tz, r.astype("i4") if is_int(tz) else r, **rule), "B": g, "M": m, "N": n, "K": k},
               with_={"ARGS": ", out_dtype=tl.float16" if tz == "fp16" else ""}, warps=warps)
    s.kernel("many", """
        @triton.jit
        def kernel(x, y, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
            a = tl.load(x + tl.arange(0, 8 * M * K)).reshape(${SHAPE}, M, K)
            b = tl.load(y + tl.arange(0, 8 * K * N)).reshape(${SHAPE}, K, N)
            tl.store(z + tl.arange(0, 8 * M * N), tl.dot(a, b).reshape(8 * M * N))
    """)
    for shape in ("8", "2, 4", "2, 2, 2", "1, 4, 1, 2"):
        a, b = operand("fp16", (8, 16, 32), 1), operand("fp16", (8, 32, 16), 2)
        r = np.einsum("gmk,gkn->gmn", wide(a.values), wide(b.values))
        s.case(f"rank-{len(shape.split(',')) + 2}", "many", {"x": a, "y": b, "z": Output("fp32", r, rtol=0.01, atol=1e-2), "M": 16, "N": 16, "K": 32}, with_={"SHAPE": shape})


def e2m1(nibbles):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return np.where(nibbles & 8, -1.0, 1.0) * table[nibbles & 7]


def scaled_values(fmt, x):
    """Values of an operand's array in a format; e2m1 has two per byte, the low nibble first, along K (the last dimension here)."""
    if fmt == "e2m1":
        v = x.values.astype(np.int64)
        return np.stack([e2m1(v & 15), e2m1(v >> 4)], axis=-1).reshape(v.shape[0], -1)
    if fmt == "e4m3":
        return decode("fp8e4nv", x.bits).reshape(x.shape).astype("f8")
    if fmt == "e5m2":
        return decode("fp8e5", x.bits).reshape(x.shape).astype("f8")
    return x.values.astype("f8")


def scaled(s):
    s.kernel("scaled", """
        @triton.jit
        def kernel(x, sx, y, sy, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KA: tl.constexpr, KB: tl.constexpr):
            m = tl.arange(0, M)
            n = tl.arange(0, N)
            a = tl.load(x + m[:, None] * KA + tl.arange(0, KA)[None, :])
            b = tl.trans(tl.load(y + n[:, None] * KB + tl.arange(0, KB)[None, :]))
            g = tl.arange(0, K // 32)
            scale_a = ${SA}
            scale_b = ${SB}
            tl.store(z + m[:, None] * N + n[None, :], tl.dot_scaled(a, scale_a, "${FA}", b, scale_b, "${FB}"))
    """)

    def make(fmt, rows, k, seed):
        if fmt == "e2m1":
            return Input("u8", (rows, k // 2), {"fill": "bits", "seed": seed})
        if fmt in ("e4m3", "e5m2"):
            return Input("u8", (rows, k), {"fill": "patterns", "low": 20, "high": 60 if fmt == "e4m3" else 64, "seed": seed})
        return bell(fmt, (rows, k), seed, scale=0.5)

    formats = [("e2m1", "e2m1"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e2m1"), ("e2m1", "e5m2"), ("e4m3", "bf16"), ("e2m1", "bf16"), ("bf16", "e5m2"), ("fp16", "e2m1"), ("e4m3", "fp16"), ("fp16", "e5m2")]
    seed = 1
    for (fa, fb), (m, n, k, warps) in itertools.product(formats, ((32, 32, 64, 4), (64, 32, 128, 4), (128, 64, 64, 8), (32, 128, 128, 4))):
        if (m, n) == (32, 128) and fa not in ("e2m1", "e4m3"):
            continue
        seed += 1
        a, b = make(fa, m, k, seed), make(fb, n, k, seed + 300)
        va, vb = scaled_values(fa, a), scaled_values(fb, b)
        sx, sy = (ints("u8", (r, k // 32), seed + 600 + r, low=120, high=132) for r in (m, n))
        has_a, has_b = fa in ("e2m1", "e4m3", "e5m2"), fb in ("e2m1", "e4m3", "e5m2")
        if has_a:
            va = va * np.repeat(np.exp2(sx.values.astype("f8") - 127), 32, axis=1)
        if has_b:
            vb = vb * np.repeat(np.exp2(sy.values.astype("f8") - 127), 32, axis=1)
        r = va @ vb.T
        half = "fp16" in (fa, fb)
        s.case(f"{fa}-{fb}-{m}x{n}x{k}", "scaled", {"x": a, "sx": sx, "y": b, "sy": sy, "z": Output("fp32", r, rtol=0.01, atol=float(np.abs(r).max()) * (2e-3 if half else 1e-5)),
                                                  "M": m, "N": n, "K": k, "KA": a.shape[1], "KB": b.shape[1]},
               with_={"SA": "tl.load(sx + m[:, None] * (K // 32) + g[None, :])" if has_a else "None", "SB": "tl.load(sy + n[:, None] * (K // 32) + g[None, :])" if has_b else "None", "FA": fa, "FB": fb}, warps=warps)
    a, b = make("e4m3", 32, 64, 1), make("e4m3", 32, 64, 2)
    sx = Input("u8", (32, 2), {"fill": "ints", "low": 120, "high": 130, "seed": 5, "first": [255]})
    sy = ints("u8", (32, 2), 6, low=120, high=130)
    va = scaled_values("e4m3", a) * np.repeat(np.exp2(sx.values.astype("f8") - 127), 32, axis=1)
    vb = scaled_values("e4m3", b) * np.repeat(np.exp2(sy.values.astype("f8") - 127), 32, axis=1)
    r = va @ vb.T
    r[0, :] = np.nan
    s.case("scale-nan", "scaled", {"x": a, "sx": sx, "y": b, "sy": sy, "z": Output("fp32", r, rtol=0.01, atol=float(np.nanmax(np.abs(r))) * 1e-5), "M": 32, "N": 32, "K": 64, "KA": 64, "KB": 64},
           with_={"SA": "tl.load(sx + m[:, None] * (K // 32) + g[None, :])", "SB": "tl.load(sy + n[:, None] * (K // 32) + g[None, :])", "FA": "e4m3", "FB": "e4m3"})


def matmul(s):
    s.kernel("matmul", """
        @triton.jit
        def kernel(x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            pm = tl.program_id(0)
            pn = tl.program_id(1)
            m = pm * BM + tl.arange(0, BM)
            n = pn * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            acc = tl.zeros([BM, BN], ${ACC})
            for i in range(0, tl.cdiv(K, BK)):
                a = tl.load(x + m[:, None] * K + (i * BK + k)[None, :], mask=(m[:, None] < M) & ((i * BK + k)[None, :] < K), other=0)
                b = tl.load(y + (i * BK + k)[:, None] * N + n[None, :], mask=((i * BK + k)[:, None] < K) & (n[None, :] < N), other=0)
                acc = tl.dot(a, b, acc${OUT})
            tl.store(z + m[:, None] * N + n[None, :], acc.to(z.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    """)
    for (tx, tz), (bm, bn, bk, stages, warps) in itertools.product((("fp16", "fp16"), ("fp16", "fp32"), ("bf16", "bf16"), ("fp32", "fp32"), ("fp8e5", "fp32"), ("i8", "i32")),
                                                                   ((64, 64, 32, 3, 4), (32, 32, 32, 1, 4), (128, 64, 64, 4, 8), (16, 128, 32, 2, 4))):
        for m, n, k in ((128, 128, 128), (100, 72, 200)):
            a, b = operand(tx, (m, k), 1), operand(tx, (k, n), 2)
            r = wide(a.values) @ wide(b.values)
            rule = {} if is_int(tz) else {"rtol": 0.01, "atol": 0.03 if tz != "fp32" else 2e-3}
            if tz == "bf16":
                rule = {"rtol": 0.02, "atol": 0.05}
            s.case(f"{tx}-{tz}-{bm}x{bn}x{bk}-stages-{stages}-{m}x{n}x{k}", "matmul",
                   {"x": a, "y": b, "z": Output(tz, r.astype("i4") if is_int(tz) else r, **rule), "M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk},
                   with_={"ACC": "tl.int32" if tx == "i8" else "tl.float32", "OUT": ""}, grid=[-(-m // bm), -(-n // bn)], warps=warps, stages=stages)
    s.kernel("mixed", """
        @triton.jit
        def kernel(x, y, z, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            m = tl.arange(0, BM)
            n = tl.arange(0, BN)
            k = tl.arange(0, BK)
            acc = tl.zeros([BM, BN], tl.float32)
            for i in range(0, K, BK):
                a = tl.load(x + m[:, None] * K + (i + k)[None, :])
                b = tl.load(y + (i + k)[:, None] * BN + n[None, :])
                acc += tl.dot(a.to(${D}), b.to(${D}))
            tl.store(z + m[:, None] * BN + n[None, :], acc)
    """)
    for tx, ty in itertools.product(("i8", "fp8e5", "fp8e4nv", "fp16", "bf16", "fp32"), repeat=2):
        d = "fp32" if "fp32" in (tx, ty) else "fp16" if "bf16" not in (tx, ty) else "bf16"
        if tx == ty or (tx == "i8" and ty == "fp32"):
            continue
        a = ints("i8", (32, 96), 1, low=-8, high=8) if tx == "i8" else operand(tx, (32, 96), 1)
        b = ints("i8", (96, 64), 2, low=-8, high=8) if ty == "i8" else operand(ty, (96, 64), 2)
        va, vb = convert(a.values, tx, d).astype("f8"), convert(b.values, ty, d).astype("f8")
        s.case(f"cast-{tx}-{ty}-{d}", "mixed", {"x": a, "y": b, "z": Output("fp32", va @ vb, rtol=0.01, atol=0.05), "K": 96, "BM": 32, "BN": 64, "BK": 32}, with_={"D": TL[d]})


def sums(s):
    """Matrix products that are written as sums over blocks of three and four dimensions."""
    s.kernel("sum", """
        @triton.jit
        def kernel(x, y, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
            m = tl.arange(0, M)
            n = tl.arange(0, N)
            k = tl.arange(0, K)
            a = tl.load(x + m[:, None] * K + k[None, :])
            b = tl.load(y + k[:, None] * N + n[None, :])
            tl.store(z + m[:, None] * N + n[None, :], ${EXPR})
    """)
    forms = {"mkn": "tl.sum(a[:, :, None] * b[None, :, :], 1)", "mnk": "tl.sum(a[:, None, :] * tl.trans(b)[None, :, :], 2)",
             "kmn": "tl.sum(tl.trans(a)[:, :, None] * b[:, None, :], 0)", "nkm": "tl.trans(tl.sum(tl.trans(b)[:, :, None] * tl.trans(a)[None, :, :], 1))",
             "keep": "tl.sum(b[None, :, :] * a[:, :, None], 1, keep_dims=True).reshape(M, N)", "square": "tl.sum(a[:, :, None] * tl.trans(a)[None, :, :], 1)"}
    for (form, text), (m, k, n), warps in itertools.product(forms.items(), ((128, 32, 32), (16, 16, 16), (32, 64, 32), (8, 128, 16), (64, 4, 64)), (1, 4, 8)):
        if form == "square" and m != n:
            continue
        x, y = ints("fp32", (m, k), 1, low=-9, high=9), ints("fp32", (k, n), 2, low=-9, high=9)
        b = x.values.T if form == "square" else y.values
        s.case(f"sum-{form}-{m}x{k}x{n}-warps-{warps}", "sum", {"x": x, "y": y, "z": Output("fp32", x.values @ b), "M": m, "N": n, "K": k}, warps=warps, with_={"EXPR": text})
    s.kernel("batch", """
        @triton.jit
        def kernel(x, y, z, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
            i = tl.arange(0, B)[:, None, None, None]
            m = tl.arange(0, M)[None, :, None, None]
            k = tl.arange(0, K)[None, None, :, None]
            n = tl.arange(0, N)[None, None, None, :]
            a = tl.load(x + (i * M + m) * K + k)
            b = tl.load(y + (i * K + k) * N + n)
            tl.store(z + tl.arange(0, B * M * N), tl.sum(a * b, 2).reshape(B * M * N))
    """)
    for i, m, k, n in ((2, 32, 32, 32), (4, 16, 16, 16), (8, 16, 32, 16)):
        x, y = ints("fp32", (i, m, k), 1, low=-9, high=9), ints("fp32", (i, k, n), 2, low=-9, high=9)
        s.case(f"batch-{i}x{m}x{k}x{n}", "batch", {"x": x, "y": y, "z": Output("fp32", x.values @ y.values), "B": i, "M": m, "N": n, "K": k})


def build():
    for name, function in (("dot", plain), ("dot3d", batched), ("scaled", scaled), ("matmul", matmul), ("dotsum", sums)):
        s = Suite(name)
        function(s)
        yield s
