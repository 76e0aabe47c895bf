//===- LitmusTable.cpp - How often each litmus test shows its weak outcome --------------------------------------------===//
//
// usage: ditron-sim-litmus [SCHEDULES]     (default 1000)
//
// A table in Markdown: a row for each test, a column for each strength. A cell says in how many schedules the weak outcome was seen between
// threads of one block / of one GPU / of different ranks; "-" where the PTX model forbids it. Then the same between nodes, by what stands
// between two operations of the network. Exit code 1 when a forbidden one was seen.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/test/LitmusPrograms.h"
#include "ditron/sim/test/NetworkLitmus.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>

using namespace ditron;
using namespace ditron::sim;

namespace {

uint64_t countWeak(const LitmusTest &test, const LitmusStrength &strength, LitmusDistance distance,
                   uint64_t schedules) {
  uint64_t weak = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed)
    if (const Expected<bool> seen = seesWeakOutcome(test, strength, distance, seed); seen.isOk())
      weak += *seen;
    else
      fmt::print(stderr, "{}: {}\n", test.name, seen.status().message());
  return weak;
}

/// False when a forbidden outcome was seen.
bool printNetworkTable(uint64_t schedules) {
  bool isRight = true;
  std::string head = "| test | between nodes |", rule = "|---|---|";
  for (NetworkOrder order : networkOrders) {
    head += fmt::format(" {} |", toString(order));
    rule += "---|";
  }
  fmt::print("\n{}\n{}\n", head, rule);
  for (const NetworkTest &test : networkTests()) {
    fmt::print("| {} | {} |", test.name, test.what);
    for (NetworkOrder order : networkOrders) {
      if (order == NetworkOrder::Signal && !test.hasSignalForm) {
        fmt::print("  |");
        continue;
      }
      uint64_t weak = 0;
      for (uint64_t seed = 1; seed <= schedules; ++seed)
        if (const Expected<bool> seen = seesWeakOutcome(test, order, seed); seen.isOk())
          weak += *seen;
        else
          fmt::print(stderr, "{}: {}\n", test.name, seen.status().message());
      const bool forbidden = test.isForbiddenBy(order);
      isRight &= !forbidden || weak == 0;
      fmt::print(" {} |", forbidden && weak == 0 ? "-" : fmt::format("{}{}", weak, forbidden ? " FORBIDDEN" : ""));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  return isRight;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t schedules = 1000;
  if (argc > 2 ||
      (argc == 2 &&
       (std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), schedules).ec != std::errc() || !schedules))) {
    fmt::print(stderr, "usage: ditron-sim-litmus [SCHEDULES]\n");
    return 1;
  }
  bool isRight = true;
  std::string head = "| test |", rule = "|---|";
  for (const LitmusStrength &strength : litmusStrengths()) {
    head += fmt::format(" {} |", strength.text());
    rule += "---|";
  }
  fmt::print("{}\n{}\n", head, rule);
  for (const LitmusTest &test : litmusTests()) {
    std::string row;
    for (const LitmusStrength &strength : litmusStrengths()) {
      const char *between = " ";
      for (LitmusDistance distance : {LitmusDistance::SameBlock, LitmusDistance::SameGpu, LitmusDistance::OtherRank}) {
        const uint64_t weak = countWeak(test, strength, distance, schedules);
        const bool forbidden = isForbidden(test, strength, distance);
        isRight &= !forbidden || weak == 0;
        row += between + (forbidden && weak == 0 ? "-" : fmt::format("{}{}", weak, forbidden ? " FORBIDDEN" : ""));
        between = " / ";
      }
      row += " |";
    }
    fmt::print("| {} |{}\n", test.name, row);
    std::fflush(stdout);
  }
  isRight &= printNetworkTable(schedules);
  return isRight ? 0 : 1;
}
