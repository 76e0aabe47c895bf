"""Every operation says what it means and gives an example: usage documented.py DIALECTS_FOLDER.

The example stands in the operation's description, as a block of mlir. Each of its lines is a line of a test of the same dialect, so
that it parses and prints as it is written.
"""
import glob
import os
import re
import sys

folder = sys.argv[1]
problems, operations = [], 0
for dialect in ["tile", "dist", "dgpu"]:
    tested = set()
    for path in glob.glob(os.path.join(folder, dialect, "test", "*.mlir")):
        with open(path, encoding="utf-8") as file:
            tested.update(line.strip() for line in file)
    for path in sorted(glob.glob(os.path.join(folder, dialect, "*Ops.td"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        starts = list(re.finditer(r'^def \w+\s*:\s*\w+<"(\w+)"', text, re.M))
        for start, end in zip(starts, [next.start() for next in starts[1:]] + [len(text)]):
            operation, body = f"{dialect}.{start.group(1)}", text[start.start():end]
            operations += 1
            description = re.search(r"let description = \[\{(.*?)\}\];", body, re.S)
            example = re.search(r"```mlir\n(.*?)```", description.group(1), re.S) if description else None
            if not example:
                problems.append(f"{path}: {operation} has no description with an example")
                continue
            if not description.group(1).split("```mlir")[0].strip():
                problems.append(f"{path}: the description of {operation} is its example only")
            if operation not in example.group(1):
                problems.append(f"{path}: the example of {operation} does not contain it")
            for line in example.group(1).splitlines():
                if line.strip() not in tested:
                    problems.append(f"{path}: no test has this line of the example of {operation}: {line.strip()}")
print("\n".join(problems))
print(f"{operations} operations, {len(problems)} problems")
sys.exit(1 if problems else 0)
