//===- json_test.cpp - Values and their places --------------------------------------------------------------------===//
#include "ditron/program/Json.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::program;
using testing::HasSubstr;

namespace {

JsonValue parsed(const std::string &text) {
  Expected<JsonValue> value = parseJson({"x.json", text});
  EXPECT_TRUE(value.isOk()) << value.status().message();
  return value.isOk() ? *value : JsonValue();
}

std::string at(const Place &place) {
  return std::to_string(place.line) + ":" + std::to_string(place.column) + " " + place.path;
}

std::string errorOf(const std::string &text) { return parseJson({"x.json", text}).status().message(); }

TEST(Json, ValuesKnowTheirPlaces) {
  const JsonValue root = parsed("{ \"a\": 12, // a comment with \"quotes\", and { brackets\n  \"list\": [1.5,\n true, "
                                "/* \n */ \"te\\\"xt\",[]],\n"
                                "\"b\":-3}");
  ASSERT_EQ(root.members.size(), 3u);
  EXPECT_EQ(at(root.members[0].place), "1:3 a");
  EXPECT_EQ(at(root.members[0].value.place), "1:8 a");
  EXPECT_EQ(root.members[0].value.text, "12");
  EXPECT_TRUE(root.members[0].value.isInteger);
  const JsonValue &list = root.members[1].value;
  EXPECT_EQ(at(list.place), "2:11 list");
  ASSERT_EQ(list.items.size(), 4u);
  EXPECT_EQ(at(list.items[0].place), "2:12 list[0]");
  EXPECT_EQ(list.items[0].text, "1.5");
  EXPECT_FALSE(list.items[0].isInteger);
  EXPECT_EQ(at(list.items[1].place), "3:2 list[1]");
  EXPECT_EQ(at(list.items[2].place), "4:5 list[2]");
  EXPECT_EQ(list.items[2].text, "te\"xt");
  EXPECT_EQ(at(list.items[3].place), "4:14 list[3]");
  EXPECT_EQ(at(root.members[2].value.place), "5:5 b");
  EXPECT_EQ(root.members[2].value.text, "-3");
}

TEST(Json, WhatIsNoJsonIsToldWithItsPlace) {
  EXPECT_THAT(errorOf("{\"a\": 1,\n \"b\" 2}"), HasSubstr("x.json:2:6: error: this is no JSON:"));
  EXPECT_THAT(errorOf(""), HasSubstr("this is no JSON"));
  EXPECT_THAT(errorOf("{} {}"), HasSubstr("this is no JSON"));
  EXPECT_THAT(errorOf("{\"a\": 1, \"b\": {\"c\": 1,\n\"c\": 2}}"),
              HasSubstr("x.json:2:1: error: b.c: 'c' is given twice; first at line 1"));
  EXPECT_THAT(errorOf(std::string(1000, '[')), HasSubstr("nested more than 64 deep"));
}

TEST(Json, ErrorsShowTheLine) {
  const JsonSource source{"x.json", "{\n  \"grid\": 0\n}"};
  EXPECT_THAT(source.error({2, 11, "grid"}, "too small").message(), HasSubstr("x.json:2:11: error: grid: too small\n"));
  EXPECT_THAT(source.error({2, 11, "grid"}, "too small").message(), HasSubstr("\"grid\": 0\n"));
}

} // namespace
