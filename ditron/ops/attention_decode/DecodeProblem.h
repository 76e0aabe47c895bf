//===- DecodeProblem.h - Attention of few queries over many keys, and how it is carried out ----------------------*- C++ -*-===//
//
// What one GPU's attention of a decoder and that over several ranks have in common: sizes, where keys lie, the plan, and the arguments of
// their kernels (kernels/attention_decode).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_DECODE_DECODEPROBLEM_H
#define DITRON_OPS_ATTENTION_DECODE_DECODEPROBLEM_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"

#include <optional>

namespace ditron::ops {

/// Where the keys of a sequence lie; strides in elements. Elements of a row follow each other.
struct KeyLayout {
  /// Key k of a sequence is row k % pageSize of page table[k / pageSize]; 0: sequence s has page s, as long as it likes, and there is no table.
  int64_t pageSize = 0;
  int64_t pageStride = 0, rowStride = 0, headStride = 0;
  int64_t tableStride = 0; ///< Entries of the table from sequence to sequence.

  /// [batch, kvHeads, keys, headDim], without pages.
  static KeyLayout headsFirst(int64_t kvHeads, int64_t keys, int64_t headDim) {
    return {0, kvHeads * keys * headDim, headDim, keys * headDim, 0};
  }
  /// [batch, keys, kvHeads, headDim], without pages.
  static KeyLayout keysFirst(int64_t kvHeads, int64_t keys, int64_t headDim) {
    return {0, keys * kvHeads * headDim, kvHeads * headDim, headDim, 0};
  }
  /// [pages, pageSize, kvHeads, headDim] with a table [batch, pagesOfSequence].
  static KeyLayout paged(int64_t pageSize, int64_t pagesOfSequence, int64_t kvHeads, int64_t headDim) {
    return {pageSize, pageSize * kvHeads * headDim, kvHeads * headDim, headDim, pagesOfSequence};
  }
};

/// Q is [batch, heads, queries, headDim], and the result [batch, heads, queries, valueDim], contiguous.
struct DecodeProblem {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1;             ///< Divides heads; each is shared by heads / kvHeads query heads.
  int64_t queries = 1;             ///< Of a sequence; each sees as many of its keys as its length says.
  int64_t headDim = 128;           ///< Of Q and K: a power of two or the sum of two, each from 16, up to 256.
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  KeyLayout keys = {};             ///< Of K.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given.
  /// Of V and the result, as headDim: that unless given.
  std::optional<int64_t> valueDim = std::nullopt;
  /// V is the largest power of two of elements with which a row of K begins, read once with it: multi-head latent attention, where a row of K is a
  /// latent of 512 elements and 64 rotary ones. headDim then goes up to 1024.
  bool valuesInKeys = false;
  /// Of V, with the pages and the table of K; as K unless given.
  std::optional<KeyLayout> values = std::nullopt;
  /// A query sees no key that is more than so many in front of the last one that it sees.
  std::optional<int64_t> window = std::nullopt;
  std::optional<double> softCap = std::nullopt; ///< A score s becomes softCap * tanh(s / softCap); positive.

  /// Multi-head latent attention of `heads` query heads: a row of K for all of them.
  static DecodeProblem latent(int64_t batch, int64_t heads) {
    return {.batch = batch, .heads = heads, .kvHeads = 1, .headDim = 576, .valuesInKeys = true};
  }

  int64_t rows() const { return batch * heads * queries; }
  int64_t dimOfValues() const;
  /// Of K and V, of so many keys of all sequences together.
  double bytesOfKeys(double keyCount) const {
    const int64_t elements = headDim + (valuesInKeys ? 0 : dimOfValues());
    return keyCount * static_cast<double>(kvHeads * elements) * static_cast<double>(sizeOf(dtype));
  }
};

struct DecodePlan {
  uint32_t blockN = 64; ///< Keys of a step.
  uint32_t numWarps = 4;
  uint32_t numStages = 3;
  uint32_t blocksPerMultiprocessor = 2; ///< Rounded down to whole tiles of rows where an item has several.
  bool even =
      false; ///< Programs read equally much, and some go on from one head to the next, also where each head could have programs of its own.

  /// "64 warps 4 stages 3 blocks 2", or with " even" behind it.
  std::string text() const;
};
/// Reads what text() writes.
Expected<DecodePlan> parseDecodePlan(std::string_view text);
/// Tiles ahead and programs for a multiprocessor as its shared memory allows.
DecodePlan chooseDecodePlan(const DecodeProblem &problem, const runtime::DeviceAttributes &gpu);

/// Memory of a rank. `lse`, the natural logarithms of the sums of powers, fp32 [batch, heads, queries], may be null; so may `table`, i32, without
/// pages, and v, of valuesInKeys. lengths: i32 [batch, queries]: query i of sequence s sees the first lengths[s, i] keys. sinks: fp32 [heads], a score
/// that each row of a head has besides those of its keys, without a value; may be null.
struct DecodeOperands {
  runtime::Pointer q, k, v, out, lse, lengths, table;
  runtime::Pointer sinks = {};
};

/// Refuses what `operation` cannot do.
Status verifyDecode(std::string_view operation, const DecodeProblem &problem, const DecodePlan &plan);
Status verifyDecodeOperands(std::string_view operation, const DecodeProblem &problem, const DecodeOperands &operands);

/// What a call is given, by parameter of the kernels. Only what it has.
std::vector<std::pair<std::string_view, runtime::Pointer>> decodeAddresses(const DecodeProblem &problem,
                                                                           const DecodeOperands &operands);

/// A call of one rank, for callers who give operands and batch with each.
struct KeptDecode {
  PreparedCall call;
  std::vector<uint32_t> pointers; ///< Parameters, in the order of decodeAddresses().

  static Expected<KeptDecode> create(PreparedCall call, const DecodeProblem &problem, const DecodeOperands &operands);
  /// With these operands, which are like those that it was made with.
  Status enqueue(runtime::Stream &stream, const DecodeProblem &problem, const DecodeOperands &operands);

  /// What such calls are kept by.
  static KeptPlans<KeptDecode>::Key keyOf(const DecodeProblem &problem, const DecodeOperands &operands, int64_t batch);
  /// In words.
  static std::string describe(const DecodeProblem &problem, const DecodeOperands &operands, int64_t batch);
  /// Operands to prepare calls with: memory that is there, whose alignment is planAlignment.
  static DecodeOperands anyOperands(const DecodeProblem &problem, runtime::Pointer memory, bool withLse,
                                    bool withSinks);
};
/// 1 to problem.batch sequences.
Status verifyDecodeBatch(std::string_view operation, const DecodeProblem &problem, int64_t batch);

/// What programs leave for each other in a call: zeros before and after it where it counts.
struct DecodeWorkspace {
  runtime::Buffer parts, sums, counters;

  static Expected<DecodeWorkspace> allocate(runtime::Rank &rank, const DecodeProblem &problem, const DecodePlan &plan);
};

/// A call with the arguments that both kernels have. Its `out_ptr` and `lse_ptr` are missing.
/// `window` is left out too: only the kernel of one GPU has it.
KernelCall decodeCall(const runtime::Rank &rank, const DecodeProblem &problem, const DecodePlan &plan,
                      const DecodeOperands &operands, const DecodeWorkspace &workspace);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_DECODE_DECODEPROBLEM_H
