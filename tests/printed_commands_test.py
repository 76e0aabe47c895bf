#!/usr/bin/env python3
"""The commands that are printed for people run as they are printed.

usage: tests/printed_commands_test.py examples|readme|help BUILD_FOLDER

examples  The head of each examples/*.py: the command runs from a folder that looks like the repository, ends with the exit code
          that the head names (0 if none), and prints the lines behind `# > `, in that order.
readme    README.md: the kernel that is shown is examples/ring.py, and every indented command of ditron outside of the section about
          machines with GPUs ends with 0. docs/command-line.md, and commands of docs/*.md that use examples/: the same.
help      Each subcommand's help has an example, and it ends with 0, but for what needs a run that failed or hangs.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_RUN = ("ditron replay ", "ditron explain ")
GPU_SECTION = "On a machine with NVIDIA GPUs"


class Place:
    """A folder that looks like the repository, in which commands may leave files."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.folder = tempfile.TemporaryDirectory(prefix="ditron-printed-")
        path = pathlib.Path(self.folder.name)
        (path / "build").symlink_to(self.build)
        (path / "examples").symlink_to(ROOT / "examples")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("DITRON_")}
        self.environment["PATH"] = f"{self.build / 'bin'}:{self.environment['PATH']}"
        self.environment["DITRON_CACHE_DIR"] = str(path / "cache")
        (path / "cache").mkdir(mode=0o700)  # `cache ls` refuses a folder that is not there

    def run(self, command):
        """Exit code and everything that was printed."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder.name, env=self.environment, capture_output=True, text=True,
                              timeout=300)
        return done.returncode, done.stdout + done.stderr


def commands_of(lines, start):
    """Commands that begin with `start`, with the lines that a backslash continues."""
    commands, continued = [], False
    for line in lines:
        text = line.strip()
        if continued:
            commands[-1] += "\n" + text
        elif text.startswith(start):
            commands.append(text)
        else:
            continue
        continued = text.endswith("\\")
    return commands


def check(place, where, command, code, expected, failures):
    print(f"{where}: {command}")
    got, output = place.run(command)
    if got != code:
        failures.append(f"{where}: exit code {got} instead of {code}: {command}\n{output}")
        return
    rest = output
    for line in expected:
        head, found, rest = rest.partition(line)
        if not found:
            failures.append(f"{where}: '{line}' is not printed, or not there, by: {command}\n{output}")
            return


def test_examples(place, failures):
    listed = (ROOT / "examples/README.md").read_text()
    for file in sorted((ROOT / "examples").glob("*.py")):
        head = [line[1:] for line in file.read_text().splitlines() if line.startswith("#")]
        where = f"examples/{file.name}"
        if f"`{file.name}`" not in listed:
            failures.append(f"{where}: examples/README.md does not list it")
        commands = commands_of(head, "build/bin/ditron")
        if len(commands) != 1:
            failures.append(f"{where}: {len(commands)} commands in the head, one is expected")
            continue
        code = re.search(r"exit code (\d+)", "\n".join(head))
        expected = [line.removeprefix(" > ") for line in head if line.startswith(" > ")]
        if not expected:
            failures.append(f"{where}: the head says nothing of what is printed")
        check(place, where, commands[0], int(code.group(1)) if code else 0, expected, failures)


def test_readme(place, failures):
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    kernel = re.sub(r"\A(#.*\n)*", "", (ROOT / "examples/ring.py").read_text())
    if shown != kernel:
        failures.append("README.md: the kernel that is shown is not that of examples/ring.py")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    found = 0
    for section in sections:
        if section.startswith(GPU_SECTION):
            continue
        for command in commands_of((line for line in section.splitlines() if line.startswith("    ")), "build/bin/ditron"):
            check(place, "README.md", command, 0, [], failures)
            found += 1
    if found == 0:
        failures.append("README.md: no command found")
    for file in sorted((ROOT / "docs").glob("*.md")):
        for command in commands_of((line for line in file.read_text().splitlines() if line.startswith("    ")), "build/bin/ditron"):
            if "examples/" in command or file.name == "command-line.md":
                check(place, f"docs/{file.name}", command, 0, [], failures)


def subcommands(place, words):
    """`words` and all subcommands below it."""
    yield words
    _, text = place.run(" ".join(["ditron", *words, "--help"]))
    match = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, re.MULTILINE)
    for line in match.group(1).splitlines() if match else []:
        if re.match(r"  \S", line):
            yield from subcommands(place, [*words, line.split()[0]])


def test_help(place, failures):
    ran = set()
    for words in subcommands(place, []):
        name = " ".join(["ditron", *words])
        _, text = place.run(f"{name} --help")
        at = text.rfind("Example:\n")
        commands = commands_of(text[at:].splitlines(), "ditron ") if at >= 0 else []
        if not any(command.startswith(f"{name} ") or command == name for command in commands):
            failures.append(f"{name} --help: no example of it")
        for command in commands:
            if command not in ran and not command.startswith(NOT_RUN):  # some stand in the help of a command and of its subcommand
                check(place, f"{name} --help", command, 0, [], failures)
            ran.add(command)


def main():
    failures = []
    place = Place(sys.argv[2])
    {"examples": test_examples, "readme": test_readme, "help": test_help}[sys.argv[1]](place, failures)
    print("\n".join(failures) if failures else "all as printed")
    return 1 if failures else 0


sys.exit(main())
