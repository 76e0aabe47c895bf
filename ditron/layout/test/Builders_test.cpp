//===- Builders_test.cpp ------------------------------------------------------------------------------------*- C++ -*-===//
//
// The tile builder against a slow definition, the fragment tables against the closed forms of the PTX manual, and the layouts
// of a dot by running the dot on them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/Builders.h"
#include "RandomLayouts.h"

#include <gtest/gtest.h>

#include <set>

using namespace ditron;
using namespace ditron::layout;

namespace {

TEST(Tile, Examples) {
  int rowMajor[] = {1, 0}, columnMajor[] = {0, 1};
  EXPECT_EQ(tile({64, 32}, rowMajor, 4, 32, 4).toString(),
            "64x32, reg = {j0 j1 i4 i5}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]");
  EXPECT_EQ(tile({64, 32}, columnMajor, 4, 32, 4).toString(),
            "64x32, reg = {j3 j4 i0 i1}, lane = [i2 i3 i4 i5 j0], warp = [j1 j2]");
  EXPECT_EQ(tile({16}, rowMajorOrder(1), 4, 32, 4).toString(), "16, reg = {i0 i1}, lane = [i2 i3 * * *], warp = [* *]");
  EXPECT_EQ(tile({2, 2}, rowMajor, 8, 4, 1).toString(), "2x2, reg = {j0 i0}, lane = [* *], warp = []");
}

TEST(Tile, AgreesWithCountingAlongTheOrder) {
  RandomLayouts random(1);
  for (int i = 0; i < 200; ++i) {
    Shape shape = random.shape();
    std::vector<int> order = rowMajorOrder(static_cast<int>(shape.size()));
    std::shuffle(order.begin(), order.end(), random.random);
    int vec = 1 << random.below(3), lanes = 1 << random.below(6), warps = 1 << random.below(3);
    DistributedLayout layout = tile(shape, order, vec, lanes, warps);
    ASSERT_TRUE(layout.verify().isOk()) << layout.toString();
    ASSERT_EQ(layout.numLanes(), lanes);
    ASSERT_EQ(layout.numWarps(), warps);
    // Walk the elements fastest dimension first: vec to a thread, then to the next lane, then to the next warp.
    for (int64_t linear = 0; linear < layout.numElements(); ++linear) {
      std::vector<int64_t> coordinates(shape.size());
      int64_t rest = linear;
      for (int axis : order) {
        coordinates[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      int64_t packed = layout.pack(coordinates);
      EXPECT_EQ(layout.idFor(MachineDim::Lane, packed), linear / vec % lanes);
      EXPECT_EQ(layout.idFor(MachineDim::Warp, packed), linear / vec / lanes % warps);
    }
  }
}

/// The element that a fragment's register `i` of lane `lane` holds.
FragmentBasis elementOf(const Fragment &fragment, int i, int lane) {
  FragmentBasis at{0, 0};
  auto add = [&](const std::vector<FragmentBasis> &bases, int id) {
    for (size_t p = 0; p < bases.size(); ++p)
      if (id >> p & 1)
        at = {at.row ^ bases[p].row, at.col ^ bases[p].col};
  };
  add(fragment.regs, i);
  add(fragment.lanes, lane);
  return at;
}

TEST(Fragments, ClosedFormsOfThePtxManual) {
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, inGroup = lane & 3;
    for (MmaKind kind : {MmaKind::M16N8K16B16, MmaKind::M16N8K8TF32, MmaKind::M16N8K32B8}) {
      const Fragment &c = mmaFragment(kind, DotOperand::C);
      ASSERT_EQ(c.numRegs(), 4);
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(elementOf(c, i, lane), (FragmentBasis{i < 2 ? group : group + 8, inGroup * 2 + (i & 1)}));
    }
    const Fragment &a16 = mmaFragment(MmaKind::M16N8K16B16, DotOperand::A);
    ASSERT_EQ(a16.numRegs(), 8);
    for (int i = 0; i < 8; ++i) {
      bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
      EXPECT_EQ(elementOf(a16, i, lane),
                (FragmentBasis{upper ? group : group + 8, inGroup * 2 + (i & 1) + (i < 4 ? 0 : 8)}));
    }
    const Fragment &b16 = mmaFragment(MmaKind::M16N8K16B16, DotOperand::B);
    ASSERT_EQ(b16.numRegs(), 4);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(elementOf(b16, i, lane), (FragmentBasis{inGroup * 2 + (i & 1) + (i < 2 ? 0 : 8), group}));
    const Fragment &aTf32 = mmaFragment(MmaKind::M16N8K8TF32, DotOperand::A);
    ASSERT_EQ(aTf32.numRegs(), 4);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(elementOf(aTf32, i, lane),
                (FragmentBasis{i == 0 || i == 2 ? group : group + 8, i < 2 ? inGroup : inGroup + 4}));
    const Fragment &bTf32 = mmaFragment(MmaKind::M16N8K8TF32, DotOperand::B);
    ASSERT_EQ(bTf32.numRegs(), 2);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(elementOf(bTf32, i, lane), (FragmentBasis{i == 0 ? inGroup : inGroup + 4, group}));
    const Fragment &a8 = mmaFragment(MmaKind::M16N8K32B8, DotOperand::A);
    ASSERT_EQ(a8.numRegs(), 16);
    for (int i = 0; i < 16; ++i) {
      bool upper = i < 4 || (i >= 8 && i < 12);
      EXPECT_EQ(elementOf(a8, i, lane),
                (FragmentBasis{upper ? group : group + 8, inGroup * 4 + (i & 3) + (i < 8 ? 0 : 16)}));
    }
    const Fragment &b8 = mmaFragment(MmaKind::M16N8K32B8, DotOperand::B);
    ASSERT_EQ(b8.numRegs(), 8);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(elementOf(b8, i, lane), (FragmentBasis{inGroup * 4 + (i & 3) + (i < 4 ? 0 : 16), group}));
  }
}

TEST(Mma, LayoutsInText) {
  Expected<DotLayouts> layouts = mmaLayouts(MmaKind::M16N8K16B16, {64, 32, 32}, {2, 2});
  ASSERT_TRUE(layouts.isOk());
  EXPECT_EQ(layouts->a.toString(), "64x32, reg = {j0 j3 j4 i3 i5}, lane = [j1 j2 i0 i1 i2], warp = [i4 *]");
  EXPECT_EQ(layouts->b.toString(), "32x32, reg = {j4 i0 i3 i4}, lane = [i1 i2 j0 j1 j2], warp = [* j3]");
  EXPECT_EQ(layouts->c.toString(), "64x32, reg = {j0 j4 i3 i5}, lane = [j1 j2 i0 i1 i2], warp = [i4 j3]");
}

TEST(Mma, BatchesBehindEachOther) {
  DotLayouts matrix = *mmaLayouts(MmaKind::M16N8K16B16, {32, 16, 16}, {2, 1}), layouts = withBatch(matrix, 4, 2);
  EXPECT_EQ(matrix.c.toString(), "32x16, reg = {j0 j3 i3}, lane = [j1 j2 i0 i1 i2], warp = [i4]");
  EXPECT_EQ(layouts.c.toString(), "4x32x16, reg = {k0 k3 j3 i1}, lane = [k1 k2 j0 j1 j2], warp = [i0 j4]");
  EXPECT_EQ(layouts.b.toString(), "4x16x16, reg = {k3 j0 j3 i1}, lane = [j1 j2 k0 k1 k2], warp = [i0 *]");
  EXPECT_TRUE(layoutsFitMma(MmaKind::M16N8K16B16, {layouts.a.dropAxis(0), layouts.b.dropAxis(0), layouts.c.dropAxis(0)}));
}

TEST(Mma, RefusesTilesBelowTheInstruction) {
  EXPECT_FALSE(mmaLayouts(MmaKind::M16N8K16B16, {8, 32, 32}, {1, 1}).isOk());
  EXPECT_FALSE(mmaLayouts(MmaKind::M16N8K16B16, {16, 4, 32}, {1, 1}).isOk());
  Expected<DotLayouts> shallow = mmaLayouts(MmaKind::M16N8K32B8, {16, 8, 16}, {1, 1});
  ASSERT_FALSE(shallow.isOk());
  EXPECT_EQ(shallow.status().message(), "a dot of 16x8x16 is smaller than the instruction m16n8k32");
  EXPECT_FALSE(mmaLayouts(MmaKind::M16N8K16B16, {48, 8, 16}, {1, 1}).isOk());
}

TEST(Mma, WarpGrid) {
  auto grid = [](int64_t m, int64_t n, int warps) {
    WarpGrid g = chooseWarpGrid(MmaKind::M16N8K16B16, {m, n, 32}, warps);
    EXPECT_EQ(g.m * g.n, warps);
    return g.m;
  };
  EXPECT_EQ(grid(128, 128, 4), 2);
  EXPECT_EQ(grid(64, 16, 4), 4);
  EXPECT_EQ(grid(16, 64, 4), 1);
  EXPECT_EQ(grid(16, 8, 4), 4); // nothing fits: copies along M
}

/// Multiplies as the warps would: fragment by fragment, each thread with its own registers only.
void expectDotWorks(MmaKind kind, const DotShape &shape, WarpGrid warps) {
  Expected<DotLayouts> made = mmaLayouts(kind, shape, warps);
  ASSERT_TRUE(made.isOk());
  const DotLayouts &layouts = *made;
  ASSERT_TRUE(layoutsFitMma(kind, layouts));
  const Fragment &fragmentA = mmaFragment(kind, DotOperand::A), &fragmentB = mmaFragment(kind, DotOperand::B),
                 &fragmentC = mmaFragment(kind, DotOperand::C);
  MmaShape instruction = mmaShape(kind);
  auto a = [&](int64_t m, int64_t k) { return (m * 7 + k * 3) % 11 - 5; };
  auto b = [&](int64_t k, int64_t n) { return (k * 5 + n * 13) % 17 - 8; };
  std::set<int64_t> covered;
  for (int warp = 0; warp < layouts.c.numWarps(); ++warp)
    for (FragmentOrigin at : fragmentOrigins(layouts.c, fragmentC)) {
      std::vector<std::vector<int64_t>> sum(instruction.m, std::vector<int64_t>(instruction.n));
      for (FragmentOrigin k : fragmentOrigins(layouts.a, fragmentA)) {
        if (k.row != at.row)
          continue;
        std::vector<int> regsA = fragmentRegisters(layouts.a, fragmentA, k);
        std::vector<int> regsB = fragmentRegisters(layouts.b, fragmentB, {k.col, at.col});
        // The instruction sees a matrix whose element (row, col) sits in the register and lane of the fragment.
        std::vector<std::vector<int64_t>> matrixA(instruction.m, std::vector<int64_t>(instruction.k));
        std::vector<std::vector<int64_t>> matrixB(instruction.k, std::vector<int64_t>(instruction.n));
        for (int lane = 0; lane < 32; ++lane) {
          for (int i = 0; i < fragmentA.numRegs(); ++i) {
            std::vector<int64_t> c = layouts.a.coordinates(layouts.a.apply(regsA[i], lane, warp));
            matrixA[elementOf(fragmentA, i, lane).row][elementOf(fragmentA, i, lane).col] = a(c[0], c[1]);
          }
          for (int i = 0; i < fragmentB.numRegs(); ++i) {
            std::vector<int64_t> c = layouts.b.coordinates(layouts.b.apply(regsB[i], lane, warp));
            matrixB[elementOf(fragmentB, i, lane).row][elementOf(fragmentB, i, lane).col] = b(c[0], c[1]);
          }
        }
        for (int m = 0; m < instruction.m; ++m)
          for (int n = 0; n < instruction.n; ++n)
            for (int i = 0; i < instruction.k; ++i)
              sum[m][n] += matrixA[m][i] * matrixB[i][n];
      }
      std::vector<int> regsC = fragmentRegisters(layouts.c, fragmentC, at);
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < fragmentC.numRegs(); ++i) {
          int64_t packed = layouts.c.apply(regsC[i], lane, warp);
          std::vector<int64_t> c = layouts.c.coordinates(packed);
          int64_t expected = 0;
          for (int64_t k = 0; k < shape.k; ++k)
            expected += a(c[0], k) * b(k, c[1]);
          FragmentBasis element = elementOf(fragmentC, i, lane);
          ASSERT_EQ(sum[element.row][element.col], expected);
          covered.insert(packed);
        }
    }
  EXPECT_EQ(static_cast<int64_t>(covered.size()), shape.m * shape.n);
}

TEST(Mma, DotByFragments) {
  expectDotWorks(MmaKind::M16N8K16B16, {64, 32, 32}, {2, 2});
  expectDotWorks(MmaKind::M16N8K16B16, {16, 8, 16}, {2, 2}); // all warps hold copies
  expectDotWorks(MmaKind::M16N8K16B16, {32, 64, 16}, {4, 1}); // one warp bit holds copies
  expectDotWorks(MmaKind::M16N8K8TF32, {32, 32, 32}, {1, 4});
  expectDotWorks(MmaKind::M16N8K32B8, {64, 16, 64}, {4, 1});
  expectDotWorks(MmaKind::M8N8K4F64, {32, 16, 16}, {2, 2});
  expectDotWorks(MmaKind::M8N8K4F64, {8, 8, 4}, {1, 1});
}

TEST(Mma, ContainsFragment) {
  const Fragment &c = mmaFragment(MmaKind::M16N8K16B16, DotOperand::C);
  EXPECT_TRUE(containsFragment(*mmaLayout(MmaKind::M16N8K16B16, DotOperand::C, {64, 64, 16}, {2, 2}), c));
  EXPECT_FALSE(containsFragment(tile({64, 64}, rowMajorOrder(2), 2, 32, 4), c));
  EXPECT_FALSE(containsFragment(tile({64}, rowMajorOrder(1), 2, 32, 4), c));
  DotLayouts fma = fmaLayouts({64, 64, 16}, 32, 4);
  EXPECT_FALSE(layoutsFitMma(MmaKind::M16N8K16B16, fma));
  // A and B with different warps on K do not fit, although each holds its fragment.
  DotLayouts mixed = *mmaLayouts(MmaKind::M16N8K16B16, {64, 64, 32}, {2, 2});
  mixed.a = *mmaLayout(MmaKind::M16N8K16B16, DotOperand::A, {64, 64, 32}, {4, 1});
  EXPECT_FALSE(layoutsFitMma(MmaKind::M16N8K16B16, mixed));
}

TEST(Mma, FirstDotsResultIsTheSecondsOperand) {
  // 16-bit operands, no warp on N: attention needs no conversion between its dots.
  DistributedLayout c = *mmaLayout(MmaKind::M16N8K16B16, DotOperand::C, {64, 64, 32}, {4, 1});
  EXPECT_EQ(c, *mmaLayout(MmaKind::M16N8K16B16, DotOperand::A, {64, 128, 64}, {4, 1}));
}

TEST(Fma, ThreadsHoldWhatTheyMultiply) {
  for (DotShape shape : {DotShape{16, 32, 8}, DotShape{2, 2, 16}, DotShape{64, 1, 4}, DotShape{1, 64, 1}}) {
    DotLayouts layouts = fmaLayouts(shape, 32, 4);
    for (const DistributedLayout *layout : {&layouts.a, &layouts.b, &layouts.c})
      ASSERT_TRUE(layout->verify().isOk()) << layout->toString();
    for (int warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (int reg = 0; reg < layouts.c.numRegs(); ++reg) {
          std::vector<int64_t> c = layouts.c.coordinates(layouts.c.apply(reg, lane, warp));
          for (int64_t k = 0; k < shape.k; ++k) {
            int64_t inA = c[0] * shape.k + k, inB = k * shape.n + c[1];
            ASSERT_EQ(layouts.a.apply(layouts.a.registerFor(inA), lane, warp), inA);
            ASSERT_EQ(layouts.b.apply(layouts.b.registerFor(inB), lane, warp), inB);
          }
        }
  }
}

TEST(Fma, PartsOfThreadsAreSquare) {
  EXPECT_EQ(fmaLayouts({64, 64, 16}, 32, 4).c.toString(),
            "64x64, reg = {j0 j1 i3 i4 i5}, lane = [j2 i0 j3 i1 j4], warp = [i2 j5]");
}

TEST(Fma, BatchedOperands) {
  DistributedLayout c = tile({2, 8, 16}, rowMajorOrder(3), 4, 32, 2);
  EXPECT_EQ(c.toString(), "2x8x16, reg = {k0 k1}, lane = [k2 k3 j0 j1 j2], warp = [i0]");
  EXPECT_EQ(fmaOperandLayout(c, DotOperand::A, 4).toString(), "2x8x4, reg = {k0 k1}, lane = [* * j0 j1 j2], warp = [i0]");
  EXPECT_EQ(fmaOperandLayout(c, DotOperand::B, 4).toString(),
            "2x4x16, reg = {k0 k1 j0 j1}, lane = [k2 k3 * * *], warp = [i0]");
}

} // namespace
