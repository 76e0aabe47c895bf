//===- array_output_test.cpp - Slices, printed arrays, comparison -------------------------------------------------===//
#include "ditron/values/ArrayPrint.h"
#include "ditron/values/SliceText.h"
#include "ditron/values/Comparison.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <limits>

using namespace ditron;
using namespace ditron::values;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

template <typename T> NpyArray arrayOf(DataType type, std::vector<int64_t> shape, const std::vector<T> &values) {
  NpyArray array{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

NpyArray counting(std::vector<int64_t> shape) {
  std::vector<int32_t> values(static_cast<size_t>(elementCount(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>(i);
  return arrayOf(DataType::I32, std::move(shape), values);
}

std::string sliced(const char *text, const NpyArray &array) {
  Expected<SliceText> slice = parseSliceText(text);
  EXPECT_TRUE(slice.isOk()) << slice.status().message();
  EXPECT_TRUE(checkSlice(*slice, {array.shape}).isOk());
  return arrayText(takeSlice(*slice, array), Abbreviate::Never);
}

std::string errorOf(const char *text) {
  Expected<SliceText> slice = parseSliceText(text);
  if (!slice.isOk())
    return slice.status().message();
  return checkSlice(*slice, {{4, 8}, {4, 8}}).message();
}

} // namespace

TEST(ArrayPrint, bracketsAndColumns) {
  EXPECT_EQ(arrayText(counting({3}), Abbreviate::Long), "[0 1 2]");
  EXPECT_EQ(arrayText(counting({2, 6}), Abbreviate::Long), "[[ 0  1  2  3  4  5]\n [ 6  7  8  9 10 11]]");
  EXPECT_EQ(arrayText(counting({2, 1, 2}), Abbreviate::Long), "[[[0 1]]\n\n [[2 3]]]");
  EXPECT_EQ(arrayText(counting({0}), Abbreviate::Long), "[]");
  EXPECT_EQ(arrayText(counting({2, 0}), Abbreviate::Long), "[[]\n []]");
  EXPECT_EQ(arrayText(counting({}), Abbreviate::Long), "0");
}

TEST(ArrayPrint, longArrays) {
  EXPECT_EQ(arrayText(counting({1000}), Abbreviate::Long), "[  0   1   2 ... 997 998 999]");
  EXPECT_EQ(arrayText(counting({20, 100}), Abbreviate::Long).substr(0, 41),
            "[[   0    1    2 ...   97   98   99]\n [ 1");
  EXPECT_THAT(arrayText(counting({20, 100}), Abbreviate::Long), HasSubstr("\n ...\n [17"));
  const std::string all = arrayText(counting({1000}), Abbreviate::Never);
  EXPECT_THAT(all, AllOf(HasSubstr(" 500 "), testing::Not(HasSubstr("..."))));
  for (size_t begin = 0, end; begin < all.size(); begin = end + 1) {
    end = std::min(all.find('\n', begin), all.size());
    EXPECT_LE(end - begin, 101u);
  }
}

TEST(ArrayPrint, elements) {
  EXPECT_EQ(arrayText(arrayOf<float>(DataType::F32, {3}, {0.1f, 2, -1e20f}), Abbreviate::Long),
            "[   0.1      2 -1e+20]");
  EXPECT_EQ(arrayText(arrayOf<int64_t>(DataType::I64, {1}, {INT64_MIN}), Abbreviate::Long), "[-9223372036854775808]");
  EXPECT_EQ(arrayText(arrayOf<uint64_t>(DataType::U64, {1}, {UINT64_MAX}), Abbreviate::Long), "[18446744073709551615]");
  EXPECT_EQ(arrayText(arrayOf<uint8_t>(DataType::I1, {2}, {0, 1}), Abbreviate::Long), "[False  True]");
}

TEST(SliceText, likeNumpy) {
  const NpyArray array = counting({4, 8});
  EXPECT_EQ(sliced("x[1]", array), "[ 8  9 10 11 12 13 14 15]");
  EXPECT_EQ(sliced("x[-1,::3]", array), "[24 27 30]");
  EXPECT_EQ(sliced("x[1:3, -2:]", array), "[[14 15]\n [22 23]]");
  EXPECT_EQ(sliced("x[:2,0]@0", array), "[0 8]");
  EXPECT_EQ(sliced("x[2,3]", array), "19");
  EXPECT_EQ(sliced("x[100:]", array), "[]");
  EXPECT_EQ(sliced("x[3:1]", array), "[]");
  EXPECT_EQ(sliced("x[:,6:100]", counting({1, 8})), "[[6 7]]");
}

TEST(SliceText, errors) {
  EXPECT_THAT(errorOf("x[4]"),
              HasSubstr("index 4 of axis 0 is outside of the array's shape 4x8; accepted are -4 to 3"));
  EXPECT_THAT(errorOf("x[0,0,0]"), HasSubstr("3 axes are given, but the array has 2"));
  EXPECT_THAT(errorOf("x@2"), HasSubstr("there are 2 ranks, 0 to 1"));
  EXPECT_THAT(errorOf("x[1"), HasSubstr("no closing ']'"));
  EXPECT_THAT(errorOf("x[a:b]"), HasSubstr("'a' is no integer"));
  EXPECT_THAT(errorOf("x[::0]"), HasSubstr("steps are integers from 1"));
  EXPECT_THAT(errorOf("x[]"), HasSubstr("'' is no integer"));
  EXPECT_THAT(errorOf("[1]"), HasSubstr("name is missing"));
  EXPECT_THAT(errorOf("x@one"), HasSubstr("'one' is no rank"));
}

TEST(Slice, runsAreAsLongAsTheyCanBe) {
  auto runs = [](const char *text, const std::vector<int64_t> &shape) {
    std::string result;
    for (const ElementRun &run : runsOf(*parseSliceText(text), shape))
      result += std::to_string(run.first) + "+" + std::to_string(run.count) + " ";
    return result;
  };
  EXPECT_EQ(runs("x", {4, 8}), "0+32 ");
  EXPECT_EQ(runs("x[1:3]", {4, 8}), "8+16 ");
  EXPECT_EQ(runs("x[1:3,2:4]", {4, 8}), "10+2 18+2 ");
  EXPECT_EQ(runs("x[:,0]", {3, 8}), "0+1 8+1 16+1 ");
  EXPECT_EQ(runs("x[2,::4]", {3, 8}), "16+1 20+1 ");
  EXPECT_EQ(runs("x[3:3]", {4, 8}), "");
  EXPECT_EQ(runs("x", {}), "0+1 ");
  EXPECT_THAT(shapeOf(*parseSliceText("x[1:3,2]"), {4, 8}), ElementsAre(2));
  EXPECT_THAT(shapeOf(*parseSliceText("x[1,2]"), {4, 8}), ElementsAre());
}

TEST(Expectation, countsAndWorstElement) {
  const NpyArray want = arrayOf<float>(DataType::F32, {2, 2}, {1, 2, 3, 4});
  const NpyArray have = arrayOf<float>(DataType::F32, {2, 2}, {1, 2.5f, 3, 7});
  Difference difference = compareArrays(have, want, {});
  EXPECT_EQ(difference.wrong, 2);
  EXPECT_EQ(difference.worst, 3);
  EXPECT_EQ(difference.amount, 3);
  EXPECT_EQ(compareArrays(have, want, {0.5, 0}).wrong, 1);
  EXPECT_EQ(compareArrays(have, want, {0, 0.75}).wrong, 0);
}

TEST(Expectation, specialValuesAndWideIntegers) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const NpyArray want = arrayOf<float>(DataType::F32, {4}, {nan, inf, -inf, 1});
  EXPECT_EQ(compareArrays(want, want, {}).wrong, 0);
  const NpyArray have = arrayOf<float>(DataType::F32, {4}, {1, inf, inf, nan});
  EXPECT_EQ(compareArrays(have, want, {1e30, 0}).wrong, 3);
  EXPECT_EQ(compareArrays(have, want, {0, 0.5}).wrong, 3);
  const NpyArray big = arrayOf<int64_t>(DataType::I64, {1}, {INT64_MAX});
  const NpyArray next = arrayOf<int64_t>(DataType::I64, {1}, {INT64_MAX - 1});
  EXPECT_EQ(compareArrays(big, next, {}).wrong, 1);
  EXPECT_EQ(compareArrays(big, next, {}).amount, 1);
  EXPECT_EQ(compareArrays(arrayOf<int64_t>(DataType::I64, {1}, {INT64_MIN}), big, {}).wrong, 1);
}

TEST(Expectation, tolerances) {
  EXPECT_EQ(parseTolerances({"1e-3,0.5"}, 2)->at(1).relative, 0.5);
  EXPECT_EQ(parseTolerances({"1", "2"}, 2)->at(1).absolute, 2);
  EXPECT_THAT(parseTolerances({"x"}, 1).status().message(), HasSubstr("'x' is not accepted; write ABSOLUTE"));
  EXPECT_FALSE(parseTolerances({"-1"}, 1).isOk());
  EXPECT_FALSE(parseTolerances({"nan"}, 1).isOk());
  EXPECT_THAT(parseTolerances({"1"}, 0).status().message(), HasSubstr("without --expect"));
  EXPECT_THAT(parseTolerances({"1", "1"}, 3).status().message(), HasSubstr("2 times and --expect 3 times"));
}
