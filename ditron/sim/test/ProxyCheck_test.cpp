//===- ProxyCheck_test.cpp - Ordinary and asynchronous accesses of shared memory ----------------------------------===//

#include "ditron/sim/hopper/MatrixDescriptor.h"
#include "ditron/sim/test/Harness.h"

#include <cstring>

namespace ditron::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

enum Flaw : uint32_t {
  NoFlaw,
  NoFence,
  NoBarrier,
  FenceByOther,
  FenceByReader, ///< Behind the barrier: none.
  FenceBetween,  ///< By one thread, and then a barrier: none.
  FenceBeside,
  TouchInFlight,
  StoreWhileRead,
  ReadInFlight
};

void writeShared(DitronSimThread *self, const DitronSimSite *site) {
  char *target = self->sharedMemory + self->threadId * 16;
  ditron_sim_access(self, target, 16, 1, DITRON_SIM_STORE, DITRON_SIM_SHARED, site);
  std::memset(target, static_cast<int>(self->threadId), 16);
}

// 128 threads fill 2 KiB, thread 0 stores them as a tensor.
void storeKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto flaw = argument<uint32_t>(arguments, 1);
  const int32_t coords[2] = {0, 0};
  writeShared(self, AT(1));
  const bool isLate = flaw == FenceByReader || flaw == FenceBetween || flaw == FenceBeside;
  if (flaw != NoFence && !isLate && (flaw != FenceByOther || self->threadId == 0))
    ditron_sim_fence_async(self, AT(3));
  if (flaw != NoBarrier)
    ditron_sim_barrier(self, AT(4));
  if (isLate && self->threadId == (flaw == FenceByReader ? 0u : 70u))
    ditron_sim_fence_async(self, AT(3));
  if (flaw == FenceBetween)
    ditron_sim_barrier(self, AT(4));
  if (flaw == NoBarrier && self->threadId == 127) { // runs last, which nothing in the program says
    ditron_sim_tma_store(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, coords, self->sharedMemory, 1,
                         AT(5));
  } else if (flaw != NoBarrier && self->threadId == 0) {
    ditron_sim_tma_store(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, coords, self->sharedMemory, 1,
                         AT(5));
    ditron_sim_tma_store_commit(self, AT(6));
    if (flaw == StoreWhileRead)
      writeShared(self, AT(7));
    ditron_sim_tma_store_wait(self, 0, 1, AT(8));
    writeShared(self, AT(9));
  }
}

// 128 threads copy 2 KiB asynchronously; thread 0 stores them as a tensor.
void copyKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const int32_t coords[2] = {0, 0};
  ditron_sim_async_copy(self, self->sharedMemory + self->threadId * 16,
                        argument<char *>(arguments, 2) + self->threadId * 16, 16, 1, AT(11));
  ditron_sim_async_commit(self, AT(12));
  ditron_sim_async_wait(self, 0, AT(13));
  if (argument<uint32_t>(arguments, 1) != NoFence)
    ditron_sim_fence_async(self, AT(14));
  ditron_sim_barrier(self, AT(15));
  if (self->threadId == 0) {
    ditron_sim_tma_store(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, coords, self->sharedMemory, 1,
                         AT(16));
    ditron_sim_tma_store_commit(self, AT(17));
    ditron_sim_tma_store_wait(self, 0, 0, AT(18));
  }
}

// A tensor load whose bytes are touched before it is complete.
void loadKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto flaw = argument<uint32_t>(arguments, 1);
  const int32_t coords[2] = {0, 0};
  if (self->threadId == 0) {
    char *bar = self->sharedMemory + 2048;
    ditron_sim_mbarrier_init(self, bar, 1, AT(21));
    ditron_sim_mbarrier_expect_tx(self, bar, 2048, 1, AT(22));
    ditron_sim_tma_load(self, static_cast<DitronSimTensorMap *>(arguments[0]), 2, coords, self->sharedMemory, bar, 1,
                        AT(23));
    if (flaw == TouchInFlight)
      writeShared(self, AT(24));
    if (flaw == ReadInFlight)
      ditron_sim_access(self, self->sharedMemory + 100, 4, 1, DITRON_SIM_LOAD, DITRON_SIM_SHARED, AT(25));
    ditron_sim_mbarrier_wait(self, bar, 0, AT(26));
    ditron_sim_access(self, self->sharedMemory + 100, 4, 1, DITRON_SIM_LOAD, DITRON_SIM_SHARED, AT(27));
  }
}

// A multiply reads what threads stored.
void multiplyKernel(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  const auto flaw = argument<uint32_t>(arguments, 1);
  writeShared(self, AT(31));
  if (flaw != NoFence || self->threadId != 100)
    ditron_sim_fence_async(self, AT(32));
  ditron_sim_barrier(self, AT(33));
  float c[4] = {};
  ditron_sim_wgmma_fence(self, AT(34));
  ditron_sim_wgmma(self, DITRON_SIM_F16, 8, 1, 0, nullptr, encodeDescriptor(0, 1024, 128, 0), 0,
                   encodeDescriptor(0, 128, 128, 0), 0, c, AT(35));
  ditron_sim_wgmma_commit(self, AT(36));
  if (flaw == StoreWhileRead && self->threadId == 3)
    writeShared(self, AT(37));
  ditron_sim_wgmma_wait(self, 0, AT(38));
  ditron_sim_barrier(self, AT(39));
  writeShared(self, AT(40));
}

Status runFlaw(KernelEntry entry, uint32_t flaw, bool checked = true, bool detectRaces = true) {
  MachineOptions options = MachineOptions::sm90();
  options.checkBounds = checked;
  options.detectRaces = detectRaces;
  auto machine = makeMachine(options);
  auto *data = makeBuffer<char>(*machine, 0, 2048, "data");
  DitronSimTensorMap map{};
  map.base = data;
  map.rank = 2;
  map.elementBytes = 1;
  map.dims[0] = map.box[0] = 128;
  map.dims[1] = map.box[1] = 16;
  map.stridesBytes[0] = 128;
  Status status = runOnce(*machine, kernel("flaw", entry, {1, 1, 1}, 128, 2056, map, flaw, data));
  if (status.isOk() && entry == storeKernel && checked)
    for (uint32_t i = 0; i < 2048; ++i)
      EXPECT_EQ(data[i], static_cast<char>(i / 16));
  return status;
}

TEST(ProxyCheck, AcceptsFenceAndBarrier) {
  for (KernelEntry entry : {storeKernel, copyKernel, loadKernel, multiplyKernel})
    for (bool checked : {true, false})
      EXPECT_OK(runFlaw(entry, NoFlaw, checked));
}

TEST(ProxyCheck, AcceptsTheFenceOfAnyThreadOnTheWay) {
  for (uint32_t flaw : {FenceByReader, FenceBetween})
    for (bool detectRaces : {true, false})
      EXPECT_OK(runFlaw(storeKernel, flaw, true, detectRaces));
  for (bool detectRaces : {true, false})
    EXPECT_THAT(runFlaw(storeKernel, FenceBeside, true, detectRaces).message(),
                HasSubstr("without fence_async after the store"));
}

TEST(ProxyCheck, ReportsAMissingFenceOrBarrierWithBothLines) {
  EXPECT_THAT(
      runFlaw(storeKernel, NoFence).message(),
      AllOf(HasSubstr("kernel.py:5:5"), HasSubstr("the tensor store reads shared offset 0, which thread 0 stored "
                                                  "at kernel.py:1:5 without fence_async after the store")));
  EXPECT_THAT(runFlaw(storeKernel, FenceByOther).message(),
              HasSubstr("offset 16, which thread 1 stored at kernel.py:1:5 without fence_async after the store"));
  EXPECT_THAT(runFlaw(storeKernel, NoBarrier).message(),
              HasSubstr("which thread 0 stored at kernel.py:1:5 without a barrier after its fence_async"));
  EXPECT_THAT(runFlaw(copyKernel, NoFence).message(),
              HasSubstr("which thread 0 stored at kernel.py:11:5 without fence_async after the store"));
  EXPECT_THAT(
      runFlaw(multiplyKernel, NoFence).message(),
      AllOf(HasSubstr("kernel.py:35:5"), HasSubstr("operand A of the warpgroup multiply reads shared offset 1600, "
                                                   "which thread 100 stored at kernel.py:31:5 without")));
}

TEST(ProxyCheck, ReportsRacesWithWhatIsInFlight) {
  EXPECT_THAT(
      runFlaw(loadKernel, TouchInFlight).message(),
      AllOf(HasSubstr("kernel.py:24:5"), HasSubstr("store of 16 bytes at shared offset 0, which the tensor load of "
                                                   "kernel.py:23:5 is still writing")));
  EXPECT_THAT(
      runFlaw(loadKernel, ReadInFlight).message(),
      AllOf(HasSubstr("kernel.py:25:5"), HasSubstr("load of 4 bytes at shared offset 100, which the tensor load")));
  EXPECT_THAT(
      runFlaw(storeKernel, StoreWhileRead).message(),
      AllOf(HasSubstr("kernel.py:7:5"), HasSubstr("which the tensor store of kernel.py:5:5 may still be reading")));
  EXPECT_THAT(runFlaw(multiplyKernel, StoreWhileRead).message(),
              AllOf(HasSubstr("kernel.py:37:5"), HasSubstr("which the wgmma of kernel.py:35:5 may still be reading")));
}

} // namespace
} // namespace ditron::sim
