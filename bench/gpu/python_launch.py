#!/usr/bin/env python3
"""What a launch from Python costs the host, Ditron's and Triton's beside each other in one run, on a GPU with PyTorch.

usage: bench/gpu/python_launch.py        with the wheel installed; Triton is left out where it is not installed

The same kernel source with three tensors, an integer and a constexpr, launched 200 times between synchronisations; median over 41
rounds, microseconds a launch, and the results compared.
"""
import importlib.util
import statistics
import sys
import tempfile
import time

import torch

SOURCE = """
import {module} as triton
import {module}.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)
"""


def kernel_of(module):
    """The kernel as a file of its own, since the source of a kernel is read from its file."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(SOURCE.format(module=module))
    spec = importlib.util.spec_from_file_location(f"kernel_of_{module}", file.name)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.add


def measure(launch, calls=200, rounds=41):
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            launch()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def main():
    n = 1000
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    for module in ("ditron", "triton"):
        if importlib.util.find_spec(module) is None:
            print(f"{module}: not installed")
            continue
        add = kernel_of(module)
        out = torch.empty_like(x)
        grid = (1,)
        add[grid](x, y, out, n, BLOCK=1024)
        torch.cuda.synchronize()
        if not torch.equal(out, x + y):
            sys.exit(f"{module}: wrong results")
        print(f"{module}: {measure(lambda: add[grid](x, y, out, n, BLOCK=1024)):.2f} us a launch")


if __name__ == "__main__":
    main()
