//===- AllToAllGemm.cpp - Product behind attention whose heads are dealt out to the ranks -----------------------------------===//
#include "ditron/ops/sequence_parallel/AllToAllGemm.h"

#include "ditron/ops/Gemm.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "AllToAllGemm";
/// Of a rank's part of the depth, in elements: the product steps by blocks that divide it, and 8-bit operands are multiplied 32 at a time.
int64_t depthMultiple(DataType type) { return sizeOf(type) == 1 ? 32 : 16; }
/// Few, since each is two copies to every rank, which take some microseconds whatever they carry.
uint32_t chosenChunks(int64_t rowsOfRank) {
  constexpr int64_t rowsWorthCopies = 512, most = 4;
  return static_cast<uint32_t>(std::clamp<int64_t>(rowsOfRank / rowsWorthCopies, 1, most));
}
} // namespace

Expected<AllToAllGemm> AllToAllGemm::create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options, int64_t depth, uint32_t chunks) {
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  DITRON_RETURN_IF_ERROR(verifySequenceProduct(operation, options));
  if (options.epilogue.scalesA != Scaling::None)
    return unsupported(fmt::format("{}: scales of a; none are accepted", operation));
  if (depth < 1 || depth % (depthMultiple(options.dtype) * world.numRanks()) != 0)
    return invalidArgument(fmt::format("{}: depth {} over {} ranks; positive multiples of {} for each are accepted",
                                       operation, depth, world.numRanks(), depthMultiple(options.dtype)));
  constexpr uint32_t mostChunks = 64;
  if (chunks > mostChunks)
    return invalidArgument(fmt::format("{}: {} chunks; 1 to {} are accepted, or 0 for the library's choice", operation,
                                       chunks, mostChunks));
  if (chunks == 0)
    chunks = chosenChunks(RowShards(options.maxRows, world.numRanks()).rowsPerRank);
  AllToAllGemm op;
  op.optionValues = options;
  op.depthValue = depth;
  op.chunkCount = chunks;
  op.world = &world;
  op.kernels = &kernels;
  op.planAgreement = PlanAgreement(world, operation);
  DITRON_RETURN_IF_ERROR(
      op.planAgreement.begin(world, fmt::format("{}, {} sequences, {} chunks, depth {}", toString(options.schedule),
                                                options.batch, chunks, depth)));
  DITRON_RETURN_IF_ERROR(
      verifyProduct(operation, options.batch * options.maxRows, 1, depth, op.tileFor(options.maxRows, 0)));
  DITRON_ASSIGN_OR_RETURN(op.words, CallWords::create(world, "a2a_gemm", 0));
  const int64_t perRank = op.depthOfRank();
  DITRON_ASSIGN_OR_RETURN(
      op.given, world.allocateSymmetric(options.dtype, options.batch * options.maxRows * perRank, "a2a_gemm_operand"));
  DITRON_ASSIGN_OR_RETURN(
      op.workspace,
      world.allocateSymmetric(options.dtype, world.numRanks() * op.mostSlotRows() * perRank, "a2a_gemm_workspace"));
  DITRON_ASSIGN_OR_RETURN(
      op.ready, world.allocateSymmetric(DataType::I64, world.numRanks() * options.batch * chunks, "a2a_gemm_ready"));
  op.sides.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(op.sides[id], runtime::SideStream::create(world.rank(id), "a2a_gemm"));
  }
  op.keepPlans(world, operation, operandTypes(options.dtype, options.typeOfResult(), options.epilogue));
  return op;
}

TileConfig AllToAllGemm::tileFor(int64_t rows, int64_t columns) const {
  constexpr int64_t usual = 4096; // of columns that are not known
  TileConfig tile = optionValues.tile;
  if (tile == libraryTile)
    tile = chooseTile({.m = optionValues.batch * RowShards(rows, world->numRanks()).rowsPerRank,
                       .n = columns > 0 ? columns : usual,
                       .k = depthValue,
                       .dtype = optionValues.dtype,
                       .resultType = optionValues.typeOfResult(),
                       .order = optionValues.weightOrder,
                       .epilogue = optionValues.epilogue},
                      *world);
  while (depthOfRank() % tile.blockK != 0)
    tile.blockK /= 2;
  return tile;
}

Expected<ProductPlan::Parts> AllToAllGemm::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                     const ProductShape &shape) {
  DITRON_RETURN_IF_ERROR(verifyTile(shape, tileFor(shape.rows, shape.size)));
  DITRON_ASSIGN_OR_RETURN(PreparedCall enter, PreparedCall::create(*kernels, rank, words.enter(rank)));
  const OperandLaunch::Names names =
      OperandLaunch::withEpilogue({{"b_ptr", Operand::B}, {"c_ptr", Operand::Result}}, optionValues.epilogue);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch product,
                          OperandLaunch::create(*kernels, rank, productCall(rank, operands, shape), names));
  using runtime::Lane;
  ProductPlan::Parts parts;
  parts.sequence = runtime::CallSequence(sides[rank.id()]);
  parts.sequence.launch(Lane::Main, enter.prepared());
  parts.sequence.join(Lane::Side);
  addPushes(rank, shape.rows, parts.sequence);
  if (optionValues.schedule == Schedule::Overlapped)
    parts.sequence.launch(Lane::Main, product.call.prepared());
  parts.sequence.join(Lane::Main);
  if (optionValues.schedule == Schedule::Unfused)
    parts.sequence.launch(Lane::Main, product.call.prepared());
  parts.launches.push_back(std::move(product));
  return parts;
}

/// Chunk by chunk, of each to the rank below first, which computes this rank's part right after its own.
void AllToAllGemm::addPushes(const runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const {
  const uint32_t id = rank.id(), ranks = rank.numRanks();
  const RowShards shards(rows, ranks);
  const int64_t perRank = depthOfRank(), chunkRows = rowsOfChunk(shards), batch = optionValues.batch;
  for (int64_t sequenceId = 0; sequenceId < batch; ++sequenceId)
    for (uint32_t chunk = 0; chunk < chunkCount; ++chunk)
      for (uint32_t step = 1; step < ranks; ++step) {
        const uint32_t peer = (id + ranks - step) % ranks;
        const int64_t first = std::min(chunk * chunkRows, shards.rowsOf(peer));
        const int64_t count = std::min(chunkRows, shards.rowsOf(peer) - first);
        if (count > 0)
          sequence.copy(
              runtime::Lane::Side,
              runtime::Copy::of(workspace.on(peer) + ((id * batch + sequenceId) * shards.rowsPerRank + first) * perRank,
                                given.on(id) + (sequenceId * rows + shards.firstRowOf(peer) + first) * perRank,
                                count * perRank, fmt::format("a2a to {}", peer)));
        sequence.copy(runtime::Lane::Side,
                      runtime::Copy::of(ready.on(peer) + ((id * batch + sequenceId) * chunkCount + chunk),
                                        words.generation(id), 1, fmt::format("a2a_ready to {}", peer)));
      }
}

KernelCall AllToAllGemm::productCall(const runtime::Rank &rank, const OperandPointers &operands,
                                     const ProductShape &shape) const {
  const uint32_t id = rank.id(), ranks = rank.numRanks();
  const RowShards shards(shape.rows, ranks);
  const TileConfig tile = tileFor(shape.rows, shape.size);
  const int64_t own = shards.rowsOf(id), batch = optionValues.batch;
  KernelCall call;
  call.source = "sequence_parallel/ulysses";
  call.kernel = "all_to_all_gemm";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {blocksFor(rank, batch * ceilDivide(own, tile.blockM) * ceilDivide(shape.size, tile.blockN)), 1, 1};
  call.arguments = {{"operand_ptr", given.on(id)},
                    {"a_ptr", workspace.on(id)},
                    {"b_ptr", operands[Operand::B]},
                    {"c_ptr", operands[Operand::Result]},
                    {"ready_ptr", ready.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"batch", batch},
                    {"rows", shape.rows},
                    {"own_rows", std::max<int64_t>(own, 1)},
                    {"rows_per_rank", shards.rowsPerRank},
                    {"rows_per_chunk", rowsOfChunk(shards)},
                    {"all_batch", ranks * batch},
                    {"N", shape.size},
                    {"K", depthOfRank()},
                    {"all_depth", depthValue},
                    {"stride_operand", shape.rows * depthOfRank()},
                    {"stride_a", shards.rowsPerRank * depthOfRank()},
                    {"stride_b", shape.strides.b},
                    {"stride_c", shape.strides.c},
                    {"stride_sequence", std::max<int64_t>(own, 1) * shape.strides.c},
                    {"rank", id},
                    {"WORLD_SIZE", ranks},
                    {"CHUNKS", chunkCount},
                    {"B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed}};
  appendTileArguments(call, tile, MultiplyPrecision::Tf32);
  appendColumnEpilogue(call, optionValues.epilogue, operands.epilogue(), shape.size);
  appendActivation(call, optionValues.epilogue);
  return call;
}

} // namespace ditron::ops
