"""AllToAllV, SendReceive and Barrier on simulated ranks."""
import numpy as np
import pytest

import ditron

RANKS = 3


@pytest.fixture
def world():
    with ditron.World(RANKS, target="sim") as world:
        yield world


def exchange_of(counts, row, rng):
    """What each rank gives, and gets packed, for a matrix of counts [from, to]."""
    offsets = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)[:, :-1]
    x = [rng.integers(0, 1000, (max(int(each.sum()), 1), row)).astype(np.int32) for each in counts]
    wanted = [np.concatenate([x[peer][offsets[peer, rank]:offsets[peer, rank] + counts[peer, rank]] for peer in range(RANKS)])
              for rank in range(RANKS)]
    return x, list(np.ascontiguousarray(offsets)), wanted


@pytest.mark.parametrize("row, most", [(1, 3000), (8, 40), (5, 200)])
def test_all_to_all_v(world, row, most):
    rng = np.random.default_rng(most)
    exchange = ditron.AllToAllV(world, most, np.int32, row_elements=row, packed=True)
    exchange.prepare()
    for call in range(4):
        counts = rng.integers(0, most + 1, (RANKS, RANKS)) * rng.integers(0, 2, (RANKS, RANKS))
        x, offsets, wanted = exchange_of(counts, row, rng)
        out = [np.full((RANKS * most, row), -1, np.int32) for _ in range(RANKS)]
        receive_counts, receive_offsets = ([np.full(RANKS, -1, np.int64) for _ in range(RANKS)] for _ in range(2))
        assert exchange(x, list(counts.astype(np.int64)), offsets, out, receive_counts, receive_offsets) is out
        exchange.check()
        for rank in range(RANKS):
            np.testing.assert_array_equal(receive_counts[rank], counts[:, rank])
            np.testing.assert_array_equal(receive_offsets[rank], np.cumsum([0, *counts[:-1, rank]]))
            np.testing.assert_array_equal(out[rank][:len(wanted[rank])], wanted[rank])
            assert (out[rank][len(wanted[rank]):] == -1).all()


def test_all_to_all_v_in_threads_and_what_is_wrong(world):
    exchange = ditron.AllToAllV(world, 4, np.float32)

    def program(world):
        counts, offsets = np.full(RANKS, 4, np.int64), np.arange(RANKS, dtype=np.int64) * 4
        x, out, received = np.full(4 * RANKS, world.rank, np.float32), np.zeros(4 * RANKS, np.float32), np.zeros(RANKS, np.int64)
        exchange(x, counts, offsets, out, received, offsets)
        exchange.check()
        if world.rank == 0:
            counts[2] = 5
        exchange(x, counts, offsets, np.zeros_like(out), received, offsets)
        with pytest.raises(ditron.InvalidArgumentError, match="0 to 4 rows are accepted") if world.rank != 1 else _nothing():
            exchange.check()
        return out

    assert all((out == np.repeat(np.arange(RANKS), 4)).all() for out in world.run(program))
    x, words = [np.zeros(8, np.float32)] * RANKS, [np.zeros(RANKS, np.int64)] * RANKS
    for text, call in [("x is of type float64; fp32 is accepted", lambda: exchange([np.zeros(8)] * RANKS, words, words, x, words, words)),
                       ("send_counts has 2 elements; 3 are accepted", lambda: exchange(x, [np.zeros(2, np.int64)] * RANKS, words, x, words, words)),
                       ("out are 2 tensors", lambda: exchange(x, words, words, x[:2], words, words)),
                       ("max_rows=0; 1 to", lambda: ditron.AllToAllV(world, 0, np.float32)),
                       ("send them as uint8", lambda: ditron.AllToAllV(world, 1, np.bool_))]:
        with pytest.raises(ditron.InvalidArgumentError, match=text):
            call()


def test_what_is_wrong_of_the_last_rank_leaves_the_world_as_it_was(world):
    """No rank's call is made before those of all have been looked at."""
    rows = lambda last, kind=np.float32: [np.ones(RANKS, np.float32) for _ in range(RANKS - 1)] + [np.ones(last, kind)]
    words = lambda: [np.ones(RANKS, np.int64) for _ in range(RANKS)]
    offsets = lambda: [np.arange(RANKS, dtype=np.int64) for _ in range(RANKS)]
    exchange = ditron.AllToAllV(world, 4, np.float32)
    with pytest.raises(ditron.InvalidArgumentError, match="x is of type float64"):
        exchange(rows(RANKS, np.float64), words(), offsets(), rows(RANKS), words(), offsets())
    out = [np.zeros(RANKS, np.float32) for _ in range(RANKS)]
    exchange(rows(RANKS), words(), offsets(), out, words(), offsets())
    world.synchronize()
    assert all((each == 1).all() for each in out)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_messages_in_a_circle_and_their_sizes(world):
    pairs = ditron.SendReceive(world, np.float32)
    pairs.prepare()
    for size in (0, 1, 1001, 40000):
        x = [np.arange(size, dtype=np.float32) + rank for rank in range(RANKS)]
        y = [np.zeros(size, np.float32) for _ in range(RANKS)]
        for rank in range(RANKS):
            pairs([((rank + 1) % RANKS, x[rank])], [((rank - 1) % RANKS, y[rank])], rank=rank)
        pairs.check()
        assert all(np.array_equal(y[rank], x[rank - 1]) for rank in range(RANKS))
    pairs(sends=[(1, np.zeros(7, np.float32))], rank=0)
    pairs(receives=[(0, np.zeros(9, np.float32))], rank=1)
    with pytest.raises(ditron.InvalidArgumentError, match="rank 0 has sent 7 elements, and 9 were to be received"):
        pairs.check()
    # Errors of several ranks are those of one check.
    for peer in range(RANKS):
        pairs([((peer + 1) % RANKS, np.zeros(3, np.float32))], [((peer - 1) % RANKS, np.zeros(4, np.float32))], rank=peer)
    with pytest.raises(ditron.InvalidArgumentError, match="has sent 3 elements, and 4 were to be received"):
        pairs.check()
    pairs.check()
    with pytest.raises(ditron.InvalidArgumentError, match="a send to rank 3"):
        pairs([(3, np.zeros(9, np.float32))], rank=0)


def test_a_message_that_nobody_receives_is_explained():
    world = ditron.World(RANKS, target="sim")
    pairs = ditron.SendReceive(world, np.float32)
    pairs([(2, np.zeros(7, np.float32))], rank=1)
    with pytest.raises(ditron.DeadlockError, match=r"rank 1, kernel send_receive[\s\S]*waits for send_receive_taken\[2\] on rank 1"):
        world.synchronize()


def test_barrier(world):
    barrier = ditron.Barrier(world)
    barrier.prepare()
    for _ in range(3):
        barrier()
    world.synchronize()
    world.run(lambda world: (barrier(), world.synchronize()))
