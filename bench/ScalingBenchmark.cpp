//===- ScalingBenchmark.cpp - Compile time by the length of a kernel ----------------------------------------------------===//
//
// Generated kernels of 156 to 5,000 lines, as a compiler of compilers writes them: arithmetic on a few dozen variables, with
// calls, branches and loops in between. Compile time should grow as the number of lines does; Google Benchmark fits the
// exponent ("compile/lines_BigO"). The tile IR alone, and everything up to executable code.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchmarkSupport.h"
#include "ditron/compiler/Compiler.h"
#include "ditron/frontend/Signature.h"

#include <fmt/format.h>

namespace ditron::bench {
namespace {

/// A kernel file of so many lines. The same text every time.
std::string kernelOfLines(int64_t lines) {
  std::string text = "import triton\nimport triton.language as tl\n\n\n"
                     "@triton.jit\ndef blend(a, b, WEIGHT: tl.constexpr):\n    return a * WEIGHT + b * (1.0 - WEIGHT)\n\n\n"
                     "@triton.jit\ndef kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
                     "    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    mask = offsets < n\n";
  int64_t count = std::count(text.begin(), text.end(), '\n');
  auto add = [&](std::string line) {
    text += line + "\n";
    ++count;
  };
  constexpr unsigned variables = 32;
  for (unsigned i = 0; i < variables; ++i)
    add(fmt::format("    v{} = tl.load(x_ptr + offsets + {}, mask=mask, other=0.0)", i, i));
  uint32_t state = 1;
  auto random = [&](uint32_t limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
  };
  auto name = [&] { return fmt::format("v{}", random(variables)); };
  auto statement = [&](std::string_view indent) {
    switch (random(4)) {
    case 0:
      return add(fmt::format("{}{} = {} * 0.5 + {}", indent, name(), name(), name()));
    case 1:
      return add(fmt::format("{}{} = tl.where({} > {}, {}, 0.25)", indent, name(), name(), name(), name()));
    case 2:
      return add(fmt::format("{}{} = blend({}, {}, 0.75)", indent, name(), name(), name()));
    default:
      return add(fmt::format("{}{} += {} - {}", indent, name(), name(), name()));
    }
  };
  while (count + 24 < lines) {
    for (int i = 0; i < 12; ++i)
      statement("    ");
    add(fmt::format("    if n > {}:", random(1000)));
    for (int i = 0; i < 4; ++i)
      statement("        ");
    add("    for step in range(0, n):");
    for (int i = 0; i < 4; ++i)
      statement("        ");
  }
  while (count + 1 < lines)
    statement("    ");
  std::string sum = "v0";
  for (unsigned i = 1; i < variables; ++i)
    sum += fmt::format(" + v{}", i);
  add(fmt::format("    tl.store(out_ptr + offsets, {}, mask=mask)", sum));
  return text;
}

void compileLines(benchmark::State &state, std::optional<compiler::EmitStage> stage) {
  compiler::KernelSource source{"generated.py", kernelOfLines(state.range(0))};
  frontend::KernelSignature signature =
      require(frontend::parseSignature("*fp32:16, *fp32:16, i32:16, constexpr BLOCK=128"));
  compiler::CompileOptions options;
  options.target = "sim:sm_90a";
  for (auto _ : state) {
    if (stage)
      benchmark::DoNotOptimize(require(compiler::emitStage(source, "kernel", signature, options, *stage)));
    else
      benchmark::DoNotOptimize(require(compiler::compileKernel(source, "kernel", signature, options)));
  }
  state.SetComplexityN(state.range(0));
}

void importOnly(benchmark::State &state) { compileLines(state, compiler::EmitStage::Tile); }
BENCHMARK(importOnly)
    ->Name("compile/lines/import")
    ->RangeMultiplier(2)
    ->Range(312, 5000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Complexity();

void everything(benchmark::State &state) { compileLines(state, std::nullopt); }
BENCHMARK(everything)
    ->Name("compile/lines/all")
    ->RangeMultiplier(2)
    ->Range(312, 5000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Complexity();

} // namespace
} // namespace ditron::bench
