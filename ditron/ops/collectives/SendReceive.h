//===- SendReceive.h - Messages between pairs of ranks -------------------------------------------------*- C++ -*-===//
//
// A group of sends and receives is one launch, as between ncclGroupStart and ncclGroupEnd: they make progress together, so that ranks may
// exchange in a circle. The i-th send of rank a to rank b, counted over all calls, is what the i-th receive of b from a gets. Other ranks
// take no part.
//
//   SendReceive pairs = *SendReceive::create(world, kernels, {.dtype = DataType::BF16});
//   pairs.prepare(rank);                                                          // on every rank, before the first call anywhere
//   pairs.enqueue(rank, stream, {{right, x, n}}, {{left, y, n}});
//   stream.synchronize(), pairs.check(rank);                                      // whether all sizes were the same on both sides
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_SENDRECEIVE_H
#define DITRON_OPS_COLLECTIVES_SENDRECEIVE_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/collectives/TransferReport.h"

#include <optional>
#include <span>

namespace ditron::ops {

struct SendReceiveOptions {
  DataType dtype = DataType::BF16; ///< Any but i1; bits are moved as they are.
  /// Of the form chunks: what rings are cut into, and the blocks and warps of every call. Unset: as the table's rows of all_to_all say.
  std::optional<CollectivePlan> plan = std::nullopt;
  /// As CollectiveOptions::gpu.
  std::string gpu = {};
};

class SendReceive {
public:
  struct Message {
    uint32_t peer = 0;     ///< May be the rank itself, if the group has both ends.
    runtime::Pointer data; ///< [elements], at any multiple of the element.
    int64_t elements = 0;  ///< Any number, 0 too; both ends must say the same.
  };

  /// Allocates rings on all ranks. Refuses options that make no sense, worlds of several nodes and of more than 64 ranks.
  static Expected<SendReceive> create(runtime::World &world, runtime::KernelProvider &kernels,
                                      const SendReceiveOptions &options);

  /// Compiles and loads what calls on the rank need whose addresses are multiples of 16 bytes, before the first call on any rank.
  Status prepare(runtime::Rank &rank);
  /// Enqueues a group: as many launches as there are messages to or from the same rank, usually one. It is complete when everything
  /// that it sends has been taken. All calls of a rank are made on one stream after the other. Other addresses than those that
  /// prepare() is for are prepared now, which a capture does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, std::span<const Message> sends,
                 std::span<const Message> receives);
  /// Ok, or the first receive of the rank since the last check() whose sender had another size: nothing was stored for it. The stream
  /// must have been synchronised.
  Status check(const runtime::Rank &rank) { return report.check(rank.id()); }

  const SendReceiveOptions &options() const { return optionValues; }
  /// Bytes of symmetric memory per rank, whatever the sizes of messages.
  uint64_t workspaceBytes() const { return ring.bytes() + sizes.bytes() + arrived.bytes() + freed.bytes(); }

private:
  /// The parameters for one peer.
  struct Ends {
    uint32_t sendPointer = 0, sendElements = 0, receivePointer = 0, receiveElements = 0;
  };
  struct Plan {
    PreparedCall call;
    std::vector<Ends> peers;
  };
  /// At most one message to each rank and one from each.
  struct Round {
    std::vector<const Message *> sends, receives; ///< By peer; null for none.
  };
  Status verify(const runtime::Rank &rank, std::string_view what, const Message &message) const;
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t alignment) const;
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Round &round);

  SendReceiveOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CollectivePlan plan;
  runtime::SymmetricBuffer ring, sizes, arrived, freed;
  std::vector<runtime::Buffer> counters; ///< Per rank of this process.
  TransferReport report;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_SENDRECEIVE_H
