//===- Accumulators.cpp - Results of a warpgroup's multiplies that its threads do not have yet --------------------===//
//
// Tokens, the panel's layout (PTX ISA, "Register fragments for wgmma": D), and which accumulator is taken next.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/Accumulators.h"

#include <cstring>

namespace ditron::sim {

namespace {
constexpr uint32_t groupRows = 64;
constexpr uint32_t tokenMask = 0xfff00000, tokenPrefix = 0xffd00000;
constexpr uint32_t registerBits = 7; ///< An accumulator has at most 128 registers per thread.
constexpr uint32_t maxAccumulators = 1u << (20 - registerBits);
/// Completed accumulators whose results can still be asked for.
constexpr uint32_t keptAccumulators = 64;

uint32_t token(uint32_t accumulator, uint32_t index) { return tokenPrefix | accumulator << registerBits | index; }

/// The register's place in an accumulator's panel.
uint32_t panelIndex(uint32_t threadInGroup, uint32_t index, uint32_t columns) {
  const uint32_t row = threadInGroup / 32 * 16 + threadInGroup % 32 / 4 + (index >> 1 & 1) * 8;
  return row * columns + index / 4 * 8 + threadInGroup % 4 * 2 + (index & 1);
}
} // namespace

//===- One accumulator --------------------------------------------------------------------------------------------===//

void Accumulator::begin(uint32_t columns) {
  n = columns;
  paddedColumns = (n + 15) / 16 * 16;
  panel.assign(groupRows * paddedColumns / 16, {});
}

void Accumulator::zero() { std::memset(words(), 0, panel.size() * sizeof(Line)); }

void Accumulator::give(uint32_t threadInGroup, uint32_t *registers) const {
  for (uint32_t r = 0; r < n / 2; ++r)
    registers[r] = words()[panelIndex(threadInGroup, r, paddedColumns)];
}

void Accumulator::take(uint32_t threadInGroup, const uint32_t *registers) {
  for (uint32_t r = 0; r < n / 2; ++r)
    words()[panelIndex(threadInGroup, r, paddedColumns)] = registers[r];
}

//===- All of a warpgroup -----------------------------------------------------------------------------------------===//

std::optional<uint32_t> Accumulators::take(uint64_t waited) {
  uint32_t id = next, tried = 0;
  for (; tried < size(); ++tried, id = (id + 1) % size())
    if (list[id].last <= waited)
      break;
  if (tried == size() || size() < keptAccumulators) {
    id = size();
    if (id == maxAccumulators)
      return std::nullopt;
    list.emplace_back();
  }
  next = (id + 1) % size();
  return id;
}

void Accumulators::writeTokens(uint32_t id, uint32_t *registers, uint32_t count) {
  for (uint32_t r = 0; r < count; ++r)
    registers[r] = token(id, r);
}

std::optional<uint32_t> Accumulators::namedBy(uint32_t value) const {
  const uint32_t id = (value & ~tokenMask) >> registerBits;
  return (value & tokenMask) == tokenPrefix && id < size() ? std::optional(id) : std::nullopt;
}

std::optional<uint32_t> Accumulators::tokensIn(const uint32_t *registers, uint32_t count) const {
  const std::optional<uint32_t> id = namedBy(registers[0]);
  for (uint32_t i = 0; id && i < count; ++i)
    if (registers[i] != token(*id, i))
      return std::nullopt;
  return id;
}

} // namespace ditron::sim
