//===- EngineThroughput.cpp - How fast the engine itself is -------------------------------------------------------===//
//
// Kernels written by hand against the ABI, so that the figures say nothing about generated code: fiber switches,
// barriers, shuffles, checked accesses, matrix multiply per tile shape, blocks. One line of JSON per figure.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace ditron;
using namespace ditron::sim;

namespace {

const DitronSimSite site{"bench.py", 1, 1};

struct Parameters {
  uint32_t repeats, type, m, n, k;
};

double seconds(Machine &machine, KernelEntry entry, uint32_t blocks, uint32_t threads, uint64_t shared,
               Parameters parameters) {
  Expected<StreamId> stream = machine.createStream(0, "bench");
  LaunchDescription launch;
  launch.name = "bench";
  launch.entry = entry;
  launch.grid = {blocks, 1, 1};
  launch.threadsPerBlock = threads;
  launch.sharedBytes = shared;
  launch.arguments.add(parameters);
  auto start = std::chrono::steady_clock::now();
  Status status = stream.isOk() ? machine.launch(*stream, launch) : stream.status();
  if (status.isOk())
    status = machine.synchronize();
  if (!status.isOk()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void report(const char *name, double value, const char *unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}\n", name, value, unit);
}

const Parameters &parametersOf(void **arguments) { return *static_cast<Parameters *>(arguments[0]); }

void barrierKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  for (uint32_t i = 0; i < parametersOf(arguments).repeats; ++i)
    ditron_sim_barrier(self, &site);
}

void shuffleKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  uint64_t value = self->laneId;
  for (uint32_t i = 0; i < parametersOf(arguments).repeats; ++i)
    value = ditron_sim_shuffle(self, DITRON_SIM_SHUFFLE_BUTTERFLY, value, 1, 0xffffffff, &site);
}

void accessKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  for (uint32_t i = 0; i < parametersOf(arguments).repeats; ++i)
    ditron_sim_access(self, self->sharedMemory, 16, 1, DITRON_SIM_LOAD, DITRON_SIM_SHARED, &site);
}

float *globalData;
void globalAccessKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  for (uint32_t i = 0; i < parametersOf(arguments).repeats; ++i)
    ditron_sim_access(self, globalData + i % 64, 16, 1, DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, &site);
}

void emptyKernel(void **) {}

void mmaKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const Parameters &p = parametersOf(arguments);
  alignas(64) uint32_t a[4 * 4 * 8] = {}, b[4 * 8 * 8] = {};
  alignas(64) float c[4 * 8 * 4] = {};
  for (uint32_t i = 0; i < p.repeats; ++i)
    ditron_sim_mma(self, p.type, p.m, p.n, p.k, a, b, c, &site);
}

} // namespace

int main() {
  MachineOptions options;
  options.smsPerRank = 1;
  Expected<std::unique_ptr<Machine>> made = Machine::create(options);
  if (!made.isOk()) {
    std::fprintf(stderr, "%s\n", made.status().message().c_str());
    return 1;
  }
  Machine &machine = **made;
  globalData = static_cast<float *>(machine.allocate(0, 1024, "data", 4).value());

  auto perSwitch = [&](KernelEntry entry, uint32_t blocks, uint32_t threads, uint32_t repeats, Machine &on) {
    seconds(on, entry, blocks, threads, 0, {2, 0, 0, 0, 0}); // stacks are touched once
    uint64_t before = on.counters().fiberSwitches;
    double time = seconds(on, entry, blocks, threads, 0, {repeats, 0, 0, 0, 0});
    return time * 1e9 / static_cast<double>(on.counters().fiberSwitches - before);
  };
  report("barrier, 128 threads, per switch", perSwitch(barrierKernel, 1, 128, 20000, machine), "ns");
  report("barrier, 512 threads, per switch", perSwitch(barrierKernel, 1, 512, 5000, machine), "ns");
  report("shuffle, 128 threads, per switch", perSwitch(shuffleKernel, 1, 128, 20000, machine), "ns");
  report("shared access, checked", seconds(machine, accessKernel, 1, 1, 64, {20000000, 0, 0, 0, 0}) / 20000000 * 1e9,
         "ns");
  report("global access, checked",
         seconds(machine, globalAccessKernel, 1, 1, 64, {20000000, 0, 0, 0, 0}) / 20000000 * 1e9, "ns");
  report("empty blocks of 128 threads", 20000 / seconds(machine, emptyKernel, 20000, 128, 0, {}), "1/s");
  const struct {
    const char *name;
    Parameters parameters;
  } shapes[] = {
      {"mma bf16, 64x64x64 per warp", {2000, DITRON_SIM_BF16, 4, 8, 4}},
      {"mma bf16, 32x64x32 per warp", {4000, DITRON_SIM_BF16, 2, 8, 2}},
      {"mma bf16, 32x32x32 per warp", {8000, DITRON_SIM_BF16, 2, 4, 2}},
      {"mma bf16, 16x8x16 per warp", {20000, DITRON_SIM_BF16, 1, 1, 1}},
      {"mma fp16, 64x64x64 per warp", {2000, DITRON_SIM_F16, 4, 8, 4}},
      {"mma tf32, 64x64x32 per warp", {2000, DITRON_SIM_TF32, 4, 8, 4}},
      {"mma int8, 64x64x128 per warp", {2000, DITRON_SIM_I8, 4, 8, 4}},
  };
  for (const auto &shape : shapes) {
    uint64_t before = machine.counters().mmaFlops;
    double time = seconds(machine, mmaKernel, 1, 128, 0, shape.parameters);
    report(shape.name, static_cast<double>(machine.counters().mmaFlops - before) / time * 1e-9, "GFLOP/s");
  }
  return 0;
}
