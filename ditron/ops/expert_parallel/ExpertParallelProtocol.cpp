//===- ExpertParallelProtocol.cpp - What the forms of expert parallelism share -------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <algorithm>
#include <bit>

namespace ditron::ops {

namespace {

/// SCALED of the device code.
constexpr int64_t scaled = 128;

} // namespace

uint32_t powerOfTwoFor(int64_t value) {
  return static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

int64_t ExpertParallelProtocol::scaledBlocks(int64_t hidden) { return ceilDivide(hidden, scaled); }

DataType ExpertParallelProtocol::rowType() const { return options().fp8 ? DataType::F8E4NV : bitsOf(options().dtype); }

int64_t ExpertParallelProtocol::rowStride(DataType type) const {
  const int64_t elements = planAlignment / static_cast<int64_t>(sizeOf(type));
  return ceilDivide(options().hidden, elements) * elements;
}

int64_t ExpertParallelProtocol::chunkOf(const runtime::Rank &rank, uint32_t numWarps, DataType type, int64_t accesses,
                                        int64_t rows) const {
  constexpr int64_t bytesOfAccess = 16;
  const int64_t elements =
      numWarps * rank.attributes().warpSize * accesses * bytesOfAccess / static_cast<int64_t>(sizeOf(type)) / rows;
  return std::clamp<int64_t>(powerOfTwoFor(options().hidden), scaled, std::max(elements, scaled));
}

uint32_t ExpertParallelProtocol::slotsOfToken() const { return powerOfTwoFor(options().topK); }

uint32_t ExpertParallelProtocol::scanOf() const {
  return std::min(std::clamp(8192 / slotsOfToken(), 64u, 1024u), powerOfTwoFor(std::max<int64_t>(maxSlots(), 64)));
}

Status ExpertParallelProtocol::allocateWords(Words &words, uint64_t told, uint32_t blocks, uint32_t arrivals,
                                             const std::string &name) {
  DITRON_ASSIGN_OR_RETURN(words.told, world().allocateSymmetric(DataType::I64, told, name + "_told"));
  DITRON_ASSIGN_OR_RETURN(words.sent, allocateCounters(world(), blocks, name + "_sent"));
  DITRON_ASSIGN_OR_RETURN(words.received, allocateCounters(world(), blocks, name + "_received"));
  DITRON_ASSIGN_OR_RETURN(words.arrivals, allocateCounters(world(), arrivals, name + "_arrivals"));
  return Status::ok();
}

KernelCall ExpertParallelProtocol::launch(const runtime::Rank &rank, const Words &words, std::string_view source,
                                          std::string_view kernel, Part part) const {
  const uint32_t id = rank.id();
  KernelCall call;
  call.source = source;
  call.kernel = kernel;
  call.arguments = {{"words_ptr", words.told.on(id)},
                    {"sent_ptr", words.sent[id].pointer()},
                    {"received_ptr", words.received[id].pointer()},
                    {"arrivals_ptr", words.arrivals[id].pointer()},
                    {"NODE_SIZE", world().ranksPerNode()},
                    {"SEND", part != Part::Receive},
                    {"RECEIVE", part != Part::Send}};
  return call;
}

void ExpertParallelProtocol::addCommon(KernelCall &call, const runtime::Rank &rank, const Operands &operands,
                                       std::initializer_list<std::string_view> names) const {
  call.arguments.insert(call.arguments.end(), {{"tokens", i64Argument(0)},
                                               {"hidden", options().hidden},
                                               {"max_slots", i64Argument(maxSlots())},
                                               {"max_rows", i64Argument(options().maxRows)},
                                               {"rank", rank.id()},
                                               {"WORLD", numRanks()},
                                               {"TOP_K", options().topK}});
  for (const auto &[name, pointer] : operands)
    call.arguments.emplace_back(std::string(name), pointer);
  for (std::string_view name : names)
    if (std::ranges::none_of(operands, [&](const auto &operand) { return operand.first == name; }))
      call.arguments.emplace_back(std::string(name), runtime::Argument(runtime::None()));
}

ExpertParallelProtocol::Operands ExpertParallelProtocol::asBits(const Operands &operands) const {
  Operands typed = operands;
  for (auto &[name, pointer] : typed)
    if (name == "rows_ptr")
      pointer = pointer.as(rowType());
    else if (name == "x_ptr" && !options().fp8)
      pointer = pointer.as(rowType());
  return typed;
}

} // namespace ditron::ops
