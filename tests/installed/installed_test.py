#!/usr/bin/env python3
"""Installs the library into a prefix and uses it as a stranger does: the examples are built outside of the tree, with CMake and with
pkg-config, and must print what they say.

usage: installed_test.py BUILD_DIR
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/library"
MOST_RUNTIME_BYTES = 5_500_000
failures = []


def run(*command, **options):
    """Runs a command; its standard output, or an end of the test that shows both outputs."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"installed: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, text):
    if not condition:
        failures.append(text)


def promised_output(source):
    """The line behind "Prints:" in the comment at the head of an example."""
    return re.search(r"Prints:\n(?:\s*//|\s\*)\s+(.*)", source.read_text()).group(1) + "\n"


def check_symbols(library):
    """The library exports the header's functions and nothing else."""
    declared = set(re.findall(r"^DITRON_API .*?\b(ditron_[a-z_]+)\(", (ROOT / "include/ditron/ditron.h").read_text(), re.M))
    table = run("nm", "-D", "--defined-only", library)
    exported = {line.split()[-1].split("@")[0] for line in table.splitlines()}
    expect(declared and exported == declared, f"{library.name} exports {sorted(exported ^ declared)[:5]} ... against the header")
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", library))
    system = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s|atomic)\.so|ld-linux")
    foreign = [name for name in needed if not system.match(name)]
    expect(not foreign, f"{library.name} needs {foreign}")


def run_examples(folder, environment=None):
    for source in sorted(EXAMPLES.glob("*.c*")):
        printed = run(folder / source.stem, cwd="/", env=environment)
        expect(printed == promised_output(source), f"{source.name} printed {printed!r}")


def run_from_package(ditron, folder, work):
    """The server's loop without a compiler: from a package, and what it says without one or with another."""
    shapes, package, other = work / "shapes.txt", work / "server.ditron", work / "other.ditron"
    shapes.write_text("m=96 n=64 k=32 ranks=4 dtype=fp32\n")
    run(ditron, "build", "--op", "ag_gemm", "--shapes", shapes, "--target", "sim:sm_80", "-o", package)
    printed = run(folder / "server_loop_runtime", "sim:sm_80", package)
    expect(printed == promised_output(EXAMPLES / "server_loop.c"), f"server_loop_runtime printed {printed!r}")
    shapes.write_text("".join(f"elements={size} ranks=4 dtype=fp32 max_elements=100000\n" for size in (64, 4096, 100000)))
    run(ditron, "build", "--op", "all_reduce", "--shapes", shapes, "--target", "sim:sm_80", "-o", package)
    printed = run(folder / "all_reduce_runtime", "sim:sm_80", package)
    expect(printed == promised_output(EXAMPLES / "all_reduce.cpp"), f"all_reduce_runtime printed {printed!r}")
    shapes.write_text("m=96 n=128 k=64 ranks=2 dtype=bf16\n")
    run(ditron, "build", "--op", "ag_gemm", "--shapes", shapes, "--target", "sim:sm_80", "-o", other)
    for arguments, reason in [(["sim:sm_80", other], "ditron build"), (["sim:sm_80"], "libditron_runtime has no compiler")]:
        done = subprocess.run([folder / "server_loop_runtime", *arguments], capture_output=True, text=True)
        expect(done.returncode == 1 and reason in done.stderr, f"without its package the server said {done.stderr!r}")


def with_cmake(prefix, work, ditron):
    build = work / "with cmake"
    run("cmake", "-S", EXAMPLES, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_COMPILER=clang-22",
        "-DCMAKE_CXX_COMPILER=clang++-22")
    run("cmake", "--build", build)
    run_examples(build)
    run_from_package(ditron, build, work)


def with_pkg_config(prefix, work):
    folder = work / "with pkg-config"
    folder.mkdir()
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "ditron", env=environment))
    for source in sorted(EXAMPLES.glob("*.c*")):
        compiler = ["clang-22", "-std=c99"] if source.suffix == ".c" else ["clang++-22", "-std=c++17"]
        run(*compiler, "-Wall", "-Wextra", "-Werror", source, *flags, "-lm", "-o", folder / source.stem)
    run_examples(folder, dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib")))


def with_packages(prefix, work):
    """Kernels that are compiled when a program is built; the program links the library that has no compiler."""
    source, build = ROOT / "examples/packaged", work / "with packages"
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_COMPILER=clang++-22")
    run("cmake", "--build", build)
    printed = run(build / "packaged", cwd="/")
    expect(printed == promised_output(source / "packaged.cpp"), f"packaged.cpp printed {printed!r}")
    needed = run("objdump", "-p", build / "packaged")
    expect("libditron_runtime" in needed and "LLVM" not in needed, f"packaged needs {needed}")


def with_imports(prefix, work):
    """A package is made anew when a file changes that its kernel file imports."""
    source, build = work / "importing", work / "importing build"
    shutil.copytree(ROOT / "examples/packaged", source)
    part, kernels = source / "part.py", source / "kernels.py"
    part.write_text("import triton\n\n\n@triton.jit\ndef moved(value, by):\n    return value + by\n")
    loaded = "tl.load(x_ptr + offsets, mask=mask)"
    kernels.write_text("from part import moved\n" + kernels.read_text().replace(f"{loaded} + by", f"moved({loaded}, by)"))
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_COMPILER=clang++-22")
    run("cmake", "--build", build)
    first = run(build / "packaged", cwd="/")
    expect(first == promised_output(source / "packaged.cpp"), f"with an import packaged.cpp printed {first!r}")
    part.write_text(part.read_text().replace("value + by", "value + by + 1"))
    run("cmake", "--build", build)
    done = subprocess.run([build / "packaged"], capture_output=True, text=True, cwd="/")
    expect(done.stdout != first, "a changed import did not make the package anew")


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="ditron installed ") as text:
        work = pathlib.Path(text)
        prefix = work / "a prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        headers = sorted(path.name for path in (prefix / "include/ditron").iterdir())
        expect(headers == ["ditron.h", "ditron.hpp", "version.h"], f"headers {headers}")
        for library in sorted((prefix / "lib").glob("libditron*.so")):
            check_symbols(library)
        runtime = prefix / "lib/libditron_runtime.so"
        if runtime.exists():
            stripped = work / "stripped"
            shutil.copy(runtime, stripped)
            run("strip", stripped)
            expect(stripped.stat().st_size <= MOST_RUNTIME_BYTES, f"libditron_runtime.so has {stripped.stat().st_size} bytes")
        with_cmake(prefix, work, build / "bin/ditron")
        with_packages(prefix, work)
        with_imports(prefix, work)
        if shutil.which("pkg-config"):
            with_pkg_config(prefix, work)
        else:
            print("installed: no pkg-config here: that way was not tried")
    for failure in failures:
        print("installed:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
