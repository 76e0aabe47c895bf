//===- WarpgroupDots.cpp - Dots of ordinary kernels on warpgroups ---------------------------------------------------------===//
//
// On targets with warpgroup dots, those that dgpu-specialize-warps left: operands that come by pointers or from registers. Works
// on plain tile IR, before layouts.
//
// 1. B goes to a buffer in shared memory. It must be loaded in the dot's block, for dots alone (dgpu-pipeline-loops then copies it straight to a
//    ring in that buffer's layout), or be known before the loop (then it is stored once). The layout follows the contiguous
//    dimension of the load. Several dots read one buffer, each as it lies or transposed, also those of later loops if it is known before the first.
// 2. A goes to a buffer under the same conditions; otherwise it is read from registers, which suits what other dots computed.
// 3. Each dot is waited for at once; dgpu-pipeline-loops lets dots that only accumulate run into the next iteration.
//
//   %d = tile.dot %a, %b, %c     becomes     buffer_store %a, %bufA[0]; buffer_store %b, %bufB[0]; fence_async
//                                            %r = warpgroup_dot %bufA[0], %bufB[0], %c; %d = warpgroup_wait 0, %r
// 4. Operands of fp32 stay in registers, where they are rounded to tf32: of those in shared memory the hardware cuts bits off.
// 5. Operands that would not fit shared memory any more stay where they are: in registers, with a dot of single warps.
// Dots with other operands stay with the instructions of single warps, which read registers anyway.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/layouts/MemoryLayouts.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_WARPGROUPDOTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// How an operand gets to shared memory.
struct Staging {
  dgpu::BufferType type;
  Operation *before = nullptr; ///< The store's place.
  Operation *load = nullptr;   ///< In the dot's block, whose other dots may read the same buffer; else null.
  Value buffer;                ///< Where it lies already, for such a dot or one of an earlier loop; else null.
};

/// Rewrites the dots of one kernel.
class DotRewriter {
public:
  DotRewriter(func::FuncOp kernel, const analysis::AxisInfoAnalysis &axisInfo, int warps, int64_t limitBytes)
      : kernel(kernel), axisInfo(axisInfo), warps(warps), limitBytes(limitBytes) {}

  void run() {
    SmallVector<tile::DotOp> dots;
    kernel.walk([&](tile::DotOp dot) { dots.push_back(dot); });
    for (tile::DotOp dot : dots) {
      std::string reason = whyNoWarpgroupDot(dot, warps);
      if (reason.empty())
        reason = rewrite(dot);
      if (!reason.empty())
        remark::missed(dot.getLoc(), remark::RemarkOpts::name("dot").category("dgpu-warpgroup-dots"))
            << "no warpgroup dot: " + reason;
    }
  }

private:
  /// Returns why not, or nothing.
  std::string rewrite(tile::DotOp dot) {
    if (tile::elementTypeOf(dot.getB().getType()).isF32())
      return "fp32 in shared memory would be cut to tf32; only tensor copies round it on the way there";
    std::optional<Staging> b = stagingOf(dot, 1);
    if (!b)
      return "B is computed in the loop, or its elements can only be read along K";
    std::optional<Staging> a = stagingOf(dot, 0);
    if (!reserve(dot, a, b))
      return "its operands do not fit shared memory";

    OpBuilder builder(dot);
    Location loc = dot.getLoc();
    Value slot = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    Value operandA = a ? stage(dot, 0, *a) : dot.getA();
    Value operandB = stage(dot, 1, *b);
    auto started = dgpu::WarpgroupDotOp::create(builder, loc, operandA, a ? slot : Value(), operandB, slot, dot.getC(),
                                                Value(), promotionOf(dot));
    auto waited = dgpu::WarpgroupWaitOp::create(builder, loc, ValueRange(started.getResult()), 0);
    dot.getResult().replaceAllUsesWith(waited.getResult(0));
    remark::passed(loc, remark::RemarkOpts::name("dot").category("dgpu-warpgroup-dots"))
        << (a ? "warpgroup dot" : "warpgroup dot with A in registers");
    Value oldA = dot.getA(), oldB = dot.getB();
    takePlace(dot, started);
    dot.erase();
    eraseUnusedTransposes(oldA);
    eraseUnusedTransposes(oldB);
    return {};
  }

  /// Counts the bytes of a dot's operands for the outermost loop that it stands in, before which those are stored that are known then. False, and
  /// nothing counted, if they would be too many.
  bool reserve(tile::DotOp dot, const std::optional<Staging> &a, const std::optional<Staging> &b) {
    int64_t &reserved = bytesOf[placeOf(dot)];
    int64_t bytes = reserved;
    for (const std::optional<Staging> &staging : {a, b}) {
      if (!staging || staging->buffer)
        continue;
      auto loop = dyn_cast<scf::ForOp>(staging->before->getParentOp());
      const bool isInLoop = staging->before == dot && loop;
      bytes += staging->type.getSlotBytes() * (isInLoop ? pipelineStagesOf(loop) : 1);
    }
    if (bytes > limitBytes)
      return false;
    reserved = bytes;
    return true;
  }

  /// What is known of a dot that stands in the kernel's block itself is known of the one that replaces it.
  void takePlace(Operation *before, Operation *now) {
    if (auto found = bytesOf.find(before); found != bytesOf.end()) {
      const int64_t bytes = found->second;
      bytesOf.erase(found);
      bytesOf[now] = bytes;
    }
    for (auto &[value, operand] : kept)
      if (operand.lastPlace == before)
        operand.lastPlace = now;
  }

  /// The operation of the kernel's block that `op` stands in.
  Operation *placeOf(Operation *op) { return kernel.getBody().front().findAncestorOpInBlock(*op); }

  /// The buffer to which an earlier loop's operand was stored and that may live until `before`, or null. Counts its bytes on the way there.
  Value keptBuffer(Value value, dgpu::BufferType type, Operation *before) {
    auto found = kept.find({value, type});
    if (found == kept.end())
      return {};
    dgpu::BufferStoreOp store = found->second.store;
    if (!store->getBlock()->findAncestorOpInBlock(*before) ||
        !store->isBeforeInBlock(store->getBlock()->findAncestorOpInBlock(*before)))
      return {};
    // Everything behind its last reader so far that needs shared memory needs this much more.
    bytesOf.try_emplace(placeOf(before), 0);
    SmallVector<Operation *> places;
    for (auto &[place, bytes] : bytesOf)
      if (found->second.lastPlace->isBeforeInBlock(place) && !placeOf(before)->isBeforeInBlock(place)) {
        places.push_back(place);
        if (bytes + type.getSlotBytes() > limitBytes)
          return {};
      }
    for (Operation *place : places)
      bytesOf[place] += type.getSlotBytes();
    found->second.lastPlace = placeOf(before);
    return store.getBuffer();
  }

  static void eraseUnusedTransposes(Value value) {
    while (auto trans = value.getDefiningOp<tile::TransOp>()) {
      if (!trans->use_empty())
        return;
      value = trans.getSource();
      trans.erase();
    }
  }

  /// Nothing if the operand is better read from registers, or cannot be read from shared memory.
  std::optional<Staging> stagingOf(tile::DotOp dot, unsigned number) {
    OperandRoot root = rootOf(dot->getOperand(number));
    auto load = root.value.getDefiningOp<tile::LoadOp>();
    auto loop = dot->getParentOfType<LoopLikeOpInterface>();
    Staging staging;
    if (!loop || loop.isDefinedOutsideOfLoop(root.value))
      staging.before = loop ? loop.getOperation() : dot.getOperation();
    else if (load && load->getBlock() == dot->getBlock() && (loaded.contains(load) || isForDotsAlone(load)))
      staging.before = dot;
    else
      return std::nullopt;
    // As the load walks memory, or, for what nobody walks, as the instruction prefers it: along K.
    std::vector<int> order = layout::rowMajorOrder(2);
    if (load)
      order = accessPattern(load, axisInfo).order;
    else if ((number == 0) == root.isTransposed)
      std::reverse(order.begin(), order.end());
    staging.type = bufferOf(root.value, order);
    const layout::DotOperand operand = number == 0 ? layout::DotOperand::A : layout::DotOperand::B;
    if (!canReadOperand(staging.type, root.isTransposed, operand))
      return std::nullopt;
    if (staging.before == dot && load && load->getBlock() == dot->getBlock()) {
      staging.load = load;
      staging.buffer = loaded.lookup(load);
    } else {
      staging.buffer = keptBuffer(root.value, staging.type, staging.before);
    }
    return staging;
  }

  /// For one tile, swizzled, of which the dimension order[0] is contiguous.
  static dgpu::BufferType bufferOf(Value value, const std::vector<int> &order) {
    auto tile = cast<RankedTensorType>(value.getType());
    const layout::Shape shape(tile.getShape().begin(), tile.getShape().end());
    const int bits = analysis::sharedElementBits(tile.getElementType());
    auto shared = dgpu::SharedLayoutAttr::get(
        tile.getContext(), layout::swizzledShared(shape, order, bits, layout::largestSwizzle(shape, order, bits)));
    return dgpu::BufferType::get(tile.getContext(), 1, shape, tile.getElementType(), shared);
  }

  /// True if nobody but warpgroup dots of its block, which can read it from shared memory, uses a load, transposed or not.
  bool isForDotsAlone(tile::LoadOp load) {
    const dgpu::BufferType type = bufferOf(load, accessPattern(load, axisInfo).order);
    SmallVector<std::pair<Value, bool>> values{{load.getResult(), false}};
    while (!values.empty()) {
      auto [value, isTransposed] = values.pop_back_val();
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (auto trans = dyn_cast<tile::TransOp>(user)) {
          values.emplace_back(trans.getResult(), !isTransposed);
          continue;
        }
        auto dot = dyn_cast<tile::DotOp>(user);
        if (!dot || use.getOperandNumber() > 1 || dot->getBlock() != load->getBlock() ||
            !whyNoWarpgroupDot(dot, warps).empty() ||
            !canReadOperand(type, isTransposed,
                            use.getOperandNumber() == 0 ? layout::DotOperand::A : layout::DotOperand::B))
          return false;
      }
    }
    return true;
  }

  /// Stores the operand; gives the buffer as the dot sees it.
  Value stage(tile::DotOp dot, unsigned number, const Staging &staging) {
    OperandRoot root = rootOf(dot->getOperand(number));
    // Buffers live at the top level: in the kernel, before partitions.
    OpBuilder builder(kernel.getBody().front().findAncestorOpInBlock(*dot));
    Location loc = root.value.getLoc();
    Value buffer =
        staging.buffer ? staging.buffer : dgpu::BufferAllocOp::create(builder, loc, staging.type, IntegerAttr());
    Value seen = root.isTransposed ? dgpu::BufferPermuteOp::create(builder, loc, buffer, {1, 0}).getResult() : buffer;
    if (staging.buffer)
      return seen;
    if (staging.load)
      loaded[staging.load] = buffer;
    builder.setInsertionPoint(staging.before);
    Value slot = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    auto store = dgpu::BufferStoreOp::create(builder, loc, root.value, buffer, slot);
    dgpu::FenceAsyncOp::create(builder, loc);
    if (!staging.load)
      kept[{root.value, staging.type}] = {store, placeOf(dot)};
    return seen;
  }

  func::FuncOp kernel;
  const analysis::AxisInfoAnalysis &axisInfo;
  int warps;
  int64_t limitBytes;
  /// What a dot or its loop stores before it, for whoever comes later.
  struct KeptOperand {
    dgpu::BufferStoreOp store;
    Operation *lastPlace = nullptr; ///< Until which it lives, in the kernel's block.
  };
  llvm::DenseMap<Operation *, int64_t> bytesOf; ///< Of operands, by who needs them in the kernel's block.
  llvm::DenseMap<Operation *, Value> loaded;    ///< Buffers of loads in their dots' block.
  llvm::DenseMap<std::pair<Value, dgpu::BufferType>, KeptOperand> kept;
};

class WarpgroupDotsPass : public impl::WarpgroupDotsBase<WarpgroupDotsPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(dgpu::wgmmaAttrName))
      return;
    analysis::AxisInfoAnalysis axisInfo(module);
    for (auto kernel : module.getOps<func::FuncOp>())
      if (!kernel.isExternal())
        DotRewriter(kernel, axisInfo, dgpu::numWarpsOf(module), limitBytes).run();
  }
};

} // namespace
} // namespace ditron::transforms
