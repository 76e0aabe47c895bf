//===- stubs_test.cpp - Reading of stubs, and what they may not say -------------------------------------------------------===//
#include "ditron/frontend/stubs/Stubs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

/// Reads one stub tl.pyi; on errors the rendered messages.
struct Reading {
  explicit Reading(std::string text)
      : diagnostics(sources), stubs(readStubs({{"tl", "tl.pyi", std::move(text)}}, diagnostics)) {}
  std::string errors() const { return diagnostics.renderAll(); }

  SourceManager sources;
  DiagnosticEngine diagnostics;
  std::optional<Stubs> stubs;
};

TEST(Stubs, Functions) {
  Reading reading(R"(
@member
@handler("castTo", bits=4, keeps=True, kind=ScalarKind.Int32)
def cast(input: num, dtype: dtype, *rest, rounding: str | None = None, scale: num = -1, axes: shape = ()) -> tensor:
    """conversion
    in two lines"""
to = cast
)");
  ASSERT_TRUE(reading.stubs) << reading.errors();
  const StubFunction &cast = reading.stubs->functions.at(0);
  EXPECT_EQ(cast.handler, "castTo");
  EXPECT_EQ(cast.doc, "conversion in two lines");
  EXPECT_EQ(cast.parameterText(), "input: num, dtype: dtype, *rest, rounding: str=None, scale: num=-1, axes: shape=()");
  EXPECT_THAT(cast.modules, testing::ElementsAre("tl", "tl.tensor"));
  ASSERT_EQ(cast.fixed.size(), 3u);
  EXPECT_EQ(cast.fixed[0].name, "bits");
  EXPECT_EQ(cast.fixed[0].type, "int64_t");
  EXPECT_EQ(cast.fixed[1].value, "true");
  EXPECT_EQ(cast.fixed[2].type, "ScalarKind");
  EXPECT_EQ(cast.fixed[2].value, "ScalarKind::Int32");
  const StubFunction &to = reading.stubs->functions.at(1);
  EXPECT_EQ(to.name, "to");
  EXPECT_EQ(to.doc, "the same as cast");
  EXPECT_EQ(to.params.size(), cast.params.size());
}

TEST(Stubs, HandlersAreNamedAfterFunctions) {
  Reading reading("def make_block_ptr(x) -> any:\n    \"\"\"doc\"\"\"\n");
  ASSERT_TRUE(reading.stubs) << reading.errors();
  EXPECT_EQ(reading.stubs->functions.at(0).handler, "makeBlockPtr");
}

TEST(Stubs, Declarations) {
  Reading reading(R"(
from . import math as numbers
float32: dtype
pi32_t: dtype = pointer_type(int32)
LIMIT: int = 7
old: dtype = refused("it is old")
const: annotation
"""a word"""
class Nan(enumeration):
    ALL: int = 0xFFFF
@library("random")
class Generator:
    """random numbers"""
    def __init__(self, seed, rounds: const = 10): ...
)");
  ASSERT_TRUE(reading.stubs) << reading.errors();
  EXPECT_EQ(reading.stubs->constants.size(), 6u);
  EXPECT_EQ(reading.stubs->constants[3].doc, "it is old");
  EXPECT_EQ(reading.stubs->constants[5].number, 0xFFFF);
  EXPECT_EQ(reading.stubs->constants[5].module, "tl.Nan");
  EXPECT_EQ(reading.stubs->submodules[0].name, "numbers");
  EXPECT_EQ(reading.stubs->submodules[0].module, "math");
  EXPECT_EQ(reading.stubs->functions[0].parameterText(), "seed, rounds: const=10");
}

struct Mistake {
  const char *text, *message;
};
class StubMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(StubMistakes, AreErrorsWithTheirPlace) {
  Reading reading(GetParam().text);
  EXPECT_FALSE(reading.stubs);
  EXPECT_THAT(reading.errors(), testing::HasSubstr(GetParam().message));
  EXPECT_THAT(reading.errors(), testing::HasSubstr("tl.pyi:"));
}

INSTANTIATE_TEST_SUITE_P(
    , StubMistakes,
    testing::Values(
        Mistake{"def f(x: number) -> None:\n  \"\"\"d\"\"\"\n", "'number' is no word of stubs"},
        Mistake{"def f(x) -> nothing:\n  \"\"\"d\"\"\"\n", "'nothing' is no word of stubs"},
        Mistake{"def f(x):\n  \"\"\"d\"\"\"\n", "a function says what it gives"},
        Mistake{"def f(x) -> None: ...\n", "'f' needs a docstring"},
        Mistake{"def f(x: int = None) -> None:\n  \"\"\"d\"\"\"\n", "a parameter of 'int' cannot have the default None"},
        Mistake{"def f(x: int = y) -> None:\n  \"\"\"d\"\"\"\n", "a default is None, True"},
        Mistake{"def f(*, x: int) -> None:\n  \"\"\"d\"\"\"\n", "stubs have no `*` without a name"},
        Mistake{"def f(**x) -> None:\n  \"\"\"d\"\"\"\n", "stubs have no `/` and no `**`"},
        Mistake{"@scope(\"grid\")\ndef f() -> None:\n  \"\"\"d\"\"\"\n", "unknown decorator, or a value"},
        Mistake{"@handler(\"h\", x=1.5)\ndef f() -> None:\n  \"\"\"d\"\"\"\n", "a handler takes True"},
        Mistake{"@handler(\"h\", 1)\ndef f() -> None:\n  \"\"\"d\"\"\"\n", "values for a handler are given by keyword"},
        Mistake{"@fast\ndef f() -> None:\n  \"\"\"d\"\"\"\n", "a decorator is @handler"},
        Mistake{"g = f\n", "this stub has no function 'f' above"},
        Mistake{"from .math import exp\n", "math.pyi declares no 'exp'"},
        Mistake{"x: float = 1.5\n", "a declaration is `x: dtype`"}, Mistake{"x = 1\n", "another name of a function is"},
        Mistake{"if True:\n  pass\n", "a stub holds imports"},
        Mistake{"def f() -> None:\n  \"\"\"d\"\"\"\ndef f() -> None:\n  \"\"\"d\"\"\"\n", "'f' is declared twice in tl"}));

} // namespace
} // namespace ditron::frontend
