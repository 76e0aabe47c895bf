//===- DecodeProblem.cpp - Attention of few queries over many keys, and how it is carried out ------------------------------===//
#include "ditron/ops/attention_decode/DecodeProblem.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/AttentionArguments.h"
#include "ditron/ops/attention/Heads.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

namespace {

/// Rows of a tile: what the tensor cores take at least, and what leaves room for the sums of each warp.
constexpr int64_t leastRows = 16, mostRows = 64, mostSums = 16384;
/// Of Q and K, and where V is in K.
constexpr int64_t mostHeadDim = 256, mostLatentDim = 1024;
/// Of the sequences' lengths, which every program adds up.
constexpr int64_t mostBatch = 4096;
/// Elements of parts that are combined at a time.
constexpr int64_t combinedElements = 8192;

int64_t rowsOfItem(const DecodeProblem &problem) { return problem.heads / problem.kvHeads * problem.queries; }

int64_t powerAbove(int64_t size) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))); }
int64_t powerBelow(int64_t size) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size))); }

int64_t valueBlock(const DecodeProblem &problem) { return powerAbove(problem.dimOfValues()); }

int64_t blockM(const DecodeProblem &problem) {
  const int64_t most = std::min(mostRows, std::max(mostSums / valueBlock(problem), leastRows));
  return std::clamp(powerAbove(rowsOfItem(problem)), leastRows, most);
}

/// Those of an item's tiles of rows read the same keys beside each other.
uint32_t programs(const runtime::Rank &rank, const DecodeProblem &problem, const DecodePlan &plan) {
  const auto rowTiles = static_cast<uint32_t>(ceilDivide(rowsOfItem(problem), blockM(problem)));
  const uint32_t all = plan.blocksPerMultiprocessor * static_cast<uint32_t>(rank.attributes().multiprocessors);
  return std::max(all / rowTiles, 1u) * rowTiles;
}

Status verifyHeadSize(std::string_view operation, int64_t size, int64_t most) {
  const int64_t rest = size - (size > 0 ? powerBelow(size) : 0);
  if (size < 16 || size > most || (rest != 0 && (rest < 16 || rest != powerBelow(rest))))
    return unsupported(fmt::format("{}: heads of {} elements; powers of two from 16 and sums of two of them are "
                                   "accepted, up to {}",
                                   operation, size, most));
  return Status::ok();
}

Status verifyLayout(std::string_view operation, const KeyLayout &keys) {
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"pageSize", keys.pageSize, 0},
                                                       {"pageStride", keys.pageStride, 0, mostElementsOfOperand},
                                                       {"rowStride", keys.rowStride, 0, mostElementsOfOperand},
                                                       {"headStride", keys.headStride, 0, mostElementsOfOperand},
                                                       {"tableStride", keys.tableStride, 0}}));
  if (keys.rowStride == 0)
    return invalidArgument(fmt::format("{}: rowStride is 0; KeyLayout says where they lie, 1 to {} are accepted",
                                       operation, mostElementsOfOperand));
  return Status::ok();
}

Status verifyOptions(std::string_view operation, const DecodeProblem &problem) {
  DITRON_RETURN_IF_ERROR(
      verifyHeadSize(operation, problem.headDim, problem.valuesInKeys ? mostLatentDim : mostHeadDim));
  if (problem.valuesInKeys) {
    const int64_t first = powerBelow(problem.headDim);
    if (problem.valueDim.value_or(first) != first || problem.values)
      return unsupported(fmt::format("{}: V in K's rows of {} elements has their first {}, where K lies", operation,
                                     problem.headDim, first));
  } else {
    DITRON_RETURN_IF_ERROR(verifyHeadSize(operation, problem.dimOfValues(), mostHeadDim).withContext("V"));
  }
  DITRON_RETURN_IF_ERROR(verifyLayout(operation, problem.keys));
  if (problem.values) {
    DITRON_RETURN_IF_ERROR(verifyLayout(operation, *problem.values).withContext("V"));
    if (problem.values->pageSize != problem.keys.pageSize || problem.values->tableStride != problem.keys.tableStride)
      return invalidArgument(fmt::format("{}: pages of {} keys of V and of {} of K; they have one table", operation,
                                         problem.values->pageSize, problem.keys.pageSize));
  }
  constexpr int64_t mostWindow = std::numeric_limits<int32_t>::max();
  if (problem.window && (*problem.window < 0 || *problem.window > mostWindow))
    return invalidArgument(
        fmt::format("{}: a window of {} keys; 0 to {} are accepted", operation, *problem.window, mostWindow));
  if (problem.scale && !std::isfinite(static_cast<float>(*problem.scale * std::numbers::log2e)))
    return invalidArgument(fmt::format("{}: the scale {}; finite ones are accepted", operation, *problem.scale));
  return verifySoftCap(operation, problem.softCap);
}

} // namespace

int64_t DecodeProblem::dimOfValues() const { return valuesInKeys ? powerBelow(headDim) : valueDim.value_or(headDim); }

std::string DecodePlan::text() const {
  return fmt::format("{} warps {} stages {} blocks {}{}", blockN, numWarps, numStages, blocksPerMultiprocessor,
                     even ? " even" : "");
}

Expected<DecodePlan> parseDecodePlan(std::string_view text) {
  DecodePlan plan;
  constexpr std::string_view evenWord = " even";
  plan.even = text.ends_with(evenWord);
  const std::string copy(text.substr(0, text.size() - (plan.even ? evenWord.size() : 0)));
  int read = 0;
  if (std::sscanf(copy.c_str(), "%u warps %u stages %u blocks %u%n", &plan.blockN, &plan.numWarps, &plan.numStages,
                  &plan.blocksPerMultiprocessor, &read) != 4 ||
      size_t(read) != copy.size())
    return invalidArgument(fmt::format("plan '{}': a plan is written like '{}'", text, DecodePlan().text()));
  return plan;
}

DecodePlan chooseDecodePlan(const DecodeProblem &problem, const runtime::DeviceAttributes &gpu) {
  DecodePlan plan;
  if (problem.kvHeads < 1 || problem.headDim < 1 || problem.dimOfValues() < 1)
    return plan; // verifyDecode refuses the problem with any plan
  constexpr int64_t tileElements = 8192;
  // Of a key, in K and V.
  const int64_t elements = problem.headDim + (problem.valuesInKeys ? 0 : valueBlock(problem));
  plan.blockN = static_cast<uint32_t>(std::clamp<int64_t>(powerBelow(2 * tileElements / elements), 32, 128));
  const int64_t rows = blockM(problem);
  const bool isLatent = problem.headDim > mostHeadDim;
  // Many sums would not fit the registers of few threads.
  if (rows * valueBlock(problem) >= 2 * tileElements || isLatent)
    plan.numWarps = 8, plan.blocksPerMultiprocessor = 1;
  // Of K and V, of a Q that registers do not hold, and what layouts are converted through.
  const auto bytes = [&] {
    constexpr uint64_t scratch = 8192;
    return plan.blocksPerMultiprocessor *
           ((plan.numStages * plan.blockN * elements + (isLatent ? rows * problem.headDim : 0)) *
                sizeOf(problem.dtype) +
            scratch);
  };
  if (isLatent) { // a turn takes longer than its tile takes to come: 64 keys beside the next 64 are 0.75 of a copy's speed on H200, 32 and four tiles 0.51
    plan.blockN = 64, plan.numStages = 2;
    if (bytes() > gpu.sharedBytesPerBlock)
      plan.blockN = 32, plan.numStages = 4;
  }
  while (bytes() > gpu.sharedBytesPerBlock && plan.numStages > 2)
    --plan.numStages;
  if (bytes() > gpu.sharedBytesPerBlock)
    plan.blocksPerMultiprocessor = 1;
  return plan;
}

Status verifyDecode(std::string_view operation, const DecodeProblem &problem, const DecodePlan &plan) {
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"batch", problem.batch, 1, mostBatch},
                                                       {"heads", problem.heads},
                                                       {"kvHeads", problem.kvHeads},
                                                       {"queries", problem.queries}}));
  DITRON_RETURN_IF_ERROR(verifyProductOfSizes(
      operation, "rows of Q", {{"batch", problem.batch}, {"heads", problem.heads}, {"queries", problem.queries}},
      mostSize));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, problem.heads, problem.kvHeads));
  DITRON_RETURN_IF_ERROR(verifyOptions(operation, problem));
  if (!isTileSize(plan.blockN))
    return invalidArgument(
        fmt::format("{}: steps of {} keys; powers of two from 16 to 256 are accepted", operation, plan.blockN));
  if (plan.blocksPerMultiprocessor < 1 || plan.blocksPerMultiprocessor > 32)
    return invalidArgument(fmt::format("{}: {} blocks for a multiprocessor; 1 to 32 are accepted", operation,
                                       plan.blocksPerMultiprocessor));
  return Status::ok();
}

Status verifyDecodeOperands(std::string_view operation, const DecodeProblem &problem, const DecodeOperands &operands) {
  for (auto [name, pointer] : {std::pair("q", operands.q), std::pair("k", operands.k), std::pair("out", operands.out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  if (!problem.valuesInKeys)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "v", operands.v, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lengths", operands.lengths, DataType::I32));
  if (problem.keys.pageSize > 0)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "table", operands.table, DataType::I32));
  if (operands.lse.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lse", operands.lse, DataType::F32));
  if (operands.sinks.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "sinks", operands.sinks, DataType::F32));
  return Status::ok();
}

std::vector<std::pair<std::string_view, runtime::Pointer>> decodeAddresses(const DecodeProblem &problem,
                                                                           const DecodeOperands &operands) {
  std::vector<std::pair<std::string_view, runtime::Pointer>> addresses = {
      {"q_ptr", operands.q},
      {"k_ptr", operands.k},
      {"v_ptr", problem.valuesInKeys ? operands.k : operands.v},
      {"out_ptr", operands.out},
      {"lengths_ptr", operands.lengths},
      {"table_ptr", problem.keys.pageSize ? operands.table : operands.lengths}};
  if (operands.lse.address)
    addresses.emplace_back("lse_ptr", operands.lse);
  if (operands.sinks.address)
    addresses.emplace_back("sinks_ptr", operands.sinks);
  return addresses;
}

Expected<KeptDecode> KeptDecode::create(PreparedCall call, const DecodeProblem &problem,
                                        const DecodeOperands &operands) {
  KeptDecode made{std::move(call), {}};
  for (const auto &[name, pointer] : decodeAddresses(problem, operands)) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.call.pointerParameter(name));
    made.pointers.push_back(parameter);
  }
  return made;
}

Status KeptDecode::enqueue(runtime::Stream &stream, const DecodeProblem &problem, const DecodeOperands &operands) {
  const auto addresses = decodeAddresses(problem, operands);
  for (size_t i = 0; i < addresses.size(); ++i)
    DITRON_RETURN_IF_ERROR(call.setPointer(pointers[i], addresses[i].second));
  return call.enqueue(stream);
}

KeptPlans<KeptDecode>::Key KeptDecode::keyOf(const DecodeProblem &problem, const DecodeOperands &operands,
                                             int64_t batch) {
  KeptPlans<KeptDecode>::Key key = {batch, operands.lse.address != nullptr, operands.sinks.address != nullptr};
  for (const auto &[name, pointer] : decodeAddresses(problem, operands))
    key.push_back(alignmentOf(pointer));
  return key;
}

std::string KeptDecode::describe(const DecodeProblem &problem, const DecodeOperands &operands, int64_t batch) {
  const bool isUnaligned = std::ranges::any_of(
      decodeAddresses(problem, operands), [](const auto &each) { return alignmentOf(each.second) != planAlignment; });
  return fmt::format("{} sequences{}{}{}", batch, operands.lse.address ? ", with lse" : "",
                     operands.sinks.address ? ", with sinks" : "",
                     isUnaligned ? ", at addresses that are no multiples of 16 bytes" : "");
}

DecodeOperands KeptDecode::anyOperands(const DecodeProblem &problem, runtime::Pointer memory, bool withLse,
                                       bool withSinks) {
  const runtime::Pointer data = memory.as(problem.dtype);
  return {.q = data,
          .k = data,
          .v = data,
          .out = data,
          .lse = withLse ? memory.as(DataType::F32) : runtime::Pointer(),
          .lengths = memory.as(DataType::I32),
          .table = memory.as(DataType::I32),
          .sinks = withSinks ? memory.as(DataType::F32) : runtime::Pointer()};
}

Status verifyDecodeBatch(std::string_view operation, const DecodeProblem &problem, int64_t batch) {
  if (batch < 1 || batch > problem.batch)
    return invalidArgument(
        fmt::format("{}: {} sequences; 1 to {} (problem.batch) are accepted", operation, batch, problem.batch));
  return Status::ok();
}

Expected<DecodeWorkspace> DecodeWorkspace::allocate(runtime::Rank &rank, const DecodeProblem &problem,
                                                    const DecodePlan &plan) {
  DecodeWorkspace workspace;
  const int64_t blocks = programs(rank, problem, plan), rows = 2 * blocks * blockM(problem);
  DITRON_ASSIGN_OR_RETURN(workspace.parts, rank.allocate(DataType::F32, rows * valueBlock(problem), "decode_parts"));
  DITRON_ASSIGN_OR_RETURN(workspace.sums, rank.allocate(DataType::F32, rows, "decode_sums"));
  DITRON_ASSIGN_OR_RETURN(workspace.counters, rank.allocate(DataType::I32, blocks, "decode_counters"));
  return workspace;
}

KernelCall decodeCall(const runtime::Rank &rank, const DecodeProblem &problem, const DecodePlan &plan,
                      const DecodeOperands &operands, const DecodeWorkspace &workspace) {
  const KeyLayout &keys = problem.keys;
  const KeyLayout values = problem.values.value_or(keys);
  const int64_t rows =
      std::min({powerAbove(rowsOfItem(problem)), blockM(problem), combinedElements / valueBlock(problem)});
  const runtime::None none;
  KernelCall call;
  call.source = "attention_decode";
  call.numWarps = plan.numWarps;
  call.numStages = plan.numStages;
  call.grid = {programs(rank, problem, plan), 1, 1};
  call.arguments = {{"q_ptr", operands.q},
                    {"k_ptr", operands.k},
                    {"v_ptr", problem.valuesInKeys ? operands.k : operands.v},
                    {"lengths_ptr", operands.lengths},
                    // Without pages nothing is read there.
                    {"table_ptr", operands.table.address ? operands.table : operands.lengths},
                    {"sinks_ptr", orNone(operands.sinks)},
                    {"parts_ptr", workspace.parts.pointer()},
                    {"sums_ptr", workspace.sums.pointer()},
                    {"counter_ptr", workspace.counters.pointer()},
                    {"batch", problem.batch},
                    {"kv_heads", problem.kvHeads},
                    {"group", problem.heads / problem.kvHeads},
                    {"queries", problem.queries},
                    {"stride_page", keys.pageStride},
                    {"stride_row", keys.rowStride},
                    {"stride_head", keys.headStride},
                    {"stride_table", keys.tableStride},
                    {"score_scale", scaleOfScores(problem.scale, problem.headDim) * std::numbers::log2e},
                    {"value_page", problem.values ? runtime::Argument(values.pageStride) : runtime::Argument(none)},
                    {"value_row", values.rowStride},
                    {"value_head", values.headStride},
                    {"soft_cap", problem.softCap ? runtime::Argument(*problem.softCap * std::numbers::log2e)
                                                 : runtime::Argument(none)},
                    {"HEAD_DIM", problem.headDim},
                    {"VALUE_DIM", problem.dimOfValues()},
                    {"VALUES_IN_KEYS", problem.valuesInKeys},
                    {"PAGE_SIZE", keys.pageSize},
                    {"BATCH", std::bit_ceil(static_cast<uint64_t>(problem.batch))},
                    {"BLOCK_M", blockM(problem)},
                    {"BLOCK_N", plan.blockN},
                    {"ROWS", rows},
                    {"PARTS", std::max<int64_t>(combinedElements / (rows * valueBlock(problem)), 1)},
                    {"EVEN", plan.even}};
  return call;
}

} // namespace ditron::ops
