"""Functions that move elements, sort them and apply functions to them, for ptxas to assemble."""
import triton
import triton.language as tl


@triton.jit
def rearrange(x_ptr, index_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    x = tl.load(x_ptr + at)
    index = tl.load(index_ptr + at)
    low, high = tl.split(tl.join(tl.flip(x, 0), x))
    y = tl.where(index > 0, low, high)
    y = y.gather(index, 1)
    y = y.gather(index, 0)
    a, b = tl.split(y.reshape(M, N // 2, 2))
    tl.store(out_ptr + at, tl.cat(a, b, dim=1))


@triton.jit
def sort_rows(x_ptr, out_ptr, counts_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.sort(x, descending=True))
    best = tl.topk(x, 4).to(x.dtype)
    tl.store(out_ptr + i[:, None] * N + tl.arange(0, 4)[None, :], best)
    counts = tl.histogram(x.to(tl.int32).ravel(), 64, mask=x.ravel() > 0)
    tl.store(counts_ptr + tl.arange(0, 64), counts)


@triton.jit
def collatz(x, limit):
    steps = 0
    while x != 1 and steps < limit:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps, x


@triton.jit
def counted(a, p, b, q):
    tl.atomic_add(p, 1)
    return a + b, q


@triton.jit
def place_of(p, x):
    place = -1
    if x > 0:
        place = tl.atomic_add(p, 1, sem="relaxed")
    return place


@triton.jit
def functions(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    steps, last = tl.map_elementwise(collatz, x, 50)
    total, _ = tl.reduce((x, x_ptr + i), 0, counted)
    running, _ = tl.associative_scan((x, x_ptr + i), 0, counted)
    place = tl.map_elementwise(place_of, x_ptr + i * 0, x)
    tl.store(out_ptr + i, steps + last + total + running + place)
