//===- MoeReduction.h - Rows of experts times their weights, added by token and over the ranks, overlapped -------*- C++ -*-===//
//
//   partial[t] = sum over j of slotWeights[t, j] * (A[row of slot t, j] * B[its expert])        on each rank
//   result     = sum over ranks of partial: the own tokens' (ReduceScatter), or all of it on every rank (AllReduce)
//
// Each rank has a slice of the depth of every expert's weights. Tiles of the product go in the order in which their tokens leave: the next
// rank's first, the own ones last (TileOrder.h). When the last tile with rows of a rank's tokens is stored, a gate opens; then the rows of
// each of its tokens are added, in fp32 and in the order of their slots, straight into that rank's memory: topK rows become one before
// the wire. The owner adds what the ranks have sent in ascending order, in fp32. Some multiprocessors are kept free for the sums while
// tiles are computed. Device code: kernels/moe, kernels/gemm_all_reduce.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_MOEREDUCTION_H
#define DITRON_OPS_MOE_MOEREDUCTION_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/moe/MoeCall.h"
#include "ditron/ops/moe/TileOrder.h"
#include "ditron/ops/plans/PlanAgreement.h"

namespace ditron::ops {

enum class MoeResult {
  Scattered,  ///< MoE+ReduceScatter: each rank gets its own tokens, as RowShards deals them out.
  Everywhere, ///< MoE+AllReduce: every rank gets all tokens, the same bits.
};
/// "moe_rs", "moe_ar".
std::string_view toString(MoeResult result);

struct MoeReductionOptions {
  MoeResult result = MoeResult::Scattered;
  DataType dtype = DataType::BF16;                    ///< Of A and B: bf16, fp16, fp32, or with block scales fp8 e4m3.
  DataType resultType = DataType::BF16;               ///< Of the product's rows and the result: bf16, fp16 or fp32.
  std::optional<DataType> partialType = std::nullopt; ///< Of sums in transit: that of the result, or fp32.
  int64_t depth = 0;                                  ///< Of the weights on a rank: K.
  int64_t hidden = 0;                                 ///< Of a token: N.
  int64_t maxTokens = 0;                              ///< Of all ranks together; sizes the buffers.
  MatrixOrder weightOrder = MatrixOrder::Transposed;
  bool blockScales = false; ///< As GroupedGemmProblem's.
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  Schedule schedule = Schedule::Overlapped;
  std::optional<GemmPlan> plan = std::nullopt; ///< Instead of the library's choice; its blockM is that of the rows.
  /// Overlapped: multiprocessors that the product leaves to the sums; 0: as many as they need, at most one of eight. The product has at least
  /// one.
  uint32_t sumMultiprocessors = 0;
};

/// One rank's operands of a call, row-major, rows without gaps, at multiples of 16 bytes.
struct MoeReductionOperands {
  runtime::Pointer rows;    ///< [rows, depth], sorted as MoeRows says.
  runtime::Pointer weights; ///< [experts, hidden, depth] (Transposed) or [experts, depth, hidden].
  runtime::Pointer result;  ///< [tokens of the rank, hidden], or [tokens, hidden].
  /// With block scales, fp32: [rows, ceil(depth / 128)] and [experts, ceil(hidden / 128), ceil(depth / 128)].
  runtime::Pointer rowScales, weightScales;
};

class MoeReduction {
public:
  using Options = MoeReductionOptions;

  /// Allocates buffers, signals and streams on all ranks. One node. `rows`, by rank: where the rows of each call will be found, the same
  /// tokens on all ranks; not looked at for ranks of other processes.
  static Expected<MoeReduction> create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options,
                                       const std::vector<MoeRows> &rows);

  /// Compiles, loads and records what calls with so many tokens need on a rank: before the first call anywhere, and on every rank for
  /// the same numbers in the same order.
  Status prepare(runtime::Rank &rank, int64_t tokens);
  /// Enqueues one call, behind what has found the rows. Every rank makes the same sequence of calls with the same number of tokens.
  /// Operands may be reused once the work enqueued on `stream` so far has run. What was not prepared is made now, which a capture
  /// does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const MoeReductionOperands &operands, int64_t tokens);
  /// Ok, or what is wrong with operands: for who enqueues other work before the call.
  Status verify(const MoeReductionOperands &operands) const;

  const Options &options() const { return optionValues; }
  /// How rows are multiplied.
  const GemmPlan &productPlan() const { return plan; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return scatter.bytes() + (reduced.isValid() ? reduced.bytes() : 0); }

private:
  struct PerRank {
    std::shared_ptr<runtime::SideStream> side;
    MoeRows rows;
    runtime::Buffer products; ///< [rows, hidden]
    std::optional<TileOrder> order;
    KeptPlans<MoeCall> kept;
  };
  DataType partialType() const { return optionValues.partialType.value_or(optionValues.resultType); }
  Status verifyTokens(int64_t tokens) const;
  GroupedGemmProblem problemFor(int64_t tokens) const;
  Expected<MoeCall> makeCall(runtime::Rank &rank, int64_t tokens);
  Expected<PreparedCall> productCall(runtime::Rank &rank, int64_t tokens);
  Status addSums(runtime::Rank &rank, int64_t tokens, MoeCall &call);
  Status addReduction(runtime::Rank &rank, int64_t tokens, MoeCall &call);
  /// Where rank `source` has its sums for the tokens of `owner`, in the owner's memory.
  int64_t slotOffset(int64_t tokens, uint32_t source, uint32_t owner) const;
  uint32_t exchangeBlocks(const runtime::Rank &rank, int64_t tokens) const;
  KernelCall exchangeCall(const runtime::Rank &rank, std::string_view kernel, int64_t tokens) const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement planAgreement;
  std::shared_ptr<runtime::CallAgreement> agreement;
  GemmPlan plan;
  uint32_t experts = 0, topK = 0;
  CallWords words;
  runtime::SymmetricBuffer scatter;            ///< [ranks, tokens of a rank, hidden]: slot s is filled by rank s
  runtime::SymmetricBuffer arrived;            ///< [ranks] signals
  runtime::SymmetricBuffer reduced, finished;  ///< Everywhere: [tokens of a rank, hidden], and its signals
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_MOEREDUCTION_H
