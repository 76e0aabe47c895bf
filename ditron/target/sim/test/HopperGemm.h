//===- HopperGemm.h - IR text of a warp-specialised persistent matrix product, for tests ------------------*- C++ -*-===//
//
// C = A * B (or A * B^T) with tensor copies, mbarrier rings and warpgroup dots, written at the level that layout assignment
// and allocation leave behind: one producer warp fetches, the others multiply and store through a tile in shared memory. The
// same text runs on sim:sm_90a and is compiled to PTX.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_TEST_HOPPERGEMM_H
#define DITRON_TARGET_SIM_TEST_HOPPERGEMM_H

#include "KernelHarness.h"

#include <string>

namespace ditron::target::test {

struct HopperGemm {
  std::string element = "bf16"; ///< Of A and B.
  std::string output = "bf16";  ///< Of C: bf16, f16, or the accumulator's type.
  int blockM = 128, blockN = 256, blockK = 64;
  int numWarps = 8; ///< Without the producer.
  int stages = 3;
  bool isBRowMajor = false;    ///< B is K x N in memory; else N x K.
  bool isAColumnMajor = false; ///< A is K x M in memory; else M x K.
  bool isAInRegisters = false;
  bool waitsForSignal =
      false; ///< The producer waits for a word (the number of ranks, in the world view) before each tile.

  int elementBytes() const;
  int outputBytes() const;
  std::string accumulator() const { return element == "i8" ? "i32" : "f32"; }

  /// A module with @kernel(a, b, c, m, n, k, map of a, map of b, map of c, world).
  std::string text() const;
  uint64_t sharedBytes() const;
  /// The maps for a problem.
  std::vector<MapArgument> maps(int m, int n, int k) const;
};

} // namespace ditron::target::test

#endif // DITRON_TARGET_SIM_TEST_HOPPERGEMM_H
