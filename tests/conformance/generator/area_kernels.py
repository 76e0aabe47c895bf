"""Whole kernels as people write them, and corners that need a kernel of their own."""
import itertools
import math

import numpy as np

from formats import NUMPY, TL, decode, encode, is_float
from suite import Input, Output, Suite, bell, ints, listed, numbers, uniform


def rows(s):
    """Kernels over rows of a matrix."""
    s.kernel("softmax", """
        @triton.jit
        def kernel(z, x, stride, n, N: tl.constexpr):
            row = tl.program_id(0)
            i = tl.arange(0, N)
            v = tl.load(x + row * stride + i, mask=i < n, other=-float('inf')).to(tl.float32)
            v = v - tl.max(v, axis=0)
            e = tl.exp(v)
            tl.store(z + row * stride + i, (e / tl.sum(e, axis=0)).to(z.dtype.element_ty), mask=i < n)
    """)
    s.kernel("layer-norm", """
        @triton.jit
        def kernel(x, w, b, z, mean, rstd, n, eps, N: tl.constexpr):
            row = tl.program_id(0)
            x += row * n
            z += row * n
            total = tl.zeros([N], tl.float32)
            for off in range(0, n, N):
                i = off + tl.arange(0, N)
                total += tl.load(x + i, mask=i < n, other=0.).to(tl.float32)
            m = tl.sum(total, axis=0) / n
            var = tl.zeros([N], tl.float32)
            for off in range(0, n, N):
                i = off + tl.arange(0, N)
                v = tl.where(i < n, tl.load(x + i, mask=i < n, other=0.).to(tl.float32) - m, 0.)
                var += v * v
            r = 1 / tl.sqrt(tl.sum(var, axis=0) / n + eps)
            tl.store(mean + row, m)
            tl.store(rstd + row, r)
            for off in range(0, n, N):
                i = off + tl.arange(0, N)
                mask = i < n
                v = (tl.load(x + i, mask=mask, other=0.).to(tl.float32) - m) * r
                tl.store(z + i, v * tl.load(w + i, mask=mask) + tl.load(b + i, mask=mask), mask=mask)
    """)
    s.kernel("cross-entropy", """
        @triton.jit
        def kernel(x, labels, loss, n, N: tl.constexpr):
            row = tl.program_id(0)
            m = -float('inf')
            total = 0.0
            for off in range(0, n, N):
                i = off + tl.arange(0, N)
                v = tl.load(x + row * n + i, mask=i < n, other=-float('inf')).to(tl.float32)
                new = tl.maximum(m, tl.max(v, 0))
                total = total * tl.exp(m - new) + tl.sum(tl.exp(v - new), 0)
                m = new
            label = tl.load(labels + row)
            tl.store(loss + row, tl.log(total) + m - tl.load(x + row * n + label).to(tl.float32))
    """)
    s.kernel("rms-norm", """
        @triton.jit
        def kernel(x, w, z, n, N: tl.constexpr, ROWS: tl.constexpr):
            r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
            i = tl.arange(0, N)[None, :]
            v = tl.load(x + r * n + i, mask=i < n, other=0.).to(tl.float32)
            scale = tl.rsqrt(tl.sum(v * v, 1, keep_dims=True) / n + 1e-6)
            tl.store(z + r * n + i, v * scale * tl.load(w + i, mask=i < n, other=0.), mask=i < n)
    """)
    s.kernel("router", """
        @triton.jit
        def kernel(x, weights, experts, N: tl.constexpr, K: tl.constexpr):
            row = tl.program_id(0)
            i = tl.arange(0, N)
            v = tl.softmax(tl.load(x + row * N + i), 0)
            for k in tl.static_range(K):
                value, index = tl.max(v, 0, return_indices=True)
                tl.store(weights + row * K + k, value)
                tl.store(experts + row * K + k, index)
                v = tl.where(i == index, -1.0, v)
    """)
    for t, (m, n, block), warps in itertools.product(("fp32", "fp16", "bf16"), ((5, 64, 64), (7, 781, 1024), (3, 100, 128)), (2, 8)):
        x = bell(t, (m, n), n, scale=2)
        v = x.values.astype("f8")
        e = np.exp(v - v.max(axis=1, keepdims=True))
        tolerance = {"fp32": {"rtol": 1e-4, "atol": 1e-6}, "fp16": {"rtol": 2e-3, "atol": 1e-5}, "bf16": {"rtol": 1.6e-2, "atol": 1e-4}}[t]
        s.case(f"softmax-{t}-{m}x{n}-warps-{warps}", "softmax", {"z": Output(t, e / e.sum(axis=1, keepdims=True), **tolerance), "x": x, "stride": n, "n": n, "N": block}, grid=[m], warps=warps)
        w, b = uniform(t, n, 1, low=0.5, high=1.5), bell(t, n, 2)
        mean, var = v.mean(axis=1), v.var(axis=1)
        r = (v - mean[:, None]) / np.sqrt(var[:, None] + 1e-5) * w.values.astype("f8") + b.values.astype("f8")
        s.case(f"layer-norm-{t}-{m}x{n}-warps-{warps}", "layer-norm", {"x": x, "w": w, "b": b, "z": Output(t, r, rtol=tolerance["rtol"] * 4, atol=1e-2 if t != "fp32" else 1e-4), "mean": Output("fp32", mean, rtol=1e-3, atol=1e-4),
               "rstd": Output("fp32", 1 / np.sqrt(var + 1e-5), rtol=1e-3), "n": n, "eps": 1e-5, "N": 128}, grid=[m], warps=warps)
        labels = ints("i32", m, 3, low=0, high=n - 1)
        loss = np.log(np.exp(v - v.max(axis=1, keepdims=True)).sum(axis=1)) + v.max(axis=1) - v[np.arange(m), labels.values]
        s.case(f"cross-entropy-{t}-{m}x{n}-warps-{warps}", "cross-entropy", {"x": x, "labels": labels, "loss": Output("fp32", loss, rtol=1e-3, atol=1e-3), "n": n, "N": 256}, grid=[m], warps=warps)
        x4 = bell(t, (8, n), 4)
        v = x4.values.astype("f8")
        r = v / np.sqrt((v * v).mean(axis=1, keepdims=True) + 1e-6) * w.values.astype("f8")
        s.case(f"rms-norm-{t}-{n}-warps-{warps}", "rms-norm", {"x": x4, "w": w, "z": Output(t, r, rtol=tolerance["rtol"] * 4, atol=1e-3), "n": n, "N": block, "ROWS": 4}, grid=[2], warps=warps)
    for n, k in ((64, 4), (256, 8)):
        x = Input("fp32", (6, n), {"fill": "bell", "seed": n, "scale": 2})
        v = x.values.astype("f8")
        p = np.exp(v - v.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        order = np.argsort(-p, axis=1, kind="stable")[:, :k]
        s.case(f"router-{n}-{k}", "router", {"x": x, "weights": Output("fp32", np.take_along_axis(p, order, 1), rtol=1e-4), "experts": Output("i32", order.astype("i4")), "N": n, "K": k}, grid=[6])


def attention(s):
    s.kernel("attention", """
        @triton.jit
        def kernel(q, k, v, z, scale, L, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
            start = tl.program_id(0) * BM
            head = tl.program_id(1) * L * D
            m = start + tl.arange(0, BM)
            d = tl.arange(0, D)
            a = tl.load(q + head + m[:, None] * D + d[None, :])
            top = tl.full([BM], -float('inf'), tl.float32)
            total = tl.zeros([BM], tl.float32)
            acc = tl.zeros([BM, D], tl.float32)
            end = start + BM if CAUSAL else L
            for off in range(0, end, BN):
                n = off + tl.arange(0, BN)
                b = tl.load(k + head + n[None, :] * D + d[:, None])
                s = tl.dot(a, b) * scale
                if CAUSAL:
                    s = tl.where(m[:, None] >= n[None, :], s, -float('inf'))
                new = tl.maximum(top, tl.max(s, 1))
                p = tl.exp2((s - new[:, None]) * 1.44269504)
                alpha = tl.exp2((top - new) * 1.44269504)
                total = total * alpha + tl.sum(p, 1)
                acc = acc * alpha[:, None]
                c = tl.load(v + head + n[:, None] * D + d[None, :])
                acc = tl.dot(p.to(c.dtype), c, acc)
                top = new
            tl.store(z + head + m[:, None] * D + d[None, :], (acc / total[:, None]).to(z.dtype.element_ty))
    """)
    for t, (length, d, bm, bn), causal, warps, stages in itertools.product(("fp16", "bf16", "fp32"), ((64, 32, 32, 32), (128, 64, 64, 32), (128, 64, 64, 64)), (False, True), (4, 8), (2,)):
        if t == "fp32" and (warps == 8 or d == 64 and bn == 64):
            continue
        q, k, v = (bell(t, (2, length, d), seed) for seed in (1, 2, 3))
        a, b, c = (w.values.astype("f8") for w in (q, k, v))
        scale = 1 / math.sqrt(d)
        p = np.einsum("hmd,hnd->hmn", a, b) * np.float32(scale)
        if causal:
            p = np.where(np.tril(np.ones((length, length), bool)), p, -np.inf)
        p = np.exp(p - p.max(axis=2, keepdims=True))
        r = np.einsum("hmn,hnd->hmd", p / p.sum(axis=2, keepdims=True), c)
        s.case(f"attention-{t}-{length}-{d}-{bm}x{bn}-{'causal' if causal else 'full'}-warps-{warps}", "attention",
               {"q": q, "k": k, "v": v, "z": Output(t, r, rtol=0.01, atol=3e-2 if t == "bf16" else 1e-2), "scale": scale, "L": length, "BM": bm, "BN": bn, "D": d, "CAUSAL": causal}, grid=[length // bm, 2], warps=warps, stages=stages,
               slow=True)


def products(s):
    s.kernel("grouped", """
        @triton.jit
        def leaky(x):
            return tl.where(x >= 0, x, 0.01 * x)

        @triton.jit
        def kernel(x, y, z, M, N, K, sxm, sxk, syk, syn, szm, szn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACT: tl.constexpr):
            pid = tl.program_id(0)
            pm = tl.cdiv(M, BM)
            pn = tl.cdiv(N, BN)
            per_group = GROUP * pn
            group = pid // per_group
            first = group * GROUP
            size = min(pm - first, GROUP)
            i = first + ((pid % per_group) % size)
            j = (pid % per_group) // size
            tl.assume(i >= 0)
            tl.assume(j >= 0)
            m = (i * BM + tl.arange(0, BM)) % M
            n = (j * BN + tl.arange(0, BN)) % N
            k = tl.arange(0, BK)
            a = x + (m[:, None] * sxm + k[None, :] * sxk)
            b = y + (k[:, None] * syk + n[None, :] * syn)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for step in ${RANGE}:
                acc = tl.dot(tl.load(a, mask=k[None, :] < K - step * BK, other=0.0), tl.load(b, mask=k[:, None] < K - step * BK, other=0.0), acc)
                a += BK * sxk
                b += BK * syk
            if ACT == "leaky":
                acc = leaky(acc)
            m = i * BM + tl.arange(0, BM)
            n = j * BN + tl.arange(0, BN)
            tl.store(z + szm * m[:, None] + szn * n[None, :], acc.to(z.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    """)
    ranges = {"plain": "range(0, tl.cdiv(K, BK))", "stages": "tl.range(0, tl.cdiv(K, BK), num_stages=4)", "unroll": "tl.range(0, tl.cdiv(K, BK), loop_unroll_factor=2)",
              "specialised": "tl.range(0, tl.cdiv(K, BK), warp_specialize=True)", "flat": "tl.range(0, tl.cdiv(K, BK), flatten=True, disallow_acc_multi_buffer=True)"}
    for (name, loop), t, (bm, bn, bk, warps) in itertools.product(ranges.items(), ("fp16", "fp8e5"), ((64, 64, 32, 4), (128, 32, 64, 8))):
        m, n, k = 150, 96, 136
        x, y = (Input(t, q, {"fill": "patterns", "low": 20, "high": 39, "seed": 1}) if t == "fp8e5" else bell(t, q, 1, scale=0.25) for q in ((m, k), (k, n)))
        r = x.values.astype("f8") @ y.values.astype("f8")
        act = "leaky" if bm == 64 else ""
        r = np.where(r >= 0, r, 0.01 * r) if act else r
        programs = -(-m // bm) * -(-n // bn)
        s.case(f"grouped-{name}-{t}-{bm}x{bn}x{bk}", "grouped", {"x": x, "y": y, "z": Output("fp16", r, rtol=0.01, atol=2e-2), "M": m, "N": n, "K": k, "sxm": k, "sxk": 1, "syk": n, "syn": 1, "szm": n, "szn": 1,
                                                               "BM": bm, "BN": bn, "BK": bk, "GROUP": 2, "ACT": act}, with_={"RANGE": loop}, grid=[programs], warps=warps)
    s.kernel("persistent", """
        @triton.jit
        def kernel(x, y, z, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            columns = tl.cdiv(N, BN)
            for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS):
                m = tile // columns * BM + tl.arange(0, BM)
                n = tile % columns * BN + tl.arange(0, BN)
                acc = tl.zeros((BM, BN), tl.float32)
                for off in range(0, K, BK):
                    k = off + tl.arange(0, BK)
                    a = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.)
                    b = tl.load(y + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.)
                    acc += tl.dot(a, b)
                tl.store(z + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])
    """)
    for t, (bm, bn, bk), programs in itertools.product(("fp16", "fp32"), ((32, 32, 32), (64, 64, 32)), (1, 3)):
        x, y = bell(t, (100, 70), 1, scale=0.25), bell(t, (70, 90), 2, scale=0.25)
        s.case(f"persistent-{t}-{bm}x{bn}-{programs}", "persistent", {"x": x, "y": y, "z": Output("fp32", x.values.astype("f8") @ y.values.astype("f8"), rtol=0.01, atol=2e-3), "M": 100, "N": 90, "K": 70, "PROGRAMS": programs, "BM": bm, "BN": bn, "BK": bk},
               grid=[programs])
    s.kernel("split-k", """
        @triton.jit
        def kernel(x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            m = tl.program_id(0) * BM + tl.arange(0, BM)
            n = tl.program_id(1) * BN + tl.arange(0, BN)
            k = tl.program_id(2) * BK + tl.arange(0, BK)
            a = tl.load(x + m[:, None] * K + k[None, :])
            b = tl.load(y + k[:, None] * N + n[None, :])
            tl.atomic_add(z + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision='ieee'), sem="relaxed")
    """)
    for t in ("fp16", "fp32"):
        x, y = bell(t, (64, 128), 1, scale=0.25), bell(t, (128, 64), 2, scale=0.25)
        s.case(f"split-k-{t}", "split-k", {"x": x, "y": y, "z": Output("fp32", x.values.astype("f8") @ y.values.astype("f8"), rtol=0.01, atol=2e-3), "M": 64, "N": 64, "K": 128, "BM": 32, "BN": 32, "BK": 32}, grid=[2, 2, 4])
    s.kernel("dropout", """
        @triton.jit
        def kernel(x, z, n, p, seed, N: tl.constexpr):
            i = tl.program_id(0) * N + tl.arange(0, N)
            v = tl.load(x + i, mask=i < n)
            keep = tl.rand(seed, i) > p
            tl.store(z + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)
    """)
    from area_random import counters, philox, uniform as to_uniform
    x = bell("fp32", 1000, 5)
    keep = to_uniform(philox(123, counters(np.arange(1000), False))[0]) > np.float32(0.3)
    s.case("dropout", "dropout", {"x": x, "z": Output("fp32", np.where(keep, x.values / (1 - 0.3), 0), rtol=1e-5), "n": 1000, "p": 0.3, "seed": 123, "N": 256}, grid=[4])
    s.kernel("embedding", """
        @triton.jit
        def kernel(table, index, z, n, D: tl.constexpr, ROWS: tl.constexpr):
            r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
            row = tl.load(index + r, mask=r < n, other=0)
            d = tl.arange(0, D)
            tl.store(z + r[:, None] * D + d[None, :], tl.load(table + row[:, None] * D + d[None, :]), mask=(r < n)[:, None])
    """)
    for t, d in itertools.product(("fp32", "bf16", "i8"), (16, 64)):
        table, index = numbers(t, (50, d), 1), ints("i64", 37, 2, low=0, high=49)
        s.case(f"embedding-{t}-{d}", "embedding", {"table": table, "index": index, "z": Output(t, table.values[index.values]), "n": 37, "D": d, "ROWS": 8}, grid=[5])
    s.kernel("transpose", """
        @triton.jit
        def kernel(x, z, M, N, BM: tl.constexpr, BN: tl.constexpr):
            m = tl.program_id(0) * BM + tl.arange(0, BM)
            n = tl.program_id(1) * BN + tl.arange(0, BN)
            v = tl.load(x + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
            tl.store(z + n[:, None] * M + m[None, :], tl.trans(v), mask=(n < N)[:, None] & (m < M)[None, :])
    """)
    for t, (m, n), (bm, bn), warps in itertools.product(("i8", "fp16", "i32", "fp64"), ((33, 70), (64, 64)), ((32, 32), (16, 64)), (1, 4)):
        x = numbers(t, (m, n), 3)
        s.case(f"transpose-{t}-{m}x{n}-{bm}x{bn}-warps-{warps}", "transpose", {"x": x, "z": Output(t, x.values.T), "M": m, "N": n, "BM": bm, "BN": bn}, grid=[-(-m // bm), -(-n // bn)], warps=warps)
    s.kernel("segments", """
        @triton.jit
        def combine(fa, va, fb, vb):
            return fa | fb, tl.where(fb != 0, vb, va + vb)

        @triton.jit
        def kernel(flags, x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            f, v = tl.associative_scan((tl.load(flags + i), tl.load(x + i)), 0, combine)
            tl.store(z + i, v)
    """)
    for n, warps in ((64, 1), (512, 4), (2048, 8)):
        flags, x = ints("i32", n, 1, low=0, high=9), ints("i32", n, 2, low=-50, high=50)
        f = Input("i32", n, {"fill": "ints", "low": -7, "high": 1, "seed": 1})
        state, r = 0, []
        for a, b in zip(flags.values, x.values):
            state = int(b) if a != 0 else state + int(b)
            r.append(state)
        s.case(f"segmented-sum-{n}", "segments", {"flags": flags, "x": x, "z": Output("i32", np.array(r, "i4")), "N": n}, warps=warps)


def device(s):
    """What only the device knows, inline assembly, formats without buffers."""
    s.kernel("device", """
        @triton.jit
        def kernel(x, y, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            tl.store(z + i, ${EXPR})
    """)
    n = 256
    x, y = ints("i32", n, 1), ints("i32", n, 2)

    def case(name, expr, r, t="i32", inputs=(x, y), **fields):
        s.case(name, "device", {"x": inputs[0], "y": inputs[1], "z": Output(t, r), "N": n}, with_={"EXPR": expr}, **fields)

    case("num-warps", "tl.extra.cuda.num_warps() + a * 0", np.full(n, 4, "i4"))
    case("num-threads", "tl.extra.cuda.num_threads() + a * 0", np.full(n, 256, "i4"), warps=8)
    case("smid", "((tl.extra.cuda.smid() >= 0) & (tl.extra.cuda.smid() < 1024)).to(tl.int32) + a * 0", np.ones(n, "i4"))
    case("globaltimer", "(tl.extra.cuda.globaltimer() >= 0).to(tl.int32) + a * 0", np.ones(n, "i4"))
    case("is-cuda", "(1 if tl.target_info.is_cuda() else 2) + a * 0", np.ones(n, "i4"))
    case("capability", "(1 if tl.target_info.cuda_capability_geq(8, 0) else 2) + a * 0", np.ones(n, "i4"))
    case("expect-zero", "tl.expect_zero(a, i < 0)", x.values)
    with np.errstate(all="ignore"):
        case("asm-add", 'tl.inline_asm_elementwise("add.s32 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1)', x.values + y.values)
        u, v = x.values.view("u4").astype("u8"), y.values.view("u4").astype("u8")
        shifted = ((v << np.uint64(32) | u) << np.uint64(7) >> np.uint64(32)).astype("u4").view("i4")
        case("asm-funnel", 'tl.inline_asm_elementwise("shf.l.wrap.b32 $0, $1, $2, 7;", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1)', shifted)
        case("asm-two-outputs", 'tl.inline_asm_elementwise("sub.u32 $0, $2, $3; sub.u32 $1, $3, $2;", "=r,=r,r,r", [a, b], dtype=(tl.int32, tl.int32), is_pure=True, pack=1)[1]', y.values - x.values)
    x8 = ints("i8", n, 3)
    case("asm-packed", 'tl.inline_asm_elementwise("and.b32 $0, $1, 0x1F1F1F1F; shl.b32 $0, $0, 3;", "=r,r", [a], dtype=tl.int8, is_pure=True, pack=4)', ((x8.values & 0x1F) << 3).astype("i1"), t="i8", inputs=(x8, x8))
    x32 = bell("fp32", n, 4)
    case("asm-float", 'tl.inline_asm_elementwise("mul.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1)', x32.values * x32.values, t="fp32", inputs=(x32, x32))
    # fp8e4b15 has no buffers: through bytes.
    u8 = Input("u8", n, {"fill": "count"})
    b15 = decode("fp16", (u8.bits.astype("u2") & 0x7F) << 7 | (u8.bits.astype("u2") & 0x80) << 8)
    case("fp8e4b15-up", "a.to(tl.float8e4b15, bitcast=True).to(tl.float16)", b15, t="fp16", inputs=(u8, u8))
    case("fp8e4b15-up-fp32", "a.to(tl.float8e4b15, bitcast=True).to(tl.float32)", b15.astype("f4"), t="fp32", inputs=(u8, u8))
    safe = Input("u8", n, {"fill": "arange", "modulo": 127})
    case("fp8e4b15-round-trip", "a.to(tl.float8e4b15, bitcast=True).to(tl.float32).to(tl.float8e4b15).to(tl.uint8, bitcast=True)", safe.values, t="u8", inputs=(safe, safe))
    large = Input("fp32", n, {"values": [2, -2, 1.75, 1000, -65504, 1.9]})
    case("fp8e4b15-clamp", "a.to(tl.float8e4b15).to(tl.float32)", np.where(large.values > 0, 1.75, -1.75), t="fp32", inputs=(large, large))
    # Combine functions with effects: assertions on what is combined.
    s.kernel("checked", """
        @triton.jit
        def combine(a, b):
            r = a + b
            tl.device_assert(r < LIMIT, "sum too large")
            return r

        LIMIT = tl.constexpr(1000)

        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            ${STATEMENT}
    """)
    for name, statement, f in (("reduce", "tl.store(z + i, tl.reduce(tl.load(x + i), 0, combine) + i * 0)", lambda v: np.full(64, v.sum(), "i4")), ("scan", "tl.store(z + i, tl.associative_scan(tl.load(x + i), 0, combine))", lambda v: np.cumsum(v).astype("i4"))):
        small, big = listed("i32", [1] * 64), listed("i32", [100] * 64)
        s.case(f"checked-{name}", "checked", {"x": small, "z": Output("i32", f(small.values)), "N": 64}, with_={"STATEMENT": statement}, debug=True)
        s.case(f"checked-{name}-fails", "checked", {"x": big, "z": Input("i32", 64, {}), "N": 64}, with_={"STATEMENT": statement}, debug=True, runtimeError="sum too large")
        s.case(f"checked-{name}-off", "checked", {"x": big, "z": Output("i32", f(big.values)), "N": 64}, with_={"STATEMENT": statement})


def build():
    s = Suite("kernels")
    for function in (rows, attention, products):
        function(s)
    yield s
    s = Suite("device")
    device(s)
    yield s
