"""Attention, its gradients, and attention of a decoder on simulated ranks, beside NumPy."""
import numpy as np
import pytest

import ditron

RANKS = 2


@pytest.fixture
def world():
    with ditron.World(RANKS, target="sim") as world:
        yield world


def draw(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float16)


def attend(q, k, v, causal=False, window=None, soft_cap=None, sink=None, slope=0.0):
    """One head in float64: q [queries, dim], k and v [keys, dim]; the result and log-sum-exp."""
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    if soft_cap:
        scores = soft_cap * np.tanh(scores / soft_cap)
    distance = np.arange(len(q))[:, None] + len(k) - len(q) - np.arange(len(k))
    scores = scores - slope * abs(distance)
    scores = np.where((distance >= 0) | (not causal), scores, -np.inf)
    if window is not None:
        scores = np.where(distance <= window, scores, -np.inf)
    more = scores if sink is None else np.concatenate([scores, np.full((len(q), 1), sink)], axis=1)
    lse = np.log(np.exp(more).sum(axis=1))
    return np.exp(scores - lse[:, None]) @ v, lse


@pytest.mark.parametrize("rows_first", [False, True])
def test_options(world, rows_first):
    heads, kv_heads, dim, queries, keys = 4, 2, 32, 19, 23
    attention = ditron.Attention(world, heads, dim, np.float16, kv_heads=kv_heads, causal=True, window=9, soft_cap=2.0, rows_first=rows_first)
    turn = (lambda each: np.ascontiguousarray(each.swapaxes(1, 2))) if rows_first else (lambda each: each)
    q, k, v = ([draw(seed + rank, 2, count, rows, dim) for rank in range(RANKS)] for seed, count, rows in ((0, heads, queries), (5, kv_heads, keys), (9, kv_heads, keys)))
    out = [turn(np.zeros_like(each)) for each in q]
    lse = [np.zeros((2, heads, queries), np.float32) for _ in q]
    sinks = [np.linspace(-1, 1, heads, dtype=np.float32)] * RANKS
    slopes = [np.linspace(0, 0.3, heads, dtype=np.float32)] * RANKS
    arguments = [[turn(each) for each in tensors] for tensors in (q, k, v)]
    attention.prepare(*arguments, out, lse=lse, sinks=sinks, slopes=slopes)
    assert attention(*arguments, out, lse=lse, sinks=sinks, slopes=slopes) is out
    world.synchronize()
    for rank in range(RANKS):
        for batch in range(2):
            for head in range(heads):
                wanted, sums = attend(q[rank][batch, head], k[rank][batch, head // 2], v[rank][batch, head // 2], True, 9, 2.0, sinks[0][head], slopes[0][head])
                np.testing.assert_allclose(turn(out[rank])[batch, head], wanted, atol=3e-3)
                np.testing.assert_allclose(lse[rank][batch, head], sums, atol=1e-3)


def test_packed_rows(world):
    attention = ditron.Attention(world, 2, 16, np.float16, causal=True, rows_first=True)
    lengths = [(3, 17, 6), (20, 1, 5)]
    offsets = [np.concatenate([[0], np.cumsum(each)]).astype(np.int32) for each in lengths]
    q, k, v = ([draw(seed + rank, 26, 2, 16) for rank in range(RANKS)] for seed in (1, 3, 5))
    out = [np.zeros_like(each) for each in q]
    attention(q, k, v, out, query_offsets=offsets, key_offsets=offsets, max_queries=20, max_keys=20)
    world.synchronize()
    for rank in range(RANKS):
        for begin, end in zip(offsets[rank], offsets[rank][1:]):
            for head in range(2):
                wanted, _ = attend(*(each[rank][begin:end, head] for each in (q, k, v)), True)
                np.testing.assert_allclose(out[rank][begin:end, head], wanted, atol=3e-3)


def test_gradients_are_slopes(world):
    attention = ditron.Attention(world, 2, 16, np.float16, kv_heads=1, causal=True)

    def program(world):
        q, k, v, gradient = (draw(10 * number + world.rank, 1, heads, rows, 16) for number, heads, rows in ((1, 2, 9), (2, 1, 9), (3, 1, 9), (4, 2, 9)))
        out, lse, (dq, dk, dv) = np.zeros_like(q), np.zeros((1, 2, 9), np.float32), (np.zeros_like(each) for each in (q, k, v))
        attention.backward(q, k, v, out, lse, gradient, dq, dk, dv, prepares=True)
        attention(q, k, v, out, lse=lse)
        attention.backward(q, k, v, out, lse, gradient, dq, dk, dv)
        world.synchronize()
        return (q, k, v), gradient, (dq, dk, dv)

    for tensors, gradient, found in world.run(program):
        tensors = [each.astype(np.float64) for each in tensors]

        def value():
            return sum((attend(tensors[0][0, head], tensors[1][0, 0], tensors[2][0, 0], True)[0] * gradient[0, head]).sum() for head in range(2))
        for array, slope in zip(tensors, found):
            flat = array.reshape(-1)
            for at in np.random.default_rng(1).integers(0, flat.size, 6):
                kept, ends = flat[at], []
                for step in (1e-4, -1e-4):
                    flat[at] = kept + step
                    ends.append(value())
                flat[at] = kept
                np.testing.assert_allclose(slope.reshape(-1)[at], (ends[0] - ends[1]) / 2e-4, atol=5e-3)


@pytest.mark.parametrize("heads_first", [False, True])
def test_decode_in_pages(world, heads_first):
    """And the prefill from the same pages."""
    heads, kv_heads, dim, page, batch = 4, 2, 32, 16, 3
    decode = ditron.AttentionDecode(world, batch, heads, dim, np.float16, kv_heads=kv_heads, page_size=page, table_width=2, heads_first=heads_first)
    decode.prepare(batch, with_lse=True)
    shape = (kv_heads, page) if heads_first else (page, kv_heads)
    k, v = ([draw(seed + rank, 7, *shape, dim) for rank in range(RANKS)] for seed in (1, 3))
    q = [draw(5 + rank, batch, heads, 1, dim) for rank in range(RANKS)]
    out, lse = [np.zeros_like(each) for each in q], [np.zeros((batch, heads, 1), np.float32) for _ in q]
    lengths = [np.array([[5], [32], [0]], np.int32), np.array([[17], [1], [16]], np.int32)]
    table = [np.array([[6, 1], [2, 3], [4, 5]], np.int32)] * RANKS
    assert decode(q, k, v, out, lengths, table=table, lse=lse) is out
    attention = ditron.Attention(world, heads, dim, np.float16, kv_heads=kv_heads, rows_first=not heads_first, page_size=page)
    again = [np.zeros_like(each) for each in q]
    turned = lambda tensors: tensors if heads_first else [each.reshape(batch, 1, heads, dim) for each in tensors]
    attention(turned(q), k, v, turned(again), key_lengths=[each[:, 0].copy() for each in lengths], block_table=table)
    world.synchronize()
    for rank in range(RANKS):
        for sequence, (count,) in enumerate(lengths[rank]):
            for head in range(heads):
                rows = [np.concatenate([each[rank][at][head // 2] if heads_first else each[rank][at][:, head // 2] for at in table[0][sequence]])[:count]
                        for each in (k, v)]
                wanted, sums = attend(q[rank][sequence, head], *rows) if count else (np.zeros((1, dim)), [-np.inf])
                np.testing.assert_allclose(out[rank][sequence, head], wanted, atol=3e-3)
                np.testing.assert_allclose(again[rank][sequence, head], wanted, atol=3e-3)
                np.testing.assert_allclose(lse[rank][sequence, head], sums, atol=1e-3)


def test_decode_over_ranks(world):
    decode = ditron.AttentionDecode(world, 2, 2, 16, np.float16, keys=12, over_ranks=True)
    decode.prepare(2)
    given = [draw(rank, 2, 12, 2, 16) for rank in range(2 * RANKS)]
    q, lengths = draw(9, 2, 2, 1, 16), [np.array([[12], [0]], np.int32), np.array([[5], [7]], np.int32)]

    def program(world):
        out = np.zeros_like(q)
        decode(q.copy(), given[2 * world.rank], given[2 * world.rank + 1], out, lengths[world.rank])
        world.synchronize()
        return out

    first, second = world.run(program)
    np.testing.assert_array_equal(first, second)
    for sequence in range(2):
        for head in range(2):
            k, v = (np.concatenate([given[2 * rank + which][sequence, :lengths[rank][sequence, 0], head] for rank in range(RANKS)]) for which in range(2))
            np.testing.assert_allclose(first[sequence, head], attend(q[sequence, head], k, v)[0], atol=3e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("goes_round", [False, True])
def test_ring(world, causal, goes_round):
    """Tokens dealt out to the ranks beside all of them on one, forward and backward."""
    batch, heads, kv_heads, dim, tokens = 2, 4, 2, 16, 23
    whole = ditron.Attention(world, heads, dim, np.float16, kv_heads=kv_heads, causal=causal)
    q, gradient = draw(1, batch, heads, tokens, dim), draw(2, batch, heads, tokens, dim)
    k, v = draw(3, batch, kv_heads, tokens, dim), draw(4, batch, kv_heads, tokens, dim)
    out, dq, dk, dv = (np.zeros_like(each) for each in (q, q, k, v))
    lse = np.zeros((batch, heads, tokens), np.float32)
    both = [[each, each.copy()] for each in (q, k, v, out, lse, gradient, dq, dk, dv)]
    whole(*both[:4], lse=both[4])
    whole.backward(*both)
    world.synchronize()

    ring = ditron.RingAttention(world, heads, dim, np.float16, 64, batch=batch, kv_heads=kv_heads, causal=causal, goes_round=goes_round, backward=True)
    ring.prepare(tokens, with_lse=True)
    ring.prepare_backward(tokens)
    for count in (1, 2, 3, 5, 8, tokens, 64):
        assert sorted(token for rank in range(RANKS) for first, own in ring.sections(rank, count) for token in range(first, first + own)) == list(range(count))
    own = [[np.ascontiguousarray(ring.deal(each, rank, tokens)) for rank in range(RANKS)] for each in (q, k, v, gradient)]
    results = [[np.full_like(each, -9) for each in own[which]] for which in (0, 0, 1, 1)]
    sums = [np.zeros(each.shape[:3], np.float32) for each in own[0]]
    assert ring(*own[:3], results[0], tokens, lse=sums) is results[0]
    ring.backward(*own[:3], results[0], sums, own[3], *results[1:], tokens)
    world.synchronize()
    for rank in range(RANKS):
        for found, wanted in zip(results, (out, dq, dk, dv)):
            np.testing.assert_allclose(found[rank], ring.deal(wanted, rank, tokens), atol=5e-3)
        np.testing.assert_allclose(sums[rank][..., None], ring.deal(lse[..., None], rank, tokens), atol=1e-3)


def test_ring_of_packed_sequences(world):
    heads, dim, tokens = 2, 16, 30
    ring = ditron.RingAttention(world, heads, dim, np.float16, tokens, causal=True, packed_sequences=3)
    q, k, v = (draw(seed, 1, heads, tokens, dim) for seed in (1, 2, 3))
    ends = [0, 11, 11, 28]

    def program(world):
        own = [np.ascontiguousarray(ring.deal(each, world.rank, tokens)) for each in (q, k, v)]
        out = np.zeros_like(own[0])
        ring(*own, out, tokens, offsets=np.array(ends, np.int32))
        world.synchronize()
        return out

    wanted = np.zeros_like(q)
    for begin, end in zip(ends, ends[1:]):
        for head in range(heads):
            if end > begin:
                wanted[0, head, begin:end] = attend(*(each[0, head, begin:end] for each in (q, k, v)), causal=True)[0]
    for rank, found in enumerate(world.run(program)):
        real = ring.deal(np.arange(tokens)[:, None], rank, tokens)[:, 0] < ends[-1]
        np.testing.assert_allclose(found[:, :, real], ring.deal(wanted, rank, tokens)[:, :, real], atol=3e-3)


def test_operators_are_kept(world):
    """Until their calls have run, also where the program has dropped them."""
    own, out = ([np.ones((1, 2, 4, 16), np.float16) for _ in range(RANKS)] for _ in range(2))
    ditron.RingAttention(world, 2, 16, np.float16, 10)(own, own, own, out, 8)
    flat, sums = ([np.ones(64, np.float16) for _ in range(RANKS)] for _ in range(2))
    ditron.AllReduce(world, 64, np.float16)(flat, sums)
    a, b, c = ([np.ones((4, 16), np.float16) for _ in range(RANKS)] for _ in range(3))
    ditron.GemmAllReduce(world, 4, 4, 32, np.float16)(a, b, [each[:, :4].copy() for each in c])
    world.synchronize()
    assert all((each == 1).all() for each in out) and all((each == RANKS).all() for each in sums)


def test_ring_refusals(world):
    ring = ditron.RingAttention(world, 2, 16, np.float16, 10)
    q = [np.zeros((1, 2, 2, 16), np.float16)] * RANKS
    with pytest.raises(ditron.InvalidArgumentError, match=r"q is \[1, 2, 2, 16\]; \[1, 2, 3, 16\] is accepted"):
        ring(q, q, q, q, 6)
    more = [np.zeros((1, 2, rows, 16), np.float16) for rows in (6, 5)]
    with pytest.raises(ditron.InvalidArgumentError, match="11 tokens; 1 to 10"):
        ring(more, more, more, more, 11)
    for tokens in (0, -4):
        with pytest.raises(ditron.InvalidArgumentError, match=f"{tokens} tokens; 1 to 10 .max_tokens. are accepted"):
            ring(q, q, q, q, tokens)
    for rank, tokens in ((2, 4), (-1, 4), (0, -1)):
        with pytest.raises(ditron.InvalidArgumentError, match="ranks from 0 to 1 and 0 tokens and more are accepted"):
            ring.sections(rank, tokens)
    with pytest.raises(ditron.InvalidArgumentError, match="lse is missing"):
        ring.backward(q, q, q, q, None, q, q, q, q, 4)
    with pytest.raises(ditron.UnsupportedError, match="the scale nan; positive ones"):
        ditron.RingAttention(world, 2, 16, np.float16, 10, scale=float("nan"))
    with pytest.raises(ditron.InvalidArgumentError, match="offsets are missing, which say where each of 3 sequences begins"):
        ditron.RingAttention(world, 2, 16, np.float16, 10, packed_sequences=3)(q, q, q, q, 4)
    # What is wrong of the last rank only leaves the world as it was.
    own, out = ([np.zeros((1, 2, 2, 16), np.float16) for _ in range(RANKS)] for _ in range(2))
    with pytest.raises(ditron.InvalidArgumentError, match="k is"):
        ring(own, [own[0], own[1][:, :, :1]], own, out, 4)
    ring(own, own, own, out, 4)
    world.synchronize()
    with pytest.raises(ditron.InvalidArgumentError, match="`backward` of its options"):
        ring.prepare_backward(4)
    with pytest.raises(ditron.InvalidArgumentError, match=r"to be dealt out; \[..., 6, n\] is accepted"):
        ring.deal(q[0], 0, 6)


class Layer:
    """A layer of attention in float64, of fp16 weights."""

    HIDDEN, DIM, KEYS = 32, 16, 48

    def __init__(self, heads, kv_heads, seed=0):
        self.heads, self.kv_heads = heads, kv_heads
        rows = (heads + 2 * kv_heads) * self.DIM
        self.qkv, self.out = draw(seed, rows, self.HIDDEN), draw(seed + 1, self.HIDDEN, heads * self.DIM)
        self.bias, self.q_norm, self.k_norm = draw(seed + 2, rows), draw(seed + 3, self.DIM), draw(seed + 4, self.DIM)
        angles = np.outer(np.arange(self.KEYS), 100.0 ** (-np.arange(self.DIM // 2) * 2 / self.DIM))
        self.rotary = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def weights(self, ranks, rank):
        rows = ditron.TensorParallelAttention.qkv_rows(self.heads, self.kv_heads, self.DIM, ranks, rank)
        part = self.heads // ranks * self.DIM
        return {"qkv": self.qkv[rows], "qkv_bias": self.bias[rows], "out": np.ascontiguousarray(self.out[:, rank * part:(rank + 1) * part]),
                "q_norm": self.q_norm, "k_norm": self.k_norm, "rotary": self.rotary}

    def turned(self, values, norm):
        """[tokens, heads, dim] with norm and rotation."""
        values = values / np.sqrt((values ** 2).mean(axis=2, keepdims=True) + 1e-5) * norm.astype(np.float64)
        half = self.DIM // 2
        cosine, sine = (self.rotary[:len(values), None, part].astype(np.float64) for part in (slice(half), slice(half, None)))
        first, second = values[..., :half], values[..., half:]
        return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=2)

    def __call__(self, x):
        rows = (x.astype(np.float64) @ self.qkv.T + self.bias).reshape(len(x), -1, self.DIM)
        q, k = self.turned(rows[:, :self.heads], self.q_norm), self.turned(rows[:, self.heads:self.heads + self.kv_heads], self.k_norm)
        v, group = rows[:, self.heads + self.kv_heads:], self.heads // self.kv_heads
        attended = [attend(q[:, head], k[:, head // group], v[:, head // group], True)[0] for head in range(self.heads)]
        return np.concatenate(attended, axis=1) @ self.out.T


@pytest.mark.parametrize("dealt, kv_heads", [(False, 2), (True, 1)])
def test_tensor_parallel_attention(world, dealt, kv_heads):
    """Two sequences in pages: a prefill of both, then steps of decoding, in threads."""
    model, counts, steps = Layer(4, kv_heads), (5, 9), 3
    layer = ditron.TensorParallelAttention(world, [model.weights(RANKS, rank) for rank in range(RANKS)], model.HIDDEN, 4, model.DIM, np.float16, 14, 2,
                                           model.KEYS, kv_heads=kv_heads, rotary_dim=model.DIM, norm_epsilon=1e-5, dealt=dealt, page_size=16, pages=6)
    layer.prepare_prefill(14, 2, 9)
    layer.prepare_decode(2)
    x = [draw(50 + sequence, count + steps, model.HIDDEN) for sequence, count in enumerate(counts)]
    calls = [np.concatenate([each[:count] for each, count in zip(x, counts)])]
    calls += [np.stack([each[count + step] for each, count in zip(x, counts)]) for step in range(steps)]

    def program(world):
        cache = [np.zeros(layer.cache, np.float16) for _ in range(2)]
        table, results = np.array([[5, 3, 1], [0, 2, 4]], np.int32), []
        for number, given in enumerate(calls):
            part = -(-len(given) // RANKS)
            own = given[world.rank * part:(world.rank + 1) * part].copy() if dealt else given.copy()
            y, lengths = np.zeros_like(own), np.array(counts, np.int32) + number
            if number == 0:
                assert layer.prefill(own, y, *cache, lengths, np.array([0, 5, 14], np.int32), table=table, longest=9) is y
                for word in ("longest", "tokens"):
                    with pytest.raises(ditron.InvalidArgumentError, match=f"{word}=0; 1 to"):
                        layer.prefill(own, y, *cache, lengths, np.array([0, 5, 14], np.int32), table=table, **{word: 0})
            else:
                assert layer.decode(own, y, *cache, lengths, table=table) is y
            world.synchronize()
            results.append(y)
        return results

    results = world.run(program)
    wanted = [model(each) for each in x]
    for number in range(len(calls)):
        found = np.concatenate([each[number] for each in results]) if dealt else results[1][number]
        if number == 0:
            expected = np.concatenate([each[:count] for each, count in zip(wanted, counts)])
        else:
            expected = np.stack([each[count + number - 1] for each, count in zip(wanted, counts)])
        np.testing.assert_allclose(found, expected, atol=2e-2)
    x, words = calls[1], np.ones(2, np.int32)
    given = lambda: (x.copy(), np.zeros_like(x), np.zeros(layer.cache, np.float16), np.zeros(layer.cache, np.float16), words)
    for text, call in [("table is missing", lambda world: layer.decode(*(each[:1] if dealt else each for each in given()[:2]), *given()[2:])),
                       ("offsets are missing", lambda world: layer.prefill(*given(), None, table=np.zeros((2, 3), np.int32), tokens=4 if dealt else None)),
                       (r"keys is \[1\]; \[6, 16, 1, 16\] is accepted", lambda world: layer.decode(*(each[:1] if dealt else each for each in given()[:2]), np.zeros(1, np.float16),
                                                                                   *given()[3:], table=np.zeros((2, 3), np.int32)))]:
        with pytest.raises(ditron.InvalidArgumentError, match=text):
            world.run(call)
    with pytest.raises(ditron.InvalidArgumentError, match=r"out is \[32, 64\]; \[32, 32\] is accepted"):
        ditron.TensorParallelAttention(world, [{"qkv": model.weights(RANKS, 0)["qkv"], "out": model.out}] * RANKS, model.HIDDEN, 4, model.DIM, np.float16,
                                       4, 1, 4, kv_heads=kv_heads)


@pytest.mark.parametrize("paged", [False, True])
def test_sequence_parallel_attention(world, paged):
    """Two sequences whose tokens are spread over the ranks, in threads; then steps whose keys are dealt by turns."""
    model, tokens, steps, hidden = Layer(4, 2), 7, 3, Layer.HIDDEN
    model.bias[:] = 0
    rows = ditron.SequenceParallelAttention.qkv_rows(4, 2, model.DIM, RANKS)
    weights = {"qkv": model.qkv[rows], "out": model.out, "q_norm": model.q_norm, "k_norm": model.k_norm, "rotary": model.rotary}
    layer = ditron.SequenceParallelAttention(world, [{word: each.copy() for word, each in weights.items()} for _ in range(RANKS)], hidden, 4, model.DIM,
                                             np.float16, tokens, batch=2, kv_heads=2, rotary_dim=model.DIM, norm_epsilon=1e-5, cache_batch=2, cache_keys=8,
                                             **({"page_size": 4, "pages": 5} if paged else {}))
    layer.prepare_prefill(tokens)
    layer.prepare_decode(2)
    x = draw(60, 2, tokens + steps, hidden)
    part = -(-tokens // RANKS)
    table = np.array([[4, 0], [1, 3]], np.int32) if paged else None

    def program(world):
        keys, values = (np.zeros(layer.cache, np.float16) for _ in range(2))
        own = x[:, world.rank * part:min((world.rank + 1) * part, tokens)].copy()
        results, count = [np.zeros_like(own)], own.shape[1]
        assert layer.prefill(own, results[0], tokens, keys=keys, values=values, table=table) is results[0]
        world.synchronize()
        for step in range(steps):
            given, y = x[:, tokens + step].copy(), np.zeros((2, hidden), np.float16)
            place, count = (count, count + 1) if step % RANKS == world.rank else (-1, count)
            assert layer.decode(given, y, keys, values, *(np.full(2, each, np.int32) for each in (count, place, tokens + step)), table=table) is y
            world.synchronize()
            results.append(y)
        return results

    results = world.run(program)
    wanted = np.stack([model(each) for each in x])
    np.testing.assert_allclose(np.concatenate([each[0] for each in results], axis=1), wanted[:, :tokens], atol=2e-2)
    for step in range(steps):
        np.testing.assert_array_equal(results[0][1 + step], results[1][1 + step])
        np.testing.assert_allclose(results[0][1 + step], wanted[:, tokens + step], atol=2e-2)
    few, words = x[:, 0].copy(), np.zeros(2, np.int32)
    for text, call in [("x has 2 rows; rank [01] has", lambda world: layer.prefill(few, few, tokens)),
                       (r"places is \[1\]; \[2\] is accepted", lambda world: layer.decode(few, few, *(np.zeros(layer.cache, np.float16) for _ in range(2)), words, words[:1].copy(),
                                                                                           words, table=table)),
                       ("8 tokens; 1 to 7", lambda world: layer.prefill(x[:, :4].copy(), np.zeros((2, 4, hidden), np.float16), 8))]:
        with pytest.raises(ditron.InvalidArgumentError, match=text):
            world.run(call)
    with pytest.raises(ditron.InvalidArgumentError, match="weights named qkv_bias; accepted are qkv, out, q_norm, k_norm"):
        ditron.SequenceParallelAttention(world, [{"qkv_bias": model.bias}] * RANKS, hidden, 4, model.DIM, np.float16, tokens)


def test_what_is_wrong(world):
    attention = ditron.Attention(world, 4, 32, np.float16, kv_heads=2)
    paged = ditron.Attention(world, 4, 32, np.float16, page_size=16)
    decode = ditron.AttentionDecode(world, 2, 2, 16, np.float16, page_size=16, table_width=2)
    q, k, words = draw(0, 1, 4, 5, 32), draw(1, 1, 2, 5, 32), np.zeros((1, 1), np.int32)
    few = draw(2, 1, 2, 1, 16)
    at = lambda call: (lambda: world.run(lambda world: call()))
    for text, call in [("heads of 24 elements; 16, 32", lambda: ditron.Attention(world, 1, 24, np.float16)),
                       (r"k is \[1, 4, 5, 32\]; \[1, 2, 5, 32\]", at(lambda: attention(q, q, k, q))),
                       (r"q is \[4, 5, 32\]; 4 dimensions", at(lambda: attention(q[0], k, k, q))),
                       ("q is of type float32; fp16", at(lambda: attention(q.astype(np.float32), k, k, q))),
                       (r"q of rank [01] is missing; where a rank has no rows, an empty tensor", at(lambda: attention(None, k, k, q))),
                       ("block_table is missing", at(lambda: paged(q, k, k, q))),
                       ("accepted are keys, or page_size and table_width", lambda: ditron.AttentionDecode(world, 1, 1, 16, np.float16, page_size=16)),
                       ("table is missing", at(lambda: decode(few, few, few, few, words))),
                       (r"lengths is \[1, 1\]; \[2, 1\] is accepted", at(lambda: decode(np.zeros((2, 2, 1, 16), np.float16), np.zeros((1, 16, 2, 16), np.float16), np.zeros((1, 16, 2, 16), np.float16),
                                                                                 np.zeros((2, 2, 1, 16), np.float16), words, table=np.zeros((2, 2), np.int32))))]:
        with pytest.raises(ditron.InvalidArgumentError if "heads of" not in text else ditron.UnsupportedError, match=text):
            call()
