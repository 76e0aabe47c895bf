//===- PipelineLoops.cpp - Loads that feed dots run ahead through shared memory -------------------------------------------===//
//
// Software pipelining with asynchronous copies, after layouts are assigned and before shared memory is.
//
// For each innermost scf.for with S = num_stages > 1 (attribute tile.num_stages, else dgpu.num_stages of the module):
// 1. Candidates: tensor loads in the body whose value reaches a dot operand through casts, transposes and layout conversions,
//    whose addresses can be computed ahead, and which copy at least 4 contiguous bytes per thread. Addresses may come of other loads, as
//    those of rows in pages do: no write stands in the loop, so that these may run ahead as well, where the iteration exists.
//    Refused, with a remark, when the body writes memory, waits, signals or synchronises.
// 2. Each candidate gets a ring of S tiles in shared memory, swizzled for the reader.
// 3. Before the loop: start the copies of iterations 0 .. S-2, each masked by "iteration exists"; one group per iteration.
// 4. In the loop, first: wait until at most S-2 groups are pending, start the copies of iteration i+S-1 into slot (i+S-1) mod S.
//    The load becomes a buffer_load from slot i mod S, directly in the layout that the dot wants.
// 5. Loop-carried values that addresses depend on get a twin that runs S-1 iterations ahead; values computed from the induction
//    variable are recomputed for the later iteration. Twins that are left without use disappear.
// 6. After the loop: wait for all groups.
// 7. What is computed from loads before the loop, and used in or behind it only, is computed behind the copies of step 3: it waits for
//    memory, and the copies need not. So are they stored to the buffers of warpgroup dots there. Conversions through much shared memory stay where
//    they are: there they share it with the rings.
//
// Example with S = 3:    wait; load A; dot        becomes        copy 0; commit; copy 1; commit
//                                                                 loop: async_wait 1; [barrier]; copy i+2 to slot (i+2)%3; commit
//                                                                       buffer_load slot i%3; dot
//                                                                 async_wait 0
// The copy stands before the reads of its iteration: the one barrier after the wait then also separates it from the reads of the
// slot in the iteration before, and no second barrier is needed. Copies of iterations that do not exist still write zeros into
// their slot, which nobody reads; hence the wait after the loop, before the bytes are used for something else.
//
// Warpgroup dots (dgpu-warpgroup-dots): a load whose value is only stored to the buffer of such a dot is copied to a ring in that
// buffer's layout, and the dot reads the ring:
//      loop: async_wait S-2; fence_async; warpgroup_wait 0 (the dot before); [barrier]; warpgroup_dot slot i; copy i+S-1
// The copy overwrites what the dot of the iteration before has read: hence that dot is waited for before the barrier. A dot that
// only accumulates is waited for there, one iteration late, and after the loop; others where they were.
// With S > 3 those that only accumulate stay in flight over the barrier, so that the tensor cores always have something to do:
//      loop: async_wait S-3; fence_async; [barrier]; warpgroup_dot slot i; copy i+S-2; warpgroup_wait 1 (the dot before)
// The copy overwrites what the dot of the iteration before the last has read, for which all warps have waited before the barrier. It runs
// one iteration less ahead for that.
//
// A turn that computes between its dots, as attention does, waits for some of them anyway. The others, which only accumulate, run into the next turn
// as well, where its first wait is also one for them. Copies are started behind the first dot, before anything of the turn has been read: so one
// barrier is enough. Rows that the computation loads get rings of their own; they are copied by few threads, 16 bytes each, though many read them.
//      loop: async_wait S-3; fence_async; [barrier]; warpgroup_dot slot i; copy i+S-2; warpgroup_wait 0 (that one and those of the turn
//            before); compute; warpgroup_dot (accumulates) slot i
//
// Loops without dots, of which the author says num_stages (tl.range): all loads of tensors run ahead, and each thread finds what it has copied. Stores
// may stand in the loop if no load that runs ahead reads what they may write (PointerObjects.h). As many slots as shared memory has room for.
//
// Not done: values of `other` that are not zero for dots (they would need a select after the read), loops with nested loops.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/analysis/CheckLayouts.h"
#include "ditron/analysis/PointerObjects.h"
#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"
#include "ditron/layout/SharedLayout.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/layouts/MemoryLayouts.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "ditron/transforms/pipelining/AccumulatingDots.h"
#include "ditron/transforms/pipelining/Recomputation.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_PIPELINELOOPS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;
using layout::DistributedLayout;

namespace {

/// cp.async moves 4, 8 or 16 bytes.
constexpr int64_t minCopyBytes = 4;

void missed(Operation *op, const Twine &reason) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("pipeline").category("dgpu-pipeline-loops")) << reason.str();
}

/// Operations between a load and the dot through which a buffer_load can be computed in another layout: one tensor in, one out.
bool isChainOp(Operation *op) {
  if (op->getNumResults() != 1 || !isMemoryEffectFree(op))
    return false;
  return isa<tile::TransOp, tile::ReshapeOp, tile::ExpandDimsOp>(op) ||
         (isElementwise(op) && op->getNumOperands() == 1);
}

/// One load that will be copied ahead: a matrix for dots, or a row for what is computed between them.
struct StagedLoad {
  tile::LoadOp load;
  dgpu::BufferType bufferType;
  Value pointers, mask;      ///< Of the copies: the load's, or for a row the same in another layout.
  dgpu::BufferStoreOp store; ///< To the buffer of a warpgroup dot, if that is the only use.
  Value buffer;
};

/// True if a warpgroup dot reads the buffer, transposed or not.
bool feedsWarpgroupDot(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [](Operation *user) {
    return isa<dgpu::WarpgroupDotOp>(user) ||
           (isa<dgpu::BufferPermuteOp>(user) && feedsWarpgroupDot(user->getResult(0)));
  });
}

/// The only use of a load, if that is a store to the single slot of a warpgroup dot's operand in the same block.
dgpu::BufferStoreOp storeForWarpgroupDot(tile::LoadOp load) {
  if (!load->hasOneUse())
    return {};
  auto store = dyn_cast<dgpu::BufferStoreOp>(*load->user_begin());
  if (!store || store->getBlock() != load->getBlock() || store.getBuffer().getType().getSlots() != 1 ||
      !store.getBuffer().getDefiningOp<dgpu::BufferAllocOp>() || !feedsWarpgroupDot(store.getBuffer()))
    return {};
  return store;
}

bool hasDots(scf::ForOp loop) {
  auto find = [](Operation *op) {
    return isa<tile::DotOp, dgpu::WarpgroupDotOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return loop.getBody()->walk(find).wasInterrupted();
}

/// Pipelines one loop.
class LoopPipeliner {
public:
  LoopPipeliner(scf::ForOp loop, int stages, const analysis::AxisInfoAnalysis &axisInfo,
                const analysis::PointerObjects &objects, int64_t limitBytes)
      : loop(loop), stages(stages), axisInfo(axisInfo), objects(objects), limitBytes(limitBytes),
        isAskedFor(loop->hasAttr("tile.num_stages") && !hasDots(loop)) {}

  /// True if something was pipelined; the loop is then a new one.
  bool run() {
    if (!bodyAllowsCopies() || (isAskedFor && !fitSlots()) || !findLoads())
      return false;
    const bool dotsReadRings = llvm::any_of(staged, [](const StagedLoad &entry) { return entry.store; });
    AccumulatingDots dots(loop);
    computesBetweenDots = dotsReadRings && dots.turnComputesBetween();
    dotsStayInFlight =
        stages > 3 && dotsReadRings && (computesBetweenDots ? dots.some() : dots.all()) && readOnlyRings();
    if (computesBetweenDots)
      findRows();
    sortSlice();
    allocateBuffers();
    Operation *lastBefore = loop->getPrevNode();
    SmallVector<Value> carried = emitPrologue();
    waitBehindCopies(lastBefore);
    emitBody(carried);
    loop = removeDeadLoopArguments(loop);
    if (dotsReadRings)
      AccumulatingDots(loop).runOn(computesBetweenDots, dotsStayInFlight);
    return true;
  }

private:
  //===----------------------------------------------------------------------------------------------------------------===//
  // Legality
  //===----------------------------------------------------------------------------------------------------------------===//

  /// A copy for a later iteration must not overtake a write, a wait or a barrier of an earlier one.
  bool bodyAllowsCopies() {
    Operation *obstacle = nullptr;
    loop.getBody()->walk([&](Operation *op) {
      if (obstacle || isa<tile::AssumeOp, dist::CheckRankOp>(op) ||
          isa<dgpu::BufferStoreOp, dgpu::FenceAsyncOp, dgpu::WarpgroupWaitOp>(op) || // of warpgroup dots

          op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || op->hasTrait<OpTrait::IsTerminator>())
        return;
      if (auto store = dyn_cast<tile::StoreOp>(op); store && !store.getIsVolatile() && isAskedFor) {
        stored.add(objects.of(store.getPtr()));
        return;
      }
      auto effects = dyn_cast<MemoryEffectOpInterface>(op);
      if (!effects || effects.hasEffect<MemoryEffects::Write>())
        if (!isMemoryEffectFree(op))
          obstacle = op;
    });
    if (!obstacle)
      return true;
    if (hasCandidate())
      missed(obstacle,
             "the loop is not pipelined: loads may not overtake '" + obstacle->getName().getStringRef() + "'");
    return false;
  }

  bool hasCandidate() {
    return llvm::any_of(loop.getBody()->getOps<tile::LoadOp>(), [&](tile::LoadOp load) { return isCandidate(load); });
  }

  bool isCandidate(tile::LoadOp load) const {
    if (!isTensor(load.getResult()) || load.getIsVolatile())
      return false;
    return isAskedFor ? cast<RankedTensorType>(load.getType()).getElementType().isIntOrFloat() : feedsDot(load);
  }

  /// Whether the loop may write what the load reads.
  bool isWritten(tile::LoadOp load) const {
    if (stored == analysis::ObjectSet())
      return false;
    const analysis::ObjectSet read = objects.of(load.getPtr());
    return read.anywhere || stored.anywhere || llvm::any_of(read.arguments, [&](unsigned argument) {
             return llvm::is_contained(stored.arguments, argument);
           });
  }

  /// Of a loop without dots: no more slots than fit beside what else is in shared memory. False if two do not.
  bool fitSlots() {
    int64_t perSlot = 0, scratch = 0;
    for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
      if (isCandidate(load)) {
        auto type = cast<RankedTensorType>(load.getType());
        perSlot +=
            llvm::alignTo(type.getNumElements() * analysis::sharedElementBytes(type.getElementType()), bufferAlignment);
      }
    if (perSlot == 0)
      return false;
    loop->getParentOfType<func::FuncOp>()->walk(
        [&](Operation *op) { scratch = std::max<int64_t>(scratch, analysis::scratchBytes(op)); });
    stages = static_cast<int>(std::min<int64_t>(stages, (limitBytes - bufferBytesIn(loop) - scratch) / perSlot));
    if (stages < 2)
      missed(loop,
             "the loop is not pipelined: shared memory has no room for two turns of " + Twine(perSlot) + " bytes");
    return stages >= 2;
  }

  static bool feedsDot(tile::LoadOp load) {
    SmallVector<Value> worklist{load.getResult()};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!worklist.empty())
      for (OpOperand &use : worklist.pop_back_val().getUses()) {
        Operation *user = use.getOwner();
        if (isa<tile::DotOp>(user) && use.getOperandNumber() < 2)
          return true;
        if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(user); dot && use.get() == dot.getA())
          return true;
        if (auto store = dyn_cast<dgpu::BufferStoreOp>(user); store && feedsWarpgroupDot(store.getBuffer()))
          return true;
        if ((isChainOp(user) || isElementwise(user) || isa<dgpu::ConvertLayoutOp>(user)) && seen.insert(user).second)
          worklist.append(user->result_begin(), user->result_end());
      }
    return false;
  }

  bool findLoads() {
    for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>()) {
      if (!isCandidate(load))
        continue;
      if (std::string reason = stage(load); !reason.empty())
        missed(load, "the load is not pipelined: " + reason);
    }
    return !staged.empty();
  }

  /// Stages the rows that the computation between dots takes: registers for them are scarce there, and their latency would show in each turn.
  void findRows() {
    for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>()) {
      auto type = dyn_cast<RankedTensorType>(load.getType());
      if (type && type.getRank() == 1 && !slice.contains(load) && !load->use_empty())
        if (std::string reason = stage(load); !reason.empty())
          missed(load, "the row is not pipelined: " + reason);
    }
  }

  /// Adds a load to the staged ones, or says why not.
  std::string stage(tile::LoadOp load) {
    if (isWritten(load))
      return "the loop may write what it reads";
    if (!isAskedFor && load.getOther() && !matchPattern(load.getOther(), m_AnyZeroFloat()) &&
        !matchPattern(load.getOther(), m_Zero()) && !isZeroSplat(load.getOther()))
      return "`other` is not zero";
    auto type = cast<RankedTensorType>(load.getResult().getType());
    const bool isRow = type.getRank() == 1 && !isAskedFor;
    if (!isAskedFor && type.getRank() != 2 && !(isRow && computesBetweenDots))
      return "it is not a matrix";
    AccessPattern pattern = accessPattern(load, axisInfo);
    int64_t elementBytes = analysis::sharedElementBytes(type.getElementType());
    dgpu::BufferStoreOp store = storeForWarpgroupDot(load);
    layout::SharedLayout shared = store ? store.getBuffer().getType().getLayout().getLayout()
                                  : isRow || isAskedFor
                                      ? layout::plainShared(tensorShape(load.getResult()), pattern.order,
                                                            analysis::sharedElementBits(type.getElementType()))
                                      : chooseSharedLayout(load, pattern);
    const DistributedLayout copied = isRow ? rowCopyLayout(load, pattern) : dgpu::layoutOf(type);
    int64_t vector = layout::makeOffsetPlan(copied, shared, 8 * maxAccessBytes).vecElems;
    vector = std::min({vector, pattern.vectorElems, pattern.maskElems});
    if (vector * elementBytes < minCopyBytes)
      return llvm::formatv("only {0} contiguous byte(s) per thread are proved, asynchronous copies need {1}",
                           vector * elementBytes, minCopyBytes)
          .str();

    auto savedSlice = slice;
    auto savedAhead = aheadArgs;
    Recomputation recomputation;
    Value pointers = recomputation.in(load.getPtr(), copied);
    Value mask = load.getMask() ? recomputation.in(load.getMask(), copied) : Value();
    if (std::string reason = addToSlice(pointers); !reason.empty()) {
      slice = savedSlice, aheadArgs = savedAhead;
      return reason;
    }
    if (mask)
      if (std::string reason = addToSlice(mask); !reason.empty()) {
        slice = savedSlice, aheadArgs = savedAhead;
        return reason;
      }
    auto layoutAttr = dgpu::SharedLayoutAttr::get(type.getContext(), shared);
    auto bufferType =
        dgpu::BufferType::get(type.getContext(), stages, type.getShape(), type.getElementType(), layoutAttr);
    remark::passed(load.getLoc(), remark::RemarkOpts::name("pipeline").category("dgpu-pipeline-loops"))
        << llvm::formatv("pipelined: {0} slots of {1} bytes, copies of {2} bytes", stages, bufferType.getSlotBytes(),
                         vector * elementBytes)
               .str();
    staged.push_back({load, bufferType, pointers, mask, store, {}});
    return {};
  }

  /// Of a row, which the computation takes in a layout with a copy of it in many threads: as few and wide copies as there can be. The load's own
  /// layout if its pointers cannot be computed in another one.
  static DistributedLayout rowCopyLayout(tile::LoadOp load, const AccessPattern &pattern) {
    Recomputation recomputation;
    if (!recomputation.isPossible(load.getPtr()) || (load.getMask() && !recomputation.isPossible(load.getMask())))
      return dgpu::layoutOf(load.getType());
    auto module = load->getParentOfType<ModuleOp>();
    return layout::tile(tensorShape(load.getResult()), layout::rowMajorOrder(1),
                        std::min(pattern.vectorElems, pattern.maskElems), dgpu::threadsPerWarpOf(module),
                        dgpu::numWarpsOf(module));
  }

  static bool isZeroSplat(Value value) {
    auto splat = value.getDefiningOp<tile::SplatOp>();
    return splat && (matchPattern(splat.getSource(), m_AnyZeroFloat()) || matchPattern(splat.getSource(), m_Zero()));
  }

  /// Adds everything in the body that `value` is computed from; returns the reason if it cannot be computed ahead.
  std::string addToSlice(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
        return {};
      unsigned index = argument.getArgNumber() - loop.getNumInductionVars();
      return aheadArgs.insert(index) ? addToSlice(loop.getYieldedValues()[index]) : std::string();
    }
    Operation *op = value.getDefiningOp();
    if (!loop->isProperAncestor(op) || slice.contains(op))
      return {};
    auto load = dyn_cast<tile::LoadOp>(op);
    const bool mayRunAhead = isMemoryEffectFree(op) || (load && !isWritten(load));
    if (op->getBlock() != loop.getBody() || op->getNumRegions() != 0 || !mayRunAhead)
      return ("its address depends on '" + op->getName().getStringRef() + "' of the same iteration").str();
    if (isa<tile::DotOp>(op))
      return "its address depends on a dot";
    slice.insert(op);
    for (Value operand : op->getOperands())
      if (std::string reason = addToSlice(operand); !reason.empty())
        return reason;
    return {};
  }

  void sortSlice() {
    SmallVector<Operation *> ops = slice.takeVector();
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    slice.insert(ops.begin(), ops.end());
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Buffers
  //===----------------------------------------------------------------------------------------------------------------===//

  /// All layouts in which the load's value will be read from the buffer.
  static void readerLayouts(Value value, SmallVectorImpl<DistributedLayout> &readers,
                            llvm::function_ref<DistributedLayout(DistributedLayout)> back) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto convert = dyn_cast<dgpu::ConvertLayoutOp>(user))
        readers.push_back(back(dgpu::layoutOf(convert.getResult().getType())));
      else if (isChainOp(user))
        readerLayouts(user->getResult(0), readers,
                      [&](DistributedLayout layout) { return back(*operandLayout(use, layout)); });
      else
        readers.push_back(back(dgpu::layoutOf(value.getType())));
    }
  }

  /// Rows as they lie in global memory, with the XOR swizzle that makes the reads cheapest.
  layout::SharedLayout chooseSharedLayout(tile::LoadOp load, const AccessPattern &pattern) {
    auto type = cast<RankedTensorType>(load.getResult().getType());
    layout::Shape shape = tensorShape(load.getResult());
    int bits = analysis::sharedElementBits(type.getElementType());
    SmallVector<DistributedLayout> readers;
    readerLayouts(load.getResult(), readers, [](DistributedLayout layout) { return layout; });

    layout::SharedLayout best = layout::plainShared(shape, pattern.order, bits);
    int64_t bestCost = -1;
    for (int swizzle = layout::largestSwizzle(shape, pattern.order, bits); swizzle >= 32; swizzle /= 2) {
      layout::SharedLayout candidate = layout::swizzledShared(shape, pattern.order, bits, swizzle);
      int64_t cost = 0;
      for (const DistributedLayout &reader : readers)
        cost += layout::countBankConflicts(reader, candidate).wavefronts;
      if (bestCost < 0 || cost < bestCost) {
        best = candidate;
        bestCost = cost;
      }
    }
    return best;
  }

  void allocateBuffers() {
    OpBuilder builder(loop);
    for (StagedLoad &entry : staged)
      entry.buffer = dgpu::BufferAllocOp::create(builder, entry.load.getLoc(), entry.bufferType, IntegerAttr());
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Code
  //===----------------------------------------------------------------------------------------------------------------===//

  Value constant(OpBuilder &builder, Type type, int64_t value) {
    return arith::ConstantOp::create(builder, loop.getLoc(), builder.getIntegerAttr(type, value));
  }

  /// start + count * step.
  Value advance(OpBuilder &builder, Value start, int64_t count) {
    if (count == 0)
      return start;
    Location loc = loop.getLoc();
    Value distance = arith::MulIOp::create(builder, loc, loop.getStep(), constant(builder, start.getType(), count));
    return arith::AddIOp::create(builder, loc, start, distance);
  }

  /// The mask `own` of a load, or none, in the iteration that `mapping` describes, where that exists.
  static Value maskWhere(OpBuilder &builder, Location loc, Value pointers, Value own, const IRMapping &mapping,
                         Value exists) {
    Value mask = exists;
    if (auto type = dyn_cast<RankedTensorType>(pointers.getType()))
      mask = tile::SplatOp::create(builder, loc, type.clone(builder.getI1Type()), exists);
    if (own)
      mask = arith::AndIOp::create(builder, loc, mapping.lookupOrDefault(own), mask);
    return mask;
  }

  /// Computes the slice for the iteration that `mapping` describes, starts its copies and closes the group.
  void emitCopies(OpBuilder &builder, IRMapping &mapping, Value induction, Value slot) {
    mapping.map(loop.getInductionVar(), induction);
    Location loc = loop.getLoc();
    auto order = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value exists = arith::CmpIOp::create(builder, loc, order, induction, loop.getUpperBound());
    for (Operation *op : slice) {
      if (auto load = dyn_cast<tile::LoadOp>(op)) {
        Value mask = maskWhere(builder, load.getLoc(), load.getPtr(), load.getMask(), mapping, exists);
        cast<tile::LoadOp>(builder.clone(*op, mapping)).getMaskMutable().assign(mask);
      } else {
        builder.clone(*op, mapping);
      }
    }
    for (StagedLoad &entry : staged) {
      Value pointers = mapping.lookupOrDefault(entry.pointers);
      Value mask = maskWhere(builder, entry.load.getLoc(), entry.pointers, entry.mask, mapping, exists);
      dgpu::AsyncCopyOp::create(builder, entry.load.getLoc(), pointers, entry.buffer, slot, mask);
    }
    dgpu::AsyncCommitOp::create(builder, loc);
  }

  /// The values of the ahead arguments one iteration after the one that `mapping` describes.
  SmallVector<Value> nextAhead(const IRMapping &mapping) {
    SmallVector<Value> next;
    for (unsigned index : aheadArgs)
      next.push_back(mapping.lookupOrDefault(loop.getYieldedValues()[index]));
    return next;
  }

  /// Iterations that copies run ahead.
  int distance() const { return dotsStayInFlight ? stages - 2 : stages - 1; }

  /// Copies of the first iterations. Returns the ahead arguments' values for the one that the loop's first copy is for.
  SmallVector<Value> emitPrologue() {
    OpBuilder builder(loop);
    SmallVector<Value> ahead;
    for (unsigned index : aheadArgs)
      ahead.push_back(loop.getInitArgs()[index]);
    for (int iteration = 0; iteration < distance(); ++iteration) {
      IRMapping mapping;
      for (auto [index, value] : llvm::zip(aheadArgs, ahead))
        mapping.map(loop.getRegionIterArg(index), value);
      emitCopies(builder, mapping, advance(builder, loop.getLowerBound(), iteration),
                 constant(builder, builder.getI32Type(), iteration));
      ahead = nextAhead(mapping);
    }
    return ahead;
  }

  /// Moves what waits for loads before the loop behind the copies of the first iterations, which begin after `lastBefore`.
  void waitBehindCopies(Operation *lastBefore) {
    // Of shared memory that the rings would else lend.
    constexpr int64_t mostScratchBytes = 8192;
    if (!lastBefore)
      return;
    Block *block = loop->getBlock();
    llvm::SmallPtrSet<Operation *, 16> waiting, moved;
    SmallVector<Operation *> inOrder;
    for (Operation &op : llvm::make_range(block->begin(), std::next(lastBefore->getIterator()))) {
      bool waits = llvm::any_of(op.getOperands(), [&](Value operand) {
        Operation *source = operand.getDefiningOp();
        return source && source->getBlock() == block && isa<RankedTensorType>(operand.getType()) &&
               (isa<tile::LoadOp>(source) || waiting.contains(source));
      });
      // A fence goes with the store in front of it.
      if (isa<dgpu::FenceAsyncOp>(op))
        waits = isa_and_nonnull<dgpu::BufferStoreOp>(op.getPrevNode()) && waiting.contains(op.getPrevNode());
      else if (auto store = dyn_cast<dgpu::BufferStoreOp>(op))
        waits &= isReadBehind(store.getBuffer(), store);
      else
        waits &= isMemoryEffectFree(&op);
      if (!waits || op.getNumRegions() != 0 ||
          (isa<dgpu::ConvertLayoutOp>(op) && analysis::scratchBytes(&op) > mostScratchBytes))
        continue;
      waiting.insert(&op);
      inOrder.push_back(&op);
    }
    Operation *next = loop;
    for (Operation *op : llvm::reverse(inOrder)) {
      const bool isUsedBehind = llvm::all_of(op->getUsers(), [&](Operation *user) {
        Operation *place = block->findAncestorOpInBlock(*user);
        return place && (place == loop || moved.contains(place) || loop->isBeforeInBlock(place));
      });
      if (!isUsedBehind)
        continue;
      op->moveBefore(next);
      moved.insert(op);
      next = op;
    }
  }

  /// True if nothing but `store` touches the buffer in front of the loop.
  bool isReadBehind(Value buffer, Operation *store) {
    return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
      if (isa<dgpu::BufferPermuteOp>(user))
        return isReadBehind(user->getResult(0), store);
      Operation *place = loop->getBlock()->findAncestorOpInBlock(*user);
      return user == store || (place && (place == loop || loop->isBeforeInBlock(place)));
    });
  }

  void emitBody(ArrayRef<Value> ahead) {
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    Type i32 = builder.getI32Type();
    SmallVector<Value> inits{constant(builder, i32, 0)};
    llvm::append_range(inits, ahead);
    unsigned first = loop.getNumResults();
    loop = addLoopArguments(loop, inits);
    Value slot = loop.getRegionIterArg(first);

    builder.setInsertionPointToStart(loop.getBody());
    dgpu::AsyncWaitOp::create(builder, loc, distance() - 1);
    Value zero = constant(builder, i32, 0), one = constant(builder, i32, 1), last = constant(builder, i32, stages - 1);
    // (i + distance) mod S, by going back.
    Value back = constant(builder, i32, stages - distance());
    Value before = arith::SubIOp::create(builder, loc, slot, back);
    Value isBegin = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, slot, back);
    Value wrapped = arith::AddIOp::create(builder, loc, slot, constant(builder, i32, distance()));
    Value copySlot = arith::SelectOp::create(builder, loc, isBegin, wrapped, before);
    IRMapping mapping;
    for (auto [position, index] : llvm::enumerate(aheadArgs))
      mapping.map(loop.getRegionIterArg(index), loop.getRegionIterArg(first + 1 + position));
    // Warpgroup dots run while the next copies are started.
    if (Operation *dot = dotBeforeCopies()) {
      dgpu::FenceAsyncOp::create(builder, loc);
      builder.setInsertionPointAfter(dot);
    }
    emitCopies(builder, mapping, advance(builder, loop.getInductionVar(), distance()), copySlot);
    SmallVector<Value> next = nextAhead(mapping);

    for (StagedLoad &entry : staged)
      readFromBuffer(entry, slot);

    Operation *yield = loop.getBody()->getTerminator();
    builder.setInsertionPoint(yield);
    Value after = arith::AddIOp::create(builder, loc, slot, one);
    Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, last);
    yield->setOperand(first, arith::SelectOp::create(builder, loc, isLast, zero, after));
    for (auto [position, value] : llvm::enumerate(next))
      yield->setOperand(first + 1 + position, value);

    builder.setInsertionPointAfter(loop);
    dgpu::AsyncWaitOp::create(builder, loc, 0);
  }

  /// The last warpgroup dot of the body if one reads a ring; the first where the turn computes between them, so that nothing of the turn has been
  /// read when the copies are started, which else asked for a second barrier.
  Operation *dotBeforeCopies() {
    if (llvm::none_of(staged, [](const StagedLoad &entry) { return entry.store; }))
      return nullptr;
    if (computesBetweenDots)
      return *loop.getBody()->getOps<dgpu::WarpgroupDotOp>().begin();
    Operation *last = nullptr;
    for (auto dot : loop.getBody()->getOps<dgpu::WarpgroupDotOp>())
      last = dot;
    return last;
  }

  /// The dots that read the store's buffer read the slot of the ring instead.
  static void readFromRing(StagedLoad &entry, Value slot) {
    Value single = entry.store.getBuffer();
    entry.store.erase();
    SmallVector<std::pair<Value, Value>> views{{single, entry.buffer}};
    SmallVector<Operation *> unused{single.getDefiningOp()};
    while (!views.empty()) {
      auto [from, to] = views.pop_back_val();
      for (OpOperand &use : llvm::make_early_inc_range(from.getUses())) {
        if (auto permute = dyn_cast<dgpu::BufferPermuteOp>(use.getOwner())) {
          OpBuilder builder(to.getContext());
          builder.setInsertionPointAfterValue(to);
          views.push_back(
              {permute, dgpu::BufferPermuteOp::create(builder, permute.getLoc(), to, permute.getOrder()).getResult()});
          unused.push_back(permute);
        } else {
          auto dot = cast<dgpu::WarpgroupDotOp>(use.getOwner());
          if (dot.getA() == from)
            dot.getSlotAMutable().assign(slot);
          if (dot.getB() == from)
            dot.getSlotBMutable().assign(slot);
          use.set(to);
        }
      }
    }
    for (Operation *op : llvm::reverse(unused))
      op->erase();
  }

  /// True if all that is stored for the dots is copied to rings: what is stored otherwise has one slot, which a dot in flight may be reading.
  bool readOnlyRings() {
    auto stores = loop.getBody()->getOps<dgpu::BufferStoreOp>();
    return std::distance(stores.begin(), stores.end()) ==
           llvm::count_if(staged, [](const StagedLoad &entry) { return entry.store; });
  }

  /// True if every use of `value` ends in a layout conversion, so that nobody needs it in its own layout.
  static bool onlyConverted(Value value) {
    return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
      return isa<dgpu::ConvertLayoutOp>(user) || (isChainOp(user) && onlyConverted(user->getResult(0)));
    });
  }

  static void collectConversions(Value value, SmallVectorImpl<dgpu::ConvertLayoutOp> &conversions) {
    for (Operation *user : value.getUsers())
      if (auto convert = dyn_cast<dgpu::ConvertLayoutOp>(user))
        conversions.push_back(convert);
      else if (isChainOp(user) && onlyConverted(user->getResult(0)))
        collectConversions(user->getResult(0), conversions);
  }

  /// `value`, which is the load's result or comes from it through chain operations, in `layout`, read from the slot.
  Value compute(OpBuilder &builder, Value value, const DistributedLayout &layout, StagedLoad &entry, Value slot) {
    if (value == entry.load.getResult()) {
      auto type =
          dgpu::withLayout(cast<RankedTensorType>(value.getType()), dgpu::LayoutAttr::get(value.getContext(), layout));
      return dgpu::BufferLoadOp::create(builder, entry.load.getLoc(), type, entry.buffer, slot);
    }
    Operation *op = value.getDefiningOp();
    Value source = compute(builder, op->getOperand(0), *operandLayout(op->getOpOperand(0), layout), entry, slot);
    IRMapping mapping;
    mapping.map(op->getOperand(0), source);
    Operation *copy = builder.clone(*op, mapping);
    setLayout(copy->getResult(0), layout);
    return copy->getResult(0);
  }

  /// Replaces the load by reads of the slot, each in the layout in which the value is wanted.
  void readFromBuffer(StagedLoad &entry, Value slot) {
    if (entry.store) {
      readFromRing(entry, slot);
      entry.load.erase();
      return;
    }
    if (isAskedFor) {
      OpBuilder builder(entry.load);
      Location loc = entry.load.getLoc();
      Value read = dgpu::BufferLoadOp::create(builder, loc, entry.load.getType(), entry.buffer, slot);
      if (entry.load.getMask() && entry.load.getOther()) // copies that a mask leaves out write zeros
        read = arith::SelectOp::create(builder, loc, entry.load.getMask(), read, entry.load.getOther());
      entry.load.getResult().replaceAllUsesWith(read);
      entry.load.erase();
      return;
    }
    if (cast<RankedTensorType>(entry.load.getType()).getRank() == 1) {
      // Where it is used first: behind the start of the next copies.
      Operation *first = loop.getBody()->getTerminator();
      for (Operation *user : entry.load->getUsers())
        if (Operation *op = loop.getBody()->findAncestorOpInBlock(*user); op->isBeforeInBlock(first))
          first = op;
      OpBuilder builder(first);
      Value row = dgpu::BufferLoadOp::create(builder, entry.load.getLoc(), entry.load.getType(), entry.buffer, slot);
      entry.load.getResult().replaceAllUsesWith(row);
      entry.load.erase();
      return;
    }
    SmallVector<dgpu::ConvertLayoutOp> conversions;
    collectConversions(entry.load.getResult(), conversions);
    for (dgpu::ConvertLayoutOp convert : conversions) {
      OpBuilder builder(convert);
      Value read = compute(builder, convert.getSource(), dgpu::layoutOf(convert.getResult().getType()), entry, slot);
      convert.getResult().replaceAllUsesWith(read);
    }
    for (dgpu::ConvertLayoutOp convert : conversions)
      eraseUnused(convert);
    if (!entry.load->use_empty()) {
      OpBuilder builder(entry.load);
      Value read = dgpu::BufferLoadOp::create(builder, entry.load.getLoc(), entry.load.getResult().getType(),
                                              entry.buffer, slot);
      entry.load.getResult().replaceAllUsesWith(read);
    }
    entry.load.erase();
  }

  /// Erases an operation without uses, and the chain operations that only it used.
  static void eraseUnused(Operation *op) {
    while (op && op->use_empty() && !isa<tile::LoadOp>(op)) {
      Operation *source = op->getOperand(0).getDefiningOp();
      op->erase();
      op = source;
    }
  }

  scf::ForOp loop;
  int stages;
  const analysis::AxisInfoAnalysis &axisInfo;
  const analysis::PointerObjects &objects;
  int64_t limitBytes;
  bool isAskedFor;            ///< By the author, of a loop without dots.
  analysis::ObjectSet stored; ///< What the loop writes.
  SmallVector<StagedLoad> staged;
  llvm::SetVector<Operation *> slice;
  llvm::SetVector<unsigned> aheadArgs;
  bool computesBetweenDots = false; ///< With the results of some, while others accumulate.
  bool dotsStayInFlight = false;    ///< Over the barrier of the next iteration.
};

class PipelineLoopsPass : public impl::PipelineLoopsBase<PipelineLoopsPass> {
  using PipelineLoopsBase::PipelineLoopsBase;

  void runOnOperation() override {
    if (failed(analysis::checkLayouts(getOperation(), "dgpu-pipeline-loops")))
      return signalPassFailure();
    ModuleOp module = getOperation();
    SmallVector<scf::ForOp> loops;
    module.walk([&](scf::ForOp loop) {
      bool innermost =
          !loop.getBody()->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
      if (innermost && pipelineStagesOf(loop) > 1)
        loops.push_back(loop);
    });
    if (loops.empty())
      return;
    analysis::AxisInfoAnalysis axisInfo(module);
    const analysis::PointerObjects objects(module);
    for (scf::ForOp loop : loops)
      LoopPipeliner(loop, pipelineStagesOf(loop), axisInfo, objects, limitBytes).run();
  }
};

} // namespace
} // namespace ditron::transforms
