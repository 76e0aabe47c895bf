//===- LaunchInterface.cpp - What a launch has to know of the compiled module ----------------------------------------===//
//
// Attributes to plain data. Every attribute is of our own making, so that a malformed one is a bug of the compiler.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/LaunchInterface.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dgpu/DiscardableAttrs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ditron::compiler {

namespace {

/// {arg = index}, {arg = index, value = the least that it is taken for} or {value = number}.
std::optional<ArtifactMapNumber> readNumber(mlir::Attribute attribute) {
  auto entry = llvm::dyn_cast<mlir::DictionaryAttr>(attribute);
  if (!entry)
    return std::nullopt;
  ArtifactMapNumber number;
  auto index = entry.getAs<mlir::IntegerAttr>("arg"), value = entry.getAs<mlir::IntegerAttr>("value");
  if (!index && !value)
    return std::nullopt;
  if (index)
    number.parameter = static_cast<int32_t>(index.getInt());
  if (value)
    number.value = value.getInt();
  return number;
}

/// The name in signatures; the copy engine does not care for the sign of integers.
std::string elementName(mlir::Type type) {
  if (type.isF16())
    return "fp16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "fp32";
  if (type.isF64())
    return "fp64";
  if (type.isTF32())
    return std::string(ArtifactTensorMap::tf32);
  if (llvm::isa<mlir::Float8E4M3FNType>(type))
    return "fp8e4nv";
  if (llvm::isa<mlir::Float8E5M2Type>(type))
    return "fp8e5";
  return "i" + std::to_string(type.getIntOrFloatBitWidth());
}

std::optional<ArtifactTensorMap> readMap(mlir::DictionaryAttr attribute) {
  auto base = attribute.getAs<mlir::IntegerAttr>("base");
  auto sizes = attribute.getAs<mlir::ArrayAttr>("sizes"), strides = attribute.getAs<mlir::ArrayAttr>("strides"),
       box = attribute.getAs<mlir::ArrayAttr>("box");
  auto swizzle = attribute.getAs<mlir::IntegerAttr>("swizzle");
  auto element = attribute.getAs<mlir::TypeAttr>("element");
  auto padding = attribute.getAs<mlir::StringAttr>("padding");
  if (!base || !sizes || !strides || !box || !swizzle || !element || !padding)
    return std::nullopt;
  ArtifactTensorMap map;
  map.base = static_cast<uint32_t>(base.getInt());
  map.swizzleBytes = static_cast<uint32_t>(swizzle.getInt());
  map.element = elementName(element.getValue());
  map.fillNan = padding == "nan";
  auto readNumbers = [](mlir::ArrayAttr entries, std::vector<ArtifactMapNumber> &numbers) {
    for (mlir::Attribute entry : entries) {
      std::optional<ArtifactMapNumber> number = readNumber(entry);
      if (!number)
        return false;
      numbers.push_back(*number);
    }
    return true;
  };
  if (!readNumbers(sizes, map.sizes) || !readNumbers(strides, map.strides))
    return std::nullopt;
  for (mlir::Attribute extent : box)
    map.box.push_back(static_cast<uint32_t>(llvm::cast<mlir::IntegerAttr>(extent).getInt()));
  return map;
}

} // namespace

Expected<LaunchInterface> readLaunchInterface(mlir::ModuleOp module) {
  LaunchInterface result;
  result.numWarps = static_cast<uint32_t>(dgpu::numWarpsOf(module));
  if (auto bytes = module->getAttrOfType<mlir::IntegerAttr>(dgpu::sharedBytesAttrName))
    result.sharedBytes = static_cast<uint64_t>(bytes.getInt());
  // Partitions that have become functions leave the number of warps to the module.
  if (auto warps = module->getAttrOfType<mlir::IntegerAttr>(dgpu::launchWarpsAttrName))
    result.launchWarps = static_cast<uint32_t>(warps.getInt());
  module.walk([&](dgpu::WarpSpecializeOp partitions) {
    result.launchWarps = static_cast<uint32_t>(dgpu::numWarpsOf(partitions)) + partitions.getProducerWarps();
  });
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    if (!function->hasAttr("tile.kernel"))
      continue;
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      if (function.getArgAttr(index, dgpu::numProgramsAttrName))
        result.loopsOverPrograms = true;
      auto attribute = function.getArgAttrOfType<mlir::DictionaryAttr>(index, dgpu::tensorMapAttrName);
      if (!attribute)
        continue;
      std::optional<ArtifactTensorMap> map = readMap(attribute);
      if (!map)
        return internalError("compiler bug: malformed tensor map of argument " + std::to_string(index));
      result.tensorMaps.push_back(std::move(*map));
    }
  }
  return result;
}

} // namespace ditron::compiler
