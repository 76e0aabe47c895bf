//===- RemoveConversions.cpp - Fewer and cheaper layout conversions -------------------------------------------------------===//
//
// Cleans up after layout assignment, which inserts a conversion wherever neighbours disagree.
//
// Until nothing changes:
// 1. Fold conversions of conversions and conversions to the own layout; merge equal ones.
// 2. Convert the narrow side of a cast: convert(extend(x)) becomes extend(convert(x)), truncate(convert(x)) becomes
//    convert(truncate(x)). So with a block made of fewer elements: convert(broadcast(x)) becomes broadcast(convert(x)) where that
//    is cheaper.
// 3. Rematerialise: when all operations that lead to the converted value are cheap (ranges, splats, constants, arithmetic,
//    shape changes), compute them again in the wanted layout if that costs less than the conversion. Operations that nobody
//    else uses cost nothing: they move.
//    A row that is loaded beside dots of warpgroups, and that only the conversion uses, is loaded in the wanted layout, by several threads: the
//    conversion's barrier would stop warpgroups that compute while others multiply.
// 4. Hoist conversions of loop-invariant values out of loops, beside dots of warpgroups with the cheap operations that lead to them.
// Conversions that stay are reported by dgpu-allocate-shared: pipelining still replaces some.
//
// Before:  %r = tile.arange 0, 64 : tensor<64xi32, #A>           After:  %r = tile.arange 0, 64 : tensor<64xi32, #slice>
//          %c = dgpu.convert_layout %r : #A -> #slice                    %e = tile.expand_dims %r axis 0
//          %e = tile.expand_dims %c axis 0
//
// The cost of one operation is the number of registers that it computes per thread; a conversion costs its shuffles and selects,
// or, through shared memory, a store and a load per 32-bit word and a fixed price for the barrier. Only the order of these
// numbers matters. Not done: rematerialising other loads, or loop arguments in a second layout.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_REMOVECONVERSIONS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;
using dgpu::ConvertLayoutOp;
using layout::DistributedLayout;

namespace {

/// The fixed price of a barrier and the latency of shared memory, in units of one register operation.
constexpr int64_t sharedRoundTripCost = 40;
/// What it costs besides where warpgroups go their own ways between their dots.
constexpr int64_t warpgroupBarrierCost = 200;
/// Slices with more operations than this are not looked at.
constexpr size_t maxSliceOps = 64;

bool standsBesideDots(Operation *op) { return !op->getBlock()->getOps<dgpu::WarpgroupDotOp>().empty(); }

int64_t conversionCost(ConvertLayoutOp convert) {
  layout::ConvertPlan plan = analysis::convertPlanOf(convert);
  switch (plan.cls) {
  case layout::ConvertClass::None: return 0;
  case layout::ConvertClass::Select: return plan.selects;
  case layout::ConvertClass::Shuffle: return 4 * int64_t(plan.shuffles) + plan.selects;
  case layout::ConvertClass::Shared:
  case layout::ConvertClass::CrossBlock: break;
  }
  auto type = cast<RankedTensorType>(convert.getResult().getType());
  int64_t registers = dgpu::layoutOf(convert.getSource().getType()).numRegs() + dgpu::layoutOf(type).numRegs();
  int64_t words = std::max<int64_t>(1, analysis::sharedElementBytes(type.getElementType()) / 4);
  return sharedRoundTripCost + registers * words + (standsBesideDots(convert) ? warpgroupBarrierCost : 0);
}

/// A row that is only used by a conversion beside it: it may be loaded in the layout that is wanted instead.
bool isLoadOfOwnRow(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  auto type = load ? dyn_cast<RankedTensorType>(load.getType()) : RankedTensorType();
  if (!type || type.getRank() != 1 || load.getIsVolatile() || !standsBesideDots(load))
    return false;
  for (Operation *user = op; user->hasOneUse();) {
    user = *user->user_begin();
    if (user->getBlock() != op->getBlock())
      return false;
    if (isa<ConvertLayoutOp>(user))
      return true;
    if (!isRematerialisable(user))
      return false;
  }
  return false;
}

/// The operations to compute again, each with the layout of its result, operands before users.
struct Slice {
  llvm::MapVector<Value, DistributedLayout> values;
  int64_t cost = 0;
};

/// Rewrites one kernel.
class ConversionRemoval {
public:
  explicit ConversionRemoval(func::FuncOp kernel) : kernel(kernel) {}

  void run() {
    // Every rewrite removes a conversion, narrows one or moves one outward, so this ends; the bound is a safety net.
    for (int round = 0; round < 16; ++round) {
      bool changed = fold();
      changed |= narrow();
      changed |= shrink();
      changed |= rematerialise();
      changed |= hoist();
      mergeEqual();
      if (!changed)
        break;
    }
  }

private:
  SmallVector<ConvertLayoutOp> conversions() {
    SmallVector<ConvertLayoutOp> found;
    kernel.walk([&](ConvertLayoutOp convert) { found.push_back(convert); });
    return found;
  }

  static ConvertLayoutOp createConvert(OpBuilder &builder, Location loc, Value source,
                                       const DistributedLayout &layout) {
    auto type = cast<RankedTensorType>(source.getType());
    auto wanted = dgpu::withLayout(type, dgpu::LayoutAttr::get(type.getContext(), layout));
    return ConvertLayoutOp::create(builder, loc, wanted, source, IntegerAttr());
  }

  bool fold() {
    bool changed = false;
    for (ConvertLayoutOp convert : conversions()) {
      while (auto inner = convert.getSource().getDefiningOp<ConvertLayoutOp>()) {
        convert.getSourceMutable().assign(inner.getSource());
        changed = true;
      }
      if (convert.getSource().getType() == convert.getResult().getType()) {
        convert.getResult().replaceAllUsesWith(convert.getSource());
        changed = true;
      }
      if (convert->use_empty()) {
        convert.erase();
        changed = true;
      }
    }
    return changed;
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Casts
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Bits of an element that a cast reads and writes; nothing if `op` is not an elementwise operation of one operand.
  static std::optional<std::pair<int, int>> castWidths(Operation *op) {
    if (!op || op->getNumOperands() != 1 || op->getNumResults() != 1 || !isElementwise(op) || !isMemoryEffectFree(op) ||
        !isTensor(op->getOperand(0)))
      return std::nullopt;
    return std::pair(analysis::sharedElementBits(tile::elementTypeOf(op->getOperand(0).getType())),
                     analysis::sharedElementBits(tile::elementTypeOf(op->getResult(0).getType())));
  }

  bool narrow() {
    bool changed = false;
    for (ConvertLayoutOp convert : conversions()) {
      Operation *definition = convert.getSource().getDefiningOp();
      const DistributedLayout target = dgpu::layoutOf(convert.getResult().getType());
      if (auto widths = castWidths(definition); widths && widths->first < widths->second && definition->hasOneUse()) {
        // convert(extend(x)) -> extend(convert(x))
        OpBuilder builder(convert);
        Value converted = createConvert(builder, convert.getLoc(), definition->getOperand(0), target);
        Operation *extend = builder.clone(*definition);
        extend->setOperand(0, converted);
        extend->getResult(0).setType(convert.getResult().getType());
        convert.getResult().replaceAllUsesWith(extend->getResult(0));
        convert.erase();
        definition->erase();
        changed = true;
        continue;
      }
      if (!convert->hasOneUse())
        continue;
      Operation *user = *convert->user_begin();
      if (auto widths = castWidths(user); widths && widths->first > widths->second) {
        // truncate(convert(x)) -> convert(truncate(x))
        OpBuilder builder(user);
        user->setOperand(0, convert.getSource());
        setLayout(user->getResult(0), dgpu::layoutOf(convert.getSource().getType()));
        builder.setInsertionPointAfter(user);
        auto after = createConvert(builder, convert.getLoc(), user->getResult(0), target);
        user->getResult(0).replaceAllUsesExcept(after.getResult(), after);
        convert.erase();
        changed = true;
      }
    }
    return changed;
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Broadcasts
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Converts what is broadcast, not the block: a product of two broadcasts of 128x32x32 elements needed 256 KB of shared memory.
  bool shrink() {
    bool changed = false;
    for (ConvertLayoutOp convert : conversions()) {
      auto broadcast = convert.getSource().getDefiningOp<tile::BroadcastOp>();
      if (!broadcast)
        continue;
      const DistributedLayout target = dgpu::layoutOf(convert.getResult().getType());
      const std::optional<DistributedLayout> wanted = operandLayout(broadcast.getSourceMutable(), target);
      if (!wanted)
        continue;
      OpBuilder builder(convert);
      ConvertLayoutOp small = createConvert(builder, convert.getLoc(), broadcast.getSource(), *wanted);
      if (conversionCost(small) >= conversionCost(convert)) {
        small.erase();
        continue;
      }
      Operation *spread = builder.clone(*broadcast);
      spread->setOperand(0, small);
      spread->getResult(0).setType(convert.getResult().getType());
      convert.getResult().replaceAllUsesWith(spread->getResult(0));
      convert.erase();
      if (broadcast->use_empty())
        broadcast.erase();
      changed = true;
    }
    return changed;
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Rematerialisation
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Adds to `slice` everything that must be computed again for `value` to have `layout`. False if that is impossible.
  bool collect(Value value, const DistributedLayout &layout, Slice &slice) {
    if (dgpu::layoutOf(value.getType()) == layout)
      return true;
    if (auto found = slice.values.find(value); found != slice.values.end())
      return found->second == layout;
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getNumResults() != 1 || slice.values.size() >= maxSliceOps)
      return false;
    if (auto convert = dyn_cast<ConvertLayoutOp>(definition))
      return collect(convert.getSource(), layout, slice);
    if (!isRematerialisable(definition) && !isLoadOfOwnRow(definition))
      return false;
    for (OpOperand &operand : definition->getOpOperands())
      if (auto wanted = operandLayout(operand, layout); wanted && !collect(operand.get(), *wanted, slice))
        return false;
    slice.values.insert({value, layout});
    return true;
  }

  /// What the slice costs beyond what disappears with the conversion.
  static int64_t costOf(const Slice &slice, ConvertLayoutOp convert) {
    llvm::SmallDenseSet<Operation *> leaving{convert};
    int64_t cost = 0;
    // Users come after operands in the slice, so that walking backward knows all users first.
    for (auto &[value, layout] : llvm::reverse(slice.values)) {
      Operation *op = value.getDefiningOp();
      if (llvm::all_of(op->getUsers(), [&](Operation *user) { return leaving.contains(user); })) {
        leaving.insert(op);
        // A layout with more copies than the old one computes more.
        int64_t more = layout.numRegs() - dgpu::layoutOf(value.getType()).numRegs();
        cost += isElementwise(op) || isa<tile::LoadOp>(op) ? std::max<int64_t>(0, more) : 0;
      } else if (isElementwise(op) || isa<tile::ArangeOp>(op)) {
        cost += layout.numRegs();
      }
    }
    return cost;
  }

  bool rematerialise() {
    bool changed = false;
    for (ConvertLayoutOp convert : conversions()) {
      Slice slice;
      const DistributedLayout target = dgpu::layoutOf(convert.getResult().getType());
      int64_t price = conversionCost(convert);
      if (!collect(convert.getSource(), target, slice) || slice.values.empty() || costOf(slice, convert) > price)
        continue;
      emit(slice, convert);
      changed = true;
    }
    if (changed)
      eraseDead();
    return changed;
  }

  /// `value` in `layout`, after its part of the slice was emitted; walks through conversions as `collect` did.
  static Value inLayout(Value value, const DistributedLayout &layout, const Slice &slice, const IRMapping &emitted) {
    while (true) {
      if (dgpu::layoutOf(value.getType()) == layout)
        return value;
      if (slice.values.contains(value))
        return emitted.lookup(value);
      value = value.getDefiningOp<ConvertLayoutOp>().getSource();
    }
  }

  void emit(const Slice &slice, ConvertLayoutOp convert) {
    IRMapping emitted;
    for (auto &[value, layout] : slice.values) {
      Operation *op = value.getDefiningOp();
      // Beside the original, so that loop-invariant values stay outside.
      OpBuilder builder(op);
      builder.setInsertionPointAfter(op);
      Operation *copy = op->clone();
      for (auto [original, operand] : llvm::zip(op->getOpOperands(), copy->getOpOperands()))
        if (auto wanted = operandLayout(original, layout))
          operand.set(inLayout(original.get(), *wanted, slice, emitted));
      builder.insert(copy);
      setLayout(copy->getResult(0), layout);
      emitted.map(value, copy->getResult(0));
    }
    const DistributedLayout target = dgpu::layoutOf(convert.getResult().getType());
    convert.getResult().replaceAllUsesWith(inLayout(convert.getSource(), target, slice, emitted));
    convert.erase();
  }

  void eraseDead() {
    SmallVector<Operation *> order;
    kernel.walk([&](Operation *op) { order.push_back(op); });
    for (Operation *op : llvm::reverse(order))
      if (op->getNumRegions() == 0 && isOpTriviallyDead(op))
        op->erase();
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Place
  //===----------------------------------------------------------------------------------------------------------------===//

  bool hoist() {
    bool changed = false;
    for (ConvertLayoutOp convert : conversions())
      while (auto loop = dyn_cast<LoopLikeOpInterface>(convert->getParentOp())) {
        llvm::SetVector<Operation *> chain;
        if (!isInvariant(convert.getSource(), loop, chain) || !(chain.empty() || standsBesideDots(convert)))
          break;
        for (Operation *op : chain)
          op->moveBefore(loop);
        convert->moveBefore(loop);
        changed = true;
      }
    return changed;
  }

  /// True if a value is known before the loop, or computed there by what may as well be done before it: `chain`, operands first.
  static bool isInvariant(Value value, LoopLikeOpInterface loop, llvm::SetVector<Operation *> &chain) {
    if (loop.isDefinedOutsideOfLoop(value))
      return true;
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getParentOp() != loop || !isRematerialisable(definition) ||
        chain.size() >= maxSliceOps)
      return false;
    for (Value operand : definition->getOperands())
      if (!isInvariant(operand, loop, chain))
        return false;
    chain.insert(definition);
    return true;
  }

  void mergeEqual() {
    IRRewriter rewriter(kernel.getContext());
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
  }

  func::FuncOp kernel;
};

class RemoveConversionsPass : public impl::RemoveConversionsBase<RemoveConversionsPass> {
  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-remove-conversions")))
      return signalPassFailure();
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (!kernel.isExternal())
        ConversionRemoval(kernel).run();
  }
};

} // namespace
} // namespace ditron::transforms
