//===- Program.cpp - An operator's call on all ranks, as it is simulated --------------------------------------------===//
#include "ditron/predict/Program.h"

#include "ditron/predict/VendorCollectives.h"
#include "ditron/support/Plural.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::predict {

Program::Program(Fleet &fleet, const Request &request)
    : fleet(fleet), request(request), machine(fleet.machine()), elementBytes(sizeOf(request.dtype)) {
  finishTimes.resize(fleet.simulatedRanks());
  exchanges.resize(fleet.simulatedRanks());
  for (uint32_t rank = 0; rank < fleet.simulatedRanks(); ++rank)
    mains.push_back(&fleet.addStream(rank, "main"));
}

void Program::build() {
  for (uint32_t rank = 0; rank < fleet.simulatedRanks(); ++rank) {
    buildRank(rank);
    main(rank).push([this, rank](Action done) {
      finishTimes[rank] = fleet.simulation.now();
      done();
    });
  }
}

void Program::describe(const ProductTiming &timing) {
  planText = fmt::format("{}x{}x{} tiles: {} on {}, {} of {:.1f} us", timing.tile.blockM, timing.tile.blockN,
                         timing.tile.blockK, timing.tiles, plural(timing.blocks, "SM"),
                         plural((timing.tiles + timing.blocks - 1) / timing.blocks, "wave"), timing.tileUs);
  mostTiles = std::max(mostTiles, timing.tiles);
}

SignalId Program::signal(uint32_t owner, Kind kind, uint64_t index) {
  const auto [found, isNew] = words.try_emplace({owner, kind, index}, SignalId(0));
  if (isNew)
    found->second = fleet.simulation.addSignal(fmt::format("{}[{}] of rank {}", kind, index, owner));
  return found->second;
}

/// The word that `from` raises at `to`: each rank has `indexPerSource` words for each source.
SignalId Program::signalAt(uint32_t from, uint32_t to, Kind kind, uint32_t indexPerSource, uint32_t index) {
  const auto [owner, source] = fleet.seenBy(from, to);
  return signal(owner, kind, uint64_t(source) * indexPerSource + index);
}

//===- Beginnings and ends --------------------------------------------------------------------------------------------===//

/// ops::CallWords::enter: meets the other ranks, and copies inside the own memory beside that.
void Program::enter(uint32_t rank, double ownBytes) {
  main(rank).pass("launch", machine.gpu.kernelLaunchUs * fleet.slowness(rank));
  main(rank).push([this, rank, ownBytes](Action done) {
    auto left = std::make_shared<int>(2);
    const Time start = fleet.simulation.now();
    Action part = [this, rank, left, start, done = std::move(done)] {
      if (--*left > 0)
        return;
      fleet.recorder.span({rank, "main", "enter", "kernel", start, fleet.simulation.now()});
      done();
    };
    fleet.meet(rank, [this, rank, start, part] {
      fleet.recorder.wait(rank, "enter", "the other ranks", start, fleet.simulation.now());
      part();
    });
    fleet.transferMemory(rank, 2 * ownBytes, part);
  });
}

Stream &Program::sideStream(uint32_t rank, const std::string &name, SignalId after) {
  Stream &stream = fleet.addStream(rank, name);
  // An event of the main stream, no wait that a report should name.
  stream.push([this, after](Action done) { fleet.simulation.when(after, 1, std::move(done)); });
  return stream;
}

void Program::vendorCall(uint32_t rank, Operator collective, double bytes) {
  main(rank).push([this, rank](Action done) { fleet.meet(rank, std::move(done)); });
  main(rank).pass(std::string(toString(collective)),
                  fleet.communication(vendorCollectiveUs(machine, collective, request.gpus, bytes)));
}

void Program::meetThroughMemory(uint32_t rank) {
  main(rank).pass("meet", fleet.communication(machine.libraries.symmetricUs));
}

void Program::put(Stream &stream, uint32_t to, double bytes, SignalId arrived) {
  stream.pass("latency", fleet.networkUs(stream.rank, to));
  stream.push([this, &stream, to, bytes](Action done) {
    const Time start = fleet.simulation.now();
    fleet.transfer(stream.rank, to, bytes, Mover::Sm, [this, &stream, to, bytes, start, done = std::move(done)] {
      fleet.recorder.span(
          {stream.rank, stream.name, fmt::format("put to {}", to), "copy", start, fleet.simulation.now(), bytes});
      done();
    });
  });
  stream.raise(arrived);
}

void Program::vendorProduct(uint32_t rank, const Product &product, const std::string &name) {
  const ProductTiming timing = timeVendorProduct(machine.gpu, product);
  describe(timing);
  main(rank).launch({name, timing.blocks, timing.tiles, [us = timing.tileUs](uint64_t) { return Tile{{}, us, {}}; }});
}

void Program::buildRank(uint32_t rank) {
  switch (request.op) {
  case Operator::Gemm:
  case Operator::AgGemm:
  case Operator::GemmRs:
  case Operator::GemmAr:
  case Operator::A2aGemm: return buildProduct(rank);
  case Operator::AllGather:
  case Operator::ReduceScatter:
  case Operator::AllReduce:
  case Operator::AllToAll: return buildCollective(rank);
  case Operator::AgMoe:
  case Operator::MoeRs:
  case Operator::MoeAr: return buildExperts(rank);
  case Operator::EpDispatch:
  case Operator::EpCombine: return buildExpertParallel(rank);
  case Operator::AgAttention:
  case Operator::FlashDecode: return buildAttention(rank);
  }
}

} // namespace ditron::predict
