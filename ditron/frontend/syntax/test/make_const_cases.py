#!/usr/bin/env python3
"""Writes ConstCases.inc: compile-time expressions and what Python 3.11 makes of them.

usage: make_const_cases.py > ConstCases.inc

Each row is CASE("expression", "repr of the value") or FAILS("expression", "message"). The sample is fixed by its seed.
Left out: complex results and very long integers.
"""
import itertools
import random
import warnings

warnings.simplefilter("ignore")
INTS = ["0", "1", "2", "3", "7", "10", "64", "255", "4096", "2147483648", "9223372036854775807", "9223372036854775808",
        "18446744073709551617", "10000000000000000000000001", "0x" + "f" * 30]
FLOATS = ["0.0", "0.5", "1.5", "2.0", "1e16", "1e-5", "0.1", "1e22", "1.7976931348623157e308", "5e-324", "1e999",
          "(1e999 - 1e999)", "123456789.125"]
SMALL = ["0", "1", "2", "5", "63", "200", "-1", "True", "False"]
OTHERS = ["True", "False", "None", "'a'", "'abc'", "''", "b'x'", "..."]
NUMBERS = INTS + ["-" + i for i in INTS] + FLOATS + ["-" + f for f in FLOATS] + ["True", "False"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "^", "&", "@"]
COMPARE = ["==", "!=", "<", "<=", ">", ">="]
SPECS = ["", "5", "<5", ">5", "^7", "05", "+", " ", "d", "x", "#x", "#X", "b", "#010b", "o", ",", "_", "_x", "015,", "e",
         ".3e", "f", ".2f", "08.3f", ".0f", "g", ".3g", "#g", "G", "E", "%", ".1%", "*^12", "=+8", ".3", "10.4", "s", "q",
         ".2", "+.1f", ",.2f", "#.0f", "é>6", "é^9.2f"]


def expressions(rng):
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    for op in BINARY:
        # Powers and shifts of wide numbers only by small amounts.
        pool = list(itertools.product(NUMBERS, SMALL)) if op in ("**", "<<", ">>") else pairs
        for a, b in rng.sample(pool, min(len(pool), 60)):
            yield f"{'(' + a + ')' if a.startswith('-') else a} {op} {b}"
        for a, b in rng.sample(list(itertools.product(OTHERS, OTHERS + ["3", "2.5"])), 40):
            if op != "%" or "'" not in a:  # the formatting of strings is not supported
                yield f"{a} {op} {b}"
        for b in OTHERS:
            yield f"3 {op} {b}"
            yield f"2.5 {op} {b}"
    for op in COMPARE:
        for a, b in rng.sample(pairs, 40):
            yield f"{a} {op} {b}"
        for a, b in itertools.product(OTHERS + ["1", "97.0"], OTHERS + ["1"]):
            yield f"{a} {op} {b}"
    for a, b in itertools.product(["'b'", "''", "'abcd'", "1", "b'x'", "120", "300"], ["'abc'", "b'xyz'", "3"]):
        yield f"{a} in {b}"
        yield f"{a} not in {b}"
    for value in NUMBERS + OTHERS:
        for op in ["-", "+", "~", "not "]:
            yield f"{op}{value}"
        yield f"int({value})"
        yield f"float({value})"
    for text in ["'12'", "' -7 '", "'1_000'", "'1__0'", "'_1'", "'0x10'", "'+5'", "''", "'1.5'", "'abc'", "b'42'",
                 "'9' * 30", "'- 1'"]:
        yield f"int({text})"
    for text, base in [("'ff'", 16), ("'0xff'", 16), ("'0b101'", 2), ("'101'", 2), ("'0o17'", 0), ("'0x_f'", 0),
                       ("'012'", 0), ("'12'", 0), ("'000'", 0), ("'19'", 8)]:
        yield f"int({text}, {base})"
    for text in ["'inf'", "'-Infinity'", "'nan'", "' 1e3 '", "'1_0.5'", "'.5'", "'5.'", "'.'", "'1e'", "'e5'", "'1e400'",
                 "'1e-400'", "'-0'", "'0x1p3'", "'infi'", "'1_.5'", "b'2.5'"]:
        yield f"float({text})"
    for value in ["''", "'abc'", "'aé€😀'", "b'abc'", "3", "None"]:
        yield f"len({value})"
    for value in ["0", "7", "-42", "1234567", "0.0", "3.14159", "-1234567.891", "1e20", "1e-7", "100.0", "1e999",
                  "'text'", "'é'", "True", "None", "(1e999 - 1e999)", "0.5", "-0.0", "99999.5"]:
        for spec in SPECS:
            yield f"format({value}, {spec!r})"
    for value in ["1e15", "1e16", "1e17", "123456789012345.6", "0.0001", "0.00001", "1.0", "100.0", "1e100", "2.5e-310",
                  "9007199254740993.0", "0.1 + 0.2", "1e23", "4.35", "2 ** 0.5"]:
        yield value
    for text in ["'it\\'s'", "'\"'", "'\\'\"'", "'\\n\\t\\r\\\\'", "'\\x00\\x7f'", "'é\\xa0\\xad\\u200b😀'", "b'\\xff\\'\\\\a'",
                 "'a' 'b'"]:
        yield text
    # Rounding of quotients and of integers that become floats.
    for _ in range(50):
        a, b = (rng.getrandbits(rng.choice([10, 60, 70, 200, 1200])) | 1 for _ in range(2))
        yield f"{hex(a)} / {hex(b)}"
        yield f"-{hex(a)} // {hex(b)}"
        yield f"{hex(a)} % -{hex(b)}"
    for shift in [53, 54, 55, 64, 100]:
        for low in [0, 1, 2, 3]:
            yield f"float((1 << {shift}) + ((1 << {shift}) >> 53) * {low} + {low})"
            yield f"float((1 << {shift}) + ((1 << {shift}) >> 54) * {low})"
    for a, b in [("1", "10 ** 323"), ("1", "10 ** 324"), ("3", "2 ** 1075"), ("1", "2 ** 1075"), ("3", "2 ** 1076"),
                 ("2 ** 1074 - 1", "2 ** 2000"), ("10 ** 400", "10 ** 399"), ("2 ** 1024", "1"), ("2 ** 1024 - 1", "1"),
                 ("2 ** 1024 - 2 ** 970", "1"), ("2 ** 1024 - 2 ** 970 - 1", "1"), ("5", "2 ** 1076"), ("7", "2 ** 1077")]:
        yield f"({a}) / ({b})"
    for a, b in [("2 ** 53 + 1", "float(2 ** 53)"), ("2 ** 1024", "1e999"), ("10 ** 30", "1e30"), ("1", "1.5"),
                 ("-1", "-1.5"), ("2 ** 70", "(1e999 - 1e999)"), ("0", "-0.0"), ("0", "0.5"), ("0", "-0.5")]:
        for op in COMPARE:
            yield f"{a} {op} {b}"
            yield f"{b} {op} {a}"


def c_string(text):
    out = '"'
    for char in text:
        if char in '"\\':
            out += "\\" + char
        elif char == "\n":
            out += "\\n"
        elif ord(char) < 32 or char == "\x7f":
            out += "\\%03o" % ord(char)
        else:
            out += char
    return out + '"'


def main():
    rng = random.Random(20260)
    seen = set()
    print("// Made by make_const_cases.py with CPython 3.11. Do not edit.")
    for expression in expressions(rng):
        if expression in seen:
            continue
        seen.add(expression)
        try:
            value = eval(expression)
        except Exception as error:
            print(f"FAILS({c_string(expression)}, {c_string(str(error))})")
            continue
        if isinstance(value, complex) or (isinstance(value, int) and abs(value).bit_length() > 1000):
            continue
        print(f"CASE({c_string(expression)}, {c_string(repr(value))})")


if __name__ == "__main__":
    main()
