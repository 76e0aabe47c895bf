//===- SharedAccess.cpp - Tiles between registers and shared memory -------------------------------------------------------===//
//
// See SharedAccess.h. The thread part of an address is computed once; where an access's constant shares no bit with it, XOR
// is addition and becomes the constant offset of the instruction.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/SharedAccess.h"

#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/MatrixLoad.h"

using namespace mlir;
using ditron::layout::OffsetPlan;

namespace ditron::target {

Value slotAddress(Emitter &e, dgpu::BufferType type, Value buffer, Value slot) {
  if (type.getSlots() == 1)
    return buffer;
  return e.addBytes(buffer, e.mul(e.sextOrTrunc(slot, e.getI64Type()), e.i64(type.getSlotBytes())));
}

SmallVector<Value> sharedAddresses(Emitter &e, TargetInfo &target, const OffsetPlan &plan, Value base,
                                   int elementBytes) {
  auto bytesOf = [&](ArrayRef<int64_t> bases) {
    return llvm::map_to_vector(bases, [&](int64_t basis) { return basis * elementBytes; });
  };
  Value lanes = e.i32(0), warps = e.i32(0);
  if (llvm::any_of(plan.laneBases, [](int64_t basis) { return basis != 0; }))
    lanes = mapBits(e, target.laneId(e), bytesOf(plan.laneBases));
  if (llvm::any_of(plan.warpBases, [](int64_t basis) { return basis != 0; }))
    warps = mapBits(e, target.warpId(e), bytesOf(plan.warpBases));
  Value thread = e.bitXor(lanes, warps);
  Value threadBase = e.addBytes(base, e.zextOrTrunc(thread, e.getI64Type()));
  SmallVector<Value> addresses;
  for (const layout::SharedAccess &access : plan.accesses) {
    if ((access.offset & plan.threadMask()) == 0)
      addresses.push_back(e.addBytes(threadBase, access.offset * elementBytes));
    else
      addresses.push_back(
          e.addBytes(base, e.zextOrTrunc(e.bitXor(thread, e.i32(access.offset * elementBytes)), e.getI64Type())));
  }
  return addresses;
}

static int elementBytesOf(Type storage) { return Emitter::bitWidth(memoryType(storage)) / 8; }

/// Reads a tile by matrix loads.
static SmallVector<Value> loadMatrices(Emitter &e, TargetInfo &target, const MatrixLoadPlan &plan, Value base,
                                       Type storage, int numRegs) {
  SmallVector<Value> registers(numRegs);
  SmallVector<Value> addresses = sharedAddresses(e, target, plan.rows, base, elementBytesOf(storage));
  SmallVector<Value> words = target.loadMatrices(e, addresses, plan.count, plan.transpose);
  for (auto [i, word] : llvm::enumerate(words)) {
    SmallVector<Value> elements{word};
    if (plan.elemsPerWord > 1)
      elements =
          e.unpackVector(LLVM::BitcastOp::create(e, VectorType::get({plan.elemsPerWord}, memoryType(storage)), word));
    const layout::SharedAccess &access = plan.rows.accesses[i / plan.count];
    for (auto [j, element] : llvm::enumerate(elements))
      registers[access.regs[i % plan.count * plan.elemsPerWord + j]] =
          fromMemory(e, e.bitcast(element, memoryType(storage)), storage);
  }
  return registers;
}

/// Writes one.
static void storeMatrices(Emitter &e, TargetInfo &target, const MatrixLoadPlan &plan, Value base,
                          ValueRange registers) {
  SmallVector<Value> words;
  for (const layout::SharedAccess &access : plan.rows.accesses)
    for (int i = 0; i < plan.count; ++i) {
      SmallVector<Value> elements;
      for (int reg : ArrayRef<int>(access.regs).slice(i * plan.elemsPerWord, plan.elemsPerWord))
        elements.push_back(toMemory(e, registers[reg]));
      Value packed = elements.size() == 1 ? e.toBits(elements.front()) : e.packVector(elements);
      words.push_back(LLVM::BitcastOp::create(e, e.getI32Type(), packed));
    }
  SmallVector<Value> addresses =
      sharedAddresses(e, target, plan.rows, base, elementBytesOf(registers.front().getType()));
  target.storeMatrices(e, addresses, plan.count, plan.transpose, words);
}

void storeTile(Emitter &e, TargetInfo &target, const OffsetPlan &plan, Value base, ValueRange registers,
               Value predicate, const layout::DistributedLayout &layout) {
  int elementBytes = elementBytesOf(registers.front().getType());
  if (target.hasStoreMatrix() && !predicate)
    if (std::optional<MatrixLoadPlan> matrices = makeMatrixLoadPlan(layout, plan, elementBytes))
      return storeMatrices(e, target, *matrices, base, registers);
  SmallVector<Value> addresses = sharedAddresses(e, target, plan, base, elementBytes);
  // Where tensor copies read shared memory at the same time it matters which bytes are written: each store is announced itself.
  const bool asTile = target.hopper() == nullptr;
  if (asTile)
    target.announceTile(e, base, int64_t(registers.size()) * elementBytes, predicate, /*isStore=*/true);
  for (auto [access, address] : llvm::zip_equal(plan.accesses, addresses)) {
    SmallVector<Value> elements;
    for (int reg : access.regs)
      elements.push_back(toMemory(e, registers[reg]));
    target.storeVector(e, address, elements, predicate, AddressSpace::Shared, {.isAnnounced = asTile});
  }
}

SmallVector<Value> loadTile(Emitter &e, TargetInfo &target, const OffsetPlan &plan, Value base, Type storage,
                            const layout::DistributedLayout &layout) {
  int numRegs = layout.numRegs();
  int elementBytes = elementBytesOf(storage);
  if (target.hasLoadMatrix())
    if (std::optional<MatrixLoadPlan> matrices = makeMatrixLoadPlan(layout, plan, elementBytes))
      return loadMatrices(e, target, *matrices, base, storage, numRegs);
  SmallVector<Value> registers(numRegs);
  SmallVector<Value> addresses = sharedAddresses(e, target, plan, base, elementBytes);
  target.announceTile(e, base, int64_t(numRegs) * elementBytes, Value(), /*isStore=*/false);
  for (auto [access, address] : llvm::zip_equal(plan.accesses, addresses)) {
    SmallVector<Value> loaded = target.loadVector(e, address, memoryType(storage), access.regs.size(), Value(), {},
                                                  AddressSpace::Shared, {.isAnnounced = true});
    for (auto [reg, value] : llvm::zip_equal(access.regs, loaded))
      registers[reg] = fromMemory(e, value, storage);
  }
  return registers;
}

} // namespace ditron::target
