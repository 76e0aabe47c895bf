//===- Attention.h - Attention, forward -----------------------------------------------------------------------*- C++ -*-===//
//
// softmax(Q K^T * scale) V without the matrix of scores in memory. Device code: kernels/attention. What is computed, options and limits:
// docs/ops/attention.md.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTION_H
#define DITRON_OPS_ATTENTION_ATTENTION_H

#include "ditron/ops/KernelLaunch.h"

#include <optional>

namespace ditron::ops {

/// The order of Q, K, V, the result and their gradients in memory, contiguous. K and V have kvHeads heads and `keys` rows.
enum class AttentionLayout {
  HeadsFirst, ///< [batch, heads, rows, dim].
  RowsFirst,  ///< [batch, rows, heads, dim]; of packed rows [rows, heads, dim].
};

/// K and V in pages, as caches have them: [count, kvHeads, size, dim], or [count, size, kvHeads, dim] of RowsFirst. Key k of a batch is
/// row k % size of the page that AttentionOperands::blockTable has at [batch, k / size].
struct AttentionPages {
  int64_t count = 0;
  int64_t size = 16; ///< A multiple of 16. By descriptors the plan's blockN must divide it.
};

struct AttentionProblem {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1; ///< Divides heads; each is shared by heads / kvHeads query heads.
  /// Rows of a batch; where operands say that batches have different numbers, those of the longest one.
  int64_t queries = 0, keys = 0;
  int64_t headDim = 128;                          ///< Of Q and K: 16, 32, 64, 96, 128, 192 or 256.
  bool causal = false;                            ///< Query i sees the keys up to i + keys - queries.
  DataType dtype = DataType::BF16;                ///< bf16 or fp16; forward fp8e4nv, whose result is bf16.
  std::optional<double> scale = std::nullopt;     ///< 1 / sqrt(headDim) unless given; positive.
  std::optional<int64_t> valueDim = std::nullopt; ///< Of V and the result: headDim unless given.
  AttentionLayout layout = AttentionLayout::HeadsFirst;
  /// Query i sees no key that is more than so many in front of i + keys - queries.
  std::optional<int64_t> window = std::nullopt;
  std::optional<double> softCap = std::nullopt; ///< A score s becomes softCap * tanh(s / softCap); positive.
  /// Rows of Q and of K in memory where those of all batches are packed, RowsFirst, with AttentionOperands::queryOffsets and keyOffsets.
  std::optional<int64_t> packedQueries = std::nullopt, packedKeys = std::nullopt;
  std::optional<AttentionPages> pages = std::nullopt;
  /// V is [batch, kvHeads, valueDim, keys], as the tensor cores of Hopper want 8-bit elements. HeadsFirst, by descriptors.
  bool valuesTransposed = false;

  int64_t dimOfValues() const { return valueDim.value_or(headDim); }
  DataType typeOfResult() const { return dtype == DataType::F8E4NV ? DataType::BF16 : dtype; }
  double scaleOfScores() const;
  /// Multiplications and additions of the scores that count, in batches of `queries` and `keys` rows.
  double flops() const;
};

/// How operands get to the products.
enum class AttentionMovement {
  Pointers, ///< Loads of the threads that multiply.
  Descriptors, ///< Tensor copies by a warp of their own, on GPUs that have them: addresses and rows at multiples of 16 bytes.
};

struct AttentionPlan {
  uint32_t blockM = 128, blockN = 64;
  uint32_t numWarps = 8;
  uint32_t numStages = 2;
  AttentionMovement movement = AttentionMovement::Pointers;

  /// "128x64 warps 8 stages 2", behind that " descriptors".
  std::string text() const;
};
/// Reads what text() writes.
Expected<AttentionPlan> parseAttentionPlan(std::string_view text);
/// What the library takes on a target for operands of 16 bytes' alignment.
AttentionPlan chooseAttentionPlan(const AttentionProblem &problem, std::string_view target);

/// By the tables (operators attention and causal_attention), else that.
Expected<AttentionPlan> libraryAttentionPlan(const AttentionProblem &problem, runtime::World &world,
                                             std::string_view gpu = {});

/// Where the problem's tensors are.
struct AttentionOperands {
  runtime::Pointer q, k, v, out;
  /// fp32 [batch, heads, queries], of packed rows [heads, the last of queryOffsets]: the natural logarithm of each row's sum of exp(score);
  /// -inf of a query that sees no key.
  std::optional<runtime::Pointer> lse = std::nullopt;
  /// fp32 [heads]: a score that each row of a head has besides those of its keys, without a value.
  std::optional<runtime::Pointer> sinks = std::nullopt;
  /// fp32 [heads]: a score loses so much for every key between its key and the query's place, i + keys - queries (ALiBi).
  std::optional<runtime::Pointer> slopes = std::nullopt;
  /// int32 [batch + 1]: where each batch's packed rows begin, at last their number, up to packedQueries or packedKeys.
  std::optional<runtime::Pointer> queryOffsets = std::nullopt, keyOffsets = std::nullopt;
  std::optional<runtime::Pointer> keyLengths = std::nullopt; ///< int32 [batch]: how many of `keys` a batch has.
  std::optional<runtime::Pointer> blockTable = std::nullopt; ///< int32 [batch, keys / pages->size, rounded up].
};

/// Without a plan the library chooses one that the pointers allow.
Expected<PreparedCall> prepareAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                        const AttentionProblem &problem, const AttentionOperands &operands,
                                        const std::optional<AttentionPlan> &plan = std::nullopt);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTION_H
