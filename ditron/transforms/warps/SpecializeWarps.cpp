//===- SpecializeWarps.cpp - A producer warp that fetches for the others --------------------------------------------------===//
//
// On targets with tensor copies and warpgroup dots: loads of descriptors that feed dots are taken over by a warp of their own,
// which runs ahead through rings of tiles in shared memory. Works on plain tile IR, before layouts.
//
// 1. Candidates: tile.descriptor_load whose every use is, through transposes, an operand of a dot that warpgroups can do; whose
//    descriptor can become a tensor map; whose offsets and surrounding control flow a producer can compute (ProducerSlice); and
//    which nothing else orders (barriers, atomics, acquire loads).
// 2. Loads of one block that meet in a dot share a ring: S tiles each, S mbarriers `full` (one arrival and the bytes) and S
//    mbarriers `empty` (one arrival per consumer warp). S = num_stages where the ring's block is the body of a loop with its
//    dots, 2 of a loop whose inner loops have them, else 1; less when shared memory does not suffice. Loops one after the other that
//    load tiles alike go on in one ring.
// 3. The body becomes the consumer region of dgpu.warp_specialize, a pruned copy of it the producer region.
//    Producer, in place of the ring's last load:     Consumer, in place of the dots:
//      wait empty[slot], parity ^ 1                    wait full[slot], parity
//      expect full[slot], bytes of all tiles           r = warpgroup_dot a[slot], b[slot], acc
//      tma_load each tile to slot, full[slot]          w = warpgroup_wait 1, r;  arrive empty[slot - 1] unless first iteration
//    and after the loop: warpgroup_wait 0; arrive empty[last slot] if there was an iteration. So one group of multiplies is always in
//    flight. A dot whose result is used inside the loop is waited for at once.
//    A row ([1, N], or with more such dimensions) that something else than a dot uses comes with the tiles of its block, and the consumer reads it to registers.
//    A tile of pointers (tile.load in a loop whose author asks for warp_specialize) that meets a fetched one in a dot is gathered by a producer of four
//    warps, all of whose threads copy and arrive; the hardware lets each arrive when its copies are there, so the producer waits for none of them:
//      after the tma_loads: async_gather to slot; arrive_copied full[slot]           the consumer fences behind its wait
// 4. With tile.cluster_blocks = 2: what both blocks of a cluster load at the same turn, as analysis/Uniformity proves, they fetch by halves into
//    both. A slot is then empty when the consumers of both blocks say so, and no block ends before the other one's last word.
// 5. A consumer of one warpgroup that computes between its dots has no other one to take turns with, and the tensor core idles meanwhile. Where
//    blocks stay (dgpu-loop-over-programs) and rings of two slots fit half of shared memory, a multiprocessor gets two blocks: each has half of
//    the registers, which is as many as one warpgroup can use, and multiplies while the other one computes.
// 6. A dist.wait goes where its token is used; without users, to both.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/ResidentBlocks.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "ditron/transforms/warps/Gathers.h"
#include "ditron/transforms/warps/RingCursor.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// What is built for a ring; rings of a group have the same mbarriers.
struct RingObjects {
  Value full, empty;
  SmallVector<Value> buffers; ///< Of the copies.
  RingCursor cursor;          ///< The consumer's.
  Operation *lastDot = nullptr;
  SmallVector<Operation *> rows; ///< The consumer's reads of them.
};

/// Where a fetched tile comes from and goes to.
struct Place {
  Value map, buffer;
  Value slot; ///< In the consumer.
};

/// Builds the partitions of one kernel.
class KernelSpecialization {
public:
  KernelSpecialization(func::FuncOp kernel, int warps, RingPlan &plan)
      : kernel(kernel), warps(warps), plan(plan), objects(plan.rings().size()) {}

  void run() {
    findShared();
    allocate();
    Block &entry = kernel.getBody().front();
    if (!sharedLoads.empty())
      dgpu::ClusterBarrierOp::create(top, kernel.getLoc());
    partitions = dgpu::WarpSpecializeOp::create(top, kernel.getLoc());
    divideRegisters();
    if (!sharedLoads.empty())
      partitions.setClusterBlocks(2);
    Block &consumer = partitions.getConsumer().emplaceBlock(), &producer = partitions.getProducer().emplaceBlock();
    consumer.getOperations().splice(consumer.end(), entry.getOperations(), std::next(Block::iterator(partitions)),
                                    std::prev(entry.end()));
    if (plan.producerWarps() > 1)
      partitions.setActiveWarps(plan.producerWarps());
    for (Ring &ring : plan.rings())
      ring.block = ring.loads.front()->getBlock();
    IRMapping copies;
    OpBuilder copier = OpBuilder::atBlockEnd(&producer);
    for (Operation &op : consumer)
      copier.clone(op, copies);
    buildProducer(producer, copies);
    buildConsumer(consumer);
    if (!sharedLoads.empty()) {
      OpBuilder end = OpBuilder::atBlockEnd(&consumer);
      dgpu::ClusterBarrierOp::create(end, kernel.getLoc());
    }
  }

private:
  static constexpr int lanes = 32; ///< Of a warp.

  /// The block's registers between the warpgroup of the producer, which needs few unless it keeps the addresses of many rows, and the consumer's.
  /// Each thread has whole eights, already when the block begins: what is lost by that nobody can have, and asking for more than there is waits
  /// for ever.
  void divideRegisters() {
    constexpr int ofMultiprocessor = 65536, most = 232, granularity = 8;
    const int resident = plan.residentBlocks();
    dgpu::setResidentBlocks(kernel->getParentOfType<ModuleOp>(), resident); // the caller's wish does not count
    const int consumers = warps * lanes, producers = static_cast<int>(partitions.getProducerWarps()) * lanes;
    const auto forEach = [](int registers, int threads) { return registers / threads / granularity * granularity; };
    const int all = forEach(ofMultiprocessor / resident, consumers + producers) * (consumers + producers);
    const int ofProducer = plan.producerWarps() > 1 ? 88 : warps > 8 ? 32 : resident > 1 ? 24 : 40;
    partitions.setProducerRegisters(ofProducer);
    partitions.setConsumerRegisters(std::min(most, forEach(all - ofProducer * producers, consumers)));
  }

  /// Loads of one and the same tile in both blocks of a cluster, where loops ask for clusters. The blocks must get to all loads of a ring in
  /// step: what they share has the slots of what they do not share.
  void findShared() {
    if (!kernel
             .walk([](scf::ForOp loop) {
               return loop->hasAttr("tile.cluster_blocks") ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted())
      return;
    const analysis::UniformityAnalysis clusters(kernel, analysis::UniformityOf::Clusters);
    for (const Ring &ring : plan.rings())
      for (tile::DescriptorLoadOp load : ring.loads) {
        auto type = cast<tile::DescriptorType>(load.getDescriptor().getType());
        if (!clusters.divergentCondition(load) && canBeFetchedByHalves(type) &&
            llvm::none_of(load.getOffsets(), [&](Value offset) { return clusters.isVarying(offset); }))
          sharedLoads.insert(load);
      }
  }
  bool isShared(const Ring &ring) const {
    return llvm::any_of(ring.loads, [&](tile::DescriptorLoadOp load) { return sharedLoads.contains(load); });
  }

  void allocate() {
    top = OpBuilder::atBlockBegin(&kernel.getBody().front());
    SmallVector<RingObjects *> first(plan.numGroups());
    for (auto [ring, object] : llvm::zip(plan.rings(), objects)) {
      Location loc = ring.loads.front().getLoc();
      SmallVector<tile::DescriptorLoadOp> ofRing = ring.copies();
      const auto addBuffers = [&](RingObjects &to) { // a ring of the group may have more rows than those before it
        for (size_t i = to.buffers.size(); i < ofRing.size(); ++i) {
          auto descriptor = cast<tile::DescriptorType>(ofRing[i].getDescriptor().getType());
          dgpu::BufferType type = copyBufferType(descriptor, ring.slots);
          to.buffers.push_back(dgpu::BufferAllocOp::create(top, ofRing[i].getLoc(), type, IntegerAttr()));
        }
      };
      if (RingObjects *shared = first[ring.group]) {
        addBuffers(*shared);
        object = *shared;
      } else {
        addBuffers(object);
        auto type = dgpu::MbarriersType::get(kernel.getContext(), ring.slots);
        const int arrivals = ring.gathers.empty() ? 1 : 1 + plan.producerWarps() * lanes;
        object.full = dgpu::MbarrierAllocOp::create(top, loc, type, arrivals, /*cluster=*/false, IntegerAttr());
        object.empty = dgpu::MbarrierAllocOp::create(top, loc, type, warps, isShared(ring), IntegerAttr());
        first[ring.group] = &object;
      }
      for (auto [load, buffer] : llvm::zip(ofRing, object.buffers)) {
        const MapUse use = llvm::is_contained(ring.rows, load) ? MapUse::Plain
                           : sharedLoads.contains(load)        ? MapUse::SharedDotOperands
                                                               : MapUse::DotOperands;
        places[load] = {tensorMapFor(load.getDescriptor(), kernel, use), buffer, {}};
      }
      for (tile::LoadOp load : ring.gathers) {
        dgpu::BufferType type = copyBufferType(cast<RankedTensorType>(load.getType()), ring.slots);
        places[load] = {{}, dgpu::BufferAllocOp::create(top, load.getLoc(), type, IntegerAttr()), {}};
      }
    }
  }

  /// The cursors of all rings in a partition, whose loops and branches get to carry them; `blocks` are the rings' there.
  SmallVector<RingCursor> threadRings(Block &body, ArrayRef<Block *> blocks) {
    SmallVector<RingCursor> cursors(blocks.size());
    for (size_t group = 0; group < plan.numGroups(); ++group) {
      SmallVector<size_t> members;
      SmallVector<Block *> ofGroup;
      for (auto [i, ring] : llvm::enumerate(plan.rings()))
        if (ring.group == group) {
          members.push_back(i);
          ofGroup.push_back(blocks[i]);
        }
      Ring &ring = plan.rings()[members.front()];
      for (auto [i, cursor] : llvm::zip(members, threadRing(&body, ofGroup, ring.slots, ring.loads.front().getLoc())))
        cursors[i] = cursor;
    }
    return cursors;
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Producer
  //===----------------------------------------------------------------------------------------------------------------===//

  void buildProducer(Block &body, const IRMapping &copies) {
    llvm::DenseSet<Operation *> kept;
    for (Operation *op : plan.producerEffects())
      kept.insert(copies.lookup(op));
    SmallVector<Operation *> lasts;
    SmallVector<Block *> blocks;
    for (const Ring &ring : plan.rings()) {
      lasts.push_back(copies.lookup(ring.lastLoad()));
      blocks.push_back(lasts.back()->getBlock());
    }
    for (auto [ring, object, last, cursor] : llvm::zip(plan.rings(), objects, lasts, threadRings(body, blocks))) {
      Location loc = last->getLoc();
      OpBuilder builder(last);
      Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
      Value before = arith::XOrIOp::create(builder, loc, cursor.parity, one);
      kept.insert(dgpu::MbarrierWaitOp::create(builder, loc, object.empty, cursor.slot, before));
      kept.insert(dgpu::MbarrierExpectOp::create(builder, loc, object.full, cursor.slot, ring.copiedBytes()));
      for (tile::DescriptorLoadOp load : ring.copies()) {
        auto copy = cast<tile::DescriptorLoadOp>(copies.lookup(load.getOperation()));
        const Place &place = places[load];
        kept.insert(dgpu::TmaLoadOp::create(builder, load.getLoc(), place.map, copy.getOffsets(), place.buffer,
                                            cursor.slot, object.full, cursor.slot, load.getEvict(),
                                            sharedLoads.contains(load)));
      }
      if (!ring.gathers.empty())
        gather(ring, object, cursor, builder, copies, kept);
    }
    pruneToSlice(body, kept);
  }

  /// The copies of a ring's gathered tiles, and what says that they have arrived.
  void gather(Ring &ring, RingObjects &object, RingCursor cursor, OpBuilder &builder, const IRMapping &copies,
              llvm::DenseSet<Operation *> &kept) {
    Location loc = ring.gathers.front().getLoc();
    for (tile::LoadOp load : ring.gathers) {
      auto copy = cast<tile::LoadOp>(copies.lookup(load.getOperation()));
      for (Operation *reads : gatherTile(builder, copy, places[load].buffer, cursor.slot, plan.producerWarps() * lanes))
        kept.insert(reads);
    }
    kept.insert(dgpu::MbarrierArriveCopiedOp::create(builder, loc, object.full, cursor.slot));
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Consumer
  //===----------------------------------------------------------------------------------------------------------------===//

  void buildConsumer(Block &body) {
    llvm::DenseSet<Operation *> awaited; // waits with tokens that something uses
    body.walk([&](dist::WaitOp wait) {
      if (!wait.getToken().use_empty())
        awaited.insert(wait);
    });
    SmallVector<Block *> blocks;
    for (const Ring &ring : plan.rings())
      blocks.push_back(ring.block);
    for (auto [ring, object, cursor] : llvm::zip(plan.rings(), objects, threadRings(body, blocks))) {
      Location loc = ring.loads.front().getLoc();
      object.cursor = cursor;
      for (tile::DescriptorLoadOp load : ring.copies())
        places[load].slot = object.cursor.slot;
      for (tile::LoadOp load : ring.gathers)
        places[load].slot = object.cursor.slot;
      OpBuilder builder(ring.firstRead());
      dgpu::MbarrierWaitOp::create(builder, loc, object.full, object.cursor.slot, object.cursor.parity);
      if (!ring.gathers.empty()) // copies of threads are ordinary writes
        dgpu::FenceAsyncOp::create(builder, loc);
    }
    replaceDots();
    readRows();
    for (auto [ring, object] : llvm::zip(plan.rings(), objects))
      if (ring.isAsync)
        releaseBehind(ring, object);
      else
        releaseAtOnce(ring, object);
    for (Ring &ring : plan.rings()) {
      for (tile::DescriptorLoadOp load : ring.loads)
        eraseWithUsers(load);
      for (tile::LoadOp load : ring.gathers)
        eraseWithUsers(load);
    }
    eraseDeadCode(body);
    // The producer waits for what only it reads.
    SmallVector<Operation *> idle;
    body.walk([&](dist::WaitOp wait) {
      if (awaited.contains(wait) && wait.getToken().use_empty())
        idle.push_back(wait);
    });
    for (Operation *wait : idle)
      wait->erase();
    eraseDeadCode(body);
  }

  /// Erases a load and the transposes of it.
  static void eraseWithUsers(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      eraseWithUsers(user);
    op->erase();
  }

  /// Gives what is read from a buffer, which is a matrix, to the users of a row that may have more dimensions of one element.
  static void dropOuterDimensions(tile::DescriptorLoadOp row, Value matrix, OpBuilder &builder) {
    for (Operation *user : llvm::make_early_inc_range(row->getUsers()))
      if (auto reshape = dyn_cast<tile::ReshapeOp>(user); reshape && reshape.getType() == matrix.getType()) {
        reshape.replaceAllUsesWith(matrix);
        reshape.erase();
      }
    if (row->use_empty())
      return;
    if (row.getType() != matrix.getType())
      matrix = tile::ReshapeOp::create(builder, row.getLoc(), row.getType(), matrix);
    row.replaceAllUsesWith(matrix);
  }

  void readRows() {
    for (auto [ring, object] : llvm::zip(plan.rings(), objects))
      for (tile::DescriptorLoadOp row : ring.rows) {
        OpBuilder builder(row);
        const Place &place = places[row];
        auto buffer = cast<dgpu::BufferType>(place.buffer.getType());
        auto matrix = RankedTensorType::get(buffer.getShape(), buffer.getElementType());
        auto read = dgpu::BufferLoadOp::create(builder, row.getLoc(), matrix, place.buffer, place.slot);
        dropOuterDimensions(row, read.getResult(), builder);
        object.rows.push_back(read);
        row.erase();
      }
  }

  /// Every dot of a ring becomes a warpgroup dot; those that do not stay in flight are waited for.
  void replaceDots() {
    llvm::SetVector<Block *> asyncBlocks;
    for (Ring &ring : plan.rings())
      if (ring.isAsync)
        asyncBlocks.insert(ring.block);
    llvm::SmallVector<std::pair<Block *, SmallVector<tile::DotOp>>> asyncDots;
    for (Block *block : asyncBlocks)
      asyncDots.push_back({block, plan.ringDotsIn(block)});

    llvm::DenseMap<Operation *, dgpu::WarpgroupDotOp> replaced;
    for (auto [ring, object] : llvm::zip(plan.rings(), objects)) {
      for (tile::DotOp dot : ring.dots) {
        auto [entry, isNew] = replaced.try_emplace(dot);
        if (isNew)
          entry->second = replaceDot(dot, asyncBlocks.contains(dot->getBlock()));
      }
      object.lastDot = replaced[ring.dots.back()];
    }
    for (auto &[block, dots] : asyncDots) {
      SmallVector<dgpu::WarpgroupDotOp> started;
      for (tile::DotOp dot : dots)
        started.push_back(replaced[dot]);
      waitBehind(block, started);
    }
    for (auto &[dot, replacement] : replaced)
      dot->erase();
  }

  dgpu::WarpgroupDotOp replaceDot(tile::DotOp dot, bool staysInFlight) {
    OpBuilder builder(dot);
    Location loc = dot.getLoc();
    auto [a, slotA] = operandOf(dot.getA());
    auto [b, slotB] = operandOf(dot.getB());
    auto started = dgpu::WarpgroupDotOp::create(builder, loc, a, slotA, b, slotB, dot.getC(),
                                                readsAccumulator(dot, staysInFlight, builder), promotionOf(dot));
    Value result = started.getResult();
    if (!staysInFlight)
      result = dgpu::WarpgroupWaitOp::create(builder, loc, ValueRange(result), 0).getResults().front();
    dot.getResult().replaceAllUsesWith(result);
    return started;
  }

  /// Whether the dot reads its accumulator: never if that is zeros; if it is a carried value that starts from zeros, and the dot stays
  /// in flight, in all iterations but the first. Else nothing: always.
  static Value readsAccumulator(tile::DotOp dot, bool staysInFlight, OpBuilder &builder) {
    auto isZero = [](Value value) { return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()); };
    if (isZero(dot.getC()) && !promotionOf(dot))
      return arith::ConstantOp::create(builder, dot.getLoc(), builder.getBoolAttr(false));
    auto argument = dyn_cast<BlockArgument>(dot.getC());
    if (!argument || !staysInFlight)
      return {};
    auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!isZero(loop.getTiedLoopInit(argument)->get()))
      return {};
    return arith::CmpIOp::create(builder, dot.getLoc(), arith::CmpIPredicate::ne, loop.getInductionVar(),
                                 loop.getLowerBound());
  }

  /// The buffer and slot of an operand; a tensor that was not fetched is its own operand and has no slot.
  std::pair<Value, Value> operandOf(Value operand) {
    OperandRoot root = rootOf(operand);
    auto found = places.find(root.value.getDefiningOp());
    if (found == places.end())
      return {operand, {}};
    Value buffer = found->second.buffer;
    if (root.isTransposed) {
      Value &view = transposed[buffer];
      if (!view) {
        OpBuilder builder(partitions);
        view = dgpu::BufferPermuteOp::create(builder, buffer.getLoc(), buffer, {1, 0});
      }
      buffer = view;
    }
    return {buffer, found->second.slot};
  }

  /// The multiplies of the iteration before are complete when only this iteration's are left.
  static void waitBehind(Block *block, ArrayRef<dgpu::WarpgroupDotOp> dots) {
    auto loop = cast<scf::ForOp>(block->getParentOp());
    Operation *yield = block->getTerminator();
    SmallVector<Value> carried, results;
    SmallVector<unsigned> indices;
    for (dgpu::WarpgroupDotOp dot : dots)
      if (OpOperand &use = *dot.getResult().use_begin(); use.getOwner() == yield) {
        carried.push_back(dot.getResult());
        indices.push_back(use.getOperandNumber());
      }
    OpBuilder builder(block->getParentOp()->getContext());
    Operation *last = dots.back();
    builder.setInsertionPointAfter(last);
    auto wait = dgpu::WarpgroupWaitOp::create(builder, last->getLoc(), carried, static_cast<uint32_t>(dots.size()));
    for (auto [position, index] : llvm::enumerate(indices)) {
      yield->setOperand(index, wait.getResult(position));
      results.push_back(loop.getResult(index));
    }
    builder.setInsertionPointAfter(loop);
    auto drain = dgpu::WarpgroupWaitOp::create(builder, last->getLoc(), results, 0);
    for (auto [result, complete] : llvm::zip(results, drain.getResults()))
      result.replaceAllUsesExcept(complete, drain);
  }

  /// Behind the waits that follow an operation.
  static void setInsertionPointBehind(OpBuilder &builder, Operation *op) {
    while (isa_and_nonnull<dgpu::WarpgroupWaitOp>(op->getNextNode()))
      op = op->getNextNode();
    builder.setInsertionPointAfter(op);
  }

  void releaseAtOnce(Ring &ring, RingObjects &object) {
    OpBuilder builder(kernel.getContext());
    Operation *last = ring.block->findAncestorOpInBlock(*object.lastDot);
    for (Operation *row : object.rows)
      last = last->isBeforeInBlock(row) ? row : last;
    setInsertionPointBehind(builder, last);
    dgpu::MbarrierArriveOp::create(builder, object.lastDot->getLoc(), object.empty, object.cursor.slot, Value(),
                                   isShared(ring));
  }

  /// Releases the slot of the iteration before in each but the first, and the last slot after the loop.
  void releaseBehind(Ring &ring, RingObjects &object) {
    auto loop = cast<scf::ForOp>(ring.block->getParentOp());
    Location loc = object.lastDot->getLoc();
    OpBuilder builder(kernel.getContext());
    // All dots of the body stand before the wait.
    Operation *wait = nullptr;
    for (auto op : ring.block->getOps<dgpu::WarpgroupWaitOp>())
      wait = op;
    builder.setInsertionPointAfter(wait);
    Value isLater =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
    Value before = slotBefore(builder, loc, object.cursor.slot, ring.slots);
    dgpu::MbarrierArriveOp::create(builder, loc, object.empty, before, isLater, isShared(ring));

    setInsertionPointBehind(builder, loop);
    auto order = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value hasRun = arith::CmpIOp::create(builder, loc, order, loop.getLowerBound(), loop.getUpperBound());
    Value last = slotBefore(builder, loc, loop.getTiedLoopResult(cast<BlockArgument>(object.cursor.slot)), ring.slots);
    dgpu::MbarrierArriveOp::create(builder, loc, object.empty, last, hasRun, isShared(ring));
  }

  func::FuncOp kernel;
  int warps;
  RingPlan &plan;
  SmallVector<RingObjects> objects; ///< Of the plan's rings, in their order.
  llvm::DenseMap<Operation *, Place> places;
  llvm::DenseSet<Operation *> sharedLoads; ///< That a cluster's blocks fetch together.
  llvm::DenseMap<Value, Value> transposed;
  OpBuilder top{kernel.getContext()}; ///< Behind the allocations.
  dgpu::WarpSpecializeOp partitions;
};

class SpecializeWarpsPass : public impl::SpecializeWarpsBase<SpecializeWarpsPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!hasProducers(module))
      return;
    const int warps = dgpu::numWarpsOf(module);
    for (auto kernel : module.getOps<func::FuncOp>()) {
      // The body must be one block that ends in a return without values.
      if (kernel.isExternal() || kernel.getBody().front().getTerminator()->getNumOperands() != 0)
        continue;
      RingPlan plan(kernel, warps, limitBytes);
      if (plan.run())
        KernelSpecialization(kernel, warps, plan).run();
    }
  }
};

} // namespace
} // namespace ditron::transforms
