//===- SharedLayout_test.cpp --------------------------------------------------------------------------------*- C++ -*-===//
//
// F2 matrices by their laws, shared layouts by address formulas, and the address plan against the layouts it is made from.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/SharedLayout.h"
#include "RandomLayouts.h"
#include "ditron/layout/Builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace ditron;
using namespace ditron::layout;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

F2Matrix randomMatrix(RandomLayouts &random, int columns, int rows) {
  F2Matrix matrix(columns);
  for (uint32_t &column : matrix)
    column = random.random() & ((1u << rows) - 1);
  return matrix;
}

TEST(F2, InverseAndComposition) {
  RandomLayouts random(1);
  int invertible = 0;
  for (int i = 0; i < 500; ++i) {
    int bits = 1 + random.below(10);
    F2Matrix matrix = randomMatrix(random, bits, bits);
    std::optional<F2Matrix> inverse = f2::invert(matrix);
    ASSERT_EQ(inverse.has_value(), f2::rank(matrix) == bits);
    if (!inverse)
      continue;
    ++invertible;
    EXPECT_EQ(f2::compose(matrix, *inverse), f2::identity(bits));
    EXPECT_EQ(f2::compose(*inverse, matrix), f2::identity(bits));
  }
  EXPECT_GT(invertible, 100);
}

TEST(F2, SolveAndComplement) {
  RandomLayouts random(2);
  for (int i = 0; i < 500; ++i) {
    int bits = 1 + random.below(10), columns = 1 + random.below(12);
    F2Matrix matrix = randomMatrix(random, columns, bits);
    uint32_t target = random.random() & ((1u << bits) - 1);
    F2Matrix withTarget = matrix;
    withTarget.push_back(target);
    std::optional<uint32_t> x = f2::solve(matrix, target);
    ASSERT_EQ(x.has_value(), f2::rank(matrix) == f2::rank(withTarget));
    if (x)
      EXPECT_EQ(f2::apply(matrix, *x), target);
    F2Matrix complement = f2::independentComplement(matrix, bits);
    EXPECT_EQ(static_cast<int>(complement.size()), bits - f2::rank(matrix));
    matrix.insert(matrix.end(), complement.begin(), complement.end());
    EXPECT_EQ(f2::rank(matrix), bits);
  }
}

TEST(F2, DirectSum) {
  EXPECT_THAT(f2::directSum({2, 1}, 2, {1, 3}), ElementsAre(2, 1, 4, 12));
  EXPECT_FALSE(f2::invert({4, 1}).has_value()); // a column outside of the square
}

TEST(SharedLayout, SwizzleFormulas) {
  int rowMajor[] = {1, 0};
  for (int bits : {8, 16, 32})
    for (int swizzle : {0, 32, 64, 128}) {
      Shape shape = {64, 128};
      SharedLayout layout = swizzledShared(shape, rowMajor, bits, swizzle);
      ASSERT_TRUE(layout.verify().isOk());
      int64_t elementBytes = bits / 8, panelBytes = swizzle ? swizzle : shape[1] * elementBytes;
      for (int64_t row = 0; row < shape[0]; ++row)
        for (int64_t col = 0; col < shape[1]; ++col) {
          // The usual statement in bytes: within panels, XOR address bits 4.. with bits 7.. .
          int64_t byte = col * elementBytes, panel = byte / panelBytes;
          int64_t address = panel * shape[0] * panelBytes + row * panelBytes + byte % panelBytes;
          int64_t mask = swizzle ? swizzle / 16 - 1 : 0;
          address ^= (address >> 7 & mask) << 4;
          ASSERT_EQ(layout.offsetOf(row * shape[1] + col) * elementBytes, address);
          ASSERT_EQ(layout.tensorAt(address / elementBytes), row * shape[1] + col);
        }
    }
}

TEST(SharedLayout, TextRoundTrip) {
  int rowMajor[] = {1, 0}, columnMajor[] = {0, 1};
  SharedLayout layout = swizzledShared({8, 64}, rowMajor, 16, 128);
  EXPECT_EQ(layout.toString(), "8x64, bits = 16, offset = [j0 j1 j2 j3 j4 j5 i0^j3 i1^j4 i2^j5]");
  EXPECT_EQ(plainShared({4, 2}, columnMajor, 32).toString(), "4x2, bits = 32, offset = [i0 i1 j0]");
  for (const SharedLayout &each : {layout, plainShared({4, 2}, columnMajor, 8), SharedLayout(),
                                   swizzledShared({32, 256}, rowMajor, 8, 64)}) {
    Expected<SharedLayout> parsed = SharedLayout::parse(each.toString());
    ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
    EXPECT_EQ(*parsed, each);
    EXPECT_EQ(parsed->hash(), each.hash());
  }
}

TEST(SharedLayout, ParserErrors) {
  auto error = [](std::string_view text) {
    Expected<SharedLayout> layout = SharedLayout::parse(text);
    EXPECT_FALSE(layout.isOk()) << text;
    return layout.status().message();
  };
  EXPECT_THAT(error("4, offset = []"), HasSubstr("expected ', bits ='"));
  EXPECT_THAT(error("4, bits = 12, offset = [i0 i1]"), HasSubstr("not 12"));
  EXPECT_THAT(error("4, bits = , offset = [i0 i1]"), HasSubstr("number of bits"));
  EXPECT_THAT(error("4, bits = 16, offset = [i0]"), HasSubstr("2 bits, but the shared layout has 1"));
  EXPECT_THAT(error("4, bits = 16, offset = [i0 i0]"), HasSubstr("not independent"));
  EXPECT_THAT(error("4, bits = 16, offset = [i0 i0^]"), HasSubstr("expected a bit"));
  EXPECT_THAT(error("4, bits = 16, offset = [i0 i1"), HasSubstr("not closed"));
  EXPECT_THAT(error("4, bits = 16, offset = [i0 i1] ]"), HasSubstr("expected the end"));
}

TEST(SharedLayout, TransposedViewAndReshape) {
  int rowMajor[] = {1, 0}, transpose[] = {1, 0};
  SharedLayout layout = swizzledShared({16, 64}, rowMajor, 16, 128);
  SharedLayout view = layout.permute(transpose);
  ASSERT_TRUE(view.verify().isOk());
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t col = 0; col < 64; ++col)
      ASSERT_EQ(view.offsetOf(col * 16 + row), layout.offsetOf(row * 64 + col));
  EXPECT_EQ(layout.reshape({1024}).offsetOf(77), layout.offsetOf(77));
}

TEST(OffsetPlan, ReachesEveryElementOnce) {
  RandomLayouts random(3);
  int wide = 0;
  for (int i = 0; i < 300; ++i) {
    Shape shape = {16, 32};
    DistributedLayout registers = random.layout(shape, 5, 2);
    int bits = 8 << random.below(4);
    int order[] = {1, 0};
    if (random.below(2))
      std::swap(order[0], order[1]);
    int swizzle = std::min(largestSwizzle(shape, order, bits), 32 << random.below(3));
    SharedLayout shared = swizzledShared(shape, order, bits, swizzle < 32 ? 0 : swizzle);
    OffsetPlan plan = makeOffsetPlan(registers, shared);
    wide += plan.vecElems > 1;
    ASSERT_LE(plan.vecElems * bits, 128);
    for (int warp = 0; warp < registers.numWarps(); ++warp)
      for (int lane = 0; lane < registers.numLanes(); ++lane) {
        std::set<int> seen;
        ASSERT_EQ(plan.threadOffset(lane, warp) & ~plan.threadMask(), 0);
        for (const SharedAccess &access : plan.accesses) {
          int64_t offset = access.offset ^ plan.threadOffset(lane, warp);
          ASSERT_EQ(offset % plan.vecElems, 0) << "accesses are aligned";
          for (int element = 0; element < plan.vecElems; ++element) {
            int reg = access.regs[element];
            ASSERT_EQ(shared.tensorAt(offset + element), registers.apply(reg, lane, warp));
            seen.insert(reg);
          }
        }
        ASSERT_EQ(static_cast<int>(seen.size()), registers.numRegs());
      }
  }
  EXPECT_GT(wide, 30);
}

TEST(OffsetPlan, WidestVector) {
  int rowMajor[] = {1, 0};
  SharedLayout shared = swizzledShared({64, 64}, rowMajor, 16, 128);
  EXPECT_EQ(makeOffsetPlan(tile({64, 64}, rowMajor, 8, 32, 4), shared).vecElems, 8);
  EXPECT_EQ(makeOffsetPlan(tile({64, 64}, rowMajor, 8, 32, 4), shared, 64).vecElems, 4);
  EXPECT_EQ(makeOffsetPlan(tile({64, 64}, rowMajor, 16, 32, 4), shared).vecElems, 8); // the swizzle starts at 16 bytes
  EXPECT_EQ(makeOffsetPlan(*mmaLayout(MmaKind::M16N8K16B16, DotOperand::A, {64, 8, 64}, {4, 1}), shared).vecElems, 2);
  int columnMajor[] = {0, 1};
  EXPECT_EQ(makeOffsetPlan(tile({64, 64}, columnMajor, 8, 32, 4), shared).vecElems, 1);
}

} // namespace
