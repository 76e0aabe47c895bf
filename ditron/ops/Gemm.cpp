//===- Gemm.cpp - C = A * B on one GPU ------------------------------------------------------------------------------------===//
//
// The choice of a plan is a small model of a GPU that computes tiles in waves:
//
//   time = waves * (time of a tile's main loop + what of its beginning and end is not hidden)
//   waves = ceil(tiles / blocks that run at once);   with a split tail the last one is shorter, by tailWaves
//
// A tile's main loop runs at the peak rate of a multiprocessor times the efficiency of the tile's form, which falls with
// the ratio of bytes moved through shared memory to operations. The rest is constant per tile. Peak rate and clock drop out
// of the comparison, so only ratios are in the table.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/Gemm.h"

#include "ditron/ops/plans/PlanTable.h"
#include "ditron/support/TargetName.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "Gemm";

/// A form of tile: efficiency of its main loop, and what a tile costs besides, in units of a 128x128x64 step at full rate.
struct TileForm {
  GemmPlan plan;
  double efficiency;
  double fixedSteps;
  uint32_t blocksPerMultiprocessor;
  /// What is lost of products of 31 waves with K = 14336, less in proportion with 7168 to that; of 62 waves with 7168 twice as much: blocks drift
  /// apart in K, and fetch from memory what others have had in the L2 cache. Small tiles fetch more.
  double lostWhenDeep = 0;
  double lostInManyWaves = 0; ///< Of more than 8 waves.
  double lostWhenUnaligned =
      0; ///< Where rows of A or B are no multiples of 128 bytes: tiles of them share more of their cache lines.
};

constexpr TileConfig tile(uint32_t m, uint32_t n, uint32_t k, uint32_t groupM, uint32_t warps, uint32_t stages) {
  return {.blockM = m, .blockN = n, .blockK = k, .groupM = groupM, .numWarps = warps, .numStages = stages};
}

/// GPUs with TMA and wgmma, 16-bit operands. Measured on an H200 (docs/bench.md): the power limit makes large tiles almost equally
/// fast, and small ones waste less at the end; with deep K on an H100.
const TileForm hopperForms[] = {
    {{GemmMovement::Descriptors, tile(128, 128, 64, 8, 8, 5)}, 0.99, 1, 1, 0.08, 0, 0.15},
    {{GemmMovement::Descriptors, tile(128, 256, 64, 4, 8, 3)}, 1.00, 4, 1, 0.02, 0.02},
    {{GemmMovement::Descriptors, tile(128, 256, 64, 8, 8, 3)}, 0.999, 4, 1, 0},
    {{GemmMovement::Descriptors, tile(256, 128, 64, 4, 8, 3)}, 0.98, 4, 1, 0.03},
    {{GemmMovement::Descriptors, tile(64, 256, 64, 16, 4, 4)}, 0.93, 2, 1},
    {{GemmMovement::Descriptors, tile(64, 128, 64, 16, 4, 6)}, 0.70, 2, 1},
};
/// Warp-level tensor cores, 16-bit operands.
const TileForm pointerForms[] = {
    {{GemmMovement::Pointers, tile(128, 256, 64, 8, 8, 3)}, 1.00, 8, 1},
    {{GemmMovement::Pointers, tile(128, 128, 64, 8, 4, 3)}, 0.93, 5, 2},
    {{GemmMovement::Pointers, tile(64, 64, 64, 8, 4, 3)}, 0.65, 3, 4},
};
/// GPUs with TMA and wgmma, fp32 operands as tf32, which warpgroups read along K only. Not measured yet: the efficiencies are those of as many
/// bytes of 16-bit operands.
const TileForm hopperWideForms[] = {
    {{GemmMovement::Descriptors, tile(128, 128, 32, 8, 8, 5)}, 1.00, 1, 1},
    {{GemmMovement::Descriptors, tile(64, 128, 32, 16, 4, 6)}, 0.70, 2, 1},
};
/// fp32 operands: half as many elements fit.
const TileForm wideForms[] = {
    {{GemmMovement::Pointers, tile(128, 128, 32, 8, 8, 3)}, 1.00, 5, 1},
    {{GemmMovement::Pointers, tile(64, 64, 32, 8, 4, 3)}, 0.75, 3, 3},
};
/// A tile that clusters of blocks compute, or with more columns.
constexpr GemmPlan otherTile(TileConfig tile, uint32_t moreN, uint32_t clusterBlocks) {
  return {.movement = GemmMovement::Descriptors, .tile = tile, .moreN = moreN, .clusterBlocks = clusterBlocks};
}

/// 8-bit operands: twice as many elements fit. Plain tiles measured on an H100 (docs/bench.md) but for the last; of the others it is assumed that they
/// are as fast, and that clusters, which fetch half of B, lose half where rows straddle the L2 cache's lines.
const TileForm hopperNarrowForms[] = {
    {{GemmMovement::Descriptors, tile(128, 256, 128, 8, 8, 3)}, 1.00, 4, 1, 0, 0, 0.33},
    {{GemmMovement::Descriptors, tile(256, 128, 128, 8, 8, 3)}, 0.98, 4, 1, 0, 0, 0.33},
    {{GemmMovement::Descriptors, tile(128, 128, 128, 8, 8, 5)}, 0.90, 1, 1, 0, 0, 0.33},
    {{GemmMovement::Descriptors, tile(64, 128, 128, 16, 4, 6)}, 0.70, 2, 1, 0, 0, 0.25},
    {otherTile(tile(128, 256, 128, 8, 8, 3), 0, 2), 0.995, 4, 1, 0, 0, 0.16},
    {otherTile(tile(128, 128, 128, 8, 8, 4), 64, 1), 0.97, 3, 1, 0, 0, 0.33},
    {otherTile(tile(128, 128, 128, 8, 8, 4), 64, 2), 0.97, 3, 1, 0, 0, 0.16},
    {otherTile(tile(128, 128, 128, 8, 8, 5), 0, 2), 0.895, 1, 1, 0, 0, 0.16},
};
const TileForm narrowForms[] = {
    {{GemmMovement::Pointers, tile(128, 128, 64, 8, 8, 3)}, 1.00, 5, 1},
    {{GemmMovement::Pointers, tile(64, 64, 64, 8, 4, 3)}, 0.75, 3, 3},
};
/// A simulated GPU computes small tiles as well as large ones, and tests have few elements.
const TileForm simulatedForms[] = {
    {{GemmMovement::Descriptors, tile(128, 128, 64, 8, 8, 3)}, 1.00, 3, 1},
    {{GemmMovement::Pointers, tile(64, 64, 32, 8, 4, 3)}, 1.00, 3, 1},
};

int64_t columnsOfB(const GemmProblem &p) { return p.order == MatrixOrder::Transposed ? p.k : p.n; }
int64_t columnsOfC(const GemmProblem &p) { return p.epilogue.resultColumns(p.n); }

/// TMA steps from row to row in multiples of 16 bytes.
bool rowsAreAligned(const GemmProblem &problem) {
  auto aligned = [](int64_t stride, DataType type) { return stride * sizeOf(type) % 16 == 0; };
  const RowStrides &strides = problem.strides;
  return aligned(rowStride(strides.a, problem.k), problem.dtype) &&
         aligned(rowStride(strides.b, columnsOfB(problem)), problem.dtype) &&
         aligned(rowStride(strides.c, columnsOfC(problem)), problem.typeOfResult());
}

/// Tensor cores that take operands from shared memory read those of 8 bits along K only.
bool isReadAlongDepth(const GemmProblem &problem) {
  return sizeOf(problem.dtype) > 1 || problem.order == MatrixOrder::Transposed;
}

/// Of blocks, or of clusters of them.
int64_t tilesOf(const GemmProblem &problem, const GemmPlan &plan) {
  return ceilDivide(ceilDivide(problem.m, plan.tile.blockM), plan.clusterBlocks) *
         ceilDivide(problem.n, plan.columns());
}

/// How many of those run at once.
int64_t placesOf(const GemmPlan &plan, uint32_t multiprocessors) {
  return std::max(multiprocessors / plan.clusterBlocks, 1u);
}

/// How many whole waves the ragged one takes as long as when it is split.
double tailWaves(const GemmProblem &problem, const GemmPlan &plan, int64_t splitTiles, uint32_t multiprocessors) {
  const double tileSize = plan.tile.blockM * plan.columns() / (128.0 * 128), parts = plan.tailSplits;
  const double steps = double(ceilDivide(problem.k, plan.tile.blockK)) * plan.tile.blockK / 64.0;
  const double turns = double(ceilDivide(splitTiles * plan.tailSplits, placesOf(plan, multiprocessors)));
  // A part is written to and read from the L2 cache by one multiprocessor, at about 64 bytes a clock; of 128x128 that takes as long as 2.5
  // and 1.5 steps. To be told that all parts are there, and to begin a tile again with nothing on its way, takes 20: of products of 128 to 512 rows, 2752 to 4096 deep, on
  // four H200, splits were 1 to 5 us slower than 64x128 tiles. More turns of parts than one cost about 10 steps each: of 7168 columns, 8192
  // deep, on two H200, splits in 3 turns of 512 and 768 rows were 5 and 2 % slower than whole tiles, in 2 turns of 1024 rows 4 % faster.
  return turns / parts + (2.5 * turns + 10 * (turns - 1) + 1.5 * parts + 20 / tileSize) / steps;
}

/// How many waves a product with a split tail takes as long as.
double cutWaves(const GemmProblem &problem, const GemmPlan &plan, const SplitTail &tail, uint32_t multiprocessors) {
  return static_cast<double>(tail.wholeTiles) / static_cast<double>(placesOf(plan, multiprocessors)) +
         tailWaves(problem, plan, tail.splitTiles, multiprocessors);
}

/// A split tail must promise more than the model errs. 128x128 has gained 2 to 8 % where 6 and 11 were promised, and nothing where 3 were.
/// Beside copies 4.8 and 9 % promised were 1.9 and 5 gained, and 4.2 % were 2 % lost (docs/ops/ag_gemm.md, "Ragged last waves").
constexpr double doubt = 1.04, doubtBesideCopies = 1.045;

double predictedSteps(const GemmProblem &problem, const TileForm &form, uint32_t multiprocessors) {
  const TileConfig &tile = form.plan.tile;
  const int64_t tiles = tilesOf(problem, form.plan);
  const int64_t slots = placesOf(form.plan, multiprocessors) * form.blocksPerMultiprocessor;
  const double tileSize = tile.blockM * form.plan.columns() / (128.0 * 128);
  const double steps = static_cast<double>(ceilDivide(problem.k, tile.blockK)) * tileSize * tile.blockK / 64.0;
  const double waves = static_cast<double>(ceilDivide(tiles, slots));
  constexpr double deep = 7168, nearlyDeep = 6144, manyWaves = 31;
  const double depths =
      std::clamp(static_cast<double>(problem.k) / deep - 1, 0.0, 2.0) * std::min(waves / manyWaves, 1.0);
  const double turns = problem.k < nearlyDeep ? 0 : std::clamp(waves / manyWaves - 1, 0.0, 1.5);
  const bool isAligned =
      problem.k * sizeOf(problem.dtype) % 128 == 0 && columnsOfB(problem) * sizeOf(problem.dtype) % 128 == 0;
  const double lost = form.lostWhenDeep * (depths + 2 * turns) + (waves > 8 ? form.lostInManyWaves : 0) +
                      (isAligned ? 0 : form.lostWhenUnaligned);
  if (const std::optional<SplitTail> tail = splitTailOf(problem, form.plan, multiprocessors))
    return doubt * cutWaves(problem, form.plan, *tail, multiprocessors) *
           (steps / (form.efficiency - lost) + form.fixedSteps);
  // Blocks that share a multiprocessor share its rate.
  return waves * form.blocksPerMultiprocessor * (steps / (form.efficiency - lost) + form.fixedSteps);
}

} // namespace

/// What a plan may be for any product.
static Status verifyPlan(const GemmPlan &plan) {
  DITRON_RETURN_IF_ERROR(plan.tile.verify());
  constexpr uint32_t mostColumns = 256;
  if (plan.moreN != 0 && (plan.moreN < 16 || plan.columns() > mostColumns))
    return invalidArgument(
        fmt::format("tiles of {} and {} columns; accepted are powers of two, of at least 16 and at most {} together",
                    plan.tile.blockN, plan.moreN, mostColumns));
  if (!plan.isPlain() && plan.movement != GemmMovement::Descriptors)
    return unsupported("tiles of two widths, tail-splits, cache hints and clusters need descriptors");
  constexpr uint32_t mostSplits = 64;
  if (plan.tailSplits < 1 || plan.tailSplits > mostSplits)
    return invalidArgument(fmt::format("{} tail-splits; accepted are 1 to {}", plan.tailSplits, mostSplits));
  if (plan.clusterBlocks != 1 && plan.clusterBlocks != 2)
    return invalidArgument(fmt::format("clusters of {} blocks; accepted are 1 and 2", plan.clusterBlocks));
  if (plan.tile.groupM % plan.clusterBlocks != 0)
    return invalidArgument(
        fmt::format("groups of {} rows of tiles, which clusters of 2 blocks do not divide", plan.tile.groupM));
  if (plan.moreN != 0 && plan.tailSplits > 1)
    return unsupported(fmt::format("tail-splits with tiles of {} columns; accepted is a power of two", plan.columns()));
  return Status::ok();
}

std::string_view toString(GemmMovement movement) {
  return movement == GemmMovement::Descriptors ? "descriptors" : "pointers";
}

static std::string hintText(char operand, CacheHint hint) {
  return hint == CacheHint::None ? ""
                                 : fmt::format(" {}-{}", operand, hint == CacheHint::EvictFirst ? "first" : "last");
}

/// As the kernels name it.
static std::string policyOf(CacheHint hint) {
  return hint == CacheHint::None ? "" : hint == CacheHint::EvictFirst ? "evict_first" : "evict_last";
}

std::string GemmPlan::text() const {
  return fmt::format("{} {}x{}x{} warps {} stages {} group {}{}", toString(movement), tile.blockM, columns(),
                     tile.blockK, tile.numWarps, tile.numStages, tile.groupM,
                     tailSplits == 1 ? "" : fmt::format(" tail-splits {}", tailSplits)) +
         hintText('a', hintA) + hintText('b', hintB) +
         (clusterBlocks == 1 ? "" : fmt::format(" cluster {}", clusterBlocks));
}

std::optional<SplitTail> splitTailOf(const GemmProblem &problem, const GemmPlan &plan, uint32_t multiprocessors) {
  const int64_t tiles = tilesOf(problem, plan), kTiles = std::max<int64_t>(ceilDivide(problem.k, plan.tile.blockK), 1);
  const int64_t places = placesOf(plan, multiprocessors);
  // Steps of all parts are numbered in 32 bits.
  const int64_t parts =
      std::min({int64_t(plan.tailSplits), kTiles, int64_t(std::numeric_limits<int32_t>::max()) / kTiles});
  const int64_t whole = tiles / places * places;
  return parts < 2 || whole == tiles ? std::nullopt : std::optional(SplitTail{whole, tiles - whole, parts});
}

uint32_t chooseTailSplits(const GemmProblem &problem, const GemmPlan &plan, uint32_t multiprocessors) {
  constexpr uint32_t mostParts = 32;
  uint32_t best = 1;
  double leastWaves = 1;
  for (GemmPlan split = plan; split.tailSplits <= mostParts; ++split.tailSplits)
    if (const std::optional<SplitTail> tail = splitTailOf(problem, split, multiprocessors);
        tail && tail->parts == split.tailSplits) {
      const double waves = tailWaves(problem, split, tail->splitTiles, multiprocessors);
      if (waves < leastWaves)
        leastWaves = waves, best = split.tailSplits;
    }
  return best;
}

uint32_t chooseTailSplitsBesideCopies(const GemmProblem &problem, GemmPlan plan, uint32_t multiprocessors) {
  plan.tailSplits = chooseTailSplits(problem, plan, multiprocessors);
  const std::optional<SplitTail> tail = splitTailOf(problem, plan, multiprocessors);
  const auto waves = static_cast<double>(ceilDivide(tilesOf(problem, plan), placesOf(plan, multiprocessors)));
  return tail && doubtBesideCopies * cutWaves(problem, plan, *tail, multiprocessors) < waves ? plan.tailSplits : 1;
}

Expected<GemmPlan> parseGemmPlan(std::string_view text, GemmPlan defaults) {
  auto wrong = [&](std::string_view word) {
    return invalidArgument(
        fmt::format("plan '{}': '{}' is not understood; a plan is written like '{}'", text, word, GemmPlan().text()));
  };
  auto number = [](std::string_view word, uint32_t &value) {
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  };
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" ,_", begin), text.size());
    if (end > begin)
      words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  GemmPlan plan = defaults;
  plan.tailSplits = 1;
  plan.hintA = plan.hintB = CacheHint::None;
  plan.clusterBlocks = 1;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "a-first" || word == "a-last" || word == "b-first" || word == "b-last") {
      (word.front() == 'a' ? plan.hintA : plan.hintB) =
          word.ends_with("first") ? CacheHint::EvictFirst : CacheHint::EvictLast;
    } else if (word == "descriptors" || word == "pointers") {
      plan.movement = word == "pointers" ? GemmMovement::Pointers : GemmMovement::Descriptors;
    } else if (word == "warps" || word == "stages" || word == "group" || word == "cluster" || word == "tail-splits") {
      uint32_t &value = word == "warps"     ? plan.tile.numWarps
                        : word == "stages"  ? plan.tile.numStages
                        : word == "group"   ? plan.tile.groupM
                        : word == "cluster" ? plan.clusterBlocks
                                            : plan.tailSplits;
      if (i + 1 == words.size() || !number(words[i + 1], value))
        return wrong(word);
      ++i;
    } else {
      const size_t first = word.find('x'), second = word.find('x', first + 1);
      if (first == word.npos || second == word.npos || !number(word.substr(0, first), plan.tile.blockM) ||
          !number(word.substr(first + 1, second - first - 1), plan.tile.blockN) ||
          !number(word.substr(second + 1), plan.tile.blockK))
        return wrong(word);
      plan.moreN = 0;
      // Two powers of two, of which the columns are the sum.
      if (const uint32_t larger = std::bit_floor(plan.tile.blockN); std::has_single_bit(plan.tile.blockN ^ larger)) {
        plan.moreN = plan.tile.blockN ^ larger;
        plan.tile.blockN = larger;
      }
    }
  }
  DITRON_RETURN_IF_ERROR(verifyPlan(plan).withContext(fmt::format("plan '{}'", text)));
  return plan;
}

std::vector<GemmPlan> rankGemmPlans(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors) {
  Expected<TargetName> name = parseTargetName(target);
  const bool simulated = !name.isOk() || name->simulated;
  // fp32 goes to the multiply by tensor copies, which round it to tf32, or through registers.
  const bool isTf32 = problem.dtype == DataType::F32 && problem.precision == MultiplyPrecision::Tf32;
  const bool tensorCopies = hasTensorCopies(target) && allowsDescriptors(problem) &&
                            (sizeOf(problem.dtype) <= 2 || (isTf32 && problem.order == MatrixOrder::Transposed));
  const bool narrow = sizeOf(problem.dtype) == 1;
  std::vector<TileForm> forms;
  auto add = [&](std::span<const TileForm> table) {
    for (const TileForm &form : table)
      if (form.plan.movement == GemmMovement::Pointers || tensorCopies)
        forms.push_back(form);
  };
  if (simulated)
    add(simulatedForms);
  else if (tensorCopies)
    add(narrow   ? std::span<const TileForm>(hopperNarrowForms)
        : isTf32 ? std::span<const TileForm>(hopperWideForms)
                 : hopperForms);
  else if (narrow)
    add(narrowForms);
  else if (sizeOf(problem.dtype) == 2)
    add(pointerForms);
  else
    add(wideForms);
  if (tensorCopies && sizeOf(problem.dtype) <= 2)
    for (size_t i = 0, plain = forms.size(); i < plain; ++i) {
      TileForm split = forms[i];
      if (split.plan.moreN != 0)
        continue;
      split.plan.tailSplits = chooseTailSplits(problem, split.plan, multiprocessors);
      if (split.plan.movement == GemmMovement::Descriptors && split.plan.tailSplits > 1)
        forms.push_back(split);
    }
  std::ranges::stable_sort(forms, {},
                           [&](const TileForm &form) { return predictedSteps(problem, form, multiprocessors); });
  std::vector<GemmPlan> plans;
  for (const TileForm &form : forms)
    plans.push_back(form.plan);
  return plans;
}

bool allowsDescriptors(const GemmProblem &problem) { return rowsAreAligned(problem) && isReadAlongDepth(problem); }

GemmPlan chooseGemmPlan(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors) {
  return rankGemmPlans(problem, target, multiprocessors).front();
}

TileConfig chooseTile(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors) {
  const std::vector<GemmPlan> ranked = rankGemmPlans(problem, target, multiprocessors);
  return std::ranges::find_if(ranked, &GemmPlan::isPlain)->tile; // there is a plain form in every table
}

TileConfig chooseTile(const GemmProblem &problem, runtime::World &world) {
  const runtime::Rank &rank = world.rank(world.localRanks().front());
  return chooseTile(problem, world.target(), rank.attributes().multiprocessors);
}

Expected<GemmPlan> libraryGemmPlan(const GemmProblem &problem, runtime::World &world, std::string_view gpu) {
  const runtime::DeviceAttributes &device = world.rank(world.localRanks().front()).attributes();
  DITRON_ASSIGN_OR_RETURN(const PlanChoice tables, PlanChoice::ofOneGpu(world, "gemm", problem.dtype, gpu));
  const GemmPlan chosen = chooseGemmPlan(problem, world.target(), device.multiprocessors);
  const PlanRow *row = tables.find({{"m", problem.m}, {"n", problem.n}, {"k", problem.k}});
  if (!row)
    return chosen;
  DITRON_ASSIGN_OR_RETURN(const GemmPlan plan, parseGemmPlan(row->plan, chosen));
  // One for shapes like this whose rows TMA can step over.
  return verifyGemm(problem, plan).isOk() ? plan : chosen;
}

Status verifyGemm(const GemmProblem &problem, const GemmPlan &plan) {
  DITRON_RETURN_IF_ERROR(
      verifyEpilogue(operation, problem.dtype, problem.typeOfResult(), problem.epilogue, /*reduces=*/false));
  DITRON_RETURN_IF_ERROR(verifyPlan(plan).withContext(operation));
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, problem.dtype, plan.tile));
  if (!plan.isPlain() && !isReadAlongDepth(problem))
    return unsupported(fmt::format("{}: tiles of two widths, tail-splits, cache hints and clusters with operands of {} "
                                   "and B as [K, N]; 8-bit operands are accepted with B as [N, K]",
                                   operation, ditron::toString(problem.dtype)));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, problem.m, problem.n, problem.k, plan.tile));
  DITRON_RETURN_IF_ERROR(verifyEpilogueShape(operation, problem.dtype, problem.epilogue, problem.n, problem.k));
  DITRON_ASSIGN_OR_RETURN(const RowStrides strides, completeStrides(operation, problem.strides, problem.k,
                                                                    columnsOfB(problem), columnsOfC(problem)));
  DITRON_RETURN_IF_ERROR(verifySpans(operation, strides, plan.tile));
  if (plan.movement == GemmMovement::Descriptors && !rowsAreAligned(problem))
    return unsupported(
        fmt::format("{}: descriptors need rows that are a multiple of 16 bytes apart; N={} and K={} of {} "
                    "are not; choose pointers",
                    operation, problem.n, problem.k, ditron::toString(problem.dtype)));
  return Status::ok();
}

Expected<std::shared_ptr<const GemmWorkspace::Memory>> GemmWorkspace::atLeast(runtime::Rank &rank, DataType sumType,
                                                                              uint64_t sums, uint64_t counters) {
  if (latest && latest->sums.type() == sumType) {
    if (latest->sums.count() >= sums && latest->counters.count() >= counters)
      return latest;
    sums = std::max(sums, latest->sums.count());
    counters = std::max(counters, latest->counters.count());
  }
  Memory memory;
  DITRON_ASSIGN_OR_RETURN(memory.sums, rank.allocate(sumType, sums, "gemm_split_tail_sums"));
  DITRON_ASSIGN_OR_RETURN(memory.counters, rank.allocate(DataType::I64, counters, "gemm_split_tail_counters"));
  latest = std::make_shared<const Memory>(std::move(memory));
  return latest;
}

Expected<PreparedCall> prepareSplitTail(runtime::KernelProvider &kernels, runtime::Rank &rank, KernelCall call,
                                        const SplitTail &tail, const TileConfig &tile, DataType dtype,
                                        GemmWorkspace &workspace, uint32_t clusterBlocks) {
  const uint64_t counters = tail.splitTiles * clusterBlocks;
  DITRON_ASSIGN_OR_RETURN(
      std::shared_ptr<const GemmWorkspace::Memory> memory,
      workspace.atLeast(rank, sumType(dtype), tail.parts * counters * tile.blockM * tile.blockN, counters));
  call.arguments.emplace_back("sums_ptr", memory->sums);
  call.arguments.emplace_back("tile_counter_ptr", memory->counters);
  call.arguments.emplace_back("whole_tiles", tail.wholeTiles);
  call.arguments.emplace_back("parts", tail.parts);
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(kernels, rank, call));
  prepared.keep(std::move(memory));
  return prepared;
}

Expected<PreparedCall> prepareGemm(runtime::KernelProvider &kernels, runtime::Rank &rank, const GemmProblem &problem,
                                   runtime::Pointer a, runtime::Pointer b, runtime::Pointer c,
                                   const std::optional<GemmPlan> &plan, const EpilogueOperands &extras,
                                   GemmWorkspace *workspace) {
  const uint32_t multiprocessors = rank.attributes().multiprocessors;
  GemmPlan chosen;
  if (plan) {
    chosen = *plan;
  } else {
    DITRON_ASSIGN_OR_RETURN(chosen, libraryGemmPlan(problem, rank.world()));
  }
  const TileConfig &tile = chosen.tile;
  DITRON_RETURN_IF_ERROR(verifyGemm(problem, chosen));
  for (auto [name, pointer, type] : {std::tuple("a", a, problem.dtype), std::tuple("b", b, problem.dtype),
                                     std::tuple("c", c, problem.typeOfResult())})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  DITRON_RETURN_IF_ERROR(verifyEpilogueOperands(operation, problem.epilogue, extras));
  DITRON_ASSIGN_OR_RETURN(const RowStrides strides, completeStrides(operation, problem.strides, problem.k,
                                                                    columnsOfB(problem), columnsOfC(problem)));
  const int64_t tiles = tilesOf(problem, chosen);
  const bool persistent = chosen.movement == GemmMovement::Descriptors;
  const std::optional<SplitTail> tail = splitTailOf(problem, chosen, multiprocessors);
  KernelCall call;
  const bool isOther = !tail && (chosen.moreN || chosen.hintA != CacheHint::None || chosen.hintB != CacheHint::None ||
                                 chosen.clusterBlocks > 1);
  call.source = tail || isOther ? "hopper_gemm" : "gemm";
  call.kernel = tail ? "gemm_split_tail" : isOther ? "gemm_two_widths" : persistent ? "gemm" : "gemm_pointers";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  const int64_t items = tail ? tail->items() : tiles;
  const int64_t places = persistent ? std::min(items, placesOf(chosen, multiprocessors)) : items;
  call.grid = {static_cast<uint32_t>(places * chosen.clusterBlocks), 1, 1};
  call.arguments = {{"a_ptr", a},
                    {"b_ptr", b},
                    {"c_ptr", c},
                    {"M", problem.m},
                    {"N", problem.n},
                    {"K", problem.k},
                    {"stride_a", strides.a},
                    {"stride_b", strides.b},
                    {"stride_c", strides.c},
                    {"BLOCK_M", tile.blockM},
                    {"BLOCK_N", tile.blockN},
                    {"BLOCK_K", tile.blockK},
                    {"GROUP_M", tile.groupM},
                    {"B_TRANSPOSED", problem.order == MatrixOrder::Transposed},
                    {"PRECISION", std::string(toString(problem.precision))}};
  if (isOther)
    call.arguments.emplace_back("MORE_N", chosen.moreN);
  appendEpilogue(call, problem.epilogue, extras, problem.addsBias ? problem.n : 0);
  appendActivation(call, problem.epilogue);
  if (!tail && !isOther)
    return PreparedCall::create(kernels, rank, call);
  call.arguments.emplace_back("A_POLICY", policyOf(chosen.hintA));
  call.arguments.emplace_back("B_POLICY", policyOf(chosen.hintB));
  call.arguments.emplace_back("CLUSTER", chosen.clusterBlocks);
  if (!tail)
    return PreparedCall::create(kernels, rank, call);
  GemmWorkspace own;
  return prepareSplitTail(kernels, rank, std::move(call), *tail, tile, problem.dtype, workspace ? *workspace : own,
                          chosen.clusterBlocks);
}

} // namespace ditron::ops
