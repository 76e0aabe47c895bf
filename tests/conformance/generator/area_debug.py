"""Prints, assertions, integer overflow in debug builds."""
import numpy as np

from formats import NUMPY, TL, is_float
from suite import Input, Output, Suite, ints, listed, numbers


def printed(t, v, is_hex=False):
    if is_hex and is_float(t):
        return c_hex(float(v))
    if is_hex:
        return f"0x{int(v) & (2 ** (np.dtype(NUMPY[t][1]).itemsize * 8) - 1):0{np.dtype(NUMPY[t][1]).itemsize * 2}x}"
    return f"{float(v):f}" if is_float(t) else str(int(v))


def c_hex(v):
    """What printf's %a gives: as Python's float.hex(), without trailing zeros."""
    mantissa, exponent = v.hex().split("p")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + "p" + exponent


def by_threads(lines, warps=1):
    """Every thread prints a scalar, and a text alone."""
    return [line for line in lines for _ in range(32 * warps)]


def build():
    s = Suite("print")
    s.kernel("print", """
        @triton.jit
        def kernel(x, N: tl.constexpr):
            ${STATEMENT}
    """)
    for t in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "fp32", "fp64", "bf16"):
        x = Input(t, 32, {"fill": "arange", "start": 0 if t.startswith("u") else -8})
        lines = [f"pid (0, 0, 0) idx ({k:2}) x: {printed(t, v)}" for k, v in enumerate(x.values)]
        s.case(f"device-{t}", "print", {"x": x, "N": 32}, with_={"STATEMENT": "tl.device_print('x', tl.load(x + tl.arange(0, N)))"}, stdout=lines)
        if t in ("i32", "fp32", "i64"):
            s.case(f"scalar-{t}", "print", {"x": x, "N": 32}, with_={"STATEMENT": "tl.device_print('s: ', tl.load(x + 20))"}, warps=1, stdout=by_threads([f"pid (0, 0, 0) idx () s: {printed(t, x.values[20])}"]))
            s.case(f"python-{t}", "print", {"x": x, "N": 32}, with_={"STATEMENT": "print('x', tl.load(x + tl.arange(0, N)))"}, stdout=lines)
    x = Input("i32", 32, {"fill": "arange", "start": -8})
    s.case("hex", "print", {"x": x, "N": 32}, with_={"STATEMENT": "tl.device_print('x', tl.load(x + tl.arange(0, N)), hex=True)"},
           stdout=[f"pid (0, 0, 0) idx ({k:2}) x: {printed('i32', v, True)}" for k, v in enumerate(x.values)])
    for t in ("fp16", "bf16", "fp32", "fp64"):
        f = Input(t, 32, {"fill": "arange", "start": -8})
        s.case(f"hex-{t}", "print", {"x": f, "N": 32}, with_={"STATEMENT": "tl.device_print('x', tl.load(x + tl.arange(0, N)) / 3.0, hex=True)" if t == "fp64" else "tl.device_print('x', tl.load(x + tl.arange(0, N)), hex=True)"},
               stdout=[f"pid (0, 0, 0) idx ({k:2}) x: {printed(t, v / 3 if t == 'fp64' else v, True)}" for k, v in enumerate(f.values)])
    s.case("two", "print", {"x": x, "N": 4}, with_={"STATEMENT": "tl.device_print('x', tl.load(x + tl.arange(0, N)), tl.arange(0, N) * 2)"},
           stdout=[f"pid (0, 0, 0) idx ({k}) x: (operand 0) {v}" for k, v in enumerate(x.values[:4])] + [f"pid (0, 0, 0) idx ({k}) x: (operand 1) {2 * k}" for k in range(4)])
    s.case("2d", "print", {"x": x, "N": 8}, with_={"STATEMENT": "tl.device_print('m', tl.load(x + tl.arange(0, 16)).reshape(2, 8))"},
           stdout=[f"pid (0, 0, 0) idx ({k // 8}, {k % 8}) m: {v}" for k, v in enumerate(x.values[:16])])
    s.case("none", "print", {"x": x, "N": 8}, with_={"STATEMENT": "tl.device_print('here')"}, warps=2, stdout=by_threads(["pid (0, 0, 0) here"], 2))
    s.case("programs", "print", {"x": x, "N": 8}, with_={"STATEMENT": "tl.device_print('p', tl.program_id(0))"}, grid=[3, 2], warps=1, stdout=by_threads([f"pid ({a}, {b}, 0) idx () p: {a}" for a in range(3) for b in range(2)]))
    s.case("in-branch", "print", {"x": x, "N": 8}, with_={"STATEMENT": "if tl.program_id(0) == 1:\n        tl.device_print('p', 5)"}, grid=[3], warps=1, stdout=by_threads(["pid (1, 0, 0) idx () p: 5"]))
    s.case("in-loop", "print", {"x": x, "N": 8}, with_={"STATEMENT": "for k in range(3):\n        tl.device_print('k', k)"}, warps=1, stdout=by_threads([f"pid (0, 0, 0) idx () k: {k}" for k in range(3)]))
    s.case("prefix-reject", "print", {"x": x, "N": 8}, with_={"STATEMENT": "tl.device_print(tl.load(x))"}, error="string")
    yield s

    s = Suite("debug")
    s.kernel("assert", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            ${STATEMENT}
            tl.store(z + i, a)
    """)
    x = ints("i32", 32, 1, low=0, high=10)
    ok = Output("i32", x.values)
    for name, true, false in (("device", "tl.device_assert(a <= 10, 'too large')", "tl.device_assert(a < 5, 'too large')"), ("python", "assert a <= 10, 'too large'", "assert a < 5, 'too large'"),
                              ("scalar", "tl.device_assert(tl.max(a, 0) <= 10, 'too large')", "tl.device_assert(tl.max(a, 0) < 5, 'too large')")):
        s.case(f"{name}-true", "assert", {"x": x, "z": ok, "N": 32}, with_={"STATEMENT": true}, debug=True)
        s.case(f"{name}-false", "assert", {"x": x, "z": ok, "N": 32}, with_={"STATEMENT": false}, debug=True, runtimeError="too large")
        s.case(f"{name}-false-off", "assert", {"x": x, "z": ok, "N": 32}, with_={"STATEMENT": false})
    s.case("mask", "assert", {"x": x, "z": ok, "N": 32}, with_={"STATEMENT": "tl.device_assert(a < 5, 'too large', mask=a < 5)"}, debug=True)
    s.case("static-true", "assert", {"x": x, "z": ok, "N": 32}, with_={"STATEMENT": "tl.device_assert(True, 'never')"}, debug=True)
    s.kernel("overflow", """
        @triton.jit
        def kernel(x, y, z):
            tl.store(z, tl.load(x) ${OP} tl.load(y))
    """)
    for t in ("i8", "i16", "i32", "u8", "u16", "u32"):
        info = np.iinfo(NUMPY[t][1])
        for name, op, a, b in (("add", "+", int(info.max), 1), ("sub", "-", int(info.min), 1), ("mul", "*", int(info.max), 2)):
            x, y = listed(t, [a]), listed(t, [b])
            with np.errstate(all="ignore"):
                r = {"+": np.add, "-": np.subtract, "*": np.multiply}[op](x.values, y.values)
            args = {"x": x, "y": y, "z": Output(t, r)}
            s.case(f"overflow-{name}-{t}", "overflow", args, with_={"OP": op}, debug=True, runtimeError=f"overflow detected for operation {name}")
            s.case(f"wrap-{name}-{t}", "overflow", args, with_={"OP": op})
            small = listed(t, [5]), listed(t, [3])
            s.case(f"fits-{name}-{t}", "overflow", {"x": small[0], "y": small[1], "z": Output(t, {"+": np.add, "-": np.subtract, "*": np.multiply}[op](small[0].values, small[1].values))}, with_={"OP": op}, debug=True)
    yield s
