//===- TwoLevelProtocol.cpp - A token over the wire to a node once, and one sum back ------------------------------------===//
//
// Device code: kernels/expert_parallel/two_level.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"

#include <algorithm>

namespace ditron::ops {

namespace {

constexpr std::string_view kernelFile = "expert_parallel/two_level";

class TwoLevelProtocol final : public ExpertParallelProtocol {
public:
  explicit TwoLevelProtocol(ExpertParallelSetting setting) : ExpertParallelProtocol(std::move(setting)) {}

  Status allocate() override;
  std::vector<KernelCall> dispatch(const runtime::Rank &rank, const Operands &operands, runtime::Pointer error,
                                   Part part) const override;
  std::vector<KernelCall> combine(const runtime::Rank &rank, const Operands &operands, Part part) const override;
  int64_t handleElements() const override {
    const int64_t nodes = world().numNodes();
    return handleBegin + 3 * maxSlots() + setting.mostRows + nodes + nodes * options().maxTokens +
           2 * nodes * maxSlots();
  }
  uint64_t workspaceBytes() const override;

private:
  /// int32 words of a record before those of its slots, and of all of it.
  int64_t keyWords() const {
    return rowStride(rowType()) * static_cast<int64_t>(sizeOf(rowType())) / 4 + scalesOfRow();
  }
  int64_t recordWords() const { return ceilDivide(keyWords() + 3 * int64_t(options().topK) + 1, 4) * 4; }

  runtime::SymmetricBuffer slots, scales, origins, inbox, records, counted, told; ///< Of dispatch.
  runtime::SymmetricBuffer returned, through, sums, sumsArrived, heard;           ///< Of combine.
  std::vector<runtime::Buffer> counts, sentRecords, staged, stagedSums;           ///< By rank of this process.
  Words dispatchWords, combineWords;
};

Status TwoLevelProtocol::allocate() {
  const uint64_t experts = options().experts, nodes = world().numNodes(),
                 rows = sets * numRanks() * options().maxTokens, records = sets * nodes * options().maxTokens,
                 stride = rowStride(options().dtype);
  const std::tuple<runtime::SymmetricBuffer *, DataType, uint64_t, const char *> shared[] = {
      {&slots, rowType(), rows * rowStride(rowType()), "ep_dispatch_slots"},
      {&origins, DataType::I32, sets * experts * options().capacity, "ep_dispatch_origins"},
      {&scales, DataType::F32, std::max<uint64_t>(rows * scalesOfRow(), 1), "ep_dispatch_scales"},
      {&inbox, DataType::I32, records * recordWords(), "ep_dispatch_inbox"},
      {&this->records, DataType::I64, records, "ep_dispatch_records"},
      {&counted, DataType::I64, sets * experts, "ep_dispatch_counted"},
      {&told, DataType::I64, sets * nodes, "ep_dispatch_nodes"},
      {&returned, options().dtype, sets * maxSlots() * stride, "ep_combine_slots"},
      {&through, options().dtype, sets * nodes * maxSlots() * stride, "ep_combine_through"},
      {&sums, options().dtype, records * stride, "ep_combine_sums"},
      {&sumsArrived, DataType::I64, records, "ep_combine_sums_arrived"},
      {&heard, DataType::I64, sets * nodes, "ep_combine_nodes"}};
  for (const auto &[buffer, type, count, name] : shared) {
    DITRON_ASSIGN_OR_RETURN(*buffer, world().allocateSymmetric(type, count, name));
  }
  DITRON_ASSIGN_OR_RETURN(counts, allocateCounters(world(), options().experts, "ep_dispatch_counts"));
  DITRON_ASSIGN_OR_RETURN(sentRecords, allocateCounters(world(), world().numNodes(), "ep_dispatch_sent_records"));
  staged.resize(numRanks()), stagedSums.resize(numRanks());
  for (uint32_t id : world().localRanks()) {
    runtime::Rank &rank = world().rank(id);
    DITRON_ASSIGN_OR_RETURN(staged[id], rank.allocate(DataType::I32, setting.plan.blocks * recordWords(), "ep_staged"));
    DITRON_ASSIGN_OR_RETURN(stagedSums[id],
                            rank.allocate(options().dtype, setting.plan.combineBlocks * stride, "ep_staged_sums"));
  }
  DITRON_RETURN_IF_ERROR(
      allocateWords(dispatchWords, sets * experts, setting.plan.blocks, 1 + world().numNodes(), "ep_dispatch"));
  return allocateWords(combineWords, world().ranksPerNode(), setting.plan.combineBlocks, 2, "ep_combine");
}

uint64_t TwoLevelProtocol::workspaceBytes() const {
  uint64_t bytes = dispatchWords.told.bytes() + combineWords.told.bytes();
  for (const runtime::SymmetricBuffer *buffer :
       {&slots, &scales, &origins, &inbox, &records, &counted, &told, &returned, &through, &sums, &sumsArrived, &heard})
    bytes += buffer->bytes();
  return bytes;
}

std::vector<KernelCall> TwoLevelProtocol::dispatch(const runtime::Rank &rank, const Operands &operands,
                                                   runtime::Pointer error, Part part) const {
  const uint32_t id = rank.id();
  KernelCall call = launch(rank, dispatchWords, kernelFile, "dispatch_by_nodes", part);
  call.numWarps = setting.plan.numWarps;
  call.grid = {setting.plan.blocks, 1, 1};
  addCommon(call, rank, asBits(operands),
            {"x_ptr", "ids_ptr", "weights_ptr", "rows_ptr", "row_scales_ptr", "offsets_ptr"});
  call.arguments.insert(call.arguments.end(), {{"slots_ptr", slots.on(id)},
                                               {"scales_ptr", orNone(options().fp8, scales.on(id))},
                                               {"origins_ptr", origins.on(id)},
                                               {"record_ptr", staged[id].pointer()},
                                               {"inbox_ptr", inbox.on(id)},
                                               {"signals_ptr", records.on(id)},
                                               {"counts_in_ptr", counted.on(id)},
                                               {"told_ptr", told.on(id)},
                                               {"counts_ptr", counts[id].pointer()},
                                               {"records_ptr", sentRecords[id].pointer()},
                                               {"error_ptr", error},
                                               {"stride", rowStride(rowType())},
                                               {"record_words", recordWords()},
                                               {"keys", keyWords()},
                                               {"experts", options().experts},
                                               {"capacity", i64Argument(options().capacity)},
                                               {"most_rows", i64Argument(setting.mostRows)},
                                               {"SLOTS", slotsOfToken()},
                                               {"EXPERTS", powerOfTwoFor(options().experts)},
                                               {"CHUNK", chunkOf(rank, setting.plan.numWarps, options().dtype)},
                                               {"ROWS", copiedRows},
                                               {"ROW_CHUNK", chunkOfCopiedRow(rank, setting.plan.numWarps)},
                                               {"SCAN", scanOf()}});
  return {call};
}

std::vector<KernelCall> TwoLevelProtocol::combine(const runtime::Rank &rank, const Operands &operands,
                                                  Part part) const {
  const uint32_t id = rank.id();
  KernelCall call = launch(rank, combineWords, kernelFile, "combine_by_nodes", part);
  call.numWarps = setting.plan.combineNumWarps;
  call.grid = {setting.plan.combineBlocks, 1, 1};
  addCommon(call, rank, operands, {"rows_ptr", "out_ptr", "addend_ptr"});
  call.arguments.insert(call.arguments.end(),
                        {{"slots_ptr", returned.on(id)},
                         {"through_ptr", through.on(id)},
                         {"sums_ptr", sums.on(id)},
                         {"row_ptr", stagedSums[id].pointer()},
                         {"signals_ptr", sumsArrived.on(id)},
                         {"heard_ptr", heard.on(id)},
                         {"stride", rowStride(options().dtype)},
                         {"most_rows", i64Argument(setting.mostRows)},
                         {"SLOTS", slotsOfToken()},
                         {"CHUNK", chunkOf(rank, setting.plan.combineNumWarps, options().dtype)}});
  return {call};
}

} // namespace

std::unique_ptr<ExpertParallelProtocol> makeTwoLevel(ExpertParallelSetting setting) {
  return std::make_unique<TwoLevelProtocol>(std::move(setting));
}

} // namespace ditron::ops
