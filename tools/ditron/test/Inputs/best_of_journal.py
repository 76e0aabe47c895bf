"""best_of_journal.py TABLE: each row's plan is that of the least time which the journal has for its operator and largest sizes."""
import re
import sys


def rows(path):
    for line in open(path):
        key, hash_mark, comment = line.partition("#")
        if ":" in key:
            words, _, plan = key.partition(":")
            yield words.split(), plan.split(), comment.strip()


def most(words):
    """Operator and its first size, whose end is the same in the table, in "=3..8", and in the journal, in "=8..8" or "<=1"."""
    return words[0], re.search(r"(\d+)$", words[4]).group(1)


best = {}
for words, plan, comment in rows(sys.argv[1] + ".journal"):
    if comment.startswith("failed"):
        continue
    time = float(comment.split()[0])
    if most(words) not in best or time < best[most(words)][0]:
        best[most(words)] = (time, plan)
count = 0
for words, plan, comment in rows(sys.argv[1]):
    time, wanted = best[most(words)]
    assert plan == wanted, (words, plan, wanted)
    assert abs(float(comment.split()[0]) - time) < 0.006, (comment, time)
    count += 1
assert count == len(best), (count, best)
print(count, "rows are the best of their journals")
