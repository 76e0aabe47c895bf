# Kernels whose arguments differ by rank, hold addresses, or come from the kernel before.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def scalars(out, a, b, KIND: tl.constexpr = 0):
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, KIND * 10)


@triton.jit
def through_table(table, out, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for entry in range(count):
        pointer = tl.load(table + entry).to(tl.pointer_type(tl.float32))
        total += tl.load(pointer + i)
    tl.store(out + i, total)


@triton.jit
def double(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@triton.jit
def add_one(out, BLOCK: tl.constexpr = 4):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(out + i) + 1)


@triton.jit
def send(inbox, value):
    tl.store(dl.symm_at(inbox, (dl.rank() + 1) % dl.num_ranks()), value)


@triton.jit
def pair(out, p):
    tl.store(out, p[0] + p[1])
