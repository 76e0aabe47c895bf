//===- matrix_load_test.cpp - Matrix loads against the addresses of plain loads ----------------------------------------===//
//
// Runs the plan for every lane of a warp with the definition of the instruction and compares the place that each register
// comes from with the one that the plain access plan reads.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/MatrixLoad.h"

#include "ditron/layout/Builders.h"

#include <gtest/gtest.h>
#include <map>

namespace ditron::target {
namespace {

using namespace ditron::layout;

/// The element offset that each register of a lane comes from, by the plain plan.
std::map<int, int64_t> plainSources(const OffsetPlan &plan, int lane, int warp) {
  std::map<int, int64_t> sources;
  for (const SharedAccess &access : plan.accesses)
    for (size_t i = 0; i < access.regs.size(); ++i)
      sources[access.regs[i]] = (access.offset ^ plan.threadOffset(lane, warp)) + static_cast<int64_t>(i);
  return sources;
}

/// The same by the matrix loads.
std::map<int, int64_t> matrixSources(const MatrixLoadPlan &plan, int lane, int warp) {
  std::map<int, int64_t> sources;
  const int word = plan.elemsPerWord;
  for (const SharedAccess &access : plan.rows.accesses)
    for (int matrix = 0; matrix < plan.count; ++matrix)
      for (int element = 0; element < word; ++element) {
        int row = plan.transpose ? 2 * (lane % 4) + element : lane / 4;
        int column = plan.transpose ? lane / 4 : (lane % 4) * word + element;
        int64_t rowStart = access.offset ^ plan.rows.threadOffset(8 * matrix + row, warp);
        EXPECT_EQ(rowStart % (4 * word), 0) << "a row must begin at a multiple of 16 bytes";
        sources[access.regs[matrix * word + element]] = rowStart + column;
      }
  return sources;
}

struct Case {
  const char *name;
  MmaKind kind;
  DotOperand operand;
  int bits;
  bool kContiguous; ///< K is the dimension that is contiguous in shared memory.
  bool expected;
};

class MatrixLoadTest : public testing::TestWithParam<Case> {};

TEST_P(MatrixLoadTest, ReadsWhatPlainLoadsRead) {
  const Case &test = GetParam();
  DotShape shape{64, 64, 64};
  Expected<DistributedLayout> registers = mmaLayout(test.kind, test.operand, shape, WarpGrid{2, 2});
  ASSERT_TRUE(registers.isOk()) << registers.status().message();
  int kAxis = test.operand == DotOperand::A ? 1 : 0;
  int contiguous = test.kContiguous ? kAxis : 1 - kAxis;
  std::vector<int> order = {contiguous, 1 - contiguous};
  std::vector<int64_t> sizes = {64, 64};
  SharedLayout shared = swizzledShared(sizes, order, test.bits, largestSwizzle(sizes, order, test.bits));
  OffsetPlan plain = makeOffsetPlan(*registers, shared);
  std::optional<MatrixLoadPlan> matrices = makeMatrixLoadPlan(*registers, plain, test.bits / 8);
  ASSERT_EQ(matrices.has_value(), test.expected) << shared.toString();
  if (!matrices)
    return;
  EXPECT_EQ(matrices->transpose, !test.kContiguous);
  EXPECT_EQ(matrices->count, 4);
  for (int warp = 0; warp < 4; ++warp)
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(matrixSources(*matrices, lane, warp), plainSources(plain, lane, warp));
  // The words of one instruction feed consecutive registers of one fragment.
  const Fragment &fragment = mmaFragment(test.kind, test.operand);
  std::vector<int> first = fragmentRegisters(*registers, fragment, {0, 0});
  std::vector<int> loaded = matrices->rows.accesses.front().regs;
  loaded.resize(std::min(loaded.size(), first.size()));
  first.resize(loaded.size());
  EXPECT_EQ(loaded, first);
}

INSTANTIATE_TEST_SUITE_P(Operands, MatrixLoadTest,
                         testing::Values(Case{"ARowMajor", MmaKind::M16N8K16B16, DotOperand::A, 16, true, true},
                                         Case{"AColumnMajor", MmaKind::M16N8K16B16, DotOperand::A, 16, false, true},
                                         Case{"BRowMajor", MmaKind::M16N8K16B16, DotOperand::B, 16, false, true},
                                         Case{"BColumnMajor", MmaKind::M16N8K16B16, DotOperand::B, 16, true, true},
                                         Case{"Tf32A", MmaKind::M16N8K8TF32, DotOperand::A, 32, true, true},
                                         Case{"Tf32BTransposed", MmaKind::M16N8K8TF32, DotOperand::B, 32, false, false},
                                         Case{"Int8A", MmaKind::M16N8K32B8, DotOperand::A, 8, true, true},
                                         Case{"Int8B", MmaKind::M16N8K32B8, DotOperand::B, 8, true, true},
                                         Case{"Int8BTransposed", MmaKind::M16N8K32B8, DotOperand::B, 8, false, false}),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(MatrixLoad, NotForOtherDistributions) {
  std::vector<int> order = {1, 0};
  DistributedLayout registers = layout::tile({64, 64}, order, 8, 32, 4);
  OffsetPlan plain = makeOffsetPlan(registers, chooseSwizzle(registers, registers, 16));
  EXPECT_FALSE(makeMatrixLoadPlan(registers, plain, 2).has_value());
}

} // namespace
} // namespace ditron::target
