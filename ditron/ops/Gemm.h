//===- Gemm.h - C = A * B on one GPU ----------------------------------------------------------------------------*- C++ -*-===//
//
// The matrix product of the library, with fp32 (of int8 operands int32) accumulation and the epilogue of GemmEpilogue.h. Device code: kernels/gemm. How it is cut into tiles is chosen
// per shape by chooseGemmTile and may be given instead.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_GEMM_H
#define DITRON_OPS_GEMM_H

#include "ditron/ops/GemmEpilogue.h"

namespace ditron::ops {

/// How tiles get to and from the multiprocessors.
enum class GemmMovement {
  Descriptors, ///< A persistent kernel with tensor descriptors: TMA, wgmma and warp specialisation where there are such.
  Pointers,    ///< A block per tile, loads through pointers.
};
std::string_view toString(GemmMovement movement);

/// How long the L2 cache shall keep what tensor copies read.
enum class CacheHint { None, EvictFirst, EvictLast };

struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::BF16; ///< Of A and B: bf16, fp16, fp32, fp8 (e4m3, e5m2) or int8.
  std::optional<DataType> resultType = std::nullopt; ///< Of C: bf16, fp16 or fp32; defaultResultType when not given.
  MatrixOrder order = MatrixOrder::Transposed;
  RowStrides strides = {};
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  GemmEpilogue epilogue = {};
  bool addsBias = true; ///< False: the epilogue has a bias, which another rank's part of the product adds.

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

/// A complete choice of how to compute a product.
struct GemmPlan {
  GemmMovement movement = GemmMovement::Pointers;
  TileConfig tile;
  /// Columns of a tile besides tile.blockN, a smaller power of two: 128 and 64 make tiles of 192. Descriptors only.
  uint32_t moreN = 0;
  /// Into how many parts along K the tiles of a ragged last wave are split, so that all multiprocessors have work; 1: not. Descriptors
  /// only.
  uint32_t tailSplits = 1;
  /// Of the operands' tiles. Descriptors only.
  CacheHint hintA = CacheHint::None, hintB = CacheHint::None;
  /// Blocks of a cluster, 1 or 2: two compute tiles below each other and fetch B's tiles together. Descriptors only; 2 needs an even
  /// group of rows.
  uint32_t clusterBlocks = 1;

  uint32_t columns() const { return tile.blockN + moreN; }
  /// Whether the plan is no more than its tile: what operators that overlap take.
  bool isPlain() const {
    return moreN == 0 && tailSplits == 1 && hintA == CacheHint::None && hintB == CacheHint::None && clusterBlocks == 1;
  }
  /// "descriptors 128x256x64 warps 8 stages 3 group 8", and " tail-splits 3", " a-first", " a-last", " b-first", " b-last",
  /// " cluster 2".
  std::string text() const;
};
/// How a product's tiles are dealt out where the last wave is split.
struct SplitTail {
  int64_t wholeTiles = 0; ///< Tiles of clusters, in whole waves.
  int64_t splitTiles = 0; ///< The others, each computed in `parts` along K.
  int64_t parts = 2;      ///< At most the number of steps along K.

  /// What blocks compute one after the other.
  int64_t items() const { return wholeTiles + splitTiles * parts; }
};
/// Nothing where no wave is ragged or the plan does not split.
std::optional<SplitTail> splitTailOf(const GemmProblem &problem, const GemmPlan &plan, uint32_t multiprocessors);
/// What a plan's ragged last wave should be split into; 1 where that would save no time.
uint32_t chooseTailSplits(const GemmProblem &problem, const GemmPlan &plan, uint32_t multiprocessors);
/// The same of a product beside which others copy; 1 also where it would gain less than the model errs.
uint32_t chooseTailSplitsBesideCopies(const GemmProblem &problem, GemmPlan plan, uint32_t multiprocessors);

/// Reads the text form, of which everything after the blocks may be left out: "128x256x64 stages 4". `defaults` gives the rest,
/// but for tail-splits, hints and clusters, which are only in plans that name them.
Expected<GemmPlan> parseGemmPlan(std::string_view text, GemmPlan defaults);

/// The plan whose predicted time is least, for a target ("cuda:sm_90a") whose GPUs have `multiprocessors`.
GemmPlan chooseGemmPlan(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors);
/// What the library takes for a product in a world: as the tables say (plans/gemm.plans), else the chosen plan. `gpu`: the device's name, in
/// place of the world's.
Expected<GemmPlan> libraryGemmPlan(const GemmProblem &problem, runtime::World &world, std::string_view gpu = {});
/// The tile of the best plan that is no more than a tile.
TileConfig chooseTile(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors);
/// That in a world: what operators that overlap take for one rank's product where their tables say nothing. Programs and
/// `ditron build --op` both get there, so that packages hold what programs look for.
TileConfig chooseTile(const GemmProblem &problem, runtime::World &world);
/// All plans that are considered for the problem, best predicted first.
std::vector<GemmPlan> rankGemmPlans(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors);

/// Whether tensor descriptors can move the problem's matrices: rows are multiples of 16 bytes apart, and 8-bit weights lie along K.
bool allowsDescriptors(const GemmProblem &problem);
/// Refuses what no kernel accepts.
Status verifyGemm(const GemmProblem &problem, const GemmPlan &plan);

/// What products on one rank work in whose ragged last wave is split: as much as the largest of them needs.
class GemmWorkspace {
public:
  struct Memory {
    runtime::Buffer sums, counters; ///< Counters are zero between calls.
  };
  /// At least so much; what was given before stays for as long as somebody has it.
  Expected<std::shared_ptr<const Memory>> atLeast(runtime::Rank &rank, DataType sumType, uint64_t sums,
                                                  uint64_t counters);

private:
  std::shared_ptr<const Memory> latest;
};

/// Binds a kernel that takes sums_ptr, tile_counter_ptr, whole_tiles and parts (kernels/product/split_tail.py) besides the arguments of `call`. Its parts
/// are in the workspace.
Expected<PreparedCall> prepareSplitTail(runtime::KernelProvider &kernels, runtime::Rank &rank, KernelCall call, const SplitTail &tail,
                                        const TileConfig &tile, DataType dtype, GemmWorkspace &workspace,
                                        uint32_t clusterBlocks = 1);

/// Binds the kernel of the plan (or of libraryGemmPlan) to operands on a rank; calls of the result compute C = A * B with the
/// epilogue, the same bits each time. A: [m, k]; B: [n, k], or [k, n] where the order is Plain; C: [m, n], [m, n / 2] with SwiGlu.
/// Calls with the same workspace must follow each other; a result that is given none has one of its own.
Expected<PreparedCall> prepareGemm(runtime::KernelProvider &kernels, runtime::Rank &rank, const GemmProblem &problem, runtime::Pointer a,
                                   runtime::Pointer b, runtime::Pointer c,
                                   const std::optional<GemmPlan> &plan = std::nullopt,
                                   const EpilogueOperands &extras = {}, GemmWorkspace *workspace = nullptr);

} // namespace ditron::ops
#endif // DITRON_OPS_GEMM_H
