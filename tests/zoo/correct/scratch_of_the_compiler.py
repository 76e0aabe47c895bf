# Reductions, scans, sorts, transpositions and gathers, one after the other through the same scratch in shared memory.
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    j = tl.arange(0, 32)
    x = tl.load(x_ptr + i[:, None] * 32 + j[None, :])
    for step in range(2):
        rows = tl.sum(x, axis=1)
        columns = tl.max(x, axis=0)
        x = tl.cumsum(x, axis=0) - tl.sort(x) + rows[:, None] - columns[None, :]
        x = tl.reshape(tl.trans(x), [16, 32])
        total = tl.sum(tl.sum(x, axis=0), axis=0)
        x = tl.gather(x, (i[:, None] + j[None, :]) % 32, axis=1) - total // 512
    tl.store(out_ptr + i[:, None] * 32 + j[None, :], x)
