//===- KernelTest.cpp - Kernels from source text to results -----------------------------------------------------------===//
#include "KernelTest.h"

#include "ditron/runtime/cuda/CudaDriver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace ditron::e2e {

const std::string_view kernelPrologue = R"(import triton
import triton.language as tl
import ditron.language as dl
from ditron.language.extra.language_extra import (tid, laneid, num_warps, num_threads, threads_per_warp, ld, st,
    multimem_ld_reduce_v4, multimem_st_b32, multimem_st_b64, multimem_st_v4, atomic_add, atomic_cas, __syncthreads,
    __shfl_sync_i32, __shfl_up_sync_i32, __shfl_down_sync_i32,
    __shfl_xor_sync_i32, __ballot_sync, ffs)
)";

uint32_t prologueLines() {
  return static_cast<uint32_t>(std::count(kernelPrologue.begin(), kernelPrologue.end(), '\n'));
}

std::string targetUnderTest() {
  const char *target = std::getenv("TEST_TARGET");
  return target && *target ? target : "sim:sm_80";
}

bool isSimulated() { return targetUnderTest().starts_with("sim"); }

uint32_t ranksOnTarget(uint32_t wanted) {
  if (isSimulated())
    return wanted;
  static const uint32_t gpus = [] {
    auto driver = cuda::CudaDriver::open();
    return driver.isOk() ? static_cast<uint32_t>((*driver)->deviceCount()) : 0u;
  }();
  return std::min(wanted, gpus);
}

int casesWanted(const char *variable, int byDefault) {
  const char *wanted = std::getenv(variable);
  return wanted && *wanted ? std::atoi(wanted) : byDefault;
}

jit::Jit &jitFor(const std::string &target) {
  static std::map<std::string, std::unique_ptr<jit::Jit>> compilers;
  std::unique_ptr<jit::Jit> &compiler = compilers[target];
  if (compiler)
    return *compiler;
  Knobs knobs;
  knobs.boundWaits = !isSimulated(); // a hang must not outlive the test
  if (!std::getenv("CONFORMANCE_ALL"))
    knobs.optLevel = casesWanted("TEST_OPT_LEVEL", static_cast<int>(knobs.optLevel));
  auto created = jit::Jit::create(target, knobs);
  if (!created.isOk()) {
    ADD_FAILURE() << created.status().message();
    std::abort();
  }
  compiler = std::move(created).value();
  return *compiler;
}

jit::Jit &sharedJit() {
  static jit::Jit &jit = jitFor(targetUnderTest());
  return jit;
}

void KernelTest::start(uint32_t ranks, const WorldOptions &options) {
  WorldOptions adapted = options;
  if (!isSimulated()) {
    adapted.trace = false;
    adapted.timeLimitSeconds = 20;
    // A GPU's context is made with the first world on it and goes with the last, which takes longer than most tests: keep one.
    static const auto *kept = new Expected<std::unique_ptr<World>>(World::local(ranksOnTarget(64), targetUnderTest()));
    ASSERT_OK(*kept);
  }
  auto created = World::local(ranks, targetUnderTest(), adapted);
  ASSERT_OK(created);
  worldValue = std::move(created).value();
}

World &KernelTest::world() {
  if (!worldValue)
    start(1);
  if (!worldValue) {
    // Nothing can run in this process any more.
    std::fprintf(stderr, "no world on %s: an earlier kernel has left the GPU's context unusable\n", targetUnderTest().c_str());
    std::abort();
  }
  return *worldValue;
}

Buffer KernelTest::zeros(DataType type, uint64_t count, std::string_view name, uint32_t rankId) {
  auto buffer = rank(rankId).allocate(type, count, name);
  EXPECT_OK(buffer);
  return buffer.isOk() ? std::move(buffer).value() : Buffer();
}

Buffer KernelTest::putAs(DataType type, const std::vector<float> &values, std::string_view name, uint32_t rankId) {
  Buffer buffer = zeros(type, values.size(), name, rankId);
  EXPECT_OK(buffer.uploadFloats(values));
  return buffer;
}

SymmetricBuffer KernelTest::symmetric(DataType type, uint64_t count, std::string_view name) {
  auto buffer = world().allocateSymmetric(type, count, name);
  EXPECT_OK(buffer);
  return buffer.isOk() ? *buffer : SymmetricBuffer();
}

std::vector<float> KernelTest::getFloats(const Buffer &buffer) {
  auto values = buffer.downloadFloats();
  EXPECT_OK(values);
  return values.isOk() ? *values : std::vector<float>();
}

Status KernelTest::launch(std::string_view text, std::string_view kernel, const LaunchShape &shape,
                          const jit::CallArguments &arguments, uint32_t rankId) {
  compiler::KernelSource source{"kernel.py", std::string(kernelPrologue) + std::string(text)};
  DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function, sharedJit().load(source, kernel));
  return sharedJit().launch(rank(rankId).stream(), function, {.grid = shape.grid}, arguments,
                            {.numWarps = shape.numWarps, .numStages = shape.numStages});
}

Status KernelTest::run(std::string_view text, std::string_view kernel, const LaunchShape &shape,
                       const jit::CallArguments &arguments, uint32_t rankId) {
  DITRON_RETURN_IF_ERROR(launch(text, kernel, shape, arguments, rankId));
  return world().synchronize();
}

namespace {
/// SplitMix64: the next of a sequence that any machine repeats exactly.
uint64_t nextRandom(uint64_t &state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
} // namespace

std::vector<float> randomFloats(size_t count, uint64_t seed, float low, float high, DataType type) {
  std::vector<float> values(count);
  for (float &value : values)
    value = low + (high - low) * static_cast<float>(nextRandom(seed) >> 40) / static_cast<float>(1 << 24);
  return toFloats(type, fromFloats(type, values.data(), count).data(), count);
}

std::vector<int64_t> randomIntegers(size_t count, uint64_t seed, int64_t low, int64_t high) {
  std::vector<int64_t> values(count);
  uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  for (int64_t &value : values) {
    uint64_t random = nextRandom(seed);
    value = static_cast<int64_t>(static_cast<uint64_t>(low) + (span == 0 ? random : random % span));
  }
  return values;
}

void expectClose(const std::vector<double> &actual, const std::vector<double> &expected, double relative,
                 double absolute, std::string_view what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  size_t wrong = 0;
  std::ostringstream text;
  for (size_t i = 0; i < actual.size(); ++i) {
    bool close = actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])) ||
                 std::abs(actual[i] - expected[i]) <= absolute + relative * std::abs(expected[i]);
    if (!close && ++wrong <= 5)
      text << "  [" << i << "] is " << actual[i] << ", expected " << expected[i] << "\n";
  }
  EXPECT_EQ(wrong, 0u) << what << ": " << wrong << " of " << actual.size() << " elements are off\n" << text.str();
}

} // namespace ditron::e2e
