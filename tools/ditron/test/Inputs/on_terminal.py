"""on_terminal.py TEXT COMMAND...: runs a command whose standard error is a terminal until it has written TEXT there, or ends, and prints
what it wrote, a line for each that was shown."""
import os
import pty
import re
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
text = b""
while sys.argv[1].encode() not in text:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    text += piece
process.kill()
process.wait()
print(re.sub(r"\r|\x1b\[K", "\n", text.decode()))
