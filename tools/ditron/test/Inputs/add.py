import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, scale=1.0, BLOCK: tl.constexpr = 64):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total * scale, mask=mask)


@triton.jit
def choose(out, n, flag, KIND: tl.constexpr, DTYPE: tl.constexpr):
    tl.static_print("kind is", KIND)
    value = n
    if KIND == "twice":
        value = n * 2
    if flag:
        value = value + 1000
    tl.store(out, value.to(DTYPE))
