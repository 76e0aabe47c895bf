//===- Origin_test.cpp - Accesses that leave what their address was made from -------------------------------------===//

#include "ditron/sim/test/Harness.h"

#include <random>

namespace ditron::sim {
namespace {

using testing::HasSubstr;

const DitronSimOrigin firstArgument{1, 0, 0, 0}, arrayOrigin{0, 64, 32, 12};
const DitronSimSite storeSite{"kernel.py", 7, 5, &firstArgument}, arraySite{"kernel.py", 9, 5, &arrayOrigin};

/// Stores at an address that was made from the first argument.
void storeAt(void **arguments) {
  auto *address = argument<char *>(arguments, 1);
  ditron_sim_access(ditron_sim_self(), address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, &storeSite);
  *reinterpret_cast<uint32_t *>(address) = 1;
}

LaunchDescription store(const void *pointer, const void *address) {
  return kernel("store", storeAt, {1, 1, 1}, 1, 0, pointer, address);
}

TEST(Origin, WhatTheArgumentPointsToMayBeReachedAndNothingElse) {
  auto run = [](size_t from, int64_t offset) {
    auto machine = makeMachine();
    auto *a = makeBuffer<char>(*machine, 0, 256, "a");
    auto *b = makeBuffer<char>(*machine, 0, 65536, "b");
    (void)b;
    return runOnce(*machine, store(a + from, a + offset));
  };
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    // Wherever in `a` the pointer leads, all of `a` may be reached.
    const size_t from = random() % 256;
    const int64_t offset = static_cast<int64_t>(random() % 40000) / 4 * 4 - 4096;
    const Status status = run(from, offset);
    EXPECT_EQ(status.isOk(), offset >= 0 && offset < 256) << offset << ": " << status.message();
  }
  EXPECT_THAT(run(0, 4096).message(),
              HasSubstr("has left a (rank 0, 256 bytes), which its pointer leads into: it has got to b["));
}

TEST(Origin, OfAnotherRankIsTheSameAllocation) {
  for (bool isSame : {true, false}) {
    MachineOptions options;
    options.ranks = 2;
    auto machine = makeMachine(options);
    auto *first = makeBuffer<char>(*machine, 0, 256, "first", MemoryKind::Symmetric);
    auto *second = makeBuffer<char>(*machine, 0, 256, "second", MemoryKind::Symmetric);
    auto *peers = makeBuffer<char>(*machine, 1, 256, "first", MemoryKind::Symmetric);
    const ptrdiff_t distance = peers - first;
    const Status status = runOnce(*machine, store(isSame ? first : second, first + distance));
    EXPECT_EQ(status.isOk(), isSame) << status.message();
  }
}

TEST(Origin, EachLaunchHasItsOwnArguments) {
  auto machine = makeMachine();
  auto *a = makeBuffer<char>(*machine, 0, 256, "a");
  auto *b = makeBuffer<char>(*machine, 0, 256, "b");
  const StreamId stream = makeStream(*machine, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(machine->launch(stream, store(a, a)));
    ASSERT_OK(machine->launch(stream, store(b, b)));
  }
  ASSERT_OK(machine->synchronize());
  ASSERT_OK(machine->launch(stream, store(b, a)));
  EXPECT_THAT(machine->synchronize().message(), HasSubstr("has left b"));
}

TEST(Origin, APointerToNothingSaysNothing) {
  auto machine = makeMachine();
  auto *a = makeBuffer<char>(*machine, 0, 256, "a");
  EXPECT_OK(runOnce(*machine, store(nullptr, a)));
}

TEST(Origin, ArraysInSharedMemoryAreApart) {
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    ditron_sim_st(self, self->sharedMemory + argument<uint32_t>(arguments, 0), 1, 4, DITRON_SIM_RELAXED,
                  DITRON_SIM_SCOPE_BLOCK, &arraySite);
  };
  for (uint32_t offset = 0; offset < 128; offset += 4) {
    auto machine = makeMachine();
    const Status status = runOnce(*machine, kernel("array", entry, {1, 1, 1}, 1, 128, offset));
    EXPECT_EQ(status.isOk(), offset >= 64 && offset < 96) << offset << ": " << status.message();
    if (offset == 96)
      EXPECT_THAT(
          status.message(),
          HasSubstr("store of 4 bytes has left the 32 bytes of shared memory of line 12: it is at byte 32 of it"));
  }
}

TEST(Origin, BehindAllSharedMemoryTheArrayIsNamed) {
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    char *address = self->sharedMemory + argument<uint32_t>(arguments, 0);
    const DitronSimSite *site = argument<bool>(arguments, 1) ? &arraySite : AT(30);
    if (argument<bool>(arguments, 2))
      ditron_sim_st(self, address, 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_BLOCK, site);
    else
      ditron_sim_access(self, address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GENERIC, site);
  };
  for (const bool isOrdered : {true, false})
    for (const bool isKnown : {true, false}) {
      auto machine = makeMachine();
      const Status status =
          runOnce(*machine, kernel("array", entry, {1, 1, 1}, 1, 128, uint32_t(128), isKnown, isOrdered));
      EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
      EXPECT_THAT(
          status.message(),
          HasSubstr(isKnown
                        ? "store of 4 bytes has left the 32 bytes of shared memory of line 12: it is at byte 64 of it"
                        : "store of 4 bytes is outside of the block's shared memory: offset 128, size 128"));
    }
}

TEST(Origin, WhatIsMadeFromAnArgumentIsNoSharedMemoryHoweverNear) {
  auto machine = makeMachine();
  auto *where = makeBuffer<char *>(*machine, 0, 1, "where");
  auto noteShared = [](void **arguments) { *argument<char **>(arguments, 0) = ditron_sim_self()->sharedMemory; };
  ASSERT_OK(runOnce(*machine, kernel("note", noteShared, {1, 1, 1}, 1, 0, where)));
  const auto *near = reinterpret_cast<const char *>((reinterpret_cast<uintptr_t>(*where) & ~uintptr_t(3)) - (1 << 18));
  EXPECT_THAT(runOnce(*machine, store(near, near)).message(), HasSubstr("is outside of every allocation"));
}

TEST(Origin, DistancesAreToldWhereTheyAreTheSameInEveryRun) {
  auto run = [](int64_t distance, uint32_t ranks, MemoryKind kind) {
    MachineOptions options;
    options.ranks = ranks;
    auto machine = makeMachine(options);
    auto *a = makeBuffer<char>(*machine, 0, 256, "a", kind);
    return runOnce(*machine, store(a, a + distance)).message();
  };
  constexpr int64_t far = int64_t(1) << 42;
  EXPECT_THAT(
      run(far, 1, MemoryKind::Device),
      HasSubstr("no memory of any rank; there is no allocation near it; it is 4398046510848 bytes past the end of a"));
  EXPECT_THAT(run(-far, 2, MemoryKind::Device), HasSubstr("near it; it is 4398046511104 bytes before the start of a"));
  EXPECT_THAT(run(far, 2, MemoryKind::Symmetric), testing::EndsWith("there is no allocation near it"));
  auto machine = makeMachine();
  auto *a = makeBuffer<char>(*machine, 0, 256, "a");
  EXPECT_THAT(runOnce(*machine, store(a, reinterpret_cast<const char *>(20))).message(),
              testing::EndsWith("at 0x14 is outside of every allocation: it is a null pointer plus 20 bytes"));
}

TEST(Origin, WideAccessesAreAligned) {
  auto entry = [](void **arguments) {
    ditron_sim_access(ditron_sim_self(), argument<char *>(arguments, 0), argument<uint32_t>(arguments, 1), 1,
                      DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, AT(20));
  };
  for (uint32_t bytes : {1, 2, 4, 8, 16})
    for (uint32_t offset = 0; offset < 32; ++offset) {
      auto machine = makeMachine();
      auto *a = makeBuffer<char>(*machine, 0, 64, "a");
      const Status status = runOnce(*machine, kernel("load", entry, {1, 1, 1}, 1, 0, a + offset, bytes));
      EXPECT_EQ(status.isOk(), offset % bytes == 0) << offset << " " << bytes << ": " << status.message();
    }
}

} // namespace
} // namespace ditron::sim
