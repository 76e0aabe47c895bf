//===- AllGatherMoe.h - The tokens of all ranks times the weights of their experts, overlapped -------------------*- C++ -*-===//
//
//   rows[r] = activation(tokens of all ranks[slotOfRow[r] / topK] * B[expert of r])
//
// Each rank gives its tokens with the experts chosen for each, and has a slice of every expert's columns. Copy engines push the tokens into
// every peer's workspace, chunk by chunk, with a signal behind each; meanwhile the choices are exchanged and sorted (Routing.h), on the
// device. Rows of an expert lie in the order in which their tokens arrive, own ones first; tiles go in the order of the last rank that
// they need (TileOrder.h), and each begins as soon as the chunks with its tokens are there. Tokens are read where they arrive, by
// index: no copy of the rows is made. Device code: kernels/moe. What orders what: docs/memory-model.md, as of AllGather+GEMM.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_ALLGATHERMOE_H
#define DITRON_OPS_MOE_ALLGATHERMOE_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/moe/MoeCall.h"
#include "ditron/ops/moe/TileOrder.h"
#include "ditron/ops/plans/PlanAgreement.h"

namespace ditron::ops {

struct AllGatherMoeOptions {
  DataType dtype = DataType::BF16;      ///< Of tokens and weights: bf16, fp16, fp32, or with block scales fp8 e4m3.
  DataType resultType = DataType::BF16; ///< bf16, fp16 or fp32.
  int64_t hidden = 0;                   ///< Of a token: K.
  int64_t columns = 0; ///< Of each expert's weights on a rank: N. SwiGlu: pairs, as GroupedGemm has them.
  uint32_t experts = 0;
  uint32_t topK = 1;
  int64_t maxTokensPerRank = 0; ///< Sizes the workspaces.
  MatrixOrder weightOrder = MatrixOrder::Transposed;
  Activation activation = Activation::None;
  bool blockScales = false; ///< As GroupedGemmProblem's; those of the tokens travel with them.
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  Schedule schedule = Schedule::Overlapped;
  uint32_t chunksPerRank = 1;                  ///< Signals of a rank's tokens; at most 64.
  std::optional<GemmPlan> plan = std::nullopt; ///< Instead of the library's choice.
};

/// One rank's operands of a call, row-major, rows without gaps, at multiples of 16 bytes.
struct AllGatherMoeOperands {
  runtime::Pointer tokens; ///< [own tokens, hidden]
  runtime::Pointer ids;    ///< [own tokens, topK] int32; outside [0, experts): the slot has no row.
  runtime::Pointer
      slotWeights;          ///< [own tokens, topK] fp32, for who adds the rows: they are gathered and not used here.
  runtime::Pointer weights; ///< [experts, columns, hidden] (Transposed) or [experts, hidden, columns].
  runtime::Pointer rows;    ///< The result: [rows, columns] (SwiGlu: columns / 2) of resultType.
  /// With block scales, fp32: [own tokens, ceil(hidden / 128)] and [experts, ceil(columns / 128), ceil(hidden / 128)].
  runtime::Pointer tokenScales, weightScales;
};

class AllGatherMoe {
public:
  using Options = AllGatherMoeOptions;
  static constexpr std::string_view copyName = "ag_moe_push"; ///< Prefix of the copies' names in traces.

  /// Allocates workspaces, signals and streams on all ranks. One node.
  static Expected<AllGatherMoe> create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options);

  /// Compiles, loads and records what calls of this shape need on a rank: before the first call anywhere, and on every rank for the
  /// same tokensPerRank in the same order. `ownTokens`: the rank's own, 0 to tokensPerRank, all by default.
  Status prepare(runtime::Rank &rank, int64_t tokensPerRank, std::optional<int64_t> ownTokens = std::nullopt);
  /// Enqueues one call. Every rank makes the same sequence of calls with the same tokensPerRank. Operands may be reused once the work
  /// enqueued on `stream` so far has run. What was not prepared is made now, which a capture does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const AllGatherMoeOperands &operands,
                 int64_t tokensPerRank, std::optional<int64_t> ownTokens = std::nullopt);

  /// Where the rows of a rank's last call are, and the weights of their slots: rank r's tokens are the tokens from r * tokensPerRank on.
  /// Valid from that call's end to the next; the addresses stay.
  MoeRows rows(uint32_t rank) const;
  /// Rows that a call has at most.
  int64_t mostRows(int64_t tokensPerRank) const { return tokensPerRank * world->numRanks() * optionValues.topK; }
  const Options &options() const { return optionValues; }
  /// How rows are multiplied.
  const GemmPlan &productPlan() const { return plan; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return workspace.bytes() + allIds.bytes() + allWeights.bytes(); }

private:
  struct PerRank {
    std::shared_ptr<runtime::SideStream> side;
    std::optional<Routing> routing;
    std::optional<TileOrder> order;
    KeptPlans<MoeCall> kept;
  };
  Status verifyTokens(int64_t tokensPerRank, int64_t ownTokens) const;
  int64_t scalesPerToken() const { return optionValues.blockScales ? ceilDivide(optionValues.hidden, 128) : 0; }
  GroupedGemmProblem problemFor(int64_t tokensPerRank) const;
  Expected<MoeCall> makeCall(runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens);
  KernelCall enterCall(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens) const;
  KernelCall shareCall(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens) const;
  void addPushes(const runtime::Rank &rank, int64_t tokensPerRank, int64_t ownTokens,
                 runtime::CallSequence &sequence) const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement planAgreement;
  std::shared_ptr<runtime::CallAgreement> agreement;
  GemmPlan plan;
  CallWords words;
  runtime::SymmetricBuffer workspace, scales;  ///< [tokens of all ranks, hidden]; [tokens of all ranks, scalesPerToken]
  runtime::SymmetricBuffer ready;              ///< [ranks * chunksPerRank] signals, counted from the own ones on
  runtime::SymmetricBuffer allIds, allWeights; ///< [tokens of all ranks, topK]
  runtime::SymmetricBuffer shared;             ///< [programs, ranks] signals of share_choices
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_ALLGATHERMOE_H
