#!/usr/bin/env python3
"""Puts the package `ditron` together: Python files, the library, the stubs that the compiler writes.

usage: python/stage.py DESTINATION --library libditron.so --importer ditron-import [--link]

With --link the Python files are links to the source, so that they can be edited in place.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent / "ditron"
EDITOR_STUB = '''from ditron.stubs.triton.language import *
from ditron.stubs.triton_dist.language import *
'''


def place(source, destination, link):
    destination.parent.mkdir(parents=True, exist_ok=True)
    if destination.is_symlink() or destination.exists():
        destination.unlink()
    if link:
        destination.symlink_to(os.path.relpath(source, destination.parent))
    else:
        shutil.copy2(source, destination)


def write_stubs(importer, package):
    """The stubs under the name ditron.stubs, so that they hide no Triton that is installed."""
    folder = package / "stubs"
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as written:
        subprocess.run([importer, "--write-stubs", written], check=True)
        for stub in pathlib.Path(written).rglob("*.pyi"):
            relative = stub.relative_to(written)
            if relative.parts[0] == "ditron":
                continue
            text = re.sub(r"^(from|import) (triton)", r"\1 ditron.stubs.\2", stub.read_text(encoding="utf-8"), flags=re.MULTILINE)
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            (folder / relative).write_text(text, encoding="utf-8")
    (folder / "__init__.pyi").write_text("", encoding="utf-8")
    (package / "language" / "__init__.pyi").write_text(EDITOR_STUB, encoding="utf-8")
    (package / "py.typed").write_text("", encoding="utf-8")


def stage(destination, library, importer, link=False):
    package = pathlib.Path(destination) / "ditron"
    for source in sorted(SOURCE.rglob("*.py")):
        place(source, package / source.relative_to(SOURCE), link)
    place(pathlib.Path(library).resolve(), package / "libditron.so", link)
    write_stubs(os.path.abspath(importer), package)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("destination")
    parser.add_argument("--library", required=True)
    parser.add_argument("--importer", required=True)
    parser.add_argument("--link", action="store_true")
    arguments = parser.parse_args()
    stage(arguments.destination, arguments.library, arguments.importer, arguments.link)


if __name__ == "__main__":
    main()
