//===- CopyBoxes_test.cpp -----------------------------------------------------------------------------------*- C++ -*-===//
//
// The forms of all tiles against a model of the copy engine that goes byte by byte, as the simulator's and the hardware's do.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/CopyBoxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace ditron;
using namespace ditron::layout;
using ::testing::HasSubstr;

namespace {

/// What the engine writes into shared memory at `base`: for each 16 bytes the element there, row-major in the tile. The address of
/// each 16 bytes is swizzled.
void copyBox(const CopyForm &form, const CopyBox &box, int64_t base, std::vector<int64_t> &memory) {
  const int elementBytes = form.layout.elementBytes();
  int64_t address = base + box.offsetBytes;
  for (int64_t row = 0; row < form.box[0]; ++row)
    for (int64_t column = 0; column < form.box[1]; ++column, address += elementBytes) {
      const int64_t mask = form.swizzleBytes ? form.swizzleBytes / 16 - 1 : 0;
      const int64_t place = address ^ ((address >> 7 & mask) << 4);
      memory[place] = (box.start[0] + row) * form.layout.shape()[1] + box.start[1] + column;
    }
}

/// Each of `slots` tiles that follow each other must be where the layout has it.
void expectCopied(const CopyForm &form, int slots) {
  const Expected<std::vector<CopyBox>> boxes = copyBoxes(form.layout, form.box, form.swizzleBytes);
  ASSERT_TRUE(boxes.isOk()) << boxes.status().message();
  for (int slot = 0; slot < slots; ++slot) {
    const int64_t base = slot * form.layout.bytes();
    std::vector<int64_t> memory(base + form.layout.bytes() + 1024, -1);
    for (const CopyBox &box : *boxes) {
      ASSERT_EQ((base + box.offsetBytes) % 128, 0) << form.layout.toString();
      copyBox(form, box, base, memory);
    }
    for (int64_t packed = 0; packed < form.layout.shape()[0] * form.layout.shape()[1]; ++packed)
      ASSERT_EQ(memory[base + form.layout.offsetOf(packed) * form.layout.elementBytes()], packed)
          << form.layout.toString() << ", slot " << slot;
  }
}

TEST(CopyBoxes, EveryTileIsWhereTheEngineHasIt) {
  int numForms = 0;
  for (int bits : {8, 16, 32, 64, 128})
    for (int64_t rows = 1; rows <= 512; rows *= 2)
      for (int64_t rowBytes = 16; rowBytes <= 4096 && rows * rowBytes <= 64 * 1024; rowBytes *= 2) {
        const CopyForm form = copyForm({rows, rowBytes * 8 / bits}, bits);
        EXPECT_EQ(form.swizzleBytes, rows < 8 || rowBytes < 32 ? 0 : std::min<int64_t>(rowBytes, 128));
        const bool isRing = form.layout.bytes() % copyAlignment(form.swizzleBytes) == 0;
        ASSERT_NO_FATAL_FAILURE(expectCopied(form, isRing ? 3 : 1)) << rows << " rows of " << rowBytes << " bytes";
        ++numForms;
      }
  EXPECT_EQ(numForms, 5 * 75);
}

/// Layouts that look alike and are none that the engine knows.
TEST(CopyBoxes, OthersAreRefused) {
  const int rowMajor[] = {1, 0};
  auto problem = [](const SharedLayout &layout, Shape box, int swizzleBytes) {
    const Expected<std::vector<CopyBox>> boxes = copyBoxes(layout, box, swizzleBytes);
    return boxes.isOk() ? std::string() : std::string(boxes.status().message());
  };
  // The second box of few rows begins inside of the pattern.
  for (int64_t rows : {1, 2, 4})
    EXPECT_THAT(problem(swizzledShared({rows, 64}, rowMajor, 32, 128), {rows, 32}, 128),
                HasSubstr("a box begins at byte " + std::to_string(128 * rows) + ", not at a multiple of 1024"));
  EXPECT_EQ(problem(swizzledShared({8, 64}, rowMajor, 32, 128), {8, 32}, 128), "");
  EXPECT_THAT(problem(swizzledShared({8, 64}, rowMajor, 32, 128), {4, 32}, 128), HasSubstr("begins at byte 576"));
  // Another swizzle than the map's, or none.
  EXPECT_THAT(problem(swizzledShared({8, 32}, rowMajor, 32, 64), {8, 32}, 128), HasSubstr("but tensor copies have it at byte"));
  EXPECT_THAT(problem(plainShared({8, 32}, rowMajor, 32), {8, 32}, 128), HasSubstr("but tensor copies have it at byte"));
  EXPECT_THAT(problem(swizzledShared({8, 32}, rowMajor, 32, 128), {8, 32}, 0), HasSubstr("but tensor copies have it at byte"));
  // Boxes that do not fit.
  EXPECT_THAT(problem(swizzledShared({8, 64}, rowMajor, 32, 128), {8, 64}, 128), HasSubstr("not as wide as the swizzle"));
  EXPECT_THAT(problem(plainShared({8, 32}, rowMajor, 32), {16, 32}, 0), HasSubstr("does not consist of them"));
  EXPECT_THAT(problem(plainShared({8, 512}, rowMajor, 8), {8, 512}, 0), HasSubstr("does not consist of them"));
  EXPECT_THAT(problem(plainShared({8, 512}, rowMajor, 8), {8, 256}, 0), HasSubstr("but tensor copies have it at byte"));
}

} // namespace
