//===- KernelTest.h - Kernels from source text to results --------------------------------------------------*- C++ -*-===//
//
// The fixture of the end-to-end tests: a test has kernel text, arguments and a plain C++ reference. The fixture compiles the
// text through the whole pipeline (Jit), runs it on simulated ranks and hands the memory back. Compiled variants are kept for
// the whole program, so that tests which differ only in data or seed compile once.
//
//   class Add : public KernelTest {};
//   TEST_F(Add, Vectors) {
//     Buffer x = put<float>({1, 2, 3, 4}), out = zeros(DataType::F32, 4);
//     ASSERT_OK(run(addText, "add", {}, {{x, out}, {{"BLOCK", 4}}}));
//     expectSame(get<float>(out), {2, 4, 6, 8});
//   }
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_KERNELTEST_H
#define DITRON_TESTS_E2E_KERNELTEST_H

#include "ditron/jit/Jit.h"
#include "ditron/runtime/World.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <sstream>

namespace ditron::e2e {

using runtime::Argument;
using runtime::Buffer;
using runtime::Pointer;
using runtime::Rank;
using runtime::SymmetricBuffer;
using runtime::World;
using runtime::WorldOptions;

inline Status statusOf(const Status &status) { return status; }
template <typename T> Status statusOf(const Expected<T> &expected) { return expected.status(); }

/// Fail with the error's message. The ASSERT form leaves the test.
#define ASSERT_OK(expression)                                                                                          \
  do {                                                                                                                 \
    const ::ditron::Status okStatus_ = ::ditron::e2e::statusOf(expression);                                            \
    ASSERT_TRUE(okStatus_.isOk()) << #expression << "\n" << toString(okStatus_.code()) << ": " << okStatus_.message(); \
  } while (false)
#define EXPECT_OK(expression)                                                                                          \
  do {                                                                                                                 \
    const ::ditron::Status okStatus_ = ::ditron::e2e::statusOf(expression);                                            \
    EXPECT_TRUE(okStatus_.isOk()) << #expression << "\n" << toString(okStatus_.code()) << ": " << okStatus_.message(); \
  } while (false)

/// The element type of a C++ type.
template <typename T> constexpr DataType dataTypeOf() {
  if constexpr (std::is_same_v<T, double>)
    return DataType::F64;
  else if constexpr (std::is_same_v<T, float>)
    return DataType::F32;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DataType::I8 : DataType::U8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? DataType::I16 : DataType::U16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? DataType::I32 : DataType::U32;
  else
    return std::is_signed_v<T> ? DataType::I64 : DataType::U64;
}

/// The imports in front of every kernel text.
extern const std::string_view kernelPrologue;
/// Lines of kernelPrologue: line n of a test's text is line n + prologueLines of the file.
uint32_t prologueLines();

/// A launch's geometry and options.
struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  uint32_t numWarps = 4;
  uint32_t numStages = 3;
};

/// What the tests run on: the environment variable TEST_TARGET (for example cuda), or the simulator.
std::string targetUnderTest();
bool isSimulated();
/// How a wait that nothing can end comes back: the simulator knows that it never ends, a GPU that its time limit has passed.
inline StatusCode endlessWaitCode() { return isSimulated() ? StatusCode::Deadlock : StatusCode::TimeOut; }
/// How many ranks a test that wants so many can have: as many GPUs as there are, any number of simulated ones. Kernels of
/// several ranks on one GPU could not wait for each other.
uint32_t ranksOnTarget(uint32_t wanted);
/// How many random cases a test runs: the number in an environment variable, else the default.
int casesWanted(const char *variable, int byDefault);
/// Leaves the test, or its SetUp, on a machine with fewer GPUs.
#define REQUIRE_RANKS(count)                                                                                           \
  do {                                                                                                                 \
    if (ranksOnTarget(count) < (count))                                                                                \
      GTEST_SKIP() << "needs " << (count) << " GPUs; this machine shows " << ranksOnTarget(count);                     \
  } while (false)

/// The program's compiler for a target, with its cache of variants.
jit::Jit &jitFor(const std::string &target);
/// That for the target under test.
jit::Jit &sharedJit();

class KernelTest : public testing::Test {
protected:
  /// Makes the world; without a call of it there is one of one rank.
  void start(uint32_t ranks, const WorldOptions &options = {});
  /// Options of a world with a seed and, perhaps, a rank for which everything takes `factor` times as long.
  static WorldOptions seeded(uint64_t seed, std::optional<uint32_t> slowRank = std::nullopt, double factor = 8) {
    WorldOptions options;
    options.seed = seed;
    if (slowRank)
      options.slowRanks[*slowRank] = factor;
    return options;
  }
  World &world();
  Rank &rank(uint32_t id = 0) { return world().rank(id); }

  /// Memory with these values on a rank.
  template <typename T> Buffer put(const std::vector<T> &values, std::string_view name = "x", uint32_t rankId = 0) {
    Buffer buffer = zeros(dataTypeOf<T>(), values.size(), name, rankId);
    EXPECT_OK(buffer.upload(values.data(), values.size() * sizeof(T)));
    return buffer;
  }
  /// The same, rounded to any element type.
  Buffer putAs(DataType type, const std::vector<float> &values, std::string_view name = "x", uint32_t rankId = 0);
  Buffer zeros(DataType type, uint64_t count, std::string_view name = "out", uint32_t rankId = 0);
  SymmetricBuffer symmetric(DataType type, uint64_t count, std::string_view name);

  template <typename T> std::vector<T> get(const Buffer &buffer) {
    EXPECT_EQ(sizeof(T), sizeOf(buffer.type()));
    std::vector<T> values(buffer.count());
    EXPECT_OK(buffer.download(values.data(), buffer.bytes()));
    return values;
  }
  template <typename T> std::vector<T> get(const SymmetricBuffer &buffer, uint32_t rankId) {
    std::vector<T> values(buffer.count());
    EXPECT_OK(buffer.download(rankId, values.data(), buffer.bytes()));
    return values;
  }
  std::vector<float> getFloats(const Buffer &buffer);

  /// Compiles `text` behind the prologue and enqueues one launch on a rank's default stream.
  Status launch(std::string_view text, std::string_view kernel, const LaunchShape &shape,
                const jit::CallArguments &arguments, uint32_t rankId = 0);
  /// The same, and waits for all ranks.
  Status run(std::string_view text, std::string_view kernel, const LaunchShape &shape,
             const jit::CallArguments &arguments, uint32_t rankId = 0);

private:
  std::unique_ptr<World> worldValue;
};

/// Uniform values in [low, high), the same for the same seed on every machine; rounded to the type when one is given.
std::vector<float> randomFloats(size_t count, uint64_t seed, float low = -1, float high = 1,
                                DataType type = DataType::F32);
/// Uniform integers in [low, high].
std::vector<int64_t> randomIntegers(size_t count, uint64_t seed, int64_t low, int64_t high);
template <typename To, typename From> std::vector<To> convertAll(const std::vector<From> &values) {
  return std::vector<To>(values.begin(), values.end());
}

/// All elements equal; tells the number of wrong ones and the first few. NaN equals NaN.
template <typename T>
void expectSame(const std::vector<T> &actual, const std::vector<T> &expected, std::string_view what = "") {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  size_t wrong = 0;
  std::ostringstream text;
  for (size_t i = 0; i < actual.size(); ++i) {
    bool same = actual[i] == expected[i];
    if constexpr (std::is_floating_point_v<T>)
      same = same || (std::isnan(actual[i]) && std::isnan(expected[i]));
    if (!same && ++wrong <= 5)
      text << "  [" << i << "] is " << +actual[i] << ", expected " << +expected[i] << "\n";
  }
  EXPECT_EQ(wrong, 0u) << what << ": " << wrong << " of " << actual.size() << " elements differ\n" << text.str();
}

/// |actual - expected| <= absolute + relative * |expected| everywhere; infinities and NaN match themselves.
void expectClose(const std::vector<double> &actual, const std::vector<double> &expected, double relative,
                 double absolute, std::string_view what = "");
inline void expectClose(const std::vector<float> &actual, const std::vector<double> &expected, double relative,
                        double absolute, std::string_view what = "") {
  expectClose(convertAll<double>(actual), expected, relative, absolute, what);
}

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_KERNELTEST_H
