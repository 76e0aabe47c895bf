//===- Wgmma_test.cpp ---------------------------------------------------------------------------------------*- C++ -*-===//
//
// Accumulator and operand layouts against the element formulas of the PTX ISA, for every tile size that kernels use.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/Wgmma.h"

#include <gtest/gtest.h>

using namespace ditron;
using namespace ditron::layout;

namespace {

TEST(WgmmaAccumulator, IsThatOfTheInstruction) {
  DistributedLayout c = *wgmmaAccumulator({128, 256}, 8);
  EXPECT_EQ(c.toString(), "128x256, reg = {j0 j3 j4 j5 j6 j7 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4 i5 i6]");
}

/// Every accumulator of every thread is where the instruction says.
TEST(WgmmaAccumulator, EveryElement) {
  for (int warps : {4, 8, 16})
    for (int64_t rows : {64, 128, 256})
      for (int64_t columns : {8, 16, 64, 128, 256, 512}) {
        Expected<DistributedLayout> made = wgmmaAccumulator({rows, columns}, warps);
        int groups = warps / 4, onM = static_cast<int>(std::min<int64_t>(groups, rows / 64)), onN = groups / onM;
        if (columns / onN < 8) {
          EXPECT_FALSE(made.isOk());
          continue;
        }
        const DistributedLayout &c = *made;
        ASSERT_TRUE(containsWgmma(c)) << c.toString();
        const int n = wgmmaColumns(c);
        EXPECT_EQ(n, std::min<int64_t>(256, columns / onN));
        Fragment fragment = wgmmaFragment(n);
        ASSERT_TRUE(containsFragment(c, fragment));
        std::vector<FragmentOrigin> origins = fragmentOrigins(c, fragment);
        EXPECT_EQ(static_cast<int64_t>(origins.size()) * 64 * n * groups, rows * columns);
        for (const FragmentOrigin &origin : origins) {
          std::vector<int> registers = fragmentRegisters(c, fragment, origin);
          ASSERT_EQ(static_cast<int>(registers.size()), n / 2);
          for (int warp = 0; warp < warps; ++warp)
            for (int lane = 0; lane < 32; ++lane)
              for (int element = 0; element < n / 2; ++element) {
                int group = warp / 4, r = element % 4;
                int64_t row = origin.row + 64 * (group % onM) + 16 * (warp % 4) + lane / 4 + 8 * (r >> 1);
                int64_t column =
                    origin.col + columns / onN * (group / onM) + element / 4 * 8 + 2 * (lane % 4) + (r & 1);
                ASSERT_EQ(c.apply(registers[element], lane, warp), row * columns + column);
              }
        }
      }
}

TEST(WgmmaAccumulator, Refusals) {
  EXPECT_FALSE(wgmmaAccumulator({32, 64}, 4).isOk());
  EXPECT_FALSE(wgmmaAccumulator({64, 64}, 2).isOk());
  EXPECT_FALSE(wgmmaAccumulator({64, 4}, 4).isOk());
  EXPECT_FALSE(wgmmaAccumulator({64, 64, 2}, 4).isOk());
  EXPECT_FALSE(containsWgmma(mmaLayouts(MmaKind::M16N8K16B16, {64, 64, 16}, {2, 2})->c));
}

TEST(WgmmaOperandA, RowsOfTheAccumulatorAndFragmentsOfMma) {
  DistributedLayout c = *wgmmaAccumulator({128, 64}, 8);
  for (auto [bits, k] : {std::pair<int, int64_t>(16, 64), {8, 64}, {32, 32}}) {
    DistributedLayout a = *wgmmaOperandA(c, k, bits);
    EXPECT_EQ(a.shape(), (Shape{128, k}));
    EXPECT_TRUE(containsFragment(a, mmaFragment(*mmaKindFor(bits), DotOperand::A))) << a.toString();
    for (int warp = 0; warp < 8; ++warp)
      EXPECT_EQ(a.apply(0, 0, warp) / k, c.apply(0, 0, warp) / 64);
  }
  // The second warpgroup has other columns of the same rows.
  DistributedLayout split = *wgmmaOperandA(*wgmmaAccumulator({64, 64}, 8), 16, 16);
  EXPECT_EQ(split.bases(MachineDim::Warp).back(), zeroBasis);
  EXPECT_FALSE(wgmmaOperandA(c, 8, 16).isOk());
}

/// The address of element (mn, k) of an instruction whose descriptor starts at `start`: PTX ISA, canonical layouts, with the
/// swizzle as XOR on address bits.
int64_t elementAddress(const WgmmaOperand &view, int elementBytes, int64_t start, int64_t mn, int64_t k) {
  int64_t address = start;
  if (view.isMnMajor)
    address += mn / view.panelElements * view.leadingBytes + mn % view.panelElements * elementBytes +
               k / 8 * view.strideBytes + k % 8 * view.swizzleBytes;
  else
    address += mn / 8 * view.strideBytes + mn % 8 * view.swizzleBytes + k * elementBytes;
  int64_t mask = view.swizzleBytes / 16 - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

TEST(WgmmaOperand, EveryElementOfEveryTile) {
  int seen = 0;
  for (DotOperand operand : {DotOperand::A, DotOperand::B})
    for (int bits : {8, 16, 32})
      for (bool isMnMajor : {false, true})
        for (int64_t mnSize : {16, 64, 128, 256})
          for (int64_t kSize : {16, 32, 64, 128})
            for (int swizzle : {32, 64, 128}) {
              if (isMnMajor && bits != 16)
                continue;
              const bool isA = operand == DotOperand::A;
              const Shape shape = isA ? Shape{mnSize, kSize} : Shape{kSize, mnSize};
              const int kAxis = isA ? 1 : 0, contiguous = isMnMajor ? 1 - kAxis : kAxis;
              const int order[] = {contiguous, 1 - contiguous};
              if (largestSwizzle(shape, order, bits) < swizzle)
                continue;
              SharedLayout shared = swizzledShared(shape, order, bits, swizzle);
              std::optional<WgmmaOperand> view = wgmmaOperand(shared, operand);
              if (kSize * bits < 256) {
                EXPECT_FALSE(view.has_value());
                continue;
              }
              ASSERT_TRUE(view.has_value()) << shared.toString();
              ++seen;
              EXPECT_EQ(view->isMnMajor, isMnMajor);
              EXPECT_EQ(view->swizzleBytes, swizzle);
              EXPECT_EQ(view->stepElements * bits, 256);
              const int64_t columnsAtOnce = isA ? std::min<int64_t>(64, mnSize) : mnSize;
              for (int64_t mn0 = 0; mn0 < mnSize; mn0 += columnsAtOnce)
                for (int64_t k0 = 0; k0 < kSize; k0 += view->stepElements) {
                  const int64_t start = view->offsetBytes(mn0, k0);
                  EXPECT_EQ(start % 16, 0);
                  for (int64_t mn = 0; mn < columnsAtOnce; ++mn)
                    for (int64_t k = 0; k < view->stepElements; ++k) {
                      const int64_t packed = isA ? (mn0 + mn) * kSize + k0 + k : (k0 + k) * mnSize + mn0 + mn;
                      ASSERT_EQ(elementAddress(*view, bits / 8, start, mn, k), shared.offsetOf(packed) * bits / 8)
                          << shared.toString() << " mn " << mn0 + mn << " k " << k0 + k;
                    }
                }
            }
  EXPECT_GT(seen, 60);
}

/// Steps inside a panel are equally far apart, which lets one call do several.
TEST(WgmmaOperand, Steps) {
  for (bool isMnMajor : {false, true}) {
    const int order[] = {isMnMajor ? 0 : 1, isMnMajor ? 1 : 0};
    WgmmaOperand view = *wgmmaOperand(swizzledShared({128, 128}, order, 16, 128), DotOperand::A);
    EXPECT_EQ(view.stepsPerPanel, isMnMajor ? 8 : 4);
    for (int64_t step = 0; step < view.stepsPerPanel; ++step)
      EXPECT_EQ(view.offsetBytes(64, step * 16), view.offsetBytes(64, 0) + step * view.stepBytes);
  }
}

TEST(WgmmaOperand, TransposedViewIsTheOtherOperand) {
  const int rowMajor[] = {1, 0}, swap[] = {1, 0};
  SharedLayout nByK = swizzledShared({256, 64}, rowMajor, 16, 128);
  std::optional<WgmmaOperand> b = wgmmaOperand(nByK.permute(swap), DotOperand::B);
  ASSERT_TRUE(b.has_value());
  EXPECT_FALSE(b->isMnMajor);
  EXPECT_EQ(b->strideBytes, 1024);
}

TEST(WgmmaOperand, Refusals) {
  const int rowMajor[] = {1, 0}, columnMajor[] = {0, 1};
  EXPECT_FALSE(wgmmaOperand(plainShared({64, 64}, rowMajor, 16), DotOperand::A));
  EXPECT_FALSE(wgmmaOperand(swizzledShared({64, 64}, columnMajor, 8, 64), DotOperand::A)); // 8 bits: K-major only
  EXPECT_FALSE(wgmmaOperand(swizzledShared({64, 64}, rowMajor, 64, 128), DotOperand::A));
}

} // namespace
