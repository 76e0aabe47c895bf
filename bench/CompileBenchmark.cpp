//===- CompileBenchmark.cpp - Time from kernel text to executable code ------------------------------------------------===//
//
// Each iteration has a compiler of its own, so nothing is cached: parsing, import, all passes, LLVM at -O2, linking.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchmarkSupport.h"
#include "ditron/jit/Jit.h"
#include "ditron/ops/KernelLaunch.h"

namespace ditron::bench {
namespace {

const char *const gemmSignature = "*bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32:16, i32:16, i32:16, i32:16, "
                                  "i32:16, i32:16, i32:16, i32:16, i32, constexpr WORLD_SIZE=8, "
                                  "constexpr NUM_NODES=1, constexpr CHUNKS=1, "
                                  "constexpr BLOCK_M={0}, constexpr BLOCK_N={0}, constexpr BLOCK_K=32, constexpr "
                                  "GROUP_SIZE_M=8, constexpr B_TRANSPOSED=False, constexpr PRECISION=\"tf32\"";

const char *const addText = R"(
import triton
import triton.language as tl

@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)
)";

void compileFresh(benchmark::State &state, const compiler::KernelSource &source, std::string_view kernel,
                  std::string_view signature, const jit::LaunchOptions &options) {
  for (auto _ : state) {
    std::unique_ptr<jit::Jit> jit = require(jit::Jit::create("sim:sm_80"));
    jit::KernelFunction function = require(jit->load(source, kernel));
    runtime::Kernel compiled = require(jit->compile(function, signature, options));
    benchmark::DoNotOptimize(compiled.isValid());
  }
}

/// The AllGather+GEMM kernel with square tiles of this size.
void compileGemm(benchmark::State &state) {
  ops::EmbeddedSource source = ops::kernelSource("tensor_parallel_gemm");
  std::string signature = gemmSignature;
  for (size_t at; (at = signature.find("{0}")) != std::string::npos;)
    signature.replace(at, 3, std::to_string(state.range(0)));
  compileFresh(state, {std::string(source.path), std::string(source.text)}, "all_gather_gemm", signature,
               {.numWarps = state.range(0) >= 128 ? 8u : 4u, .numStages = 3});
}
BENCHMARK(compileGemm)->Name("compile/gemm")->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond)->UseRealTime();

void compileAdd(benchmark::State &state) {
  compileFresh(state, {"add.py", addText}, "add", "*fp32:16, *fp32:16, *fp32:16, i32, constexpr BLOCK=1024", {});
}
BENCHMARK(compileAdd)->Name("compile/add")->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
} // namespace ditron::bench
