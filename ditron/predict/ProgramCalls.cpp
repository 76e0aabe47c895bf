//===- ProgramCalls.cpp - The operators' calls, put together --------------------------------------------------------===//
//
// Products with their gathers and scatters, collectives alone, mixtures of experts, attention: the tiles of each kernel and what each waits for.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/predict/Program.h"

#include "ditron/predict/VendorCollectives.h"

#include <fmt/format.h>
#include <numeric>

namespace ditron::predict {

//===- Overlapped products --------------------------------------------------------------------------------------------===//

Product Program::denseProduct() const {
  Product product = {request.m, request.n, request.k, 1, request.dtype, 1};
  if (request.op == Operator::AgGemm)
    product.n /= request.gpus;
  if (request.op == Operator::GemmRs || request.op == Operator::GemmAr)
    product.k /= request.gpus;
  return product;
}

/// Of one expert on one rank, tokens dealt out evenly.
Product Program::expertProduct(bool isFirst) const {
  const int64_t rows = std::max<int64_t>(1, request.tokens * request.topk / request.experts);
  const int64_t part = request.intermediate / request.gpus;
  return {rows,          isFirst ? part : request.hidden, isFirst ? request.hidden : part, request.experts,
          request.dtype, machine.gpu.gatherEfficiency};
}

TileKernel Program::gatherKernel(uint32_t rank, const Gather &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  auto rows = std::make_shared<const std::vector<int64_t>>(
      ops::allGatherTileRows(what.shards, rank, request.gpus, fleet.numNodes(), timing.tile.blockM));
  return {"ag_gemm", timing.blocks, timing.tiles, [this, rank, what, timing, rows](uint64_t tile) {
            const ops::TilePlace place =
                ops::groupedTile(static_cast<int64_t>(tile), timing.tileRows, timing.tileColumns, timing.tile.groupM);
            const int64_t row = (*rows)[place.row];
            const ops::Range chunks = ops::chunksOfTileRow(row, what.shards, what.chunks, timing.tile.blockM);
            Tile work = {{}, timing.tileUs, {}};
            for (int64_t chunk = chunks.first; chunk <= chunks.last; ++chunk)
              work.waits.push_back(signal(rank, what.kind, chunk));
            return work;
          }};
}

TileKernel Program::scatterKernel(uint32_t rank, const Scatter &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  auto left = std::make_shared<std::vector<int64_t>>(request.gpus, 0); // tiles until the gate of a segment opens
  for (uint32_t segment = 0; segment < request.gpus; ++segment)
    if (what.shards.rowsOf(segment) > 0) {
      const ops::Range rows = ops::tileRowsOfSegment(segment, what.shards, timing.tile.blockM);
      (*left)[segment] = (rows.last - rows.first + 1) * timing.tileColumns;
    }
  auto rows = std::make_shared<const std::vector<int64_t>>(
      ops::reduceScatterTileRows(what.shards, rank, request.gpus, fleet.numNodes(), timing.tile.blockM));
  return {"gemm_rs", timing.blocks, timing.tiles, [this, rank, what, timing, left, rows](uint64_t tile) {
            const ops::TilePlace place =
                ops::groupedTile(static_cast<int64_t>(tile), timing.tileRows, timing.tileColumns, timing.tile.groupM);
            const int64_t row = (*rows)[place.row];
            const ops::Range segments = ops::segmentsOfTileRow(row, what.shards, timing.tile.blockM);
            return Tile{{}, timing.tileUs, [this, rank, left, segments] {
                          for (int64_t segment = segments.first; segment <= segments.last; ++segment)
                            if (--(*left)[segment] == 0)
                              fleet.simulation.raise(signal(rank, "gate", segment));
                        }};
          }};
}

void Program::buildOverlappedGather(uint32_t rank, const Gather &what, TileKernel kernel) {
  const SignalId begun = signal(rank, "begun", 0), sent = signal(rank, "sent", 0);
  enter(rank, what.rowBytes * static_cast<double>(what.shards.rowsOf(rank)));
  // The own chunks are there from the beginning.
  for (uint32_t chunk = 0; chunk < what.chunks; ++chunk)
    main(rank).raise(signal(rank, what.kind, uint64_t(rank) * what.chunks + chunk));
  main(rank).raise(begun);
  gather(rank, what, begun, sent);
  if (request.form == Form::Unfused)
    main(rank).wait(sent);
  main(rank).launch(std::move(kernel));
  if (request.form != Form::Unfused)
    main(rank).wait(sent);
}

void Program::buildOverlappedScatter(uint32_t rank, const Scatter &what, TileKernel kernel, bool gathersResult) {
  const SignalId begun = signal(rank, "begun", 0), sent = signal(rank, "sent", 0);
  enter(rank, 0);
  if (request.form == Form::Unfused)
    main(rank).launch(kernel);
  main(rank).raise(begun);
  scatter(rank, what, begun, sent);
  if (request.form != Form::Unfused)
    main(rank).launch(std::move(kernel));
  reduceArrived(rank, what);
  main(rank).wait(sent);
  if (!gathersResult)
    return;
  const Gather result = {"result", what.shards, what.rowBytes, 1};
  const SignalId reduced = signal(rank, "reduced", 0), gathered = signal(rank, "gathered", 0);
  main(rank).raise(reduced);
  gather(rank, result, reduced, gathered);
  main(rank).wait(gathered);
  for (uint32_t source = 0; source < request.gpus; ++source)
    if (source != rank && what.shards.rowsOf(source) > 0)
      main(rank).wait(signal(rank, result.kind, source));
}

void Program::buildProduct(uint32_t rank) {
  const Product product = denseProduct();
  const ops::RowShards shards(request.m, request.gpus);
  const double inRow = static_cast<double>(request.k) * elementBytes,
               outRow = static_cast<double>(request.n) * elementBytes;
  const double shardRows = static_cast<double>(shards.rowsPerRank);
  const bool isGather = request.op == Operator::AgGemm || request.op == Operator::A2aGemm;
  if (request.op == Operator::Gemm && request.form == Form::Overlapped) {
    const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
    describe(timing);
    return main(rank).launch(
        {"gemm", timing.blocks, timing.tiles, [us = timing.tileUs](uint64_t) { return Tile{{}, us, {}}; }});
  }
  if (request.op == Operator::Gemm || (request.form == Form::Vendor && !isGather) || request.form == Form::TwoShot) {
    vendorProduct(rank, product, "product");
    if (request.op == Operator::GemmRs)
      vendorCall(rank, Operator::ReduceScatter, outRow * shardRows);
    else if (request.op == Operator::GemmAr && request.form == Form::Vendor)
      vendorCall(rank, Operator::AllReduce, outRow * static_cast<double>(request.m));
    else if (request.op == Operator::GemmAr) {
      meetThroughMemory(rank);
      exchange(rank, outRow * shardRows, Mover::Sm, "reduce_scatter");
      exchange(rank, outRow * shardRows, Mover::Sm, "all_gather");
    }
    return;
  }
  if (request.form == Form::Vendor) {
    vendorCall(rank, request.op == Operator::AgGemm ? Operator::AllGather : Operator::AllToAll, inRow * shardRows);
    return vendorProduct(rank, product, "product");
  }
  if (isGather) {
    const Gather what = {"shard", shards, inRow, request.chunksPerRank};
    return buildOverlappedGather(rank, what, gatherKernel(rank, what, product));
  }
  const Scatter what = {shards, outRow};
  buildOverlappedScatter(rank, what, scatterKernel(rank, what, product), request.op == Operator::GemmAr);
}

//===- Collectives ----------------------------------------------------------------------------------------------------===//

void Program::buildCollective(uint32_t rank) {
  const double bytes = static_cast<double>(request.bytes), ranks = request.gpus;
  if (request.form == Form::Vendor)
    return vendorCall(rank, request.op, bytes);
  if (request.form == Form::CopyEngine) {
    // Ranks start together; copies carry no signals (bench/copy_engine_probe.cu). Everybody's copies being done ends it.
    for (uint32_t step = 1; step < request.gpus; ++step) {
      const uint32_t to = (rank + request.gpus - step) % request.gpus;
      main(rank).copy(to, bytes, fmt::format("shard to {}", to));
    }
    return main(rank).push([this, rank](Action done) { fleet.meet(rank, std::move(done)); });
  }
  meetThroughMemory(rank);
  if (request.op == Operator::AllReduce && request.form == Form::TwoShot) {
    exchange(rank, bytes / ranks, Mover::Sm, "reduce_scatter");
    return exchange(rank, bytes / ranks, Mover::Sm, "all_gather");
  }
  exchange(rank, bytes, Mover::Sm, std::string(toString(request.op)));
}

//===- Mixtures of experts --------------------------------------------------------------------------------------------===//

/// Rows of an expert lie in the order in which their sources arrive; tiles of all experts that need few sources come first.
TileKernel Program::expertGatherKernel(uint32_t rank, const Gather &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  const uint64_t perLevel = static_cast<uint64_t>(timing.tileColumns * product.groups);
  return {"ag_moe", timing.blocks, timing.tiles, [this, rank, what, timing, perLevel](uint64_t tile) {
            const uint64_t level = tile / perLevel, levels = timing.tileRows;
            const uint64_t sources =
                std::min<uint64_t>(request.gpus, ((level + 1) * request.gpus + levels - 1) / levels);
            Tile work = {{}, timing.tileUs, {}};
            for (uint64_t step = level * request.gpus / levels; step < sources; ++step) {
              // In the order of arrival: own node first, inside a node upwards from the own number.
              const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes();
              const uint32_t node = (fleet.nodeOf(rank) + static_cast<uint32_t>(step) / local) % nodes;
              const uint32_t place = (rank + static_cast<uint32_t>(step)) % local;
              work.waits.push_back(signal(rank, what.kind, uint64_t(node) * local + place));
            }
            return work;
          }};
}

/// The same backwards: a segment is complete with the last tile that has rows of it.
TileKernel Program::expertScatterKernel(uint32_t rank, const Scatter &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  const uint64_t perLevel = static_cast<uint64_t>(timing.tileColumns * product.groups), levels = timing.tileRows;
  auto left = std::make_shared<std::vector<uint64_t>>(levels, perLevel);
  auto opened = std::make_shared<uint32_t>(0);
  return {"moe_rs", timing.blocks, timing.tiles, [this, rank, timing, perLevel, levels, left, opened](uint64_t tile) {
            return Tile{{}, timing.tileUs, [this, rank, tile, perLevel, levels, left, opened] {
                          --(*left)[tile / perLevel];
                          uint64_t complete = 0;
                          while (complete < levels && (*left)[complete] == 0)
                            ++complete;
                          for (; *opened < complete * request.gpus / levels; ++*opened) {
                            const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes();
                            const uint32_t node = (fleet.nodeOf(rank) + 1 + *opened / local) % nodes;
                            const uint32_t place = (rank + 1 + *opened) % local;
                            fleet.simulation.raise(signal(rank, "gate", uint64_t(node) * local + place));
                          }
                        }};
          }};
}

void Program::buildExperts(uint32_t rank) {
  const bool isFirst = request.op == Operator::AgMoe;
  const ops::RowShards shards(request.tokens, request.gpus);
  const double row = static_cast<double>(request.hidden) * elementBytes, tokens = static_cast<double>(request.tokens);
  const double routedRows = tokens * static_cast<double>(request.topk),
               shardRows = static_cast<double>(shards.rowsPerRank);
  Product product = expertProduct(isFirst);
  if (request.form == Form::Vendor) {
    // Gathered by a kernel of its own, so that the product's operands are dense.
    product.efficiency = 1;
    const double perExpert = machine.libraries.groupedProductPerExpertUs * static_cast<double>(request.experts);
    if (isFirst) {
      vendorCall(rank, Operator::AllGather, row * shardRows);
      main(rank).launchMemoryBound("gather rows", 2 * row * routedRows);
    }
    main(rank).pass("experts", perExpert);
    vendorProduct(rank, product, "grouped product");
    if (isFirst)
      return;
    main(rank).launchMemoryBound("sum over experts", machine.libraries.topkSumPasses * row * routedRows);
    if (request.op == Operator::MoeRs)
      vendorCall(rank, Operator::ReduceScatter, row * shardRows);
    else
      vendorCall(rank, Operator::AllReduce, row * tokens);
    return;
  }
  if (isFirst) {
    const Gather what = {"shard", shards, row, 1};
    return buildOverlappedGather(rank, what, expertGatherKernel(rank, what, product));
  }
  const Scatter what = {shards, row, row * static_cast<double>(request.topk + 1)};
  buildOverlappedScatter(rank, what, expertScatterKernel(rank, what, product), request.op == Operator::MoeAr);
}

/// `tokens` of each rank, experts spread evenly, routing at random: a token goes to a rank when one of its experts is there.
void Program::buildExpertParallel(uint32_t rank) {
  const double ranks = request.gpus, row = static_cast<double>(request.hidden) * elementBytes;
  double misses = 1; // that none of the token's different experts is on one given rank
  const double perRank = static_cast<double>(request.experts) / ranks;
  for (int64_t i = 0; i < request.topk; ++i)
    misses *= std::max(0.0, 1 - perRank / static_cast<double>(request.experts - i));
  const double tokensToEach = static_cast<double>(request.tokens) * (1 - misses);
  const bool isCombine = request.op == Operator::EpCombine;
  const double arrivedBytes = tokensToEach * ranks * row;
  if (isCombine)
    main(rank).launchMemoryBound("sum over experts",
                                 (request.form == Form::Vendor ? machine.libraries.topkSumPasses : 2) * arrivedBytes);
  else
    main(rank).launchMemoryBound("gather rows", 2 * arrivedBytes);
  if (request.form == Form::Vendor) {
    vendorCall(rank, Operator::AllToAll, tokensToEach * row);
  } else {
    meetThroughMemory(rank);
    exchange(rank, tokensToEach * row, Mover::Sm, std::string(toString(request.op)));
  }
  if (isCombine)
    main(rank).launchMemoryBound("sum over ranks", arrivedBytes);
}

//===- Attention ------------------------------------------------------------------------------------------------------===//

/// A block on each SM goes over the shards of the context in the order in which they arrive.
TileKernel Program::attentionKernel(uint32_t rank, const Gather &what) {
  const double queries = static_cast<double>(request.context) / request.gpus;
  const double flops = 4.0 * static_cast<double>(request.batch * request.heads * request.headDim) * queries *
                       static_cast<double>(request.context);
  const Time us = timeAttention(machine.gpu, flops, request.dtype) / request.gpus;
  const uint32_t sms = machine.gpu.smCount;
  return {"attention", sms, uint64_t(sms) * request.gpus, [this, rank, what, us, sms](uint64_t tile) {
            const uint32_t step = static_cast<uint32_t>(tile / sms), local = fleet.ranksPerNode(),
                           nodes = fleet.numNodes();
            const uint32_t source = (fleet.nodeOf(rank) + step / local) % nodes * local + (rank + step) % local;
            return Tile{{signal(rank, what.kind, source)}, us, {}};
          }};
}

void Program::buildAttention(uint32_t rank) {
  const ops::RowShards shards(request.context, request.gpus);
  const double row =
      2.0 * static_cast<double>(request.batch * request.kvHeads * request.headDim) * elementBytes; // a key and a value
  if (request.op == Operator::AgAttention) {
    const Gather what = {"shard", shards, row, 1};
    TileKernel kernel = attentionKernel(rank, what);
    if (request.form == Form::Overlapped)
      return buildOverlappedGather(rank, what, std::move(kernel));
    // Keys and values by a call each.
    for (int i = 0; i < 2; ++i)
      vendorCall(rank, Operator::AllGather, row / 2 * static_cast<double>(shards.rowsPerRank));
    const Time us = kernel.tile(0).us;
    return main(rank).launch({"attention", kernel.blocks, kernel.tiles, [us](uint64_t) { return Tile{{}, us, {}}; }});
  }
  // Each rank's part of the context is read once; partial results, with a maximum and a sum for each, meet at every rank.
  const double partial = static_cast<double>(request.batch * request.heads * (request.headDim + 2)) * 4;
  main(rank).launchMemoryBound("attention of the own context", row * static_cast<double>(shards.rowsPerRank));
  meetThroughMemory(rank);
  exchange(rank, partial, Mover::Sm, "partial results");
  main(rank).launchMemoryBound("combine", partial * request.gpus);
}

} // namespace ditron::predict
