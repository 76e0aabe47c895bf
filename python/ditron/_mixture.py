"""Mixtures of experts: Routing and GroupedGemm on each rank by itself, ExpertParallel between ranks, and the layers TensorParallelMoe and
ExpertParallelMoe. Tensors are contiguous, at multiples of 16 bytes; ids, offsets and what else counts is int32, scales and weights of tokens float32."""
from functools import partial

from . import _native
from ._collectives import _count
from ._errors import InvalidArgumentError
from ._named import NamedOperands, rows_of
from ._operators import canonical_dtype
from ._sizes import check_counts, check_sizes
from ._tensors import type_name
from ._transfers import _element_type
from ._values import BY_SIGNATURE

SCORES = {"softmax": 0, "sigmoid": 1}
PARTS = {"whole": 0, "send": 1, "receive": 2}
_WEIGHTS = ("router", "bias", "up", "down", "up_scale", "down_scale", "shared_up", "shared_down")  # as the native functions take them
# fp8 may also be given as its bytes, for which NumPy has no type of its own.
_FP8 = ("fp8e4nv", "u8")


class Routing(NamedOperands):
    """Which token goes to which expert, and where its row lies; on each rank by itself.

        routing = ditron.Routing(world, experts=64, top_k=4, max_tokens=4096, hidden=2048, dtype=torch.bfloat16)
        routing.prepare(tokens)                                    # for every number of tokens
        routing.choose(logits, ids, weights)                       # [tokens, experts] -> [tokens, top_k] twice
        routing.sort(ids, offsets, slot_of_row, row_of_slot)       # by expert: [experts + 1], [tokens * top_k], [tokens, top_k]
        routing.sum(rows, row_of_slot, weights, out)               # [rows, hidden] -> [tokens, hidden]

    The j-th choice of token t is slot t * top_k + j; rows are the slots that have an expert, sorted by it. Weights are the scores of the chosen
    experts (`score`: softmax or sigmoid), divided by their sum if `normalized`, times `scale`. `dtype`, by default
    bfloat16: of the rows of `hidden` elements that are added."""

    name = "routing"

    def __init__(self, world, experts, top_k, max_tokens, hidden=0, dtype=None, *, score="softmax", normalized=True, scale=1.0):
        check_counts(self.name, experts=experts, top_k=top_k)
        check_sizes(self.name, max_tokens=max_tokens)
        check_sizes(self.name, least=0, hidden=hidden)
        self.experts, self.top_k, self.hidden = experts, top_k, hidden
        self.type = "bf16" if dtype is None else _element_type(self.name, dtype)
        super().__init__(world, _native.routing_create, _native.routing_destroy, BY_SIGNATURE[self.type].number, hidden, experts, top_k,
                         self.choice("score", score, SCORES), not normalized, scale, max_tokens)

    def prepare(self, tokens):
        """Compiles and loads what calls with so many tokens need, on all ranks of this process."""
        _native.routing_prepare(self.handle, tokens)

    def choose(self, logits, ids, weights, bias=None):
        """float32 logits [tokens, experts] -> the best experts of each token, and their weights. bias [experts] counts for the choice only."""
        def call(device, given):
            tokens = rows_of(self.name, "logits", given["logits"], self.experts)
            slots = tokens * self.top_k
            return partial(_native.routing_choose, self.handle, device.stream(), *self.addresses(device, given, (
                ("logits", "fp32", None), ("bias", "fp32", self.experts), ("ids", "i32", slots), ("weights", "fp32", slots))), tokens)
        self.spread({"logits": logits, "bias": bias, "ids": ids, "weights": weights}, call)

    def sort(self, ids, offsets, slot_of_row, row_of_slot):
        """Where the rows of each expert begin, the slot of each row, the row of each slot (-1: it has none)."""
        def call(device, given):
            slots = _count(given["ids"])
            return partial(_native.routing_sort, self.handle, device.stream(), *self.addresses(device, given, (
                ("ids", "i32", None), ("offsets", "i32", self.experts + 1), ("slot_of_row", "i32", slots), ("row_of_slot", "i32", slots))),
                rows_of(self.name, "ids", given["ids"], self.top_k))
        self.spread({"ids": ids, "offsets": offsets, "slot_of_row": slot_of_row, "row_of_slot": row_of_slot}, call)

    def sum(self, rows, row_of_slot, weights, out):
        """out[t] = the sum of the rows of token t's slots, times their weights (None: ones), in float32 in their order. Gives `out`."""
        def call(device, given):
            tokens = rows_of(self.name, "row_of_slot", given["row_of_slot"], self.top_k)
            return partial(_native.routing_sum, self.handle, device.stream(), *self.addresses(device, given, (
                ("rows", self.type, None), ("row_of_slot", "i32", None), ("weights", "fp32", tokens * self.top_k),
                ("out", self.type, tokens * self.hidden))), tokens)
        self.spread({"rows": rows, "row_of_slot": row_of_slot, "weights": weights, "out": out}, call)
        return out


class GroupedGemm(NamedOperands):
    """out[r] = activation(a[r] @ b[e].T) for offsets[e] <= r < offsets[e + 1], on each rank by itself; float32 sums.

        product = ditron.GroupedGemm(world, max_rows=16384, experts=64, n=2816, k=2048, dtype=torch.bfloat16, activation="swiglu", slots=4)
        product.prepare()
        product(x, up, inner, offsets, slot_of_row)     # with slots row r is row slot_of_row[r] // slots of x: no copy of the rows is made

    b is [experts, n, k], or with weights_plain [experts, k, n]. block_scales: fp8 a and b with float32 scales a_scale [rows, ceil(k / 128)] and
    b_scale [experts, ceil(n / 128), ceil(k / 128)]. swiglu takes pairs of columns, gate first: out has n / 2. Rows behind the last stay as they are."""

    name = "grouped_gemm"

    def __init__(self, world, max_rows, experts, n, k, dtype, *, out_dtype=None, weights_plain=False, activation=None, slots=0, block_scales=False):
        check_counts(self.name, experts=experts, slots=slots)
        check_sizes(self.name, max_rows=max_rows, n=n, k=k)
        self.type = type_name(canonical_dtype(dtype))
        number = BY_SIGNATURE[self.type].number
        self.result = type_name(canonical_dtype(out_dtype)) if out_dtype is not None else "bf16" if self.type in _FP8 else self.type
        self.experts, self.n, self.k, self.slots, self.block_scales = experts, n, k, slots, block_scales
        super().__init__(world, _native.grouped_gemm_create, _native.grouped_gemm_destroy, number, BY_SIGNATURE[self.result].number, max_rows,
                         experts, n, k, weights_plain, self.choice("activation", activation, {None: 0, "swiglu": 4}), slots, block_scales)

    def prepare(self):
        """Compiles and loads what calls need, on all ranks of this process; for any numbers of rows."""
        _native.grouped_gemm_prepare(self.handle)

    def __call__(self, a, b, out, offsets, slot_of_row=None, *, a_scale=None, b_scale=None):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. Enqueued; gives `out`."""
        operand = _FP8 if self.type == "fp8e4nv" else self.type
        wanted = (("a", operand, None), ("b", operand, self.experts * self.n * self.k), ("c", self.result, None), ("offsets", "i32", self.experts + 1),
                  ("slot_of_row", "i32", None), ("a_scale", "fp32", None), ("b_scale", "fp32", None))
        self.spread({"a": a, "b": b, "c": out, "offsets": offsets, "slot_of_row": slot_of_row, "a_scale": a_scale, "b_scale": b_scale},
                    lambda device, given: partial(_native.grouped_gemm_enqueue, self.handle, device.stream(), *self.addresses(device, given, wanted)))
        return out


class ExpertParallel(NamedOperands):
    """Tokens to the ranks of their experts (dispatch), and the experts' results back (combine). Rank r has the experts from r * experts / ranks on.

        experts = ditron.ExpertParallel(world, hidden=7168, experts=256, top_k=8, max_tokens=128, dtype=torch.bfloat16)
        experts.prepare()
        experts.dispatch(x, ids, weights, rows, offsets, handle)   # rows [experts.max_rows, hidden] by expert, offsets [experts / ranks + 1]
        experts.combine(results, out, handle)                      # out[t]: the sum of its slots' results, times their weights
        experts.check()                                            # waits, and raises if something was dropped

    handle is int32 [experts.handle_elements]. fp8: rows come as fp8 with float32 scales [max_rows, ceil(hidden / 128)]. What goes beyond
    `capacity` rows from one rank for one expert (0: max_tokens), or beyond `max_rows` of a rank (0: all that can come), is dropped."""

    name = "expert_parallel"

    def __init__(self, world, hidden, experts, top_k, max_tokens, dtype, *, fp8=False, capacity=0, max_rows=0, concurrent_calls=1):
        check_counts(self.name, experts=experts, top_k=top_k, concurrent_calls=concurrent_calls)
        check_sizes(self.name, hidden=hidden, max_tokens=max_tokens)
        check_sizes(self.name, least=0, capacity=capacity, max_rows=max_rows)
        self.type, self.hidden, self.experts, self.top_k, self.fp8 = _element_type(self.name, dtype), hidden, experts, top_k, fp8
        super().__init__(world, _native.expert_parallel_create, _native.expert_parallel_destroy, BY_SIGNATURE[self.type].number, hidden, experts,
                         top_k, max_tokens, fp8, capacity, max_rows, concurrent_calls)
        self.max_rows, self.handle_elements = _native.expert_parallel_sizes(self.handle)

    def prepare(self, parts=False):
        """Compiles and loads what calls need, on all ranks of this process; `parts`: also for sending and receiving apart."""
        _native.expert_parallel_prepare(self.handle, parts)

    def dispatch(self, x, ids, weights, rows, offsets, handle, scales=None, part="whole"):
        """x [tokens, hidden], ids and weights [tokens, top_k]; weights may be None: ones. An id that is none of the experts: no row. `part`: "send"
        takes x, ids, weights, handle, "receive" the others and handle; operands of the other part may be None."""
        number = self.choice("part", part, PARTS)

        def call(device, given):
            tokens = 0 if given["ids"] is None else rows_of(self.name, "ids", given["ids"], self.top_k)
            wanted = (("x", self.type, tokens * self.hidden), ("ids", "i32", None), ("weights", "fp32", tokens * self.top_k),
                      ("rows", _FP8 if self.fp8 else self.type, self.max_rows * self.hidden),
                      ("scales", "fp32", self.max_rows * -(-self.hidden // 128)), ("offsets", "i32", self.experts // self.world.ranks + 1),
                      ("handle", "i32", self.handle_elements))
            return partial(_native.expert_parallel_dispatch, self.handle, device.stream(), number, tokens, *self.addresses(device, given, wanted))
        self.spread({"x": x, "ids": ids, "weights": weights, "rows": rows, "scales": scales, "offsets": offsets, "handle": handle}, call)

    def combine(self, rows, out, handle, part="whole"):
        """rows: of each row of dispatch its result, of the type of the tokens; out [tokens, hidden]. "send" takes rows and handle, "receive" out and
        handle. Gives `out`."""
        number = self.choice("part", part, PARTS)

        def call(device, given):
            tokens = 0 if given["out"] is None else rows_of(self.name, "out", given["out"], self.hidden)
            wanted = (("rows", self.type, self.max_rows * self.hidden), ("out", self.type, None), ("handle", "i32", self.handle_elements))
            return partial(_native.expert_parallel_combine, self.handle, device.stream(), number, tokens, *self.addresses(device, given, wanted))
        self.spread({"rows": rows, "out": out, "handle": handle}, call)
        return out

    def check(self):
        """Waits for the work of all ranks of this process; InvalidArgumentError for the first slots or rows that were dropped since the last check."""
        self.world.synchronize()
        self.check_each(lambda device: _native.expert_parallel_check(self.handle, device.stream()))


class _Layer(NamedOperands):
    """A mixture of experts with its weights, which stay where they are as long as the layer. With `training` it has a backward, whose gradients of weights are of
    gradient_dtype (float32 by default), added to what is there or, without `accumulate`, in its place; those of weights that all ranks have are of
    the rank's own tokens."""

    alignment = 16
    prepare_call = enqueue_call = backward_call = None

    def set_up(self, world, create, destroy, weights, wanted, dtype, hidden, experts, top_k, score, normalized, scale, training, gradient_dtype,
               accumulate, *options):
        """wanted: of each weight its types and elements; the rest are numbers for create."""
        self.gradient = "fp32" if gradient_dtype is None else _element_type(self.name, gradient_dtype)
        self.type, self.hidden = _element_type(self.name, dtype), hidden
        weights = [weights] if isinstance(weights, dict) else list(weights)
        ranks = world.local_ranks
        if len(weights) != len(ranks):
            raise InvalidArgumentError(f"{self.name}: this process has {len(ranks)} ranks; weights of {len(weights)} are given")
        unknown = {word for each in weights for word in each} - set(wanted)
        if unknown:
            raise InvalidArgumentError(f"{self.name}: weights named {', '.join(sorted(unknown))}; accepted are {', '.join(wanted)}")
        self.world, self.weights = world, dict(zip(ranks, weights))
        self.wanted = [(word, *each) for word, each in wanted.items()]
        addresses = [None] * world.ranks
        for rank in ranks:
            self.at(rank, lambda device: addresses.__setitem__(device.rank, self.lend_weights(device)))
        super().__init__(world, create, destroy, BY_SIGNATURE[self.type].number, hidden, experts, top_k, self.choice("score", score, SCORES),
                         not normalized, scale, *options, training, BY_SIGNATURE[self.gradient].number, not accumulate, tuple(addresses))

    def lend_weights(self, device):
        """The addresses of a rank's weights, which its kernels may touch until the world is synchronised."""
        given = {word: self.weights[device.rank].get(word) for word in _WEIGHTS}
        found = dict(zip((word for word, *_ in self.wanted), self.addresses(device, given, self.wanted)))
        return tuple(found.get(word, 0) for word in _WEIGHTS)

    def prepare(self, tokens):
        """Compiles and loads what calls with so many tokens of a rank need, on all ranks of this process; before the first call anywhere."""
        self.prepare_call(self.handle, tokens)

    def __call__(self, x, y):
        """y = the layer of x, both [tokens, hidden]. Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's.
        Enqueued; gives `y`."""
        def call(device, given):
            tokens = rows_of(self.name, "x", given["x"], self.hidden)
            addresses = self.addresses(device, given, (("x", self.type, None), ("y", self.type, tokens * self.hidden)))
            self.lend_weights(device)
            return partial(self.enqueue_call, self.handle, device.stream(), *addresses, tokens)
        self.spread({"x": x, "y": y}, call)
        return y

    def backward(self, x, dy, dx, gradients):
        """dx [tokens, hidden] from dy, the gradient of the last y, and the gradients of the weights: dictionaries like the weights, by local rank or a
        single one as of x. Of a layer made with `training`. Enqueued; gives `dx`."""
        words = [word for word in _WEIGHTS if word in ("router", "up", "down", "shared_up", "shared_down")]

        def call(device, given):
            tokens = rows_of(self.name, "x", given["x"], self.hidden)
            elements = {word: count for word, _, count in self.wanted}
            unknown = set(given["gradients"]) - set(words)
            if unknown:
                raise InvalidArgumentError(f"{self.name}: gradients named {', '.join(sorted(unknown))}; accepted are {', '.join(words)}")
            tensors = {**given, **{word: given["gradients"].get(word) for word in words}}
            wanted = [("x", self.type, None), ("dy", self.type, tokens * self.hidden), ("dx", self.type, tokens * self.hidden),
                      *((word, self.gradient, elements.get(word)) for word in words)]
            addresses = self.addresses(device, tensors, wanted)
            self.lend_weights(device)
            return partial(self.backward_call, self.handle, device.stream(), tokens, *addresses)
        self.spread({"x": x, "dy": dy, "dx": dx, "gradients": gradients}, call)
        return dx


class TensorParallelMoe(_Layer):
    """A mixture of experts whose every expert is spread over the ranks: each has a slice of the inner columns.

        layer = ditron.TensorParallelMoe(world, weights, hidden=2048, inner=1408, experts=60, top_k=4, max_tokens_per_rank=4096, dtype=torch.bfloat16)
        layer.prepare(tokens)
        layer(x, y)

    weights: by local rank a dictionary of router [experts, hidden], up [experts, 2 * inner / ranks, hidden] (of each column the gate, then what it lets
    through), down [experts, hidden, inner / ranks] and perhaps bias [experts]. Each rank has as many tokens of its own, or with `replicated` all."""

    name = "tensor_parallel_moe"
    prepare_call = staticmethod(_native.tensor_parallel_moe_prepare)
    enqueue_call = staticmethod(_native.tensor_parallel_moe_enqueue)
    backward_call = staticmethod(_native.tensor_parallel_moe_backward)

    def __init__(self, world, weights, hidden, inner, experts, top_k, max_tokens_per_rank, dtype, *, score="softmax", normalized=True, scale=1.0,
                 replicated=False, unfused=False, training=False, gradient_dtype=None, accumulate=True):
        check_counts(self.name, experts=experts, top_k=top_k)
        check_sizes(self.name, hidden=hidden, inner=inner, max_tokens_per_rank=max_tokens_per_rank)
        kind = _element_type(self.name, dtype)
        slices = experts * hidden * inner // world.ranks
        wanted = {"router": (kind, experts * hidden), "bias": ("fp32", experts), "up": (kind, 2 * slices), "down": (kind, slices)}
        self.set_up(world, _native.tensor_parallel_moe_create, _native.tensor_parallel_moe_destroy, weights, wanted, dtype, hidden, experts, top_k,
                    score, normalized, scale, training, gradient_dtype, accumulate, inner, max_tokens_per_rank, replicated, unfused)


class ExpertParallelMoe(_Layer):
    """A mixture of experts each of which is on one rank, and perhaps shared experts, which all ranks have.

        layer = ditron.ExpertParallelMoe(world, weights, hidden=7168, inner=2048, experts=256, top_k=8, max_tokens=128, dtype=torch.bfloat16)
        layer.prepare(tokens)      # of this rank, 0 to max_tokens; other ranks may have other numbers
        layer(x, y)
        layer.check()              # waits, and raises if something was dropped

    weights: by local rank a dictionary of router [experts, hidden], up [experts / ranks, 2 * inner, hidden] (of each column the gate, then what it
    lets through), down [experts / ranks, hidden, inner], perhaps bias [experts], and with `shared_inner` shared_up [2 * shared_inner, hidden] and
    shared_down [hidden, shared_inner]. fp8: rows travel as fp8, up and down are fp8 with up_scale and down_scale, float32 for each 128 x 128."""

    name = "expert_parallel_moe"
    prepare_call = staticmethod(_native.expert_parallel_moe_prepare)
    enqueue_call = staticmethod(_native.expert_parallel_moe_enqueue)
    backward_call = staticmethod(_native.expert_parallel_moe_backward)

    def __init__(self, world, weights, hidden, inner, experts, top_k, max_tokens, dtype, *, shared_inner=0, score="softmax", normalized=True, scale=1.0,
                 fp8=False, capacity=0, max_rows=0, concurrent_calls=1, training=False, gradient_dtype=None, accumulate=True):
        check_counts(self.name, experts=experts, top_k=top_k, concurrent_calls=concurrent_calls)
        check_sizes(self.name, hidden=hidden, inner=inner, max_tokens=max_tokens)
        check_sizes(self.name, least=0, shared_inner=shared_inner, capacity=capacity, max_rows=max_rows)
        kind = _element_type(self.name, dtype)
        local, of_experts = experts // world.ranks, _FP8 if fp8 else kind
        blocks = [-(-size // 128) for size in (2 * inner, hidden, inner)]
        wanted = {"router": (kind, experts * hidden), "bias": ("fp32", experts), "up": (of_experts, local * 2 * inner * hidden),
                  "down": (of_experts, local * hidden * inner), "up_scale": ("fp32", local * blocks[0] * blocks[1]),
                  "down_scale": ("fp32", local * blocks[1] * blocks[2]), "shared_up": (kind, 2 * shared_inner * hidden),
                  "shared_down": (kind, hidden * shared_inner)}
        self.set_up(world, _native.expert_parallel_moe_create, _native.expert_parallel_moe_destroy, weights, wanted, dtype, hidden, experts, top_k,
                    score, normalized, scale, training, gradient_dtype, accumulate, inner, shared_inner, max_tokens, fp8, capacity, max_rows,
                    concurrent_calls)

    def check(self):
        """Waits for the work of all ranks of this process; InvalidArgumentError for the first slots or rows that were dropped since the last check."""
        self.world.synchronize()
        self.check_each(lambda device: _native.expert_parallel_moe_check(self.handle, device.stream()))
