//===- GroupedGemm.cpp - Rows of several experts, each times the weights of its own ----------------------------------------===//
#include "ditron/ops/moe/GroupedGemm.h"

#include "ditron/ops/moe/Routing.h"
#include "ditron/ops/plans/PlanTable.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "GroupedGemm";
/// Elements of a block that has one scale.
constexpr uint32_t scaled = 128;

/// Blocks of the form without an own warp that fetches that a multiprocessor of a GPU has room for. A block that finds none would begin its
/// tiles, of which some are early ones, behind the last of the others.
int64_t residentBlocks(const GroupedGemmProblem &problem, const TileConfig &tile) {
  constexpr int64_t sharedBytes = 227 * 1024, mostWarps = 4; // their sums fill half of the registers
  const int64_t blockBytes = static_cast<int64_t>(tile.numStages) * (tile.blockM + tile.blockN) * tile.blockK *
                             static_cast<int64_t>(sizeOf(problem.dtype));
  return tile.numWarps > mostWarps ? 1 : std::clamp<int64_t>(sharedBytes / blockBytes, 1, 2);
}

/// Whether tiles can be moved by descriptors.
Status verifyDescriptors(const GroupedGemmProblem &problem, const TileConfig &tile) {
  const int64_t elements = 16 / static_cast<int64_t>(sizeOf(problem.dtype));
  // Copies of 16 bytes, as the kernel's specialisation proves them.
  if (problem.slots > 0 && (problem.blockScales || problem.k % 16 != 0))
    return unsupported(fmt::format(
        "{}: rows that are gathered by the form with descriptors need a K that is a multiple of 16 and no block "
        "scales; K={}; choose pointers",
        operation, problem.k));
  if (problem.blockScales && problem.order != MatrixOrder::Transposed)
    return unsupported(fmt::format("{}: block scales by descriptors need weights [experts, N, K], as the tensor cores "
                                   "read 8-bit operands; choose pointers",
                                   operation));
  if (problem.k % elements != 0 || problem.n % elements != 0)
    return unsupported(fmt::format("{}: descriptors need N and K that are multiples of {}; N={}, K={}; choose pointers",
                                   operation, elements, problem.n, problem.k));
  // A step beyond K would meet the next expert's weights.
  if (problem.order == MatrixOrder::Plain && problem.k % tile.blockK != 0)
    return unsupported(
        fmt::format("{}: weights [experts, K, N] by descriptors need a K that is a multiple of {} (blockK); "
                    "K={}; choose pointers",
                    operation, tile.blockK, problem.k));
  return Status::ok();
}

} // namespace

Status verifyGroupedGemm(const GroupedGemmProblem &problem, const GemmPlan &plan) {
  if (problem.experts == 0 || problem.experts > mostExperts)
    return invalidArgument(
        fmt::format("{}: {} experts; 1 to {} are accepted", operation, problem.experts, mostExperts));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, problem.resultType));
  if (!problem.blockScales)
    DITRON_RETURN_IF_ERROR(verifyOperandType(operation, problem.dtype));
  else if (problem.dtype != DataType::F8E4NV)
    return invalidArgument(fmt::format("{}: operands with block scales are {}, not {}", operation,
                                       toString(DataType::F8E4NV), toString(problem.dtype)));
  DITRON_RETURN_IF_ERROR(plan.tile.verify().withContext(operation));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, problem.maxRows, problem.n, problem.k, plan.tile));
  constexpr int64_t mostWeightRows = std::numeric_limits<int32_t>::max();
  if (problem.experts * std::max(problem.n, problem.k) > mostWeightRows)
    return invalidArgument(fmt::format("{}: {} experts of N={}, K={} have more than {} rows of weights", operation,
                                       problem.experts, problem.n, problem.k, mostWeightRows));
  if (problem.activation == Activation::SwiGlu && problem.n % 2 != 0)
    return invalidArgument(fmt::format("{}: swiglu needs pairs of columns; N={}", operation, problem.n));
  if (problem.blockScales && scaled % plan.tile.blockK != 0)
    return invalidArgument(fmt::format("{}: with scales of blocks of {}, blockK divides that; it is {}", operation,
                                       scaled, plan.tile.blockK));
  return plan.movement == GemmMovement::Descriptors ? verifyDescriptors(problem, plan.tile) : Status::ok();
}

GemmPlan chooseGroupedGemmPlan(const GroupedGemmProblem &problem, std::string_view target) {
  const Expected<TargetName> name = parseTargetName(target);
  const bool simulated = !name.isOk() || name->simulated;
  const bool hopper = hasTensorCopies(target);
  const int64_t rows = ceilDivide(std::max<int64_t>(problem.maxRows, 1), std::max(problem.experts, 1u));
  GemmPlan plan;
  plan.tile.blockK = simulated ? 32 : sizeOf(problem.dtype) == 1 ? scaled : 64; // of fp8 a block of scales
  // As many rows as an expert has, so that few are multiplied in vain; warpgroups multiply 64 at least. Measured on H100: with 64 of an expert, which
  // routing makes more of some and less of others, 128 are better.
  constexpr int64_t manyRows = 48;
  const uint32_t least = hopper ? 64 : 16, most = simulated ? 64 : 128;
  plan.tile.blockM =
      rows >= manyRows ? most : std::clamp<uint32_t>(std::bit_ceil(static_cast<uint64_t>(rows)), least, most);
  // Wide tiles read less of A for each multiply, where they do not compute many columns that are not there.
  const int64_t wide = ceilDivide(problem.n, 256) * 256, narrow = ceilDivide(problem.n, 128) * 128;
  const bool isWide =
      hopper && !simulated && plan.tile.blockM == 128 && sizeOf(problem.dtype) == 2 && wide * 10 <= narrow * 11;
  plan.tile.blockN = simulated ? 64 : isWide ? 256 : 128;
  plan.tile.numWarps = hopper && plan.tile.blockM == 128 ? 8 : 4;
  plan.tile.numStages = simulated ? 2 : isWide ? 3 : 4;
  plan.movement = GemmMovement::Descriptors;
  if (!hopper || sizeOf(problem.dtype) > 2 || !verifyDescriptors(problem, plan.tile).isOk()) {
    plan.movement = GemmMovement::Pointers;
    // Nobody fetches ahead over the end of a tile: two blocks of a multiprocessor fill each other's gaps.
    if (hopper && !simulated && plan.tile.blockM == 128 && sizeOf(problem.dtype) == 2) {
      plan.tile.blockN = 128;
      plan.tile.numWarps = 4;
      plan.tile.numStages = 3;
    }
  }
  return plan;
}

Expected<GemmPlan> libraryGroupedGemmPlan(const GroupedGemmProblem &problem, runtime::World &world,
                                          std::string_view gpu) {
  const GemmPlan chosen = chooseGroupedGemmPlan(problem, world.target());
  DITRON_ASSIGN_OR_RETURN(
      const PlanChoice tables,
      PlanChoice::ofOneGpu(world, problem.slots > 0 ? "gathered_gemm" : "grouped_gemm", problem.dtype, gpu));
  const PlanRow *row =
      tables.find({{"m", problem.maxRows}, {"n", problem.n}, {"k", problem.k}, {"experts", problem.experts}});
  if (!row)
    return chosen;
  DITRON_ASSIGN_OR_RETURN(const GemmPlan plan, parseGemmPlan(row->plan, chosen));
  return verifyGroupedGemm(problem, plan).isOk() ? plan : chosen;
}

Expected<PreparedCall> prepareGroupedGemm(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                          const GroupedGemmProblem &problem, const GroupedGemmOperands &operands,
                                          const std::optional<GemmPlan> &plan) {
  const GemmPlan chosen = plan ? *plan : chooseGroupedGemmPlan(problem, rank.world().target());
  DITRON_RETURN_IF_ERROR(verifyGroupedGemm(problem, chosen));
  using Operand = std::tuple<std::string_view, runtime::Pointer, DataType>;
  std::vector<Operand> given = {{"a", operands.a, problem.dtype},
                                {"b", operands.b, problem.dtype},
                                {"c", operands.c, problem.resultType},
                                {"offsets", operands.offsets, DataType::I32},
                                {"tiles", operands.tiles, DataType::I32}};
  if (problem.slots > 0)
    given.push_back({"slotOfRow", operands.slotOfRow, DataType::I32});
  if (problem.blockScales) {
    given.push_back({"aScale", operands.aScale, DataType::F32});
    given.push_back({"bScale", operands.bScale, DataType::F32});
  }
  for (const auto &[name, pointer, type] : given)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  const GroupedGemmRanks &ranks = operands.ranks;

  const TileConfig &tile = chosen.tile;
  const uint32_t all = rank.attributes().multiprocessors,
                 multiprocessors = all - std::min(ranks.freeMultiprocessors, all - 1);
  const int64_t tiles = std::max<int64_t>(mostTilesOf(problem.maxRows, problem.experts, tile.blockM), 1) *
                        ceilDivide(problem.n, tile.blockN);
  const bool byDescriptors = chosen.movement == GemmMovement::Descriptors;
  KernelCall call;
  call.source = "moe/grouped_gemm";
  call.kernel = byDescriptors ? "grouped_gemm" : "grouped_gemm_pointers";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {static_cast<uint32_t>(
                   std::min<int64_t>(tiles, multiprocessors * (byDescriptors ? 1 : residentBlocks(problem, tile)))),
               1, 1};
  call.arguments = {{"a_ptr", operands.a},
                    {"b_ptr", operands.b},
                    {"c_ptr", operands.c},
                    {"offsets_ptr", operands.offsets},
                    {"tiles_ptr", operands.tiles},
                    {"N", problem.n},
                    {"K", problem.k},
                    {"stride_a", problem.k},
                    {"stride_c", problem.resultColumns()},
                    {"BLOCK_M", tile.blockM},
                    {"BLOCK_N", tile.blockN},
                    {"BLOCK_K", tile.blockK},
                    {"GROUP_M", tile.groupM},
                    {"B_TRANSPOSED", problem.order == MatrixOrder::Transposed},
                    {"ACTIVATION", std::string(toString(problem.activation))},
                    {"PRECISION", std::string(toString(problem.precision))}};
  call.arguments.emplace_back("a_scale_ptr", orNone(problem.blockScales, operands.aScale));
  call.arguments.emplace_back("b_scale_ptr", orNone(problem.blockScales, operands.bScale));
  if (ranks.spans.address) {
    call.arguments.emplace_back("spans_ptr", ranks.spans);
    call.arguments.emplace_back("segment_tiles_ptr", orNone(ranks.gates.address, ranks.segmentTiles));
    call.arguments.emplace_back("counter_ptr", orNone(ranks.gates.address, ranks.counters));
    call.arguments.emplace_back("gate_ptr", orNone(ranks.gates.address, ranks.gates));
    call.arguments.emplace_back("first_rank", ranks.firstRank);
    call.arguments.emplace_back("WORLD_SIZE", rank.numRanks());
  }
  if (ranks.ready.address) {
    call.arguments.emplace_back("ready_ptr", ranks.ready);
    call.arguments.emplace_back("generation_ptr", ranks.generation);
  }
  call.arguments.emplace_back("slot_of_row_ptr", orNone(problem.slots > 0, operands.slotOfRow));
  call.arguments.emplace_back("SLOTS", std::max(problem.slots, 1u));
  if (byDescriptors) {
    call.arguments.emplace_back("EVEN_K", problem.k % tile.blockK == 0);
    // Measured on H200: with 128 rows of an expert in tiles of 128 masks are better, with 546 they are not.
    call.arguments.emplace_back("MASK_ROWS", problem.maxRows < 2 * int64_t(tile.blockM) * problem.experts);
    call.arguments.emplace_back("rows", problem.maxRows);
    call.arguments.emplace_back("weight_rows",
                                problem.experts * (problem.order == MatrixOrder::Transposed ? problem.n : problem.k));
  } else {
    call.arguments.emplace_back("BLOCK_SCALES", problem.blockScales);
  }
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> prepareSlotSum(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                      const SlotSumProblem &problem, runtime::Pointer rows, runtime::Pointer rowOfSlot,
                                      runtime::Pointer weights, runtime::Pointer out, std::optional<uint32_t> peer) {
  constexpr std::string_view sum = "SlotSum";
  constexpr int64_t mostTokens = std::numeric_limits<int32_t>::max();
  if (problem.tokens < 1 || problem.columns < 1 || problem.tokens > mostTokens || problem.columns > mostTokens)
    return invalidArgument(fmt::format("{}: {} tokens of {} columns; 1 to {} of both are accepted", sum, problem.tokens,
                                       problem.columns, mostTokens));
  if (problem.topK == 0 || problem.topK > mostTopK)
    return invalidArgument(fmt::format("{}: topK is {}; 1 to {} are accepted", sum, problem.topK, mostTopK));
  DITRON_RETURN_IF_ERROR(verifyOperandType(sum, out.type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(sum, "out", out, out.type));
  DITRON_RETURN_IF_ERROR(verifyOperandType(sum, rows.type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(sum, "rows", rows, rows.type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(sum, "rowOfSlot", rowOfSlot, DataType::I32));
  if (weights.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(sum, "weights", weights, DataType::F32));
  // Many bytes on their way from each block, and enough blocks.
  constexpr int64_t elements = 4096, mostTokensOfBlock = 16;
  const int64_t block = std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(problem.columns)), 16, 1024);
  const int64_t tokensOfBlock = std::min(elements / block, mostTokensOfBlock);
  KernelCall call;
  call.source = "moe/grouped_gemm";
  call.kernel = "sum_slots";
  call.grid = {static_cast<uint32_t>(ceilDivide(problem.tokens, tokensOfBlock)),
               static_cast<uint32_t>(ceilDivide(problem.columns, block)), 1};
  call.arguments = {{"rows_ptr", rows},
                    {"row_of_slot_ptr", rowOfSlot},
                    {"weights_ptr", orNone(weights)},
                    {"out_ptr", out},
                    {"tokens", problem.tokens},
                    {"columns", problem.columns},
                    {"stride_rows", problem.columns},
                    {"stride_out", problem.columns},
                    {"TOP_K", problem.topK},
                    {"TOKENS", tokensOfBlock},
                    {"BLOCK", block}};
  if (peer)
    call.arguments.emplace_back("peer", *peer);
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
