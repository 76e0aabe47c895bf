//===- MoeReference.h - Where tokens go, for tests of mixtures of experts -----------------------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_MOEREFERENCE_H
#define DITRON_TESTS_E2E_MOEREFERENCE_H

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace ditron::e2e {

/// What Routing must find, by a stable sort.
struct Rows {
  std::vector<int32_t> offsets, slotOfRow, rowOfSlot;

  /// The order of the slots begins at `firstSlot` and goes round.
  Rows(const std::vector<int32_t> &ids, uint32_t experts, size_t firstSlot = 0)
      : offsets(experts + 1, 0), rowOfSlot(ids.size(), -1) {
    for (uint32_t expert = 0; expert < experts; ++expert) {
      for (size_t i = 0; i < ids.size(); ++i)
        if (const size_t slot = (firstSlot + i) % ids.size(); ids[slot] == static_cast<int32_t>(expert)) {
          rowOfSlot[slot] = static_cast<int32_t>(slotOfRow.size());
          slotOfRow.push_back(static_cast<int32_t>(slot));
        }
      offsets[expert + 1] = static_cast<int32_t>(slotOfRow.size());
    }
  }
  int64_t count() const { return static_cast<int64_t>(slotOfRow.size()); }
  uint32_t expertOf(int64_t row) const {
    return static_cast<uint32_t>(std::upper_bound(offsets.begin(), offsets.end(), row) - offsets.begin() - 1);
  }
};

/// How tokens choose.
enum class Skew { Even, OneExpert, FewExperts, SomeNowhere };

inline std::vector<int32_t> chooseIds(int64_t tokens, uint32_t topK, uint32_t experts, Skew skew,
                                      std::mt19937 &random) {
  std::vector<int32_t> ids;
  const uint32_t within = skew == Skew::FewExperts ? std::max(topK, experts / 3) : experts;
  for (int64_t token = 0; token < tokens; ++token) {
    std::vector<int32_t> all(within);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    for (uint32_t j = 0; j < topK; ++j) {
      int32_t id = all[j];
      if (skew == Skew::OneExpert && j == 0)
        id = static_cast<int32_t>(experts - 1);
      if (skew == Skew::SomeNowhere && random() % 3 == 0)
        id = random() % 2 ? -1 : static_cast<int32_t>(experts + random() % 5);
      ids.push_back(id);
    }
  }
  return ids;
}

inline constexpr Skew skews[] = {Skew::Even, Skew::OneExpert, Skew::FewExperts, Skew::SomeNowhere};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_MOEREFERENCE_H
