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


@pytest.mark.parametrize("dtype, limit", [(np.float32, 1e-5), (np.float16, 4e-3)])
@pytest.mark.parametrize("in_place", [True, False])
def test_all_reduce_rms_norm(world, dtype, limit, in_place):
    norm = ditron.AllReduceRmsNorm(world, 40, 24, dtype, epsilon=0.25)
    norm.prepare(33)
    weight = numbers(5, 24, dtype)
    for rows in (33, 1, 40, 33):
        x, residual = [numbers(rank + rows, rows * 24, dtype).reshape(rows, 24) for rank in range(RANKS)], [numbers(9, rows * 24, dtype).reshape(rows, 24) for _ in range(RANKS)]
        sums = sum(x) + residual[0]
        results = () if in_place else ([np.zeros_like(each) for each in x], [np.zeros_like(each) for each in x])
        out, residual_out = norm(x, residual, [weight] * RANKS, *results)
        world.synchronize()
        assert (out is x and residual_out is residual) == in_place
        expected = sums.astype(float) / np.sqrt((sums.astype(float) ** 2).mean(1, keepdims=True) + 0.25) * weight
        for rank in range(RANKS):
            np.testing.assert_array_equal(residual_out[rank], sums)
            np.testing.assert_allclose(out[rank], expected, rtol=limit, atol=limit)
    weights, wide = [weight] * RANKS, np.zeros((80, 24), dtype)
    for words, arguments in ((r"weight is \[8\]; \[24\] is accepted", (x, residual, [weight[:8]] * RANKS)), (r"weight is \[2, 24\]", (x, residual, [wide[:2]] * RANKS)),
                             (r"residual is \[2, 24\]; \[33, 24\]", (x, [each[:2] for each in residual], weights)),
                             ("x has 20 elements, no multiple of the 24", ([np.zeros(20, dtype)] * RANKS, residual, weights)),
                             (r"x is \[66, 12\]; \[33, 24\]", ([each.reshape(66, 12) for each in x], residual, weights)),
                             (r"\[32, 33\] rows on the ranks", ([*x[1:], x[0][:32]], [*residual[1:], residual[0][:32]], weights)),
                             ("x of rank 2 is missing$", ([*x[1:], None], residual, weights)), ("out overlaps residual_out", (x, x, weights)),
                             ("out overlaps weight", ([*x[1:], wide[:33]], residual, [*weights[1:], wide[32]])),
                             ("out overlaps x; all of it is accepted, or nothing", ([*x[1:], wide[:33]], residual, weights, [*x[1:], wide[32:65]])),
                             ("residual_out overlaps residual", (x, [*residual[1:], wide[1:34]], weights, x, [*residual[1:], wide[:33]]))):
        with pytest.raises(ditron.InvalidArgumentError, match=words):
            norm(*arguments)
    norm(x, residual, weights, residual, x)  # each in the place of the other one
    world.synchronize()
    for words, options in (("epsilon is -1", {"epsilon": -1.0}), ("epsilon=0.0; numbers other than 0", {"epsilon": 0.0}), ("epsilon is nan", {"epsilon": float("nan")})):
        with pytest.raises(ditron.InvalidArgumentError, match=words):
            ditron.AllReduceRmsNorm(world, 40, 24, dtype, **options)
    with pytest.raises(ditron.InvalidArgumentError, match="3 columns of"):
        ditron.AllReduceRmsNorm(world, 40, 3, dtype)


@pytest.mark.parametrize("make, in_parts, out_parts, same", [
    (ditron.AllReduce, 1, 1, 0), (ditron.AllToAll, RANKS, RANKS, 0), (ditron.AllGather, 1, RANKS, None), (ditron.ReduceScatter, RANKS, 1, None)])
def test_overlaps(world, make, in_parts, out_parts, same):
    collective, n = make(world, 8, np.int32), 8
    memory = [np.arange(100 * n, dtype=np.int32) for _ in range(RANKS)]
    middle = 50 * n

    def call(offset):  # of the larger of both in front of the smaller
        xs, outs = [], []
        for rank, each in enumerate(memory):
            smaller = middle + (offset if offset is not None else n * rank)
            begins = (smaller, middle) if in_parts < out_parts else (middle, smaller)
            xs.append(each[begins[0]:][:in_parts * n])
            outs.append(each[begins[1]:][:out_parts * n])
        collective(xs, outs)
    smaller, larger = min(in_parts, out_parts) * n, max(in_parts, out_parts) * n
    for offset in range(-smaller - 2, larger + 2):
        if offset == 0 and same == 0:
            continue
        if -smaller < offset < larger:
            with pytest.raises(ditron.InvalidArgumentError, match=r"out is at 0x[0-9a-f]+ and overlaps in"):
                call(offset)
        elif offset % 4 == 0:
            call(offset)
    call(same)
    world.synchronize()


def at(shape, dtype, offset):
    """Zeros so many bytes behind a multiple of 16."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 32, np.uint8)
    begin = -raw.__array_interface__["data"][0] % 16 + offset
    return raw[begin:begin + size].view(dtype).reshape(shape)


def read_only(shape, dtype):
    made = np.zeros(shape, dtype)
    made.flags.writeable = False
    return made


def all_reduce_of(world):
    reduce = ditron.AllReduce(world, 16, np.float16)
    return lambda last: reduce([np.ones(16, np.float16)] * (RANKS - 1) + [last], [np.ones(16, np.float16) for _ in range(RANKS)])


def ring_attention_of(world):
    ring = ditron.RingAttention(world, 1, 16, np.float16, RANKS)
    ones = lambda: [np.ones((1, 1, 1, 16), np.float16) for _ in range(RANKS)]
    return lambda last: ring([*ones()[1:], last.reshape(1, 1, 1, 16)], ones(), ones(), ones(), RANKS)


def decode_of(world):
    decode = ditron.AttentionDecode(world, 1, 1, 16, np.float16, keys=1, over_ranks=True)
    ones = lambda: [np.ones((1, 1, 1, 16), np.float16) for _ in range(RANKS)]
    return lambda last: decode([*ones()[1:], last.reshape(1, 1, 1, 16)], ones(), ones(), ones(), [np.ones((1, 1), np.int32)] * RANKS)


@pytest.mark.parametrize("make", [all_reduce_of, ring_attention_of, decode_of])
def test_a_call_that_one_rank_is_refused_is_made_on_none(world, make):
    call = make(world)
    for _ in range(2):
        with pytest.raises(ditron.InvalidArgumentError, match=r"is at 0x[0-9a-f]+(; multiples of (2|16) bytes are accepted|, 1 behind a multiple of 2)"):
            call(at(16, np.float16, 1))
        with pytest.raises(TypeError, match="read-only"):
            call(read_only(16, np.float16))
    call(np.ones(16, np.float16))
    world.synchronize()


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
