//===- WidenBlocks.cpp - Two warpgroups for sums that one has no registers for --------------------------------------------===//
//
// A kernel's author says how many warps a block has. Where the sums of a loop's dots fill the registers of one warpgroup, most of a turn is
// spills, ptxas waits for every multiply, and half of the multiprocessor's registers are idle, for shared memory rarely has room for a second such
// block. What a kernel of tiles computes does not depend on the number of its warps: such a block gets a second warpgroup.
//
// Example: dK and dV of attention are two sums of 128 x 128, together 256 registers of each of 128 threads, which have 255.
//
// 1. On the imported program, before anything depends on the number of warps. Kernels with operations of dist stay: threads and warps are visible
//    there.
// 2. The registers of a loop: all sums that its dots carry, and the largest that is none of those, for that is there beside them.
// 3. All dots that warpgroups can do must still be such when there are two: 128 rows.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/WidenBlocks.h"

#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_WIDENBLOCKS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Of 255 that a thread can have, some are for addresses and operands.
constexpr int64_t mostSums = 240;

/// Registers of each thread for the sums of a loop's dots.
int64_t sumsOf(scf::ForOp loop, int64_t threads) {
  int64_t carried = 0, largestOther = 0;
  for (auto dot : loop.getBody()->getOps<tile::DotOp>()) {
    const int64_t bits = tile::elementTypeOf(dot.getType()).getIntOrFloatBitWidth();
    const int64_t registers = dot.getType().getNumElements() * bits / 32 / threads;
    auto argument = dyn_cast<BlockArgument>(dot.getC());
    if (argument && argument.getOwner() == loop.getBody())
      carried += registers;
    else
      largestOther = std::max(largestOther, registers);
  }
  return carried + largestOther;
}

class WidenBlocksPass : public impl::WidenBlocksBase<WidenBlocksPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    constexpr int warps = layout::warpsPerGroup;
    if (!mayHaveTwoWarpgroups(module))
      return;
    const int64_t threads = int64_t(warps) * dgpu::threadsPerWarpOf(module);
    scf::ForOp widest;
    int64_t most = 0;
    module.walk([&](scf::ForOp loop) {
      if (const int64_t sums = sumsOf(loop, threads); sums > most) {
        widest = loop;
        most = sums;
      }
    });
    if (most <= mostSums)
      return;
    module->setAttr(dgpu::numWarpsAttrName, Builder(module).getI32IntegerAttr(2 * warps));
    remark::passed(widest.getLoc(), remark::RemarkOpts::name("warps").category("dgpu-widen-blocks"))
        << llvm::formatv("{0} warps instead of {1}: the loop's sums would take {2} registers of each thread", 2 * warps,
                         warps, most)
               .str();
  }
};

} // namespace

bool mayHaveTwoWarpgroups(ModuleOp module) {
  return module->hasAttr(dgpu::wgmmaAttrName) && dgpu::numWarpsOf(module) == layout::warpsPerGroup &&
         !module
              .walk([](Operation *op) {
                if (isa_and_nonnull<dist::DistDialect>(op->getDialect()))
                  return WalkResult::interrupt();
                auto dot = dyn_cast<tile::DotOp>(op);
                const bool isLost = dot && whyNoWarpgroupDot(dot, layout::warpsPerGroup).empty() &&
                                    !whyNoWarpgroupDot(dot, 2 * layout::warpsPerGroup).empty();
                return isLost ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}
} // namespace ditron::transforms
