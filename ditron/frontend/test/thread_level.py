# RUN: ditron-import %s:places --signature "*i64" --num-warps 4 | FileCheck %s --check-prefix=PLACES
# RUN: ditron-import %s:accesses --signature "*i32, *fp16" | FileCheck %s --check-prefix=ACCESS
# RUN: ditron-import %s:words --signature "*i32" | FileCheck %s --check-prefix=WORDS
# RUN: ditron-import %s:vectors --signature "*fp32" | FileCheck %s --check-prefix=VECTORS
# RUN: ditron-import %s:shared --signature "*fp32, i32" | FileCheck %s --check-prefix=SHARED
# RUN: ditron-import %s:hardware --signature "*fp32, *i8, i32" | FileCheck %s --check-prefix=HARDWARE
# RUN: ditron-import %s:region --signature "*fp32, constexpr N=64" | FileCheck %s --check-prefix=REGION
# The thread level: places, accesses, fences, vectors, shared memory, tensor copies, regions of single threads.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.cuda.language_extra import (
    __syncthreads, arrive_inc, atomic_add_per_warp, fence, globaltimer, globaltimer_hi, globaltimer_lo, ld, ld_b32, ld_vector,
    load_v2_b64, load_v4_u32, membar, ntid, pack, pack_b32_v2, red_release, smid, st, st_b32, st_v2_u32, st_v4_b32, st_vector, tid,
    unpack, wait_eq)
from triton_dist.language.extra.cuda.tma_language import (
    cp_async_bulk_wait_group, elect_one_sync, mbarrier_expect_tx, mbarrier_try_wait_parity, named_barrier_sync,
    tensormap_replace_box_dim, tensormap_replace_rank, tma_load_2d, warp_idx)
from triton_dist.language.extra.libshmem_device import NVSHMEM_CMP_GE
from triton_dist.language.tma import ELEM_BF16, ELEM_F32, SWIZZLE_128B


@triton.jit
def places(out):
    # Constants of our modules are compile-time ones under imported names too.
    tl.static_assert(ELEM_BF16 == 10 and ELEM_F32 == 7 and SWIZZLE_128B == 3 and NVSHMEM_CMP_GE == 5 and dl.tma.FILL_NONE == 0)
    # PLACES: dist.intrinsic "smid"() : () -> i32
    st(out, smid())
    # PLACES: dist.intrinsic "globaltimer"() : () -> i64
    st(out, globaltimer())
    # PLACES: dist.intrinsic "globaltimer"
    # PLACES: arith.trunci
    st(out, globaltimer_lo())
    # PLACES: dist.intrinsic "globaltimer"
    # PLACES: arith.shrui
    st(out, globaltimer_hi())
    # PLACES: dist.thread_id 0
    # PLACES: arith.divui
    st(out, warp_idx())
    # PLACES: arith.constant 129 : i64
    st(out, ntid(0) + ntid(1))


@triton.jit
def accesses(p, h):
    # ACCESS: dist.ld relaxed gpu
    # ACCESS: dist.st relaxed gpu
    st_b32(p, ld_b32(p))
    # The scopes and orders of AMD's names.
    # ACCESS: dist.ld acquire block
    # ACCESS: dist.st relaxed sys
    st(p, ld(p, scope="workgroup", semantic="acquire"), scope="system", semantic="monotonic")
    # ACCESS: dist.ld_vector relaxed sys {{.*}} -> i32, i32, i32, i32
    a, b, c, d = load_v4_u32(p)
    # ACCESS: tile.ptr_cast {{.*}} -> !tile.ptr<i64>
    # ACCESS: dist.ld_vector relaxed sys {{.*}} -> i64, i64
    e, f = load_v2_b64(p)
    # ACCESS: dist.st_vector relaxed sys {{.*}} i32, i32, i32, i32
    st_v4_b32(p, a, b, c, d)
    # ACCESS: dist.st_vector relaxed sys {{.*}} i32, i32
    st_v2_u32(p, e.to(tl.uint32), f.to(tl.uint32))
    # ACCESS: dist.ld_vector acquire gpu {{.*}} -> f16, f16
    v = ld_vector(h, 2, scope="agent", semantic="acquire")
    # ACCESS: dist.st_vector release sys
    st_vector(h, v, scope="sys", semantic="release")
    # ACCESS: arith.shli
    # ACCESS: arith.ori
    st(p, pack_b32_v2(a, b).to(tl.int32))


@triton.jit
def words(p):
    # WORDS: dist.fence acq_rel block {dist.sequential}
    membar()
    # WORDS: dist.fence acq_rel gpu {dist.sequential}
    membar("gl")
    # WORDS: dist.fence acq_rel gpu {dist.sequential}
    fence()
    # WORDS: dist.fence acq_rel sys
    # WORDS-NOT: sequential
    fence("acq_rel", "sys")
    # WORDS: dist.thread_atomic_rmw add release sys
    red_release(p, 1, "sys")
    # WORDS: dist.sync_threads
    # WORDS: scf.if
    # WORDS: dist.thread_atomic_rmw add release gpu
    arrive_inc(p, tid(0), 1, "gpu")
    # WORDS: scf.while
    # WORDS: dist.ld acquire gpu
    # WORDS: dist.sync_threads
    wait_eq(p, tid(0), 1, "gpu")
    # WORDS: dist.thread_atomic_rmw add relaxed gpu
    # WORDS: dist.shuffle idx
    st(p, atomic_add_per_warp(p, 1, "gpu", "relaxed"))


@triton.jit
def vectors(p):
    # VECTORS: dist.ld_vector relaxed gpu {{.*}} -> f32, f32, f32, f32
    v = ld_vector(p, 4)
    # A loop carries the scalars of a vector.
    # VECTORS: scf.for {{.*}} -> (f32, f32, f32, f32)
    for i in range(0, 3):
        # VECTORS-COUNT-4: arith.addf
        v = v + ld_vector(p, 4)
    # VECTORS-COUNT-2: arith.truncf {{.*}} f32 to f16
    # VECTORS: arith.extui {{.*}} : i16 to i32
    word = pack(v[0:2].to(tl.float16), tl.uint32)
    # VECTORS: arith.trunci {{.*}} : i32 to i16
    h = unpack(word, tl.float16)
    tl.static_assert(len(h) == 2 and len(v[1:]) == 3)
    # VECTORS: dist.st_vector relaxed gpu
    st_vector(p, dl.make_vector([v[0], v[-1], 1.0, h[0].to(tl.float32)]) * 2.0 - v)


@triton.jit
def shared(p, i):
    # SHARED: dist.shared_alloc 2048 align 1024 : !tile.ptr<f32>
    buffer = dl.allocate_smem(tl.float32, [4, 128])
    tl.static_assert(buffer.numel == 512 and buffer.nbytes == 2048 and buffer.rank == 2 and buffer.shape[1] == 128)
    # SHARED: dist.st relaxed block
    dl.smem_store(buffer, 1, [2, i])
    # SHARED: dist.ld relaxed block
    st(p, dl.smem_load(dl.smem_index(buffer, i), [5]))
    # SHARED: dist.intrinsic "shared_address"
    st(p, dl.get_smem_shared_address_u32(buffer))
    # SHARED: dist.shared_alloc 8 align 16
    bar = dl.allocate_smem(tl.int64, [1])
    dl.smem_dealloc(bar)


@triton.jit
def hardware(p, map_ptr, i):
    buffer = dl.allocate_smem(tl.float32, [16, 32])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    # HARDWARE: dist.intrinsic "mbarrier_arrive_expect_tx"
    mbarrier_expect_tx(bar, 2048)
    # HARDWARE: dist.intrinsic "tma_load_2d"({{.*}}) : (!tile.ptr<i8>, !tile.ptr<f32>, !tile.ptr<i64>, i32, i32) -> ()
    tma_load_2d(map_ptr, dl.smem_get_ptr(buffer), bar, 0, i)
    # HARDWARE: dist.intrinsic "mbarrier_try_wait_parity"({{.*}}) : (!tile.ptr<i64>, i32) -> i1
    # HARDWARE: arith.extui
    if mbarrier_try_wait_parity(bar, 0) == 0:
        st(p, 1.0)
    # HARDWARE: dist.intrinsic "bulk_wait_group"() {options = {pending = 2 : i64, read = 1 : i64}}
    cp_async_bulk_wait_group(2, read=True)
    # Addresses as numbers: in shared memory 32 bits, elsewhere 64.
    place = dl.get_smem_shared_address_u32(buffer)
    # HARDWARE: dist.intrinsic "shared_pointer"
    # HARDWARE: dist.intrinsic "tensormap_replace_box_dim"({{.*}}) {options = {ordinal = 1 : i64}}
    tensormap_replace_box_dim(place.to(tl.uint64), 1, i)
    # HARDWARE: dist.intrinsic "tensormap_replace_rank"({{.*}}) {options = {value = 1 : i64}}
    tensormap_replace_rank(place, 1)
    # HARDWARE: dist.intrinsic "named_barrier_sync"() {options = {id = 3 : i64, threads = 64 : i64}}
    named_barrier_sync(3, 64)
    # HARDWARE: dist.intrinsic "elect_one_sync"() : () -> i1
    if elect_one_sync():
        st(p, 1.0)


@triton.jit
def region(p, N: tl.constexpr):
    i = tl.arange(0, N)
    # REGION: %[[X:.*]] = tile.load
    x = tl.load(p + i)
    # REGION: %[[T:.*]] = dist.thread_id 0
    # REGION: dist.sync_threads
    # REGION: dist.shared_alloc 256 align 16
    # REGION: tile.store {{.*}}, %[[X]]
    # REGION: dist.sync_threads
    with dl.simt_exec_region() as (thread, count):
        # REGION: scf.for %{{.*}} = %[[T]]
        for k in range(thread, N, count):
            # REGION: tile.load {{.*}} -> f32
            # REGION: dist.st relaxed block
            x[k] += 1
    # REGION: dist.sync_threads
    # REGION: %[[Y:.*]] = tile.load {{.*}}isVolatile
    # REGION: tile.store {{.*}}, %[[Y]]
    tl.store(p + i, x)
