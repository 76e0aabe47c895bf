//===- Abi.h - What compiled kernels call in the simulator ------------------------------------------------------------===//
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
#ifndef DITRON_SIM_ABI_H
#define DITRON_SIM_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A place in the kernel's source, emitted as a constant by target/sim.
typedef struct DitronSimSite {
  const char *file;
  uint32_t line;
  uint32_t column;
} DitronSimSite;

/// The part of a simulated thread that generated code reads directly. Field order and types are part of the ABI
/// (target/sim/SimAbiTypes.cpp mirrors them).
typedef struct DitronSimThread {
  uint32_t threadId;     ///< 0 .. numThreads-1 in the block.
  uint32_t laneId;       ///< threadId % warpSize.
  uint32_t warpId;       ///< threadId / warpSize.
  uint32_t numThreads;   ///< Threads in the block.
  uint32_t blockId[3];   ///< program_id(0..2).
  uint32_t gridDim[3];   ///< num_programs(0..2).
  char *sharedMemory;    ///< The block's shared memory; 128-byte aligned.
  uint64_t sharedBytes;  ///< Its size.
} DitronSimThread;

enum DitronSimAccess { DITRON_SIM_LOAD = 0, DITRON_SIM_STORE = 1, DITRON_SIM_ATOMIC = 2 };
enum DitronSimSpace { DITRON_SIM_GLOBAL = 0, DITRON_SIM_SHARED = 1 };
/// Scope of visibility: who else may observe the effect in order.
enum DitronSimScope { DITRON_SIM_SCOPE_BLOCK = 0, DITRON_SIM_SCOPE_GPU = 1, DITRON_SIM_SCOPE_SYSTEM = 2 };
/// Memory order. Volatile is relaxed that is never cached.
enum DitronSimOrder {
  DITRON_SIM_RELAXED = 0,
  DITRON_SIM_ACQUIRE = 1,
  DITRON_SIM_RELEASE = 2,
  DITRON_SIM_ACQ_REL = 3,
};
enum DitronSimCompare {
  DITRON_SIM_EQ = 0,
  DITRON_SIM_NE = 1,
  DITRON_SIM_GT = 2,
  DITRON_SIM_LE = 3,
  DITRON_SIM_LT = 4,
  DITRON_SIM_GE = 5,
};
enum DitronSimRmw {
  DITRON_SIM_RMW_ADD = 0,
  DITRON_SIM_RMW_AND = 1,
  DITRON_SIM_RMW_OR = 2,
  DITRON_SIM_RMW_XOR = 3,
  DITRON_SIM_RMW_MAX = 4,  ///< Signed integers.
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
  DITRON_SIM_TF32 = 8, ///< fp32 storage, operands rounded to tf32 (10 fraction bits, nearest, ties away) before multiplying.
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

/// Block barrier with memory ordering at block scope. All threads of the block.
void ditron_sim_barrier(DitronSimThread *self, const DitronSimSite *site);
/// Warp barrier with memory ordering at warp scope. All live threads of the warp.
void ditron_sim_warp_barrier(DitronSimThread *self, const DitronSimSite *site);

/// Warp shuffle of a value of up to 64 bits (upper bits zero). `mask` names the participating lanes.
uint64_t ditron_sim_shuffle(DitronSimThread *self, uint32_t kind, uint64_t value, uint32_t operand, uint64_t mask,
                            const DitronSimSite *site);
/// Bit i of the result is the predicate of lane i, for lanes in `mask`.
uint64_t ditron_sim_ballot(DitronSimThread *self, uint64_t mask, uint32_t predicate, const DitronSimSite *site);

/// Thread-level load of 1, 2, 4 or 8 bytes with order and scope; zero-extended. `spin` is not 0 when the compiler proved that
/// the load is the only effect of an enclosing loop without carried values: such a thread may sleep until the word changes.
uint64_t ditron_sim_ld(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t order, uint32_t scope,
                       uint32_t spin, const DitronSimSite *site);
/// Thread-level store of 1, 2, 4 or 8 bytes with order and scope.
void ditron_sim_st(DitronSimThread *self, void *address, uint64_t value, uint32_t bytes, uint32_t order, uint32_t scope,
                   const DitronSimSite *site);
/// Atomic read-modify-write, value and result as zero-extended bit patterns; no effect and result 0 when predicate is 0.
uint64_t ditron_sim_atomic_rmw(DitronSimThread *self, uint32_t op, uint32_t type, void *address, uint64_t value,
                               uint32_t predicate, uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Atomic compare and swap of 2, 4 or 8 bytes; returns the old value.
uint64_t ditron_sim_atomic_cas(DitronSimThread *self, void *address, uint64_t compare, uint64_t value, uint32_t bytes,
                               uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Blocks the calling thread until the word (4 or 8 bytes, compared as signed) satisfies the comparison; then acquires at scope.
void ditron_sim_wait_until(DitronSimThread *self, const void *address, uint32_t bytes, uint32_t compare, uint64_t value,
                           uint32_t order, uint32_t scope, const DitronSimSite *site);
/// Memory fence of the calling thread.
void ditron_sim_fence(DitronSimThread *self, uint32_t order, uint32_t scope, const DitronSimSite *site);

/// One tl.dot of one warp with tensor-core semantics: for all mi < mTiles, ni < nTiles, ki < kTiles in ascending ki
///   C[mi][ni] += A[mi][ki] * B[ki][ni]
/// of the mma.sync instruction of shape m16n8kX, where X is 16 for F16/BF16, 8 for TF32, 32 for I8. The arrays hold the
/// calling thread's fragment registers, unpacked, one element each, fragment registers fastest:
///   a[(mi * kTiles + ki) * regsA + r], b[(ki * nTiles + ni) * regsB + r], c[(mi * nTiles + ni) * 4 + r]
/// with regsA = 8, regsB = 4 for 16-bit operands (uint16_t patterns); 4 and 2 for TF32 (float); 16 and 8 for I8 (int8_t).
/// Which (row, column) a register of a lane holds is the fragment table of spec/linear_layouts.md 4.8 (layout/Builders.h). c is
/// float, or int32_t for I8. Accumulation is fp32 in ascending k. All lanes of the warp meet once per call.
void ditron_sim_mma(DitronSimThread *self, uint32_t type, uint32_t mTiles, uint32_t nTiles, uint32_t kTiles, const void *a,
                    const void *b, void *c, const DitronSimSite *site);

/// A dot product on the ordinary units: c[m * n + j] += sum over k of a[i * k + l] * b[l * n + j], fp32 (or fp64, int32) arrays of
/// the calling thread alone, ascending k with fused multiply-add. No meeting.
void ditron_sim_fma_dot(DitronSimThread *self, uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a, const void *b,
                        void *c, const DitronSimSite *site);

/// Asynchronous copy of 4, 8 or 16 bytes from global to shared memory; when predicate is 0, zeros are written instead and the
/// source is not read. Complete only after a wait on its group: until then the destination's content is unspecified.
void ditron_sim_async_copy(DitronSimThread *self, void *shared, const void *global, uint32_t bytes, uint32_t predicate,
                           const DitronSimSite *site);
/// Closes the calling thread's current group of asynchronous copies.
void ditron_sim_async_commit(DitronSimThread *self, const DitronSimSite *site);
/// Waits until at most `pending` of the calling thread's newest groups are incomplete.
void ditron_sim_async_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site);

/// Stops the run with a message (device_assert and compiler-emitted traps).
void ditron_sim_trap(DitronSimThread *self, const char *message, const DitronSimSite *site);

#ifdef __cplusplus
}
#endif
#endif // DITRON_SIM_ABI_H
