# Accesses that leave the array that their pointer leads into, and get to another one; `far` is how far that is, in elements.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def plain(a_ptr, b_ptr, far):
    tl.store(a_ptr + far + tl.arange(0, 4), 1)


@triton.jit
def in_a_loop(a_ptr, b_ptr, far):
    rows = a_ptr + tl.arange(0, 4)
    for _ in range(3):
        tl.store(rows, 1)
        rows += far // 2


@triton.jit
def chosen(a_ptr, b_ptr, far):
    place = a_ptr + far
    if far % 2 == 1:
        place = a_ptr
    tl.store(place + tl.arange(0, 4), 1)


@triton.jit
def at(pointer, index):
    return pointer + index


@triton.jit
def in_a_function(a_ptr, b_ptr, far):
    tl.store(at(at(a_ptr, 4), far - 4) + tl.arange(0, 4), tl.load(at(b_ptr, tl.arange(0, 4))))


@triton.jit
def by_a_thread(a_ptr, b_ptr, far):
    if tid(0) == 0:
        st(a_ptr + far, 1)


@triton.jit
def atomically(a_ptr, b_ptr, far):
    tl.atomic_add(a_ptr + far, 1)


@triton.jit
def of_a_peer(a_ptr, b_ptr, far):
    tl.store(dl.symm_at(a_ptr, 0) + far + tl.arange(0, 4), 1)


@triton.jit
def allowed(a_ptr, b_ptr, far):
    # There and back; nothing is accessed on the way.
    i = tl.arange(0, 4)
    there = a_ptr + far + i
    tl.store(there - far, i)
    tl.store(b_ptr + i, tl.load(there, mask=i < 0, other=5))
    # From one of two arrays: nothing is known, and the accesses are right.
    either = a_ptr
    if far > 0:
        either = b_ptr
    tl.store(either + 8 + i, 7)


@triton.jit
def hint(a_ptr, b_ptr, far):
    # `far` is no multiple of 4: a GPU would refuse the wide access that the hint allows.
    start = tl.multiple_of(far, 4)
    i = tl.arange(0, 512)
    tl.store(b_ptr + start + i, i)
