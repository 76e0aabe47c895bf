# Blocks add up in a tree: in each round the right one of two stores its row, raises its flag and is done; the left one adds it.
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, rows_ptr, flags_ptr, out_ptr, ROUNDS: tl.constexpr):
    i = tl.arange(0, 128)
    block = tl.program_id(0)
    total = tl.load(x_ptr + 128 * block + i)
    left = True
    for step in range(ROUNDS):
        distance = 1 << step
        if left:
            if block % (2 * distance) == 0:
                while tl.atomic_add(flags_ptr + block + distance, 0, sem="acquire", scope="gpu") == 0:
                    pass
                total += tl.load(rows_ptr + 128 * (block + distance) + i)
            else:
                tl.store(rows_ptr + 128 * block + i, total)
                tl.debug_barrier()
                tl.atomic_xchg(flags_ptr + block, 1, sem="release", scope="gpu")
                left = False
    if block == 0:
        tl.store(out_ptr + i, total)
