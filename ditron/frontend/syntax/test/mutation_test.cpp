//===- mutation_test.cpp - Damaged kernel files never break the parser --------------------------------------------===//
//
// Pieces of the kernel files are damaged at random, from a fixed seed: the parser must end, keep to its limit of errors
// and leave ranges inside the file. Run under a sanitizer this is also the parser's fuzz test.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <gtest/gtest.h>
#include <iterator>
#include <random>

namespace ditron::frontend {
namespace {

const char *const splinters[] = {
    "(",      ")",      "[",      "]",    "{",      "}",      "f\"",   "f'",
    "\"\"\"", "'",      "\"",     "\\",   "\n",     "\t",     "    ",  "{{",
    "}}",     "!r",     ":",      ":=",   "lambda", " if ",   "else",  "for ",
    " in ",   "def f(", "\\N{",   "\\x",  "0x",     "1e",     "..",    "*",
    "**",     "@",      "async ", "not ", "é",      "“",      "=",     "yield",
    "\xff",   "\xc2",   "\r",     "#",    "try:\n", "with (", "f'''{", "match x:\n    case "};

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  std::string damage(llvm::StringRef source) {
    std::string text = source.substr(below(source.size()), 50 + below(1500)).str();
    for (size_t left = 1 + below(8); left > 0; --left) {
      size_t at = below(text.size() + 1);
      switch (below(4)) {
      case 0: text.insert(at, splinters[below(std::size(splinters))]); break;
      case 1: text.erase(at, below(20)); break;
      case 2: text.insert(at, text.substr(below(text.size() + 1), below(60))); break;
      default:
        if (at < text.size())
          text[at] = static_cast<char>(below(256));
      }
    }
    return text;
  }

private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random() % limit; }

  std::mt19937 random;
};

TEST(Mutation, DamagedFilesEndInBoundedMessages) {
  SourceManager originals;
  std::vector<FileId> files;
  for (const char *name : {"vector_add.py", "matmul.py", "distributed_gemm.py"}) {
    auto id = originals.load(std::string(DITRON_SYNTAX_TEST_FOLDER "/kernels/") + name);
    ASSERT_TRUE(id.isOk());
    files.push_back(*id);
  }
  Mutator mutator(7);
  size_t broken = 0;
  for (size_t i = 0; i < 1500; ++i) {
    Parsed parsed(mutator.damage(originals.file(files[i % files.size()]).text()));
    broken += parsed.diagnostics.hasErrors();
    ASSERT_LE(parsed.diagnostics.diagnostics().size(), DiagnosticEngine::maxErrorsPerFile + 1);
    EXPECT_FALSE(parsed.tree(/*ranges=*/true).empty());
    uint32_t size = parsed.sources.file(parsed.file).size();
    for (const Diagnostic &diagnostic : parsed.diagnostics.diagnostics()) {
      EXPECT_LE(diagnostic.range.begin, diagnostic.range.end);
      EXPECT_LE(diagnostic.range.end, size);
    }
    for (const ast::Stmt *statement : parsed.module->body)
      ast::walk(statement, [&](const ast::Node *node) {
        EXPECT_LE(node->range.begin, node->range.end);
        EXPECT_LE(node->range.end, size);
        return true;
      });
  }
  EXPECT_GT(broken, 1000u);
}

} // namespace
} // namespace ditron::frontend
