"""Several simulated ranks in one process: symmetric tensors, kernels that talk to each other, operators."""
import gc
import threading
import weakref

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


def test_nodes():
    with pytest.raises(ditron.InvalidArgumentError, match="3 ranks do not fill nodes of 2; ranks per node may be 1, 3"):
        ditron.World(3, target="sim", ranks_per_node=2)
    world = ditron.World(4, target="sim", ranks_per_node=2)
    inbox = world.symmetric(4, np.int32)
    with world.on(1):
        tell_all[(1,)](inbox[1], 2)
        world.synchronize()
        tell_all[(1,)](inbox[1], 4)
    with pytest.raises(ditron.OutOfBoundsError, match="is memory of node 1, and rank 1 is on node 0"):
        world.synchronize()


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


@pytest.mark.parametrize("make", [ditron.AllGatherGemm, ditron.GemmReduceScatter, ditron.GemmAllReduce])
def test_what_one_rank_is_refused_no_rank_calls(make):
    ranks, m, n, k = 3, 6, 32, 16
    a = [np.ones((2 if make is ditron.AllGatherGemm else m, k), np.float32) for _ in range(ranks)]
    b = [np.ones((n, k), np.float32) for _ in range(ranks)]
    out = [np.zeros((2 if make is ditron.GemmReduceScatter else m, n), np.float32) for _ in range(ranks)]
    with ditron.World(ranks, target="sim") as world:
        operator = make(world, m, n, k, np.float32)
        for refused, message in ((np.ones(b[0].shape, np.float16), "tensor b is of type fp16; the operator takes fp32"), (np.ones((n, k + 8), np.float32), "tensor b has shape")):
            with pytest.raises(ditron.InvalidArgumentError, match=message):
                operator(a, [*b[:-1], refused], out, m)
        for wrong, found in ((None, "NoneType"), (np.ones(4, np.float32), r"\[4\]"), (np.ones((n, k, 1), np.float32), "")):
            with pytest.raises(ditron.InvalidArgumentError, match=f"b of rank 2 is {found}.*; a matrix is accepted"):
                operator(a, [*b[:-1], wrong], out, m)
        operator(a, b, out, m)
        world.synchronize()
    assert all((each == (k if make is ditron.AllGatherGemm else k * ranks)).all() for each in out)


def test_scales_bias_activation_and_padded_rows():
    ranks, m, n, k = 2, 33, 24, 40
    numbers = np.random.default_rng(2)
    shard = -(-m // ranks)

    def padded(rows, columns, dtype, stride):
        return np.zeros((rows, stride), dtype)[:, :columns]

    a = [padded(min(shard, m - rank * shard), k, np.int8, 48) for rank in range(ranks)]
    b = [padded(n, k, np.int8, 64) for _ in range(ranks)]
    for matrix in a + b:
        matrix[:] = numbers.integers(-128, 128, matrix.shape)
    scales_a = [numbers.uniform(0.01, 0.03, each.shape[0]).astype(np.float32) for each in a]
    scales_b = [numbers.uniform(0.01, 0.03, n).astype(np.float32) for _ in range(ranks)]
    bias = [numbers.standard_normal(n).astype(np.float32) for _ in range(ranks)]
    out = [padded(m, n // 2, np.float32, 32) for _ in range(ranks)]
    with ditron.World(ranks, target="sim") as world:
        operator = ditron.AllGatherGemm(world, m, n, k, np.int8, out_dtype=np.float32, scales_a="vector", scales_b="vector",
                                        bias_dtype=np.float32, activation="swiglu")
        operator(a, b, out, scales_a=scales_a, scales_b=scales_b, bias=bias)
        with pytest.raises(ditron.InvalidArgumentError, match="tensor scales_a: is null"):
            operator(a, b, out, bias=bias)
        with pytest.raises(ditron.InvalidArgumentError, match=r"activation='tanh'; accepted are None, 'relu'"):
            ditron.AllGatherGemm(world, m, n, k, np.int8, activation="tanh")
        world.synchronize()
    gathered = np.concatenate(a).astype(np.int64)
    for rank in range(ranks):
        value = (gathered @ b[rank].T.astype(np.int64)) * np.concatenate(scales_a)[:, None].astype(float) * scales_b[rank] + bias[rank]
        gate, up = value[:, ::2], value[:, 1::2]
        np.testing.assert_allclose(out[rank], gate / (1 + np.exp(-gate)) * up, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m", [5, 150])
def test_gemm_all_reduce(m):
    ranks, n, k = 3, 64, 32
    numbers = np.random.default_rng(1)
    a = [numbers.standard_normal((m, k)).astype(np.float32) for _ in range(ranks)]
    b = [numbers.standard_normal((n, k)).astype(np.float32) for _ in range(ranks)]
    out = [np.zeros((m, n), np.float32) for _ in range(ranks)]
    with ditron.World(ranks, target="sim") as world:
        operator = ditron.GemmAllReduce(world, m, n, k, np.float32)
        for _ in range(3):
            operator(a, b, out)
        world.synchronize()
    np.testing.assert_allclose(out[0], sum(x @ w.T for x, w in zip(a, b)), rtol=1e-2, atol=5e-2)
    assert all(np.array_equal(each, out[0]) for each in out)


def test_one_program_on_every_rank():
    def program(world, factor):
        inbox = world.symmetric(world.ranks, np.int32)
        assert threading.current_thread() is not threading.main_thread()
        tell_all[(1,)](inbox[world.rank], world.ranks)
        world.synchronize()
        return world.rank * factor, inbox[world.rank].tolist()

    results = ditron.World(3, target="sim").run(program, 100)
    assert results == [(100 * rank, [rank, 10 + rank, 20 + rank]) for rank in range(3)]
    assert ditron.World(1, target="sim").run(lambda world: world.rank) == [0]


def test_ranks_take_turns():
    def program(world):
        seen.append(world.rank)
        world.synchronize()
        seen.append(world.rank)

    seen = []
    ditron.World(3, target="sim").run(program)
    assert seen == [0, 1, 2, 0, 1, 2]


def leaves_out_a_call(world):
    if world.rank != 1:
        world.synchronize()


def makes_another_call(world):
    world.symmetric(4, np.int32) if world.rank == 1 else world.synchronize()


def fails(world):
    if world.rank == 1:
        raise KeyError("mine")
    world.synchronize()


@pytest.mark.parametrize("program, kind, words", [
    (leaves_out_a_call, ditron.InvalidArgumentError, "rank 1 has returned and will not call what the others wait in: rank 0 world.synchronize; rank 2"),
    (makes_another_call, ditron.InvalidArgumentError, r"different calls, which would wait for ever: rank 0 world.synchronize; rank 1 world.symmetric\(\(4,\)"),
    (fails, KeyError, "mine"),
    (lambda world: world.run(fails), ditron.InvalidArgumentError, "not again inside of it"),
    (lambda world: [tl.rank()], ValueError, "can only be called in a kernel"),
])
def test_ranks_that_would_wait_for_ever(program, kind, words):
    world = ditron.World(3, target="sim")
    with pytest.raises(kind, match=words):
        world.run(program)
    assert world.run(lambda world: world.rank) == [0, 1, 2]  # goes on


def test_a_deadlock_of_kernels_is_told_to_every_rank():
    def program(world):
        flags = world.symmetric(1, np.int32)
        wait_for_nobody[(1,)](flags[world.rank])
        with pytest.raises(ditron.DeadlockError):
            world.synchronize()

    ditron.World(2, target="sim").run(program)


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int64, np.uint8, np.bool_])
def test_symmetric_arrays(kind):
    world = ditron.World(2, target="sim")
    tensor = world.symmetric((2, 3), kind)
    tensor[1][:] = 1
    assert tensor[0].dtype == kind and not tensor[0].any() and tensor[1].all()
    assert world.symmetric((0, 3), kind)[0].shape == (0, 3)
    with pytest.raises(ditron.InvalidArgumentError, match=r"shape \(-1, 2\): sizes are from 0"):
        world.symmetric((-1, 2), kind)
    with pytest.raises(TypeError, match="no element type complex64"):
        world.symmetric(2, np.complex64)
    with pytest.raises(ditron.InvalidArgumentError, match="rank 2 is not of this process"):
        tensor[2]


def test_a_world_goes_with_its_kernels():
    world = ditron.World(2, target="sim")
    inbox = world.symmetric(2, np.int32)
    with world.on(0):
        compiled = tell_all[(1,)](inbox[0], 2)
    world.synchronize()
    context = weakref.ref(world.context)
    gc.disable()
    del world, inbox
    gc.enable()
    assert context() is None and compiled not in tell_all.variants.values()


@ditron.jit
def write_sevens(out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), tl.full((N,), 7, tl.int32))


def test_dropped_tensors_are_kept_until_the_world_is_synchronised():
    """A kernel that has not run yet would write to whatever got their memory."""
    world = ditron.World(1, target="sim")
    attention = ditron.Attention(world, heads=2, head_dim=16, dtype=np.float16)
    out = np.zeros(1024, np.int32)
    dropped = weakref.ref(out)
    with world.on(0):
        write_sevens[(1,)](out, 1024)
    x, y = np.zeros((2, 1, 2, 4, 16), np.float16)
    also_dropped = weakref.ref(y)
    attention(x, x, x, y)
    del out, y
    assert dropped() is not None and also_dropped() is not None
    world.synchronize()
    assert dropped() is None and also_dropped() is None
