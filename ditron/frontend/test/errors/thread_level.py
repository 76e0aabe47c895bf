# RUN: not ditron-import %s:values --signature "*fp32, *i32, *i8, i32" 2>&1 | FileCheck %s --check-prefix=VALUES
# RUN: not ditron-import %s:memory --signature "*fp32, *i32, *i8, i32" 2>&1 | FileCheck %s --check-prefix=MEMORY
# Messages of the thread level.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.cuda.language_extra import (fence, get_dynamic_smem_pointer, ld, ld_b32, ld_vector, membar, pack, st_v4_b32,
                                                            st_vector, tid)
from triton_dist.language.extra.cuda.tma_language import mbarrier_init, named_barrier_sync, tensormap_replace_rank


@triton.jit
def values(f, w, b, n):
    v = dl.zeros_vector(4, tl.float32)
    v + dl.zeros_vector(2, tl.float32)
    # VALUES: thread_level.py:[[#@LINE-1]]:5: error: vectors of 4 and 2 elements cannot be combined
    v / 2.0
    # VALUES: thread_level.py:[[#@LINE-1]]:5: error: operator '/' does not take a vector of 4 fp32 and compile-time float 2.0; vectors take + - * with vectors and scalars
    dl.make_vector([n, 1.5])
    # VALUES: thread_level.py:[[#@LINE-1]]:20: error: an element of a vector must be a scalar int32, but got compile-time float 1.5
    dl.make_vector([n, tl.load(f)])
    # VALUES: thread_level.py:[[#@LINE-1]]:20: error: the elements of a vector have one type, but these are int32 and fp32
    dl.zeros_vector(0, tl.float32)
    # VALUES: thread_level.py:[[#@LINE-1]]:21: error: a vector has 1 to 256 elements, not 0
    ld_vector(f, 3)
    # VALUES: thread_level.py:[[#@LINE-1]]:5: error: one access moves 2, 4, 8 or 16 bytes, but 3 elements of fp32 have 12
    ld_vector(f, 4, semantic="release")
    # VALUES: thread_level.py:[[#@LINE-1]]:30: error: a load is 'acquire' or 'relaxed', not 'release'
    st_vector(f, 1.0)
    # VALUES: thread_level.py:[[#@LINE-1]]:18: error: argument 'vec' of dl.st_vector must be a vector (dl.make_vector)
    v.recast(tl.float64).recast(tl.float32)
    pack(v[0:3], tl.uint64)
    # VALUES: thread_level.py:[[#@LINE-1]]:5: error: a vector of 3 fp32 has 96 bits, which is no whole number of uint64
    ld_b32(b)
    # VALUES: thread_level.py:[[#@LINE-1]]:12: error: argument 'ptr' of ld_b32 must be a pointer to 32 bit numbers
    st_v4_b32(w, n, n, n, tl.load(f).to(tl.float64))
    # VALUES: thread_level.py:[[#@LINE-1]]:27: error: argument 'val3' of st_v4_b32 must be a scalar of 32 bits
    fence("strong")
    # VALUES: thread_level.py:[[#@LINE-1]]:11: error: argument 'semantic' of fence cannot be 'strong'
    membar("grid")
    # VALUES: thread_level.py:[[#@LINE-1]]:12: error: argument 'scope' of membar cannot be 'grid'


@triton.jit
def memory(f, w, b, n):
    memory = dl.allocate_smem(tl.float32, [4, 8])
    dl.smem_load(memory, [4, 0])
    # MEMORY: thread_level.py:[[#@LINE-1]]:26: error: index 4 is outside of an extent of 4
    dl.smem_store(memory, 1.0, [n])
    # MEMORY: thread_level.py:[[#@LINE-1]]:32: error: 1 indices for shared memory of rank 2
    dl.smem_index(dl.allocate_smem(tl.float32, [4]), 0)
    # MEMORY: thread_level.py:[[#@LINE-1]]:19: error: smem_index needs shared memory of rank 2 or more
    dl.allocate_smem(tl.float32, [4, 8], vec=4, per_phase=1, max_phase=4)
    # MEMORY: thread_level.py:[[#@LINE-1]]:5: error: a swizzle of 4 groups of 4 elements needs rows of as many, not of 8
    dl.smem_get_ptr(f)
    # MEMORY: thread_level.py:[[#@LINE-1]]:21: error: argument 'smem' of dl.smem_get_ptr must be shared memory from allocate_smem
    mbarrier_init(1.5, 1)
    # MEMORY: thread_level.py:[[#@LINE-1]]:19: error: argument 'mbar_ptr' of mbarrier_init must be a pointer to shared memory, or an address in it
    tensormap_replace_rank(dl.smem_get_ptr(memory), n)
    # MEMORY: thread_level.py:[[#@LINE-1]]:53: error: argument 'rank' of tensormap_replace_rank must be a compile-time int
    named_barrier_sync(0, 32)
    # MEMORY: thread_level.py:[[#@LINE-1]]:24: error: named barriers are 1 to 15 (0 is __syncthreads), not 0
    get_dynamic_smem_pointer()
    # MEMORY: thread_level.py:[[#@LINE-1]]:5: error: get_dynamic_smem_pointer is not supported{{.*}}reserve it with dl.allocate_smem
    x = tl.load(f + tl.arange(0, 64))
    x[0] = 1.0
    # MEMORY: thread_level.py:[[#@LINE-1]]:5: error: cannot assign to an element in a kernel
    with dl.simt_exec_region() as (thread, count):
        x[64] = 1.0
        # MEMORY: thread_level.py:[[#@LINE-1]]:9: error: index 64 is outside of an extent of 64
        x[thread, 0] = 1.0
        # MEMORY: thread_level.py:[[#@LINE-1]]:9: error: an element of fp32[64] takes 1 index, but 2 are given
        x[thread] = "a"
        # MEMORY: thread_level.py:[[#@LINE-1]]:9: error: the element must be a scalar fp32
    with dl.simt_exec_region() as (thread, count):
        x[thread] = 1.0
        # MEMORY: thread_level.py:[[#@LINE-1]]:9: error: 'x' is used as a whole in the simt_exec_region that assigns its elements
        tl.store(f + tl.arange(0, 64), x)
    with dl.simt_exec_region() as (thread, count):
        change(x)


@triton.jit
def change(t):
    t[0] = 1
    # MEMORY: thread_level.py:[[#@LINE-1]]:5: error: elements can be assigned in the function that opened the simt_exec_region only
    # MEMORY: note: called from here
