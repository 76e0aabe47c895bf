//===- grid_test.cpp - Launch grids as integer expressions --------------------------------------------------------===//
#include "ditron/values/GridExpression.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::values;
using testing::ElementsAre;
using testing::HasSubstr;

static const IntegerNames names = {{"M", 1000}, {"N", 300}, {"BLOCK", 128}, {"RANKS", 8}};

TEST(Grid, arithmeticIsPythons) {
  EXPECT_EQ(*evaluateInteger("2 + 3 * 4", names), 14);
  EXPECT_EQ(*evaluateInteger("(2 + 3) * 4 - -1", names), 21);
  EXPECT_EQ(*evaluateInteger("-7 // 2", names), -4);
  EXPECT_EQ(*evaluateInteger("-7 % 3", names), 2);
  EXPECT_EQ(*evaluateInteger("7 % -3", names), -2);
  EXPECT_EQ(*evaluateInteger("cdiv(M, BLOCK)", names), 8);
  EXPECT_EQ(*evaluateInteger("cdiv(-7, 2)", names), -3);
  EXPECT_EQ(*evaluateInteger("min(M, N) + max(1,2)", names), 302);
}

TEST(Grid, dimensions) {
  EXPECT_THAT(*evaluateGrid("8", names), ElementsAre(8, 1, 1));
  EXPECT_THAT(*evaluateGrid("cdiv(M, BLOCK) * cdiv(N, BLOCK), RANKS,2", names), ElementsAre(24, 8, 2));
}

static std::string errorOf(std::string_view text) {
  Expected<std::array<uint32_t, 3>> grid = evaluateGrid(text, names);
  EXPECT_FALSE(grid.isOk()) << text;
  return grid.isOk() ? "" : grid.status().message();
}

TEST(Grid, errors) {
  EXPECT_THAT(errorOf("-1"), HasSubstr("dimension x is -1; accepted are 0 to"));
  EXPECT_THAT(errorOf("1,2,3,4"), HasSubstr("at most three dimensions"));
  EXPECT_THAT(errorOf("1,N-301"), HasSubstr("dimension y is -1"));
  EXPECT_THAT(errorOf("BLOKC"), HasSubstr("did you mean 'BLOCK'"));
  EXPECT_THAT(errorOf("4 /2"), HasSubstr("'/' at position 3"));
  EXPECT_THAT(errorOf("4 //0"), HasSubstr("division by zero"));
  EXPECT_THAT(errorOf("(4"), HasSubstr("ends too early"));
  EXPECT_THAT(errorOf(""), HasSubstr("ends too early"));
  EXPECT_THAT(errorOf("ceil(3)"), HasSubstr("no function 'ceil'; accepted are cdiv, min and max"));
  EXPECT_THAT(errorOf("9223372036854775807 * 2"), HasSubstr("64 bits"));
  EXPECT_THAT(errorOf("99999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(errorOf(std::string(10000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(errorOf(std::string(10000, '-')), HasSubstr("nested too deeply"));
}
