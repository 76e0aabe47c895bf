//===- BindTensorMaps.cpp - What the lowering of a tensor copy must know of its map ---------------------------------------===//
//
// The pass dgpu-bind-tensor-maps. A tensor copy names a kernel argument, and the argument's attribute says for the launcher how the
// map is built. The lowering cuts the tile of each copy into boxes of the map: their sizes and the swizzle become attributes of the
// copy, since arguments have lost theirs when copies are lowered. After dgpu-split-tensor-stores, which still changes boxes.
//
// Maps arrive by value, in constant memory. The first copy by a map would wait for it: every kernel begins with a prefetch of each.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_BINDTENSORMAPS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The launcher's description of a map; null unless it is the argument of a kernel.
DictionaryAttr descriptionOf(Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!function)
    return {};
  return function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), dgpu::tensorMapAttrName);
}

template <typename CopyOp> LogicalResult bind(CopyOp copy) {
  DictionaryAttr description = descriptionOf(copy.getMap());
  if (!description)
    return copy->emitOpError("needs a map that is a kernel argument with the attribute '")
           << dgpu::tensorMapAttrName << "'";
  auto list = description.getAs<ArrayAttr>("box");
  SmallVector<int64_t> sizes;
  if (list)
    for (Attribute size : list)
      if (auto number = dyn_cast<IntegerAttr>(size))
        sizes.push_back(number.getInt());
  if (!list || sizes.size() != list.size() || sizes.empty())
    return copy->emitOpError("has a map without the sizes of its box");
  auto swizzle = description.getAs<IntegerAttr>("swizzle");
  if (!swizzle)
    return copy->emitOpError("has a map that does not say its swizzle");
  copy.setBox(sizes);
  copy.setSwizzleBytes(swizzle.getInt());
  return success();
}

class BindTensorMapsPass : public impl::BindTensorMapsBase<BindTensorMapsPass> {
  void runOnOperation() override {
    WalkResult walk = getOperation().walk([](Operation *op) {
      auto load = dyn_cast<dgpu::TmaLoadOp>(op);
      auto store = dyn_cast<dgpu::TmaStoreOp>(op);
      return (load && failed(bind(load))) || (store && failed(bind(store))) ? WalkResult::interrupt()
                                                                            : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
      for (BlockArgument argument : function.getArguments())
        if (isa<dgpu::TensorMapType>(argument.getType()))
          dgpu::TmaPrefetchOp::create(builder, function.getLoc(), argument);
    }
  }
};

} // namespace
} // namespace ditron::transforms
