"""Casts: between all types, narrow floats exhaustively, rounding towards zero, bitcasts."""
import itertools

import numpy as np

from formats import ALL, FLOATS, INTS, NUMPY, TL, UINTS, bits_of, convert, decode, encode, is_float, is_int, is_signed
from suite import Input, Output, Suite, bell, ints, listed, uniform

N = 256
KERNEL = """
    @triton.jit
    def kernel(x, z, N: tl.constexpr):
        i = tl.program_id(0) * N + tl.arange(0, N)
        r = ${EXPR}
        tl.static_assert(r.dtype == ${T})
        tl.store(z + i, r)
"""
FP8 = ["fp8e5", "fp8e4nv"]


def source(tx, tz, seed):
    """Values of tx that tz can hold."""
    if tx == "i1":
        return ints("i1", N, seed)
    if is_float(tx):
        if is_float(tz):
            return bell(tx, N, seed, scale=30, first=["nan", "inf", "-inf", "-0.0", 0, "1e-7", 65504, "3e38", "-1e-40"])
        if tz == "i1":
            return Input(tx, N, {"values": [0, "-0.0", 1, -2, 0.5, "nan", "inf", "6e-8"]})
        if is_signed(tz):
            return bell(tx, N, seed, scale=30 if tz == "i8" or tx == "fp16" else 8000, first=[0.5, -0.5, 1.5, -1.5, 0.99, -0.99, "-0.0", 100])
        return uniform(tx, N, seed, low=0, high=255 if tz == "u8" or tx == "fp16" else 60000, first=[0.5, 1.5, 0.99, 2.5])
    if tz in ("fp16",) and bits_of(tx) >= 32:
        return ints(tx, N, seed, low=-70000 if is_signed(tx) else 0, high=70000, first=[65504, 65519, 65520])
    if tz in ("bf16",) and bits_of(tx) == 64:
        return ints(tx, N, seed, low=-2**24 if is_signed(tx) else 0, high=2**24)
    return ints(tx, N, seed)


def between(s):
    s.kernel("cast", KERNEL)
    kinds = ["i1"] + ALL
    for seed, (tx, tz) in enumerate(itertools.product(kinds, kinds)):
        x = source(tx, tz, 100 + seed)
        with np.errstate(all="ignore"):
            r = convert(x.values, tx, tz)
        s.case(f"{tx}-{tz}", "cast", {"x": x, "z": Output(tz, r), "N": N}, with_={"EXPR": f"tl.load(x + i).to({TL[tz]})", "T": TL[tz]})
    # Stores convert as casts do.
    s.kernel("store", """
        @triton.jit
        def kernel(x, z, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(z + i, tl.load(x + i))
    """)
    for seed, (tx, tz) in enumerate([("i32", "i8"), ("i64", "u16"), ("fp32", "fp16"), ("fp32", "bf16"), ("fp64", "fp32"), ("fp16", "bf16"), ("bf16", "fp16"),
                                     ("fp32", "i32"), ("i32", "fp32"), ("u8", "i64"), ("i8", "u32"), ("i1", "fp32"), ("fp16", "i1"), ("fp32", "fp8e5"), ("fp16", "fp8e4nv")]):
        x = source(tx, tz, 900 + seed)
        with np.errstate(all="ignore"):
            s.case(f"store-{tx}-{tz}", "store", {"x": x, "z": Output(tz, convert(x.values, tx, tz)), "N": N})
    x = listed("fp32", ["nan", 0, 1, -1.5])
    s.case("nan-to-i32", "cast", {"x": x, "z": Output("i32", np.array([0, 0, 1, -1], "i4")), "N": 4}, with_={"EXPR": "tl.load(x + i).to(tl.int32)", "T": "tl.int32"})
    # The size of what a warp's threads convert at a time.
    for n, warps in ((16, 1), (32, 4), (1024, 4), (2048, 8)):
        for tx, tz in (("fp32", "bf16"), ("i8", "fp16"), ("fp16", "fp8e5"), ("fp8e4nv", "fp32")):
            x = Input(tx, n, {"fill": "patterns", "low": 20, "high": 100, "seed": 1}) if tx in FP8 else (bell(tx, n, n) if is_float(tx) else ints(tx, n, n))
            s.case(f"{tx}-{tz}-size-{n}-warps-{warps}", "cast", {"x": x, "z": Output(tz, convert(x.values, tx, tz)), "N": n}, warps=warps,
                   with_={"EXPR": f"tl.load(x + i).to({TL[tz]})", "T": TL[tz]})
    # Two casts in a row: the value in the middle is rounded.
    for tx, ty, tz in (("fp32", "fp16", "fp32"), ("fp32", "bf16", "fp32"), ("fp64", "fp32", "fp64"), ("i32", "i8", "i32"), ("u32", "i8", "u32"), ("i32", "u8", "i64"),
                       ("fp32", "fp8e5", "fp32"), ("fp32", "fp8e4nv", "fp32"), ("i32", "fp32", "i32"), ("fp32", "i1", "fp32"), ("i64", "i1", "i32")):
        x = ints(tx, N, 7, low=-70000 if is_signed(tx) else 0, high=70000) if is_int(tx) else bell(tx, N, 7)
        r = convert(convert(x.values, tx, ty), ty, tz)
        s.case(f"{tx}-{ty}-{tz}", "cast", {"x": x, "z": Output(tz, r), "N": N}, with_={"EXPR": f"tl.load(x + i).to({TL[ty]}).to({TL[tz]})", "T": TL[tz]})


def narrow(s):
    """Every bit pattern of the 8 and 16 bit floats."""
    s.kernel("exhaustive", KERNEL)
    for t in FP8:
        for tz in ("fp16", "bf16", "fp32"):
            x = Input(t, 256, {"fill": "count"})
            s.case(f"all-{t}-{tz}", "exhaustive", {"x": x, "z": Output(tz, convert(x.values, t, tz)), "N": 256}, with_={"EXPR": f"tl.load(x + i).to({TL[tz]})", "T": TL[tz]})
        for tx in ("fp16", "bf16"):
            x = Input(tx, 65536, {"fill": "count"})
            with np.errstate(all="ignore"):
                r = convert(x.values, tx, t)
            s.case(f"all-{tx}-{t}", "exhaustive", {"x": x, "z": Output(t, r, sample=65536), "N": 1024}, grid=[64],
                   with_={"EXPR": f"tl.load(x + i).to({TL[t]})", "T": TL[t]})
        for seed, scale in enumerate((1, 100, 20000, 1e-4)):
            x = bell("fp32", 1024, 50 + seed, scale=scale, first=["nan", "inf", "-inf", "-0.0", 448, 464, 465, 57344, 61439, 61440, 65536, -500, "1.5258789e-05", "7.6e-06", "1e-30"])
            s.case(f"fp32-{t}-{seed}", "exhaustive", {"x": x, "z": Output(t, convert(x.values, "fp32", t)), "N": 1024}, with_={"EXPR": f"tl.load(x + i).to({TL[t]})", "T": TL[t]})
    for tx, tz in (("fp16", "fp32"), ("bf16", "fp32"), ("fp16", "bf16"), ("bf16", "fp16"), ("fp16", "fp64"), ("bf16", "fp64")):
        x = Input(tx, 65536, {"fill": "count"})
        with np.errstate(all="ignore"):
            r = convert(x.values, tx, tz)
        s.case(f"all-{tx}-{tz}", "exhaustive", {"x": x, "z": Output(tz, r, sample=4096), "N": 1024}, grid=[64], with_={"EXPR": f"tl.load(x + i).to({TL[tz]})", "T": TL[tz]})
    for tz in ("fp16", "bf16"):  # around halves of the last place
        x = Input("fp32", 4096, {"fill": "count", "start": 0x3F7FF000, "step": 0x123, "first": [65519, 65520, -65520, "3.39e38", "3.4e38", "1e-8", "2.98e-8", "5.9e-8", "1e-45", "nan"]})
        with np.errstate(all="ignore"):
            r = convert(x.values, "fp32", tz)
        s.case(f"ties-fp32-{tz}", "exhaustive", {"x": x, "z": Output(tz, r, sample=4096), "N": 1024}, grid=[4], with_={"EXPR": f"tl.load(x + i).to({TL[tz]})", "T": TL[tz]})
    for tx, tz in (("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5"), ("fp64", "fp32"), ("fp64", "fp16"), ("fp64", "bf16")):
        for mode in ("rtz", "rtne"):
            x = bell(tx, 1024, 77, scale=3, first=[0.1, -0.1, 65503.9, 1.0009765, "1e-7", "-1e-7", "-0.0"])
            v = x.values
            with np.errstate(all="ignore"):
                if tx == "fp64" and bits_of(tz) < 32:  # fp64 narrows directly when a rounding is named, or by way of fp32: both are the same here
                    r = decode(tz, encode(tz, v, mode)) if mode == "rtz" else convert(v, tx, tz)
                elif tz == "fp8e5" and mode == "rtz":
                    r = decode(tz, encode(tz, decode("fp16", encode("fp16", v, "rtz")), "rtz"))
                else:
                    r = decode(tz, encode(tz, v, mode, saturate=tz.startswith("fp8") and mode == "rtne"))
            s.case(f"{mode}-{tx}-{tz}", "exhaustive", {"x": x, "z": Output(tz, r), "N": 1024},
                   with_={"EXPR": f"tl.load(x + i).to({TL[tz]}, fp_downcast_rounding='{mode}')", "T": TL[tz]})


def bitcasts(s):
    s.kernel("bitcast", KERNEL)
    groups = [["i8", "u8", "fp8e5", "fp8e4nv"], ["i16", "u16", "fp16", "bf16"], ["i32", "u32", "fp32"], ["i64", "u64", "fp64"]]
    for group in groups:
        for tx, tz in itertools.permutations(group, 2):
            x = Input(tx, N, {"fill": "bits", "seed": 5})
            if is_float(tz) and not is_float(tx) or is_float(tx):  # no NaN payloads: they may change
                values = decode(tz if is_float(tz) else tx, x.bits.view("u%d" % x.bits.itemsize))
                if np.isnan(values).any():
                    width = bits_of(tx)
                    x = Input(tx, N, {"fill": "bits", "seed": 5, "and": {8: "0xbb", 16: "0xbbff", 32: "0xbfffffff", 64: "0xbfffffffffffffff"}[width]})
            s.case(f"{tx}-{tz}", "bitcast", {"x": x, "z": Output(tz, x.bits.view("u%d" % x.bits.itemsize), bits=True), "N": N},
                   with_={"EXPR": f"tl.load(x + i).to({TL[tz]}, bitcast=True)", "T": TL[tz]})
    for tx, tz in (("i32", "fp64"), ("fp16", "fp32"), ("i8", "i16"), ("fp32", "bf16"), ("i64", "i32")):
        s.case(f"reject-{tx}-{tz}", "bitcast", {"x": Input(tx, N, {"fill": "bits"}), "z": Output(tz, np.zeros(N, NUMPY[tz][1])), "N": N},
               with_={"EXPR": f"tl.load(x + i).to({TL[tz]}, bitcast=True)", "T": TL[tz]}, error="Cannot bitcast data-type of size")
    for name, t in (("fp8e4b8", "tl.float8e4b8"), ("fp8e5b16", "tl.float8e5b16")):
        s.case(f"reject-{name}", "bitcast", {"x": Input("fp32", N, {"fill": "bits"}), "z": Output("fp32", np.zeros(N)), "N": N},
               with_={"EXPR": f"tl.load(x + i).to({t})", "T": "tl.float32"}, error=f"type {name} not supported in this architecture")
    s.case("reject-rounding", "bitcast", {"x": Input("fp32", N, {"fill": "bits"}), "z": Output("fp16", np.zeros(N)), "N": N},
           with_={"EXPR": "tl.load(x + i).to(tl.float16, fp_downcast_rounding='up')", "T": "tl.float16"}, error="rtne")


def build():
    for name, functions in (("cast", (between,)), ("convert", (narrow, bitcasts))):
        s = Suite(name)
        for function in functions:
            function(s)
        yield s
