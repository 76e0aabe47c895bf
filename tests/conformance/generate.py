#!/usr/bin/env python3
"""Makes tests/conformance/cases from the modules in generator/. Needs NumPy (Debian: python3-numpy).

usage: generate.py [AREA...]   write the cases (of these files only)
       generate.py --check     exit status 1 if the committed files are not what would be written
"""
import importlib
import pathlib
import struct
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "generator"))
MODULES = sorted(path.stem for path in (HERE / "generator").glob("area_*.py"))


def suites():
    for module in MODULES:
        yield from importlib.import_module(module).build()


# NumPy computes exp, sin, pow and their like by what the processor has: their last bits differ from machine to machine.
LAST_BITS_DIFFER = {"math.ref", "libdevice.ref"}
MOST_BYTES_THAT_DIFFER = 0.02


def is_same(name, committed, fresh):
    if committed == fresh or name not in LAST_BITS_DIFFER or len(committed) != len(fresh):
        return committed == fresh
    return sum(a != b for a, b in zip(committed, fresh)) <= MOST_BYTES_THAT_DIFFER * len(fresh)


def unpacked(path):
    data = path.read_bytes()
    return zlib.decompress(data[8:]) if path.suffix == ".ref" else data


def check():
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder)
        names = {suite.name for suite in suites() if suite.write(fresh)}
        stale = []
        for path in sorted(fresh.iterdir()):
            committed = HERE / "cases" / path.name
            if not committed.exists() or not is_same(path.name, unpacked(committed), unpacked(path)):
                stale.append(path.name)
        print("stale: " + ", ".join(stale) if stale else f"{len(names)} files are what the generator makes")
        return 1 if stale else 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    total = 0
    for suite in suites():
        if not sys.argv[1:] or suite.name in sys.argv[1:]:
            count = suite.write(HERE / "cases")
            print(f"{suite.name}: {count} cases, {len(suite.blob)} bytes of references")
            total += count
    print(f"{total} cases")
    return 0


sys.exit(main())
