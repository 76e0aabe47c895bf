//===- ContractAdapters.h - What adapters of operators to the contract tests share ---------------------------*- C++ -*-===//
//
// Each file of adapters gives the table operatorsUnderContract() its entries.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_CONTRACTADAPTERS_H
#define DITRON_TESTS_E2E_CONTRACTADAPTERS_H

#include "contracts/OperatorUnderContract.h"

namespace ditron::e2e {

/// SequenceParallelOperators.cpp.
std::vector<ContractEntry> sequenceParallelEntries();

template <typename Adapter, typename Operator>
Expected<std::unique_ptr<OperatorUnderContract>> adapt(Expected<Operator> made, const auto &...arguments) {
  DITRON_RETURN_IF_ERROR(made.status());
  return std::unique_ptr<OperatorUnderContract>(std::make_unique<Adapter>(std::move(made).value(), arguments...));
}

/// Draws from a seed; from seed 0 always the first.
class Draws {
public:
  explicit Draws(uint64_t seed) : plain(seed == 0), random(seed) {}
  template <typename T> T of(std::initializer_list<T> choices) {
    const uint64_t number = random();
    return choices.begin()[plain ? 0 : number % choices.size()];
  }
  uint32_t upTo(uint32_t least, uint32_t most) {
    const uint64_t number = random();
    return plain ? least : least + static_cast<uint32_t>(number % (most - least + 1));
  }

private:
  bool plain;
  std::mt19937_64 random;
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_CONTRACTADAPTERS_H
