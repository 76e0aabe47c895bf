//===- HighThroughputProtocol.cpp - A token to a rank once, and one sum back, by channels --------------------------------===//
//
// Device code: kernels/expert_parallel/high_throughput.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"
#include "ditron/ops/moe/Routing.h"

#include <algorithm>

namespace ditron::ops {

namespace {

class HighThroughputProtocol final : public ExpertParallelProtocol {
public:
  explicit HighThroughputProtocol(ExpertParallelSetting setting) : ExpertParallelProtocol(std::move(setting)) {}

  Status allocate() override;
  std::vector<KernelCall> dispatch(const runtime::Rank &rank, const Operands &operands, runtime::Pointer error,
                                   Part part) const override;
  std::vector<KernelCall> combine(const runtime::Rank &rank, const Operands &operands, Part part) const override;
  int64_t handleElements() const override {
    return handleBegin + numRanks() + (1 + 2 * int64_t(numRanks())) * maxSlots();
  }
  uint64_t workspaceBytes() const override;

private:
  /// Rings of one direction, with the words by which ranks tell each other what is in them.
  struct Rings {
    runtime::SymmetricBuffer rows, arrived, freed;
    std::vector<runtime::Buffer> windows, windowsOfRank; ///< By rank of this process: [channels], [channels, ranks].
  };
  Status allocateRings(Rings &rings, uint32_t channels, DataType type, const std::string &name);
  uint32_t channels() const { return setting.plan.blocks / 2; }
  /// The tokens of a window, all of which a block moves together; a power of two.
  uint32_t rowsAtOnce() const { return powerOfTwoFor(setting.plan.window); }
  /// Elements of each of them, by so many accesses of a thread that are on their way at the same time.
  int64_t chunkOfRow(const runtime::Rank &rank, uint32_t numWarps, int64_t accesses) const {
    return chunkOf(rank, numWarps, options().dtype, accesses, rowsAtOnce());
  }

  Rings dispatchRings, combineRings;
  runtime::SymmetricBuffer scales, keys, keyWeights, told;
  std::vector<runtime::Buffer> counts, offsets, slotOfRow, rowOfSlot, begins, sent, received;
};

Status HighThroughputProtocol::allocateRings(Rings &rings, uint32_t channels, DataType type, const std::string &name) {
  const uint64_t pairs = uint64_t(channels) * numRanks();
  DITRON_ASSIGN_OR_RETURN(
      rings.rows,
      world().allocateSymmetric(type, pairs * slotsOfRing * setting.plan.window * rowStride(type), name + "_ring"));
  DITRON_ASSIGN_OR_RETURN(rings.arrived, world().allocateSymmetric(DataType::I64, pairs, name + "_arrived"));
  DITRON_ASSIGN_OR_RETURN(rings.freed, world().allocateSymmetric(DataType::I64, pairs, name + "_freed"));
  DITRON_ASSIGN_OR_RETURN(rings.windows, allocateCounters(world(), channels, name + "_windows"));
  DITRON_ASSIGN_OR_RETURN(rings.windowsOfRank,
                          allocateCounters(world(), static_cast<uint32_t>(pairs), name + "_windows_of_rank"));
  return Status::ok();
}

Status HighThroughputProtocol::allocate() {
  const uint64_t places = uint64_t(channels()) * numRanks() * slotsOfRing * setting.plan.window;
  const uint64_t experts = options().experts;
  DITRON_RETURN_IF_ERROR(allocateRings(dispatchRings, channels(), rowType(), "ep_dispatch"));
  DITRON_RETURN_IF_ERROR(allocateRings(combineRings, setting.plan.combineBlocks / 2, options().dtype, "ep_combine"));
  DITRON_ASSIGN_OR_RETURN(
      scales,
      world().allocateSymmetric(DataType::F32, std::max<uint64_t>(places * scalesOfRow(), 1), "ep_dispatch_scales"));
  DITRON_ASSIGN_OR_RETURN(keys, world().allocateSymmetric(DataType::I64, places * options().topK, "ep_dispatch_keys"));
  DITRON_ASSIGN_OR_RETURN(keyWeights,
                          world().allocateSymmetric(DataType::F32, places * options().topK, "ep_dispatch_weights"));
  DITRON_ASSIGN_OR_RETURN(told,
                          world().allocateSymmetric(DataType::I64, 2 * (experts + numRanks()), "ep_dispatch_told"));
  DITRON_ASSIGN_OR_RETURN(sent, allocateCounters(world(), channels(), "ep_dispatch_sent"));
  DITRON_ASSIGN_OR_RETURN(received, allocateCounters(world(), channels(), "ep_dispatch_received"));
  const std::tuple<std::vector<runtime::Buffer> *, uint64_t, const char *> own[] = {
      {&counts, ceilDivide(maxSlots(), slotsOfChunk) * experts, "ep_dispatch_counts"},
      {&offsets, experts + 1, "ep_dispatch_offsets"},
      {&slotOfRow, maxSlots(), "ep_dispatch_slot_of_row"},
      {&rowOfSlot, maxSlots(), "ep_dispatch_row_of_slot"},
      {&begins, channels() * experts, "ep_dispatch_begins"}};
  for (const auto &[buffers, count, name] : own) {
    buffers->resize(numRanks());
    for (uint32_t id : world().localRanks()) {
      DITRON_ASSIGN_OR_RETURN((*buffers)[id], world().rank(id).allocate(DataType::I32, count, name));
    }
  }
  return Status::ok();
}

uint64_t HighThroughputProtocol::workspaceBytes() const {
  uint64_t bytes = scales.bytes() + keys.bytes() + keyWeights.bytes() + told.bytes();
  for (const Rings *rings : {&dispatchRings, &combineRings})
    bytes += rings->rows.bytes() + rings->arrived.bytes() + rings->freed.bytes();
  return bytes;
}

std::vector<KernelCall> HighThroughputProtocol::dispatch(const runtime::Rank &rank, const Operands &operands,
                                                         runtime::Pointer error, Part) const {
  const uint32_t id = rank.id(), width = powerOfTwoFor(options().experts);
  const Operands typed = asBits(operands);
  const auto ids = std::ranges::find(typed, std::string_view("ids_ptr"), &Operands::value_type::first);
  KernelCall count;
  count.source = "expert_parallel/high_throughput";
  count.kernel = "count_slots_of_call";
  count.grid = {static_cast<uint32_t>(ceilDivide(maxSlots(), slotsOfChunk)), 1, 1};
  count.arguments = {{"ids_ptr", ids->second},
                     {"counts_ptr", counts[id].pointer()},
                     {"slots", i64Argument(0)},
                     {"experts", options().experts}};
  KernelCall place = count;
  place.kernel = "place_slots_of_call";
  place.arguments.insert(place.arguments.end(), {{"own_offsets_ptr", offsets[id].pointer()},
                                                 {"slot_of_row_ptr", slotOfRow[id].pointer()},
                                                 {"row_of_slot_ptr", rowOfSlot[id].pointer()}});
  cutSlots(rank, options().experts, count, place);
  KernelCall call;
  call.source = count.source;
  call.kernel = "dispatch_by_channels";
  call.numWarps = setting.plan.numWarps;
  call.grid = {setting.plan.blocks, 1, 1};
  addCommon(call, rank, typed, {"weights_ptr", "row_scales_ptr"});
  call.arguments.insert(call.arguments.end(), {{"ring_ptr", dispatchRings.rows.on(id)},
                                               {"scales_ptr", orNone(options().fp8, scales.on(id))},
                                               {"keys_ptr", keys.on(id)},
                                               {"key_weights_ptr", keyWeights.on(id)},
                                               {"words_ptr", told.on(id)},
                                               {"arrived_ptr", dispatchRings.arrived.on(id)},
                                               {"freed_ptr", dispatchRings.freed.on(id)},
                                               {"own_offsets_ptr", offsets[id].pointer()},
                                               {"row_of_slot_ptr", rowOfSlot[id].pointer()},
                                               {"begins_ptr", begins[id].pointer()},
                                               {"sent_ptr", sent[id].pointer()},
                                               {"received_ptr", received[id].pointer()},
                                               {"windows_ptr", dispatchRings.windows[id].pointer()},
                                               {"taken_ptr", dispatchRings.windowsOfRank[id].pointer()},
                                               {"error_ptr", error},
                                               {"stride", rowStride(rowType())},
                                               {"experts", options().experts},
                                               {"capacity", i64Argument(options().capacity)},
                                               {"SLOTS", slotsOfToken()},
                                               {"EXPERTS", width},
                                               {"WINDOW", setting.plan.window},
                                               {"ROWS", rowsAtOnce()},
                                               {"CHUNK", chunkOfRow(rank, setting.plan.numWarps, accessesOfThread)}});
  return {count, place, call};
}

std::vector<KernelCall> HighThroughputProtocol::combine(const runtime::Rank &rank, const Operands &operands,
                                                        Part) const {
  const uint32_t id = rank.id();
  KernelCall call;
  // No more, as addresses and weights of as many rows as a token has slots are in registers.
  constexpr int64_t accesses = accessesOfThread / 2;
  call.source = "expert_parallel/high_throughput";
  call.kernel = "combine_by_channels";
  call.numWarps = setting.plan.combineNumWarps;
  call.grid = {setting.plan.combineBlocks, 1, 1};
  addCommon(call, rank, operands, {"addend_ptr"});
  call.arguments.insert(call.arguments.end(), {{"ring_ptr", combineRings.rows.on(id)},
                                               {"arrived_ptr", combineRings.arrived.on(id)},
                                               {"freed_ptr", combineRings.freed.on(id)},
                                               {"windows_ptr", combineRings.windows[id].pointer()},
                                               {"returned_ptr", combineRings.windowsOfRank[id].pointer()},
                                               {"stride", rowStride(options().dtype)},
                                               {"SLOTS", slotsOfToken()},
                                               {"WINDOW", setting.plan.window},
                                               {"ROWS", rowsAtOnce()},
                                               {"CHUNK", chunkOfRow(rank, setting.plan.combineNumWarps, accesses)}});
  return {call};
}

} // namespace

std::unique_ptr<ExpertParallelProtocol> makeHighThroughput(ExpertParallelSetting setting) {
  return std::make_unique<HighThroughputProtocol>(std::move(setting));
}

} // namespace ditron::ops
