//===- ExpertChoice.h - Experts that tokens choose, of any rank, twice, or none ---------------------------------*- C++ -*-===//
//
// For tests of the exchange of tokens: ids may be those of no expert, and an expert may be a token's more than once, which a router never gives (MoeReference.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_E2E_EXPERTCHOICE_H
#define DITRON_TESTS_E2E_EXPERTCHOICE_H

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace ditron::e2e {

/// How tokens choose.
enum class ExpertChoice { Even, OneExpert, OneRank, SomeNowhere, Nowhere, Twice };
inline constexpr ExpertChoice expertChoices[] = {ExpertChoice::Even,    ExpertChoice::OneExpert,
                                                 ExpertChoice::OneRank, ExpertChoice::SomeNowhere,
                                                 ExpertChoice::Nowhere, ExpertChoice::Twice};

/// [tokens, topK]; `options` are an operator's.
template <typename Options>
std::vector<int32_t> drawExperts(const Options &options, uint32_t ranks, int64_t tokens, ExpertChoice choice,
                                 std::mt19937_64 &random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto experts = static_cast<int32_t>(options.experts);
  std::vector<int32_t> ids, all(experts);
  std::iota(all.begin(), all.end(), 0);
  for (int64_t token = 0; token < tokens; ++token) {
    std::ranges::shuffle(all, random);
    for (uint32_t j = 0; j < options.topK; ++j) {
      int32_t id = all[j % experts];
      if (choice == ExpertChoice::OneExpert)
        id = j == 0 ? experts - 1 : -1;
      if (choice == ExpertChoice::OneRank)
        id %= experts / static_cast<int32_t>(ranks);
      if (choice == ExpertChoice::SomeNowhere && draw(0, 2) == 0)
        id = draw(0, 1) ? -1 : static_cast<int32_t>(draw(experts, experts + 3));
      if (choice == ExpertChoice::Nowhere)
        id = -1;
      if (choice == ExpertChoice::Twice)
        id = all[0];
      ids.push_back(id);
    }
  }
  return ids;
}

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_EXPERTCHOICE_H
