//===- library_kernels_test.cpp - Kernels of one GPU against plain references ---------------------------------------------===//
//
// The matrix product by pointers and by descriptors, softmax and RMSNorm in both forms, layer norm: shapes that no tile divides,
// padded rows, all types; choice and text form of plans; what is refused. The product runs on the simulated Hopper as well,
// where it is the warp-specialised program of tensor copies and warpgroup multiplies.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "LibraryMachine.h"
#include "ditron/compiler/KernelInterface.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/RowWise.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::GemmMovement;
using ops::GemmPlan;
using ops::GemmProblem;
using ops::MatrixOrder;
using testing::HasSubstr;

//===--------------------------------------------------------------------------------------------------------------===//
// Matrix product
//===--------------------------------------------------------------------------------------------------------------===//

struct ProductCase {
  const char *name;
  const char *target; ///< Null: the target under test.
  GemmProblem problem;
  const char *plan;
};
void PrintTo(const ProductCase &p, std::ostream *stream) { *stream << p.name; }

class LibraryGemm : public testing::TestWithParam<ProductCase> {};

/// Rows of `columns` values at `stride`; what lies between is NaN and must not be read.
std::vector<float> padded(const std::vector<float> &values, int64_t columns, int64_t stride) {
  const int64_t rows = static_cast<int64_t>(values.size()) / columns;
  std::vector<float> result(rows * stride, std::numeric_limits<float>::quiet_NaN());
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(values.begin() + row * columns, columns, result.begin() + row * stride);
  return result;
}

TEST_P(LibraryGemm, Product) {
  const ProductCase &p = GetParam();
  const GemmProblem &problem = p.problem;
  Machine machine(p.target ? p.target : targetUnderTest());
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  const bool transposed = problem.order == MatrixOrder::Transposed;
  const int64_t strideA = ops::rowStride(problem.strides.a, k);
  const int64_t strideB = ops::rowStride(problem.strides.b, transposed ? k : n);
  const int64_t strideC = ops::rowStride(problem.strides.c, n);
  const std::vector<float> a = ops::randomValues(problem.dtype, m * k, 11), b = ops::randomValues(problem.dtype, k * n, 12);
  std::vector<float> plainB = b; // [K, N]
  if (transposed)
    for (int64_t row = 0; row < n; ++row)
      for (int64_t depth = 0; depth < k; ++depth)
        plainB[depth * n + row] = b[row * k + depth];
  Buffer aBuffer = machine.put(problem.dtype, padded(a, k, strideA));
  Buffer bBuffer = machine.put(problem.dtype, padded(b, transposed ? k : n, strideB));
  Buffer c = machine.unwritten(problem.dtype, m * strideC);
  std::optional<GemmPlan> plan;
  if (p.plan) {
    auto parsed = ops::parseGemmPlan(p.plan, {});
    ASSERT_OK(parsed);
    plan = *parsed;
  }
  std::vector<float> all = machine.run(ops::prepareGemm(*machine.jit, machine.rank(), problem, aBuffer, bBuffer, c, plan), c, 2);
  ASSERT_EQ(all.size(), static_cast<size_t>(m * strideC));
  std::vector<float> inside;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < strideC; ++column)
      if (column < n)
        inside.push_back(all[row * strideC + column]);
      else
        EXPECT_TRUE(std::isnan(all[row * strideC + column])) << "wrote between the rows, row " << row;
  expectWithin(inside, ops::referenceProduct(a, plainB, m, n, k),
               ops::toleranceFor(problem.dtype, problem.precision).relative, p.name);
}

constexpr const char *hopper = "sim:sm_90a";
INSTANTIATE_TEST_SUITE_P(
    All, LibraryGemm,
    testing::Values(
        ProductCase{"pointers_odd", nullptr, {.m = 75, .n = 83, .k = 51}, "pointers 32x64x32 warps 4 stages 3"},
        ProductCase{"pointers_odd_kn", nullptr, {.m = 75, .n = 83, .k = 51, .order = MatrixOrder::Plain}, "pointers 32x32x32 warps 4 stages 2"},
        ProductCase{"pointers_padded", nullptr, {.m = 64, .n = 40, .k = 48, .strides = {56, 50, 43}}, "pointers 32x32x32 warps 4 stages 3"},
        ProductCase{"pointers_fp32", nullptr, {.m = 70, .n = 34, .k = 45, .dtype = DataType::F32, .precision = ops::MultiplyPrecision::Ieee}, "pointers 32x32x32 warps 4 stages 2"},
        ProductCase{"pointers_fp16", nullptr, {.m = 1, .n = 1, .k = 1, .dtype = DataType::F16}, "pointers 16x16x16 warps 1 stages 1"},
        ProductCase{"descriptors_without_tensor_copies", nullptr, {.m = 90, .n = 72, .k = 56}, "descriptors 64x32x32 warps 4 stages 3 group 2"},
        ProductCase{"chosen", nullptr, {.m = 130, .n = 72, .k = 100}, nullptr},
        ProductCase{"hopper_odd", hopper, {.m = 300, .n = 200, .k = 136}, "descriptors 128x128x64 warps 8 stages 3 group 2"},
        ProductCase{"hopper_kn", hopper, {.m = 150, .n = 136, .k = 200, .order = MatrixOrder::Plain}, "descriptors 128x128x64 warps 8 stages 2"},
        ProductCase{"hopper_padded", hopper, {.m = 130, .n = 72, .k = 72, .strides = {80, 88, 96}}, "descriptors 64x64x64 warps 4 stages 4"},
        ProductCase{"hopper_wide", hopper, {.m = 256, .n = 264, .k = 64}, "descriptors 128x256x64 warps 8 stages 3"},
        ProductCase{"hopper_tall", hopper, {.m = 264, .n = 136, .k = 72}, "descriptors 256x128x64 warps 8 stages 3"},
        ProductCase{"hopper_fp16",
                    hopper,
                    {.m = 70, .n = 264, .k = 72, .dtype = DataType::F16},
                    "descriptors 64x256x64 warps 4 stages 4"},
        ProductCase{"hopper_tf32",
                    hopper,
                    {.m = 140, .n = 132, .k = 68, .dtype = DataType::F32},
                    "descriptors 128x128x32 warps 8 stages 5"},
        ProductCase{"hopper_tf32_kn",
                    hopper,
                    {.m = 72, .n = 132, .k = 68, .dtype = DataType::F32, .order = MatrixOrder::Plain},
                    "descriptors 64x64x32 warps 4 stages 3"},
        ProductCase{"hopper_short", hopper, {.m = 8, .n = 8, .k = 8}, "descriptors 64x64x64 warps 4 stages 3"},
        ProductCase{"hopper_pointers", hopper, {.m = 100, .n = 72, .k = 80}, "pointers 64x64x32 warps 4 stages 3"},
        ProductCase{"hopper_chosen", hopper, {.m = 200, .n = 136, .k = 88}, nullptr}),
    [](const auto &info) { return info.param.name; });

TEST(LibraryGemmPlans, AreChosenByShape) {
  // With many k steps the larger tile wins, with few the shorter end of the smaller one does.
  const GemmPlan large = ops::chooseGemmPlan({.m = 8192, .n = 8192, .k = 8192}, "cuda:sm_90a", 132);
  EXPECT_EQ(large.movement, GemmMovement::Descriptors);
  EXPECT_EQ(large.tile.blockM * large.tile.blockN, 128u * 256);
  // One wave of small tiles is over before a wave of large ones.
  const GemmPlan shallow = ops::chooseGemmPlan({.m = 8192, .n = 4096, .k = 1792}, "cuda:sm_90a", 132);
  EXPECT_EQ(shallow.tile.blockM * shallow.tile.blockN, 128u * 128);
  const GemmPlan small = ops::chooseGemmPlan({.m = 512, .n = 2048, .k = 4096}, "cuda:sm_90a", 132);
  EXPECT_LT(small.tile.blockM * small.tile.blockN, 128u * 256);
  // Rows that are not a multiple of 16 bytes apart, and GPUs without tensor copies.
  EXPECT_EQ(ops::chooseGemmPlan({.m = 512, .n = 511, .k = 512}, "cuda:sm_90a", 132).movement, GemmMovement::Pointers);
  EXPECT_EQ(ops::chooseGemmPlan({.m = 512, .n = 512, .k = 512}, "cuda:sm_80", 108).movement, GemmMovement::Pointers);
  // fp32: tensor copies round to tf32, and warpgroups read it along K.
  GemmProblem wide = {.m = 512, .n = 512, .k = 512, .dtype = DataType::F32};
  EXPECT_EQ(ops::chooseGemmPlan(wide, "cuda:sm_90a", 132).movement, GemmMovement::Descriptors);
  wide.order = MatrixOrder::Plain;
  EXPECT_EQ(ops::chooseGemmPlan(wide, "cuda:sm_90a", 132).movement, GemmMovement::Pointers);
  wide = {.m = 512, .n = 512, .k = 512, .dtype = DataType::F32, .precision = ops::MultiplyPrecision::Ieee};
  EXPECT_EQ(ops::chooseGemmPlan(wide, "cuda:sm_90a", 132).movement, GemmMovement::Pointers);
}

TEST(LibraryGemmPlans, HaveATextForm) {
  const GemmPlan plan = ops::chooseGemmPlan({.m = 8192, .n = 1376, .k = 4096}, "cuda:sm_90a", 132);
  auto read = ops::parseGemmPlan(plan.text(), {});
  ASSERT_OK(read);
  EXPECT_EQ(read->text(), plan.text());
  auto partial = ops::parseGemmPlan("64x256x64 stages 4", plan);
  ASSERT_OK(partial);
  EXPECT_EQ(partial->tile.blockN, 256u);
  EXPECT_EQ(partial->tile.numWarps, plan.tile.numWarps);
  EXPECT_THAT(statusOf(ops::parseGemmPlan("128x256", {})).message(), HasSubstr("'128x256' is not understood"));
  EXPECT_THAT(statusOf(ops::parseGemmPlan("100x64x64", {})).message(), HasSubstr("a power of two"));
  EXPECT_THAT(statusOf(ops::parseGemmPlan("64x64x64 stages", {})).message(), HasSubstr("'stages' is not understood"));
}

TEST(LibraryGemmPlans, RefuseWhatCannotBe) {
  GemmPlan descriptors;
  descriptors.movement = GemmMovement::Descriptors;
  EXPECT_THAT(ops::verifyGemm({.m = 8, .n = 9, .k = 8}, descriptors).message(), HasSubstr("multiple of 16 bytes"));
  EXPECT_THAT(ops::verifyGemm({.m = 8, .n = 8, .k = 8, .strides = {.a = 7}}, {}).message(), HasSubstr("rows of A are 7"));
  EXPECT_THAT(ops::verifyGemm({.m = 0, .n = 8, .k = 8}, {}).message(), HasSubstr("M=0"));
  EXPECT_THAT(ops::verifyGemm({.m = 8, .n = 8, .k = 8, .dtype = DataType::I16}, {}).message(), HasSubstr("fp8e5 and i8"));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Rows
//===--------------------------------------------------------------------------------------------------------------===//

struct RowCase {
  const char *name;
  ops::RowProblem problem;
  ops::RowPlan plan;
};
void PrintTo(const RowCase &p, std::ostream *stream) { *stream << p.name; }

class LibraryRows : public testing::TestWithParam<RowCase> {
protected:
  void SetUp() override { machine.emplace(targetUnderTest()); }
  enum Operator { Softmax, RmsNorm, LayerNorm };
  /// Runs the operator and compares inside and between the rows.
  void check(Operator op);
  Expected<ops::PreparedCall> prepare(Operator op, const Buffer &x, const Buffer &weight, const Buffer &bias,
                                      const Buffer &y);
  /// One row of the result.
  static std::vector<double> expectedRow(Operator op, std::span<const float> x, const std::vector<float> &weight,
                                         const std::vector<float> &bias);
  static constexpr double epsilon = 1e-5;
  std::optional<Machine> machine;
};

Expected<ops::PreparedCall> LibraryRows::prepare(Operator op, const Buffer &x, const Buffer &weight, const Buffer &bias,
                                                 const Buffer &y) {
  const auto &[name, problem, plan] = GetParam();
  if (op == Softmax)
    return ops::prepareSoftmax(*machine->jit, machine->rank(), problem, x, y, plan);
  if (op == RmsNorm)
    return ops::prepareRmsNorm(*machine->jit, machine->rank(), problem, x, weight, y, epsilon, plan);
  return ops::prepareLayerNorm(*machine->jit, machine->rank(), problem, x, weight, bias, y, epsilon, plan);
}

std::vector<double> LibraryRows::expectedRow(Operator op, std::span<const float> x, const std::vector<float> &weight,
                                             const std::vector<float> &bias) {
  double powers = 0, sum = 0, squares = 0, deviations = 0;
  for (float value : x)
    powers += std::exp(value), sum += value, squares += double(value) * value;
  const double count = static_cast<double>(x.size()), mean = sum / count;
  for (float value : x)
    deviations += (value - mean) * (value - mean);
  std::vector<double> expected;
  for (size_t i = 0; i < x.size(); ++i)
    expected.push_back(op == Softmax   ? std::exp(x[i]) / powers
                       : op == RmsNorm ? x[i] / std::sqrt(squares / count + epsilon) * weight[i]
                                       : (x[i] - mean) / std::sqrt(deviations / count + epsilon) * weight[i] + bias[i]);
  return expected;
}

void LibraryRows::check(Operator op) {
  const auto &[name, problem, plan] = GetParam();
  const int64_t strideX = problem.strideX ? problem.strideX : problem.columns;
  const int64_t strideY = problem.strideY ? problem.strideY : problem.columns;
  const std::vector<float> x = randomFloats(problem.rows * problem.columns, 21, -4, 4, problem.dtype);
  const std::vector<float> weight = randomFloats(problem.columns, 22, -2, 2, problem.dtype);
  Buffer xBuffer = machine->put(problem.dtype, padded(x, problem.columns, strideX));
  const std::vector<float> bias = randomFloats(problem.columns, 23, -1, 1, problem.dtype);
  Buffer weightBuffer = machine->put(problem.dtype, weight), biasBuffer = machine->put(problem.dtype, bias);
  Buffer y = machine->unwritten(problem.dtype, problem.rows * strideY);
  const std::vector<float> all = machine->run(prepare(op, xBuffer, weightBuffer, biasBuffer, y), y);
  ASSERT_EQ(all.size(), static_cast<size_t>(problem.rows * strideY));
  const double rounding = problem.dtype == DataType::BF16 ? 5e-3 : problem.dtype == DataType::F16 ? 1e-3 : 1e-5;
  for (int64_t row = 0; row < problem.rows; ++row) {
    const std::span<const float> own(&x[row * problem.columns], problem.columns);
    const std::vector<double> expected = expectedRow(op, own, weight, bias);
    const auto begin = all.begin() + row * strideY;
    expectWithin({begin, begin + problem.columns}, expected, rounding, fmt::format("{}, row {}", name, row));
    for (int64_t i = problem.columns; i < strideY; ++i)
      EXPECT_TRUE(std::isnan(begin[i])) << "wrote between the rows, row " << row;
  }
}

TEST_P(LibraryRows, Softmax) { check(Softmax); }
TEST_P(LibraryRows, RmsNorm) { check(RmsNorm); }
TEST_P(LibraryRows, LayerNorm) {
  if (!GetParam().plan.pairs)
    return check(LayerNorm);
  Buffer x = machine->put(GetParam().problem.dtype, {1.0f});
  EXPECT_THAT(prepare(LayerNorm, x, x, x, x).status().message(), HasSubstr("no form in pairs"));
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryRows,
    testing::Values(
        RowCase{"plain_odd", {.rows = 7, .columns = 333}, {.numWarps = 2}},
        RowCase{"plain_fp32_padded", {.rows = 5, .columns = 100, .dtype = DataType::F32, .strideX = 103, .strideY = 111}, {.numWarps = 4}},
        RowCase{"plain_persistent", {.rows = 37, .columns = 64, .dtype = DataType::F16}, {.numWarps = 1, .blocksPerMultiprocessor = 2}},
        RowCase{"plain_one_column", {.rows = 3, .columns = 1}, {.numWarps = 1}},
        RowCase{"pairs_persistent", {.rows = 37, .columns = 250}, {.pairs = true, .numWarps = 4, .blocksPerMultiprocessor = 1}},
        RowCase{"pairs_fp16_padded", {.rows = 9, .columns = 130, .dtype = DataType::F16, .strideX = 136, .strideY = 144}, {.pairs = true, .numWarps = 2}},
        RowCase{"pairs_wide", {.rows = 3, .columns = 4096}, {.pairs = true, .numWarps = 8, .blocksPerMultiprocessor = 1}}),
    [](const auto &info) { return info.param.name; });

TEST(LibraryRowPlans, RefuseWhatCannotBe) {
  Machine machine(targetUnderTest());
  Buffer x = machine.put(DataType::BF16, std::vector<float>(99));
  const ops::RowPlan pairs = {.pairs = true};
  EXPECT_THAT(statusOf(ops::prepareSoftmax(*machine.jit, machine.rank(), {.rows = 1, .columns = 99}, x, x, pairs)).message(),
              HasSubstr("even columns"));
  EXPECT_THAT(statusOf(ops::prepareSoftmax(*machine.jit, machine.rank(), {.rows = 0, .columns = 99}, x, x)).message(),
              HasSubstr("0 rows"));
  EXPECT_THAT(statusOf(ops::prepareSoftmax(*machine.jit, machine.rank(), {.rows = 1, .columns = 99, .strideX = 98}, x, x)).message(),
              HasSubstr("98 elements apart"));
}

/// A library that is installed has no kernels/ folder beside it.
TEST(LibrarySources, FilesImportOnlyWhatIsEmbedded) {
  size_t imports = 0;
  for (const std::string_view name : ops::kernelSourceNames()) {
    auto kernel = ops::libraryKernel(name, "");
    ASSERT_OK(kernel);
    ASSERT_FALSE(kernel->text.empty()) << name;
    compiler::KernelSource source = {std::string(kernel->path), std::string(kernel->text)};
    for (const runtime::ImportableSource &file : kernel->imports)
      source.imported.push_back({std::string(file.path), std::string(file.text)});
    for (const SourceText &imported : compiler::readImports(source).imported) {
      ++imports;
      EXPECT_TRUE(std::ranges::any_of(kernel->imports, [&](const auto &file) { return file.path == imported.path; }))
          << name << " imports " << imported.path << ", which ditron/ops/CMakeLists.txt does not list";
    }
    // The same text where there is no such folder: every import must still be found.
    const std::string folder = "/nowhere/kernels";
    const auto moved = [&](std::string_view path) {
      return folder + std::string(path.substr(path.rfind("/kernels/") + std::string_view("/kernels").size()));
    };
    compiler::KernelSource elsewhere = {moved(kernel->path), source.text};
    for (const runtime::ImportableSource &file : kernel->imports)
      elsewhere.imported.push_back({moved(file.path), std::string(file.text)});
    EXPECT_EQ(compiler::readImports(elsewhere).imported.size(), compiler::readImports(source).imported.size()) << name;
    auto names = compiler::kernelNames(elsewhere);
    EXPECT_OK(names);
  }
  EXPECT_GT(imports, 0u);
  EXPECT_THAT(ops::libraryKernel("gem", "gemm").status().message(),
              HasSubstr("no kernel file 'gem'; it has attention/backward, "));
}

} // namespace
} // namespace ditron::e2e
