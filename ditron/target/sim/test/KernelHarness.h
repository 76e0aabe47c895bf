//===- KernelHarness.h - Runs IR text on the simulator, for tests -----------------------------------------*- C++ -*-===//
//
// Lowers a module with ditron-to-llvm, makes host code of it, links it against the engine and launches it on one rank. Tests
// give arrays, and get them back as the kernel left them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_TEST_KERNELHARNESS_H
#define DITRON_TARGET_SIM_TEST_KERNELHARNESS_H

#include "ditron/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ditron::target::test {

/// An array argument of a kernel: its bytes go to the device before the run and come back after it.
struct ArrayArgument {
  std::vector<std::byte> bytes;

  template <typename T> static ArrayArgument of(const std::vector<T> &values) {
    const auto *begin = reinterpret_cast<const std::byte *>(values.data());
    return {std::vector<std::byte>(begin, begin + values.size() * sizeof(T))};
  }
  template <typename T> std::vector<T> as() const {
    const T *begin = reinterpret_cast<const T *>(bytes.data());
    return std::vector<T>(begin, begin + bytes.size() / sizeof(T));
  }
};

/// A tensor map of an array: a matrix of rows, and the box that copies move.
struct MapArgument {
  size_t array;
  uint32_t rows, columns;
  uint32_t boxRows, boxColumns;
  uint32_t elementBytes, swizzleBytes;
};

/// What the pipeline runs between the allocation of shared memory and ditron-to-llvm.
inline constexpr const char *passesBeforeLowering =
    "dgpu-annotate-accesses,dgpu-guard-effects,dgpu-bind-tensor-maps,dgpu-sink-tail-work,dgpu-order-arrivals";

struct KernelRun {
  std::string
      source; ///< MLIR text with one func.func @kernel: array, i32, then tensor map arguments, then the world view.
  uint32_t gridX = 1, gridY = 1;
  uint32_t numWarps = 1;
  uint64_t sharedBytes = 96 * 1024;
  std::vector<int32_t> integers;
  /// Passes before these, in the pass manager's text form, for example "dgpu-assign-layouts,cse".
  std::string passes;
  std::vector<MapArgument> maps;
  std::string target = "sim:sm_80";
};

/// Runs the kernel; the arrays are replaced by what it left in them.
Status runKernel(const KernelRun &run, std::vector<ArrayArgument> &arrays);

} // namespace ditron::target::test

#endif // DITRON_TARGET_SIM_TEST_KERNELHARNESS_H
