//===- SamplePackage.h - A small package for tests ----------------------------------------------------------*- C++ -*-===//
//
// One kernel, sample(out, n, BLOCK: tl.constexpr, scale=2.0), in the variants that a test asks for. Their code is
// sample_kernel.c: with n at run time it writes n + 1000, with a constant n 2000.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_TEST_SAMPLEPACKAGE_H
#define DITRON_PACKAGE_TEST_SAMPLEPACKAGE_H

#include "ditron/cache/Sha256.h"
#include "ditron/package/Package.h"
#include "ditron/support/InputFile.h"

#include <gtest/gtest.h>

namespace ditron::package {

inline constexpr const char *sampleText = "def sample(out, n, BLOCK: tl.constexpr, scale=2.0): ...";

inline std::string sampleObject() {
  Expected<std::string> bytes = readWholeFile(SAMPLE_KERNEL, "object", 1 << 20);
  EXPECT_TRUE(bytes.isOk()) << bytes.status().message();
  return bytes.isOk() ? *bytes : "";
}

/// A run-time item, together with what the code takes for it.
inline void addNumber(Variant &variant, const std::string &path, const std::string &type, uint32_t divisibility = 1) {
  Item item;
  item.path = path;
  item.type = type;
  item.divisibility = divisibility;
  variant.items.push_back(item);
  const uint32_t bytes = type[0] == '*' ? 8 : sizeOf(*parseDataType(type));
  variant.artifact.parameters.push_back({path, type, bytes, divisibility});
}

inline void addConstant(Variant &variant, const std::string &path, Value value) {
  Item item;
  item.path = path;
  item.kind = Item::Kind::Constant;
  item.value = std::move(value);
  variant.items.push_back(item);
}

inline void addDefault(Variant &variant, const std::string &path) {
  Item item;
  item.path = path;
  item.kind = Item::Kind::Default;
  variant.items.push_back(item);
}

/// Without items.
inline Variant emptyVariant(const std::string &target, uint32_t numWarps = 1) {
  Variant variant;
  variant.signature = "for a test";
  variant.artifact.kernel = "sample";
  variant.artifact.entrySymbol = "sample_entry";
  variant.artifact.target = target;
  variant.artifact.sourceFile = "sample.py";
  variant.artifact.numWarps = numWarps;
  if (target.starts_with("sim"))
    variant.codes = {{ArtifactCode::HostObject, sampleObject()}};
  else
    variant.codes = {{ArtifactCode::Ptx, ".version 8.0\n.target sm_80\n"}};
  return variant;
}

/// out, n, BLOCK: `type` empty for a constant n of `value`.
inline Variant sampleVariant(const std::string &target, const std::string &type, int64_t value = 1, int64_t block = 64) {
  Variant variant = emptyVariant(target);
  addNumber(variant, "out", "*i32", 16);
  if (type.empty()) {
    addConstant(variant, "n", value);
    variant.artifact.entrySymbol = "sample_constant";
  } else {
    addNumber(variant, "n", type, static_cast<uint32_t>(value));
  }
  addConstant(variant, "BLOCK", block);
  addConstant(variant, "scale", 2.0);
  return variant;
}

inline Package samplePackage(std::vector<Variant> variants) {
  Kernel kernel;
  kernel.name = "sample";
  kernel.source = {"sample.py", cache::sha256(sampleText)};
  kernel.parameters.resize(4);
  kernel.parameters[0].name = "out";
  kernel.parameters[1].name = "n";
  kernel.parameters[2].name = "BLOCK";
  kernel.parameters[2].isConstexpr = true;
  kernel.parameters[3].name = "scale";
  kernel.parameters[3].hasDefault = true;
  kernel.parameters[3].defaultValue = 2.0;
  kernel.variants = std::move(variants);
  Package package;
  package.compiler = "ditron 0.0.0, for tests";
  package.kernels.push_back(std::move(kernel));
  return package;
}

/// Everything that the format has: all kinds of values, items and code.
inline Package richPackage() {
  Variant rich = emptyVariant("cuda:sm_90a", 8);
  rich.artifact.launchWarps = 12;
  rich.artifact.sharedBytes = 4096;
  rich.artifact.loopsOverPrograms = true;
  rich.config = 2;
  rich.debug = true;
  addNumber(rich, "out", "*bf16", 16);
  Item descriptor;
  descriptor.path = "n";
  descriptor.kind = Item::Kind::Descriptor;
  descriptor.type = "bf16";
  descriptor.block = {128, 64};
  descriptor.fillNan = true;
  descriptor.divisibility = descriptor.sizeDivisibility = 16;
  rich.items.push_back(descriptor);
  for (const auto &[name, type] : {std::pair("n", "*bf16"), {"n.shape.0", "i32"}, {"n.shape.1", "i32"}, {"n.stride.0", "i64"}})
    rich.artifact.parameters.push_back({name, type, type[0] == '*' || type[1] == '6' ? 8u : 4u, 1});
  rich.artifact.tensorMaps.push_back({1, {{2, 0}, {3, 0}}, {{4, 0}, {-1, 1}}, {128, 64}, 128, "bf16", true});
  addConstant(rich, "BLOCK.0", true);
  addConstant(rich, "BLOCK.1", int64_t(-5));
  addConstant(rich, "BLOCK.2", ~uint64_t(0));
  addConstant(rich, "BLOCK.3", std::string("a \"text\"\n"));
  addConstant(rich, "BLOCK.4", DataType::F8E5);
  addConstant(rich, "BLOCK.5", runtime::None());
  addDefault(rich, "scale");
  Package package = samplePackage({sampleVariant("cuda:sm_80", "i32", 16), rich});
  package.features = {"avx2", "fma"};
  package.kernels[0].imports = {{"helper.py", cache::sha256("helper")}};
  package.plans = {{"ag_gemm", "cuda:sm_90a", "m=64", "tile 64x64x32", 4096}};
  return package;
}

} // namespace ditron::package
#endif // DITRON_PACKAGE_TEST_SAMPLEPACKAGE_H
