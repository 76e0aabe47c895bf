//===- Simt.cpp - Regions in which threads access single elements of tiles ----------------------------------------===//
//
// with dl.simt_exec_region() as (thread, threads): inside, x[i, j] is an element of a tile and x[i, j] = v changes it.
//
// A tile of which an element is accessed is copied to shared memory where the region begins (behind the tile's definition if
// that stands inside), with block barriers around the copy. Where the region ends, after a barrier, the tiles that were
// changed are read back and their variables become what was read. Between the two, threads order their accesses themselves
// (__syncthreads). Each variable has a copy of its own, so that another name for the same tile keeps its value.
//
// Loops carry variables that are subscripted in them as they carry assigned ones; the tile is then the loop's argument, and
// what it stands for is found by going back to the initial value.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/TileAddresses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace scf = mlir::scf;
namespace {

/// A tile that lies in shared memory.
struct SpilledTile {
  std::string name; ///< The variable; empty if it is none of the function that opened the region.
  mlir::Value root;
  LangType type;
  LangValue base; ///< A scalar pointer.
  bool isWritten = false;
  SourceRange written; ///< The first assignment.
  mlir::Operation *spill = nullptr;
};

class SimtRegion {
public:
  LangValue enter(Evaluator &evaluator, SourceRange range);
  void exit(Evaluator &evaluator, SourceRange range);
  std::optional<LangValue> load(Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices, SourceRange range);
  std::optional<LangValue> store(Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices, const LangValue &value,
                                 SourceRange range);

private:
  bool isOwnFunction(Evaluator &evaluator) const { return evaluator.callDepth() == depth; }
  SpilledTile *tileFor(Evaluator &evaluator, const LangValue &object, SourceRange range);
  LangValue elementPointer(Evaluator &evaluator, const SpilledTile &tile, llvm::ArrayRef<LangValue> indices, SourceRange range);
  LangValue pointersOf(Emitter &emit, const SpilledTile &tile);
  bool isInside(mlir::Operation *op) const;
  mlir::Value rootOf(mlir::Value value) const;
  bool isUsedAsAWhole(const SpilledTile &tile) const;

  unsigned depth = 0;
  mlir::Operation *marker = nullptr;  ///< The first operation of the region.
  mlir::Operation *spillEnd = nullptr; ///< The barrier behind the copies at the beginning.
  std::vector<std::unique_ptr<SpilledTile>> tiles;
};

/// What a value is that loops of the region only hand on: the value that entered the outermost of them.
mlir::Value SimtRegion::rootOf(mlir::Value value) const {
  while (true) {
    mlir::Value before;
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
      mlir::Operation *parent = argument.getOwner()->getParentOp();
      if (!parent || !isInside(parent))
        return value;
      if (auto loop = llvm::dyn_cast<scf::ForOp>(parent)) {
        if (argument.getArgNumber() > 0)
          before = loop.getInitArgs()[argument.getArgNumber() - 1];
      } else if (auto loop = llvm::dyn_cast<scf::WhileOp>(parent)) {
        before = argument.getOwner() == loop.getBeforeBody() ? loop.getInits()[argument.getArgNumber()]
                                                             : loop.getConditionOp().getArgs()[argument.getArgNumber()];
      }
    } else if (auto result = llvm::dyn_cast<mlir::OpResult>(value)) {
      if (!isInside(result.getOwner()))
        return value;
      if (auto loop = llvm::dyn_cast<scf::ForOp>(result.getOwner()))
        before = loop.getInitArgs()[result.getResultNumber()];
      else if (auto loop = llvm::dyn_cast<scf::WhileOp>(result.getOwner()))
        before = loop.getConditionOp().getArgs()[result.getResultNumber()];
    }
    if (!before)
      return value;
    value = before;
  }
}

LangValue SimtRegion::enter(Evaluator &evaluator, SourceRange) {
  Emitter &emit = evaluator.emit;
  depth = evaluator.callDepth();
  auto thread = emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(0));
  marker = thread;
  int64_t threads = int64_t(evaluator.options.numWarps) * evaluator.options.threadsPerWarp;
  return LangValue::tuple({emit.wrap(thread, ScalarKind::Int32), emit.constantOf(ConstValue::integer(threads), ScalarKind::Int32)});
}

LangValue SimtRegion::pointersOf(Emitter &emit, const SpilledTile &tile) {
  LangType offset(ScalarKind::Int64);
  llvm::SmallVector<LangValue> sizes, strides, positions;
  int64_t stride = tile.type.numElements();
  for (int64_t size : tile.type.shape()) {
    stride /= size;
    sizes.push_back(emit.constantOf(ConstValue::integer(size), offset));
    strides.push_back(emit.constantOf(ConstValue::integer(stride), offset));
    positions.push_back(emit.constantOf(ConstValue::integer(0), offset));
  }
  return tilePointers(emit, {tile.base, sizes, strides, positions, tile.type.shape()});
}

SpilledTile *SimtRegion::tileFor(Evaluator &evaluator, const LangValue &object, SourceRange range) {
  Emitter &emit = evaluator.emit;
  mlir::Value root = rootOf(object.ir());
  std::string name = isOwnFunction(evaluator) ? evaluator.elementTarget.str() : std::string();
  SpilledTile *other = nullptr;
  for (auto &tile : tiles)
    if (tile->root == root) {
      if (tile->name == name)
        return tile.get();
      other = tile.get();
    }
  // A function that is called in the region sees the elements as they are.
  if (other && name.empty())
    return other;

  auto tile = std::make_unique<SpilledTile>();
  tile->name = name;
  tile->root = root;
  tile->type = object.type();
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  Emitter::At at(emit, range);
  // In front of the region, or behind the tile's definition inside of it.
  mlir::Operation *definition = root.getDefiningOp();
  bool isBefore = !definition || !isInside(definition);
  if (isBefore) {
    if (!spillEnd) {
      emit.builder.setInsertionPointAfter(marker);
      emit.create<dist::SyncThreadsOp>();
      spillEnd = emit.create<dist::SyncThreadsOp>();
    }
    emit.builder.setInsertionPoint(spillEnd);
  } else {
    emit.builder.setInsertionPointAfter(definition);
  }
  LangType element = tile->type.element();
  int64_t bytes = tile->type.numElements() * (element.isBool() ? 8 : element.bitWidth()) / 8;
  LangType pointer = LangType::pointer(element);
  tile->base = emit.wrap(emit.create<dist::SharedAllocOp>(emit.ir(pointer), bytes, 16), pointer);
  LangValue pointers = pointersOf(emit, *tile);
  if (!isBefore)
    emit.create<dist::SyncThreadsOp>();
  tile->spill = emit.create<tile::StoreOp>(pointers.ir(), root, mlir::Value());
  if (!isBefore)
    emit.create<dist::SyncThreadsOp>();
  tiles.push_back(std::move(tile));
  return tiles.back().get();
}

LangValue SimtRegion::elementPointer(Evaluator &evaluator, const SpilledTile &tile, llvm::ArrayRef<LangValue> indices, SourceRange range) {
  Emitter &emit = evaluator.emit;
  if (indices.size() != tile.type.rank())
    return emit.fail(range, fmt::format("an element of {} takes {} {}, but {} {} given", tile.type.str(), tile.type.rank(),
                                        tile.type.rank() == 1 ? "index" : "indices", indices.size(), indices.size() == 1 ? "is" : "are"));
  LangValue linear;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t size = tile.type.shape()[dim];
    if (index.isLiteral() && index.constant().isIntegral()) {
      auto number = index.constant().toInt64();
      if (!number || *number < 0 || *number >= size)
        return emit.fail(range, fmt::format("index {} is outside of an extent of {}", index.display(), size));
    }
    LangValue at = scalarAs(evaluator, index, ScalarKind::Int32, range, "the index of an element");
    if (at.isPoison())
      return at;
    if (dim == 0)
      linear = at;
    else
      linear = emit.binary(BinaryOp::Add, emit.binary(BinaryOp::Mult, linear, LangValue::integer(size), range), at, range);
  }
  return emit.binary(BinaryOp::Add, tile.base, linear, range);
}

std::optional<LangValue> SimtRegion::load(Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices, SourceRange range) {
  if (!object.isTensor() || !object.type().isBlock())
    return std::nullopt;
  SpilledTile *tile = tileFor(evaluator, object, range);
  LangValue pointer = elementPointer(evaluator, *tile, indices, range);
  if (pointer.isPoison())
    return pointer;
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<tile::LoadOp>(pointer.ir()).getResult(), tile->type.element());
}

std::optional<LangValue> SimtRegion::store(Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices,
                                           const LangValue &value, SourceRange range) {
  Emitter &emit = evaluator.emit;
  if (!object.isTensor() || !object.type().isBlock())
    return std::nullopt;
  // After an error the variable stays what it is.
  if (!isOwnFunction(evaluator)) {
    emit.error(range, "elements can be assigned in the function that opened the simt_exec_region only; a called function has its own variables");
    return LangValue::none();
  }
  if (evaluator.elementTarget.empty()) {
    emit.error(range, "only an element of a variable can be assigned to");
    return LangValue::none();
  }
  SpilledTile *tile = tileFor(evaluator, object, range);
  LangValue pointer = elementPointer(evaluator, *tile, indices, range);
  LangValue stored = scalarAs(evaluator, value, tile->type.element(), range, "the element");
  if (pointer.isPoison() || stored.isPoison())
    return LangValue::none();
  emit.create<dist::StOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::Block, pointer.ir(), stored.ir());
  if (!tile->isWritten)
    tile->written = range;
  tile->isWritten = true;
  return LangValue::none();
}

bool SimtRegion::isInside(mlir::Operation *op) const {
  mlir::Operation *ancestor = marker->getBlock()->findAncestorOpInBlock(*op);
  return ancestor && marker->isBeforeInBlock(ancestor);
}

/// Whether something inside of the region takes the whole tile, which is in shared memory by then. Loops may hand it on.
bool SimtRegion::isUsedAsAWhole(const SpilledTile &tile) const {
  llvm::DenseSet<mlir::Value> same;
  llvm::SmallVector<mlir::Value> work;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> mustBeSame; // what a loop's argument becomes in the next turn
  auto add = [&](mlir::Value value) {
    if (same.insert(value).second)
      work.push_back(value);
  };
  add(tile.root);
  while (!work.empty()) {
    mlir::Value value = work.pop_back_val();
    for (mlir::OpOperand &use : value.getUses()) {
      mlir::Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (!isInside(user) || llvm::any_of(tiles, [&](const auto &each) { return each->spill == user; }))
        continue;
      if (auto loop = llvm::dyn_cast<scf::ForOp>(user)) {
        unsigned slot = number - loop.getNumControlOperands();
        add(loop.getRegionIterArgs()[slot]);
        add(loop.getResult(slot));
        mustBeSame.push_back({loop.getYieldedValues()[slot], loop.getRegionIterArgs()[slot]});
      } else if (auto loop = llvm::dyn_cast<scf::WhileOp>(user)) {
        add(loop.getBeforeArguments()[number]);
        mustBeSame.push_back({loop.getYieldOp().getOperand(number), value});
      } else if (llvm::isa<scf::ConditionOp>(user) && number > 0) {
        auto loop = llvm::cast<scf::WhileOp>(user->getParentOp());
        add(loop.getAfterArguments()[number - 1]);
        add(loop.getResult(number - 1));
      } else if (auto branch = llvm::isa<scf::YieldOp>(user) ? llvm::dyn_cast<scf::IfOp>(user->getParentOp()) : scf::IfOp()) {
        add(branch.getResult(number));
        for (mlir::Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
          if (!region->empty())
            mustBeSame.push_back({region->front().getTerminator()->getOperand(number), value});
      } else if (!llvm::isa<scf::YieldOp>(user)) {
        return true;
      }
    }
  }
  return llvm::any_of(mustBeSame, [&](const auto &pair) { return !same.contains(pair.first); });
}

void SimtRegion::exit(Evaluator &evaluator, SourceRange range) {
  Emitter &emit = evaluator.emit;
  bool isWritten = llvm::any_of(tiles, [](const auto &tile) { return tile->isWritten; });
  if (!isWritten)
    return;
  Emitter::At at(emit, range);
  emit.create<dist::SyncThreadsOp>();
  for (auto &tile : tiles) {
    if (!tile->isWritten)
      continue;
    if (isUsedAsAWhole(*tile)) {
      emit.error(tile->written, fmt::format("'{}' is used as a whole in the simt_exec_region that assigns its elements", tile->name))
          .hint("use it after the region, or in a region of its own");
      continue;
    }
    const LangValue *variable = evaluator.variable(tile->name);
    if (!variable || !variable->isTensor() || rootOf(variable->ir()) != tile->root)
      continue; // it has become something else
    // Volatile: what is read changes with each turn of a loop around the region.
    auto reload = emit.create<tile::LoadOp>(pointersOf(emit, *tile).ir());
    reload.setIsVolatile(true);
    evaluator.assignVariable(tile->name, emit.wrap(reload.getResult(), tile->type), tile->written);
  }
}

} // namespace

LangValue simtRegion(Evaluator &evaluator, BuiltinCall &call) {
  auto region = std::make_shared<SimtRegion>();
  auto context = std::make_shared<ContextValue>();
  context->name = "dl.simt_exec_region";
  context->enter = [region](Evaluator &evaluator, SourceRange range) { return region->enter(evaluator, range); };
  context->exit = [region](Evaluator &evaluator, SourceRange range) { region->exit(evaluator, range); };
  context->loadElement = [region](Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices, SourceRange range) {
    return region->load(evaluator, object, indices, range);
  };
  context->storeElement = [region](Evaluator &evaluator, const LangValue &object, llvm::ArrayRef<LangValue> indices, const LangValue &value,
                                   SourceRange range) { return region->store(evaluator, object, indices, value, range); };
  return LangValue(std::shared_ptr<const ContextValue>(std::move(context)));
}

} // namespace ditron::frontend::builtins
