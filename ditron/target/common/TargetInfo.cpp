//===- TargetInfo.cpp - Defaults of the leaves and the table of targets ---------------------------------------------------===//
//
// What most targets answer alike, and the table from which `ditron-to-llvm` picks the leaves by name.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/TargetInfo.h"

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
