//===- OverlapTiming.cpp - Speed of an operator on several GPUs -----------------------------------------------------------===//
#include "overlap/OverlapTiming.h"

#include <functional>

namespace ditron::tool {

namespace {

constexpr uint32_t warmUpCalls = 3, rows = 5;
constexpr uint32_t callsOfGraph = 20; ///< Of ShortCalls.
constexpr uint64_t flushBytes = uint64_t(256) << 20;

class Timing {
public:
  Timing(runtime::World &world, TimedCalls &calls, uint32_t count)
      : world(world), calls(calls), count(count), ranks(world.numRanks()) {}

  Status create() {
    DITRON_ASSIGN_OR_RETURN(gate, world.allocateSymmetric(DataType::I64, 1, "bench_gate"));
    DITRON_ASSIGN_OR_RETURN(gathered, world.allocateSymmetric(DataType::F64, world.numRanks(), "bench_times"));
    for (uint32_t id : world.localRanks()) {
      PerRank &own = ranks[id];
      DITRON_ASSIGN_OR_RETURN(own.flush, world.rank(id).allocate(DataType::U8, flushBytes, "bench_flush"));
      DITRON_ASSIGN_OR_RETURN(own.begin, world.rank(id).createEvent("begin"));
      DITRON_ASSIGN_OR_RETURN(own.end, world.rank(id).createEvent("end"));
      DITRON_ASSIGN_OR_RETURN(own.opener, world.rank(id).createStream("bench gate", 2));
    }
    return Status::ok();
  }

  Expected<OverlapTimes> run() {
    OverlapTimes times;
    auto eager = [&](uint32_t id) { return calls.enqueue(id); };
    DITRON_ASSIGN_OR_RETURN(
        times.single, median(warmUpCalls, count, {.ahead = std::min(1u, calls.headStart()), .flush = true}, eager));
    DITRON_ASSIGN_OR_RETURN(times.inARow,
                            median(1, rows, {.calls = count, .ahead = std::min(count, calls.headStart())}, eager));
    // What the launch of a graph costs is shared by its calls: as many as take about 20 ms.
    const auto callsOfOne = static_cast<uint32_t>(std::clamp(20000 / std::max(times.inARow, 1.0), 1.0, double(count)));
    for (uint32_t id : world.localRanks()) {
      runtime::Stream &stream = world.rank(id).stream();
      DITRON_RETURN_IF_ERROR(stream.beginCapture());
      for (uint32_t call = 0; call < callsOfOne; ++call)
        DITRON_RETURN_IF_ERROR(calls.enqueue(id));
      DITRON_ASSIGN_OR_RETURN(ranks[id].graph, stream.endCapture());
    }
    auto replay = [&](uint32_t id) { return world.rank(id).stream().launch(ranks[id].graph); };
    // Nobody says how much of the queues a graph takes: behind a closed gate there is none. The first replay, which is not timed, gives time to launch
    // the next.
    DITRON_ASSIGN_OR_RETURN(times.asGraph,
                            median(1, rows, {.calls = (count + callsOfOne - 1) / callsOfOne, .before = 1}, replay));
    times.asGraph /= callsOfOne;
    return times;
  }

private:
  struct PerRank {
    runtime::Buffer flush;
    runtime::Event begin, end;
    runtime::Stream opener;
    runtime::Graph graph;
  };
  using Enqueue = std::function<Status(uint32_t id)>;

  /// One measurement.
  struct Row {
    uint32_t calls = 1;
    uint32_t ahead = 0;  ///< Of them enqueued before any begins.
    uint32_t before = 0; ///< Calls that come first and are not timed.
    bool flush = false;  ///< Overwrite the caches first.
  };

  /// Of `repeats` measurements behind some that do not count; each is the time of a call of the row.
  Expected<double> median(uint32_t warmUp, uint32_t repeats, const Row &row, const Enqueue &enqueue) {
    std::vector<double> times;
    for (uint32_t repeat = 0; repeat < warmUp + repeats; ++repeat) {
      DITRON_ASSIGN_OR_RETURN(const double time, measure(row, enqueue));
      if (repeat >= warmUp)
        times.push_back(time);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  /// The slowest rank's time of a call, the same in all processes.
  Expected<double> measure(const Row &row, const Enqueue &enqueue) {
    const uint64_t generation = ++gateGeneration;
    DITRON_RETURN_IF_ERROR(world.runRanks([&](runtime::Rank &rank) -> Status {
      PerRank &own = ranks[rank.id()];
      runtime::Stream &stream = rank.stream();
      if (row.flush)
        DITRON_RETURN_IF_ERROR(stream.fill(own.flush, static_cast<int>(generation & 0x7f), flushBytes));
      DITRON_RETURN_IF_ERROR(stream.signalWait(gate.on(rank.id()), runtime::Compare::GreaterEqual, generation));
      if (row.before == 0)
        DITRON_RETURN_IF_ERROR(stream.record(own.begin));
      for (uint32_t call = 0; call < row.ahead; ++call)
        DITRON_RETURN_IF_ERROR(enqueue(rank.id()));
      DITRON_RETURN_IF_ERROR(rank.hostBarrier());
      if (rank.id() == 0)
        for (uint32_t each = 0; each < world.numRanks(); ++each)
          DITRON_RETURN_IF_ERROR(own.opener.signalWrite(gate.on(each), generation));
      for (uint32_t call = 0; call < row.before; ++call)
        DITRON_RETURN_IF_ERROR(enqueue(rank.id()));
      if (row.before > 0)
        DITRON_RETURN_IF_ERROR(stream.record(own.begin));
      for (uint32_t call = row.ahead; call < row.calls; ++call)
        DITRON_RETURN_IF_ERROR(enqueue(rank.id()));
      DITRON_RETURN_IF_ERROR(stream.record(own.end));
      DITRON_RETURN_IF_ERROR(stream.synchronize());
      DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, own.end.elapsedSince(own.begin));
      return tell(rank, static_cast<double>(picoseconds) * 1e-6 / row.calls);
    }));
    const uint32_t any = world.localRanks().front();
    std::vector<double> times(world.numRanks());
    DITRON_RETURN_IF_ERROR(gathered.download(any, times.data(), times.size() * sizeof(double)));
    // Nobody begins the next measurement before all have read this one.
    DITRON_RETURN_IF_ERROR(world.runRanks([](runtime::Rank &rank) { return rank.hostBarrier(); }));
    return *std::max_element(times.begin(), times.end());
  }

  /// Everyone tells everyone, by way of the symmetric memory: puts the rank's time into all `gathered`; returns when all have.
  Status tell(runtime::Rank &rank, double microseconds) {
    const uint32_t id = rank.id();
    const runtime::Pointer mine = gathered.on(id) + id;
    DITRON_RETURN_IF_ERROR(rank.device()->upload(mine.address, &microseconds, sizeof(double)));
    for (uint32_t each = 0; each < rank.numRanks(); ++each)
      if (each != id)
        DITRON_RETURN_IF_ERROR(rank.stream().copy(gathered.on(each) + id, mine, 1, "bench times"));
    DITRON_RETURN_IF_ERROR(rank.stream().synchronize());
    return rank.hostBarrier();
  }

  runtime::World &world;
  TimedCalls &calls;
  const uint32_t count;
  runtime::SymmetricBuffer gate, gathered;
  std::vector<PerRank> ranks;
  uint64_t gateGeneration = 0;
};

} // namespace

Expected<OverlapTimes> timeOverlap(runtime::World &world, TimedCalls &calls, uint32_t count) {
  Timing timing(world, calls, count);
  DITRON_RETURN_IF_ERROR(timing.create());
  return timing.run();
}

Status ShortCalls::enqueue(uint32_t id) {
  for (uint32_t call = 0; call < callsOfGraph; ++call)
    DITRON_RETURN_IF_ERROR(enqueueOne(id));
  return Status::ok();
}

Expected<OverlapTimes> timeShortCalls(runtime::World &world, ShortCalls &calls) {
  constexpr uint32_t graphsOfRow = 5;
  DITRON_ASSIGN_OR_RETURN(OverlapTimes times, timeOverlap(world, calls, graphsOfRow));
  for (double *time : {&times.single, &times.inARow, &times.asGraph})
    *time /= callsOfGraph;
  return times;
}

} // namespace ditron::tool
