//===- LoadOperands.cpp - Operands that a loop does not change, read to registers once --------------------------------------===//
//
// After dgpu-early-dots. A warpgroup dot whose A lies in shared memory reads it for each instruction. One of m64nNk32B reads 64 + N rows of 32 bytes, 128
// bytes a cycle, and multiplies for N / 2 cycles: with few columns the tensor core waits for shared memory,
//
//   (64 + N) * 32 / 128 > N / 2    <=>    N < 64
//
// as in a loop over tiles of 32 rows. An A that such a loop does not change is read to registers in front of it, as long as threads have them:
//
//   for { s = warpgroup_dot %k[0], %q[slot]; wait; ... }      becomes      %a = buffer_load %k[0]
//                                                                          for { s = warpgroup_dot %a, %q[slot]; wait; ... }
//
// 1. Dots of a loop's own block, outside of partitions, that are waited for in their turn: then no dot that reads the registers is in flight behind
//    the loop. The buffer is not written in the loop.
// 2. A is loaded as long as the registers of a turn (LoopResources.h), with those loaded so far, are at most `mostRegisters`, and no fewer blocks reside
//    on a multiprocessor for it. The order is that of the dots.
// Not done: parts of an operand. The buffer stays where other loops read it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Wgmma.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LOADOPERANDS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Bytes that shared memory gives in a cycle.
constexpr int64_t sharedBytesPerCycle = 128;

/// True if reading both operands of an instruction from shared memory takes longer than multiplying them.
bool waitsForSharedMemory(dgpu::WarpgroupDotOp dot) {
  const int64_t columns = layout::wgmmaColumns(dgpu::layoutOf(dot.getType()));
  const int64_t readCycles = (layout::wgmmaRows + columns) * layout::wgmmaStepBytes / sharedBytesPerCycle;
  const int64_t multiplyCycles = columns / 2;
  return readCycles > multiplyCycles;
}

/// True if something in the loop writes the buffer.
bool isWrittenIn(scf::ForOp loop, Value buffer) {
  return loop
      .walk([&](Operation *op) {
        const bool isRead = isa<dgpu::BufferLoadOp, dgpu::WarpgroupDotOp, dgpu::BufferPermuteOp>(op);
        const bool isUser = llvm::any_of(op->getOperands(), [&](Value operand) {
          return isa<dgpu::BufferType>(operand.getType()) && allocationOf(operand) == buffer;
        });
        return isUser && !isRead ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if the dot is complete when its turn is.
bool isWaitedForInItsTurn(dgpu::WarpgroupDotOp dot) {
  return dot->hasOneUse() && isa<dgpu::WarpgroupWaitOp>(*dot->user_begin()) &&
         (*dot->user_begin())->getBlock() == dot->getBlock();
}

/// Why the dot's A stays in shared memory, or nothing.
std::string whyNot(dgpu::WarpgroupDotOp dot, scf::ForOp loop) {
  if (dot.getPromoteElems())
    return "its sums are promoted";
  if (tile::elementTypeOf(dot.getB().getType()).isF32())
    return "in registers fp32 is not what it is in shared memory";
  if (!loop.isDefinedOutsideOfLoop(dot.getA()) || !loop.isDefinedOutsideOfLoop(dot.getSlotA()) ||
      isWrittenIn(loop, allocationOf(dot.getA())))
    return "another tile in each turn";
  if (!isWaitedForInItsTurn(dot))
    return "the dot runs into the next turn";
  return {};
}

/// The layout in registers that the dot's A has.
RankedTensorType operandType(dgpu::WarpgroupDotOp dot) {
  auto buffer = cast<dgpu::BufferType>(dot.getA().getType());
  const int bits = analysis::sharedElementBits(buffer.getElementType());
  auto layout = layout::wgmmaOperandA(dgpu::layoutOf(dot.getType()), buffer.getShape()[1], bits);
  return RankedTensorType::get(buffer.getShape(), buffer.getElementType(),
                               dgpu::LayoutAttr::get(dot.getContext(), *layout));
}

class LoadOperandsPass : public impl::LoadOperandsBase<LoadOperandsPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      const DotLoops dots(kernel);
      const int64_t most = mostRegistersOf(kernel, dots);
      for (scf::ForOp loop : dots.loops)
        visit(loop, most);
    }
  }

  /// The registers of a turn that cost no block on a multiprocessor, beside what the kernel's loops take as they are.
  int64_t mostRegistersOf(func::FuncOp kernel, const DotLoops &dots) {
    const int64_t blocks = residentBlocks(kernel, dots.registers, dots.bytes, limitBytes);
    int64_t most = std::max<int64_t>(dots.registers, mostRegisters);
    while (most > dots.registers && residentBlocks(kernel, most, dots.bytes, limitBytes) < blocks)
      --most;
    return std::min<int64_t>(most, mostRegisters);
  }

  void visit(scf::ForOp loop, int64_t most) {
    // ptxas may give the registers of an operand that a loop does not change to other values if a branch stands beside dots in flight.
    if (!loop.getBody()->getOps<scf::IfOp>().empty())
      return;
    const auto dots = llvm::to_vector(loop.getBody()->getOps<dgpu::WarpgroupDotOp>());
    int64_t registers = registersOfTurn(loop);
    llvm::MapVector<std::pair<Value, Value>, Value> loaded;
    for (dgpu::WarpgroupDotOp dot : dots) {
      if (!dot.getSlotA() || !waitsForSharedMemory(dot))
        continue;
      const RankedTensorType type = operandType(dot);
      Value &tensor = loaded[{dot.getA(), dot.getSlotA()}];
      std::string reason = whyNot(dot, loop);
      const int64_t more = tensor ? 0 : registersOf(type);
      if (reason.empty() && registers + more > most)
        reason = llvm::formatv("it would take {0} registers of each thread beside {1}", more, registers).str();
      if (!reason.empty()) {
        remark::missed(dot.getLoc(), remark::RemarkOpts::name("operand").category("dgpu-load-operands"))
            << "A is read from shared memory for each multiply: " + reason;
        continue;
      }
      if (!tensor) {
        OpBuilder builder(loop);
        tensor = dgpu::BufferLoadOp::create(builder, dot.getLoc(), type, dot.getA(), dot.getSlotA());
        registers += more;
      }
      dot.getAMutable().assign(tensor);
      dot.getSlotAMutable().clear();
      remark::passed(dot.getLoc(), remark::RemarkOpts::name("operand").category("dgpu-load-operands"))
          << llvm::formatv("A is in {0} registers of each thread, beside {1}", registersOf(type), registers - more)
                 .str();
    }
  }
};

} // namespace
} // namespace ditron::transforms
