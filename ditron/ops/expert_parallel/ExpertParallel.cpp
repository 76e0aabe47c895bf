//===- ExpertParallel.cpp - Tokens to the ranks of their experts, and back ------------------------------------------------===//
#include "ditron/ops/expert_parallel/ExpertParallel.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/expert_parallel/ExchangeLimits.h"
#include "ditron/ops/expert_parallel/ExpertParallelProtocol.h"
#include "ditron/ops/moe/Routing.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/ops/plans/PlanTable.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "expert_parallel";

using Part = ExpertParallel::Part;
bool isSending(Part part) { return part != Part::Receive; }
bool isReceiving(Part part) { return part != Part::Send; }

Status verifyOptions(const ExpertParallelOptions &options, uint32_t ranks) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  constexpr int64_t mostHidden = 1 << 20;
  if (options.hidden < 1 || options.hidden > mostHidden)
    return refuseOption(operation, "hidden", options.hidden, fmt::format("1 to {} are accepted", mostHidden));
  return verifyExchange(operation, options, ranks);
}

} // namespace

Expected<ExpertParallel> ExpertParallel::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                const ExpertParallelOptions &options) {
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
  DITRON_RETURN_IF_ERROR(verifyForm(op.planValue.form, world.numNodes()));
  const uint32_t multiprocessors = world.rank(world.localRanks().front()).attributes().multiprocessors,
                 places = multiprocessors / options.concurrentCalls, perChannel = blocksPerChannel(op.planValue.form);
  if (places < perChannel)
    return invalidArgument(
        fmt::format("{}: {} calls at once on {} multiprocessors; {} blocks of each must find a place", operation,
                    options.concurrentCalls, multiprocessors, perChannel));
  for (uint32_t *blocks : {&op.planValue.blocks, &op.planValue.combineBlocks})
    *blocks = std::min(*blocks, places) / perChannel * perChannel;
  DITRON_RETURN_IF_ERROR(PlanAgreement(world, operation).begin(world, op.planValue.text()));
  const ExpertParallelSetting setting = {op.optionValues, op.planValue, &world, most};
  switch (op.planValue.form) {
  case ExpertParallelForm::LowLatency: op.protocol = makeLowLatency(setting); break;
  case ExpertParallelForm::HighThroughput: op.protocol = makeHighThroughput(setting); break;
  case ExpertParallelForm::TwoLevel: op.protocol = makeTwoLevel(setting); break;
  }
  DITRON_RETURN_IF_ERROR(op.protocol->allocate());
  DITRON_ASSIGN_OR_RETURN(op.report, TransferReport::create(world, std::string(operation), "rows"));
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.ranks[id] = std::make_unique<PerRank>();
  return op;
}

ExpertParallel::ExpertParallel() = default;
ExpertParallel::ExpertParallel(ExpertParallel &&) noexcept = default;
ExpertParallel &ExpertParallel::operator=(ExpertParallel &&) noexcept = default;
ExpertParallel::~ExpertParallel() = default;

int64_t ExpertParallel::mostRows() const {
  return std::min(world->numRanks() * optionValues.maxTokens * optionValues.topK,
                  optionValues.experts * optionValues.capacity);
}

int64_t ExpertParallel::handleElements() const { return protocol->handleElements(); }

int64_t ExpertParallel::scalesOfRow() const { return protocol->scalesOfRow(); }

uint64_t ExpertParallel::workspaceBytes() const { return protocol->workspaceBytes(); }

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
  if (isReceiving(part)) {
    pointers.emplace_back("out_ptr", operands.out);
    if (optionValues.addend)
      pointers.emplace_back("addend_ptr", operands.addend);
  }
  pointers.emplace_back("handle_ptr", operands.handle);
  return pointers;
}

Expected<ExpertParallel::Plan> ExpertParallel::makePlan(runtime::Rank &rank, bool isDispatch, const Named &pointers,
                                                        Part part) const {
  Plan made;
  for (const KernelCall &call : isDispatch ? protocol->dispatch(rank, pointers, report.on(rank.id()), part)
                                           : protocol->combine(rank, pointers, part)) {
    Launch launch;
    DITRON_ASSIGN_OR_RETURN(launch.call, PreparedCall::create(*kernels, rank, call));
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(call.arguments, [&](const auto &argument) { return argument.first == name; });
    };
    for (size_t i = 0; i < pointers.size(); ++i)
      if (has(pointers[i].first)) {
        DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.pointerParameter(pointers[i].first));
        launch.pointers.emplace_back(parameter, i);
      }
    for (const auto &[name, perToken] :
         {std::pair("tokens", int64_t{1}), std::pair("slots", int64_t{optionValues.topK})})
      if (has(name)) {
        DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.integerParameter(name));
        launch.sizes.emplace_back(parameter, perToken);
      }
    made.push_back(std::move(launch));
  }
  return made;
}

namespace {

/// Of the operands to which code is compiled: those of rows.
bool holdsRows(std::string_view name) {
  return name == "x_ptr" || name == "rows_ptr" || name == "row_scales_ptr" || name == "out_ptr" || name == "addend_ptr";
}

} // namespace

Status ExpertParallel::prepare(runtime::Rank &rank, bool parts) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const runtime::Pointer words = report.on(rank.id()).as(DataType::I32), floats = words.as(DataType::F32),
                         values = words.as(optionValues.dtype);
  const DispatchOperands aligned = {values, 0, words, floats, values, floats, words, words};
  DispatchOperands unweighted = aligned;
  unweighted.weights = {};
  const CombineOperands combined = {values, values, 0, words, values};
  std::vector<Part> wanted = {Part::Whole};
  if (parts && hasParts(planValue.form))
    wanted.insert(wanted.end(), {Part::Send, Part::Receive});
  KeptPlans<Plan> &kept = ranks[rank.id()]->kept;
  for (Part part : wanted) {
    for (const DispatchOperands &operands : {aligned, unweighted}) {
      const Named pointers = dispatchPointers(operands, part);
      const KeptPlans<Plan>::Key key = keyOf(true, pointers, part);
      if (kept.has(key)) // graphs may have its kernel
        continue;
      DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, true, pointers, part));
      kept.keep(key, std::move(made));
    }
    const Named pointers = combinePointers(combined, part);
    const KeptPlans<Plan>::Key key = keyOf(false, pointers, part);
    if (kept.has(key))
      continue;
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, false, pointers, part));
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
  DITRON_RETURN_IF_ERROR(verifyRank(name, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyTokenCount(name, tokens, 0, optionValues.maxTokens));
  for (const auto &[parameter, pointer] : pointers) {
    const bool isOfTokens =
        parameter == "x_ptr" || parameter == "ids_ptr" || parameter == "out_ptr" || parameter == "addend_ptr";
    if (isOfTokens && tokens == 0)
      continue;
    DataType type = DataType::I32;
    if (parameter == "weights_ptr" || parameter == "row_scales_ptr")
      type = DataType::F32;
    else if (holdsRows(parameter))
      type = parameter == "rows_ptr" && isDispatch && optionValues.fp8 ? DataType::F8E4NV : optionValues.dtype;
    const std::string_view shown = parameter.substr(0, parameter.size() - std::string_view("_ptr").size());
    DITRON_RETURN_IF_ERROR(verifyPointerType(name, shown, pointer, type));
  }
  if (part != Part::Whole && !hasParts(planValue.form))
    return unsupported(
        fmt::format("{}: {} sends and receives in one launch, since its rings are drained while they are "
                    "filled; low_latency has Send and Receive",
                    name, toString(planValue.form)));
  PerRank &own = *ranks[rank.id()];
  bool &isSent = isDispatch ? own.isDispatchSent : own.isCombineSent;
  if (isSending(part) && isSent)
    return invalidArgument(
        fmt::format("{}: the one before was sent and not received yet; enqueue its Receive first", name));
  if (part == Part::Receive && !isSent)
    return invalidArgument(fmt::format("{}: a Receive, but nothing was sent that is not received", name));
  auto describe = [&] {
    std::string text = part == Part::Whole  ? fmt::format("{} tokens, ", tokens)
                       : part == Part::Send ? "Send, "
                                            : "Receive, ";
    for (const auto &[parameter, pointer] : pointers)
      if (holdsRows(parameter))
        text += fmt::format("{} at multiples of {} bytes, ", parameter.substr(0, parameter.size() - 4),
                            alignmentOf(pointer));
    return text.substr(0, text.size() - 2);
  };
  DITRON_ASSIGN_OR_RETURN(Plan * found, own.kept.find(name, stream, keyOf(isDispatch, pointers, part), describe,
                                                      [&] { return makePlan(rank, isDispatch, pointers, part); }));
  for (Launch &launch : *found) {
    for (const auto &[parameter, operand] : launch.pointers)
      DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, pointers[operand].second));
    for (const auto &[parameter, perToken] : launch.sizes)
      DITRON_RETURN_IF_ERROR(launch.call.setInteger(parameter, tokens * perToken));
    DITRON_RETURN_IF_ERROR(launch.call.enqueue(stream));
  }
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
