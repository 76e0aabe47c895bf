"""Several simulated ranks in one process: symmetric tensors, kernels that talk to each other, operators."""
import numpy as np
import pytest

import ditron
import ditron.language as tl


@ditron.jit
def tell_all(inbox, RANKS: tl.constexpr):
    me = tl.rank()
    for peer in range(RANKS):
        tl.store(tl.symm_at(inbox, peer) + me, me * 10 + peer)


@ditron.jit
def wait_for_nobody(flags):
    tl.wait(flags, 1, "gpu", "acquire")


def test_kernels_reach_every_rank():
    with ditron.World(4, target="sim") as world:
        inbox = world.symmetric(4, np.int32)
        for rank in world.local_ranks:
            with world.on(rank):
                tell_all[(1,)](inbox[rank], 4)
        world.synchronize()
        for rank in world.local_ranks:
            assert inbox[rank].tolist() == [0 + rank, 10 + rank, 20 + rank, 30 + rank]


def test_a_deadlock_is_an_error_and_not_the_end():
    world = ditron.World(2, target="sim")
    flags = world.symmetric(1, np.int32)
    with world.on(0):
        wait_for_nobody[(1,)](flags[0])
    with pytest.raises(ditron.DeadlockError):
        world.synchronize()
    with pytest.raises(ditron.InvalidArgumentError, match="make another"):
        world.synchronize()
    with pytest.raises(ditron.InvalidArgumentError, match="make another"):
        with world.on(0):
            pass


def test_ranks_that_are_not_there():
    with pytest.raises(ditron.InvalidArgumentError, match="at least one rank, not 0"):
        ditron.World(0)
    world = ditron.World(2, target="sim")
    with pytest.raises(ditron.InvalidArgumentError, match="rank 2 is not of this process"):
        with world.on(2):
            pass


def test_all_gather_gemm():
    ranks, m, n, k = 4, 64, 32, 64
    numbers = np.random.default_rng(0)
    a = [numbers.standard_normal((m // ranks, k)).astype(np.float32) for _ in range(ranks)]
    b = [numbers.standard_normal((n, k)).astype(np.float32) for _ in range(ranks)]
    out = [np.zeros((m, n), np.float32) for _ in range(ranks)]
    with ditron.World(ranks, target="sim") as world:
        operator = ditron.AllGatherGemm(world, m, n, k, np.float32)
        operator(a, b, out)
        world.synchronize()
    for rank in range(ranks):
        np.testing.assert_allclose(out[rank], np.concatenate(a) @ b[rank].T, rtol=1e-2, atol=5e-2)


def test_gemm_reduce_scatter():
    ranks, m, n, k = 2, 64, 64, 32
    numbers = np.random.default_rng(1)
    a = [numbers.standard_normal((m, k)).astype(np.float32) for _ in range(ranks)]
    b = [numbers.standard_normal((n, k)).astype(np.float32) for _ in range(ranks)]
    with ditron.World(ranks, target="sim") as world:
        operator = ditron.GemmReduceScatter(world, m, n, k, np.float32)
        out = [np.zeros((operator.rows(rank, m, n, k), n), np.float32) for rank in range(ranks)]
        operator(a, b, out)
        world.synchronize()
    np.testing.assert_allclose(np.concatenate(out), sum(x @ w.T for x, w in zip(a, b)), rtol=1e-2, atol=5e-2)
