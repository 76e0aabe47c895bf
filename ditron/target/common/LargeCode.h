//===- LargeCode.h - What LLVM is spared for long straight code --------------------------------------------*- C++ -*-===//
//
// Tiles with hundreds of elements per thread, and kernels of thousands of lines, become basic blocks of tens of thousands of
// instructions. Some of LLVM's passes take time quadratic in the length of a block, or exponential in the depth of its
// expressions; for such code they are left out or bounded, on all targets alike.
//
// Measured (user time): a chain of four 256x256 dots on 8 warps for the simulator, 30,000 instructions: SLP vectoriser 9.7 s of
// 12 s, machine scheduler 3.9 of 6.5 s. A sort of 4096 elements, 3,800 instructions of selects of comparisons of selects: SLP
// vectoriser 3.2 s of 3.3 s, and 0.1 s when it looks 8 levels deep and not 12.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_LARGECODE_H
#define DITRON_TARGET_COMMON_LARGECODE_H

#include "llvm/IR/OptBisect.h"

#include <cstddef>

namespace llvm {
class Module;
class PipelineTuningOptions;
} // namespace llvm

namespace ditron::target {

/// Instructions of a basic block above which code is large. The GEMM kernels have 500.
inline constexpr size_t largeBlock = 2000;

/// The same before optimisation, which removes most of what lowering repeats.
inline constexpr size_t largeUnoptimisedBlock = 4 * largeBlock;

/// Instructions of a basic block, after optimisation, above which passes that only polish it are left out (LargeCodeGate).
inline constexpr size_t hugeBlock = 4 * largeBlock;

/// Instructions in the largest basic block of a module.
size_t largestBlock(const llvm::Module &module);

/// Bounds what the vectoriser of straight code does: how deep it looks, and that it leaves large code alone. To be called before
/// optimisation.
void boundVectoriser(llvm::PipelineTuningOptions &tuning, const llvm::Module &module);

/// Leaves passes of a code generator out of modules with huge blocks; to be set in the module's context before code is generated.
///
/// Strength reduction of straight code and reassociation of sums of several values ask scalar evolution for each expression, whose
/// answers grow with the length of the chain: 16,000 integer assignments took 4 of 6 s and 0.8 of 1.1 GB there. The list scheduler
/// after register allocation is quadratic: 14 of 16 s for a chain of four 256x256 dots on the simulator.
class LargeCodeGate final : public llvm::OptPassGate {
public:
  explicit LargeCodeGate(const llvm::Module &module) : isHuge(largestBlock(module) > hugeBlock) {}

  bool isEnabled() const override { return isHuge; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef unit) const override;

private:
  bool isHuge;
};

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_LARGECODE_H
