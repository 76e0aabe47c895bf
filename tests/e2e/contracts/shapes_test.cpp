//===- shapes_test.cpp - Operators on shapes, types, ranks and plans that are drawn at random ---------------------===//
//
// Any of M, N and K from 1 to 4097, drawn so that every order of magnitude comes alike often, and cut down where a simulator would take
// minutes; 1 to 8 ranks; every type; plans, tiles, alignments, seeds and slow ranks besides; three calls of up to two sizes. The bits
// must be the reference's. A case is made from its number alone: CONTRACT_FIRST_CASE=1234 CONTRACT_CASES=1 runs one again.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "contracts/OperatorUnderContract.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

/// Multiplications and additions of all ranks, and elements of all operands, that a case may have.
constexpr double mostProducts = 2e6, mostElements = 60000;

/// From 1 to `most`, each power of two as often; and the borders of powers more often than others.
int64_t drawSize(std::mt19937_64 &random, int64_t most) {
  const double bits = std::log2(static_cast<double>(most)) * static_cast<double>(random() >> 11) / 9007199254740992.0;
  auto size = static_cast<int64_t>(std::exp2(bits));
  if (random() % 3 == 0)
    size = (int64_t{1} << std::llround(bits)) + static_cast<int64_t>(random() % 3) - 1;
  return std::clamp<int64_t>(size, 1, most);
}

struct DrawnCase {
  const ContractEntry *entry = nullptr;
  ContractChoice choice;
  uint32_t ranks = 1;
  std::vector<CallSizes> calls;
  std::vector<int64_t> offsets;
  WorldOptions world;

  std::string text(uint64_t number) const {
    std::string sizes;
    for (size_t i = 0; i < calls.size(); ++i)
      sizes +=
          fmt::format("{}{}{}", i ? ", " : "", calls[i].text(), offsets[i] ? fmt::format(" at +{}", offsets[i]) : "");
    return fmt::format("CONTRACT_FIRST_CASE={} CONTRACT_CASES=1: {} of {} on {} ranks of {} SMs, seed {}, calls {}",
                       number, entry->name, toString(choice.dtype), ranks, world.sms, world.seed, sizes);
  }
};

DrawnCase drawCase(uint64_t number) {
  std::mt19937_64 random(0x9E3779B97F4A7C15ull * (number + 1));
  DrawnCase drawn;
  const std::vector<ContractEntry> &table = operatorsUnderContract();
  do
    drawn.entry = &table[random() % table.size()];
  while (drawn.entry->isBetweenNodes && !isSimulated()); // GPUs of one machine are one node
  const ContractEntry &entry = *drawn.entry;
  drawn.ranks = ranksOnTarget(1 + static_cast<uint32_t>(random() % 8));
  drawn.choice.dtype = entry.dtypes[random() % entry.dtypes.size()];
  drawn.choice.draw = random();
  drawn.world.seed = random() % 1000;
  drawn.world.sms = 4 + static_cast<uint32_t>(random() % 5);
  if (random() % 2)
    drawn.world.slowRanks[static_cast<uint32_t>(random() % drawn.ranks)] = 1 + static_cast<double>(random() % 6);
  if (entry.isBetweenNodes) {
    drawn.ranks = std::max(drawn.ranks, 2u);
    makeNodes(entry, drawn.world, drawn.ranks % 2 == 0 && random() % 2 ? drawn.ranks / 2 : 1);
  }
  const bool isProduct = entry.most.k > 1;
  const auto tooMuch = [&](const CallSizes &sizes) {
    const double m = static_cast<double>(sizes.m), n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
    const double elements = isProduct ? m * k + k * n + m * n : m * n * drawn.ranks;
    return (isProduct && m * n * k * drawn.ranks > mostProducts) || elements * drawn.ranks > mostElements;
  };
  const int64_t step = std::max<int64_t>(1, entry.rowBytes / static_cast<int64_t>(sizeOf(drawn.choice.dtype)));
  CallSizes first;
  for (uint32_t i = 0; i < 3; ++i) {
    CallSizes sizes;
    if (i < 2) {
      sizes = {drawSize(random, entry.most.m), drawSize(random, entry.most.n), drawSize(random, entry.most.k)};
      if (i > 0 && entry.fixedColumns)
        sizes.n = first.n;
      if (i > 0 && entry.fixedDepth)
        sizes.k = first.k;
      sizes.n = (sizes.n + step - 1) / step * step;
      while (tooMuch(sizes)) {
        // The largest that may change is halved.
        int64_t *largest = &sizes.m;
        if (!(i > 0 && entry.fixedColumns) && sizes.n > *largest && sizes.n > step)
          largest = &sizes.n;
        if (!(i > 0 && entry.fixedDepth) && sizes.k > *largest)
          largest = &sizes.k;
        *largest = std::max<int64_t>(1, *largest / 2);
        sizes.n = (sizes.n + step - 1) / step * step;
      }
      if (i == 0)
        first = sizes;
    } else {
      sizes = first;
    }
    drawn.calls.push_back(sizes);
    drawn.offsets.push_back(entry.anyAlignment && random() % 4 == 0 ? static_cast<int64_t>(1 + random() % 15) : 0);
    CallSizes &most = drawn.choice.most;
    most = {std::max(most.m, sizes.m), std::max(most.n, sizes.n), std::max(most.k, sizes.k)};
  }
  return drawn;
}

class ContractShapes : public KernelTest {};

TEST_F(ContractShapes, Random) {
  const auto first = static_cast<uint64_t>(casesWanted("CONTRACT_FIRST_CASE", 0));
  const int cases = casesWanted("CONTRACT_CASES", 24);
  int failed = 0;
  for (uint64_t number = first; number < first + static_cast<uint64_t>(cases) && failed < 5; ++number) {
    const DrawnCase drawn = drawCase(number);
    SCOPED_TRACE(drawn.text(number));
    const int failuresBefore = testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    [&] {
      start(drawn.ranks, drawn.world);
      auto op = drawn.entry->make(world(), drawn.choice);
      ASSERT_OK(op);
      std::vector<ContractCall> calls;
      for (size_t i = 0; i < drawn.calls.size(); ++i) {
        auto call = ContractCall::create(world(), **op, drawn.calls[i], drawn.offsets[i]);
        ASSERT_OK(call);
        calls.push_back(std::move(call).value());
        ASSERT_OK(calls.back().upload(number + i));
        if (number % 2 == 0)
          for (uint32_t r = 0; r < drawn.ranks; ++r)
            ASSERT_OK((*op)->prepare(rank(r), drawn.calls[i]));
      }
      for (uint32_t r = 0; r < drawn.ranks; ++r)
        for (ContractCall &call : calls)
          ASSERT_OK(call.enqueue(**op, rank(r), rank(r).stream()));
      ASSERT_OK(world().synchronize());
      for (size_t i = 0; i < calls.size(); ++i)
        calls[i].check(fmt::format("call {}", i));
    }();
    failed += testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > failuresBefore;
    if (number % 25 == 24 && cases > 100)
      std::printf("%llu cases\n", static_cast<unsigned long long>(number + 1 - first)), std::fflush(stdout);
  }
}

} // namespace
} // namespace ditron::e2e
