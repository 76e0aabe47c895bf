//===- reader_test.cpp - What a run file may say ------------------------------------------------------------------===//
#include "ditron/program/Reader.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::program;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Expected<Program> read(const std::string &text) { return parseProgram("p.json", text, ""); }
std::string errorOf(const std::string &text) { return read(text).status().message(); }
/// A program of these steps with what they may name.
std::string withSteps(const std::string &steps) {
  return R"({"ranks": 2, "variables": {"round": 1}, "buffers": {"x": "zeros:i32[4]", "flag": "symm:zeros:i64[1]"},
"streams": ["side"], "events": ["ready"], "steps": [)" +
         steps + "]}";
}

TEST(Reader, EveryVerb) {
  Expected<Program> program = read(withSteps(R"(
    {"launch": "a.py:k", "on": "side", "grid": "2,3", "args": {"n": 3, "x": "x", "flag": true}, "constexprs": {"B": 64}, "num_warps": 8,
     "num_stages": 2, "cooperative": true, "ranks": [1]},
    {"copy": "x[0:2]", "to": "x@1"}, {"memset": "x", "byte": 255}, {"memset": "x"},
    {"signal_write": "flag", "value": "{round}"}, {"signal_add": "flag@1", "value": 1, "on": "side"}, {"signal_wait": "flag", "until": ">= round + 1"},
    {"record": "ready"}, {"wait": "ready", "on": "side"}, {"wait": "ready@1"}, {"synchronize": "rank"}, {"synchronize": "side"},
    {"synchronize": "ready"}, {"barrier": "b"},
    {"capture": "g", "steps": [{"launch": "a.py:k"}, {"repeat": 2, "as": "i", "steps": [{"memset": "x", "byte": "i"}]}]}, {"replay": "g", "times": 3},
    {"allocate": "y", "value": "ones:fp32[3]"}, {"free": "y"}, {"write": "x[0]", "value": 3}, {"read": "x[0]", "into": "seen"},
    {"set": {"round": "round + 1"}}, {"expect": "x", "value": "zeros:i32[4]", "tolerance": "1e-3,0.5"}, {"print": "x[1:]@0"},
    {"save": "x", "to": "x{rank}.npy"})"));
  ASSERT_TRUE(program.isOk()) << program.status().message();
  ASSERT_EQ(program->hosts.size(), 1u);
  const std::vector<Step> &steps = program->hosts[0].steps;
  const auto &launch = std::get<LaunchStep>(steps[0].action);
  EXPECT_EQ(launch.file, "a.py");
  EXPECT_EQ(launch.kernel, "k");
  EXPECT_EQ(launch.arguments[2].second.text, "true");
  EXPECT_EQ(launch.numWarps, 8u);
  EXPECT_EQ(steps[0].stream, "side");
  EXPECT_TRUE(steps[0].isFor(1));
  EXPECT_FALSE(steps[0].isFor(0));
  EXPECT_EQ(std::get<MemsetStep>(steps[3].action).byte.text, "0");
  const auto &wait = std::get<SignalStep>(steps[6].action);
  EXPECT_EQ(wait.compare, runtime::Compare::GreaterEqual);
  EXPECT_EQ(wait.value.text, " round + 1");
  EXPECT_EQ(std::get<WaitStep>(steps[9].action).rank->text, "1");
  EXPECT_EQ(std::get<SynchronizeStep>(steps[11].action).what, SynchronizeStep::What::Stream);
  EXPECT_EQ(std::get<SynchronizeStep>(steps[12].action).what, SynchronizeStep::What::Event);
  EXPECT_EQ(std::get<CaptureStep>(steps[14].action).steps.size(), 2u);
  EXPECT_EQ(std::get<ExpectStep>(steps[21].action).tolerance.relative, 0.5);
  EXPECT_EQ(steps[1].place.line, 5u);
}

TEST(Reader, HostsOfRanks) {
  Expected<Program> program = read(
      R"({"ranks": 3, "ranks_per_node": 1, "target": "sim:sm_90a", "sms": 2, "file": "k.py", "operators": {"g": {"operator": "ag_gemm",
    "m": 64, "n": 32, "k": 16, "type": "fp16"}}, "buffers": {"a": "zeros:fp16[22,16]"},
    "streams": [{"name": "fast", "priority": 1}], "hosts": [{"rank": "all", "steps": [{"call": "g", "a": "a", "b": "a", "out": "a"}]},
    {"rank": [0, 2], "name": "loader", "steps": [{"launch": "k", "on": "fast"}]}]})");
  ASSERT_TRUE(program.isOk()) << program.status().message();
  EXPECT_EQ(program->sms, 2u);
  EXPECT_EQ(program->ranksPerNode, 1u);
  EXPECT_EQ(program->target, "sim:sm_90a");
  EXPECT_EQ(program->streams[0].priority, 1);
  EXPECT_EQ(program->operators[0].dtype, DataType::F16);
  EXPECT_FALSE(program->hosts[0].ranks);
  EXPECT_THAT(*program->hosts[1].ranks, ElementsAre(0, 2));
  EXPECT_EQ(std::get<LaunchStep>(program->hosts[1].steps[0].action).file, "k.py");
}

TEST(Reader, RanksOfTheCommandLine) {
  const std::string text = R"({"ranks": 2, "steps": [{"synchronize": "rank", "ranks": 1}]})";
  EXPECT_EQ(parseProgram("p", text, "", {.ranks = 4})->ranks, 4u);
  EXPECT_THAT(parseProgram("p", text, "", {.ranks = 1}).status().message(),
              HasSubstr("1 is no rank of this program, which has 1"));
}

struct Mistake {
  const char *steps, *message;
};

TEST(Reader, MistakesInStepsNameThePlaceAndTheNearest) {
  const Mistake mistakes[] = {
      {R"({"lunch": "a.py:k"})",
       "p.json:2:54: error: steps[0].lunch: 'lunch' is nothing that a step does; did you mean 'launch'?"},
      {R"({"launch": "a.py:k", "gird": 2})", "steps[0].gird: the step 'launch' has no 'gird'; did you mean 'grid'?"},
      {R"({"launch": "k"})", "'k' names no kernel of a file"},
      {R"({"launch": "a.py:k", "num_warps": 3})", "3 is not accepted; write a power of two from 1 to 32"},
      {R"({"launch": "a.py:k", "num_warps": "4"})", "4 is not accepted; write an integer from 1 to 32"},
      {R"({"launch": "a.py:k", "args": {"x": [1]}})", "steps[0].args.x: a list is not accepted here"},
      {R"({"launch": "a.py:k", "cooperative": 1})", "a number is not accepted; write true or false"},
      {R"({"launch": "a.py:k", "on": "sied"})",
       "there is no stream 'sied'; did you mean 'side'?; streams are default, side"},
      {R"({"launch": "a.py:k", "ranks": 2})", "2 is no rank of this program, which has 2; write 0 to 1"},
      {R"({"copy": "x"})", "the step 'copy' needs 'to'"},
      {R"({"copy": "x", "too": "x"})", "the step 'copy' has no 'too'; did you mean 'to'?"},
      {R"({"copy": "x", "to": "y[0:2]@1"})", "there is no buffer 'y'"},
      {R"({"copy": "x", "memset": "x"})", "a step does one thing, but 'copy' and 'memset' are two"},
      {R"({})", "this says nothing that a step does"},
      {R"([])", "a step is a list; write an object"},
      {R"({"signal_wait": "flag", "until": "3"})", "'3' is not accepted; write a comparison, as in \">= 1\""},
      {R"({"record": "raedy"})", "there is no event 'raedy'; did you mean 'ready'?"},
      {R"({"synchronize": "redy"})", "there is no stream or event 'redy'; did you mean 'ready'?"},
      {R"({"replay": "g"})", "there is no graph 'g'; the program has no graphs"},
      {R"({"capture": "g", "steps": [{"synchronize": "rank"}]})", "'synchronize' cannot be captured in a graph"},
      {R"({"capture": "g", "steps": [{"repeat": 2, "steps": [{"free": "x"}]}]})",
       "'free' cannot be captured in a graph"},
      {R"({"free": "z"})", "there is no buffer 'z'"},
      {R"({"set": {"ruond": 1}})",
       "there is no variable 'ruond'; did you mean 'round'?; declare it in \"variables\"; there are round"},
      {R"({"set": {"sms": 1}})", "'sms' means the number of multiprocessors everywhere"},
      {R"({"allocate": "1z", "value": "zeros:i32[1]"})", "'1z' is no name of a buffer"},
      {R"({"repeat": 2, "as": "rank", "steps": []})",
       "'rank' means the number of the rank everywhere; a variable needs another name"},
      {R"({"call": "g", "a": "x", "b": "x", "out": "x"})", "there is no operator 'g'; the program has no operators"},
      {R"({"expect": "x", "value": 0, "tolerance": "no"})", "'no' is not accepted; write ABSOLUTE"},
  };
  for (const Mistake &mistake : mistakes)
    EXPECT_THAT(errorOf(withSteps(mistake.steps)), HasSubstr(mistake.message)) << mistake.steps;
}

TEST(Reader, MistakesInDeclarations) {
  const Mistake mistakes[] = {
      {R"({"stpes": []})", "p.json:1:2: error: stpes: a program has no 'stpes'; did you mean 'steps'?"},
      {R"({"buffers": {}})", "a program needs 'steps', which every rank does, or 'hosts'"},
      {R"({"buffers": {"x": "zeros:i32[4]"}, "results": ["y"], "steps": []})", "there is no buffer 'y'"},
      {R"({"buffers": {"x": "zeros:i32[4]"}, "results": "x", "steps": []})", "write a list of names of buffers"},
      {R"({"buffers": {"x": "zeros:i32[4]"}, "results": [], "steps": []})", "results: an empty list is not accepted"},
      {R"({"steps": [], "hosts": []})", "a program has 'steps', which every rank does, or 'hosts', not both"},
      {R"({"ranks": 0, "steps": []})", "ranks: 0 is not accepted; write an integer from 1 to 1024"},
      {R"({"ranks": 1.5, "steps": []})", "1.5 is not accepted"},
      {R"({"ranks": 4, "ranks_per_node": 3, "steps": []})",
       "p.json:1:32: error: ranks_per_node: 4 ranks do not fill nodes of 3; write a divisor of 4"},
      {R"({"ranks_per_node": 0, "steps": []})", "ranks_per_node: 0 is not accepted; write an integer from 1 to 1024"},
      {R"({"sms": 9999, "steps": []})", "sms: 9999 is not accepted; write an integer from 1 to 1024"},
      {R"({"streams": ["a", "a"], "steps": []})", "there is a stream 'a' already"},
      {R"({"streams": ["default"], "steps": []})", "there is a stream 'default' already"},
      {R"({"streams": {"a": 1}, "steps": []})", "an object is not accepted; write a list of names of streams"},
      {R"({"streams": ["a"], "events": ["a"], "steps": []})", "'a' is a stream; an event needs a name of its own"},
      {R"({"variables": {"sms": 1}, "steps": []})", "'sms' means the number of multiprocessors everywhere"},
      {R"({"operators": {"g": {"operator": "ag_gem", "m": 1, "n": 1, "k": 1}}, "steps": []})",
       "there is no operator 'ag_gem'; did you mean 'ag_gemm'?"},
      {R"({"operators": {"g": {"operator": "ag_gemm", "m": 0, "n": 1, "k": 1}}, "steps": []})",
       "operators.g.m: 0 is not accepted"},
      {R"({"operators": {"g": {"operator": "ag_gemm", "m": 1, "n": 1}}, "steps": []})", "operator 'g' needs 'k'"},
      {R"({"operators": {"g": {"operator": "ag_gemm", "m": 1, "n": 1, "k": 1, "type": "i32"}}, "steps": []})",
       "operators take bf16, fp16 and fp32"},
      {R"({"operators": {"r": {"operator": "all_reduc", "elements": 1}}, "steps": []})", "did you mean 'all_reduce'?"},
      {R"({"operators": {"r": {"operator": "all_reduce"}}, "steps": []})", "operator 'r' needs 'elements'"},
      {R"({"operators": {"r": {"operator": "all_reduce", "elements": 1, "reduction": "or"}}, "steps": []})",
       "reduction 'or'; sum, max, min and average are accepted"},
      {R"({"operators": {"r": {"operator": "broadcast", "elements": 1, "root": 2}}, "ranks": 2, "steps": []})",
       "operators.r.root: 2 is not accepted"},
      {R"({"operators": {"r": {"operator": "all_reduce", "elements": 1}}, "buffers": {"x": "zeros:bf16[1]"},
       "steps": [{"call": "r", "a": "x", "b": "x", "out": "x"}]})",
       "operator 'r' takes 'in' and 'out'"},
      {R"({"hosts": [{"steps": []}]})", "a host needs 'rank'"},
      {R"({"hosts": [{"rank": 0, "steps": []}, {"rank": "all", "steps": []}]})", "two hosts of one rank have no name"},
      {R"([])", "a program is a list; write an object"},
  };
  for (const Mistake &mistake : mistakes)
    EXPECT_THAT(errorOf(mistake.steps), HasSubstr(mistake.message)) << mistake.steps;
}

TEST(Reader, FilesThatCannotBeRead) {
  EXPECT_THAT(readProgram("/nowhere/p.json").status().message(),
              AllOf(HasSubstr("run file"), HasSubstr("/nowhere/p.json")));
}

} // namespace
