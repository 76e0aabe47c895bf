//===- FusedExpertParallel.h - Products of experts beside the exchange of their tokens -----------------------*- C++ -*-===//
//
// What ExpertParallel (dispatch, combine) and two grouped products compute, in one launch for each pair:
//
//   dispatchGemm:  rows = dispatch(x, ids);  c = activation(rows * B[expert])
//   gemmCombine:   out[t] = addend[t] + sum over j of weights[t, j] * (a[row of slot t, j] * B[its expert])     in fp32, in the order of j
//
// A tile of the first product is computed as soon as its rows have come; the tiles of the second go straight to the ranks of their tokens. The gradient of
// each is the other one with the weights read across: so both serve forward and backward. Device code, and why it is right: kernels/expert_parallel/fused.py.
//
//   FusedExpertParallel experts = *FusedExpertParallel::create(world, kernels, {.hidden = 7168, .inner = 2048, .experts = 256, .topK = 8, ...});
//   experts.prepare(rank);
//   experts.dispatchGemm(rank, stream, {x, tokens, ids, up, inner});       inner [maxRows(), 2048]
//   experts.gemmCombine(rank, stream, {inner, down, out, tokens, weights});
//
// Rows lie where ExpertParallel has them: by expert, then by source, then by slot. Which go where stands on the device only.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLEL_H
#define DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLEL_H

#include "ditron/ops/collectives/TransferReport.h"
#include "ditron/ops/expert_parallel/FusedExpertParallelPlan.h"
#include "ditron/ops/moe/GroupedGemm.h"

namespace ditron::ops {

struct FusedExpertParallelOptions {
  int64_t hidden = 0;   ///< Of tokens and results.
  int64_t columns = 0;  ///< Of the weights of the first product; with SwiGlu its results have half as many.
  int64_t depth = 0;    ///< Of the second product.
  uint32_t experts = 0; ///< Of all ranks; a multiple of their number, at most mostExperts.
  uint32_t topK = 1;
  int64_t maxTokens = 0;                    ///< Of a rank in a call; sizes the buffers.
  DataType dtype = DataType::BF16;          ///< Of all operands: bf16, fp16 or fp32.
  Activation activation = Activation::None; ///< Of the first product.
  /// [experts / ranks, columns, hidden] (Transposed) or [.., hidden, columns]; [experts / ranks, hidden, depth] or [.., depth, hidden].
  MatrixOrder dispatchOrder = MatrixOrder::Transposed, combineOrder = MatrixOrder::Transposed;
  int64_t capacity = 0, maxRows = 0; ///< As ExpertParallelOptions', like the next two.
  bool addend = false;
  uint32_t concurrentCalls = 1;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  std::optional<FusedExpertParallelPlan> plan = std::nullopt; ///< Unset: the library's choice.
};

/// The products of a rank, of the most rows that come when nothing is dropped or maxRows says.
GroupedGemmProblem dispatchProblemOf(const FusedExpertParallelOptions &options, uint32_t numRanks);
GroupedGemmProblem combineProblemOf(const FusedExpertParallelOptions &options, uint32_t numRanks);
/// Ok, or what keeps the plan from computing them.
Status verifyFusedProducts(const FusedExpertParallelOptions &options, const FusedExpertParallelPlan &plan,
                           uint32_t numRanks);

/// The plan with steps along the depth that do not reach from one expert's weights into the next one's.
FusedExpertParallelPlan fittedPlan(const FusedExpertParallelOptions &options, FusedExpertParallelPlan plan,
                                   uint32_t numRanks);

class FusedExpertParallel {
public:
  struct DispatchOperands {
    runtime::Pointer x; ///< [tokens, hidden]
    int64_t tokens = 0; ///< 0 to maxTokens; different on each rank.
    runtime::Pointer
        ids; ///< [tokens, topK] int32, at multiples of an element. A slot whose id is not in [0, experts) has no expert.
    runtime::Pointer b; ///< Weights of this rank's experts.
    runtime::Pointer
        c; ///< Result: [maxRows(), columns], with SwiGlu columns / 2. Beyond the last row nothing is written.
  };
  struct CombineOperands {
    runtime::Pointer a;   ///< [maxRows(), depth]
    runtime::Pointer b;   ///< Weights of this rank's experts.
    runtime::Pointer out; ///< Result: [tokens, hidden]. A token none of whose slots has a row becomes its addend.
    int64_t tokens = 0;   ///< As in the dispatch.
    runtime::Pointer weights = {}; ///< [tokens, topK] fp32, at multiples of an element; null: ones.
    runtime::Pointer addend = {};  ///< [tokens, hidden]; null where the options have none.
  };

  /// Allocates on all ranks, which must be of one node. Refuses sizes that tensor descriptors do not take: verifyGroupedGemm's.
  static Expected<FusedExpertParallel> create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const FusedExpertParallelOptions &options);

  /// Compiles and loads what calls of any number of tokens need.
  Status prepare(runtime::Rank &rank);
  /// Every rank makes the same sequence of calls, a dispatchGemm and a gemmCombine in turns, on one stream after the other; also in graphs, where the two may be apart.
  /// Pointers at multiples of 16 bytes, where nothing else is said; those of tokens are not looked at without any. Not prepared under capture is an error.
  Status dispatchGemm(runtime::Rank &rank, runtime::Stream &stream, const DispatchOperands &operands);
  Status gemmCombine(runtime::Rank &rank, runtime::Stream &stream, const CombineOperands &operands);
  /// In the place of a gemmCombine, on all ranks: nothing comes back of what was dispatched.
  Status skipCombine(runtime::Rank &rank, runtime::Stream &stream);

  /// As ExpertParallel's.
  Status check(const runtime::Rank &rank) { return report.check(rank.id()); }

  /// Valid from a dispatchGemm to the next: [maxRows(), hidden], [experts / ranks + 1] int32, and the tiles of plan().dispatchTile.blockM rows, as Routing has them.
  runtime::Pointer rows(const runtime::Rank &rank) const { return rowsOf.on(rank.id()); }
  runtime::Pointer offsets(const runtime::Rank &rank) const { return ranks[rank.id()].offsets.pointer(); }
  runtime::Pointer tiles(const runtime::Rank &rank) const { return ranks[rank.id()].tiles.pointer(); }

  const FusedExpertParallelOptions &options() const { return optionValues; }
  const FusedExpertParallelPlan &plan() const { return planValue; }
  int64_t maxRows() const { return optionValues.maxRows; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const;

private:
  struct Call {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> pointers; ///< Parameters, by the place of the operand.
    uint32_t tokens = 0;
  };
  /// Operands by the parameters of the device code.
  using Named = std::vector<std::pair<std::string_view, runtime::Pointer>>;
  struct PerRank {
    runtime::Buffer counts, notes, list, places, offsets, tiles, counters;
    std::optional<Call> dispatch, combine, unweighted;
    PreparedCall skip;
    bool isDispatched = false; ///< And not combined.
  };

  /// How a sender moves a row: elements at a time, and by how many bulk copies, 0 for loads and stores.
  struct Moves {
    int64_t chunk = 0, chunks = 0;
  };

  FusedExpertParallelPlan choosePlan() const;
  Status verifyOptions() const;
  Status allocate();
  /// Blocks of a call, which must all find a place.
  uint32_t places() const;
  Moves movesOf(const runtime::Rank &rank) const;
  Named dispatchPointers(const DispatchOperands &operands) const;
  Named combinePointers(const CombineOperands &operands) const;
  KernelCall dispatchCall(const runtime::Rank &rank, const Named &operands) const;
  KernelCall combineCall(const runtime::Rank &rank, const Named &operands) const;
  Expected<Call> makeCall(runtime::Rank &rank, const KernelCall &call, const Named &operands) const;
  Status enqueue(std::string_view name, runtime::Rank &rank, runtime::Stream &stream, std::optional<Call> &call,
                 const Named &operands, int64_t tokens);

  FusedExpertParallelOptions optionValues;
  FusedExpertParallelPlan planValue;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  runtime::SymmetricBuffer rowsOf, origins, arrived, told, slots, done;
  TransferReport report;
  std::vector<PerRank> ranks;
};

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_FUSEDEXPERTPARALLEL_H
