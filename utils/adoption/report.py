"""The report: a table by project, reasons with counts and an example, and the same as JSON."""

import collections

from compiling import COMPILED, GUESS, LOUD, RESOURCES, UNCLEAR, UNGUESSABLE, UNKNOWN, UNSUPPORTED, group

TITLES = {
    UNSUPPORTED: "refused: not supported by Ditron",
    UNKNOWN: "refused: depends on the machine; say with --define what the condition is",
    UNCLEAR: "refused: unclear whose fault",
    RESOURCES: "refused: needs more of the GPU than there is, with every block size tried",
    GUESS: "no verdict: none of the signatures tried fits the kernel",
    UNGUESSABLE: "no verdict: no signature can be made up",
}


def summary(results):
    """Counts of a project's kernels by outcome."""
    counts = collections.Counter(result.kind for result in results)
    verdicts = [r for r in results if r.kind not in (GUESS, UNGUESSABLE)]
    compiled = counts[COMPILED]
    return {
        "kernels": len(results),
        "compiled": compiled,
        "refused": counts[UNSUPPORTED] + counts[UNKNOWN] + counts[UNCLEAR] + counts[RESOURCES],
        "no verdict": counts[GUESS] + counts[UNGUESSABLE],
        **{kind: sum(kind in r.loud for r in results) for kind in LOUD},
        "percent": round(100 * compiled / len(verdicts), 1) if verdicts else None,
    }


def as_table(projects):
    columns = ["kernels", "compiled", "refused", "no verdict", *LOUD, "percent"]
    lines = ["| project | " + " | ".join(columns[:-1]) + " | of those with a verdict |", "|---" * (len(columns) + 1) + "|"]
    for name, results in projects.items():
        counts = summary(results)
        cells = [f"**{counts[c]}**" if c in LOUD and counts[c] else str(counts[c]) for c in columns[:-1]]
        percent = "-" if counts["percent"] is None else f"{counts['percent']} %"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {percent} |")
    return "\n".join(lines) + "\n"


def reasons(results):
    """(kind, reason) -> results, most frequent first, the loud ones before all others."""
    groups = collections.defaultdict(list)
    for result in results:
        for outcome in result.loud.values():
            groups[(outcome.kind, group(outcome.reason))].append((result, outcome))
        if result.kind not in (COMPILED, *LOUD):
            groups[(result.kind, group(result.outcome.reason))].append((result, result.outcome))
    order = [*LOUD, UNSUPPORTED, UNKNOWN, UNCLEAR, RESOURCES, GUESS, UNGUESSABLE]
    return sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1]))


def warnings(results):
    """warning of the compiler's about a compiled kernel -> (result, place), most frequent first."""
    groups = collections.defaultdict(list)
    for result in results:
        for message, place in result.outcome.warnings if result.kind == COMPILED else ():
            groups[group(message)].append((result, place))
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def as_text(projects, examples):
    text = as_table(projects)
    last = None
    for (kind, reason), found in reasons([result for results in projects.values() for result in results]):
        if kind != last:
            text += f"\n{kind.upper() if kind in LOUD else TITLES[kind]}\n"
            last = kind
        text += f"{len(found):5}  {reason}\n"
        for result, outcome in found[:examples]:
            text += f"       {result.place} {result.name}\n"
            if outcome.place and outcome.place != result.place:
                text += f"         at {outcome.place}\n"
            if outcome.signature:
                text += f"         --signature '{outcome.signature}'\n"
    warned = warnings([result for results in projects.values() for result in results])
    text += "\ncompiled, with a warning\n" if warned else ""
    for message, found in warned:
        text += f"{len(found):5}  {message}\n"
        for result, place in found[:examples]:
            text += f"       {result.place} {result.name}\n" + (f"         at {place}\n" if place else "")
    return text


def as_json(projects):
    return {
        name: {"summary": summary(results), "kernels": [result.as_json() for result in results]}
        for name, results in projects.items()
    }
