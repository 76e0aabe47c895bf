//===- LaunchOverhead.cpp - What a launch and an operator's call cost the host ----------------------------------------===//
//
// usage: ditron-launch-overhead [TARGET [RANKS]]      default: cuda, 1
//
// Host time per call, in microseconds, of: the driver's own launch (the same code, by cuLaunchKernel, in the same run),
// ditron_variant_launch, ditron_kernel_launch with all its checks, and the operators for all ranks from one thread: with the same
// tensors each time, with two sets by turns, with one operation after the other (no_call_graphs), and as graphs of the caller's.
// Median over rounds; the queue is empty at the start of a round and never full. Through the shared library only. On the tests'
// stand-in for the driver (LD_LIBRARY_PATH=build/fake-cuda) it also prints how many calls of the driver a rank's call takes.
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

/// Of the tests' stand-in for the driver: the calls it got; null on a real driver.
using TakeLog = const char *(*)();
TakeLog standInLog() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  return library ? reinterpret_cast<TakeLog>(dlsym(library, "fakeCudaTakeLog")) : nullptr;
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
  if (stream.native() && !standInLog()) {
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

/// What a rank's calls take and give; two sets of tensors.
struct RankData {
  ditron::Stream stream;
  ditron::Memory a[2], b[2], c[2];
  ditron::Graph graph;
};

/// An operator on all ranks.
class Calls {
public:
  Calls(Context &context, ditron_operator_kind_t kind, int64_t m)
      : context(context), gathers(kind == DITRON_ALL_GATHER_GEMM), m(m) {
    ditron_operator_options_t options;
    DITRON_INIT(options);
    options.kind = kind;
    options.m = m;
    options.n = n;
    options.k = k;
    options.weight_transposed = 1;
    op = context.createOperator(options).value();
    plan = op.prepare(m, n, k).value();
    for (uint32_t rank = 0; rank < context.ranks(); ++rank) {
      data.push_back({});
      data.back().stream = context.stream(rank).value();
      for (int set : {0, 1}) {
        data.back().a[set] = context.allocate(rank, m * k * 2, "a").value();
        data.back().b[set] = context.allocate(rank, n * k * 2, "b").value();
        data.back().c[set] = context.allocate(rank, m * n * 2, "c").value();
      }
    }
  }

  void enqueue(uint32_t rank, int set) {
    RankData &own = data[rank];
    const int64_t rows = plan.rows(rank);
    check(plan.enqueue(own.stream, {own.a[set].address(rank), DITRON_BF16, {gathers ? rows : m, k}},
                       {own.b[set].address(rank), DITRON_BF16, {n, k}},
                       {own.c[set].address(rank), DITRON_BF16, {gathers ? m : rows, n}}));
  }
  void all(int set) {
    for (uint32_t rank = 0; rank < data.size(); ++rank)
      enqueue(rank, set);
  }
  void capture() {
    for (uint32_t rank = 0; rank < data.size(); ++rank) {
      check(data[rank].stream.beginCapture());
      enqueue(rank, 0);
      data[rank].graph = ditron::Graph::endCapture(data[rank].stream).value();
    }
  }
  void replay() {
    for (RankData &own : data)
      check(own.graph.launch(own.stream));
  }
  void finish() { check(context.synchronize()); }

  /// Microseconds of the host per call on all ranks.
  double host(const std::function<void()> &call) {
    call();
    finish();
    return measure(5, call, [&] { finish(); });
  }
  /// Microseconds from a call to the next when the ranks have always enough to do.
  double device(const std::function<void()> &call) {
    constexpr int calls = 200;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    finish();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    return elapsed.count() / calls;
  }

private:
  static constexpr int64_t n = 4096, k = 1024;
  Context &context;
  bool gathers;
  int64_t m;
  ditron::Operator op;
  ditron::Plan plan;
  std::vector<RankData> data;
};

/// How many calls of the driver it takes, per rank; -1 on a real driver, which does not tell.
double driverCalls(const std::function<void()> &call, uint32_t ranks) {
  const TakeLog takeLog = standInLog();
  if (!takeLog)
    return -1;
  takeLog();
  call();
  const std::string log = takeLog();
  return static_cast<double>(std::count(log.begin(), log.end(), '\n')) / ranks;
}

void print(const char *what, Calls &calls, uint32_t ranks, const std::function<void()> &call) {
  const double host = calls.host(call);
  std::printf("  %-32s %8.2f us   a call takes %6.1f us", what, host, calls.device(call));
  const double perRank = driverCalls(call, ranks);
  calls.finish();
  if (perRank >= 0)
    std::printf("   %.1f driver calls a rank", perRank);
  std::printf("\n");
}

void operators(Context &context, Context &oneByOne, ditron_operator_kind_t kind, int64_t m) {
  const uint32_t ranks = context.ranks();
  std::printf("%s m=%lld n=4096 k=1024, %u ranks from one thread, host time of a call on all:\n",
              kind == DITRON_ALL_GATHER_GEMM ? "AllGather+GEMM" : "GEMM+ReduceScatter", static_cast<long long>(m),
              ranks);
  {
    Calls calls(context, kind, m);
    int turn = 0;
    print("same tensors", calls, ranks, [&] { calls.all(0); });
    print("two sets of tensors by turns", calls, ranks, [&] { calls.all(turn ^= 1); });
    calls.capture();
    print("the caller's graphs", calls, ranks, [&] { calls.replay(); });
  }
  Calls calls(oneByOne, kind, m);
  print("one operation after the other", calls, ranks, [&] { calls.all(0); });
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
    if (context.target().rfind("sim", 0) == 0)
      return 0;
    options.callGraphs = false;
    Context oneByOne = Context::create(options).value();
    for (ditron_operator_kind_t kind : {DITRON_ALL_GATHER_GEMM, DITRON_GEMM_REDUCE_SCATTER})
      for (int64_t m : {64, 2048})
        // The stand-in's kernels open no gates, for which the other one would wait for ever.
        if (kind == DITRON_ALL_GATHER_GEMM || !standInLog())
          operators(context, oneByOne, kind, m);
    return 0;
  } catch (const ditron::Error &error) {
    fail(error.what());
  }
}
