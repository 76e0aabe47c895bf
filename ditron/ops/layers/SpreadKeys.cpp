//===- SpreadKeys.cpp - A layer's decoding with keys that are spread over the ranks -----------------------------------------===//
#include "ditron/ops/layers/SpreadKeys.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "SequenceParallelAttention";

using Memory = SpreadKeysMemory;

} // namespace

Status SpreadKeys::Launch::enqueue(runtime::Stream &stream, const Memory &memory) {
  for (const auto &[parameter, pointer] : pointers)
    DITRON_RETURN_IF_ERROR(call.setPointer(parameter, memory.*pointer));
  return call.enqueue(stream);
}

Expected<SpreadKeys> SpreadKeys::create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const SpreadKeysOptions &options) {
  const SpreadKeyCache &cache = options.cache;
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"maxBatch", cache.maxBatch},
                                                       {"maxKeys", cache.maxKeys},
                                                       {"pageSize", cache.pageSize, 0},
                                                       {"pages", cache.pages, 0}}));
  if ((cache.pageSize > 0) != (cache.pages > 0))
    return invalidArgument(fmt::format("{}: a cache of {} pages of {} keys; at least one page of at least one key is "
                                       "accepted, or 0 of 0 for a cache without pages",
                                       operation, cache.pages, cache.pageSize));
  DITRON_RETURN_IF_ERROR(verifyCacheElements(operation, {.batch = cache.maxBatch,
                                                         .keys = cache.maxKeys,
                                                         .pageSize = cache.pageSize,
                                                         .pages = cache.pages,
                                                         .kvHeads = options.kvHeads,
                                                         .headDim = options.headDim}));
  SpreadKeys made;
  made.optionValues = options;
  made.world = &world;
  made.kernels = &kernels;
  ShardedAttentionDecodeOptions decode;
  decode.concurrentCalls = cache.concurrentCalls;
  decode.problem.batch = cache.maxBatch;
  decode.problem.heads = options.heads;
  decode.problem.kvHeads = options.kvHeads;
  decode.problem.headDim = options.headDim;
  decode.problem.dtype = options.dtype;
  decode.problem.scale = options.scale;
  decode.problem.keys = made.keyLayout();
  DITRON_ASSIGN_OR_RETURN(made.attention, ShardedAttentionDecode::create(world, kernels, decode));
  const int64_t mostTokens = std::max(options.batch * options.maxRows, cache.maxBatch);
  made.ofRanks.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    auto own = std::make_unique<PerRank>();
    const int64_t steps = cache.maxBatch * made.width();
    DITRON_ASSIGN_OR_RETURN(own->rows, rank.allocate(options.dtype, mostTokens * made.columns(), "spread_rows"));
    DITRON_ASSIGN_OR_RETURN(own->q, rank.allocate(options.dtype, steps, "spread_q"));
    DITRON_ASSIGN_OR_RETURN(own->attended, rank.allocate(options.dtype, steps, "spread_attended"));
    made.ofRanks[id] = std::move(own);
  }
  return made;
}

KeyLayout SpreadKeys::keyLayout() const {
  const SpreadKeyCache &cache = optionValues.cache;
  if (cache.pageSize == 0)
    return KeyLayout::keysFirst(optionValues.kvHeads, cache.maxKeys, optionValues.headDim);
  return KeyLayout::paged(cache.pageSize, ceilDivide(cache.maxKeys, cache.pageSize), optionValues.kvHeads,
                          optionValues.headDim);
}

int64_t SpreadKeys::cacheElements() const {
  const SpreadKeyCache &cache = optionValues.cache;
  return keyLayout().pageStride * (cache.pageSize == 0 ? cache.maxBatch : cache.pages);
}

/// Only types and alignment matter.
Memory SpreadKeys::anyMemory(uint32_t rank) const {
  const runtime::Pointer data = ofRanks[rank]->rows, words = data.as(DataType::I32);
  Memory memory = {.x = data, .y = data, .qkv = data, .out = data, .keys = data, .values = data};
  memory.qNorm = memory.kNorm = data;
  memory.rotary = data.as(DataType::F32);
  memory.table = memory.lengths = memory.places = memory.positions = words;
  return memory;
}

Status SpreadKeys::verifyMemory(const Call &call, const Memory &memory) const {
  struct Operand {
    std::string_view name;
    bool isTaken;
    runtime::Pointer pointer;
    DataType type;
  };
  const DataType type = optionValues.dtype;
  const bool isNormed = optionValues.normEpsilon.has_value(), isStep = !call.uniform;
  for (const Operand &operand :
       {Operand{"x", true, memory.x, type}, Operand{"y", isStep, memory.y, type},
        Operand{"qkv", true, memory.qkv, type}, Operand{"out", isStep, memory.out, type},
        Operand{"keys", true, memory.keys, type}, Operand{"values", true, memory.values, type},
        Operand{"qNorm", isNormed, memory.qNorm, type}, Operand{"kNorm", isNormed, memory.kNorm, type},
        Operand{"rotary", optionValues.rotary.dim != 0, memory.rotary, DataType::F32}})
    if (operand.isTaken)
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, operand.name, operand.pointer, operand.type));
  for (const Operand &operand : {Operand{"table", optionValues.cache.pageSize != 0, memory.table, DataType::I32},
                                 Operand{"lengths", isStep, memory.lengths, DataType::I32},
                                 Operand{"places", isStep, memory.places, DataType::I32},
                                 Operand{"positions", isStep, memory.positions, DataType::I32}})
    if (operand.isTaken)
      DITRON_RETURN_IF_ERROR(verifyPointerType(operation, operand.name, operand.pointer, operand.type));
  return Status::ok();
}

KeptPlans<SpreadKeys::Plan>::Key SpreadKeys::keyOf(const Call &call, const Memory &memory) const {
  KeptPlans<Plan>::Key key = {call.uniform.has_value(), call.tokens, call.uniform ? call.uniform->firstPosition : 0,
                              alignmentOf(memory.table)};
  if (!call.uniform)
    key.insert(key.end(), {alignmentOf(memory.places), alignmentOf(memory.positions)});
  return key;
}

Expected<SpreadKeys::Launch>
SpreadKeys::makeLaunch(Expected<PreparedCall> call,
                       const std::vector<std::pair<std::string_view, runtime::Pointer SpreadKeysMemory::*>> &names) {
  if (!call.isOk())
    return call.status();
  Launch launch{std::move(call).value(), {}};
  for (const auto &[name, pointer] : names) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.pointerParameter(name));
    launch.pointers.emplace_back(parameter, pointer);
  }
  return launch;
}

Expected<SpreadKeys::Plan> SpreadKeys::makePlan(runtime::Rank &rank, const Call &call, const Memory &memory) const {
  const PerRank &own = *ofRanks[rank.id()];
  const bool isNormed = optionValues.normEpsilon.has_value(), isRotated = optionValues.rotary.dim != 0,
             isPaged = optionValues.cache.pageSize != 0, isStep = !call.uniform;
  GemmProblem product;
  product.m = call.tokens;
  product.n = columns();
  product.k = optionValues.hidden;
  product.dtype = optionValues.dtype;
  Plan plan;
  DITRON_ASSIGN_OR_RETURN(plan.product, makeLaunch(prepareGemm(*kernels, rank, product, memory.x, memory.qkv, own.rows),
                                                   {{"a_ptr", &Memory::x}, {"b_ptr", &Memory::qkv}}));
  AttentionHeadsProblem heads;
  heads.tokens = call.tokens;
  heads.batch = call.batch;
  heads.heads = optionValues.heads;
  heads.kvHeads = optionValues.kvHeads;
  heads.groups = world->numRanks();
  heads.headDim = optionValues.headDim;
  heads.dtype = optionValues.dtype;
  heads.keys = keyLayout();
  heads.rotary = optionValues.rotary;
  heads.normEpsilon = optionValues.normEpsilon;
  heads.uniform = call.uniform;
  AttentionHeadsOperands operands;
  operands.rows = own.rows;
  operands.keys = memory.keys;
  operands.values = memory.values;
  operands.table = memory.table;
  operands.qNorm = memory.qNorm;
  operands.kNorm = memory.kNorm;
  operands.rotary = memory.rotary;
  std::vector<std::pair<std::string_view, runtime::Pointer Memory::*>> names = {{"k_ptr", &Memory::keys},
                                                                                {"v_ptr", &Memory::values}};
  if (isPaged)
    names.emplace_back("table_ptr", &Memory::table);
  if (isNormed)
    names.insert(names.end(), {{"q_weight_ptr", &Memory::qNorm}, {"k_weight_ptr", &Memory::kNorm}});
  if (isRotated)
    names.emplace_back("rotary_ptr", &Memory::rotary);
  if (isStep) {
    operands.q = own.q;
    operands.places = memory.places;
    operands.positions = memory.positions;
    names.insert(names.end(), {{"places_ptr", &Memory::places}, {"positions_ptr", &Memory::positions}});
  }
  DITRON_ASSIGN_OR_RETURN(plan.heads, makeLaunch(prepareAttentionHeads(*kernels, rank, heads, operands), names));
  if (isStep) {
    product.n = optionValues.hidden;
    product.k = width();
    DITRON_ASSIGN_OR_RETURN(plan.back,
                            makeLaunch(prepareGemm(*kernels, rank, product, own.attended, memory.out, memory.y),
                                       {{"b_ptr", &Memory::out}, {"c_ptr", &Memory::y}}));
  }
  return plan;
}

Status SpreadKeys::keep(runtime::Rank &rank, const Call &call) {
  const Memory memory = anyMemory(rank.id());
  KeptPlans<Plan> &kept = ofRanks[rank.id()]->kept;
  const auto key = keyOf(call, memory);
  if (kept.has(key)) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, call, memory));
  kept.keep(key, std::move(made));
  return Status::ok();
}

Expected<SpreadKeys::Plan *> SpreadKeys::find(runtime::Rank &rank, runtime::Stream &stream, const Call &call,
                                              const Memory &memory) {
  const auto describe = [&] {
    return fmt::format("{} tokens ({})", call.tokens, call.uniform ? "for the cache" : "decode");
  };
  return ofRanks[rank.id()]->kept.find(operation, stream, keyOf(call, memory), describe,
                                       [&] { return makePlan(rank, call, memory); });
}

Status SpreadKeys::prepareFill(runtime::Rank &rank, int64_t rows, int64_t firstPosition) {
  if (rows == 0)
    return Status::ok();
  return keep(rank, {rows * optionValues.batch, optionValues.batch, UniformTokens{rows, firstPosition}});
}

Status SpreadKeys::fill(runtime::Rank &rank, runtime::Stream &stream, const Memory &memory, int64_t rows,
                        int64_t firstPosition) {
  if (rows > optionValues.cache.maxKeys || optionValues.batch > optionValues.cache.maxBatch)
    return invalidArgument(fmt::format("{}: {} tokens of {} sequences for a rank's cache; up to {} (maxKeys) of {} "
                                       "(maxBatch) are accepted",
                                       operation, rows, optionValues.batch, optionValues.cache.maxKeys,
                                       optionValues.cache.maxBatch));
  if (rows == 0)
    return Status::ok();
  const Call call = {rows * optionValues.batch, optionValues.batch, UniformTokens{rows, firstPosition}};
  DITRON_RETURN_IF_ERROR(verifyMemory(call, memory));
  DITRON_ASSIGN_OR_RETURN(Plan * plan, find(rank, stream, call, memory));
  DITRON_RETURN_IF_ERROR(plan->product.enqueue(stream, memory));
  return plan->heads.enqueue(stream, memory);
}

Status SpreadKeys::prepareDecode(runtime::Rank &rank, int64_t batch) {
  DITRON_RETURN_IF_ERROR(attention->prepare(rank, batch));
  return keep(rank, {batch, batch, std::nullopt});
}

Status SpreadKeys::decode(runtime::Rank &rank, runtime::Stream &stream, const Memory &memory, int64_t batch) {
  if (batch < 1 || batch > optionValues.cache.maxBatch)
    return invalidArgument(fmt::format("{}: {} sequences; 1 to {} (maxBatch) are accepted", operation, batch,
                                       optionValues.cache.maxBatch));
  const Call call = {batch, batch, std::nullopt};
  DITRON_RETURN_IF_ERROR(verifyMemory(call, memory));
  const PerRank &own = *ofRanks[rank.id()];
  DITRON_ASSIGN_OR_RETURN(Plan * plan, find(rank, stream, call, memory));
  DITRON_RETURN_IF_ERROR(plan->product.enqueue(stream, memory));
  DITRON_RETURN_IF_ERROR(plan->heads.enqueue(stream, memory));
  DITRON_RETURN_IF_ERROR(attention->enqueue(rank, stream,
                                            {.q = own.q,
                                             .k = memory.keys,
                                             .v = memory.values,
                                             .out = own.attended,
                                             .lse = {},
                                             .lengths = memory.lengths,
                                             .table = memory.table},
                                            batch));
  return plan->back->enqueue(stream, memory);
}

} // namespace ditron::ops
