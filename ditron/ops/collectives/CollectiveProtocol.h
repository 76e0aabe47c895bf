//===- CollectiveProtocol.h - What carries out the calls of a form of collectives -----------------------------*- C++ -*-===//
//
// A form of CollectivePlans.h is device code, memory that its calls need on all ranks, and a way to launch it. A CollectiveProtocol
// is the host side of that, for one operator. Collective makes those that its rows of the table name, and asks the one of a size's
// row for the call.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_COLLECTIVEPROTOCOL_H
#define DITRON_OPS_COLLECTIVES_COLLECTIVEPROTOCOL_H

#include "ditron/ops/collectives/Collective.h"
#include "ditron/runtime/CallSequence.h"

#include <span>

namespace ditron::ops {

/// What every protocol of an operator is made from.
struct CollectiveSetting {
  CollectiveOptions options;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
};

/// A plan, and the largest `elements` of its calls: at least 1.
struct SizedPlan {
  CollectivePlan plan;
  int64_t mostElements = 0;
};

/// One size on one rank.
struct CollectiveCall {
  PreparedCall first, last; ///< Those that read `in` and write `out`; the same where one launch is the whole call.
  uint32_t in = 0, out = 0; ///< Their parameters for these.
  runtime::CallSequence sequence;
};

class CollectiveProtocol {
public:
  virtual ~CollectiveProtocol() = default;

  /// Allocates on all ranks what calls by these plans need; once. Refuses worlds in which there are no such calls.
  virtual Status allocate(std::span<const SizedPlan> plans) = 0;
  /// A call of `elements` > 0, at most the mostElements of its plan. May wait for an idle GPU: Collective::plan.
  virtual Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                        runtime::Pointer out, int64_t elements) const = 0;
  /// Some aligned memory of a rank.
  virtual runtime::Pointer memory(uint32_t rank) const = 0;
  /// Of symmetric memory of a rank.
  virtual uint64_t workspaceBytes() const = 0;

protected:
  explicit CollectiveProtocol(CollectiveSetting setting) : setting(std::move(setting)) {}

  const CollectiveOptions &options() const { return setting.options; }
  runtime::World &world() const { return *setting.world; }
  uint32_t numRanks() const { return setting.world->numRanks(); }
  bool reduces() const {
    return options().kind == CollectiveKind::AllReduce || options().kind == CollectiveKind::ReduceScatter;
  }
  bool scatters() const {
    return options().kind == CollectiveKind::ReduceScatter || options().kind == CollectiveKind::AllToAll;
  }
  /// The kind's, with something behind it: of memory.
  std::string name(std::string_view suffix) const { return std::string(toString(options().kind)).append(suffix); }
  int64_t elementBytes() const { return sizeOf(options().dtype); }
  /// REDUCTION, SCALED and scale.
  void appendReduction(KernelCall &call) const;
  /// With parameters x_ptr and out_ptr.
  Expected<CollectiveCall> oneLaunch(runtime::Rank &rank, KernelCall call) const;
  /// In which sums of some of the ranks travel. They are rounded to the elements' type, as NCCL's are, but where too little of them would be
  /// left: in fp8, and where a sum of integers is divided at the end.
  DataType partialSumType() const;
  /// Packets of a block: not less than one for each thread, where there are so many.
  int64_t packetsPerBlock(const CollectivePlan &plan, int64_t packets) const;
  /// What has room for the chunks of calls by any of some plans.
  struct ChunkSpace {
    uint32_t blocks = 0;
    int64_t slotElements = 0; ///< Of one chunk.
  };
  ChunkSpace chunkSpace(std::span<const SizedPlan> plans) const;
  /// Elements of a block's chunk: the plan's, or less where `elements` give each block less; at least 512 bytes.
  int64_t chunkElements(const CollectivePlan &plan, int64_t elements) const;
  /// Of a launch whose blocks take chunks of `elements` in turn: no more than have one.
  static std::array<uint32_t, 3> chunkGrid(const CollectivePlan &plan, int64_t elements, int64_t chunk);
  /// Elements of a rank's part of an AllReduce: they begin at multiples of a cache line where the whole does, so that accesses are wide.
  int64_t partElements(int64_t elements) const;

  CollectiveSetting setting;
};

std::unique_ptr<CollectiveProtocol> makePacketProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeLamportProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeChunkProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeRingProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeCopyEngineProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeTensorCopyProtocol(CollectiveSetting setting);
/// OneShotMultimem or Multimem.
std::unique_ptr<CollectiveProtocol> makeMultimemProtocol(CollectiveForm form, CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeTwoLevelPacketProtocol(CollectiveSetting setting);
std::unique_ptr<CollectiveProtocol> makeTwoLevelProtocol(CollectiveSetting setting);

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_COLLECTIVEPROTOCOL_H
