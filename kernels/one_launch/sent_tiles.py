"""Tiles sent to other ranks without a flag: each element says by itself that it has come (the Lamport packets of kernels/collectives/lamport.py, for tiles).

A slot is empty, all 0, until its tile has come, and who has read it empties it again. Floats of 16 and 32 bits go with their sign turned around, so that 0 is what -0 would be, which goes as
+0: the one value that does not arrive as it was. Stores and loads are volatile: relaxed, of system scope. Why no slot is filled before it has been emptied is for who has the slots to say.
"""
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, ld, tid


@triton.constexpr_function
def word_of(element):
    return tl.int16 if element.primitive_bitwidth == 16 else tl.int32


@triton.constexpr_function
def word_pointer(element):
    return tl.pointer_type(word_of(element))


@triton.jit
def sign_of(element: tl.constexpr):
    return tl.cast(-(1 << (element.primitive_bitwidth - 1)), word_of(element))


@triton.jit
def bits_to_send(value):
    """The bits of floats with the sign turned around, so that 0, which is in an empty slot, is what -0 would be; that goes as +0."""
    sign = sign_of(value.dtype)
    bits = value.to(word_of(value.dtype), bitcast=True) ^ sign
    return tl.where(bits == 0, sign, bits)


@triton.jit
def sent_values(bits, element: tl.constexpr):
    return (bits ^ sign_of(element)).to(element, bitcast=True)


@triton.jit
def take_tiles(slots, slot_elements, offsets, mask, last, COUNT: tl.constexpr):
    """The bits of a tile from each of COUNT slots when all are there, element by element. `last`: where one of the elements is; below 0 the tile has none. Who waits looks at that
    element alone: to look at all of them takes bandwidth from those who still compute."""
    thread = tid(0)
    if (thread < COUNT) & (last >= 0):
        while ld(slots + thread * slot_elements + last, scope="sys", semantic="relaxed") == 0:
            pass
    __syncthreads()
    parts = ()
    for source in tl.static_range(COUNT):
        parts = parts + (tl.zeros(offsets.shape, dtype=slots.dtype.element_ty),)
    are_missing = True
    while are_missing:
        parts = ()
        for source in tl.static_range(COUNT):
            parts = parts + (tl.load(slots + source * slot_elements + offsets, mask=mask, other=1, volatile=True),)
        empty = parts[0] == 0
        for source in tl.static_range(1, COUNT):
            empty = empty | (parts[source] == 0)
        are_missing = tl.max(empty.to(tl.int32)) > 0
    return parts


@triton.jit
def empty_slots(slots, slot_elements, offsets, mask, COUNT: tl.constexpr):
    """Behind take_tiles."""
    for source in tl.static_range(COUNT):
        tl.store(slots + source * slot_elements + offsets, 0, mask=mask, volatile=True)


@triton.jit
def sum_of_sent(parts, element: tl.constexpr):
    """Ascending rank order, in fp32."""
    total = sent_values(parts[0], element).to(tl.float32)
    for source in tl.static_range(1, len(parts)):
        total += sent_values(parts[source], element).to(tl.float32)
    return total
