"""Attention on each rank by itself, forward and backward; AttentionDecode, with few queries over many keys, on each rank or over keys spread over the
ranks; RingAttention, whose tokens are dealt out to the ranks; the layers TensorParallelAttention and SequenceParallelAttention. Tensors are contiguous; offsets, lengths and tables are int32, log-sum-exp, sinks and slopes float32."""
from functools import partial

from . import _native
from ._collectives import _count
from ._errors import InvalidArgumentError
from ._named import NamedOperands, rows_of
from ._sizes import check_counts, check_sizes, number_or_zero, or_default
from ._transfers import _element_type
from ._values import BY_SIGNATURE

# fp8 may also be given as its bytes, for which NumPy has no type of its own.
_FP8 = ("fp8e4nv", "u8")
_WEIGHTS = ("qkv", "out", "qkv_bias", "q_norm", "k_norm", "rotary")  # of layers, as the native functions take them


class _Attention(NamedOperands):
    def shaped(self, given, wanted):
        """wanted: of tensors by name the shape that they must have."""
        for word, shape in wanted.items():
            tensor = given.get(word)
            if tensor is not None and tuple(tensor.shape) != tuple(shape):
                raise InvalidArgumentError(f"{self.name}: {word} is {list(tensor.shape)}; {list(shape)} is accepted")


class Attention(_Attention):
    """softmax(q @ k.T * scale) @ v of each head, on each rank by itself.

        attention = ditron.Attention(world, heads=32, kv_heads=8, head_dim=128, dtype=torch.bfloat16, causal=True)
        attention.prepare(q, k, v, out)       # for every shape, before a capture
        attention(q, k, v, out, lse=lse)
        attention.backward(q, k, v, out, lse, gradient, dq, dk, dv)

    q [batch, heads, queries, head_dim], k and v [batch, kv_heads, keys, head_dim], or with rows_first [batch, rows, heads, head_dim]; v and out may be
    value_dim wide. Query i stands at the key i + keys - queries: `causal` hides those behind it, `window` those more than so many in front of it.
    `soft_cap` caps scores, `scale` is 1 / sqrt(head_dim) unless given.

    Batches of different lengths: q [rows, heads, head_dim] one behind the other, with rows_first and query_offsets [batch + 1], and max_queries, the
    most that one has (queries behind that may be left out); k and v likewise with key_offsets and max_keys; or key_lengths [batch]. All are read on
    the device. With page_size k and v are [pages, kv_heads, page_size, head_dim] ([pages, page_size, kv_heads, head_dim]), and block_table [batch, n] has the pages of each batch. fp8: v
    [batch, kv_heads, head_dim, keys] with values_transposed; out is bfloat16."""

    name = "attention"

    def __init__(self, world, heads, head_dim, dtype, *, kv_heads=None, value_dim=None, scale=None, causal=False, window=None, soft_cap=None,
                 rows_first=False, page_size=0, values_transposed=False):
        self.type = _element_type(self.name, dtype)
        check_sizes(self.name, heads=heads, kv_heads=or_default(kv_heads, heads), head_dim=head_dim, value_dim=or_default(value_dim, head_dim))
        check_sizes(self.name, least=0, page_size=page_size, window=or_default(window, 0))
        self.heads, self.kv_heads, self.head_dim, self.value_dim = heads, or_default(kv_heads, heads), head_dim, or_default(value_dim, head_dim)
        self.rows_first, self.page_size, self.values_transposed = rows_first, page_size, values_transposed
        super().__init__(world, _native.attention_create, _native.attention_destroy, BY_SIGNATURE[self.type].number, heads, self.kv_heads, head_dim,
                         self.value_dim, number_or_zero(self.name, scale=scale), causal, window is not None, or_default(window, 0),
                         number_or_zero(self.name, soft_cap=soft_cap), rows_first, page_size, values_transposed)

    def rows(self, batch, heads, rows, dim):
        return (batch, rows, heads, dim) if self.rows_first else (batch, heads, rows, dim)

    def shape(self, given, max_queries, max_keys):
        """The sizes of a call, as the native functions take them; tensors of other sizes are refused."""
        q, k = given["q"], given["k"]
        offsets, key_offsets, table = given["query_offsets"], given["key_offsets"], given.get("block_table")
        for word, tensor, dimensions in (("q", q, 3 if offsets is not None else 4), ("k", k, 3 if key_offsets is not None else 4)):
            if len(tensor.shape) != dimensions:
                raise InvalidArgumentError(f"{self.name}: {word} is {list(tensor.shape)}; {dimensions} dimensions are accepted")
        at = 1 if self.rows_first else 2
        if q.shape[0] == 0:
            raise InvalidArgumentError(f"{self.name}: q is {list(q.shape)}; 1 and more {'rows' if offsets is not None else 'batches'} are accepted")
        batch, queries, packed_queries = q.shape[0], q.shape[at if offsets is None else 0], 0
        if offsets is not None:
            batch, packed_queries, queries = _count(offsets) - 1, q.shape[0], or_default(max_queries, q.shape[0])
            if batch < 1:
                raise InvalidArgumentError(f"{self.name}: query_offsets is {list(offsets.shape)}; [batch + 1] of 1 and more batches is accepted")
        pages = packed_keys = 0
        if self.page_size:
            if table is None:
                raise InvalidArgumentError(f"{self.name}: block_table is missing, which says where the pages of each batch are")
            if len(table.shape) != 2 or table.shape[0] != batch or table.shape[1] == 0:
                raise InvalidArgumentError(f"{self.name}: block_table is {list(table.shape)}; [{batch}, n] is accepted, n pages of each batch, 1 and more")
            pages, keys = k.shape[0], table.shape[1] * self.page_size
            own = self.rows(pages, self.kv_heads, self.page_size, self.head_dim)
        elif key_offsets is not None:
            packed_keys, keys = k.shape[0], or_default(max_keys, k.shape[0])
            own = (packed_keys, self.kv_heads, self.head_dim)
        else:
            keys = k.shape[at]
            own = self.rows(batch, self.kv_heads, keys, self.head_dim)
        of_queries = (lambda dim: (packed_queries, self.heads, dim)) if packed_queries else (lambda dim: self.rows(batch, self.heads, queries, dim))
        values = (batch, self.kv_heads, self.value_dim, keys) if self.values_transposed else (*own[:-1], self.value_dim)
        lse = (self.heads, packed_queries) if packed_queries else (batch, self.heads, queries)
        self.shaped(given, {"q": of_queries(self.head_dim), "k": own, "v": values, "out": of_queries(self.value_dim), "lse": lse, "sinks": (self.heads,),
                            "slopes": (self.heads,), "query_offsets": (batch + 1,), "key_offsets": (batch + 1,), "key_lengths": (batch,),
                            "gradient": of_queries(self.value_dim), "dq": of_queries(self.head_dim), "dk": own, "dv": values, "dsinks": (self.heads,)})
        return batch, queries, keys, packed_queries, packed_keys, pages

    def wanted(self, backward=False):
        """Of each tensor of a call its types, as the native functions take them."""
        operand = _FP8 if self.type == "fp8e4nv" else self.type
        result = "bf16" if self.type == "fp8e4nv" else self.type
        types = [("q", operand), ("k", operand), ("v", operand), ("out", result), ("lse", "fp32")]
        if backward:
            types += [(word, operand) for word in ("gradient", "dq", "dk", "dv")]
            types += [("slopes", "fp32"), ("query_offsets", "i32"), ("key_offsets", "i32"), ("sinks", "fp32"), ("dsinks", "fp32")]
        else:
            types += [("sinks", "fp32"), ("slopes", "fp32"), *((word, "i32") for word in ("query_offsets", "key_offsets", "key_lengths", "block_table"))]
        return [(word, kind, None) for word, kind in types]

    def prepare(self, q, k, v, out, *, lse=None, sinks=None, slopes=None, query_offsets=None, key_offsets=None, key_lengths=None, block_table=None,
                max_queries=None, max_keys=None):
        """Compiles and loads what calls with tensors like these need, on all ranks of this process."""
        self.run(dict(q=q, k=k, v=v, out=out, lse=lse, sinks=sinks, slopes=slopes, query_offsets=query_offsets, key_offsets=key_offsets,
                      key_lengths=key_lengths, block_table=block_table), max_queries, max_keys, prepares=True)

    def __call__(self, q, k, v, out, *, lse=None, sinks=None, slopes=None, query_offsets=None, key_offsets=None, key_lengths=None, block_table=None,
                 max_queries=None, max_keys=None):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. lse [batch, heads, queries] (of packed
        rows [heads, rows], of which the first heads * query_offsets[-1] elements count), sinks and slopes [heads] if given. Enqueued; gives `out`."""
        self.run(dict(q=q, k=k, v=v, out=out, lse=lse, sinks=sinks, slopes=slopes, query_offsets=query_offsets, key_offsets=key_offsets,
                      key_lengths=key_lengths, block_table=block_table), max_queries, max_keys)
        return out

    def backward(self, q, k, v, out, lse, gradient, dq, dk, dv, *, slopes=None, query_offsets=None, key_offsets=None, sinks=None, dsinks=None,
                 max_queries=None, max_keys=None, prepares=False):
        """dq, dk, dv from `gradient`, that of out, which with lse is as the forward left it. With `prepares` only compiles and loads what such calls
        need."""
        self.run(dict(q=q, k=k, v=v, out=out, lse=lse, gradient=gradient, dq=dq, dk=dk, dv=dv, slopes=slopes, query_offsets=query_offsets,
                      key_offsets=key_offsets, sinks=sinks, dsinks=dsinks), max_queries, max_keys, backward=True, prepares=prepares)

    def run(self, tensors, max_queries, max_keys, backward=False, prepares=False):
        prepare = _native.attention_prepare_backward if backward else _native.attention_prepare
        enqueue = _native.attention_backward if backward else _native.attention_enqueue

        def call(device, given):
            shape = self.shape(given, max_queries, max_keys)
            addresses = self.addresses(device, given, self.wanted(backward))
            return partial(prepare, self.handle, shape, *addresses) if prepares else partial(enqueue, self.handle, device.stream(), shape, *addresses)
        self.spread(tensors, call, needed=("q", "k", "v", "out"))


class AttentionDecode(_Attention):
    """Attention of one query or a few of each sequence over many keys, as a decoder computes it for each token; the cut over a GPU does not depend on the
    sequences' lengths.

        decode = ditron.AttentionDecode(world, max_batch=64, heads=32, kv_heads=8, head_dim=128, dtype=torch.bfloat16, page_size=16)
        decode.prepare(batch)
        decode(q, k, v, out, lengths, table=table)      # lengths and table are read on the device: capture once, replay with others

    q and out [batch, heads, queries, head_dim]; k and v [batch, keys, kv_heads, head_dim] (with heads_first [batch, kv_heads, keys, head_dim]), or with
    page_size [pages, page_size, kv_heads, head_dim] ([pages, kv_heads, page_size, head_dim]) and table [batch, n]. `keys`, or with pages `n`
    (table_width), is the same in all calls. lengths [batch, queries]: how many keys a query sees.

    over_ranks: the keys of a sequence are spread over the ranks, lengths are of each rank's own, and all ranks have the same queries and get the same
    result; every rank makes the same calls."""

    name = "attention_decode"

    def __init__(self, world, max_batch, heads, head_dim, dtype, *, kv_heads=None, queries=1, scale=None, keys=0, page_size=0, table_width=0,
                 heads_first=False, over_ranks=False, concurrent_calls=0):
        self.type = _element_type(self.name, dtype)
        check_sizes(self.name, max_batch=max_batch, heads=heads, kv_heads=or_default(kv_heads, heads), queries=queries, head_dim=head_dim)
        check_sizes(self.name, least=0, keys=keys, page_size=page_size, table_width=table_width)
        check_counts(self.name, concurrent_calls=concurrent_calls)
        self.heads, self.kv_heads, self.head_dim, self.queries = heads, or_default(kv_heads, heads), head_dim, queries
        self.page_size, self.keys, self.table_width, self.heads_first, self.over_ranks = page_size, keys, table_width, heads_first, over_ranks
        if bool(page_size) != bool(table_width) or bool(page_size) == bool(keys):
            raise InvalidArgumentError(f"{self.name}: keys={keys}, page_size={page_size}, table_width={table_width}; accepted are keys, or page_size and "
                                       "table_width")
        row, head = (head_dim, (page_size or keys) * head_dim) if heads_first else (self.kv_heads * head_dim, head_dim)
        super().__init__(world, _native.attention_decode_create, _native.attention_decode_destroy, BY_SIGNATURE[self.type].number, max_batch, heads,
                         self.kv_heads, queries, head_dim, number_or_zero(self.name, scale=scale), page_size,
                         (page_size or keys) * self.kv_heads * head_dim, row, head, table_width,
                         over_ranks, concurrent_calls)

    def prepare(self, batch, with_lse=False):
        """Compiles and loads what calls with so many sequences need, on all ranks of this process; with over_ranks before the first call anywhere."""
        _native.attention_decode_prepare(self.handle, batch, with_lse)

    def __call__(self, q, k, v, out, lengths, *, table=None, lse=None):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. lse [batch, heads, queries] if wanted.
        Enqueued; gives `out`."""
        seen = set()

        def call(device, given):
            batch, count = given["q"].shape[0], given["k"].shape[0]
            seen.add(batch)
            if self.over_ranks and len(seen) > 1:
                raise InvalidArgumentError(f"{self.name}: {sorted(seen)} sequences on the ranks of this process; accepted is the same number on all")
            lengths = list(given["lengths"].shape)
            if lengths != [batch, self.queries] and (self.queries > 1 or lengths != [batch]):
                raise InvalidArgumentError(f"{self.name}: lengths is {lengths}; {[batch, self.queries]} is accepted")
            rows = self.page_size or self.keys
            keys = (count, self.kv_heads, rows, self.head_dim) if self.heads_first else (count, rows, self.kv_heads, self.head_dim)
            if not self.page_size:
                keys = (batch, *keys[1:])
            elif given["table"] is None:
                raise InvalidArgumentError(f"{self.name}: table is missing, which says where the pages of each sequence are")
            queries = batch, self.heads, self.queries
            self.shaped(given, {"q": (*queries, self.head_dim), "out": (*queries, self.head_dim), "k": keys, "v": keys, "lse": queries,
                                "table": (batch, self.table_width)})
            addresses = self.addresses(device, given, (("q", self.type, None), ("k", self.type, None), ("v", self.type, None), ("out", self.type, None),
                                                       ("lse", "fp32", None), ("lengths", "i32", batch * self.queries), ("table", "i32", None)))
            return partial(_native.attention_decode_enqueue, self.handle, device.stream(), batch, *addresses)
        self.spread({"q": q, "k": k, "v": v, "out": out, "lengths": lengths, "table": table, "lse": lse}, call,
                    needed=("q", "k", "v", "out", "lengths"))
        return out


class RingAttention(_Attention):
    """Attention whose tokens are dealt out to the ranks (context parallelism): a rank's queries see the keys of all ranks, which come while it computes.

        ring = ditron.RingAttention(world, heads=32, kv_heads=8, head_dim=128, dtype=torch.bfloat16, max_tokens=131072, causal=True, backward=True)
        ring.prepare(tokens, with_lse=True)             # for every number of tokens of a sequence, on all ranks together, before a capture
        ring.prepare_backward(tokens)
        own = ring.deal(q, rank, tokens)                # of a tensor [..., tokens, head_dim] the rank's part, a new tensor
        ring(q, k, v, out, tokens, lse=lse)             # q, out [batch, heads, own tokens, head_dim], k, v [batch, kv_heads, own tokens, head_dim]
        ring.backward(q, k, v, out, lse, gradient, dq, dk, dv, tokens)

    Tokens are cut into sections of ceil(tokens / sections), the last ones shorter or empty. Without `causal` rank r has section r of world.ranks; with it
    it has sections r and 2 * ranks - 1 - r of twice as many, one behind the other, so that all have as much to do (`sections`). A rank without tokens
    makes the call too, with empty tensors.

    packed_sequences: the tokens are those of so many sequences one behind the other that do not see each other (batch is 1); `offsets` int32
    [packed_sequences + 1], the same on all ranks, has where each begins among all tokens, at last their number, and is read on the device: ascending from
    0 to at most `tokens`, which nobody checks; results of others mean nothing.
    goes_round: keys go round the ranks even where memory for all of them is no more than that takes. lse [batch, heads, own tokens]. The gradients are
    the same bits every time."""

    name, alignment = "ring_attention", 16

    def __init__(self, world, heads, head_dim, dtype, max_tokens, *, batch=1, kv_heads=None, scale=None, causal=False, packed_sequences=0, goes_round=False,
                 backward=False):
        self.type = _element_type(self.name, dtype)
        check_sizes(self.name, heads=heads, kv_heads=or_default(kv_heads, heads), head_dim=head_dim, max_tokens=max_tokens, batch=batch)
        check_sizes(self.name, least=0, packed_sequences=packed_sequences)
        self.batch, self.heads, self.kv_heads, self.head_dim = batch, heads, or_default(kv_heads, heads), head_dim
        self.causal, self.max_tokens, self.packed_sequences = bool(causal), max_tokens, packed_sequences
        super().__init__(world, _native.ring_attention_create, _native.ring_attention_destroy, BY_SIGNATURE[self.type].number, batch, heads, self.kv_heads,
                         head_dim, number_or_zero(self.name, scale=scale), causal, max_tokens, packed_sequences, goes_round, backward)

    @staticmethod
    def sections_of(ranks, rank, tokens, causal):
        """(first, count) of each of the rank's one or two sections of the tokens of a sequence of so many."""
        if not 0 <= rank < ranks or tokens < 0:
            raise InvalidArgumentError(f"ring_attention: rank {rank}, {tokens} tokens; ranks from 0 to {ranks - 1} and 0 tokens and more are accepted")
        length = -(-tokens // (2 * ranks if causal else ranks))
        numbers = (rank, 2 * ranks - 1 - rank) if causal else (rank,)
        return [(min(number * length, tokens), max(min(tokens - number * length, length), 0)) for number in numbers]

    def sections(self, rank, tokens):
        return self.sections_of(self.world.ranks, rank, tokens, self.causal)

    def deal(self, tensor, rank, tokens):
        """The rank's part of a tensor [..., tokens, head_dim] of all tokens."""
        if tensor.shape[-2] != tokens:
            raise InvalidArgumentError(f"{self.name}: a tensor {list(tensor.shape)} is to be dealt out; [..., {tokens}, n] is accepted")
        taken = [index for first, count in self.sections(rank, tokens) for index in range(first, first + count)]
        return tensor[..., taken, :]

    def prepare(self, tokens, with_lse=False):
        """Compiles and loads what calls with so many tokens in a sequence need, on all ranks of this process; before the first call anywhere."""
        _native.ring_attention_prepare(self.handle, tokens, with_lse, False)

    def prepare_backward(self, tokens):
        """The same for `backward`."""
        _native.ring_attention_prepare(self.handle, tokens, False, True)

    def __call__(self, q, k, v, out, tokens, *, lse=None, offsets=None):
        """Lists of tensors by local rank, or single ones of this process's rank, in world.run of this thread's. Every rank makes the same sequence of calls.
        Enqueued; gives `out`."""
        self.run(_native.ring_attention_enqueue, dict(q=q, k=k, v=v, out=out, lse=lse, offsets=offsets), tokens)
        return out

    def backward(self, q, k, v, out, lse, gradient, dq, dk, dv, tokens, *, offsets=None):
        """Results dq, dk and dv from the forward's operands and results, and the gradient of out."""
        if lse is None:
            raise InvalidArgumentError(f"{self.name}: lse is missing, which the forward call gives")
        self.run(_native.ring_attention_backward, dict(q=q, k=k, v=v, out=out, lse=lse, gradient=gradient, dq=dq, dk=dk, dv=dv, offsets=offsets), tokens)
        return dq, dk, dv

    def run(self, enqueue, tensors, tokens):
        if not 1 <= tokens <= self.max_tokens:
            raise InvalidArgumentError(f"{self.name}: {tokens} tokens; 1 to {self.max_tokens} (max_tokens) are accepted")
        if self.packed_sequences and tensors["offsets"] is None:
            raise InvalidArgumentError(f"{self.name}: offsets are missing, which say where each of {self.packed_sequences} sequences begins")

        def call(device, given):
            own = sum(count for _, count in self.sections(device.rank, tokens))
            queries, keys = ((self.batch, heads, own, self.head_dim) for heads in (self.heads, self.kv_heads))
            self.shaped(given, {**dict.fromkeys(("q", "out", "gradient", "dq"), queries), **dict.fromkeys(("k", "v", "dk", "dv"), keys),
                                "lse": queries[:-1], "offsets": (self.packed_sequences + 1,)})
            types = {"lse": "fp32", "offsets": "i32"}
            return partial(enqueue, self.handle, device.stream(), tokens, *self.addresses(device, given, [(word, types.get(word, self.type), None) for word in given]))
        self.spread(tensors, call, needed=[word for word in tensors if word not in ("lse", "offsets")])


class _Layer(_Attention):
    """A layer with its weights, which stay where they are as long as it."""

    alignment = 16

    def take_weights(self, world, weights, shapes):
        """weights: dictionaries by local rank. Gives the addresses of all ranks', as the native functions take them."""
        weights = [weights] if isinstance(weights, dict) else list(weights)
        if len(weights) != len(world.local_ranks):
            raise InvalidArgumentError(f"{self.name}: this process has {len(world.local_ranks)} ranks; weights of {len(weights)} are given")
        unknown = {word for each in weights for word in each} - set(shapes)
        if unknown:
            raise InvalidArgumentError(f"{self.name}: weights named {', '.join(sorted(unknown))}; accepted are {', '.join(shapes)}")
        self.world, self.shapes, self.weights = world, shapes, dict(zip(world.local_ranks, weights))
        addresses = [None] * world.ranks
        for rank in world.local_ranks:
            self.at(rank, lambda device: addresses.__setitem__(device.rank, self.lend_weights(device)))
        return tuple(addresses)

    def lend_weights(self, device):
        """The addresses of a rank's weights, which its kernels may touch until the world is synchronised."""
        given = {word: self.weights[device.rank].get(word) for word in _WEIGHTS}
        self.shaped(given, self.shapes)
        return tuple(self.addresses(device, given, [(word, "fp32" if word == "rotary" else self.type, None) for word in _WEIGHTS]))


class TensorParallelAttention(_Layer):
    """A layer of attention whose heads are dealt out to the ranks, for prefill and decoding with a cache of keys:
    q, k, v = x @ qkv.T; heads of q and k normed and rotated; k, v to the cache; y = attention(q, cache) @ out.T, causal.

        rows = ditron.TensorParallelAttention.qkv_rows(heads, kv_heads, head_dim, world.ranks, rank)     # of [Q; K; V]
        weights = [{"qkv": qkv[rows].contiguous(), "out": out.chunk(world.ranks, 1)[rank].contiguous()} ...]
        layer = ditron.TensorParallelAttention(world, weights, hidden=4096, heads=32, kv_heads=8, head_dim=128, dtype=torch.bfloat16, max_tokens=8192,
                                               max_batch=64, max_keys=32768, page_size=128, pages=2048)
        layer.prepare_prefill(tokens, batch, longest)
        layer.prepare_decode(batch)
        layer.prefill(x, y, keys, values, lengths, offsets, table=table, longest=longest)
        layer.decode(x, y, keys, values, lengths, table=table)              # captured once, replayed for every token

    weights: by local rank a dictionary of qkv [own heads of q, of k, of v; hidden], out [hidden, own heads * head_dim], and with the options that need them
    qkv_bias, q_norm and k_norm [head_dim] (norm_epsilon), rotary float32 [max_keys, rotary_dim]: for each position of each angle the cosine, then of each
    the sine. They stay where they are.

    x and y [tokens, hidden]; with `dealt` the rank's rows, of which it has those from rank * ceil(tokens / ranks) on. keys and values:
    [pages, page_size, own kv heads, head_dim] (with page_size) and table [batch, ceil(max_keys / page_size)], or [max_batch, max_keys, own kv heads,
    head_dim], zeros at first. lengths [batch]: keys of each sequence with those of the call, its last ones; 0: it is not there. offsets [batch + 1]: where
    each sequence's tokens begin, at last their number."""

    name = "tensor_parallel_attention"

    def __init__(self, world, weights, hidden, heads, head_dim, dtype, max_tokens, max_batch, max_keys, *, kv_heads=None, scale=None, rotary_dim=0,
                 rotary_interleaved=False, norm_epsilon=None, dealt=False, page_size=0, pages=0, unfused=False, concurrent_calls=0):
        self.type, self.hidden, self.dealt = _element_type(self.name, dtype), hidden, dealt
        kv_heads = or_default(kv_heads, heads)
        check_sizes(self.name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, max_tokens=max_tokens, max_batch=max_batch, max_keys=max_keys)
        check_sizes(self.name, least=0, rotary_dim=rotary_dim, page_size=page_size, pages=pages)
        check_counts(self.name, concurrent_calls=concurrent_calls)
        own, own_kv = heads // world.ranks, max(kv_heads // world.ranks, 1)
        rows = (own + 2 * own_kv) * head_dim
        self.cache = (pages, page_size, own_kv, head_dim) if page_size else (max_batch, max_keys, own_kv, head_dim)
        self.table = -(-max_keys // page_size) if page_size else None
        shapes = {"qkv": (rows, hidden), "out": (hidden, own * head_dim), "qkv_bias": (rows,), "q_norm": (head_dim,), "k_norm": (head_dim,),
                  "rotary": (max_keys, rotary_dim)}
        addresses = self.take_weights(world, weights, shapes)
        has_bias = any(each.get("qkv_bias") is not None for each in self.weights.values())
        super().__init__(world, _native.tensor_parallel_attention_create, _native.tensor_parallel_attention_destroy, BY_SIGNATURE[self.type].number, hidden,
                         heads, kv_heads, head_dim, number_or_zero(self.name, scale=scale), rotary_dim, rotary_interleaved,
                         number_or_zero(self.name, norm_epsilon=norm_epsilon), has_bias, dealt, max_tokens, max_batch,
                         max_keys, page_size, pages, unfused, concurrent_calls, addresses)

    @staticmethod
    def qkv_rows(heads, kv_heads, head_dim, ranks, rank):
        """Which rows of [Q; K; V], (heads + 2 * kv_heads) * head_dim of them, a rank's qkv has, in their order."""
        own, own_kv, first_kv = heads // ranks, max(kv_heads // ranks, 1), rank * kv_heads // ranks
        parts = ((rank * own, own), (heads + first_kv, own_kv), (heads + kv_heads + first_kv, own_kv))
        return [row for first, count in parts for row in range(first * head_dim, (first + count) * head_dim)]

    def prepare_prefill(self, tokens, batch, longest):
        """Compiles and loads what calls with so many tokens (of all ranks together) and sequences need, none of which has more than `longest` tokens, on all
        ranks of this process; before the first call anywhere."""
        _native.tensor_parallel_attention_prepare_prefill(self.handle, tokens, batch, longest)

    def prepare_decode(self, batch):
        """The same for steps of decoding."""
        _native.tensor_parallel_attention_prepare_decode(self.handle, batch)

    def prefill(self, x, y, keys, values, lengths, offsets, *, table=None, longest=None, tokens=None):
        """Tokens of several sequences, one sequence behind the other, perhaps behind keys that are there. Rows of y behind the last offset are any numbers.
        `longest`: the most tokens of a sequence, behind which none are computed; all by default. `tokens`: with `dealt`, where the ranks' x are not equally
        long. Lists of tensors by
        local rank, or single ones of this process's rank, in world.run of this thread's. Enqueued; gives `y`."""
        for word, value in (("tokens", tokens), ("longest", longest)):
            if value is not None:
                check_sizes(self.name, **{word: value})
        self.run(dict(x=x, y=y, keys=keys, values=values, lengths=lengths, offsets=offsets, table=table), tokens, longest)
        return y

    def decode(self, x, y, keys, values, lengths, *, table=None):
        """One token of each sequence. Gives `y`."""
        self.run(dict(x=x, y=y, keys=keys, values=values, lengths=lengths, offsets=None, table=table), None, 0)
        return y

    def run(self, tensors, tokens, longest):
        def call(device, given):
            own, batch = rows_of(self.name, "x", given["x"], self.hidden), _count(given["lengths"])
            count = batch if longest == 0 else or_default(tokens, own * self.world.ranks if self.dealt else own)
            part = -(-count // self.world.ranks)
            wanted = min(max(count - device.rank * part, 0), part) if self.dealt else count
            if own != wanted:
                raise InvalidArgumentError(f"{self.name}: x has {own} rows; rank {device.rank} has {wanted} of {count} tokens")
            if self.table and given["table"] is None:
                raise InvalidArgumentError(f"{self.name}: table is missing, which says where the pages of each sequence are")
            if longest != 0 and given["offsets"] is None:
                raise InvalidArgumentError(f"{self.name}: offsets are missing, which say where each sequence's tokens begin")
            self.shaped(given, {"keys": self.cache, "values": self.cache, "offsets": (batch + 1,), **({"table": (batch, self.table)} if self.table else {})})
            addresses = self.addresses(device, given, (("x", self.type, None), ("y", self.type, own * self.hidden), ("keys", self.type, None),
                                                       ("values", self.type, None), ("lengths", "i32", None), ("offsets", "i32", None), ("table", "i32", None)))
            self.lend_weights(device)
            return partial(_native.tensor_parallel_attention_enqueue, self.handle, device.stream(), count, batch, count if longest is None else longest, *addresses)
        self.spread(tensors, call, needed=("x", "y", "lengths"))


class SequenceParallelAttention(_Layer):
    """A layer of attention whose tokens are dealt out to the ranks: of a sequence a rank has those from rank * ceil(tokens / ranks) on. Weights are whole on
    every rank; for attention the heads are dealt out instead (Ulysses). With a cache steps of decoding follow, in which keys stay spread over the ranks.

        rows = ditron.SequenceParallelAttention.qkv_rows(heads, kv_heads, head_dim, world.ranks)      # of [Q; K; V]
        layer = ditron.SequenceParallelAttention(world, [{"qkv": qkv[rows].contiguous(), "out": out} ...], hidden=4096, heads=32, kv_heads=8, head_dim=128,
                                                 dtype=torch.bfloat16, max_tokens=131072, cache_batch=1, cache_keys=65536)
        layer.prepare_prefill(tokens)
        layer.prepare_decode(1)
        layer.prefill(x, y, tokens, keys=keys, values=values)                 # [batch, the rank's tokens, hidden]
        layer.decode(x, y, keys, values, lengths, places, positions)          # [batch, hidden], the same on all ranks; captured once, replayed

    weights: by local rank a dictionary of qkv [(heads + 2 * kv_heads) * head_dim, hidden], out [hidden, heads * head_dim], and with the options that need
    them q_norm and k_norm [head_dim] (norm_epsilon), rotary float32 [positions, rotary_dim]: for each position of each angle the cosine, then of each the
    sine. They stay where they are. Keys and values of a rank: [cache_batch, cache_keys, kv_heads, head_dim], or with page_size [pages, page_size, kv_heads,
    head_dim] and table [batch, ceil(cache_keys / page_size)].

    decode: `places` [batch] has the row of each token's key in the rank's cache, -1 if another rank has it, `lengths` [batch] the rank's keys with it,
    `positions` [batch] where the token is in its sequence."""

    name = "sequence_parallel_attention"

    def __init__(self, world, weights, hidden, heads, head_dim, dtype, max_tokens, *, batch=1, kv_heads=None, causal=True, scale=None, rotary_dim=0,
                 rotary_interleaved=False, norm_epsilon=None, chunks=0, cache_batch=0, cache_keys=0, page_size=0, pages=0, concurrent_calls=0):
        self.type, self.hidden, self.batch = _element_type(self.name, dtype), hidden, batch
        kv_heads = or_default(kv_heads, heads)
        check_sizes(self.name, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, max_tokens=max_tokens, batch=batch)
        check_sizes(self.name, least=0, rotary_dim=rotary_dim, cache_batch=cache_batch, cache_keys=cache_keys, page_size=page_size, pages=pages)
        check_counts(self.name, chunks=chunks, concurrent_calls=concurrent_calls)
        self.cache = (pages, page_size, kv_heads, head_dim) if page_size else (cache_batch, cache_keys, kv_heads, head_dim)
        self.table = -(-cache_keys // page_size) if page_size else None
        shapes = {"qkv": ((heads + 2 * kv_heads) * head_dim, hidden), "out": (hidden, heads * head_dim), "q_norm": (head_dim,), "k_norm": (head_dim,)}
        if rotary_dim:
            found = [each.get("rotary") for each in ([weights] if isinstance(weights, dict) else weights)]
            positions = max([len(each) for each in found if each is not None], default=max_tokens)
            shapes["rotary"] = (positions, rotary_dim)
        addresses = self.take_weights(world, weights, shapes)
        super().__init__(world, _native.sequence_parallel_attention_create, _native.sequence_parallel_attention_destroy, BY_SIGNATURE[self.type].number,
                         batch, hidden, heads, kv_heads, head_dim, not causal, number_or_zero(self.name, scale=scale), rotary_dim, rotary_interleaved,
                         number_or_zero(self.name, norm_epsilon=norm_epsilon), max_tokens,
                         chunks, cache_batch, cache_keys, page_size, pages, concurrent_calls, addresses)

    @staticmethod
    def qkv_rows(heads, kv_heads, head_dim, ranks):
        """Which row of [Q; K; V] stands at each row of qkv: rank by rank its heads of Q, of K, of V."""
        return [row for rank in range(ranks) for row in TensorParallelAttention.qkv_rows(heads, kv_heads, head_dim, ranks, rank)]

    def prepare_prefill(self, tokens):
        """Compiles and loads what calls with so many tokens in a sequence need, on all ranks of this process; before the first call anywhere."""
        _native.sequence_parallel_attention_prepare(self.handle, tokens, False)

    def prepare_decode(self, batch):
        """The same for steps of decoding with so many sequences."""
        _native.sequence_parallel_attention_prepare(self.handle, batch, True)

    def prefill(self, x, y, tokens, *, keys=None, values=None, table=None):
        """Whole sequences of so many tokens on all ranks together; keys and values, if given, get those of the rank's tokens. Lists of tensors by local rank,
        or single ones of this process's rank, in world.run of this thread's. Enqueued; gives `y`."""
        self.run(dict(x=x, y=y, keys=keys, values=values, table=table, lengths=None, places=None, positions=None), tokens)
        return y

    def decode(self, x, y, keys, values, lengths, places, positions, *, table=None):
        """The next token of each sequence. Gives `y`."""
        self.run(dict(x=x, y=y, keys=keys, values=values, table=table, lengths=lengths, places=places, positions=positions), None)
        return y

    def run(self, tensors, tokens):
        def call(device, given):
            own, batch = rows_of(self.name, "x", given["x"], self.hidden), self.batch
            if tokens is None:
                batch = _count(given["lengths"])
                wanted = batch
            else:
                part = -(-tokens // self.world.ranks)
                wanted = batch * min(max(tokens - device.rank * part, 0), part)
            if own != wanted:
                raise InvalidArgumentError(f"{self.name}: x has {own} rows; rank {device.rank} has {wanted} of {batch} sequences")
            if self.table and given["keys"] is not None and given["table"] is None:
                raise InvalidArgumentError(f"{self.name}: table is missing, which says where the pages of each sequence are")
            self.shaped(given, {"keys": self.cache, "values": self.cache, "lengths": (batch,), "places": (batch,), "positions": (batch,),
                                **({"table": (batch, self.table)} if self.table else {})})
            addresses = self.addresses(device, given, (("x", self.type, None), ("y", self.type, own * self.hidden), ("keys", self.type, None),
                                                       ("values", self.type, None), *((word, "i32", None) for word in ("table", "lengths", "places", "positions"))))
            self.lend_weights(device)
            return partial(_native.sequence_parallel_attention_enqueue, self.handle, device.stream(), batch if tokens is None else tokens, tokens is None, *addresses)
        self.spread(tensors, call, needed=("x", "y"))
