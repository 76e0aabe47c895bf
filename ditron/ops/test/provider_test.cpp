//===- provider_test.cpp - Operators and where their kernels come from --------------------------------------------------===//
//
// This program links the operators and the runtime and nothing else: that it links shows that operators need no compiler.
// The provider here has no kernels and tells which ones it was asked for.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/RowWise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::ops {
namespace {

using testing::HasSubstr;

/// Refuses everything.
class EmptyProvider : public runtime::KernelProvider {
public:
  const std::string &target() const override { return name; }
  Expected<runtime::Specialisation> specialise(const runtime::KernelReference &kernel, const runtime::CallArguments &call,
                                               const runtime::LaunchOptions &options) override {
    EXPECT_THAT(std::string(kernel.text), HasSubstr("def " + std::string(kernel.kernel)));
    asked.push_back(std::string(kernel.name) + ":" + std::string(kernel.kernel));
    arguments.push_back(call);
    warps.push_back(options.warps());
    return notFound("there are no kernels");
  }

  std::string name = "sim:sm_80";
  std::vector<std::string> asked;
  std::vector<runtime::CallArguments> arguments;
  std::vector<uint32_t> warps;
};

TEST(Provider, RowsAskForTheirKernelByName) {
  Expected<std::unique_ptr<runtime::World>> world = runtime::World::local(1, "sim");
  ASSERT_TRUE(world.isOk()) << world.status().message();
  runtime::Rank &rank = (*world)->rank(0);
  Expected<runtime::Buffer> x = rank.allocate(DataType::F32, 4 * 100, "x");
  ASSERT_TRUE(x.isOk());
  EmptyProvider provider;
  const Expected<PreparedCall> call =
      prepareSoftmax(provider, rank, {.rows = 4, .columns = 100, .dtype = DataType::F32}, x->pointer(), x->pointer());
  EXPECT_EQ(call.status().message(), "there are no kernels");
  ASSERT_THAT(provider.asked, testing::ElementsAre("ditron:row_wise:softmax"));
  EXPECT_TRUE(provider.arguments[0].positional.empty());
  EXPECT_EQ(provider.arguments[0].keywords.size(), 7u);
}

TEST(Provider, AnErrorEndsThePreparationOfAnOperator) {
  Expected<std::unique_ptr<runtime::World>> world = runtime::World::local(2, "sim");
  ASSERT_TRUE(world.isOk()) << world.status().message();
  EmptyProvider provider;
  Expected<AllGatherGemm> op = AllGatherGemm::create(**world, provider, {.dtype = DataType::F32, .maxRows = 64, .depth = 32});
  ASSERT_TRUE(op.isOk()) << op.status().message();
  EXPECT_EQ(op->prepare((*world)->rank(1), 64, 48).code(), StatusCode::NotFound);
  EXPECT_THAT(provider.asked, testing::ElementsAre("ditron:tensor_parallel_gemm:enter"));
  EXPECT_THAT(provider.warps, testing::ElementsAre(4));
}

} // namespace
} // namespace ditron::ops
