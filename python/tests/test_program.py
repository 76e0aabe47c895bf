"""Run files from Python."""
import json

import ditron
import numpy as np
import pytest

KERNELS = """
import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def push(inbox, flag, call, x):
    i = tl.arange(0, 32)
    peer = 1 - dl.rank()
    number = tl.load(call) + 1
    tl.debug_barrier()
    tl.store(call, number)
    tl.store(dl.symm_at(inbox, peer) + number % 2 * 32 + i, x + number + i)
    dl.notify(flag, peer, signal=number, comm_scope="intra_node")
    dl.wait(flag, 1, "sys", "acquire", waitValue=number, compare="ge")
"""
PROGRAM = {
    "ranks": 2,
    "file": "push.py",
    "buffers": {"inbox": "symm:zeros:i32[2,32]", "flag": "symm:zeros:i32[1]", "call": "zeros:i32[1]"},
    "steps": [
        {"capture": "step", "steps": [{"launch": "push", "args": {"x": "{100 * rank}"}}]},
        {"replay": "step", "times": 4},
        {"synchronize": "rank"},
        {"print": "call"},
    ],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "push.py").write_text(KERNELS)
    return str(tmp_path)


def test_dict(folder):
    printed = []
    result = ditron.run_program(PROGRAM, folder=folder, seed=5, print=printed.append)
    assert result.ranks == 2 and result.mismatches == []
    inbox = result["inbox"]
    assert inbox[0].dtype == np.int32 and inbox[0].shape == (2, 32)
    np.testing.assert_array_equal(inbox[0][0], 100 + 4 + np.arange(32))
    np.testing.assert_array_equal(result.array("inbox", 1)[1], 3 + np.arange(32))
    assert sorted(printed) == ["call on rank 0: i32 1\n[4]\n", "call on rank 1: i32 1\n[4]\n"]


def test_file_and_mismatch(folder, tmp_path):
    path = tmp_path / "program.json"
    path.write_text(json.dumps({**PROGRAM, "steps": PROGRAM["steps"][:3] + [{"expect": "call", "value": 5}]}))
    result = ditron.run_program(path)
    assert len(result.mismatches) == 2
    assert "call on rank 0 is not as expected" in "".join(result.mismatches)


def test_nodes():
    copied = {"ranks": 2, "buffers": {"x": "symm:zeros:i32[4]"}, "steps": [{"copy": "x@0", "to": "x@1", "ranks": 0}]}
    ditron.run_program(copied)
    with pytest.raises(ditron.UnsupportedError, match="is memory of node 1, and rank 0 is on node 0"):
        ditron.run_program({"ranks_per_node": 1, **copied})
    with pytest.raises(ditron.UnsupportedError, match="is memory of node 1"):
        ditron.run_program(copied, ranks_per_node=1)


def test_errors(folder):
    with pytest.raises(ditron.InvalidArgumentError, match="did you mean 'steps'") as caught:
        ditron.run_program({"stpes": []})
    assert caught.value.file == "<program>" and caught.value.line == 2
    with pytest.raises(ditron.InvalidArgumentError, match="takes the path of a run file, or a dict; not list"):
        ditron.run_program([])
    racy = {**PROGRAM, "steps": [{"launch": "push", "args": {"x": 0}}, {"expect": "call", "value": 1}]}
    with pytest.raises(ditron.DataRaceError, match="data race on call"):
        ditron.run_program(racy, folder=folder)
    with pytest.raises(ditron.DeadlockError, match="is a call of all ranks, and rank 1 never comes to it"):
        ditron.run_program({"ranks": 2, "buffers": {"x": "symm:zeros:i32[4]"}, "steps": [{"free": "x", "ranks": 0}]})
