//===- random_text_test.cpp - Values put together at random -------------------------------------------------------===//
//
// Whatever is written behind --arg, --print, --expect and --tolerance is read or refused with a message: no text ends the program.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/ArgumentText.h"
#include "ditron/values/LiteralText.h"
#include "ditron/values/RankText.h"
#include "ditron/values/TupleText.h"
#include "ditron/values/ArrayPrint.h"
#include "ditron/values/SliceText.h"
#include "ditron/values/Comparison.h"

#include <gtest/gtest.h>
#include <random>

using namespace ditron;
using namespace ditron::values;

namespace {

constexpr const char *pieces[] = {
    "zeros", "ones", "full", "arange", "rand",  "symm:", "desc",   "ptr:", "scalar@", "per-rank:", "{rank}", "x",    "fp32", "i8",
    "bf16",  "u64",  "i1",   "[",      "]",     "(",     ")",      ",",    ":",       "@",         "*",      "&",    "-",    "+",
    "0",     "1",    "2",    "3.5",    "-1",    "0x10",  "1e400",  "nan",  "inf",     "true",      "None",   "\"",   "'",    " ",
    "=",     ".",    "{",    "}",      "::",    "[4]",   "[2,2]",  "fp32[4]", "i32[2,3]", "9223372036854775807", "-9223372036854775808",
    "18446744073709551616", "\xff", "\n"};

std::string randomText(std::mt19937_64 &random) {
  std::string text;
  for (size_t count = random() % 9; count > 0; --count)
    text += pieces[random() % std::size(pieces)];
  return text;
}

/// Makes and prints an array that is small.
void useArray(const ArrayText &array) {
  int64_t elements = 1;
  for (int64_t size : array.shape)
    elements = size > 0 && elements > 1000 / size ? 1001 : elements * size;
  if (elements > 1000 || array.source == ArrayText::Source::File)
    return;
  auto lookup = [](const AddressText &) -> Expected<runtime::Pointer> { return invalidArgument("no such array"); };
  Expected<NpyArray> made = array.make(0, 0, "x", lookup);
  if (!made.isOk())
    return;
  EXPECT_EQ(made->elementCount(), elements);
  EXPECT_FALSE(arrayText(*made, Abbreviate::Long).empty());
  EXPECT_EQ(compareArrays(*made, *made, {}).wrong, 0);
}

} // namespace

TEST(RandomText, isReadOrRefused) {
  std::mt19937_64 random(1);
  size_t read = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::string text = randomText(random);
    Expected<ArgumentText> parsed = parseArgumentText("x", text, 3);
    read += parsed.isOk();
    if (!parsed.isOk())
      EXPECT_FALSE(parsed.status().message().empty()) << text;
    else if (const auto *array = std::get_if<ArrayText>(&*parsed))
      useArray(*array);
    (void)parseTupleText("x", text).isOk();
    (void)textForRank("x", text, 1, 2).isOk();
    (void)parseTolerances({text}, 1).isOk();
    Expected<SliceText> slice = parseSliceText(text);
    const NpyArray array{DataType::I8, {2, 3}, std::vector<std::byte>(6)};
    if (slice.isOk() && checkSlice(*slice, {array.shape}).isOk())
      EXPECT_LE(takeSlice(*slice, array).elementCount(), 6) << text;
  }
  EXPECT_GT(read, 1000u);
}

TEST(RandomText, constexprs) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i)
    (void)parseConstexprText("x", randomText(random)).isOk();
}
