"""Runs the command, asks it for a report once it runs, and then interrupts it. Prints what it said, and its exit code."""
import signal
import subprocess
import sys
import threading
import time


def prepare():
    # Whoever starts this in the background has interruptions ignored, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A request that comes before the command can take it does no harm.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
lines = []
reader = threading.Thread(target=lambda: lines.extend(process.stderr))
reader.start()
end = time.time() + 120
while process.poll() is None and time.time() < end and not lines:
    process.send_signal(signal.SIGUSR1)  # ignored until something runs
    time.sleep(0.2)
process.send_signal(signal.SIGINT)
process.wait(timeout=60)
reader.join()
print(''.join(lines), end='')
print('exit code', process.returncode)
print(process.stdout.read(), end='')
