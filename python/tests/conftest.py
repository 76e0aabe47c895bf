"""What the tests of the package share. They need NumPy and pytest; those that need PyTorch are skipped and counted without it."""
import collections
import glob
import importlib.util
import os

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
# Where there is a GPU, "cuda" is that.
GPUS = len(glob.glob("/dev/nvidia[0-9]*"))
needs_no_gpu = pytest.mark.skipif(GPUS > 0, reason="this machine has a GPU")


def needs_gpus(count):
    return pytest.mark.skipif(GPUS < count, reason=f"this machine has {GPUS} GPUs, the test needs {count}")


def environment(**variables):
    """Of the processes that tests start."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", **variables}


def pytest_terminal_summary(terminalreporter):
    """Says how many tests were skipped, and why."""
    reasons = collections.Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", []))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} tests were skipped: {reason}")
