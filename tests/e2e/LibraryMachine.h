//===- LibraryMachine.h - One GPU for tests of the library's kernels ----------------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_LIBRARYMACHINE_H
#define DITRON_TESTS_E2E_LIBRARYMACHINE_H

#include "KernelTest.h"
#include "ditron/jit/Jit.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/Reference.h"

namespace ditron::e2e {

/// One simulated GPU of a target, or the one under test, with its compiler.
struct Machine {
  std::unique_ptr<World> world;
  jit::Jit *jit = nullptr;

  explicit Machine(const std::string &target) {
    auto made = World::local(1, target, {});
    EXPECT_OK(made);
    world = std::move(made).value();
    jit = &jitFor(world->target());
  }
  Rank &rank() { return world->rank(0); }
  Buffer put(DataType type, const std::vector<float> &values) {
    auto buffer = rank().allocate(type, values.size(), "operand");
    EXPECT_OK(buffer);
    EXPECT_OK(buffer->uploadFloats(values));
    return std::move(buffer).value();
  }
  /// Memory in which an element that is not written shows.
  Buffer unwritten(DataType type, size_t count) {
    return put(type, std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()));
  }
  /// Runs the call `times` times and gives what `out` holds then.
  std::vector<float> run(const Expected<ops::PreparedCall> &call, const Buffer &out, int times = 1) {
    EXPECT_OK(call);
    for (int i = 0; i < times && call.isOk(); ++i)
      EXPECT_OK(call->enqueue(rank().stream()));
    EXPECT_OK(world->synchronize());
    auto values = out.downloadFloats();
    EXPECT_OK(values);
    return values.isOk() ? *values : std::vector<float>();
  }
};

/// `usual`: see ops::compare.
inline void expectWithin(const std::vector<float> &actual, const std::vector<double> &expected, double relative,
                         const std::string &what, const std::vector<double> &usual = {}) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const ops::Comparison comparison = ops::compare(actual, expected, {relative}, usual);
  EXPECT_TRUE(comparison.passed()) << what << ": element " << comparison.worstIndex << " is "
                                   << actual[comparison.worstIndex] << ", expected " << expected[comparison.worstIndex]
                                   << ", allowed error " << comparison.allowed;
}

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_LIBRARYMACHINE_H
