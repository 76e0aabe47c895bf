//===- typed_header_test.cpp - A package's kernels as C++ functions -----------------------------------------------------===//
#include "SamplePackage.h"

#include "ditron/package/TypedHeader.h"

#include <gmock/gmock.h>

using namespace ditron::package;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(TypedHeader, parametersHaveTheTypesOfTheVariantsAndFixedConstantsAreNone) {
  const std::string text = typedHeader(samplePackage({sampleVariant("sim:sm_80", "i32"), sampleVariant("sim:sm_80", "")}), "app",
                                       "/a \"folder\"/app.ditron");
  EXPECT_THAT(text, AllOf(HasSubstr("namespace app {"), HasSubstr("packagePath = \"/a \\\"folder\\\"/app.ditron\";"),
                          HasSubstr("class Sample {"), HasSubstr("ditron_kernel_find(context.get(), \"sample.py\", \"sample\", &handle)")));
  // n is run-time in one variant and 1 in the other; scale is no tl.constexpr, so that its value is the caller's.
  EXPECT_THAT(text, HasSubstr("operator()(ditron::Stream &stream, const ditron::Launch &launch, int32_t *out, int32_t n, ditron::Argument scale)"));
  EXPECT_THAT(text, HasSubstr("{{\"out\", out}, {\"n\", n}, {\"BLOCK\", int64_t(64)}, {\"scale\", scale}}"));
}

TEST(TypedHeader, whatDiffersIsTheCallers) {
  const std::string text = typedHeader(
      samplePackage({sampleVariant("sim:sm_80", "i32", 1, 64), sampleVariant("sim:sm_80", "i64", 1, 128)}), "app", "app.ditron");
  EXPECT_THAT(text, HasSubstr("int32_t *out, ditron::Argument n, ditron::Argument BLOCK, ditron::Argument scale)"));
}

TEST(TypedHeader, namesOfCppAndTypesThatItLacks) {
  Package package = samplePackage({});
  Variant variant = emptyVariant("cuda:sm_80");
  addNumber(variant, "class", "*bf16", 16);
  addNumber(variant, "n", "fp32");
  addNumber(variant, "BLOCK", "i1");
  addDefault(variant, "scale");
  package.kernels[0].parameters[0].name = "class";
  package.kernels[0].name = "my_kernel2";
  package.kernels[0].variants = {variant};
  const std::string text = typedHeader(package, "app", "app.ditron");
  EXPECT_THAT(text, AllOf(HasSubstr("class MyKernel2 {"), HasSubstr("void *class_, double n, bool BLOCK)"),
                          HasSubstr("{\"class\", ditron::Pointer{class_, static_cast<ditron_dtype_t>(12)}}")));
  EXPECT_THAT(typedHeader(richPackage(), "app", "app.ditron"), AllOf(HasSubstr("takes tuples or descriptors"), Not(HasSubstr("class Sample"))));
}
