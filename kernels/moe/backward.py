"""What the backward of mixtures of experts does besides grouped products, dispatch and combine (host side: ditron/ops/moe/MoeGradients).

A row is x, z = x @ up of pairs (gate, through), h = silu(gate) * through, r = h @ down, and its token gets weight * r. From `gradient`, of r / weight
times down, that is of h / weight, follow those of z, of the weight, and what the weights' gradients are made of:

    of h          weight * gradient
    of weight     sum of gradient * h              no r is needed for it
    of down       (gradient of y)^T @ (weight * h)
    of up         (gradient of z)^T @ x
"""
import triton
import triton.language as tl

from ..product.product import grouped_tile
from .routing import router_scores


@triton.jit
def silu_pairs(z_ptr, gradient_ptr, dz_ptr, h_ptr, row, weight, inner, BLOCK: tl.constexpr):
    """Of one row; gives the sum of gradient * h."""
    z_ptr += row * 2 * inner
    dz_ptr += row * 2 * inner
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, inner, BLOCK):
        column = begin + lanes
        is_column = column < inner
        gate = tl.load(z_ptr + 2 * column, mask=is_column, other=0.0).to(tl.float32)
        through = tl.load(z_ptr + 2 * column + 1, mask=is_column, other=0.0).to(tl.float32)
        gradient = tl.load(gradient_ptr + row * inner + column, mask=is_column, other=0.0).to(tl.float32)
        sigmoid = tl.sigmoid(gate)
        silu = gate * sigmoid
        sums += gradient * silu * through
        scaled = gradient * weight
        tl.store(dz_ptr + 2 * column, (scaled * through * (sigmoid + silu * (1.0 - sigmoid))).to(dz_ptr.dtype.element_ty), mask=is_column)
        tl.store(dz_ptr + 2 * column + 1, (scaled * silu).to(dz_ptr.dtype.element_ty), mask=is_column)
        tl.store(h_ptr + row * inner + column, (silu * through * weight).to(h_ptr.dtype.element_ty), mask=is_column)
    return tl.sum(sums, axis=0)


@triton.jit(do_not_specialize=["max_rows"], do_not_specialize_on_alignment=["offsets_ptr"])
def rows_backward(z_ptr, gradient_ptr, dz_ptr, h_ptr, offsets_ptr, choices_ptr, values_ptr, weights_ptr, slot_of_row_ptr, slot_values_ptr, max_rows, inner,
                  experts, first_expert, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """dz [rows, 2 * inner]: the gradient of z, weighted; h [rows, inner], times the weight. gradient [rows, inner].

    Weights of rows that came from other ranks: choices [rows, 2 * TOP_K] float32 has weights and experts of a row's token, of which its own is
    that of expert first_expert + its own; values, likewise, gets the weight's gradient at that place and zeros elsewhere. Of rows of this rank:
    weights_ptr [slots] of slot_of_row_ptr [rows], and slot_values_ptr [slots] gets the gradients. Of dense rows, neither: all weights are one.
    """
    expert = tl.arange(0, EXPERTS)
    ends = tl.load(offsets_ptr + 1 + expert, mask=expert < experts, other=2147483647)
    rows = tl.minimum(tl.load(offsets_ptr + experts), max_rows)
    slot = tl.arange(0, SLOTS)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        own = tl.cast(row, tl.int64)
        weight = tl.cast(1.0, tl.float32)
        if choices_ptr is not None:
            number = (first_expert + tl.sum((ends <= row).to(tl.int32), axis=0)).to(tl.float32)
            at = own * 2 * TOP_K + slot
            weights = tl.load(choices_ptr + at, mask=slot < TOP_K, other=0.0)
            is_own = tl.load(choices_ptr + at + TOP_K, mask=slot < TOP_K, other=-1.0) == number
            weight = tl.sum(tl.where(is_own, weights, 0.0), axis=0)
        if slot_of_row_ptr is not None:
            weight = tl.load(weights_ptr + tl.load(slot_of_row_ptr + row))
        value = silu_pairs(z_ptr, gradient_ptr, dz_ptr, h_ptr, own, weight, inner, BLOCK)
        if choices_ptr is not None:
            tl.store(values_ptr + at, tl.where(is_own, value, 0.0), mask=slot < TOP_K)
            tl.store(values_ptr + at + TOP_K, tl.zeros((SLOTS,), tl.float32), mask=slot < TOP_K)
        if slot_of_row_ptr is not None:
            tl.store(slot_values_ptr + tl.load(slot_of_row_ptr + row), value)


@triton.jit(do_not_specialize=["tokens"])
def pack_choices(ids_ptr, weights_ptr, choices_ptr, tokens, TOP_K: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    """choices [tokens, 2 * TOP_K] float32: of each token its weights, then its experts' numbers."""
    token = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)[:, None]
    slot = tl.arange(0, SLOTS)[None, :]
    mask = (token < tokens) & (slot < TOP_K)
    tl.store(choices_ptr + token * 2 * TOP_K + slot, tl.load(weights_ptr + token * TOP_K + slot, mask=mask), mask=mask)
    tl.store(choices_ptr + token * 2 * TOP_K + TOP_K + slot, tl.load(ids_ptr + token * TOP_K + slot, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def source_of(row, slot_of_row_ptr, is_row, SLOTS_OF_TOKEN: tl.constexpr):
    source = row
    if SLOTS_OF_TOKEN > 0:
        source = tl.load(slot_of_row_ptr + row, mask=is_row, other=0) // SLOTS_OF_TOKEN
    return source.to(tl.int64)


@triton.jit(do_not_specialize=["experts"], do_not_specialize_on_alignment=["offsets_ptr", "slot_of_row_ptr"])
def weight_gradient(a_ptr, b_ptr, c_ptr, offsets_ptr, slot_of_row_ptr, experts, M, N, A_SLOTS: tl.constexpr, B_SLOTS: tl.constexpr, ADD: tl.constexpr,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PRECISION: tl.constexpr):
    """c[e] = (ADD: itself +) a[rows of e]^T @ b[rows of e], [experts, M, N]; a [rows, M], b [rows, N], or with A_SLOTS, B_SLOTS tokens that are
    gathered: row r is row slot_of_row[r] // SLOTS. An expert without rows gets zeros. In fp32, in the order of the rows."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offsets_m = tl.arange(0, BLOCK_M)
    offsets_n = tl.arange(0, BLOCK_N)
    offsets_k = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), experts * tiles_m * tiles_n, tl.num_programs(0)):
        expert = tile // (tiles_m * tiles_n)
        tile_m, tile_n = grouped_tile(tile % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
        column_a = tile_m * BLOCK_M + offsets_m
        column_b = tile_n * BLOCK_N + offsets_n
        end = tl.load(offsets_ptr + expert + 1)
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(tl.load(offsets_ptr + expert), end, BLOCK_K):
            row = first + offsets_k
            is_row = row < end
            rows_a = source_of(row, slot_of_row_ptr, is_row, A_SLOTS)
            rows_b = source_of(row, slot_of_row_ptr, is_row, B_SLOTS)
            a = tl.load(a_ptr + rows_a[:, None] * M + column_a[None, :], mask=is_row[:, None] & (column_a < M)[None, :], other=0.0)
            b = tl.load(b_ptr + rows_b[:, None] * N + column_b[None, :], mask=is_row[:, None] & (column_b < N)[None, :], other=0.0)
            sums = tl.dot(tl.trans(a), b, sums, input_precision=PRECISION)
        place = (tl.cast(expert, tl.int64) * M + column_a[:, None]) * N + column_b[None, :]
        mask = (column_a < M)[:, None] & (column_b < N)[None, :]
        if ADD:
            sums += tl.load(c_ptr + place, mask=mask, other=0.0).to(tl.float32)
        tl.store(c_ptr + place, sums.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["tokens"])
def router_backward(logits_ptr, ids_ptr, weights_ptr, gradients_ptr, dlogits_ptr, tokens, experts, stride, scale, TOP_K: tl.constexpr,
                    SLOTS: tl.constexpr, EXPERTS: tl.constexpr, BLOCK: tl.constexpr, SIGMOID: tl.constexpr, NORMALIZED: tl.constexpr):
    """dlogits [tokens, experts] from gradients [tokens, stride] of the weights that routing.choose_experts has made; its arguments otherwise."""
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_token = token < tokens
    expert = tl.arange(0, EXPERTS)
    is_expert = (expert < experts)[None, :]
    at = token.to(tl.int64)[:, None]
    logits = tl.load(logits_ptr + at * experts + expert[None, :], mask=is_token[:, None] & is_expert, other=0.0)
    logits = tl.where(is_expert, logits, float("-inf"))
    scores = router_scores(logits, SIGMOID)
    # Of what is divided by the sum the mean gradient falls out.
    mean = tl.zeros((BLOCK,), tl.float32)
    if NORMALIZED:
        for j in tl.static_range(TOP_K):
            weight = tl.load(weights_ptr + token.to(tl.int64) * TOP_K + j, mask=is_token, other=0.0)
            mean += weight * tl.load(gradients_ptr + token.to(tl.int64) * stride + j, mask=is_token, other=0.0) / scale
    total = tl.zeros((BLOCK,), tl.float32)
    of_scores = tl.zeros((BLOCK, EXPERTS), tl.float32)
    for j in tl.static_range(TOP_K):
        chosen = tl.load(ids_ptr + token.to(tl.int64) * TOP_K + j, mask=is_token, other=-1)[:, None] == expert[None, :]
        gradient = tl.load(gradients_ptr + token.to(tl.int64) * stride + j, mask=is_token, other=0.0)
        of_scores += tl.where(chosen, (gradient - mean)[:, None], 0.0)
        total += tl.sum(tl.where(chosen, scores, 0.0), axis=1)
    of_scores *= scale
    if NORMALIZED:
        of_scores = of_scores / total[:, None]
    if SIGMOID:
        dlogits = of_scores * scores * (1.0 - scores)
    else:
        dlogits = scores * (of_scores - tl.sum(of_scores * scores, axis=1)[:, None])
    tl.store(dlogits_ptr + at * experts + expert[None, :], dlogits.to(dlogits_ptr.dtype.element_ty), mask=is_token[:, None] & is_expert)


@triton.jit(do_not_specialize=["elements"])
def add_elements(a_ptr, b_ptr, out_ptr, elements, BLOCK: tl.constexpr):
    at = tl.cast(tl.program_id(0), tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < elements
    total = tl.load(a_ptr + at, mask=mask, other=0.0).to(tl.float32) + tl.load(b_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=mask)
