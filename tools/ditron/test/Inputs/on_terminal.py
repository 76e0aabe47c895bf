"""Runs a command whose standard error is a terminal, and prints what it wrote there, a line for each that was shown."""
import os
import pty
import re
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
text = b""
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    text += piece
process.wait()
print(re.sub(r"\r|\x1b\[K", "\n", text.decode()))
