"""Binary operators: arithmetic, bitwise, comparison, shifts, floor division, literals."""
import itertools

import numpy as np

from formats import ALL, FLOATS, INTS, TL, UINTS, bits_of, convert, decode, encode, is_float, is_int, is_signed, promote
from suite import Input, Output, Suite, bell, ints, listed, numbers, uniform

N = 128
ELEMENTWISE = """
    @triton.jit
    def kernel(x, y, z, N: tl.constexpr):
        i = tl.arange(0, N)
        a = tl.load(x + i)
        b = tl.load(y + i)
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z + i, r)
"""


def wide(values, t):
    """Values as NumPy computes with them: bf16 in float32."""
    return values.astype("f4") if t in ("bf16",) else values


def apply(op, t, x, y):
    """x op y in type t (both already of it), rounded to t."""
    with np.errstate(all="ignore"):
        if op == "/":
            r = x / y
        elif op == "%":
            r = np.fmod(x, y)
        elif op == "//":
            r = (x.astype(object) - np.fmod(x, y).astype(object)) // y.astype(object)
            return np.array([int(v) for v in r.ravel()], dtype=object).astype(x.dtype).reshape(x.shape)
        else:
            r = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
                 "^": np.bitwise_xor}[op](x, y)
    if t == "bf16":
        r = decode(t, encode(t, r))
    return r


def result_type(tx, ty, op):
    t = promote(tx, ty, division=op in "/%")
    if op == "/" and is_int(t):
        return "fp32"
    return t


def moderate(t, seed, n=N):
    """Operands of a division: not too large for its quotient to be a number of the type."""
    return ints(t, n, seed, nonzero=True) if is_int(t) else bell(t, n, seed, scale=2)


def tolerance(t, op):
    if is_int(t):
        return {}
    if op == "/":
        return {"rtol": 1e-6 if t == "fp32" else 1e-14}
    if op == "%":
        return {"rtol": 1e-5, "atol": 1e-6}
    return {}  # one rounding: exact


def arithmetic(s):
    s.kernel("elementwise", ELEMENTWISE)
    pairs = list(itertools.product(ALL, ALL))
    seed = 1
    for index, (tx, ty) in enumerate(pairs):
        for number, op in enumerate("+-*/%"):
            same = tx == ty
            # All of one type, or with fp32; of the others two operators each.
            if not same and (index + number) % 5 > 1:
                continue
            seed += 1
            name = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}[op]
            x, y = (moderate(tx, seed), moderate(ty, seed + 7000)) if op in "/%" else (numbers(tx, N, seed), numbers(ty, N, seed + 7000))
            mixed = is_int(tx) and is_int(ty) and is_signed(tx) != is_signed(ty)
            if mixed and op in "/%":
                s.case(f"{name}-{tx}-{ty}", "elementwise", {"x": x, "y": y, "z": Output("fp32", np.zeros(N)), "N": N},
                       with_={"EXPR": f"a {op} b", "T": "tl.float32"}, error=["Cannot use", "different signedness"])
                continue
            t = result_type(tx, ty, op)
            r = apply(op, t, convert(x.values, tx, t), convert(y.values, ty, t))
            s.case(f"{name}-{tx}-{ty}", "elementwise", {"x": x, "y": y, "z": Output(t, r, **tolerance(t, op)), "N": N},
                   with_={"EXPR": f"a {op} b", "T": TL[t]})


CORNERS = {
    "i8": [-128, -128, -1, 127, 127, 0], "i16": [-32768, -32768, -1, 32767, 32767, 0], "i32": [-2**31, -2**31, -1, 2**31 - 1, 2**31 - 1, 0],
    "i64": [-2**63, -2**63, -1, 2**63 - 1, 2**63 - 1, 0], "u8": [0, 255, 255, 1, 128, 0], "u16": [0, 65535, 65535, 1, 32768, 0],
    "u32": [0, 2**32 - 1, 2**32 - 1, 1, 2**31, 0], "u64": [0, 2**64 - 1, 2**64 - 1, 1, 2**63, 0],
}
FLOAT_CORNERS = ["nan", "inf", "-inf", "-0.0", 0, 1, -1, "1e-45", "-1e-45", "1.17549435e-38", "3.4e38", "-3.4e38", 0.5, 65504, 6e-8]


def corners(s):
    """Overflow that wraps, the least integer, signed zeros, NaN, infinities, denormals: every pair of them."""
    s.kernel("three", """
        @triton.jit
        def kernel(x, y, plus, minus, times, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            tl.store(plus + i, a + b)
            tl.store(minus + i, a - b)
            tl.store(times + i, a * b)
    """)
    for t in ALL:
        values = CORNERS.get(t, FLOAT_CORNERS)
        n = 64 if is_int(t) else 256
        k = len(values)
        x = Input(t, n, {"values": [values[i // k % k] for i in range(n)]})
        y = Input(t, n, {"values": [values[i % k] for i in range(n)]})
        outs = {name: Output(t, apply(op, t, x.values, y.values)) for name, op in (("plus", "+"), ("minus", "-"), ("times", "*"))}
        s.case(f"corners-{t}", "three", {"x": x, "y": y, **outs, "N": n})
    s.kernel("negate", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, ${EXPR})
    """)
    for t in ALL:
        values = CORNERS.get(t, FLOAT_CORNERS)
        x = Input(t, N, {**numbers(t, N, 5).rule, "first": values})
        with np.errstate(all="ignore"):
            if is_float(t):
                r = encode(t, x.values) ^ encode(t, np.array([-0.0]))
                s.case(f"negate-{t}", "negate", {"x": x, "z": Output(t, r, bits=True), "N": N}, with_={"EXPR": "-tl.load(x + i)"})
            else:
                s.case(f"negate-{t}", "negate", {"x": x, "z": Output(t, (0 - x.values).astype(x.values.dtype)), "N": N}, with_={"EXPR": "-tl.load(x + i)"})
                s.case(f"invert-{t}", "negate", {"x": x, "z": Output(t, ~x.values), "N": N}, with_={"EXPR": "~tl.load(x + i)"})
    x = ints("i1", N, 3)
    s.case("invert-i1", "negate", {"x": x, "z": Output("i1", ~x.values), "N": N}, with_={"EXPR": "~tl.load(x + i)"})
    s.case("not-i1", "negate", {"x": x, "z": Output("i1", ~x.values), "N": N}, with_={"EXPR": "not tl.load(x + i)"})
    y = ints("i1", N, 4)
    s.kernel("bools", ELEMENTWISE)
    for op, r in (("+", x.values ^ y.values), ("-", x.values ^ y.values), ("*", x.values & y.values), ("&", x.values & y.values),
                  ("|", x.values | y.values), ("^", x.values ^ y.values), ("and", x.values & y.values), ("or", x.values | y.values)):
        name = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "and": "logical-and", "or": "logical-or"}[op]
        s.case(f"bool-{name}", "bools", {"x": x, "y": y, "z": Output("i1", r), "N": N}, with_={"EXPR": f"a {op} b", "T": "tl.int1"})


def forms(s):
    """A run-time scalar or a block of one element on either side."""
    text = """
        @triton.jit
        def kernel(x, y, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = ${A}
            b = ${B}
            tl.store(z + i, a ${OP} b)
    """
    s.kernel("forms", text)
    block, scalar, single = "tl.load({0} + i)", "tl.load({0})", "tl.load({0} + tl.arange(0, 1))"
    seed = 9000
    for t in ("i8", "i32", "u32", "i64", "fp16", "bf16", "fp32", "fp64"):
        for name, left, right in (("scalar-right", block, scalar), ("scalar-left", scalar, block), ("one-right", block, single), ("one-left", single, block)):
            for op in "+*-":
                if op == "-" and t not in ("i32", "fp32"):
                    continue
                seed += 1
                x, y = numbers(t, N if left is block else 1, seed), numbers(t, N if right is block else 1, seed + 50)
                r = np.broadcast_to(apply(op, t, x.values, y.values), (N,))
                s.case(f"{name}-{ {'+': 'add', '*': 'mul', '-': 'sub'}[op]}-{t}", "forms", {"x": x, "y": y, "z": Output(t, r), "N": N},
                       with_={"A": left.format("x"), "B": right.format("y"), "OP": op})


def bitwise(s):
    s.kernel("bitwise", ELEMENTWISE)
    whole = INTS + UINTS
    seed = 20000
    for index, (tx, ty) in enumerate(itertools.product(whole, whole)):
        for number, op in enumerate("&|^"):
            if tx != ty and (index + number) % 3:
                continue
            seed += 1
            x, y = ints(tx, N, seed), ints(ty, N, seed + 3000)
            t = promote(tx, ty)
            r = apply(op, t, convert(x.values, tx, t), convert(y.values, ty, t))
            s.case(f"{ {'&': 'and', '|': 'or', '^': 'xor'}[op]}-{tx}-{ty}", "bitwise", {"x": x, "y": y, "z": Output(t, r), "N": N},
                   with_={"EXPR": f"a {op} b", "T": TL[t]})
    for index, (tx, ty) in enumerate([(f, w) for f in FLOATS for w in ("i32", "fp32", f)] + [(w, f) for w in ("i8", "u64") for f in FLOATS]):
        op = "&|^"[index % 3]
        x, y = numbers(tx, N, 1), numbers(ty, N, 2)
        s.case(f"reject-{index}-{tx}-{ty}", "bitwise", {"x": x, "y": y, "z": Output("fp32", np.zeros(N)), "N": N},
               with_={"EXPR": f"a {op} b", "T": "tl.int32"}, error="invalid operands of type")


def shifts(s):
    s.kernel("shift", ELEMENTWISE)
    whole = INTS + UINTS
    seed = 30000
    for index, (tx, ty) in enumerate(itertools.product(whole, whole)):
        for number, op in enumerate(("<<", ">>")):
            if tx != ty and (index + number + index // 8) % 2:
                continue
            seed += 1
            t = promote(tx, ty)
            x, y = ints(tx, N, seed), ints(ty, N, seed + 3000, low=0, high=min(bits_of(t) - 1, 127))
            a = convert(x.values, tx, t).astype(object)
            b = convert(y.values, ty, t).astype(object)
            width = bits_of(t)
            if op == "<<":
                r = [int(p) << int(q) for p, q in zip(a, b)]
            else:  # arithmetic where the left operand was signed
                r = []
                for p, q in zip(a, b):
                    p = int(p) % 2**width
                    if is_signed(tx) and p >= 2 ** (width - 1):
                        p -= 2**width
                    r.append(p >> int(q))
            r = np.array([v % 2**64 for v in r], dtype=np.uint64).astype(convert(x.values, tx, t).dtype)
            s.case(f"{ {'<<': 'left', '>>': 'right'}[op]}-{tx}-{ty}", "shift", {"x": x, "y": y, "z": Output(t, r), "N": N},
                   with_={"EXPR": f"a {op} b", "T": TL[t]})


def floordiv(s):
    s.kernel("floordiv", ELEMENTWISE)
    seed = 40000
    for group in (INTS, UINTS):
        for tx, ty in itertools.product(group, group):
            seed += 1
            t = promote(tx, ty)
            x, y = ints(tx, N, seed, nonzero=True), ints(ty, N, seed + 3000, nonzero=True)
            if is_signed(t):
                y = Input(ty, N, {**y.rule, "low": -120, "high": 120})
                x = Input(tx, N, {**x.rule, "low": int(np.iinfo(x.values.dtype).min) + 1})
            r = apply("//", t, convert(x.values, tx, t), convert(y.values, ty, t))
            s.case(f"{tx}-{ty}", "floordiv", {"x": x, "y": y, "z": Output(t, r), "N": N}, with_={"EXPR": "a // b", "T": TL[t]})
    for tx, ty in [("fp32", "fp32"), ("fp16", "i32"), ("i32", "bf16"), ("fp64", "fp64"), ("i8", "fp32")]:
        s.case(f"reject-{tx}-{ty}", "floordiv", {"x": numbers(tx, N, 1), "y": numbers(ty, N, 2), "z": Output("fp32", np.zeros(N)), "N": N},
               with_={"EXPR": "a // b", "T": "tl.int32"}, error="invalid operands of type")
    for tx, ty in [("i32", "u32"), ("u64", "i8"), ("i64", "u16")]:
        s.case(f"signedness-{tx}-{ty}", "floordiv", {"x": numbers(tx, N, 1), "y": numbers(ty, N, 2), "z": Output("fp32", np.zeros(N)), "N": N},
               with_={"EXPR": "a // b", "T": "tl.int32"}, error=["Cannot use", "different signedness"])


OPERATORS = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def compare(s):
    s.kernel("compare", ELEMENTWISE)
    s.kernel("six", """
        @triton.jit
        def kernel(x, y, eq, ne, lt, le, gt, ge, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            b = tl.load(y + i)
            tl.store(eq + i, a == b)
            tl.store(ne + i, a != b)
            tl.store(lt + i, a < b)
            tl.store(le + i, a <= b)
            tl.store(gt + i, a > b)
            tl.store(ge + i, a >= b)
    """)
    names = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    seed = 50000

    def operands(tx, ty):
        # Half of the elements are equal numbers where the types allow.
        x, y = numbers(tx, N, seed), numbers(ty, N, seed + 4000)
        small = [0, 1, 2, 3, 100, 127, 1, 0]
        x = Input(tx, N, {**x.rule, "first": small * 4 + ([-1, -2, -128, -1] if is_signed(tx) or is_float(tx) else [200, 255, 128, 3])})
        y = Input(ty, N, {**y.rule, "first": small * 3 + [0, 2, 1, 3, 99, 127, 2, 1] + ([-1, -3, 127, 1] if is_signed(ty) or is_float(ty) else [255, 254, 3, 200])})
        return x, y

    for tx, ty in itertools.product(ALL, ALL):
        seed += 1
        x, y = operands(tx, ty)
        t = promote(tx, ty)
        a, b = convert(x.values, tx, t), convert(y.values, ty, t)
        if tx == ty:
            for op in OPERATORS:
                s.case(f"{names[op]}-{tx}", "compare", {"x": x, "y": y, "z": Output("i1", OPERATORS[op](a, b)), "N": N},
                       with_={"EXPR": f"a {op} b", "T": "tl.int1"})
        else:
            outs = {names[op]: Output("i1", f(a, b)) for op, f in OPERATORS.items()}
            s.case(f"six-{tx}-{ty}", "six", {"x": x, "y": y, **outs, "N": N})
    for t in FLOATS:
        k = len(FLOAT_CORNERS)
        n = 256
        x = Input(t, n, {"values": [FLOAT_CORNERS[i // k % k] for i in range(n)]})
        y = Input(t, n, {"values": [FLOAT_CORNERS[i % k] for i in range(n)]})
        with np.errstate(all="ignore"):
            for op, f in OPERATORS.items():
                s.case(f"corners-{names[op]}-{t}", "compare", {"x": x, "y": y, "z": Output("i1", f(x.values, y.values)), "N": n},
                       with_={"EXPR": f"a {op} b", "T": "tl.int1"})


def literals(s):
    """A literal against a tensor (triton_language.md 3.2, rule 1)."""
    s.kernel("literal", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            a = tl.load(x + i)
            r = ${EXPR}
            tl.static_assert(r.dtype == ${T})
            tl.store(z + i, r)
    """)
    f4 = np.float32

    def case(name, tx, expr, t, function=None, error=None, **rule):
        x = numbers(tx, N, 60000 + len(s.names)) if tx != "i1" else ints("i1", N, 60000 + len(s.names))
        with np.errstate(all="ignore"):
            z = Output(t, function(x.values) if function else np.zeros(N, "?"), **rule)
        s.case(f"{name}", "literal", {"x": x, "z": z, "N": N}, with_={"EXPR": expr, "T": TL[t]}, **({"error": error} if error else {}))

    def rounded(t, v):
        return decode(t, encode(t, v))

    for t in INTS + UINTS:
        w = numbers(t, N, 1).values.dtype.type
        case(f"{t}-plus-2", t, "a + 2", t, lambda v: v + w(2))
        case(f"2-minus-{t}", t, "2 - a", t, lambda v: w(2) - v)
        case(f"{t}-times-3", t, "a * 3", t, lambda v: v * w(3))
        case(f"{t}-by-2", t, "a / 2", "fp32", lambda v: v.astype(f4) / f4(2))
        case(f"{t}-floor-7", t, "a // 7", t, lambda v: apply("//", t, v, np.full(N, 7, v.dtype)))
        case(f"{t}-mod-7", t, "a % 7", t, lambda v: np.fmod(v, w(7)))
        case(f"{t}-float", t, "a * 2.5", "fp32", lambda v: v.astype(f4) * f4(2.5))
        case(f"{t}-true", t, "a + True", t, lambda v: v + w(1))
        case(f"{t}-and-15", t, "a & 15", t, lambda v: v & w(15))
        case(f"{t}-right-3", t, "a >> 3", t, lambda v: v >> w(3))
    for t, value in [("i8", 300), ("i8", -129), ("u8", 256), ("i16", 32768), ("u16", 70000), ("i32", 2**31), ("u32", 2**32), ("i64", 2**63)]:
        case(f"range-{t}-{value}", t, f"a + ({value})", t, error="is out of range for type")
    for t in UINTS:
        case(f"negative-{t}", t, "a + (-1)", t, error=["unsigned", "negative"])
    for t in ("fp16", "bf16", "fp32", "fp64"):
        w = (lambda v, t=t: v.astype("f4")) if t == "bf16" else (lambda v, t=t: v)
        wide_t = "fp32" if t in ("fp16", "bf16") else t
        k = np.float64 if t == "fp64" else np.float32
        to = (lambda v, wide_t=wide_t: v.astype("f8" if wide_t == "fp64" else "f4"))
        case(f"{t}-plus-2", t, "a + 2", t, lambda v: rounded(t, w(v) + np.array(2, w(v).dtype)))
        case(f"{t}-times-2.5", t, "a * 2.5", t, lambda v: rounded(t, w(v) * np.array(2.5, w(v).dtype)))
        case(f"{t}-minus-tenth", t, "a - 0.1", t, lambda v: rounded(t, w(v) - (rounded(t, np.float64(0.1)).astype(w(v).dtype))))
        case(f"{t}-by-3", t, "a / 3", wide_t, lambda v: to(v) / k(3), **tolerance(wide_t, "/"))
        case(f"{t}-mod-0.5", t, "a % 0.5", wide_t, lambda v: np.fmod(to(v), k(0.5)), **tolerance(wide_t, "%"))
        case(f"1-by-{t}", t, "1.0 / a", wide_t, lambda v: k(1) / to(v), **tolerance(wide_t, "/"))
        case(f"{t}-true", t, "a + True", t, lambda v: rounded(t, w(v) + np.array(1, w(v).dtype)))
        case(f"{t}-greater-half", t, "a > 0.5", "i1", lambda v: to(v) > k(0.5))
        case(f"{t}-less-tenth", t, "a < 0.1", "i1", lambda v: (v.astype("f8") < 0.1) if t == "fp64" else to(v) < f4(0.1))
        case(f"{t}-floor", t, "a // 2", t, error="invalid operands of type")
    case("i1-plus-2", "i1", "a + 2", "i32", lambda v: v.astype("i4") + 2)
    case("i1-plus-1.5", "i1", "a + 1.5", "fp32", lambda v: v.astype("f4") + f4(1.5))
    case("i1-xor-true", "i1", "a ^ True", "i1", lambda v: v ^ True)
    case("i8-less-300", "i8", "a < 300", "i1", lambda v: v < 300)
    case("u8-equal-minus-1", "u8", "a == -1", "i1", lambda v: v.astype("i4") == -1)
    case("u32-less-0", "u32", "a > 5", "i1", lambda v: v > 5)
    case("i32-large", "i32", "a + 2147483647", "i32", lambda v: v + np.int32(2147483647))
    case("i64-large", "i64", "a + 4294967296", "i64", lambda v: v + np.int64(2**32))
    # Only constants: Python's rules.
    s.kernel("constants", """
        @triton.jit
        def kernel(z, A: tl.constexpr, B: tl.constexpr):
            tl.store(z, ${EXPR})
    """)
    for index, (a, b) in enumerate([(-7, 2), (7, -2), (7, 3), (-7, -2), (100, 7), (2, 10)]):
        for op in ("+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "<", ">=", "=="):
            if (op in ("**",) and abs(a * b) > 30) or (op in ("**", "<<", ">>") and b < 0) or (op == "<<" and abs(a) > 50 and b > 8):
                continue
            if index > 1 and op not in ("/", "//", "%", "**", ">>"):
                continue
            value = eval(f"({a}) {op} ({b})")
            t = "fp32" if isinstance(value, float) else "i32"
            s.case(f"constants-{index}-{len(s.names)}", "constants", {"z": Output(t, np.array([value], dtype="f4" if t == "fp32" else "i4")), "A": a, "B": b},
                   with_={"EXPR": f"A {op} B"})
    for a, b in ((-7, 2), (7, -2)):  # the same with run-time operands: C's rules
        s.case(f"runtime-floor-{a}-{b}", "constants", {"z": Output("i32", np.array([int(a / b)], "i4")), "A": a, "B": b}, with_={"EXPR": "(tl.load(z) + A) // B"})
        s.case(f"runtime-mod-{a}-{b}", "constants", {"z": Output("i32", np.array([np.fmod(a, b)], "i4")), "A": a, "B": b}, with_={"EXPR": "(tl.load(z) + A) % B"})
    s.case("runtime-power", "constants", {"z": Output("i32", np.zeros(1, "i4")), "A": 2, "B": 2}, with_={"EXPR": "tl.load(z) ** B"}, error="**")


def sizes(s):
    """Other sizes and numbers of warps."""
    s.kernel("elementwise", ELEMENTWISE)
    for n in (1, 2, 16, 32, 64, 256, 1024, 4096):
        for warps in (1, 2, 4, 8):
            if (n, warps) in ((1, 8), (2, 2), (4096, 1)):
                continue
            x, y = numbers("fp32", n, n + warps), numbers("i16", n, n)
            s.case(f"{n}-warps-{warps}", "elementwise", {"x": x, "y": y, "z": Output("fp32", x.values * y.values.astype("f4")), "N": n},
                   with_={"EXPR": "a * b", "T": "tl.float32"}, warps=warps)


def build():
    for name, function in (("binary", lambda s: (arithmetic(s), corners(s), forms(s))), ("bitwise", bitwise), ("shift", shifts), ("floordiv", floordiv),
                           ("compare", compare), ("literal", literals), ("sizes", sizes)):
        s = Suite(name)
        function(s)
        yield s
