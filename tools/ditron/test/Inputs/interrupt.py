"""interrupt.py TABLE COMMAND...: interrupts the command when its journal has some trials but not all."""
import os
import signal
import subprocess
import sys
import time

table, command = sys.argv[1], sys.argv[2:]


def trials():
    path = table + ".journal"
    return sum(not line.startswith("#") for line in open(path)) if os.path.exists(path) else 0


# What runs in the background of a shell ignores the signal.
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while trials() < 5 and process.poll() is None:
    time.sleep(0.005)
process.send_signal(signal.SIGINT)
code = process.wait(timeout=30)
assert code == 128 + signal.SIGINT, code
print("ended by the interruption,", trials(), "trials in the journal")
