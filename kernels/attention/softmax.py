"""Online softmax of rows of scores, in powers of two: what the kernels of attention share."""
import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def scores_to_powers(scores, largest):
    """Running maximum with these scores, factor for what was summed before, and 2 ** (score - maximum)."""
    new_largest = tl.maximum(largest, tl.max(scores, axis=1))
    # A row of which every key so far is masked has no maximum: any finite number does.
    finite = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    rescale = tl.exp2(largest - finite)
    powers = tl.exp2(scores - finite[:, None])
    return new_largest, rescale, powers


@triton.jit
def log_sum_exp(largest, total):
    """Natural logarithm of the sum of exp(score), of what the loop over the keys left; -inf of a row that sees no key."""
    return (largest + tl.log2(total)) * LN2
