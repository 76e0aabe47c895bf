//===- limits_test.cpp - Programs that would not end or overflow ------------------------------------------------------------===//
//
// Generated sources against every limit of the evaluator, and files without a usable kernel. Each must give one error.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "mlir/IR/MLIRContext.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

using testing::HasSubstr;

const std::string head = "import triton\nimport triton.language as tl\n";

struct Outcome {
  std::string error;
  size_t errors = 0;
};

Outcome importText(const std::string &text, llvm::StringRef signature = "i32") {
  SourceManager sources;
  FileId file = *sources.add("kernel.py", text);
  DiagnosticEngine diagnostics(sources);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importKernel(context, sources.file(file), "kernel", *parseSignature(signature), {}, diagnostics);
  return {module.isOk() ? "" : module.status().message(), diagnostics.errorCount()};
}

std::string kernel(const std::string &body) { return head + "@triton.jit\ndef kernel(n):\n" + body; }

TEST(Limits, EndlessRecursion) {
  Outcome outcome =
      importText(head + "@triton.jit\ndef f(x):\n    return f(x + 1)\n" + "@triton.jit\ndef kernel(n):\n    f(n)\n");
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_THAT(outcome.error, HasSubstr("calls are nested more than 64 deep"));
}

TEST(Limits, DoublingRecursionEndsToo) {
  Outcome outcome = importText(
      head + "@triton.jit\ndef f(x, N: tl.constexpr):\n    if N > 0:\n        f(x, N - 1)\n        f(x, N - 1)\n" +
      "@triton.jit\ndef kernel(n):\n    f(n, 40)\n");
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_THAT(outcome.error, HasSubstr("the kernel is too large"));
}

TEST(Limits, UnrolledLoops) {
  Outcome outcome = importText(
      kernel("    for i in tl.static_range(2000):\n        for j in tl.static_range(2000):\n            pass\n"));
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_THAT(outcome.error, HasSubstr("the kernel is too large"));
}

TEST(Limits, DeepExpressionsAcrossCalls) {
  std::string sum;
  for (int i = 0; i < 700; ++i)
    sum += " + x";
  Outcome outcome =
      importText(head + "@triton.jit\ndef f(x):\n    return x" + sum + "\n" +
                 "@triton.jit\ndef g(x):\n    return f(x)" + sum + "\n@triton.jit\ndef kernel(n):\n    g(n)\n");
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_THAT(outcome.error, HasSubstr("nested too deeply"));
}

TEST(Limits, ManyEarlyReturnsDoNotGrowExponentially) {
  std::string body;
  for (int i = 0; i < 40; ++i)
    body += "    if n == " + std::to_string(i) + ":\n        return\n";
  EXPECT_EQ(importText(kernel(body)).error, "");
}

TEST(Limits, ManyContinues) {
  auto body = [](int count) {
    std::string text = "    for i in range(n):\n";
    for (int i = 0; i < count; ++i)
      text += "        if i == " + std::to_string(i) + ":\n            continue\n";
    return text + "        tl.assume(i > 0)\n";
  };
  EXPECT_EQ(importText(kernel(body(100))).error, "");
  Outcome outcome = importText(kernel(body(5000)));
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_THAT(outcome.error, HasSubstr("nested more than 256 deep"));
}

TEST(Limits, HugeNumbers) {
  EXPECT_THAT(importText(kernel("    x = 1 << (1 << 40)\n")).error, HasSubstr("kernel.py:5:9: error:"));
  EXPECT_THAT(importText(kernel("    x = 10 ** 10 ** 10\n")).error, HasSubstr("kernel.py:5:9: error:"));
  EXPECT_THAT(importText(kernel("    x = 1 << 64\n")).error, HasSubstr("does not fit into 64 bits"));
}

TEST(Limits, AtMostTwentyErrors) {
  std::string body;
  for (int i = 0; i < 100; ++i)
    body += "    unknown" + std::to_string(i) + "\n";
  Outcome outcome = importText(kernel(body));
  EXPECT_LE(outcome.errors, 22u);
  EXPECT_THAT(outcome.error, HasSubstr("unknown19"));
  EXPECT_THAT(outcome.error, testing::Not(HasSubstr("unknown30")));
}

TEST(Kernels, UnusableFiles) {
  EXPECT_THAT(importText("x = 1\n").error, HasSubstr("has no kernels: no function is decorated"));
  EXPECT_THAT(importText(head + "def kernel(n):\n    pass\n").error,
              HasSubstr("is not a kernel: it is not decorated with @triton.jit"));
  EXPECT_THAT(importText(head + "@triton.jit\ndef kernel(n, *rest):\n    pass\n").error,
              HasSubstr("a kernel cannot have '*' or '**' parameters"));
  EXPECT_THAT(importText(head + "@triton.jit\ndef kernel(n):\n    x = (\n").error, HasSubstr("kernel.py:"));
  EXPECT_THAT(importText(head + "@triton.jit\ndef kernel(n):\n    async for i in range(n):\n        pass\n").error,
              HasSubstr("'async for'"));
}

TEST(Kernels, TheImportedFunctionIsComplete) {
  SourceManager sources;
  FileId file = *sources.add("kernel.py", kernel("    pass\n"));
  DiagnosticEngine diagnostics(sources);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importKernel(context, sources.file(file), "kernel", *parseSignature("i32:16"), {}, diagnostics);
  ASSERT_TRUE(module.isOk()) << module.status().message();
  EXPECT_EQ(diagnostics.diagnostics().size(), 0u);
  (**module)->walk([](mlir::Operation *op) { EXPECT_FALSE(llvm::isa<mlir::UnknownLoc>(op->getLoc())); });
}

} // namespace
} // namespace ditron::frontend
