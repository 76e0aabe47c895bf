"""Programs that fork and spawn workers, use threads, and import PyTorch before or after: each in a process of its own, so that one that
hangs is a failure."""
import subprocess
import sys

import pytest
from conftest import environment, needs_no_gpu, needs_torch

KERNELS = """
import ditron
import ditron.language as tl

@ditron.jit
def triple(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 3 * tl.load(x + i, mask=i < n), mask=i < n)

def work(number):
    import numpy as np
    x = np.full(100, number, np.float32)
    triple[(1,)](x, 100, BLOCK=128)
    return x.tolist() == [3.0 * number] * 100
"""


def passes(folder, text, **variables):
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "program.py").write_text(text, encoding="utf-8")
    result = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=300,
                            env=environment(DITRON_CACHE_DIR=str(folder / "cache"), **variables))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("before", ["", "assert work(1)", "assert work(1); world = kernels.ditron.World(2, target='sim')"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_workers(tmp_path, method, before):
    passes(tmp_path, f"""
import multiprocessing
import kernels
from kernels import work

if __name__ == "__main__":
    {before or "pass"}
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        assert pool.map(work, range(6)) == [True] * 6
    assert work(2)
""")


def test_children_that_end_as_programs_do(tmp_path):
    passes(tmp_path, """
import os, sys
from kernels import triple, work
assert work(1)
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild:
        assert os.waitpid(grandchild, 0)[1] == 0
    assert work(2)
    sys.exit(0)  # runs what runs at the end of a program
assert os.waitpid(child, 0)[1] == 0 and work(3)
""")


def test_a_fork_while_another_thread_compiles(tmp_path):
    passes(tmp_path, """
import os, threading
from kernels import triple, work
import numpy as np
def compile_many():
    for warps in (1, 2, 4, 8):
        for block in (128, 256, 512):
            triple[(1,)](np.ones(64, np.int32), 64, BLOCK=block, num_warps=warps)
thread = threading.Thread(target=compile_many)
thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if work(2) else 1)
    assert os.waitpid(child, 0)[1] == 0
thread.join()
""")


@needs_torch
@needs_no_gpu
@pytest.mark.parametrize("order", ["import torch, kernels", "import kernels, torch"])
def test_pytorch_first_and_last(tmp_path, order):
    passes(tmp_path, f"""
{order}
import ditron.torch
x = torch.ones(100)
kernels.triple[(1,)](x, 100, BLOCK=128)
assert x.tolist() == [3.0] * 100 and (x.reshape(10, 10) @ torch.ones(10, 10)).sum() == 3000
weight = torch.eye(16)
world = ditron.World(1, target="sim")
assert torch.equal(ditron.torch.ag_gemm(weight, weight, world), weight)
""")


@needs_torch
@needs_no_gpu
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pytorch_workers(tmp_path, method):
    passes(tmp_path, f"""
import torch
from kernels import triple, work

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        x = torch.full((100,), float(index))
        triple[(1,)](x, 100, BLOCK=128)
        return x

if __name__ == "__main__":
    assert work(1)
    loader = torch.utils.data.DataLoader(Rows(), num_workers=2, multiprocessing_context="{method}")
    assert [rows[0, 0].item() for rows in loader] == [0.0, 3.0, 6.0, 9.0]
""")


@pytest.mark.parametrize("describes", ["0", "1"])
def test_texts_are_those_of_the_kernel_that_runs(tmp_path, describes):
    passes(tmp_path, f"""
import numpy as np
import ditron
import ditron.language as tl

@ditron.jit
def product(a, b, c, M, K, TILE: tl.constexpr):
    rows = tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, TILE)):
        inner = k * TILE + rows
        x = tl.load(a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        y = tl.load(b + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        sums = tl.dot(x, y.T, sums)
    tl.store(c + rows[:, None] * TILE + rows[None, :], sums)

world = ditron.World(1, target="sim:sm_90a")
a = np.arange(50 * 112).reshape(50, 112).astype(np.float16) % 5
c = np.zeros((64, 64), np.float32)
with world.on(0):
    compiled = product[(1,)](a, a, c, 50, 112, 64)
world.synchronize()
wanted = np.zeros((64, 64), np.float32)
wanted[:50, :50] = a.astype(np.float32) @ a.astype(np.float32).T
assert np.array_equal(c, wanted)
assert ("tma_load" in compiled.asm["ttgir"]) == {describes == "1"}
""", DITRON_DESCRIBE_TILES=describes)
