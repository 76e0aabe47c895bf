//===- TensorCopy_test.cpp - Tensor copies (TMA) ------------------------------------------------------------------===//

#include "ditron/layout/SharedLayout.h"
#include "ditron/sim/hopper/TensorMap.h"
#include "ditron/sim/test/Harness.h"

#include <cmath>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DitronSimTensorMap mapOf(void *base, uint32_t elementBytes, std::vector<uint32_t> dims, std::vector<uint64_t> strides,
                         std::vector<uint32_t> box, uint32_t swizzle, bool fillNan = false) {
  Expected<DitronSimTensorMap> map = makeTensorMap(base, elementBytes, dims, strides, box, swizzle, fillNan);
  EXPECT_TRUE(map.isOk()) << map.status().message();
  return *map;
}

struct Coordinates {
  int32_t at[5];
};

// Loads a box, then copies shared memory to `out` as it lies.
void loadKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto &map = *static_cast<const DitronSimTensorMap *>(arguments[0]);
  auto coords = argument<Coordinates>(arguments, 1);
  auto *out = argument<char *>(arguments, 2);
  char *bar = self->sharedMemory + self->sharedBytes - 8;
  const uint32_t bytes = boxBytes(map);
  if (self->threadId == 0)
    ditron_sim_mbarrier_init(self, bar, 1, AT(1));
  ditron_sim_barrier(self, AT(2));
  ditron_sim_mbarrier_expect_tx(self, bar, bytes, self->threadId == 0, AT(3));
  ditron_sim_tma_load(self, &map, map.rank, coords.at, self->sharedMemory, bar, self->threadId == 0, AT(4));
  ditron_sim_mbarrier_wait(self, bar, 0, AT(5));
  for (uint32_t i = self->threadId; i < bytes; i += self->numThreads)
    out[i] = self->sharedMemory[i];
}

TEST(TensorCopy, LoadsBoxesOfEveryRankWithBounds) {
  for (bool nan : {false, true})
    for (uint32_t rank = 1; rank <= 5; ++rank) {
      auto machine = makeMachine(MachineOptions::sm90());
      const std::vector<uint32_t> dims = {12, 5, 4, 3, 2}, box = {8, 4, 2, 2, 2};
      std::vector<uint64_t> strides;
      uint64_t pitch = 64; // rows of 12 floats, padded
      for (uint32_t d = 1; d < 5; ++d, pitch *= dims[d - 1])
        strides.push_back(pitch);
      auto *data = makeBuffer<float>(*machine, 0, pitch * 2 / 4, "data");
      for (uint64_t i = 0; i < pitch * 2 / 4; ++i)
        data[i] = static_cast<float>(i + 1);
      auto *out = makeBuffer<float>(*machine, 0, 8 * 4 * 2 * 2 * 2, "out");
      DitronSimTensorMap map =
          mapOf(data, 4, {dims.begin(), dims.begin() + rank}, {strides.begin(), strides.begin() + rank - 1},
                {box.begin(), box.begin() + rank}, 0, nan);
      for (Coordinates at : {Coordinates{{0, 0, 0, 0, 0}}, Coordinates{{8, -2, 3, 2, -1}},
                             Coordinates{{-4, 3, -1, 1, 1}}, Coordinates{{100, 0, 0, 0, 0}}}) {
        ASSERT_OK(runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 64, 4096, map, at, out)));
        const uint32_t count = boxBytes(map) / 4;
        for (uint32_t i = 0; i < count; ++i) {
          uint32_t rest = i;
          uint64_t offset = 0;
          bool inside = true;
          for (uint32_t d = 0; d < rank; ++d) {
            const int64_t position = at.at[d] + static_cast<int64_t>(rest % box[d]);
            rest /= box[d];
            inside &= position >= 0 && position < dims[d];
            offset += static_cast<uint64_t>(position) * (d ? strides[d - 1] : 4);
          }
          if (inside)
            ASSERT_EQ(out[i], data[offset / 4]) << "rank " << rank << " element " << i;
          else if (nan)
            ASSERT_TRUE(std::isnan(out[i])) << "rank " << rank << " element " << i;
          else
            ASSERT_EQ(out[i], 0) << "rank " << rank << " element " << i;
        }
      }
      EXPECT_EQ(machine->counters().tmaLoadBytes, 4u * boxBytes(map));
    }
}

// The place of every element is the one that the layout room's swizzledShared gives.
TEST(TensorCopy, SwizzleIsTheLayoutRooms) {
  const int rowMajor[] = {1, 0};
  for (uint32_t elementBytes : {1u, 2u, 4u})
    for (uint32_t swizzle : {0u, 32u, 64u, 128u})
      for (uint32_t rows : {8u, 64u}) {
        const uint32_t columns = (swizzle ? swizzle : 64) / elementBytes, bytes = rows * columns * elementBytes;
        auto machine = makeMachine(MachineOptions::sm90());
        auto *data = makeBuffer<uint8_t>(*machine, 0, bytes, "data");
        auto *out = makeBuffer<uint8_t>(*machine, 0, bytes, "out");
        for (uint32_t i = 0; i < bytes; ++i)
          data[i] = static_cast<uint8_t>(i * 7 + i / 256);
        DitronSimTensorMap map =
            mapOf(data, elementBytes, {columns, rows}, {columns * elementBytes}, {columns, rows}, swizzle);
        ASSERT_OK(runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, bytes + 64, map, Coordinates{}, out)));
        layout::SharedLayout layout = layout::swizzledShared(
            {rows, columns}, rowMajor, static_cast<int>(elementBytes * 8), static_cast<int>(swizzle));
        for (uint32_t i = 0; i < rows * columns; ++i)
          for (uint32_t b = 0; b < elementBytes; ++b)
            ASSERT_EQ(out[layout.offsetOf(i) * elementBytes + b], data[i * elementBytes + b])
                << "element of " << elementBytes << ", swizzle " << swizzle << ", index " << i;
      }
}

// A copy of a matrix through shared memory: load, store, wait.
void roundTripKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto &from = *static_cast<const DitronSimTensorMap *>(arguments[0]);
  const auto &to = *static_cast<const DitronSimTensorMap *>(arguments[1]);
  if (self->threadId != 0)
    return;
  char *bar = self->sharedMemory + 16384;
  ditron_sim_mbarrier_init(self, bar, 1, AT(1));
  int32_t coords[2] = {static_cast<int32_t>(self->blockId[0] * 64), static_cast<int32_t>(self->blockId[1] * 64)};
  ditron_sim_mbarrier_expect_tx(self, bar, boxBytes(from), 1, AT(2));
  ditron_sim_tma_load(self, &from, 2, coords, self->sharedMemory, bar, 1, AT(3));
  ditron_sim_mbarrier_wait(self, bar, 0, AT(4));
  ditron_sim_tma_store(self, &to, 2, coords, self->sharedMemory, 1, AT(5));
  ditron_sim_tma_store_commit(self, AT(6));
  ditron_sim_tma_store_wait(self, 0, argument<uint32_t>(arguments, 2), AT(7));
}

TEST(TensorCopy, StoresWhatIsInRange) {
  for (uint32_t read : {0u, 1u}) {
    MachineOptions options = MachineOptions::sm90();
    options.recordTrace = true;
    auto machine = makeMachine(options);
    auto *a = makeBuffer<uint16_t>(*machine, 0, 200 * 104, "a"), *b = makeBuffer<uint16_t>(*machine, 0, 200 * 104, "b");
    for (uint32_t i = 0; i < 200 * 104; ++i)
      a[i] = static_cast<uint16_t>(i * 13), b[i] = 1;
    // Columns 96..103 of each row belong to nobody.
    DitronSimTensorMap from = mapOf(a, 2, {96, 200}, {208}, {64, 64}, 128);
    DitronSimTensorMap to = mapOf(b, 2, {96, 200}, {208}, {64, 64}, 128);
    ASSERT_OK(runOnce(*machine, kernel("trip", roundTripKernel, {2, 4, 1}, 32, 20000, from, to, read)));
    for (uint32_t i = 0; i < 200; ++i)
      for (uint32_t j = 0; j < 104; ++j)
        ASSERT_EQ(b[i * 104 + j], j < 96 ? a[i * 104 + j] : 1) << i << "," << j;
    EXPECT_EQ(machine->counters().tmaStoreBytes, 8u * 8192);
    EXPECT_THAT(machine->chromeTrace(), AllOf(HasSubstr("tensor load"), HasSubstr("tensor store"), HasSubstr("TMA")));
  }
}

/// Stores a box at coordinates.
void storeAtKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto &map = *static_cast<const DitronSimTensorMap *>(arguments[0]);
  auto coords = argument<Coordinates>(arguments, 1);
  if (self->threadId != 0)
    return;
  ditron_sim_tma_store(self, &map, 2, coords.at, self->sharedMemory, 1, AT(1));
  ditron_sim_tma_store_commit(self, AT(2));
  ditron_sim_tma_store_wait(self, 0, 1, AT(3));
}

TEST(TensorCopy, RefusesWhatTheHardwareCannot) {
  auto refusal = [](uint32_t columns, Coordinates at) {
    auto machine = makeMachine(MachineOptions::sm90());
    auto *data = makeBuffer<uint16_t>(*machine, 0, 40 * 48, "data");
    DitronSimTensorMap map = mapOf(data, 2, {columns, 40}, {96}, {32, 16}, 0);
    return runOnce(*machine, kernel("store", storeAtKernel, {1, 1, 1}, 32, 4096, map, at));
  };
  EXPECT_OK(refusal(48, Coordinates{{8, 3}}));
  EXPECT_THAT(refusal(48, Coordinates{{5, 3}}).message(), HasSubstr("begins at byte 10 of its row, which is not a multiple of 16"));
  EXPECT_THAT(refusal(48, Coordinates{{0, -3}}).message(), HasSubstr("coordinate 1 is -3: only loads may begin before the tensor"));
  EXPECT_THAT(refusal(37, Coordinates{{0, 0}}).message(), HasSubstr("rows end at byte 74; stores write them in steps of 16 bytes"));
}

TEST(TensorCopy, CopiesOverlapInVirtualTime) {
  // Two loads in flight together take less than one after the other: latency is paid once.
  SimTime took[2];
  for (uint32_t together : {0u, 1u}) {
    MachineOptions options = MachineOptions::sm90();
    options.jitter = 0;
    options.recordTrace = true;
    auto machine = makeMachine(options);
    auto *a = makeBuffer<uint16_t>(*machine, 0, 64 * 64, "a");
    DitronSimTensorMap map = mapOf(a, 2, {64, 64}, {128}, {64, 64}, 128);
    auto entry = [](void **arguments) {
      DitronSimThread *self = ditron_sim_self();
      const auto &map = *static_cast<const DitronSimTensorMap *>(arguments[0]);
      const int32_t coords[2] = {0, 0};
      char *bars = self->sharedMemory + 32768;
      for (uint32_t i = 0; i < 4; ++i)
        ditron_sim_mbarrier_init(self, bars + 8 * i, 1, AT(1));
      for (uint32_t i = 0; i < 4; ++i) {
        ditron_sim_mbarrier_expect_tx(self, bars + 8 * i, 8192, 1, AT(2));
        ditron_sim_tma_load(self, &map, 2, coords, self->sharedMemory + 8192 * i, bars + 8 * i, 1, AT(3));
        if (!argument<uint32_t>(arguments, 1))
          ditron_sim_mbarrier_wait(self, bars + 8 * i, 0, AT(4));
      }
      for (uint32_t i = 0; i < 4; ++i)
        ditron_sim_mbarrier_wait(self, bars + 8 * i, 0, AT(5));
    };
    ASSERT_OK(runOnce(*machine, kernel("loads", entry, {1, 1, 1}, 1, 33000, map, together)));
    const LaunchRecord &record = machine->launches()[0];
    took[together] = record.blocks[0].end - record.blocks[0].start;
  }
  EXPECT_NEAR(static_cast<double>(took[0] - took[1]), 3 * 600e3, 20e3);
}

TEST(TensorCopy, RefusesWrongMapsAndPlaces) {
  alignas(16) static char data[4096];
  auto problem = [](std::vector<uint32_t> dims, std::vector<uint64_t> strides, std::vector<uint32_t> box,
                    uint32_t swizzle, uint32_t shift = 0) {
    return makeTensorMap(data + shift, 2, dims, strides, box, swizzle).status().message();
  };
  EXPECT_THAT(problem({64, 4}, {130}, {64, 4}, 0), HasSubstr("stride of dimension 1 is 130 bytes"));
  EXPECT_THAT(problem({64, 4}, {128}, {64, 257}, 0), HasSubstr("extent 257 in dimension 1"));
  EXPECT_THAT(problem({64, 4}, {128}, {32, 4}, 128), HasSubstr("with a swizzle of 128 it must have as many"));
  EXPECT_THAT(problem({64, 4}, {128}, {4, 4}, 0), HasSubstr("has 8 bytes; it must be a multiple of 16"));
  EXPECT_THAT(problem({64, 4}, {128}, {64, 4}, 0, 2), HasSubstr("behind a multiple of 16"));

  auto machine = makeMachine(MachineOptions::sm90());
  auto *a = makeBuffer<uint16_t>(*machine, 0, 64 * 63, "a");
  auto *out = makeBuffer<char>(*machine, 0, 8192, "out");
  DitronSimTensorMap map = mapOf(a, 2, {64, 64}, {128}, {64, 64}, 128);
  Status status = runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, 8200, map, Coordinates{}, out));
  EXPECT_EQ(status.code(), StatusCode::OutOfBounds);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("kernel.py:4:5"), HasSubstr("tensor load: the "), HasSubstr("a")));

  machine = makeMachine(MachineOptions::sm90());
  a = makeBuffer<uint16_t>(*machine, 0, 64 * 64, "a");
  map = mapOf(a, 2, {64, 64}, {128}, {64, 64}, 128);
  status = runOnce(*machine, kernel("load", loadKernel, {1, 1, 1}, 32, 4096, map, Coordinates{}, out));
  EXPECT_THAT(status.message(), HasSubstr("the box of 8192 bytes at shared offset 0 is outside of the block's 4096"));
}

TEST(TensorCopy, ABlockMustNotEndBeforeItsLoads) {
  auto machine = makeMachine(MachineOptions::sm90());
  auto *a = makeBuffer<uint16_t>(*machine, 0, 64 * 64, "a");
  DitronSimTensorMap map = mapOf(a, 2, {64, 64}, {128}, {64, 64}, 128);
  auto entry = [](void **arguments) {
    DitronSimThread *self = ditron_sim_self();
    const int32_t coords[2] = {0, 0};
    ditron_sim_mbarrier_init(self, self->sharedMemory + 8192, 1, AT(1));
    ditron_sim_tma_load(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, coords, self->sharedMemory,
                        self->sharedMemory + 8192, 1, AT(2));
  };
  Status status = runOnce(*machine, kernel("load", entry, {1, 1, 1}, 1, 8200, map));
  EXPECT_THAT(status.message(),
              HasSubstr("the block ended while the tensor load of that line was writing shared memory"));
}

} // namespace
} // namespace ditron::sim
