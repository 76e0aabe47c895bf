//===- MatrixAccess_test.cpp - Matrix loads and stores against their definition -----------------------------------===//

#include "ditron/sim/test/Harness.h"

#include <cstring>

namespace ditron::sim {
namespace {

using testing::HasSubstr;

/// Fills shared memory with numbers of 16 bits, loads two times four matrices whose rows lie 32 bytes apart, stores them
/// elsewhere and gives both the words and the copy out.
void roundTripKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto transpose = argument<uint32_t>(arguments, 1);
  auto *out = argument<uint32_t *>(arguments, 0);
  auto *shared = reinterpret_cast<uint16_t *>(self->sharedMemory);
  for (uint32_t i = self->laneId; i < 1024; i += 32)
    shared[i] = static_cast<uint16_t>(i);
  ditron_sim_warp_barrier(self, AT(1));
  void *rows[2], *targets[2];
  for (uint32_t i = 0; i < 2; ++i) {
    rows[i] = self->sharedMemory + 32 * self->laneId + 16 * i;
    targets[i] = self->sharedMemory + 2048 + 16 * (2 * self->laneId + i);
  }
  uint32_t words[8];
  ditron_sim_load_matrices(self, 2, 4, transpose, rows, words, AT(2));
  std::memcpy(out + self->laneId * 8, words, sizeof(words));
  ditron_sim_store_matrices(self, 2, 4, transpose, targets, words, AT(3));
  ditron_sim_warp_barrier(self, AT(4));
  std::memcpy(out + 256 + self->laneId * 16, self->sharedMemory + 2048 + 64 * self->laneId, 64);
}

TEST(MatrixAccess, FollowsTheDefinition) {
  for (uint32_t transpose : {0u, 1u}) {
    auto machine = makeMachine();
    auto *out = makeBuffer<uint32_t>(*machine, 0, 256 + 512, "out");
    ASSERT_OK(runOnce(*machine, kernel("trip", roundTripKernel, {1, 1, 1}, 32, 4096, out, transpose)));
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t word = 0; word < 8; ++word) {
        const uint32_t instruction = word / 4, matrix = word % 4;
        // Element (row, column) of a matrix is the number of its place.
        auto element = [&](uint32_t row, uint32_t column) {
          return 16 * (8 * matrix + row) + 8 * instruction + column;
        };
        const uint32_t low = transpose ? element(lane % 4 * 2, lane / 4) : element(lane / 4, lane % 4 * 2);
        const uint32_t high = transpose ? element(lane % 4 * 2 + 1, lane / 4) : element(lane / 4, lane % 4 * 2 + 1);
        ASSERT_EQ(out[lane * 8 + word], low | high << 16) << "lane " << lane << ", word " << word;
      }
    const auto *copy = reinterpret_cast<const uint16_t *>(out + 256);
    for (uint32_t i = 0; i < 512; ++i)
      ASSERT_EQ(copy[i], i);
  }
}

void misalignedKernel(void **) {
  DitronSimThread *self = ditron_sim_self();
  void *row = self->sharedMemory + 16 * self->laneId + (self->laneId == 9 ? 8 : 0);
  uint32_t words[2];
  ditron_sim_load_matrices(self, 1, 2, 0, &row, words, AT(7));
}

void outsideKernel(void **) {
  DitronSimThread *self = ditron_sim_self();
  void *row = self->sharedMemory + 32 * self->laneId;
  uint32_t words[4] = {};
  ditron_sim_store_matrices(self, 1, 4, 0, &row, words, AT(8));
}

TEST(MatrixAccess, ReportsRowsThatCannotBe) {
  auto machine = makeMachine();
  Status status = runOnce(*machine, kernel("misaligned", misalignedKernel, {1, 1, 1}, 32, 1024));
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), HasSubstr("a row of a matrix at shared offset 152"));
  machine = makeMachine();
  status = runOnce(*machine, kernel("outside", outsideKernel, {1, 1, 1}, 32, 512));
  EXPECT_THAT(status.message(), HasSubstr("a row of a matrix at shared offset 512"));
  // Lanes whose rows are not asked for may name anything.
  machine = makeMachine();
  auto lanes = [](void **) {
    DitronSimThread *self = ditron_sim_self();
    void *row = self->laneId < 8 ? self->sharedMemory + 16 * self->laneId : nullptr;
    uint32_t word = 0;
    ditron_sim_store_matrices(self, 1, 1, 0, &row, &word, AT(9));
  };
  EXPECT_OK(runOnce(*machine, kernel("few", lanes, {1, 1, 1}, 32, 128)));
}

} // namespace
} // namespace ditron::sim
