//===- PlantedFault.cpp - Calls that go wrong on purpose --------------------------------------------------------------------===//
#include "overlap/PlantedFault.h"

#include <csignal>
#include <fmt/format.h>
#include <thread>

namespace ditron::tool {

void addPlantOption(CLI::App *command, PlantedFault &fault) {
  static const std::map<std::string, PlantedFault> kinds = {{"fail", PlantedFault::Fail},
                                                            {"hang", PlantedFault::Hang},
                                                            {"wrong", PlantedFault::Wrong},
                                                            {"crash", PlantedFault::Crash},
                                                            {"sleep", PlantedFault::Sleep}};
  command->add_option("--plant", fault)->transform(CLI::CheckedTransformer(kinds))->group("");
}

Status plantBefore(PlantedFault fault, runtime::World &world, runtime::Buffer &word) {
  runtime::Rank &last = world.rank(world.localRanks().back());
  switch (fault) {
  case PlantedFault::Fail: return invalidArgument(fmt::format("rank {}: planted failure", last.id()));
  case PlantedFault::Hang: {
    DITRON_ASSIGN_OR_RETURN(word, last.allocate(DataType::I64, 1, "planted"));
    return last.stream().signalWait(word, runtime::Compare::GreaterEqual, 1);
  }
  case PlantedFault::Crash: std::raise(SIGKILL); break;
  case PlantedFault::Sleep: std::this_thread::sleep_for(std::chrono::hours(24)); break;
  case PlantedFault::None:
  case PlantedFault::Wrong: break;
  }
  return Status::ok();
}

Status plantBehind(PlantedFault fault, runtime::Buffer &result) {
  if (fault != PlantedFault::Wrong)
    return Status::ok();
  std::vector<std::byte> bytes(result.bytes());
  DITRON_RETURN_IF_ERROR(result.download(bytes.data(), bytes.size()));
  bytes[result.bytes() / result.count() - 1] ^= std::byte(0x7f); // the exponent of the first element
  return result.upload(bytes.data(), bytes.size());
}

} // namespace ditron::tool
