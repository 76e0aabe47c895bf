//===- PointerObjects.cpp - Which arguments a pointer may come from ---------------------------------------*- C++ -*-===//
//
// Forward from the arguments, and from the operations that make pointers of their own, along uses until nothing changes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/PointerObjects.h"

#include "ditron/analysis/Provenance.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace ditron::analysis {

bool ObjectSet::add(const ObjectSet &other) {
  const ObjectSet before = *this;
  anywhere |= other.anywhere;
  arguments.append(other.arguments);
  if (anywhere)
    arguments.clear();
  llvm::sort(arguments);
  arguments.erase(llvm::unique(arguments), arguments.end());
  return !(*this == before);
}

static bool isPointer(Type type) { return isa<tile::PointerType>(tile::elementTypeOf(type)); }

bool PointerObjects::isWorldView(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  Operation *kernel = argument.getOwner()->getParentOp();
  return isa<FunctionOpInterface>(kernel) && kernel->hasAttr("tile.kernel") &&
         argument.getArgNumber() + 1 == argument.getOwner()->getNumArguments() &&
         argument.getType() == tile::PointerType::get(IntegerType::get(value.getContext(), 64));
}

/// Whether a number is a heap's base, as dist-lower-world reads it from the world view.
static bool isHeapBase(Value number) {
  while (auto hint = number.getDefiningOp<tile::HintOp>())
    number = hint.getSource();
  auto load = number.getDefiningOp<tile::LoadOp>();
  auto address = load ? load.getPtr().getDefiningOp<tile::AddPtrOp>() : tile::AddPtrOp();
  return address && PointerObjects::isWorldView(address.getPtr());
}

/// The pointer whose peer on another rank an address is: address + (base there - base here). Null for other addresses.
static Value ownOfPeer(tile::IntToPtrOp address) {
  auto sum = address.getSource().getDefiningOp<arith::AddIOp>();
  auto own = sum ? sum.getLhs().getDefiningOp<tile::PtrToIntOp>() : tile::PtrToIntOp();
  auto distance = sum ? sum.getRhs().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  if (!own || !distance || !isHeapBase(distance.getLhs()) || !isHeapBase(distance.getRhs()))
    return {};
  return own.getSource();
}

/// Whether results point into the objects of the operands.
static bool keepsObject(Operation *op) {
  return isa<tile::AddPtrOp, tile::PtrCastOp, tile::HintOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp,
             tile::ReshapeOp, tile::TransOp, dgpu::ConvertLayoutOp, dist::SymmAtOp, dist::ConsumeTokenOp,
             arith::SelectOp, scf::ForOp, scf::WhileOp, scf::IfOp, scf::ConditionOp, scf::YieldOp>(op);
}

PointerObjects::PointerObjects(Operation *root) {
  SmallVector<Value> work;
  auto reach = [&](Value value, const ObjectSet &set) {
    if (objects[value].add(set))
      work.push_back(value);
  };
  llvm::DenseMap<Value, SmallVector<Value>> peers; // of the same object on other ranks
  root->walk([&](Operation *op) {
    if (auto address = dyn_cast<tile::IntToPtrOp>(op))
      if (Value own = ownOfPeer(address)) {
        peers[own].push_back(address.getResult());
        return;
      }
    for (Value result : op->getResults())
      if (isPointer(result.getType()) && !keepsObject(op))
        reach(result, {.anywhere = true, .arguments = {}});
    if (!isa<FunctionOpInterface>(op) || op->getRegion(0).empty())
      return;
    for (BlockArgument argument : op->getRegion(0).getArguments()) {
      if (isPointer(argument.getType()))
        reach(argument, {.anywhere = false, .arguments = {argument.getArgNumber()}});
      auto map = cast<FunctionOpInterface>(op).getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(),
                                                                                dgpu::tensorMapAttrName);
      if (auto base = map ? map.getAs<IntegerAttr>("base") : IntegerAttr())
        reach(argument, {.anywhere = false, .arguments = {static_cast<unsigned>(base.getInt())}});
    }
  });
  while (!work.empty()) {
    Value value = work.pop_back_val();
    const ObjectSet set = objects.lookup(value);
    for (Value peer : peers.lookup(value))
      reach(peer, set);
    for (OpOperand &use : value.getUses())
      if (keepsObject(use.getOwner()))
        for (Value next : flowsTo(use))
          if (isPointer(next.getType()))
            reach(next, set);
  }
}

ObjectSet PointerObjects::of(Value pointer) const {
  auto it = objects.find(pointer);
  return it == objects.end() || it->second.arguments.empty() ? ObjectSet{.anywhere = true, .arguments = {}}
                                                             : it->second;
}

} // namespace ditron::analysis
