//===- program_test.cpp - Run files from C++ and C ----------------------------------------------------------------===//
#include <ditron/ditron.hpp>

#include <cstring>
#include <gmock/gmock.h>

using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr const char *counted =
    R"({"ranks": 2, "variables": {"n": 3}, "buffers": {"x": "full({rank}):i32[2,3]", "y": "zeros:i32[2,3]"},
  "streams": ["side"], "events": ["done"],
  "steps": [{"copy": "x@{1 - rank}", "to": "y"}, {"record": "done"}, {"wait": "done", "on": "side"},
            {"memset": "x", "byte": 1, "on": "side"}, {"synchronize": "rank"}, {"barrier": "all"}, {"print": "y[0]"},
            {"expect": "y", "value": "{n - 2 - rank}"}]})";

TEST(Program, RunsAndGivesItsBuffers) {
  std::string printed;
  ditron_program_options_t options;
  DITRON_INIT(options);
  options.print = [](void *user, const char *text) { *static_cast<std::string *>(user) += text; };
  options.print_user = &printed;
  options.no_race_check = 1; // the ranks clear what the other may not have copied yet
  ditron::Expected<ditron::Program> program = ditron::Program::runText(counted, "", &options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->ranks(), 2u);
  EXPECT_TRUE(program->mismatches().empty());
  EXPECT_THAT(printed, AllOf(HasSubstr("y[0] on rank 0: i32"), HasSubstr("y[0] on rank 1: i32")));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    ditron::Expected<ditron_program_array_t> y = program->array("y", rank);
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(y->dimensions, 2u);
    EXPECT_EQ(y->shape[1], 3);
    ASSERT_EQ(y->bytes, 24u);
    int32_t first = -1;
    std::memcpy(&first, y->data, sizeof first);
    EXPECT_EQ(first, static_cast<int32_t>(1 - rank));
  }
  EXPECT_THAT(program->array("z").status().message(), HasSubstr("buffers are x, y"));
  EXPECT_THAT(program->array("y", 2).status().message(), HasSubstr("there are 2 ranks, 0 to 1"));
}

TEST(Program, MismatchesAreNoErrors) {
  ditron::Expected<ditron::Program> program =
      ditron::Program::runText(R"({"buffers": {"x": "ones:i32[2]"}, "steps": [{"expect": "x", "value": 2}]})");
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(program->mismatches().size(), 1u);
  EXPECT_THAT(
      program->mismatches()[0],
      HasSubstr("<program>:1:45: error: steps[0]: x on rank 0 is not as expected: 2 of 2 elements differ from 2"));
  EXPECT_EQ(ditron_program_mismatch(program->get(), 1), nullptr);
}

TEST(Program, ErrorsHaveTheirPlaces) {
  const ditron::Status unknown = ditron::Program::runText("{\"steps\": [{\"sincronize\": \"rank\"}]}").status();
  EXPECT_EQ(unknown.code(), DITRON_INVALID_ARGUMENT);
  EXPECT_THAT(unknown.message(), HasSubstr("did you mean 'synchronize'?"));
  EXPECT_EQ(unknown.file(), "<program>");
  EXPECT_EQ(unknown.column(), 13u);
  const ditron::Status hung =
      ditron::Program::runText(
          R"({"buffers": {"flag": "zeros:i32[1]"}, "steps": [{"signal_wait": "flag", "until": ">= 1"}, {"synchronize": "rank"}]})")
          .status();
  EXPECT_EQ(hung.code(), DITRON_DEADLOCK);
  EXPECT_THAT(hung.message(), HasSubstr("waits for flag[0] on rank 0: has 0, wants >= 1"));
  EXPECT_EQ(ditron::Program::run("/nowhere/p.json").status().code(), DITRON_NOT_FOUND);
}

} // namespace
