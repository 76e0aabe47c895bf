//===- Partition.cpp - Warp-specialised kernels and kernels with tensor maps before the conversion ------------------------===//
//
// See Partition.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Partition.h"

#include "ditron/target/common/AccumulatorLoops.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/TailWork.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ditron::target {

/// i32 attribute of the branch between the partitions: the number of consumer warps.
static constexpr llvm::StringLiteral partitionsAttrName = "dgpu.partitions";

std::optional<Partition> partitionAt(Block *block) {
  for (Operation *parent = block ? block->getParentOp() : nullptr; parent;
       block = parent->getBlock(), parent = parent->getParentOp()) {
    auto warps = parent->getAttrOfType<IntegerAttr>(partitionsAttrName);
    if (!warps)
      continue;
    int consumers = static_cast<int>(warps.getInt());
    bool isProducer = block->getParent()->getRegionNumber() == 1;
    return isProducer ? Partition{consumers, 1} : Partition{0, consumers};
  }
  return std::nullopt;
}

int launchWarpsOf(ModuleOp module) {
  if (auto warps = module->getAttrOfType<IntegerAttr>(launchWarpsAttrName))
    return static_cast<int>(warps.getInt());
  int warps = dgpu::numWarpsOf(module);
  module.walk([&](dgpu::WarpSpecializeOp op) {
    warps = dgpu::numWarpsOf(module) + static_cast<int>(op.getProducerWarps());
    return WalkResult::interrupt();
  });
  return warps;
}

static void splitPartitions(dgpu::WarpSpecializeOp op, TargetInfo &target, int consumers) {
  OpBuilder builder(op);
  Emitter e(op.getLoc(), builder);
  // Through a shuffle, so that an assembler sees one value for the whole warp.
  Value own = target.warpId(e), word = e.zextOrTrunc(own, e.getIntegerType(target.shuffleBits()));
  Value first = target.shuffle(e, dist::ShuffleKind::Index, word, e.i32(0), Value());
  Value warp = e.zextOrTrunc(first, e.getI32Type());
  Value isConsumer = e.compare(LLVM::ICmpPredicate::ult, warp, e.i32(consumers));
  auto branch = scf::IfOp::create(e, TypeRange(), isConsumer, /*withElseRegion=*/true);
  branch->setAttr(partitionsAttrName, e.getI32IntegerAttr(consumers));
  // With fewer warps there are registers enough for all.
  bool movesRegisters = consumers >= 8;
  auto take = [](Region &from, Block *to) {
    to->getOperations().splice(std::prev(to->end()), from.front().getOperations());
  };
  e.setInsertionPoint(branch.thenBlock()->getTerminator());
  if (movesRegisters)
    target.hopper()->setMaxRegisters(e, static_cast<int>(op.getConsumerRegisters()), /*isIncrease=*/true);
  take(op.getConsumer(), branch.thenBlock());
  e.setInsertionPoint(branch.elseBlock()->getTerminator());
  if (movesRegisters)
    target.hopper()->setMaxRegisters(e, static_cast<int>(op.getProducerRegisters()), /*isIncrease=*/false);
  Value isProducer = e.compare(LLVM::ICmpPredicate::eq, warp, e.i32(consumers));
  auto producer = scf::IfOp::create(e, TypeRange(), isProducer, /*withElseRegion=*/false);
  take(op.getProducer(), producer.thenBlock());
  op.erase();
}

/// Marks a copy with the box and the swizzle of its map, a kernel argument.
static LogicalResult markWithBox(Operation *copy, Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  auto description = function
                         ? function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), dgpu::tensorMapAttrName)
                         : DictionaryAttr();
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
  copy->setAttr(boxAttrName, DenseI64ArrayAttr::get(copy->getContext(), sizes));
  copy->setAttr(swizzleAttrName, swizzle);
  return success();
}

/// Tensor maps arrive by value; whoever copies first finds them in the cache.
static void passMaps(func::FuncOp function, TargetInfo &target) {
  if (function.isExternal())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  Emitter e(function.getLoc(), builder);
  Type bytes = LLVM::LLVMArrayType::get(e.getI8Type(), 128);
  Value isFirst;
  for (BlockArgument argument : function.getArguments()) {
    if (!isa<dgpu::TensorMapType>(argument.getType()))
      continue;
    function.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
    if (!isFirst)
      isFirst = isFirstThread(e, target);
    Value address = UnrealizedConversionCastOp::create(e, e.pointerType(), ValueRange(argument)).getResult(0);
    target.hopper()->prefetchMap(e, address, isFirst);
  }
}

LogicalResult prepareHopper(ModuleOp module, TargetInfo &target) {
  int consumers = dgpu::numWarpsOf(module), launched = launchWarpsOf(module);
  module->setAttr(launchWarpsAttrName, Builder(module.getContext()).getI32IntegerAttr(launched));
  SmallVector<dgpu::WarpSpecializeOp> specialized;
  bool needsLeaves = false;
  WalkResult walk = module.walk([&](Operation *op) -> WalkResult {
    if (!isa<dgpu::WarpSpecializeOp, dgpu::MbarrierAllocOp, dgpu::TmaLoadOp, dgpu::TmaStoreOp, dgpu::FenceAsyncOp,
             dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp, dgpu::ClusterBarrierOp>(op))
      return WalkResult::advance();
    if (!target.hopper())
      return op->emitOpError("is not available on this target");
    needsLeaves = true;
    if (auto split = dyn_cast<dgpu::WarpSpecializeOp>(op))
      specialized.push_back(split);
    Value map = isa<dgpu::TmaLoadOp>(op)    ? cast<dgpu::TmaLoadOp>(op).getMap()
                : isa<dgpu::TmaStoreOp>(op) ? cast<dgpu::TmaStoreOp>(op).getMap()
                                            : Value();
    return map && failed(markWithBox(op, map)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (!needsLeaves)
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    dgpu::MbarrierAllocOp last;
    function.walk([&](dgpu::MbarrierAllocOp op) { last = op; });
    if (last)
      last->setAttr(lastAllocAttrName, UnitAttr::get(module.getContext()));
  }
  for (auto function : module.getOps<func::FuncOp>())
    passMaps(function, target); // at the entry, thus first: leaves put there what the whole function needs
  guardAccumulatorLoops(module);
  sinkTailWork(module);
  for (dgpu::WarpSpecializeOp op : specialized) {
    // Reads by warpgroup dots are complete for the whole warp when it has waited; a lane's own loads are not.
    bool hasLoads = op.getConsumer().walk([](dgpu::BufferLoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (hasLoads)
      op.getConsumer().walk([&](dgpu::MbarrierArriveOp arrive) {
        arrive->setAttr(afterLoadsAttrName, UnitAttr::get(module.getContext()));
      });
  }
  for (dgpu::WarpSpecializeOp op : specialized)
    splitPartitions(op, target, consumers);
  return success();
}

} // namespace ditron::target
