//===- given_modules_test.cpp - Texts that are handed over with a kernel ------------------------------------------------===//
//
// A program that makes kernel sources of its own (the Python package does) hands over modules that are no files, and names of
// the kernel's file as compile-time arguments.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "mlir/IR/MLIRContext.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

using testing::HasSubstr;

/// What importing `kernel` of a text gives: "ok", or the messages.
std::string import(const std::string &text, llvm::StringRef signature, std::vector<SourceText> given = {}) {
  SourceManager sources;
  const FileId file = *sources.add("user.py", text);
  DiagnosticEngine diagnostics(sources);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ImportOptions options;
  options.imported = importedFiles({"user.py", text}, {}, std::move(given));
  auto module = importKernel(context, sources.file(file), "kernel", *parseSignature(signature), options, diagnostics);
  return module.isOk() ? "ok" : module.status().message();
}

constexpr const char *caller = R"(import triton; import triton.language as tl; from made_up.part import helper as other

if True:
    @triton.jit
    def kernel(x):
        tl.store(x, other(3))
)";

TEST(GivenModules, AreFoundByName) {
  const SourceText helper{"folder/helper.py", "import triton\n@triton.jit\ndef helper(x):\n    return x + 1\n",
                          "made_up.part"};
  EXPECT_EQ(import(caller, "*i32", {helper}), "ok");
  EXPECT_THAT(import(caller, "*i32"), HasSubstr("made_up.part"));
}

TEST(GivenModules, MessagesNameTheirPath) {
  const SourceText helper{"folder/helper.py", "import triton\n@triton.jit\ndef helper(x):\n    return y\n",
                          "made_up.part"};
  const std::string messages = import(caller, "*i32", {helper});
  EXPECT_THAT(messages, HasSubstr("folder/helper.py:4:12: error: name 'y' is not defined"));
  EXPECT_THAT(messages, HasSubstr("user.py:6:"));
}

TEST(GivenModules, LeadToEachOtherAndMayShareAPath) {
  const SourceText first{
      "user.py", "import triton; from made_up.b import add as add\n@triton.jit\ndef helper(x):\n    return add(x)\n",
      "made_up.part"};
  const SourceText second{"user.py", "import triton\n@triton.jit\ndef add(x):\n    return x + 1\n", "made_up.b"};
  EXPECT_EQ(import(caller, "*i32", {first, second}), "ok");
  const std::vector<SourceText> read =
      importedFiles({"user.py", caller}, {}, {second, first, {"other.py", "", "made_up.c"}});
  EXPECT_EQ(read, (std::vector<SourceText>{first, second}));
}

TEST(GlobalArguments, AreNamesOfTheFile) {
  const std::string text = R"(import triton; import triton.language as tl; sizes = (2, 3)
@triton.jit
def double(x):
    return x * 2
@triton.jit
def kernel(x, F: tl.constexpr, SIZES: tl.constexpr):
    tl.static_assert(SIZES[1] == 3)
    tl.store(x, F(SIZES[0]))
)";
  EXPECT_EQ(import(text, "*i32, constexpr F=@double, constexpr SIZES=@sizes"), "ok");
  EXPECT_THAT(import(text, "*i32, constexpr @double, constexpr @missing"),
              HasSubstr("the signature gives the name '@missing', which the kernel's file does not define"));
}

} // namespace
} // namespace ditron::frontend
