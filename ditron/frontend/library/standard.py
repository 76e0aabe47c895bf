"""What Triton's own library is made of and public kernels call by its private names (tl.standard, tl.core).

Sorting steps come in two forms. The older one takes a block of any shape and counts `i` from the outermost of the last
`n_dims` bits of an element's index; the newer one takes a hypercube, whose dimensions all have size 2, and counts from the
innermost.
"""
import triton
import triton.language as tl


@triton.constexpr_function
def _log2(i):
    """The logarithm to base 2, rounded down."""
    result = 0
    while i > 1:
        i >>= 1
        result += 1
    return result


@triton.constexpr_function
def _is_power_of_two(i):
    """Whether a number is 1, 2, 4, ..."""
    return i > 0 and (i & (i - 1)) == 0


@triton.constexpr_function
def get_int_dtype(bitwidth, signed):
    """The integer type of a width: 1, 8, 16, 32 or 64 bits."""
    if bitwidth == 1:
        return tl.int1
    if bitwidth == 8:
        return tl.int8 if signed else tl.uint8
    if bitwidth == 16:
        return tl.int16 if signed else tl.uint16
    if bitwidth == 32:
        return tl.int32 if signed else tl.uint32
    assert bitwidth == 64, f"no integer has {bitwidth} bits; 1, 8, 16, 32 and 64 are possible"
    return tl.int64 if signed else tl.uint64


@triton.constexpr_function
def _get_int_dtype(bitwidth, signed):
    """The same as get_int_dtype."""
    return get_int_dtype(bitwidth, signed)


@triton.constexpr_function
def _pick_sum_dtype(in_dtype, dtype):
    """The type in which tl.sum adds: dtype, else in_dtype, integers in 32 bits or more."""
    if dtype is not None:
        return dtype
    if in_dtype.is_int() and in_dtype.int_bitwidth < 32:
        return tl.int32 if in_dtype.is_int_signed() else tl.uint32
    return in_dtype


@triton.constexpr_function
def _get_flip_dim(dim, shape):
    """A dimension counted from the front; the last one for None."""
    if dim is None:
        return len(shape) - 1
    return dim + len(shape) if dim < 0 else dim


@triton.jit
def _sum_combine(a, b):
    return a + b


@triton.jit
def _prod_combine(a, b):
    return a * b


@triton.jit
def _xor_combine(a, b):
    return a ^ b


@triton.jit
def _or_combine(x, y):
    return x | y


@triton.jit
def _elementwise_max(a, b):
    return tl.maximum(a, b)


@triton.jit
def _elementwise_min(a, b):
    return tl.minimum(a, b)


@triton.jit
def _argmax_combine(value1, index1, value2, index2, tie_break_left: tl.constexpr):
    """The larger of two values with its index; of equal ones the second, or with tie_break_left that of the lower index."""
    first_wins = value1 > value2
    if tie_break_left:
        first_wins = first_wins | ((value1 == value2) & (index1 < index2))
    return tl.where(first_wins, value1, value2), tl.where(first_wins, index1, index2)


@triton.jit
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    return _argmax_combine(value1, index1, value2, index2, True)


@triton.jit
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    return _argmax_combine(value1, index1, value2, index2, False)


@triton.jit
def _argmin_combine(value1, index1, value2, index2, tie_break_left: tl.constexpr):
    """The smaller of two values with its index; ties as for _argmax_combine."""
    first_wins = value1 < value2
    if tie_break_left:
        first_wins = first_wins | ((value1 == value2) & (index1 < index2))
    return tl.where(first_wins, value1, value2), tl.where(first_wins, index1, index2)


@triton.jit
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    return _argmin_combine(value1, index1, value2, index2, True)


@triton.jit
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    return _argmin_combine(value1, index1, value2, index2, False)


@triton.jit
def _indicator(n_dims: tl.constexpr, j: tl.constexpr):
    """0 and 1 along dimension j of a hypercube, counted from the innermost; the other dimensions have size 1."""
    return tl.reshape(tl.arange(0, 2), [1] * (n_dims - j - 1) + [2] + [1] * j)


@triton.jit
def _in_order(x, partner, flip, is_right):
    """x or its partner, so that the left one is the smaller, or the larger where flip is 1."""
    return tl.where((x > partner) != ((flip ^ is_right) != 0), partner, x)


@triton.jit
def _compare_and_swap(x, flip, i: tl.constexpr, n_dims: tl.constexpr = None):
    """One step of a bitonic sort: pairs of elements in order, ascending where flip is 0."""
    if n_dims is None:
        rank: tl.constexpr = len(x.shape)
        return _in_order(x, tl.flip(x, rank - 1 - i), flip, _indicator(rank, i))
    else:
        inner: tl.constexpr = 2**(n_dims - i - 1)
        y = tl.reshape(x, [x.numel // (2 * inner), 2, inner])
        is_right = tl.arange(0, 2)[None, :, None]
        direction = tl.reshape(tl.broadcast_to(tl.to_tensor(flip), x.shape), y.shape)
        return tl.reshape(_in_order(y, tl.flip(y, 1), direction, is_right), x.shape)


@triton.jit
def _bitonic_merge_hypercube(x, stage: tl.constexpr, order: tl.constexpr):
    """Sorts bitonic runs of 2**stage elements: order 0 ascending, 1 descending, 2 in turns."""
    return _bitonic_merge(x, stage, order, _log2(x.numel))


@triton.jit
def _bitonic_merge(x, stage: tl.constexpr, order: tl.constexpr, n_dims: tl.constexpr):
    """The same for a block of any shape; n_dims is the logarithm of the last size, which the result does not depend on."""
    bits: tl.constexpr = _log2(x.numel)
    y = tl.reshape(x, [x.numel])
    if order == 2:
        flip = (tl.arange(0, x.numel) >> stage) & 1
    else:
        flip = tl.full([x.numel], order, tl.int32)
    for i in tl.static_range(stage):
        y = _compare_and_swap(y, flip, bits - stage + i, bits)
    return tl.reshape(y, x.shape)


@triton.jit
def sort_impl(x, k: tl.constexpr = None, dim: tl.constexpr = None, descending: tl.constexpr = False):
    """tl.sort, or with k tl.topk."""
    if k is None:
        return tl.sort(x, dim, descending)
    else:
        return tl.topk(x, k, dim, descending)


@triton.jit
def convert_custom_float8(arg, dst_ty: tl.constexpr, fp_downcast_rounding: tl.constexpr = None, has_minx2: tl.constexpr = True):
    """To or from fp8e4b15, which rounds in its own way whatever rounding is asked for."""
    tl.static_assert(arg.dtype == tl.float8e4b15 or dst_ty == tl.float8e4b15, "one of the two types is fp8e4b15")
    return arg.to(dst_ty)


@triton.jit
def convert_custom_float8_sm80(arg, dst_ty: tl.constexpr, fp_downcast_rounding: tl.constexpr = None):
    return convert_custom_float8(arg, dst_ty)


@triton.jit
def convert_custom_float8_sm70(arg, dst_ty: tl.constexpr, fp_downcast_rounding: tl.constexpr = None):
    return convert_custom_float8(arg, dst_ty)
