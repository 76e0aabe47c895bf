//===- TargetInfo.cpp - Defaults of the leaves and the table of targets ---------------------------------------------------===//
//
// What most targets answer alike, and the table from which `ditron-to-llvm` picks the leaves by name.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/TargetInfo.h"

#include "ditron/target/common/Patterns.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"

#include <fmt/format.h>
#include <map>
#include <mutex>

using namespace mlir;

namespace ditron::target {

TargetInfo::~TargetInfo() = default;

Type TargetInfo::storageType(Type scalar) const {
  auto floatType = dyn_cast<FloatType>(scalar);
  if (!floatType || isNativeFloat(floatType))
    return scalar;
  return IntegerType::get(scalar.getContext(), floatType.getWidth());
}

Value TargetInfo::sharedArray(Emitter &e, int64_t offset, int64_t /*bytes*/) {
  return e.addBytes(sharedMemoryBase(e), offset);
}

void TargetInfo::populateMathPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) const {
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false, /*benefit=*/2);
  populateMathToLibmConversionPatterns(patterns, /*benefit=*/1);
}

SmallVector<Value> TargetInfo::loadMatrices(Emitter &e, ValueRange rows, int count, bool transpose) {
  llvm::report_fatal_error("loadMatrices was asked of a target that does not offer it (hasLoadMatrix)");
}

void TargetInfo::storeMatrices(Emitter &e, ValueRange rows, int count, bool transpose, ValueRange words) {
  llvm::report_fatal_error("storeMatrices was asked of a target that does not offer it (hasStoreMatrix)");
}

GenericAddresses::GenericAddresses(TargetInfo &target, Operation *op) : target(target), before(target.hasGenericAddresses) {
  target.hasGenericAddresses = op->hasAttr(dgpu::genericAttrName);
}
GenericAddresses::~GenericAddresses() { target.hasGenericAddresses = before; }

void TargetInfo::raiseWord(Emitter &e, Value word, Value value, dist::SignalOp op, dist::CommScope reach, Value pe) {
  const tile::MemoryScope scope = reach == dist::CommScope::Gpu ? tile::MemoryScope::Gpu : tile::MemoryScope::System;
  if (op == dist::SignalOp::Set)
    orderedStore(e, word, value, tile::MemoryOrder::Release, scope);
  else
    atomicRmw(e, tile::AtomicOp::Add, value.getType(), word, value, Value(), tile::MemoryOrder::Release, scope);
  noteSignal(e, word, value, op);
}

Value TargetInfo::reaches(Emitter &e, Value world, Value pe) { return LLVM::ConstantOp::create(e, e.getI1Type(), 1); }

void TargetInfo::raiseSignal(Emitter &e, Value signal, Value value, dist::SignalOp op, Value pe) {
  if (op == dist::SignalOp::Set)
    orderedStore(e, signal, value, tile::MemoryOrder::Relaxed, tile::MemoryScope::System);
  else
    atomicRmw(e, tile::AtomicOp::Add, value.getType(), signal, value, Value(), tile::MemoryOrder::Relaxed,
              tile::MemoryScope::System);
  noteSignal(e, signal, value, op);
}

/// Words of at most 8 bytes that hold `count` elements.
static std::pair<Type, int> wordsOf(Emitter &e, Type element, int count) {
  int bits = static_cast<int>(Emitter::bitWidth(element)) * count;
  return {e.getIntegerType(std::min(bits, 64)), std::max(1, bits / 64)};
}

SmallVector<Value> TargetInfo::orderedLoadVector(Emitter &e, Type element, int count, Value ptr, tile::MemoryOrder order,
                                                 tile::MemoryScope scope) {
  auto [word, words] = wordsOf(e, element, count);
  SmallVector<Value> elements;
  for (int i = 0; i < words; ++i) {
    Value loaded = orderedLoad(e, word, e.addBytes(ptr, int64_t(i) * 8), order, scope, /*spin=*/false);
    if (count == words)
      elements.push_back(e.fromBits(loaded, element));
    else
      llvm::append_range(elements, e.unpackVector(LLVM::BitcastOp::create(e, VectorType::get({count / words}, element), loaded)));
  }
  return elements;
}

void TargetInfo::orderedStoreVector(Emitter &e, Value ptr, ValueRange values, tile::MemoryOrder order, tile::MemoryScope scope) {
  auto [word, words] = wordsOf(e, values.front().getType(), static_cast<int>(values.size()));
  size_t perWord = values.size() / words;
  for (int i = 0; i < words; ++i) {
    ValueRange part = values.slice(i * perWord, perWord);
    Value bits = perWord == 1 ? e.toBits(part.front()) : Value(LLVM::BitcastOp::create(e, word, e.packVector(part)));
    orderedStore(e, e.addBytes(ptr, int64_t(i) * 8), bits, order, scope);
  }
}

InFlightDiagnostic reportNoIntrinsic(Emitter &e, StringRef name) {
  return emitError(e.getLoc()) << "'" << name << "' does not exist on this target: it is an instruction of compute "
                               << "capability 9.0 (targets cuda:sm_90a and sim:sm_90a)";
}

void TargetInfo::assume(Emitter &e, Value condition) { LLVM::AssumeOp::create(e, condition); }

namespace {
/// The process-wide table: targets register once at start, compilations on any thread read.
struct TargetTable {
  std::mutex mutex;
  std::map<std::string, TargetFactory, std::less<>> factories;
};
} // namespace

static TargetTable &targetTable() {
  static TargetTable table;
  return table;
}

void registerTarget(StringRef family, TargetFactory factory) {
  TargetTable &table = targetTable();
  std::lock_guard lock(table.mutex);
  table.factories.insert_or_assign(family.str(), std::move(factory));
}

Expected<std::unique_ptr<TargetInfo>> createTargetInfo(StringRef name) {
  TargetTable &table = targetTable();
  TargetFactory factory;
  std::string known;
  {
    std::lock_guard lock(table.mutex);
    auto it = table.factories.find(name.split(':').first.str());
    if (it != table.factories.end())
      factory = it->second;
    for (const auto &entry : table.factories)
      known += (known.empty() ? "" : ", ") + entry.first;
  }
  if (!factory)
    return invalidArgument(fmt::format("unknown target '{}'; known families: {}", name.str(), known));
  return factory(name);
}

} // namespace ditron::target
