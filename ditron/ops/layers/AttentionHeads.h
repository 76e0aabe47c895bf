//===- AttentionHeads.h - From a projection's rows to Q and a cache of K and V ------------------------------------*- C++ -*-===//
//
// What a layer of attention does between the projection to Q, K and V and attention: RMSNorm of the heads of Q and K, rotation by the
// position (rotary embedding), and keys and values put to their places in the cache, all in one launch. Positions, offsets and tables are read on
// the device. Device code: kernels/attention/heads.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_ATTENTIONHEADS_H
#define DITRON_OPS_LAYERS_ATTENTIONHEADS_H

#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/attention_decode/DecodeProblem.h"

namespace ditron::ops {

/// How heads of Q and K are turned by their token's position.
struct RotaryEmbedding {
  int64_t dim = 0; ///< The first columns of a head that are turned, an even number; 0: none.
  /// Pairs are columns 2j and 2j + 1, instead of j and j + dim / 2.
  bool interleaved = false;
};

/// Tokens that the host knows the places of: as many of each sequence, at places from 0 on.
struct UniformTokens {
  int64_t rowsOfSequence = 1;
  int64_t firstPosition = 0;
};

struct AttentionHeadsProblem {
  int64_t tokens = 0, batch = 1;
  int64_t heads = 1, kvHeads = 1; ///< In a row.
  int64_t groups = 1;             ///< A row has heads of Q, of K, of V in each of so many groups, one behind the other.
  int64_t headDim = 128;          ///< A power of two.
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  KeyLayout keys = {};
  RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt; ///< Heads of Q and K are normed.
  std::optional<UniformTokens> uniform = std::nullopt;
};

/// Memory of a rank; null of what the problem does not have.
struct AttentionHeadsOperands {
  runtime::Pointer rows;         ///< [tokens, (heads + 2 kvHeads) headDim]: of each token heads of Q, of K, of V.
  runtime::Pointer q = {};       ///< Result [tokens, heads, headDim]; may be null.
  runtime::Pointer keys, values; ///< The cache, as problem.keys says.
  /// i32 [batch]: keys of each sequence with those of these tokens, which are its last ones; with offsets, i32 [batch + 1], where each sequence's
  /// tokens begin, at last their number, else each has one.
  runtime::Pointer lengths = {}, offsets = {};
  /// Instead of lengths, i32 [batch]: where the token of each sequence goes among the sequence's keys here, -1: nowhere; and its position.
  runtime::Pointer places = {}, positions = {};
  runtime::Pointer table = {};             ///< i32, as problem.keys says.
  runtime::Pointer qNorm = {}, kNorm = {}; ///< [headDim] of the problem's type.
  runtime::Pointer rotary = {}; ///< fp32 [positions, rotary.dim]: of each angle the cosine, then of each the sine.
};

/// A rank's cache: [pages, pageSize, kvHeads, headDim], without pages [batch, keys, kvHeads, headDim].
struct CacheSizes {
  int64_t batch = 1, keys = 0;
  int64_t pageSize = 0, pages = 0;
  int64_t kvHeads = 1, headDim = 128;
};

/// An error if the projection to heads of Q, K and V has more columns than 32 bits count.
Status verifyProjectedHeads(std::string_view operation, int64_t heads, int64_t kvHeads, int64_t headDim);
/// An error if the cache has more elements than an operand may have.
Status verifyCacheElements(std::string_view operation, const CacheSizes &cache);

/// Tokens behind the last offset go to no cache, nor does that of a sequence whose length is 0.
Expected<PreparedCall> prepareAttentionHeads(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const AttentionHeadsProblem &problem,
                                             const AttentionHeadsOperands &operands);

/// Whether heads of so many columns can be turned and normed so.
Status verifyHeadChanges(std::string_view operation, const RotaryEmbedding &rotary,
                         const std::optional<double> &normEpsilon, int64_t headDim);

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_ATTENTIONHEADS_H
