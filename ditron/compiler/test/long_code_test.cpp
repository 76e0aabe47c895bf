//===- long_code_test.cpp - What long straight code costs -----------------------------------------------------------------===//
//
// Peak memory of a process that compiles a kernel, by the kernel's length. Time is not measured: machines are shared, and
// bench/StraightLineBenchmark.cpp shows it. Limits are two to three times what was measured; what they guard against was five
// times as much.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Compiler.h"
#include "ditron/frontend/Signature.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ditron;
using namespace ditron::compiler;

namespace {

constexpr std::string_view imports = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n";

/// Assignments that each read two of sixteen names.
std::string assignments(int count) {
  std::string text = std::string(imports) + "def kernel(x_ptr, out_ptr):\n";
  for (int i = 0; i < 16; ++i)
    text += fmt::format("    v{0} = tl.load(x_ptr + {0})\n", i);
  for (int i = 0; i < count; ++i)
    text += fmt::format("    v{} = v{} * 3 + v{}\n", i % 16, (i * 7 + 3) % 16, (i * 5 + 1) % 16);
  text += "    tl.store(out_ptr, v0";
  for (int i = 1; i < 16; ++i)
    text += fmt::format(" + v{}", i);
  return text + ")\n";
}

/// Loads and stores of tiles, none of which is the one before.
std::string accesses(int count) {
  std::string text = std::string(imports) + "def kernel(x_ptr, out_ptr):\n    i = tl.arange(0, 128)\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("    tl.store(out_ptr + {0} * 128 + i, tl.load(x_ptr + {0} * 128 + i) + 1)\n", i);
  return text;
}

/// Megabytes that a process of its own needs at most to compile a kernel; nothing when it cannot.
std::optional<long> megabytesToCompile(const std::string &text, std::string_view target) {
  const pid_t child = fork();
  if (child == 0) {
    CompileOptions options;
    options.target = target;
    Expected<frontend::KernelSignature> signature = frontend::parseSignature("*i32:16, *i32:16");
    Expected<Artifact> artifact = compileKernel({"generated.py", text}, "kernel", *signature, options);
    if (!artifact.isOk())
      fmt::print(stderr, "{}\n", artifact.status().message());
    _exit(artifact.isOk() ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
    return std::nullopt;
  return usage.ru_maxrss / 1024;
}

/// Instructions of the longest basic block that LLVM's code generator is given.
size_t longestBlock(const std::string &text, std::string_view target) {
  CompileOptions options;
  options.target = target;
  Expected<frontend::KernelSignature> signature = frontend::parseSignature("*i32:16, *i32:16");
  Expected<std::string> code = emitStage({"generated.py", text}, "kernel", *signature, options, EmitStage::Llvm);
  EXPECT_TRUE(code.isOk()) << code.status().message();
  size_t longest = 0, lines = 0;
  for (size_t at = 0; code.isOk() && at < code->size(); at = code->find('\n', at) + 1) {
    lines = code->substr(at, 2) == "  " ? lines + 1 : 0;
    longest = std::max(longest, lines);
  }
  return longest;
}

} // namespace

TEST(LongCode, assignmentsNeedLittleMemory) {
  const std::optional<long> few = megabytesToCompile(assignments(3000), "cuda:sm_90a");
  const std::optional<long> many = megabytesToCompile(assignments(12000), "cuda:sm_90a");
  ASSERT_TRUE(few && many);
  EXPECT_LT(*many - *few, 200);
}

TEST(LongCode, accessesDoNotFillTheStack) {
  const std::optional<long> few = megabytesToCompile(accesses(400), "sim:sm_90a");
  const std::optional<long> many = megabytesToCompile(accesses(1600), "sim:sm_90a");
  ASSERT_TRUE(few && many); // 1600 accesses with places of their own took 200 KB of a thread's stack, which has 192
  EXPECT_LT(*many - *few, 200);
}

TEST(LongCode, accessesAreCutIntoFunctions) {
  for (int count : {400, 1600}) // five instructions each, and more for the lanes' order: time is the square of a block's length
    EXPECT_LT(longestBlock(accesses(count), "sim:sm_90a"), 1200u) << count;
}
