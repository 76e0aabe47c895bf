"""`triton.language` (tl): blocks of a program."""
from . import math, extra
from . import extra as target_info, tl as core, tl as standard, tl as random

# Types.
void: dtype
int1: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
float8e5: dtype
float8e4nv: dtype
float8e4b15: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
pi32_t: dtype = pointer_type(int32)
float8e4b8: dtype = refused("a format of AMD hardware; use float8e4nv")
float8e5b16: dtype = refused("a format of AMD hardware; use float8e5")
const: annotation
"""annotation: a pointer that is only read"""

# Limits.
TRITON_MAX_TENSOR_NUMEL: int = 1048576

class PropagateNan(enumeration):
    NONE: int = 0
    ALL: int = 0xFFFF

class ReductionOrdering(enumeration):
    UNORDERED: int = 0
    INNER_TREE: int = 1


# Python's own functions and compile-time tools.

@handler("tileRange")
def range(start, stop=None, step=None, num_stages: int | None = None, loop_unroll_factor: int | None = None,
          disallow_acc_multi_buffer: bool = False, flatten: bool = False, warp_specialize: bool = False,
          disable_licm: bool = False, cluster_blocks: int = 1) -> any:
    """iterable of a run-time loop with loop options; cluster_blocks, 1 or 2, is Ditron's own: with warp_specialize, on GPUs that have clusters, how many neighbouring blocks fetch together what all of them need; the
    grid's first extent must be a multiple of it"""

def static_range(start: int, stop: int | None = None, step: int | None = None) -> any:
    """iterable of a loop that is unrolled at compile time"""

def device_print(*values, hex=False) -> None:
    """prints while the kernel runs: a compile-time prefix, then values; a line for each element of a block, and for each
    thread of a scalar or of the prefix alone: pid (x, y, z) idx (i, j) prefix: value; with hex integers in hexadecimal and
    floats as %a of C has them"""

def static_print(*values, sep: str = " ", end: str = "\n", file=None, flush=False) -> None:
    """prints while compiling"""

def static_assert(cond: const, msg: const = "") -> None:
    """stops compilation when the condition is false"""

def device_assert(cond, msg: const = "", mask=None) -> None:
    """with the option debug: ends the run where the condition is false; without it nothing is emitted"""

@handler("constexprOf")
class constexpr:
    """a compile-time value"""

    def __init__(self, value: const) -> None: ...

def to_tensor(x: num) -> tensor:
    """a compile-time number as a run-time scalar"""

def pointer_type(element_ty: dtype, address_space: int = 1, const: bool = False) -> dtype:
    """the type of pointers to a type"""

def block_type(element_ty: dtype, shape: shape) -> dtype:
    """the type of a block"""

def condition(arg, disable_licm: bool = False) -> any:
    """the condition of a while loop, with options; disable_licm has no effect"""

def constexpr_type(value: const) -> any:
    """what .type of a compile-time value gives"""

@handler("pythonTuple")
def tuple_type(x=()) -> tuple:
    """what .type of a tuple gives: the types of its elements"""

@handler("pythonTuple")
def tuple(x=()) -> tuple:
    """the argument's elements as a tuple; class of tuples, for isinstance"""

@handler("decoratorOnly", ...)
def _aggregate(cls) -> any:
    """the same as triton.aggregate"""

def aggregate_replace(instance) -> any:
    """a copy of an aggregate with other values for the fields that are given by name"""

@handler("decoratorOnly", ...)
def builtin(fn) -> any:
    """decorator: a Python function that kernels call and that only computes with functions of the language"""

@handler("decoratorOnly", ...)
def extern(fn) -> any:
    """the same as builtin"""

@handler("decoratorOnly", ...)
def constexpr_function(fn) -> any:
    """decorator: a Python function that is executed while compiling (docs/modules.md)"""


# Programs and creation.

def program_id(axis: int) -> tensor:
    """index of this program along a grid axis (0, 1 or 2)"""

def num_programs(axis: int) -> tensor:
    """extent of the grid along an axis"""

def arange(start: int, end: int) -> tensor:
    """the integers start .. end-1 as a block of int32; the length is a power of two"""

def full(shape: shape, value: num, dtype: dtype) -> tensor:
    """a block that holds one value everywhere"""

def zeros(shape: shape, dtype: dtype) -> tensor:
    """a block of zeros"""

def zeros_like(input: tensor) -> tensor:
    """zeros of the type and shape of another tensor"""

@member
@handler("castTo")
def cast(input: num, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """conversion to another element type; rounding, 'rtne' or 'rtz', is for narrower floats, and for the type that the value has"""


# Shape.

def broadcast(input: num, other: num) -> tuple:
    """both arguments brought to their common shape, as a pair"""

@member
def broadcast_to(input: num, *shape: shape) -> tensor:
    """repeats dimensions of size 1 up to a shape"""

@member
def expand_dims(input: num, axis: shape) -> tensor:
    """inserts dimensions of size 1"""

def unsqueeze(x: num, dim: shape) -> tensor:
    """inserts a dimension of size 1"""

def squeeze(x: block, dim: int) -> tensor:
    """removes a dimension of size 1"""

@member
def reshape(input: tensor, *shape: shape, can_reorder: bool = False) -> tensor:
    """another shape of the same elements in row-major order"""

@member
def view(input: tensor, *shape: shape) -> tensor:
    """the same as reshape"""

@member
def ravel(x: tensor, can_reorder: bool = False) -> tensor:
    """all elements in one dimension"""

@member
def trans(input: block, *dims: shape) -> tensor:
    """permutes dimensions; without dims swaps the last two"""

@member
@handler("trans")
def permute(input: block, *dims: shape) -> tensor:
    """permutes dimensions; without dims swaps the last two"""

def swizzle2d(i: num, j: num, size_i: num, size_j: num, size_g: num) -> tuple:
    """renumbers a row-major grid column-major in groups of size_g rows"""

def join(a: num, b: num) -> tensor:
    """both arguments, brought to one shape, side by side in a new last dimension of size 2"""

@member
def split(x: block) -> tuple:
    """the two halves along the last dimension, whose size is 2, as a pair"""

def interleave(a: num, b: num) -> tensor:
    """elements of both arguments in turns along the last dimension"""

def cat(input: block, other: block, can_reorder: bool = False, dim: int = 0) -> tensor:
    """one block behind the other along a dimension; the order is always kept"""

@member
def flip(x: block, dim: int | None = None) -> tensor:
    """a dimension (default the last) in reverse order"""

@member
def gather(src: block, index: block, axis: int) -> tensor:
    """elements of src at the indices along an axis; the result has the shape of index; an index out of range gives an
    unspecified element"""

@member
def histogram(input: block, num_bins: int, mask: num | None = None) -> tensor:
    """how often each of the numbers 0 .. num_bins-1 occurs where the mask is true, as int32"""

@member
def sort(x: block, dim: int | None = None, descending: bool = False) -> tensor:
    """sorts along the last dimension; the order of NaNs is unspecified"""

def topk(x: block, k: int, dim: int | None = None, descending: bool = True) -> tensor:
    """the k largest (or smallest, ascending) elements along the last dimension, sorted; k is a power of two; types of less
    than 32 bits become fp32 or int32 if k is less than the size"""

def bitonic_merge(x: block, dim: int | None = None, descending: bool = False) -> tensor:
    """sorts a bitonic sequence along the last dimension"""

def map_elementwise(scalar_fn: fn, *args: num, pack: int = 1) -> any:
    """a @jit function of scalars applied to all elements, pack of them at a time; it may branch and give several results"""


# Memory.

def load(pointer: mem, mask: num | None = None, other: num | None = None, boundary_check: shape = (),
         padding_option: str = "", cache_modifier: str = "", eviction_policy: str = "", volatile: bool = False) -> tensor:
    """elements behind pointers; where the mask is false: other, or zero; volatile: while others write them, each once and all threads the same"""

@member
def store(pointer: mem, value: num, mask: num | None = None, boundary_check: shape = (), cache_modifier: str = "",
          eviction_policy: str = "", volatile: bool = False) -> None:
    """writes elements behind pointers where the mask is true; volatile, which Triton's has not: relaxed, of system scope, so that others may read or write them meanwhile"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Add)
def atomic_add(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """adds in memory, gives the old value; sem acquire, release, acq_rel, relaxed; scope gpu, cta, sys"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Max)
def atomic_max(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """maximum in memory, gives the old value"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Min)
def atomic_min(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """minimum in memory, gives the old value"""

@member
@handler("atomicRmw", op=tile.AtomicOp.And)
def atomic_and(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """bitwise and in memory, gives the old value"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Or)
def atomic_or(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """bitwise or in memory, gives the old value"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Xor)
def atomic_xor(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """bitwise exclusive or in memory, gives the old value"""

@member
@handler("atomicRmw", op=tile.AtomicOp.Exchange)
def atomic_xchg(pointer: ptr, val: num, mask: num | None = None, sem: str | None = None,
                scope: str | None = None) -> tensor:
    """exchanges a value in memory, gives the old value"""

@member
def atomic_cas(pointer: ptr, cmp: num, val: num, sem: str | None = None, scope: str | None = None) -> tensor:
    """compare and swap in memory, gives the old value"""


# Block pointers.

@handler("makeBlockPointer")
def make_block_ptr(base: ptr, shape, strides, offsets, block_shape: shape, order: shape) -> block_ptr:
    """a block pointer: the tile of block_shape at the offsets of a tensor; order is accepted and has no effect"""

@member
@handler("advanceBlockPointer")
def advance(base: block_ptr, offsets) -> block_ptr:
    """the block pointer moved by offsets; the result must be used"""


# Tensor descriptors.

def make_tensor_descriptor(base: ptr, shape, strides, block_shape: shape,
                           padding_option: str = "zero") -> tensor_descriptor:
    """a tensor of rank 1 to 5 in global memory, moved in tiles of block_shape; the last stride is 1; outside of the tensor
    tiles read as zero or 'nan' and are not written"""

@handler("loadDescriptor")
def load_tensor_descriptor(desc: tensor_descriptor, offsets, eviction_policy: str = "") -> tensor:
    """the tile that begins at the offsets (int32, in elements); eviction_policy, 'evict_first' or 'evict_last', is a hint for
    the L2 cache"""

@handler("storeDescriptor")
def store_tensor_descriptor(desc: tensor_descriptor, offsets, value: num) -> None:
    """writes a tile at the offsets, in the descriptor's type; offsets computed in the kernel must not be negative"""


# Elementwise mathematics.

def where(condition: num, x: num, y: num) -> tensor:
    """x where the condition holds, else y; both sides are evaluated"""

def minimum(x: num, y: num, propagate_nan: const = False) -> tensor:
    """elementwise minimum; bf16 gives fp32"""

def maximum(x: num, y: num, propagate_nan: const = False) -> tensor:
    """elementwise maximum; bf16 gives fp32"""

def clamp(x: num, min: num, max: num, propagate_nan: const = False) -> tensor:
    """limits floating point values to a range"""

@member
def cdiv(x: num, div: num) -> tensor:
    """division of integers, rounded up"""

def expect_zero(x: num, mask: num) -> tensor:
    """the same value: a promise that it is zero where the mask is true, which is not checked"""

@handler("operatorAdd")
def add(x: num, y: num, sanitize_overflow: bool = True) -> tensor:
    """the operator +"""

@handler("operatorSub")
def sub(x: num, y: num, sanitize_overflow: bool = True) -> tensor:
    """the operator -"""

@handler("operatorMul")
def mul(x: num, y: num, sanitize_overflow: bool = True) -> tensor:
    """the operator *"""

@member
@handler("unaryMath")
def exp(x: num) -> tensor:
    """e to the power of x, for fp32 and fp64"""

@member
@handler("unaryMath")
def exp2(x: num) -> tensor:
    """2 to the power of x, for fp32 and fp64"""

@member
@handler("unaryMath")
def log(x: num) -> tensor:
    """natural logarithm, for fp32 and fp64"""

@member
@handler("unaryMath")
def log2(x: num) -> tensor:
    """logarithm to base 2, for fp32 and fp64"""

@member
@handler("unaryMath")
def sqrt(x: num) -> tensor:
    """square root, for fp32 and fp64"""

@member
@handler("unaryMath")
def sqrt_rn(x: num) -> tensor:
    """square root rounded to nearest"""

@member
@handler("unaryMath")
def rsqrt(x: num) -> tensor:
    """reciprocal square root, for fp32 and fp64"""

@member
@handler("unaryMath")
def sin(x: num) -> tensor:
    """sine, for fp32 and fp64"""

@member
@handler("unaryMath")
def cos(x: num) -> tensor:
    """cosine, for fp32 and fp64"""

@member
@handler("unaryMath")
def erf(x: num) -> tensor:
    """error function, for fp32 and fp64"""

@member
@handler("unaryMath")
def floor(x: num) -> tensor:
    """rounding down, for fp32 and fp64"""

@member
@handler("unaryMath")
def ceil(x: num) -> tensor:
    """rounding up, for fp32 and fp64"""

@member
@handler("absolute")
def abs(x: num) -> tensor:
    """absolute value"""

def fma(x: num, y: num, z: num) -> tensor:
    """x * y + z with one rounding"""

def fdiv(x: num, y: num, ieee_rounding: bool = False) -> tensor:
    """quotient of floating point values of one type"""

def div_rn(x: num, y: num) -> tensor:
    """quotient rounded to nearest"""

def umulhi(x: num, y: num) -> tensor:
    """high half of the unsigned product"""

@member
def sigmoid(x: num) -> tensor:
    """1 / (1 + exp(-x))"""

@member
def softmax(x: block, dim: int | None = None, keep_dims: bool | None = None, ieee_rounding: bool = False) -> tensor:
    """softmax along a dimension (default 0); keep_dims has no effect"""


# Dot, reductions, scans.

def dot(input: block, other: block, acc: num | None = None, input_precision: str | None = None,
        allow_tf32: bool | None = None, max_num_imprecise_acc: int | None = None, out_dtype: dtype | None = None) -> tensor:
    """matrix product of two blocks of one rank, 2 or more (leading dimensions are batches), plus acc; input_precision of
    fp32 operands is tf32, tf32x3, ieee, bf16x3 or bf16x6"""

def dot_scaled(lhs: block, lhs_scale, lhs_format: str, rhs: block, rhs_scale, rhs_format: str, acc: num | None = None,
               fast_math: bool = False, lhs_k_pack: bool = True, rhs_k_pack: bool = True,
               out_dtype: dtype | None = None) -> tensor:
    """matrix product of blocks with a scale for every 32 (fp8e4nv scales: 16) elements of K; formats e2m1, e4m3, e5m2,
    bf16, fp16; computed in bf16 or fp16"""

@member
def sum(input: tensor, axis: int | None = None, keep_dims: bool = False, dtype: dtype | None = None,
        reduction_ordering: const | None = None) -> tensor:
    """sum along an axis, or of all elements; narrow integers are summed in 32 bits; reduction_ordering as for reduce"""

@member
@handler("maxOrMin", isMax=True)
def max(input: tensor, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
        keep_dims: bool = False) -> any:
    """maximum along an axis, with its index on demand"""

@member
@handler("maxOrMin", isMax=False)
def min(input: tensor, axis: int | None = None, return_indices: bool = False, return_indices_tie_break_left: bool = True,
        keep_dims: bool = False) -> any:
    """minimum along an axis, with its index on demand"""

@member
@handler("argMaxOrMin", isMax=True)
def argmax(input: tensor, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """index of the maximum along an axis"""

@member
@handler("argMaxOrMin", isMax=False)
def argmin(input: tensor, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """index of the minimum along an axis"""

@member
@handler("xorOrReduce", op=BinaryOp.BitXor)
def xor_sum(input: tensor, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """exclusive or along an axis"""

@member
@handler("xorOrReduce", op=BinaryOp.BitOr)
def reduce_or(input: tensor, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """bitwise or along an axis"""

@member
def reduce(input, axis: int | None, combine_fn: fn, keep_dims: bool = False, reduction_ordering: const | None = None) -> any:
    """reduction with an associative @jit function of 2n scalars that gives n; tl.ReductionOrdering.INNER_TREE: one order for
    all numbers of warps and targets (docs/numerics.md)"""

@member
def associative_scan(input, axis: int, combine_fn: fn, reverse: bool = False) -> any:
    """inclusive scan with a @jit function of 2n scalars that gives n"""

@member
def cumsum(input: block, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """running sum along an axis"""

@member
def cumprod(input: block, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """running product along an axis"""


# Hints and order.

@handler("hint")
def multiple_of(input: num, values: shape) -> tensor:
    """promises that values are multiples of a number"""

@handler("hint")
def max_contiguous(input: num, values: shape) -> tensor:
    """promises runs of contiguous values"""

@handler("hint")
def max_constancy(input: num, values: shape) -> tensor:
    """promises runs of equal values"""

def assume(cond: num) -> None:
    """promises that a condition holds"""

@handler("syncThreads")
def debug_barrier() -> None:
    """barrier of the block"""


# Random numbers (Philox, bit for bit as Triton).

@library("random")
def philox(seed, c0, c1, c2, c3, n_rounds=10):
    """four blocks of random bits from four counters, of 32 or 64 bits"""

@library("random")
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds=10):
    """rounds of Philox on counters and keys"""

@library("random")
def randint(seed, offset, n_rounds=10):
    """random uint32 for a block of offsets"""

@library("random")
def randint4x(seed, offset, n_rounds=10):
    """four blocks of random uint32"""

@library("random")
def rand(seed, offset, n_rounds=10):
    """random fp32 in [0, 1) for a block of offsets"""

@library("random")
def rand4x(seed, offset, n_rounds=10):
    """four blocks of random fp32 in [0, 1)"""

@library("random")
def randn(seed, offset, n_rounds=10):
    """normally distributed fp32 for a block of offsets"""

@library("random")
def randn4x(seed, offset, n_rounds=10):
    """four blocks of normally distributed fp32"""

@library("random")
def pair_uniform_to_normal(u1, u2):
    """two uniform numbers to two normal ones (Box-Muller)"""

@library("random")
def uint_to_uniform_float(x):
    """random bits to fp32 in [0, 1)"""


# Private names of Triton's library that public kernels call: tl.standard._log2, tl.core.get_int_dtype.

@library("standard")
def _log2(i):
    """logarithm to base 2, rounded down, at compile time"""

@library("standard")
def _is_power_of_two(i):
    """whether a number is 1, 2, 4, ..., at compile time"""

@library("standard")
def get_int_dtype(bitwidth, signed):
    """the integer type of a width, at compile time"""

@library("standard")
def _get_int_dtype(bitwidth, signed):
    """the same as get_int_dtype"""

@library("standard")
def _pick_sum_dtype(in_dtype, dtype):
    """the type in which tl.sum adds"""

@library("standard")
def _get_flip_dim(dim, shape):
    """a dimension counted from the front; the last one for None"""

@library("standard")
def _sum_combine(a, b):
    """combine function: the sum"""

@library("standard")
def _prod_combine(a, b):
    """combine function: the product"""

@library("standard")
def _xor_combine(a, b):
    """combine function: bitwise exclusive or"""

@library("standard")
def _or_combine(x, y):
    """combine function: bitwise or"""

@library("standard")
def _elementwise_max(a, b):
    """combine function: tl.maximum"""

@library("standard")
def _elementwise_min(a, b):
    """combine function: tl.minimum"""

@library("standard")
def _argmax_combine(value1, index1, value2, index2, tie_break_left: const):
    """the larger value with its index"""

@library("standard")
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    """combine function: the larger value, of equal ones that of the lower index"""

@library("standard")
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    """combine function: the larger value, of equal ones the second"""

@library("standard")
def _argmin_combine(value1, index1, value2, index2, tie_break_left: const):
    """the smaller value with its index"""

@library("standard")
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    """combine function: the smaller value, of equal ones that of the lower index"""

@library("standard")
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    """combine function: the smaller value, of equal ones the second"""

@library("standard")
def _indicator(n_dims: const, j: const):
    """0 and 1 along one dimension of a hypercube, counted from the innermost"""

@library("standard")
def _compare_and_swap(x, flip, i: const, n_dims: const = None):
    """a step of a bitonic sort: of a hypercube, or with n_dims of any block as older Tritons had it"""

@library("standard")
def _bitonic_merge(x, stage: const, order: const, n_dims: const):
    """sorts bitonic runs of 2**stage elements: order 0 ascending, 1 descending, 2 in turns"""

@library("standard")
def _bitonic_merge_hypercube(x, stage: const, order: const):
    """the same of a hypercube"""

@library("standard")
def sort_impl(x, k: const = None, dim: const = None, descending: const = False):
    """tl.sort, or with k tl.topk"""


# Part of the language, but not of this version.

def inline_asm_elementwise(asm: str, constraints: str, args, dtype, is_pure: bool, pack: int) -> any:
    """assembly (PTX) on the elements of blocks, pack elements at a time; outputs come first in the constraints; several
    dtypes give a tuple; the simulator knows common instructions"""


@handler("externElementwiseByTypes")
def extern_elementwise(lib_name: str, lib_path: str, args, arg_type_symbol_dict, is_pure: bool) -> any:
    """a function of libdevice, chosen from {types of the operands: (symbol, type of the result)}; other libraries are not linked"""

# Classes. @member functions of this file are member functions of tensors, too.

class tensor:
    """class of run-time values, for isinstance"""

    dtype: dtype
    type: dtype
    shape: tuple
    numel: int
    T: tensor

    def __add__(self, other: num) -> tensor: ...
    def __radd__(self, other: num) -> tensor: ...
    def __sub__(self, other: num) -> tensor: ...
    def __rsub__(self, other: num) -> tensor: ...
    def __mul__(self, other: num) -> tensor: ...
    def __rmul__(self, other: num) -> tensor: ...
    def __truediv__(self, other: num) -> tensor: ...
    def __rtruediv__(self, other: num) -> tensor: ...
    def __floordiv__(self, other: num) -> tensor: ...
    def __rfloordiv__(self, other: num) -> tensor: ...
    def __mod__(self, other: num) -> tensor: ...
    def __rmod__(self, other: num) -> tensor: ...
    def __and__(self, other: num) -> tensor: ...
    def __rand__(self, other: num) -> tensor: ...
    def __or__(self, other: num) -> tensor: ...
    def __ror__(self, other: num) -> tensor: ...
    def __xor__(self, other: num) -> tensor: ...
    def __rxor__(self, other: num) -> tensor: ...
    def __lshift__(self, other: num) -> tensor: ...
    def __rlshift__(self, other: num) -> tensor: ...
    def __rshift__(self, other: num) -> tensor: ...
    def __rrshift__(self, other: num) -> tensor: ...
    def __lt__(self, other: num) -> tensor: ...
    def __le__(self, other: num) -> tensor: ...
    def __gt__(self, other: num) -> tensor: ...
    def __ge__(self, other: num) -> tensor: ...
    def __eq__(self, other: num) -> tensor: ...
    def __ne__(self, other: num) -> tensor: ...
    def __neg__(self) -> tensor: ...
    def __pos__(self) -> tensor: ...
    def __invert__(self) -> tensor: ...
    def __getitem__(self, index: const) -> tensor: ...

    @handler("castTo")
    def to(self: num, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """conversion to another element type; rounding, 'rtne' or 'rtz', is for narrower floats, and for the type that the value has"""

    def item(self: tensor) -> tensor:
        """the only element of a one-element block"""

    def logical_and(self: num, other: num) -> tensor:
        """logical and of int1 values"""

    def logical_or(self: num, other: num) -> tensor:
        """logical or of int1 values"""

class tensor_descriptor:
    """class of tensor descriptors, for isinstance"""

    dtype: dtype
    block_shape: tuple
    shape: tuple
    strides: tuple

    @handler("loadDescriptor")
    def load(desc: tensor_descriptor, offsets, eviction_policy: str = "") -> tensor:
        """the tile that begins at the offsets (int32, in elements); eviction_policy, 'evict_first' or 'evict_last', is a hint
        for the L2 cache"""

    @handler("storeDescriptor")
    def store(desc: tensor_descriptor, offsets, value: num) -> None:
        """writes a tile at the offsets, in the descriptor's type; offsets computed in the kernel must not be negative"""

    @handler("descriptorAtomic", op=tile.AtomicOp.Add)
    def atomic_add(desc: tensor_descriptor, offsets, value: num) -> None:
        """adds in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorAtomic", op=tile.AtomicOp.Min)
    def atomic_min(desc: tensor_descriptor, offsets, value: num) -> None:
        """minimum in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorAtomic", op=tile.AtomicOp.Max)
    def atomic_max(desc: tensor_descriptor, offsets, value: num) -> None:
        """maximum in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorAtomic", op=tile.AtomicOp.And)
    def atomic_and(desc: tensor_descriptor, offsets, value: num) -> None:
        """bitwise and in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorAtomic", op=tile.AtomicOp.Or)
    def atomic_or(desc: tensor_descriptor, offsets, value: num) -> None:
        """bitwise or in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorAtomic", op=tile.AtomicOp.Xor)
    def atomic_xor(desc: tensor_descriptor, offsets, value: num) -> None:
        """bitwise exclusive or in memory with a tile at the offsets; elements outside of the tensor are dropped; no result"""

    @handler("descriptorGather")
    def gather(desc: tensor_descriptor, x_offsets: block, y_offset: num) -> tensor:
        """rows that are listed one by one, from a column on; the descriptor is 2D with blocks of 1 row"""

    @handler("descriptorScatter")
    def scatter(desc: tensor_descriptor, value: num, x_offsets: block, y_offset: num) -> None:
        """writes rows that are listed one by one, from a column on"""

@handler("makeDtype")
class dtype:
    """a type by Triton's own name of it: "fp16", "uint32"; class of types, for isinstance"""

    def __init__(self, name: str) -> None: ...

    name: str
    primitive_bitwidth: int
    element_ty: dtype
    scalar: dtype
    int_bitwidth: int
    itemsize: int
    is_ptr: fn
    is_block: fn
    is_const: fn
    is_void: fn
    is_floating: fn
    is_standard_floating: fn
    is_fp8: fn
    is_int: fn
    is_bool: fn
    is_int_signed: fn
    is_int_unsigned: fn

