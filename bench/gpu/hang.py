"""Kernels that never end by themselves, and some that wait a lot, for `prove waits` and `explain`."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import globaltimer, ld, tid


@triton.jit
def wait_forever(flag):
    dl.wait(flag + 2, 1, "sys", "acquire", waitValue=3, compare="ge")


@triton.jit
def spin_forever(flag):
    if tid(0) == 0:
        while ld(flag + 1, scope="sys", semantic="acquire") != 1:
            pass


@triton.jit
def ping_pong(flag, out, rounds, pause):
    """Pairs of blocks wait for each other in turns; `out` gets the nanoseconds of each block. Each answers after `pause` of them."""
    me = tl.program_id(0)
    mine = flag + me * 16
    other = flag + (me ^ 1) * 16
    rank = dl.rank()
    begin = globaltimer()
    for i in range(rounds):
        if me % 2 == 0:
            dl.notify(other, rank, signal=i + 1, sig_op="set", comm_scope="gpu")
        dl.wait(mine, 1, "gpu", "acquire", waitValue=i + 1, compare="ge")
        until = globaltimer() + pause
        while globaltimer() < until:
            pass
        if me % 2 == 1:
            dl.notify(other, rank, signal=i + 1, sig_op="set", comm_scope="gpu")
    tl.store(out + me, globaltimer() - begin)
