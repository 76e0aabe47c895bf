"""takes_rows.py TABLE: `ditron bench` takes the plan of each row of the table for its largest sizes."""
import json
import os
import re
import subprocess
import sys

ranks_of_depth = {"gemm_rs", "gemm_ar"}
for line in open(sys.argv[1]):
    key, _, plan = line.partition("#")[0].partition(" : ")
    words = key.split()
    if not words or words[0].startswith("#"):
        continue
    op, ranks = words[0], int(words[2])
    sizes = {re.match(r"\w+?(?=[<=~])", word).group(): int(re.search(r"(\d+)$", word).group(1)) for word in words[4:]}
    m, n, k = sizes["m"], sizes["n"] * (ranks if op == "ag_gemm" else 1), sizes["k"] * (ranks if op in ranks_of_depth else 1)
    command = ["ditron", "bench", op, "--json", "-", "--quiet"]
    command += ["--shape", f"{m}x{n}x{k}"] if op == "gemm" else ["--ranks", str(ranks), "--m", str(m), "--n", str(n), "--k", str(k), "--check"]
    report = json.loads(subprocess.check_output(command, env=os.environ | {"DITRON_PLANS": sys.argv[1]}))
    taken = report["rows"][0]["best"] if op == "gemm" else report["plan"]
    # What a row leaves open is filled in: a form alone gets the library's tile.
    wanted = plan.split()
    assert taken.replace(",", "").split()[: len(wanted)] == wanted, (op, taken, plan)
