//===- KeepOperands.cpp - Wide operands that outlive a loop stay in shared memory ------------------------------------------===//
//
// After layouts and conversions, before loads are pipelined. An operand of a single-warp dot that is computed before the dot's loop lives in
// registers through all of it; a tile of few rows and a great depth (Q of attention of few queries: 16 rows of 576) takes more of them than a thread
// can spare, since every warp that computes other columns has all of it.
//
//   %a = convert_layout %q            becomes     buffer_store %q, %buf[0]
//   for { dot %a, ... }                           for { %a = buffer_load %buf[0]; dot %a, ... }
//
// The loop's dots then read it piece by piece, as they do what a ring brings. Shared memory is read once more for it in each turn: only operands of at
// least `leastRegisters` registers are worth that. Operands that would take more than a quarter of shared memory stay, so that rings have room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"
#include "ditron/layout/SharedLayout.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_KEEPOPERANDS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Of 255 that a thread can have.
constexpr int64_t leastRegisters = 96;

/// Rows as they are, with the swizzle that makes the reads cheapest.
layout::SharedLayout layoutFor(RankedTensorType type) {
  const layout::Shape shape(type.getShape().begin(), type.getShape().end());
  const int bits = analysis::sharedElementBits(type.getElementType());
  const std::vector<int> order = layout::rowMajorOrder(2);
  layout::SharedLayout best = layout::plainShared(shape, order, bits);
  int64_t leastCost = -1;
  for (int swizzle = layout::largestSwizzle(shape, order, bits); swizzle >= 32; swizzle /= 2) {
    layout::SharedLayout candidate = layout::swizzledShared(shape, order, bits, swizzle);
    const int64_t cost = layout::countBankConflicts(dgpu::layoutOf(type), candidate).wavefronts;
    if (leastCost < 0 || cost < leastCost) {
      best = candidate;
      leastCost = cost;
    }
  }
  return best;
}

class KeepOperandsPass : public impl::KeepOperandsBase<KeepOperandsPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    SmallVector<OpOperand *> operands;
    getOperation().walk([&](tile::DotOp dot) {
      for (unsigned number : {0, 1})
        if (isWide(dot->getOpOperand(number)))
          operands.push_back(&dot->getOpOperand(number));
    });
    for (OpOperand *operand : operands)
      keep(*operand);
  }

  bool isWide(OpOperand &operand) const {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    auto loop = operand.getOwner()->getParentOfType<scf::ForOp>();
    if (!type || type.getRank() != 2 || !loop || !loop.isDefinedOutsideOfLoop(operand.get()))
      return false;
    const int64_t bytes = type.getNumElements() * analysis::sharedElementBytes(type.getElementType());
    return registersOf(type) >= leastRegisters && bytes <= limitBytes / 4;
  }

  void keep(OpOperand &operand) {
    Operation *dot = operand.getOwner();
    auto type = cast<RankedTensorType>(operand.get().getType());
    Location loc = operand.get().getLoc();
    auto loop = dot->getParentOfType<scf::ForOp>();
    // What is converted to the operand's layout can be stored as it is.
    Value source = operand.get();
    while (auto convert = source.getDefiningOp<dgpu::ConvertLayoutOp>())
      source = convert.getSource();
    if (!loop.isDefinedOutsideOfLoop(source))
      return;
    OpBuilder builder(loop);
    auto attribute = dgpu::SharedLayoutAttr::get(type.getContext(), layoutFor(type));
    auto buffer = dgpu::BufferAllocOp::create(
        builder, loc, dgpu::BufferType::get(type.getContext(), 1, type.getShape(), type.getElementType(), attribute),
        IntegerAttr());
    Value slot = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    dgpu::BufferStoreOp::create(builder, loc, source, buffer, slot);
    builder.setInsertionPoint(dot);
    operand.set(dgpu::BufferLoadOp::create(builder, loc, type, buffer, slot));
    remark::passed(loc, remark::RemarkOpts::name("operand").category("dgpu-keep-operands"))
        << llvm::formatv("kept in shared memory: {0} bytes instead of {1} registers of each thread",
                         buffer.getType().getSlotBytes(), registersOf(type))
               .str();
  }
};

} // namespace
} // namespace ditron::transforms
