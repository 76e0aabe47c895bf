"""Philox and what is built on it, bit for bit."""
import itertools

import numpy as np

from suite import Input, Output, Suite, ints


def philox(seed, c, rounds=10, wide=False):
    """Four arrays from four arrays of counters (Python integers inside, so that nothing overflows unseen)."""
    bits = 64 if wide else 32
    mask = 2**bits - 1
    a, b = (0xD2E7470EE14C6C93, 0xCA5A826395121157) if wide else (0xD2511F53, 0xCD9E8D57)
    ka, kb = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B) if wide else (0x9E3779B9, 0xBB67AE85)
    k0, k1 = (seed % 2**64, 0) if wide else (seed % 2**32, (seed % 2**64) >> 32)
    c0, c1, c2, c3 = (np.array([int(v) & mask for v in x], dtype=object) for x in c)
    for _ in range(rounds):
        pb, pa = c2 * b, c0 * a
        c0, c1, c2, c3 = (pb >> bits) ^ c1 ^ k0, pb & mask, (pa >> bits) ^ c3 ^ k1, pa & mask
        k0, k1 = (k0 + ka) & mask, (k1 + kb) & mask
    return [np.array([int(v) for v in x], dtype="u8" if wide else "u4") for x in (c0, c1, c2, c3)]


def counters(offsets, wide):
    """c0 .. c3 for a block of offsets."""
    low = [int(v) % 2**64 for v in offsets]
    zero = [0] * len(low)
    return [v % 2**32 for v in low], [v >> 32 for v in low] if wide else zero, zero, zero


def uniform(u):
    x = u.astype("i4")
    x = np.where(x < 0, -x - 1, x)
    return x.astype("f4") * np.float32(4.6566127342e-10)


def normal(u1, u2):
    u1, u2 = np.maximum(np.float32(1e-7), uniform(u1)).astype("f8"), uniform(u2).astype("f8")
    r, theta = np.sqrt(-2 * np.log(u1)), 6.283185307179586 * u2
    return r * np.cos(theta), r * np.sin(theta)


def build():
    s = Suite("random")
    s.kernel("random", """
        @triton.jit
        def kernel(z, seed, N: tl.constexpr):
            i = (tl.program_id(0) * N + tl.arange(0, N))${OFFSET}
            tl.store(z + tl.program_id(0) * N + tl.arange(0, N), ${EXPR})
    """)
    s.kernel("random-const-seed", """
        @triton.jit
        def kernel(z, seed: tl.constexpr, N: tl.constexpr):
            i = (tl.program_id(0) * N + tl.arange(0, N))${OFFSET}
            tl.store(z + tl.program_id(0) * N + tl.arange(0, N), ${EXPR})
    """)
    seeds = [0, 1, 42, 124, 54, 0xFFFFFFFF, 0x0000000FCAFEB0BA, 2**63 - 1]
    for n, grid in ((128, 1), (1024, 3), (32, 2)):
        for seed in seeds:
            for kind, offset in (("i32", ""), ("i64", ".to(tl.int64) + 5000000000")):
                if n != 128 and (seed % 5 or kind == "i64"):
                    continue
                i = np.arange(n * grid) + (5000000000 if kind == "i64" else 0)
                u = philox(seed, counters(i, kind == "i64"))
                for constant in (False, True):
                    kernel, tag = ("random-const-seed", "-const") if constant else ("random", "")
                    if constant and n != 128:
                        continue
                    arguments = {"seed": seed, "N": n}
                    name = f"{seed}-{kind}-{n}{tag}"
                    s.case(f"randint-{name}", kernel, {"z": Output("i32", u[0].view("i4")), **arguments}, with_={"OFFSET": offset, "EXPR": "tl.randint(seed, i).to(tl.int32, bitcast=True)"}, grid=[grid])
                    s.case(f"rand-{name}", kernel, {"z": Output("fp32", uniform(u[0])), **arguments}, with_={"OFFSET": offset, "EXPR": "tl.rand(seed, i)"}, grid=[grid])
                    s.case(f"randn-{name}", kernel, {"z": Output("fp32", normal(u[0], u[1])[0], rtol=1e-4, atol=1e-5), **arguments}, with_={"OFFSET": offset, "EXPR": "tl.randn(seed, i)"}, grid=[grid])
    i = np.arange(128)
    u = philox(77, counters(i, False))
    for k in range(4):
        s.case(f"randint4x-{k}", "random", {"z": Output("i32", u[k].view("i4")), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": f"tl.randint4x(seed, i)[{k}].to(tl.int32, bitcast=True)"})
        s.case(f"rand4x-{k}", "random", {"z": Output("fp32", uniform(u[k])), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": f"tl.rand4x(seed, i)[{k}]"})
        a, b = normal(u[k // 2 * 2], u[k // 2 * 2 + 1])
        s.case(f"randn4x-{k}", "random", {"z": Output("fp32", (a, b)[k % 2], rtol=1e-4, atol=1e-5), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": f"tl.randn4x(seed, i)[{k}]"})
        p = philox(77, (i, i + 1, i * 2, i ^ 5), rounds=7)
        s.case(f"philox-{k}", "random", {"z": Output("i32", p[k].view("i4")), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": f"tl.philox(seed, i.to(tl.uint32), (i + 1).to(tl.uint32), (i * 2).to(tl.uint32), (i ^ 5).to(tl.uint32), 7)[{k}].to(tl.int32, bitcast=True)"})
        w = philox(77, (i, i + 1, i * 2, i ^ 5), wide=True)
        s.case(f"philox-64-{k}", "random", {"z": Output("i64", w[k].view("i8")), "seed": 77, "N": 128},
               with_={"OFFSET": ".to(tl.uint64)", "EXPR": f"tl.philox(seed, i, i + 1, i * 2, i ^ 5)[{k}].to(tl.int64, bitcast=True)"})
    for rounds in (1, 5, 7):
        u = philox(3, counters(i, False), rounds)
        s.case(f"rounds-{rounds}", "random", {"z": Output("i32", u[0].view("i4")), "seed": 3, "N": 128}, with_={"OFFSET": "", "EXPR": f"tl.randint(seed, i, n_rounds={rounds}).to(tl.int32, bitcast=True)"})
    s.kernel("limits", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, tl.uint_to_uniform_float(tl.load(x + i)))
    """)
    x = Input("u32", 16, {"values": [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 12345, 3 * 10**9]})
    for debug in (False, True):
        s.case("debug-limits" if debug else "limits", "limits", {"x": x, "z": Output("fp32", uniform(x.values)), "N": 16}, **({"debug": True} if debug else {}))
    # Its own arithmetic wraps on purpose, which is no overflow of the kernel's.
    for name, expression, t, r in (("randint", "tl.random.randint(seed, i).to(tl.int32, bitcast=True)", "i32", philox(77, counters(i, False))[0].view("i4")),
                                   ("rand", "tl.random.rand(seed, i)", "fp32", uniform(philox(77, counters(i, False))[0])),
                                   ("philox-64", "tl.random.philox(seed, i.to(tl.uint64), i.to(tl.uint64), i.to(tl.uint64), i.to(tl.uint64))[0].to(tl.int64, bitcast=True)", "i64",
                                    philox(77, (i, i, i, i), wide=True)[0].view("i8"))):
        s.case(f"debug-{name}", "random", {"z": Output(t, r), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": expression}, debug=True)
    s.case("debug-randn", "random", {"z": Output("fp32", normal(*philox(77, counters(i, False))[:2])[0], rtol=1e-4, atol=1e-5), "seed": 77, "N": 128}, with_={"OFFSET": "", "EXPR": "tl.random.randn(seed, i)"}, debug=True)
    s.case("float-seed-reject", "random", {"z": Input("fp32", 128, {}), "seed": 1.5, "N": 128}, with_={"OFFSET": "", "EXPR": "tl.rand(seed, i)"}, error="seed")
    yield s
