//===- tuple_text_test.cpp - Tuples of kernel arguments as text ---------------------------------------------------===//
#include "ditron/values/TupleText.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::values;
using testing::HasSubstr;

namespace {

/// "t.0=1 t.1.x=@a.npy"
std::string leavesOf(std::string_view text) {
  Expected<std::vector<TupleLeaf>> leaves = parseTupleText("t", text);
  EXPECT_TRUE(leaves.isOk()) << leaves.status().message();
  std::string result;
  if (leaves.isOk())
    for (const TupleLeaf &leaf : *leaves)
      result += fmt::format("{}{}={}", result.empty() ? "" : " ", leaf.path, leaf.text);
  return result;
}

std::string errorOf(std::string_view text) {
  Expected<std::vector<TupleLeaf>> leaves = parseTupleText("t", text);
  EXPECT_FALSE(leaves.isOk()) << text;
  return leaves.isOk() ? "" : leaves.status().message();
}

TEST(TupleText, Leaves) {
  EXPECT_EQ(leavesOf("3"), "t=3");
  EXPECT_EQ(leavesOf("(1, 2.5)"), "t.0=1 t.1=2.5");
  EXPECT_EQ(leavesOf("( 1 , )"), "t.0=1");
  EXPECT_EQ(leavesOf("(@x.npy,zeros:fp32[4,8],desc[64,32,nan]@y.npy)"), "t.0=@x.npy t.1=zeros:fp32[4,8] t.2=desc[64,32,nan]@y.npy");
  EXPECT_EQ(leavesOf("((1, (2, 3)), symm:zeros:i64[8])"), "t.0.0=1 t.0.1.0=2 t.0.1.1=3 t.1=symm:zeros:i64[8]");
  EXPECT_EQ(leavesOf("(x=3, y=(a=@x=1.npy, b=1))"), "t.x=3 t.y.a=@x=1.npy t.y.b=1");
  EXPECT_EQ(leavesOf("('a,b', \"c)\")"), "t.0='a,b' t.1=\"c)\"");
}

TEST(TupleText, Errors) {
  EXPECT_THAT(errorOf("(1, 2"), HasSubstr("argument t='(1, 2': the tuple has no closing ')'; a tuple is written (@x.npy, 3"));
  EXPECT_THAT(errorOf("((1, 2)"), HasSubstr("brackets or quotes are not closed"));
  EXPECT_THAT(errorOf("()"), HasSubstr("empty tuple"));
  EXPECT_THAT(errorOf("(3)"), HasSubstr("one value in parentheses is no tuple"));
  EXPECT_THAT(errorOf("(1,,2)"), HasSubstr("an element is empty"));
  EXPECT_THAT(errorOf("(x=1, 2)"), HasSubstr("either all elements have names or none"));
  EXPECT_THAT(errorOf("(1, x=2)"), HasSubstr("either all elements have names or none"));
  EXPECT_THAT(errorOf("(x=1, x=2)"), HasSubstr("'x' is given twice"));
  EXPECT_THAT(errorOf("((1, 2), (3))"), HasSubstr("argument t.1='(3)'"));
  EXPECT_THAT(errorOf(std::string(40, '(') + "1,2" + std::string(40, ')')), HasSubstr("no tuple"));
}

} // namespace
