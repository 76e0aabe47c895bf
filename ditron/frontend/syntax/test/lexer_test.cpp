//===- lexer_test.cpp - Tokens, indentation and mistakes of the lexer ---------------------------------------------===//
//
// Token lists are compared as text: names of the kinds, with the token's text where it varies.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

struct Lexed {
  explicit Lexed(std::string text)
      : diagnostics(sources), file(*sources.add("k.py", std::move(text))),
        tokens(tokenize(sources.file(file), diagnostics)) {}

  /// Kinds separated by blanks; tokens with varying text as kind(text).
  std::string kinds() const {
    std::string out;
    for (const Token &token : tokens) {
      out += (out.empty() ? "" : " ") + toString(token.kind).str();
      bool varies = token.kind == TokenKind::Name || token.kind == TokenKind::Number ||
                    token.kind == TokenKind::String || token.kind == TokenKind::FString;
      if (varies)
        out += "(" + sources.file(file).text().slice(token.begin, token.end).str() + ")";
    }
    return out;
  }
  std::string messages() const {
    std::string out;
    for (const Diagnostic &diagnostic : diagnostics.diagnostics()) {
      LineColumn begin = sources.beginOf(diagnostic.range), end = sources.endOf(diagnostic.range);
      out += std::to_string(begin.line) + ":" + std::to_string(begin.column) + "-" + std::to_string(end.line) + ":" +
             std::to_string(end.column) + ": " + diagnostic.message + "\n";
    }
    return out;
  }

  SourceManager sources;
  DiagnosticEngine diagnostics;
  FileId file;
  std::vector<Token> tokens;
};

TEST(Lexer, NamesKeywordsAndOperators) {
  EXPECT_EQ(Lexed("x **= y // not z\n").kinds(),
            "Name(x) DoubleStarEqual Name(y) DoubleSlash KwNot Name(z) Newline EndOfFile");
  EXPECT_EQ(Lexed("a:=b->c...d!=e<<=f@g").kinds(),
            "Name(a) ColonEqual Name(b) Arrow Name(c) Ellipsis Name(d) NotEqual Name(e) LeftShiftEqual Name(f) At "
            "Name(g) Newline EndOfFile");
  EXPECT_EQ(Lexed("größe_1 = π").kinds(), "Name(größe_1) Equal Name(π) Newline EndOfFile");
  EXPECT_EQ(Lexed("").kinds(), "EndOfFile");
  EXPECT_EQ(Lexed("# only a comment").kinds(), "EndOfFile");
}

TEST(Lexer, Numbers) {
  EXPECT_EQ(Lexed("1 1_000 0xFf_f 0o17 0b1_0 00 1. .5 1e5 1.5E-3_0 3j 1_0.0_1").kinds(),
            "Number(1) Number(1_000) Number(0xFf_f) Number(0o17) Number(0b1_0) Number(00) Number(1.) Number(.5) "
            "Number(1e5) Number(1.5E-3_0) Number(3j) Number(1_0.0_1) Newline EndOfFile");
  EXPECT_EQ(Lexed("1if 2else 3").kinds(), "Number(1) KwIf Number(2) KwElse Number(3) Newline EndOfFile");
  EXPECT_EQ(Lexed("x[1:2]").kinds(), "Name(x) LBracket Number(1) Colon Number(2) RBracket Newline EndOfFile");
  EXPECT_EQ(Lexed("012").messages(), "1:1-1:4: leading zeros in decimal integer literals are not permitted; use an 0o "
                                     "prefix for octal integers\n");
  for (const char *bad : {"1__0", "1_", "12abc", "1e", "1.5x", "0x", "0b2", "0o8", "0xg", "1_.5", "5L"}) {
    Lexed lexed(bad);
    EXPECT_EQ(lexed.kinds(), "Error Newline EndOfFile") << bad;
    EXPECT_EQ(lexed.diagnostics.errorCount(), 1u) << bad;
    EXPECT_EQ(lexed.messages().substr(0, 4), "1:1-") << bad;
  }
}

TEST(Lexer, Strings) {
  EXPECT_EQ(Lexed(R"('a' r'\')").kinds(), "String('a') Error Newline EndOfFile"); // the second quote is escaped
  EXPECT_EQ(Lexed(R"('a' r'\n' b"x" Rb'y' u'z' '' "" 'it\'s')").kinds(),
            R"(String('a') String(r'\n') String(b"x") String(Rb'y') String(u'z') String('') String("") )"
            R"(String('it\'s') Newline EndOfFile)");
  EXPECT_EQ(Lexed("'''a\n'b''c\n''' \"\"\"\"q\"\"\"").kinds(),
            "String('''a\n'b''c\n''') String(\"\"\"\"q\"\"\") Newline EndOfFile");
  EXPECT_EQ(Lexed("'a\\\nb' x'c'").kinds(), "String('a\\\nb') Name(x) String('c') Newline EndOfFile");
}

TEST(Lexer, FStringsNest) {
  EXPECT_EQ(Lexed(R"(f"{a["b"]:{w}.{d}} {{x}} {f"{y}"}" z)").kinds(),
            R"(FString(f"{a["b"]:{w}.{d}} {{x}} {f"{y}"}") Name(z) Newline EndOfFile)");
  EXPECT_EQ(Lexed(R"(rf'\{x}' f'{x!r:>10}' F'''{
a
}''')")
                .kinds(),
            "FString(rf'\\{x}') FString(f'{x!r:>10}') FString(F'''{\na\n}''') Newline EndOfFile");
  EXPECT_EQ(Lexed(R"(f"{x != y}" f"{(lambda: 1)()}" f"{ {1: 2}[1] }" f"\N{DASH}")").kinds(),
            R"(FString(f"{x != y}") FString(f"{(lambda: 1)()}") FString(f"{ {1: 2}[1] }") FString(f"\N{DASH}") )"
            "Newline EndOfFile");
}

TEST(Lexer, LinesAndIndentation) {
  EXPECT_EQ(Lexed("if a:\n  b\n\n  # c\n  if d:\n     e\nf\n").kinds(),
            "KwIf Name(a) Colon Newline Indent Name(b) Newline KwIf Name(d) Colon Newline Indent Name(e) Newline "
            "Dedent Dedent Name(f) Newline EndOfFile");
  EXPECT_EQ(Lexed("if a:\n\tb\n        c").kinds(),
            "KwIf Name(a) Colon Newline Indent Name(b) Newline Name(c) Newline Dedent EndOfFile");
  EXPECT_EQ(Lexed("a = (1,\n  2\n) \\\n + 3\r\nb\rc").kinds(),
            "Name(a) Equal LParen Number(1) Comma Number(2) RParen Plus Number(3) Newline Name(b) Newline Name(c) "
            "Newline EndOfFile");
  EXPECT_EQ(Lexed("\xef\xbb\xbfx").kinds(), "Name(x) Newline EndOfFile");
}

TEST(Lexer, IndentationMistakes) {
  EXPECT_EQ(Lexed("if a:\n    b\n  c\n").messages(), "3:1-3:3: unindent does not match any outer indentation level\n");
  EXPECT_EQ(Lexed("if a:\n    b\n  c\n").kinds(),
            "KwIf Name(a) Colon Newline Indent Name(b) Newline Name(c) Newline Dedent EndOfFile");
  EXPECT_EQ(Lexed("if a:\n        b\n\tc\n").messages(),
            "3:1-3:2: inconsistent use of tabs and spaces in indentation\n");
}

TEST(Lexer, UnterminatedStrings) {
  EXPECT_EQ(Lexed("x = 'abc\ny").messages(), "1:5-1:9: unterminated string literal\n");
  EXPECT_EQ(Lexed("x = 'abc\ny").kinds(), "Name(x) Equal Error Newline Name(y) Newline EndOfFile");
  EXPECT_EQ(Lexed("x = r'''abc\ny").messages(), "1:5-1:9: unterminated triple-quoted string literal\n");
  EXPECT_EQ(Lexed("f'a{b' + c").messages(), "1:6-1:11: unterminated string literal\n");
  EXPECT_EQ(Lexed("f'a{b + c").messages(), "1:4-1:5: f-string: '{' was never closed\n");
  EXPECT_EQ(Lexed("f'{a!x}'").messages(), "1:5-1:7: f-string: invalid conversion: expected '!s', '!r' or '!a'\n");
  EXPECT_EQ(Lexed("f'{a:{b:{c:{d}}}}'").messages(), "1:12-1:13: f-string: expressions nested too deeply\n");
}

TEST(Lexer, Brackets) {
  EXPECT_EQ(Lexed("a)").messages(), "1:2-1:3: unmatched ')'\n");
  EXPECT_EQ(Lexed("(a]\nb").messages(), "1:3-1:4: closing ']' does not match opening '('\n");
  EXPECT_EQ(Lexed("(a]\nb").kinds(), "LParen Name(a) Error Newline Name(b) Newline EndOfFile");
  EXPECT_EQ(Lexed("f(g[1)\nb").kinds(),
            "Name(f) LParen Name(g) LBracket Number(1) Error Newline Name(b) Newline EndOfFile");
  EXPECT_EQ(Lexed("x = (1,\n2").messages(), "1:5-1:6: '(' was never closed\n");
  // The next statement shows that the bracket is open, so that the rest of the file is still read.
  Lexed open("x = foo(1,\nreturn y\nz");
  EXPECT_EQ(open.messages(), "1:8-1:9: '(' was never closed\n");
  EXPECT_EQ(open.kinds(), "Name(x) Equal Name(foo) LParen Number(1) Comma Error Newline KwReturn Name(y) Newline "
                          "Name(z) Newline EndOfFile");
}

TEST(Lexer, BadCharactersAndEncoding) {
  EXPECT_EQ(Lexed("a ? b").messages(), "1:3-1:4: invalid character '?'\n");
  EXPECT_EQ(Lexed("a “b”").messages(),
            "1:3-1:6: invalid character '“' (U+201C)\n1:7-1:10: invalid character '”' (U+201D)\n");
  EXPECT_EQ(Lexed("a\xc2\xa0"
                  "b")
                .messages(),
            "1:2-1:4: invalid character (U+00A0)\n");
  EXPECT_EQ(Lexed("ab\n\xff").messages(), "2:1-2:2: the file is not UTF-8: invalid byte 0xff\n");
  EXPECT_EQ(Lexed(std::string("a\0b", 3)).messages(), "1:2-1:3: the file contains a null byte\n");
  EXPECT_EQ(Lexed("a \\ b\nc").messages(), "1:3-1:4: unexpected character after line continuation character\n");
  EXPECT_EQ(Lexed("a \\\n").messages(), "1:3-1:4: unexpected end of file after a line continuation\n");
}

} // namespace
} // namespace ditron::frontend
