"""Routing, grouped products, expert parallelism and layers of experts on simulated ranks, beside NumPy."""
import numpy as np
import pytest

import ditron

RANKS, EXPERTS, TOP_K, HIDDEN, INNER = 2, 6, 2, 32, 16


@pytest.fixture
def world():
    with ditron.World(RANKS, target="sim") as world:
        yield world


class Model:
    """A mixture of experts in float64."""

    def __init__(self, seed=0, shared=0):
        rng = np.random.default_rng(seed)
        self.shared = shared
        draw = lambda *shape: (rng.standard_normal(shape) / 3).astype(np.float32)
        self.router, self.up, self.down = draw(EXPERTS, HIDDEN) * 3, draw(EXPERTS, 2 * INNER, HIDDEN), draw(EXPERTS, HIDDEN, INNER)
        self.shared_up, self.shared_down = draw(2 * shared, HIDDEN), draw(HIDDEN, shared)

    def choose(self, x):
        logits = x.astype(np.float64) @ self.router.T
        ids = np.argsort(-logits, axis=1, kind="stable")[:, :TOP_K]
        scores = np.exp(np.take_along_axis(logits, ids, axis=1))
        return ids, scores / scores.sum(axis=1, keepdims=True)

    def layer(self, x, up, down):
        values = x.astype(np.float64) @ up.T
        return (values[:, ::2] / (1 + np.exp(-values[:, ::2])) * values[:, 1::2]) @ down.T

    def __call__(self, x):
        ids, weights = self.choose(x)
        y = self.layer(x, self.shared_up, self.shared_down) if self.shared else np.zeros(x.shape)
        for token, (chosen, factors) in enumerate(zip(ids, weights)):
            for expert, factor in zip(chosen, factors):
                y[token] += factor * self.layer(x[token:token + 1], self.up[expert], self.down[expert])[0]
        return y


def tokens_of(count, seed):
    return np.random.default_rng(seed).standard_normal((count, HIDDEN)).astype(np.float32)


def test_pieces_of_a_layer_on_each_rank(world):
    model, counts = Model(), (11, 5)
    routing = ditron.Routing(world, EXPERTS, TOP_K, max_tokens=11, hidden=HIDDEN, dtype=np.float32)
    first = ditron.GroupedGemm(world, 11 * TOP_K, EXPERTS, 2 * INNER, HIDDEN, np.float32, activation="swiglu", slots=TOP_K)
    second = ditron.GroupedGemm(world, 11 * TOP_K, EXPERTS, HIDDEN, INNER, np.float32)
    for product in (first, second):
        product.prepare()
    x = [tokens_of(count, count) for count in counts]
    empty = lambda kind, *shape: [np.full([count * shape[0], *shape[1:]], -1, kind) for count in counts]
    logits = [np.ascontiguousarray(each @ model.router.T) for each in x]
    ids, slots, rows = (empty(np.int32, TOP_K) for _ in range(3))
    weights, inner, results, y = (empty(np.float32, *shape) for shape in ((TOP_K,), (TOP_K, INNER), (TOP_K, HIDDEN), (1, HIDDEN)))
    offsets = [np.zeros(EXPERTS + 1, np.int32) for _ in counts]
    for count in counts:
        routing.prepare(count)
    routing.choose(logits, ids, weights)
    routing.sort(ids, offsets, slots, rows)
    first(x, [model.up] * RANKS, inner, offsets, slots)
    second(inner, [model.down] * RANKS, results, offsets)
    assert routing.sum(results, rows, weights, y) is y
    world.synchronize()
    for rank, count in enumerate(counts):
        wanted_ids, wanted_weights = model.choose(x[rank])
        np.testing.assert_array_equal(ids[rank].reshape(count, TOP_K), wanted_ids)
        np.testing.assert_allclose(weights[rank].reshape(count, TOP_K), wanted_weights, rtol=1e-4)
        np.testing.assert_array_equal(offsets[rank], np.searchsorted(np.sort(ids[rank]), np.arange(EXPERTS + 1)))
        np.testing.assert_array_equal(slots[rank], np.argsort(ids[rank], kind="stable"))
        np.testing.assert_array_equal(slots[rank][rows[rank]], np.arange(count * TOP_K))
        np.testing.assert_allclose(y[rank], model(x[rank]), rtol=1e-2, atol=1e-2)  # operands of products are tf32


@pytest.mark.parametrize("part", ["whole", "parts"])
def test_experts_give_back_what_they_get(world, part):
    experts = ditron.ExpertParallel(world, HIDDEN, EXPERTS, TOP_K, max_tokens=7, dtype=np.float32)
    experts.prepare(parts=part == "parts")
    rng = np.random.default_rng(3)
    counts = (7, 2)
    x = [tokens_of(count, 20 + count) for count in counts]
    ids = [np.array([rng.permutation(EXPERTS)[:TOP_K] for _ in range(count)], np.int32) for count in counts]
    ids[0][3, 1] = -1
    weights = [rng.random((count, TOP_K), np.float32) for count in counts]
    rows = [np.zeros((experts.max_rows, HIDDEN), np.float32) for _ in counts]
    offsets = [np.zeros(EXPERTS // RANKS + 1, np.int32) for _ in counts]
    handles = [np.zeros(experts.handle_elements, np.int32) for _ in counts]
    out = [np.full((count, HIDDEN), -1, np.float32) for count in counts]
    for each in (["whole"] if part == "whole" else ["send", "receive"]):
        experts.dispatch(x, ids, weights, rows, offsets, handles, part=each)
    for each in (["whole"] if part == "whole" else ["send", "receive"]):
        experts.combine(rows, out, handles, part=each)
    experts.check()
    assert sum(int(each[-1]) for each in offsets) == sum(counts) * TOP_K - 1
    for rank in range(RANKS):
        factors = (weights[rank] * (ids[rank] >= 0)).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(out[rank], x[rank] * factors, rtol=1e-5)


def test_what_an_expert_has_no_room_for(world):
    experts = ditron.ExpertParallel(world, HIDDEN, EXPERTS, 1, max_tokens=4, dtype=np.float32, capacity=2)

    def program(world):
        count = 4 if world.rank == 0 else 0
        x, ids, rows = tokens_of(count, 1), np.zeros((count, 1), np.int32), np.zeros((experts.max_rows, HIDDEN), np.float32)
        offsets, handle = np.zeros(EXPERTS // RANKS + 1, np.int32), np.zeros(experts.handle_elements, np.int32)
        experts.dispatch(x, ids, None, rows, offsets, handle)
        if world.rank != 0:
            return experts.check()
        with pytest.raises(ditron.InvalidArgumentError, match=r"4 of its slots chose expert 0; the first 2 \(capacity\) were sent"):
            experts.check()

    world.run(program)


def halves(model, shared=False):
    """The weights of each rank with whole experts."""
    local = EXPERTS // RANKS
    return [{"router": model.router, "up": model.up[rank * local:(rank + 1) * local], "down": model.down[rank * local:(rank + 1) * local],
             **({"shared_up": model.shared_up, "shared_down": model.shared_down} if shared else {})} for rank in range(RANKS)]


def sliced(model):
    """The weights of each rank with a slice of every expert."""
    part = INNER // RANKS
    return [{"router": model.router, "up": np.ascontiguousarray(model.up[:, 2 * part * rank:2 * part * (rank + 1)]),
             "down": np.ascontiguousarray(model.down[:, :, part * rank:part * (rank + 1)])} for rank in range(RANKS)]


@pytest.mark.parametrize("shared", [0, 16])
def test_expert_parallel_moe(world, shared):
    model = Model(4, shared)
    layer = ditron.ExpertParallelMoe(world, halves(model, shared > 0), HIDDEN, INNER, EXPERTS, TOP_K, max_tokens=9, dtype=np.float32, shared_inner=shared)
    for counts in ((9, 0), (3, 7)):
        x = [tokens_of(count, 30 + count) for count in counts]
        y = [np.full((count, HIDDEN), -1, np.float32) for count in counts]
        for count in counts:
            layer.prepare(count)
        assert layer(x, y) is y
        layer.check()
        for rank in range(RANKS):
            np.testing.assert_allclose(y[rank], model(x[rank]), rtol=1e-3, atol=1e-3)


def test_layers_in_threads(world):
    model = Model(5)
    experts = ditron.ExpertParallelMoe(world, halves(model), HIDDEN, INNER, EXPERTS, TOP_K, max_tokens=5, dtype=np.float32)
    spread = [ditron.TensorParallelMoe(world, sliced(model), HIDDEN, INNER, EXPERTS, TOP_K, 5, np.float32, unfused=unfused) for unfused in (False, True)]

    def program(world):
        x = tokens_of(5, 40 + world.rank)
        results = [layer(x, np.zeros_like(x)) for layer in (experts, *spread)]
        world.synchronize()
        return x, results

    for x, results in world.run(program):
        for y in results:
            np.testing.assert_allclose(y, model(x), rtol=1e-3, atol=1e-3)


def test_gradients_are_slopes(world):
    model = Model(6)
    weights = halves(model)
    layer = ditron.ExpertParallelMoe(world, weights, HIDDEN, INNER, EXPERTS, TOP_K, max_tokens=4, dtype=np.float32, training=True, accumulate=False)
    spread = ditron.TensorParallelMoe(world, sliced(model), HIDDEN, INNER, EXPERTS, TOP_K, 4, np.float32, training=True)
    x, dy = ([tokens_of(4, seed + rank) for rank in range(RANKS)] for seed in (60, 70))
    y, dx, other_dx = ([np.zeros_like(each) for each in x] for _ in range(3))
    gradients, other = ([{word: np.zeros_like(own[word]) for word in ("router", "up", "down")} for own in each] for each in (weights, sliced(model)))
    layer(x, y)
    layer.backward(x, dy, dx, gradients)
    spread.backward(x, dy, other_dx, other)
    world.synchronize()
    value = lambda: sum(float((model(each) * of_each).sum()) for each, of_each in zip(x, dy))
    step = 1e-3
    for rank in range(RANKS):
        np.testing.assert_allclose(dx[rank], other_dx[rank], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(gradients[rank]["router"], other[rank]["router"], rtol=1e-3, atol=1e-3)
        # Of some elements; weights of experts are views of the model's.
        for array, gradient in ((x[rank], dx[rank]), (weights[rank]["up"], gradients[rank]["up"]), (weights[rank]["down"], gradients[rank]["down"])):
            flat, of_flat = array.reshape(-1), gradient.reshape(-1)
            for at in np.random.default_rng(rank).integers(0, flat.size, 6):
                kept = flat[at]
                ends = []
                for sign in (1, -1):
                    flat[at] = kept + sign * step
                    ends.append(value())
                flat[at] = kept
                np.testing.assert_allclose(of_flat[at], (ends[0] - ends[1]) / (2 * step), rtol=2e-2, atol=2e-3)
    with pytest.raises(ditron.InvalidArgumentError, match="gradients named gate"):
        layer.backward(x, dy, dx, [{"gate": x[0]}] * RANKS)
    plain = ditron.ExpertParallelMoe(world, weights, HIDDEN, INNER, EXPERTS, TOP_K, max_tokens=4, dtype=np.float32)
    with pytest.raises(ditron.InvalidArgumentError, match="without `training`"):
        plain.backward(x, dy, dx, gradients)


def test_what_is_wrong(world):
    model = Model()
    given = {"hidden": HIDDEN, "inner": INNER, "experts": EXPERTS, "top_k": TOP_K, "max_tokens": 4, "dtype": np.float32}
    layer = ditron.ExpertParallelMoe(world, halves(model), **given)
    x = [np.zeros((5, HIDDEN), np.float32)] * RANKS
    product = ditron.GroupedGemm(world, 4, EXPERTS, 16, 16, np.float32)
    for text, call in [("5 tokens; 0 to 4", lambda: layer(x, x)), ("y has 32 elements; 160", lambda: layer(x, [x[0][:1]] * RANKS)),
                       ("logits has 160 elements, no multiple", lambda: ditron.Routing(world, 33, 1, 1).choose(x, x, x)),
                       ("score='relu'; accepted are 'softmax', 'sigmoid'", lambda: ditron.Routing(world, 4, 1, 1, score="relu")),
                       ("weights named gate; accepted are router, bias, up", lambda: ditron.ExpertParallelMoe(world, [{"gate": x[0]}] * RANKS, **given)),
                       ("weights of 1 are given", lambda: ditron.ExpertParallelMoe(world, halves(model)[:1], **given)),
                       ("operand router", lambda: ditron.ExpertParallelMoe(world, [{}] * RANKS, **given)),
                       ("a is of type int32; fp32", lambda: product([np.zeros(16, np.int32)] * RANKS, x, x, x)),
                       ("part='all'; accepted", lambda: ditron.ExpertParallel(world, 8, 2, 1, 1, np.float32).combine(x, x, x, part="all"))]:
        with pytest.raises(ditron.InvalidArgumentError, match=text):
            call()
