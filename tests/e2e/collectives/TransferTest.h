//===- TransferTest.h - What the tests of transfers between ranks share --------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_TRANSFERTEST_H
#define DITRON_TESTS_E2E_TRANSFERTEST_H

#include "KernelTest.h"
#include "ditron/ops/collectives/CollectivePlans.h"

#include <random>

namespace ditron::e2e {

/// Small, so that small messages fill them.
inline constexpr ops::CollectivePlan smallRings = {ops::CollectiveForm::Chunks, 2, 2, 512};
using Bytes = std::vector<std::byte>;

/// Draws what is sent.
class Transfers : public KernelTest {
protected:
  uint32_t ranks() { return world().numRanks(); }

  Bytes randomBytes(size_t count) {
    Bytes bytes(count);
    for (std::byte &byte : bytes)
      byte = static_cast<std::byte>(random());
    return bytes;
  }
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  std::mt19937_64 random{7};
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_TRANSFERTEST_H
