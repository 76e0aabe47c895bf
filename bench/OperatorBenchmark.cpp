//===- OperatorBenchmark.cpp - The overlapped operators on eight simulated GPUs ---------------------------------------===//
//
// M = N = K = 1024 in bf16: AllGather+GEMM deals N out to the ranks, GEMM+ReduceScatter deals K out, so that all ranks
// together do 2 * 1024^3 operations. Compilation is not measured.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/BenchmarkSupport.h"
#include "ditron/jit/Jit.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

namespace ditron::bench {
namespace {

constexpr uint32_t numRanks = 8;
constexpr int64_t size = 1024;
const ops::TileConfig tile = {.blockM = 128, .blockN = 128, .blockK = 32, .groupM = 8, .numWarps = 8, .numStages = 3};

struct Operands {
  runtime::Buffer a, b, result;
};

std::vector<Operands> operands(runtime::World &world, int64_t aCount, int64_t bCount, int64_t resultCount) {
  std::vector<Operands> all;
  for (uint32_t r = 0; r < numRanks; ++r)
    all.push_back({require(world.rank(r).allocate(DataType::BF16, aCount, "a")),
                   require(world.rank(r).allocate(DataType::BF16, bCount, "b")),
                   require(world.rank(r).allocate(DataType::BF16, resultCount, "result"))});
  return all;
}

template <typename Call> void measure(benchmark::State &state, runtime::World &world, Call call) {
  auto once = [&] {
    for (uint32_t r = 0; r < numRanks; ++r)
      require(call(world.rank(r)));
    require(world.synchronize());
  };
  once(); // compiles
  for (auto _ : state)
    once();
  state.counters["MFLOP/s"] =
      benchmark::Counter(2e-6 * size * size * size, benchmark::Counter::kIsIterationInvariantRate);
}

void allGatherGemm(benchmark::State &state) {
  auto world = require(runtime::World::local(numRanks, "sim:sm_80"));
  auto jit = require(jit::Jit::create("sim:sm_80"));
  ops::AllGatherGemm op =
      require(ops::AllGatherGemm::create(*world, *jit, {.maxRows = size, .depth = size, .tile = tile}));
  const int64_t columns = size / numRanks;
  std::vector<Operands> memory = operands(*world, size / numRanks * size, size * columns, size * columns);
  measure(state, *world, [&](runtime::Rank &rank) {
    Operands &mine = memory[rank.id()];
    return op.enqueue(rank, rank.stream(), mine.a, mine.b, mine.result, size, columns);
  });
}
BENCHMARK(allGatherGemm)->Name("operator/ag_gemm_1024_8_ranks")->Unit(benchmark::kMillisecond)->UseRealTime();

void gemmReduceScatter(benchmark::State &state) {
  auto world = require(runtime::World::local(numRanks, "sim:sm_80"));
  auto jit = require(jit::Jit::create("sim:sm_80"));
  ops::GemmReduceScatter op =
      require(ops::GemmReduceScatter::create(*world, *jit, {.maxRows = size, .columns = size, .tile = tile}));
  const int64_t depth = size / numRanks;
  std::vector<Operands> memory = operands(*world, size * depth, depth * size, size / numRanks * size);
  measure(state, *world, [&](runtime::Rank &rank) {
    Operands &mine = memory[rank.id()];
    return op.enqueue(rank, rank.stream(), mine.a, mine.b, mine.result, size, depth);
  });
}
BENCHMARK(gemmReduceScatter)->Name("operator/gemm_rs_1024_8_ranks")->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
} // namespace ditron::bench
