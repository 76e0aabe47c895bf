// A kernel of your own from C++: compiled when the program starts, run on this program's own arrays on a simulated GPU (or, with
// the argument "cuda", on a real one). Prints:
//   softmax of 5 rows of 300 on sim:sm_80: rows add up to 1
#include <ditron/ditron.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

static const char *const source = R"(
import triton
import triton.language as tl


@triton.jit
def softmax(X, Y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(X + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + row * columns + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)
)";

static int run(const char *target) {
  constexpr uint32_t rows = 5;
  constexpr int32_t columns = 300;
  ditron::Context::Options options;
  options.target = target;
  ditron::Context context = ditron::Context::create(options).value();
  ditron::Stream stream = context.stream(0).value();
  ditron::Kernel softmax = context.kernelFromText("softmax.py", source, "softmax").value();

  std::vector<float> x(rows * columns), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  const uint64_t bytes = x.size() * sizeof(float);
  ditron::Memory xMemory = context.allocate(0, bytes, "x").value(), yMemory = context.allocate(0, bytes, "y").value();
  ditron::Launch launch;
  launch.x = rows;
  ditron::Status status = xMemory.upload(0, x.data(), bytes);
  if (status.ok())
    status = softmax.launch(
        stream, launch,
        {ditron::Pointer{xMemory.address(), DITRON_F32}, ditron::Pointer{yMemory.address(), DITRON_F32}, columns},
        {{"BLOCK", 512}});
  if (status.ok())
    status = stream.synchronize();
  if (status.ok())
    status = yMemory.download(0, y.data(), bytes);
  if (!status.ok()) {
    std::fprintf(stderr, "own_kernel: %s\n", status.message().c_str());
    return 1;
  }
  for (uint32_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int32_t column = 0; column < columns; ++column)
      sum += y[row * columns + column];
    if (std::abs(sum - 1) > 1e-5) {
      std::printf("row %u adds up to %g\n", row, sum);
      return 1;
    }
  }
  std::printf("softmax of %u rows of %d on %s: rows add up to 1\n", rows, columns, context.target().c_str());
  return 0;
}

int main(int count, char **arguments) {
  try {
    return run(count > 1 ? arguments[1] : "sim:sm_80");
  } catch (const ditron::Error &error) {
    std::fprintf(stderr, "own_kernel: %s\n", error.what());
    return 1;
  }
}
