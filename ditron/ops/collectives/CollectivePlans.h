//===- CollectivePlans.h - How a collective of a size is carried out ------------------------------------------*- C++ -*-===//
//
// A table, not code: collectives.plans, embedded at build time (plans/PlanTable.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_COLLECTIVEPLANS_H
#define DITRON_OPS_COLLECTIVES_COLLECTIVEPLANS_H

#include "ditron/ops/plans/PlanTable.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ditron::ops {

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast };
/// all_reduce, all_gather, reduce_scatter, all_to_all, broadcast.
std::string_view toString(CollectiveKind kind);
Expected<CollectiveKind> parseCollectiveKind(std::string_view name);
const std::vector<CollectiveKind> &allCollectiveKinds();

enum class CollectiveForm {
  Packets, ///< Data beside the number of the call, every rank to every rank; not for Broadcast, nor for more than 16 ranks.
  TwoShotPackets, ///< AllReduce only: each rank adds a part and sends it to all, by packets.
  Lamport,        ///< As Packets, but all that is sent is data: that it has arrived is seen by its slot not being empty.
  TwoShotLamport, ///< As TwoShotPackets, in the same way.
  Chunks,         ///< Through a ring of slots with signals, every rank to every rank; AllReduce in two shots.
  Ring, ///< From each rank to the next one only; not for AllToAll. Sums are made in the order of the ring, and rounded by each rank.
  CopyEngine, ///< Pushed by copy engines out of and into staging memory of the message's size; AllGather, AllToAll, Broadcast.
  /// As chunks, but carried by bulk copies through shared memory: compute capability 9.0. ReduceScatter pulls; not for Broadcast.
  TensorCopies,
  /// AllReduce only: each rank has the switches add. Sums of bf16, fp16 and fp32; in no order that is known, so that ranks may differ in bits.
  OneShotMultimem,
  Multimem, ///< AllReduce in two shots, with the same limits, but the same bits on all ranks; AllGather by stores to all.
  /// For several nodes, and only for those: a put with signal between nodes, packets on them, in one shot; AllReduce, AllGather. At most 16
  /// ranks on a node.
  TwoLevelPackets,
  /// For several nodes, and only for those: a put with signal between nodes, stores on them; AllReduce, AllGather, ReduceScatter. A node's
  /// sum is rounded before it is sent.
  TwoLevel,
};
/// packets, two_shot_packets, lamport, two_shot_lamport, chunks, ring, copy_engine, tensor_copies, one_shot_multimem, multimem,
/// two_level_packets, two_level.
std::string_view toString(CollectiveForm form);
const std::vector<CollectiveForm> &formsOf(CollectiveKind kind);
/// Whether its plans have a chunkBytes.
bool hasChunks(CollectiveForm form);
/// Whether it is for worlds of several nodes, and not for others.
bool isForNodes(CollectiveForm form);
bool hasFormForNodes(CollectiveKind kind);

struct CollectivePlan {
  CollectiveForm form = CollectiveForm::Chunks;
  uint32_t blocks = 16;        ///< At most so many; small sizes take fewer.
  uint32_t numWarps = 8;       ///< Of a block; a power of two.
  uint32_t chunkBytes = 16384; ///< Of a block's chunk for one rank; a power of two. Where hasChunks(form).

  bool operator==(const CollectivePlan &) const = default;
  /// Refuses what the device code cannot do.
  Status verify(CollectiveKind kind, uint32_t numRanks, uint32_t numNodes = 1) const;
  /// "packets 16 8 -": form, blocks, warps, bytes of chunks; as in the table.
  std::string text() const;
};
/// CollectivePlan::text; the last word may be missing where it is "-".
Expected<CollectivePlan> parseCollectivePlan(std::string_view text);

struct CollectivePlanRow {
  uint64_t mostBytes = 0; ///< Of `elements` (Collective.h).
  CollectivePlan plan;
};

/// The rows for one kind on one GPU with so many ranks, in ascending order of sizes, the last without a limit: from the user's table and
/// those of the library. `gpu`: the device's name.
Expected<std::vector<CollectivePlanRow>> collectivePlanRows(CollectiveKind kind, std::string_view gpu,
                                                            uint32_t numRanks, DataType dtype, uint32_t numNodes = 1);
/// What else has rows with plans of collectives: AllToAllV and SendReceive, by Packets and Chunks, and AllReduceRmsNorm, by Lamport,
/// TwoShotLamport and Chunks.
inline constexpr std::string_view pairsOperator = "all_to_all_v", rmsNormOperator = "all_reduce_rms_norm";
/// Of one of these; `others`: its sizes besides the bytes.
Expected<std::vector<CollectivePlanRow>> collectivePlanRows(std::string_view op, std::string_view gpu,
                                                            uint32_t numRanks, DataType dtype,
                                                            const PlanSizes &others = {});
/// Refuses plans that these do not have.
Status verifyPlanOf(std::string_view op, const CollectivePlan &plan, uint32_t numRanks);
/// The same from rows that have been chosen already; an error where there is no row for some size.
Expected<std::vector<CollectivePlanRow>> collectivePlanRows(const PlanChoice &choice, const PlanSizes &others = {});

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_COLLECTIVEPLANS_H
