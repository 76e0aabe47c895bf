//===- Routing.cpp - Which token goes to which expert, and where its row lies ---------------------------------------------===//
#include "ditron/ops/moe/Routing.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "Routing";
Status verifyExperts(std::string_view what, uint32_t experts, uint32_t topK) {
  if (experts == 0 || experts > mostExperts)
    return invalidArgument(fmt::format("{}: {} experts; 1 to {} are accepted", what, experts, mostExperts));
  if (topK == 0 || topK > mostTopK)
    return invalidArgument(fmt::format("{}: topK is {}; 1 to {} are accepted", what, topK, mostTopK));
  return Status::ok();
}

} // namespace

std::string_view toString(RouterScore score) { return score == RouterScore::Softmax ? "softmax" : "sigmoid"; }

Expected<PreparedCall> prepareRouter(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                     const RouterProblem &problem, runtime::Pointer logits, runtime::Pointer bias,
                                     runtime::Pointer ids, runtime::Pointer weights) {
  constexpr std::string_view router = "Router";
  DITRON_RETURN_IF_ERROR(verifyExperts(router, problem.experts, problem.topK));
  if (problem.topK > problem.experts)
    return invalidArgument(
        fmt::format("{}: topK is {}, more than the {} experts", router, problem.topK, problem.experts));
  if (problem.tokens < 1 || problem.tokens > std::numeric_limits<int32_t>::max() / problem.topK)
    return invalidArgument(fmt::format("{}: {} tokens; 1 to {} are accepted", router, problem.tokens,
                                       std::numeric_limits<int32_t>::max() / problem.topK));
  DITRON_RETURN_IF_ERROR(verifyOperandType(router, logits.type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(router, "logits", logits, logits.type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(router, "ids", ids, DataType::I32));
  DITRON_RETURN_IF_ERROR(verifyPointerType(router, "weights", weights, DataType::F32));
  if (bias.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(router, "bias", bias, DataType::F32));
  const uint32_t width = std::bit_ceil(problem.experts);
  const int64_t block = std::clamp<int64_t>(1024 / width, 1, 32);
  KernelCall call;
  call.source = "moe/routing";
  call.kernel = "choose_experts";
  call.grid = {static_cast<uint32_t>(ceilDivide(problem.tokens, block)), 1, 1};
  call.arguments = {{"logits_ptr", logits},
                    {"bias_ptr", orNone(bias)},
                    {"ids_ptr", ids},
                    {"weights_ptr", weights},
                    {"tokens", problem.tokens},
                    {"experts", problem.experts},
                    {"stride", problem.experts},
                    {"scale", problem.scale},
                    {"TOP_K", problem.topK},
                    {"SLOTS", std::bit_ceil(problem.topK)},
                    {"EXPERTS", width},
                    {"BLOCK", block},
                    {"SIGMOID", problem.score == RouterScore::Sigmoid},
                    {"NORMALIZED", problem.normalized}};
  return PreparedCall::create(kernels, rank, call);
}

void cutSlots(const runtime::Rank &rank, uint32_t experts, KernelCall &count, KernelCall &place) {
  // So many numbers of a warp, in 32 registers of its threads. Each thread of a simulated GPU costs the host something.
  constexpr int64_t numbersOfWarp = 1024;
  const Expected<TargetName> target = parseTargetName(rank.world().target());
  const uint32_t warps = target.isOk() && !target->simulated ? 16 : 4;
  const int64_t width = std::bit_ceil(experts);
  for (KernelCall *call : {&count, &place}) {
    call->numWarps = warps;
    call->arguments.insert(call->arguments.end(),
                           {{"CHUNK", slotsOfChunk},
                            {"PART", std::clamp<int64_t>(numbersOfWarp * warps / width, 16, slotsOfChunk)},
                            {"EXPERTS", width}});
  }
  constexpr int64_t countsOfWarp = 256;
  place.arguments.emplace_back("COUNTS", std::clamp<int64_t>(countsOfWarp * warps / width, 1, 32));
}

int64_t mostTilesOf(int64_t rows, uint32_t experts, uint32_t blockM) {
  // Each expert has one tile that is not full, at most, and no more tiles than rows.
  return std::min(rows, rows / blockM + experts);
}

namespace {

/// tile_rows or tile_slabs, with the arguments that both have.
KernelCall tilesCall(std::string_view kernel, uint32_t experts, int64_t maxRows, uint32_t blockM,
                     runtime::Pointer offsets, runtime::Pointer tiles) {
  const int64_t most = std::max<int64_t>(mostTilesOf(maxRows, experts, blockM), 1);
  const uint32_t width = std::bit_ceil(experts);
  const int64_t tilesOfBlock = std::clamp<int64_t>(16384 / width, 16, 128);
  KernelCall call;
  call.source = "moe/routing";
  call.kernel = kernel;
  call.grid = {static_cast<uint32_t>(ceilDivide(most, tilesOfBlock)), 1, 1};
  call.arguments = {{"offsets_ptr", offsets}, {"tiles_ptr", tiles},    {"experts", experts}, {"most_tiles", most},
                    {"EXPERTS", width},       {"TILES", tilesOfBlock}, {"BLOCK_M", blockM}};
  return call;
}

} // namespace

Expected<PreparedCall> prepareTiles(runtime::KernelProvider &kernels, runtime::Rank &rank, uint32_t experts,
                                    int64_t maxRows, uint32_t blockM, runtime::Pointer offsets,
                                    runtime::Pointer tiles) {
  return PreparedCall::create(kernels, rank, tilesCall("tile_rows", experts, maxRows, blockM, offsets, tiles));
}

Expected<PreparedCall> prepareCapacityTiles(runtime::KernelProvider &kernels, runtime::Rank &rank, uint32_t experts,
                                            int64_t capacity, uint32_t blockM, runtime::Pointer counts,
                                            runtime::Pointer offsets, runtime::Pointer tiles) {
  constexpr std::string_view what = "CapacityTiles";
  DITRON_RETURN_IF_ERROR(verifyExperts(what, experts, 1));
  const int64_t most = std::numeric_limits<int32_t>::max() / experts;
  if (capacity < 1 || capacity > most)
    return invalidArgument(
        fmt::format("{}: capacity is {}; 1 to {} are accepted for {} experts", what, capacity, most, experts));
  for (const auto &[name, pointer] :
       {std::pair("counts", counts), std::pair("offsets", offsets), std::pair("tiles", tiles)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(what, name, pointer, DataType::I32));
  KernelCall call = tilesCall("tile_slabs", experts, experts * capacity, blockM, offsets, tiles);
  call.arguments.emplace_back("counts_ptr", counts);
  call.arguments.emplace_back("capacity", capacity);
  return PreparedCall::create(kernels, rank, call);
}

Expected<Routing> Routing::create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                  const RoutingOptions &options) {
  DITRON_RETURN_IF_ERROR(verifyExperts(operation, options.experts, options.topK));
  const int64_t mostTokens = std::numeric_limits<int32_t>::max() / options.topK;
  if (options.maxTokens < 1 || options.maxTokens > mostTokens)
    return invalidArgument(
        fmt::format("{}: maxTokens is {}; 1 to {} are accepted", operation, options.maxTokens, mostTokens));
  if (options.blockM < 16 || !std::has_single_bit(options.blockM))
    return invalidArgument(
        fmt::format("{}: blockM is {}; powers of two of at least 16 are accepted", operation, options.blockM));
  Routing routing;
  routing.optionValues = options;
  routing.rank = &rank;
  routing.kernels = &kernels;
  const int64_t slots = options.maxTokens * options.topK;
  const int64_t tiles = mostTilesOf(slots, options.experts, options.blockM);
  DITRON_ASSIGN_OR_RETURN(
      routing.counts,
      rank.allocate(DataType::I32, ceilDivide(slots, slotsOfChunk) * options.experts, "routing_counts"));
  DITRON_ASSIGN_OR_RETURN(routing.offsetsOf, rank.allocate(DataType::I32, options.experts + 1, "routing_offsets"));
  DITRON_ASSIGN_OR_RETURN(routing.slots, rank.allocate(DataType::I32, slots, "routing_slot_of_row"));
  DITRON_ASSIGN_OR_RETURN(routing.rows, rank.allocate(DataType::I32, slots, "routing_row_of_slot"));
  DITRON_ASSIGN_OR_RETURN(routing.tilesOf, rank.allocate(DataType::I32, 1 + 2 * tiles, "routing_tiles"));
  return routing;
}

Status Routing::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operation, tokens, 1, optionValues.maxTokens);
}

Expected<std::vector<PreparedCall>> Routing::calls(runtime::Pointer ids, int64_t tokens, int64_t firstToken) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "ids", ids, DataType::I32));
  if (firstToken < 0 || firstToken >= tokens)
    return invalidArgument(fmt::format("{}: firstToken is {}; 0 to {} are accepted for {} tokens", operation,
                                       firstToken, tokens - 1, tokens));
  const int64_t slotsOfCall = tokens * optionValues.topK;
  const uint32_t experts = optionValues.experts;
  KernelCall count;
  count.source = "moe/routing";
  count.kernel = "count_slots";
  count.grid = {static_cast<uint32_t>(ceilDivide(slotsOfCall, slotsOfChunk)), 1, 1};
  count.arguments = {{"ids_ptr", ids},
                     {"counts_ptr", counts.pointer()},
                     {"slots", slotsOfCall},
                     {"experts", experts},
                     {"first_slot", firstToken * optionValues.topK}};
  KernelCall place = count;
  place.kernel = "place_slots";
  place.arguments.emplace_back("offsets_ptr", offsets());
  place.arguments.emplace_back("slot_of_row_ptr", slotOfRow());
  place.arguments.emplace_back("row_of_slot_ptr", rowOfSlot());
  cutSlots(*rank, experts, count, place);
  std::vector<PreparedCall> made;
  for (const KernelCall &call : {count, place}) {
    DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(*kernels, *rank, call));
    made.push_back(std::move(prepared));
  }
  DITRON_ASSIGN_OR_RETURN(PreparedCall tiles, prepareTiles(*kernels, *rank, experts, slotsOfCall, optionValues.blockM,
                                                           offsets(), this->tiles()));
  made.push_back(std::move(tiles));
  return made;
}

Expected<Routing::Plan> Routing::plan(runtime::Pointer ids, int64_t tokens) {
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.calls, calls(ids, tokens));
  DITRON_ASSIGN_OR_RETURN(made.countIds, made.calls[0].pointerParameter("ids_ptr"));
  DITRON_ASSIGN_OR_RETURN(made.placeIds, made.calls[1].pointerParameter("ids_ptr"));
  return made;
}

Status Routing::prepare(int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  const KeptPlans<Plan>::Key key = {tokens, optionValues.topK, planAlignment};
  if (kept.has(key)) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, plan(rowOfSlot(), tokens));
  kept.keep(key, std::move(made));
  return Status::ok();
}

Status Routing::enqueue(runtime::Stream &stream, runtime::Pointer ids, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "ids", ids, DataType::I32));
  auto describe = [&] { return fmt::format("{} tokens, ids at multiples of {} bytes", tokens, alignmentOf(ids)); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept.find(operation, stream, {tokens, optionValues.topK, alignmentOf(ids)},
                                                  describe, [&] { return plan(ids, tokens); }));
  DITRON_RETURN_IF_ERROR(found->calls[0].setPointer(found->countIds, ids));
  DITRON_RETURN_IF_ERROR(found->calls[1].setPointer(found->placeIds, ids));
  for (const PreparedCall &call : found->calls)
    DITRON_RETURN_IF_ERROR(call.enqueue(stream));
  return Status::ok();
}

} // namespace ditron::ops
