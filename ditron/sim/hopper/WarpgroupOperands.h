//===- WarpgroupOperands.h - What a warpgroup multiplies ------------------------------------------------*- C++ -*-===//
//
// Gathers the operands of a warpgroup's multiply from shared memory, through their descriptors, or from the registers of its threads,
// and widens their elements to what multiplyPanels takes (arithmetic/Mma.h).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_WARPGROUPOPERANDS_H
#define DITRON_SIM_HOPPER_WARPGROUPOPERANDS_H

#include "ditron/sim/hopper/MatrixDescriptor.h"

#include <cstdint>
#include <string>

namespace ditron::sim {

/// The operands and options of a multiply, equal for all threads of the warpgroup.
struct WarpgroupCall {
  static constexpr uint32_t threads = 128, rows = 64;
  uint32_t type, n, kSteps, flags;
  uint64_t aDesc, bDesc;
  uint32_t aStep, bStep;
  bool aInRegisters;
  bool operator==(const WarpgroupCall &) const = default;
};

/// What is wrong with a call, whatever the memory holds; empty when nothing is.
std::string checkCall(const WarpgroupCall &call);

/// An operand in shared memory.
struct SharedOperand {
  MatrixView view;
  uint32_t rows = 0;    ///< Of A, or columns of B.
  uint32_t advance = 0; ///< Bytes from one step of k to the next.
  uint32_t steps = 0;

  /// Calls visit(step, row or unit, chunk or k, shared offset) for each of its chunks of 16 bytes.
  template <typename Visit> void forEachChunk(Visit visit) const;
  /// Where the last of them begins.
  uint32_t highest() const;
};

/// A's 64 rows of `steps` * 8 words, widened, K contiguous; valid until the next call. From shared memory:
const uint32_t *gatherA(uint32_t type, const SharedOperand &a, const char *shared);
/// From the registers of the 128 threads, as the fragments of four warps:
const uint32_t *gatherA(uint32_t type, const void *const *lanes, uint32_t steps);
/// B, widened: rows of k with so many columns; valid until the next call.
const uint32_t *gatherB(uint32_t type, const SharedOperand &b, const char *shared, uint32_t columns);

template <typename Visit> void SharedOperand::forEachChunk(Visit visit) const {
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t begin = view.start + step * advance;
    if (view.mnMajor) {
      for (uint32_t k = 0; k < 16; ++k)
        for (uint32_t unit = 0; unit < rows / 8; ++unit)
          visit(step, unit, k, view.mnMajorChunk(begin, unit, k));
    } else {
      for (uint32_t chunk = 0; chunk < 2; ++chunk)
        for (uint32_t row = 0; row < rows; ++row)
          visit(step, row, chunk, view.kMajorChunk(begin, row, chunk));
    }
  }
}

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_WARPGROUPOPERANDS_H
