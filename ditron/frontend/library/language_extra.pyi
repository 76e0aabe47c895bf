"""`language_extra`: the thread level."""


# Thread level.

@handler("threadId")
def tid(axis: int = 0) -> tensor:
    """index of this thread in its block"""

@handler("threadCount")
def ntid(axis: int = 0) -> int:
    """threads of the block along an axis, at compile time"""

@handler("laneId")
def laneid() -> tensor:
    """index of this thread in its warp"""

@handler("warpIndex")
def warp_idx() -> tensor:
    """index of this thread's warp in the block"""

def num_warps() -> int:
    """warps of the block, at compile time"""

def num_threads() -> int:
    """threads of the block, at compile time"""

def threads_per_warp() -> int:
    """threads of a warp, at compile time"""

@handler("multiprocessor", type=ScalarKind.UInt32)
def smid() -> tensor:
    """number of the multiprocessor (in the simulator: of the block's slot)"""

@handler("clockValue", clock="globaltimer", type=ScalarKind.UInt64)
def globaltimer() -> tensor:
    """nanoseconds of a clock of the whole GPU (in the simulator: virtual time)"""

@handler("timerHalf", isHigh=False)
def globaltimer_lo() -> tensor:
    """its lower 32 bits"""

@handler("timerHalf", isHigh=True)
def globaltimer_hi() -> tensor:
    """its upper 32 bits"""

wallclock = globaltimer
"""the same as globaltimer"""

@handler("clockValue", clock="clock64", type=ScalarKind.UInt64)
def clock() -> tensor:
    """cycles of this multiprocessor"""

@handler("syncThreads")
def __syncthreads() -> None:
    """barrier of the block"""

@handler("threadLoad")
def ld(ptr: ptr, scope: str = "gpu", semantic: str = "relaxed") -> tensor:
    """load by every thread that gets here; scope gpu, cta, sys (or agent, workgroup, system); semantic relaxed, acquire"""

def ld_acquire(ptr: ptr, scope: str = "gpu") -> tensor:
    """load-acquire by every thread that gets here"""

def ld_b32(ptr: ptr) -> tensor:
    """relaxed load of 32 bits"""

@handler("threadStore")
def st(ptr: ptr, val: num, scope: str = "gpu", semantic: str = "relaxed") -> None:
    """store by every thread that gets here; semantic relaxed, release"""

def st_b32(ptr: ptr, val: num) -> None:
    """relaxed store of 32 bits"""

@handler("wideLoad", count=4, element=ScalarKind.UInt32)
def load_v4_u32(ptr: ptr) -> tuple:
    """four uint32 by one access, a tuple; the address is a multiple of 16"""

@handler("wideLoad", count=4, element=ScalarKind.Int32)
def load_v4_b32(ptr: ptr) -> tuple:
    """the same as int32"""

@handler("wideLoad", count=4, element=ScalarKind.Int32)
def load_v4_s32(ptr: ptr) -> tuple:
    """the same as int32"""

@handler("wideLoad", count=2, element=ScalarKind.Int64)
def load_v2_b64(ptr: ptr) -> tuple:
    """two int64 by one access, a tuple"""

@handler("wideStore", ..., element=ScalarKind.UInt32)
def st_v4_u32(ptr: ptr, val0: num, val1: num, val2: num, val3: num) -> None:
    """stores four words of 32 bits by one access; fp32 values keep their bits"""

@handler("wideStore", ..., element=ScalarKind.Int32)
def st_v4_b32(ptr: ptr, val0: num, val1: num, val2: num, val3: num) -> None:
    """the same"""

@handler("wideStore", ..., element=ScalarKind.UInt32)
def st_v2_u32(ptr: ptr, val0: num, val1: num) -> None:
    """stores two words of 32 bits by one access"""

@handler("vectorLoad")
def ld_vector(ptr: ptr, vec_size: int, scope: str = "gpu", semantic: str = "relaxed") -> vector:
    """a vector of consecutive elements, 2 to 16 bytes by one access of each thread"""

@handler("vectorStore")
def st_vector(ptr: ptr, vec, scope: str = "gpu", semantic: str = "relaxed") -> None:
    """stores a vector by one access of each thread"""

@handler("sequentialFence")
def membar(scope: str = "cta") -> None:
    """sequentially consistent fence of each thread; scope cta, gl (gpu), sys"""

@handler("threadFence")
def fence(semantic: str = "sc", scope: str = "gpu") -> None:
    """memory fence of each thread; semantic sc, acq_rel, acquire, release"""

@handler("sequentialFence")
def __fence(scope: str = "gpu") -> None:
    """the same as fence('sc', scope)"""

def red_release(barrier_ptr: ptr, value: num, scope: str = "gpu") -> None:
    """adds to a word after this thread's earlier stores"""

@handler("multimemStore", ..., bits=32, isMasked=False)
def multimem_st_b32(ptr: ptr, val: num) -> None:
    """relaxed store of 32 bits to all ranks: through a multicast address, or on the simulator this rank's address in the
    symmetric heap; a pointer to narrower numbers takes words of them"""

@handler("multimemStore", ..., bits=64, isMasked=False)
def multimem_st_b64(ptr: ptr, val: num) -> None:
    """the same of 64 bits"""

@handler("multimemStore", ..., bits=32, isMasked=False)
def multimem_st_v2(ptr: ptr, val0: num, val1: num) -> None:
    """the same of two consecutive words of 32 bits"""

@handler("multimemStore", ..., bits=32, isMasked=False)
def multimem_st_v4(ptr: ptr, val0: num, val1: num, val2: num, val3: num) -> None:
    """the same of four consecutive words of 32 bits"""

@handler("multimemStore", ..., bits=32, isMasked=True)
def multimem_st_p_b32(ptr: ptr, val: num, mask: num) -> None:
    """multimem_st_b32 where the mask is true"""

@handler("multimemLoadReduce")
def multimem_ld_reduce_v4(ptr: ptr, acc_dtype: dtype | None = None) -> tuple:
    """sums over all ranks of 16 consecutive bytes, a tuple: four fp32, or four uint32 of two fp16 or bf16 each; sums are
    made in fp32; addresses as for multimem_st_b32"""

@handler("maskedMultimemLoadReduce")
def multimem_ld_reduce_p_v4(ptr: ptr, mask: num) -> tuple:
    """the same where the mask is true, else zeros"""

@handler("threadAtomicAdd")
def atomic_add(ptr: ptr, value: num, scope: str = "gpu", semantic: str = "relaxed") -> tensor:
    """atomic addition by every thread that gets here; gives the old value"""

@handler("threadAtomicCas")
def atomic_cas(ptr: ptr, value: num, target_value: num, scope: str = "gpu", semantic: str = "relaxed") -> tensor:
    """atomic compare and swap by every thread that gets here; gives the old value"""

@handler("shuffle", kind=dist.ShuffleKind.Index)
def __shfl_sync_i32(mask: num, value: num, laneid: num) -> tensor:
    """value of a lane of the warp"""

@handler("shuffle", kind=dist.ShuffleKind.Up)
def __shfl_up_sync_i32(mask: num, value: num, delta: num) -> tensor:
    """value of the lane delta below"""

@handler("shuffle", kind=dist.ShuffleKind.Down)
def __shfl_down_sync_i32(mask: num, value: num, delta: num) -> tensor:
    """value of the lane delta above"""

@handler("shuffle", kind=dist.ShuffleKind.Butterfly)
def __shfl_xor_sync_i32(mask: num, value: num, delta: num) -> tensor:
    """value of the lane with these index bits flipped"""

@handler("ballot")
def __ballot_sync(mask: num, predicate: num) -> tensor:
    """int32 whose bit i tells the predicate of lane i"""

@handler("findFirstSet")
def ffs(x: num) -> tensor:
    """1 + index of the lowest set bit, 0 for zero"""

@handler("packWords")
def pack_b32_v2(val0: num, val1: num) -> tensor:
    """uint64 of two words of 32 bits, the lower one first"""

@library("thread")
def arrive_inc(barrier_ptr, thread_idx, value, scope: const):
    """block barrier, then thread 0 adds to a word after what the block stored"""

@library("thread")
def arrive_inc_asm(barrier_ptr, thread_idx, value, scope: const = "gpu"):
    """the same as arrive_inc"""

@library("thread")
def wait_eq(barrier_ptr, thread_idx, value, scope: const):
    """thread 0 waits until a word has a value, then a block barrier"""

@library("thread")
def atomic_add_per_warp(barrier_ptr, value, scope: const, semantic: const):
    """one addition per warp; all its threads get the old value"""


# Regions of single threads, and vectors.

@handler("packVector")
def pack(vec, dst_type: dtype) -> any:
    """the bits of a vector as one scalar, or as a vector of another type"""

@handler("unpackScalar")
def unpack(scalar, dst_type: dtype) -> vector:
    """the bits of a scalar as a vector of another type"""


# mbarriers, tensor copies, tensor maps (compute capability 9.0).

@handler("hardware", ...)
def mbarrier_init(mbar_ptr, count: num) -> None:
    """makes 8 bytes of shared memory an mbarrier with so many arrivals per phase; one thread, then a block barrier"""

@handler("hardware", ...)
def mbarrier_expect_tx(mbar_ptr, tx_count: num) -> None:
    """expects bytes and arrives, as mbarrier_arrive_expect_tx"""

@handler("hardware", ...)
def mbarrier_expect_transaction(mbar_ptr, tx_count: num) -> None:
    """expects bytes without an arrival"""

@handler("hardware", ...)
def mbarrier_arrive(mbar_ptr) -> None:
    """arrives once"""

@handler("hardware", ...)
def mbarrier_arrive_expect_tx(mbar_ptr, tx_count: num) -> None:
    """expects bytes in this phase and arrives once"""

@handler("hardware", ...)
def mbarrier_try_wait_parity(mbar_ptr, phase: num) -> tensor:
    """uint32: not 0 if the phase of that parity is complete"""

@handler("hardware", ...)
def mbarrier_wait_parity(mbar_ptr, phase: num) -> None:
    """waits until the phase of that parity is complete"""

@handler("hardware", ...)
def mbarrier_invalidate(mbar_ptr) -> None:
    """ends an mbarrier; one thread"""

@handler("hardware", ...)
def tma_load_2d(tmap_ptr, smem_ptr, mbar_ptr, coord_0: num, coord_1: num) -> None:
    """one thread starts copying a box to shared memory; its bytes count at an mbarrier; coord_0 is the contiguous dimension"""

@handler("hardware", ...)
def tma_load_2d_pred(tmap_ptr, smem_ptr, mbar_ptr, coord_0: num, coord_1: num, pred: num) -> None:
    """the same where pred is not 0"""

@handler("hardware", ...)
def tma_store_2d(tmap_ptr, smem_ptr, coord_0: num, coord_1: num) -> None:
    """one thread starts copying shared memory to a box, in its open group"""

@handler("hardware", ...)
def cp_async_bulk_global_to_shared(dst_smem_ptr, src_global_ptr, size: num, mbar_ptr) -> None:
    """one thread starts copying bytes (a multiple of 16) to shared memory; they count at an mbarrier"""

@handler("hardware", ...)
def cp_async_bulk_shared_to_global(dst_global_ptr, src_smem_ptr, size: num) -> None:
    """one thread starts copying bytes to global memory, in its open group"""

@handler("hardware", ...)
def cp_async_bulk_commit_group() -> None:
    """closes this thread's group of stores"""

@handler("hardware", ...)
def cp_async_bulk_wait_group(N: int, read: bool = False) -> None:
    """until at most N groups of this thread are incomplete; with read, until they have read shared memory"""

@handler("hardware", ...)
def tma_sync(N: int = 0) -> None:
    """the same as cp_async_bulk_wait_group(N)"""

@handler("hardware", ...)
def tensormap_replace_global_address(tmap_smem_ptr, new_global_addr) -> None:
    """field of a tensor map in 128 bytes of shared memory: where the tensor lies"""

@handler("hardware", ...)
def tensormap_replace_global_dim(tmap_smem_ptr, ord: int, new_val: num) -> None:
    """extent of a dimension, 0 the contiguous one"""

@handler("hardware", ...)
def tensormap_replace_global_stride(tmap_smem_ptr, ord: int, new_val: num) -> None:
    """stride in bytes of dimension ord + 1"""

@handler("hardware", ...)
def tensormap_replace_rank(tmap_smem_ptr, rank: int) -> None:
    """dimensions less one"""

@handler("hardware", ...)
def tensormap_replace_box_dim(tmap_smem_ptr, ord: int, new_val: num) -> None:
    """extent of the box in a dimension"""

@handler("hardware", ...)
def tensormap_replace_element_stride(tmap_smem_ptr, ord: int, new_val: num) -> None:
    """step between elements in a dimension (simulated: 1)"""

@handler("hardware", ...)
def tensormap_replace_elemtype(tmap_smem_ptr, elemtype: int) -> None:
    """element type by its number in the PTX ISA: 6 fp16, 7 fp32, 10 bf16, ..."""

@handler("hardware", ...)
def tensormap_replace_interleave_layout(tmap_smem_ptr, val: int) -> None:
    """0 none (the only one that is simulated)"""

@handler("hardware", ...)
def tensormap_replace_swizzle_mode(tmap_smem_ptr, mode: int) -> None:
    """0 none, 1, 2, 3: 32, 64, 128 bytes"""

@handler("hardware", ...)
def tensormap_replace_fill_mode(tmap_smem_ptr, mode: int) -> None:
    """0: elements out of range are zero, 1: NaN"""

@handler("hardware", ...)
def tensormap_cp_fenceproxy(tmap_global_ptr, tmap_smem_ptr) -> None:
    """copies a tensor map to global memory, released to tensor copies; whole warps"""

@handler("hardware", ...)
def fence_proxy_tensormap_acquire(tmap_global_ptr) -> None:
    """this thread's tensor copies see the map as it was released"""

@handler("zeroTensorMap")
def tensormap_smem_zero_first_warp(smem_u32_base) -> None:
    """the first warp clears 128 bytes of shared memory"""

@handler("hardware", ...)
def fence_async_shared() -> None:
    """ordinary accesses to shared memory before copies that follow"""

@handler("hardware", ...)
def fence_proxy_async() -> None:
    """ordinary accesses to any memory before copies that follow"""

@handler("hardware", ...)
def prefetch_tensormap(tmap_global_ptr) -> None:
    """a hint that copies by this map will follow"""

@handler("hardware", ...)
def prefetch_tensor_2d_l2(tmap_global_ptr, coord_0: num, coord_1: num) -> None:
    """a hint that this box will be loaded"""

@handler("hardware", ...)
def prefetch_l2(ptr) -> None:
    """a hint that the cache line at this address of global memory will be read"""

@handler("genericToShared", element=ScalarKind.UInt64)
def cvta_generic_to_shared(generic_ptr) -> tensor:
    """the address within shared memory of a pointer, uint64"""

@handler("genericToShared", element=ScalarKind.UInt32)
def _ptr_to_shared_u32(ptr) -> tensor:
    """the same, uint32"""

@handler("globalToGeneric")
def cvta_global_to_generic_u64(global_addr_u64) -> tensor:
    """a global address as a generic one: the same number"""

@handler("namedBarrier")
def named_barrier_arrive(barrier_id: int, num_threads: int) -> None:
    """barrier 1 to 15 of so many threads: arrives and goes on"""

@handler("namedBarrier")
def named_barrier_sync(barrier_id: int, num_threads: int) -> None:
    """barrier 1 to 15 of so many threads: arrives and waits"""

@handler("hardware", ...)
def elect_one_sync() -> tensor:
    """int32: 1 in one thread of the warp, 0 in the others"""

@handler("hardware", ...)
def bar_warp_sync() -> None:
    """barrier of the warp"""

@refused("kernels have no shared memory that the launch gives them; reserve it with dl.allocate_smem and take smem_get_ptr of it")
def get_dynamic_smem_pointer(*args): ...

@refused("a number that only AMD hardware has; smid tells multiprocessors apart")
def seid(*args): ...

@refused("a number that only AMD hardware has; smid tells multiprocessors apart")
def cuid(*args): ...

@refused("a number that only AMD hardware has; smid tells multiprocessors apart")
def xccid(*args): ...


# The target (tl.target_info), dependent launches (tl.extra.cuda).

@handler("hardware", ...)
def gdc_wait() -> None:
    """waits for the kernels that a dependent launch did not wait for; compute capability 9.0"""

@handler("hardware", ...)
def gdc_launch_dependents() -> None:
    """kernels that depend on this one may start; compute capability 9.0"""
