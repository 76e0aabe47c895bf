//===- Gathers.cpp - Asynchronous copies of tiles whose rows lie anywhere --------------------------------------------------===//
//
// See Gathers.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/Gathers.h"

#include "ditron/transforms/layouts/ElementValue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ditron::transforms {

namespace {

constexpr int64_t copyBytes = 16;

bool readsMemory(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op || isa<tile::LoadOp>(op))
    return op != nullptr;
  return llvm::any_of(elementOperands(op).value_or(SmallVector<Value>()), readsMemory);
}

class TileGather {
public:
  TileGather(OpBuilder &builder, tile::LoadOp load, Value buffer, Value slot, int threads)
      : load(load), loop(load->getParentOfType<scf::ForOp>()),
        copiesOfThread(
            std::max<int64_t>(1, cast<dgpu::BufferType>(buffer.getType()).getSlotBytes() / copyBytes / threads)),
        gather(dgpu::AsyncGatherOp::create(builder, load.getLoc(), buffer, slot, ValueRange())),
        body(&gather.getAddress().emplaceBlock()) {
    for (int dim = 0; dim < 2; ++dim)
      body->addArgument(builder.getI32Type(), load.getLoc());
  }

  SmallVector<Operation *> build() {
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    auto element = [&](Value tile) {
      return elementAt(inside, tile, {row(), body->getArgument(1)},
                       [&](Value part, ArrayRef<Value> index) { return heldElement(part, index); });
    };
    Value pointer = element(load.getPtr());
    Value mask = load.getMask() ? element(load.getMask()) : Value();
    dgpu::AddressOp::create(inside, load.getLoc(), pointer, mask);
    SmallVector<Operation *> result{gather};
    if (!tiles.empty())
      result.push_back(hold());
    for (Operation *op : SmallVector<Operation *>(result))
      op->walk([&](tile::LoadOp inner) { result.push_back(inner); });
    return result;
  }

private:
  BlockArgument row() const { return body->getArgument(0); }

  /// What the loop does not change and a row alone decides.
  Value heldElement(Value tile, ArrayRef<Value> index) {
    if (!loop.isDefinedOutsideOfLoop(tile) || !readsMemory(tile) ||
        !llvm::all_of(index, [&](Value at) { return at == row() || at.getDefiningOp<arith::ConstantOp>(); }))
      return {};
    const auto known = llvm::find(tiles, tile);
    if (known != tiles.end())
      return body->getArgument(2 + static_cast<unsigned>(known - tiles.begin()));
    tiles.push_back(tile);
    indices.emplace_back(index);
    return body->addArgument(cast<RankedTensorType>(tile.getType()).getElementType(), tile.getLoc());
  }

  /// Computes before the loop what the region was promised.
  Operation *hold() {
    OpBuilder before(loop);
    SmallVector<Type> types;
    for (Value tile : tiles)
      types.append(copiesOfThread, cast<RankedTensorType>(tile.getType()).getElementType());
    auto rows = dgpu::GatherRowsOp::create(before, load.getLoc(), types, gather.getBuffer());
    OpBuilder inside = OpBuilder::atBlockEnd(&rows.getRow().emplaceBlock());
    Value ofRow = inside.getBlock()->addArgument(inside.getI32Type(), load.getLoc());
    SmallVector<Value> values;
    for (auto [tile, index] : llvm::zip(tiles, indices)) {
      SmallVector<Value> place;
      for (Value at : index)
        place.push_back(at == row() ? ofRow : inside.clone(*at.getDefiningOp())->getResult(0));
      values.push_back(elementAt(inside, tile, place));
    }
    dgpu::RowValuesOp::create(inside, load.getLoc(), values);
    gather.getHeldMutable().assign(rows.getValues());
    return rows;
  }

  tile::LoadOp load;
  scf::ForOp loop;
  int64_t copiesOfThread;
  dgpu::AsyncGatherOp gather;
  Block *body;
  SmallVector<Value> tiles; ///< Held, one for each further argument of the region.
  SmallVector<SmallVector<Value>> indices;
};

} // namespace

SmallVector<Operation *> gatherTile(OpBuilder &builder, tile::LoadOp load, Value buffer, Value slot, int threads) {
  return TileGather(builder, load, buffer, slot, threads).build();
}

} // namespace ditron::transforms
