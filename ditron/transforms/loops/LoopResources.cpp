//===- LoopResources.cpp - Registers and shared memory that a loop takes ----------------------------------------------------===//
//
// See LoopResources.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/LoopResources.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ditron::transforms {

int64_t registersOf(RankedTensorType type) {
  constexpr int64_t registerBytes = 4;
  const int64_t bytes = dgpu::layoutOf(type).numRegs() * analysis::sharedElementBytes(type.getElementType());
  return llvm::divideCeil(bytes, registerBytes);
}

/// True for tensors that a thread computes again rather than keeping them: addresses, masks, what is the same everywhere.
static bool isComputedAgain(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return !type || !type.getElementType().isFloat() || matchPattern(value, m_Constant()) ||
         value.getDefiningOp<tile::SplatOp>();
}

int64_t registersOfTurn(scf::ForOp loop) {
  llvm::SetVector<Value> values;
  for (auto dot : loop.getBody()->getOps<dgpu::WarpgroupDotOp>()) {
    values.insert(dot.getResult());
    if (isTensor(dot.getA()))
      values.insert(dot.getA());
  }
  for (Operation &op : *loop.getBody())
    for (Value operand : op.getOperands())
      if (loop.isDefinedOutsideOfLoop(operand) && !isComputedAgain(operand))
        values.insert(operand);
  int64_t registers = 0;
  for (Value value : values)
    registers += registersOf(cast<RankedTensorType>(value.getType()));
  return registers;
}

Value allocationOf(Value buffer) {
  while (auto permute = buffer.getDefiningOp<dgpu::BufferPermuteOp>())
    buffer = permute.getSource();
  return buffer;
}

int64_t bufferBytesIn(scf::ForOp loop, ArrayRef<Value> more) {
  Block *block = loop->getBlock();
  llvm::SetVector<Value> buffers(more.begin(), more.end());
  loop->getParentOfType<func::FuncOp>().walk([&](dgpu::BufferAllocOp alloc) {
    bool isUsedBefore = false, isUsedBehind = false;
    SmallVector<Operation *> users(alloc->user_begin(), alloc->user_end());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<dgpu::BufferPermuteOp>(user))
        users.append(user->user_begin(), user->user_end());
      Operation *place = block->findAncestorOpInBlock(*user);
      isUsedBefore |= !place || place == loop || place->isBeforeInBlock(loop);
      isUsedBehind |= !place || place == loop || loop->isBeforeInBlock(place);
    }
    if (isUsedBefore && isUsedBehind)
      buffers.insert(alloc.getResult());
  });
  int64_t bytes = 0;
  for (Value buffer : buffers)
    bytes += int64_t(llvm::alignTo(cast<dgpu::BufferType>(buffer.getType()).getBytes(), bufferAlignment));
  return bytes;
}

DotLoops::DotLoops(func::FuncOp kernel) {
  kernel.walk([&](scf::ForOp loop) {
    if (loop->getParentOfType<dgpu::WarpSpecializeOp>() || loop.getBody()->getOps<dgpu::WarpgroupDotOp>().empty())
      return;
    loops.push_back(loop);
    registers = std::max(registers, registersOfTurn(loop));
    bytes = std::max(bytes, bufferBytesIn(loop));
  });
}

int64_t residentBlocks(Operation *kernel, int64_t registers, int64_t bytes, int64_t limitBytes) {
  constexpr int64_t registersOfMultiprocessor = 65536, forAddresses = 40, mostOfThread = 255;
  auto module = kernel->getParentOfType<ModuleOp>();
  const int64_t threads = int64_t(dgpu::numWarpsOf(module)) * dgpu::threadsPerWarpOf(module);
  const int64_t ofThread = std::min(registers + forAddresses, mostOfThread);
  const int64_t byRegisters = registersOfMultiprocessor / (threads * ofThread);
  const int64_t byBytes = limitBytes / std::max<int64_t>(1, bytes);
  return std::max<int64_t>(1, std::min(byRegisters, byBytes));
}

} // namespace ditron::transforms
