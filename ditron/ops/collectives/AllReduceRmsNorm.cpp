//===- AllReduceRmsNorm.cpp - AllReduce, residual and RMSNorm as one launch -------------------------------------------===//
#include "ditron/ops/collectives/AllReduceRmsNorm.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AllReduceRmsNorm";
constexpr std::array<std::string_view, 5> operandNames = {"x", "residual", "weight", "out", "residual_out"};

std::array<runtime::Pointer, 5> inOrder(const AllReduceRmsNorm::Operands &operands) {
  return {operands.x, operands.residual, operands.weight, operands.out, operands.residualOut};
}

} // namespace

Expected<AllReduceRmsNorm> AllReduceRmsNorm::create(runtime::World &world, runtime::KernelProvider &kernels,
                                                    const AllReduceRmsNormOptions &options) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  if (options.columns < 1 || options.columns > mostColumns ||
      options.columns * sizeOf(options.dtype) % rowAlignment != 0)
    return invalidArgument(fmt::format("{}: {} columns of {}; 1 to {} are accepted, in rows of a multiple of {} bytes",
                                       operation, options.columns, ditron::toString(options.dtype), mostColumns,
                                       rowAlignment));
  constexpr int64_t mostRows = std::numeric_limits<int32_t>::max();
  if (options.maxRows < 1 || options.maxRows > mostRows)
    return invalidArgument(
        fmt::format("{}: maxRows is {}; 1 to {} are accepted", operation, options.maxRows, mostRows));
  if (options.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (!(options.epsilon >= 0) || !std::isfinite(options.epsilon))
    return invalidArgument(
        fmt::format("{}: epsilon is {}; finite numbers from 0 on are accepted", operation, options.epsilon));
  AllReduceRmsNorm op;
  op.optionValues = options;
  op.world = &world;
  op.callAgreement = std::make_shared<runtime::CallAgreement>(std::string(operation), world.numRanks());
  op.kernels = &kernels;
  op.agreement = PlanAgreement(world, operation);
  if (options.plan) {
    DITRON_RETURN_IF_ERROR(verifyPlanOf(rmsNormOperator, *options.plan, world.numRanks()));
    op.rowsOfTable = {{.mostBytes = std::numeric_limits<uint64_t>::max(), .plan = *options.plan}};
  } else {
    const std::string &gpu = world.rank(world.localRanks().front()).attributes().name;
    DITRON_ASSIGN_OR_RETURN(op.rowsOfTable, collectivePlanRows(rmsNormOperator, gpu, world.numRanks(), options.dtype,
                                                               {{"columns", options.columns}}));
  }
  leavePlacesFor(options.concurrentCalls, 0, world, op.rowsOfTable);
  DITRON_RETURN_IF_ERROR(op.allocate());
  op.kept.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.kept[id] = std::make_unique<KeptPlans<Plan>>();
  return op;
}

CollectivePlan AllReduceRmsNorm::planFor(int64_t rows) const {
  const uint64_t bytes = static_cast<uint64_t>(rows * optionValues.columns) * sizeOf(optionValues.dtype);
  CollectivePlan plan;
  for (const CollectivePlanRow &row : rowsOfTable) {
    plan = row.plan;
    if (bytes <= row.mostBytes)
      break;
  }
  return plan;
}

int64_t AllReduceRmsNorm::packetsOfRow() const {
  return optionValues.columns * sizeOf(optionValues.dtype) / lamportDataBytes;
}
int64_t AllReduceRmsNorm::rowsPerBlock(const CollectivePlan &plan, int64_t rows) const {
  return ceilDivide(rows, plan.blocks);
}

Status AllReduceRmsNorm::allocate() {
  // The largest number of rows of each form is found from above: plans change with the number of rows, but monotonously.
  for (const CollectivePlanRow &row : rowsOfTable) {
    const int64_t bytesOfRow = optionValues.columns * sizeOf(optionValues.dtype);
    const int64_t rows = std::max<int64_t>(
        1, static_cast<int64_t>(std::min<uint64_t>(row.mostBytes / bytesOfRow, optionValues.maxRows)));
    const CollectivePlan plan = planFor(rows);
    const bool byPackets = plan.form != CollectiveForm::Chunks;
    Channel &channel = byPackets ? packets : chunks;
    channel.blocks = std::max(channel.blocks, plan.blocks);
    if (byPackets)
      channel.capacity = std::max(channel.capacity, rowsPerBlock(plan, rows) * packetsOfRow());
    if (rows == optionValues.maxRows)
      break;
  }
  const uint64_t ranks = world->numRanks();
  if (packets.blocks) {
    const uint64_t words = packets.blocks * 2 * (ranks + 1) * packets.capacity * 2;
    DITRON_ASSIGN_OR_RETURN(packets.slots,
                            world->allocateSymmetric(DataType::I64, words, "all_reduce_rms_norm_packets"));
    DITRON_ASSIGN_OR_RETURN(packets.doubts,
                            world->allocateSymmetric(DataType::I64, words, "all_reduce_rms_norm_doubts"));
    DITRON_ASSIGN_OR_RETURN(packets.generations,
                            allocateCounters(*world, packets.blocks, "all_reduce_rms_norm_packet_calls"));
  }
  if (chunks.blocks) {
    const uint64_t chunk = std::bit_ceil(static_cast<uint64_t>(optionValues.columns));
    DITRON_ASSIGN_OR_RETURN(chunks.slots, world->allocateSymmetric(optionValues.dtype,
                                                                   2 * chunks.blocks * slotsOfRing * ranks * chunk,
                                                                   "all_reduce_rms_norm_rows"));
    DITRON_ASSIGN_OR_RETURN(chunks.signals, world->allocateSymmetric(DataType::I64, 2 * chunks.blocks * ranks,
                                                                     "all_reduce_rms_norm_arrived"));
    DITRON_ASSIGN_OR_RETURN(chunks.generations,
                            allocateCounters(*world, chunks.blocks, "all_reduce_rms_norm_rows_done"));
  }
  return Status::ok();
}

Expected<AllReduceRmsNorm::Plan> AllReduceRmsNorm::makePlan(runtime::Rank &rank, int64_t rows) const {
  const CollectivePlan plan = planFor(rows);
  const bool byPackets = plan.form != CollectiveForm::Chunks;
  const Channel &channel = byPackets ? packets : chunks;
  // Some aligned memory stands for the operands.
  const runtime::Pointer any = channel.slots.on(rank.id()).as(optionValues.dtype);
  KernelCall call;
  call.source = "collectives/rms_norm";
  call.kernel = byPackets ? "lamport_all_reduce_rms_norm" : "chunk_all_reduce_rms_norm";
  call.numWarps = plan.numWarps;
  call.arguments = {{"x_ptr", any},
                    {"residual_ptr", any},
                    {"weight_ptr", any},
                    {"out_ptr", any},
                    {"residual_out_ptr", any},
                    {"slots_ptr", channel.slots.on(rank.id())},
                    {"generation_ptr", channel.generations[rank.id()].pointer()},
                    {"rows", rows},
                    {"rank", rank.id()},
                    {"epsilon", optionValues.epsilon},
                    {"WORLD", rank.numRanks()},
                    {"COLUMNS", optionValues.columns}};
  if (byPackets) {
    const int64_t perBlock = rowsPerBlock(plan, rows);
    call.grid = {static_cast<uint32_t>(ceilDivide(rows, perBlock)), 1, 1};
    call.arguments.emplace_back("rows_per_block", perBlock);
    call.arguments.emplace_back("capacity", packets.capacity);
    call.arguments.emplace_back("doubts_ptr", packets.doubts.on(rank.id()));
    call.arguments.emplace_back("PER_PACKET", lamportDataBytes / sizeOf(optionValues.dtype));
    call.arguments.emplace_back("TWO_SHOT", plan.form == CollectiveForm::TwoShotLamport);
  } else {
    call.grid = {static_cast<uint32_t>(std::min<int64_t>(plan.blocks, ceilDivide(rows, rank.numRanks()))), 1, 1};
    call.arguments.emplace_back("signals_ptr", chunks.signals.on(rank.id()));
    call.arguments.emplace_back("CHUNK", std::bit_ceil(static_cast<uint64_t>(optionValues.columns)));
  }
  Plan made;
  DITRON_ASSIGN_OR_RETURN(made.call, PreparedCall::create(*kernels, rank, call));
  made.call.setAgreedCall({callAgreement, rank.id(), fmt::format("{} rows", rows)});
  for (size_t i = 0; i < numOperands; ++i) {
    DITRON_ASSIGN_OR_RETURN(made.parameters[i], made.call.pointerParameter(fmt::format("{}_ptr", operandNames[i])));
  }
  return made;
}

Status AllReduceRmsNorm::prepare(runtime::Rank &rank, int64_t rows) {
  return agreement.reach(rank, keepPlan(rank, rows), fmt::format("a call of {} rows", rows), planFor(rows).text());
}

Status AllReduceRmsNorm::keepPlan(runtime::Rank &rank, int64_t rows) {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  if (rows < 1 || rows > optionValues.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 1 to {} (maxRows) are accepted", operation, rows, optionValues.maxRows));
  const KeptPlans<Plan>::Key key = {rows, optionValues.columns};
  if (kept[rank.id()]->has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(rank, rows));
  kept[rank.id()]->keep(key, std::move(made));
  return Status::ok();
}

Status AllReduceRmsNorm::verifyCall(const runtime::Rank &rank, const Operands &operands, int64_t rows) const {
  DITRON_RETURN_IF_ERROR(verifyRank(operation, *world, rank));
  if (rows == 0)
    return Status::ok();
  if (rows < 0 || rows > optionValues.maxRows)
    return invalidArgument(
        fmt::format("{}: {} rows; 0 to {} (maxRows) are accepted", operation, rows, optionValues.maxRows));
  const std::array<runtime::Pointer, numOperands> pointers = inOrder(operands);
  for (size_t i = 0; i < numOperands; ++i)
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, operandNames[i], pointers[i], optionValues.dtype));
  const auto rowBytes = static_cast<uint64_t>(optionValues.columns) * sizeOf(optionValues.dtype);
  const auto refuse = [&](std::string_view written, std::string_view other, std::string_view accepted) {
    return invalidArgument(fmt::format("{}: {} overlaps {}; {}", operation, written, other, accepted));
  };
  const uint64_t bytes = rowBytes * static_cast<uint64_t>(rows);
  if (overlap(operands.out, bytes, operands.residualOut, bytes))
    return refuse("out", "residual_out", "memory of its own is accepted");
  for (auto [name, written] : {std::pair("out", operands.out), std::pair("residual_out", operands.residualOut)}) {
    for (auto [other, read] : {std::pair("x", operands.x), std::pair("residual", operands.residual)})
      if (written.address != read.address && overlap(written, bytes, read, bytes))
        return refuse(name, other, "all of it is accepted, or nothing");
    if (overlap(written, bytes, operands.weight, rowBytes))
      return refuse(name, "weight", "memory apart is accepted");
  }
  return Status::ok();
}

Status AllReduceRmsNorm::enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t rows) {
  DITRON_RETURN_IF_ERROR(verifyCall(rank, operands, rows));
  if (rows == 0)
    return Status::ok();
  const std::array<runtime::Pointer, numOperands> pointers = inOrder(operands);
  DITRON_ASSIGN_OR_RETURN(Plan * found,
                          kept[rank.id()]->find(
                              operation, stream, {rows, optionValues.columns},
                              [&] { return fmt::format("{} rows", rows); }, [&] { return makePlan(rank, rows); }));
  for (size_t i = 0; i < numOperands; ++i)
    DITRON_RETURN_IF_ERROR(found->call.setPointer(found->parameters[i], pointers[i]));
  return found->call.enqueue(stream);
}

} // namespace ditron::ops
