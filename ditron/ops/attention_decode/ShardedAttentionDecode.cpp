//===- ShardedAttentionDecode.cpp - Attention of few queries over keys that are spread over the ranks -----------------------===//
#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"

#include "ditron/ops/GemmKernels.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "ShardedAttentionDecode";

using Address = std::pair<std::string_view, runtime::Pointer>;

/// What a call is given, by parameter. Only what it has.
std::vector<Address> addressesOf(const DecodeProblem &problem, const DecodeOperands &operands) {
  std::vector<Address> addresses = {{"q_ptr", operands.q},
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

} // namespace

Expected<ShardedAttentionDecode> ShardedAttentionDecode::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                                const ShardedAttentionDecodeOptions &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  const DecodeProblem &problem = options.problem;
  ShardedAttentionDecode op;
  op.chosen =
      options.plan ? *options.plan : chooseDecodePlan(problem, world.rank(world.localRanks().front()).attributes());
  DITRON_RETURN_IF_ERROR(verifyDecode(operation, problem, op.chosen));
  if (problem.window)
    return unsupported(fmt::format("{}: a window of {} keys; a rank does not know which keys of other ranks are behind "
                                   "its own, so none is accepted",
                                   operation, *problem.window));
  if (options.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  op.agreement = PlanAgreement(world, operation);
  DITRON_RETURN_IF_ERROR(op.agreement.begin(
      world, fmt::format("{} rows of {} elements, V of {}, {} heads on {}, {} queries", problem.rows(), problem.headDim,
                         problem.dimOfValues(), problem.heads, problem.kvHeads, problem.queries)));
  op.callAgreement = std::make_shared<runtime::CallAgreement>(std::string(operation), world.numRanks());
  constexpr int64_t wordsPerPacket = 2, sets = 2;
  DITRON_ASSIGN_OR_RETURN(op.slots, world.allocateSymmetric(DataType::I64,
                                                            sets * world.numRanks() * problem.rows() *
                                                                (problem.dimOfValues() / 2 + 1) * wordsPerPacket,
                                                            "decode_packets"));
  op.ranks.resize(world.numRanks());
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    PerRank &own = op.ranks[id];
    DITRON_ASSIGN_OR_RETURN(own.workspace, DecodeWorkspace::allocate(rank, problem, op.chosen));
    DITRON_ASSIGN_OR_RETURN(own.own,
                            rank.allocate(DataType::F32, problem.rows() * problem.dimOfValues(), "decode_own"));
    DITRON_ASSIGN_OR_RETURN(own.ownLse, rank.allocate(DataType::F32, problem.rows(), "decode_own_lse"));
    DITRON_ASSIGN_OR_RETURN(own.call, rank.allocate(DataType::I64, 3, "decode_call"));
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  }
  return op;
}

Status ShardedAttentionDecode::verifyBatch(int64_t batch) const {
  if (batch < 1 || batch > optionValues.problem.batch)
    return invalidArgument(fmt::format("{}: {} sequences; 1 to {} (problem.batch) are accepted", operation, batch,
                                       optionValues.problem.batch));
  return Status::ok();
}

KeptPlans<ShardedAttentionDecode::Plan>::Key ShardedAttentionDecode::keyOf(const DecodeOperands &operands,
                                                                           int64_t batch) const {
  KeptPlans<Plan>::Key key = {batch, operands.lse.address != nullptr, operands.sinks.address != nullptr};
  for (const auto &[name, pointer] : addressesOf(optionValues.problem, operands))
    key.push_back(alignmentOf(pointer));
  return key;
}

Expected<ShardedAttentionDecode::Plan>
ShardedAttentionDecode::makePlan(runtime::Rank &rank, const DecodeOperands &operands, int64_t batch) const {
  const PerRank &own = ranks[rank.id()];
  DecodeProblem problem = optionValues.problem;
  const int64_t mostRows = problem.rows();
  problem.batch = batch;
  KernelCall call = decodeCall(rank, problem, chosen, operands, own.workspace);
  call.kernel = "attention_decode_over_ranks";
  const int64_t threads = int64_t(chosen.numWarps) * rank.attributes().warpSize;
  const int64_t places = std::max<int64_t>(rank.attributes().multiprocessors / optionValues.concurrentCalls, 1);
  const int64_t finishers =
      std::min({int64_t(call.grid[0]), places, ceilDivide(problem.rows() * (problem.dimOfValues() / 2), threads)});
  call.arguments.insert(call.arguments.end(), {{"out_ptr", operands.out},
                                               {"lse_ptr", orNone(operands.lse)},
                                               {"own_ptr", own.own.pointer()},
                                               {"own_lse_ptr", own.ownLse.pointer()},
                                               {"slots_ptr", slots.on(rank.id())},
                                               {"call_ptr", own.call.pointer()},
                                               {"most_rows", runtime::Argument::typed(DataType::I64, mostRows)},
                                               {"finishers", finishers},
                                               {"rank", rank.id()},
                                               {"WORLD", rank.numRanks()}});
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  made.call.setAgreedCall({callAgreement, rank.id(), fmt::format("{} sequences", batch)});
  for (const auto &[name, pointer] : addressesOf(problem, operands)) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.call.pointerParameter(name));
    made.pointers.push_back(parameter);
  }
  return made;
}

Status ShardedAttentionDecode::prepare(runtime::Rank &rank, int64_t batch, bool withLse, bool withSinks) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const auto keep = [&]() -> Status {
    DITRON_RETURN_IF_ERROR(verifyBatch(batch));
    // Only types and alignment matter.
    const runtime::Pointer any = slots.on(rank.id()), data = any.as(optionValues.problem.dtype);
    const DecodeOperands aligned = {.q = data,
                                    .k = data,
                                    .v = data,
                                    .out = data,
                                    .lse = withLse ? any.as(DataType::F32) : runtime::Pointer(),
                                    .lengths = any.as(DataType::I32),
                                    .table = any.as(DataType::I32),
                                    .sinks = withSinks ? any.as(DataType::F32) : runtime::Pointer()};
    const KeptPlans<Plan>::Key key = keyOf(aligned, batch);
    if (kept[rank.id()]->has(key)) // graphs may have its kernel
      return Status::ok();
    DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, aligned, batch));
    kept[rank.id()]->keep(key, std::move(made));
    return Status::ok();
  };
  return agreement.reach(rank, keep(), fmt::format("a call with {} sequences", batch), "packets");
}

Status ShardedAttentionDecode::enqueue(runtime::Rank &rank, runtime::Stream &stream, const DecodeOperands &operands,
                                       int64_t batch) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  DITRON_RETURN_IF_ERROR(verifyBatch(batch));
  DITRON_RETURN_IF_ERROR(verifyDecodeOperands(operation, optionValues.problem, operands));
  const auto describe = [&] {
    return fmt::format(
        "{} sequences{}{}{}", batch, operands.lse.address ? ", with lse" : "",
        operands.sinks.address ? ", with sinks" : "",
        std::ranges::any_of(addressesOf(optionValues.problem, operands),
                            [](const Address &each) { return alignmentOf(each.second) != planAlignment; })
            ? ", at addresses that are no multiples of 16 bytes"
            : "");
  };
  DITRON_ASSIGN_OR_RETURN(Plan * found, kept[rank.id()]->find(operation, stream, keyOf(operands, batch), describe,
                                                              [&] { return makePlan(rank, operands, batch); }));
  const std::vector<Address> addresses = addressesOf(optionValues.problem, operands);
  for (size_t i = 0; i < addresses.size(); ++i)
    DITRON_RETURN_IF_ERROR(found->call.setPointer(found->pointers[i], addresses[i].second));
  return found->call.enqueue(stream);
}

} // namespace ditron::ops
