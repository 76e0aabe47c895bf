//===- ExpertParallel.h - Tokens to the ranks of their experts, and back ------------------------------------*- C++ -*-===//
//
// Rank r has the experts [r * experts / ranks, (r + 1) * experts / ranks). *Dispatch* brings each token to the ranks of the experts that its
// router has chosen, as rows sorted by expert for the products that follow (ops/moe/GroupedGemm.h); *combine* brings the results back:
//
//   out[t] = sum over j of weights[t, j] * result of expert ids[t, j],   in fp32, in the order of j
//
// A slot is one choice of one token: its j-th expert. Which rows go where stands on the device only: calls are captured once, and replayed with
// whatever ids are there. Device code: kernels/expert_parallel.
//
//   ExpertParallel experts = *ExpertParallel::create(world, kernels, {.hidden = 7168, .experts = 256, .topK = 8, .maxTokens = 128});
//   experts.prepare(rank);
//   experts.dispatch(rank, stream, {x, 128, ids, weights, rows, {}, offsets, handle});
//   ... products of rows [experts.maxRows(), 7168], offsets says which are whose ...
//   experts.combine(rank, stream, {results, out, 128, handle});
//
// To overlap, each of the two is a send and a receive in the form low_latency: dispatch(..., Part::Send); what else there is to do; dispatch(..., Part::Receive).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLEL_H
#define DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLEL_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/collectives/TransferReport.h"
#include "ditron/ops/expert_parallel/ExpertParallelPlan.h"

#include <optional>

namespace ditron::ops {

struct ExpertParallelOptions {
  int64_t hidden = 0;              ///< Elements of a row; rows of a multiple of 16 are moved by wide accesses.
  uint32_t experts = 0;            ///< Of all ranks; a multiple of their number, at most mostExperts (Routing.h).
  uint32_t topK = 1;               ///< Slots of a token, at most mostTopK.
  int64_t maxTokens = 0;           ///< Of a rank in a call; sizes the buffers.
  DataType dtype = DataType::BF16; ///< Of tokens and of the experts' results: bf16, fp16 or fp32.
  /// Rows travel and arrive as fp8 e4m3 with an fp32 scale for each 128 elements, the largest magnitude of which becomes 448.
  bool fp8 = false;
  /// Rows that one rank sends one expert, at most: those of its first slots; the others are dropped, add nothing, and check() tells it.
  /// 0: maxTokens, which drops nothing unless a token chooses an expert twice.
  int64_t capacity = 0;
  /// Rows that a rank keeps of a call, at most: those of the first experts; the others are dropped in the same way. 0: as many as can come.
  int64_t maxRows = 0;
  bool addend = false; ///< Combines have an addend.
  /// Operators that may run at once on a GPU: all of their blocks must find a place.
  uint32_t concurrentCalls = 1;
  std::optional<ExpertParallelPlan> plan = std::nullopt; ///< Unset: as the tables say (expert_parallel.plans).
  std::string gpu = {}; ///< The device's name by which tables are read, instead of that of the world's first rank here.
};

class ExpertParallelProtocol;

class ExpertParallel {
public:
  ExpertParallel(ExpertParallel &&) noexcept;
  ExpertParallel &operator=(ExpertParallel &&) noexcept;
  ~ExpertParallel();

  /// Device memory of one rank. All at multiples of an element; results are written by the Receive, `handle` by both parts.
  struct DispatchOperands {
    runtime::Pointer x; ///< [tokens, hidden] of dtype.
    int64_t tokens = 0; ///< 0 to maxTokens; different on each rank.
    runtime::Pointer
        ids; ///< [tokens, topK] int32. A slot whose id is not in [0, experts) has no expert; -1 says so on purpose.
    runtime::Pointer weights; ///< [tokens, topK] fp32, kept in the handle; null: ones.
    /// Result: [maxRows(), hidden] of dtype, or float8e4nv with fp8. The rows by expert, then by source, then by slot.
    runtime::Pointer rows;
    runtime::Pointer scales; ///< Result: [maxRows(), ceil(hidden / 128)] fp32; null without fp8.
    runtime::Pointer
        offsets; ///< Result: [experts / ranks + 1] int32: where the rows of each expert of this rank begin.
    runtime::Pointer
        handle; ///< Result: [handleElements()] int32, for the combine of these rows; any number may be kept.
  };
  struct CombineOperands {
    runtime::Pointer rows; ///< [maxRows(), hidden] of dtype: of each row that dispatch gave its result.
    runtime::Pointer out;  ///< Result: [tokens, hidden] of dtype. A token none of whose slots has a row becomes zeros.
    int64_t tokens = 0;    ///< As dispatched.
    runtime::Pointer handle;
    runtime::Pointer addend =
        {}; ///< [tokens, hidden] of dtype, with which each sum begins; null where the options have none.
  };
  /// What of a call is enqueued: all of it, or its sending and its receiving apart; those not in the form high_throughput.
  enum class Part { Whole, Send, Receive };

  /// Allocates on all ranks. Refuses options that make no sense, and plans of forms that the world's nodes cannot have.
  static Expected<ExpertParallel> create(runtime::World &world, runtime::KernelProvider &kernels,
                                         const ExpertParallelOptions &options);

  /// Compiles and loads what whole calls need, of any number of tokens, whose x, rows, scales and out are multiples of 16 bytes; `parts`: and
  /// what calls in two parts need. Before the first call on any rank.
  Status prepare(runtime::Rank &rank, bool parts = false);

  /// Every rank makes the same sequence of calls, on one stream after the other; different operators are independent. A Send is followed by
  /// its Receive before the next dispatch of this operator, and what each takes of the operands must stay until then (Send: x, ids, weights,
  /// handle; Receive: rows, scales, offsets, handle; the others are not looked at). What was not prepared is prepared now, which a capture
  /// does not allow.
  Status dispatch(runtime::Rank &rank, runtime::Stream &stream, const DispatchOperands &operands,
                  Part part = Part::Whole);
  /// The same for combines; Send: rows, handle; Receive: out, tokens, handle, addend. Dispatches may come between a Send and its Receive.
  Status combine(runtime::Rank &rank, runtime::Stream &stream, const CombineOperands &operands,
                 Part part = Part::Whole);

  /// Ok, or the first slots or rows that were dropped in the rank's calls since the last check(). The stream must have been synchronised.
  Status check(const runtime::Rank &rank) { return report.check(rank.id()); }

  const ExpertParallelOptions &options() const { return optionValues; }
  const ExpertParallelPlan &plan() const { return planValue; }
  int64_t maxRows() const { return optionValues.maxRows; }
  /// The rows that may come in a call.
  int64_t mostRows() const;
  int64_t handleElements() const;
  /// Scales of a row; 0 without fp8.
  int64_t scalesOfRow() const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const;

private:
  ExpertParallel();

  /// One of a call's launches: its parameters for operands, by their place among those of the part, and for numbers, per token.
  struct Launch {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> pointers;
    std::vector<std::pair<uint32_t, int64_t>> sizes;
  };
  using Plan = std::vector<Launch>;
  struct PerRank {
    KeptPlans<Plan> kept;
    bool isDispatchSent = false, isCombineSent = false; ///< Sent and not received.
  };
  /// Operands by the parameters of the device code, those that a part takes.
  using Named = std::vector<std::pair<std::string_view, runtime::Pointer>>;

  Named dispatchPointers(const DispatchOperands &operands, Part part) const;
  Named combinePointers(const CombineOperands &operands, Part part) const;
  Expected<Plan> makePlan(runtime::Rank &rank, bool isDispatch, const Named &pointers, Part part) const;
  KeptPlans<Plan>::Key keyOf(bool isDispatch, const Named &pointers, Part part) const;
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, bool isDispatch, const Named &pointers, int64_t tokens,
                 Part part);

  ExpertParallelOptions optionValues;
  ExpertParallelPlan planValue;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::unique_ptr<ExpertParallelProtocol> protocol;
  TransferReport report;
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLEL_H
