//===- ring_process.cpp - One rank of a job of processes ----------------------------------------------------------===//
//
// Run by `ditron launch -n N ring_process` (or torchrun --no-python, mpirun, srun): each rank pushes blocks of data and then
// a signal into the next rank's memory, round after round, and checks what it gets from the one before. Prints one line;
// exit code 0 when all was right. With "kernels" it launches kernels that meet, none of them prepared. With other
// arguments it misbehaves: "late" (rank 1 comes late to an allocation), "differ" (rank
// 1 allocates something else), "die" (rank 1 ends in the middle), "killed" (rank 1 is killed between two rounds), "ahead" (rank 1 is killed
// while the others enqueue and do not synchronise), "meet" (rank 1 is killed while the others have enqueued a wait for it and meet on the host).
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/World.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ditron;
using namespace ditron::runtime;

namespace {

constexpr uint64_t count = 1 << 16;
constexpr int64_t rounds = 20;

Status ring(World &world, std::string_view mischief) {
  const uint32_t ranks = world.numRanks(), me = world.localRanks().front(), next = (me + 1) % ranks,
                 before = (me + ranks - 1) % ranks;
  Rank &rank = world.rank(me);
  if (me == 1 && mischief == "late")
    std::this_thread::sleep_for(std::chrono::seconds(60));
  if (me == 1 && mischief == "die")
    _exit(3);
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer inbox,
                          world.allocateSymmetric(DataType::I64, me == 1 && mischief == "differ" ? 7 : count, "inbox"));
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer signals, world.allocateSymmetric(DataType::I64, 2, "signals"));
  DITRON_ASSIGN_OR_RETURN(Buffer outbox, rank.allocate(DataType::I64, count, "outbox"));
  // signals[0] counts what has arrived here, signals[1] what the next rank has taken.
  for (int64_t round = 1; round <= rounds; ++round) {
    if (me == 1 && round == rounds / 2 && mischief == "killed")
      raise(SIGKILL);
    std::vector<int64_t> values(count);
    for (uint64_t i = 0; i < count; ++i)
      values[i] = static_cast<int64_t>(me) * 1000000 + round * 1000 + static_cast<int64_t>(i % 1000);
    DITRON_RETURN_IF_ERROR(outbox.upload(values.data(), outbox.bytes()));
    Stream &stream = rank.stream();
    DITRON_RETURN_IF_ERROR(
        stream.signalWait(signals.on(me) + 1, Compare::GreaterEqual, static_cast<uint64_t>(round - 1)));
    DITRON_RETURN_IF_ERROR(stream.copy(inbox.on(next), outbox, count));
    DITRON_RETURN_IF_ERROR(stream.signalWrite(signals.on(next), static_cast<uint64_t>(round)));
    DITRON_RETURN_IF_ERROR(stream.signalWait(signals.on(me), Compare::GreaterEqual, static_cast<uint64_t>(round)));
    DITRON_RETURN_IF_ERROR(stream.synchronize());
    DITRON_RETURN_IF_ERROR(inbox.download(me, values.data(), inbox.bytes()));
    for (uint64_t i = 0; i < count; ++i)
      if (values[i] != static_cast<int64_t>(before) * 1000000 + round * 1000 + static_cast<int64_t>(i % 1000))
        return internalError("round " + std::to_string(round) + ", word " + std::to_string(i) + " is " +
                             std::to_string(values[i]));
    DITRON_RETURN_IF_ERROR(stream.signalWrite(signals.on(before) + 1, static_cast<uint64_t>(round)));
    DITRON_RETURN_IF_ERROR(stream.synchronize());
  }
  // Nobody leaves while others may still write into its memory.
  return world.runRanks([](Rank &own) { return own.hostBarrier(); });
}

/// Kernels that nobody has prepared, each of which runs until that of the rank before has begun.
Status meetings(World &world) {
  const uint32_t ranks = world.numRanks(), me = world.localRanks().front();
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer words, world.allocateSymmetric(DataType::I64, 2, "words"));
  auto make = [] {
    Artifact artifact;
    artifact.kernel = artifact.entrySymbol = "await_neighbour";
    artifact.target = "cuda:sm_90a";
    artifact.codeKind = ArtifactCode::Ptx;
    artifact.code =
        ".version 8.0\n.target sm_90a\n.visible .entry await_neighbour(.param .u64 theirs, .param .u64 own, "
        ".param .u64 generation, .param .u64 view)\n{ ld.acquire.sys.global.u64 %rd1, [%rd2]; ret; }\n";
    artifact.parameters = {{"theirs", "*i64", 8, 1}, {"own", "*i64", 8, 1}, {"generation", "i64", 8, 1}};
    return Kernel::create(std::move(artifact), {});
  };
  Stream &stream = world.rank(me).stream();
  for (int64_t round = 0; round < rounds; ++round) {
    DITRON_ASSIGN_OR_RETURN(const Kernel first, make());
    DITRON_ASSIGN_OR_RETURN(const Kernel second, make());
    int64_t generation = 3 * round;
    for (const Kernel *kernel : {&first, &second, &first})
      DITRON_RETURN_IF_ERROR(stream.launch(*kernel, {}, {words.on((me + 1) % ranks), words.on(me), ++generation}));
    DITRON_RETURN_IF_ERROR(stream.synchronize());
  }
  return world.runRanks([](Rank &own) { return own.hostBarrier(); });
}

/// Enqueues work behind a signal of rank 1, which never comes, until it is told so.
Status ahead(World &world) {
  const uint32_t me = world.localRanks().front();
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer signals, world.allocateSymmetric(DataType::I64, 1, "signals"));
  if (me == 1)
    raise(SIGKILL);
  Stream &stream = world.rank(me).stream();
  DITRON_RETURN_IF_ERROR(stream.signalWait(signals.on(me), Compare::GreaterEqual, 1));
  // More would not fit into the queues of a GPU, and the driver would not come back.
  for (int copies = 0; copies < 1000; ++copies)
    DITRON_RETURN_IF_ERROR(stream.copy(signals.on(me), signals.on(me), 1));
  return internalError("a thousand copies were enqueued");
}

/// Meets rank 1, which is dead, while the stream waits for its signal.
Status meet(World &world) {
  const uint32_t me = world.localRanks().front();
  DITRON_ASSIGN_OR_RETURN(SymmetricBuffer signals, world.allocateSymmetric(DataType::I64, 1, "signals"));
  if (me == 1)
    raise(SIGKILL);
  DITRON_RETURN_IF_ERROR(world.rank(me).stream().signalWait(signals.on(me), Compare::GreaterEqual, 1));
  return world.runRanks([](Rank &own) { return own.hostBarrier(); });
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view mischief = argc > 1 ? argv[1] : "";
  WorldOptions options;
  options.heapBytes = 64 << 20;
  options.timeLimitSeconds = 20;
  options.bootstrapLimitSeconds = mischief.empty() || mischief == "kernels" ? 30 : 2;
  Expected<std::unique_ptr<World>> world = World::fromEnvironment("cuda", options);
  const Status status = !world.isOk()           ? world.status()
                        : mischief == "kernels" ? meetings(**world)
                        : mischief == "ahead"   ? ahead(**world)
                        : mischief == "meet"    ? meet(**world)
                                                : ring(**world, mischief);
  if (!status.isOk()) {
    std::fprintf(stderr, "ring_process: %s\n", status.message().c_str());
    return 1;
  }
  std::printf("rank %u of %u: %lld rounds right\n", (*world)->localRanks().front(), (*world)->numRanks(),
              static_cast<long long>(rounds));
  return 0;
}
