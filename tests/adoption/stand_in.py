#!/usr/bin/env python3
"""A compiler with faults that Ditron must not have: it dies, reports a bug, or does not end, by the name of the kernel."""
import os
import signal
import sys

kernel = sys.argv[2].rsplit(":", 1)[-1]
if kernel == "makes_it_crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if kernel == "meets_a_bug":
    print("ditron: error: compiler bug: no lowering of tile.example", file=sys.stderr)
    sys.exit(4)
if kernel == "never_ends":
    while True:
        pass
