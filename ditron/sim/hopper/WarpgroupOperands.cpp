//===- WarpgroupOperands.cpp - What a warpgroup multiplies --------------------------------------------------------===//
//
// Gathering; the scratch memory is kept from one multiply to the next.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/WarpgroupOperands.h"

#include "ditron/abi/Simulator.h"
#include "ditron/sim/arithmetic/Mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {
struct Scratch {
  Panel words, a, b;
};
thread_local Scratch scratch;

/// What the hardware does to fp32 that it reads from shared memory: the bits that tf32 lacks do not count.
void cutToTf32(uint32_t type, uint32_t *words, uint64_t count) {
  if (type != DITRON_SIM_TF32)
    return;
  for (uint64_t i = 0; i < count; ++i)
    if ((words[i] & 0x7f800000u) != 0x7f800000u)
      words[i] &= ~0x1fffu;
}

const uint32_t *widenA(uint32_t type, const uint32_t *words, uint64_t count) {
  uint32_t *a = scratch.a.get<uint32_t>(count * elementsPerWord(type));
  widenElements(type, words, count, a);
  return a;
}
} // namespace

std::string checkCall(const WarpgroupCall &call) {
  const uint32_t packed = elementsPerWord(call.type);
  if (packed == 0)
    return fmt::format("no warpgroup multiply for element type {}", call.type);
  if (call.n < 8 || call.n > 256 || call.n % 8 != 0 || (call.type == DITRON_SIM_I8 && call.n > 24 && call.n % 16 != 0))
    return fmt::format("n is {}; accepted is a multiple of 8 from 8 to 256{}", call.n,
                       call.type == DITRON_SIM_I8 ? ", for int8 of 16 from 32 on" : "");
  if (call.kSteps < 1)
    return "no step of k";
  if (packed != 2 && call.flags & (DITRON_SIM_WGMMA_A_MN_MAJOR | DITRON_SIM_WGMMA_B_MN_MAJOR))
    return "only operands of 16 bits may be M-major or N-major";
  if (call.aStep % 16 != 0 || call.bStep % 16 != 0)
    return fmt::format("steps of {} and {} bytes; accepted are multiples of 16", call.aStep, call.bStep);
  return {};
}

uint32_t SharedOperand::highest() const {
  uint32_t highest = 0;
  forEachChunk([&](uint32_t, uint32_t, uint32_t, uint32_t offset) { highest = std::max(highest, offset); });
  return highest;
}

const uint32_t *gatherA(uint32_t type, const SharedOperand &operand, const char *shared) {
  const uint32_t rowWords = operand.steps * 8;
  const size_t count = static_cast<size_t>(operand.rows) * rowWords;
  uint32_t *words = scratch.words.get<uint32_t>(count);
  operand.forEachChunk([&](uint32_t step, uint32_t row, uint32_t chunk, uint32_t offset) {
    if (!operand.view.mnMajor) {
      std::memcpy(words + row * rowWords + step * 8 + chunk * 4, shared + offset, 16);
      return;
    }
    uint16_t column[8];
    std::memcpy(column, shared + offset, 16);
    auto *elements = reinterpret_cast<uint16_t *>(words);
    for (uint32_t i = 0; i < 8; ++i)
      elements[(row * 8 + i) * rowWords * 2 + step * 16 + chunk] = column[i];
  });
  cutToTf32(type, words, count);
  return widenA(type, words, count);
}

const uint32_t *gatherA(uint32_t type, const void *const *lanes, uint32_t steps) {
  const uint32_t rowWords = steps * 8;
  const size_t count = static_cast<size_t>(WarpgroupCall::rows) * rowWords;
  uint32_t *words = scratch.words.get<uint32_t>(count);
  for (uint32_t thread = 0; thread < WarpgroupCall::threads; ++thread) {
    const auto *source = static_cast<const uint32_t *>(lanes[thread]);
    uint32_t *row = words + (thread / 32 * 16 + thread % 32 / 4) * rowWords + thread % 4;
    for (uint32_t step = 0; step < steps; ++step, source += 4) {
      row[step * 8] = source[0];
      row[step * 8 + 8 * rowWords] = source[1];
      row[step * 8 + 4] = source[2];
      row[step * 8 + 8 * rowWords + 4] = source[3];
    }
  }
  return widenA(type, words, count);
}

const uint32_t *gatherB(uint32_t type, const SharedOperand &operand, const char *shared, uint32_t columns) {
  const uint64_t count = static_cast<uint64_t>(operand.steps) * 8 * columns;
  uint32_t *words = scratch.words.get<uint32_t>(count);
  uint32_t *panel = scratch.b.get<uint32_t>(count * elementsPerWord(type));
  if (operand.view.mnMajor) {
    auto *elements = reinterpret_cast<uint16_t *>(words);
    operand.forEachChunk([&](uint32_t step, uint32_t unit, uint32_t k, uint32_t offset) {
      std::memcpy(elements + static_cast<size_t>(step * 16 + k) * columns + unit * 8, shared + offset, 16);
    });
    widenElements(type, words, count, panel);
    return panel;
  }
  operand.forEachChunk([&](uint32_t step, uint32_t row, uint32_t chunk, uint32_t offset) {
    uint32_t four[4];
    std::memcpy(four, shared + offset, 16);
    uint32_t *target = words + static_cast<size_t>(step * 8 + chunk * 4) * columns + row;
    target[0] = four[0];
    target[columns] = four[1];
    target[2 * columns] = four[2];
    target[3 * columns] = four[3];
  });
  cutToTf32(type, words, count);
  widenWordRows(type, words, operand.steps * 8, columns, panel);
  return panel;
}

} // namespace ditron::sim
