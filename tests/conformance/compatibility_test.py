#!/usr/bin/env python3
"""docs/compatibility.md is what the frontend says, and the frontend knows every name of Triton and Triton-distributed.

usage: compatibility_test.py PATH/TO/ditron-import

names/*.txt hold the names, written from the references of both languages. A name that the frontend does not know at all is a
failure: what is not supported is declared with the reason in ditron/frontend/library/*.pyi (@refused).
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SECTIONS = {"`triton.language` (tl)": "tl", "Member functions of tensors": "member", "Member functions of tensor descriptors": "descriptor", "`triton`": "triton",
            "`triton.language.extra.libdevice`": "libdevice", "`triton_dist.language` (dl)": "dl", "`language_extra`: the thread level": "language_extra", "`libshmem_device`": "libshmem_device"}


def main():
    printed = subprocess.run([sys.argv[1], "--list-compatibility"], capture_output=True, text=True, check=True).stdout
    failures = []
    page = HERE.parent.parent / "docs/compatibility.md"
    if not page.exists() or printed != page.read_text():
        failures.append("docs/compatibility.md is stale: ditron-import --list-compatibility > docs/compatibility.md")
    known = {}
    for section in printed.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        known[SECTIONS[title]] = set(re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE))
        if re.search(r"^\| `[^`]+` \| \*\*refused\*\* \|\s*\|$", body, re.MULTILINE):
            failures.append(f"{title}: a refused name has no reason")
    count = 0
    for path in sorted((HERE / "names").glob("*.txt")):
        names = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        count += len(names)
        missing = [name for name in names if name not in known[path.stem]]
        if missing:
            failures.append(f"{path.name}: {len(missing)} names unknown to the frontend: {' '.join(missing)}")
    print("\n".join(failures) if failures else f"{count} names are supported or refused with a reason, as docs/compatibility.md says")
    return 1 if failures else 0


sys.exit(main())
