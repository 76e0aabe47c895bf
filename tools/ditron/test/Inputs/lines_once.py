"""lines_once.py JOURNAL: no trial stands there twice."""
import sys

trials = [line.partition("#")[0] for line in open(sys.argv[1]) if not line.startswith("#")]
assert trials and len(trials) == len(set(trials)), trials
