//===- TensorParallelPlan.h - How a product over several ranks is carried out ---------------------------------*- C++ -*-===//
//
// The words of tables and of `ditron bench ag_gemm|gemm_rs|gemm_ar --plan`: a form, then what of it is not the library's choice:
//
//   overlapped 128x256x64 warps 8 stages 3 group 4 chunks 2          ag_gemm, gemm_rs: copies beside a product whose tiles wait
//   overlapped tail-splits 4                                         the same; a ragged last wave's tiles in four parts along K
//   unfused 128x128x64 warps 8 stages 5 group 8                      all three
//   one_launch 16x64x128 warps 4 stages 5 splits 2                   ag_gemm, gemm_rs: few rows
//   one_shot 16x64x128 warps 4 stages 5 splits 2                     gemm_ar: few rows; fused_two_shot alike
//   two_shot 128x128x64 warps 8 stages 5 chunks 8 exchange_blocks 12 gemm_ar
//   pushed 128x128x64 warps 8 stages 5 group 8 chunks 4              gemm_rs, gemm_ar: tiles go to their owners as they are computed
//
// Without a tile the library takes what its model of the GPU prefers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_PLANS_TENSORPARALLELPLAN_H
#define DITRON_OPS_PLANS_TENSORPARALLELPLAN_H

#include "ditron/ops/plans/PlanTable.h"
#include "ditron/ops/tensor_parallel/OneLaunch.h"

namespace ditron::ops {

enum class TensorParallelForm { OneLaunch, Overlapped, Unfused, OneShot, FusedTwoShot, TwoShot, Pushed };
/// one_launch, overlapped, unfused, one_shot, fused_two_shot, two_shot, pushed.
std::string_view toString(TensorParallelForm form);
/// A call is a single launch.
constexpr bool isOneLaunch(TensorParallelForm form) {
  return form == TensorParallelForm::OneLaunch || form == TensorParallelForm::OneShot ||
         form == TensorParallelForm::FusedTwoShot;
}

struct TensorParallelPlan {
  TensorParallelForm form = TensorParallelForm::Overlapped;
  std::optional<TileConfig> tile = std::nullopt; ///< None: by the library's model.
  uint32_t splits = 1;                           ///< Of the forms of one launch, with a tile: OneLaunchTile.
  uint32_t chunks = 0; ///< ag_gemm: signals of a shard; gemm_ar by two_shot, pushed: parts of the rows. 0: not said.
  uint32_t exchangeBlocks = 0; ///< two_shot; 0: by the GPU.
  uint32_t tailSplits = 0;     ///< overlapped, two_shot: parts of the last wave's tiles, 1: whole ones; 0: not said.

  bool operator==(const TensorParallelPlan &) const = default;
  /// As it is read.
  std::string text() const;
  /// Of a form of one launch.
  std::optional<OneLaunchTile> oneLaunchTile() const {
    return tile && isOneLaunch(form) ? std::optional(OneLaunchTile{*tile, splits}) : std::nullopt;
  }
};

/// `op`: ag_gemm, gemm_rs or gemm_ar. Refuses forms and words that it does not have.
Expected<TensorParallelPlan> parseTensorParallelPlan(std::string_view op, std::string_view text);

/// The plans of calls of 1 to `rows` rows, ascending; the last one's is for all that is more, too.
struct RowsPlan {
  int64_t mostRows = 0;
  std::optional<TensorParallelPlan> plan; ///< None where no row of the tables fits.
};
/// `others`: sizes besides m. `givenOnly`: rows of the tables that ask for others do not count.
std::vector<RowsPlan> plansByRows(const PlanChoice &choice, const PlanSizes &others, bool givenOnly = false);

/// For the tables; sizes of 0 are not known.
PlanSizes knownSizes(int64_t m, int64_t n, int64_t k);

/// What an operator's options say.
struct TensorParallelSetting {
  DataType dtype = DataType::BF16;
  MatrixOrder order = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  TileConfig tile = libraryTile;
  std::optional<TensorParallelPlan> plan = std::nullopt; ///< Of all calls, instead of the tables'.
  std::string gpu = {}; ///< The device's name by which tables are read, instead of that of the world's first rank here.
  std::optional<DataType> resultType = std::nullopt; ///< Of C, for the choice of tiles.
  GemmEpilogue epilogue = {};                        ///< The same.
};

/// Of a call of more than one launch: as the plan says, where it is unfused, else as the options do.
inline Schedule scheduleOf(const std::optional<TensorParallelPlan> &plan, Schedule ofOptions) {
  return plan && plan->form == TensorParallelForm::Unfused ? Schedule::Unfused : ofOptions;
}

/// How an operator carries out which of its calls: as the options say, else the tables, else the library's model of the GPU. Sizes as
/// in tensor_parallel.plans; those that are not known yet fit every row.
class TensorParallelChoice {
public:
  TensorParallelChoice() = default;
  static Expected<TensorParallelChoice> create(runtime::World &world, std::string_view op,
                                               const TensorParallelSetting &setting);

  /// None where the tables have no row.
  std::optional<TensorParallelPlan> planFor(const PlanSizes &sizes) const;
  /// By rows of the tables that ask for no other sizes: what all ranks find, though sizes that are not given differ between them.
  std::optional<TensorParallelPlan> agreedPlanFor(const PlanSizes &sizes) const;
  std::vector<RowsPlan> byRows(const PlanSizes &others, bool givenOnly = false) const;
  /// The most rows, up to `most`, of calls whose plan (none where the tables have no row) `predicate` accepts; 0: there are none.
  template <typename Predicate>
  int64_t mostRows(int64_t most, const PlanSizes &others, const Predicate &predicate, bool givenOnly = false) const {
    int64_t rows = 0, before = 0;
    for (const RowsPlan &each : byRows(others, givenOnly)) {
      if (before < most && predicate(each.plan))
        rows = std::min(each.mostRows, most);
      before = each.mostRows;
    }
    return rows;
  }
  // On what is one launch all ranks agree: by agreedPlanFor.

  /// The most rows, up to `most`, of calls that are one launch; 0: none are, and none are by tables where there are several nodes.
  int64_t oneLaunchRows(int64_t most, const PlanSizes &others) const;
  /// Whether calls of so many rows are.
  bool saysOneLaunch(int64_t rows, const PlanSizes &others) const;
  /// By rows; none where a call is more than one launch, or the tile is the library's choice.
  std::vector<OneLaunchRows> oneLaunchTiles(const PlanSizes &others) const;
  /// Of calls that are more than one launch. A size of 0 is not known.
  TileConfig tileFor(int64_t m, int64_t n, int64_t k) const;
  /// The same if it is given, by the options, a plan or a table; unfused calls have no other tile than the product by itself.
  std::optional<TileConfig> givenTileFor(int64_t m, int64_t n, int64_t k) const;
  /// TensorParallelPlan::tailSplits of those; 0 where no plan says it.
  uint32_t tailSplitsFor(int64_t m, int64_t n, int64_t k) const;
  /// That of tileFor, of a call with a plan that has been found already.
  TileConfig tileOf(const std::optional<TensorParallelPlan> &plan, int64_t m, int64_t n, int64_t k) const;

private:
  std::optional<TileConfig> givenTileOf(const std::optional<TensorParallelPlan> &plan) const;

  TensorParallelSetting setting;
  runtime::World *world = nullptr;
  PlanChoice tables;
};

} // namespace ditron::ops
#endif // DITRON_OPS_PLANS_TENSORPARALLELPLAN_H
