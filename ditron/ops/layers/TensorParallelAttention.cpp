//===- TensorParallelAttention.cpp - A layer of attention whose heads are dealt out to the ranks ----------------------------===//
#include "ditron/ops/layers/TensorParallelAttention.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/Heads.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "TensorParallelAttention";

using Options = TensorParallelAttentionOptions;
using Operands = TensorParallelAttentionOperands;

GemmEpilogue epilogueOf(const Options &options) {
  GemmEpilogue epilogue;
  if (options.qkvBias)
    epilogue.bias = options.dtype;
  return epilogue;
}

Status verify(const Options &options, size_t ranksWithWeights, uint32_t ranks) {
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, options.dtype));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"hidden", options.hidden},
                                                       {"heads", options.heads},
                                                       {"kvHeads", options.kvHeads},
                                                       {"maxTokens", options.maxTokens},
                                                       {"maxBatch", options.maxBatch},
                                                       {"maxKeys", options.maxKeys},
                                                       {"pageSize", options.pageSize, 0},
                                                       {"pages", options.pages, 0}}));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, options.heads, options.kvHeads));
  DITRON_RETURN_IF_ERROR(verifyPlainHeadSize(operation, options.headDim));
  DITRON_RETURN_IF_ERROR(verifyHeadChanges(operation, options.rotary, options.normEpsilon, options.headDim));
  if (options.heads % ranks != 0)
    return invalidArgument(
        fmt::format("{}: {} heads over {} ranks, which must divide them", operation, options.heads, ranks));
  if (options.kvHeads % ranks != 0 && ranks % options.kvHeads != 0)
    return invalidArgument(fmt::format("{}: {} heads of K and V over {} ranks; ranks that divide them are accepted, "
                                       "and multiples of them, where several ranks have the same head",
                                       operation, options.kvHeads, ranks));
  if (options.pageSize < 0 || options.pageSize % 16 != 0 || (options.pageSize > 0) != (options.pages > 0))
    return invalidArgument(fmt::format("{}: {} pages of {} keys; at least one is accepted, of a multiple of 16, or "
                                       "0 of 0 for a cache without pages",
                                       operation, options.pages, options.pageSize));
  DITRON_RETURN_IF_ERROR(verifyProjectedHeads(operation, options.heads, options.kvHeads, options.headDim));
  DITRON_RETURN_IF_ERROR(verifyCacheElements(operation, {.batch = options.maxBatch,
                                                         .keys = options.maxKeys,
                                                         .pageSize = options.pageSize,
                                                         .pages = options.pages,
                                                         .kvHeads = options.kvHeads,
                                                         .headDim = options.headDim}));
  if (ranksWithWeights != ranks)
    return invalidArgument(
        fmt::format("{}: weights of {} ranks are given; there are {}", operation, ranksWithWeights, ranks));
  return Status::ok();
}

} // namespace

std::vector<int64_t> TensorParallelAttention::qkvRows(const Options &options, uint32_t ranks, uint32_t rank) {
  std::vector<int64_t> rows;
  const auto add = [&](int64_t firstHead, int64_t heads) {
    for (int64_t row = firstHead * options.headDim; row < (firstHead + heads) * options.headDim; ++row)
      rows.push_back(row);
  };
  const int64_t own = kvHeadsOf(options, ranks), firstKvHead = rank * options.kvHeads / ranks;
  add(rank * (options.heads / ranks), options.heads / ranks);
  add(options.heads + firstKvHead, own);
  add(options.heads + options.kvHeads + firstKvHead, own);
  return rows;
}

Expected<TensorParallelAttention>
TensorParallelAttention::create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options,
                                const std::vector<TensorParallelAttentionWeights> &weights) {
  const uint32_t ranks = world.numRanks();
  DITRON_RETURN_IF_ERROR(verify(options, weights.size(), ranks));
  TensorParallelAttention layer;
  layer.optionValues = options;
  layer.ranks = ranks;
  layer.world = &world;
  layer.kernels = &kernels;
  layer.ofRanks.resize(ranks);
  for (uint32_t id : world.localRanks())
    DITRON_RETURN_IF_ERROR(layer.allocate(world.rank(id), weights[id]));
  if (Status status = layer.createProducts(world); !status.isOk())
    return status.withContext(operation);
  return layer;
}

Status TensorParallelAttention::createProducts(runtime::World &world) {
  const Options &options = optionValues;
  const auto common = [&](auto &product) {
    product.dtype = options.dtype;
    product.maxRows = mostTokens();
    product.weightOrder = MatrixOrder::Transposed;
    product.concurrentCalls = options.concurrentCalls;
  };
  if (areDealt()) {
    AllGatherGemmOptions before;
    common(before);
    before.depth = options.hidden;
    before.schedule = options.schedule;
    before.epilogue = epilogueOf(options);
    DITRON_ASSIGN_OR_RETURN(gatherProduct, AllGatherGemm::create(world, *kernels, before));
    GemmReduceScatterOptions behind;
    common(behind);
    behind.columns = options.hidden;
    behind.schedule = options.schedule;
    DITRON_ASSIGN_OR_RETURN(scatteredProduct, GemmReduceScatter::create(world, *kernels, behind));
    return Status::ok();
  }
  GemmAllReduceOptions behind;
  common(behind);
  behind.columns = options.hidden;
  behind.depth = ownHeads() * options.headDim;
  if (options.schedule == Schedule::Unfused)
    behind.form = AllReduceForm::Unfused;
  DITRON_ASSIGN_OR_RETURN(reducedProduct, GemmAllReduce::create(world, *kernels, behind));
  return Status::ok();
}

Status TensorParallelAttention::allocate(runtime::Rank &rank, const TensorParallelAttentionWeights &weights) {
  const Options &options = optionValues;
  const auto check = [&](bool isTaken, std::string_view name, runtime::Pointer pointer, DataType type) -> Status {
    if (isTaken)
      return verifyAlignedPointer(operation, name, pointer, type);
    if (pointer.address)
      return invalidArgument(fmt::format("{}: weight {} is given; the options have none", operation, name));
    return Status::ok();
  };
  const bool isNormed = options.normEpsilon.has_value();
  DITRON_RETURN_IF_ERROR(check(true, "qkv", weights.qkv, options.dtype));
  DITRON_RETURN_IF_ERROR(check(true, "out", weights.out, options.dtype));
  DITRON_RETURN_IF_ERROR(check(options.qkvBias, "qkvBias", weights.qkvBias, options.dtype));
  DITRON_RETURN_IF_ERROR(check(isNormed, "qNorm", weights.qNorm, options.dtype));
  DITRON_RETURN_IF_ERROR(check(isNormed, "kNorm", weights.kNorm, options.dtype));
  DITRON_RETURN_IF_ERROR(check(options.rotary.dim != 0, "rotary", weights.rotary, DataType::F32));
  DecodeProblem few;
  few.batch = options.maxBatch;
  few.heads = ownHeads();
  few.kvHeads = kvHeadsOf(options, ranks);
  few.headDim = options.headDim;
  few.dtype = options.dtype;
  few.keys = keyLayout();
  few.scale = options.scale;
  DITRON_ASSIGN_OR_RETURN(AttentionDecode decode, AttentionDecode::create(rank, *kernels, few));
  auto own = std::make_unique<PerRank>(PerRank{.weights = weights,
                                               .rows = {},
                                               .q = {},
                                               .attended = {},
                                               .kept = {},
                                               .attention = AttentionCalls(rank, *kernels),
                                               .decode = std::move(decode)});
  const int64_t elements = mostTokens() * ownHeads() * options.headDim;
  DITRON_ASSIGN_OR_RETURN(own->rows, rank.allocate(options.dtype, mostTokens() * ownColumns(), "attention_rows"));
  DITRON_ASSIGN_OR_RETURN(own->q, rank.allocate(options.dtype, elements, "attention_q"));
  DITRON_ASSIGN_OR_RETURN(own->attended, rank.allocate(options.dtype, elements, "attended"));
  ofRanks[rank.id()] = std::move(own);
  return Status::ok();
}

KeyLayout TensorParallelAttention::keyLayout() const {
  const Options &options = optionValues;
  const int64_t own = kvHeadsOf(options, ranks);
  if (options.pageSize == 0)
    return KeyLayout::keysFirst(own, options.maxKeys, options.headDim);
  return KeyLayout::paged(options.pageSize, ceilDivide(options.maxKeys, options.pageSize), own, options.headDim);
}

int64_t TensorParallelAttention::cacheElements() const {
  return keyLayout().pageStride * (optionValues.pageSize == 0 ? optionValues.maxBatch : optionValues.pages);
}

AttentionProblem TensorParallelAttention::attentionProblem(const Call &call) const {
  const Options &options = optionValues;
  AttentionProblem problem;
  problem.batch = call.batch;
  problem.heads = ownHeads();
  problem.kvHeads = kvHeadsOf(options, ranks);
  problem.queries = *call.longest;
  problem.keys = options.maxKeys;
  problem.headDim = options.headDim;
  problem.causal = true;
  problem.dtype = options.dtype;
  problem.scale = options.scale;
  problem.layout = AttentionLayout::RowsFirst;
  problem.packedQueries = call.tokens;
  if (options.pageSize != 0)
    problem.pages = AttentionPages{.count = options.pages, .size = options.pageSize};
  return problem;
}

Status TensorParallelAttention::verifyCall(const Call &call) const {
  if (call.batch < 1 || call.batch > optionValues.maxBatch)
    return invalidArgument(
        fmt::format("{}: {} sequences; 1 to {} (maxBatch) are accepted", operation, call.batch, optionValues.maxBatch));
  if (!call.longest)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(verifyTokenCount(operation, call.tokens, 1, optionValues.maxTokens));
  if (*call.longest < 1 || *call.longest > call.tokens)
    return invalidArgument(fmt::format("{}: {} tokens of the longest sequence; 1 to {} (tokens) are accepted",
                                       operation, *call.longest, call.tokens));
  return Status::ok();
}

Status TensorParallelAttention::verifyOperands(const Call &call, const Operands &operands) const {
  const DataType type = optionValues.dtype;
  for (auto [name, pointer] : {std::pair("x", operands.x), std::pair("y", operands.y), std::pair("keys", operands.keys),
                               std::pair("values", operands.values)})
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, type));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lengths", operands.lengths, DataType::I32));
  if (call.longest)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "offsets", operands.offsets, DataType::I32));
  if (optionValues.pageSize != 0)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "table", operands.table, DataType::I32));
  return Status::ok();
}

KeptPlans<TensorParallelAttention::Plan>::Key TensorParallelAttention::keyOf(const Call &call,
                                                                             const Operands &operands) const {
  return {
      call.longest.has_value(),   call.tokens, call.batch, alignmentOf(operands.lengths), alignmentOf(operands.offsets),
      alignmentOf(operands.table)};
}

Expected<TensorParallelAttention::Plan> TensorParallelAttention::makePlan(runtime::Rank &rank, const Call &call,
                                                                          const Operands &operands) const {
  const Options &options = optionValues;
  const PerRank &own = *ofRanks[rank.id()];
  Plan plan;
  if (!areDealt()) {
    GemmProblem product;
    product.m = call.tokens;
    product.n = ownColumns();
    product.k = options.hidden;
    product.dtype = options.dtype;
    product.epilogue = epilogueOf(options);
    DITRON_ASSIGN_OR_RETURN(plan.product,
                            prepareGemm(*kernels, rank, product, operands.x, own.weights.qkv, own.rows, std::nullopt,
                                        {.scalesA = {}, .scalesB = {}, .bias = own.weights.qkvBias}));
    DITRON_ASSIGN_OR_RETURN(plan.tokenParameter, plan.product->pointerParameter("a_ptr"));
  }
  AttentionHeadsProblem heads;
  heads.tokens = call.tokens;
  heads.batch = call.batch;
  heads.heads = ownHeads();
  heads.kvHeads = kvHeadsOf(options, ranks);
  heads.headDim = options.headDim;
  heads.dtype = options.dtype;
  heads.keys = keyLayout();
  heads.rotary = options.rotary;
  heads.normEpsilon = options.normEpsilon;
  DITRON_ASSIGN_OR_RETURN(plan.heads,
                          prepareAttentionHeads(*kernels, rank, heads,
                                                {.rows = own.rows,
                                                 .q = own.q,
                                                 .keys = operands.keys,
                                                 .values = operands.values,
                                                 .lengths = operands.lengths,
                                                 .offsets = call.longest ? operands.offsets : runtime::Pointer(),
                                                 .table = operands.table,
                                                 .qNorm = own.weights.qNorm,
                                                 .kNorm = own.weights.kNorm,
                                                 .rotary = own.weights.rotary}));
  const auto exchange = [&](bool isTaken, std::string_view name, runtime::Pointer Operands::*pointer) -> Status {
    if (!isTaken)
      return Status::ok();
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, plan.heads.pointerParameter(name));
    plan.pointers.emplace_back(parameter, pointer);
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(exchange(true, "k_ptr", &Operands::keys));
  DITRON_RETURN_IF_ERROR(exchange(true, "v_ptr", &Operands::values));
  DITRON_RETURN_IF_ERROR(exchange(true, "lengths_ptr", &Operands::lengths));
  DITRON_RETURN_IF_ERROR(exchange(call.longest.has_value(), "offsets_ptr", &Operands::offsets));
  DITRON_RETURN_IF_ERROR(exchange(options.pageSize != 0, "table_ptr", &Operands::table));
  return plan;
}

Status TensorParallelAttention::prepare(runtime::Rank &rank, const Call &call) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyCall(call));
  PerRank &own = *ofRanks[rank.id()];
  if (gatherProduct)
    DITRON_RETURN_IF_ERROR(gatherProduct->prepare(rank, call.tokens, ownColumns()));
  // Only types and alignment matter.
  const runtime::Pointer any = own.rows, words = any.as(DataType::I32);
  const Operands operands = {
      .x = any, .y = any, .keys = any, .values = any, .lengths = words, .offsets = words, .table = words};
  if (const auto key = keyOf(call, operands); !own.kept.has(key)) { // graphs may have its kernels
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, call, operands));
    own.kept.keep(key, std::move(made));
  }
  if (call.longest) {
    AttentionOperands attention = {.q = own.q, .k = any, .v = any, .out = own.attended};
    attention.queryOffsets = attention.keyLengths = words;
    if (optionValues.pageSize != 0)
      attention.blockTable = words;
    DITRON_RETURN_IF_ERROR(own.attention.prepare(attentionProblem(call), attention));
  } else {
    DITRON_RETURN_IF_ERROR(own.decode.prepare(call.batch));
  }
  const int64_t depth = ownHeads() * optionValues.headDim;
  return scatteredProduct ? scatteredProduct->prepare(rank, call.tokens, depth)
                          : reducedProduct->prepare(rank, call.tokens, depth);
}

Status TensorParallelAttention::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Call &call,
                                        const Operands &given) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyCall(call));
  PerRank &own = *ofRanks[rank.id()];
  Operands operands = given;
  if (areDealt() && RowShards(call.tokens, ranks).rowsOf(rank.id()) == 0) // nothing is read or written there
    operands.x = operands.y = own.rows;
  DITRON_RETURN_IF_ERROR(verifyOperands(call, operands));
  const auto describe = [&] {
    return fmt::format("{} tokens of {} sequences ({})", call.tokens, call.batch, call.longest ? "prefill" : "decode");
  };
  DITRON_ASSIGN_OR_RETURN(Plan * plan, own.kept.find(operation, stream, keyOf(call, operands), describe,
                                                     [&] { return makePlan(rank, call, operands); }));
  if (plan->product) {
    DITRON_RETURN_IF_ERROR(plan->product->setPointer(plan->tokenParameter, operands.x));
    DITRON_RETURN_IF_ERROR(plan->product->enqueue(stream));
  } else {
    DITRON_RETURN_IF_ERROR(gatherProduct->enqueue(rank, stream, operands.x, own.weights.qkv, own.rows, call.tokens,
                                                  ownColumns(),
                                                  {.scalesA = {}, .scalesB = {}, .bias = own.weights.qkvBias}));
  }
  for (const auto &[parameter, pointer] : plan->pointers)
    DITRON_RETURN_IF_ERROR(plan->heads.setPointer(parameter, operands.*pointer));
  DITRON_RETURN_IF_ERROR(plan->heads.enqueue(stream));
  if (call.longest) {
    AttentionOperands attention = {.q = own.q, .k = operands.keys, .v = operands.values, .out = own.attended};
    attention.queryOffsets = operands.offsets;
    attention.keyLengths = operands.lengths;
    if (optionValues.pageSize != 0)
      attention.blockTable = operands.table;
    DITRON_RETURN_IF_ERROR(own.attention.enqueue(stream, attentionProblem(call), attention));
  } else {
    DITRON_RETURN_IF_ERROR(own.decode.enqueue(stream,
                                              {.q = own.q,
                                               .k = operands.keys,
                                               .v = operands.values,
                                               .out = own.attended,
                                               .lse = {},
                                               .lengths = operands.lengths,
                                               .table = operands.table},
                                              call.batch));
  }
  const int64_t depth = ownHeads() * optionValues.headDim;
  PlannedProduct &behind = scatteredProduct ? static_cast<PlannedProduct &>(*scatteredProduct) : *reducedProduct;
  return behind.enqueue(rank, stream, own.attended, own.weights.out, operands.y, call.tokens, depth);
}

Status TensorParallelAttention::preparePrefill(runtime::Rank &rank, int64_t tokens, int64_t batch, int64_t longest) {
  return prepare(rank, {tokens, batch, longest});
}

Status TensorParallelAttention::prepareDecode(runtime::Rank &rank, int64_t batch) {
  return prepare(rank, {batch, batch, std::nullopt});
}

Status TensorParallelAttention::prefill(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands,
                                        int64_t tokens, int64_t batch, int64_t longest) {
  return enqueue(rank, stream, {tokens, batch, longest}, operands);
}

Status TensorParallelAttention::decode(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands,
                                       int64_t batch) {
  return enqueue(rank, stream, {batch, batch, std::nullopt}, operands);
}

} // namespace ditron::ops
