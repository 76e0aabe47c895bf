//===- LinearLayout_test.cpp --------------------------------------------------------------------------------*- C++ -*-===//
//
// The register layout: the worked example, the verifier, the text form, and the transformations against their definitions
// on coordinates.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "RandomLayouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace ditron;
using namespace ditron::layout;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

DistributedLayout parsed(std::string_view text) {
  Expected<DistributedLayout> layout = DistributedLayout::parse(text);
  EXPECT_TRUE(layout.isOk()) << layout.status().message();
  return layout.isOk() ? *layout : DistributedLayout();
}

std::string parseError(std::string_view text) {
  Expected<DistributedLayout> layout = DistributedLayout::parse(text);
  EXPECT_FALSE(layout.isOk()) << text;
  return layout.status().message();
}

TEST(LinearLayout, WorkedExample) {
  DistributedLayout layout = parsed("4x8, reg = {j0 i1}, lane = [j1 j2 i0], warp = []");
  int64_t element[] = {1, 5};
  int64_t packed = layout.pack(element);
  EXPECT_EQ(packed, 13);
  EXPECT_EQ(layout.registerFor(packed), 1);
  EXPECT_EQ(layout.idFor(MachineDim::Lane, packed), 6);
  EXPECT_EQ(layout.apply(1, 6, 0), packed);
  EXPECT_THAT(layout.coordinates(packed), ElementsAre(1, 5));
  EXPECT_EQ(layout.owner(2), (BitOwner{MachineDim::Lane, 1}));
  int order[] = {1, 0};
  EXPECT_EQ(layout.permute(order).toString(), "8x4, reg = {j1 i0}, lane = [i1 i2 j0], warp = []");
  DistributedLayout reduced = layout.dropAxis(1);
  EXPECT_EQ(reduced.toString(), "4, reg = {i1}, lane = [* * i0], warp = []");
  EXPECT_EQ(reduced.freeMask(MachineDim::Lane), 3u);
  EXPECT_EQ(reduced.expandDims(1).broadcastTo({4, 8}).toString(),
            "4x8, reg = {j2 i1}, lane = [j0 j1 i0], warp = []");
  EXPECT_EQ(layout.dropBroadcast({4, 1}), reduced.expandDims(1));
}

TEST(LinearLayout, RegistersAreASet) {
  EXPECT_EQ(DistributedLayout({8}, {2, zeroBasis, 0}, {1}, {}), DistributedLayout({8}, {0, 2}, {1}, {}));
  EXPECT_NE(DistributedLayout({8}, {0, 2}, {1}, {}), DistributedLayout({2, 4}, {0, 2}, {1}, {}));
  EXPECT_NE(DistributedLayout({8}, {0, 2}, {1}, {}), DistributedLayout({8}, {0, 2}, {1, zeroBasis}, {}));
}

TEST(LinearLayout, VerifierNamesTheMistake) {
  auto message = [](const DistributedLayout &layout) { return layout.verify().message(); };
  EXPECT_EQ(message(DistributedLayout({4, 2}, {0}, {1, zeroBasis}, {2})), "");
  EXPECT_EQ(message(DistributedLayout()), "");
  EXPECT_THAT(message(DistributedLayout({4, 2}, {0}, {1, 1}, {2})), HasSubstr("tensor bit i0 has two owners"));
  EXPECT_THAT(message(DistributedLayout({4, 2}, {0}, {1}, {zeroBasis})), HasSubstr("tensor bit i1 has no owner"));
  EXPECT_THAT(message(DistributedLayout({4, 2}, {0}, {1}, {3})), HasSubstr("shape 4x2 has 3 bits"));
  EXPECT_THAT(message(DistributedLayout({12}, {0}, {1}, {})), HasSubstr("size 12"));
  EXPECT_THAT(message(DistributedLayout({0}, {}, {}, {})), HasSubstr("size 0"));
  EXPECT_FALSE(DistributedLayout::get({4}, {0}, {}, {}).isOk());
  EXPECT_TRUE(DistributedLayout::get({4}, {0, 1}, {}, {}).isOk());
}

TEST(LinearLayout, TextRoundTrip) {
  for (std::string_view text :
       {"64x32, reg = {j0 j1 i5}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3 i4 *]",
        "scalar, reg = {}, lane = [* * * * *], warp = [* *]", "1x4, reg = {}, lane = [j1 j0], warp = []",
        "2x2x2x2x2, reg = {m0 l0}, lane = [k0 i0], warp = [j0]",
        "16, reg = {i0}, lane = [i1 i2], warp = [*], block = [i3 *]",
        "2x1x2x1x1x1x1x2x2x1x1x4, reg = {d11.1 i0}, lane = [d8.0 p0 k0], warp = [d11.0]"})
    EXPECT_EQ(parsed(text).toString(), text);
  // Spaces are free, and registers may come in any order.
  EXPECT_EQ(parsed(" 4x4,reg={i1 j0},lane=[ j1 ],warp = [i0]").toString(),
            "4x4, reg = {j0 i1}, lane = [j1], warp = [i0]");
  RandomLayouts random(1);
  for (int i = 0; i < 300; ++i) {
    DistributedLayout layout = random.layout(random.shape(), random.below(6), random.below(4));
    EXPECT_EQ(parsed(layout.toString()), layout);
    EXPECT_EQ(parsed(layout.toString()).hash(), layout.hash());
  }
}

TEST(LinearLayout, ParserErrors) {
  EXPECT_THAT(parseError(""), HasSubstr("expected a shape"));
  EXPECT_THAT(parseError("4x"), HasSubstr("expected a shape"));
  EXPECT_THAT(parseError("6, reg = {}, lane = [], warp = []"), HasSubstr("size 6 is not a power of two"));
  EXPECT_THAT(parseError("4, lane = [i0 i1]"), HasSubstr("expected ', reg ='"));
  EXPECT_THAT(parseError("4, reg = [i0], lane = [i1], warp = []"), HasSubstr("expected '= {' after reg"));
  EXPECT_THAT(parseError("4, reg = {i0 *}, lane = [i1], warp = []"), HasSubstr("registers hold no copies"));
  EXPECT_THAT(parseError("4, reg = {j0}, lane = [i1], warp = []"), HasSubstr("a bit of dimension 1, but the shape 4 has rank 1"));
  EXPECT_THAT(parseError("4, reg = {i2}, lane = [i1], warp = []"), HasSubstr("there is no bit 2"));
  EXPECT_THAT(parseError("4, reg = {i}, lane = [i1], warp = []"), HasSubstr("expected the number of the bit"));
  EXPECT_THAT(parseError("4, reg = {x1}, lane = [i1], warp = []"), HasSubstr("expected a bit such as j3"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [i1, warp = []"), HasSubstr("expected a bit"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [i1"), HasSubstr("the list of lane is not closed"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [i0], warp = []"), HasSubstr("two owners"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [], warp = []"), HasSubstr("tensor bit i1 has no owner"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [i1], warp = [] x"), HasSubstr("expected ', block ='"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [i1], warp = [], block = [] x"), HasSubstr("expected the end"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [d9.0], warp = []"), HasSubstr("a bit of dimension 9, but the shape 4 has rank 1"));
  EXPECT_THAT(parseError("4, reg = {i0}, lane = [d9], warp = []"), HasSubstr("expected a bit such as j3"));
  EXPECT_THAT(parseError("999999999999999999999, reg = {}, lane = [], warp = []"), HasSubstr("not a power of two"));
}

TEST(LinearLayout, EveryElementIsHeldWhereTheTablesSay) {
  RandomLayouts random(2);
  for (int i = 0; i < 200; ++i) {
    DistributedLayout layout = random.layout(random.shape(), 4, 2);
    ASSERT_TRUE(layout.verify().isOk());
    std::set<int64_t> seen;
    for (int warp = 0; warp < layout.numWarps(); ++warp)
      for (int lane = 0; lane < layout.numLanes(); ++lane)
        for (int reg = 0; reg < layout.numRegs(); ++reg) {
          int64_t packed = layout.apply(reg, lane, warp);
          seen.insert(packed);
          EXPECT_EQ(layout.registerFor(packed), reg);
          EXPECT_EQ(layout.idFor(MachineDim::Lane, packed), lane & ~layout.freeMask(MachineDim::Lane));
          EXPECT_EQ(layout.idFor(MachineDim::Warp, packed), warp & ~layout.freeMask(MachineDim::Warp));
          EXPECT_EQ(layout.pack(layout.coordinates(packed)), packed);
        }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), layout.numElements());
    for (int bit = 0; bit < layout.numTensorBits(); ++bit) {
      EXPECT_EQ(layout.bases(layout.owner(bit).dim)[layout.owner(bit).position], bit);
      EXPECT_EQ(layout.axisBits(layout.axisOf(bit))[layout.bitInAxis(bit)], bit);
    }
  }
}

/// The multiset of elements that each thread holds, in terms of coordinates.
template <typename Function>
void expectThreadsHold(const DistributedLayout &source, const DistributedLayout &result, Function mapCoordinates) {
  ASSERT_TRUE(result.verify().isOk()) << result.toString();
  for (int warp = 0; warp < source.numWarps(); ++warp)
    for (int lane = 0; lane < source.numLanes(); ++lane) {
      std::set<std::vector<int64_t>> expected, actual;
      for (int reg = 0; reg < source.numRegs(); ++reg)
        expected.insert(mapCoordinates(source.coordinates(source.apply(reg, lane, warp))));
      for (int reg = 0; reg < result.numRegs(); ++reg)
        actual.insert(result.coordinates(result.apply(reg, lane, warp)));
      ASSERT_EQ(actual, expected) << source.toString() << " -> " << result.toString();
    }
}

TEST(LinearLayout, TransformationsKeepDataInItsThread) {
  RandomLayouts random(3);
  for (int i = 0; i < 200; ++i) {
    Shape shape = random.shape();
    DistributedLayout layout = random.layout(shape, 4, 2);
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random.random);
    expectThreadsHold(layout, layout.permute(order), [&](std::vector<int64_t> c) {
      std::vector<int64_t> result;
      for (int axis : order)
        result.push_back(c[axis]);
      return result;
    });
    int axis = random.below(static_cast<int>(shape.size()));
    expectThreadsHold(layout, layout.expandDims(axis), [&](std::vector<int64_t> c) {
      c.insert(c.begin() + axis, 0);
      return c;
    });
    expectThreadsHold(layout, layout.dropAxis(axis), [&](std::vector<int64_t> c) {
      c.erase(c.begin() + axis);
      return c;
    });
    Shape flat = {layout.numElements()};
    expectThreadsHold(layout, layout.reshape(flat),
                      [&](std::vector<int64_t> c) { return std::vector<int64_t>{layout.pack(c)}; });
    Shape single = shape;
    single[axis] = 1;
    expectThreadsHold(layout, layout.dropBroadcast(single), [&](std::vector<int64_t> c) {
      c[axis] = 0;
      return c;
    });
  }
}

TEST(LinearLayout, BroadcastClaimsCopiesBeforeRegisters) {
  RandomLayouts random(4);
  for (int i = 0; i < 300; ++i) {
    Shape shape = random.below(2) ? Shape{16, 1} : Shape{8, 1, 4};
    DistributedLayout source = random.layout(shape, 4, 2);
    Shape wide = shape;
    wide[1] = 1 << random.below(6);
    DistributedLayout result = source.broadcastTo(wide);
    ASSERT_TRUE(result.verify().isOk());
    EXPECT_EQ(result.dropBroadcast(shape), source);
    bool freeLeft = result.freeMask(MachineDim::Lane) != 0 || result.freeMask(MachineDim::Warp) != 0;
    if (freeLeft) {
      EXPECT_EQ(result.numRegs(), source.numRegs());
    }
  }
}

TEST(LinearLayout, JoinAndSplit) {
  DistributedLayout layout = parsed("4x4, reg = {j0}, lane = [j1 *], warp = [i0 i1]");
  DistributedLayout joined = layout.join();
  EXPECT_EQ(joined.toString(), "4x4x2, reg = {k0 j0}, lane = [j1 *], warp = [i0 i1]");
  ASSERT_TRUE(joined.split().has_value());
  EXPECT_EQ(*joined.split(), layout);
  EXPECT_FALSE(parsed("4x2, reg = {i0 i1}, lane = [j0], warp = []").split().has_value());
  EXPECT_FALSE(layout.split().has_value());
}

TEST(LinearLayout, Picture) {
  EXPECT_EQ(parsed("2x4, reg = {j0}, lane = [j1 i0], warp = []").toTable(), "0:0 0:1 1:0 1:1\n"
                                                                           "2:0 2:1 3:0 3:1\n");
  EXPECT_EQ(parsed("2x1x2, reg = {}, lane = [k0], warp = [i0]").toTable(), "[0, :, :]\n0.0:0 0.1:0\n"
                                                                          "[1, :, :]\n1.0:0 1.1:0\n");
  EXPECT_THAT(parsed("8, reg = {i0 i1 i2}, lane = [], warp = []").toTable(4), HasSubstr("8 elements"));
}

} // namespace
