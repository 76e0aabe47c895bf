//===- recovery_test.cpp - Mistakes, recovery and limits of the parser --------------------------------------------===//
//
// One mistake gives one message at the right place, and what follows is still parsed.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <chrono>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

std::string messagesOf(const std::string &text) { return briefMessages(Parsed(text)); }

TEST(Recovery, OneMistakeOneMessage) {
  EXPECT_EQ(messagesOf("x = \ny = 1\n"), "1:4: expected an expression, found the end of the line\n");
  EXPECT_EQ(messagesOf("x = 1 2\n"), "1:7: expected the end of the statement, found '2'\n");
  EXPECT_EQ(messagesOf("f(a b)\n"), "1:5: expected ',' or ')' in the argument list, found 'b'\n");
  EXPECT_EQ(messagesOf("def f(a:\n  pass\n"), "1:6: '(' was never closed\n");
  EXPECT_EQ(messagesOf("x = (1 + 2\ny = 3\n"), "1:5: '(' was never closed\n");
  EXPECT_EQ(messagesOf("def f():\n    x = g(1, 2\n    y = 3\n    return y\n"), "2:10: '(' was never closed\n");
  EXPECT_EQ(messagesOf("def f():\n    x = [1,\n    y = 3\n\ndef g(:\n  pass\n"),
            "2:9: '[' was never closed\n5:6: '(' was never closed\n");
  EXPECT_EQ(messagesOf("if a = b:\n    c\nd\n"), "1:6: expected ':' after 'if', found '='\n");
  EXPECT_EQ(messagesOf("if a\n    c\nd\n"), "1:5: expected ':' after 'if', found the end of the line\n");
  EXPECT_EQ(messagesOf("for x on y:\n    c\n"), "1:7: expected 'in' after the target of 'for', found 'on'\n");
  EXPECT_EQ(messagesOf("def f():\nx = 1\n"),
            "1:9: expected an indented block after the function definition on line 1\n");
  EXPECT_EQ(messagesOf("x = 1\n    y = 2\nz\n"), "2:5: unexpected indent\n");
  EXPECT_EQ(messagesOf("else: pass\n"), "1:1: expected a statement, found 'else'\n");
  EXPECT_EQ(messagesOf("try:\n  a\nb\n"), "3:1: expected 'except' or 'finally' after the block of 'try', found 'b'\n");
  EXPECT_EQ(messagesOf("x = 'abc\ny = [1, 2\n"), "1:5: unterminated string literal\n2:5: '[' was never closed\n");
  EXPECT_EQ(messagesOf("x = 10 ** 5 $ 3\n"), "1:13: invalid character '$'\n");
  EXPECT_EQ(messagesOf("x := 3\n"), "1:3: a named expression needs parentheses here; write '=' to assign\n");
  EXPECT_EQ(messagesOf("@a\nx = 1\n"), "2:1: expected 'def' or 'class' after the decorators, found 'x'\n");
  EXPECT_EQ(messagesOf("x = 'a' b'b'\n"), "1:9: cannot mix bytes and nonbytes literals\n");
  EXPECT_EQ(messagesOf("x = '\\x4'\n"), "1:6: truncated \\xXX escape\n");
  EXPECT_EQ(messagesOf("f'{}'; f'{a b}'; f'}'\n"), "1:3: f-string: empty expression not allowed\n");
  EXPECT_EQ(messagesOf("f'{a b}'\n"),
            "1:6: expected '}', '!' or ':' after the expression of the f-string, found 'b'\n");
  EXPECT_EQ(messagesOf("f'a}'\n"), "1:4: f-string: single '}' is not allowed\n");
}

TEST(Recovery, TargetsAndParameters) {
  EXPECT_EQ(messagesOf("f() = 1\n"), "1:1: cannot assign to a function call\n");
  EXPECT_EQ(messagesOf("(a, 1) = b\n"), "1:5: cannot assign to a literal\n");
  EXPECT_EQ(messagesOf("a, b += 1\n"), "1:1: a tuple or list is an illegal target of an augmented assignment\n");
  EXPECT_EQ(messagesOf("*a = b\n"), "1:1: starred assignment target must be in a list or tuple\n");
  EXPECT_EQ(messagesOf("a, b: int = 1\n"), "1:1: only a name, an attribute or a subscript can be annotated\n");
  EXPECT_EQ(messagesOf("del a + b\n"), "1:5: cannot delete an expression\n");
  EXPECT_EQ(messagesOf("for f(x) in y: pass\n"), "1:5: cannot assign to a function call\n");
  EXPECT_EQ(messagesOf("def f(a, a): pass\n"), "1:10: duplicate argument 'a' in function definition\n");
  EXPECT_EQ(messagesOf("def f(a=1, b): pass\n"), "1:12: non-default argument follows default argument\n");
  EXPECT_EQ(messagesOf("def f(*): pass\n"), "1:7: named arguments must follow bare *\n");
  EXPECT_EQ(messagesOf("def f(**k, a): pass\n"), "1:12: arguments cannot follow var-keyword argument\n");
  EXPECT_EQ(messagesOf("f(a=1, a=2)\n"), "1:8: keyword argument repeated: a\n");
  EXPECT_EQ(messagesOf("f(a=1, b)\n"), "1:8: positional argument follows keyword argument\n");
}

TEST(Recovery, TheRestIsStillParsed) {
  Parsed parsed("def good(): return 1\n"
                "def bad(x y):\n"
                "    if a:\n"
                "        b\n"
                "def half():\n"
                "    x = )\n"
                "    y = 2\n"
                "    while :\n"
                "        z\n"
                "    return y\n"
                "last = 3\n");
  EXPECT_EQ(briefMessages(parsed), "6:9: unmatched ')'\n"
                                   "2:11: expected ',' or ')' after a parameter, found 'y'\n"
                                   "8:11: expected an expression, found ':'\n");
  ASSERT_EQ(parsed.module->body.size(), 3u);
  EXPECT_EQ(dump(parsed.module->body[1]), "FunctionDef half\n"
                                          "  body: Assign\n"
                                          "    target: Name y\n"
                                          "    value: Constant 2\n"
                                          "  body: Return\n"
                                          "    value: Name y\n");
}

TEST(Recovery, StopsAfterTwentyErrors) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "x = = 1\n";
  Parsed parsed(text);
  EXPECT_EQ(parsed.diagnostics.errorCount(), DiagnosticEngine::maxErrorsPerFile);
}

TEST(Recovery, RenderedWithCaret) {
  EXPECT_EQ(Parsed("if a = b:\n    c\n").messages(),
            "k.py:1:6: error: expected ':' after 'if', found '='\n"
            "if a = b:\n"
            "     ^\n"
            "note: use '==' to compare and ':=' to assign inside an expression\n");
}

//===--------------------------------------------------------------------------------------------------------------===//
// Limits
//===--------------------------------------------------------------------------------------------------------------===//

std::string repeat(const std::string &text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

TEST(Limits, DeepNestingIsAnError) {
  // Every way to recurse, far deeper than any stack would bear, gives one message each.
  const char *openings[] = {
      "(",    "[",   "{",      "{1:",          "f(",           "x[",      "-",  "not ",    "lambda: ", "1 if 1 else ",
      "(*",   "{**", "2**",    "*(",           "[x for x in ", "(yield ", "~+", "await (", "x[1:",     "f(a=",
      "f(**", "f(*", "(n := ", "f(x for x in "};
  for (const char *opening : openings) {
    Parsed parsed("y = " + repeat(opening, 100000) + "\nz = 1\n");
    EXPECT_GE(parsed.diagnostics.errorCount(), 1u) << opening;
    EXPECT_LE(parsed.diagnostics.errorCount(), 2u) << opening << "\n" << parsed.messages().substr(0, 2000);
  }
  Parsed targets("for " + repeat("(", 100000) + "x in y: pass\n");
  EXPECT_TRUE(targets.diagnostics.hasErrors());
  Parsed deletion("del " + repeat("(", 100000) + "x\n");
  EXPECT_TRUE(deletion.diagnostics.hasErrors());
  EXPECT_EQ(messagesOf("x = " + repeat("(", 201) + "1" + repeat(")", 201)).substr(0, 70),
            "1:205: the expression is nested too deeply: at most 200 levels\n");
  EXPECT_EQ(messagesOf("x = " + repeat("(", 150) + "1" + repeat(")", 150)), "");
}

TEST(Limits, LongChainsAreBoundedInHeight) {
  EXPECT_EQ(messagesOf("x = a" + repeat(" + a", 900) + "\n"), "");
  std::string message = "1:5: the expression is too complex: more than 1000 operations are chained; use a variable "
                        "for a part of it\n";
  EXPECT_EQ(messagesOf("x = a" + repeat(" + a", 100000) + "\n"), message);
  EXPECT_EQ(messagesOf("x = a" + repeat(".b", 100000) + "\n"), message);
  EXPECT_EQ(messagesOf("x = a" + repeat("()", 100000) + "\n"), message);
  // Lists, comparisons and `and` chains are flat.
  EXPECT_EQ(messagesOf("x = [" + repeat("a, ", 100000) + "]\n"), "");
  EXPECT_EQ(messagesOf("x = a" + repeat(" and a", 100000) + "\n"), "");
  EXPECT_EQ(messagesOf("x = a" + repeat(" < a", 100000) + "\n"), "");
  EXPECT_EQ(messagesOf("x = 'a'" + repeat(" 'b'", 100000) + "\n"), "");
}

TEST(Limits, Blocks) {
  std::string nested, chain = "if a: b\n";
  for (size_t i = 0; i < 300; ++i)
    nested += std::string(i, ' ') + "if a:\n";
  Parsed parsed(nested + std::string(300, ' ') + "b\nz = 1\n");
  EXPECT_EQ(briefMessages(parsed), "101:101: too many levels of indentation: at most 100\n");
  EXPECT_EQ(parsed.module->body.size(), 2u);
  Parsed elifs(chain + repeat("elif a: b\n", 5000) + "z = 1\n");
  EXPECT_EQ(elifs.diagnostics.diagnostics().front().message, "the if-elif chain is too long: at most 500 links");
  EXPECT_EQ(messagesOf(chain + repeat("elif a: b\n", 400)), "");
}

TEST(Limits, NestedFStrings) {
  EXPECT_EQ(messagesOf("f'{f\"{x}\"}'"), "");
  std::string open, close;
  for (int i = 0; i < 1000; ++i) {
    open += i % 2 ? "f'{" : "f\"{";
    close = (i % 2 ? "}'" : "}\"") + close;
  }
  Parsed parsed(open + "x" + close);
  EXPECT_EQ(parsed.diagnostics.diagnostics().front().message, "f-strings are nested too deeply: at most 16 levels");
}

TEST(Limits, HugeNumbers) {
  EXPECT_EQ(messagesOf("x = " + repeat("9", 4300)), "");
  EXPECT_EQ(messagesOf("x = " + repeat("9", 4301)),
            "1:5: the integer literal is too large: at most 4300 decimal digits or 65536 bits\n");
  EXPECT_EQ(messagesOf("x = 0x" + repeat("f", 20000)),
            "1:5: the integer literal is too large: at most 4300 decimal digits or 65536 bits\n");
  EXPECT_EQ(messagesOf("x = 0." + repeat("9", 100000) + "e99999999999999999999"), "");
}

TEST(Limits, LinearTime) {
  auto seconds = [](const std::string &text) {
    auto begin = std::chrono::steady_clock::now();
    Parsed parsed(text);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Ten thousand statements take some ten milliseconds; quadratic behaviour would take minutes.
  EXPECT_LT(seconds(repeat("x = f(a, b=c)[1:2] + \"s\" + f'{y}'\n", 30000)), 10.0);
  EXPECT_LT(seconds(repeat("f'{", 30000)), 10.0);
  EXPECT_LT(seconds(repeat("'\\N{", 30000)), 10.0);
  EXPECT_LT(seconds(repeat("(", 300000) + repeat("\n", 300000)), 10.0);
  EXPECT_LT(seconds(repeat("match(", 30000) + "\n"), 10.0);
}

} // namespace
} // namespace ditron::frontend
