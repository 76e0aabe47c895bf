//===- GroupedGemm.h - Rows of several experts, each times the weights of its own --------------------------------*- C++ -*-===//
//
//   C[r] = activation(A[r] * B[e]),   offsets[e] <= r < offsets[e + 1],   fp32 accumulation
//
// How many rows each expert has is read on the device: the host knows the most there can be, waits for nothing, and any counts are right,
// zero and all rows of one expert included. Device code: kernels/moe/grouped_gemm.py. Rows, offsets and tiles come from Routing.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_GROUPEDGEMM_H
#define DITRON_OPS_MOE_GROUPEDGEMM_H

#include "ditron/ops/Gemm.h"

namespace ditron::ops {

struct GroupedGemmProblem {
  int64_t maxRows = 0; ///< Rows that all experts have together, at most.
  uint32_t experts = 0;
  int64_t n = 0; ///< Columns of each expert's weights.
  int64_t k = 0;
  DataType dtype = DataType::BF16;      ///< Of A and B: bf16, fp16, fp32, or with block scales fp8 e4m3.
  DataType resultType = DataType::BF16; ///< Of C: bf16, fp16 or fp32.
  MatrixOrder order = MatrixOrder::Transposed;
  Activation activation = Activation::None; ///< As GemmEpilogue's.
  /// Slots of a token: row r of the product is row slotOfRow[r] / slots of A. 0: row r itself.
  uint32_t slots = 0;
  bool blockScales = false;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;

  int64_t resultColumns() const { return activation == Activation::SwiGlu ? n / 2 : n; }
};

/// Of a product over several ranks, whose tiles have an order (TileOrder.h). Null: not so.
struct GroupedGemmRanks {
  runtime::Pointer spans = {}; ///< TileOrder's, like the tiles.
  /// A tile waits for the signals [chunks] i64 of the chunks that have its rows to reach `generation`, i64. With gathered rows only.
  runtime::Pointer ready = {}, generation = {};
  /// A stored tile is counted in `counters` [ranks] i32 for the ranks whose tokens it has; when all of `segmentTiles` are, the gate [ranks]
  /// i64 opens.
  runtime::Pointer segmentTiles = {}, counters = {}, gates = {};
  uint32_t firstRank = 0;           ///< MoeRows'.
  uint32_t freeMultiprocessors = 0; ///< Left to others.
};

/// Where a product's operands are. All row-major, rows without gaps.
struct GroupedGemmOperands {
  runtime::Pointer a;         ///< [rows, k], or [tokens, k] with slots.
  runtime::Pointer b;         ///< [experts, n, k] (Transposed) or [experts, k, n].
  runtime::Pointer c;         ///< [rows, resultColumns].
  runtime::Pointer offsets;   ///< [experts + 1] int32.
  runtime::Pointer tiles;     ///< Routing::tiles, of the plan's blockM.
  runtime::Pointer slotOfRow; ///< [rows] int32; null without slots.
  /// With blockScales, fp32, of blocks of 128 elements along K, and for B along N too:
  /// [rows or tokens, ceil(k / 128)] and [experts, ceil(n / 128), ceil(k / 128)].
  runtime::Pointer aScale, bScale;
  GroupedGemmRanks ranks = {};
};

/// Ok, or what keeps the plan from computing such products.
Status verifyGroupedGemm(const GroupedGemmProblem &problem, const GemmPlan &plan);

/// The choice of the library for rows dealt out evenly.
GemmPlan chooseGroupedGemmPlan(const GroupedGemmProblem &problem, std::string_view target);

/// By the tables (operators grouped_gemm, and gathered_gemm with slots), else that. Tables of tiles must be of its blockM.
Expected<GemmPlan> libraryGroupedGemmPlan(const GroupedGemmProblem &problem, runtime::World &world,
                                          std::string_view gpu = {});

/// Binds the kernel of the plan to operands on a rank, without one of chooseGroupedGemmPlan's; calls of the result compute the product. Its parameters are a_ptr, b_ptr, c_ptr, and
/// with block scales a_scale_ptr and b_scale_ptr.
Expected<PreparedCall> prepareGroupedGemm(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                          const GroupedGemmProblem &problem, const GroupedGemmOperands &operands,
                                          const std::optional<GemmPlan> &plan = std::nullopt);

struct SlotSumProblem {
  int64_t tokens = 0, columns = 0;
  uint32_t topK = 1;
};
/// out[t] = sum over j of weights[t, j] * rows[rowOfSlot[t, j]], in fp32, in the order of j; slots without a row add nothing.
///   rows: [rows, columns]; rowOfSlot: [tokens, topK] int32; weights: [tokens, topK] fp32, null for ones; out: [tokens, columns], with `peer`
///   at that address of the peer's symmetric heap.
Expected<PreparedCall> prepareSlotSum(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                      const SlotSumProblem &problem, runtime::Pointer rows, runtime::Pointer rowOfSlot,
                                      runtime::Pointer weights, runtime::Pointer out,
                                      std::optional<uint32_t> peer = std::nullopt);

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_GROUPEDGEMM_H
