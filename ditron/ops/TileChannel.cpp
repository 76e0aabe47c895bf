//===- TileChannel.cpp - The host side of the tile-centric primitives ----------------------------------------------===//
#include "ditron/ops/TileChannel.h"

#include <fmt/format.h>

namespace ditron::ops {

Expected<TileChannel> TileChannel::create(runtime::World &world, std::string_view name, uint64_t channels,
                                          uint64_t peerTiles) {
  if (channels == 0)
    return invalidArgument(fmt::format("{}: a tile channel needs at least one channel, found 0", name));
  if (channels + peerTiles > INT32_MAX)
    return invalidArgument(fmt::format("{}: {} channels and {} tiles of peers; at most {} together are accepted", name,
                                       channels, peerTiles, INT32_MAX));
  TileChannel result;
  result.channelCount = channels;
  result.wordCount = channels + peerTiles;
  result.worldSize = world.numRanks();
  auto symmetric = [&](uint64_t count, std::string_view what) {
    return world.allocateSymmetric(DataType::I64, count, fmt::format("{}_{}", name, what));
  };
  DITRON_ASSIGN_OR_RETURN(result.words, symmetric(result.wordCount, "channel_words"));
  DITRON_ASSIGN_OR_RETURN(result.gates, symmetric(result.worldSize, "rank_gates"));
  DITRON_ASSIGN_OR_RETURN(result.entered, symmetric(result.worldSize, "entered"));
  result.generations.resize(result.worldSize);
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(result.generations[id],
                            world.rank(id).allocate(DataType::I64, 1, fmt::format("{}_generation", name)));
  }
  return result;
}

KernelCall TileChannel::begin(const runtime::Rank &rank) const {
  KernelCall call;
  call.source = "tile_link";
  call.kernel = "begin_call";
  call.arguments = {{"generation_ptr", generation(rank.id())},
                    {"entered_ptr", entered.on(rank.id())},
                    {"words_ptr", words.on(rank.id())},
                    {"gates_ptr", gates.on(rank.id())},
                    {"num_words", wordCount}};
  return call;
}

Status TileChannel::rankNotify(runtime::Stream &stream, uint64_t channel, uint32_t target) const {
  if (channel >= channelCount)
    return invalidArgument(fmt::format("rank_notify: channel {} does not exist; there are {}", channel, channelCount));
  if (target >= worldSize)
    return invalidArgument(fmt::format("rank_notify: rank {} does not exist; there are {}", target, worldSize));
  DITRON_RETURN_IF_ERROR(stream.signalAdd(words.on(target) + channel, 1));
  return stream.signalAdd(gates.on(target) + stream.rank(), 1);
}

Status TileChannel::rankWait(runtime::Stream &stream, uint32_t source, uint64_t notifications) const {
  if (source >= worldSize)
    return invalidArgument(fmt::format("rank_wait: rank {} does not exist; there are {}", source, worldSize));
  return stream.signalWait(gates.on(stream.rank()) + source, runtime::Compare::GreaterEqual, notifications);
}

} // namespace ditron::ops
