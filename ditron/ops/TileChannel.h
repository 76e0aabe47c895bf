//===- TileChannel.h - The host side of the tile-centric primitives -------------------------------------------*- C++ -*-===//
//
// A kernel written with dl.producer_tile_notify, dl.consumer_tile_wait and so on (TileLink, sections 3.2 and 4.1) synchronises through the
// words of a channel. TileChannel owns these words, begins a call, and has the primitives that TileLink gives to the host, where the
// copy engine takes part: rank_copy_data, rank_notify, rank_wait. Device side: ditron/frontend/library/tilelink.py.
//
//   TileChannel channel = *TileChannel::create(world, "gather", world.numRanks());
//   per call and rank, on the compute stream:   channel.begin(rank) launched; then an event for the copy stream
//   on the copy stream, for each other rank r:  rankCopyData(copies, k.part(r), peer.k, count); channel.rankNotify(copies, r, rank.id())
//   on the compute stream:                      the kernel, with channel.barriers(rank), channel.generation(rank)
//
// Everything is enqueued on streams and carries generations that advance on the device, so that it can be captured and replayed.
// A call must have ended on all streams of a rank before that rank begins the next.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TILECHANNEL_H
#define DITRON_OPS_TILECHANNEL_H

#include "ditron/ops/KernelLaunch.h"
#include "ditron/runtime/World.h"

namespace ditron::ops {

class TileChannel {
public:
  TileChannel() = default;

  /// Allocates the words on all ranks: one per channel, one per tile that ranks hand to each other (dl.peer_tile_notify), and those that
  /// begin calls. `name` begins their names in reports.
  static Expected<TileChannel> create(runtime::World &world, std::string_view name, uint64_t channels,
                                      uint64_t peerTiles = 0);

  /// The beginning of a call, one block: the next generation, all words of this rank behind it, and a barrier over all ranks.
  KernelCall begin(const runtime::Rank &rank) const;

  /// What the kernels take: int64 words in the symmetric heap; int64 in device memory.
  runtime::Pointer barriers(uint32_t rank) const { return words.on(rank); }
  runtime::Pointer peers(uint32_t rank) const { return words.on(rank) + channelCount; }
  runtime::Pointer generation(uint32_t rank) const { return generations[rank].pointer(); }

  /// rank_notify: tells `target`, once the stream's earlier work is visible, that one more piece of a channel is there, and
  /// counts for its rankWait.
  Status rankNotify(runtime::Stream &stream, uint64_t channel, uint32_t target) const;
  /// rank_wait: holds the stream until `source` has notified this rank so often since the call began.
  Status rankWait(runtime::Stream &stream, uint32_t source, uint64_t notifications = 1) const;

private:
  runtime::SymmetricBuffer words;   ///< Channels, then tiles of peers.
  runtime::SymmetricBuffer gates;   ///< Per rank: how often it has notified this one since the call began.
  runtime::SymmetricBuffer entered; ///< Per rank: the call that it has begun.
  std::vector<runtime::Buffer> generations;
  uint64_t channelCount = 0, wordCount = 0;
  uint32_t worldSize = 0;
};

/// rank_copy_data: copies `count` elements between any two ranks by the copy engine; the direction is that of the pointers.
inline Status rankCopyData(runtime::Stream &stream, runtime::Pointer destination, runtime::Pointer source,
                           uint64_t count) {
  return stream.copy(destination, source, count, "rank_copy_data");
}

} // namespace ditron::ops
#endif // DITRON_OPS_TILECHANNEL_H
