//===- kernel_files_test.cpp - Realistic kernel files parse -------------------------------------------------------===//
//
// The files in test/kernels look like Triton tutorials and distributed kernels: kernels between host code with classes,
// lambdas, comprehensions, with, try, match and async. They must parse without a message, and every node must have a
// range inside its parent's.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "SyntaxTesting.h"

#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

class KernelFile : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto id = sources.load(std::string(DITRON_SYNTAX_TEST_FOLDER "/kernels/") + GetParam());
    ASSERT_TRUE(id.isOk()) << id.status().message();
    module = parseModule(sources.file(*id), diagnostics);
  }

  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  std::unique_ptr<ast::Module> module;
};

/// Every child lies inside its parent, and every range inside the file.
size_t checkRanges(const ast::Node *node, const SourceManager &sources) {
  size_t count = 1;
  EXPECT_TRUE(node->range.isValid());
  EXPECT_LT(node->range.begin, node->range.end) << toString(node->kind).str();
  ast::forEachChild(node, [&](const ast::Node *child) {
    EXPECT_GE(child->range.begin, node->range.begin) << sources.textOf(node->range).str();
    EXPECT_LE(child->range.end, node->range.end) << sources.textOf(node->range).str();
    count += checkRanges(child, sources);
  });
  return count;
}

TEST_P(KernelFile, ParsesWithRanges) {
  EXPECT_EQ(diagnostics.renderAll(), "");
  size_t nodes = 0;
  for (const ast::Stmt *statement : module->body)
    nodes += checkRanges(statement, sources);
  EXPECT_GT(nodes, 250u);
}

TEST_P(KernelFile, DumpIsStable) {
  DiagnosticEngine again(sources);
  auto second = parseModule(sources.file(module->file()), again);
  EXPECT_EQ(dump(*module, {&sources}), dump(*second, {&sources}));
}

TEST_P(KernelFile, ConditionsUnparseToTheSameTree) {
  size_t conditions = 0;
  for (const ast::Stmt *statement : module->body)
    ast::walk(statement, [&](const ast::Node *node) {
      if (auto *branch = llvm::dyn_cast<ast::If>(node)) {
        ++conditions;
        SourceManager scratchSources;
        DiagnosticEngine scratch(scratchSources);
        ast::Module holder(0);
        std::string text = unparse(branch->condition);
        auto *again = parseExpression(holder, scratchSources.file(*scratchSources.add("c", text)), scratch);
        EXPECT_TRUE(again && dump(again) == dump(branch->condition)) << text << "\n" << scratch.renderAll();
      }
      return true;
    });
  EXPECT_GT(conditions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Files, KernelFile, testing::Values("vector_add.py", "matmul.py", "distributed_gemm.py"));

TEST(KernelFiles, FunctionsOfTheDistributedGemm) {
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  auto id = sources.load(DITRON_SYNTAX_TEST_FOLDER "/kernels/distributed_gemm.py");
  ASSERT_TRUE(id.isOk());
  auto module = parseModule(sources.file(*id), diagnostics);
  std::string text;
  for (const ast::Stmt *statement : module->body)
    if (auto *function = llvm::dyn_cast<ast::FunctionDef>(statement)) {
      for (const ast::Expr *decorator : function->decorators)
        text += "@" + unparse(decorator) + " ";
      text += function->name.text.str() + "/" + std::to_string(function->params.size()) + "\n";
    }
  EXPECT_EQ(text, "@triton.constexpr_function log2/1\n"
                  "@triton_dist.jit(do_not_specialize=['rank']) barrier_all/3\n"
                  "@triton_dist.jit consumer_gemm/13\n"
                  "ag_gemm/5\n"
                  "fetch/4\n"
                  "parse_args/0\n");
}

} // namespace
} // namespace ditron::frontend
