//===- TwoLevelProtocol.cpp - Collectives of several nodes ------------------------------------------------------------===//
//
// Host side of two_level_exchange (kernels/collectives/two_level.py, where the protocol is).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

namespace ditron::ops {

namespace {

class TwoLevelProtocol final : public CollectiveProtocol {
public:
  explicit TwoLevelProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return words.on(rank); }
  uint64_t workspaceBytes() const override;

private:
  bool gathers() const { return !scatters(); }

  runtime::SymmetricBuffer contributions, sums; ///< Where something is added.
  runtime::SymmetricBuffer results;             ///< Where something is gathered.
  runtime::SymmetricBuffer words;
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: chunks so far
  int64_t slotElements = 0;
};

uint64_t TwoLevelProtocol::workspaceBytes() const {
  return words.bytes() + (reduces() ? contributions.bytes() + sums.bytes() : 0) + (gathers() ? results.bytes() : 0);
}

Status TwoLevelProtocol::allocate(std::span<const SizedPlan> plans) {
  const auto [blocks, largestChunk] = chunkSpace(plans);
  slotElements = largestChunk;
  const uint64_t slots = uint64_t{blocks} * slotsOfRing, nodes = world().numNodes(), ranks = numRanks();
  if (reduces()) {
    DITRON_ASSIGN_OR_RETURN(contributions, world().allocateSymmetric(options().dtype, slots * ranks * slotElements,
                                                                     name("_contributions")));
    DITRON_ASSIGN_OR_RETURN(
        sums, world().allocateSymmetric(partialSumType(), slots * 2 * nodes * slotElements, name("_node_sums")));
  }
  if (gathers()) {
    DITRON_ASSIGN_OR_RETURN(results,
                            world().allocateSymmetric(options().dtype, slots * ranks * slotElements, name("_results")));
  }
  DITRON_ASSIGN_OR_RETURN(
      words,
      world().allocateSymmetric(DataType::I64, slots * (world().ranksPerNode() + nodes + ranks), name("_node_words")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_node_chunks_done")));
  return Status::ok();
}

Expected<CollectiveCall> TwoLevelProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                                runtime::Pointer out, int64_t elements) const {
  const bool allReduce = options().kind == CollectiveKind::AllReduce;
  const int64_t part = allReduce ? partElements(elements) : elements;
  const int64_t chunk = chunkElements(plan, part);
  const uint32_t me = rank.id();
  KernelCall call;
  call.source = "collectives/two_level";
  call.kernel = "two_level_exchange";
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, part, chunk);
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"contributions_ptr", (reduces() ? contributions : results).on(me)},
                    {"sums_ptr", (reduces() ? sums : results).on(me)},
                    {"results_ptr", (gathers() ? results : contributions).on(me)},
                    {"words_ptr", words.on(me)},
                    {"generation_ptr", generations[me].pointer()},
                    {"n", allReduce ? elements : elements * numRanks()},
                    {"part", part},
                    {"rank", me},
                    {"slot_elements", slotElements},
                    {"NODES", world().numNodes()},
                    {"LOCAL", world().ranksPerNode()},
                    {"CHUNK", chunk}};
  call.arguments.emplace_back("REDUCE", reduces());
  call.arguments.emplace_back("GATHER", gathers());
  appendReduction(call);
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeTwoLevelProtocol(CollectiveSetting setting) {
  return std::make_unique<TwoLevelProtocol>(std::move(setting));
}

} // namespace ditron::ops
