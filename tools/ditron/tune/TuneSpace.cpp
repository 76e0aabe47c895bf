//===- TuneSpace.cpp - The plans that are worth a trial -----------------------------------------------------------------===//
#include "tune/TuneSpace.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/moe/GroupedGemm.h"
#include "ditron/ops/plans/TensorParallelPlan.h"
#include "ditron/predict/ProductModel.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <tuple>

namespace ditron::tool {

namespace {

/// What the exchange of an operator on all ranks is.
Expected<ops::CollectiveKind> kindOf(std::string_view op) {
  return op == ops::rmsNormOperator ? ops::CollectiveKind::AllReduce : ops::parseCollectiveKind(op);
}

using ops::ceilDivide;
using ops::TensorParallelForm;
using ops::TensorParallelPlan;
using ops::TileConfig;

/// What stages may take of a multiprocessor's shared memory, where the epilogue's part is not known.
constexpr uint64_t otherSharedBytes = 16 << 10;

bool fitsSharedMemory(const TileConfig &tile, DataType dtype, const TuneMachine &machine) {
  const uint64_t bytes = uint64_t(tile.blockM + tile.blockN) * tile.blockK * sizeOf(dtype) * tile.numStages;
  return bytes + otherSharedBytes <= machine.gpu.sharedBytesPerBlock;
}

/// Tiles of products that are more than one launch.
std::vector<TileConfig> productTiles(DataType dtype, const TuneMachine &machine) {
  std::vector<TileConfig> tiles;
  const uint32_t elementBytes = sizeOf(dtype);
  // Rows of a tile in shared memory are one swizzle of 128 bytes; a simulated GPU takes half of that as well.
  const std::vector<uint32_t> depths =
      machine.target.simulated ? std::vector<uint32_t>{32, 64} : std::vector<uint32_t>{128 / elementBytes};
  const std::vector<uint32_t> sides =
      machine.target.simulated ? std::vector<uint32_t>{32, 64, 128} : std::vector<uint32_t>{64, 128, 256};
  const std::vector<uint32_t> groups =
      machine.target.simulated ? std::vector<uint32_t>{8} : std::vector<uint32_t>{4, 8, 16};
  for (const uint32_t blockM : sides)
    for (const uint32_t blockN : sides)
      for (const uint32_t blockK : depths)
        for (const uint32_t stages : {3u, 4u, 5u, 6u})
          for (const uint32_t group : groups) {
            if (blockM * blockN > 128 * 256)
              continue;
            TileConfig tile = {.blockM = blockM, .blockN = blockN, .blockK = blockK, .groupM = group};
            // A warpgroup multiplies 64 rows at a time; two share large tiles.
            tile.numWarps = blockM * blockN >= 128 * 128 ? 8 : 4;
            tile.numStages = stages;
            const bool isSimulatedMore = machine.target.simulated && stages > 3;
            if (!isSimulatedMore && fitsSharedMemory(tile, dtype, machine))
              tiles.push_back(tile);
          }
  return tiles;
}

ops::GroupedGemmProblem groupedProblem(const TuneProblem &problem) {
  ops::GroupedGemmProblem grouped;
  grouped.maxRows = problem.firstSize();
  grouped.experts = static_cast<uint32_t>(problem.experts);
  grouped.n = problem.n;
  grouped.k = problem.k;
  grouped.dtype = grouped.resultType = problem.dtype;
  grouped.slots = problem.isGathered() ? static_cast<uint32_t>(problem.topK) : 0;
  return grouped;
}

ops::AttentionProblem attentionProblem(const TuneProblem &problem) {
  ops::AttentionProblem attention;
  attention.batch = problem.batch;
  attention.heads = problem.heads;
  attention.kvHeads = problem.kvHeads;
  attention.queries = attention.keys = problem.queries;
  attention.headDim = problem.dim;
  attention.causal = problem.isCausal();
  attention.dtype = problem.dtype;
  return attention;
}

/// Tiles of products of few rows, which are one launch.
std::vector<ops::OneLaunchTile> oneLaunchTiles(int64_t rows, int64_t columns, int64_t depth, DataType dtype,
                                               const TuneMachine &machine) {
  std::vector<ops::OneLaunchTile> tiles;
  const auto blockM = static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_ceil(uint64_t(rows)), 16, 128));
  const uint32_t swizzle = 128 / sizeOf(dtype);
  for (const uint32_t blockN : {64u, 128u, 256u})
    for (const uint32_t blockK : {swizzle, 2 * swizzle})
      for (const uint32_t stages : {3u, 4u, 5u, 6u})
        for (const uint32_t splits : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u}) {
          ops::OneLaunchTile tile;
          tile.tile = {.blockM = blockM, .blockN = blockN, .blockK = blockK, .groupM = 1};
          tile.tile.numWarps = blockM * blockN >= 128 * 128 ? 8 : 4;
          tile.tile.numStages = stages;
          tile.splits = splits;
          const int64_t count = ceilDivide(rows, blockM) * ceilDivide(columns, blockN);
          const bool hasPlaces = splits == 1 || count * splits <= machine.gpu.multiprocessors;
          if (hasPlaces && count <= ops::mostOneLaunchTiles && blockM * blockN <= ops::mostOneLaunchTileElements &&
              splits <= std::max<int64_t>(depth / blockK, 1) && fitsSharedMemory(tile.tile, dtype, machine))
            tiles.push_back(tile);
        }
  return tiles;
}

/// The model.
class CallModel {
public:
  CallModel(const TuneProblem &problem, const TuneMachine &machine) : problem(problem), machine(machine) {}

  double gemm(const ops::GemmPlan &plan) const {
    TileConfig tile = plan.tile;
    tile.blockN = plan.columns();
    return launch() + product(tile, 0, 1) *
                          (plan.movement == ops::GemmMovement::Pointers && machine.target.hasTensorCopies() ? 2 : 1);
  }

  double grouped(const ops::GemmPlan &plan) const {
    // Each expert's last tile has fewer rows.
    const int64_t rows = ceilDivide(problem.firstSize(), problem.experts);
    const int64_t padded = ceilDivide(rows, plan.tile.blockM) * plan.tile.blockM * problem.experts;
    const bool isSlow = plan.movement == ops::GemmMovement::Pointers && machine.target.hasTensorCopies();
    return launch() + productOf(padded, plan.tile, 0, 1) * (isSlow ? 1.5 : 1);
  }

  double attention(const ops::AttentionPlan &plan) const {
    const double tiles = static_cast<double>(ceilDivide(problem.queries, plan.blockM) * problem.batch * problem.heads);
    const double waves = std::ceil(tiles / machine.gpu.multiprocessors);
    double time = predict::timeAttention(machine.model.gpu, attentionProblem(problem).flops(), problem.dtype);
    time *= waves * machine.gpu.multiprocessors / tiles;
    // K and V are read for each tile of rows; the softmax of a step begins and ends behind its products, unless many rows or keys have enough to do.
    time *= 1 + 16.0 / plan.blockM + 16.0 / plan.blockN + 0.1 / plan.numStages;
    return launch() +
           time * (plan.movement == ops::AttentionMovement::Pointers && machine.target.hasTensorCopies() ? 1.5 : 1);
  }

  double tensorParallel(const TensorParallelPlan &plan) const {
    const TileConfig tile = plan.tile.value_or(TileConfig());
    if (ops::isOneLaunch(plan.form))
      return oneLaunch(plan, tile);
    const double copies = copyEngine(exchangedBytes());
    if (plan.form == TensorParallelForm::TwoShot) {
      const uint32_t chunks = std::max(plan.chunks, 1u), exchange = exchangeBlocks(plan);
      const double work = product(tile, exchange, 1), fixed = (ranks() - 1) * chunks * copyFixed();
      // The last chunk is exchanged behind the product.
      return 3 * launch() + signal() + std::max(work, copies * (chunks - 1) / chunks + fixed) + 2 * copies / chunks;
    }
    if (plan.form == TensorParallelForm::Pushed) {
      const double chunks = std::max(plan.chunks, 1u), work = product(tile, 0, 1);
      const double fetched = problem.op == "gemm_ar" ? copies / chunks + (ranks() - 1) * copyFixed() : 0;
      // Parts go over the link while the product goes on; with one or two chunks the own tiles wait for the last of them.
      return (2 + chunks) * launch() + signal() + std::max(work, copies) + (chunks > 2 ? 0 : copies / (4 * chunks)) +
             fetched;
    }
    if (plan.form == TensorParallelForm::Unfused)
      return 2 * launch() + signal() + product(tile, 0, 1) + copies * (problem.op == "gemm_ar" ? 2 : 1);
    const bool gathers = problem.op == "ag_gemm";
    const double parts = gathers ? std::max(plan.chunks, 1u) : 1, work = product(tile, 0, 1);
    const double exchange = copies + (ranks() - 1) * parts * copyFixed();
    // Behind the last chunk of the last shard there is its product, or before the last segment's copy all of the product.
    const double uncovered = gathers ? work / (ranks() * parts) : copies / ranks();
    return 2 * launch() + signal() + std::max(work + (gathers ? 0 : uncovered), exchange + uncovered);
  }

  double collective(ops::CollectiveKind kind, const ops::CollectivePlan &plan) const {
    using Form = ops::CollectiveForm;
    const double bytes = static_cast<double>(problem.bytes), peers = ranks() - 1;
    const bool reduces = kind == ops::CollectiveKind::AllReduce;
    if (plan.form == Form::CopyEngine) // out of staging memory, and in between a kernel on both sides
      return 2 * launch() + signal() + peers * copyFixed() + copyEngine(bytes * peers);
    double sent = bytes * peers, waits = 1;
    if (plan.form == Form::Packets) {
      sent *= 2; // as many bytes of flags
    } else if (plan.form == Form::TwoShotPackets) {
      sent = 2 * 2 * bytes * peers / ranks();
      waits = 2;
    } else if (plan.form == Form::OneShotMultimem) {
      sent = bytes; // that the switch reads from each rank
    } else if (plan.form == Form::Multimem) {
      sent = reduces ? 2 * bytes / ranks() : bytes; // that the switch multiplies
      waits = reduces ? 2 : 1;
    } else if (reduces) {
      sent = 2 * bytes * peers / ranks();
      waits = 2;
    }
    if (plan.form == Form::Ring) {
      waits *= peers; // from rank to rank
      if (kind == ops::CollectiveKind::Broadcast)
        sent = bytes;
    }
    double time = launch() + waits * signal();
    if (ops::hasChunks(plan.form)) {
      // Each chunk of a block is a flight; rings of slots have several on their way.
      const double part = reduces ? bytes / ranks() : bytes;
      time += signal() * std::max(0.0, std::ceil(part / (double(plan.blocks) * plan.chunkBytes)) / 4);
    }
    // Blocks that do not find a place at once wait for others.
    const double places = machine.gpu.multiprocessors;
    const double blocks = std::min(double(plan.blocks), places);
    const double full = std::max(1u, machine.model.node.smsForFullLink);
    const double share = std::min(1.0, blocks * std::min(plan.numWarps / 16.0, 1.0) / full);
    return time + sent / (linkBytesPerUs() * machine.model.node.smLinkEfficiency * share) + 0.002 * plan.blocks;
  }

private:
  double ranks() const { return problem.ranks; }
  double launch() const { return machine.model.gpu.kernelLaunchUs; }
  double signal() const { return machine.model.node.signalUs; }
  double copyFixed() const { return machine.model.copyEngine.signalUs; }
  double linkBytesPerUs() const { return machine.model.node.linkGbPerS * 1e3; }
  double copyEngine(double bytes) const {
    return bytes / (linkBytesPerUs() * machine.model.copyEngine.linkEfficiency) + machine.model.copyEngine.fixedUs;
  }
  uint32_t exchangeBlocks(const TensorParallelPlan &plan) const {
    if (plan.chunks <= 1)
      return 0;
    const uint32_t all = machine.gpu.multiprocessors;
    return std::min(plan.exchangeBlocks ? plan.exchangeBlocks : std::max(1u, all / 11), all / 2);
  }
  /// Of a rank, to or from all others; of GEMM+AllReduce in each of its two steps.
  double exchangedBytes() const {
    const double elements =
        problem.op == "ag_gemm" ? double(problem.m) * double(problem.k) : double(problem.m) * double(problem.n);
    return elements * sizeOf(problem.dtype) * (ranks() - 1) / ranks();
  }

  /// Of a rank, on the multiprocessors that are left.
  double product(const TileConfig &tile, uint32_t takenMultiprocessors, uint32_t splits) const {
    return productOf(problem.m, tile, takenMultiprocessors, splits);
  }
  double productOf(int64_t rows, const TileConfig &tile, uint32_t takenMultiprocessors, uint32_t splits) const {
    predict::GpuDescription gpu = machine.model.gpu;
    gpu.smCount -= std::min(takenMultiprocessors, gpu.smCount - 1);
    const predict::Product own = {
        .m = rows, .n = problem.ownColumns(), .k = problem.ownDepth(), .dtype = problem.dtype};
    double time = predict::timeProduct(gpu, own, tile, splits).totalUs();
    // Fewer stages leave gaps in the stream of operands, and 64 columns or rows a half of the tensor core's rate.
    const uint64_t inFlight =
        uint64_t(tile.blockM + tile.blockN) * tile.blockK * sizeOf(problem.dtype) * (tile.numStages - 1);
    time *= 1 + 0.1 * std::max(0.0, 1 - double(inFlight) / (64 << 10));
    return time;
  }

  double oneLaunch(const TensorParallelPlan &plan, const TileConfig &tile) const {
    const double bytes = exchangedBytes();
    const bool everywhere = plan.form == TensorParallelForm::OneShot;
    const double sent = everywhere                                      ? bytes * ranks()
                        : plan.form == TensorParallelForm::FusedTwoShot ? 2 * bytes
                                                                        : bytes;
    const double waits = plan.form == TensorParallelForm::FusedTwoShot ? 2 : 1;
    const double exchange = sent / (linkBytesPerUs() * machine.model.node.smLinkEfficiency);
    return launch() + waits * signal() + product(tile, 0, plan.splits) + exchange + 0.5 * (plan.splits - 1);
  }

  const TuneProblem &problem;
  const TuneMachine &machine;
};

Expected<double> predict(const TuneProblem &problem, const TuneMachine &machine, const std::string &text) {
  const CallModel model(problem, machine);
  if (problem.op == "gemm") {
    DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan plan, ops::parseGemmPlan(text, {}));
    return model.gemm(plan);
  }
  if (problem.isGrouped()) {
    DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan plan, ops::parseGemmPlan(text, {}));
    return model.grouped(plan);
  }
  if (problem.isAttention()) {
    DITRON_ASSIGN_OR_RETURN(const ops::AttentionPlan plan, ops::parseAttentionPlan(text));
    return model.attention(plan);
  }
  if (problem.isCollective()) {
    DITRON_ASSIGN_OR_RETURN(const ops::CollectiveKind kind, kindOf(problem.op));
    DITRON_ASSIGN_OR_RETURN(const ops::CollectivePlan plan, ops::parseCollectivePlan(text));
    return model.collective(kind, plan);
  }
  DITRON_ASSIGN_OR_RETURN(const TensorParallelPlan plan, ops::parseTensorParallelPlan(problem.op, text));
  return model.tensorParallel(plan);
}

std::vector<std::string> gemmPlans(const TuneProblem &problem, const TuneMachine &machine) {
  std::vector<std::string> plans;
  const ops::GemmProblem gemm = {.m = problem.m, .n = problem.n, .k = problem.k, .dtype = problem.dtype};
  for (const ops::GemmMovement movement : {ops::GemmMovement::Descriptors, ops::GemmMovement::Pointers}) {
    if (movement == ops::GemmMovement::Descriptors && !machine.target.hasTensorCopies())
      continue;
    for (const TileConfig &tile : productTiles(problem.dtype, machine))
      if (const ops::GemmPlan plan = {movement, tile}; ops::verifyGemm(gemm, plan).isOk())
        plans.push_back(plan.text());
  }
  // Those of the library, which may be more than a tile.
  for (const ops::GemmPlan &plan : ops::rankGemmPlans(gemm, machine.target.text, machine.gpu.multiprocessors))
    if (ops::verifyGemm(gemm, plan).isOk())
      plans.push_back(plan.text());
  return plans;
}

std::vector<std::string> groupedPlans(const TuneProblem &problem, const TuneMachine &machine) {
  std::vector<std::string> plans;
  const ops::GroupedGemmProblem grouped = groupedProblem(problem);
  const int64_t rows = ceilDivide(grouped.maxRows, problem.experts);
  for (const ops::GemmMovement movement : {ops::GemmMovement::Descriptors, ops::GemmMovement::Pointers}) {
    if (movement == ops::GemmMovement::Descriptors && !machine.target.hasTensorCopies())
      continue;
    for (TileConfig tile : productTiles(problem.dtype, machine)) {
      // Tiles are those of an expert, in the order of the experts; most rows of tall ones would be nobody's.
      tile.groupM = 1;
      if (tile.blockM > 128 || (tile.blockM > 64 && tile.blockM > 4 * rows))
        continue;
      if (const ops::GemmPlan plan = {movement, tile}; ops::verifyGroupedGemm(grouped, plan).isOk())
        plans.push_back(plan.text());
    }
  }
  return plans;
}

std::vector<std::string> attentionPlans(const TuneProblem &problem, const TuneMachine &machine) {
  std::vector<std::string> plans;
  const bool isSmall = machine.target.simulated;
  for (const uint32_t blockM : isSmall ? std::vector<uint32_t>{32, 64, 128} : std::vector<uint32_t>{64, 128, 256})
    for (const uint32_t blockN : {16u, 32u, 64u, 128u})
      for (const uint32_t warps : {4u, 8u, 16u})
        for (const uint32_t stages : {2u, 3u, 4u})
          for (const ops::AttentionMovement movement :
               {ops::AttentionMovement::Descriptors, ops::AttentionMovement::Pointers}) {
            if (movement == ops::AttentionMovement::Descriptors && !machine.target.hasTensorCopies())
              continue;
            // Q, and K and V of each stage; sums and scores in at most 192 registers of a thread.
            const uint64_t dim = std::bit_ceil(static_cast<uint64_t>(problem.dim));
            const uint64_t bytes = (blockM + uint64_t(2) * stages * blockN) * dim * sizeOf(problem.dtype);
            const uint64_t registers = blockM * (dim + blockN) / (warps * machine.gpu.warpSize);
            const bool isWarpRows = blockM >= 16 * warps; // a warp has 16 rows at least
            if (bytes + otherSharedBytes > machine.gpu.sharedBytesPerBlock || registers > 192 || !isWarpRows)
              continue;
            plans.push_back(ops::AttentionPlan{blockM, blockN, warps, stages, movement}.text());
          }
  return plans;
}

std::vector<std::string> tensorParallelPlans(const TuneProblem &problem, const TuneMachine &machine) {
  std::vector<std::string> plans;
  const bool gathers = problem.op == "ag_gemm", reduces = problem.op == "gemm_ar";
  const auto add = [&](const TensorParallelPlan &plan) { plans.push_back(plan.text()); };
  const std::vector<TileConfig> tiles = productTiles(problem.dtype, machine);
  uint32_t smallest = std::numeric_limits<uint32_t>::max();
  for (const TileConfig &tile : tiles)
    smallest = std::min(smallest, tile.blockM);
  for (const TileConfig &tile : tiles) {
    if (problem.m <= tile.blockM / 2 && tile.blockM > smallest)
      continue; // a smaller tile has all rows
    add({.form = TensorParallelForm::Unfused, .tile = tile});
    const auto hasRows = [&](uint32_t chunks, uint32_t parts) {
      return chunks == 1 || problem.m / (parts * chunks) >= tile.blockM;
    };
    if (!reduces)
      for (const uint32_t chunks : gathers ? std::vector<uint32_t>{1, 2, 4} : std::vector<uint32_t>{0})
        if (chunks == 0 || hasRows(chunks, problem.ranks))
          add({.form = TensorParallelForm::Overlapped, .tile = tile, .chunks = chunks});
    if (!gathers)
      for (const uint32_t chunks : {1u, 2u, 4u, 8u})
        if (hasRows(chunks, problem.ranks))
          add({.form = TensorParallelForm::Pushed, .tile = tile, .chunks = chunks});
    if (reduces)
      for (const uint32_t chunks : {1u, 2u, 4u, 8u, 16u})
        for (const uint32_t exchange :
             chunks == 1 ? std::vector<uint32_t>{0}
                         : std::vector<uint32_t>{0, machine.gpu.multiprocessors / 16, machine.gpu.multiprocessors / 6})
          if (hasRows(chunks, 1))
            add({.form = TensorParallelForm::TwoShot, .tile = tile, .chunks = chunks, .exchangeBlocks = exchange});
  }
  const int64_t mostRows = reduces ? ops::OneLaunch::mostRows : 128;
  if (problem.m <= mostRows)
    for (const ops::OneLaunchTile &tile :
         oneLaunchTiles(problem.m, problem.ownColumns(), problem.ownDepth(), problem.dtype, machine))
      for (const TensorParallelForm form :
           reduces ? std::vector{TensorParallelForm::OneShot, TensorParallelForm::FusedTwoShot}
                   : std::vector{TensorParallelForm::OneLaunch})
        add({.form = form, .tile = tile.tile, .splits = tile.splits});
  return plans;
}

/// Whether GPUs like this one have what a form needs.
bool hasForm(ops::CollectiveKind kind, ops::CollectiveForm form, const TuneMachine &machine, DataType dtype) {
  const bool isMulticast = form == ops::CollectiveForm::Multimem || form == ops::CollectiveForm::OneShotMultimem;
  if (form == ops::CollectiveForm::TensorCopies)
    return machine.target.hasTensorCopies();
  // The runtime maps no multicast memory on real GPUs.
  const bool isAdded = dtype == DataType::BF16 || dtype == DataType::F16 || dtype == DataType::F32;
  return !isMulticast || (machine.target.simulated && machine.target.hasTensorCopies() &&
                          (isAdded || kind == ops::CollectiveKind::AllGather));
}

std::vector<std::string> collectivePlans(ops::CollectiveKind kind, const TuneProblem &problem,
                                         const TuneMachine &machine) {
  std::vector<std::string> plans;
  std::vector<uint32_t> blocks = {1, 2, 4, 8, 16, 32, 64};
  for (const uint32_t times : {1u, 2u})
    blocks.push_back(machine.gpu.multiprocessors * times);
  for (const ops::CollectiveForm form : ops::formsOf(kind)) {
    if (!hasForm(kind, form, machine, problem.dtype))
      continue;
    for (const uint32_t count : blocks)
      for (const uint32_t warps : {4u, 8u, 16u, 32u})
        for (const uint32_t chunk : {1024u, 2048u, 4096u, 8192u, 16384u, 32768u}) {
          const bool isChunks = ops::hasChunks(form);
          const ops::CollectivePlan plan = {form, count, warps, isChunks ? chunk : 0};
          const Status isFit =
              problem.isRmsNorm() ? verifyPlanOf(problem.op, plan, problem.ranks) : plan.verify(kind, problem.ranks);
          if ((isChunks || chunk == 1024) && isFit.isOk())
            plans.push_back(plan.text());
        }
  }
  return plans;
}

/// What the tables, or the library's models, say now.
Expected<std::string> libraryPlan(const TuneProblem &problem, const TuneMachine &machine) {
  DITRON_ASSIGN_OR_RETURN(const ops::PlanChoice choice,
                          ops::PlanChoice::create({problem.op, machine.gpu.name, problem.ranks, problem.dtype}));
  if (const ops::PlanRow *row = choice.find(problem.sizes()))
    return canonicalPlan(problem.op, row->plan);
  if (problem.isGrouped())
    return ops::chooseGroupedGemmPlan(groupedProblem(problem), machine.target.text).text();
  if (problem.isAttention())
    return ops::chooseAttentionPlan(attentionProblem(problem), machine.target.text).text();
  if (problem.op == "gemm")
    return ops::chooseGemmPlan({.m = problem.m, .n = problem.n, .k = problem.k, .dtype = problem.dtype},
                               machine.target.text, machine.gpu.multiprocessors)
        .text();
  return std::string(problem.op == "gemm_ar" ? "unfused" : "overlapped");
}

} // namespace

int64_t TuneProblem::ownColumns() const { return op == "ag_gemm" ? ceilDivide(n, ranks) : n; }
int64_t TuneProblem::ownDepth() const { return op == "gemm_rs" || op == "gemm_ar" ? ceilDivide(k, ranks) : k; }
int64_t TuneProblem::firstSize() const {
  return isCollective() ? bytes : isAttention() ? queries : isGrouped() ? m * topK : m;
}
ops::PlanSizes TuneProblem::sizes() const {
  if (isRmsNorm())
    return {{"bytes", bytes}, {"columns", columns}};
  if (isCollective())
    return {{"bytes", bytes}};
  if (isAttention())
    return {{"queries", queries}, {"dim", dim}, {"heads", batch * heads}};
  ops::PlanSizes product = {{"m", firstSize()}, {"n", ownColumns()}, {"k", ownDepth()}};
  if (isGrouped())
    product.emplace_back("experts", experts);
  return product;
}
std::string TuneProblem::text() const {
  if (isGrouped())
    return fmt::format("tokens {} n {} k {} experts {} top {}", m, n, k, experts, topK);
  if (isAttention())
    return fmt::format("queries {} batch {} heads {} on {} dim {}", queries, batch, heads, kvHeads, dim);
  if (isRmsNorm())
    return fmt::format("rows {} columns {}", rowsOfNorm(), columns);
  return isCollective() ? fmt::format("bytes {}", bytes) : fmt::format("m {} n {} k {}", m, n, k);
}

Expected<TuneMachine> tuneMachine(const TargetName &target, const runtime::DeviceAttributes &gpu) {
  const char *name = "h100x8";
  for (const auto &[part, file] : {std::pair("H200", "h200x8"), std::pair("H800", "h800x8"), std::pair("H20", "h20x8"),
                                   std::pair("L20", "l20x8"), std::pair("MI308X", "mi308xx8")})
    if (gpu.name.find(part) != std::string::npos) {
      name = file;
      break;
    }
  TuneMachine machine{target, gpu, {}};
  DITRON_ASSIGN_OR_RETURN(machine.model, predict::readMachine(name));
  machine.model.gpu.smCount = std::max(gpu.multiprocessors, 1u);
  return machine;
}

Expected<std::string> canonicalPlan(const std::string &op, const std::string &text) {
  if (op == "attention" || op == "causal_attention") {
    DITRON_ASSIGN_OR_RETURN(const ops::AttentionPlan plan, ops::parseAttentionPlan(text));
    return plan.text();
  }
  if (op == "gemm" || op == "grouped_gemm" || op == "gathered_gemm") {
    DITRON_ASSIGN_OR_RETURN(const ops::GemmPlan plan, ops::parseGemmPlan(text, {}));
    return plan.text();
  }
  if (kindOf(op).isOk()) {
    DITRON_ASSIGN_OR_RETURN(const ops::CollectivePlan plan, ops::parseCollectivePlan(text));
    return plan.text();
  }
  DITRON_ASSIGN_OR_RETURN(const TensorParallelPlan plan, ops::parseTensorParallelPlan(op, text));
  return plan.text();
}

Expected<double> predictedMicroseconds(const TuneProblem &problem, const TuneMachine &machine,
                                       const std::string &plan) {
  return predict(problem, machine, plan);
}

Expected<std::vector<Candidate>> candidatesFor(const TuneProblem &problem, const TuneMachine &machine, size_t most) {
  std::vector<std::string> plans;
  if (problem.op == "gemm") {
    plans = gemmPlans(problem, machine);
  } else if (problem.isGrouped()) {
    plans = groupedPlans(problem, machine);
  } else if (problem.isAttention()) {
    plans = attentionPlans(problem, machine);
  } else if (problem.isCollective()) {
    DITRON_ASSIGN_OR_RETURN(const ops::CollectiveKind kind, kindOf(problem.op));
    plans = collectivePlans(kind, problem, machine);
  } else {
    plans = tensorParallelPlans(problem, machine);
  }
  DITRON_ASSIGN_OR_RETURN(const std::string now, libraryPlan(problem, machine));
  DITRON_ASSIGN_OR_RETURN(const double nowPredicted, predict(problem, machine, now));
  std::ranges::sort(plans);
  plans.erase(std::ranges::unique(plans).begin(), plans.end());
  std::vector<Candidate> candidates;
  for (const std::string &plan : plans) {
    if (plan == now)
      continue;
    DITRON_ASSIGN_OR_RETURN(const double predicted, predict(problem, machine, plan));
    candidates.push_back({plan, predicted});
  }
  std::ranges::sort(candidates, {},
                    [](const Candidate &each) { return std::tie(each.predictedMicroseconds, each.plan); });
  // Many plans differ in what the model knows little of: each form keeps its best, so that none is left out by the model alone.
  std::vector<Candidate> chosen = {{now, nowPredicted}};
  std::map<std::string, size_t> ofForm;
  for (const Candidate &each : candidates)
    ofForm.try_emplace(each.plan.substr(0, each.plan.find(' ')), 0);
  const size_t share = ofForm.empty() ? 0 : std::max<size_t>((most - 1) / (2 * ofForm.size()), 1);
  std::vector<Candidate> rest;
  for (const Candidate &each : candidates) {
    size_t &taken = ofForm[each.plan.substr(0, each.plan.find(' '))];
    if (taken < share && chosen.size() < most) {
      ++taken;
      chosen.push_back(each);
    } else {
      rest.push_back(each);
    }
  }
  for (const Candidate &each : rest)
    if (chosen.size() < most)
      chosen.push_back(each);
  std::ranges::sort(chosen.begin() + 1, chosen.end(), {},
                    [](const Candidate &each) { return std::tie(each.predictedMicroseconds, each.plan); });
  return chosen;
}

} // namespace ditron::tool
