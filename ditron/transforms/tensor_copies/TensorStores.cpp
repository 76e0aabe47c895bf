//===- TensorStores.cpp - Descriptor stores by the copy engine ------------------------------------------------------------===//
//
// tile.descriptor_store becomes: the tile to a buffer in shared memory, one tensor store from there. Works on plain tile IR,
// before layouts, on targets with tensor copies. A store runs on while the kernel continues: in a persistent kernel it overlaps
// with the main loop of the next tile.
//
//   tile.descriptor_store %d[%x, %y], %t     becomes     tma_store_wait 0 read; barrier     the buffer's last store has read it
//                                                        buffer_store %t; fence_async; barrier
//                                                        tma_store %buffer to %map[%x, %y]; tma_store_commit
// 1. All stores of one shape and type share a buffer; where no store can come before, the first two are left out.
// 2. Before an operation that tells others about the data (signals, atomics, barriers, scalar stores), or that accesses the same
//    object, comes tma_store_wait 0 and a barrier, at the nearest place that all threads get to, even when only some reach the operation,
//    and outside of loops that the store is not in. Turns and branches that have nothing to tell wait for nothing.
// 3. Where the kernel may have stored to the same object by ordinary stores before, a fence of global memory comes first: those and the copy
//    go different ways to memory.
// 4. At the end of the partition: tma_store_wait 0 read, since shared memory must outlive the reads.
// Stores whose descriptor cannot become a tensor map are left to tile-lower-descriptors.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_TENSORSTORES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Rewrites the stores of one kernel.
class StoreRewriter {
public:
  StoreRewriter(func::FuncOp kernel, const analysis::UniformityAnalysis &uniformity) : kernel(kernel), uniformity(uniformity) {}

  void run() {
    kernel.walk([&](tile::DescriptorStoreOp store) {
      std::string reason = whyNoTensorCopy(store.getDescriptor(), store.getOffsets(), /*isStore=*/true);
      if (reason.empty())
        stores.push_back(store);
      else
        remark::missed(store.getLoc(), remark::RemarkOpts::name("tensor-store").category("dgpu-tensor-stores"))
            << "not a tensor copy: " + reason;
    });
    if (stores.empty())
      return;
    drainBeforeOthers();
    drainAtEnd();
    // What may come before is asked while all stores are there.
    SmallVector<bool> reuses, overwrites;
    for (tile::DescriptorStoreOp store : stores) {
      overwrites.push_back(mayOverwriteStores(store));
      reuses.push_back(llvm::any_of(stores, [&](tile::DescriptorStoreOp other) {
        return bufferTypeOf(other) == bufferTypeOf(store) && mayPrecede(other, store);
      }));
    }
    for (auto [store, reusesBuffer, overwritesStores] : llvm::zip(stores, reuses, overwrites))
      rewrite(store, reusesBuffer, overwritesStores);
  }

private:
  static dgpu::BufferType bufferTypeOf(tile::DescriptorStoreOp store) {
    return copyBufferType(cast<tile::DescriptorType>(store.getDescriptor().getType()), 1);
  }

  /// The tile without outer dimensions, as its author had it before he gave it some.
  static Value asMatrix(OpBuilder &builder, Value tile, dgpu::BufferType buffer) {
    auto type = RankedTensorType::get(buffer.getShape(), buffer.getElementType());
    if (tile.getType() == type)
      return tile;
    if (auto reshape = tile.getDefiningOp<tile::ReshapeOp>(); reshape && reshape.getSource().getType() == type)
      return reshape.getSource();
    return tile::ReshapeOp::create(builder, tile.getLoc(), type, tile);
  }

  void rewrite(tile::DescriptorStoreOp store, bool reusesBuffer, bool overwritesStores) {
    Location loc = store.getLoc();
    Value map = tensorMapFor(store.getDescriptor(), kernel);
    dgpu::BufferType type = bufferTypeOf(store);
    Value &buffer = buffers[type];
    if (!buffer) {
      OpBuilder top = OpBuilder::atBlockBegin(&kernel.getBody().front());
      buffer = dgpu::BufferAllocOp::create(top, loc, type, IntegerAttr());
    }
    remark::passed(loc, remark::RemarkOpts::name("tensor-store").category("dgpu-tensor-stores"))
        << llvm::formatv("tensor copy through {0} bytes of shared memory", type.getBytes()).str();
    OpBuilder builder(store);
    Value slot = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    if (overwritesStores)
      dist::IntrinsicOp::create(builder, loc, TypeRange(), "fence_proxy_async", ValueRange(), DictionaryAttr());
    if (reusesBuffer) {
      dgpu::TmaStoreWaitOp::create(builder, loc, 0, /*read=*/true);
      dgpu::BarrierOp::create(builder, loc);
    }
    dgpu::BufferStoreOp::create(builder, loc, asMatrix(builder, store.getValue(), type), buffer, slot);
    dgpu::FenceAsyncOp::create(builder, loc);
    dgpu::BarrierOp::create(builder, loc);
    dgpu::TmaStoreOp::create(builder, loc, buffer, slot, map, store.getOffsets(), DenseI32ArrayAttr());
    dgpu::TmaStoreCommitOp::create(builder, loc);
    store.erase();
  }

  //===----------------------------------------------------------------------------------------------------------------===//
  // Completion
  //===----------------------------------------------------------------------------------------------------------------===//

  /// True if others may learn from `op` that the stored data is there.
  static bool publishes(Operation *op) {
    if (auto store = dyn_cast<tile::StoreOp>(op))
      return !isTensor(store.getValue()) || store.getIsVolatile();
    return isa<dist::NotifyOp, dist::StOp, dist::StVectorOp, dist::FenceOp, dist::IntrinsicOp, dist::PutOp, dist::PutSignalOp, dist::SignalOpOp,
               dist::OrderOp, dist::TeamBarrierOp, dist::CollectiveOp, dist::MultimemStOp, dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp, dist::SyncThreadsOp,
               tile::AtomicRmwOp, tile::AtomicCasOp>(op);
  }

  /// True if `op` may access what the store writes. Tensor stores need no order among themselves: two of them to one place would
  /// be the kernel's own mistake.
  static bool touches(Operation *op, tile::DescriptorStoreOp store) {
    if (!isa<tile::LoadOp, tile::StoreOp, tile::DescriptorLoadOp, tile::DescriptorStoreOp>(op))
      return false;
    if (auto other = dyn_cast<tile::DescriptorStoreOp>(op);
        other && whyNoTensorCopy(other.getDescriptor(), other.getOffsets(), /*isStore=*/true).empty())
      return false;
    Value pointer = op->getOperand(0);
    if (isa<tile::DescriptorType>(pointer.getType())) {
      tile::MakeDescriptorOp descriptor = descriptorOf(pointer);
      if (!descriptor)
        return true;
      pointer = descriptor.getBase();
    }
    BlockArgument accessed = argumentBehind(pointer);
    return !accessed || accessed == argumentBehind(descriptorOf(store.getDescriptor()).getBase());
  }

  /// True if ordinary stores to the object of the store may come before it.
  bool mayOverwriteStores(tile::DescriptorStoreOp store) {
    return kernel
        .walk([&](Operation *op) {
          if (!isa<tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, dist::StOp, dist::StVectorOp,
                   dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp>(op) ||
              !mayPrecede(op, store))
            return WalkResult::advance();
          BlockArgument written = argumentBehind(op->getOperand(0));
          const bool isOther = written && written != argumentBehind(descriptorOf(store.getDescriptor()).getBase());
          return isOther ? WalkResult::advance() : WalkResult::interrupt();
        })
        .wasInterrupted();
  }

  void drainBeforeOthers() {
    llvm::SetVector<Operation *> places;
    kernel.walk([&](Operation *op) {
      if (dgpu::WarpSpecializeOp partitions = op->getParentOfType<dgpu::WarpSpecializeOp>();
          partitions && partitions.getProducer().isAncestor(op->getParentRegion()))
        return;
      for (tile::DescriptorStoreOp store : stores)
        if ((publishes(op) || touches(op, store)) && mayPrecede(store, op))
          places.insert(whereAllGet(store, op));
    });
    for (Operation *place : places) {
      if (isDrainedBefore(place, places.getArrayRef()))
        continue;
      OpBuilder builder(place);
      dgpu::TmaStoreWaitOp::create(builder, place->getLoc(), 0, /*read=*/false);
      dgpu::BarrierOp::create(builder, place->getLoc());
    }
  }

  /// `op`, or what contains it: inside the innermost block that also contains `store`, under branches that all threads take alike.
  Operation *whereAllGet(Operation *store, Operation *op) {
    Operation *around = store;
    while (!around->getBlock()->findAncestorOpInBlock(*op))
      around = around->getParentOp();
    Operation *place = op;
    for (Operation *each = op; each->getBlock() != around->getBlock(); each = each->getParentOp())
      if (Operation *parent = each->getParentOp(); !isa<scf::IfOp>(parent) || uniformity.ownCondition(parent))
        place = parent;
    return place;
  }

  /// True if another of the places, earlier in the same block, leaves nothing to wait for.
  bool isDrainedBefore(Operation *place, ArrayRef<Operation *> places) {
    Operation *last = nullptr;
    for (Operation *other : places)
      if (other != place && other->getBlock() == place->getBlock() && other->isBeforeInBlock(place) &&
          (!last || last->isBeforeInBlock(other)))
        last = other;
    return last && llvm::none_of(stores, [&](tile::DescriptorStoreOp store) {
             Operation *between = place->getBlock()->findAncestorOpInBlock(*store);
             return between && (between == last || last->isBeforeInBlock(between)) && between->isBeforeInBlock(place);
           });
  }

  void drainAtEnd() {
    Operation *end = kernel.getBody().front().getTerminator();
    OpBuilder builder(end);
    if (auto partitions = stores.front()->getParentOfType<dgpu::WarpSpecializeOp>())
      builder.setInsertionPointToEnd(&partitions.getConsumer().front());
    dgpu::TmaStoreWaitOp::create(builder, end->getLoc(), 0, /*read=*/true);
  }

  func::FuncOp kernel;
  const analysis::UniformityAnalysis &uniformity;
  SmallVector<tile::DescriptorStoreOp> stores;
  llvm::DenseMap<Type, Value> buffers;
};

class TensorStoresPass : public impl::TensorStoresBase<TensorStoresPass> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(dgpu::tmaAttrName))
      return;
    const analysis::UniformityAnalysis uniformity(getOperation());
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (!kernel.isExternal())
        StoreRewriter(kernel, uniformity).run();
  }
};

} // namespace
} // namespace ditron::transforms
