//===- Fault_test.cpp - Kernels that touch what is no memory ------------------------------------------------------===//
#include "Harness.h"

#include <csignal>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<Machine> machineThat(bool checksBounds) {
  MachineOptions options;
  options.checkBounds = checksBounds;
  options.threadStackBytes = 64 << 10;
  return makeMachine(options);
}

/// Announces a store, as compiled code does, and makes it.
void storeAt(void **arguments) {
  auto *address = argument<float *>(arguments, 0);
  DitronSimThread *self = ditron_sim_self();
  ditron_sim_access(self, address, 4, self->threadId == 5, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(12));
  if (self->threadId == 5)
    *static_cast<volatile float *>(address) = 1;
}

/// Touches memory of which nobody told the simulator.
void storeUnannounced(void **arguments) { *static_cast<volatile float *>(argument<float *>(arguments, 0)) = 1; }

/// Each call reads the frame of its caller, so that no two can be one.
[[gnu::noinline]] int descend(int depth, volatile const char *caller) { // NOLINT(misc-no-recursion)
  volatile char frame[1024];
  frame[0] = static_cast<char>(caller[0] + 1);
  return depth == 0 ? frame[0] : descend(depth - 1, frame) + frame[0];
}
void useUpTheStack(void **) { descend(1000, ""); }

float *const nowhere = reinterpret_cast<float *>(uintptr_t(0x1000));

TEST(Fault, WithoutBoundsChecksAWildStoreEndsTheRunAndNamesTheLine) {
  auto machine = machineThat(/*checksBounds=*/false);
  Status status = runOnce(*machine, kernel("wild", storeAt, {2, 1, 1}, 32, 0, nowhere));
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:12:5: kernel wild, rank 0, block ("), HasSubstr("thread 5: "),
                                      HasSubstr("at 0x1000, met no memory"), HasSubstr("run with bounds checks")));
}

TEST(Fault, TheProcessGoesOn) {
  for (int round = 0; round < 3; ++round) {
    auto machine = machineThat(/*checksBounds=*/false);
    EXPECT_FALSE(runOnce(*machine, kernel("wild", storeAt, {1, 1, 1}, 32, 0, nowhere)).isOk());
    auto next = machineThat(/*checksBounds=*/false);
    auto *word = makeBuffer<float>(*next, 0, 1, "word");
    EXPECT_OK(runOnce(*next, kernel("tame", storeAt, {1, 1, 1}, 32, 0, word)));
    EXPECT_EQ(*word, 1);
  }
}

TEST(Fault, WithBoundsChecksItIsABugOfOurs) {
  auto machine = machineThat(/*checksBounds=*/true);
  Status status = runOnce(*machine, kernel("unannounced", storeUnannounced, {1, 1, 1}, 1, 0, nowhere));
  EXPECT_EQ(status.code(), StatusCode::Internal);
  EXPECT_THAT(status.message(), HasSubstr("the simulator itself touched 0x1000, which is no memory"));
}

TEST(Fault, AStackThatIsUsedUpIsNamed) {
  auto machine = machineThat(/*checksBounds=*/true);
  Status status = runOnce(*machine, kernel("deep", useUpTheStack, {1, 1, 1}, 1, 0));
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("the thread's stack of 65536 bytes is used up"));
}

TEST(Fault, OutsideOfKernelsItIsWhoeverHandledItBefore) {
  const auto fail = [] {
    auto machine = machineThat(/*checksBounds=*/false);
    (void)runOnce(*machine, kernel("wild", storeAt, {1, 1, 1}, 32, 0, nowhere)); // the handler is there
    *static_cast<volatile float *>(nowhere) = 1;
  };
  EXPECT_EXIT(fail(), testing::KilledBySignal(SIGSEGV), "");
}

} // namespace
} // namespace ditron::sim
