//===- LoopOverPrograms.cpp - Blocks that stay and take one program after the other ---------------------------------------===//
//
// A kernel with one tile for each program pays for each of them what nothing runs beside: the first loads, the filling of the rings, the last
// dots and the store. Here the launch becomes as many blocks as the GPU holds at once, each of which runs its share of the programs, in
// a loop. dgpu-specialize-warps then treats it as any loop around: the producer goes on with the next program's tiles while the consumers
// are busy with this one's last ones.
//
//   kernel(a, b, world):                       becomes       kernel(a, b, X, Y, Z, world):     X, Y, Z: the grid that was asked for
//     p = program_id 0                                         for item in program_id 0 .. X * Y * Z, in steps of num_programs 0:
//     work(p, program_id 1)                                      p = item % X
//                                                                work(p, item / X % Y)
// 1. Which kernels: on GPUs with tensor copies and warpgroup dots, where a producer warp fetches tiles for a loop of dots. Such a block has a
//    multiprocessor's registers for itself, or half of them, so that fewer blocks than programs lose nothing.
// 2. Which programs may run one after the other in a block: those that neither wait for each other nor tell each other anything. A kernel
//    keeps its form if it does anything but loads, stores and what has no effects; if it asks for the size of the launch, as those do which
//    share out the work by themselves; if it asks for clusters.
// 3. Not where the turns of a kernel's loops depend on the program in a way that cannot be told, as if they are loaded: the hardware gives the
//    next program to the block that is done, which then balances better.
// 4. The order of programs is free in the language. Where the work of programs grows with their id along an axis (ProgramGrowth), neighbours
//    along the axis come by turns from both ends, the heavy one first, and blocks take them two by two: each pair has the same work.
//      items of an axis of 8, if high ids have the most to do:  7 0 | 6 1 | 5 2 | 4 3
//    Else the order is that of the launch: x first. Either way programs of one head or row follow each other, and share what they read
//    in the cache.
// 5. Scalars and descriptors that do not depend on the program stay in front of the loop.
//
// The launcher knows by the arguments (dgpu.num_programs) how the kernel is to be launched: runtime/ProgramLoop.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/loops/ProgramGrowth.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LOOPOVERPROGRAMS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

constexpr int axes = 3;

/// Why programs of the kernel must keep blocks of their own, or nothing.
std::string whyNoLoop(func::FuncOp kernel) {
  std::string reason;
  kernel.walk([&](Operation *op) {
    if (isa<tile::NumProgramsOp>(op))
      reason = "it asks for the size of the launch";
    else if (isa<dist::DistDialect>(op->getDialect()))
      reason = ("its threads or ranks go their own ways, with '" + op->getName().getStringRef() + "'").str();
    else if (op->hasAttr("tile.cluster_blocks"))
      reason = "its blocks work in clusters";
    else if (auto load = dyn_cast<tile::LoadOp>(op); load && load.getIsVolatile())
      reason = "it reads memory that others may change";
    else if (auto store = dyn_cast<tile::StoreOp>(op); store && store.getIsVolatile())
      reason = "it writes memory that others may read";
    else if (op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
             !isa<tile::LoadOp, tile::StoreOp, tile::DescriptorLoadOp, tile::DescriptorStoreOp, tile::AssumeOp,
                  tile::KeepLoopOp>(op))
      reason = ("programs may see each other through '" + op->getName().getStringRef() + "'").str();
    else if (isa<scf::WhileOp>(op) && !isMemoryEffectFree(op))
      reason = "it may wait for others, in a loop without a known end";
    return reason.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return reason;
}

/// Builds the loop of one kernel.
class ProgramLoop {
public:
  ProgramLoop(func::FuncOp kernel, ProgramGrowth growth)
      : kernel(kernel), growth(growth), loc(kernel.getLoc()), body(kernel.getBody().front()) {}

  void build() {
    addArguments();
    OpBuilder top = OpBuilder::atBlockBegin(&body);
    Operation *firstOfBody = &body.front();
    builder = &top;
    block = tile::ProgramIdOp::create(top, loc, 0);
    blocks = tile::NumProgramsOp::create(top, loc, 0);
    total = multiply(multiply(extents[0], extents[1]), extents[2]);
    // Without growth the loop counts items, with growth steps of this block.
    scf::ForOp loop = growth.axis ? scf::ForOp::create(top, loc, number(0), countSteps(), number(1))
                                  : scf::ForOp::create(top, loc, block, total, blocks);
    loop.getBody()->getOperations().splice(loop.getBody()->begin(), body.getOperations(), firstOfBody->getIterator(),
                                           std::prev(body.end()));
    // The loop itself and what comes before it were in front of the body's first operation.
    OpBuilder inLoop = OpBuilder::atBlockBegin(loop.getBody());
    builder = &inLoop;
    const SmallVector<Value> ids = idsOf(growth.axis ? itemOf(loop.getInductionVar()) : loop.getInductionVar());
    loop.walk([&](tile::ProgramIdOp op) {
      op.replaceAllUsesWith(ids[op.getAxis()]);
      op.erase();
    });
    hoist(loop);
  }

private:
  void addArguments() {
    // Behind the parameters, whose places tensor maps name; the world view stays last.
    for (int axis = 0; axis < axes; ++axis) {
      const unsigned position = kernel.getNumArguments() - 1;
      OpBuilder attributes(kernel.getContext());
      const auto attribute = attributes.getDictionaryAttr(
          attributes.getNamedAttr(dgpu::numProgramsAttrName, attributes.getI32IntegerAttr(axis)));
      [[maybe_unused]] LogicalResult inserted =
          kernel.insertArgument(position, attributes.getI32Type(), attribute, loc);
      assert(succeeded(inserted) && "the type of a kernel may change");
      extents.push_back(kernel.getArgument(position));
    }
  }

  /// Programs of this block, which takes them two by two where there are more programs than blocks; the last pair may lack one.
  Value countSteps() {
    Value arePairs = arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::sgt, total, blocks);
    bits = arith::ExtUIOp::create(*builder, loc, builder->getI32Type(), arePairs);
    Value pairs = shiftRight(add(total, bits), bits);
    Value steps = shiftLeft(divide(add(subtract(pairs, block), subtract(blocks, number(1))), blocks), bits);
    Value isLast =
        arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::eq,
                              arith::RemSIOp::create(*builder, loc, subtract(pairs, number(1)), blocks), block);
    Value lacking = subtract(shiftLeft(pairs, bits), total);
    return subtract(steps, arith::SelectOp::create(*builder, loc, isLast, lacking, number(0)));
  }

  Value itemOf(Value step) {
    Value pair = add(multiply(shiftRight(step, bits), blocks), block);
    return add(shiftLeft(pair, bits), arith::AndIOp::create(*builder, loc, step, bits));
  }

  /// The ids of an item along all axes.
  SmallVector<Value> idsOf(Value item) {
    SmallVector<int> order; // the fastest first
    if (growth.axis)
      order.push_back(*growth.axis);
    for (int axis = 0; axis < axes; ++axis)
      if (axis != growth.axis)
        order.push_back(axis);
    SmallVector<Value> ids(axes);
    Value rest = item;
    for (int axis : ArrayRef(order).drop_back()) {
      Value further = divide(rest, extents[axis]);
      ids[axis] = subtract(rest, multiply(further, extents[axis]));
      rest = further;
    }
    ids[order.back()] = rest;
    if (growth.axis)
      ids[*growth.axis] = byTurnsFromBothEnds(ids[*growth.axis], extents[*growth.axis]);
    return ids;
  }

  Value byTurnsFromBothEnds(Value place, Value extent) {
    Value one = number(1), half = shiftRight(place, one);
    Value fromEnd = subtract(subtract(extent, one), half);
    Value isOdd = arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::ne,
                                        arith::AndIOp::create(*builder, loc, place, one), number(0));
    return growth.grows ? arith::SelectOp::create(*builder, loc, isOdd, half, fromEnd)
                        : arith::SelectOp::create(*builder, loc, isOdd, fromEnd, half);
  }

  static void hoist(scf::ForOp loop) {
    for (Operation &op : llvm::make_early_inc_range(loop.getBody()->without_terminator()))
      if (op.getNumRegions() == 0 && isMemoryEffectFree(&op) && isSpeculatable(&op) &&
          llvm::none_of(op.getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); }) &&
          llvm::all_of(op.getOperands(), [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
        op.moveBefore(loop);
  }

  Value number(int32_t value) { return arith::ConstantOp::create(*builder, loc, builder->getI32IntegerAttr(value)); }
  Value add(Value a, Value b) { return arith::AddIOp::create(*builder, loc, a, b); }
  Value subtract(Value a, Value b) { return arith::SubIOp::create(*builder, loc, a, b); }
  Value multiply(Value a, Value b) { return arith::MulIOp::create(*builder, loc, a, b); }
  Value divide(Value a, Value b) { return arith::DivSIOp::create(*builder, loc, a, b); }
  Value shiftLeft(Value a, Value b) { return arith::ShLIOp::create(*builder, loc, a, b); }
  Value shiftRight(Value a, Value b) { return arith::ShRUIOp::create(*builder, loc, a, b); }

  func::FuncOp kernel;
  ProgramGrowth growth;
  Location loc;
  Block &body;
  OpBuilder *builder = nullptr;
  SmallVector<Value> extents; ///< Of the grid that was asked for.
  Value block, blocks, total;
  Value bits; ///< With growth: 1 if blocks take programs two by two, else 0.
};

class LoopOverProgramsPass : public impl::LoopOverProgramsBase<LoopOverProgramsPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!hasProducers(module))
      return;
    for (auto kernel : module.getOps<func::FuncOp>())
      if (kernel->hasAttr("tile.kernel") && !kernel.isExternal() && kernel.getBody().hasOneBlock() &&
          RingPlan(kernel, dgpu::numWarpsOf(module), limitBytes).servesLoops())
        loopOver(kernel);
  }

  static void loopOver(func::FuncOp kernel) {
    constexpr auto options = [] { return remark::RemarkOpts::name("programs").category("dgpu-loop-over-programs"); };
    const std::optional<ProgramGrowth> growth = growthOfPrograms(kernel);
    std::string reason = whyNoLoop(kernel);
    if (reason.empty() && !growth)
      reason = "how much each has to do cannot be told";
    if (!reason.empty()) {
      remark::missed(kernel.getLoc(), options()) << "each program has a block of its own: " + reason;
      return;
    }
    ProgramLoop(kernel, *growth).build();
    std::string order;
    if (growth->axis)
      order = std::string("; ids along ") + "xyz"[*growth->axis] + " come from both ends, for work " +
              (growth->grows ? "grows" : "falls") + " along it";
    remark::passed(kernel.getLoc(), options()) << "blocks stay and run one program after the other" + order;
  }
};

} // namespace
} // namespace ditron::transforms
