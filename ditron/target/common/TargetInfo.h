//===- TargetInfo.h - The leaves: all that knows the target -----------------------------------------------*- C++ -*-===//
//
// Lowering to the LLVM dialect is shared by all targets. Whatever differs between them is asked from, or emitted by, this
// interface: one virtual function per primitive, at the granularity of one thread. A GPU target emits an intrinsic where the
// simulator emits a call into its engine. Nothing outside of the target rooms may ask which target it is.
//
// Conventions of the leaves
// - Values have storage types: what `storageType` says, !llvm.ptr for pointers. A leaf that must know what the bits mean
//   (atomics, mma) gets the semantic type besides.
// - A null predicate means "always"; else it is an i1 and the access has no effect where it is false.
// - Leaves run during the first half of the lowering, in which arith, math and scf are still legal: they may create these.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_TARGETINFO_H
#define DITRON_TARGET_COMMON_TARGETINFO_H

#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"
#include "ditron/support/Artifact.h"
#include "ditron/support/Status.h"
#include "ditron/target/common/Emitter.h"
#include "ditron/target/common/HopperLeaves.h"
#include "ditron/target/common/StepClock.h"

#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace ditron::target {

enum class AddressSpace { Global, Shared };

/// A copy from or to another PE by `count` threads, of which this one is number `index` (both i32; bytes is i64, pe i32).
struct SymmetricTransfer {
  mlir::Value to, from, bytes, pe, index, count;
  bool isGet, nonblocking;
};

class TargetInfo;

/// While one lives, the leaves take addresses of global memory for such that may lie in shared memory as well. Patterns make
/// one for an operation that is marked so (dgpu::genericAttrName).
class GenericAddresses {
public:
  GenericAddresses(TargetInfo &target, mlir::Operation *op);
  ~GenericAddresses();
  GenericAddresses(const GenericAddresses &) = delete;

private:
  TargetInfo &target;
  bool before;
};

struct CodegenOptions {
  int optimizationLevel = 2; ///< 0 to 3.
  bool keepLLVMText = false; ///< Also keep LLVM IR (optimised) as text.
  bool keepAssembly = false;
  std::string libdevice; ///< NVIDIA's library of math functions; empty: look for it.
  std::string ptxas;     ///< NVIDIA's assembler; empty: PTX is the result.
};

/// What code generation makes of a lowered module.
struct TargetCode {
  ArtifactCode kind = ArtifactCode::HostObject;
  std::string code;
  std::string llvmText;     ///< When asked for.
  std::string assemblyText; ///< When asked for.
  std::vector<StepTime> steps;          ///< What LLVM did, and how long each took.
  std::vector<StepTime> assemblerSteps; ///< The same of an assembler after it.
};

/// Hints and requirements of one memory access.
struct MemoryFlags {
  tile::CacheModifier cache = tile::CacheModifier::None;
  tile::EvictionPolicy evict = tile::EvictionPolicy::Normal;
  bool isVolatile = false;
  bool isAnnounced = false; ///< Part of a tile access that announceTile has announced.
  /// Loads: whether the thread is the one that stands for all that hold copies of the elements; null: it holds no copies. Given
  /// to targets that ask for it.
  mlir::Value represents = {};
};

/// One tensor core dot of a warp: all fragments of a tl.dot at once.
struct MmaDot {
  layout::MmaKind kind;
  mlir::Type operandType; ///< Semantic element type of A and B.
  int mTiles, nTiles, kTiles;
  /// Fragment registers, innermost: A[mi][ki][r], B[ki][ni][r], C[mi][ni][r].
  llvm::SmallVector<mlir::Value> a, b, c;
};

/// A dot of one thread: C[m][n] += A[m][k] * B[k][n], row-major arrays of values of the accumulator's type.
struct FmaDot {
  mlir::Type accumulatorType; ///< f32, f64 or i32.
  int m, n, k;
  llvm::SmallVector<mlir::Value> a, b, c;
};

class TargetInfo {
public:
  virtual ~TargetInfo();

  //===----------------------------------------------------------------------------------------------------------------===//
  // Questions
  //===----------------------------------------------------------------------------------------------------------------===//

  virtual int warpSize() const = 0;
  /// Banks of shared memory, 4 bytes wide each.
  virtual int sharedBanks() const { return 32; }
  /// The widest access of one thread.
  virtual int maxVectorBytes() const { return 16; }
  virtual bool hasAsyncCopy() const = 0;
  /// The leaves for tensor copies and warpgroup multiplies; null where there are none.
  virtual HopperLeaves *hopper() { return nullptr; }
  /// True if the leaf loadMatrices exists, or storeMatrices.
  virtual bool hasLoadMatrix() const { return false; }
  virtual bool hasStoreMatrix() const { return false; }
  /// Shared memory that one block may have.
  virtual int64_t sharedMemoryLimit() const = 0;
  /// Width of the word that `shuffle` moves: 32 or 64.
  virtual int shuffleBits() const { return 32; }
  /// 32-bit words of one tile that a thread's code may count on to find in registers. GPUs have 255, and code needs some besides.
  virtual int registerWords() const { return 128; }
  /// True if the target computes in this floating-point type. Other types are stored as integers of their width and
  /// computed in f32.
  virtual bool isNativeFloat(mlir::FloatType type) const = 0;
  /// Two f32 as 8-bit floats in an i16, `low` in its low byte, rounded and saturated as truncateFromF32 of FloatFormats.h does; null without an
  /// instruction for it.
  virtual mlir::Value narrowPair(Emitter &, mlir::FloatType, mlir::Value low, mlir::Value high) { return {}; }
  /// The two f32, low byte first, that 8-bit floats in an i16 are; empty without an instruction for it.
  virtual llvm::SmallVector<mlir::Value> widenPair(Emitter &, mlir::FloatType, mlir::Value pair) { return {}; }
  /// True if an integer division by zero (or of the smallest integer by -1) stops the program. On GPUs its result is
  /// unspecified and nothing happens, which kernels rely on in masked-off elements.
  virtual bool divisionTraps() const { return false; }
  /// The type of a value in a register: itself, or an integer for floats that are not native.
  mlir::Type storageType(mlir::Type scalar) const;

  //===----------------------------------------------------------------------------------------------------------------===//
  // Module
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Passes over tile code with layouts for the sake of the program that makes machine code of what the lowering gives.
  virtual std::vector<std::unique_ptr<mlir::Pass>> assemblerPasses() const { return {}; }
  /// Called before the lowering: declares what the leaves call.
  virtual mlir::LogicalResult prepareModule(mlir::ModuleOp module) = 0;
  /// Called after the lowering, for each kernel: calling convention, entry point.
  virtual mlir::LogicalResult finishKernel(mlir::LLVM::LLVMFuncOp kernel) = 0;
  /// Patterns for the math dialect. The default is LLVM intrinsics, and libm calls for what LLVM has none for.
  virtual void populateMathPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns) const;

  /// The symbol by which the runtime starts a kernel.
  virtual std::string entrySymbol(std::string_view kernel) const = 0;
  /// Code of the target from a lowered module, which is not changed.
  virtual Expected<TargetCode> generateCode(mlir::ModuleOp module, const CodegenOptions &options) const = 0;

  //===----------------------------------------------------------------------------------------------------------------===//
  // Who am I. All are i32, except for the base of shared memory.
  //===----------------------------------------------------------------------------------------------------------------===//

  virtual mlir::Value threadId(Emitter &e) = 0;
  virtual mlir::Value laneId(Emitter &e) = 0;
  virtual mlir::Value warpId(Emitter &e) = 0;
  virtual mlir::Value numThreads(Emitter &e) = 0;
  virtual mlir::Value programId(Emitter &e, int axis) = 0;
  virtual mlir::Value numPrograms(Emitter &e, int axis) = 0;
  virtual mlir::Value sharedMemoryBase(Emitter &e) = 0;
  /// The address of an array that a kernel has asked for, at the offset from that base.
  virtual mlir::Value sharedArray(Emitter &e, int64_t offset, int64_t bytes);

  //===----------------------------------------------------------------------------------------------------------------===//
  // Memory
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Loads `count` consecutive elements of a storage type with whole bytes. Where the predicate is false the result is
  /// `other` (one value per element), or zero when that is empty.
  virtual llvm::SmallVector<mlir::Value> loadVector(Emitter &e, mlir::Value ptr, mlir::Type element, int count,
                                                    mlir::Value predicate, mlir::ValueRange other, AddressSpace space,
                                                    const MemoryFlags &flags) = 0;
  virtual void storeVector(Emitter &e, mlir::Value ptr, mlir::ValueRange values, mlir::Value predicate,
                           AddressSpace space, const MemoryFlags &flags) = 0;

  /// Says that this thread will now access a tile in shared memory at `base`: `bytes` bytes of its own in all. Targets that
  /// check or account accesses do it here, once instead of for each piece; layouts cannot leave the tile.
  /// Whether loads shall say who stands for copies.
  virtual bool wantsRepresentatives() const { return false; }
  virtual void announceTile(Emitter &e, mlir::Value base, int64_t bytes, mlir::Value predicate, bool isStore) {}

  /// Returns the old value; unspecified where the predicate is false.
  virtual mlir::Value atomicRmw(Emitter &e, tile::AtomicOp op, mlir::Type semanticType, mlir::Value ptr,
                                mlir::Value value, mlir::Value predicate, tile::MemoryOrder order,
                                tile::MemoryScope scope) = 0;
  virtual mlir::Value atomicCas(Emitter &e, mlir::Value ptr, mlir::Value compare, mlir::Value value,
                                tile::MemoryOrder order, tile::MemoryScope scope) = 0;
  /// Loads one element with memory order. `spin`: the load is the only effect of a loop without carried values.
  virtual mlir::Value orderedLoad(Emitter &e, mlir::Type storage, mlir::Value ptr, tile::MemoryOrder order,
                                  tile::MemoryScope scope, bool spin) = 0;
  /// Relaxed accesses through multicast addresses, at system scope: consecutive words to all ranks, and what dist.multimem_ld_reduce
  /// says, without its mask. False, or nothing, on targets without multicast memory.
  virtual bool multimemStore(Emitter &e, mlir::Value ptr, mlir::ValueRange values) { return false; }
  virtual llvm::SmallVector<mlir::Value> multimemLoadReduce(Emitter &e, mlir::Value ptr, dist::MultimemLdReduceOp op) { return {}; }
  virtual void orderedStore(Emitter &e, mlir::Value ptr, mlir::Value value, tile::MemoryOrder order,
                            tile::MemoryScope scope) = 0;
  /// One access of 2 to 16 bytes to consecutive elements of a type with whole bytes. The default moves up to 8 bytes at a time.
  virtual llvm::SmallVector<mlir::Value> orderedLoadVector(Emitter &e, mlir::Type element, int count, mlir::Value ptr,
                                                           tile::MemoryOrder order, tile::MemoryScope scope);
  virtual void orderedStoreVector(Emitter &e, mlir::Value ptr, mlir::ValueRange values, tile::MemoryOrder order,
                                  tile::MemoryScope scope);
  /// Blocks this thread until the word at `ptr` (as wide as `value`, i32 or i64) satisfies the comparison; gives that word.
  virtual mlir::Value waitUntil(Emitter &e, mlir::Value ptr, dist::Compare compare, mlir::Value value, tile::MemoryOrder order,
                         tile::MemoryScope scope) = 0;
  virtual void fence(Emitter &e, tile::MemoryOrder order, tile::MemoryScope scope) = 0;
  /// A fence that all threads within the scope agree about the order of.
  virtual void sequentialFence(Emitter &e, tile::MemoryScope scope) {
    fence(e, tile::MemoryOrder::AcquireRelease, scope);
  }

  /// True if the target reports ranks that do not exist; then the leaf checkRank is there.
  virtual bool checksRanks() const { return false; }
  /// Reports it when `rank` (i32) is not one of 0 .. numRanks-1; `function` is what the kernel gave it to.
  virtual void checkRank(Emitter &e, mlir::Value rank, mlir::Value numRanks, llvm::StringRef function) {}

  //===----------------------------------------------------------------------------------------------------------------===//
  // OpenSHMEM (ShmemToLLVM.cpp). Addresses are on the PE already.
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Reports a PE that cannot be reached, on targets that check.
  virtual void checkPeer(Emitter &e, mlir::Value world, mlir::Value pe, llvm::StringRef function) {}
  /// Moves bytes, each of the threads its part.
  virtual void transfer(Emitter &e, const SymmetricTransfer &transfer) = 0;
  /// The same, then a signal; all by itself, with no meeting of the threads. False where transfer, fence and signal do it.
  virtual bool transferWithSignal(Emitter &e, const SymmetricTransfer &transfer, mlir::Value signal, mlir::Value value,
                                  dist::SignalOp op) {
    return false;
  }
  /// Sets or adds to a word on a PE, after all that this thread has stored and knows of: a release that reaches as far as `reach`.
  virtual void raiseWord(Emitter &e, mlir::Value word, mlir::Value value, dist::SignalOp op, dist::CommScope reach,
                         mlir::Value pe);
  /// Whether loads and stores reach the PE (i1): here all of them.
  virtual mlir::Value reaches(Emitter &e, mlir::Value world, mlir::Value pe);
  /// Sets or adds to a signal word, unordered.
  virtual void raiseSignal(Emitter &e, mlir::Value signal, mlir::Value value, dist::SignalOp op, mlir::Value pe);
  /// This thread has just raised a signal word, set it or added to it: for targets that note events.
  virtual void noteSignal(Emitter &e, mlir::Value signal, mlir::Value value, dist::SignalOp op) {}
  /// fence or quiet of this thread.
  virtual void orderTransfers(Emitter &e, dist::OrderKind kind) {
    fence(e, tile::MemoryOrder::AcquireRelease, tile::MemoryScope::System);
  }

  /// Starts a copy; where `predicate` is false zeros are written. Threads where `copies` is false (null: none) need do nothing: others
  /// copy the same to the same place.
  virtual void asyncCopy(Emitter &e, mlir::Value shared, mlir::Value global, int bytes, mlir::Value predicate,
                         mlir::Value copies = {}) = 0;
  virtual void asyncCommit(Emitter &e) = 0;
  virtual void asyncWait(Emitter &e, int pending) = 0;

  /// Loads `count` (1, 2 or 4) matrices of 8 rows of 16 bytes from shared memory, all lanes of a warp together: lane
  /// 8 * i + r says where row r of matrix i begins. Result i holds 4 bytes of matrix i: lane l those at position l % 4 of row
  /// l / 4; with `transpose`, the 16-bit elements at position l / 4 of the rows 2 * (l % 4) and the next. Results are i32.
  /// One such load for each of `rows`, results one after the other.
  virtual llvm::SmallVector<mlir::Value> loadMatrices(Emitter &e, mlir::ValueRange rows, int count, bool transpose);
  /// The way back: `words` are what loadMatrices would give.
  virtual void storeMatrices(Emitter &e, mlir::ValueRange rows, int count, bool transpose, mlir::ValueRange words);

  //===----------------------------------------------------------------------------------------------------------------===//
  // Threads together
  //===----------------------------------------------------------------------------------------------------------------===//

  virtual void blockBarrier(Emitter &e) = 0;
  virtual void warpBarrier(Emitter &e) = 0;
  /// The lanes of this warp have all done their accesses up to here; with `later` and `earlier`, pointers that all lanes agree
  /// about, at least if one of those points into the object of one of these.
  virtual void orderLanes(Emitter &e, mlir::ValueRange later, mlir::ValueRange earlier) {}
  /// `word` is an integer of shuffleBits(), `operand` an i32; a null mask means all lanes of the warp, else it is an i32.
  virtual mlir::Value shuffle(Emitter &e, dist::ShuffleKind kind, mlir::Value word, mlir::Value operand,
                              mlir::Value mask) = 0;
  /// i32.
  virtual mlir::Value ballot(Emitter &e, mlir::Value mask, mlir::Value predicate) = 0;

  //===----------------------------------------------------------------------------------------------------------------===//
  // Arithmetic
  //===----------------------------------------------------------------------------------------------------------------===//

  /// The new accumulators, in the order of dot.c.
  virtual llvm::SmallVector<mlir::Value> mma(Emitter &e, const MmaDot &dot) = 0;
  virtual llvm::SmallVector<mlir::Value> fmaDot(Emitter &e, const FmaDot &dot) = 0;
  /// Promises that a condition holds.
  virtual void assume(Emitter &e, mlir::Value condition);

  //===----------------------------------------------------------------------------------------------------------------===//
  // Debugging
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Prints as C's printf; values are i32, i64, f64 or pointers.
  virtual void print(Emitter &e, llvm::StringRef format, mlir::ValueRange values) = 0;
  /// Ends the kernel because of an assertion of its author; the message is formatted as by printf.
  virtual void assertionFailed(Emitter &e, llvm::StringRef format, mlir::ValueRange values) = 0;

  //===----------------------------------------------------------------------------------------------------------------===//
  // Intrinsics
  //===----------------------------------------------------------------------------------------------------------------===//

  /// What Intrinsics.def lists under a name. Reports it where the target has no such thing (reportNoIntrinsic).
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>> intrinsic(Emitter &e, llvm::StringRef name, mlir::ValueRange operands,
                                                                    mlir::DictionaryAttr options) = 0;
  /// Assembly in the form of LLVM's inline assembly ($0, $1, outputs first); operands have the types of their registers. Reports
  /// what the target does not know.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineAsm(Emitter &e, llvm::StringRef text, llvm::StringRef constraints,
                                                                    mlir::ValueRange operands, llvm::ArrayRef<mlir::Type> results,
                                                                    bool isPure) {
    return mlir::emitError(e.getLoc()) << "this target has no assembly";
  }

protected:
  friend class GenericAddresses;
  bool hasGenericAddresses = false; ///< See GenericAddresses.
};

/// The error at the place of the emitter that a target has no intrinsic of this name.
mlir::InFlightDiagnostic reportNoIntrinsic(Emitter &e, llvm::StringRef name);

/// Makes the leaves of a target from its full name, for example "sim:sm_80".
using TargetFactory = std::function<Expected<std::unique_ptr<TargetInfo>>(llvm::StringRef name)>;

/// Each target room offers itself under the part of the name before the colon.
void registerTarget(llvm::StringRef family, TargetFactory factory);
Expected<std::unique_ptr<TargetInfo>> createTargetInfo(llvm::StringRef name);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_TARGETINFO_H
