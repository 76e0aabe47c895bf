//===- ShardedAttentionDecode.cpp - Attention of few queries over keys that are spread over the ranks -----------------------===//
#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "ShardedAttentionDecode";

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
  // Each waits on a multiprocessor of its own at least.
  DITRON_RETURN_IF_ERROR(
      verifySizeOptions(operation, {{"concurrentCalls", options.concurrentCalls, 1,
                                     world.rank(world.localRanks().front()).attributes().multiprocessors}}));
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
    op.kept[id] = std::make_unique<KeptPlans<KeptDecode>>();
  }
  return op;
}

Expected<KeptDecode> ShardedAttentionDecode::makePlan(runtime::Rank &rank, const DecodeOperands &operands,
                                                      int64_t batch) const {
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
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(*kernels, rank, call));
  prepared.setAgreedCall({callAgreement, rank.id(), fmt::format("{} sequences", batch)});
  return KeptDecode::create(std::move(prepared), problem, operands);
}

Status ShardedAttentionDecode::prepare(runtime::Rank &rank, int64_t batch, bool withLse, bool withSinks) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const auto keep = [&]() -> Status {
    const DecodeProblem &problem = optionValues.problem;
    DITRON_RETURN_IF_ERROR(verifyDecodeBatch(operation, problem, batch));
    const DecodeOperands operands = KeptDecode::anyOperands(problem, slots.on(rank.id()), withLse, withSinks);
    const KeptPlans<KeptDecode>::Key key = KeptDecode::keyOf(problem, operands, batch);
    if (kept[rank.id()]->has(key)) // graphs may have its kernel
      return Status::ok();
    DITRON_ASSIGN_OR_RETURN(KeptDecode made, makePlan(rank, operands, batch));
    kept[rank.id()]->keep(key, std::move(made));
    return Status::ok();
  };
  return agreement.reach(rank, keep(), fmt::format("a call with {} sequences", batch), "packets");
}

Status ShardedAttentionDecode::enqueue(runtime::Rank &rank, runtime::Stream &stream, const DecodeOperands &operands,
                                       int64_t batch) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  const DecodeProblem &problem = optionValues.problem;
  DITRON_RETURN_IF_ERROR(verifyDecodeBatch(operation, problem, batch));
  DITRON_RETURN_IF_ERROR(verifyDecodeOperands(operation, problem, operands));
  DITRON_ASSIGN_OR_RETURN(KeptDecode * found, kept[rank.id()]->find(
                                                  operation, stream, KeptDecode::keyOf(problem, operands, batch),
                                                  [&] { return KeptDecode::describe(problem, operands, batch); },
                                                  [&] { return makePlan(rank, operands, batch); }));
  return found->enqueue(stream, problem, operands);
}

} // namespace ditron::ops
