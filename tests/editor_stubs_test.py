#!/usr/bin/env python3
"""The stubs for editors are Python, and say what the reference of the language says.

usage: tests/editor_stubs_test.py PATH/TO/ditron-import

1. Every file that `ditron-import --write-stubs` writes parses, and imports only what is there.
2. Every function of docs/language.md that is no function of Python itself is declared in its module's file, with its parameters.
With mypy at hand (python3 -m mypy), the files pass it, too.
"""
import ast
import pathlib
import re
import subprocess
import sys
import tempfile

FILES = {"`triton.language` (tl)": "triton/language/__init__", "`triton`": "triton/__init__", "`triton.language.math`": "triton/language/math",
         "`triton_dist.language` (dl), `ditron.language`": "triton_dist/language/__init__",
         "`language_extra`: the thread level": "triton_dist/language/extra/language_extra",
         "`tl.target_info`, `tl.extra.cuda`: the target": "triton/language/extra/__init__",
         "`libshmem_device`": "triton_dist/language/extra/libshmem_device",
         "`triton_dist.kernels.nvidia.common_ops`": "triton_dist/__init__", "`libdevice`": "triton/language/extra/libdevice"}
CLASSES = {"Member functions of tensors": ("triton/language/__init__", "tensor"),
           "Member functions of tensor descriptors": ("triton/language/__init__", "tensor_descriptor"),
           "Member functions of vectors": ("triton_dist/language/__init__", "vector")}


def declared(body):
    """Names of a module or class, functions with the names of their parameters."""
    names = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            names[node.name] = [a.arg for a in arguments.args + ([arguments.vararg] if arguments.vararg else []) + arguments.kwonlyargs]
        elif isinstance(node, ast.ClassDef):
            constructors = [member for member in node.body if isinstance(member, ast.FunctionDef) and member.name == "__init__"]
            names[node.name] = [a.arg for a in constructors[0].args.args[1:]] if constructors else None
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: None for alias in node.names})
    return names


def check_section(title, body, trees, failures):
    path, cls = CLASSES.get(title.split(" (the first")[0], (FILES.get(title), None))
    if path is None:
        return 0
    module = trees[path + ".pyi"].body
    names = declared(next(node.body for node in module if isinstance(node, ast.ClassDef) and node.name == cls) if cls else module)
    rows = re.findall(r"^\| `(\w+)\((.*?)\)(?: -> \w+)?` \|", body, re.MULTILINE)
    for name, parameters in rows:
        wanted = [re.match(r"\*?(\w+)", item).group(1) for item in re.split(r", (?=\*?\w+(?::|=|,|$))", parameters) if item]
        if name not in names:
            failures.append(f"{path}.pyi does not declare '{name}'")
        elif names[name] is not None and names[name][bool(cls):] != wanted[bool(cls):]:
            failures.append(f"{path}.pyi: '{name}' has {names[name]}, not {wanted}")
    return len(rows)


def main():
    failures = []
    reference = subprocess.run([sys.argv[1], "--list-language"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "--write-stubs", folder], check=True)
        root = pathlib.Path(folder)
        trees = {str(file.relative_to(root)): ast.parse(file.read_text(), str(file)) for file in root.rglob("*.pyi")}
        count = sum(check_section(*section.partition("\n")[::2], trees, failures) for section in reference.split("\n## ")[1:])
        if subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True).returncode == 0:
            checked = subprocess.run([sys.executable, "-m", "mypy", folder], capture_output=True, text=True)
            if checked.returncode != 0:
                failures.append(checked.stdout)
    if count < 500:
        failures.append(f"only {count} functions found in the reference")
    print("\n".join(failures) if failures else f"{len(trees)} stubs for editors declare all {count} functions of the reference")
    return 1 if failures else 0


sys.exit(main())
