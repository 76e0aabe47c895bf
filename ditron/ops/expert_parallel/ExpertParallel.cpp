//===- ExpertParallel.cpp - Tokens to the ranks of their experts, and back ------------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallel.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/moe/Routing.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/ops/plans/PlanTable.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "expert_parallel";
constexpr int64_t mostWords = std::numeric_limits<int32_t>::max();
/// Of the device code: HANDLE_BEGIN, SCALED.
constexpr int64_t handleBegin = 16, scaled = 128;
constexpr uint64_t sets = 2;

using Part = ExpertParallel::Part;
bool isSending(Part part) { return part != Part::Receive; }
bool isReceiving(Part part) { return part != Part::Send; }

uint32_t powerOfTwoFor(int64_t value) {
  return static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

Status verifyOptions(const ExpertParallelOptions &options, uint32_t ranks) {
  const auto refuse = [](std::string_view name, int64_t value, std::string_view accepted) {
    return invalidArgument(fmt::format("{}: {} is {}; {}", operation, name, value, accepted));
  };
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  constexpr int64_t mostHidden = 1 << 20;
  if (options.hidden < 1 || options.hidden > mostHidden)
    return refuse("hidden", options.hidden, fmt::format("1 to {} are accepted", mostHidden));
  if (options.experts == 0 || options.experts > mostExperts || options.experts % ranks != 0)
    return refuse("experts", options.experts,
                  fmt::format("multiples of the {} ranks up to {} are accepted", ranks, mostExperts));
  if (options.topK == 0 || options.topK > mostTopK)
    return refuse("topK", options.topK, fmt::format("1 to {} are accepted", mostTopK));
  const int64_t mostTokens = mostWords / options.topK / ranks;
  if (options.maxTokens < 1 || options.maxTokens > mostTokens)
    return refuse("maxTokens", options.maxTokens,
                  fmt::format("1 to {} are accepted with {} ranks and topK {}", mostTokens, ranks, options.topK));
  const int64_t mostCapacity = options.maxTokens * options.topK;
  if (options.capacity < 0 || options.capacity > mostCapacity)
    return refuse("capacity", options.capacity,
                  fmt::format("1 to {} (maxTokens * topK) are accepted, or 0 for maxTokens", mostCapacity));
  if (options.maxRows < 0)
    return refuse("maxRows", options.maxRows, "1 or more are accepted, or 0 for all that can come");
  if (options.concurrentCalls == 0)
    return refuse("concurrentCalls", 0, "1 or more are accepted");
  return Status::ok();
}

} // namespace

Expected<ExpertParallel> ExpertParallel::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                const ExpertParallelOptions &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifyOptions(options, world.numRanks()));
  ExpertParallel op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  if (options.capacity == 0)
    op.optionValues.capacity = options.maxTokens;
  const int64_t most = op.mostRows();
  op.optionValues.maxRows = options.maxRows == 0 ? most : std::min(options.maxRows, most);
  if (options.plan) {
    DITRON_ASSIGN_OR_RETURN(op.planValue, parseExpertParallelPlan(options.plan->text()));
  } else {
    DITRON_ASSIGN_OR_RETURN(const PlanChoice tables, PlanChoice::create(world, operation, options.dtype, options.gpu));
    const PlanRow *row = tables.find({{"tokens", options.maxTokens}, {"hidden", options.hidden}});
    if (!row)
      return internalError(fmt::format("plans: {} has no row for this GPU", operation));
    DITRON_ASSIGN_OR_RETURN(op.planValue, parseExpertParallelPlan(row->plan));
  }
  const uint32_t multiprocessors = world.rank(world.localRanks().front()).attributes().multiprocessors;
  for (uint32_t *blocks : {&op.planValue.blocks, &op.planValue.combineBlocks})
    *blocks = std::clamp(multiprocessors / options.concurrentCalls, 1u, *blocks);
  DITRON_RETURN_IF_ERROR(PlanAgreement(world, operation).begin(world, op.planValue.text()));
  DITRON_RETURN_IF_ERROR(op.allocate());
  DITRON_ASSIGN_OR_RETURN(op.report, TransferReport::create(world, std::string(operation), "rows"));
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.ranks[id] = std::make_unique<PerRank>();
  return op;
}

int64_t ExpertParallel::mostRows() const {
  return std::min(world->numRanks() * maxSlots(), optionValues.experts * optionValues.capacity);
}

int64_t ExpertParallel::handleElements() const { return handleBegin + 2 * maxSlots() + mostRows(); }

int64_t ExpertParallel::scalesOfRow() const { return optionValues.fp8 ? ceilDivide(optionValues.hidden, scaled) : 0; }

// So that each row begins at a multiple of 16 bytes.
int64_t ExpertParallel::rowStride(DataType type) const {
  const int64_t elements = planAlignment / static_cast<int64_t>(sizeOf(type));
  return ceilDivide(optionValues.hidden, elements) * elements;
}

Status ExpertParallel::allocateWords(Words &words, uint64_t told, uint32_t blocks, const std::string &name) {
  DITRON_ASSIGN_OR_RETURN(words.told, world->allocateSymmetric(DataType::I64, told, name + "_told"));
  DITRON_ASSIGN_OR_RETURN(words.sent, allocateCounters(*world, blocks, name + "_sent"));
  DITRON_ASSIGN_OR_RETURN(words.received, allocateCounters(*world, blocks, name + "_received"));
  DITRON_ASSIGN_OR_RETURN(words.arrivals, allocateCounters(*world, 1, name + "_arrivals"));
  return Status::ok();
}

Status ExpertParallel::allocate() {
  const uint64_t experts = optionValues.experts, rows = sets * experts * optionValues.capacity;
  const DataType type = optionValues.fp8 ? DataType::F8E4NV : bitsOf(optionValues.dtype);
  DITRON_ASSIGN_OR_RETURN(slots, world->allocateSymmetric(type, rows * rowStride(type), "ep_dispatch_slots"));
  DITRON_ASSIGN_OR_RETURN(origins, world->allocateSymmetric(DataType::I32, rows, "ep_dispatch_origins"));
  DITRON_ASSIGN_OR_RETURN(scales, world->allocateSymmetric(DataType::F32, std::max<uint64_t>(rows * scalesOfRow(), 1),
                                                           "ep_dispatch_scales"));
  DITRON_ASSIGN_OR_RETURN(returned, world->allocateSymmetric(optionValues.dtype,
                                                             sets * maxSlots() * rowStride(optionValues.dtype),
                                                             "ep_combine_slots"));
  DITRON_ASSIGN_OR_RETURN(counts, allocateCounters(*world, optionValues.experts, "ep_dispatch_counts"));
  DITRON_RETURN_IF_ERROR(allocateWords(dispatchWords, sets * experts, planValue.blocks, "ep_dispatch"));
  return allocateWords(combineWords, world->numRanks(), planValue.combineBlocks, "ep_combine");
}

uint64_t ExpertParallel::workspaceBytes() const {
  uint64_t bytes = slots.bytes() + scales.bytes() + origins.bytes() + returned.bytes();
  for (const Words *words : {&dispatchWords, &combineWords})
    bytes += words->told.bytes();
  return bytes;
}

ExpertParallel::Named ExpertParallel::dispatchPointers(const DispatchOperands &operands, Part part) const {
  Named pointers;
  if (isSending(part)) {
    pointers.insert(pointers.end(), {{"x_ptr", operands.x}, {"ids_ptr", operands.ids}});
    if (operands.weights.address)
      pointers.emplace_back("weights_ptr", operands.weights);
  }
  if (isReceiving(part)) {
    pointers.emplace_back("rows_ptr", operands.rows);
    if (optionValues.fp8)
      pointers.emplace_back("row_scales_ptr", operands.scales);
    pointers.emplace_back("offsets_ptr", operands.offsets);
  }
  pointers.emplace_back("handle_ptr", operands.handle);
  return pointers;
}

ExpertParallel::Named ExpertParallel::combinePointers(const CombineOperands &operands, Part part) const {
  Named pointers;
  if (isSending(part))
    pointers.emplace_back("rows_ptr", operands.rows);
  if (isReceiving(part))
    pointers.emplace_back("out_ptr", operands.out);
  pointers.emplace_back("handle_ptr", operands.handle);
  return pointers;
}

Expected<ExpertParallel::Plan> ExpertParallel::makeDispatch(runtime::Rank &rank, const Named &pointers,
                                                            Part part) const {
  const uint32_t id = rank.id();
  const bool fp8 = optionValues.fp8;
  const DataType bits = fp8 ? optionValues.dtype : bitsOf(optionValues.dtype);
  const uint32_t slotsOfToken = powerOfTwoFor(optionValues.topK);
  const auto i64 = [](int64_t value) { return runtime::Argument::typed(DataType::I64, value); };
  constexpr int64_t bytesOfThread = 16;
  const int64_t elements = planValue.numWarps * rank.attributes().warpSize * bytesOfThread / int64_t(sizeOf(bits));
  KernelCall call;
  call.kernel = "dispatch";
  call.numWarps = planValue.numWarps;
  call.grid = {planValue.blocks, 1, 1};
  call.arguments = {
      {"slots_ptr", slots.on(id)},
      {"scales_ptr", fp8 ? runtime::Argument(scales.on(id)) : runtime::Argument(runtime::None())},
      {"origins_ptr", origins.on(id)},
      {"counts_ptr", counts[id].pointer()},
      {"error_ptr", report.on(id)},
      {"stride", rowStride(slots.on(id).type)},
      {"experts", optionValues.experts},
      {"capacity", i64(optionValues.capacity)},
      {"max_rows", i64(optionValues.maxRows)},
      {"SLOTS", slotsOfToken},
      {"EXPERTS", powerOfTwoFor(optionValues.experts)},
      {"CHUNK", std::clamp<int64_t>(powerOfTwoFor(optionValues.hidden), scaled, std::max(elements, scaled))},
      {"SCAN", std::min(std::clamp(8192 / slotsOfToken, 64u, 1024u), powerOfTwoFor(std::max<int64_t>(maxSlots(), 64)))},
  };
  // Parameters of the part that is left out.
  const auto none = [&](std::string_view name) {
    call.arguments.emplace_back(std::string(name), runtime::Argument(runtime::None()));
  };
  const auto given = [&](std::string_view name) {
    return std::ranges::any_of(pointers, [&](const auto &pointer) { return pointer.first == name; });
  };
  for (std::string_view name : {"x_ptr", "ids_ptr", "weights_ptr", "rows_ptr", "row_scales_ptr", "offsets_ptr"})
    if (!given(name))
      none(name);
  Named typed = pointers;
  for (auto &[name, pointer] : typed)
    if (name == "x_ptr")
      pointer = pointer.as(bits);
    else if (name == "rows_ptr")
      pointer = pointer.as(slots.on(id).type);
  return makePlan(rank, std::move(call), typed, dispatchWords, part);
}

Expected<ExpertParallel::Plan> ExpertParallel::makeCombine(runtime::Rank &rank, const Named &pointers,
                                                           Part part) const {
  constexpr int64_t bytesOfThread = 16, least = 128;
  const int64_t elements = planValue.combineNumWarps * rank.attributes().warpSize * bytesOfThread /
                           static_cast<int64_t>(sizeOf(optionValues.dtype));
  KernelCall call;
  call.kernel = "combine";
  call.numWarps = planValue.combineNumWarps;
  call.grid = {planValue.combineBlocks, 1, 1};
  call.arguments = {
      {"slots_ptr", returned.on(rank.id())},
      {"stride", rowStride(optionValues.dtype)},
      {"max_rows", runtime::Argument::typed(DataType::I64, optionValues.maxRows)},
      {"most_rows", runtime::Argument::typed(DataType::I64, mostRows())},
      {"CHUNK", std::clamp<int64_t>(powerOfTwoFor(optionValues.hidden), least, std::max(elements, least))}};
  if (!isSending(part))
    call.arguments.emplace_back("rows_ptr", runtime::Argument(runtime::None()));
  if (!isReceiving(part))
    call.arguments.emplace_back("out_ptr", runtime::Argument(runtime::None()));
  return makePlan(rank, std::move(call), pointers, combineWords, part);
}

Expected<ExpertParallel::Plan> ExpertParallel::makePlan(runtime::Rank &rank, KernelCall call, const Named &pointers,
                                                        const Words &words, Part part) const {
  const uint32_t id = rank.id();
  const auto i64 = [](int64_t value) { return runtime::Argument::typed(DataType::I64, value); };
  call.source = "expert_parallel/low_latency";
  call.arguments.insert(call.arguments.end(), {{"words_ptr", words.told.on(id)},
                                               {"sent_ptr", words.sent[id].pointer()},
                                               {"received_ptr", words.received[id].pointer()},
                                               {"arrivals_ptr", words.arrivals[id].pointer()},
                                               {"tokens", i64(0)},
                                               {"hidden", optionValues.hidden},
                                               {"max_slots", i64(maxSlots())},
                                               {"rank", id},
                                               {"WORLD", rank.numRanks()},
                                               {"TOP_K", optionValues.topK},
                                               {"SEND", isSending(part)},
                                               {"RECEIVE", isReceiving(part)}});
  for (const auto &[name, pointer] : pointers)
    call.arguments.emplace_back(std::string(name), pointer);
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  for (const auto &[name, pointer] : pointers) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.call.pointerParameter(name));
    made.pointers.push_back(parameter);
  }
  DITRON_ASSIGN_OR_RETURN(made.tokens, made.call.integerParameter("tokens"));
  return made;
}

namespace {

/// Of the operands to which code is compiled: those of rows.
bool holdsRows(std::string_view name) {
  return name == "x_ptr" || name == "rows_ptr" || name == "row_scales_ptr" || name == "out_ptr";
}

} // namespace

Status ExpertParallel::prepare(runtime::Rank &rank, bool parts) {
  const runtime::Pointer words = origins.on(rank.id()), floats = words.as(DataType::F32),
                         values = words.as(optionValues.dtype);
  const DispatchOperands aligned = {values, 0, words, floats, values, floats, words, words};
  DispatchOperands unweighted = aligned;
  unweighted.weights = {};
  const CombineOperands combined = {values, values, 0, words};
  std::vector<Part> wanted = {Part::Whole};
  if (parts)
    wanted.insert(wanted.end(), {Part::Send, Part::Receive});
  KeptPlans<Plan> &kept = ranks[rank.id()]->kept;
  for (Part part : wanted) {
    for (const DispatchOperands &operands : {aligned, unweighted}) {
      const Named pointers = dispatchPointers(operands, part);
      const KeptPlans<Plan>::Key key = keyOf(true, pointers, part);
      if (kept.has(key)) // graphs may have its kernel
        continue;
      DITRON_ASSIGN_OR_RETURN(Plan made, makeDispatch(rank, pointers, part));
      kept.keep(key, std::move(made));
    }
    const Named pointers = combinePointers(combined, part);
    const KeptPlans<Plan>::Key key = keyOf(false, pointers, part);
    if (kept.has(key))
      continue;
    DITRON_ASSIGN_OR_RETURN(Plan made, makeCombine(rank, pointers, part));
    kept.keep(key, std::move(made));
  }
  return Status::ok();
}

KeptPlans<ExpertParallel::Plan>::Key ExpertParallel::keyOf(bool isDispatch, const Named &pointers, Part part) const {
  KeptPlans<Plan>::Key key = {isDispatch, static_cast<int64_t>(part), static_cast<int64_t>(pointers.size())};
  for (const auto &[name, pointer] : pointers)
    if (holdsRows(name))
      key.push_back(alignmentOf(pointer));
  return key;
}

Status ExpertParallel::enqueue(runtime::Rank &rank, runtime::Stream &stream, bool isDispatch, const Named &pointers,
                               int64_t tokens, Part part) {
  const std::string name = fmt::format("{}: {}", operation, isDispatch ? "dispatch" : "combine");
  if (tokens < 0 || tokens > optionValues.maxTokens)
    return invalidArgument(
        fmt::format("{}: {} tokens; 0 to {} (maxTokens) are accepted", name, tokens, optionValues.maxTokens));
  for (const auto &[parameter, pointer] : pointers) {
    const bool isOfTokens = parameter == "x_ptr" || parameter == "ids_ptr" || parameter == "out_ptr";
    if (isOfTokens && tokens == 0)
      continue;
    DataType type = DataType::I32;
    if (parameter == "weights_ptr" || parameter == "row_scales_ptr")
      type = DataType::F32;
    else if (holdsRows(parameter))
      type = parameter == "rows_ptr" && isDispatch && optionValues.fp8 ? DataType::F8E4NV : optionValues.dtype;
    const std::string_view shown = parameter.substr(0, parameter.size() - std::string_view("_ptr").size());
    DITRON_RETURN_IF_ERROR(verifyPointerType(name, shown, pointer, type));
    if (reinterpret_cast<uintptr_t>(pointer.address) % sizeOf(type) != 0)
      return invalidArgument(
          fmt::format("{}: operand {} is no multiple of {} bytes, which an element has", name, shown, sizeOf(type)));
  }
  PerRank &own = *ranks[rank.id()];
  bool &isSent = isDispatch ? own.isDispatchSent : own.isCombineSent;
  if (isSending(part) && isSent)
    return invalidArgument(
        fmt::format("{}: the one before was sent and not received yet; enqueue its Receive first", name));
  if (part == Part::Receive && !isSent)
    return invalidArgument(fmt::format("{}: a Receive, but nothing was sent that is not received", name));
  auto describe = [&] {
    std::string text = part == Part::Whole ? "" : part == Part::Send ? "Send, " : "Receive, ";
    for (const auto &[parameter, pointer] : pointers)
      if (holdsRows(parameter))
        text += fmt::format("{} at multiples of {} bytes, ", parameter.substr(0, parameter.size() - 4),
                            alignmentOf(pointer));
    return text.substr(0, text.size() - 2);
  };
  DITRON_ASSIGN_OR_RETURN(Plan * found, own.kept.find(name, stream, keyOf(isDispatch, pointers, part), describe, [&] {
    return isDispatch ? makeDispatch(rank, pointers, part) : makeCombine(rank, pointers, part);
  }));
  for (size_t i = 0; i < pointers.size(); ++i)
    DITRON_RETURN_IF_ERROR(found->call.setPointer(found->pointers[i], pointers[i].second));
  DITRON_RETURN_IF_ERROR(found->call.setInteger(found->tokens, tokens));
  DITRON_RETURN_IF_ERROR(found->call.enqueue(stream));
  isSent = part == Part::Send;
  return Status::ok();
}

Status ExpertParallel::dispatch(runtime::Rank &rank, runtime::Stream &stream, const DispatchOperands &operands,
                                Part part) {
  return enqueue(rank, stream, true, dispatchPointers(operands, part), isSending(part) ? operands.tokens : 0, part);
}

Status ExpertParallel::combine(runtime::Rank &rank, runtime::Stream &stream, const CombineOperands &operands,
                               Part part) {
  return enqueue(rank, stream, false, combinePointers(operands, part), isReceiving(part) ? operands.tokens : 0, part);
}

} // namespace ditron::ops
