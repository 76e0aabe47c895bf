//===- source_test.cpp - Line tables, ranges and the rendering of diagnostics -------------------------------------===//
//
// Rendered messages are compared as a whole: the caret line is the part that breaks unnoticed.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/Diagnostics.h"
#include "ditron/frontend/syntax/Source.h"

#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

TEST(Source, LinesAndColumns) {
  SourceManager sources;
  const SourceFile &file = sources.file(*sources.add("k.py", "ab\ncd\r\n\rx"));
  EXPECT_EQ(file.lineCount(), 4u);
  EXPECT_EQ(file.lineText(1), "ab");
  EXPECT_EQ(file.lineText(2), "cd");
  EXPECT_EQ(file.lineText(3), "");
  EXPECT_EQ(file.lineText(4), "x");
  EXPECT_EQ(file.lineText(5), "");
  EXPECT_EQ(file.lineColumn(0), (LineColumn{1, 1}));
  EXPECT_EQ(file.lineColumn(4), (LineColumn{2, 2}));
  EXPECT_EQ(file.lineColumn(1000), (LineColumn{4, 2}));
  for (uint32_t offset = 0; offset <= file.size(); ++offset)
    EXPECT_EQ(file.offsetOf(file.lineColumn(offset)), offset);
}

TEST(Source, RangesJoin) {
  SourceRange a{0, 4, 6}, b{0, 1, 5}, other{1, 0, 9};
  EXPECT_EQ(a.join(b), (SourceRange{0, 1, 6}));
  EXPECT_EQ(SourceRange().join(a), a);
  EXPECT_EQ(a.join(other), a);
  EXPECT_FALSE(SourceRange().isValid());
}

TEST(Source, MissingFileIsAnError) {
  SourceManager sources;
  auto id = sources.load("/nonexistent/kernel.py");
  ASSERT_FALSE(id.isOk());
  EXPECT_EQ(id.status().code(), StatusCode::NotFound);
  EXPECT_NE(id.status().message().find("/nonexistent/kernel.py"), std::string::npos);
  EXPECT_FALSE(sources.load("/").isOk());
}

/// A manager with one file and an engine over it.
struct Reporter {
  explicit Reporter(std::string text) : file(*sources.add("add.py", std::move(text))), engine(sources) {}
  SourceRange range(uint32_t begin, uint32_t end) const { return {file, begin, end}; }

  SourceManager sources;
  FileId file;
  DiagnosticEngine engine;
};

TEST(Diagnostics, CaretUnderline) {
  Reporter reporter("x = 1\n    tl.load(x + ofs)\n");
  reporter.engine.error(reporter.range(22, 25), "name 'ofs' is not defined")
      .note(reporter.range(0, 1), "called from here")
      .hint("did you mean 'offs'?");
  EXPECT_EQ(reporter.engine.renderAll(), "add.py:2:17: error: name 'ofs' is not defined\n"
                                         "    tl.load(x + ofs)\n"
                                         "                ^~~\n"
                                         "add.py:1:1: note: called from here\n"
                                         "x = 1\n"
                                         "^\n"
                                         "note: did you mean 'offs'?\n");
  EXPECT_EQ(reporter.engine.status().code(), StatusCode::CompileError);
  EXPECT_EQ(reporter.engine.status().message(), reporter.engine.renderAll());
}

TEST(Diagnostics, TabsWideAndInvalidCharacters) {
  Reporter tabs("\tx = y\n");
  tabs.engine.warning(tabs.range(5, 6), "w");
  EXPECT_EQ(tabs.engine.renderAll(), "add.py:1:6: warning: w\n        x = y\n            ^\n");
  EXPECT_TRUE(tabs.engine.status().isOk());
  Reporter wide("s = '日本' + é + \xff + q\n");
  auto at = static_cast<uint32_t>(wide.sources.file(wide.file).text().find('q'));
  wide.engine.error(wide.range(at, at + 1), "e");
  EXPECT_EQ(wide.engine.renderAll(), "add.py:1:25: error: e\ns = '日本' + é + ? + q\n                     ^\n");
}

TEST(Diagnostics, RangesOverLinesAndAtTheEnd) {
  Reporter reporter("f(a,\n  b)\n");
  reporter.engine.error(reporter.range(0, 9), "many lines");
  reporter.engine.error(reporter.range(4, 4), "at the line end");
  reporter.engine.error(reporter.range(10, 10), "at the end");
  EXPECT_EQ(reporter.engine.renderAll(), "add.py:1:1: error: many lines\nf(a,\n^~~~\n"
                                         "add.py:1:5: error: at the line end\nf(a,\n    ^\n"
                                         "add.py:3:1: error: at the end\n\n^\n");
}

TEST(Diagnostics, LongLinesAreCut) {
  Reporter reporter("x = '" + std::string(500, 'a') + "' + bad + '" + std::string(500, 'b') + "'\n");
  auto at = static_cast<uint32_t>(reporter.sources.file(reporter.file).text().find("bad"));
  reporter.engine.error(reporter.range(at, at + 3), "e");
  std::string text = reporter.engine.renderAll();
  EXPECT_LT(text.size(), 420u);
  size_t line = text.find('\n') + 1, caret = text.find('\n', line) + 1;
  EXPECT_EQ(text.substr(line, 3), "...");
  size_t column = text.find('^') - caret;
  EXPECT_EQ(text.substr(line + column, 3), "bad");
}

TEST(Diagnostics, TwentyErrorsPerFile) {
  Reporter reporter("x\n");
  for (int i = 0; i < 30; ++i)
    reporter.engine.error(reporter.range(0, 1), "e").note(reporter.range(0, 1), "n");
  EXPECT_EQ(reporter.engine.errorCount(), 30u);
  EXPECT_TRUE(reporter.engine.limitReached(reporter.file));
  ASSERT_EQ(reporter.engine.diagnostics().size(), 21u);
  EXPECT_EQ(reporter.engine.diagnostics().back().message, "more than 20 errors; the rest is not shown");
  FileId other = *reporter.sources.add("b.py", "y");
  reporter.engine.error({other, 0, 1}, "another file has its own limit");
  EXPECT_EQ(reporter.engine.diagnostics().back().message, "another file has its own limit");
}

} // namespace
} // namespace ditron::frontend
