# Two peers raise their halves of one 8-byte word; the reader waits for both by one load of 8 bytes. Accesses of different sizes are
# never one after the other for the memory model, so the load may see anything of each.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import atomic_add, ld, st, tid


@triton.jit
def buggy(flag_ptr, out_ptr):
    rank = dl.rank()
    if rank == 0:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 0x100000001:  # !load
                pass
            st(out_ptr, 1, "gpu")
    else:
        halves = dl.symm_at(flag_ptr, 0).to(tl.pointer_type(tl.int32))
        if tid(0) == 0:
            st(halves + rank - 1, 1, "sys", "release")  # !store


@triton.jit
def fixed(flag_ptr, out_ptr):
    rank = dl.rank()
    if rank == 0:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 0x100000001:
                pass
            st(out_ptr, 1, "gpu")
    else:
        bit = tl.full((), 1, tl.int64) << (32 * (rank - 1))
        if tid(0) == 0:
            atomic_add(dl.symm_at(flag_ptr, 0), bit, "sys", "release")
