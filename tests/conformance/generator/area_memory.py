"""Loads and stores: masks, odd sizes, strides, scalars, hints, pointer arithmetic."""
import itertools

import numpy as np

from formats import ALL, NUMPY, TL, encode, is_float, is_int
from suite import Input, Output, Suite, bell, ints, listed, numbers


def zero(t, n):
    return np.zeros(n, NUMPY[t][0].replace("i", "u"))


def masked(s):
    s.kernel("masked", """
        @triton.jit
        def kernel(x, z, n, N: tl.constexpr):
            i = tl.program_id(0) * N + tl.arange(0, N)
            r = tl.load(x + i, mask=i < n${OTHER})
            tl.store(z + i, r)
    """)
    seed = 1
    for t in ["i1"] + ALL + ["fp8e5", "fp8e4nv"]:
        for size, n in ((128, 128), (128, 127), (512, 511), (64, 1), (256, 130)):
            for name, other in (("none", ""), ("zero", ", other=0"), ("one", ", other=1"), ("minus", ", other=-1.0")):
                if size not in (128, 512) and name in ("zero", "minus") or (name == "minus" and not is_float(t)) or (t.startswith("fp8") and name != "none"):
                    continue
                if n == size and name != "none":
                    continue
                seed += 1
                x = ints("i1", n, seed) if t == "i1" else Input(t, n, {"fill": "patterns", "low": 10, "high": 60, "seed": seed}) if t.startswith("fp8") else numbers(t, n, seed)
                fill = {"none": 0, "zero": 0, "one": 1, "minus": -1.0}[name]
                rest = encode(t, np.full(size - n, fill, "f8" if is_float(t) else "i1"))
                r = np.concatenate([encode(t, x.values).astype(rest.dtype), rest])
                s.case(f"masked-{t}-{size}-{n}-{name}", "masked", {"x": x, "z": Output(t, r.view("u%d" % r.itemsize), bits=True), "n": n, "N": size}, with_={"OTHER": other})
    s.kernel("masked-store", """
        @triton.jit
        def kernel(x, z, n, N: tl.constexpr):
            i = tl.program_id(0) * N + tl.arange(0, N)
            tl.store(z + i, tl.load(x + i, mask=i < n), mask=(i < n) & (i % 3 != 1))
    """)
    for t in ["i1", "i8", "i16", "i32", "i64", "u8", "fp16", "bf16", "fp32", "fp64", "fp8e5"]:
        for n, size, grid, warps in ((100, 128, 1, 4), (1000, 256, 4, 2), (37, 16, 3, 1), (3000, 1024, 3, 8)):
            x = ints("i1", n, n) if t == "i1" else Input(t, n, {"fill": "patterns", "low": 10, "high": 60, "seed": n}) if t.startswith("fp8") else numbers(t, n, n)
            keep = np.arange(n) % 3 != 1
            bits = encode(t, x.values)
            s.case(f"store-{t}-{n}-of-{size}", "masked-store", {"x": x, "z": Output(t, np.where(keep, bits, 0).astype("u%d" % bits.itemsize), bits=True), "n": n, "N": size}, grid=[grid], warps=warps)
    s.kernel("scalar", """
        @triton.jit
        def kernel(x, z, m):
            r = tl.load(x, mask=m != 0${OTHER})
            tl.store(z, r)
            tl.store(z + 1, r + 1, mask=m == 0)
            tl.store(z + 2, r + 2, mask=m != 0)
    """)
    for m, other, name in itertools.product((0, 2), ("", ", other=5.0"), ("x",)):
        r = 3.0 if m else 5.0 if other else 0.0
        s.case(f"scalar-{m}-{'other' if other else 'none'}", "scalar", {"x": listed("fp32", [3.0]), "z": Output("fp32", np.array([r, 0 if m else r + 1, r + 2 if m else 0])), "m": m}, with_={"OTHER": other})
    s.kernel("other-block", """
        @triton.jit
        def kernel(x, y, z, N: tl.constexpr):
            i = tl.arange(0, N)
            o = tl.load(y + i)
            tl.store(z + i, tl.load(x + i, mask=i % 2 == 0, other=o))
    """)
    for tx, ty in (("i32", "i32"), ("fp32", "fp32"), ("fp16", "fp32"), ("i64", "i8"), ("fp32", "i32")):
        x, y = numbers(tx, 64, 3), numbers(ty, 64, 4)
        from formats import convert
        r = np.where(np.arange(64) % 2 == 0, x.values, convert(y.values, ty, tx))
        s.case(f"other-block-{tx}-{ty}", "other-block", {"x": x, "y": y, "z": Output(tx, r), "N": 64})


def patterns(s):
    s.kernel("strided", """
        @triton.jit
        def kernel(x, z, sx, sz, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i * sz, tl.load(x + i * sx))
    """)
    for t in ("i1", "i8", "u16", "i32", "i64", "fp16", "bf16", "fp32", "fp64", "fp8e4nv"):
        for sx, sz in ((1, 1), (2, 1), (1, 3), (7, 5), (16, 16)):
            n = 64
            x = ints("i1", n * sx, 5) if t == "i1" else Input(t, n * sx, {"fill": "patterns", "low": 1, "high": 90, "seed": 5}) if t.startswith("fp8") else numbers(t, n * sx, 5)
            bits = encode(t, x.values)
            r = np.zeros(n * sz, bits.dtype)
            r[::sz] = bits[::sx]
            s.case(f"strided-{t}-{sx}-{sz}", "strided", {"x": x, "z": Output(t, r.view("u%d" % r.itemsize), bits=True), "sx": sx, "sz": sz, "N": n})
    s.kernel("indirect", """
        @triton.jit
        def kernel(x, index, z, w, N: tl.constexpr):
            i = tl.arange(0, N)
            j = tl.load(index + i)
            tl.store(z + i, tl.load(x + j))
            tl.store(w + j, tl.load(x + i))
    """)
    for t in ("i8", "i16", "i32", "i64", "u8", "u32", "fp16", "bf16", "fp32", "fp64"):
        for k in ("i32", "i64"):
            x, index = numbers(t, 128, 6), Input(k, 128, {"fill": "permutation", "seed": 7})
            w = np.zeros(128, x.values.dtype)
            w[index.values] = x.values
            s.case(f"indirect-{t}-{k}", "indirect", {"x": x, "index": index, "z": Output(t, x.values[index.values]), "w": Output(t, w), "N": 128})
    s.kernel("two-dimensions", """
        @triton.jit
        def kernel(x, z, sm, sn, M: tl.constexpr, N: tl.constexpr, m, n):
            i = tl.arange(0, M)
            j = tl.arange(0, N)
            a = tl.load(x + i[:, None] * sm + j[None, :] * sn, mask=(i < m)[:, None] & (j < n)[None, :], other=-3)
            tl.store(z + i[:, None] * N + j[None, :], a)
    """)
    for t in ("i8", "i32", "fp16", "fp32"):
        for m, n, M, N, order, warps in ((16, 16, 16, 16, "row", 4), (13, 30, 16, 32, "row", 2), (64, 5, 64, 8, "column", 4), (7, 100, 8, 128, "column", 8), (1, 3, 1, 4, "row", 1)):
            sm, sn = (n, 1) if order == "row" else (1, m)
            x = numbers(t, m * n, m)
            v = x.values.reshape(m, n) if order == "row" else x.values.reshape(n, m).T
            r = np.full((M, N), -3, v.dtype)
            r[:m, :n] = v
            s.case(f"2d-{t}-{m}x{n}-{order}", "two-dimensions", {"x": x, "z": Output(t, r), "sm": sm, "sn": sn, "M": M, "N": N, "m": m, "n": n}, warps=warps)
    s.kernel("offset", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, tl.load(x + i))
    """)
    for t in ("i8", "fp16", "fp32", "i64"):  # pointers that are aligned to elements only
        for offset in (1, 2, 3, 8):
            for n in (32, 1024):
                x = numbers(t, n, offset)
                s.case(f"offset-{t}-{offset}-{n}", "offset", {"x": x.with_(offset=offset), "z": Output(t, x.values, offset=offset), "N": n})
    for t in ("fp32", "i8"):
        for n in (1, 2, 4, 8, 2048, 8192):
            for warps in (1, 4):
                x = numbers(t, n, n)
                s.case(f"size-{t}-{n}-warps-{warps}", "offset", {"x": x, "z": Output(t, x.values), "N": n}, warps=warps)


def options(s):
    s.kernel("hints", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, tl.load(x + i${LOAD})${STORE})
    """)
    x = numbers("fp32", 128, 1)
    z = Output("fp32", x.values)
    for k, load in enumerate(("", ", cache_modifier='.ca'", ", cache_modifier='.cg'", ", cache_modifier='.cs'", ", cache_modifier='.cv'", ", eviction_policy='evict_first'",
                              ", eviction_policy='evict_last'", ", volatile=True", ", mask=i < 128, cache_modifier='.cg', eviction_policy='evict_last'")):
        s.case(f"load-hint-{k}", "hints", {"x": x, "z": z, "N": 128}, with_={"LOAD": load, "STORE": ""})
    for k, store in enumerate((", cache_modifier='.wb'", ", cache_modifier='.cg'", ", cache_modifier='.cs'", ", cache_modifier='.wt'", ", eviction_policy='evict_first'", ", eviction_policy='evict_last'")):
        s.case(f"store-hint-{k}", "hints", {"x": x, "z": z, "N": 128}, with_={"LOAD": "", "STORE": store})
    for name, load, store, message in (("cache", ", cache_modifier='.xx'", "", "cache_modifier"), ("eviction", ", eviction_policy='never'", "", "eviction_policy"),
                                       ("store-cache", "", ", cache_modifier='.ca'", "cache_modifier"), ("other", ", other=1.0", "", "mask"),
                                       ("boundary", ", boundary_check=(0,)", "", "boundary_check"), ("padding", ", padding_option='zero'", "", "padding_option")):
        s.case(f"reject-{name}", "hints", {"x": x, "z": z, "N": 128}, with_={"LOAD": load, "STORE": store}, error=message)
    # What is read stays what it was when it was read, and a store is seen by a load of the same element.
    s.kernel("same", """
        @triton.jit
        def kernel(z, N: tl.constexpr):
            i = tl.arange(0, N)
            for k in range(5):
                tl.store(z + i, tl.load(z + i) + 1)
    """)
    s.case("same-pointer", "same", {"z": Output("i32", np.arange(64) + 5, initial=Input("i32", 64, {"fill": "arange"})), "N": 64})
    s.kernel("swap", """
        @triton.jit
        def kernel(x, y, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            tl.store(x + i, b)
            tl.store(y + i, a)
    """)
    a, b = numbers("fp16", 128, 1), numbers("fp16", 128, 2)
    s.case("swap", "swap", {"x": Output("fp16", b.values, initial=a), "y": Output("fp16", a.values, initial=b), "N": 128})
    for t in ["i1"] + ALL:  # constants of every type
        s.kernel(f"constant-{t}", f"""
            @triton.jit
            def kernel(z, N: tl.constexpr):
                i = tl.arange(0, N)
                tl.store(z + i, {'True' if t == 'i1' else '1'})
                tl.store(z + N + i, tl.full([N], {'True' if t == 'i1' else '42' if is_int(t) else '0.1'}, {TL[t]}))
        """)
        second = True if t == "i1" else 42 if is_int(t) else 0.1
        values = np.concatenate([np.full(64, 1), np.full(64, second)]).astype("?" if t == "i1" else "f8" if is_float(t) else NUMPY[t][1])
        s.case(f"constant-{t}", f"constant-{t}", {"z": Output(t, values), "N": 64})


def pointers(s):
    s.kernel("arithmetic", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            p = ${POINTER}
            tl.store(z + i, tl.load(p))
    """)
    x = Input("i32", 1024, {"fill": "arange"})
    i = np.arange(128)
    for name, pointer, index in (
            ("left", "i + x", i), ("minus", "x + 500 - i", 500 - i), ("minus-literal", "(x + 10 + i) - 5", i + 5), ("i8", "x + (i % 100).to(tl.int8)", i % 100),
            ("u8", "x + (i + 128).to(tl.uint8)", i + 128), ("negative-i8", "x + 200 + (i - 64).to(tl.int8)", 136 + i), ("u32", "x + i.to(tl.uint32) * 2", 2 * i),
            ("i64", "x + i.to(tl.int64) * 3", 3 * i), ("twice", "(x + i) + i", 2 * i), ("scalar", "x + 7 + tl.zeros([N], tl.int32)", 7 + 0 * i),
            ("wrap", "x + (i + 2147483647 + 2147483647 + 2)", i), ("bool", "x + (i > 63)", (i > 63).astype(int)),
            ("through-int", "x.to(tl.int64).to(tl.pointer_type(tl.int32)) + i", i), ("cast", "(x.to(tl.pointer_type(tl.int8)) + i * 4).to(tl.pointer_type(tl.int32))", i),
            ("bitcast", "x.to(tl.int64, bitcast=True).to(tl.pointer_type(tl.int32), bitcast=True) + i", i),
            ("element-type", "x.to(tl.pointer_type(x.dtype.element_ty)) + i", i)):
        s.case(f"pointer-{name}", "arithmetic", {"x": x, "z": Output("i32", index), "N": 128}, with_={"POINTER": pointer})
    for name, pointer, message in (("sum", "x + x", "pointer"), ("float", "x + 1.5", "pointer"), ("reverse", "5 - x", "pointer"), ("times", "x * 2", "pointer"), ("negate", "-x", "pointer"),
                                   ("narrow", "x.to(tl.int32)", "int64"), ("compare", "x < z", "pointer")):
        s.case(f"pointer-reject-{name}", "arithmetic", {"x": x, "z": Output("i32", i), "N": 128}, with_={"POINTER": pointer}, error=message)
    s.kernel("pointer-table", """
        @triton.jit
        def kernel(x, y, table, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(table, x.to(tl.int64))
            tl.store(table + 1, y.to(tl.int64))
            tl.debug_barrier()
            p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.int32))
            tl.store(z + tl.program_id(0) * N + i, tl.load(p + i))
    """)
    x, y = ints("i32", 64, 1), ints("i32", 64, 2)
    s.case("pointer-table", "pointer-table", {"x": x, "y": y, "table": Input("i64", 2, {}), "z": Output("i32", np.concatenate([x.values, y.values])), "N": 64}, grid=[2])


def programs(s):
    s.kernel("grid", """
        @triton.jit
        def kernel(z):
            p = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
            tl.store(z + p, tl.program_id(0) + 100 * tl.program_id(1) + 10000 * tl.program_id(2) + 1000000 * (tl.num_programs(0) + 10 * tl.num_programs(1) + 100 * tl.num_programs(2)))
    """)
    for grid in ([1], [7], [3, 5], [2, 3, 4], [1, 1, 9], [64, 2]):
        a, b, c = (grid + [1, 1])[:3]
        k, j, i = np.meshgrid(np.arange(c), np.arange(b), np.arange(a), indexing="ij")
        s.case("grid-" + "x".join(map(str, grid)), "grid", {"z": Output("i32", (i + 100 * j + 10000 * k + 1000000 * (a + 10 * b + 100 * c)).astype("i4"))}, grid=grid)


def build():
    s = Suite("memory")
    for function in (masked, patterns, options, pointers, programs):
        function(s)
    yield s
