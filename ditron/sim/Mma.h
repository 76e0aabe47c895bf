//===- Mma.h - Matrix multiply of a warp ----------------------------------------------------------------*- C++ -*-===//
//
// The arithmetic of ditron_sim_mma: the fragments of all 32 lanes are gathered into dense panels, multiplied with a
// vectorised kernel, and scattered back. Which matrix element a register of a lane holds (PTX mma.sync, also
// spec/linear_layouts.md 4.8), with g = lane / 4 and t = lane % 4, for operands of 16 bits (8 and 32 bits likewise,
// with P = 4 or 1 elements per 32-bit word in place of 2):
//
//   A, word w of 4:  row g + 8 * (w & 1),  columns P * (t + 4 * (w >> 1)) + 0 .. P-1
//   B, word w of 2:  column g,             rows    P * (t + 4 * w) + 0 .. P-1
//   C, register r:   row g + 8 * (r >> 1), column  2 * t + (r & 1)
//
// So one instruction covers 4 * 2 * P of k: 16, 32 for 8-bit, 8 for tf32. Accumulation is one fused multiply-add per k,
// in ascending order, whatever the vector width: the result does not depend on the processor.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MMA_H
#define DITRON_SIM_MMA_H

#include <cstdint>

namespace ditron::sim {

struct MmaCall {
  uint32_t type; ///< DitronSimType: F16, BF16, TF32 or I8.
  uint32_t mTiles, nTiles, kTiles;
};

/// The registers of one lane.
struct MmaLane {
  const void *a;
  const void *b;
  void *c;
};

/// Multiplies and adds of a call, counted as two each; 0 when the type has no such instruction.
uint64_t mmaFlops(const MmaCall &call);
/// C += A * B over the fragments of 32 lanes.
void multiplyFragments(const MmaCall &call, const MmaLane *lanes);
/// c += a * b on row-major arrays of one thread; false for a type without arithmetic.
bool multiplyPrivate(uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a, const void *b, void *c);

} // namespace ditron::sim

#endif // DITRON_SIM_MMA_H
