//===- VerifyRegisters.cpp - Tiles that no thread can hold ----------------------------------------------*- C++ -*-===//
//
// The pass dgpu-verify-registers, run when layouts are final. A tile becomes one value per element that a thread holds,
// so the code grows with the tile, and code generators take time more than linear in straight code: 3 s for a softmax
// of 1024 elements per thread, 11 s for 2048, a minute for 4096. No GPU runs such kernels well either: their threads
// have 255 registers, and the rest is spilled.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/Passes.h"
#include "ditron/analysis/ResourceLimit.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"

#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace ditron::analysis {
#define GEN_PASS_DEF_VERIFYREGISTERS
#include "ditron/analysis/AnalysisPasses.h.inc"

namespace {

/// Registers of 32 bits. Small elements take a whole one each.
int64_t registersOf(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  return int64_t(dgpu::layoutOf(type).numRegs()) * std::max<int64_t>(1, bits / 32);
}

/// "fp32[128, 64]".
std::string nameOf(RankedTensorType type) {
  Type element = type.getElementType();
  std::string text;
  if (isa<tile::PointerType>(element))
    text = "pointers";
  else if (element.isBF16())
    text = "bf16";
  else if (element.isF16() || element.isF32() || element.isF64())
    text = ("fp" + Twine(element.getIntOrFloatBitWidth())).str();
  else if (element.isInteger())
    text = ("int" + Twine(element.getIntOrFloatBitWidth())).str();
  else
    llvm::raw_string_ostream(text) << element;
  text += "[";
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    text += ((i == 0 ? "" : ", ") + Twine(size)).str();
  return text + "]";
}

struct VerifyRegistersPass : public impl::VerifyRegistersBase<VerifyRegistersPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkLayouts(getOperation(), "dgpu-verify-registers")))
      return signalPassFailure();
    Operation *largest = nullptr;
    RankedTensorType largestType;
    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType());
            type && (!largest || registersOf(type) > registersOf(largestType))) {
          largest = op;
          largestType = type;
        }
    });
    markAllAnalysesPreserved();
    if (!largest || registersOf(largestType) <= limit)
      return;
    report(largest, largestType);
    signalPassFailure();
  }

  void report(Operation *op, RankedTensorType type) {
    auto module = op->getParentOfType<ModuleOp>();
    const int64_t warps = dgpu::numWarpsOf(module), registers = registersOf(type);
    const int64_t needed = llvm::bit_ceil(uint64_t(warps * registers + limit - 1) / uint64_t(limit));
    InFlightDiagnostic diagnostic = op->emitError();
    markResourceLimit(diagnostic);
    diagnostic << "the tile " << nameOf(type) << " takes " << registers << " registers of each thread, on " << warps
               << (warps == 1 ? " warp" : " warps") << "; at most " << limit.getValue()
               << " are accepted (GPUs have 255): use smaller tiles";
    // Blocks have at most 1024 threads.
    if (needed * dgpu::threadsPerWarpOf(module) <= 1024)
      diagnostic << " or at least " << needed << " warps";
  }
};

} // namespace
} // namespace ditron::analysis
