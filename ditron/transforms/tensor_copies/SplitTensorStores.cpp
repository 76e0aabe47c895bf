//===- SplitTensorStores.cpp - Each warpgroup stores its own rows ---------------------------------------------------------===//
//
// dgpu-tensor-stores makes the whole block meet around a staging buffer. When every 64 rows of the tile are held by one
// warpgroup, as accumulators of warpgroup dots are, a warpgroup needs to wait for nobody else:
//
//   tma_store_wait 0 read; barrier           the same, with barriers of warpgroups; the first thread of each warpgroup copies
//   buffer_store; fence_async; barrier  ->   the rows that its warpgroup wrote
//   tma_store; tma_store_commit
//
// In a persistent kernel the warpgroups then drift apart: while one converts and stores its part, the other one still keeps the
// tensor cores busy. On an H200 that is worth 3 to 8 per cent of a GEMM with few k steps per tile.
//
// All accesses of a buffer change, or none does, since barriers of warpgroups do not order one form with the other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/layout/Wgmma.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_SPLITTENSORSTORES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The warpgroup that holds each 64 rows of a matrix; empty if some warpgroup does not hold 64 rows whole.
SmallVector<int32_t> ownersOfRows(const layout::DistributedLayout &layout) {
  const layout::Shape &shape = layout.shape();
  if (shape.size() != 2 || shape[0] < layout::wgmmaRows)
    return {};
  const int firstRowBit = static_cast<int>(llvm::Log2_64(shape[1]));
  const int firstBlockBit = firstRowBit + static_cast<int>(llvm::Log2_32(layout::wgmmaRows));
  ArrayRef<int> warps(layout.bases(layout::MachineDim::Warp));
  const size_t warpsInGroup = llvm::Log2_32(layout::warpsPerGroup);
  // The warps of a group share each 64 rows, and nobody holds copies.
  for (auto [bit, basis] : llvm::enumerate(warps))
    if (basis == layout::zeroBasis || (bit >= warpsInGroup) != (basis >= firstBlockBit))
      return {};
  SmallVector<int32_t> owners;
  for (int64_t block = 0; block < shape[0] / layout::wgmmaRows; ++block) {
    int32_t owner = 0;
    for (auto [bit, basis] : llvm::enumerate(warps.drop_front(warpsInGroup)))
      owner |= static_cast<int32_t>(block >> (basis - firstBlockBit) & 1) << bit;
    owners.push_back(owner);
  }
  return owners;
}

/// One store with what dgpu-tensor-stores has put around it.
struct StagedStore {
  dgpu::BarrierOp reuse; ///< Null for a buffer that is written once.
  dgpu::BufferStoreOp write;
  dgpu::BarrierOp written;
  dgpu::TmaStoreOp copy;
  SmallVector<int32_t> owners;
};

std::optional<StagedStore> matchStore(dgpu::BufferStoreOp write) {
  StagedStore store;
  store.write = write;
  auto fence = dyn_cast_or_null<dgpu::FenceAsyncOp>(write->getNextNode());
  store.written = fence ? dyn_cast_or_null<dgpu::BarrierOp>(fence->getNextNode()) : dgpu::BarrierOp();
  store.copy = store.written ? dyn_cast_or_null<dgpu::TmaStoreOp>(store.written->getNextNode()) : dgpu::TmaStoreOp();
  if (!store.copy || store.copy.getBuffer() != write.getBuffer())
    return std::nullopt;
  store.reuse = dyn_cast_or_null<dgpu::BarrierOp>(write->getPrevNode());
  if (store.reuse && !isa_and_nonnull<dgpu::TmaStoreWaitOp>(store.reuse->getPrevNode()))
    store.reuse = {};
  store.owners = ownersOfRows(dgpu::layoutOf(write.getValue().getType()));
  return store.owners.empty() ? std::nullopt : std::optional(store);
}

/// The tensor map with boxes of 64 rows. Maps that also serve loads keep theirs.
bool narrowMap(Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  auto kernel = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!kernel || !llvm::all_of(map.getUsers(), llvm::IsaPred<dgpu::TmaStoreOp>))
    return false;
  auto description = kernel.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), dgpu::tensorMapAttrName);
  NamedAttrList fields(description);
  SmallVector<Attribute> box(description.getAs<ArrayAttr>("box").getValue());
  Builder builder(kernel.getContext());
  box[box.size() - 2] = builder.getI64IntegerAttr(layout::wgmmaRows);
  fields.set("box", builder.getArrayAttr(box));
  kernel.setArgAttr(argument.getArgNumber(), dgpu::tensorMapAttrName, fields.getDictionary(kernel.getContext()));
  return true;
}

class SplitTensorStoresPass : public impl::SplitTensorStoresBase<SplitTensorStoresPass> {
  void runOnOperation() override {
    if (dgpu::numWarpsOf(getOperation()) <= layout::warpsPerGroup)
      return;
    getOperation().walk([](dgpu::BufferAllocOp buffer) { splitStores(buffer); });
  }

  static void splitStores(dgpu::BufferAllocOp buffer) {
    SmallVector<StagedStore> stores;
    for (Operation *user : buffer->getUsers()) {
      if (isa<dgpu::TmaStoreOp>(user))
        continue;
      auto write = dyn_cast<dgpu::BufferStoreOp>(user);
      std::optional<StagedStore> store = write ? matchStore(write) : std::nullopt;
      // The same rows must stay with the same warpgroup from store to store.
      if (!store || (!stores.empty() && store->owners != stores.front().owners))
        return;
      stores.push_back(*store);
    }
    if (llvm::count_if(buffer->getUsers(), llvm::IsaPred<dgpu::TmaStoreOp>) != int64_t(stores.size()))
      return;
    for (StagedStore &store : stores)
      if (!narrowMap(store.copy.getMap()))
        return;
    for (StagedStore &store : stores) {
      if (store.reuse)
        store.reuse.setWarpgroups(true);
      store.write.setWarpgroups(true);
      store.written.setWarpgroups(true);
      store.copy.setWarpgroups(store.owners);
    }
  }
};

} // namespace
} // namespace ditron::transforms
