"""The thread level on one rank, and distributed kernels on two to four."""
import itertools

import numpy as np

from suite import Input, Output, Suite, ints, numbers

HEAD = """
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import (tid, laneid, num_warps, num_threads, threads_per_warp, ld, st, ld_vector, st_vector, pack, unpack,
    atomic_add, atomic_cas, __syncthreads, __shfl_sync_i32, __shfl_up_sync_i32, __shfl_down_sync_i32, __shfl_xor_sync_i32, __ballot_sync, ffs)

"""


def body(text):
    """A kernel behind the imports; `text` is indented as a function's body."""
    lines = [line[8:] if line.startswith("        ") else line for line in text.strip("\n").split("\n")]
    return HEAD + "\n@triton.jit\n" + "\n".join(lines)


def thread(s):
    def kernel(name, text):
        s.kernels[name] = body(text)
        s.lines.extend([f"--- kernel {name}", s.kernels[name].strip("\n"), ""])
        s.in_cases = False

    for warps in (1, 2, 4, 8):
        n = 32 * warps
        t = np.arange(n)

        def case(name, expression, result, params="", args=None):
            key = f"{name}-warps-{warps}"
            if f"{name}" not in s.kernels:
                kernel(name, f"""
        def kernel(z{params}):
            t = tid(0)
            st(z + t, {expression})
""")
            s.case(key, name, {"z": Output("i32", np.asarray(result, "i4")), **(args or {})}, warps=warps)

        case("tid", "t", t)
        case("laneid", "laneid() * 1000 + t", t % 32 * 1000 + t)
        case("counts", "num_warps() * 10000 + num_threads() + threads_per_warp() * 0", np.full(n, warps * 10000 + n))
        case("shuffle", "__shfl_sync_i32(0xFFFFFFFF, t * 3, 5)", (t // 32 * 32 + 5) * 3)
        case("shuffle-up", "__shfl_up_sync_i32(0xFFFFFFFF, t, 2)", np.where(t % 32 >= 2, t - 2, t))
        case("shuffle-down", "__shfl_down_sync_i32(0xFFFFFFFF, t, 3)", np.where(t % 32 < 29, t + 3, t))
        case("shuffle-xor", "__shfl_xor_sync_i32(0xFFFFFFFF, t, 16)", t ^ 16)
        case("ballot", "ffs(__ballot_sync(0xFFFFFFFF, t % 32 >= 7))", np.full(n, 8))
        x = ints("i32", n, 3)
        case("load", "ld(x + (t ^ 1)) + 1", x.values[t ^ 1] + np.int32(1), ", x", {"x": x})
        if "neighbours" not in s.kernels:
            kernel("neighbours", """
        def kernel(x, z, N: tl.constexpr):
            t = tid(0)
            st(z + t, ld(x + t) * 2)
            __syncthreads()
            v = ld(z + (t + 1) % N)
            __syncthreads()
            st(z + t, v)
""")
            kernel("histogram", """
        def kernel(x, z, n):
            for k in range(tid(0), n, num_threads()):
                atomic_add(z + ld(x + k), 1)
""")
            kernel("first", """
        def kernel(z):
            if atomic_cas(z, 0, tid(0) + 1) == 0:
                atomic_add(z + 1, 1)
""")
            kernel("divergent", """
        def kernel(x, z):
            t = tid(0)
            r = 0
            i = 0
            while i < ld(x + t):
                r += i
                i += 1
            if t % 2 == 0:
                r = -r
            st(z + t, r)
""")
            kernel("region", """
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            v = tl.load(x + i)
            with dl.simt_exec_region() as (t, count):
                for k in range(t, N, count):
                    v[k] = v[k] * 2 + k
            tl.store(z + i, v)
""")
            kernel("vectors", """
        def kernel(x, z):
            t = tid(0)
            v = ld_vector(x + t * 4, 4)
            w = v + v
            st_vector(z + t * 4, dl.make_vector([w[3], w[2], w[1], w[0]]))
""")
        x = ints("i32", n, 4, low=0, high=2**20)
        s.case(f"neighbours-warps-{warps}", "neighbours", {"x": x, "z": Output("i32", np.roll(x.values * 2, -1)), "N": n}, warps=warps)
        h = ints("i32", 1000, 5, low=0, high=15)
        s.case(f"histogram-warps-{warps}", "histogram", {"x": h, "z": Output("i32", np.bincount(h.values, minlength=16).astype("i4")), "n": 1000}, warps=warps)
        s.case(f"first-warps-{warps}", "first", {"z": Input("i32", 2, {})}, warps=warps)
        x = ints("i32", n, 6, low=0, high=9)
        r = np.array([sum(range(v)) for v in x.values])
        s.case(f"divergent-warps-{warps}", "divergent", {"x": x, "z": Output("i32", np.where(t % 2 == 0, -r, r).astype("i4"))}, warps=warps)
        x = ints("i32", 256, 7, low=-1000, high=1000)
        s.case(f"region-warps-{warps}", "region", {"x": x, "z": Output("i32", x.values * 2 + np.arange(256, dtype="i4")), "N": 256}, warps=warps)
        x = numbers("fp32", 4 * n, 8)
        s.case(f"vectors-warps-{warps}", "vectors", {"x": x, "z": Output("fp32", (x.values.reshape(n, 4) * 2)[:, ::-1])}, warps=warps)


def distributed(s):
    def kernel(name, text):
        s.kernels[name] = body(text)
        s.lines.extend([f"--- kernel {name}", s.kernels[name].strip("\n"), ""])
        s.in_cases = False

    def everywhere(x, ranks):
        return [x.rank(r).values for r in range(ranks)]

    def symmetric(x):
        return x.with_(symmetric=True)

    kernel("identity", """
        def kernel(z):
            tl.store(z, dl.rank() * 100 + dl.num_ranks())
            tl.store(z + 1, libshmem_device.my_pe() * 100 + libshmem_device.n_pes())
""")
    kernel("pull", """
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            peer = (dl.rank() + 1) % dl.num_ranks()
            tl.store(z + i, tl.load(dl.symm_at(x, peer) + i))
""")
    kernel("all-gather", """
        def kernel(x, z, flags, N: tl.constexpr):
            i = tl.arange(0, N)
            me = dl.rank()
            v = tl.load(x + i)
            for k in range(dl.num_ranks()):
                tl.store(dl.symm_at(z, k) + me * N + i, v)
                dl.notify(flags + me, k, signal=1, sig_op="set", comm_scope="intra_node")
            token = dl.wait(flags, dl.num_ranks(), "sys", "acquire", waitValue=1)
            z = dl.consume_token(z, token)
""")
    kernel("ring", """
        def kernel(x, z, flags, out, N: tl.constexpr):
            i = tl.arange(0, N)
            me = dl.rank()
            n = dl.num_ranks()
            v = tl.load(x + i)
            total = v
            for step in range(1, n):
                tl.store(dl.symm_at(z, (me + 1) % n) + step * N + i, v)
                dl.notify(flags + step, (me + 1) % n, signal=1, sig_op="set", comm_scope="intra_node")
                token = dl.wait(flags + step, 1, "sys", "acquire", waitValue=1)
                v = tl.load(dl.consume_token(z, token) + step * N + i)
                total += v
            tl.store(out + i, total)
""")
    kernel("counter", """
        def kernel(flags, z):
            for k in range(dl.num_ranks()):
                dl.notify(flags, k, signal=3, sig_op="add", comm_scope="intra_node")
            token = dl.wait(flags, 1, "sys", "acquire", waitValue=3 * dl.num_ranks())
            tl.store(z, tl.load(dl.consume_token(flags, token)))
""")
    kernel("remote-atomic", """
        def kernel(z, N: tl.constexpr):
            i = tl.arange(0, N)
            for k in range(dl.num_ranks()):
                tl.atomic_add(dl.symm_at(z, k) + i, i + dl.rank(), sem="relaxed", scope="sys")
""")
    kernel("put-block", """
        def kernel(x, z, N: tl.constexpr):
            me = libshmem_device.my_pe()
            n = libshmem_device.n_pes()
            libshmem_device.putmem${FORM}(z + me * N, x, N * 4, (me + 1) % n)
            libshmem_device.quiet()
            libshmem_device.barrier_all_block()
""")
    kernel("get-block", """
        def kernel(x, z, N: tl.constexpr):
            me = libshmem_device.my_pe()
            n = libshmem_device.n_pes()
            libshmem_device.getmem${FORM}(z, x, N * 4, (me + 1) % n)
            libshmem_device.quiet()
            libshmem_device.barrier_all_block()
""")
    kernel("put-signal", """
        def kernel(x, z, flags, out, N: tl.constexpr):
            i = tl.arange(0, N)
            me = libshmem_device.my_pe()
            n = libshmem_device.n_pes()
            libshmem_device.putmem_signal${FORM}(z, x, N * 4, flags, 7, libshmem_device.NVSHMEM_SIGNAL_SET, (me + 1) % n)
            if tid(0) == 0:
                libshmem_device.signal_wait_until(flags, libshmem_device.NVSHMEM_CMP_EQ, 7)
            __syncthreads()
            tl.store(out + i, tl.load(z + i))
""")
    kernel("signal-add", """
        def kernel(flags, z):
            if tid(0) == 0:
                for k in range(libshmem_device.n_pes()):
                    libshmem_device.signal_op(flags, 5, libshmem_device.NVSHMEM_SIGNAL_ADD, k)
                libshmem_device.signal_wait_until(flags, libshmem_device.NVSHMEM_CMP_GE, 5 * libshmem_device.n_pes())
                st(z, 1)
""")
    kernel("broadcast", """
        def kernel(x, z, N: tl.constexpr):
            libshmem_device.broadcastmem_block(libshmem_device.NVSHMEM_TEAM_WORLD, z, x, N * 4, 1)
            libshmem_device.barrier_all_block()
""")
    kernel("collect", """
        def kernel(x, z, N: tl.constexpr):
            libshmem_device.fcollectmem_block(libshmem_device.NVSHMEM_TEAM_WORLD, z, x, N * 4)
            libshmem_device.barrier_all_block()
""")
    for ranks in (2, 3, 4):
        def case(name, kernel_name, args, tag="", **fields):
            s.case(f"{name}{tag}-{ranks}-ranks", kernel_name, args, ranks=ranks, **fields)

        flags = Input("u64", 8, {})
        case("identity", "identity", {"z": Output("i32", np.array([[r * 100 + ranks] * 2 for r in range(ranks)], "i4"), ranks=ranks)})
        for t, n in (("i32", 64), ("fp16", 256), ("fp32", 1024)):
            x = numbers(t, n, 1)
            v = everywhere(x, ranks)
            case("pull", "pull", {"x": symmetric(x), "z": Output(t, np.stack([v[(r + 1) % ranks] for r in range(ranks)]), ranks=ranks), "N": n}, f"-{t}-{n}")
            x = numbers(t, n, 2)
            v = everywhere(x, ranks)
            case("all-gather", "all-gather", {"x": x, "z": Output(t, np.stack([np.concatenate(v)] * ranks), ranks=ranks, symmetric=True), "flags": symmetric(Input("u64", 8, {})), "N": n}, f"-{t}-{n}")
        x = ints("i32", 128, 3, low=-10**6, high=10**6)
        v = everywhere(x, ranks)
        case("ring-sum", "ring", {"x": x, "z": symmetric(Input("i32", 128 * ranks, {})), "flags": symmetric(Input("u64", 8, {})), "out": Output("i32", np.stack([sum(v)] * ranks), ranks=ranks), "N": 128})
        case("counter", "counter", {"flags": symmetric(Input("u64", 8, {})), "z": Output("i64", np.full((ranks, 1), 3 * ranks, "i8"), ranks=ranks)})
        total = sum(np.arange(64) + r for r in range(ranks))
        case("remote-atomic", "remote-atomic", {"z": Output("i32", np.stack([total] * ranks).astype("i4"), ranks=ranks, symmetric=True), "N": 64})
        for form in ("_block", "_nbi_block"):
            x = ints("i32", 256, 4)
            v = everywhere(x, ranks)
            r = np.zeros((ranks, ranks, 256), "i4")
            for me in range(ranks):
                r[(me + 1) % ranks, me] = v[me]
            case("put", "put-block", {"x": symmetric(x), "z": Output("i32", r, ranks=ranks, symmetric=True), "N": 256}, form.replace("_", "-"), with_={"FORM": form})
            case("get", "get-block", {"x": symmetric(ints("i32", 256, 4)), "z": Output("i32", np.stack([v[(me + 1) % ranks] for me in range(ranks)]), ranks=ranks, symmetric=True), "N": 256}, form.replace("_", "-"), with_={"FORM": form})
            case("put-signal", "put-signal", {"x": symmetric(ints("i32", 256, 4)), "z": symmetric(Input("i32", 256, {})), "flags": symmetric(Input("u64", 8, {})), "out": Output("i32", np.stack([v[(me - 1) % ranks] for me in range(ranks)]), ranks=ranks), "N": 256},
                 form.replace("_", "-"), with_={"FORM": form})
        case("signal-add", "signal-add", {"flags": symmetric(Input("u64", 8, {})), "z": Output("i32", np.ones((ranks, 1), "i4"), ranks=ranks)})
        x = ints("i32", 256, 5)
        v = everywhere(x, ranks)
        case("collect", "collect", {"x": symmetric(x), "z": Output("i32", np.stack([np.concatenate(v)] * ranks), ranks=ranks, symmetric=True), "N": 256})
    kernel("wait-forever", """
        def kernel(flags):
            token = dl.wait(flags, 1, "sys", "acquire", waitValue=1)
            tl.store(dl.consume_token(flags, token), 2)
""")
    s.case("deadlock", "wait-forever", {"flags": Input("u64", 8, {}).with_(symmetric=True)}, ranks=2, only="sim", runtimeError="flags")
    kernel("out-of-bounds", """
        def kernel(x, z):
            tl.store(z, tl.load(x + 1000))
""")
    s.case("out-of-bounds", "out-of-bounds", {"x": Input("i32", 8, {}), "z": Input("i32", 8, {})}, only="sim", runtimeError="x")


def build():
    for name, function in (("thread", thread), ("distributed", distributed)):
        s = Suite(name)
        function(s)
        yield s
