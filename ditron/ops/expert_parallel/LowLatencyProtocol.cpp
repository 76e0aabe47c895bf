//===- LowLatencyProtocol.cpp - A token straight to each rank of its experts, and each result back -----------------------===//
//
// Device code: kernels/expert_parallel/low_latency.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"

#include <algorithm>

namespace ditron::ops {

namespace {

constexpr std::string_view kernelFile = "expert_parallel/low_latency";

class LowLatencyProtocol final : public ExpertParallelProtocol {
public:
  explicit LowLatencyProtocol(ExpertParallelSetting setting) : ExpertParallelProtocol(std::move(setting)) {}

  Status allocate() override;
  std::vector<KernelCall> dispatch(const runtime::Rank &rank, const Operands &operands, runtime::Pointer error,
                                   Part part) const override;
  std::vector<KernelCall> combine(const runtime::Rank &rank, const Operands &operands, Part part) const override;
  int64_t handleElements() const override { return handleBegin + 2 * maxSlots() + setting.mostRows; }
  uint64_t workspaceBytes() const override {
    return slots.bytes() + scales.bytes() + origins.bytes() + returned.bytes() + dispatchWords.told.bytes() +
           combineWords.told.bytes();
  }

private:
  runtime::SymmetricBuffer slots, scales, origins, returned;
  std::vector<runtime::Buffer> counts, staged, stagedScales, zeros; ///< By rank of this process.
  Words dispatchWords, combineWords;
};

Status LowLatencyProtocol::allocate() {
  const uint64_t experts = options().experts, rows = sets * numRanks() * options().maxTokens;
  DITRON_ASSIGN_OR_RETURN(slots,
                          world().allocateSymmetric(rowType(), rows * rowStride(rowType()), "ep_dispatch_slots"));
  DITRON_ASSIGN_OR_RETURN(
      origins, world().allocateSymmetric(DataType::I32, sets * experts * options().capacity, "ep_dispatch_origins"));
  DITRON_ASSIGN_OR_RETURN(scales, world().allocateSymmetric(DataType::F32, std::max<uint64_t>(rows * scalesOfRow(), 1),
                                                            "ep_dispatch_scales"));
  DITRON_ASSIGN_OR_RETURN(
      returned,
      world().allocateSymmetric(options().dtype, sets * maxSlots() * rowStride(options().dtype), "ep_combine_slots"));
  DITRON_ASSIGN_OR_RETURN(counts, allocateCounters(world(), options().experts, "ep_dispatch_counts"));
  staged.resize(numRanks()), stagedScales.resize(numRanks()), zeros.resize(numRanks());
  if (world().numNodes() > 1)
    for (uint32_t id : world().localRanks()) {
      runtime::Rank &rank = world().rank(id);
      const uint64_t blocks = setting.plan.blocks;
      DITRON_ASSIGN_OR_RETURN(zeros[id], rank.allocate(options().dtype, options().hidden, "ep_combine_zeros"));
      if (!options().fp8)
        continue;
      DITRON_ASSIGN_OR_RETURN(staged[id], rank.allocate(rowType(), blocks * rowStride(rowType()), "ep_staged"));
      DITRON_ASSIGN_OR_RETURN(stagedScales[id],
                              rank.allocate(DataType::F32, blocks * scalesOfRow(), "ep_staged_scales"));
    }
  DITRON_RETURN_IF_ERROR(allocateWords(dispatchWords, sets * experts, setting.plan.blocks, 1, "ep_dispatch"));
  return allocateWords(combineWords, numRanks(), setting.plan.combineBlocks, 1, "ep_combine");
}

std::vector<KernelCall> LowLatencyProtocol::dispatch(const runtime::Rank &rank, const Operands &operands,
                                                     runtime::Pointer error, Part part) const {
  const uint32_t id = rank.id();
  const Operands typed = asBits(operands);
  KernelCall call = launch(rank, dispatchWords, kernelFile, "dispatch", part);
  call.numWarps = setting.plan.numWarps;
  call.grid = {setting.plan.blocks, 1, 1};
  addCommon(call, rank, typed, {"x_ptr", "ids_ptr", "weights_ptr", "rows_ptr", "row_scales_ptr", "offsets_ptr"});
  call.arguments.insert(call.arguments.end(), {{"slots_ptr", slots.on(id)},
                                               {"scales_ptr", orNone(options().fp8, scales.on(id))},
                                               {"origins_ptr", origins.on(id)},
                                               {"staged_ptr", orNone(staged[id].pointer())},
                                               {"staged_scales_ptr", orNone(stagedScales[id].pointer())},
                                               {"counts_ptr", counts[id].pointer()},
                                               {"error_ptr", error},
                                               {"stride", rowStride(rowType())},
                                               {"experts", options().experts},
                                               {"capacity", i64Argument(options().capacity)},
                                               {"SLOTS", slotsOfToken()},
                                               {"EXPERTS", powerOfTwoFor(options().experts)},
                                               {"CHUNK", chunkOf(rank, setting.plan.numWarps, options().dtype)},
                                               {"ROWS", copiedRows},
                                               {"ROW_CHUNK", chunkOfCopiedRow(rank, setting.plan.numWarps)},
                                               {"SCAN", scanOf()}});
  return {call};
}

std::vector<KernelCall> LowLatencyProtocol::combine(const runtime::Rank &rank, const Operands &operands,
                                                    Part part) const {
  KernelCall call = launch(rank, combineWords, kernelFile, "combine", part);
  call.numWarps = setting.plan.combineNumWarps;
  call.grid = {setting.plan.combineBlocks, 1, 1};
  addCommon(call, rank, operands, {"rows_ptr", "out_ptr", "addend_ptr"});
  call.arguments.insert(call.arguments.end(),
                        {{"slots_ptr", returned.on(rank.id())},
                         {"stride", rowStride(options().dtype)},
                         {"zeros_ptr", orNone(zeros[rank.id()].pointer())},
                         {"most_rows", i64Argument(setting.mostRows)},
                         {"CHUNK", chunkOf(rank, setting.plan.combineNumWarps, options().dtype, accessesOfThread)},
                         {"ROWS", copiedRows},
                         {"ROW_CHUNK", chunkOfCopiedRow(rank, setting.plan.combineNumWarps)}});
  return {call};
}

} // namespace

std::unique_ptr<ExpertParallelProtocol> makeLowLatency(ExpertParallelSetting setting) {
  return std::make_unique<LowLatencyProtocol>(std::move(setting));
}

} // namespace ditron::ops
