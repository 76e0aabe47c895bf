#!/usr/bin/env python3
"""The documentation says what the program says.

usage: tests/docs_test.py PATH/TO/ditron-import

1. docs/language.md is what `ditron-import --list-language` prints.
2. Every error text in the tables of docs/troubleshooting.md (first column, in backticks, `...` for what varies) occurs in the
   sources, piece by piece.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def string_literals():
    """All string literals of the sources, adjacent ones joined."""
    texts = []
    for folder in ("ditron", "tools"):
        for file in sorted((ROOT / folder).rglob("*.cpp")):
            if "test" not in file.parts:
                joined = re.sub(r'"\s*\n\s*"', "", file.read_text())
                texts.extend(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined))
    return "\n".join(texts)


def main():
    failures = []
    printed = subprocess.run([sys.argv[1], "--list-language"], capture_output=True, text=True, check=True).stdout
    if printed != (ROOT / "docs/language.md").read_text():
        failures.append("docs/language.md is stale: ditron-import --list-language > docs/language.md")

    literals = string_literals()
    rows = re.findall(r"^\| `([^`]+)`", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    if len(rows) < 10:
        failures.append(f"docs/troubleshooting.md: only {len(rows)} error texts found in its tables")
    for row in rows:
        # Quoted names vary as well: argument 'mask' of tl.load.
        for piece in re.split(r"\.\.\.|'[^' ]*'|tl\.\w+", row):
            piece = piece.strip(" ;:,?()")
            if len(piece) >= 8 and piece not in literals:
                failures.append(f"docs/troubleshooting.md: no message contains '{piece}' (of '{row}')")
    print("\n".join(failures) if failures else f"{len(rows)} error texts and docs/language.md agree with the program")
    return 1 if failures else 0


sys.exit(main())
