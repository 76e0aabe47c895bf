//===- AllToAllV.h - All-to-all of parts whose sizes stand on the device -------------------------------*- C++ -*-===//
//
// What routes tokens to the ranks of their experts. How many rows go to each rank is read by the kernel, from device memory: the host
// needs to know only the most that may be. One launch a call, captured once and replayed with whatever sizes are there. Small parts
// go by packets, large ones through rings; the sizes decide, part by part.
//
//   AllToAllV exchange = *AllToAllV::create(world, kernels, {.rowElements = 7168, .maxRows = 4096, .packed = true});
//   exchange.prepare(rank);
//   exchange.enqueue(rank, stream, {.in = x, .inRows = 8192, .sendCounts = counts, .sendOffsets = offsets, ...});
//   stream.synchronize(), exchange.check(rank);                 // whether all sizes could be
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_ALLTOALLV_H
#define DITRON_OPS_COLLECTIVES_ALLTOALLV_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/collectives/TransferReport.h"

#include <optional>

namespace ditron::ops {

struct AllToAllVOptions {
  DataType dtype = DataType::BF16; ///< Any but i1; bits are moved as they are.
  /// Counts and offsets are in rows of so many elements. Rows of a multiple of 16 elements, and of 16 bytes, are moved by wide accesses.
  int64_t rowElements = 1;
  /// The most that one rank sends another in a call; sizes the buffers. A larger count is an error that check() tells.
  int64_t maxRows = 0;
  /// The parts lie behind each other in `out`, in ascending order of the ranks, and the offsets are a result.
  bool packed = false;
  /// Parts of up to so many bytes go by packets. Unset: as the table's rows of all_to_all say (CollectivePlans.h).
  std::optional<uint64_t> packetBytes = std::nullopt;
  /// Of the form chunks: what rings are cut into, and the blocks and warps of every call. Unset: as the table says.
  std::optional<CollectivePlan> plan = std::nullopt;
  /// As CollectiveOptions::gpu.
  std::string gpu = {};
};

class AllToAllV {
public:
  /// Device memory of one rank. `in` [inRows, rowElements] and `out` [outRows, rowElements], at any multiple of the element, must not
  /// overlap; the others are i64 [ranks].
  struct Operands {
    runtime::Pointer in;
    int64_t inRows = 0;
    runtime::Pointer sendCounts,
        sendOffsets; ///< What goes to rank r: sendCounts[r] rows of `in` from row sendOffsets[r] on.
    runtime::Pointer out;
    int64_t outRows = 0;
    runtime::Pointer receiveCounts;  ///< Becomes the number of rows that came from each rank.
    runtime::Pointer receiveOffsets; ///< Where rank r's rows begin in `out`: given, or with `packed` a result.
  };

  /// Allocates on all ranks. Refuses options that make no sense, and worlds of several nodes.
  static Expected<AllToAllV> create(runtime::World &world, runtime::KernelProvider &kernels,
                                    const AllToAllVOptions &options);

  /// Compiles and loads what calls on the rank need whose `in` and `out` are multiples of 16 bytes, before the first call on any rank.
  Status prepare(runtime::Rank &rank);
  /// Every rank must make the same sequence of calls, on one stream after the other. A part whose count is not in 0 to maxRows, or that
  /// lies outside of `in` or `out`, is left out, its count is 0 in receiveCounts, nothing else is changed by it, and check() tells it:
  /// of a wrong count, on both ranks. Other addresses than those that prepare() is for are prepared now, which a capture does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands);
  /// Ok, or the first problem with sizes in the rank's calls since the last check(). The stream must have been synchronised.
  Status check(const runtime::Rank &rank) { return report.check(rank.id()); }

  const AllToAllVOptions &options() const { return optionValues; }
  /// The largest part that goes by packets, in rows.
  int64_t packetRows() const { return smallRows; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const;

private:
  struct Plan {
    PreparedCall call;
    std::array<uint32_t, 6> pointers = {};
    uint32_t inRows = 0, outRows = 0;
  };
  KeptPlans<Plan>::Key keyOf(const Operands &operands) const;
  Expected<Plan> makePlan(runtime::Rank &rank, const Operands &operands) const;
  Status allocate();
  /// The elements of a line in which rings are cut.
  int64_t lineElements() const;

  AllToAllVOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CollectivePlan plan;
  int64_t smallRows = 0, capacity = 0;
  runtime::SymmetricBuffer packets, ring, arrived, freed;
  std::vector<runtime::Buffer> counters, parts; ///< Per rank of this process.
  TransferReport report;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_ALLTOALLV_H
