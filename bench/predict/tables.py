#!/usr/bin/env python3
"""Predicted speedups where the papers publish only means or pictures: the means of DITRON's figures 5 and 16, and GEMM+ReduceScatter
on the shapes of its table 5.

usage: bench/predict/tables.py PATH/TO/ditron
"""
import json
import math
import subprocess
import sys

# M, N, K of DITRON's table 1; table 2 has N and K the other way round. Row 5 (Mistral-7B) is as row 2.
LAYERS = [(8192, 11008, 4096), (8192, 14336, 4096), (8192, 28672, 8192), (8192, 53248, 16384), (8192, 14336, 4096), (8192, 29568, 8192)]
# Table 5.
SCALED = {"LLaMA3-7B": (4096, 11008), "LLaMA3.1-8B": (4096, 14336), "Qwen3-32B": (5120, 25600), "Seed-OSS-36B": (5120, 27648),
          "LLaMA3.1-70B": (8192, 28672), "Qwen2-72B": (8192, 29568), "GPT-3-175B": (12288, 49152), "LLaMA3.1-405B": (16384, 53248)}


def speedup(ditron, op, machine, gpus, m, n, k):
    """Over the vendor's libraries one after the other."""
    command = [ditron, "predict", op, "--machine", machine, "--json"]
    for name, value in (("gpus", gpus), ("m", m), ("n", n), ("k", k)):
        command += [f"--{name}", str(value)]
    predicted = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return predicted["vendor_us"] / predicted["time_us"]


def main():
    ditron = sys.argv[1]
    print("| geometric mean over the layers of tables 1 and 2 | published | predicted |\n|---|---|---|")
    for figure, machine, op, published in (("5", "h800x8", "ag_gemm", 1.43), ("5", "h800x8", "gemm_rs", 1.27),
                                           ("5", "h800x8", "gemm_ar", 1.32), ("16", "mi308xx8", "ag_gemm", 1.11),
                                           ("16", "mi308xx8", "gemm_rs", 1.16)):
        logs = [math.log(speedup(ditron, op, machine, 8, m, *((n, k) if op == "ag_gemm" else (k, n)))) for m, n, k in LAYERS]
        print(f"| figure {figure}, {op}, {machine} | {published:.2f} | {math.exp(sum(logs) / len(logs)):.2f} |")
    print("\n| gemm_rs, table 5, 32768 rows | " + " | ".join(f"{machine} {gpus}" for machine in ("H20", "H800") for gpus in (8, 16, 32)) + " |")
    print("|---" * 7 + "|")
    for name, (n, k) in SCALED.items():
        values = [speedup(ditron, "gemm_rs", machine, gpus, 32768, n, k) for machine in ("h20-cluster", "h800-cluster") for gpus in (8, 16, 32)]
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")


main()
