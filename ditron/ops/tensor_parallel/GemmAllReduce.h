//===- GemmAllReduce.h - out = all_reduce(A * B), overlapped --------------------------------------------------*- C++ -*-===//
//
// Each rank holds a slice of K: A is [M, K_r], B is [K_r, N]. Every rank gets the whole sum over the ranks, added in fp32 in ascending
// rank order: all have the same bits, in every call. There are five forms (docs/ops/gemm_all_reduce.md has the protocols):
//
//   OneShot        few rows: one launch. Blocks push their tiles to all ranks, wait for everybody's, and add.
//   FusedTwoShot   more rows: one launch too. Blocks push the parts of their tiles to the parts' owners, which add and push the sums.
//   TwoShot        many rows: GEMM+ReduceScatter's order and gates, in chunks of rows; the owner of a segment adds, and all fetch the
//                  sums. While the product computes a chunk, a few multiprocessors add those before it, and the copy engine fetches them.
//   Pushed         many rows: PushedProduct.h.
//   Unfused        the product, then the exchange: the floor to compare with.
//
// Operands and result are ordinary memory. Device code: kernels/gemm_all_reduce.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_GEMMALLREDUCE_H
#define DITRON_OPS_TENSOR_PARALLEL_GEMMALLREDUCE_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/tensor_parallel/OneLaunch.h"
#include "ditron/ops/tensor_parallel/OverlappedTail.h"
#include "ditron/ops/tensor_parallel/PushedProduct.h"
#include "ditron/ops/tensor_parallel/UnfusedProduct.h"

namespace ditron::ops {

enum class AllReduceForm { Auto, OneShot, FusedTwoShot, TwoShot, Pushed, Unfused };
/// "auto", "one_shot", "fused_two_shot", "two_shot", "pushed", "unfused".
std::string_view toString(AllReduceForm form);
std::optional<AllReduceForm> parseAllReduceForm(std::string_view text);
/// OneShot and FusedTwoShot: a call is a single launch.
constexpr bool isOneLaunch(AllReduceForm form) {
  return form == AllReduceForm::OneShot || form == AllReduceForm::FusedTwoShot;
}

/// What Auto takes for calls of at most so many rows.
struct AllReduceChoice {
  int64_t mostRows;
  AllReduceForm form;
  uint32_t chunks = 1;         ///< TwoShot and Pushed.
  uint32_t exchangeBlocks = 0; ///< TwoShot; 0: by the GPU.
};

struct GemmAllReduceOptions {
  DataType dtype =
      DataType::BF16; ///< Of A and B: bf16, fp16, fp32, fp8 (e4m3, e5m2) or int8. Sums are fp32, of int8 int32.
  std::optional<DataType> resultType = std::nullopt; ///< bf16, fp16 or fp32; defaultResultType when not given.
  std::optional<DataType> partialType =
      std::nullopt;    ///< Of the partial results in transit; that of the result when not given, or fp32.
  int64_t maxRows = 0; ///< Largest M of any call; sizes the buffers.
  int64_t columns = 0; ///< N.
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  AllReduceForm form = AllReduceForm::Auto;
  /// Scales are applied before partial results leave a rank. The bias is given on all ranks, and added once, by rank 0. No activation.
  GemmEpilogue epilogue = {};
  TileConfig tile = libraryTile; ///< Of TwoShot, Pushed and Unfused.
  int64_t depth = 0; ///< K of most calls, where it is known: for the choice of tiles only. The same on all ranks.
  uint32_t chunks =
      0; ///< TwoShot, Pushed: parts of the rows whose exchange runs beside the product of the next; 0: by the number of rows.
  uint32_t exchangeBlocks = 0; ///< TwoShot with several chunks: multiprocessors for that; 0: by the GPU.
  std::optional<OneLaunchTile> oneLaunchTile = std::nullopt;
  /// Of the forms of one launch (OneLaunchOptions) and of the AllReduce of unfused calls and last chunks.
  uint32_t concurrentCalls = 2;
  /// Of all calls instead of what the tables say, for tuners and tests: form, tiles, chunks and exchange blocks. Every rank must give the
  /// same.
  std::optional<TensorParallelPlan> plan = std::nullopt;
  /// The device's name by which tables are read, instead of that of this process's first rank: for builds ahead of time.
  std::string gpu = {};

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

class GemmAllReduce : public PlannedProduct {
public:
  using Options = GemmAllReduceOptions;
  static constexpr std::string_view kernelName = "gemm_all_reduce";
  static constexpr std::string_view copyName = "ar_push"; ///< Prefix of the copies' names in traces.

  /// Allocates buffers, signals and streams on all ranks. Refuses options that make no sense.
  static Expected<GemmAllReduce> create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const Options &options);

  /// A call of a Plan, or by shape, takes, row-major, of options.dtype and resultType:
  ///   a: [rows, depth], b: [depth, columns] (weightOrder Transposed: [columns, depth]), result: [rows, columns].
  /// scales of a: [rows] or [1], scales of b: [columns] or [1], bias: [columns].
  /// `depth` (K of this rank) and strides may differ between ranks. The calls of one operator on a rank come one after the other.
  using Plan = ProductPlan;

  const Options &options() const { return optionValues; }
  /// The form and the chunks of calls with so many rows.
  AllReduceChoice choiceFor(int64_t rows) const;
  /// In the words of TensorParallelPlan; behind that of Unfused the collective's.
  std::string planText(int64_t rows) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const;

private:
  struct PerRank {
    std::shared_ptr<runtime::SideStream> side;
    runtime::Buffer partial; ///< [maxRows, columns]: the own product.
    runtime::Buffer ticket;  ///< Blocks that have reduced a chunk beside the product; zero between chunks.
  };
  /// The rows of a call, cut: chunks, each of which is dealt out to the ranks.
  struct Chunks {
    int64_t rows, chunkRows;
    uint32_t count, ranks;

    RowShards segments(uint32_t chunk) const { return RowShards(std::min(rows - chunk * chunkRows, chunkRows), ranks); }
    int64_t longestSegment() const { return ceilDivide(chunkRows, ranks); }
  };

  DataType partialType() const { return optionValues.partialType.value_or(optionValues.typeOfResult()); }
  ProductTerms terms(int64_t size) const override {
    return {optionValues.dtype,       optionValues.maxRows, optionValues.columns, size,
            optionValues.weightOrder, optionValues.epilogue};
  }
  runtime::Pointer anyBuffer(uint32_t rank) const override;
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape) override;
  std::string agreedPlan(const ProductShape &shape) const override { return planText(shape.rows); }
  /// From the tables: what the forms are by rows, ascending, the last for all that is more.
  Status makeChoices(const TensorParallelSetting &setting);
  /// For the tables, besides the rows.
  PlanSizes otherSizes() const { return knownSizes(/*m=*/0, optionValues.columns, optionValues.depth); }
  /// Of TwoShot, Pushed and Unfused.
  TileConfig tileFor(int64_t rows) const;
  Status allocateTwoShot();
  /// Unfused is the library's product and AllReduce, which carries the result's type; partial results of another type take the way
  /// of TwoShot.
  bool isSequence(AllReduceForm form) const {
    return form == AllReduceForm::Unfused && partialType() == optionValues.typeOfResult();
  }
  UnfusedProduct unfusedProduct(const ProductShape &shape, bool addsBias = true) const;
  OverlappedProduct overlappedProduct(const runtime::Rank &rank, const ProductShape &shape, const Chunks &chunks) const;
  /// Which calls of one launch there are.
  std::vector<OneLaunchCalls> oneLaunchCalls() const;
  /// Whether some number of rows has a form for which `predicate` holds.
  template <typename Predicate> bool anyForm(const Predicate &predicate) const;
  Chunks chunksFor(int64_t rows, const AllReduceChoice &choice) const;
  void addPushes(runtime::Rank &rank, const Chunks &chunks, runtime::CallSequence &sequence) const;
  /// Of the sums of all chunks but the last.
  void addFetches(const runtime::Rank &rank, const Chunks &chunks, int64_t strideOut,
                  runtime::CallSequence &sequence) const;
  KernelCall gemmCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape,
                      const Chunks &chunks) const;
  /// Sums of all chunks but the last, beside the product; sums, and their fetching, of the last.
  enum class Exchange { ReduceBeside, Reduce, Gather };
  /// `chunk`: which; of ReduceBeside how many, the first ones.
  KernelCall exchangeCall(const runtime::Rank &rank, Exchange part, uint32_t chunk, runtime::Pointer out,
                          int64_t strideOut, const Chunks &chunks) const;
  /// The last of several chunks, whose exchange nothing hides, is summed by the library's AllReduce, which carries the result's type.
  bool hasCollectiveTail(const Chunks &chunks) const {
    return chunks.count > 1 && partialType() == optionValues.typeOfResult();
  }
  Expected<std::vector<OperandLaunch>> collectiveTail(runtime::Rank &rank, runtime::Pointer out, int64_t strideOut,
                                                      const Chunks &chunks);
  /// Multiprocessors that the product leaves to the sums, where there are several chunks.
  uint32_t blocksBeside(const runtime::Rank &rank, const Chunks &chunks) const;
  /// Of any call, with as many calls at once as options().concurrentCalls, which must leave each other places; 0: there is none for a second chunk.
  uint32_t mostBeside() const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  TensorParallelChoice tables;
  std::vector<AllReduceChoice> choices;
  uint32_t mostChunks = 1;
  CallWords words;
  runtime::SymmetricBuffer scatter;  ///< By chunk [ranks, rows of a segment, columns]: slot s is filled by rank s
  runtime::SymmetricBuffer reduced;  ///< By chunk [rows of a segment, columns]: the own segments' sums
  runtime::SymmetricBuffer arrived;  ///< [ranks, mostChunks] signals
  runtime::SymmetricBuffer finished; ///< [ranks, mostChunks, blocks] signals: of the last chunk
  OneLaunch oneLaunch;
  std::optional<PushedProduct> pushed;
  std::optional<Collective> exchange;          ///< Of Unfused, and of last chunks.
  int64_t oneLaunchRows = 0;                   ///< Most rows of its calls.
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_GEMMALLREDUCE_H
