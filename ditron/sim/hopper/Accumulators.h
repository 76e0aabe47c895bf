//===- Accumulators.h - Results of a warpgroup's multiplies that its threads do not have yet ------------*- C++ -*-===//
//
// Threads get the result of a multiply when they wait for it. Until then their registers hold tokens: NaN patterns that name the
// accumulator and the register, so that a result in flight can be passed from one multiply to the next as a value, and computing
// with it by mistake shows.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_ACCUMULATORS_H
#define DITRON_SIM_HOPPER_ACCUMULATORS_H

#include <cstdint>
#include <optional>
#include <vector>

namespace ditron::sim {

/// 64 rows.
class Accumulator {
public:
  /// Begins anew, with zeros.
  void begin(uint32_t n);
  void zero();
  bool isUsed() const { return last != 0; }
  uint32_t columns() const { return paddedColumns; }
  uint32_t *words() { return panel.data()->words; }
  /// Between the panel and the n / 2 registers of a thread of the warpgroup.
  void give(uint32_t threadInGroup, uint32_t *registers) const;
  void take(uint32_t threadInGroup, const uint32_t *registers);

  uint32_t n = 0;
  uint64_t last = 0; ///< Number of the last multiply into it; 0 when it is unused.

private:
  struct alignas(64) Line {
    uint32_t words[16];
  };
  const uint32_t *words() const { return panel.data()->words; }

  uint32_t paddedColumns = 0; ///< n, rounded up to 16.
  std::vector<Line> panel;
};

class Accumulators {
public:
  uint32_t size() const { return static_cast<uint32_t>(list.size()); }
  Accumulator &operator[](uint32_t id) { return list[id]; }

  /// The number of an unused accumulator, or of the oldest whose last multiply is not above `waited`; none when too many are in flight.
  std::optional<uint32_t> take(uint64_t waited);

  /// Writes the tokens of an accumulator into `count` registers.
  static void writeTokens(uint32_t id, uint32_t *registers, uint32_t count);
  /// The accumulator that `count` registers stand for, if they stand for one of these.
  std::optional<uint32_t> tokensIn(const uint32_t *registers, uint32_t count) const;
  /// The accumulator that one register names, if it names one of these.
  std::optional<uint32_t> namedBy(uint32_t value) const;

private:
  std::vector<Accumulator> list;
  uint32_t next = 0;
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_ACCUMULATORS_H
