//===- NvptxTargetInfo.h - The leaves of NVIDIA GPUs ------------------------------------------------------*- C++ -*-===//
//
// The class behind the `cuda` targets, private to this room. Its parts are in several files: who am I and threads together
// (NvptxTargetInfo.cpp), memory (NvptxMemory.cpp), atomics (NvptxAtomics.cpp), waits (NvptxWait.cpp), events for traces (NvptxEvents.cpp), tensor cores
// (NvptxMma.cpp), math (NvptxMath.cpp) and code generation (NvptxCodegen.cpp).
//
// Pointers are generic in our code. Every access casts its address to the global or shared address space, and kernel
// parameters are global pointers cast once at entry: LLVM's InferAddressSpaces then removes the casts, and addresses stay 32
// bits wide in shared memory. Global addresses have the same bits in both forms.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_NVPTXTARGETINFO_H
#define DITRON_TARGET_NVPTX_NVPTXTARGETINFO_H

#include "ditron/target/common/TargetInfo.h"
#include "ditron/target/nvptx/Architecture.h"
#include "ditron/target/nvptx/NvptxHopper.h"

namespace ditron::target {

class NvptxTargetInfo : public TargetInfo {
public:
  explicit NvptxTargetInfo(NvptxArchitecture architecture) : architecture(architecture) {}

  //===--- Questions ------------------------------------------------------------------------------------------------===//

  int warpSize() const override { return 32; }
  bool hasAsyncCopy() const override { return true; }
  bool hasLoadMatrix() const override { return true; }
  bool hasStoreMatrix() const override { return architecture.hasWgmma(); }
  HopperLeaves *hopper() override { return architecture.hasWgmma() ? &hopperLeaves : nullptr; }
  int64_t sharedMemoryLimit() const override { return architecture.sharedBytes; }
  bool isNativeFloat(mlir::FloatType type) const override {
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  }
  mlir::Value narrowPair(Emitter &e, mlir::FloatType format, mlir::Value low, mlir::Value high) override;
  llvm::SmallVector<mlir::Value> widenPair(Emitter &e, mlir::FloatType format, mlir::Value pair) override;

  //===--- Module ---------------------------------------------------------------------------------------------------===//

  std::vector<std::unique_ptr<mlir::Pass>> assemblerPasses() const override;
  mlir::LogicalResult prepareModule(mlir::ModuleOp module) override;
  mlir::LogicalResult finishKernel(mlir::LLVM::LLVMFuncOp kernel) override;
  void populateMathPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns) const override;
  std::string entrySymbol(std::string_view kernel) const override { return std::string(kernel); }
  Expected<TargetCode> generateCode(mlir::ModuleOp module, const CodegenOptions &options) const override;

  //===--- Who am I -------------------------------------------------------------------------------------------------===//

  mlir::Value threadId(Emitter &e) override;
  mlir::Value laneId(Emitter &e) override;
  mlir::Value warpId(Emitter &e) override;
  mlir::Value numThreads(Emitter &e) override;
  mlir::Value programId(Emitter &e, int axis) override;
  mlir::Value numPrograms(Emitter &e, int axis) override;
  mlir::Value sharedMemoryBase(Emitter &e) override;

  //===--- Memory ---------------------------------------------------------------------------------------------------===//

  llvm::SmallVector<mlir::Value> loadVector(Emitter &e, mlir::Value ptr, mlir::Type element, int count,
                                            mlir::Value predicate, mlir::ValueRange other, AddressSpace space,
                                            const MemoryFlags &flags) override;
  void storeVector(Emitter &e, mlir::Value ptr, mlir::ValueRange values, mlir::Value predicate, AddressSpace space,
                   const MemoryFlags &flags) override;
  mlir::Value atomicRmw(Emitter &e, tile::AtomicOp op, mlir::Type semanticType, mlir::Value ptr, mlir::Value value,
                        mlir::Value predicate, tile::MemoryOrder order, tile::MemoryScope scope) override;
  mlir::Value atomicCas(Emitter &e, mlir::Value ptr, mlir::Value compare, mlir::Value value, tile::MemoryOrder order,
                        tile::MemoryScope scope) override;
  mlir::Value orderedLoad(Emitter &e, mlir::Type storage, mlir::Value ptr, tile::MemoryOrder order,
                          tile::MemoryScope scope, bool spin) override;
  llvm::SmallVector<mlir::Value> orderedLoadVector(Emitter &e, mlir::Type element, int count, mlir::Value ptr,
                                                   tile::MemoryOrder order, tile::MemoryScope scope) override;
  void orderedStoreVector(Emitter &e, mlir::Value ptr, mlir::ValueRange values, tile::MemoryOrder order,
                          tile::MemoryScope scope) override;
  bool multimemStore(Emitter &e, mlir::Value ptr, mlir::ValueRange values) override;
  llvm::SmallVector<mlir::Value> multimemLoadReduce(Emitter &e, mlir::Value ptr, dist::MultimemLdReduceOp op) override;
  void orderedStore(Emitter &e, mlir::Value ptr, mlir::Value value, tile::MemoryOrder order,
                    tile::MemoryScope scope) override;
  mlir::Value waitUntil(Emitter &e, mlir::Value ptr, dist::Compare compare, mlir::Value value, tile::MemoryOrder order,
                        tile::MemoryScope scope) override;
  void noteSignal(Emitter &e, mlir::Value signal, mlir::Value value, dist::SignalOp op) override;
  void fence(Emitter &e, tile::MemoryOrder order, tile::MemoryScope scope) override;
  void sequentialFence(Emitter &e, tile::MemoryScope scope) override;
  void transfer(Emitter &e, const SymmetricTransfer &transfer) override;
  void asyncCopy(Emitter &e, mlir::Value shared, mlir::Value global, int bytes, mlir::Value predicate,
                 mlir::Value copies) override;
  void asyncCommit(Emitter &e) override;
  void asyncWait(Emitter &e, int pending) override;
  llvm::SmallVector<mlir::Value> loadMatrices(Emitter &e, mlir::ValueRange rows, int count, bool transpose) override;
  void storeMatrices(Emitter &e, mlir::ValueRange rows, int count, bool transpose, mlir::ValueRange words) override;

  //===--- Threads together -----------------------------------------------------------------------------------------===//

  void blockBarrier(Emitter &e) override;
  void warpBarrier(Emitter &e) override;
  void orderLanes(Emitter &e, mlir::ValueRange later, mlir::ValueRange earlier) override;
  mlir::Value shuffle(Emitter &e, dist::ShuffleKind kind, mlir::Value word, mlir::Value operand,
                      mlir::Value mask) override;
  mlir::Value ballot(Emitter &e, mlir::Value mask, mlir::Value predicate) override;

  //===--- Arithmetic -----------------------------------------------------------------------------------------------===//

  llvm::SmallVector<mlir::Value> mma(Emitter &e, const MmaDot &dot) override;
  llvm::SmallVector<mlir::Value> fmaDot(Emitter &e, const FmaDot &dot) override;

  //===--- Debugging (NvptxDebug.cpp) -----------------------------------------------------------------------------===//

  void print(Emitter &e, llvm::StringRef format, mlir::ValueRange values) override;
  void assertionFailed(Emitter &e, llvm::StringRef format, mlir::ValueRange values) override;

  //===--- Intrinsics (NvptxIntrinsics.cpp) -------------------------------------------------------------------------===//

  mlir::FailureOr<llvm::SmallVector<mlir::Value>> inlineAsm(Emitter &e, llvm::StringRef text, llvm::StringRef constraints,
                                                            mlir::ValueRange operands, llvm::ArrayRef<mlir::Type> results,
                                                            bool isPure) override;
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> intrinsic(Emitter &e, llvm::StringRef name, mlir::ValueRange operands,
                                                            mlir::DictionaryAttr options) override;

private:
  /// The address of an access in its space; a generic one stays what it is.
  mlir::Value addressIn(Emitter &e, mlir::Value ptr, AddressSpace space);
  /// After a load that is the body of a spin loop, when waits are published: what a wait does in its turns.
  void checkSpin(Emitter &e, mlir::Value ptr, mlir::Value seen);

  NvptxArchitecture architecture;
  NvptxHopper hopperLeaves;
  int numWarps = 0; ///< Of a launch of the module being lowered.
  uint32_t clusterBlocks = 1;
  std::optional<uint32_t> residentBlocks; ///< None: whoever loads the code chooses.
  bool publishesWaits = false; ///< Waits that last say what they wait for (NvptxWait.cpp).
  bool notesEvents = false;    ///< Blocks, waits and signals are noted with their times (NvptxEvents.cpp).
  bool boundsWaits = false;    ///< They also give up after a time limit and report.
};

/// A generic pointer cast to an address space (the pointer stays the same place).
mlir::Value inAddressSpace(Emitter &e, mlir::Value ptr, AddressSpace space);
/// ".global", ".shared", or nothing for a generic address.
llvm::StringRef ptxSpace(mlir::Value address);
/// Operand elements of tensor core instructions packed into i32 registers; f32 is rounded to tf32.
llvm::SmallVector<mlir::Value> packMmaOperand(Emitter &e, bool isTf32, mlir::ValueRange elements);

/// ".cta", ".gpu" or ".sys".
llvm::StringRef ptxScope(tile::MemoryScope scope);

/// Waits that say what they wait for (NvptxWait.cpp).
/// Defines the functions that they call when they last; bounded ones give up at last.
void defineLastingWaits(mlir::ModuleOp module, bool isBounded);
/// Defines the functions that note events.
void defineEvents(mlir::ModuleOp module);
/// Notes each block of a lowered kernel, from its entry to its returns.
void noteBlocks(mlir::LLVM::LLVMFuncOp kernel);
/// A wait for an mbarrier that gives up after twice the limit.
void waitForMbarrier(Emitter &e, mlir::Value bar, mlir::Value parity);
/// Replaces the stand-ins for the world view in a kernel by its last argument.
void resolveWorldView(mlir::LLVM::LLVMFuncOp kernel);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_NVPTXTARGETINFO_H
