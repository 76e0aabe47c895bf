//===- Gemm.cpp - C = A * B on one GPU ------------------------------------------------------------------------------------===//
//
// The choice of a plan is a small model of a GPU that computes tiles in waves:
//
//   time = waves * (time of a tile's main loop + what of its beginning and end is not hidden)
//   waves = ceil(tiles / blocks that run at once)
//
// A tile's main loop runs at the peak rate of a multiprocessor times the efficiency of the tile's form, which falls with
// the ratio of bytes moved through shared memory to operations. The rest is constant per tile. Peak rate and clock drop out
// of the comparison, so only ratios are in the table.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/Gemm.h"

#include "ditron/support/TargetName.h"

#include <algorithm>
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
  /// What is lost of products of many waves with K = 14336, less in proportion with 7168 to that: blocks drift apart in K, and fetch
  /// from memory what others have had in the L2 cache. Small tiles fetch more.
  double lostWhenDeep = 0;
};

constexpr TileConfig tile(uint32_t m, uint32_t n, uint32_t k, uint32_t groupM, uint32_t warps, uint32_t stages) {
  return {.blockM = m, .blockN = n, .blockK = k, .groupM = groupM, .numWarps = warps, .numStages = stages};
}

/// GPUs with TMA and wgmma, 16-bit operands. Measured on an H200 (docs/bench.md): the power limit makes large tiles almost equally
/// fast, and small ones waste less at the end; with deep K on an H100.
const TileForm hopperForms[] = {
    {{GemmMovement::Descriptors, tile(128, 128, 64, 8, 8, 5)}, 0.99, 1, 1, 0.08},
    {{GemmMovement::Descriptors, tile(128, 256, 64, 4, 8, 3)}, 1.00, 4, 1, 0.02},
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
/// The same with fp32 operands as tf32, which warpgroups read along K only. Not measured yet: the efficiencies are those of as many
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
/// 8-bit operands: twice as many elements fit. Sums of fp8 are promoted to fp32 every 128 products, in as many registers again, so that
/// tiles of 256 columns have no room. Not measured: the ratios of the 16-bit forms.
const TileForm hopperNarrowForms[] = {
    {{GemmMovement::Descriptors, tile(128, 128, 128, 8, 8, 5)}, 0.99, 1, 1},
    {{GemmMovement::Descriptors, tile(64, 128, 128, 16, 4, 6)}, 0.70, 2, 1},
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

double predictedSteps(const GemmProblem &problem, const TileForm &form, uint32_t multiprocessors) {
  const TileConfig &tile = form.plan.tile;
  const int64_t tiles = ceilDivide(problem.m, tile.blockM) * ceilDivide(problem.n, tile.blockN);
  const int64_t slots = int64_t(std::max(multiprocessors, 1u)) * form.blocksPerMultiprocessor;
  const double steps = static_cast<double>(ceilDivide(problem.k, tile.blockK)) * tile.blockM * tile.blockN *
                       tile.blockK / (128.0 * 128 * 64);
  const double waves = static_cast<double>(ceilDivide(tiles, slots));
  constexpr double deep = 7168, manyWaves = 31;
  const double lost = std::clamp(form.lostWhenDeep * (static_cast<double>(problem.k) / deep - 1), 0.0, 2 * form.lostWhenDeep) *
                      std::min(waves / manyWaves, 1.0);
  // Blocks that share a multiprocessor share its rate.
  return waves * form.blocksPerMultiprocessor * (steps / (form.efficiency - lost) + form.fixedSteps);
}

} // namespace

std::string_view toString(GemmMovement movement) {
  return movement == GemmMovement::Descriptors ? "descriptors" : "pointers";
}

std::string GemmPlan::text() const {
  return fmt::format("{} {}x{}x{} warps {} stages {} group {}", toString(movement), tile.blockM, tile.blockN,
                     tile.blockK, tile.numWarps, tile.numStages, tile.groupM);
}

Expected<GemmPlan> parseGemmPlan(std::string_view text, GemmPlan defaults) {
  auto wrong = [&](std::string_view word) {
    return invalidArgument(fmt::format("plan '{}': '{}' is not understood; a plan is written like '{}'", text, word,
                                       GemmPlan().text()));
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
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "descriptors" || word == "pointers") {
      plan.movement = word == "pointers" ? GemmMovement::Pointers : GemmMovement::Descriptors;
    } else if (word == "warps" || word == "stages" || word == "group") {
      uint32_t &value = word == "warps"    ? plan.tile.numWarps
                        : word == "stages" ? plan.tile.numStages
                                           : plan.tile.groupM;
      if (i + 1 == words.size() || !number(words[i + 1], value))
        return wrong(word);
      ++i;
    } else {
      const size_t first = word.find('x'), second = word.find('x', first + 1);
      if (first == word.npos || second == word.npos || !number(word.substr(0, first), plan.tile.blockM) ||
          !number(word.substr(first + 1, second - first - 1), plan.tile.blockN) ||
          !number(word.substr(second + 1), plan.tile.blockK))
        return wrong(word);
    }
  }
  DITRON_RETURN_IF_ERROR(plan.tile.verify().withContext(fmt::format("plan '{}'", text)));
  return plan;
}

std::vector<GemmPlan> rankGemmPlans(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors) {
  Expected<TargetName> name = parseTargetName(target);
  const bool simulated = !name.isOk() || name->simulated;
  // fp32 goes to the multiply by tensor copies, which round it to tf32, or through registers.
  const bool isTf32 = problem.dtype == DataType::F32 && problem.precision == MultiplyPrecision::Tf32;
  const bool tensorCopies = name.isOk() && name->architecture.starts_with("sm_90") && allowsDescriptors(problem) &&
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
  std::ranges::stable_sort(forms, {}, [&](const TileForm &form) { return predictedSteps(problem, form, multiprocessors); });
  std::vector<GemmPlan> plans;
  for (const TileForm &form : forms)
    plans.push_back(form.plan);
  return plans;
}

bool allowsDescriptors(const GemmProblem &problem) { return rowsAreAligned(problem) && isReadAlongDepth(problem); }

GemmPlan chooseGemmPlan(const GemmProblem &problem, std::string_view target, uint32_t multiprocessors) {
  return rankGemmPlans(problem, target, multiprocessors).front();
}

TileConfig chooseTile(const GemmProblem &problem, runtime::World &world) {
  const runtime::Rank &rank = world.rank(world.localRanks().front());
  return chooseGemmPlan(problem, world.target(), rank.attributes().multiprocessors).tile;
}

Status verifyGemm(const GemmProblem &problem, const GemmPlan &plan) {
  DITRON_RETURN_IF_ERROR(
      verifyEpilogue(operation, problem.dtype, problem.typeOfResult(), problem.epilogue, /*reduces=*/false));
  DITRON_RETURN_IF_ERROR(plan.tile.verify().withContext(operation));
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, problem.dtype, plan.tile));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, problem.m, problem.n, problem.k, plan.tile));
  DITRON_RETURN_IF_ERROR(verifyEpilogueShape(operation, problem.dtype, problem.epilogue, problem.n, problem.k));
  DITRON_ASSIGN_OR_RETURN(
      const RowStrides strides,
      completeStrides(operation, problem.strides, problem.k, columnsOfB(problem), columnsOfC(problem)));
  DITRON_RETURN_IF_ERROR(verifySpans(operation, strides, plan.tile));
  if (plan.movement == GemmMovement::Descriptors && !rowsAreAligned(problem))
    return unsupported(fmt::format("{}: descriptors need rows that are a multiple of 16 bytes apart; N={} and K={} of {} "
                                   "are not; choose pointers",
                                   operation, problem.n, problem.k, ditron::toString(problem.dtype)));
  return Status::ok();
}

Expected<PreparedCall> prepareGemm(runtime::KernelProvider &kernels, runtime::Rank &rank, const GemmProblem &problem, runtime::Pointer a,
                                   runtime::Pointer b, runtime::Pointer c, const std::optional<GemmPlan> &plan,
                                   const EpilogueOperands &extras) {
  const uint32_t multiprocessors = rank.attributes().multiprocessors;
  const GemmPlan chosen = plan ? *plan : chooseGemmPlan(problem, rank.world().target(), multiprocessors);
  const TileConfig &tile = chosen.tile;
  DITRON_RETURN_IF_ERROR(verifyGemm(problem, chosen));
  for (auto [name, pointer, type] : {std::tuple("a", a, problem.dtype), std::tuple("b", b, problem.dtype),
                                     std::tuple("c", c, problem.typeOfResult())})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  DITRON_RETURN_IF_ERROR(verifyEpilogueOperands(operation, problem.epilogue, extras));
  DITRON_ASSIGN_OR_RETURN(
      const RowStrides strides,
      completeStrides(operation, problem.strides, problem.k, columnsOfB(problem), columnsOfC(problem)));
  const int64_t tiles = ceilDivide(problem.m, tile.blockM) * ceilDivide(problem.n, tile.blockN);
  const bool persistent = chosen.movement == GemmMovement::Descriptors;
  KernelCall call;
  call.source = "gemm";
  call.kernel = persistent ? "gemm" : "gemm_pointers";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {static_cast<uint32_t>(persistent ? std::min<int64_t>(tiles, multiprocessors) : tiles), 1, 1};
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
  appendEpilogue(call, problem.epilogue, extras, problem.addsBias ? problem.n : 0);
  appendActivation(call, problem.epilogue);
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
