# RUN: ditron-import %s:kernel --signature "*fp32, *i32, *i1, *u32, *fp16, i32, **fp32" | FileCheck %s
# Loads, stores, atomics and hints with all their options.
import triton
import triton.language as tl


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, q, b, u, h, n, pp):
    i = tl.arange(0, 16)
    # CHECK: tile.load %arg0 : !tile.ptr<f32> -> f32
    s = tl.load(p)
    # CHECK: tile.load %{{.*}} mask %{{.*}} other %{{.*}} {cache = #tile.cache<cg>, evict = #tile.evict<evict_last>, isVolatile = true}
    x = tl.load(p + i, mask=i < n, other=1.5, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    # None for a text or a tuple of numbers is the default, which has no effect; so is an empty order or scope.
    # CHECK: tile.load %arg0 : !tile.ptr<f32> -> f32
    tl.load(p, boundary_check=None, padding_option=None, cache_modifier=None, eviction_policy=None)
    # CHECK: tile.store %arg0, %{{.*}} : !tile.ptr<f32>, f32
    tl.store(p, s, boundary_check=None, cache_modifier=None, eviction_policy=None)
    # CHECK: tile.atomic_rmw add acq_rel gpu %arg1
    tl.atomic_add(q, 1, sem="", scope="")
    # The mask broadcasts the pointers.
    # CHECK: tile.load {{.*}} : tensor<16x16x!tile.ptr<f32>> mask tensor<16x16xi1> -> tensor<16x16xf32>
    tl.load(p + i[:, None], mask=i[None, :] < n)
    # A compile-time mask, a bool element, a pointer to pointers.
    # CHECK: arith.constant dense<true> : tensor<16xi1>
    tl.load(p + i, mask=True)
    # CHECK: tile.load {{.*}} -> tensor<16xi1>
    flags = tl.load(b + i)
    # CHECK: %[[INNER:.*]] = tile.load %arg6 : !tile.ptr<!tile.ptr<f32>> -> !tile.ptr<f32>
    # CHECK: tile.store %[[INNER]]
    tl.store(tl.load(pp), s)
    # Values are converted to the element type.
    # CHECK: arith.truncf %{{.*}} : tensor<16xf32> to tensor<16xf16>
    # CHECK: tile.store {{.*}} {cache = #tile.cache<wt>, evict = #tile.evict<evict_first>}
    tl.store(h + i, x, mask=flags, cache_modifier=".wt", eviction_policy="evict_first")
    # CHECK: tile.store {{.*}} {isVolatile = true}
    tl.store(h + i, x, volatile=True)
    # CHECK: arith.constant dense<0.000000e+00> : tensor<16xf32>
    # CHECK: tile.store
    tl.store(p + i, 0)
    # CHECK: tile.atomic_rmw add acq_rel gpu %arg1
    tl.atomic_add(q, 1)
    # CHECK: tile.atomic_rmw fadd relaxed sys %{{.*}} mask
    tl.atomic_add(p + i, x, mask=i < n, sem="relaxed", scope="sys")
    # CHECK: tile.atomic_rmw fadd release block
    tl.atomic_add(h, 1.0, sem="release", scope="cta")
    # CHECK: tile.atomic_rmw max acquire gpu
    tl.atomic_max(q, 3, sem="acquire")
    # CHECK: tile.atomic_rmw umin acq_rel gpu
    tl.atomic_min(u, 3)
    # CHECK: tile.atomic_rmw fmax acq_rel gpu
    tl.atomic_max(p, 3)
    # CHECK: tile.atomic_rmw and
    tl.atomic_and(q, 3)
    # CHECK: tile.atomic_rmw or
    tl.atomic_or(q, 3)
    # CHECK: tile.atomic_rmw xor
    tl.atomic_xor(q, 3)
    # CHECK: tile.atomic_rmw exch
    old = tl.atomic_xchg(p, 3)
    # CHECK: tile.atomic_cas acq_rel gpu %arg1
    tl.atomic_cas(q, 0, old.to(tl.int32))
    # CHECK: tile.hint %arg5 {divisibility = array<i64: 16>} : i32
    n = tl.multiple_of(n, 16)
    # CHECK: tile.hint %{{.*}} {contiguity = array<i64: 16>}
    tl.max_contiguous(i, 16)
    # CHECK: tile.hint %{{.*}} {constancy = array<i64: 1, 4>}
    tl.max_constancy(i[None, :], [1, 4])
    # CHECK: tile.assume
    tl.assume(n > 0)
    # CHECK: dist.sync_threads
    tl.debug_barrier()
    # CHECK: return
