//===- describe_test.cpp - Descriptions of kernels ------------------------------------------------------------------------===//
//
// What callers learn about a file without compiling it, and the errors about signatures that do not fit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "mlir/IR/MLIRContext.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::frontend {
namespace {

using testing::HasSubstr;

constexpr const char *text = R"(
import triton
import triton.language as tl
import triton_dist
from triton import jit

@triton.jit
def first(x_ptr, n: "i32", BLOCK: tl.constexpr = 64, scale=-1.5, KIND: tl.constexpr = "relu"):
    pass

@triton.autotune(configs=[], key=[])
@triton_dist.jit(do_not_specialize=["n"])
def second(x_ptr):
    pass

@jit
def third():
    pass

def host():
    pass
)";

struct Loaded {
  SourceManager sources;
  FileId file = *sources.add("kernels.py", text);
  DiagnosticEngine diagnostics{sources};
};

TEST(Describe, ListsKernelsInOrder) {
  Loaded loaded;
  auto kernels = listKernels(loaded.sources.file(loaded.file), loaded.diagnostics);
  ASSERT_TRUE(kernels.isOk());
  ASSERT_EQ(kernels->size(), 3u);
  EXPECT_EQ((*kernels)[0].name, "first");
  EXPECT_EQ((*kernels)[1].name, "second");
  EXPECT_EQ((*kernels)[2].name, "third");
  EXPECT_EQ((*kernels)[0].place.line, 8u);
}

TEST(Describe, TellsParameters) {
  Loaded loaded;
  auto kernel = describeKernel(loaded.sources.file(loaded.file), "first", loaded.diagnostics);
  ASSERT_TRUE(kernel.isOk());
  ASSERT_EQ(kernel->parameters.size(), 5u);
  EXPECT_FALSE(kernel->parameters[0].isConstexpr);
  EXPECT_EQ(kernel->parameters[1].annotation, "'i32'");
  EXPECT_TRUE(kernel->parameters[2].isConstexpr);
  EXPECT_EQ(kernel->parameters[2].defaultText, "64");
  ASSERT_TRUE(kernel->parameters[3].defaultValue.has_value());
  EXPECT_EQ(printConstexpr(*kernel->parameters[3].defaultValue), "-1.5");
  EXPECT_EQ(printConstexpr(*kernel->parameters[4].defaultValue), "\"relu\"");
}

TEST(Describe, NamesTheKernelsThatExist) {
  Loaded loaded;
  auto missing = describeKernel(loaded.sources.file(loaded.file), "fourth", loaded.diagnostics);
  ASSERT_FALSE(missing.isOk());
  EXPECT_EQ(missing.status().code(), StatusCode::NotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("has no kernel 'fourth'; it has first, second, third"));
  auto host = describeKernel(loaded.sources.file(loaded.file), "host", loaded.diagnostics);
  EXPECT_THAT(host.status().message(), HasSubstr("is not decorated with @triton.jit"));
}

std::string importError(llvm::StringRef kernel, llvm::StringRef signature) {
  Loaded loaded;
  mlir::MLIRContext context;
  auto module = importKernel(context, loaded.sources.file(loaded.file), kernel, *parseSignature(signature), {},
                             loaded.diagnostics);
  return module.isOk() ? "" : module.status().message();
}

TEST(Describe, SignaturesMustFit) {
  EXPECT_EQ(importError("first", "*fp32, i32"), "");
  EXPECT_EQ(importError("first", "*fp32, 1, constexpr BLOCK=128"), "");
  EXPECT_THAT(importError("first", "*fp32"), HasSubstr("gives no type for parameter 'n'"));
  EXPECT_THAT(importError("first", "*fp32, i32, i32"), HasSubstr("parameter 'BLOCK' of kernel 'first' is a constexpr"));
  EXPECT_THAT(importError("first", "*fp32, i32, constexpr BLOK=1"),
              HasSubstr("has no parameter 'BLOK'; it has x_ptr, n, BLOCK"));
  EXPECT_THAT(importError("second", "*fp32, i32"), HasSubstr("more arguments than the 1 parameters"));
  EXPECT_THAT(importError("second", "*fp32, x_ptr=i32"), HasSubstr("gives parameter 'x_ptr' of kernel 'second' twice"));
}

} // namespace
} // namespace ditron::frontend
