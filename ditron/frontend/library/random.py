"""Random numbers: Philox-4x32-10 and 4x64-10, bit for bit as Triton's tl.rand and its kin.

The same seed and offset give the same number on every target, in every block and whatever the layout.
"""
import triton
import triton.language as tl

ROUNDS = tl.constexpr(10)


@triton.jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: tl.constexpr = ROUNDS):
    """n_rounds of Philox on counters and keys of 32 or 64 bits; gives the four counters."""
    if c0.dtype == tl.uint32:
        KEY_A: tl.constexpr = 0x9E3779B9
        KEY_B: tl.constexpr = 0xBB67AE85
        ROUND_A: tl.constexpr = 0xD2511F53
        ROUND_B: tl.constexpr = 0xCD9E8D57
    else:
        tl.static_assert(c0.dtype == tl.uint64, "philox counters are uint32 or uint64")
        KEY_A: tl.constexpr = 0x9E3779B97F4A7C15
        KEY_B: tl.constexpr = 0xBB67AE8584CAA73B
        ROUND_A: tl.constexpr = 0xD2E7470EE14C6C93
        ROUND_B: tl.constexpr = 0xCA5A826395121157
    for _ in tl.static_range(n_rounds):
        last0, last2 = c0, c2
        c0 = tl.umulhi(tl.full((), ROUND_B, c0.dtype), last2) ^ c1 ^ k0
        c2 = tl.umulhi(tl.full((), ROUND_A, c0.dtype), last0) ^ c3 ^ k1
        c1 = tl.mul(tl.full((), ROUND_B, c0.dtype), last2, sanitize_overflow=False)
        c3 = tl.mul(tl.full((), ROUND_A, c0.dtype), last0, sanitize_overflow=False)
        k0 = tl.add(k0, tl.full((), KEY_A, c0.dtype), sanitize_overflow=False)
        k1 = tl.add(k1, tl.full((), KEY_B, c0.dtype), sanitize_overflow=False)
    return c0, c1, c2, c3


@triton.jit
def philox(seed, c0, c1, c2, c3, n_rounds: tl.constexpr = ROUNDS):
    """Philox of four counters. 32-bit counters take the halves of the 64-bit seed as keys, 64-bit ones the seed and 0."""
    key = tl.to_tensor(seed)
    tl.static_assert(key.dtype.is_int(), "seed must be an integer, not a floating point number")
    key = key.to(tl.uint64)
    x0 = tl.to_tensor(c0)
    x1 = tl.to_tensor(c1)
    x2 = tl.to_tensor(c2)
    x3 = tl.to_tensor(c3)
    if x0.dtype.primitive_bitwidth == 64:
        return philox_impl(x0.to(tl.uint64, bitcast=True), x1.to(tl.uint64, bitcast=True),
                           x2.to(tl.uint64, bitcast=True), x3.to(tl.uint64, bitcast=True), key,
                           tl.full((), 0, tl.uint64), n_rounds)
    else:
        low = (key & 0xFFFFFFFF).to(tl.uint32)
        high = ((key >> 32) & 0xFFFFFFFF).to(tl.uint32)
        return philox_impl(x0.to(tl.uint32, bitcast=True), x1.to(tl.uint32, bitcast=True),
                           x2.to(tl.uint32, bitcast=True), x3.to(tl.uint32, bitcast=True), low, high, n_rounds)


@triton.jit
def randint4x(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """Four blocks of random uint32 for a block of offsets."""
    counter = tl.to_tensor(offset)
    low = counter.to(tl.uint32)
    if counter.dtype.primitive_bitwidth == 64:
        high = (counter.to(tl.uint64) >> 32).to(tl.uint32)
    else:
        high = low * 0
    zero = low * 0
    return philox(seed, low, high, zero, zero, n_rounds)


@triton.jit
def randint(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """A block of random uint32 for a block of offsets."""
    result, _a, _b, _c = randint4x(seed, offset, n_rounds)
    return result


@triton.jit
def uint_to_uniform_float(x):
    """Random bits to a number in [0, 1): the bits as a signed integer, negative ones mirrored, scaled."""
    if x.dtype.primitive_bitwidth == 32:
        bits = x.to(tl.int32, bitcast=True)
        scale = 4.6566127342e-10
    else:
        tl.static_assert(x.dtype.primitive_bitwidth == 64, "uint_to_uniform_float takes 32 or 64 bits")
        bits = x.to(tl.int64, bitcast=True)
        scale = 1.0842020432385337e-19
    bits = tl.where(bits < 0, ~bits, bits)
    return bits.to(tl.float32) * scale


@triton.jit
def rand(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """A block of fp32 in [0, 1) for a block of offsets."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@triton.jit
def rand4x(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """Four blocks of fp32 in [0, 1)."""
    i0, i1, i2, i3 = randint4x(seed, offset, n_rounds)
    return uint_to_uniform_float(i0), uint_to_uniform_float(i1), uint_to_uniform_float(i2), uint_to_uniform_float(i3)


@triton.jit
def pair_uniform_to_normal(u1, u2):
    """Box-Muller: two uniform numbers to two normal ones."""
    u1 = tl.maximum(1.0e-7, u1)
    angle = 6.283185307179586 * u2
    radius = tl.sqrt(-2.0 * tl.log(u1))
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def randn(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """A block of normally distributed fp32 for a block of offsets."""
    i0, i1, _a, _b = randint4x(seed, offset, n_rounds)
    result, _c = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return result


@triton.jit
def randn4x(seed, offset, n_rounds: tl.constexpr = ROUNDS):
    """Four blocks of normally distributed fp32."""
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3
