//===- StraightLineBenchmark.cpp - Compile time of long straight code and of sorts --------------------------------------===//
//
// Kernels without loops, as generators write them: assignments, loads and stores one after the other, chains of dots of large
// tiles; and sorts, which become long by themselves. Time should grow as the length does, for sorts of n elements on a fixed
// number of threads as n (log n)^2 at most. Each has a GPU's code made besides the simulator's: "/cuda".
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchmarkSupport.h"
#include "ditron/compiler/Compiler.h"
#include "ditron/frontend/Signature.h"

#include <fmt/format.h>

namespace ditron::bench {
namespace {

constexpr std::string_view imports = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n";

/// Assignments that each read two of sixteen names.
std::string assignments(int64_t count) {
  std::string text = std::string(imports) + "def kernel(x_ptr, out_ptr):\n";
  for (int i = 0; i < 16; ++i)
    text += fmt::format("    v{} = tl.load(x_ptr + {})\n", i, i);
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("    v{} = v{} * 3 + v{}\n", i % 16, (i * 7 + 3) % 16, (i * 5 + 1) % 16);
  text += "    tl.store(out_ptr, v0";
  for (int i = 1; i < 16; ++i)
    text += fmt::format(" + v{}", i);
  return text + ")\n";
}

std::string accesses(int64_t count) {
  std::string text = std::string(imports) + "def kernel(x_ptr, out_ptr):\n    i = tl.arange(0, 128)\n";
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("    tl.store(out_ptr + {0} * 128 + i, tl.load(x_ptr + {0} * 128 + i) + 1)\n", i);
  return text;
}

std::string dots(int64_t count) {
  std::string text = std::string(imports) + "def kernel(x_ptr, out_ptr):\n    i = tl.arange(0, 256)\n"
                                            "    at = i[:, None] * 256 + i[None, :]\n    x = tl.load(x_ptr + at)\n    y = x\n";
  for (int64_t i = 0; i < count; ++i)
    text += "    y = tl.dot(y, x).to(tl.float16)\n";
  return text + "    tl.store(out_ptr + at, y)\n";
}

std::string sort(int64_t size) {
  return std::string(imports) +
         fmt::format(
             "def kernel(x_ptr, out_ptr):\n    i = tl.arange(0, {})\n    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))\n",
             size);
}

std::string topk(int64_t size) {
  return std::string(imports) + fmt::format("def kernel(x_ptr, out_ptr):\n    x = tl.load(x_ptr + tl.arange(0, {}))\n"
                                            "    tl.store(out_ptr + tl.arange(0, 64), tl.topk(x, 64))\n",
                                            size);
}

using Generator = std::string (*)(int64_t);

void compile(benchmark::State &state, Generator generate, std::string_view element, uint32_t numWarps,
             std::string_view target) {
  compiler::KernelSource source{"generated.py", generate(state.range(0))};
  frontend::KernelSignature signature = require(frontend::parseSignature(fmt::format("*{0}:16, *{0}:16", element)));
  compiler::CompileOptions options;
  options.target = target;
  options.numWarps = numWarps;
  for (auto _ : state)
    benchmark::DoNotOptimize(require(compiler::compileKernel(source, "kernel", signature, options)));
  state.SetComplexityN(state.range(0));
}

struct Family {
  const char *name;
  Generator generate;
  const char *element;
  uint32_t numWarps;
  int multiplier;
  int64_t least, most;
};
constexpr Family families[] = {
    {"assignments", assignments, "i32", 4, 10, 1000, 100000},
    {"accesses", accesses, "i32", 4, 4, 256, 4096},
    {"dots", dots, "fp16", 8, 2, 1, 8},
    {"sort", sort, "fp32", 4, 2, 1024, 32768},
    {"topk", topk, "fp32", 4, 4, 1024, 16384},
};

const bool registered = [] {
  for (const Family &family : families)
    for (const char *target : {"sim:sm_90a", "cuda:sm_90a"}) {
      const bool isSimulated = std::string_view(target).starts_with("sim");
      auto run = [family, target](benchmark::State &state) {
        compile(state, family.generate, family.element, family.numWarps, target);
      };
      const std::string name = fmt::format("compile/{}{}", family.name, isSimulated ? "" : "/cuda");
      benchmark::RegisterBenchmark(name.c_str(), run)
          ->RangeMultiplier(family.multiplier)
          ->Range(family.least, family.most)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->Complexity();
    }
  return true;
}();

} // namespace
} // namespace ditron::bench
