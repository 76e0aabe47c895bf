//===- Memory_test.cpp - Allocations, bounds, atomics, asynchronous copies ----------------------------------------===//

#include "ditron/sim/memory/Atomics.h"
#include "ditron/sim/test/Harness.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Loads element `index` as compiled code does: announced, then native.
void loadKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *address = argument<float *>(arguments, 0) + argument<int64_t>(arguments, 1);
  bool active = self->threadId == 3;
  ditron_sim_access(self, address, 4, active, DITRON_SIM_LOAD, DITRON_SIM_GLOBAL, AT(50));
  if (active)
    *argument<float *>(arguments, 2) = *address;
}

TEST(Bounds, AcceptTheWholeAllocationAndNothingElse) {
  for (int64_t index : {int64_t(0), int64_t(99), int64_t(100), int64_t(-1), int64_t(130), int64_t(1) << 40}) {
    auto machine = makeMachine();
    auto *data = makeBuffer<float>(*machine, 0, 100, "weights");
    auto *out = makeBuffer<float>(*machine, 0, 1, "out");
    Status status = runOnce(*machine, kernel("load", loadKernel, {2, 1, 1}, 32, 0, data, index, out));
    if (index >= 0 && index < 100) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:50:5: kernel load, rank 0, block ("),
                                        HasSubstr("thread 3: load of 4 bytes at ")));
    if (index == 100)
      EXPECT_THAT(status.message(), HasSubstr("just past the end of weights (400 bytes, device memory of rank 0)"));
    if (index == -1)
      EXPECT_THAT(status.message(), HasSubstr("4 bytes before the start of weights (400 bytes"));
    if (index == 130)
      EXPECT_THAT(status.message(), HasSubstr("120 bytes past the end of weights"));
    if (index == int64_t(1) << 40)
      EXPECT_THAT(status.message(),
                  HasSubstr("the address is in no memory of any rank; there is no allocation near it"));
  }
}

TEST(Bounds, AnAccessThatStraddlesTheEndIsReported) {
  auto machine = makeMachine();
  auto *data = makeBuffer<char>(*machine, 0, 102, "bytes");
  auto *out = makeBuffer<float>(*machine, 0, 1, "out");
  Status status = runOnce(
      *machine, kernel("load", loadKernel, {1, 1, 1}, 32, 0, reinterpret_cast<float *>(data), int64_t(25), out));
  EXPECT_THAT(
      status.message(),
      HasSubstr(
          "it begins 2 bytes before the end of bytes (102 bytes, device memory of rank 0) and runs 2 bytes past it"));
}

TEST(Bounds, UseAfterFreeIsNamed) {
  auto machine = makeMachine();
  auto *data = makeBuffer<float>(*machine, 0, 100, "weights");
  auto *out = makeBuffer<float>(*machine, 0, 1, "out");
  ASSERT_OK(runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, 0, data, int64_t(5), out)));
  ASSERT_OK(machine->free(data));
  makeBuffer<float>(*machine, 0, 100, "other"); // takes no freed address
  Status status = runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, 0, data, int64_t(5), out));
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), HasSubstr("is a use after free: at offset 20 of freed weights"));
}

TEST(Bounds, OtherRanksSeeSymmetricMemoryOnly) {
  for (MemoryKind kind : {MemoryKind::Device, MemoryKind::Symmetric, MemoryKind::HostPinned}) {
    MachineOptions options;
    options.ranks = 2;
    auto machine = makeMachine(options);
    auto *data = makeBuffer<float>(*machine, 1, 10, "theirs", kind);
    auto *out = makeBuffer<float>(*machine, 0, 1, "out");
    data[4] = 2.5f;
    Status status = runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, 0, data, int64_t(4), out));
    if (kind == MemoryKind::Device) {
      EXPECT_THAT(status.message(),
                  HasSubstr("touches another rank's memory that is not symmetric: at offset 16 of theirs"));
    } else {
      EXPECT_OK(status);
      EXPECT_EQ(*out, 2.5f);
      EXPECT_EQ(machine->counters().remoteBytes, 4u);
    }
  }
}

TEST(Bounds, SharedMemoryIsChecked) {
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    ditron_sim_access(self, self->sharedMemory + argument<int>(arguments, 0), 8, 1, DITRON_SIM_STORE, DITRON_SIM_SHARED,
                      AT(51));
  };
  for (int offset : {0, 248, 249, -8, 256}) {
    auto machine = makeMachine();
    Status status = runOnce(*machine, kernel("shared", entry, {1, 1, 1}, 1, 256, offset));
    if (offset == 0 || offset == 248)
      EXPECT_OK(status);
    else
      EXPECT_THAT(status.message(), HasSubstr("is outside of the block's shared memory: offset " +
                                              std::to_string(offset) + ", size 256"));
  }
}

TEST(Bounds, WithoutChecksAnOverrunIsFoundAfterwards) {
  MachineOptions options;
  options.checkBounds = false;
  auto machine = makeMachine(options);
  auto *data = makeBuffer<uint32_t>(*machine, 0, 3, "short");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *address = argument<uint32_t *>(arguments, 0) + 3;
    ditron_sim_access(self, address, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(52));
    *address = 1;
  };
  Status status = runOnce(*machine, kernel("overrun", entry, {1, 1, 1}, 1, 0, data));
  EXPECT_THAT(status.message(), HasSubstr("something wrote 0 bytes past the end of short (rank 0)"));
}

TEST(Allocation, SymmetricOffsetsAgree) {
  MachineOptions options;
  options.ranks = 4;
  auto machine = makeMachine(options);
  makeBuffer<char>(*machine, 2, 5000, "uneven", MemoryKind::Symmetric);
  Expected<uint64_t> offset = machine->allocateSymmetric(1000, "signals", 8);
  ASSERT_TRUE(offset.isOk());
  for (uint32_t rank = 0; rank < 4; ++rank) {
    auto *address = static_cast<char *>(machine->symmetricBase(rank)) + *offset;
    std::optional<AddressInfo> info = machine->describe(address + 17);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->rank, rank);
    EXPECT_EQ(info->name, "signals");
    EXPECT_EQ(info->offset, 17u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 256, 0u);
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(address[i], 0);
  }
  EXPECT_OK(machine->freeSymmetric(*offset));
  EXPECT_TRUE(machine->describe(static_cast<char *>(machine->symmetricBase(0)) + *offset)->freed);
  EXPECT_THAT(machine->freeSymmetric(*offset).message(), HasSubstr("double free of signals"));
}

TEST(Allocation, RefusalsNameBuffersAndNoAddresses) {
  auto machine = makeMachine();
  auto *data = makeBuffer<int32_t>(*machine, 0, 16, "data");
  int32_t own[4];
  const auto says = [](const Status &status, const char *words) {
    EXPECT_THAT(status.message(), AllOf(HasSubstr(words), Not(HasSubstr("0x"))));
  };
  says(machine->free(data + 3), "free of data");
  says(machine->free(own), "free of an address of no memory");
  says(machine->release(own), "release of an address of no memory, which is not the start of adopted memory");
  says(machine->adopt(0, nullptr, 8, "mine"), "memory mine: 8 bytes at a null address cannot be adopted");
  says(machine->adopt(0, data + 3, 8, "mine"), "memory mine: 8 bytes meet memory that the simulator has already: ");
}

TEST(Allocation, RecyclesQuarantinedMemoryWhenTheRangeIsUsedUp) {
  MachineOptions options;
  options.memoryPerRank = 8 << 20;
  auto machine = makeMachine(options);
  for (int i = 0; i < 100; ++i) {
    Expected<void *> memory = machine->allocate(0, 1 << 20, "piece");
    ASSERT_TRUE(memory.isOk()) << memory.status().message();
    auto *bytes = static_cast<char *>(*memory);
    ASSERT_EQ(bytes[0] | bytes[(1 << 20) - 1], 0);
    bytes[0] = bytes[(1 << 20) - 1] = 1;
    ASSERT_OK(machine->free(*memory));
  }
  EXPECT_EQ(machine->allocate(0, 16 << 20, "huge").status().code(), StatusCode::ResourceExhausted);
}

/// What a machine of 8 ranks says in a process that may have so many addresses; ends the process.
[[noreturn]] void createWithin(rlim_t addressBytes) {
  const struct rlimit limit = {addressBytes, addressBytes};
  MachineOptions options;
  options.ranks = 8;
  if (setrlimit(RLIMIT_AS, &limit) != 0)
    _exit(2);
  Expected<std::unique_ptr<Machine>> machine = Machine::create(options);
  if (machine.isOk() && (*machine)->allocate(7, 16 << 20, "last").isOk() && std::malloc(64 << 20))
    _exit(0);
  std::fputs(machine.status().message().c_str(), stderr);
  _exit(1);
}

TEST(Allocation, ALimitOnAddressesIsSharedByAllRanks) {
  EXPECT_EXIT(createWithin(rlim_t(4) << 30), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(createWithin(rlim_t(600) << 20), testing::ExitedWithCode(1),
              "cannot reserve [0-9]+ bytes of addresses for each of 3 kinds of memory on 8 simulated GPUs: a limit of "
              "this process "
              "\\(ulimit -v\\) or of the system is too low; raise it, or take fewer ranks");
}

TEST(Options, NonsenseIsRefused) {
  MachineOptions options;
  options.warpSize = 48;
  EXPECT_EQ(Machine::create(options).status().message(), "simulator option warpSize: accepted is 32 or 64");
  options.warpSize = 32;
  options.slowRanks[1] = 2;
  EXPECT_EQ(Machine::create(options).status().message(),
            "simulator option slowRanks: accepted is a rank of 0..0 with a factor greater than 0");
}

//===- Atomics ----------------------------------------------------------------------------------------------------===//

TEST(Atomics, ArithmeticOfEveryOperationAndType) {
  auto integer = [](uint32_t op, uint32_t type, uint64_t old, uint64_t value) {
    return atomicResult(op, type, old, value).value();
  };
  for (uint32_t type : {DITRON_SIM_I8, DITRON_SIM_I16, DITRON_SIM_I32, DITRON_SIM_I64}) {
    const uint64_t ones = typeBytes(type) == 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * typeBytes(type)) - 1;
    EXPECT_EQ(integer(DITRON_SIM_RMW_ADD, type, ones, 2), 1u); // wraps
    EXPECT_EQ(integer(DITRON_SIM_RMW_AND, type, 12, 10), 8u);
    EXPECT_EQ(integer(DITRON_SIM_RMW_OR, type, 12, 10), 14u);
    EXPECT_EQ(integer(DITRON_SIM_RMW_XOR, type, 12, 10), 6u);
    EXPECT_EQ(integer(DITRON_SIM_RMW_MAX, type, ones, 5), 5u); // ones is -1
    EXPECT_EQ(integer(DITRON_SIM_RMW_MIN, type, ones, 5), ones);
    EXPECT_EQ(integer(DITRON_SIM_RMW_UMAX, type, ones, 5), ones);
    EXPECT_EQ(integer(DITRON_SIM_RMW_UMIN, type, ones, 5), 5u);
    EXPECT_EQ(integer(DITRON_SIM_RMW_EXCHANGE, type, 3, 9), 9u);
    EXPECT_FALSE(atomicResult(DITRON_SIM_RMW_FADD, type, 0, 0));
  }
  EXPECT_EQ(integer(DITRON_SIM_RMW_FADD, DITRON_SIM_F32, std::bit_cast<uint32_t>(1.5f), std::bit_cast<uint32_t>(2.0f)),
            std::bit_cast<uint32_t>(3.5f));
  EXPECT_EQ(integer(DITRON_SIM_RMW_FMAX, DITRON_SIM_F64, std::bit_cast<uint64_t>(-1.5), std::bit_cast<uint64_t>(-2.0)),
            std::bit_cast<uint64_t>(-1.5));
  EXPECT_EQ(integer(DITRON_SIM_RMW_FMIN, DITRON_SIM_F16, floatToHalf(3), floatToHalf(-2)), floatToHalf(-2));
  EXPECT_EQ(integer(DITRON_SIM_RMW_FADD, DITRON_SIM_BF16, floatToBfloat(256), floatToBfloat(1)),
            floatToBfloat(256)); // ties to even
  EXPECT_EQ(integer(DITRON_SIM_RMW_EXCHANGE, DITRON_SIM_F32, 1, 7), 7u);
}

TEST(Atomics, HalfFormatsRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto pattern = static_cast<uint16_t>(bits);
    if (!std::isnan(halfToFloat(pattern)))
      ASSERT_EQ(floatToHalf(halfToFloat(pattern)), pattern);
    if (!std::isnan(bfloatToFloat(pattern)))
      ASSERT_EQ(floatToBfloat(bfloatToFloat(pattern)), pattern);
  }
  EXPECT_EQ(floatToBfloat(1.0f + 1.0f / 256), 0x3f80);
  EXPECT_EQ(floatToBfloat(1.0f + 3.0f / 256), 0x3f82);
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(std::numeric_limits<float>::quiet_NaN()))));
}

void countKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *counters = argument<uint64_t *>(arguments, 0);
  // Every thread takes a ticket; odd threads are masked.
  uint64_t ticket = ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I64, counters, 1,
                                          self->threadId % 2 == 0, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(53));
  if (self->threadId % 2 == 0)
    counters[1 + ticket] += 1;
  else if (ticket != 0)
    counters[0] = 1u << 30;
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_FADD, DITRON_SIM_F32, argument<float *>(arguments, 1),
                        std::bit_cast<uint32_t>(0.5f), 1, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(54));
  auto *shared = reinterpret_cast<uint32_t *>(self->sharedMemory);
  if (self->threadId == 0)
    *shared = 0;
  ditron_sim_barrier(self, AT(55));
  ditron_sim_atomic_rmw(self, DITRON_SIM_RMW_ADD, DITRON_SIM_I32, shared, 3, 1, DITRON_SIM_RELAXED,
                        DITRON_SIM_SCOPE_BLOCK, AT(56));
  ditron_sim_barrier(self, AT(57));
  if (self->threadId == 1)
    argument<float *>(arguments, 1)[1 + self->blockId[0]] = static_cast<float>(*shared);
}

TEST(Atomics, GiveEachThreadItsOwnTicket) {
  for (uint64_t seed : {0, 1, 2}) {
    MachineOptions options;
    options.seed = seed;
    auto machine = makeMachine(options);
    auto *counters = makeBuffer<uint64_t>(*machine, 0, 1 + 12 * 64, "counters");
    auto *sums = makeBuffer<float>(*machine, 0, 13, "sums");
    ASSERT_OK(runOnce(*machine, kernel("count", countKernel, {12, 1, 1}, 128, 16, counters, sums)));
    EXPECT_EQ(counters[0], 12u * 64);
    for (int i = 0; i < 12 * 64; ++i)
      ASSERT_EQ(counters[1 + i], 1u);
    EXPECT_EQ(sums[0], 12 * 128 * 0.5f);
    for (int block = 0; block < 12; ++block)
      EXPECT_EQ(sums[1 + block], 384.0f);
  }
}

TEST(Atomics, CompareAndSwapTakesALock) {
  auto machine = makeMachine();
  auto *lock = makeBuffer<uint32_t>(*machine, 0, 2, "lock");
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *lock = argument<uint32_t *>(arguments, 0);
    if (self->threadId == 0) {
      while (ditron_sim_atomic_cas(self, lock, 0, 1, 4, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_GPU, AT(58)) != 0) {
      }
      uint32_t seen =
          static_cast<uint32_t>(ditron_sim_ld(self, lock + 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, 0, AT(59)));
      ditron_sim_st(self, lock + 1, seen + 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(60));
      ditron_sim_st(self, lock, 0, 4, DITRON_SIM_RELEASE, DITRON_SIM_SCOPE_GPU, AT(61));
    }
  };
  ASSERT_OK(runOnce(*machine, kernel("locked", entry, {50, 1, 1}, 32, 0, lock)));
  EXPECT_EQ(lock[1], 50u);
  EXPECT_EQ(lock[0], 0u);
}

TEST(Atomics, MisalignedAddressesAreReported) {
  auto machine = makeMachine();
  auto *data = makeBuffer<char>(*machine, 0, 64, "data");
  auto entry = [](void **arguments) {
    ditron_sim_st(ditron_sim_self(), argument<char *>(arguments, 0) + 2, 1, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU,
                  AT(62));
  };
  EXPECT_THAT(runOnce(*machine, kernel("misaligned", entry, {1, 1, 1}, 1, 0, data)).message(),
              HasSubstr("is not aligned to its size"));
}

//===- Asynchronous copies ----------------------------------------------------------------------------------------===//

TEST(AsyncCopy, ArrivesAtTheWaitAndNotBefore) {
  auto machine = makeMachine();
  auto *data = makeBuffer<uint32_t>(*machine, 0, 12, "data");
  auto *out = makeBuffer<uint32_t>(*machine, 0, 32, "out");
  for (uint32_t i = 0; i < 12; ++i)
    data[i] = 100 + i;
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *data = argument<uint32_t *>(arguments, 0), *out = argument<uint32_t *>(arguments, 1);
    auto *shared = reinterpret_cast<uint32_t *>(self->sharedMemory);
    for (int i = 0; i < 12; ++i)
      shared[i] = 7;
    ditron_sim_async_copy(self, shared, data, 16, 1, AT(63));
    ditron_sim_async_commit(self, AT(63));
    ditron_sim_async_copy(self, shared + 4, data + 4, 8, 1, AT(64));
    ditron_sim_async_copy(self, shared + 6, data + 6, 8, 0, AT(64)); // masked: zeros
    ditron_sim_async_commit(self, AT(64));
    ditron_sim_async_copy(self, shared + 8, data + 8, 4, 1, AT(65));
    ditron_sim_async_commit(self, AT(65));
    out[0] = shared[0] == 100;
    ditron_sim_async_wait(self, 2, AT(66));
    out[1] = shared[3];
    out[2] = shared[4] == 104;
    ditron_sim_async_wait(self, 1, AT(67));
    out[3] = shared[5];
    out[4] = shared[6] + shared[7];
    out[5] = shared[8] == 108;
    ditron_sim_async_wait(self, 0, AT(68));
    out[6] = shared[8];
    out[7] = shared[9];
  };
  ASSERT_OK(runOnce(*machine, kernel("async", entry, {1, 1, 1}, 1, 64, data, out)));
  EXPECT_EQ(std::vector<uint32_t>(out, out + 8), (std::vector<uint32_t>{0, 103, 0, 105, 0, 0, 108, 7}));
}

/// A GPU reads when it likes until the wait; in the order of the program, which the simulator keeps, nothing would be wrong.
TEST(AsyncCopy, WhatItReadsMustNotChangeBeforeTheWait) {
  for (const uint32_t value : {100u, 200u}) { // the same value, another one
    auto machine = makeMachine();
    auto *data = makeBuffer<uint32_t>(*machine, 0, 8, "data");
    data[3] = 100;
    auto entry = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      auto *data = argument<uint32_t *>(arguments, 0);
      ditron_sim_async_copy(self, self->sharedMemory, data, 16, 1, AT(71));
      ditron_sim_async_commit(self, AT(71));
      ditron_sim_access(self, data + 3, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(72));
      data[3] = argument<uint32_t>(arguments, 1);
      ditron_sim_async_wait(self, 0, AT(73));
      ditron_sim_access(self, data + 3, 4, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, AT(74));
      data[3] = 300; // behind the wait
    };
    const Status status = runOnce(*machine, kernel("overtaken", entry, {1, 1, 1}, 1, 64, data, value));
    if (value == 100) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::DataRace);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("data race on data[3]"), HasSubstr("the store at kernel.py:72"),
                                        HasSubstr("while an asynchronous copy of kernel overtaken"),
                                        HasSubstr("must not read what the loop stores")));
  }
}

TEST(AsyncCopy, ALongPipelineKeepsItsOrder) {
  auto machine = makeMachine();
  auto *data = makeBuffer<uint64_t>(*machine, 0, 1000, "data");
  auto *out = makeBuffer<uint64_t>(*machine, 0, 1000, "out");
  for (uint64_t i = 0; i < 1000; ++i)
    data[i] = i * i;
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    auto *data = argument<uint64_t *>(arguments, 0), *out = argument<uint64_t *>(arguments, 1);
    auto *shared = reinterpret_cast<uint64_t *>(self->sharedMemory);
    auto issue = [&](int i) {
      if (i < 1000)
        ditron_sim_async_copy(self, shared + i % 4, data + i, 8, 1, AT(69));
      ditron_sim_async_commit(self, AT(69));
    };
    for (int i = 0; i < 3; ++i)
      issue(i);
    for (int i = 0; i < 1000; ++i) {
      ditron_sim_async_wait(self, 2, AT(70));
      out[i] = shared[i % 4];
      issue(i + 3);
    }
  };
  ASSERT_OK(runOnce(*machine, kernel("pipeline", entry, {1, 1, 1}, 1, 32, data, out)));
  for (uint64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(out[i], i * i);
}

} // namespace
} // namespace ditron::sim
