//===- TokenRouting.cpp - Choosing experts, sorting slots and adding rows of the caller's -----------------------------------===//
#include "ditron/ops/moe/TokenRouting.h"

#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/moe/GroupedGemm.h"

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "TokenRouting";
} // namespace

Expected<TokenRouting> TokenRouting::create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                            const TokenRoutingOptions &options) {
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"experts", options.experts, 1, mostExperts},
                                                       {"topK", options.topK, 1, options.experts},
                                                       {"hidden", options.hidden, 0}}));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  TokenRouting made;
  made.optionValues = options;
  made.rank = &rank;
  made.kernels = &kernels;
  constexpr uint32_t anyTile = 128; // the launches that make tiles are left out
  DITRON_ASSIGN_OR_RETURN(made.routing,
                          Routing::create(rank, kernels, {options.experts, options.topK, options.maxTokens, anyTile}));
  return made;
}

TokenRouting::Operands TokenRouting::chooseOperands(runtime::Pointer logits, runtime::Pointer bias,
                                                    runtime::Pointer ids, runtime::Pointer weights) {
  return {{"logits", "logits_ptr", logits, DataType::F32},
          {"bias", "bias_ptr", bias, DataType::F32, true},
          {"ids", "ids_ptr", ids, DataType::I32},
          {"weights", "weights_ptr", weights, DataType::F32}};
}

TokenRouting::Operands TokenRouting::sortOperands(runtime::Pointer ids, runtime::Pointer offsets,
                                                  runtime::Pointer slotOfRow, runtime::Pointer rowOfSlot) {
  return {{"ids", "ids_ptr", ids, DataType::I32},
          {"offsets", "offsets_ptr", offsets, DataType::I32},
          {"slotOfRow", "slot_of_row_ptr", slotOfRow, DataType::I32},
          {"rowOfSlot", "row_of_slot_ptr", rowOfSlot, DataType::I32}};
}

TokenRouting::Operands TokenRouting::sumOperands(runtime::Pointer rows, runtime::Pointer rowOfSlot,
                                                 runtime::Pointer weights, runtime::Pointer out) const {
  return {{"rows", "rows_ptr", rows, optionValues.dtype},
          {"rowOfSlot", "row_of_slot_ptr", rowOfSlot, DataType::I32},
          {"weights", "weights_ptr", weights, DataType::F32, true},
          {"out", "out_ptr", out, optionValues.dtype}};
}

Status TokenRouting::verifyTokens(int64_t tokens) const {
  return verifyTokenCount(operation, tokens, 1, optionValues.maxTokens);
}

KeptPlans<TokenRouting::Plan>::Key TokenRouting::keyOf(Kind kind, const Operands &operands, int64_t tokens) {
  KeptPlans<Plan>::Key key = {static_cast<int64_t>(kind), tokens};
  for (const Operand &operand : operands)
    key.push_back(operand.pointer.address != nullptr);
  return key;
}

Expected<TokenRouting::Plan> TokenRouting::makePlan(Kind kind, const Operands &operands, int64_t tokens) {
  const TokenRoutingOptions &options = optionValues;
  std::vector<PreparedCall> calls;
  std::vector<std::vector<size_t>> used; // of each call: numbers of its operands
  if (kind == Kind::Choose) {
    const RouterProblem problem = {tokens,        options.experts,    options.topK,
                                   options.score, options.normalized, options.scale};
    DITRON_ASSIGN_OR_RETURN(PreparedCall choice,
                            prepareRouter(*kernels, *rank, problem, operands[0].pointer, operands[1].pointer,
                                          operands[2].pointer, operands[3].pointer));
    calls.push_back(std::move(choice));
    used = {{0, 1, 2, 3}};
  } else if (kind == Kind::Sort) {
    DITRON_ASSIGN_OR_RETURN(calls, routing->calls(operands[0].pointer, tokens));
    calls.pop_back(); // tiles
    used = {{0}, {0, 1, 2, 3}};
  } else {
    DITRON_ASSIGN_OR_RETURN(PreparedCall sum,
                            prepareSlotSum(*kernels, *rank, {tokens, options.hidden, options.topK}, operands[0].pointer,
                                           operands[1].pointer, operands[2].pointer, operands[3].pointer));
    calls.push_back(std::move(sum));
    used = {{0, 1, 2, 3}};
  }
  Plan plan;
  for (size_t i = 0; i < calls.size(); ++i) {
    Launch launch = {std::move(calls[i]), {}};
    for (size_t number : used[i])
      if (operands[number].pointer.address) {
        DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, launch.call.pointerParameter(operands[number].parameter));
        launch.pointers.emplace_back(parameter, number);
      }
    plan.push_back(std::move(launch));
  }
  return plan;
}

Status TokenRouting::prepareOne(Kind kind, const Operands &operands, int64_t tokens) {
  const KeptPlans<Plan>::Key key = keyOf(kind, operands, tokens);
  if (kept.has(key)) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(kind, operands, tokens));
  kept.keep(key, std::move(made));
  return Status::ok();
}

Status TokenRouting::prepare(int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  // Any buffer stands for the caller's: only types and alignment matter.
  const runtime::Pointer words = routing->offsets(), floats = words.as(DataType::F32),
                         rows = words.as(optionValues.dtype);
  for (const runtime::Pointer bias : {floats, runtime::Pointer()})
    DITRON_RETURN_IF_ERROR(prepareOne(Kind::Choose, chooseOperands(floats, bias, words, floats), tokens));
  DITRON_RETURN_IF_ERROR(prepareOne(Kind::Sort, sortOperands(words, words, words, words), tokens));
  if (optionValues.hidden > 0)
    for (const runtime::Pointer weights : {floats, runtime::Pointer()})
      DITRON_RETURN_IF_ERROR(prepareOne(Kind::Sum, sumOperands(rows, words, weights, rows), tokens));
  return Status::ok();
}

Status TokenRouting::enqueue(runtime::Stream &stream, Kind kind, const Operands &operands, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyTokens(tokens));
  for (const Operand &operand : operands)
    if (operand.pointer.address || !operand.mayBeNull)
      DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, operand.name, operand.pointer, operand.type));
  const auto describe = [&] { return fmt::format("{} tokens", tokens); };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept.find(operation, stream, keyOf(kind, operands, tokens), describe,
                                                  [&] { return makePlan(kind, operands, tokens); }));
  for (Launch &launch : *found) {
    for (const auto &[parameter, number] : launch.pointers)
      DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, operands[number].pointer));
    DITRON_RETURN_IF_ERROR(launch.call.enqueue(stream));
  }
  return Status::ok();
}

Status TokenRouting::choose(runtime::Stream &stream, runtime::Pointer logits, runtime::Pointer bias,
                            runtime::Pointer ids, runtime::Pointer weights, int64_t tokens) {
  return enqueue(stream, Kind::Choose, chooseOperands(logits, bias, ids, weights), tokens);
}

Status TokenRouting::sort(runtime::Stream &stream, runtime::Pointer ids, runtime::Pointer offsets,
                          runtime::Pointer slotOfRow, runtime::Pointer rowOfSlot, int64_t tokens) {
  return enqueue(stream, Kind::Sort, sortOperands(ids, offsets, slotOfRow, rowOfSlot), tokens);
}

Status TokenRouting::sum(runtime::Stream &stream, runtime::Pointer rows, runtime::Pointer rowOfSlot,
                         runtime::Pointer weights, runtime::Pointer out, int64_t tokens) {
  if (optionValues.hidden == 0)
    return invalidArgument(
        fmt::format("{}: sum: hidden is 0 in the options, which says that no rows are added", operation));
  return enqueue(stream, Kind::Sum, sumOperands(rows, rowOfSlot, weights, out), tokens);
}

} // namespace ditron::ops
