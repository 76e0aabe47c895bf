"""What the tests of the package share. They need NumPy and pytest; those that need PyTorch are skipped and counted without it."""
import importlib.util
import os

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
# Where there is a GPU, "cuda" is that.
needs_no_gpu = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="this machine has a GPU")


def pytest_terminal_summary(terminalreporter):
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "PyTorch" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests were skipped since PyTorch is not installed")
