//===- AssignLayouts.cpp - Every tensor gets a layout ---------------------------------------------------------------------===//
//
// The pass after which register layouts exist. It is deliberately simple and total: decisions spread from anchors, the first
// one wins, and conversions are put where neighbours disagree. dgpu-remove-conversions then does the fine work.
//
// 1. Anchors. Dots get tensor core fragments (or multiply-add layouts), warpgroup dots their accumulators, sorting networks the
//    layout in which they exchange least; loads, stores and atomics get coalesced layouts:
//    dimensions ordered by contiguity, vectors as wide as contiguity, alignment and 16 bytes allow, the same width for all
//    accesses of one shape and order.
// 2. Forward: from dot results, then from loads by bytes, an undecided value takes the layout that its operand implies, through
//    loops and branches. Broadcasts wait: they are better decided by their users.
// 3. Small stores without a decided layout of their own take the layout of their value.
// 4. Backward: from the operands of dots, stores and loads and of every decided operation, an undecided value takes the layout
//    that its user asks for.
// 5. The rest in program order: what the operands imply, or a row-major tile.
// 6. Set the types; where an operand's layout is not the one its user needs, insert dgpu.convert_layout.
//
// Example: acc = dot(convert a, convert b, acc) in a loop: the result of the dot is decided first and spreads to the loop's
// argument and result, the truncation and the store's value. The store wants a coalesced layout, so one conversion is left
// after the loop; pointers and masks of the store were undecided and follow it backward.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Wgmma.h"
#include "ditron/transforms/dots/DotLayouts.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/layouts/MemoryLayouts.h"
#include "ditron/transforms/layouts/RegionValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;
using layout::DistributedLayout;

namespace {

/// Decides the layouts of one kernel and rewrites it.
class LayoutAssignment {
public:
  LayoutAssignment(func::FuncOp kernel, const analysis::AxisInfoAnalysis &axisInfo, int lanes, int warps)
      : kernel(kernel), memory(kernel, axisInfo, lanes, warps), lanes(lanes), warps(warps) {}

  void run() {
    chooseAnchors();
    spreadForward();
    adoptSmallStores();
    spreadBackward();
    decideRest();
    apply();
  }

private:
  //===----------------------------------------------------------------------------------------------------------------===//
  // Decisions
  //===----------------------------------------------------------------------------------------------------------------===//

  /// Takes the decision unless there is one already.
  bool decide(Value value, const DistributedLayout &layout) {
    return isTensor(value) && decided.try_emplace(carrierOf(value), layout).second;
  }
  /// By value: whoever acts on a decision makes others, and then the table moves.
  std::optional<DistributedLayout> decision(Value value) const {
    auto found = decided.find(carrierOf(value));
    return found == decided.end() ? std::nullopt : std::optional(found->second);
  }

  void chooseAnchors() {
    kernel.walk([&](tile::DotOp dot) {
      DotChoice choice = chooseDotLayouts(dot, lanes, warps);
      remark::analysis(dot.getLoc(), remark::RemarkOpts::name("dot").category("dgpu-assign-layouts"))
          << choice.description;
      dots.try_emplace(dot, std::move(choice.layouts));
    });
    // Operands in shared memory have their layout already; one in registers follows the accumulator.
    kernel.walk([&](dgpu::WarpgroupDotOp dot) {
      layout::DotLayouts layouts;
      layouts.c = *layout::wgmmaAccumulator(tensorShape(dot.getResult()), warps);
      if (isTensor(dot.getA()))
        layouts.a = *layout::wgmmaOperandA(layouts.c, tensorShape(dot.getA())[1],
                                           analysis::sharedElementBits(tile::elementTypeOf(dot.getA().getType())));
      remark::analysis(dot.getLoc(), remark::RemarkOpts::name("dot").category("dgpu-assign-layouts"))
          << "warpgroup dot of " + std::to_string(layout::wgmmaColumns(layouts.c)) + " columns";
      dots.try_emplace(dot, std::move(layouts));
    });
    kernel.walk([&](tile::BitonicOp network) {
      const int64_t bytes = analysis::sharedElementBytes(network.getType().getElementType());
      networks.try_emplace(network, networkLayout(tensorShape(network.getResult()), bytes, lanes, warps));
    });
    for (Operation *access : memory.accesses())
      anchors.try_emplace(access, memory.layoutFor(access));
  }

  void spreadForward() {
    for (auto &[dot, layouts] : dots)
      if (decide(dot->getResult(0), layouts.c))
        forwardFrom(dot->getResult(0), /*throughBroadcasts=*/false);
    for (auto &[network, layout] : networks)
      if (decide(network->getResult(0), layout))
        forwardFrom(network->getResult(0), /*throughBroadcasts=*/false);

    // The result of an access has its anchor layout whatever came first: decide all before spreading any.
    struct Load {
      Value result;
      int64_t bytes;
      size_t position;
    };
    SmallVector<Load> loads;
    for (auto &[access, layout] : anchors) {
      if (access->getNumResults() == 0)
        continue;
      decided.insert_or_assign(access->getResult(0), layout);
      loads.push_back({access->getResult(0), accessBytes(access), loads.size()});
    }
    llvm::sort(loads, [](const Load &a, const Load &b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.position < b.position;
    });
    for (const Load &load : loads)
      forwardFrom(load.result, /*throughBroadcasts=*/false);
  }

  static int64_t accessBytes(Operation *access) {
    auto type = cast<RankedTensorType>(access->getResult(0).getType());
    return type.getNumElements() * analysis::sharedElementBytes(type.getElementType());
  }

  void forwardFrom(Value start, bool throughBroadcasts) {
    SmallVector<Value> worklist{start};
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      const DistributedLayout layout = *decision(value);
      auto reach = [&](Value next, const DistributedLayout &wanted) {
        if (decide(next, wanted))
          worklist.push_back(next);
      };
      SmallVector<OpOperand *> uses;
      for (Value alias : carriedBy(carrierOf(value)))
        for (OpOperand &use : alias.getUses())
          uses.push_back(&use);
      for (OpOperand *usePointer : uses) {
        OpOperand &use = *usePointer;
        Operation *user = use.getOwner();
        if (anchors.contains(user) || (isa<tile::BroadcastOp>(user) && !throughBroadcasts))
          continue;
        if (auto implied = resultLayout(use, layout)) {
          // The first operand decides for reductions and joins; for all others the operands are alike.
          if (followsFirstOperand(user) && decision(user->getOperand(0)) && !(*decision(user->getOperand(0)) == layout))
            continue;
          for (Value result : user->getResults())
            reach(result, *implied);
        }
        for (Value peer : valuesTiedTo(use))
          reach(peer, layout);
      }
    }
  }

  /// A store of at most one element per thread gains nothing from another order of threads, and a large tile cannot be brought into
  /// another one.
  void adoptSmallStores() {
    for (auto &[access, layout] : anchors) {
      auto store = dyn_cast<tile::StoreOp>(access);
      if (!store)
        continue;
      auto type = cast<RankedTensorType>(store.getValue().getType());
      const int64_t bytes = type.getNumElements() * analysis::sharedElementBytes(type.getElementType());
      if (type.getNumElements() > int64_t(lanes) * warps && bytes <= mostConvertedBytes)
        continue;
      if (std::optional<DistributedLayout> ofValue = decision(store.getValue()))
        layout = *ofValue;
    }
  }

  void spreadBackward() {
    for (auto &[dot, layouts] : dots)
      for (OpOperand &operand : llvm::reverse(dot->getOpOperands()))
        if (isTensor(operand.get()))
          backwardInto(operand.get(), dotLayout(operand, layouts));
    for (auto &[access, layout] : anchors)
      for (Value operand : access->getOperands())
        backwardInto(operand, layout);
    for (auto &[network, layout] : networks)
      backwardInto(network->getOperand(0), layout);
    // Values decided by forward spreading ask their other operands.
    kernel.walk([&](Operation *op) {
      if (op->getNumResults() == 0 || !isTensor(op->getResult(0)) || anchors.contains(op))
        return;
      if (std::optional<DistributedLayout> layout = decision(op->getResult(0)))
        backwardThrough(op, *layout);
    });
    kernel.walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (std::optional<DistributedLayout> layout = decision(argument))
              for (Value source : sourcesOf(argument))
                backwardInto(source, *layout);
    });
  }

  void backwardThrough(Operation *op, const DistributedLayout &layout) {
    for (OpOperand &operand : op->getOpOperands())
      if (auto wanted = operandLayout(operand, layout))
        backwardInto(operand.get(), *wanted);
  }

  void backwardInto(Value start, const DistributedLayout &layout) {
    SmallVector<std::pair<Value, DistributedLayout>> worklist{{start, layout}};
    while (!worklist.empty()) {
      auto [value, wanted] = worklist.pop_back_val();
      Operation *definition = value.getDefiningOp();
      // Reductions follow their source, never their user.
      if (definition && isa<tile::ReduceOp>(definition))
        continue;
      if (!decide(value, wanted))
        continue;
      for (Value peer : sourcesOf(value))
        worklist.push_back({peer, wanted});
      if (!definition || definition->getNumRegions() != 0)
        continue;
      for (OpOperand &operand : definition->getOpOperands())
        if (auto next = operandLayout(operand, wanted))
          worklist.push_back({operand.get(), *next});
    }
  }

  void decideRest() {
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            decideFrom(argument, sourcesOf(argument));
      if (op->getNumResults() == 0)
        return;
      // The results of a reduction or scan follow its first source, whatever that turned out to be.
      for (Value result : op->getResults()) {
        if (!isTensor(result) || decision(result))
          continue;
        std::optional<DistributedLayout> implied;
        for (OpOperand &operand : op->getOpOperands())
          if (std::optional<DistributedLayout> source =
                  isTensor(operand.get()) ? decision(operand.get()) : std::nullopt)
            if ((implied = resultLayout(operand, *source)))
              break;
        if (implied)
          decide(result, *implied);
        else
          decideFrom(result, sourcesOf(result));
        forwardFrom(result, /*throughBroadcasts=*/true);
      }
    });
  }

  void decideFrom(Value value, ArrayRef<Value> sources) {
    if (!isTensor(value) || decision(value))
      return;
    for (Value source : sources)
      if (std::optional<DistributedLayout> layout = decision(source)) {
        decide(value, *layout);
        return;
      }
    decide(value, defaultLayout(tensorShape(value), lanes, warps));
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Rewriting
  //===----------------------------------------------------------------------------------------------------------------===//

  /// a is the first operand of both kinds of dot; those of warpgroups have no tensor b.
  static const DistributedLayout &dotLayout(OpOperand &operand, const layout::DotLayouts &layouts) {
    const unsigned number = operand.getOperandNumber();
    if (number == 0)
      return layouts.a;
    return number == 1 && isa<tile::DotOp>(operand.getOwner()) ? layouts.b : layouts.c;
  }

  /// The layout that an operation needs for one of its tensor operands, its results having the decided layouts.
  DistributedLayout required(OpOperand &operand) {
    Operation *op = operand.getOwner();
    if (auto found = dots.find(op); found != dots.end())
      return dotLayout(operand, found->second);
    if (auto found = anchors.find(op); found != anchors.end())
      return found->second;
    if (auto found = networks.find(op); found != networks.end())
      return found->second;
    if (isTensor(op->getOperand(0)))
      if (auto wanted = siblingLayout(operand, *decision(op->getOperand(0))))
        return *wanted;
    if (SmallVector<Value> tied = valuesTiedTo(operand); !tied.empty())
      return *decision(tied.front());
    if (op->getNumResults() != 0 && isTensor(op->getResult(0)))
      if (auto wanted = operandLayout(operand, *decision(op->getResult(0))))
        return *wanted;
    return *decision(operand.get());
  }

  void apply() {
    // Collect all mismatches before any type changes: the rules look at decisions only.
    struct Conversion {
      OpOperand *operand;
      DistributedLayout layout;
    };
    SmallVector<Conversion> conversions;
    SmallVector<Operation *> followers;
    kernel.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isTensor(operand.get())) {
          DistributedLayout wanted = required(operand);
          if (!(wanted == *decision(operand.get())))
            conversions.push_back({&operand, std::move(wanted)});
        }
      if (followsFirstOperand(op) || networks.contains(op))
        followers.push_back(op);
    });
    for (auto &[carrier, layout] : decided)
      for (Value value : carriedBy(carrier))
        setLayout(value, layout);
    for (Conversion &conversion : conversions)
      convertOperand(*conversion.operand, conversion.layout);
    for (Operation *op : followers)
      alignResults(op);
  }

  void convertOperand(OpOperand &operand, const DistributedLayout &layout) {
    OpBuilder builder(operand.getOwner());
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto wanted = dgpu::withLayout(type, dgpu::LayoutAttr::get(type.getContext(), layout));
    operand.set(
        dgpu::ConvertLayoutOp::create(builder, operand.getOwner()->getLoc(), wanted, operand.get(), IntegerAttr()));
  }

  /// The results of a reduction have its source's layout without the axis, those of a join its operands' with a new register bit,
  /// those of a sorting network its own.
  /// If users decided otherwise (a loop argument, say), convert after it.
  void alignResults(Operation *op) {
    const DistributedLayout produced = producedLayout(op);
    for (Value result : op->getResults()) {
      if (!isTensor(result) || dgpu::layoutOf(result.getType()) == produced)
        continue;
      auto wanted = cast<RankedTensorType>(result.getType());
      setLayout(result, produced);
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      auto convert = dgpu::ConvertLayoutOp::create(builder, op->getLoc(), wanted, result, IntegerAttr());
      result.replaceAllUsesExcept(convert.getResult(), convert);
    }
  }

  DistributedLayout producedLayout(Operation *op) {
    if (auto found = networks.find(op); found != networks.end())
      return found->second;
    if (isTensor(op->getOperand(0)))
      if (auto produced = resultLayout(op->getOpOperand(0), dgpu::layoutOf(op->getOperand(0).getType())))
        return *produced;
    // Two joined scalars, which all threads hold.
    return DistributedLayout({2}, {0}, std::vector<int>(llvm::Log2_32(lanes), layout::zeroBasis),
                             std::vector<int>(llvm::Log2_32(warps), layout::zeroBasis));
  }

  func::FuncOp kernel;
  MemoryLayouts memory;
  int lanes, warps;
  llvm::MapVector<Operation *, layout::DotLayouts> dots;
  llvm::MapVector<Operation *, DistributedLayout> anchors;
  llvm::MapVector<Operation *, DistributedLayout> networks;
  llvm::MapVector<Value, DistributedLayout> decided;
};

class AssignLayoutsPass : public impl::AssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk([](tile::DotOp dot) { promoteFp8Operands(dot); });
    analysis::AxisInfoAnalysis axisInfo(module);
    for (auto kernel : module.getOps<func::FuncOp>())
      if (!kernel.isExternal())
        LayoutAssignment(kernel, axisInfo, dgpu::threadsPerWarpOf(module), dgpu::numWarpsOf(module)).run();
  }
};

} // namespace
} // namespace ditron::transforms
