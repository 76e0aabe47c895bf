//===- CollectivePlans.cpp - Reading the table of collectives ---------------------------------------------------------===//
#include "ditron/ops/collectives/CollectivePlans.h"

#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>

namespace ditron::ops {

namespace {

/// Of packets: the words of all ranks are in registers at once.
constexpr uint32_t mostPacketRanks = 16;
constexpr uint32_t mostBlocks = 1024, mostWarps = 32;
constexpr uint32_t leastChunkBytes = 512, mostChunkBytes = 1 << 16;

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  line = line.substr(0, line.find('#'));
  for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    result.push_back(line.substr(at, end - at));
    at = end;
  }
  return result;
}

template <typename Number> std::optional<Number> parseNumber(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<CollectiveForm> parseForm(std::string_view name) {
  for (CollectiveForm form : {CollectiveForm::Packets, CollectiveForm::TwoShotPackets, CollectiveForm::Chunks})
    if (toString(form) == name)
      return form;
  return std::nullopt;
}

} // namespace

std::string_view toString(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce: return "all_reduce";
  case CollectiveKind::AllGather: return "all_gather";
  case CollectiveKind::ReduceScatter: return "reduce_scatter";
  case CollectiveKind::AllToAll: return "all_to_all";
  case CollectiveKind::Broadcast: return "broadcast";
  }
  return "?";
}

const std::vector<CollectiveKind> &allCollectiveKinds() {
  static const std::vector<CollectiveKind> kinds = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                                    CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                                                    CollectiveKind::Broadcast};
  return kinds;
}

Expected<CollectiveKind> parseCollectiveKind(std::string_view name) {
  std::vector<std::string_view> names;
  for (CollectiveKind kind : allCollectiveKinds()) {
    if (toString(kind) == name)
      return kind;
    names.push_back(toString(kind));
  }
  return invalidArgument(fmt::format("there is no collective '{}'; there are {}", name, fmt::join(names, ", ")));
}

std::string_view toString(CollectiveForm form) {
  switch (form) {
  case CollectiveForm::Packets: return "packets";
  case CollectiveForm::TwoShotPackets: return "two_shot_packets";
  case CollectiveForm::Chunks: return "chunks";
  }
  return "?";
}

std::string CollectivePlan::text() const {
  return fmt::format("{} {} {} {}", toString(form), blocks, numWarps,
                     form == CollectiveForm::Chunks ? fmt::to_string(chunkBytes) : "-");
}

Expected<CollectivePlan> parseCollectivePlan(std::string_view text) {
  const std::vector<std::string_view> fields = words(text);
  const std::optional<CollectiveForm> form = fields.empty() ? std::nullopt : parseForm(fields[0]);
  const bool chunked = form == CollectiveForm::Chunks;
  if (form && fields.size() >= 3 && fields.size() <= 4) {
    const std::optional<uint32_t> blocks = parseNumber<uint32_t>(fields[1]), warps = parseNumber<uint32_t>(fields[2]);
    const std::string_view cut = fields.size() == 4 ? fields[3] : "-";
    const std::optional<uint32_t> chunk = parseNumber<uint32_t>(cut);
    if (blocks && warps && (chunked ? chunk.has_value() : cut == "-"))
      return CollectivePlan{*form, *blocks, *warps, chunked ? *chunk : 0};
  }
  return invalidArgument(
      fmt::format("'{}' is no plan of a collective; 'packets BLOCKS WARPS', 'two_shot_packets BLOCKS WARPS' and "
                  "'chunks BLOCKS WARPS BYTES' are accepted",
                  text));
}

Status CollectivePlan::verify(CollectiveKind kind, uint32_t numRanks) const {
  if (form == CollectiveForm::TwoShotPackets && kind != CollectiveKind::AllReduce)
    return unsupported(fmt::format("{} by {}: only all_reduce has that form", toString(kind), toString(form)));
  if (form == CollectiveForm::Packets && kind == CollectiveKind::Broadcast)
    return unsupported("broadcast by packets: it has the form chunks only");
  if (form != CollectiveForm::Chunks && numRanks > mostPacketRanks)
    return unsupported(fmt::format("{} by {} on {} ranks; at most {} are accepted, or the form chunks", toString(kind),
                                   toString(form), numRanks, mostPacketRanks));
  if (blocks < 1 || blocks > mostBlocks)
    return invalidArgument(fmt::format("{} blocks; 1 to {} are accepted", blocks, mostBlocks));
  if (!std::has_single_bit(numWarps) || numWarps > mostWarps)
    return invalidArgument(fmt::format("{} warps; powers of two up to {} are accepted", numWarps, mostWarps));
  if (form == CollectiveForm::Chunks &&
      (!std::has_single_bit(chunkBytes) || chunkBytes < leastChunkBytes || chunkBytes > mostChunkBytes))
    return invalidArgument(fmt::format("chunks of {} bytes; powers of two from {} to {} are accepted", chunkBytes,
                                       leastChunkBytes, mostChunkBytes));
  return Status::ok();
}

Expected<std::vector<CollectivePlanRow>> readCollectivePlans(std::string_view table, CollectiveKind kind,
                                                             std::string_view gpu, uint32_t numRanks) {
  std::vector<CollectivePlanRow> rows;
  std::string chosenGpu, chosenRanks;
  int lineNumber = 0;
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = std::min(table.find('\n', begin), table.size());
    const std::string_view line = table.substr(begin, end - begin);
    begin = end + 1;
    ++lineNumber;
    const std::vector<std::string_view> fields = words(line);
    if (fields.empty())
      continue;
    const auto wrong = [&](const std::string &what) {
      return invalidArgument(fmt::format("plans of collectives, line {}: {}: {}", lineNumber, what, line));
    };
    if (fields.size() != 8)
      return wrong(fmt::format("{} columns; 8 are accepted", fields.size()));
    DITRON_ASSIGN_OR_RETURN(const CollectiveKind rowKind, parseCollectiveKind(fields[0]));
    const std::optional<uint32_t> ranks = parseNumber<uint32_t>(fields[2]);
    const std::optional<uint64_t> bytes = parseNumber<uint64_t>(fields[3]);
    if (!ranks && fields[2] != "*")
      return wrong(fmt::format("'{}' ranks; a number or * is accepted", fields[2]));
    if (!bytes && fields[3] != "*")
      return wrong(fmt::format("'{}' bytes; a number or * is accepted", fields[3]));
    auto plan = parseCollectivePlan(line.substr(fields[4].data() - line.data()));
    if (!plan.isOk())
      return wrong(std::string(plan.status().message()));
    const CollectivePlanRow row{.mostBytes = bytes.value_or(std::numeric_limits<uint64_t>::max()), .plan = *plan};
    if (Status status = row.plan.verify(rowKind, ranks.value_or(1)); !status.isOk())
      return wrong(std::string(status.message()));

    if (rowKind != kind || (ranks && *ranks != numRanks) ||
        (fields[1] != "*" && gpu.find(fields[1]) == std::string_view::npos))
      continue;
    if (rows.empty()) {
      chosenGpu = fields[1];
      chosenRanks = fields[2];
    }
    if (fields[1] != chosenGpu || fields[2] != chosenRanks)
      continue;
    if (!rows.empty() && rows.back().mostBytes >= row.mostBytes)
      return wrong("sizes must ascend");
    // A row for any number of ranks may name a form that so many cannot have; the next one then takes its sizes.
    if (row.plan.verify(kind, numRanks).isOk())
      rows.push_back(row);
  }
  if (rows.empty() || rows.back().mostBytes != std::numeric_limits<uint64_t>::max())
    return invalidArgument(fmt::format("plans of collectives: no row of {} for all sizes on {} with {} ranks",
                                       toString(kind), gpu, numRanks));
  return rows;
}

} // namespace ditron::ops
