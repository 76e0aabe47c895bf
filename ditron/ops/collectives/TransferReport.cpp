//===- TransferReport.cpp - What was wrong with the sizes of a transfer ------------------------------------------===//
#include "ditron/ops/collectives/TransferReport.h"

#include <array>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

/// The constants of the device code.
enum Problem : int64_t {
  None,
  SendsTooMany,
  SendsFromOutside,
  ReceivesTooMany,
  ReceivesToOutside,
  SizesDiffer,
  DropsSlots,
  DropsRows
};

} // namespace

Expected<TransferReport> TransferReport::create(runtime::World &world, std::string operation, std::string unit) {
  TransferReport report;
  report.operation = std::move(operation);
  report.unit = std::move(unit);
  report.words.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(report.words[id], world.rank(id).allocate(DataType::I64, 4, report.operation + "_report"));
  }
  return report;
}

Status TransferReport::check(uint32_t rank) {
  std::array<int64_t, 4> told = {};
  DITRON_RETURN_IF_ERROR(words[rank].download(told.data(), sizeof(told)));
  const auto [problem, peer, value, limit] = told;
  if (problem == None)
    return Status::ok();
  told = {};
  DITRON_RETURN_IF_ERROR(words[rank].upload(told.data(), sizeof(told)));
  const std::string where = fmt::format("{} on rank {}", operation, rank);
  switch (problem) {
  case SendsTooMany:
    return invalidArgument(
        fmt::format("{}: its count for rank {} is {}; 0 to {} {} are accepted. Nothing was sent there", where, peer,
                    value, limit, unit));
  case SendsFromOutside:
    return invalidArgument(fmt::format("{}: its part for rank {} ends at {} of the {} {} that it sends from, or begins "
                                       "before them. Nothing was sent there",
                                       where, peer, value, limit, unit));
  case ReceivesTooMany:
    return invalidArgument(
        fmt::format("{}: rank {} has a count of {} for it; 0 to {} {} are accepted. Nothing was received from there",
                    where, peer, value, limit, unit));
  case ReceivesToOutside:
    return invalidArgument(fmt::format("{}: the part from rank {} would end at {} of the {} {} that it receives into, "
                                       "or begin before them. It was dropped",
                                       where, peer, value, limit, unit));
  case SizesDiffer:
    return invalidArgument(
        limit < 0 ? fmt::format("{}: a message of {} {} from rank {} that it did not expect", where, value, unit, peer)
                  : fmt::format("{}: rank {} has sent {} {}, and {} were to be received. Nothing was stored", where,
                                peer, value, unit, limit));
  case DropsSlots:
    return invalidArgument(
        fmt::format("{}: {} of its slots chose expert {}; the first {} (capacity) were sent, and the "
                    "others dropped",
                    where, value, peer, limit));
  case DropsRows:
    return invalidArgument(
        fmt::format("{}: {} {} came for its experts; the first {} (maxRows) are kept, and the others were dropped",
                    where, value, unit, limit));
  default: return internalError(fmt::format("{}: a report of kind {}", where, problem));
  }
}

} // namespace ditron::ops
