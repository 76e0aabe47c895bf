#!/usr/bin/env python3
"""Looks over a Chrome trace as Perfetto will read it: usage: trace_check.py FILE.json...

Prints what is in it; exit code 1 with a line for each thing that a viewer would draw wrong or drop: slices of one row that cross,
arrows whose ends lie in no slice or go backwards, counters below zero, rows without a name.
"""
import collections
import json
import sys


def check(events):
    """What is wrong, as texts; and how many events there are of each kind."""
    problems, slices, arrows, named = [], collections.defaultdict(list), collections.defaultdict(dict), set()
    kinds = collections.Counter()
    for event in events:
        phase = event["ph"]
        kinds[{"X": "slices of " + event.get("cat", "?"), "s": "arrows", "f": "", "i": "moments", "C": "counter values",
               "M": ""}.get(phase, phase)] += 1
        if phase == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif phase in "sf":
            arrows[event["id"]][phase] = event
        elif phase == "M" and event["name"] == "thread_name":
            named.add((event["pid"], event["tid"]))
        elif phase == "C" and any(value < 0 for value in event["args"].values()):
            problems.append(f"counter {event['name']} is {event['args']} at {event['ts']}")
    for row, found in slices.items():
        if row not in named:
            problems.append(f"row {row} has no name")
        open_ends = []
        for begin, end, name in sorted(found, key=lambda one: (one[0], -one[1])):
            while open_ends and open_ends[-1] <= begin + 1e-9:
                open_ends.pop()
            if open_ends and end > open_ends[-1] + 1e-9:
                problems.append(f"row {row}: {name} of {begin} to {end} crosses one that ends at {open_ends[-1]}")
            open_ends.append(end)
    for number, ends in arrows.items():
        if set(ends) != {"s", "f"}:
            problems.append(f"arrow {number} has one end")
            continue
        if ends["f"]["ts"] < ends["s"]["ts"]:
            problems.append(f"arrow {number} goes backwards")
        for end in ends.values():
            if not any(begin <= end["ts"] <= until for begin, until, _ in slices[end["pid"], end["tid"]]):
                problems.append(f"an end of arrow {number} at {end['ts']} lies in no slice")
    kinds.pop("", None)
    return problems, kinds


def main():
    failed = False
    for path in sys.argv[1:]:
        problems, kinds = check(json.load(open(path))["traceEvents"])
        print(f"{path}: " + (", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"))
        for problem in problems[:20]:
            print("  " + problem)
        failed |= bool(problems)
    sys.exit(1 if failed or len(sys.argv) < 2 else 0)


if __name__ == "__main__":
    main()
