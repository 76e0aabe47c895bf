//===- Exchange.cpp - Values of other threads -----------------------------------------------------------------------------===//
//
// See Exchange.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"

#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"

using namespace mlir;

namespace ditron::target {

/// The width that a value takes in a shuffled word: its own, at least a byte.
static unsigned slotBits(Type type) { return std::max(8u, Emitter::bitWidth(type)); }

Value packWord(Emitter &e, ValueRange values, Type word) {
  unsigned used = 0;
  Value packed;
  for (Value value : values) {
    Value bits = e.shl(e.zextOrTrunc(e.toBits(value), word), used);
    packed = packed ? e.bitOr(packed, bits) : bits;
    used += slotBits(value.getType());
  }
  return packed;
}

SmallVector<Value> unpackWord(Emitter &e, Value word, ArrayRef<Type> types) {
  unsigned used = 0;
  SmallVector<Value> values;
  for (Type type : types) {
    Value bits = e.zextOrTrunc(e.lshr(word, used), e.getIntegerType(Emitter::bitWidth(type)));
    values.push_back(e.fromBits(bits, type));
    used += slotBits(type);
  }
  return values;
}

/// A value wider than the word goes in two halves.
static Value shuffleWide(Emitter &e, TargetInfo &target, dist::ShuffleKind kind, Value bits, Value operand) {
  Type word = e.getIntegerType(target.shuffleBits());
  Value low = target.shuffle(e, kind, e.zextOrTrunc(bits, word), operand, Value());
  Value high = target.shuffle(e, kind, e.zextOrTrunc(e.lshr(bits, target.shuffleBits()), word), operand, Value());
  return e.bitOr(e.zextOrTrunc(low, bits.getType()), e.shl(e.zextOrTrunc(high, bits.getType()), target.shuffleBits()));
}

SmallVector<Value> shuffleValues(Emitter &e, TargetInfo &target, dist::ShuffleKind kind, ValueRange values,
                                 Value operand) {
  unsigned wordBits = target.shuffleBits();
  Type word = e.getIntegerType(wordBits);
  SmallVector<Value> results;
  for (size_t begin = 0, end; begin < values.size(); begin = end) {
    if (slotBits(values[begin].getType()) > wordBits) {
      Value bits = shuffleWide(e, target, kind, e.toBits(values[begin]), operand);
      results.push_back(e.fromBits(bits, values[begin].getType()));
      end = begin + 1;
      continue;
    }
    // Fill one word with as many of the next values as fit.
    unsigned used = 0;
    for (end = begin; end < values.size() && used + slotBits(values[end].getType()) <= wordBits; ++end)
      used += slotBits(values[end].getType());
    const ValueRange together = values.slice(begin, end - begin);
    Value received = target.shuffle(e, kind, packWord(e, together, word), operand, Value());
    llvm::append_range(results, unpackWord(e, received, SmallVector<Type>(together.getTypes())));
  }
  return results;
}

SmallVector<Value> exchangeLaneBit(Emitter &e, TargetInfo &target, ValueRange values, int position) {
  return shuffleValues(e, target, dist::ShuffleKind::Butterfly, values, e.i32(int64_t(1) << position));
}

Value sharedAddress(Emitter &e, TargetInfo &target, int64_t offsetBytes) {
  return e.addBytes(target.sharedMemoryBase(e), offsetBytes);
}

/// Where value 0 of a group lies in a slot, and the bytes from one value to the next.
static std::pair<Value, int64_t> placeInSlot(Emitter &e, TargetInfo &target, const SharedSlots &group, int slots,
                                             Value slot, int64_t distance) {
  int64_t bytes = Emitter::bitWidth(memoryType(group.values.front().getType())) / 8;
  Value offset = e.mul(e.zextOrTrunc(slot, e.getI64Type()), e.i64(bytes));
  return {e.addBytes(sharedAddress(e, target, group.offsetBytes + distance * bytes), offset), bytes * slots};
}

void storeToSlots(Emitter &e, TargetInfo &target, ArrayRef<SharedSlots> groups, int slots, Value slot, Value writes) {
  for (const SharedSlots &group : groups) {
    auto [base, stride] = placeInSlot(e, target, group, slots, slot, 0);
    for (auto [r, value] : llvm::enumerate(group.values))
      target.storeVector(e, e.addBytes(base, int64_t(r) * stride), {toMemory(e, value)}, writes, AddressSpace::Shared,
                         {});
  }
}

SmallVector<SmallVector<Value>> loadFromSlots(Emitter &e, TargetInfo &target, ArrayRef<SharedSlots> groups, int slots,
                                              Value slot, int64_t distance) {
  SmallVector<SmallVector<Value>> results;
  for (const SharedSlots &group : groups) {
    auto [base, stride] = placeInSlot(e, target, group, slots, slot, distance);
    SmallVector<Value> &loaded = results.emplace_back();
    for (auto [r, value] : llvm::enumerate(group.values)) {
      Value element = target.loadVector(e, e.addBytes(base, int64_t(r) * stride), memoryType(value.getType()), 1,
                                        Value(), {}, AddressSpace::Shared, {})[0];
      loaded.push_back(fromMemory(e, element, value.getType()));
    }
  }
  return results;
}

SmallVector<SmallVector<Value>> exchangeThroughShared(Emitter &e, TargetInfo &target, ArrayRef<SharedSlots> groups,
                                                      int threads, Value source, Value writes) {
  storeToSlots(e, target, groups, threads, target.threadId(e), writes);
  target.blockBarrier(e);
  return loadFromSlots(e, target, groups, threads, source);
}

FailureOr<SmallVector<Value>> giveToCopies(Emitter &e, TargetInfo &target, Operation *op,
                                           const layout::DistributedLayout &layout, ValueRange values, int threads,
                                           bool &hadBarrier) {
  const uint32_t freeLanes = layout.freeMask(layout::MachineDim::Lane),
                 freeWarps = layout.freeMask(layout::MachineDim::Warp);
  if (freeWarps != 0) {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return LogicalResult(offset);
    hadBarrier = true;
    const uint32_t freeThreads = freeLanes | freeWarps * static_cast<uint32_t>(target.warpSize());
    Value source = e.bitAnd(target.threadId(e), e.i32(static_cast<int32_t>(~freeThreads)));
    return exchangeThroughShared(e, target, SharedSlots{*offset, values}, threads, source,
                                 isRepresentative(e, target, layout))[0];
  }
  if (freeLanes != 0) {
    Value source = e.bitAnd(target.laneId(e), e.i32(static_cast<int32_t>(~freeLanes)));
    return shuffleValues(e, target, dist::ShuffleKind::Index, values, source);
  }
  return SmallVector<Value>(values);
}

} // namespace ditron::target
