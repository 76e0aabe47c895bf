"""Python at compile time means what CPython makes of it.

    semantics_test.py DITRON_IMPORT [--count N] [--seed S] [--keep FOLDER] [--verbose]
    semantics_test.py DITRON_IMPORT --case cases/iterators.py

Writes programs (programs.py), executes each under CPython with stand-ins for triton, and under Ditron, which prints the same
values from a kernel by tl.static_print, and compares. A program that Ditron refuses is counted with the message; one that gives
another value, a crash and a hang are failures.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import programs

HERE = pathlib.Path(__file__).resolve().parent
PER_FILE = 12  # a file has at most twenty messages
TIMEOUT = 60


def under_python(path):
    """The printed values by number; None for a program that CPython itself does not execute."""
    runner = f"import sys; sys.path.insert(0, {str(HERE / 'stand_in')!r}); import runpy; runpy.run_path({str(path)!r})['kernel'](None)"
    done = subprocess.run([sys.executable, "-c", runner], capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise SystemExit(f"CPython fails on {path}:\n{done.stderr[-3000:]}")
    return values_in(done.stdout)


def values_in(text):
    return {int(number): value for number, value in re.findall(r"^(?:// static_print: )?probe (\d+) (.*)$", text, re.M)}


def under_ditron(tool, path):
    """The printed values by number, the messages by number, and what is worse than a message, or None."""
    try:
        done = subprocess.run([tool, f"{path}:kernel", "--signature", "*fp32"], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {}, {}, f"no end after {TIMEOUT} s"
    if done.returncode not in (0, 1, 2):
        return {}, {}, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    source = pathlib.Path(path).read_text().splitlines()
    messages = {}
    # A message ends where the next begins; the line that is named last in it is that of the static_print.
    for message in re.split(r"^(?=\S+:\d+:\d+: error: )", done.stderr, flags=re.M):
        head = re.match(r"\S+?:(\d+):\d+: error: (.*)", message)
        if not head:
            continue
        for line in reversed(re.findall(r"^\S+?:(\d+):\d+: ", message, re.M)):
            number = re.search(r"static_print\('probe', (\d+)|RESULT_(\d+)|def entry_(\d+)", source[int(line) - 1])
            if number:
                messages.setdefault(int(next(filter(None, number.groups()))), f"line {head[1]}: {head[2]}")
                break
    return values_in(done.stdout + done.stderr), messages, None


class Comparison:
    def __init__(self, tool, verbose):
        self.tool, self.verbose = tool, verbose
        self.equal = 0
        self.refused = collections.Counter()
        self.failures = []

    def compare(self, path, numbers):
        expected = under_python(path)
        actual, messages, trouble = under_ditron(self.tool, path)
        if trouble:
            self.failures.append(f"{path}: {trouble}")
            return
        for number in numbers:
            if number in actual and actual[number] == expected[number]:
                self.equal += 1
            elif number in actual:
                self.failures.append(f"{path}: program {number} differs\n" + difference(expected[number], actual[number]))
            elif number in messages:
                self.refused[re.sub(r"^line \d+: ", "", messages[number])] += 1
                if self.verbose:
                    print(f"{path}: program {number} refused: {messages[number]}")
            else:
                self.failures.append(f"{path}: program {number} printed nothing, and no message names it")


def difference(expected, actual):
    """The first printed value that is not the same."""
    a, b = expected.split(" | "), actual.split(" | ")
    for index, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"  value {index}, after {a[max(0, index - 1)][:100]}\n    CPython: {x[:300]}\n    Ditron:  {y[:300]}"
    return f"  CPython printed {len(a)} values, Ditron {len(b)}; the rest: {(a[len(b):] or b[len(a):])[:3]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("--count", type=int, default=360, help="programs to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the files; a temporary one without this")
    parser.add_argument("--case", action="append", default=[], help="a file with functions `probe_*(log)` instead of written ones")
    parser.add_argument("--least-equal", type=float, default=0.0, help="the share of programs that may not be refused")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    comparison = Comparison(options.tool, options.verbose)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in options.case:
            bodies = programs.bodies_of_case(pathlib.Path(case).read_text())
            for in_kernel in (False, True):
                path = folder / f"{pathlib.Path(case).stem}_{'kernel' if in_kernel else 'module'}.py"
                path.write_text(programs.assemble(bodies, in_kernel))
                comparison.compare(path, [number for number, _ in bodies])
        for first in range(0, 0 if options.case else options.count, PER_FILE):
            bodies = programs.file_of(options.seed, first, min(PER_FILE, options.count - first))
            path = folder / f"programs_{options.seed}_{first}.py"
            path.write_text(programs.assemble(bodies, in_kernel=first // PER_FILE % 2 == 1))
            comparison.compare(path, [number for number, _ in bodies])
    total = comparison.equal + sum(comparison.refused.values()) + len(comparison.failures)
    for failure in comparison.failures:
        print(failure)
    for message, count in comparison.refused.most_common():
        print(f"refused {count:4}: {message}")
    print(f"{total} programs: {comparison.equal} equal, {sum(comparison.refused.values())} refused, {len(comparison.failures)} different")
    if comparison.equal < options.least_equal * total:
        print(f"fewer than {options.least_equal:.0%} are equal")
        return 1
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
