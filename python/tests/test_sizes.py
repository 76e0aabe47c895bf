"""What operators say about sizes that do not fit: of valid options one after the other is negative, or wider than the C interface."""
import numpy as np
import pytest

import ditron

RANKS = 2


@pytest.fixture(scope="module")
def world():
    with ditron.World(RANKS, target="sim") as world:
        yield world


def weights(**shapes):
    return [{word: np.zeros(shape, np.float16) for word, shape in shapes.items()} for _ in range(RANKS)]


HEADS = {"heads": 4, "kv_heads": 2, "head_dim": 16}
MOE = {"hidden": 16, "inner": 16, "experts": 4, "top_k": 2}
EXPERTS = {"router": (4, 16), "up": (2, 32, 16), "down": (2, 16, 16)}
SLICES = {"router": (4, 16), "up": (4, 16, 16), "down": (4, 16, 8)}
# How each is made, its sizes, and the other options.
OPERATORS = {
    "Attention": ({**HEADS, "value_dim": 16, "page_size": 16, "window": 4}, {}),
    "AttentionDecode": ({**HEADS, "max_batch": 2, "queries": 1, "keys": 32}, {}),
    "AttentionDecode in pages": ({**HEADS, "max_batch": 2, "page_size": 16, "table_width": 2, "concurrent_calls": 1}, {"over_ranks": True}),
    "RingAttention": ({**HEADS, "max_tokens": 16, "batch": 1, "packed_sequences": 1}, {"backward": True}),
    "TensorParallelAttention": ({**HEADS, "hidden": 16, "max_tokens": 4, "max_batch": 1, "max_keys": 16, "page_size": 16, "pages": 2, "rotary_dim": 0,
                                 "concurrent_calls": 1}, {"weights": weights(qkv=(64, 16), out=(16, 32))}),
    "SequenceParallelAttention": ({**HEADS, "hidden": 16, "max_tokens": 4, "batch": 1, "chunks": 1, "cache_batch": 1, "cache_keys": 16, "page_size": 16,
                                   "pages": 2, "rotary_dim": 0, "concurrent_calls": 1}, {"weights": weights(qkv=(128, 16), out=(16, 64))}),
    "Routing": ({"experts": 4, "top_k": 2, "max_tokens": 4, "hidden": 16}, {}),
    "GroupedGemm": ({"max_rows": 4, "experts": 2, "n": 16, "k": 16, "slots": 2}, {}),
    "ExpertParallel": ({"hidden": 16, "experts": 4, "top_k": 2, "max_tokens": 4, "capacity": 4, "max_rows": 8, "concurrent_calls": 1}, {}),
    "TensorParallelMoe": ({**MOE, "max_tokens_per_rank": 4}, {"weights": weights(**SLICES)}),
    "ExpertParallelMoe": ({**MOE, "max_tokens": 4, "capacity": 4, "max_rows": 8, "concurrent_calls": 1}, {"weights": weights(**EXPERTS)}),
    "AllGatherGemm": ({"m": 4, "n": 16, "k": 16, "chunks_per_rank": 1}, {}),
    "GemmReduceScatter": ({"m": 4, "n": 16, "k": 16}, {}),
    "GemmAllReduce": ({"m": 4, "n": 16, "k": 16}, {}),
    "AllReduce": ({"max_elements": 4}, {}),
    "AllReduceRmsNorm": ({"max_rows": 4, "columns": 16, "concurrent_calls": 1}, {}),
    "Broadcast": ({"max_elements": 4, "root": 1}, {}),
    "AllToAllV": ({"max_rows": 4, "row_elements": 1}, {}),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_is_refused_by_name(world, name):
    sizes, others = OPERATORS[name]

    def make(**changed):
        return getattr(ditron, name.split()[0])(world, dtype=np.float16, **{**sizes, **others, **changed})
    make()
    for word in sizes:
        for value in (-3, -2**40, 2**63, 2**64 + sizes[word]):
            with pytest.raises((ditron.InvalidArgumentError, ditron.UnsupportedError)) as caught:
                make(**{word: value})
            assert str(value) in str(caught.value), f"{word}={value}: {caught.value}"
            assert "accepted" in str(caught.value), f"{word}={value}: {caught.value}"


@pytest.mark.parametrize("name", [name for name, (sizes, _) in OPERATORS.items() if "head_dim" in sizes])
def test_zero_is_not_the_default(world, name):
    sizes, others = OPERATORS[name]
    for word in ("scale", *["soft_cap"][:name == "Attention"], *["norm_epsilon"][:"rotary_dim" in sizes], *["value_dim"][:name == "Attention"], "kv_heads"):
        with pytest.raises((ditron.InvalidArgumentError, ditron.UnsupportedError), match=f"{word}=0(.0)?; .* accepted"):
            getattr(ditron, name.split()[0])(world, dtype=np.float16, **{**sizes, **others, word: 0 if word.endswith(("heads", "dim")) else 0.0})


@pytest.mark.parametrize("scale", [1e-60, 1e60, float("inf"), float("nan")])
def test_scales_are_those_of_fp32(world, scale):
    for make in (lambda: ditron.Attention(world, 1, 16, np.float16, scale=scale), lambda: ditron.RingAttention(world, 1, 16, np.float16, 8, scale=scale)):
        with pytest.raises((ditron.InvalidArgumentError, ditron.UnsupportedError), match="the scale .*accepted"):
            make()
    if scale > 1 or scale != scale:
        with pytest.raises(ditron.InvalidArgumentError, match="the scale .*accepted"):
            ditron.AttentionDecode(world, 1, 1, 16, np.float16, keys=16, scale=scale)


def test_flags_are_no_counts(world):
    with pytest.raises(ditron.InvalidArgumentError, match="over_ranks is 7; 0 and 1 are accepted"):
        ditron.AttentionDecode(world, 1, 1, 16, np.float16, keys=16, over_ranks=7)


def test_tables(world):
    attention = ditron.Attention(world, 2, 16, np.float16, page_size=16)
    pages = [np.zeros((2, 2, 16, 16), np.float16)] * RANKS
    for shape, rows in (((0, 1), 1), ((2, 1), 1), ((1, 0), 1), ((1,), 1), ((0, 1), 0)):
        q, table = ([np.zeros(each, kind)] * RANKS for each, kind in (((rows, 2, 3, 16), np.float16), (shape, np.int32)))
        with pytest.raises(ditron.InvalidArgumentError, match=r"block_table is .*; \[1, n\] is accepted" if rows else r"q is \[0, 2, 3, 16\]; 1 and more"):
            attention(q, pages, pages, q, block_table=table)
