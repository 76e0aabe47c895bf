# Two blocks add to neighbouring fp16 elements by loading and storing whole words of 32 bits: each may undo the other's half.
import triton
import triton.language as tl


@triton.jit
def buggy(x_ptr):
    words = x_ptr.to(tl.pointer_type(tl.int32)) + tl.arange(0, 128)
    both = tl.load(words)  # !load
    add = (tl.program_id(0) == 0).to(tl.int32) + ((tl.program_id(0) == 1).to(tl.int32) << 16)
    tl.store(words, both + add)  # !store


@triton.jit
def fixed(x_ptr):
    halves = x_ptr + 2 * tl.arange(0, 128) + tl.program_id(0)
    tl.store(halves, tl.load(halves) + 1)
