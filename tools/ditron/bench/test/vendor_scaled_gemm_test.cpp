//===- vendor_scaled_gemm_test.cpp - The calls of cuBLASLt, on a stand-in -----------------------------------------------------===//
//
// What the calls say is what is computed (FakeCublasLt.cpp), in memory of a simulated GPU, which the host can read.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/VendorGemm.h"

#include "ditron/ops/Reference.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace ditron;
using ops::Scaling;

namespace {

class VendorScaledGemm : public testing::Test {
protected:
  void SetUp() override {
    auto made = runtime::World::local(1, "sim:sm_90a", {});
    ASSERT_TRUE(made.isOk()) << made.status().message();
    world = std::move(made).value();
    unsetenv("FAKE_CUBLASLT");
  }
  void TearDown() override {
    unsetenv("FAKE_CUBLASLT");
    EXPECT_EQ(objects(), 0) << "something was not destroyed";
  }

  static int objects() {
    void *library = dlopen(DITRON_FAKE_CUBLASLT, RTLD_NOW);
    auto *count = reinterpret_cast<int (*)()>(dlsym(library, "fakeCublasLtObjects"));
    return count ? count() : -1;
  }

  static ops::GemmProblem problem(DataType type, Scaling scaling, int64_t m, int64_t n, int64_t k) {
    ops::GemmProblem result;
    result.m = m, result.n = n, result.k = k, result.dtype = type;
    result.epilogue.scalesA = result.epilogue.scalesB = scaling;
    return result;
  }

  runtime::Buffer buffer(DataType type, const std::vector<float> &values, std::string_view name) {
    auto made = world->rank(0).allocate(type, values.size(), name);
    EXPECT_TRUE(made.isOk() && made->uploadFloats(values).isOk());
    return std::move(made).value();
  }

  std::unique_ptr<tool::VendorGemm> open(bool fast = false) {
    auto opened = tool::VendorGemm::open(DITRON_FAKE_CUBLASLT, world->rank(0), DataType::F8E4NV, fast);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    return opened.isOk() ? std::move(opened).value() : nullptr;
  }

  /// The product of two sets of operands after one `prepare`.
  void computes(tool::VendorGemm &peer, const ops::GemmProblem &problem) {
    const Scaling scaling = problem.epilogue.scalesA;
    auto scales = [&](int64_t count, uint64_t seed) {
      return ops::randomValues(DataType::F32, scaling == Scaling::Vector ? count : 1, seed);
    };
    const std::vector<float> scalesA = scales(problem.m, 1), scalesB = scales(problem.n, 2);
    const runtime::Buffer deviceA = buffer(DataType::F32, scalesA, "sa"),
                          deviceB = buffer(DataType::F32, scalesB, "sb");
    ops::EpilogueOperands extras;
    if (scaling != Scaling::None)
      extras = {deviceA, deviceB, {}};
    const Status prepared = peer.prepare(problem, extras);
    ASSERT_TRUE(prepared.isOk()) << prepared.message();
    const DataType resultType = peer.resultType(problem);
    for (uint64_t seed : {3, 5}) {
      const std::vector<float> a = ops::randomValues(problem.dtype, problem.m * problem.k, seed);
      const std::vector<float> b = ops::randomValues(problem.dtype, problem.k * problem.n, seed + 1);
      std::vector<float> turned(b.size());
      for (int64_t k = 0; k < problem.k; ++k)
        for (int64_t column = 0; column < problem.n; ++column)
          turned[column * problem.k + k] = b[k * problem.n + column];
      const runtime::Buffer onA = buffer(problem.dtype, a, "a"), onB = buffer(problem.dtype, turned, "b");
      const runtime::Buffer c = buffer(resultType, std::vector<float>(problem.m * problem.n, -1), "c");
      const Status enqueued = peer.enqueue(onA, onB, c);
      ASSERT_TRUE(enqueued.isOk()) << enqueued.message();
      std::vector<double> expected = ops::referenceProduct(a, b, problem.m, problem.n, problem.k);
      if (resultType != DataType::I32 && scaling != Scaling::None)
        for (int64_t i = 0; i < problem.m * problem.n; ++i)
          expected[i] *= double(scalesA[scaling == Scaling::Vector ? i / problem.n : 0]) *
                         scalesB[scaling == Scaling::Vector ? i % problem.n : 0];
      auto actual = c.downloadFloats();
      ASSERT_TRUE(actual.isOk());
      EXPECT_LE(ops::compare(*actual, expected, {resultType == DataType::I32 ? 1e-7 : 4e-3}).worstRatio, 1);
    }
  }

  std::unique_ptr<runtime::World> world;
};

TEST_F(VendorScaledGemm, multipliesFloat8) {
  const auto peer = open();
  EXPECT_EQ(peer->name(), "cuBLASLt 13.1.2");
  for (Scaling scaling : {Scaling::None, Scaling::Tensor, Scaling::Vector})
    for (auto [m, n, k] : {std::tuple(5, 24, 48), std::tuple(40, 8, 16), std::tuple(1, 16, 32)}) {
      SCOPED_TRACE(testing::Message() << toString(scaling) << ' ' << m << 'x' << n << 'x' << k);
      computes(*peer, problem(DataType::F8E4NV, scaling, m, n, k));
    }
}

TEST_F(VendorScaledGemm, multipliesInt8WithoutScales) {
  const auto peer = open();
  for (Scaling scaling : {Scaling::None, Scaling::Vector}) {
    EXPECT_EQ(peer->resultType(problem(DataType::I8, scaling, 1, 1, 1)), DataType::I32);
    computes(*peer, problem(DataType::I8, scaling, 7, 24, 20));
  }
}

TEST_F(VendorScaledGemm, saysWhatIsNotSupported) {
  const auto peer = open(/*fast=*/true);
  EXPECT_EQ(peer->name(), "cuBLASLt 13.1.2, fast accumulation");
  ops::GemmProblem plain = problem(DataType::F8E4NV, Scaling::None, 16, 16, 16);
  plain.order = ops::MatrixOrder::Plain;
  for (const ops::GemmProblem &each : {plain, problem(DataType::F8E5, Scaling::None, 16, 16, 16),
                                       problem(DataType::F8E4NV, Scaling::None, 16, 16, 17)}) {
    const Status status = peer->prepare(each, {});
    EXPECT_EQ(status.code(), StatusCode::Unsupported);
    EXPECT_EQ(status.message(), "cublasLtMatmulAlgoGetHeuristic failed with status 15 (CUBLAS_STATUS_NOT_SUPPORTED)");
  }
  computes(*peer, problem(DataType::F8E4NV, Scaling::None, 16, 16, 16)); // what comes behind is not spoiled
}

TEST_F(VendorScaledGemm, namesTheCallThatFails) {
  const auto peer = open();
  const ops::GemmProblem works = problem(DataType::F8E4NV, Scaling::None, 16, 16, 16);
  for (const char *call :
       {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    setenv("FAKE_CUBLASLT", call, 1);
    const Status status = peer->prepare(works, {});
    EXPECT_TRUE(status.message().starts_with(call)) << status.message();
    EXPECT_TRUE(status.message().ends_with("failed with status 14 (CUBLAS_STATUS_INTERNAL_ERROR)")) << status.message();
  }
  setenv("FAKE_CUBLASLT", "no algorithm", 1);
  EXPECT_EQ(peer->prepare(works, {}).message(), "cublasLtMatmulAlgoGetHeuristic found no algorithm");
  setenv("FAKE_CUBLASLT", "cublasLtMatmul", 1);
  ASSERT_TRUE(peer->prepare(works, {}).isOk());
  EXPECT_EQ(peer->enqueue({}, {}, {}).message(), "cublasLtMatmul failed with status 14 (CUBLAS_STATUS_INTERNAL_ERROR)");
  setenv("FAKE_CUBLASLT", "cublasLtCreate", 1);
  const auto opened = tool::VendorGemm::open(DITRON_FAKE_CUBLASLT, world->rank(0), DataType::I8, false);
  EXPECT_EQ(opened.status().message(), "cublasLtCreate failed with status 14 (CUBLAS_STATUS_INTERNAL_ERROR)");
}

TEST_F(VendorScaledGemm, saysWhichLibraryIsNotOne) {
  const auto none = tool::VendorGemm::open("/no/such/library.so", world->rank(0), DataType::I8, false);
  EXPECT_TRUE(none.status().message().starts_with("cannot open cuBLASLt: /no/such/library.so"))
      << none.status().message();
  const auto other = tool::VendorGemm::open(DITRON_FAKE_CUBLASLT, world->rank(0), DataType::BF16, false);
  EXPECT_TRUE(other.status().message().ends_with("has no function cublasCreate_v2; it is not cuBLAS, or an older one"))
      << other.status().message();
}

} // namespace
