"""Creation and re-indexing: arange, full, broadcast, reshape, trans, join, split, cat, gather, flip and others."""
import itertools
import math

import numpy as np

from formats import ALL, FLOATS, NUMPY, TL, encode, is_float, is_int
from suite import Input, Output, Suite, bell, ints, numbers


def creation(s):
    s.kernel("store", """
        @triton.jit
        def kernel(z, N: tl.constexpr):
            r = ${EXPR}
            tl.static_assert(r.dtype == ${T})
            tl.store(z + tl.arange(0, N), r.reshape(N))
    """)
    for start, end in ((0, 128), (7, 39), (-64, 0), (-3, 5), (1000, 1001), (2**31 - 17, 2**31 - 1), (0, 4096)):
        if (end - start) & (end - start - 1):
            end = start + 16
        s.case(f"arange-{start}-{end}", "store", {"z": Output("i32", np.arange(start, end, dtype="i4")), "N": end - start}, with_={"EXPR": f"tl.arange({start}, {end})", "T": "tl.int32"})
    for start, end, message in ((0, 100, "power of 2"), (5, 5, "arange"), (8, 0, "arange"), (2**31 - 8, 2**31 + 8, "arange")):
        s.case(f"arange-reject-{start}-{end}", "store", {"z": Output("i32", np.zeros(1, "i4")), "N": 1}, with_={"EXPR": f"tl.arange({start}, {end})", "T": "tl.int32"}, error=message)
    for t in ["i1"] + ALL:
        value = 1 if t == "i1" else -3 if t.startswith("i") else 200 if is_int(t) else -1.25
        for shape in ((128,), (8, 16), (2, 4, 8)):
            n = math.prod(shape)
            r = np.full(n, value, "?" if t == "i1" else "f8" if is_float(t) else NUMPY[t][1])
            s.case(f"full-{t}-{len(shape)}d", "store", {"z": Output(t, r), "N": n}, with_={"EXPR": f"tl.full({list(shape)}, {value}, {TL[t]})", "T": TL[t]})
        s.case(f"zeros-{t}", "store", {"z": Output(t, np.zeros(64, r.dtype)), "N": 64}, with_={"EXPR": f"tl.zeros([4, 16], dtype={TL[t]})", "T": TL[t]})
    s.case("zeros-like", "store", {"z": Output("i32", np.zeros(32, "i4")), "N": 32}, with_={"EXPR": "tl.zeros_like(tl.arange(0, 32).reshape(2, 16))", "T": "tl.int32"})
    s.case("full-scalar", "store", {"z": Output("i32", np.full(32, 6, "i4")), "N": 32}, with_={"EXPR": "tl.full([N], tl.program_id(0) + 6, tl.int32)", "T": "tl.int32"})
    s.case("full-empty-shape", "store", {"z": Output("fp32", np.full(1, 2.5)), "N": 1}, with_={"EXPR": "tl.full((), 2.5, tl.float32) + tl.zeros([1], tl.float32)", "T": "tl.float32"})
    for name, expr, message in (("shape-3", "tl.full([3], 0, tl.int32)", "power of 2"), ("shape-0", "tl.zeros([0], tl.int32)", "power of 2"), ("large", "tl.zeros([2048, 1024], tl.int32)", "1048576"),
                                ("second", "tl.zeros([4, 7], tl.int32)", "Shape element 1 must be a power of 2")):
        s.case(f"full-reject-{name}", "store", {"z": Output("i32", np.zeros(1, "i4")), "N": 1}, with_={"EXPR": expr, "T": "tl.int32"}, error=message)


def reindexing(s):
    """One template: a block of some shape in, some expression of it out, row-major."""
    s.kernel("reindex", """
        @triton.jit
        def kernel(x, z, M: tl.constexpr, N: tl.constexpr):
            a = tl.load(x + tl.arange(0, M)).reshape(${SHAPE})
            r = ${EXPR}
            tl.static_assert(r.numel == N)
            tl.store(z + tl.arange(0, N), r.reshape(N))
    """)

    def case(name, t, shape, expr, function, warps=4, error=None):
        x = numbers(t, shape, 17)
        r = function(x.values) if function else np.zeros(1, x.values.dtype)
        text = ", ".join(map(str, shape))
        s.case(name, "reindex", {"x": x, "z": Output(t, r), "M": x.n, "N": int(np.asarray(r).size)}, with_={"SHAPE": text, "EXPR": expr}, warps=warps,
               **({"error": error} if error else {}))

    for perm in itertools.permutations(range(4)):
        for t, shape in (("i32", (2, 2, 8, 64)), ("i8", (4, 4, 4, 16))):
            case(f"trans-{''.join(map(str, perm))}-{t}", t, shape, f"tl.trans(a, {perm})", lambda v: v.transpose(perm))
    for perm in itertools.permutations(range(3)):
        case(f"permute-{''.join(map(str, perm))}", "fp16", (4, 8, 32), f"tl.permute(a, {perm})", lambda v: v.transpose(perm), warps=2)
        case(f"permute-member-{''.join(map(str, perm))}", "fp32", (8, 2, 16), f"a.permute{perm}", lambda v: v.transpose(perm), warps=8)
    for t in ("i8", "i16", "i32", "i64", "fp16", "bf16", "fp32", "fp64", "u8"):
        case(f"transpose-{t}", t, (16, 64), "tl.trans(a)", lambda v: v.T)
        case(f"attribute-T-{t}", t, (128, 8), "a.T", lambda v: v.T, warps=2)
    for shape, target in (((8, 16), (128,)), ((128,), (4, 2, 16)), ((32, 4), (4, 32)), ((2, 2, 2, 2, 2), (8, 4)), ((1, 64), (64, 1)), ((256,), (2, 1, 128)), ((64, 64), (16, 256))):
        name = "x".join(map(str, shape)) + "-" + "x".join(map(str, target))
        text = ", ".join(map(str, target))
        case(f"reshape-{name}", "i32", shape, f"tl.reshape(a, ({text}{',' if len(target) == 1 else ''}))", lambda v: v)
        case(f"reshape-member-{name}", "fp16", shape, f"a.reshape({text})", lambda v: v, warps=2)
        case(f"trans-reshape-{name}", "i32", shape, f"a.reshape({text}).reshape({', '.join(map(str, shape))})", lambda v: v)
    case("ravel", "i32", (8, 16), "tl.ravel(a)", lambda v: v)
    case("ravel-member", "i32", (2, 4, 16), "a.ravel()", lambda v: v)
    case("reorder", "i32", (8, 16), "tl.sort(tl.reshape(a, (128,), can_reorder=True))", lambda v: np.sort(v.ravel()))
    case("view", "i32", (8, 16), "tl.sort(a.view(128))", lambda v: np.sort(v.ravel()))
    case("reshape-reject", "i32", (8, 16), "tl.reshape(a, (64,))", None, error="reshape() cannot change total number of elements in tensor")
    # Dimensions of size 1
    for name, expr, f in (("none-first", "a[None, :]", lambda v: v), ("none-last", "a[:, None]", lambda v: v), ("expand-0", "tl.expand_dims(a, 0)", lambda v: v), ("expand-minus", "tl.expand_dims(a, -1)", lambda v: v),
                          ("expand-two", "tl.expand_dims(a, (0, 2))", lambda v: v), ("expand-member", "a.expand_dims(1)", lambda v: v), ("unsqueeze", "tl.unsqueeze(a, 1)", lambda v: v),
                          ("squeeze", "tl.squeeze(a[None, :], 0)", lambda v: v), ("broadcast", "a[None, :] + tl.zeros([4, 1], tl.int32)", lambda v: np.tile(v, 4)),
                          ("broadcast-rows", "a[:, None] + tl.zeros([1, 4], tl.int32)", lambda v: np.repeat(v, 4)), ("broadcast-to", "tl.broadcast_to(a[None, :], (4, 64))", lambda v: np.tile(v, 4)),
                          ("broadcast-to-member", "a[:, None].broadcast_to(64, 4)", lambda v: np.repeat(v, 4)), ("broadcast-ranks", "a + tl.zeros([4, 64], tl.int32)", lambda v: np.tile(v, 4)),
                          ("broadcast-pair", "tl.broadcast(a[:, None], tl.zeros([1, 2], tl.int32))[0]", lambda v: np.repeat(v, 2)), ("slice", "a[:]", lambda v: v),
                          ("three", "a[None, :, None] + tl.zeros([2, 1, 2], tl.int32)", lambda v: np.tile(np.repeat(v, 2), 2)), ("outer", "a[:, None] * 3 - a[None, :]", lambda v: v[:, None] * 3 - v[None, :]),
                          ("scalar", "a + tl.load(x)", lambda v: v + v[0])):
        case(f"dims-{name}", "i32", (64,), expr, f)
    for name, shape, expr, message in (("expand-duplicate", (64,), "tl.expand_dims(a, (0, 0))", "duplicate"), ("expand-range", (64,), "tl.expand_dims(a, -3)", "invalid axis -3"),
                                       ("index", (64,), "a[0]", "unsupported tensor index"), ("part", (64,), "a[1:3]", "unsupported tensor index"), ("incompatible", (64,), "a + tl.arange(0, 32)", "incompatible dimensions at index"),
                                       ("broadcast-to", (64,), "tl.broadcast_to(a, (4, 64))", "rank"), ("trans-1d", (64,), "tl.trans(a)", "2"), ("trans-perm", (8, 8), "tl.trans(a, (0, 0))", "permutation"),
                                       ("squeeze", (8, 8), "tl.squeeze(a, 0)", "1")):
        case(f"reject-{name}", "i32", shape, expr, None, error=message)
    # join, split, interleave, cat
    for t in ("i8", "i32", "fp16", "fp32", "i64", "i1"):
        if t == "i1":
            continue
        for shape in ((64,), (8, 16), (4, 2, 8)):
            d = f"{len(shape)}d"
            case(f"join-{t}-{d}", t, shape, "tl.join(a, a + a)", lambda v: np.stack([v, v + v], axis=-1))
            case(f"interleave-{t}-{d}", t, shape, "tl.interleave(a, a + a)", lambda v: np.stack([v, v + v], axis=-1))
        for shape in ((64, 2), (8, 16, 2)):
            case(f"split-{t}-{len(shape)}d", t, shape, "tl.split(a)[0] - tl.split(a)[1]", lambda v: v[..., 0] - v[..., 1])
    case("split-member", "i32", (32, 2), "a.split()[1]", lambda v: v[:, 1])
    case("split-two", "i32", (2,), "tl.split(a)[0] * 10 + tl.split(a)[1] + tl.zeros([1], tl.int32)", lambda v: v[:1] * np.int32(10) + v[1])
    case("join-scalars", "i32", (2,), "tl.join(tl.load(x + 1), tl.load(x))", lambda v: v[::-1])
    case("join-scalar-block", "i32", (16,), "tl.join(a, 5)", lambda v: np.stack([v, np.full_like(v, 5)], axis=-1))
    case("interleave-scalars", "i32", (2,), "tl.interleave(tl.load(x + 1), tl.load(x))", lambda v: v[::-1])
    case("join-join", "i32", (16,), "tl.join(tl.join(a, a + 1), tl.join(a + 2, a + 3))", lambda v: np.stack([np.stack([v, v + 1], -1), np.stack([v + 2, v + 3], -1)], -1))
    case("split-reject", "i32", (16, 4), "tl.split(a)[0]", None, error="2")
    for t in ("i8", "i32", "fp16", "fp32", "bf16", "i64", "u16"):
        for warps in (1, 4, 8):
            case(f"cat-{t}-warps-{warps}", t, (128,), "tl.cat(a, a + a)", lambda v: np.concatenate([v, encode_sum(t, v)]), warps=warps)
    for shape, dim in (((4, 8), 0), ((4, 8), 1), ((2, 4, 8), 1), ((2, 4, 8), 2), ((4, 8), -1), ((16, 1), 1)):
        case(f"cat-{'x'.join(map(str, shape))}-{dim}", "i32", shape, f"tl.cat(a, a + 1, dim={dim})", lambda v: np.concatenate([v, v + 1], axis=dim))
    case("cat-reorder", "i32", (128,), "tl.sort(tl.cat(a, a + 1, can_reorder=True))", lambda v: np.sort(np.concatenate([v, v + 1])))
    # flip
    for t in ("i32", "fp16", "fp32", "bf16", "i8"):
        for shape in ((64,), (8, 16), (2, 8, 16), (1, 64, 2)):
            for dim in range(len(shape)):
                if t in ("bf16", "i8") and dim:
                    continue
                case(f"flip-{t}-{'x'.join(map(str, shape))}-{dim}", t, shape, f"tl.flip(a, {dim})", lambda v: np.flip(v, dim))
    case("flip-negative", "i32", (8, 16), "tl.flip(a, -1)", lambda v: np.flip(v, -1))
    case("flip-default", "i32", (8, 16), "a.flip()", lambda v: np.flip(v, -1))
    x = Input("fp32", 16, {"values": ["inf", "nan", "-inf", "-0.0", 1, 2, 3, 4]})
    s.case("flip-special", "reindex", {"x": x, "z": Output("fp32", x.values[::-1]), "M": 16, "N": 16}, with_={"SHAPE": "16", "EXPR": "tl.flip(a, 0)"})
    # swizzle2d
    s.kernel("swizzle", """
        @triton.jit
        def kernel(z, I: tl.constexpr, J: tl.constexpr, G: tl.constexpr):
            for i in range(I):
                for j in range(J):
                    a, b = tl.swizzle2d(i, j, I, J, G)
                    tl.store(z + a * J + b, i * J + j)
    """)
    for size_i, size_j, g in ((5, 7, 3), (8, 4, 2), (4, 4, 4), (7, 3, 1)):
        r = np.zeros((size_i, size_j), "i4")
        for i, j in itertools.product(range(size_i), range(size_j)):
            linear = i * size_j + j
            group = linear // (g * size_j)
            off = group * g
            rows = min(size_i - off, g)
            inside = linear % (g * size_j)
            r[off + inside % rows, inside // rows] = linear
        s.case(f"swizzle-{size_i}-{size_j}-{g}", "swizzle", {"z": Output("i32", r), "I": size_i, "J": size_j, "G": g})


def encode_sum(t, v):
    from formats import decode
    return decode(t, encode(t, v + v))


def gather(s):
    s.kernel("gather", """
        @triton.jit
        def kernel(x, index, z, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
            a = tl.load(x + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :])
            at = tl.arange(0, C)[:, None] * D + tl.arange(0, D)[None, :]
            r = tl.gather(a, tl.load(index + at), ${AXIS})
            tl.store(z + at, r)
    """)
    for t in ("fp32", "fp16", "i8", "i64", "bf16"):
        for (a, b), (c, d), axis in (((128, 64), (256, 64), 0), ((128, 64), (128, 128), 1), ((32, 4), (8, 4), 0), ((4, 32), (4, 2), 1), ((16, 16), (16, 16), -1)):
            if t != "fp32" and a == 128:
                continue
            for k in ("i32", "i64", "i8") if (t, a) == ("fp32", 32) else ("i32",):
                x = numbers(t, (a, b), a)
                index = ints(k, (c, d), 3, low=0, high=(a if axis == 0 else b) - 1)
                r = np.take_along_axis(x.values, index.values.astype("i8"), axis)
                s.case(f"{t}-{a}x{b}-{c}x{d}-{axis}-{k}", "gather", {"x": x, "index": index, "z": Output(t, r), "A": a, "B": b, "C": c, "D": d}, with_={"AXIS": axis})
    s.kernel("gather-1d", """
        @triton.jit
        def kernel(x, index, z, A: tl.constexpr, C: tl.constexpr):
            r = tl.load(x + tl.arange(0, A)).gather(tl.load(index + tl.arange(0, C)), 0)
            tl.store(z + tl.arange(0, C), r)
    """)
    for a, c, warps in ((32, 32, 1), (128, 64, 4), (64, 256, 4), (512, 512, 8), (4, 128, 2)):
        x, index = numbers("fp32", a, 1), ints("i32", c, 2, low=0, high=a - 1)
        s.case(f"1d-{a}-{c}", "gather-1d", {"x": x, "index": index, "z": Output("fp32", x.values[index.values]), "A": a, "C": c}, warps=warps)


def histogram(s):
    s.kernel("histogram", """
        @triton.jit
        def kernel(x, z, M: tl.constexpr, N: tl.constexpr):
            i = tl.arange(0, M)
            h = tl.histogram(tl.load(x + i), N${MASK})
            tl.static_assert(h.dtype == tl.int32)
            tl.store(z + tl.arange(0, N), h)
    """)
    for m, n, warps in ((2048, 2, 4), (1024, 8, 4), (1024, 128, 8), (256, 512, 4), (32, 512, 1), (8, 512, 2), (8, 2, 4), (4096, 32, 4)):
        x = ints("i32", m, m + n, low=0, high=n - 1)
        s.case(f"{m}-{n}", "histogram", {"x": x, "z": Output("i32", np.bincount(x.values, minlength=n).astype("i4")), "M": m, "N": n}, with_={"MASK": ""}, warps=warps)
        s.case(f"mask-{m}-{n}", "histogram", {"x": x, "z": Output("i32", np.bincount(x.values[np.arange(m) % 3 != 0], minlength=n).astype("i4")), "M": m, "N": n},
               with_={"MASK": ", mask=i % 3 != 0"}, warps=warps)
    x = ints("i32", 256, 5, low=-40, high=100)
    inside = x.values[(x.values >= 0) & (x.values < 32)]
    s.case("out-of-range", "histogram", {"x": x, "z": Output("i32", np.bincount(inside, minlength=32).astype("i4")), "M": 256, "N": 32}, with_={"MASK": ""})
    for t in ("i64", "u8", "i16", "u32"):
        x = ints(t, 256, 6, low=0, high=63)
        s.case(f"type-{t}", "histogram", {"x": x, "z": Output("i32", np.bincount(x.values.astype("i8"), minlength=64).astype("i4")), "M": 256, "N": 64}, with_={"MASK": ""})


def build():
    for name, functions in (("shape", (creation, reindexing)), ("gather", (gather,)), ("histogram", (histogram,))):
        s = Suite(name)
        for function in functions:
            function(s)
        yield s
