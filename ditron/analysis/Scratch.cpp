//===- Scratch.cpp - Shared memory that an operation's own lowering needs -------------------------------------------------===//
//
// Computes scratch sizes from the plans of the layout room. See Scratch.h for how the bytes are used.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Scratch.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/ExchangeAttr.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ditron::analysis {

int sharedElementBits(Type elementType) {
  if (elementType.isInteger(1))
    return 8;
  if (elementType.isIntOrFloat())
    return static_cast<int>(elementType.getIntOrFloatBitWidth());
  return 64; // pointers and index
}

int64_t sharedElementBytes(Type elementType) { return sharedElementBits(elementType) / 8; }

layout::ConvertPlan convertPlanOf(Operation *op) {
  auto convert = llvm::cast<dgpu::ConvertLayoutOp>(op);
  Type source = convert.getSource().getType();
  return layout::makePlan(dgpu::layoutOf(source), dgpu::layoutOf(convert.getResult().getType()),
                          sharedElementBits(tile::elementTypeOf(source)));
}

/// One operation on the two arguments whose result does not depend on how many of them are bracketed.
static bool allowsAnyOrder(Region &combine) {
  Block &block = combine.front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2)
    return false;
  Operation &op = block.front();
  if (!llvm::isa<arith::AddIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MaxSIOp,
                 arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp,
                 arith::MinimumFOp>(op))
    return false;
  bool takesBoth = op.getOperand(0) != op.getOperand(1) &&
                   llvm::all_of(op.getOperands(), [&](Value v) { return llvm::is_contained(block.getArguments(), v); });
  return takesBoth && block.getTerminator()->getOperand(0) == op.getResult(0);
}

layout::ReducePlan reducePlanOf(Operation *op) {
  auto reduce = llvm::cast<tile::ReduceOp>(op);
  const bool isTree =
      reduce.getOrdering() == tile::ReductionOrdering::InnerTree && !allowsAnyOrder(reduce.getCombine());
  return layout::makeReducePlan(dgpu::layoutOf(reduce.getSources().front().getType()),
                                static_cast<int>(reduce.getAxis()),
                                isTree ? layout::ReduceOrder::Canonical : layout::ReduceOrder::NearestFirst);
}

layout::GatherPlan gatherPlanOf(Operation *op) {
  auto gather = llvm::cast<tile::GatherOp>(op);
  return layout::makeGatherPlan(dgpu::layoutOf(gather.getSource().getType()), dgpu::layoutOf(gather.getType()),
                                static_cast<int>(gather.getAxis()));
}

static bool hasScalarRegion(Operation *op) {
  return llvm::isa<tile::ReduceOp, tile::ScanOp, tile::MapElementwiseOp>(op);
}

bool isInScalarRegion(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (hasScalarRegion(parent))
      return true;
  return false;
}

bool isScalarEffect(Operation *op) {
  if (op->getNumRegions() != 0 || isMemoryEffectFree(op))
    return false;
  return !mlir::hasSingleEffect<MemoryEffects::Read>(op);
}

bool regionHasEffects(Operation *op) {
  auto isOne = [](Operation *inner) { return isScalarEffect(inner) ? WalkResult::interrupt() : WalkResult::advance(); };
  return op->getRegion(0).walk(isOne).wasInterrupted();
}

bool regionUsesEffects(Operation *op) {
  auto isUsed = [](Operation *inner) {
    return isScalarEffect(inner) && !inner->use_empty() ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->getRegion(0).walk(isUsed).wasInterrupted();
}

SmallVector<uint32_t> scanSourceRegisters(const layout::ScanStep &step, int numRegs, bool reverse) {
  uint32_t set = reverse ? step.regClear : step.regSet, clear = reverse ? step.regSet : step.regClear;
  SmallVector<uint32_t> sources;
  for (uint32_t reg = 0; reg < uint32_t(numRegs); ++reg)
    if (((reg | set) & ~clear) == reg)
      sources.push_back(reg);
  return sources;
}

/// All bits of ids of `dim`.
static uint32_t allBits(const layout::DistributedLayout &layout, layout::MachineDim dim) {
  return static_cast<uint32_t>(layout.size(dim)) - 1;
}

/// An exchange in which every thread has a slot of its own.
static WarpExchange slotPerThread(const layout::DistributedLayout &layout, int registers) {
  const uint32_t warps = allBits(layout, layout::MachineDim::Warp);
  return {registers, allBits(layout, layout::MachineDim::Lane), warps, warps};
}

/// The rounds of a reduction: each thread that holds no copy of another's values has a slot.
static SmallVector<WarpExchange> reduceExchanges(tile::ReduceOp op, const layout::DistributedLayout &source) {
  SmallVector<WarpExchange> exchanges;
  for (const layout::WarpRound &round : layout::warpRoundsOf(reducePlanOf(op), source)) {
    WarpExchange exchange = slotPerThread(source, round.registers);
    exchange.slotLanes &= ~round.copyLanes;
    exchange.slotWarps &= ~round.copyWarps;
    exchange.levels = round.levels;
    exchange.laneBits = round.laneBits;
    exchanges.push_back(std::move(exchange));
  }
  return exchanges;
}

/// The steps of a scan across warps: each thread that has the total of a lower block has a slot.
static SmallVector<WarpExchange> scanExchanges(tile::ScanOp op, const layout::DistributedLayout &source) {
  SmallVector<WarpExchange> exchanges;
  const bool reverse = op.getReverse();
  for (const layout::ScanStep &step : layout::makeScanPlan(source, static_cast<int>(op.getAxis()))) {
    if (!step.crossesWarps())
      continue;
    const size_t registers = scanSourceRegisters(step, source.numRegs(), reverse).size();
    WarpExchange exchange = slotPerThread(source, static_cast<int>(registers));
    exchange.slotLanes &= ~(step.laneSet | step.laneClear | source.freeMask(layout::MachineDim::Lane));
    exchange.slotWarps &= ~(step.warpSet | step.warpClear | source.freeMask(layout::MachineDim::Warp));
    exchange.storingLanes = reverse ? step.laneClear : step.laneSet;
    exchange.storingWarps = reverse ? step.warpClear : step.warpSet;
    exchanges.push_back(std::move(exchange));
  }
  return exchanges;
}

/// The types of the elements that an operation exchanges, one for each operand.
static SmallVector<Type> exchangedElements(Operation *op) {
  ValueRange exchanged = llvm::isa<tile::MapElementwiseOp>(op) ? ValueRange(op->getResults())
                         : llvm::isa<tile::GatherOp>(op)       ? ValueRange(op->getOperands().take_front(1))
                                                               : ValueRange(op->getOperands());
  return llvm::map_to_vector(exchanged, [](Value value) { return tile::elementTypeOf(value.getType()); });
}

/// Gives each exchange its bytes, one behind the other; how many there are.
static int64_t placeExchanges(SmallVector<WarpExchange> &exchanges, Operation *op) {
  int64_t bytes = 0;
  for (WarpExchange &exchange : exchanges)
    for (Type element : exchangedElements(op)) {
      exchange.operandOffsets.push_back(bytes);
      bytes += llvm::alignTo(int64_t(exchange.registers) * exchange.slots() * sharedElementBytes(element), 16);
    }
  return bytes;
}

/// The exchanges and their total size.
static std::pair<SmallVector<WarpExchange>, int64_t> planExchanges(Operation *op) {
  if (op->getNumOperands() == 0)
    return {};
  const layout::DistributedLayout &source = dgpu::layoutOf(op->getOperand(0).getType());
  SmallVector<WarpExchange> exchanges;
  layout::DistributedLayout result = source;
  if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op)) {
    exchanges = reduceExchanges(reduce, source);
    result = reducePlanOf(op).result;
  } else if (auto scan = llvm::dyn_cast<tile::ScanOp>(op)) {
    exchanges = scanExchanges(scan, source);
  } else if (auto gather = llvm::dyn_cast<tile::GatherOp>(op)) {
    std::optional<int64_t> mask = tile::exchangeMaskOf(gather);
    if (mask && layout::makeExchangeMasks(source, static_cast<int>(gather.getAxis()), *mask).warps != 0)
      exchanges.push_back(slotPerThread(source, source.numRegs()));
  }
  if (!llvm::isa<tile::GatherOp>(op) && regionUsesEffects(op) && result.freeMask(layout::MachineDim::Warp) != 0)
    exchanges.push_back(slotPerThread(source, result.numRegs()));
  int64_t bytes = placeExchanges(exchanges, op);
  return {std::move(exchanges), bytes};
}

SmallVector<WarpExchange> warpExchangesOf(Operation *op) { return planExchanges(op).first; }

/// Small enough to leave room for a second block on an SM.
constexpr int64_t networkRoundBytes = 32 * 1024;

static int64_t networkRegisterBytes(tile::BitonicOp network) {
  const layout::DistributedLayout &layout = dgpu::layoutOf(network.getType());
  return int64_t(layout.numLanes()) * layout.numWarps() * sharedElementBytes(network.getType().getElementType());
}

int64_t networkRoundRegisters(Operation *op) {
  auto network = llvm::cast<tile::BitonicOp>(op);
  const layout::DistributedLayout &layout = dgpu::layoutOf(network.getType());
  bool crossesWarps = false;
  for (int bit = 0; bit < static_cast<int>(network.getLastStage()); ++bit)
    crossesWarps |= layout.owner(bit).dim == layout::MachineDim::Warp;
  if (!crossesWarps)
    return 0;
  const int64_t fitting = std::max<int64_t>(1, networkRoundBytes / networkRegisterBytes(network));
  return std::min<int64_t>(layout.numRegs(), llvm::bit_floor(uint64_t(fitting)));
}

/// An atomic's old value, or an element of a volatile load of a tile, must travel when it is used and other warps hold copies of it.
static int64_t givenScratchBytes(Operation *op) {
  Value result = op->getResult(0);
  if (result.use_empty() || isInScalarRegion(op))
    return 0;
  int64_t elementBytes = sharedElementBytes(tile::elementTypeOf(result.getType()));
  if (!llvm::isa<RankedTensorType>(result.getType()))
    return elementBytes;
  const layout::DistributedLayout &resultLayout = dgpu::layoutOf(result.getType());
  if (resultLayout.freeMask(layout::MachineDim::Warp) == 0)
    return 0;
  return int64_t(resultLayout.numRegs()) * resultLayout.numLanes() * resultLayout.numWarps() * elementBytes;
}

int64_t scratchBytes(Operation *op) {
  if (llvm::isa<dgpu::ConvertLayoutOp>(op))
    return convertPlanOf(op).sharedBytes();
  if (llvm::isa<tile::ReduceOp, tile::ScanOp, tile::MapElementwiseOp>(op))
    return planExchanges(op).second;
  if (auto gather = llvm::dyn_cast<tile::GatherOp>(op)) {
    if (tile::exchangeMaskOf(gather))
      return planExchanges(op).second;
    RankedTensorType source = gather.getSource().getType();
    return gatherPlanOf(op).isWithinWarp ? 0
                                         : source.getNumElements() * sharedElementBytes(source.getElementType());
  }
  if (auto network = llvm::dyn_cast<tile::BitonicOp>(op))
    return networkRoundRegisters(op) * networkRegisterBytes(network);
  if (auto histogram = llvm::dyn_cast<tile::HistogramOp>(op))
    return histogram.getType().getNumElements() * int64_t(sizeof(int32_t));
  if (llvm::isa<tile::AtomicRmwOp, tile::AtomicCasOp>(op))
    return givenScratchBytes(op);
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && load.getIsVolatile() && llvm::isa<RankedTensorType>(load.getType()))
    return givenScratchBytes(op);
  return 0;
}

std::optional<layout::BarrierScope> scratchBarrier(Operation *op) {
  if (scratchBytes(op) == 0)
    return std::nullopt;
  if (llvm::isa<dgpu::ConvertLayoutOp>(op))
    return convertPlanOf(op).shared->scope;
  return layout::BarrierScope::Block;
}

} // namespace ditron::analysis
