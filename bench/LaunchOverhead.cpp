//===- LaunchOverhead.cpp - What a launch and an operator's call cost the host ----------------------------------------===//
//
// usage: ditron-launch-overhead [TARGET [RANKS]]      default: cuda, 1
//
// Host time per call, in microseconds, of: the driver's own launch (the same code, by cuLaunchKernel, in the same run),
// ditron_variant_launch, ditron_kernel_launch with all its checks, and AllGather+GEMM for all ranks from one thread, enqueued and as
// graphs. Median over rounds; the queue is empty at the start of a round and never full. Through the shared library only.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include <ditron/ditron.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

namespace {

using ditron::Context;
using ditron::Status;

constexpr const char *source = R"(
import triton
import triton.language as tl


@triton.jit
def add(X, Y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + offsets, tl.load(X + offsets, mask=offsets < n) + 1, mask=offsets < n)
)";

[[noreturn]] void fail(const std::string &text) {
  std::fprintf(stderr, "launch overhead: %s\n", text.c_str());
  std::exit(1);
}

void check(const Status &status) {
  if (!status.ok())
    fail(status.message());
}

/// Median microseconds of a call; `finish` empties the queue between rounds.
double measure(int calls, const std::function<void()> &call, const std::function<void()> &finish) {
  constexpr int rounds = 41;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    times.push_back(elapsed.count() / calls);
    finish();
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

/// cuLaunchKernel and what leads to it; the current context is the GPU's primary one.
struct Driver {
  using LaunchKernel = int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                               void **, void **);
  void *function = nullptr;
  LaunchKernel launch = nullptr;

  explicit Driver(const std::string &ptx) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
      return;
    auto get = [&](const char *name) { return dlsym(library, name); };
    const size_t at = ptx.find(".entry ");
    const std::string entry = ptx.substr(at + 7, ptx.find('(', at) - at - 7);
    void *context = nullptr, *module = nullptr;
    const bool loaded =
        at != std::string::npos &&
        reinterpret_cast<int (*)(void **, int)>(get("cuDevicePrimaryCtxRetain"))(&context, 0) == 0 &&
        reinterpret_cast<int (*)(void *)>(get("cuCtxSetCurrent"))(context) == 0 &&
        reinterpret_cast<int (*)(void **, const void *)>(get("cuModuleLoadData"))(&module, ptx.c_str()) == 0 &&
        reinterpret_cast<int (*)(void **, void *, const char *)>(get("cuModuleGetFunction"))(&function, module,
                                                                                             entry.c_str()) == 0;
    if (!loaded)
      fail("the driver does not take the kernel's PTX");
    launch = reinterpret_cast<LaunchKernel>(get("cuLaunchKernel"));
  }
};

void launches(Context &context) {
  constexpr int calls = 200;
  constexpr int32_t n = 1000;
  ditron::Stream stream = context.stream(0).value();
  ditron::Kernel kernel = context.kernelFromText("add.py", source, "add").value();
  ditron::Memory x = context.allocate(0, n * 4, "x").value(), y = context.allocate(0, n * 4, "y").value();
  const ditron::Pointer xPointer = {x.address(), DITRON_F32}, yPointer = {y.address(), DITRON_F32};
  ditron::Launch launch;
  launch.x = 1;
  ditron::Variant variant = kernel.specialise(launch, {xPointer, yPointer, n}, {{"BLOCK", 1024}}).value();
  void *xAddress = x.address(), *yAddress = y.address(), *worldView = nullptr;
  const void *values[] = {&xAddress, &yAddress, &n};
  auto finish = [&] { check(stream.synchronize()); };

  double own = 0;
  if (stream.native()) {
    Driver driver(variant.text("asm").value());
    void *parameters[] = {&xAddress, &yAddress, const_cast<int32_t *>(&n), &worldView};
    own = measure(
        calls, [&] { driver.launch(driver.function, 1, 1, 1, 128, 1, 1, 0, stream.native(), parameters, nullptr); },
        finish);
    std::printf("%-44s %8.2f us\n", "launch, cuLaunchKernel", own);
  }
  const double variants = measure(calls, [&] { check(variant.launch(stream, 1, 1, 1, values)); }, finish);
  std::printf("%-44s %8.2f us   %+.2f us\n", "launch, ditron_variant_launch", variants, variants - own);
  const double checked =
      measure(calls, [&] { check(kernel.launch(stream, launch, {xPointer, yPointer, n}, {{"BLOCK", 1024}})); }, finish);
  std::printf("%-44s %8.2f us   %+.2f us\n", "launch, ditron_kernel_launch", checked, checked - own);
}

struct RankData {
  ditron::Stream stream;
  ditron::Memory a, b, c;
  ditron::Graph graph;
};

void gatherGemm(Context &context, int64_t m) {
  constexpr int64_t n = 4096, k = 1024;
  const uint32_t ranks = context.ranks();
  ditron_operator_options_t options;
  DITRON_INIT(options);
  options.kind = DITRON_ALL_GATHER_GEMM;
  options.m = m;
  options.n = n;
  options.k = k;
  options.weight_transposed = 1;
  ditron::Operator op = context.createOperator(options).value();
  ditron::Plan plan = op.prepare(m, n, k).value();
  std::vector<RankData> data;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    data.push_back({context.stream(rank).value(),
                    context.allocate(rank, (plan.rows(rank) + 1) * k * 2, "a").value(),
                    context.allocate(rank, n * k * 2, "b").value(),
                    context.allocate(rank, m * n * 2, "c").value(),
                    {}});
  auto enqueue = [&](uint32_t rank) {
    RankData &own = data[rank];
    check(plan.enqueue(own.stream, {own.a.address(rank), DITRON_BF16, {plan.rows(rank), k}},
                       {own.b.address(rank), DITRON_BF16, {n, k}}, {own.c.address(rank), DITRON_BF16, {m, n}}));
  };
  auto all = [&](const std::function<void(uint32_t)> &each) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      each(rank);
  };
  auto finish = [&] { check(context.synchronize()); };
  all(enqueue);
  finish();
  const double host = measure(5, [&] { all(enqueue); }, finish);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int calls = 200;
  for (int call = 0; call < calls; ++call)
    all(enqueue);
  finish();
  const std::chrono::duration<double, std::micro> enqueued = std::chrono::steady_clock::now() - begin;
  for (RankData &own : data) {
    check(own.stream.beginCapture());
    enqueue(static_cast<uint32_t>(&own - data.data()));
    own.graph = ditron::Graph::endCapture(own.stream).value();
  }
  auto replay = [&](uint32_t rank) { check(data[rank].graph.launch(data[rank].stream)); };
  all(replay);
  finish();
  const auto graphBegin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call)
    all(replay);
  finish();
  const std::chrono::duration<double, std::micro> replayed = std::chrono::steady_clock::now() - graphBegin;
  std::printf("AllGather+GEMM m=%-5lld n=%lld k=%lld, %u ranks  %8.2f us host; a call takes %.1f us enqueued, %.1f us "
              "in graphs\n",
              static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k), ranks, host,
              enqueued.count() / calls, replayed.count() / calls);
}

} // namespace

int main(int count, char **arguments) {
  try {
    Context::Options options;
    options.target = count > 1 ? arguments[1] : "cuda";
    options.ranks = count > 2 ? static_cast<uint32_t>(std::atoi(arguments[2])) : 1;
    options.timeLimitSeconds = 120;
    Context context = Context::create(options).value();
    std::printf("%s, %u ranks\n", context.target().c_str(), context.ranks());
    launches(context);
    // Simulated ranks compute for seconds what this measures the host of.
    if (context.target().rfind("sim", 0) != 0)
      for (int64_t m : {64, 1024})
        gatherGemm(context, m);
    return 0;
  } catch (const ditron::Error &error) {
    fail(error.what());
  }
}
