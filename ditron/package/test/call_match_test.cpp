//===- call_match_test.cpp - Which variant serves a call ----------------------------------------------------------------===//
#include "SamplePackage.h"

#include "ditron/package/CallMatch.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::package;
using runtime::Argument;
using runtime::CallArguments;
using testing::HasSubstr;

namespace {

alignas(64) int words[64];
const runtime::Pointer aligned = {words, DataType::I32}, odd = {words + 1, DataType::I32}, floats = {words, DataType::F32};

/// The number of the variant that is best for the call, or why there is none.
std::string choose(const Package &package, const CallArguments &call, const runtime::LaunchOptions &options = {}) {
  const Kernel &kernel = package.kernels[0];
  Expected<BoundCall> bound = BoundCall::bind(kernel, call, options);
  if (!bound.isOk())
    return bound.status().message();
  std::optional<std::pair<BoundCall::Score, size_t>> best;
  std::string reasons;
  for (size_t i = 0; i < kernel.variants.size(); ++i) {
    std::string reason;
    if (std::optional<BoundCall::Score> score = bound->score(kernel.variants[i], &reason)) {
      if (!best || best->first < *score)
        best = {*score, i};
    } else {
      reasons += reason + "; ";
    }
  }
  return best ? std::to_string(best->second) : reasons;
}

std::string signatureOf(const CallArguments &call) {
  const Package package = samplePackage({});
  return BoundCall::bind(package.kernels[0], call, {})->signatureText();
}

} // namespace

TEST(CallMatch, theMostSpecialisedVariantWins) {
  const Package package = samplePackage({sampleVariant("sim:sm_80", "i64"), sampleVariant("sim:sm_80", "i32"),
                                         sampleVariant("sim:sm_80", "i32", 16), sampleVariant("sim:sm_80", "", 1),
                                         sampleVariant("sim:sm_80", "", 48)});
  EXPECT_EQ(choose(package, {{aligned, 7, 64}, {}}), "1");
  EXPECT_EQ(choose(package, {{aligned, 32, 64}, {}}), "2");
  EXPECT_EQ(choose(package, {{aligned, 1, 64}, {}}), "3");
  EXPECT_EQ(choose(package, {{aligned, 48, 64}, {}}), "4");
  EXPECT_EQ(choose(package, {{aligned, int64_t(1) << 40, 64}, {}}), "0");
  EXPECT_EQ(choose(package, {{aligned, Argument::typed(DataType::I64, 1), 64}, {}}), "0");
  EXPECT_EQ(choose(package, {{aligned, Argument::typed(DataType::I32, 1), 64}, {}}), "1");
}

TEST(CallMatch, anIntegerOneIsServedByAVariantForAnyInteger) {
  EXPECT_EQ(choose(samplePackage({sampleVariant("sim:sm_80", "i32")}), {{aligned, 1, 64}, {}}), "0");
}

TEST(CallMatch, whatAVariantReliesOnMustHold) {
  const Package package = samplePackage({sampleVariant("sim:sm_80", "i32", 16)});
  EXPECT_EQ(choose(package, {{aligned, 32, 64}, {}}), "0");
  EXPECT_THAT(choose(package, {{aligned, 33, 64}, {}}), HasSubstr("'n' is compiled as a multiple of 16, given integer 33"));
  EXPECT_THAT(choose(package, {{odd, 32, 64}, {}}), HasSubstr("'out' is compiled as a multiple of 16, given i32 pointer"));
  EXPECT_THAT(choose(package, {{floats, 32, 64}, {}}), HasSubstr("'out' is compiled as *i32, given fp32 pointer"));
  EXPECT_THAT(choose(package, {{aligned, int64_t(1) << 40, 64}, {}}), HasSubstr("'n' is compiled as i32, given integer 1099511627776"));
  EXPECT_THAT(choose(package, {{aligned, 2.0, 64}, {}}), HasSubstr("'n' is compiled as i32, given float 2"));
  EXPECT_THAT(choose(package, {{aligned, runtime::None(), 64}, {}}), HasSubstr("given None"));
  EXPECT_THAT(choose(package, {{aligned, 32, 128}, {}}), HasSubstr("'BLOCK' is compiled as 64, given integer 128"));
  EXPECT_THAT(choose(package, {{aligned, 32, 64.0}, {}}), HasSubstr("'BLOCK' is compiled as 64, given float 64"));
}

TEST(CallMatch, defaultsAndOptions) {
  const Package package = samplePackage({sampleVariant("sim:sm_80", "i32")});
  EXPECT_EQ(choose(package, {{aligned, 5, 64}, {{"scale", 2.0}}}), "0");
  EXPECT_THAT(choose(package, {{aligned, 5, 64}, {{"scale", 3.0}}}), HasSubstr("'scale' is compiled as 2.0, given float 3"));
  EXPECT_EQ(choose(package, {{aligned, 5}, {{"BLOCK", 64}}}, {.numWarps = 1, .numStages = 3}), "0");
  EXPECT_THAT(choose(package, {{aligned, 5, 64}, {}}, {.numWarps = 8}), HasSubstr("num_warps is 1, wanted 8"));
  EXPECT_THAT(choose(package, {{aligned, 5, 64}, {}}, {.numStages = 2}), HasSubstr("num_stages is 3, wanted 2"));
  EXPECT_THAT(choose(package, {{aligned, 5, 64}, {}}, {.debug = true}), HasSubstr("debug is false, wanted true"));
  EXPECT_EQ(choose(package, {{aligned, 5}, {}}), "kernel 'sample' lacks argument 'BLOCK' (tl.constexpr)");
  EXPECT_THAT(choose(package, {{aligned, 5, 64}, {{"blokc", 1}}}), HasSubstr("has no parameter 'blokc'"));
}

TEST(CallMatch, tunedParametersMayBeLeftOutAndComputedOnesMayNot) {
  Package package = samplePackage({sampleVariant("sim:sm_80", "i32")});
  package.kernels[0].variants[0].config = 3;
  package.kernels[0].parameters[2].isTuned = true;
  EXPECT_EQ(choose(package, {{aligned, 5}, {}}), "0");
  EXPECT_EQ(choose(package, {{aligned, 5}, {}}, {.config = 3}), "0");
  EXPECT_THAT(choose(package, {{aligned, 5}, {}}, {.config = 1}), HasSubstr("configuration is 3, wanted 1"));
  EXPECT_THAT(choose(package, {{aligned, 5, 128}, {}}), HasSubstr("'BLOCK' is compiled as 64"));
  package.kernels[0].parameters[2].isTuned = false;
  package.kernels[0].parameters[2].isComputed = true;
  EXPECT_THAT(choose(package, {{aligned, 5}, {}}), HasSubstr("'BLOCK' is computed by @triton.heuristics"));
}

TEST(CallMatch, tuplesAreMatchedByElement) {
  Variant variant = emptyVariant("sim:sm_80");
  addNumber(variant, "out.0", "*i32");
  addNumber(variant, "out.1", "fp32");
  addConstant(variant, "n", 1);
  addConstant(variant, "BLOCK", 64);
  addDefault(variant, "scale");
  const Package package = samplePackage({variant});
  EXPECT_EQ(choose(package, {{}, {{"out.1", 2.5}, {"out.0", odd}, {"n", 1}, {"BLOCK", 64}}}), "0");
  EXPECT_THAT(choose(package, {{}, {{"out.0", odd}, {"n", 1}, {"BLOCK", 64}}}), HasSubstr("'out.1'"));
  EXPECT_THAT(choose(package, {{}, {{"out.0", odd}, {"out.1", 1.0}, {"out.2", 1.0}, {"n", 1}, {"BLOCK", 64}}}),
              HasSubstr("'out.2' is not there"));
}

TEST(CallMatch, descriptorsNeedTheSameBlocksAndTheirAlignment) {
  const Package package = [] {
    Package rich = richPackage();
    Variant &variant = rich.kernels[0].variants[1];
    variant.items.resize(2); // out, and the descriptor at n
    addConstant(variant, "BLOCK", 64);
    addDefault(variant, "scale");
    rich.kernels[0].variants.erase(rich.kernels[0].variants.begin());
    return rich;
  }();
  const runtime::Pointer out = {words, DataType::BF16};
  auto call = [&](runtime::TensorDescriptor descriptor) {
    return choose(package, {{out, descriptor, 64}, {}}, {.debug = true});
  };
  EXPECT_EQ(call({out, {1024, 512}, {}, {128, 64}, true}), "0");
  EXPECT_THAT(call({out, {1024, 512}, {}, {128, 64}, false}), HasSubstr("compiled as tensordesc<bf16[128,64],nan>"));
  EXPECT_THAT(call({out, {1024, 512}, {}, {64, 64}, true}), HasSubstr("given tensordesc<bf16[64,64],nan>"));
  EXPECT_THAT(call({out, {1024, 510}, {}, {128, 64}, true}), HasSubstr("rows at multiples of 16 bytes"));
  EXPECT_THAT(call({out, {1024, 8}, {16, 1}, {128, 64}, true}), HasSubstr("and of 16 elements"));
}

TEST(CallMatch, theSignatureOfACallIsWhatTheCompilerWouldTake) {
  EXPECT_EQ(signatureOf({{aligned, 7, 64}, {}}), "out=*i32:16, n=i32, constexpr BLOCK=64, scale=fp32");
  EXPECT_EQ(signatureOf({{odd, 32}, {{"BLOCK", "it's \"so\""}, {"scale", runtime::None()}}}),
            "out=*i32, n=i32:16, constexpr BLOCK=\"it's \\\"so\\\"\", scale=None");
  EXPECT_EQ(signatureOf({{aligned, 1, DataType::BF16}, {{"scale", Argument::typed(DataType::F64, 1.0)}}}),
            "out=*i32:16, n=1, constexpr BLOCK=bf16, scale=fp64");
  EXPECT_EQ(signatureOf({{}, {{"out.0", aligned}, {"out.1", 5}, {"n.x", 1.5}, {"n.y.0", true}, {"BLOCK", 64}, {"scale", 0.5}}}),
            "out=(*i32:16, i32), n=(x=fp32, y=(i1,)), constexpr BLOCK=64, scale=fp32");
  EXPECT_EQ(signatureOf({{aligned, runtime::TensorDescriptor{{words, DataType::BF16}, {64, 24}, {}, {16, 16}, true}, 64}, {}}),
            "out=*i32:16, n=tensordesc<bf16[16,16],nan>:16, constexpr BLOCK=64, scale=fp32");
}
