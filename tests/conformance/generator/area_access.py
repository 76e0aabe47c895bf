"""Block pointers and tensor descriptors."""
import itertools
import math

import numpy as np

from formats import NUMPY, TL, decode, encode, is_float, is_int, size_of
from suite import Input, Output, Suite, bell, ints, numbers


def boxed(v, offsets, block, fill=0):
    """The block at the offsets of an array, with `fill` outside."""
    r = np.full(block, fill, v.dtype)
    source, target = [], []
    for n, o, b in zip(v.shape, offsets, block):
        low, high = max(o, 0), min(o + b, n)
        if low >= high:
            return r
        source.append(slice(low, high))
        target.append(slice(low - o, high - o))
    r[tuple(target)] = v[tuple(source)]
    return r


def block_pointers(s):
    s.kernel("copy", """
        @triton.jit
        def kernel(x, z, n, N: tl.constexpr, B: tl.constexpr):
            p = tl.program_id(0)
            a = tl.make_block_ptr(base=x, shape=(n // 2 if ${HALF} else n, ), strides=(1, ), offsets=(p * B, ), block_shape=(B, ), order=(0, ))
            b = tl.make_block_ptr(base=z, shape=(n, ), strides=(1, ), offsets=(p * B, ), block_shape=(B, ), order=(0, ))
            v = tl.load(a, boundary_check=(0, )${PADDING})
            tl.store(b, v, boundary_check=(0, ))
    """)
    for t in ("i1", "i8", "i16", "i32", "i64", "fp16", "bf16", "fp32", "fp64"):
        for n, padding in itertools.product((64, 100, 128), ("", "zero", "nan")):
            if padding == "nan" and is_int(t):
                if n == 64:
                    s.case(f"copy-{t}-nan-reject", "copy", {"x": numbers("i8" if t == "i1" else t, n, 1), "z": Input("i8" if t == "i1" else t, n, {}), "n": n, "N": n, "B": 32},
                           with_={"HALF": True, "PADDING": ", padding_option='nan'"}, grid=[-(-n // 32)], error="nan")
                continue
            x = ints("i1", n, n) if t == "i1" else numbers(t, n, n)
            bits = encode(t, x.values)
            rest = encode(t, np.full(n, np.nan if padding == "nan" else 0, "f8" if is_float(t) else "i1"))
            if padding == "":
                half = False
                r = bits
            else:
                half = True
                r = np.where(np.arange(n) < n // 2, bits, rest)
            s.case(f"copy-{t}-{n}-{padding or 'none'}", "copy", {"x": x, "z": Output(t, decode(t, r)), "n": n, "N": n, "B": 32},
                   with_={"HALF": half, "PADDING": f", padding_option='{padding}'" if padding else ""}, grid=[-(-n // 32)])
    s.kernel("copy2d", """
        @triton.jit
        def kernel(x, z, M, N, sm, sn, oi, oj, BM: tl.constexpr, BN: tl.constexpr):
            a = tl.make_block_ptr(x, (M, N), (sm, sn), (oi, oj), (BM, BN), ${ORDER})
            v = tl.load(a, boundary_check=${CHECK}, padding_option="${PADDING}")
            b = tl.make_block_ptr(z, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))
            tl.store(b, v)
    """)
    for k, (m, n, oi, oj, bm, bn, check, order) in enumerate(((32, 32, 0, 0, 16, 32, (), "row"), (20, 30, 8, 16, 16, 16, (0, 1), "row"), (20, 32, 16, 0, 16, 32, (0,), "row"), (32, 20, 0, 16, 8, 16, (1,), "column"),
                                                             (20, 30, -4, -8, 16, 16, (0, 1), "row"), (5, 5, 0, 0, 8, 8, (0, 1), "column"), (64, 64, 32, 32, 32, 32, (0, 1), "row"), (3, 100, 2, 90, 2, 32, (0, 1), "row"))):
        for t in ("fp16", "fp32", "i32"):
            for padding in ("zero", "nan") if is_float(t) else ("zero",):
                x = numbers(t, m * n, 5 + k)
                v = x.values.reshape(m, n) if order == "row" else x.values.reshape(n, m).T
                sm, sn = (n, 1) if order == "row" else (1, m)
                r = boxed(v, (oi, oj), (bm, bn), np.nan if padding == "nan" else 0)
                s.case(f"2d-{k}-{t}-{padding}", "copy2d", {"x": x, "z": Output(t, r), "M": m, "N": n, "sm": sm, "sn": sn, "oi": oi, "oj": oj, "BM": bm, "BN": bn},
                       with_={"ORDER": "(1, 0)" if order == "row" else "(0, 1)", "CHECK": str(check), "PADDING": padding})
    s.kernel("advance", """
        @triton.jit
        def kernel(x, z, M, N, BM: tl.constexpr, BN: tl.constexpr):
            a = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
            acc = tl.zeros([BM, BN], tl.float32)
            for k in range(0, N, BN):
                acc += tl.load(a, boundary_check=(0, 1), padding_option="zero")
                a = ${ADVANCE}
            tl.store(z + tl.arange(0, BM), tl.sum(acc, 1))
    """)
    for m, n, bn in ((16, 64, 16), (10, 50, 16), (16, 7, 8)):
        x = Input("fp32", (m, n), {"fill": "ints", "low": -9, "high": 9, "seed": n})
        r = np.zeros(16)
        r[:m] = x.values.sum(axis=1)
        for name, advance in (("function", "tl.advance(a, (0, BN))"), ("member", "a.advance((0, BN))"), ("list", "tl.advance(a, [0, BN])")):
            s.case(f"advance-{name}-{m}x{n}", "advance", {"x": x, "z": Output("fp32", r), "M": m, "N": n, "BM": 16, "BN": bn}, with_={"ADVANCE": advance})
    s.kernel("matmul", """
        @triton.jit
        def kernel(x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            i = tl.program_id(0)
            j = tl.program_id(1)
            a = tl.make_block_ptr(x, (M, K), (K, 1), (i * BM, 0), (BM, BK), (1, 0))
            b = tl.make_block_ptr(y, (K, N), (N, 1), (0, j * BN), (BK, BN), (1, 0))
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                acc += tl.dot(tl.load(a, boundary_check=(0, 1), padding_option="zero"), tl.load(b, boundary_check=(0, 1), padding_option="zero"))
                a = tl.advance(a, (0, BK))
                b = tl.advance(b, (BK, 0))
            c = tl.make_block_ptr(z, (M, N), (N, 1), (i * BM, j * BN), (BM, BN), (1, 0))
            tl.store(c, acc.to(z.dtype.element_ty), boundary_check=(0, 1))
    """)
    for t, (m, n, k), (bm, bn, bk), warps in itertools.product(("fp16", "fp32", "bf16"), ((64, 64, 64), (50, 72, 100)), ((32, 32, 32), (64, 64, 32)), (4, 8)):
        if t == "bf16" and warps == 8:
            continue
        x, y = bell(t, (m, k), 1, scale=0.25), bell(t, (k, n), 2, scale=0.25)
        r = x.values.astype("f8") @ y.values.astype("f8")
        s.case(f"matmul-{t}-{m}x{n}x{k}-{bm}x{bn}-warps-{warps}", "matmul", {"x": x, "y": y, "z": Output(t, r, rtol=0.01, atol=0.05 if t == "bf16" else 1e-2), "M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk},
               grid=[-(-m // bm), -(-n // bn)], warps=warps)
    s.kernel("rank3", """
        @triton.jit
        def kernel(x, z, L, M, N):
            a = tl.make_block_ptr(x, (L, M, N), (M * N, N, 1), (1, 2, 0), (2, 4, 16), (2, 1, 0))
            tl.store(z + tl.arange(0, 128), tl.load(a, boundary_check=(0, 1, 2), padding_option="zero").reshape(128))
    """)
    x = numbers("fp32", (2, 5, 11), 3)
    s.case("rank-3", "rank3", {"x": x, "z": Output("fp32", boxed(x.values, (1, 2, 0), (2, 4, 16))), "L": 2, "M": 5, "N": 11})
    s.kernel("refuse", """
        @triton.jit
        def kernel(x, z):
            a = tl.make_block_ptr(x, (16, ), (1, ), (0, ), (16, ), (0, ))
            ${STATEMENT}
    """)
    for name, statement, message in (("mask", "v = tl.load(a, mask=tl.arange(0, 16) < 4)", "mask"), ("other", "v = tl.load(a, other=0.0)", "other"), ("unused", "tl.advance(a, (1, ))", "The result of"),
                                     ("dimension", "v = tl.load(a, boundary_check=(1, ))", "boundary_check"), ("padding", "v = tl.load(a, boundary_check=(0, ), padding_option='one')", "padding_option"), ("rank", "a = tl.advance(a, (1, 2))", "advance")):
        s.case(f"reject-{name}", "refuse", {"x": numbers("fp32", 16, 1), "z": Input("fp32", 16, {})}, with_={"STATEMENT": statement}, error=message)
    s.case("element-type", "refuse", {"x": numbers("fp32", 16, 1), "z": Output("fp32", numbers("fp32", 16, 1).values)}, with_={"STATEMENT": "tl.static_assert(a.dtype.element_ty == tl.float32)\n    tl.store(z + tl.arange(0, 16), tl.load(a))"})


KINDS = ["u8", "i8", "u16", "i16", "u32", "i32", "fp16", "bf16", "fp32"]


def descriptors(s):
    s.kernel("load", """
        @triton.jit
        def kernel(x, z, M, N, oi, oj, BM: tl.constexpr, BN: tl.constexpr):
            d = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN]${PADDING})
            v = ${LOAD}
            tl.store(z + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], v)
    """)
    s.kernel("store", """
        @triton.jit
        def kernel(x, z, M, N, oi, oj, BM: tl.constexpr, BN: tl.constexpr):
            d = tl.make_tensor_descriptor(z, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
            v = tl.load(x + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
            ${STORE}
    """)
    blocks = [(2, 16), (8, 16), (8, 32), (8, 128), (32, 64), (1, 32)]
    for k, (t, (bm, bn)) in enumerate(itertools.product(KINDS, blocks)):
        if bn * size_of(t) < 16:
            continue
        m, n = bm * 3 - 1, bn * 2 + 16 // size_of(t)
        for oi, oj in ((0, 0), (bm, bn), (2 * bm, 2 * bn), (m, 0)):
            if (k + oi + oj) % 3 and (oi, oj) != (2 * bm, 2 * bn):
                continue
            x = numbers(t, (m, n), k)
            s.case(f"load-{t}-{bm}x{bn}-{oi}-{oj}", "load", {"x": x, "z": Output(t, boxed(x.values, (oi, oj), (bm, bn))), "M": m, "N": n, "oi": oi, "oj": oj, "BM": bm, "BN": bn},
                   with_={"PADDING": "", "LOAD": "d.load([oi, oj])"}, warps=(4, 8, 1)[k % 3])
            v = numbers(t, (bm, bn), k + 50)
            r = np.zeros((m, n), v.values.dtype)
            part = r[oi:oi + bm, oj:oj + bn]
            part[...] = v.values[:part.shape[0], :part.shape[1]]
            s.case(f"store-{t}-{bm}x{bn}-{oi}-{oj}", "store", {"x": v, "z": Output(t, r), "M": m, "N": n, "oi": oi, "oj": oj, "BM": bm, "BN": bn}, with_={"STORE": "d.store([oi, oj], v)"}, warps=(4, 8, 1)[k % 3])
    for t in ("fp16", "fp32", "bf16"):
        x = numbers(t, (20, 40), 9)
        s.case(f"nan-{t}", "load", {"x": x, "z": Output(t, boxed(x.values, (16, 32), (8, 16), np.nan)), "M": 20, "N": 40, "oi": 16, "oj": 32, "BM": 8, "BN": 16}, with_={"PADDING": ", padding_option='nan'", "LOAD": "d.load([oi, oj])"})
        s.case(f"negative-{t}", "load", {"x": x, "z": Output(t, boxed(x.values, (-3, -8), (8, 16))), "M": 20, "N": 40, "oi": -3, "oj": -8, "BM": 8, "BN": 16}, with_={"PADDING": "", "LOAD": "d.load([oi, oj])"})
        s.case(f"functions-{t}", "load", {"x": x, "z": Output(t, boxed(x.values, (4, 16), (8, 16))), "M": 20, "N": 40, "oi": 4, "oj": 16, "BM": 8, "BN": 16}, with_={"PADDING": "", "LOAD": "tl.load_tensor_descriptor(d, [oi, oj])"})
    v = numbers("fp32", (8, 16), 3)
    for t in ("fp16", "bf16"):
        r = np.zeros((16, 32))
        r[:8, 16:] = v.values
        s.case(f"store-downcast-{t}", "store", {"x": v, "z": Output(t, r), "M": 16, "N": 32, "oi": 0, "oj": 16, "BM": 8, "BN": 16}, with_={"STORE": "tl.store_tensor_descriptor(d, [oi, oj], v)"})
    for name, statement, message in (("last-stride", "d = tl.make_tensor_descriptor(z, shape=[M, N], strides=[N, 2], block_shape=[BM, BN])", "Tensor descriptor last dim must be 1"), ("int64", "d.store([oi.to(tl.int64), oj], v)", "32 bit"),
                                     ("rank", "d.store([oi], v)", "offset"), ("shape", "d.store([oi, oj], tl.zeros([4, 4], tl.float32))", "shape")):
        s.case(f"reject-{name}", "store", {"x": v, "z": Input("fp32", 512, {}), "M": 16, "N": 32, "oi": 0, "oj": 16, "BM": 8, "BN": 16}, with_={"STORE": statement}, error=message)
    # Other ranks
    for rank, t in itertools.product((1, 3, 4, 5), ("fp16", "i32", "fp32", "i8")):
        block = (2, 2, 2, 2)[:rank - 1] + (16,)
        shape = (3, 4, 3, 5)[:rank - 1] + (32,) if rank > 1 else (100 if t in ("fp32", "i32") else 96,)
        strides = [math.prod(shape[d + 1:]) for d in range(rank)]
        offsets = (1, 3, 2, 4)[:rank - 1] + (16,) if rank > 1 else (90,)
        key = f"rank-{rank}-{t}"
        s.kernel(key, f"""
            @triton.jit
            def kernel(x, y, z, w):
                d = tl.make_tensor_descriptor(x, shape={list(shape)}, strides={strides}, block_shape={list(block)})
                e = tl.make_tensor_descriptor(w, shape={list(shape)}, strides={strides}, block_shape={list(block)})
                i = tl.arange(0, {math.prod(block)})
                v = d.load({list(offsets)})
                tl.store(z + i, v.reshape({math.prod(block)}))
                e.store({list(offsets)}, tl.load(y + i).reshape({', '.join(map(str, block))}))
        """)
        x, y = numbers(t, shape, rank), numbers(t, block, rank + 9)
        w = np.zeros(shape, x.values.dtype)
        window = tuple(slice(o, o + b) for o, b in zip(offsets, block))
        clipped = w[window]
        clipped[...] = y.values[tuple(slice(0, k) for k in clipped.shape)]
        s.case(key, key, {"x": x, "y": y, "z": Output(t, boxed(x.values, offsets, block)), "w": Output(t, w)})
    # Atomic updates
    s.kernel("atomic", """
        @triton.jit
        def kernel(x, z, M, N, oi, oj, BM: tl.constexpr, BN: tl.constexpr):
            d = tl.make_tensor_descriptor(z, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
            d.atomic_${OP}([oi, oj], tl.load(x + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]))
    """)
    allowed = {"add": ("u32", "i32", "u64", "fp32", "fp16", "bf16"), "min": ("u32", "i32", "u64", "i64", "fp16", "bf16"), "max": ("u32", "i32", "u64", "i64", "fp16", "bf16"),
               "and": ("u32", "i32", "u64", "i64"), "or": ("u32", "i32", "u64", "i64"), "xor": ("u32", "i32", "u64", "i64")}
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for op, kinds in allowed.items():
        for t in kinds + (("i8", "fp64") if op == "add" else ("fp32",) if op != "min" else ()):
            x, z = numbers(t, (8, 16), 4), numbers(t, (12, 24), 5)
            if t not in kinds:
                s.case(f"atomic-{op}-{t}-reject", "atomic", {"x": x, "z": z, "M": 12, "N": 24, "oi": 8, "oj": 8, "BM": 8, "BN": 16}, with_={"OP": op}, error="Unsupported dtype")
                continue
            r = z.values.copy()
            with np.errstate(all="ignore"):
                r[8:12, 8:24] = decode(t, encode(t, ufunc[op](r[8:12, 8:24], x.values[:4])))
            s.case(f"atomic-{op}-{t}", "atomic", {"x": x, "z": Output(t, r, initial=z), "M": 12, "N": 24, "oi": 8, "oj": 8, "BM": 8, "BN": 16}, with_={"OP": op})
    # From the host, in functions, in loops
    s.kernel("host", """
        @triton.jit
        def take(d, i, j):
            return d.load([i, j])

        @triton.jit
        def kernel(x, z, oi, oj):
            BM: tl.constexpr = x.block_shape[0]
            BN: tl.constexpr = x.block_shape[1]
            v = take(x, oi, oj)
            tl.store(z + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], v)
    """)
    for t, (bm, bn) in itertools.product(KINDS, ((8, 32), (16, 16))):
        x = numbers(t, (20, 64), 6).with_(descriptor={"shape": [20, 64], "strides": [64, 1], "block": [bm, bn]})
        s.case(f"host-{t}-{bm}x{bn}", "host", {"x": x, "z": Output(t, boxed(x.values, (12, 48), (bm, bn))), "oi": 12, "oj": 48})
    s.kernel("loop", """
        @triton.jit
        def kernel(x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
            b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
            c = tl.make_tensor_descriptor(z, [M, N], [N, 1], [BM, BN])
            i = tl.program_id(0) * BM
            j = tl.program_id(1) * BN
            acc = tl.zeros([BM, BN], tl.float32)
            for k in range(0, K, BK):
                acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
            c.store([i, j], acc.to(z.dtype.element_ty))
    """)
    for t, (m, n, k), (bm, bn, bk), stages in itertools.product(("fp16", "fp32", "bf16", "fp8e5"), ((64, 64, 64), (80, 96, 160)), ((64, 32, 32), (128, 64, 64)), (1, 3)):
        if stages == 1 and t != "fp16":
            continue
        x, y = (Input(t, q, {"fill": "patterns", "low": 20, "high": 39, "seed": 1}) if t == "fp8e5" else bell(t, q, 1, scale=0.25) for q in ((m, k), (k, n)))
        tz = "fp32" if t == "fp8e5" else t
        r = x.values.astype("f8") @ y.values.astype("f8")
        s.case(f"matmul-{t}-{m}x{n}x{k}-{bm}x{bn}x{bk}-stages-{stages}", "loop", {"x": x, "y": y, "z": Output(tz, r, rtol=0.01, atol=0.1 if t == "bf16" else 1e-2), "M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk},
               grid=[-(-m // bm), -(-n // bn)], stages=stages)
    s.kernel("gather", """
        @triton.jit
        def kernel(x, rows, z, w, M, N, y, R: tl.constexpr, BN: tl.constexpr):
            d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, BN])
            e = tl.make_tensor_descriptor(w, [M, N], [N, 1], [1, BN])
            r = tl.load(rows + tl.arange(0, R))
            v = d.gather(r, y)
            tl.store(z + tl.arange(0, R)[:, None] * BN + tl.arange(0, BN)[None, :], v)
            e.scatter(v, r, y)
    """)
    for t, (m, n), (rows, bn), y in itertools.product(("fp16", "fp32", "i8"), ((64, 128), (128, 64)), ((32, 32), (8, 16)), (0, 32)):
        if bn * size_of(t) < 32:
            continue
        x, order = numbers(t, (m, n), 7), Input("i32", m, {"fill": "permutation", "seed": 8})
        index = order.values[:rows]
        v = np.zeros((rows, bn), x.values.dtype)
        width = min(bn, n - y)
        v[:, :width] = x.values[index, y:y + width]
        w = np.zeros((m, n), x.values.dtype)
        w[index, y:y + width] = v[:, :width]
        s.case(f"gather-{t}-{m}x{n}-{rows}x{bn}-{y}", "gather", {"x": x, "rows": order, "z": Output(t, v), "w": Output(t, w), "M": m, "N": n, "y": y, "R": rows, "BN": bn})


def build():
    for name, function in (("blockptr", block_pointers), ("descriptor", descriptors)):
        s = Suite(name)
        function(s)
        yield s
