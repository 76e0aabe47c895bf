import triton
import triton.language as tl


@triton.jit
def asserts(x):
    tl.device_assert(tl.load(x) > 0, "x must be positive")


@triton.jit
def wide(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.flip(tl.gather(tl.load(x + i), BLOCK - 1 - tl.load(x + i), 0)))


@triton.jit
def constant(x: tl.const, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def overwrites(x: tl.const):
    tl.store(x, 1)


@triton.jit
def branches(x):
    i = tl.arange(0, 32)
    y = tl.inline_asm_elementwise("""
    {
        .reg .pred p;
        setp.eq.s32 p, $1, 0;
        @p bra DONE;
        mov.b32 $0, 1;
        DONE:
    }
    """, "=r,r", [tl.load(x + i)], tl.int32, True, 1)
    tl.store(x + i, y)


@triton.jit
def atomic(x):
    i = tl.arange(0, 32)
    tl.inline_asm_elementwise("red.global.add.s32 [$1], 1; mov.b32 $0, 0;", "=r,l", [x + i], tl.int32, False, 1)


@triton.jit
def multimem(x):
    i = tl.arange(0, 32)
    y = tl.inline_asm_elementwise("multimem.ld_reduce.global.add.u32 $0, [$1];", "=r,l", [x + i], tl.int32, False, 1)
    tl.store(x + i, y)
