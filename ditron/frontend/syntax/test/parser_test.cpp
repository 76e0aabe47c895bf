//===- parser_test.cpp - Trees, ranges and unparse ----------------------------------------------------------------===//
//
// Golden dumps of small texts. Breadth is covered elsewhere: compare_with_cpython.py checks trees and ranges over whole
// folders of Python files, and kernel_files_test.cpp parses realistic kernel files.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

/// The tree of a text that must parse without a message.
std::string tree(const std::string &text, bool ranges = false) {
  Parsed parsed(text);
  EXPECT_EQ(parsed.messages(), "") << text;
  return parsed.tree(ranges);
}

TEST(Parser, KernelFunction) {
  EXPECT_EQ(tree("@triton.jit\n"
                 "def add(x, /, n: int, *, BLOCK: tl.constexpr = 8, **kw) -> None:\n"
                 "    return x + n * 2\n"),
            R"(Module
  FunctionDef add
    decorator: Attribute jit
      value: Name triton
    param: x (positional-only)
    param: n
      annotation: Name int
    param: BLOCK (keyword-only)
      annotation: Attribute constexpr
        value: Name tl
      default: Constant 8
    param: kw (**)
    returns: Constant None
    body: Return
      value: BinOp +
        left: Name x
        right: BinOp *
          left: Name n
          right: Constant 2
)");
}

TEST(Parser, ControlFlow) {
  EXPECT_EQ(tree("for i, j in range(3):\n"
                 "    if a: pass\n"
                 "    elif b: break\n"
                 "    else: continue\n"
                 "else:\n"
                 "    while not c: x = y = 1; z += 2\n"),
            R"(Module
  For
    target: Tuple
      element: Name i
      element: Name j
    iter: Call
      callee: Name range
      arg: Constant 3
    body: If
      condition: Name a
      body: Pass
      else: If
        condition: Name b
        body: Break
        else: Continue
    else: While
      condition: UnaryOp not
        operand: Name c
      body: Assign
        target: Name x
        target: Name y
        value: Constant 1
      body: AugAssign +=
        target: Name z
        value: Constant 2
)");
}

TEST(Parser, ExpressionForms) {
  EXPECT_EQ(tree("f(a, *b, k=c, **d)[i, 1:2:n, ...].e"), R"(Module
  ExprStmt
    value: Attribute e
      value: Subscript
        value: Call
          callee: Name f
          arg: Name a
          arg: Starred
            value: Name b
          keyword: k
            value: Name c
          keyword: **
            value: Name d
        index: Tuple
          element: Name i
          element: Slice
            lower: Constant 1
            upper: Constant 2
            step: Name n
          element: Constant Ellipsis
)");
  EXPECT_EQ(tree("a < b <= c is not d not in e and x or y if p else lambda q, *r: (n := q)"), R"(Module
  ExprStmt
    value: IfExp
      condition: Name p
      then: BoolOp or
        value: BoolOp and
          value: Compare <, <=, is not, not in
            left: Name a
            right: Name b
            right: Name c
            right: Name d
            right: Name e
          value: Name x
        value: Name y
      else: Lambda
        param: q
        param: r (*)
        body: NamedExpr n
          value: Name q
)");
  EXPECT_EQ(tree("{1: a, **b}, {c, *d}, [e for e in f if g if h], {i: j for i, in k}, ()"), R"(Module
  ExprStmt
    value: Tuple
      element: Dict
        key: Constant 1
        value: Name a
        **: Name b
      element: Set
        element: Name c
        element: Starred
          value: Name d
      element: Comprehension list
        element: Name e
        for
          target: Name e
          iter: Name f
          if: Name g
          if: Name h
      element: Comprehension dict
        key: Name i
        element: Name j
        for
          target: Tuple
            element: Name i
          iter: Name k
      element: Tuple
)");
}

TEST(Parser, FStrings) {
  EXPECT_EQ(tree(R"(s = "a" f"b{{{x!r:>{w}.2f}}}\n{y = }" "tail")"), R"(Module
  Assign
    target: Name s
    value: JoinedStr
      part: Constant 'ab{'
      part: FormattedValue !r
        value: Name x
        format: JoinedStr
          part: Constant '>'
          part: FormattedValue
            value: Name w
          part: Constant '.2f'
      part: Constant '}\ny = '
      part: FormattedValue !r
        value: Name y
      part: Constant 'tail'
)");
  // Fields have true ranges in the file.
  EXPECT_EQ(tree(R"(f"ab{x + 1:{w}}")", /*ranges=*/true), R"(Module
  ExprStmt <1:1-1:17>
    value: JoinedStr <1:1-1:17>
      part: Constant 'ab' <1:3-1:5>
      part: FormattedValue <1:5-1:16>
        value: BinOp + <1:6-1:11>
          left: Name x <1:6-1:7>
          right: Constant 1 <1:10-1:11>
        format: JoinedStr <1:12-1:15>
          part: FormattedValue <1:12-1:15>
            value: Name w <1:13-1:14>
)");
}

TEST(Parser, Constants) {
  EXPECT_EQ(tree("0xff, 1_000, 1.5e3, 1e400, 'a\\x41\\u00e9\\q' \"b\", r'\\n', b'\\xff', True, None, ..."), R"(Module
  ExprStmt
    value: Tuple
      element: Constant 255
      element: Constant 1000
      element: Constant 1500.0
      element: Constant inf
      element: Constant 'aAé\\qb'
      element: Constant '\\n'
      element: Constant b'\xff'
      element: Constant True
      element: Constant None
      element: Constant Ellipsis
)");
  EXPECT_EQ(tree("3j; '\\N{DASH}'; '\\ud800'"), R"(Module
  ExprStmt
    value: Unsupported (complex numbers are not supported)
  ExprStmt
    value: Unsupported (the escape \N{...} is not supported; write the character or its \u escape)
  ExprStmt
    value: Unsupported (lone surrogates in strings are not supported)
)");
}

TEST(Parser, OtherStatements) {
  EXPECT_EQ(tree("import a.b as c, d\n"
                 "from ..e import (f as g, h,)\n"
                 "from . import *\n"
                 "x: int = 1\n"
                 "(y): int\n"
                 "with p as q, r: raise A from B\n"
                 "try: del a, b[0]\n"
                 "except E as e: assert c, 'm'\n"
                 "finally: global v, w\n"
                 "class C(B, m=M): pass\n"
                 "async def g(): await (yield)\n"
                 "match z:\n"
                 "    case [1, {'k': v}] if v: pass\n"
                 "match = 1\n"
                 "type T[X] = X\n"),
            R"(Module
  Import
    name: a.b as c
    name: d
  ImportFrom ..e
    name: f as g
    name: h
  ImportFrom .
    name: *
  AnnAssign
    target: Name x
    annotation: Name int
    value: Constant 1
  AnnAssign (not simple)
    target: Name y
    annotation: Name int
  With
    context: Name p
    as: Name q
    context: Name r
    body: Raise
      exception: Name A
      cause: Name B
  Try
    body: Delete
      target: Name a
      target: Subscript
        value: Name b
        index: Constant 0
    except as e
      type: Name E
      body: Assert
        condition: Name c
        message: Constant 'm'
    finally: Global
      name: v
      name: w
  ClassDef C
    base: Name B
    keyword: m
      value: Name M
    body: Pass
  FunctionDef g (async)
    body: ExprStmt
      value: Await
        value: Yield
  Match
    subject: Name z
    case
      guard: Name v
      body: Pass
  Assign
    target: Name match
    value: Constant 1
  TypeAlias T
    value: Name X
)");
}

TEST(Parser, Ranges) {
  EXPECT_EQ(tree("x = (a + b) * c[\n  1]  # end\nif x: # why\n  y(\n  )\n\n# after\n", /*ranges=*/true), R"(Module
  Assign <1:1-2:5>
    target: Name x <1:1-1:2>
    value: BinOp * <1:5-2:5>
      left: BinOp + <1:6-1:11>
        left: Name a <1:6-1:7>
        right: Name b <1:10-1:11>
      right: Subscript <1:15-2:5>
        value: Name c <1:15-1:16>
        index: Constant 1 <2:3-2:4>
  If <3:1-5:4>
    condition: Name x <3:4-3:5>
    body: ExprStmt <4:3-5:4>
      value: Call <4:3-5:4>
        callee: Name y <4:3-4:4>
)");
  Parsed parsed("@dec\ndef f(a, b: int = 2) -> int:\n    pass\n");
  auto *function = llvm::cast<ast::FunctionDef>(parsed.module->body.front());
  auto text = [&](SourceRange range) { return parsed.sources.textOf(range).str(); };
  EXPECT_EQ(text(function->range), "@dec\ndef f(a, b: int = 2) -> int:\n    pass");
  EXPECT_EQ(text(function->headerRange), "def f(a, b: int = 2) -> int:");
  EXPECT_EQ(text(function->name.range), "f");
  EXPECT_EQ(text(function->params[1].range), "b: int = 2");
  EXPECT_EQ(text(function->params[1].name.range), "b");
  Parsed operation("a  **  b");
  EXPECT_EQ(operation.sources.textOf(llvm::cast<ast::BinOp>(operation.expression())->opRange), "**");
}

TEST(Parser, Unparse) {
  for (const char *text : {"a + b * c",
                           "(a + b) * c",
                           "a - (b - c)",
                           "a - b - c",
                           "-x ** -y",
                           "(-x) ** y",
                           "(a ** b) ** c",
                           "a ** b ** c",
                           "not a == b",
                           "(not a) == b",
                           "a or b and not c",
                           "(a or b) and c",
                           "a if b else c if d else e",
                           "(a if b else c) if d else e",
                           "lambda x, /, y=1, *z, k, **w: x",
                           "(lambda: 1)()",
                           "f(a, *b, k=c, **d)",
                           "x[:, None]",
                           "x[1:2, ::3]",
                           "x[i]",
                           "x[(),]",
                           "x[a, b][c]",
                           "(1).real",
                           "1.5",
                           "1e309",
                           "'it' 's'",
                           "a is not b in c",
                           "(a < b) < c",
                           "[a, *b]",
                           "(a,)",
                           "(a, b)",
                           "{a: b, **c}",
                           "{a, b}",
                           "{}",
                           "()",
                           "[x for x in y if z]",
                           "f((x for x in y))",
                           "f(x for x in y)",
                           "{k: v for k, v in d}",
                           "(n := 3) + 1",
                           "~a & b | c ^ d",
                           "a << b + c",
                           "f\"a{x!r:>{w}} {{}}\"",
                           "await_",
                           "...",
                           "a @ b",
                           "x.y.z(1)[2]",
                           "-1 .real",
                           "(yield)",
                           "f\"{ {1: 2}[1]}\""}) {
    Parsed first(text);
    ASSERT_FALSE(first.diagnostics.hasErrors()) << text << "\n" << first.messages();
    std::string once = unparse(first.expression());
    Parsed second(once);
    ASSERT_FALSE(second.diagnostics.hasErrors()) << text << " -> " << once << "\n" << second.messages();
    EXPECT_EQ(dump(first.expression()), dump(second.expression())) << text << " -> " << once;
    EXPECT_EQ(unparse(second.expression()), once);
  }
  EXPECT_EQ(unparse(Parsed("( (a+b)*(c) )").expression()), "(a + b) * c");
  EXPECT_EQ(unparse(Parsed("K%BLOCK==0 and(x is  None)").expression()), "K % BLOCK == 0 and x is None");
  EXPECT_EQ(unparse(Parsed("a - (b + c)").expression()), "a - (b + c)");
  EXPECT_EQ(unparse(Parsed("tl.load(p+o,mask=o<n)").expression()), "tl.load(p + o, mask=o < n)");
}

TEST(Parser, ChildrenAndWalk) {
  Parsed parsed("def f(a=p):\n  if a: return b\n  for i in c: x = [d for e in g]\n");
  std::string names;
  ast::walk(parsed.module->body.front(), [&](const ast::Node *node) {
    if (auto *name = llvm::dyn_cast<ast::Name>(node))
      names += name->id.str() + " ";
    return !llvm::isa<ast::Return>(node);
  });
  EXPECT_EQ(names, "p a i c x d e g ");
  EXPECT_EQ(Parsed("a + b + c").expression()->height, 3);
}

TEST(Parser, ExpressionsOnTheirOwn) {
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  ast::Module module(0);
  const SourceFile &good = sources.file(*sources.add("annotation", " tl.constexpr \n"));
  ast::Expr *expression = parseExpression(module, good, diagnostics);
  ASSERT_NE(expression, nullptr);
  EXPECT_EQ(unparse(expression), "tl.constexpr");
  const SourceFile &bad = sources.file(*sources.add("annotation", "a b"));
  EXPECT_EQ(parseExpression(module, bad, diagnostics), nullptr);
  EXPECT_EQ(diagnostics.diagnostics().back().message, "expected the end of the expression, found 'b'");
}

} // namespace
} // namespace ditron::frontend
