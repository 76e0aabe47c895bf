#!/usr/bin/env python3
"""Time from the source of a GEMM kernel to its machine code loaded on the GPU: ours and Triton's, on this machine.

usage: bench/gpu/compile_time.py BUILD_DIRECTORY [--rounds N] [--json FILE] [--markdown FILE] [--python PROGRAM]
                                 [--without-triton] [--target sim:sm_90a]

Both compile the same text. Every measurement is a process of its own with nothing cached: our cache is off, Triton's is a fresh
folder, the driver's is off. The rounds alternate between the two; the table has the medians.

Ours: what `ditron run --time` counts: frontend, passes, LLVM, and the driver, which assembles the PTX and loads the result.
Triton's: from the call of the compiler to the loaded module; Python and torch are imported, and Triton's C utilities are built,
before. Beside both: the time of the whole process for us; for Triton all that a first launch needs, with those C modules.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIZE = 1024
# name, file, function, arguments in order, compile-time values, warps, stages
KERNELS = [
    ("pointers", os.path.join(HERE, "compile_time_gemm.py"), "gemm",
     ["a", "b", "c", "M", "N", "K", "stride_am", "stride_bn", "stride_cm"],
     dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP=8), 8, 3),
    ("descriptors", os.path.join(ROOT, "kernels", "gemm", "gemm.py"), "gemm",
     ["a_ptr", "b_ptr", "c_ptr", "M", "N", "K", "stride_a", "stride_b", "stride_c"],
     dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, B_TRANSPOSED=True, PRECISION="tf32"), 8, 3),
]


def environment(**changes):
    result = {name: value for name, value in os.environ.items() if not name.startswith(("DITRON_", "TRITON_"))}
    result.update(CUDA_CACHE_DISABLE="1", **changes)
    return result


def run(command, env):
    start = time.perf_counter()
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    wall = (time.perf_counter() - start) * 1e3
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout, result.stderr, wall


def ours(build, target, kernel):
    _, path, function, parameters, constants, warps, stages = kernel
    command = [os.path.join(build, "bin", "ditron"), "run", f"{path}:{function}", "--target", target, "--time",
               "--num-warps", str(warps), "--num-stages", str(stages), "--grid", "1"]  # the first tile will do
    for index, name in enumerate(parameters):
        command += ["--arg", f"{name}=zeros:bf16[{SIZE},{SIZE}]" if index < 3 else f"{name}={SIZE}"]
    for name, value in constants.items():
        command += ["--constexpr", f"{name}={value!r}"]
    _, errors, wall = run(command, environment(DITRON_CACHE="0"))
    times = {}
    # Phases are set off by two spaces, their stages by four.
    for milliseconds, name in re.findall(r"^ *([\d.]+) ms  (\S.*)$", errors, re.M):
        times[name] = float(milliseconds)
    if "total" not in times or "load" not in times:
        raise RuntimeError(f"no times in the output of {' '.join(command)}\n{errors}")
    return {**times, "process": wall}


def triton(python, kernel):
    _, path, function, parameters, constants, warps, stages = kernel
    request = dict(path=path, function=function, parameters=parameters, constants=constants, warps=warps, stages=stages,
                   size=SIZE)
    with tempfile.TemporaryDirectory() as folder:
        output, _, _ = run([python, os.path.join(HERE, "compile_time_triton.py"), json.dumps(request)],
                           environment(TRITON_CACHE_DIR=folder))
    return json.loads(output.splitlines()[-1])


def medians(samples):
    numbers = [name for name, value in samples[0].items() if isinstance(value, float)]
    return {name: round(statistics.median(sample[name] for sample in samples), 1) for name in numbers}


def command_output(*command):
    if not shutil.which(command[0]):
        return ""
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else ""


def main():
    parser = argparse.ArgumentParser(prog="bench/gpu/compile_time.py", description=__doc__.splitlines()[0])
    parser.add_argument("build", help="build directory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--markdown", help="file for the table")
    parser.add_argument("--python", default=sys.executable, help="Python that has Triton and torch")
    parser.add_argument("--without-triton", action="store_true", help="measure only ours")
    parser.add_argument("--target", default="cuda", help="sim:sm_90a tries this script where there is no GPU")
    options = parser.parse_args()

    results, failed = [], False
    for kernel in KERNELS:
        sides = {"ditron": lambda: ours(options.build, options.target, kernel)}
        if not options.without_triton:
            sides["triton"] = lambda: triton(options.python, kernel)
        samples = {name: [] for name in sides}
        problems = {}
        for _ in range(options.rounds):
            for name, measure in sides.items():
                if name in problems:
                    continue
                try:
                    samples[name].append(measure())
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    problems[name] = str(error)
                    print(f"{kernel[0]}, {name}: {error}", file=sys.stderr)
        failed |= bool(problems)
        result = {"kernel": kernel[0], "samples": samples, "problems": problems}
        result.update({name: medians(taken) for name, taken in samples.items() if taken and name not in problems})
        results.append(result)

    rows = ["| GEMM kernel, bf16, 128x256x64 | ditron, ms | frontend | passes | LLVM | driver | Triton, ms | ratio |"
            " ditron, whole process | Triton, first launch |", "|---|---|---|---|---|---|---|---|---|---|"]
    for result in results:
        mine, theirs = result.get("ditron"), result.get("triton")
        cells = [result["kernel"]]
        cells += [f"{mine[name]:.0f}" for name in ("total", "frontend", "passes", "LLVM", "load")] if mine else ["failed"] * 5
        cells += [f"{theirs['loaded']:.0f}" if theirs else "-",
                  f"{mine['total'] / theirs['loaded']:.2f}" if mine and theirs else "-",
                  f"{mine['process']:.0f}" if mine else "failed",
                  f"{theirs['first_launch']:.0f}" if theirs and theirs.get("first_launch") else "-"]
        rows.append("| " + " | ".join(cells) + " |")
    table = "\n".join(rows) + "\n"
    print(table, end="")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(table)
    if options.json:
        versions = next((sample["version"] for result in results for sample in result["samples"].get("triton", [])), "")
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                       "commit": command_output("git", "-C", ROOT, "rev-parse", "HEAD"),
                       "gpu": command_output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
                       "triton": versions, "rounds": options.rounds, "results": results}, file, indent=1)
            file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
