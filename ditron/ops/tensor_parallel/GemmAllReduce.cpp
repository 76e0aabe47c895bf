//===- GemmAllReduce.cpp - out = all_reduce(A * B), overlapped --------------------------------------------------------===//
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"

#include "ditron/ops/KernelLaunch.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "GemmAllReduce", kernelFile = "gemm_all_reduce";

/// The exchange of the two-shot form is bound by memory and links: long rows, many bytes on their way. Blocks of the same number on all
/// ranks make and fetch the same tiles, so their number is the same everywhere: no more than this.
constexpr uint32_t exchangeM = 16, exchangeN = 256, exchangeWarps = 16, mostExchangeBlocks = 128;
/// Of the few blocks beside the product: many loads on their way in each multiprocessor, as many as the registers of 32 warps hold.
constexpr uint32_t besideWarps = 32;
uint32_t besideM(uint32_t numRanks) { return numRanks <= 4 ? 64 : 32; }
/// And some multiprocessors stay free for another operator's product, for which blocks of ours may be waiting on other ranks.
uint32_t exchangeBlocksOf(int64_t tiles, uint32_t multiprocessors) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(multiprocessors * 3 / 4, 1, std::min<int64_t>(tiles, mostExchangeBlocks)));
}
uint32_t mostSpared(uint32_t multiprocessors) { return std::max(1u, multiprocessors / 11); }
/// What the product leaves to the sums beside it: one of 33 to one of 11 multiprocessors, as many as make no tile later than it would be with
/// the fewest of them.
uint32_t sparedMultiprocessors(int64_t tiles, uint32_t multiprocessors) {
  const uint32_t least = std::max(1u, multiprocessors / 33), most = mostSpared(multiprocessors);
  const int64_t waves = ceilDivide(tiles, multiprocessors - least);
  return std::clamp(multiprocessors - static_cast<uint32_t>(ceilDivide(tiles, waves)), least, most);
}

/// Of one that was given, for messages.
std::string tileText(const std::optional<OneLaunchTile> &given) {
  return given ? fmt::format(" by tiles {}x{}x{} in {} splits, all of whose blocks must find a place at once,",
                             given->tile.blockM, given->tile.blockN, given->tile.blockK, given->splits)
               : std::string();
}

AllReduceForm formOf(TensorParallelForm form) {
  switch (form) {
  case TensorParallelForm::OneShot: return AllReduceForm::OneShot;
  case TensorParallelForm::FusedTwoShot: return AllReduceForm::FusedTwoShot;
  case TensorParallelForm::TwoShot: return AllReduceForm::TwoShot;
  case TensorParallelForm::Pushed: return AllReduceForm::Pushed;
  default: return AllReduceForm::Unfused;
  }
}

TensorParallelForm formOf(AllReduceForm form) {
  switch (form) {
  case AllReduceForm::OneShot: return TensorParallelForm::OneShot;
  case AllReduceForm::FusedTwoShot: return TensorParallelForm::FusedTwoShot;
  case AllReduceForm::TwoShot: return TensorParallelForm::TwoShot;
  case AllReduceForm::Pushed: return TensorParallelForm::Pushed;
  default: return TensorParallelForm::Unfused;
  }
}

} // namespace

std::string_view toString(AllReduceForm form) {
  switch (form) {
  case AllReduceForm::Auto: return "auto";
  case AllReduceForm::OneShot: return "one_shot";
  case AllReduceForm::FusedTwoShot: return "fused_two_shot";
  case AllReduceForm::TwoShot: return "two_shot";
  case AllReduceForm::Pushed: return "pushed";
  case AllReduceForm::Unfused: return "unfused";
  }
  return "?";
}

std::optional<AllReduceForm> parseAllReduceForm(std::string_view text) {
  for (AllReduceForm form : {AllReduceForm::Auto, AllReduceForm::OneShot, AllReduceForm::FusedTwoShot,
                             AllReduceForm::TwoShot, AllReduceForm::Pushed, AllReduceForm::Unfused})
    if (text == toString(form))
      return form;
  return std::nullopt;
}

Expected<GemmAllReduce> GemmAllReduce::create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const Options &given) {
  Options options = given;
  if (options.plan) {
    options.form = formOf(options.plan->form);
    options.chunks = std::max(options.plan->chunks, 1u);
    options.exchangeBlocks = options.plan->exchangeBlocks;
    options.oneLaunchTile = options.plan->oneLaunchTile();
  }
  DITRON_RETURN_IF_ERROR(world.requireOneNode(operation));
  const DataType resultType = options.typeOfResult();
  DITRON_RETURN_IF_ERROR(verifyEpilogue(operation, options.dtype, resultType, options.epilogue, /*reduces=*/true));
  if (options.partialType && *options.partialType != resultType && *options.partialType != DataType::F32)
    return unsupported(fmt::format("{}: partial results of type {}; {} and fp32 are accepted", operation,
                                   ditron::toString(*options.partialType), ditron::toString(resultType)));
  if (options.oneLaunchTile) {
    DITRON_RETURN_IF_ERROR(options.oneLaunchTile->verify().withContext(operation));
    DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, options.dtype, options.oneLaunchTile->tile));
  }
  if (options.concurrentCalls == 0)
    return invalidArgument(fmt::format("{}: 0 concurrent calls; at least 1 is accepted", operation));
  if (options.maxRows <= 0 || options.columns <= 0)
    return invalidArgument(fmt::format("{}: maxRows is {} and columns is {}; both must be positive", operation,
                                       options.maxRows, options.columns));
  if (options.exchangeBlocks > mostExchangeBlocks)
    return invalidArgument(fmt::format("{}: {} exchange blocks; at most {} are accepted", operation,
                                       options.exchangeBlocks, mostExchangeBlocks));
  DITRON_RETURN_IF_ERROR(CallWords::verifyChunks(world, operation, options.chunks));

  GemmAllReduce op;
  op.optionValues = options;
  op.world = &world;
  op.kernels = &kernels;
  op.planAgreement = PlanAgreement(world, operation);
  DITRON_RETURN_IF_ERROR(op.makeChoices({options.dtype, options.weightOrder, options.precision, options.tile,
                                         options.plan, options.gpu, options.resultType, options.epilogue})
                             .withContext(operation));
  const TileConfig tile = op.tileFor(options.maxRows);
  DITRON_RETURN_IF_ERROR(verifyTileDepth(operation, options.dtype, tile));
  DITRON_RETURN_IF_ERROR(verifyProduct(operation, options.maxRows, options.columns, 1, tile));
  op.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks())
    op.ranks[id] = std::make_unique<PerRank>();
  if (options.form == AllReduceForm::Auto || isOneLaunch(options.form)) {
    op.oneLaunch = OneLaunch(world, {.name = "gemm_ar",
                                     .dtype = options.dtype,
                                     .resultType = resultType,
                                     .partialType = op.partialType(),
                                     .epilogue = options.epilogue,
                                     .columns = options.columns,
                                     .weightOrder = options.weightOrder,
                                     .precision = options.precision,
                                     .concurrentCalls = options.concurrentCalls,
                                     .tile = options.oneLaunchTile,
                                     .tiles = op.tables.oneLaunchTiles(op.otherSizes())});
    int64_t rows = options.maxRows;
    if (options.form == AllReduceForm::Auto) {
      rows = 0;
      int64_t before = 0;
      for (const AllReduceChoice &choice : op.choices) {
        if (isOneLaunch(choice.form) && before < options.maxRows)
          rows = std::max(rows, choice.mostRows);
        before = choice.mostRows;
      }
    }
    op.oneLaunchRows = op.oneLaunch.rowsUpTo(std::min(options.maxRows, rows));
  }
  if (isOneLaunch(options.form) && op.oneLaunchRows < options.maxRows) {
    const runtime::DeviceAttributes &gpu = world.rank(world.localRanks().front()).attributes();
    if (options.oneLaunchTile)
      DITRON_RETURN_IF_ERROR(options.oneLaunchTile->verifyPlaces(options.maxRows, options.columns, gpu.multiprocessors)
                                 .withContext(operation));
    return unsupported(fmt::format("{}: form {}{} takes at most {} rows with {} columns on this GPU; maxRows is {}",
                                   operation, toString(options.form), tileText(options.oneLaunchTile), op.oneLaunchRows,
                                   options.columns, options.maxRows));
  }
  if (op.oneLaunchRows > 0)
    DITRON_RETURN_IF_ERROR(op.oneLaunch.allocate(op.oneLaunchCalls()));
  // Forms that no call has take no memory.
  const auto isPushed = [](AllReduceForm form) { return form == AllReduceForm::Pushed; };
  if (op.anyForm([&](AllReduceForm form) { return !isOneLaunch(form) && !isPushed(form) && !op.isSequence(form); }))
    DITRON_RETURN_IF_ERROR(op.allocateTwoShot());
  if (op.anyForm(isPushed)) {
    DITRON_ASSIGN_OR_RETURN(
        op.pushed,
        PushedProduct::create(world, kernels, pushedOptionsOf(options, "gemm_ar", PushedResult::Everywhere)));
  }
  const bool hasCollectiveTail = op.mostChunks > 1 && op.partialType() == resultType;
  if (hasCollectiveTail || op.anyForm([&](AllReduceForm form) { return op.isSequence(form); })) {
    DITRON_ASSIGN_OR_RETURN(op.exchange,
                            Collective::create(world, kernels,
                                               {.kind = CollectiveKind::AllReduce,
                                                .dtype = resultType,
                                                .maxElements = options.maxRows * options.columns,
                                                .concurrentCalls = options.concurrentCalls,
                                                .takenMultiprocessors = hasCollectiveTail ? op.mostBeside() + 1 : 0,
                                                .gpu = options.gpu}));
  }
  op.keepPlans(world, operation, operandTypes(options.dtype, resultType, options.epilogue));
  return op;
}

Status GemmAllReduce::makeChoices(const TensorParallelSetting &setting) {
  DITRON_ASSIGN_OR_RETURN(tables, TensorParallelChoice::create(*world, "gemm_ar", setting));
  std::string text;
  for (const RowsPlan &each : tables.byRows(otherSizes())) {
    const TensorParallelPlan plan = each.plan.value_or(TensorParallelPlan{.form = TensorParallelForm::Unfused});
    choices.push_back({each.mostRows, formOf(plan.form), std::max(plan.chunks, 1u), plan.exchangeBlocks});
    text += fmt::format("{}{} up to {} rows", text.empty() ? "" : ", ", plan.text(), each.mostRows);
  }
  return planAgreement.begin(*world, text);
}

TileConfig GemmAllReduce::tileFor(int64_t rows) const {
  return tables.tileFor(rows, optionValues.columns, optionValues.depth);
}

std::vector<OneLaunchCalls> GemmAllReduce::oneLaunchCalls() const {
  int64_t oneShot = 0, twoShot = 0;
  const auto add = [&](int64_t rows) {
    const AllReduceForm form = choiceFor(rows).form;
    if (isOneLaunch(form))
      (form == AllReduceForm::OneShot ? oneShot : twoShot) = rows;
  };
  for (const AllReduceChoice &choice : choices)
    if (choice.mostRows < oneLaunchRows)
      add(choice.mostRows);
  add(oneLaunchRows);
  std::vector<OneLaunchCalls> calls;
  if (oneShot > 0)
    calls.push_back({OneLaunchResult::Everywhere, oneShot});
  if (twoShot > 0)
    calls.push_back({OneLaunchResult::EverywhereByOwners, twoShot});
  return calls;
}

template <typename Predicate> bool GemmAllReduce::anyForm(const Predicate &predicate) const {
  if (predicate(choiceFor(optionValues.maxRows).form))
    return true;
  return std::ranges::any_of(choices, [&](const AllReduceChoice &choice) {
    return choice.mostRows < optionValues.maxRows &&
           (predicate(choiceFor(choice.mostRows).form) || predicate(choiceFor(choice.mostRows + 1).form));
  });
}

Status GemmAllReduce::allocateTwoShot() {
  const int64_t numRanks = world->numRanks(), columns = optionValues.columns;
  mostChunks = 1;
  if (optionValues.form != AllReduceForm::Unfused)
    for (const AllReduceChoice &choice : choices)
      mostChunks = std::max(mostChunks, std::max(choice.chunks, optionValues.chunks));
  mostChunks = std::clamp<uint32_t>(mostChunks, 1, CallWords::mostChunks(*world));
  DITRON_ASSIGN_OR_RETURN(
      words, CallWords::create(*world, "gemm_ar", world->numRanks() * mostChunks, world->numRanks() * mostChunks));
  // Segments of a chunk are rounded up to whole rows.
  const int64_t slotRows = optionValues.maxRows + mostChunks * numRanks;
  const int64_t ownRows = ceilDivide(optionValues.maxRows, numRanks) + mostChunks;
  DITRON_ASSIGN_OR_RETURN(scatter, world->allocateSymmetric(partialType(), slotRows * columns, "gemm_ar_scatter"));
  DITRON_ASSIGN_OR_RETURN(reduced,
                          world->allocateSymmetric(optionValues.typeOfResult(), ownRows * columns, "gemm_ar_reduced"));
  DITRON_ASSIGN_OR_RETURN(arrived, world->allocateSymmetric(DataType::I64, numRanks * mostChunks, "gemm_ar_arrived"));
  DITRON_ASSIGN_OR_RETURN(finished, world->allocateSymmetric(DataType::I64, numRanks * mostChunks * mostExchangeBlocks,
                                                             "gemm_ar_finished"));
  for (uint32_t id : world->localRanks()) {
    PerRank &own = *ranks[id];
    DITRON_ASSIGN_OR_RETURN(own.side, runtime::SideStream::create(world->rank(id), "gemm_ar", 3));
    DITRON_ASSIGN_OR_RETURN(own.partial,
                            world->rank(id).allocate(partialType(), optionValues.maxRows * columns, "gemm_ar_partial"));
    DITRON_ASSIGN_OR_RETURN(own.ticket, world->rank(id).allocate(DataType::I32, mostChunks, "gemm_ar_reduced_by"));
  }
  return Status::ok();
}

AllReduceChoice GemmAllReduce::choiceFor(int64_t rows) const {
  AllReduceChoice choice =
      *std::ranges::find_if(choices, [&](const AllReduceChoice &each) { return rows <= each.mostRows; });
  if (optionValues.form != AllReduceForm::Auto) {
    choice.form = optionValues.form;
  } else if (isOneLaunch(choice.form) && (rows > oneLaunchRows || !oneLaunch.tileFor(rows))) {
    const auto other =
        std::ranges::find_if(choices, [](const AllReduceChoice &each) { return !isOneLaunch(each.form); });
    choice = other == choices.end() ? AllReduceChoice{rows, AllReduceForm::Unfused} : *other;
  }
  if ((choice.form == AllReduceForm::TwoShot || choice.form == AllReduceForm::Pushed) && optionValues.chunks)
    choice.chunks = optionValues.chunks;
  if (choice.form == AllReduceForm::Pushed)
    return choice;
  if (optionValues.exchangeBlocks)
    choice.exchangeBlocks = optionValues.exchangeBlocks;
  if (choice.form != AllReduceForm::TwoShot || mostBeside() == 0)
    choice.chunks = 1;
  choice.chunks = std::min(choice.chunks, mostChunks);
  return choice;
}

uint64_t GemmAllReduce::workspaceBytes() const {
  uint64_t bytes = oneLaunch.bytes();
  for (const runtime::SymmetricBuffer *each : {&scatter, &reduced})
    bytes += each->isValid() ? each->bytes() : 0;
  return bytes + (pushed ? pushed->bytes() : 0) + (exchange ? exchange->workspaceBytes() : 0);
}

UnfusedProduct GemmAllReduce::unfusedProduct(const ProductShape &shape, bool addsBias) const {
  return {.problem = addedProductOf(optionValues, shape, addsBias),
          .tile = tables.givenTileFor(shape.rows, optionValues.columns, shape.size)};
}

OverlappedProduct GemmAllReduce::overlappedProduct(const runtime::Rank &rank, const ProductShape &shape,
                                                   const Chunks &chunks) const {
  return {.problem = unfusedProduct(shape).problem,
          .tile = tileFor(shape.rows),
          .tailSplits = tables.tailSplitsFor(shape.rows, optionValues.columns, optionValues.depth),
          .mostBlocks = rank.attributes().multiprocessors - (chunks.count > 1 ? blocksBeside(rank, chunks) : 0)};
}

std::string GemmAllReduce::planText(int64_t rows) const {
  const AllReduceChoice choice = choiceFor(rows);
  TensorParallelPlan plan = {.form = formOf(choice.form)};
  if (isOneLaunch(choice.form)) {
    const OneLaunchTile shape = oneLaunch.tileFor(rows).value_or(OneLaunchTile());
    plan.tile = shape.tile;
    plan.splits = shape.splits;
    return plan.text();
  }
  if (isSequence(choice.form))
    return fmt::format("{}, then {}", textOf(unfusedProduct({rows, optionValues.depth}), *world),
                       exchange->planFor(rows * optionValues.columns).text());
  plan.tile = tileFor(rows);
  if (choice.form == AllReduceForm::Pushed)
    plan.chunks = pushed->chunksFor(rows, *plan.tile, choice.chunks);
  if (choice.form == AllReduceForm::TwoShot) {
    const Chunks chunks = chunksFor(rows, choice);
    const runtime::Rank &rank = world->rank(world->localRanks().front());
    plan.tailSplits = overlappedProduct(rank, {rows, optionValues.depth}, chunks).partsOn(rank);
    plan.chunks = chunks.count;
    plan.exchangeBlocks = choice.exchangeBlocks;
  }
  return plan.text();
}

GemmAllReduce::Chunks GemmAllReduce::chunksFor(int64_t rows, const AllReduceChoice &choice) const {
  // Tiles do not reach into two chunks.
  const int64_t block = tileFor(rows).blockM;
  int64_t chunkRows = rows;
  if (choice.chunks > 1)
    chunkRows = std::min(rows, ceilDivide(ceilDivide(rows, choice.chunks), block) * block);
  return {rows, chunkRows, static_cast<uint32_t>(ceilDivide(rows, chunkRows)), world->numRanks()};
}

runtime::Pointer GemmAllReduce::anyBuffer(uint32_t rank) const {
  return scatter.isValid()   ? scatter.on(rank)
         : pushed            ? pushed->any(rank)
         : oneLaunchRows > 0 ? oneLaunch.any(rank)
                             : exchange->any(rank);
}

Expected<ProductPlan::Parts> GemmAllReduce::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                      const ProductShape &shape) {
  using runtime::Lane;
  const auto &[rows, depth, strides] = shape;
  const runtime::Pointer a = operands[Operand::A], b = operands[Operand::B], out = operands[Operand::Result];
  const OperandLaunch::Names product =
      OperandLaunch::withEpilogue({{"a_ptr", Operand::A}, {"b_ptr", Operand::B}}, optionValues.epilogue);
  const AllReduceChoice choice = choiceFor(rows);
  ProductPlan::Parts parts;
  if (isOneLaunch(choice.form)) {
    const std::optional<OneLaunchTile> tile = oneLaunch.tileFor(rows);
    if (!tile)
      return unsupported(fmt::format("{}: {} rows and {} columns are too many tiles for form {}", operation, rows,
                                     optionValues.columns, toString(choice.form)));
    DITRON_RETURN_IF_ERROR(verifyTile(shape, tile->tile));
    const OneLaunchResult result =
        choice.form == AllReduceForm::OneShot ? OneLaunchResult::Everywhere : OneLaunchResult::EverywhereByOwners;
    OperandLaunch::Names names = product;
    names.emplace_back("out_ptr", Operand::Result);
    DITRON_ASSIGN_OR_RETURN(
        OperandLaunch whole,
        OperandLaunch::create(*kernels, rank,
                              oneLaunch.call(rank, result, a, b, out, operands.epilogue(), rows, depth, strides, *tile),
                              names));
    parts.sequence.launch(Lane::Main, whole.call.prepared());
    parts.launches.push_back(std::move(whole));
    return parts;
  }
  const TileConfig tile = tileFor(rows);
  DITRON_RETURN_IF_ERROR(verifyTile(shape, tile));
  if (choice.form == AllReduceForm::Pushed)
    return pushed->makeParts(rank, operands, shape, tile, choice.chunks);
  if (isSequence(choice.form))
    return makeProductThenCollective(*kernels, rank, *exchange, gemmWorkspace(rank.id()), operands,
                                     {.product = unfusedProduct(shape, rank.id() == 0),
                                      .elements = rows * optionValues.columns,
                                      .resultRows = rows,
                                      .resultStride = strides.c});
  const Chunks chunks = chunksFor(rows, choice);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter, OperandLaunch::create(*kernels, rank, words.enter(rank), {}));
  DITRON_ASSIGN_OR_RETURN(OperandLaunch gemm, overlappedProduct(rank, shape, chunks)
                                                  .launch(*kernels, rank, gemmCall(rank, operands, shape, chunks),
                                                          gemmWorkspace(rank.id()), product));
  auto exchange = [&](Exchange part, uint32_t chunk) {
    return OperandLaunch::create(*kernels, rank, exchangeCall(rank, part, chunk, out, strides.c, chunks),
                                 {{"out_ptr", Operand::Result}});
  };
  const uint32_t last = chunks.count - 1;
  parts.sequence = runtime::CallSequence(ranks[rank.id()]->side);
  auto launch = [&](Lane lane, OperandLaunch &&made) {
    parts.sequence.launch(lane, made.call.prepared());
    parts.launches.push_back(std::move(made));
  };
  launch(Lane::Main, std::move(enter));
  if (choice.form == AllReduceForm::Unfused)
    launch(Lane::Main, std::move(gemm));
  parts.sequence.join(Lane::Side);
  addPushes(rank, chunks, parts.sequence);
  if (last > 0) {
    DITRON_ASSIGN_OR_RETURN(OperandLaunch beside, exchange(Exchange::ReduceBeside, last));
    parts.sequence.join(Lane::SecondSide);
    launch(Lane::SecondSide, std::move(beside));
    // A lane of their own: sums of a chunk are made while those of the one before are fetched.
    parts.sequence.join(Lane::ThirdSide);
    addFetches(rank, chunks, strides.c, parts.sequence);
  }
  if (choice.form == AllReduceForm::TwoShot)
    launch(Lane::Main, std::move(gemm));
  if (hasCollectiveTail(chunks)) {
    DITRON_ASSIGN_OR_RETURN(std::vector<OperandLaunch> tail, collectiveTail(rank, out, strides.c, chunks));
    for (OperandLaunch &made : tail)
      launch(Lane::Main, std::move(made));
  } else {
    for (Exchange part : {Exchange::Reduce, Exchange::Gather}) {
      DITRON_ASSIGN_OR_RETURN(OperandLaunch made, exchange(part, last));
      launch(Lane::Main, std::move(made));
    }
  }
  parts.sequence.join(Lane::Main);
  return parts;
}

Expected<std::vector<OperandLaunch>> GemmAllReduce::collectiveTail(runtime::Rank &rank, runtime::Pointer out,
                                                                   int64_t strideOut, const Chunks &chunks) {
  const int64_t columns = optionValues.columns, firstRow = (chunks.count - 1) * chunks.chunkRows;
  const int64_t rows = chunks.rows - firstRow, offset = firstRow * strideOut;
  const runtime::Pointer from = ranks[rank.id()]->partial.pointer() + firstRow * columns, to = out + offset;
  const bool isDense = strideOut == columns;
  std::vector<OperandLaunch> launches;
  DITRON_ASSIGN_OR_RETURN(Collective::Launch made,
                          this->exchange->launch(rank, from, isDense ? to : from, rows * columns));
  OperandLaunch &sum = launches.emplace_back();
  sum.call = std::move(made.call);
  if (isDense) {
    sum.parameters = {{made.out, Operand::Result, offset}};
    return launches;
  }
  DITRON_ASSIGN_OR_RETURN(OperandLaunch spread,
                          OperandLaunch::create(*kernels, rank,
                                                copyRowsCall(rank, {from, columns}, {to, strideOut}, rows, columns),
                                                {{"to_ptr", Operand::Result}}));
  spread.parameters.front().offset = offset;
  launches.push_back(std::move(spread));
  return launches;
}

void GemmAllReduce::addPushes(runtime::Rank &rank, const Chunks &chunks, runtime::CallSequence &sequence) const {
  const int64_t columns = optionValues.columns;
  const uint32_t id = rank.id(), numRanks = rank.numRanks();
  for (uint32_t chunk = 0; chunk < chunks.count - hasCollectiveTail(chunks); ++chunk) {
    const RowShards segments = chunks.segments(chunk);
    const int64_t slots = chunk * numRanks * chunks.longestSegment() + id * segments.rowsPerRank;
    // In the order in which the product completes them. The own segment is not among them: the reduction reads it from the partial
    // results; and nobody waits for empty ones.
    for (uint32_t step = 1; step < numRanks; ++step) {
      const uint32_t owner = (id + step) % numRanks;
      const int64_t count = segments.rowsOf(owner) * columns;
      if (count == 0)
        continue;
      const runtime::Pointer own =
          ranks[id]->partial.pointer() + (chunk * chunks.chunkRows + segments.firstRowOf(owner)) * columns;
      sequence.signalWait(runtime::Lane::Side, words.gates(id) + (chunk * numRanks + owner),
                          runtime::Compare::GreaterEqual, 1);
      sequence.copy(runtime::Lane::Side, runtime::Copy::of(scatter.on(owner) + slots * columns, own, count,
                                                           fmt::format("{} to {}", copyName, owner)));
      sequence.copy(runtime::Lane::Side,
                    runtime::Copy::of(arrived.on(owner) + (id * mostChunks + chunk), words.generation(id), 1,
                                      fmt::format("ar_arrived to {}", owner)));
    }
  }
}

void GemmAllReduce::addFetches(const runtime::Rank &rank, const Chunks &chunks, int64_t strideOut,
                               runtime::CallSequence &sequence) const {
  using runtime::Lane;
  const int64_t columns = optionValues.columns;
  for (uint32_t chunk = 0; chunk + 1 < chunks.count; ++chunk) {
    const RowShards segments = chunks.segments(chunk);
    for (uint32_t step = 1; step < rank.numRanks(); ++step) {
      const uint32_t owner = (rank.id() + step) % rank.numRanks();
      const int64_t rows = segments.rowsOf(owner);
      // A gate that is opened is waited for, whatever there is to fetch: the next call closes it.
      sequence.signalWait(Lane::ThirdSide, words.arrivals(rank.id()) + (owner * mostChunks + chunk),
                          runtime::Compare::GreaterEqual, 1);
      if (rows == 0)
        continue;
      const runtime::Pointer sums = reduced.on(owner) + chunk * chunks.longestSegment() * columns;
      addRowsToCaller(sequence, Lane::ThirdSide, sums,
                      {chunk * chunks.chunkRows + segments.firstRowOf(owner), rows, columns, strideOut},
                      fmt::format("ar_fetch from {}", owner));
    }
  }
}

KernelCall GemmAllReduce::gemmCall(const runtime::Rank &rank, const OperandPointers &operands,
                                   const ProductShape &shape, const Chunks &chunks) const {
  const TileConfig tile = tileFor(chunks.rows);
  const uint32_t id = rank.id();
  // Of a single chunk segments are complete in the order in which they are sent, but for rows of tiles that share a group. Of several, a whole
  // one is sent while the next is computed: each group reads all of B, so that larger ones are faster.
  const int64_t orderedRows = chunks.count > 1 ? chunks.chunkRows : chunks.longestSegment();
  const auto orderedTiles = static_cast<uint32_t>(ceilDivide(orderedRows, tile.blockM));
  KernelCall call;
  call.source = kernelFile;
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.arguments = {{"a_ptr", operands[Operand::A]},
                    {"b_ptr", operands[Operand::B]},
                    {"partial_ptr", ranks[id]->partial.pointer()},
                    {"counter_ptr", words.counters(id)},
                    {"gate_ptr", words.gates(id)},
                    {"M", chunks.rows},
                    {"N", optionValues.columns},
                    {"K", shape.size},
                    {"stride_a", shape.strides.a},
                    {"stride_b", shape.strides.b},
                    {"chunk_rows", chunks.chunkRows},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()}};
  call.arguments.emplace_back("B_TRANSPOSED", optionValues.weightOrder == MatrixOrder::Transposed);
  TileConfig ordered = tile;
  ordered.groupM = std::min(tile.groupM, std::max(2u, orderedTiles));
  appendTileArguments(call, ordered, optionValues.precision);
  appendEpilogue(call, optionValues.epilogue, operands.epilogue(), id == 0 ? optionValues.columns : 0);
  return call;
}

uint32_t GemmAllReduce::blocksBeside(const runtime::Rank &rank, const Chunks &chunks) const {
  const uint32_t wanted = choiceFor(chunks.rows).exchangeBlocks;
  const int64_t tiles = tilesOf(tileFor(chunks.rows), chunks.rows, optionValues.columns);
  return std::min(wanted ? wanted : sparedMultiprocessors(tiles, rank.attributes().multiprocessors), mostBeside());
}

uint32_t GemmAllReduce::mostBeside() const {
  const uint32_t multiprocessors = world->rank(world->localRanks().front()).attributes().multiprocessors;
  // A block of the last chunk's sums needs a place, too, and one is left for a product on which all of them wait.
  const uint32_t places = (multiprocessors - 1) / optionValues.concurrentCalls;
  uint32_t wanted = mostSpared(multiprocessors);
  for (const AllReduceChoice &choice : choices)
    wanted = std::max({wanted, choice.exchangeBlocks, optionValues.exchangeBlocks});
  return places < 2 || multiprocessors < 4 ? 0 : std::min({wanted, multiprocessors / 2, places - 1});
}

KernelCall GemmAllReduce::exchangeCall(const runtime::Rank &rank, Exchange part, uint32_t chunk, runtime::Pointer out,
                                       int64_t strideOut, const Chunks &chunks) const {
  const uint32_t id = rank.id();
  const bool beside = part == Exchange::ReduceBeside;
  const int64_t tiles =
      ceilDivide(chunks.segments(chunk).rowsPerRank, exchangeM) * ceilDivide(optionValues.columns, exchangeN);
  KernelCall call;
  call.source = kernelFile;
  call.kernel = beside ? "reduce_rows_beside" : part == Exchange::Reduce ? "reduce_rows" : "gather_rows";
  call.numWarps = beside ? besideWarps : exchangeWarps;
  call.grid = {beside ? blocksBeside(rank, chunks) : exchangeBlocksOf(tiles, rank.attributes().multiprocessors), 1, 1};
  auto add = [&](std::initializer_list<std::pair<std::string, runtime::Argument>> arguments) {
    call.arguments.insert(call.arguments.end(), arguments);
  };
  if (part != Exchange::Gather)
    add({{"partial_ptr", ranks[id]->partial.pointer()},
         {"scatter_ptr", scatter.on(id)},
         {"arrived_ptr", arrived.on(id)},
         {"gate_ptr", words.gates(id)}});
  if (beside)
    add({{"ticket_ptr", ranks[id]->ticket.pointer()}, {"fetch_ptr", words.arrivals(id)}});
  else
    add({{"finished_ptr", finished.on(id)}, {"BLOCKS", mostExchangeBlocks}});
  add({{"reduced_ptr", reduced.on(id)},
       {"out_ptr", out},
       {"generation_ptr", words.generation(id)},
       {beside ? "chunks" : "chunk", chunk},
       {"M", chunks.rows},
       {"N", optionValues.columns},
       {"stride_out", strideOut},
       {"chunk_rows", chunks.chunkRows},
       {"rank", id},
       {"WORLD_SIZE", rank.numRanks()},
       {"CHUNKS", mostChunks},
       {"EXCHANGE_M", beside ? besideM(rank.numRanks()) : exchangeM},
       {"EXCHANGE_N", exchangeN}});
  return call;
}

} // namespace ditron::ops
