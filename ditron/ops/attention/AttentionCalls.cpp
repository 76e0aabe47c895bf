//===- AttentionCalls.cpp - Attention of the caller's shapes and operands -------------------------------------------------===//
#include "ditron/ops/attention/AttentionCalls.h"

#include "ditron/ops/attention/AttentionArguments.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

/// The parameter of an operand, and its address; null of one that is absent.
using Address = std::pair<std::string_view, runtime::Pointer>;

std::vector<Address> addressesOf(const AttentionOperands &o) {
  const runtime::Pointer none;
  return {{"q_ptr", o.q},
          {"k_ptr", o.k},
          {"v_ptr", o.v},
          {"out_ptr", o.out},
          {"lse_ptr", o.lse.value_or(none)},
          {"sinks_ptr", o.sinks.value_or(none)},
          {"slopes_ptr", o.slopes.value_or(none)},
          {"query_offsets_ptr", o.queryOffsets.value_or(none)},
          {"key_offsets_ptr", o.keyOffsets.value_or(none)},
          {"key_lengths_ptr", o.keyLengths.value_or(none)},
          {"table_ptr", o.blockTable.value_or(none)}};
}

std::vector<Address> addressesOf(const AttentionBackwardOperands &o) {
  const runtime::Pointer none;
  return {{"q_ptr", o.q},
          {"k_ptr", o.k},
          {"v_ptr", o.v},
          {"out_ptr", o.out},
          {"lse_ptr", o.lse},
          {"gradient_ptr", o.gradient},
          {"dq_ptr", o.dq},
          {"dk_ptr", o.dk},
          {"dv_ptr", o.dv},
          {"slopes_ptr", o.slopes.value_or(none)},
          {"query_offsets_ptr", o.queryOffsets.value_or(none)},
          {"key_offsets_ptr", o.keyOffsets.value_or(none)},
          {"sinks_ptr", o.sinks.value_or(none)},
          {"dsinks_ptr", o.dsinks.value_or(none)}};
}

/// What of an address a plan relies on. Different for addresses that no plan accepts.
int64_t formOf(runtime::Pointer pointer) {
  if (!pointer.address)
    return 0;
  return reinterpret_cast<uintptr_t>(pointer.address) % sizeOf(pointer.type) == 0 ? alignmentOf(pointer) : -1;
}

template <typename Operands> std::vector<int64_t> keyOf(const AttentionProblem &p, const Operands &operands) {
  // Of what is optional first whether it is given.
  const auto bits = [](double value) { return std::bit_cast<int64_t>(value); };
  const AttentionPages pages = p.pages.value_or(AttentionPages{.count = 0, .size = 0});
  std::vector<int64_t> key = {p.batch,
                              p.heads,
                              p.kvHeads,
                              p.queries,
                              p.keys,
                              p.headDim,
                              p.causal,
                              static_cast<int64_t>(p.dtype),
                              bits(p.scaleOfScores()),
                              p.dimOfValues(),
                              static_cast<int64_t>(p.layout),
                              p.window.has_value(),
                              p.window.value_or(0),
                              p.softCap.has_value(),
                              bits(p.softCap.value_or(0)),
                              p.packedQueries.has_value(),
                              p.packedQueries.value_or(0),
                              p.packedKeys.has_value(),
                              p.packedKeys.value_or(0),
                              p.pages.has_value(),
                              pages.count,
                              pages.size,
                              p.valuesTransposed};
  for (const auto &[name, pointer] : addressesOf(operands)) {
    key.push_back(formOf(pointer));
    key.push_back(static_cast<int64_t>(pointer.type));
  }
  return key;
}

std::string describe(const AttentionProblem &problem) {
  return fmt::format("batch {}, {} queries and {} keys, and operands like these", problem.batch, problem.queries,
                     problem.keys);
}

/// The parameters among `names` of operands that are given.
Expected<std::vector<std::pair<uint32_t, size_t>>> parametersOf(const PreparedCall &call,
                                                                const std::vector<Address> &addresses,
                                                                const std::vector<std::string_view> &names) {
  std::vector<std::pair<uint32_t, size_t>> parameters;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto &[name, pointer] = addresses[i];
    if (!pointer.address || std::ranges::find(names, name) == names.end())
      continue;
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, call.pointerParameter(name));
    parameters.emplace_back(parameter, i);
  }
  return parameters;
}

} // namespace

Status verifyAttentionOptions(const AttentionProblem &problem) {
  AttentionProblem smallest = problem;
  smallest.batch = smallest.queries = smallest.keys = 1;
  smallest.packedQueries = smallest.packedKeys = std::nullopt;
  if (smallest.pages)
    smallest.pages->count = 1;
  return verifyAttention("Attention", smallest);
}

Expected<AttentionCalls::Plan> AttentionCalls::makePlan(const AttentionProblem &problem,
                                                        const AttentionOperands &operands) const {
  const std::vector<Address> addresses = addressesOf(operands);
  std::vector<std::string_view> names;
  for (const Address &each : addresses)
    names.push_back(each.first);
  Launch launch;
  DITRON_ASSIGN_OR_RETURN(launch.call, prepareAttention(*kernels, *rank, problem, operands));
  DITRON_ASSIGN_OR_RETURN(launch.parameters, parametersOf(launch.call, addresses, names));
  return Plan{std::move(launch)};
}

Expected<AttentionCalls::Plan> AttentionCalls::makePlan(const AttentionProblem &problem,
                                                        const AttentionBackwardOperands &operands) const {
  DITRON_ASSIGN_OR_RETURN(AttentionBackwardCall call, prepareAttentionBackward(*kernels, *rank, problem, operands));
  const std::vector<Address> addresses = addressesOf(operands);
  Plan plan;
  const auto add = [&](PreparedCall part, const std::vector<std::string_view> &names) -> Status {
    Launch launch{std::move(part), {}};
    DITRON_ASSIGN_OR_RETURN(launch.parameters, parametersOf(launch.call, addresses, names));
    plan.push_back(std::move(launch));
    return Status::ok();
  };
  // In the order of AttentionBackwardCall::enqueue.
  DITRON_RETURN_IF_ERROR(add(std::move(call.rows), {"out_ptr", "gradient_ptr", "lse_ptr", "query_offsets_ptr"}));
  if (call.sinks)
    DITRON_RETURN_IF_ERROR(add(std::move(*call.sinks), {"sinks_ptr", "dsinks_ptr"}));
  DITRON_RETURN_IF_ERROR(add(std::move(call.keys), {"q_ptr", "k_ptr", "v_ptr", "gradient_ptr", "dk_ptr", "dv_ptr",
                                                    "slopes_ptr", "query_offsets_ptr", "key_offsets_ptr"}));
  DITRON_RETURN_IF_ERROR(add(std::move(call.queries), {"q_ptr", "k_ptr", "v_ptr", "gradient_ptr", "dq_ptr",
                                                       "slopes_ptr", "query_offsets_ptr", "key_offsets_ptr"}));
  return plan;
}

template <typename Operands>
Status AttentionCalls::prepareIn(KeptPlans<Plan> &kept, const AttentionProblem &problem, const Operands &operands) {
  std::vector<int64_t> key = keyOf(problem, operands);
  if (kept.has(key))
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(problem, operands));
  kept.keep(std::move(key), std::move(made));
  return Status::ok();
}

template <typename Operands>
Status AttentionCalls::enqueueIn(KeptPlans<Plan> &kept, runtime::Stream &stream, const AttentionProblem &problem,
                                 const Operands &operands) {
  constexpr bool isForward = std::is_same_v<Operands, AttentionOperands>;
  DITRON_ASSIGN_OR_RETURN(Plan * plan,
                          kept.find(
                              isForward ? "Attention" : "AttentionBackward", stream, keyOf(problem, operands),
                              [&] { return describe(problem); }, [&] { return makePlan(problem, operands); }));
  const std::vector<Address> addresses = addressesOf(operands);
  for (Launch &launch : *plan)
    for (const auto &[parameter, operand] : launch.parameters)
      DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, addresses[operand].second));
  for (const Launch &launch : *plan)
    DITRON_RETURN_IF_ERROR(launch.call.enqueue(stream));
  return Status::ok();
}

Status AttentionCalls::prepare(const AttentionProblem &problem, const AttentionOperands &operands) {
  return prepareIn(forward, problem, operands);
}

Status AttentionCalls::enqueue(runtime::Stream &stream, const AttentionProblem &problem,
                               const AttentionOperands &operands) {
  return enqueueIn(forward, stream, problem, operands);
}

Status AttentionCalls::prepareBackward(const AttentionProblem &problem, const AttentionBackwardOperands &operands) {
  return prepareIn(backward, problem, operands);
}

Status AttentionCalls::enqueueBackward(runtime::Stream &stream, const AttentionProblem &problem,
                                       const AttentionBackwardOperands &operands) {
  return enqueueIn(backward, stream, problem, operands);
}

} // namespace ditron::ops
