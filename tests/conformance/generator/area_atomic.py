"""Atomic operations: kinds, types, orders, scopes, masks, results, contention."""
import itertools

import numpy as np

from formats import NUMPY, TL, bits_of, decode, encode, is_float, is_int, is_signed
from suite import Input, Output, Suite, bell, ints, listed, numbers

UFUNC = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
N = 128


def supported(op, t):
    if is_float(t):
        return op == "add" or (t in ("fp32", "fp64") and op in ("max", "min")) or (op == "xchg" and t in ("fp32", "fp64"))
    return bits_of(t) >= 32


def build():
    s = Suite("atomic")
    s.kernel("rmw", """
        @triton.jit
        def kernel(x, z, old, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            r = tl.atomic_${OP}(z + ${INDEX}, a${ARGS})
            tl.store(old + i, r)
    """)
    seed = 1
    for op, t in itertools.product(("add", "max", "min", "and", "or", "xor", "xchg"), ("i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64")):
        if not supported(op, t):
            continue
        for sem in ("", ", sem='acquire'", ", sem='release'", ", sem='acq_rel'", ", sem='relaxed'"):
            if sem and t not in ("i32", "fp32"):
                continue
            seed += 1
            # An element each: results and memory are exact.
            x, z = numbers(t, N, seed), numbers(t, N, seed + 800)
            with np.errstate(all="ignore"):
                r = x.values if op == "xchg" else decode(t, encode(t, UFUNC[op](z.values, x.values)))
            s.case(f"{op}-{t}{sem.replace(', sem=', '-').replace(chr(39), '')}", "rmw", {"x": x, "z": Output(t, r, initial=z), "old": Output(t, z.values), "N": N},
                   with_={"OP": op, "INDEX": "i", "ARGS": sem})
        if op == "xchg":
            continue
        # All on one word, and on eight.
        for name, index, k in (("one", "i * 0", 1), ("eight", "i % 8", 8), ("pairs", "i // 2", 64)):
            seed += 1
            if t in ("fp16", "bf16"):
                x = ints(t if False else "i32", N, seed, low=-3, high=3)
                x = Input(t, N, {"fill": "ints", "low": -3, "high": 3, "seed": seed})
                z = Input(t, k, {"fill": "ints", "low": -3, "high": 3, "seed": seed + 1})
            else:
                x = Input(t, N, {"fill": "ints", "low": -1000 if is_float(t) else 1, "high": 1000, "seed": seed}) if is_float(t) else ints(t, N, seed)
                z = Input(t, k, {"fill": "ints", "low": 0, "high": 1000, "seed": seed + 1})
            index_values = {"one": np.zeros(N, int), "eight": np.arange(N) % 8, "pairs": np.arange(N) // 2}[name]
            r = z.values.copy()
            with np.errstate(all="ignore"):
                for a, j in zip(x.values, index_values):
                    r[j] = UFUNC[op](r[j], a)
            s.case(f"{op}-{t}-{name}", "rmw", {"x": x, "z": Output(t, r, initial=z), "old": Input(t, N, {}), "N": N}, with_={"OP": op, "INDEX": index, "ARGS": ""}, warps=(1, 4, 8)[seed % 3])
    for scope in ("gpu", "cta", "sys"):
        x, z = numbers("i32", N, 1), numbers("i32", N, 2)
        with np.errstate(all="ignore"):
            s.case(f"scope-{scope}", "rmw", {"x": x, "z": Output("i32", x.values + z.values, initial=z), "old": Output("i32", z.values), "N": N}, with_={"OP": "add", "INDEX": "i", "ARGS": f", scope='{scope}'"})
    for op, t in (("max", "fp16"), ("min", "bf16"), ("and", "fp32"), ("or", "fp64"), ("xor", "fp16"), ("add", "i8"), ("max", "u8"), ("add", "i16"), ("xchg", "u16"), ("add", "u16")):
        s.case(f"reject-{op}-{t}", "rmw", {"x": numbers(t, N, 1), "z": numbers(t, N, 2), "old": Input(t, N, {}), "N": N}, with_={"OP": op, "INDEX": "i", "ARGS": ""}, error=[f"atomic_{op} does not support"])
    for name, args in (("sem", ", sem='seq_cst'"), ("scope", ", scope='world'")):
        s.case(f"reject-{name}", "rmw", {"x": numbers("i32", N, 1), "z": numbers("i32", N, 2), "old": Input("i32", N, {}), "N": N}, with_={"OP": "add", "INDEX": "i", "ARGS": args}, error=name)

    # Masks; values that are cast to the element type; scalars.
    for op, t in (("add", "i32"), ("max", "fp32"), ("xor", "u64"), ("add", "fp16")):
        x, z = numbers(t, N, 3), numbers(t, N, 4)
        with np.errstate(all="ignore"):
            r = np.where(np.arange(N) % 3 == 0, UFUNC[op](z.values, x.values), z.values)
        s.case(f"mask-{op}-{t}", "rmw", {"x": x, "z": Output(t, r, initial=z), "old": Input(t, N, {}), "N": N}, with_={"OP": op, "INDEX": "i", "ARGS": ", mask=i % 3 == 0"})
    for tx, t in (("i8", "i32"), ("i32", "i64"), ("fp16", "fp32"), ("i32", "fp32")):
        x, z = numbers(tx, N, 5), numbers(t, N, 6)
        with np.errstate(all="ignore"):
            r = z.values + x.values.astype(z.values.dtype)
        s.case(f"cast-{tx}-{t}", "rmw", {"x": x, "z": Output(t, r, initial=z), "old": Output(t, z.values), "N": N}, with_={"OP": "add", "INDEX": "i", "ARGS": ""})
    s.kernel("scalar", """
        @triton.jit
        def kernel(z, old, n):
            p = tl.program_id(0)
            r = tl.atomic_${OP}(z, ${VALUE})
            tl.store(old + p, r)
    """)
    for warps in (1, 4, 8):
        for t in ("i32", "i64", "fp32"):
            g = 12
            s.case(f"scalar-add-{t}-warps-{warps}", "scalar", {"z": Output(t, np.full(1, 3 * g, NUMPY[t][1])), "old": Output(t, (np.arange(g) * 3).astype(NUMPY[t][1]), compare="sorted"), "n": 5},
                   with_={"OP": "add", "VALUE": "3"}, grid=[g], warps=warps)
        s.case(f"scalar-max-warps-{warps}", "scalar", {"z": Output("i32", np.full(1, 11, "i4")), "old": Input("i32", 12, {}), "n": 5}, with_={"OP": "max", "VALUE": "p"}, grid=[12], warps=warps)
        s.case(f"scalar-xchg-warps-{warps}", "scalar", {"z": Output("i32", np.full(1, 7, "i4")), "old": Output("i32", np.array([0] + [7] * 11, "i4"), compare="sorted"), "n": 5}, with_={"OP": "xchg", "VALUE": "7"}, grid=[12], warps=warps)
    for mask, r in (("n == 5", 3), ("n == 4", 0)):
        s.case(f"scalar-mask-{r}", "scalar", {"z": Output("i32", np.full(1, r, "i4")), "old": Input("i32", 1, {}), "n": 5}, with_={"OP": "add", "VALUE": f"3, mask={mask}"})
    for op, values, start, r in (("max", ["-0.0"], "0x80000000", "0x80000000"), ("min", [0], "0x80000000", "0x80000000"), ("max", [0], "0x80000000", "0x00000000"), ("min", ["-0.0"], "0x00000000", "0x80000000"),
                                 ("max", [-5], "0xc0000000", "0xc0000000"), ("min", [-5], "0xc0000000", "0xc0a00000"), ("max", [2], "0xbf800000", "0x40000000")):
        x, z = listed("fp32", values), listed("fp32", [start])
        s.case(f"sign-{op}-{values[0]}-{start}", "rmw", {"x": x, "z": Output("fp32", np.array([int(r, 16)], "u4"), bits=True, initial=z), "old": Input("fp32", 1, {}), "N": 1}, with_={"OP": op, "INDEX": "i", "ARGS": ""})

    # Many programs add into one vector; the count of a run of programs.
    s.kernel("programs", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.atomic_add(z + i, tl.load(x + tl.program_id(0) * N + i))
    """)
    for t in ("i32", "u64", "fp32", "fp16", "bf16"):
        for n in (32, 256):
            x = Input(t, (16, n), {"fill": "ints", "low": 0, "high": 7, "seed": 9})
            s.case(f"programs-{t}-{n}", "programs", {"x": x, "z": Output(t, x.values.astype("f8" if is_float(t) else x.values.dtype).sum(axis=0).astype(x.values.dtype)), "N": n}, grid=[16])
    s.kernel("shifted", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.atomic_add(z + i, tl.load(x + i))
            tl.atomic_add(z + i + 1, tl.load(x + i))
    """)
    for t in ("fp32", "fp16", "i32"):
        for n in (2, 64, 512):
            x = Input(t, n, {"fill": "ints", "low": 0, "high": 50, "seed": n})
            r = np.zeros(n + 1, x.values.dtype)
            r[:n] += x.values
            r[1:] += x.values
            s.case(f"shifted-{t}-{n}", "shifted", {"x": x, "z": Output(t, r), "N": n})
    s.kernel("two", """
        @triton.jit
        def kernel(x, z, M: tl.constexpr, N: tl.constexpr):
            m = tl.arange(0, M)[:, None]
            n = tl.arange(0, N)[None, :]
            a = tl.load(x + m * N + n)
            r = tl.atomic_add(z + ${INDEX}, a, mask=(m + n) % ${STEP} == 0)
            tl.atomic_add(z + M * N + n, tl.sum(r * 0 + a, 0)[None, :])
    """)
    for t, (m, n), (name, index), step in itertools.product(("fp32", "i32", "fp16"), ((16, 16), (2, 64), (64, 8)), (("all", "m * N + n"), ("rows", "m + n * 0"), ("columns", "m * 0 + n")), (1, 3)):
        if t == "fp16" and (m, n) != (16, 16):
            continue
        x = Input(t, (m, n), {"fill": "ints", "low": 0, "high": 9, "seed": 3})
        v = x.values
        mm, nn = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
        at = {"all": mm * n + nn, "rows": mm, "columns": nn}[name]
        r = np.zeros(m * n + n, "f8")
        keep = (mm + nn) % step == 0
        np.add.at(r, at[keep], v[keep].astype("f8"))
        r[m * n:] += v.astype("f8").sum(axis=0)
        s.case(f"pattern-{t}-{m}x{n}-{name}-{step}", "two", {"x": x, "z": Output(t, r if is_float(t) else r.astype("i4")), "M": m, "N": n}, with_={"INDEX": index, "STEP": step})

    # Compare and swap.
    s.kernel("cas", """
        @triton.jit
        def kernel(z, c, v, old, N: tl.constexpr):
            i = tl.arange(0, N)
            r = tl.atomic_cas(z + i, tl.load(c + i), tl.load(v + i)${ARGS})
            tl.store(old + i, r)
    """)
    for t in ("i32", "u32", "i64", "u64", "fp32", "i16", "u16", "fp16", "bf16", "fp64"):
        for n in (64, 512):
            for sem in ("", ", sem='acquire'", ", sem='relaxed'", ", sem='release'", ", sem='acq_rel'"):
                if sem and (t != "i32" or n == 512):
                    continue
                z = Input(t, n, {"fill": "ints", "low": 1, "high": 3, "seed": 5})
                c = Input(t, n, {"fill": "ints", "low": 1, "high": 3, "seed": 6})
                v = Input(t, n, {"fill": "ints", "low": 10, "high": 90, "seed": 7})
                s.case(f"cas-{t}-{n}{sem.replace(', sem=', '-').replace(chr(39), '')}", "cas", {"z": Output(t, np.where(z.values == c.values, v.values, z.values), initial=z), "c": c, "v": v, "old": Output(t, z.values), "N": n},
                       with_={"ARGS": sem})
    s.kernel("lock", """
        @triton.jit
        def kernel(lock, z, n):
            while tl.atomic_cas(lock, 0, 1) == 1:
                pass
            tl.store(z, tl.load(z) + n)
            tl.debug_barrier()
            tl.atomic_xchg(lock, 0)
    """)
    for grid in (1, 6, 20):
        s.case(f"lock-{grid}", "lock", {"lock": Output("i32", np.zeros(1, "i4")), "z": Output("i32", np.full(1, 3 * grid, "i4")), "n": 3}, grid=[grid])
    s.kernel("used", """
        @triton.jit
        def kernel(z, y, N: tl.constexpr):
            i = tl.arange(0, N)
            r = tl.atomic_add(z + i, 1)
            q = tl.atomic_add(z + i, r + 1)
            tl.store(y + i, q * 2 + r)
    """)
    for t, n in itertools.product(("i32", "fp32"), (2, 128, 512)):
        z = Input(t, n, {"fill": "arange"})
        v = z.values
        s.case(f"result-used-{t}-{n}", "used", {"z": Output(t, v + 1 + v + 1, initial=z), "y": Output(t, (v + 1) * 2 + v), "N": n})
    s.kernel("const", """
        @triton.jit
        def kernel(z: tl.const, N: tl.constexpr):
            ${STATEMENT}
    """)
    for name, statement in (("store", "tl.store(z, 1)"), ("atomic", "tl.atomic_add(z, 1)"), ("cas", "tl.atomic_cas(z, 0, 1)")):
        s.case(f"const-{name}", "const", {"z": Input("i32", 4, {}), "N": 4}, with_={"STATEMENT": statement}, error="Cannot store to a constant pointer")
    yield s
