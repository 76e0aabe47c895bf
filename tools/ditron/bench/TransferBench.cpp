//===- TransferBench.cpp - ditron bench all_to_all_v, send_receive, barrier --------------------------------------===//
//
// Sizes in turn: what arrives is compared with what was sent, and on GPUs calls are timed, twenty of them captured in one graph. Counts of
// all_to_all_v are all the largest, or drawn at random up to it; send_receive is a circle, in which each rank sends to the next.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/ByteSize.h"
#include "base/Progress.h"
#include "base/VisibleGpus.h"
#include "bench/BenchPage.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapTiming.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/collectives/AllToAllV.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/collectives/SendReceive.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/support/OutputFile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <random>

namespace ditron::tool {

namespace {

enum class Transfer { AllToAllV, SendReceive, Barrier };

struct TransferBenchOptions {
  Transfer transfer = Transfer::AllToAllV;
  std::string name;
  std::string target = "sim:sm_80";
  uint32_t ranks = 4;
  std::string dtype = "bf16", counts = "full";
  int64_t rowElements = 512;
  std::vector<std::string> sizes = {"16K", "256K", "1M"};
  bool check = false, quiet = false;
  std::string jsonFile;
};

class TransferBench : ShortCalls {
public:
  TransferBench(const TransferBenchOptions &options) : options(options), progress(options.quiet) {}
  Status run(const Knobs &knobs);

private:
  /// A rank's memory of one size.
  struct Operands {
    runtime::Buffer in, out, sendCounts, sendOffsets, receiveCounts, receiveOffsets;
    std::vector<int64_t> counts; ///< What it sends to each rank, in rows.
  };

  Status benchOf(uint64_t bytes);
  /// In whole rows.
  Status allocate(uint64_t bytes);
  Status check();
  Status enqueueOne(uint32_t id) override;

  const TransferBenchOptions &options;
  Progress progress;
  DataType dtype = DataType::BF16;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  std::vector<Operands> operands;
  std::optional<ops::AllToAllV> exchange;
  std::optional<ops::SendReceive> pairs;
  std::optional<ops::Barrier> barrier;
  int64_t rows = 0;
  bool simulated = false;
  std::string table;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
};

Status TransferBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", options.jsonFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(options.dtype));
  seeOnlyGpusOf(options.target, options.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  simulated = target.simulated;
  DITRON_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                          options.transfer == Transfer::Barrier
                              ? Expected<std::vector<uint64_t>>(std::vector<uint64_t>{0})
                              : parseByteSizes(options.sizes));
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, target.text, {}));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  const std::string gpu = world->rank(0).attributes().name;
  const std::string what =
      options.transfer == Transfer::Barrier ? options.name : fmt::format("{} of {}", options.name, toString(dtype));
  table = fmt::format("{}, {} x {}\n{:>10}{:>12}{:>12}{:>10}\n", what, options.ranks, gpu, "bytes", "graph us",
                      "alone us", "GB/s");
  for (uint64_t bytes : sizes)
    DITRON_RETURN_IF_ERROR(benchOf(bytes).withContext(fmt::format("{} of {} bytes", options.name, bytes)));
  progress.stop();
  if (!options.quiet)
    fmt::print(textStream(options.jsonFile, ""), "{}", table);
  const nlohmann::ordered_json page = {{"operator", options.name},
                                       {"target", target.text},
                                       {"gpu", gpu},
                                       {"ranks", options.ranks},
                                       {"dtype", toString(dtype)},
                                       {"counts", options.counts},
                                       {"row_elements", options.rowElements},
                                       {"rows", report}};
  return writeReport("--json", options.jsonFile, page.dump(1) + "\n");
}

Status TransferBench::allocate(uint64_t bytes) {
  const uint32_t ranks = world->numRanks();
  const bool uneven = options.transfer == Transfer::AllToAllV;
  const int64_t row = uneven ? options.rowElements : 1;
  if (!uneven)
    DITRON_RETURN_IF_ERROR(verifyWholeElements(bytes, dtype));
  rows = static_cast<int64_t>(bytes / (row * sizeOf(dtype)));
  if (rows == 0)
    return invalidArgument(fmt::format("--bytes {}: less than a row of {} {}", bytes, row, toString(dtype)));
  operands = std::vector<Operands>(ranks);
  std::mt19937 random(1);
  for (uint32_t id = 0; id < ranks; ++id) {
    Operands &own = operands[id];
    runtime::Rank &rank = world->rank(id);
    const uint64_t elements = static_cast<uint64_t>(rows * row) * (uneven ? ranks : 1);
    DITRON_ASSIGN_OR_RETURN(own.in, rank.allocate(dtype, elements, "in"));
    DITRON_ASSIGN_OR_RETURN(own.out, rank.allocate(dtype, elements, "out"));
    if (!uneven)
      continue;
    std::vector<int64_t> offsets;
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      own.counts.push_back(options.counts == "full" ? rows : std::uniform_int_distribution<int64_t>(0, rows)(random));
      offsets.push_back(peer * rows);
    }
    for (runtime::Buffer *words : {&own.sendCounts, &own.sendOffsets, &own.receiveCounts, &own.receiveOffsets}) {
      DITRON_ASSIGN_OR_RETURN(*words, rank.allocate(DataType::I64, ranks, "sizes"));
    }
    DITRON_RETURN_IF_ERROR(own.sendCounts.upload(own.counts.data(), own.sendCounts.bytes()));
    for (runtime::Buffer *places : {&own.sendOffsets, &own.receiveOffsets})
      DITRON_RETURN_IF_ERROR(places->upload(offsets.data(), places->bytes()));
  }
  return Status::ok();
}

Status TransferBench::benchOf(uint64_t bytes) {
  progress.activity(fmt::format("{} bytes", bytes));
  if (options.transfer != Transfer::Barrier)
    DITRON_RETURN_IF_ERROR(allocate(bytes));
  const auto prepareOn = [&](auto &op) -> Status {
    for (uint32_t id : world->localRanks())
      DITRON_RETURN_IF_ERROR(op->prepare(world->rank(id)));
    return Status::ok();
  };
  switch (options.transfer) {
  case Transfer::AllToAllV: {
    DITRON_ASSIGN_OR_RETURN(
        exchange,
        ops::AllToAllV::create(*world, *jit, {.dtype = dtype, .rowElements = options.rowElements, .maxRows = rows}));
    DITRON_RETURN_IF_ERROR(prepareOn(exchange));
    break;
  }
  case Transfer::SendReceive: {
    DITRON_ASSIGN_OR_RETURN(pairs, ops::SendReceive::create(*world, *jit, {.dtype = dtype}));
    DITRON_RETURN_IF_ERROR(prepareOn(pairs));
    break;
  }
  case Transfer::Barrier: {
    DITRON_ASSIGN_OR_RETURN(barrier, ops::Barrier::create(*world, *jit));
    DITRON_RETURN_IF_ERROR(prepareOn(barrier));
    break;
  }
  }
  if (options.check)
    DITRON_RETURN_IF_ERROR(check());
  OverlapTimes times;
  if (!simulated) {
    DITRON_ASSIGN_OR_RETURN(times, timeShortCalls(*world, *this));
  }
  const double graph = times.asGraph, alone = times.inARow;
  const auto shown = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; };
  table += fmt::format("{:>10}{:>12}{:>12}{:>10}\n", bytes, shown(graph), shown(alone),
                       shown(graph > 0 ? static_cast<double>(bytes) / graph * 1e-3 : 0));
  report.push_back({{"bytes", bytes}, {"graph_us", graph}, {"in_a_row_us", alone}});
  return Status::ok();
}

Status TransferBench::enqueueOne(uint32_t id) {
  runtime::Rank &rank = world->rank(id);
  const uint32_t ranks = world->numRanks();
  if (options.transfer == Transfer::Barrier)
    return barrier->enqueue(rank, rank.stream());
  const Operands &own = operands[id];
  if (options.transfer == Transfer::SendReceive) {
    const ops::SendReceive::Message send{(id + 1) % ranks, own.in, rows},
        receive{(id + ranks - 1) % ranks, own.out, rows};
    return pairs->enqueue(rank, rank.stream(), {&send, 1}, {&receive, 1});
  }
  const int64_t all = ranks * rows;
  return exchange->enqueue(
      rank, rank.stream(),
      {own.in, all, own.sendCounts, own.sendOffsets, own.out, all, own.receiveCounts, own.receiveOffsets});
}

/// Of byte i of what a rank gives.
std::byte givenByte(uint32_t call, uint32_t rank, uint64_t i) {
  return static_cast<std::byte>((i * 2654435761u + rank * 40503u + call * 977u) >> 9);
}

Status TransferBench::check() {
  const uint32_t ranks = world->numRanks();
  for (uint32_t call = 0; call < 2; ++call) {
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
      if (options.transfer != Transfer::Barrier) {
        Operands &own = operands[me.id()];
        std::vector<std::byte> bytes(own.in.bytes());
        for (size_t i = 0; i < bytes.size(); ++i)
          bytes[i] = givenByte(call, me.id(), i);
        DITRON_RETURN_IF_ERROR(own.in.upload(bytes.data(), bytes.size()));
        std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});
        DITRON_RETURN_IF_ERROR(own.out.upload(bytes.data(), bytes.size()));
      }
      DITRON_RETURN_IF_ERROR(enqueueOne(me.id()));
      return me.stream().synchronize();
    }));
    for (uint32_t r = 0; r < ranks && options.transfer != Transfer::Barrier; ++r) {
      const bool uneven = options.transfer == Transfer::AllToAllV;
      DITRON_RETURN_IF_ERROR(uneven ? exchange->check(world->rank(r)) : pairs->check(world->rank(r)));
      std::vector<std::byte> bytes(operands[r].out.bytes());
      DITRON_RETURN_IF_ERROR(operands[r].out.download(bytes.data(), bytes.size()));
      const uint64_t part = bytes.size() / (uneven ? ranks : 1);
      for (size_t i = 0; i < bytes.size(); ++i) {
        const uint32_t source = uneven ? static_cast<uint32_t>(i / part) : (r + ranks - 1) % ranks;
        const uint64_t sent = uneven ? static_cast<uint64_t>(operands[source].counts[r]) * (part / rows) : part;
        const std::byte wanted =
            i % part < sent ? givenByte(call, source, (uneven ? r * part : 0) + i % part) : std::byte{0x5a};
        if (bytes[i] != wanted)
          return internalError(fmt::format("call {}, rank {}: byte {} is {}, expected {}", call, r, i,
                                           static_cast<int>(bytes[i]), static_cast<int>(wanted)));
      }
    }
  }
  return Status::ok();
}

} // namespace

void addTransferBenchCommands(CLI::App &bench, CommandContext &context) {
  struct Entry {
    Transfer transfer;
    const char *name, *help;
  };
  for (const Entry &entry :
       {Entry{Transfer::AllToAllV, "all_to_all_v", "All-to-all of parts whose sizes stand on the device"},
        Entry{Transfer::SendReceive, "send_receive", "Messages in a circle: each rank sends to the next"},
        Entry{Transfer::Barrier, "barrier", "The barrier of all ranks on their streams"}}) {
    CLI::App *command = bench.add_subcommand(entry.name, entry.help);
    auto arguments = std::make_shared<TransferBenchOptions>();
    TransferBenchOptions &options = *arguments;
    options.transfer = entry.transfer;
    options.name = entry.name;
    command->add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
        ->capture_default_str();
    command->add_option("--ranks", options.ranks, "Number of ranks")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
    if (entry.transfer != Transfer::Barrier) {
      command->add_option("--dtype", options.dtype, "Of the elements")->capture_default_str();
      command->add_option("--bytes", options.sizes, "Sizes of what one rank gives to another, like 64K,1M")
          ->delimiter(',')
          ->capture_default_str();
    }
    if (entry.transfer == Transfer::AllToAllV) {
      command->add_option("--counts", options.counts, "full: every part has the size; random: any up to it")
          ->check(CLI::IsMember({"full", "random"}))
          ->capture_default_str();
      command->add_option("--row-elements", options.rowElements, "Elements of a row, in which parts are counted")
          ->check(integerBetween(1, 1 << 30))
          ->capture_default_str();
    }
    command->add_flag("--check", options.check, "Compare with what was sent; a wrong result is an error");
    command->add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
        ->type_name("FILE");
    command->add_flag("--quiet", options.quiet, "Print errors only");
    command->callback([&context, arguments] { context.finish(TransferBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
