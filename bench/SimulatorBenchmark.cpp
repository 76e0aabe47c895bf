//===- SimulatorBenchmark.cpp - Throughput of compiled kernels in the simulator ---------------------------------------===//
//
// One rank, bounds checks on, kernels compiled beforehand. What the engine can do without generated code is measured by
// ditron/sim/bench.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchmarkSupport.h"
#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"
#include "ditron/sim/Machine.h"

namespace ditron::bench {
namespace {

const char *const text = R"(
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads

@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * N + columns[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16))

@triton.jit
def gelu_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x * tl.sigmoid(1.702 * x) + y, mask=mask)

@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < columns
    x = tl.load(x_ptr + tl.program_id(0) * columns + i, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + tl.program_id(0) * columns + i, e / tl.sum(e, axis=0), mask=mask)

@triton.jit
def empty(out_ptr):
    tl.store(out_ptr + tl.program_id(0), 1)

@triton.jit
def barriers(out_ptr, count):
    for i in range(count):
        __syncthreads()
    tl.store(out_ptr + tl.program_id(0), count)
)";

/// One rank and a compiler.
struct Bench {
  std::unique_ptr<jit::Jit> jit = require(jit::Jit::create("sim:sm_80"));
  std::unique_ptr<runtime::World> world = require(runtime::World::local(1, "sim:sm_80"));

  runtime::Buffer buffer(DataType type, uint64_t count, const char *name) {
    return require(world->rank(0).allocate(type, count, name));
  }
  void run(const char *kernel, std::array<uint32_t, 3> grid, const jit::CallArguments &arguments,
           const jit::LaunchOptions &options) {
    jit::KernelFunction function = require(jit->load({"bench.py", text}, kernel));
    require(jit->launch(world->rank(0).stream(), function, {.grid = grid}, arguments, options));
    require(world->synchronize());
  }
};

void gemm(benchmark::State &state) {
  Bench bench;
  const uint32_t size = 512, tile = static_cast<uint32_t>(state.range(0));
  runtime::Buffer a = bench.buffer(DataType::BF16, size * size, "a"),
                  b = bench.buffer(DataType::BF16, size * size, "b"),
                  c = bench.buffer(DataType::BF16, size * size, "c");
  auto once = [&] {
    bench.run("matmul", {size / tile, size / tile, 1},
              {{a, b, c, size, size, size}, {{"BLOCK", tile}, {"BLOCK_K", 32}}},
              {.numWarps = tile >= 128 ? 8u : 4u, .numStages = 3});
  };
  once(); // compiles
  for (auto _ : state)
    once();
  state.counters["MFLOP/s"] =
      benchmark::Counter(2e-6 * size * size * size, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gemm)->Name("simulate/gemm")->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond)->UseRealTime();

void elementwise(benchmark::State &state) {
  Bench bench;
  const uint32_t count = 1 << 20, block = 1024;
  runtime::Buffer x = bench.buffer(DataType::F32, count, "x"), y = bench.buffer(DataType::F32, count, "y"),
                  out = bench.buffer(DataType::F32, count, "out");
  auto once = [&] { bench.run("gelu_add", {count / block, 1, 1}, {{x, y, out, count}, {{"BLOCK", block}}}, {}); };
  once();
  for (auto _ : state)
    once();
  state.counters["elements/s"] = benchmark::Counter(count, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["blocks/s"] = benchmark::Counter(count / block, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(elementwise)->Name("simulate/elementwise")->Unit(benchmark::kMillisecond)->UseRealTime();

void softmax(benchmark::State &state) {
  Bench bench;
  const uint32_t rows = 256, columns = 1000;
  runtime::Buffer x = bench.buffer(DataType::F32, rows * columns, "x"),
                  out = bench.buffer(DataType::F32, rows * columns, "out");
  auto once = [&] { bench.run("softmax", {rows, 1, 1}, {{x, out, columns}, {{"BLOCK", 1024}}}, {}); };
  once();
  for (auto _ : state)
    once();
  state.counters["elements/s"] = benchmark::Counter(rows * columns, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(softmax)->Name("simulate/softmax")->Unit(benchmark::kMillisecond)->UseRealTime();

void emptyBlocks(benchmark::State &state) {
  Bench bench;
  const uint32_t blocks = 2048;
  runtime::Buffer out = bench.buffer(DataType::I32, blocks, "out");
  auto once = [&] { bench.run("empty", {blocks, 1, 1}, {{out}, {}}, {}); };
  once();
  for (auto _ : state)
    once();
  state.counters["blocks/s"] = benchmark::Counter(blocks, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(emptyBlocks)->Name("simulate/empty_blocks")->Unit(benchmark::kMillisecond)->UseRealTime();

void switches(benchmark::State &state) {
  Bench bench;
  const uint32_t blocks = 8;
  runtime::Buffer out = bench.buffer(DataType::I32, blocks, "out");
  auto once = [&] { bench.run("barriers", {blocks, 1, 1}, {{out, 500}, {}}, {}); };
  once();
  const uint64_t before = bench.world->machine()->counters().fiberSwitches;
  for (auto _ : state)
    once();
  state.counters["switches/s"] = benchmark::Counter(
      static_cast<double>(bench.world->machine()->counters().fiberSwitches - before), benchmark::Counter::kIsRate);
}
BENCHMARK(switches)->Name("simulate/fiber_switches")->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
} // namespace ditron::bench
