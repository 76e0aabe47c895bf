// Captures kernels of your own into a graph and replays it: one call a step, whatever the number of kernels. The argument is the
// target, "sim:sm_80" or "cuda". Prints:
//   100 replays of 3 kernels on sim:sm_80: every element is 300
#include <ditron/ditron.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

static const char *const source = R"(
import triton
import triton.language as tl


@triton.jit
def increment(X, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + offsets, tl.load(X + offsets, mask=offsets < n) + 1, mask=offsets < n)
)";

static ditron::Status capture(ditron::Kernel &increment, ditron::Stream &stream, ditron::Pointer x, int32_t n) {
  ditron::Launch launch;
  launch.x = static_cast<uint32_t>((n + 255) / 256);
  ditron::Status status = stream.beginCapture();
  for (int step = 0; status.ok() && step < 3; ++step)
    status = increment.launch(stream, launch, {x, n}, {{"BLOCK", 256}});
  return status;
}

static int run(const char *target) {
  constexpr int32_t n = 1000;
  ditron::Context::Options options;
  options.target = target;
  ditron::Context context = ditron::Context::create(options).value();
  ditron::Stream stream = context.stream(0).value();
  ditron::Kernel increment = context.kernelFromText("increment.py", source, "increment").value();
  ditron::Memory x = context.allocate(0, n * sizeof(float), "x").value();
  const ditron::Pointer pointer = {x.address(), DITRON_F32};
  // Loading code waits for the GPU, so it must not happen in a capture: this makes the variant.
  ditron::Variant variant = increment.specialise({}, {pointer, n}, {{"BLOCK", 256}}).value();

  ditron::Status status = capture(increment, stream, pointer, n);
  ditron::Graph graph = ditron::Graph::endCapture(stream).value();
  for (int replay = 0; status.ok() && replay < 100; ++replay)
    status = graph.launch(stream);
  if (status.ok())
    status = stream.synchronize();
  std::vector<float> values(n);
  if (status.ok())
    status = x.download(0, values.data(), n * sizeof(float));
  if (!status.ok()) {
    std::fprintf(stderr, "graph_capture: %s\n", status.message().c_str());
    return 1;
  }
  const bool right = std::all_of(values.begin(), values.end(), [](float value) { return value == 300; });
  std::printf("100 replays of 3 kernels on %s: %s\n", context.target().c_str(),
              right ? "every element is 300" : "something else");
  return right ? 0 : 1;
}

int main(int count, char **arguments) {
  try {
    return run(count > 1 ? arguments[1] : "sim:sm_80");
  } catch (const ditron::Error &error) {
    std::fprintf(stderr, "graph_capture: %s\n", error.what());
    return 1;
  }
}
