"""AllReduce, AllGather, ReduceScatter, AllToAll and Broadcast on simulated ranks."""
import gc
import weakref

import numpy as np
import pytest

import ditron

RANKS = 3


def numbers(rank, size, dtype=np.float32):
    return ((np.arange(size) * 7 + rank * 3) % 11 - 5).astype(dtype)


@pytest.fixture
def world():
    with ditron.World(RANKS, target="sim") as world:
        yield world


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64])
@pytest.mark.parametrize("op, combine", [("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_all_reduce(world, op, combine, dtype):
    reduce = ditron.AllReduce(world, 30000, dtype, op)
    for size in (1, 1000, 30000):
        reduce.prepare(size)
        x = [numbers(rank, size, dtype) for rank in range(RANKS)]
        out = [np.empty_like(each) for each in x]
        for _ in range(3):
            assert reduce(x, out) is out
        world.synchronize()
        for each in out:
            np.testing.assert_array_equal(each, combine(x, axis=0))


def test_all_reduce_in_place_with_scale(world):
    reduce = ditron.AllReduce(world, 64, np.float32, op="average", scale=0.5)
    x = [np.full((4, 16), 2 * rank, np.float32) for rank in range(RANKS)]
    reduce(x)
    world.synchronize()
    assert all((each == 1).all() for each in x)


def test_all_gather(world):
    gather = ditron.AllGather(world, 500, np.int16)
    x, out = [numbers(rank, 500, np.int16) for rank in range(RANKS)], [np.zeros((RANKS, 500), np.int16) for _ in range(RANKS)]
    gather(x, out)
    world.synchronize()
    assert all(np.array_equal(each, np.stack(x)) for each in out)
    out = [np.zeros((RANKS, 500), np.int16) for _ in range(RANKS)]
    for rank, each in enumerate(out):
        each[rank] = x[rank]
    gather([each[rank] for rank, each in enumerate(out)], out)
    world.synchronize()
    assert all(np.array_equal(each, np.stack(x)) for each in out)


def test_reduce_scatter(world):
    scatter = ditron.ReduceScatter(world, 500, np.float32)
    x, out = [numbers(rank, RANKS * 500) for rank in range(RANKS)], [np.zeros(500, np.float32) for _ in range(RANKS)]
    scatter(x, out)
    world.synchronize()
    np.testing.assert_array_equal(np.concatenate(out), sum(x))


def test_all_to_all(world):
    exchange = ditron.AllToAll(world, 200, np.uint8)
    x = [numbers(rank, RANKS * 200, np.uint8).reshape(RANKS, 200) for rank in range(RANKS)]
    expected = [np.stack([each[rank] for each in x]) for rank in range(RANKS)]
    exchange(x)
    world.synchronize()
    assert all(map(np.array_equal, x, expected))


def test_broadcast(world):
    send = ditron.Broadcast(world, 1000, np.float64, root=2)
    x = [numbers(rank, 1000, np.float64) for rank in range(RANKS)]
    send(x)
    world.synchronize()
    assert all(np.array_equal(each, numbers(2, 1000, np.float64)) for each in x)


def test_each_rank_calls_in_a_thread_of_its_own():
    world = ditron.World(RANKS, target="sim")
    reduce = ditron.AllReduce(world, 100, np.float32)

    def program(world):
        x = np.full(100, 1 + world.rank, np.float32)
        assert reduce(x) is x
        world.synchronize()
        with pytest.raises(ditron.InvalidArgumentError, match="make it before world.run"):
            ditron.AllReduce(world, 100, np.float32)
        return x

    assert all((x == 6).all() for x in world.run(program))


def test_what_is_wrong(world):
    reduce, gather = ditron.AllReduce(world, 100, np.float32), ditron.AllGather(world, 100, np.float32)
    x = [np.zeros(100, np.float32) for _ in range(RANKS)]

    def refused(words, call, *arguments):
        with pytest.raises(ditron.InvalidArgumentError, match=words):
            call(*arguments)

    refused("op 'add'; accepted are sum, max, min, average", ditron.AllReduce, world, 100, np.float32, "add")
    refused("type bool; send them as uint8", ditron.AllReduce, world, 100, np.bool_)
    refused("max_elements=0; 1 to", ditron.AllReduce, world, 0, np.float32)
    refused("root 3 of 3 ranks; 0 to 2 is accepted", ditron.Broadcast, world, 100, np.float32, 3)
    refused("this process has 3 ranks; given are 2 and 2 tensors", reduce, x[:2])
    refused("this process has the ranks", reduce, x[0])
    refused("x is of type float64; the collective was made for fp32", reduce, [np.zeros(4)] * RANKS)
    refused("contiguous tensors", reduce, [each[::2] for each in x])
    refused("out is not given", gather, x)
    refused("x has 100 elements and out 100, on 3 ranks; 100 and 300 are accepted", gather, x, x)
    refused(r"\[100, 100, 50\] elements on the ranks", reduce, [*x[:2], x[2][:50]])
    refused("101 elements; 0 to 100", reduce.prepare, 101)
    with pytest.raises(ditron.InvalidArgumentError, match="101 elements"):
        reduce([np.zeros(101, np.float32) for _ in range(RANKS)])


def test_a_world_goes_with_its_collectives():
    world = ditron.World(2, target="sim")
    reduce = ditron.AllReduce(world, 16, np.float32)
    reduce([np.ones(16, np.float32) for _ in range(2)])
    world.synchronize()
    context = weakref.ref(world.context)
    gc.disable()
    del world, reduce
    gc.enable()
    assert context() is None
