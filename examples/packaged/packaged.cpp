// Kernels that were compiled together with the program (CMakeLists.txt), called with their types. This program links
// Ditron::runtime: there is no compiler in it, and what was not compiled ahead of time is an error that says how to. With the
// argument "cuda" it runs on a real GPU. Prints:
//   softmax of 5 rows of 300: rows add up to 1; shift by 5: ok; a column type that was not compiled: refused
#include "packaged_kernels.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

static bool ok(const ditron::Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "packaged: %s\n", status.message().c_str());
  return status.ok();
}

static int run(const char *target) {
  constexpr uint32_t rows = 5;
  constexpr int32_t columns = 300;
  ditron_context_options_t options;
  DITRON_INIT(options);
  options.target = target;
  options.packages = &packaged::packagePath;
  options.package_count = 1;
  ditron::Context context = ditron::Context::create(options).value();
  ditron::Stream stream = context.stream(0).value();
  packaged::Softmax softmax = packaged::Softmax::find(context).value();
  packaged::Shift shift = packaged::Shift::find(context).value();

  std::vector<float> x(rows * columns), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  const uint64_t bytes = x.size() * sizeof(float);
  ditron::Memory xMemory = context.allocate(0, bytes, "x").value(), yMemory = context.allocate(0, bytes, "y").value();
  float *xs = static_cast<float *>(xMemory.address()), *ys = static_cast<float *>(yMemory.address());
  ditron::Launch launch;
  launch.x = rows;
  if (!ok(xMemory.upload(0, x.data(), bytes)) || !ok(softmax(stream, launch, xs, ys, columns)) || !ok(stream.synchronize()) ||
      !ok(yMemory.download(0, y.data(), bytes)))
    return 1;
  double worst = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int32_t column = 0; column < columns; ++column)
      sum += y[row * columns + column];
    worst = std::max(worst, std::abs(sum - 1));
  }

  std::vector<int32_t> numbers(320, 7);
  ditron::Memory numberMemory = context.allocate(0, numbers.size() * 4, "numbers").value();
  launch.x = 3;
  if (!ok(numberMemory.upload(0, numbers.data(), numbers.size() * 4)) ||
      !ok(shift(stream, launch, static_cast<int32_t *>(numberMemory.address()), 5, 320)) || !ok(stream.synchronize()) ||
      !ok(numberMemory.download(0, numbers.data(), numbers.size() * 4)))
    return 1;
  bool shifted = true;
  for (int32_t number : numbers)
    shifted = shifted && number == 12;

  const ditron::Status refused = softmax.kernel().launch(stream, launch, {xs, xs, 1.5}, {{"BLOCK", 512}});
  const bool named = refused.message().find("ditron build ") != std::string::npos;
  std::printf("softmax of %u rows of %d: rows add up to %s; shift by 5: %s; a column type that was not compiled: %s\n", rows, columns,
              worst < 1e-5 ? "1" : "something else", shifted ? "ok" : "wrong", !refused.ok() && named ? "refused" : "not refused");
  return 0;
}

int main(int count, char **arguments) {
  try {
    return run(count > 1 ? arguments[1] : "sim:sm_80");
  } catch (const ditron::Error &error) {
    std::fprintf(stderr, "packaged: %s\n", error.what());
    return 1;
  }
}
