//===- Harness.h - What the simulator's tests share -----------------------------------------------------*- C++ -*-===//
//
// Kernels in these tests are C++ functions that call the ABI as compiled code does. LAUNCH_SITE gives the source
// position of a call; the file name is fixed so that texts can be compared.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_TEST_HARNESS_H
#define DITRON_SIM_TEST_HARNESS_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <string>
#include <vector>

namespace ditron::sim {

/// A position in an imaginary kernel file.
#define AT(LINE)                                                                                                       \
  ([]() -> const DitronSimSite * {                                                                                     \
    static const DitronSimSite site{"kernel.py", LINE, 5};                                                             \
    return &site;                                                                                                      \
  }())

template <typename T> T argument(void **arguments, size_t index) { return *static_cast<T *>(arguments[index]); }

/// A machine with the options, or a test failure.
inline std::unique_ptr<Machine> makeMachine(MachineOptions options = {}) {
  Expected<std::unique_ptr<Machine>> machine = Machine::create(std::move(options));
  EXPECT_TRUE(machine.isOk()) << machine.status().message();
  return std::move(machine).value();
}

template <typename T>
T *makeBuffer(Machine &machine, uint32_t rank, size_t count, const char *name, MemoryKind kind = MemoryKind::Device) {
  Expected<void *> memory = machine.allocate(rank, count * sizeof(T), name, sizeof(T), kind);
  EXPECT_TRUE(memory.isOk()) << memory.status().message();
  return static_cast<T *>(*memory);
}

inline StreamId makeStream(Machine &machine, uint32_t rank, const char *name = "main") {
  Expected<StreamId> stream = machine.createStream(rank, name);
  EXPECT_TRUE(stream.isOk()) << stream.status().message();
  return *stream;
}

template <typename... Args>
LaunchDescription kernel(const char *name, KernelEntry entry, std::array<uint32_t, 3> grid, uint32_t threads,
                         uint64_t shared, Args... args) {
  LaunchDescription launch;
  launch.name = name;
  launch.entry = entry;
  launch.grid = grid;
  launch.threadsPerBlock = threads;
  launch.sharedBytes = shared;
  (launch.arguments.add(args), ...);
  return launch;
}

#define ASSERT_OK(EXPRESSION)                                                                                          \
  do {                                                                                                                 \
    ::ditron::Status okStatus = (EXPRESSION);                                                                          \
    ASSERT_TRUE(okStatus.isOk()) << okStatus.message();                                                                \
  } while (false)
#define EXPECT_OK(EXPRESSION)                                                                                          \
  do {                                                                                                                 \
    ::ditron::Status okStatus = (EXPRESSION);                                                                          \
    EXPECT_TRUE(okStatus.isOk()) << okStatus.message();                                                                \
  } while (false)

/// Launches once on rank 0 of a fresh stream and runs to the end.
inline Status runOnce(Machine &machine, LaunchDescription launch, uint32_t rank = 0) {
  StreamId stream = makeStream(machine, rank);
  DITRON_RETURN_IF_ERROR(machine.launch(stream, std::move(launch)));
  return machine.synchronize();
}

} // namespace ditron::sim

#endif // DITRON_SIM_TEST_HARNESS_H
