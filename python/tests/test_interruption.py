"""Ctrl-C while simulated GPUs run: the report of what waits, and a process that goes on."""
import json
import os
import signal
import threading
import time

import numpy as np
import pytest

import ditron
import ditron.language as tl
from conftest import needs_no_gpu

SECONDS_TO_STOP = 1.0


@ditron.jit
def spin(word):
    while tl.atomic_add(word, 1) >= 0:
        pass


@ditron.jit
def count(word):
    i = 0
    while i < 1 << 60:
        i += 1 + tl.load(word)
    tl.store(word, i)


@ditron.jit
def add_one(x):
    tl.store(x, tl.load(x) + 1)


RUN_FILE = {"ranks": 2, "file": "spin.py", "buffers": {"word": "symm:zeros:i32[1]"}, "steps": [{"launch": "spin"}, {"synchronize": "rank"}]}
SPIN_FILE = """
import triton
import triton.language as tl

@triton.jit
def spin(word):
    while tl.atomic_add(word, 1) >= 0:
        pass
"""


class Interruption:
    """Sends SIGINT to this process when the block has run for a while; `took` is how long the block went on then."""

    def __init__(self, after=1.0):
        self.after, self.sent = after, None
        self.timer = threading.Timer(after, self._send)

    def _send(self):
        self.sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *_):
        self.took = time.monotonic() - self.sent if self.sent else None
        self.timer.cancel()
        self.timer.join()


def next_launch_works():
    x = np.zeros(1, np.int32)
    add_one[(1,)](x)
    assert x[0] == 1


def check(caught, interruption, *words):
    assert type(caught.value) is KeyboardInterrupt
    assert isinstance(caught.value.__cause__, ditron.TimeoutError)
    assert str(caught.value) == str(caught.value.__cause__)
    for word in ("the run was interrupted by signal 2 (Interrupt)",) + words:
        assert word in str(caught.value)
    assert interruption.took < SECONDS_TO_STOP
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@needs_no_gpu
@pytest.mark.parametrize("kernel", [spin, count])
def test_kernel(kernel):
    next_launch_works()
    word = np.zeros(1, np.int32)
    for _ in range(2):  # the second run is as interruptible as the first
        with pytest.raises(KeyboardInterrupt) as caught, Interruption() as interruption:
            kernel[(1,)](word)
        check(caught, interruption, f"kernel {kernel.__name__}", "test_interruption.py:")
        next_launch_works()


@needs_no_gpu
def test_run_file(tmp_path):
    (tmp_path / "spin.py").write_text(SPIN_FILE)
    with pytest.raises(KeyboardInterrupt) as caught, Interruption() as interruption:
        ditron.run_program(RUN_FILE, folder=str(tmp_path))
    check(caught, interruption, "kernel spin")
    good = {**RUN_FILE, "buffers": {"word": "symm:full(-1):i32[1]"}}
    (tmp_path / "good.json").write_text(json.dumps(good))
    assert ditron.run_program(tmp_path / "good.json").mismatches == []


@needs_no_gpu
def test_world():
    world = ditron.World(2)
    words = world.symmetric((1,), np.int32)
    for rank in world.local_ranks:
        with world.on(rank):
            spin[(1,)](words[rank])
    with pytest.raises(KeyboardInterrupt) as caught, Interruption() as interruption:
        world.synchronize()
    check(caught, interruption, "rank 1")
    with pytest.raises(ditron.InvalidArgumentError, match="the world ended with an error"):
        world.synchronize()
    with ditron.World(2) as world:
        words = world.symmetric((1,), np.int32)
        with world.on(1):
            add_one[(1,)](words[1])
        world.synchronize()
        assert words[1][0] == 1


@needs_no_gpu
def test_operator():
    ranks, size = 2, 2048
    world = ditron.World(ranks, target="sim")
    operator = ditron.AllGatherGemm(world, size, size, size, np.float32)
    a = [np.zeros((size // ranks, size), np.float32) for _ in range(ranks)]
    b = [np.zeros((size, size), np.float32) for _ in range(ranks)]
    out = [np.zeros((size, size), np.float32) for _ in range(ranks)]
    operator(a, b, out)
    with pytest.raises(KeyboardInterrupt) as caught, Interruption(after=0.3) as interruption:
        world.synchronize()
    check(caught, interruption)
    next_launch_works()


@needs_no_gpu
def test_a_handler_of_the_program_is_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        limited = ditron.World(1, time_limit=2.0)
        word = limited.symmetric((1,), np.int32)
        with limited.on(0):
            spin[(1,)](word[0])
        with pytest.raises(ditron.TimeoutError, match="the time limit of 2 s has passed"), Interruption(after=0.5):
            limited.synchronize()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


@needs_no_gpu
def test_a_time_limit_after_an_interruption_is_one():
    with pytest.raises(KeyboardInterrupt), Interruption():
        spin[(1,)](np.zeros(1, np.int32))
    world = ditron.World(1, time_limit=0.2)
    word = world.symmetric((1,), np.int32)
    with world.on(0):
        spin[(1,)](word[0])
    with pytest.raises(ditron.TimeoutError, match="the time limit of 0.2 s has passed"):
        world.synchronize()


@needs_no_gpu
def test_a_run_of_another_thread_is_not_python_s_to_interrupt():
    ended = []

    def run():
        world = ditron.World(1, time_limit=2.0)
        word = world.symmetric((1,), np.int32)
        with world.on(0):
            spin[(1,)](word[0])
        try:
            world.synchronize()
        except ditron.TimeoutError as error:
            ended.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    with pytest.raises(KeyboardInterrupt), Interruption(after=0.5):
        while thread.is_alive():
            time.sleep(0.01)
    thread.join()
    assert "the time limit of 2 s has passed" in ended[0]
