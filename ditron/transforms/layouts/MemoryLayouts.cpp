//===- MemoryLayouts.cpp - Coalesced layouts for memory accesses ----------------------------------------------------------===//
//
// See MemoryLayouts.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/layouts/MemoryLayouts.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace ditron::transforms {

Value accessedPointers(Operation *op) {
  Value pointers = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case<tile::LoadOp, tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, dgpu::AsyncCopyOp>(
                           [](auto access) { return access.getPtr(); })
                       .Default(Value());
  return pointers && isTensor(pointers) ? pointers : Value();
}

Value accessMask(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<tile::LoadOp, tile::StoreOp, tile::AtomicRmwOp, dgpu::AsyncCopyOp>(
          [](auto access) { return access.getMask(); })
      .Default(Value());
}

AccessPattern accessPattern(Operation *access, const analysis::AxisInfoAnalysis &axisInfo) {
  Value pointers = accessedPointers(access);
  auto type = cast<RankedTensorType>(pointers.getType());
  analysis::AxisInfo info = axisInfo.getAxisInfo(pointers);
  AccessPattern pattern;
  pattern.elementBytes = cast<tile::PointerType>(type.getElementType()).getElementBytes();
  // Among equally contiguous dimensions the last one is the fastest.
  pattern.order = layout::rowMajorOrder(static_cast<int>(type.getRank()));
  llvm::sort(pattern.order, [&](int a, int b) {
    return info.contiguity[a] != info.contiguity[b] ? info.contiguity[a] > info.contiguity[b] : a > b;
  });
  if (pattern.order.empty())
    return pattern;

  int fastest = pattern.order.front();
  int64_t widest = std::max<int64_t>(1, maxAccessBytes / pattern.elementBytes);
  pattern.vectorElems = std::min<int64_t>(axisInfo.contiguousElements(pointers, fastest), widest);
  pattern.maskElems = type.getShape()[fastest];
  if (Value mask = accessMask(access))
    pattern.maskElems = axisInfo.maskAlignment(mask, fastest);
  return pattern;
}

MemoryLayouts::MemoryLayouts(Operation *kernel, const analysis::AxisInfoAnalysis &axisInfo, int lanes, int warps)
    : lanes(lanes), warps(warps) {
  kernel->walk([&](Operation *op) {
    if (!accessedPointers(op))
      return;
    AccessPattern pattern = accessPattern(op, axisInfo);
    remark::analysis(op->getLoc(), remark::RemarkOpts::name("access").category("dgpu-assign-layouts"))
        << llvm::formatv("{0} bytes per instruction and thread", pattern.vectorElems * pattern.elementBytes).str();
    int64_t &vector = widest[{pattern.order, tensorShape(accessedPointers(op))}];
    vector = std::max(vector, pattern.vectorElems);
    patterns.insert({op, std::move(pattern)});
  });
}

layout::DistributedLayout MemoryLayouts::layoutFor(Operation *access) const {
  layout::Shape shape = tensorShape(accessedPointers(access));
  const AccessPattern &own = patternOf(access);
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  const int64_t vector =
      std::min(widest.at({own.order, shape}), std::max<int64_t>(1, elements / (int64_t(lanes) * warps)));
  return layout::tile(shape, own.order, vector, lanes, warps);
}

} // namespace ditron::transforms
