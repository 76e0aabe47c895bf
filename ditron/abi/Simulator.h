//===- Simulator.h - What compiled kernels call in the simulator ------------------------------------------------------===//
//
// The C interface between code generated for the `sim` targets and the simulator engine. target/sim emits calls of these
// functions by name, and the engine defines them; nobody else calls them. All of them run on the fiber of one GPU thread.
//
// Conventions
// - `self` is the calling thread's DitronSimThread, obtained once by ditron_sim_self(), which generated code declares
//   memory(none): the value never changes during a kernel.
// - `site` names the kernel source line on whose behalf the call is made; it is never null and outlives the module.
// - Addresses are host addresses: a simulated GPU's memory is host memory, and shared memory is at self->sharedMemory.
// - Collective calls (barrier, shuffle, ballot, mma) are made by every thread of the block or warp that the call names.
//   A thread that has returned from the kernel counts as arrived at block barriers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ABI_SIMULATOR_H
#define DITRON_ABI_SIMULATOR_H

#include "ditron/abi/Compare.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the address of an access was made from, where the compiler can tell. Whatever was added to it, the access stays inside of that.
typedef struct DitronSimOrigin {
  uint32_t argument;     ///< A pointer that is an argument of the kernel, counted from 1; 0: an array in shared memory.
  uint32_t sharedOffset; ///< The array's, from the begin of the block's shared memory.
  uint32_t sharedBytes;
  uint32_t sharedLine; ///< Where the kernel's source asks for it.
} DitronSimOrigin;

/// A place in the kernel's source, emitted as a constant by target/sim.
typedef struct DitronSimSite {
  const char *file;
  uint32_t line;
  uint32_t column;
#ifdef __cplusplus
  const DitronSimOrigin *origin = nullptr; ///< Null where it is not known.
#else
  const DitronSimOrigin *origin;
#endif
} DitronSimSite;

/// The part of a simulated thread that generated code reads directly. Field order and types are part of the ABI
/// (target/sim reads them by their offsets).
typedef struct DitronSimThread {
  uint32_t threadId;    ///< 0 .. numThreads-1 in the block.
  uint32_t laneId;      ///< threadId % warpSize.
  uint32_t warpId;      ///< threadId / warpSize.
  uint32_t numThreads;  ///< Threads in the block.
  uint32_t blockId[3];  ///< program_id(0..2).
  uint32_t gridDim[3];  ///< num_programs(0..2).
  char *sharedMemory;   ///< The block's shared memory; 1024-byte aligned.
  uint64_t sharedBytes; ///< Its size.
  /// Not 0 once the time limit of the run has passed: loops read it and then call ditron_sim_time_out.
  const volatile uint32_t *timedOut;
} DitronSimThread;

/// Most stack that the code of a kernel may use per thread, in bytes. The engine's stacks hold this and what the engine itself
/// needs on top; the code generator refuses kernels that need more.
enum { DITRON_SIM_KERNEL_STACK_BYTES = 192 * 1024 };

/// Load copy: of an element that another thread of the block loads as well, who answers for it when it is stored again.
enum DitronSimAccess { DITRON_SIM_LOAD = 0, DITRON_SIM_STORE = 1, DITRON_SIM_ATOMIC = 2, DITRON_SIM_LOAD_COPY = 3 };
/// Generic: whichever of the two the address lies in. Shared tile: shared memory that the compiler keeps a tile in, as many bytes
/// as the thread accesses in pieces somewhere behind the address; races are not looked for there.
enum DitronSimSpace {
  DITRON_SIM_GLOBAL = 0,
  DITRON_SIM_SHARED = 1,
  DITRON_SIM_GENERIC = 2,
  DITRON_SIM_SHARED_TILE = 3
};
/// Scope of visibility: who else may observe the effect in order.
enum DitronSimScope { DITRON_SIM_SCOPE_BLOCK = 0, DITRON_SIM_SCOPE_GPU = 1, DITRON_SIM_SCOPE_SYSTEM = 2 };
/// Memory order. Volatile is relaxed that is never cached.
enum DitronSimOrder {
  DITRON_SIM_RELAXED = 0,
  DITRON_SIM_ACQUIRE = 1,
  DITRON_SIM_RELEASE = 2,
  DITRON_SIM_ACQ_REL = 3,
  DITRON_SIM_SEQ_CST = 4, ///< Of fences alone: those of one scope have an order that all agree about.
};
/// DitronCompare, by names of the simulator.
enum DitronSimCompare {
  DITRON_SIM_EQ = DITRON_COMPARE_EQ,
  DITRON_SIM_NE = DITRON_COMPARE_NE,
  DITRON_SIM_GT = DITRON_COMPARE_GT,
  DITRON_SIM_LE = DITRON_COMPARE_LE,
  DITRON_SIM_LT = DITRON_COMPARE_LT,
  DITRON_SIM_GE = DITRON_COMPARE_GE,
};
enum DitronSimRmw {
  DITRON_SIM_RMW_ADD = 0,
  DITRON_SIM_RMW_AND = 1,
  DITRON_SIM_RMW_OR = 2,
  DITRON_SIM_RMW_XOR = 3,
  DITRON_SIM_RMW_MAX = 4, ///< Signed integers.
  DITRON_SIM_RMW_MIN = 5,
  DITRON_SIM_RMW_UMAX = 6,
  DITRON_SIM_RMW_UMIN = 7,
  DITRON_SIM_RMW_EXCHANGE = 8,
  DITRON_SIM_RMW_FADD = 9,
  DITRON_SIM_RMW_FMAX = 10,
  DITRON_SIM_RMW_FMIN = 11,
};
/// Element types of atomics and mma operands.
enum DitronSimType {
  DITRON_SIM_I8 = 0,
  DITRON_SIM_I16 = 1,
  DITRON_SIM_I32 = 2,
  DITRON_SIM_I64 = 3,
  DITRON_SIM_F16 = 4,
  DITRON_SIM_BF16 = 5,
  DITRON_SIM_F32 = 6,
  DITRON_SIM_F64 = 7,
  DITRON_SIM_TF32 =
      8, ///< fp32 storage, 10 fraction bits count. Operands from registers are rounded (to nearest, ties away), as code for a GPU
  ///< does before the instruction; of operands in shared memory the other bits are cut off, as the hardware does.
  DITRON_SIM_E4M3 = 9, ///< fp8, finite only, NaN 0x7f and 0xff. Matrix operands only.
  DITRON_SIM_E5M2 = 10,
};
enum DitronSimShuffle {
  DITRON_SIM_SHUFFLE_INDEX = 0,     ///< Value of lane `operand` (mod warp size).
  DITRON_SIM_SHUFFLE_UP = 1,        ///< Value of lane laneId - operand; own value if that is negative.
  DITRON_SIM_SHUFFLE_DOWN = 2,      ///< Value of lane laneId + operand; own value if that is past the warp.
  DITRON_SIM_SHUFFLE_BUTTERFLY = 3, ///< Value of lane laneId ^ operand.
};

/// The calling thread. Pure.
DitronSimThread *ditron_sim_self(void);

/// Reports (and ends the run on) an access of `bytes` at `address` outside of the allocations of `space` that this rank may
/// touch, when `predicate` is not 0. Emitted before each native access in checked mode; also accounts the bytes moved in
/// virtual time. Emitted in every mode with the same arguments; a cheap early exit serves the unchecked mode.
void ditron_sim_access(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t predicate, uint32_t access,
                       uint32_t space, const DitronSimSite *site);

/// Writes to standard output what C's printf makes of the format and the values, which are 64-bit words: integers extended with
/// zeros, doubles as their bits, pointers. One call is one uninterrupted piece of the output.
void ditron_sim_print(DitronSimThread *self, const char *format, const uint64_t *values);
/// Ends the run: an assertion of the kernel's author is false.
void ditron_sim_assertion_failed(DitronSimThread *self, const char *format, const uint64_t *values,
                                 const DitronSimSite *site);

/// Block barrier with memory ordering at block scope. All threads of the block.
void ditron_sim_barrier(DitronSimThread *self, const DitronSimSite *site);
/// Warp barrier with memory ordering at warp scope. All live threads of the warp.
void ditron_sim_warp_barrier(DitronSimThread *self, const DitronSimSite *site);

/// What the lanes of the warp have accessed before is done for all of them when one goes on, as in a GPU, whose warps carry
/// out one instruction after the other. With `laterCount` addresses only if one of them lies in the allocation of one of
/// `earlier`; all lanes give the same. Lanes that do not come, since they took another way, are not waited for once nothing
/// else can run.
void ditron_sim_order_lanes(DitronSimThread *self, const void *const *later, uint32_t laterCount,
                            const void *const *earlier, uint32_t earlierCount, const DitronSimSite *site);

/// Warp shuffle of a value of up to 64 bits (upper bits zero). `mask` names the participating lanes.
uint64_t ditron_sim_shuffle(DitronSimThread *self, uint32_t kind, uint64_t value, uint32_t operand, uint64_t mask,
                            const DitronSimSite *site);
/// Bit i of the result is the predicate of lane i, for lanes in `mask`.
uint64_t ditron_sim_ballot(DitronSimThread *self, uint64_t mask, uint32_t predicate, const DitronSimSite *site);

/// Thread-level load of 1, 2, 4 or 8 bytes with order and scope; zero-extended. `spin` is not 0 when the compiler proved that
/// the load is the only effect of an enclosing loop without carried values: such a thread may sleep until the word changes. With
/// DITRON_SIM_LD_NOT nothing is loaded, and the result is 0: an element whose mask is off.
enum { DITRON_SIM_LD_NOT = 2 };
uint64_t ditron_sim_ld(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t order, uint32_t scope,
                       uint32_t spin, const DitronSimSite *site);
/// Thread-level store of 1, 2, 4 or 8 bytes with order and scope. Of 0 bytes nothing is stored: an element whose mask is off.
void ditron_sim_st(DitronSimThread *self, void *address, uint64_t value, uint32_t bytes, uint32_t order, uint32_t scope,
                   const DitronSimSite *site);
/// Atomic read-modify-write, value and result as zero-extended bit patterns; no effect and result 0 when predicate is 0.
uint64_t ditron_sim_atomic_rmw(DitronSimThread *self, uint32_t op, uint32_t type, void *address, uint64_t value,
                               uint32_t predicate, uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Atomic compare and swap of 2, 4 or 8 bytes; returns the old value.
uint64_t ditron_sim_atomic_cas(DitronSimThread *self, void *address, uint64_t compare, uint64_t value, uint32_t bytes,
                               uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Blocks the calling thread until the word (4 or 8 bytes, compared as signed) satisfies the comparison; then acquires at scope.
/// The word that satisfied it, zero-extended.
uint64_t ditron_sim_wait_until(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t compare,
                               uint64_t value, uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Memory fence of the calling thread.
void ditron_sim_fence(DitronSimThread *self, uint32_t order, uint32_t scope, const DitronSimSite *site);

/// One tl.dot of one warp with tensor-core semantics: for all mi < mTiles, ni < nTiles, ki < kTiles in ascending ki
///   C[mi][ni] += A[mi][ki] * B[ki][ni]
/// of the mma.sync instruction of shape m16n8kX, where X is 16 for F16/BF16, 8 for TF32, 32 for I8, or m8n8k4 for F64. The arrays hold the
/// calling thread's fragment registers, unpacked, one element each, fragment registers fastest:
///   a[(mi * kTiles + ki) * regsA + r], b[(ki * nTiles + ni) * regsB + r], c[(mi * nTiles + ni) * 4 + r]
/// with regsA = 8, regsB = 4 for 16-bit operands (uint16_t patterns); 4 and 2 for TF32 (float); 16 and 8 for I8 (int8_t); 1 and 1
/// for F64 (double), whose c has 2 registers in place of 4.
/// Which (row, column) a register of a lane holds is the fragment table of layout/Builders.h. c is
/// float, int32_t for I8, double for F64. Accumulation is fp32 (fp64 for F64) in ascending k. All lanes of the warp meet once per call.
void ditron_sim_mma(DitronSimThread *self, uint32_t type, uint32_t mTiles, uint32_t nTiles, uint32_t kTiles,
                    const void *a, const void *b, void *c, const DitronSimSite *site);

/// A dot product on the ordinary units: c[m * n + j] += sum over k of a[i * k + l] * b[l * n + j], fp32 (or fp64, int32) arrays of
/// the calling thread alone, ascending k with fused multiply-add. No meeting.
void ditron_sim_fma_dot(DitronSimThread *self, uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a,
                        const void *b, void *c, const DitronSimSite *site);

/// Asynchronous copy of 4, 8 or 16 bytes from global to shared memory; when predicate is 0, zeros are written instead and the
/// source is not read. Complete only after a wait on its group: until then the destination's content is unspecified.
void ditron_sim_async_copy(DitronSimThread *self, void *shared, const void *global, uint32_t bytes, uint32_t predicate,
                           const DitronSimSite *site);
/// Closes the calling thread's current group of asynchronous copies.
void ditron_sim_async_commit(DitronSimThread *self, const DitronSimSite *site);
/// Waits until at most `pending` of the calling thread's newest groups are incomplete.
void ditron_sim_async_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site);

/// So many ldmatrix instructions of a warp, one after the other, each of `count` (1, 2 or 4) matrices of 8 rows of 16 bytes in
/// shared memory: the rows[i] of lane 8 * m + r is where row r of matrix m of instruction i begins (16-byte aligned). words[i *
/// count + m] becomes the 4 bytes at position lane % 4 of row lane / 4 of matrix m, or with `transpose` the 16-bit elements at
/// position lane / 4 of rows 2 * (lane % 4) and the next. All lanes of a full warp meet once per call.
void ditron_sim_load_matrices(DitronSimThread *self, uint32_t instructions, uint32_t count, uint32_t transpose,
                              void *const *rows, uint32_t *words, const DitronSimSite *site);
/// The same way back (stmatrix).
void ditron_sim_store_matrices(DitronSimThread *self, uint32_t instructions, uint32_t count, uint32_t transpose,
                               void *const *rows, const uint32_t *words, const DitronSimSite *site);

//===- Hopper: mbarriers, tensor copies (TMA), warpgroup matrix multiply (wgmma) --------------------------------------===//
//
// `bar` is an mbarrier: 8 bytes of shared memory, 8-byte aligned, touched by nothing but these functions. It counts the
// arrivals and the bytes of its current phase; when both are complete the next phase begins. Phases are numbered from 0.
// A call whose `predicate` is 0 does nothing (the thread does not arrive and does not issue).

/// Makes the word an mbarrier that needs `count` arrivals per phase (1 .. 2^20 - 1). One thread; others may use it after a
/// block barrier.
void ditron_sim_mbarrier_init(DitronSimThread *self, void *bar, uint32_t count, const DitronSimSite *site);
/// Ends the mbarrier: its word is ordinary memory again. Reported when threads wait there or bytes are in flight.
void ditron_sim_mbarrier_invalidate(DitronSimThread *self, void *bar, const DitronSimSite *site);
/// Expects `bytes` more in the current phase, then arrives once (mbarrier.arrive.expect_tx).
void ditron_sim_mbarrier_expect_tx(DitronSimThread *self, void *bar, uint32_t bytes, uint32_t predicate,
                                   const DitronSimSite *site);
/// Arrives `count` times.
void ditron_sim_mbarrier_arrive(DitronSimThread *self, void *bar, uint32_t count, uint32_t predicate,
                                const DitronSimSite *site);
/// Blocks the thread until the phase with that parity (0 or 1) is complete, that is, until the current phase has the other
/// parity (mbarrier.try_wait.parity in a loop). So the first wait for data waits for parity 0, and a wait for parity 1 on a
/// fresh mbarrier returns at once.
void ditron_sim_mbarrier_wait(DitronSimThread *self, void *bar, uint32_t parity, const DitronSimSite *site);

/// A tensor in global memory and the box that a tensor copy moves: what CUtensorMap is on the device. Dimension 0 is the
/// fastest, contiguous one. 128 bytes; sim/TensorMap.h makes and checks it. Passed by value as a kernel parameter.
typedef struct DitronSimTensorMap {
  void *base;               ///< 16-byte aligned.
  uint64_t stridesBytes[4]; ///< Of dimensions 1 .. rank-1; multiples of 16.
  uint32_t rank;            ///< 1 .. 5.
  uint32_t dims[5];         ///< Extents of the tensor in elements.
  uint32_t box[5];          ///< Extents of the box, 1 .. 256; box[0] * elementBytes is a multiple of 16.
  uint32_t elementBytes;    ///< 1, 2, 4, 8.
  uint32_t swizzleBytes;    ///< 0, 32, 64, 128; not 0: equal to box[0] * elementBytes.
  uint32_t fillNan;         ///< 1: elements out of range are NaN (0x7f.., all types), 0: they are zero.
  uint32_t roundsTf32;      ///< 1: elements are fp32, and loads round them to tf32 (to nearest, ties to even).
  uint32_t reserved[7];
} DitronSimTensorMap;

/// One thread starts a copy of the box at `coords` (in elements, dimension 0 first, may be negative or past the end) to
/// shared memory, rows (dimension 0) packed one after the other. With a swizzle the 16-byte chunks are placed by XOR on
/// shared-memory address bits: [4:6] ^= [7:9] for 128, [4:5] ^= [7:8] for 64, [4] ^= [7] for 32. `shared` is 128-byte
/// aligned. When done, all bytes of the box, out of range or not, count at `bar`. Until that phase of `bar` completes the
/// destination must not be touched.
void ditron_sim_tma_load(DitronSimThread *self, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                         void *shared, void *bar, uint32_t predicate, const DitronSimSite *site);
/// The same from shared to global memory; elements out of range are dropped. Belongs to the thread's open store group.
void ditron_sim_tma_store(DitronSimThread *self, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                          const void *shared, uint32_t predicate, const DitronSimSite *site);
/// Closes the calling thread's group of tensor stores.
void ditron_sim_tma_store_commit(DitronSimThread *self, const DitronSimSite *site);
/// Waits until at most `pending` of the calling thread's newest store groups are incomplete; with `read`, only until they
/// have read their source, else until the data is visible in global memory.
void ditron_sim_tma_store_wait(DitronSimThread *self, uint32_t pending, uint32_t read, const DitronSimSite *site);

enum DitronSimWgmmaFlags {
  DITRON_SIM_WGMMA_SCALE_D = 1,    ///< d = a * b + d; without it d = a * b.
  DITRON_SIM_WGMMA_A_MN_MAJOR = 2, ///< A in shared memory is M-major (16-bit types only), else K-major.
  DITRON_SIM_WGMMA_B_MN_MAJOR = 4, ///< B in shared memory is N-major (16-bit types only), else K-major.
};
/// kSteps successive wgmma.mma_async m64nNkX of one warpgroup (four warps from a multiple of four, all 128 threads meet),
/// X = 16 for F16/BF16, 8 for TF32, 32 for I8/E4M3/E5M2; n is a multiple of 8 up to 256 (I8: 8, 16, 24, 32, 48, 64, ..).
/// Operands in shared memory are given by matrix descriptors as in the PTX ISA: bits 0-13 start address / 16, bits 16-29
/// leading byte offset / 16, bits 32-45 stride byte offset / 16, bits 49-51 zero, bits 62-63 swizzle (0 none, 1 128 B,
/// 2 64 B, 3 32 B). The address is the offset from self->sharedMemory. Step s adds s * aStep and s * bStep bytes to
/// the start addresses (multiples of 16). aRegs, when not null, replaces aDesc: the A fragment of ditron_sim_mma with one
/// m tile per warp, aRegs[s * regsA + r].
/// c is the thread's accumulator: n / 2 floats (I8: int32_t), element 4 * (j / 8) + r at row 16 * warp + lane / 4 + 8 * (r >> 1),
/// column 8 * (j / 8) + 2 * (lane % 4) + (r & 1). The call fills c with tokens (NaN patterns) that stand for the result. Tokens
/// may be copied about as values: a later wgmma whose c holds them continues that accumulation, and after the wait
/// ditron_sim_wgmma_result replaces them wherever they are. ditron_sim_wgmma_wait itself replaces those still in c.
void ditron_sim_wgmma(DitronSimThread *self, uint32_t type, uint32_t n, uint32_t kSteps, uint32_t flags,
                      const void *aRegs, uint64_t aDesc, uint32_t aStep, uint64_t bDesc, uint32_t bStep, void *c,
                      const DitronSimSite *site);
/// Orders the thread's register accesses before its next wgmma: needed before the first one and before one that takes new
/// registers (accumulator or A) after a wait.
void ditron_sim_wgmma_fence(DitronSimThread *self, const DitronSimSite *site);
/// Closes the calling thread's group of wgmma operations.
void ditron_sim_wgmma_commit(DitronSimThread *self, const DitronSimSite *site);
/// Waits until at most `pending` of the newest committed groups are incomplete. Then the results of the others are in their c.
void ditron_sim_wgmma_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site);
/// Replaces the tokens of completed accumulators among `count` 4-byte values (whole accumulators, one after the other) by
/// their results. Values that are no tokens, and tokens of what is still in flight, stay.
void ditron_sim_wgmma_result(DitronSimThread *self, void *values, uint32_t count, const DitronSimSite *site);

/// Makes the calling thread's earlier ordinary writes to shared memory visible to later tensor stores and wgmma operand reads
/// (fence.proxy.async). In checked mode a read without it (and, by others, a barrier after it) is reported.
void ditron_sim_fence_async(DitronSimThread *self, const DitronSimSite *site);
/// The same of global memory, and of all writes that are ordered before the call, whoever made them (fence.proxy.async.global). With
/// race checks a tensor or bulk copy of what a kernel has stored without such a fence in between is reported.
void ditron_sim_fence_async_global(DitronSimThread *self, const DitronSimSite *site);

enum DitronSimNamedBarrier { DITRON_SIM_BARRIER_SYNC = 0, DITRON_SIM_BARRIER_ARRIVE = 1 };
/// Barrier `id` (1 .. 15) of `threads` threads (a multiple of the warp size): arrives, and with SYNC waits for the others.
void ditron_sim_named_barrier(DitronSimThread *self, uint32_t id, uint32_t threads, uint32_t kind,
                              const DitronSimSite *site);
/// Changes the warpgroup's registers per thread to n (24 .. 256, a multiple of 8), up when `increase`. Checked, no effect.
void ditron_sim_setmaxnreg(DitronSimThread *self, uint32_t n, uint32_t increase, const DitronSimSite *site);

//===- The thread level's own use of these ---------------------------------------------------------------------------===//

enum DitronSimRegister { DITRON_SIM_SMID = 0, DITRON_SIM_GLOBALTIMER = 1, DITRON_SIM_CLOCK = 2 };
/// A special register: number of the multiprocessor, nanoseconds of virtual time, cycles of virtual time.
uint64_t ditron_sim_register(DitronSimThread *self, uint32_t which);
/// Expects `bytes` more in the current phase and does not arrive.
void ditron_sim_mbarrier_transaction(DitronSimThread *self, void *bar, uint32_t bytes, const DitronSimSite *site);
/// Whether the phase with that parity is complete; if not, others run first.
uint32_t ditron_sim_mbarrier_test(DitronSimThread *self, void *bar, uint32_t parity, const DitronSimSite *site);
/// A copy of plain bytes (a multiple of 16, both ends aligned to 16): to shared memory, counted at `bar`; with a null `bar` from
/// shared memory, in the thread's open store group.
void ditron_sim_bulk_copy(DitronSimThread *self, void *global, void *shared, uint32_t bytes, void *bar,
                          const DitronSimSite *site);

/// Fields of a tensor map, numbered as the instructions are in Intrinsics.def.
enum DitronSimMapField {
  DITRON_SIM_MAP_ADDRESS = 0,
  DITRON_SIM_MAP_DIM = 1,
  DITRON_SIM_MAP_STRIDE = 2,
  DITRON_SIM_MAP_BOX = 3,
  DITRON_SIM_MAP_ELEMENT_STRIDE = 4,
  DITRON_SIM_MAP_RANK = 5,
  DITRON_SIM_MAP_ELEMENT_TYPE = 6,
  DITRON_SIM_MAP_INTERLEAVE = 7,
  DITRON_SIM_MAP_SWIZZLE = 8,
  DITRON_SIM_MAP_FILL = 9,
};
/// Changes a field of the tensor map at `map`, 128 bytes of shared memory aligned to 128. Values are those of the PTX ISA; what
/// the simulator has no tensor copies for is refused.
void ditron_sim_map_replace(DitronSimThread *self, void *map, uint32_t field, uint32_t ordinal, uint64_t value,
                            const DitronSimSite *site);
/// Copies a tensor map from shared to global memory; the first lane does.
void ditron_sim_map_publish(DitronSimThread *self, void *global, const void *shared, const DitronSimSite *site);
/// Reports a `map` that is no tensor map in memory that the thread may read.
void ditron_sim_map_check(DitronSimThread *self, const void *map, const DitronSimSite *site);

//===- OpenSHMEM: what a kernel hands to the network of its rank (Shmem.h) ---------------------------------------------===//
//
// `destination` of puts, `source` of gets and `signal` are addresses on the PE already. One thread calls for all that carry out
// an operation together.

enum DitronSimSignalOp { DITRON_SIM_SIGNAL_SET = 0, DITRON_SIM_SIGNAL_ADD = 1 };
enum DitronSimShmemOrder { DITRON_SIM_SHMEM_FENCE = 0, DITRON_SIM_SHMEM_QUIET = 1 };
/// How far a raised word may be: on the GPU, on the node, on any node.
enum DitronSimReach { DITRON_SIM_REACH_GPU = 0, DITRON_SIM_REACH_NODE = 1, DITRON_SIM_REACH_NODES = 2 };
/// Reports a PE that does not exist. World view: [0] rank, [1] ranks, [-3] ranks per node.
void ditron_sim_shmem_peer(DitronSimThread *self, const int64_t *world, int32_t pe, const char *function,
                           const DitronSimSite *site);
/// Arrives some time later, at the next quiet at the latest. Non-blocking: the source is read when it arrives.
void ditron_sim_shmem_put(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site);
/// A put of one number of 1, 2, 4 or 8 bytes.
void ditron_sim_shmem_value(DitronSimThread *self, void *destination, uint64_t value, uint32_t bytes, uint32_t pe,
                            const DitronSimSite *site);
/// Non-blocking: the bytes come with the next quiet, and until then the destination holds ones.
void ditron_sim_shmem_get(DitronSimThread *self, void *destination, const void *source, uint64_t bytes, uint32_t pe,
                          uint32_t nonblocking, const DitronSimSite *site);
/// The signal word (4 or 8 bytes) changes after the bytes have arrived.
void ditron_sim_shmem_put_signal(DitronSimThread *self, void *destination, const void *source, uint64_t bytes,
                                 void *signal, uint64_t value, uint32_t signalBytes, uint32_t op, uint32_t pe,
                                 uint32_t nonblocking, const DitronSimSite *site);
/// Changes a signal word, on this node at once, after what a fence has put before it.
void ditron_sim_shmem_signal(DitronSimThread *self, void *signal, uint64_t value, uint32_t signalBytes, uint32_t op,
                             uint32_t pe, const DitronSimSite *site);
/// Sets or adds to a word on the PE, after all that the thread has stored and knows of: a release at the scope of `reach`. On another
/// node the network carries it.
void ditron_sim_shmem_raise(DitronSimThread *self, void *word, uint64_t value, uint32_t bytes, uint32_t op,
                            uint32_t reach, uint32_t pe, const DitronSimSite *site);
/// Whether loads and stores reach the PE. Where they do not, a later access at a small address is explained by this line.
uint32_t ditron_sim_reaches(DitronSimThread *self, const int64_t *world, int32_t pe, const DitronSimSite *site);
void ditron_sim_shmem_order(DitronSimThread *self, uint32_t kind, const DitronSimSite *site);

/// Reports a rank that is not one of 0 .. numRanks-1; `function` is what the kernel gave it to.
void ditron_sim_check_rank(DitronSimThread *self, int32_t rank, int32_t numRanks, const char *function,
                           const DitronSimSite *site);
/// Ends the run because its time limit has passed; `site` is the loop that runs. Does not return.
void ditron_sim_time_out(DitronSimThread *self, const DitronSimSite *site);
/// Stops the run with a message (device_assert and compiler-emitted traps).
void ditron_sim_trap(DitronSimThread *self, const char *message, const DitronSimSite *site);

#ifdef __cplusplus
}
#endif
#endif // DITRON_ABI_SIMULATOR_H
