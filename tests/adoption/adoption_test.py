#!/usr/bin/env python3
"""utils/adoption on a small project of our own: every category, with the real compiler and with one that misbehaves.

usage: tests/adoption/adoption_test.py PATH/TO/ditron
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FAILURES = []


def expect(what, got, wanted):
    if got != wanted:
        FAILURES.append(f"{what}: got {got!r}, expected {wanted!r}")


def survey(folder, project, *options):
    """(exit code, the text, kernel -> its entry in the JSON, the project's summary)."""
    file = pathlib.Path(folder) / "out.json"
    command = [sys.executable, str(ROOT / "utils/adoption"), f"p={project}", "--json", str(file), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if not file.exists():
        sys.exit(f"adoption wrote nothing:\n{done.stdout}{done.stderr}")
    data = json.loads(file.read_text())["p"]
    file.unlink()
    return done.returncode, done.stdout + done.stderr, {k["kernel"]: k for k in data["kernels"]}, data["summary"]


def check_real(folder, ditron):
    code, text, kernels, summary = survey(folder, HERE / "project", "--ditron", ditron)
    expect("exit code", code, 0)
    kinds = {
        "scale": "compiled",
        "gather_rows": "compiled",
        "column_sums": "compiled",
        "copy_tiles": "compiled",
        "clear": "compiled",
        "make_kernel.made": "compiled",
        "build": "compiled",
        "leaves_a_gap": "guess",
        "refused_by_name": "unsupported",
        "fits_no_type": "guess",
        "needs_a_function": "unguessable",
    }
    expect("kinds", {name: kernel["kind"] for name, kernel in kernels.items()}, kinds)
    expect("percent", summary["percent"], 87.5)
    expect("kernels without a verdict", summary["no verdict"], 3)
    expect(
        "signature from uses and launch",
        kernels["scale"]["signature"],
        "x=*bf16:16, out=*bf16:16, factor=fp32, n=i32, constexpr BLOCK=256",
    )
    expect(
        "pointers through called functions, a string from a launch",
        kernels["gather_rows"]["signature"],
        'source=*bf16:16, which=*i32:16, out=*bf16:16, stride_row=i32:16, width=i32, constexpr MODE="none", '
        "constexpr WIDTH=128, constexpr HAS_BIAS=True, bias=*bf16:16",
    )
    expect(
        "values of the configuration",
        kernels["column_sums"]["signature"],
        "x=*bf16:16, out=*bf16:16, m=i32, n=i32, stride=i32:16, constexpr BLOCK_M=32, constexpr BLOCK_N=64",
    )
    expect(
        "a switch for a called function",
        kernels["build"]["signature"],
        "x=*bf16:16, n=i32, constexpr FP32_SCALE=True, constexpr BLOCK=1024",
    )
    expect(
        "descriptors",
        kernels["copy_tiles"]["signature"],
        "source=tensordesc<bf16[64,64]>:16, result=tensordesc<bf16[64,64]>:16, rows=i32",
    )
    for part in (
        "| p | 11 | 7 | 1 | 3 | 0 | 0 | 0 | 87.5 % |",
        "type fp8e4b8 not supported",
        "compiled, with a warning",
        "what the decorator '...' does to launches is not known",
        "project/ops/others.py:8".removeprefix("project/"),
    ):
        expect(f"'{part}' in the text", part in text, True)


def check_wheel(folder, ditron):
    wheel = pathlib.Path(folder) / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted((HERE / "project").rglob("*.py")):
            archive.write(file, "p/" + str(file.relative_to(HERE / "project")))
    code, _, kernels, _ = survey(folder, wheel, "--ditron", ditron, "--import-only", "--exclude", "*/others.py")
    expect("exit code", code, 0)
    expect(
        "kernels of a wheel",
        {n: k["kind"] for n, k in kernels.items()},
        dict.fromkeys(("scale", "gather_rows", "column_sums", "copy_tiles", "clear", "make_kernel.made", "build"), "compiled")
        | {"leaves_a_gap": "guess"},
    )


def check_loud(folder):
    code, text, kernels, summary = survey(folder, HERE / "loud.py", "--ditron", str(HERE / "stand_in.py"), "--limit", "1")
    expect("exit code", code, 1)
    expect(
        "loud kinds",
        {name: kernel["kind"] for name, kernel in kernels.items()},
        {"makes_it_crash": "crash", "meets_a_bug": "compiler bug", "never_ends": "hang", "is_fine": "compiled"},
    )
    expect("counts", [summary[key] for key in ("crash", "compiler bug", "hang", "compiled")], [1, 1, 1, 1])
    for part in ("CRASH: loud.py:7 makes_it_crash: signal 11", "COMPILER BUG: loud.py:12", "HANG: loud.py:17"):
        expect(f"'{part}' in the text", part in text, True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_real(folder, sys.argv[1])
        check_wheel(folder, sys.argv[1])
        check_loud(folder)
    print("\n".join(FAILURES) if FAILURES else "adoption: every category is told apart")
    return 1 if FAILURES else 0


sys.exit(main())
