//===- MatrixAccess.cpp - Matrix loads and stores of a warp -------------------------------------------------------===//
//
// ldmatrix and stmatrix: lanes say where rows of 16 bytes begin, and every lane gets, or gives, 4 bytes of each matrix of
// 8 rows. A call is as many instructions as a tile takes, so that the lanes meet once for all of them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <cstring>

namespace ditron::sim {

namespace {

constexpr uint32_t transposeFlag = 1 << 8, storeFlag = 1 << 9;

/// Where a lane's 4 bytes of a matrix lie: once whole, or as two elements of 16 bits.
struct WordPlace {
  char *low, *high;
};

WordPlace placeOf(char *const *rows, uint32_t lane, bool transpose) {
  if (transpose)
    return {rows[lane % 4 * 2] + lane / 4 * 2, rows[lane % 4 * 2 + 1] + lane / 4 * 2};
  char *word = rows[lane / 4] + lane % 4 * 4;
  return {word, word + 2};
}

void meetAtMatrices(DitronSimThread *self, uint32_t instructions, uint32_t count, uint32_t flags, void *const *rows,
                    void *words, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  Block &block = *thread.block;
  const bool isStore = flags & storeFlag;
  if (thread.warp->live != 0xffffffffu)
    block.failThread(thread, StatusCode::InvalidArgument,
                     "a matrix load or store needs a full warp of 32 threads that have not returned", site);
  if (count != 1 && count != 2 && count != 4)
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("a load or store of {} matrices; accepted is 1, 2 and 4", count), site);
  // Each lane answers for the rows that it names.
  for (uint32_t i = 0; thread.laneId < 8 * count && i < instructions; ++i) {
    const uint64_t offset = static_cast<char *>(rows[i]) - thread.sharedMemory;
    if (offset % 16 != 0 || offset > thread.sharedBytes || thread.sharedBytes - offset < 16)
      block.failThread(thread, StatusCode::OutOfBounds,
                       fmt::format("a row of a matrix at shared offset {}: it needs 16 bytes, aligned to 16, of the "
                                   "block's {}",
                                   static_cast<int64_t>(offset), thread.sharedBytes),
                       site);
    if (!block.checked)
      continue;
    if (isStore)
      block.asyncUnit.proxy.noteStore(thread, rows[i], 16, site);
    else
      block.asyncUnit.proxy.noteLoad(thread, rows[i], 16, site);
    block.noteAccess(thread, nullptr, rows[i], 16, isStore ? DITRON_SIM_STORE : DITRON_SIM_LOAD, site);
  }
  block.sharedTraffic += uint64_t(4) * count * instructions;
  thread.mmaA = rows;
  thread.mmaC = words;
  const uint32_t shape[3] = {instructions, 0, 0};
  block.meet(thread, CollectiveKind::Matrices, count | flags, ~uint64_t(0), site, shape);
}

} // namespace

void Block::moveMatrices(const std::unique_ptr<Thread> *lanes, uint32_t instructions, uint32_t variant) {
  const uint32_t count = variant & 0xff;
  for (uint32_t i = 0; i < instructions; ++i)
    for (uint32_t matrix = 0; matrix < count; ++matrix) {
      char *rows[8];
      for (uint32_t row = 0; row < 8; ++row)
        rows[row] = static_cast<char *const *>(lanes[8 * matrix + row]->mmaA)[i];
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const WordPlace place = placeOf(rows, lane, variant & transposeFlag);
        char *word = static_cast<char *>(lanes[lane]->mmaC) + 4 * (i * count + matrix);
        if (variant & storeFlag) {
          std::memcpy(place.low, word, 2);
          std::memcpy(place.high, word + 2, 2);
        } else {
          std::memcpy(word, place.low, 2);
          std::memcpy(word + 2, place.high, 2);
        }
      }
    }
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron::sim;

extern "C" {

void ditron_sim_load_matrices(DitronSimThread *self, uint32_t instructions, uint32_t count, uint32_t transpose,
                              void *const *rows, uint32_t *words, const DitronSimSite *site) {
  meetAtMatrices(self, instructions, count, transpose ? transposeFlag : 0, rows, words, site);
}

void ditron_sim_store_matrices(DitronSimThread *self, uint32_t instructions, uint32_t count, uint32_t transpose,
                               void *const *rows, const uint32_t *words, const DitronSimSite *site) {
  meetAtMatrices(self, instructions, count, storeFlag | (transpose ? transposeFlag : 0), rows,
                 const_cast<uint32_t *>(words), site);
}

} // extern "C"
