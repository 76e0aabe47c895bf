//===- ExpertParallelProtocol.h - What carries out the calls of a form of expert parallelism ------------------*- C++ -*-===//
//
// A form of ExpertParallelPlan.h is device code and memory that its calls need on all ranks. ExpertParallel asks the protocol of its plan for
// the launches of a call, checks operands and binds their addresses.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPROTOCOL_H
#define DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPROTOCOL_H

#include "ditron/ops/expert_parallel/ExpertParallel.h"

namespace ditron::ops {

/// What every protocol is made from; options with the numbers that stand for 0.
struct ExpertParallelSetting {
  ExpertParallelOptions options;
  ExpertParallelPlan plan;
  runtime::World *world = nullptr;
  int64_t mostRows = 0;
};

class ExpertParallelProtocol {
public:
  /// Operands by the parameters of the device code, those that the part takes.
  using Operands = std::vector<std::pair<std::string_view, runtime::Pointer>>;
  using Part = ExpertParallel::Part;

  virtual ~ExpertParallelProtocol() = default;
  /// Allocates on all ranks; once.
  virtual Status allocate() = 0;
  /// The launches of a call, in order. `error`: words of a TransferReport. Those with a parameter `tokens` or `slots` get those of the call.
  virtual std::vector<KernelCall> dispatch(const runtime::Rank &rank, const Operands &operands, runtime::Pointer error,
                                           Part part) const = 0;
  virtual std::vector<KernelCall> combine(const runtime::Rank &rank, const Operands &operands, Part part) const = 0;
  virtual int64_t handleElements() const = 0;
  /// Of symmetric memory of a rank.
  virtual uint64_t workspaceBytes() const = 0;
  int64_t scalesOfRow() const { return options().fp8 ? scaledBlocks(options().hidden) : 0; }

protected:
  /// What the calls of one direction are counted in where each is one launch, and what the ranks tell each other in it.
  struct Words {
    std::vector<runtime::Buffer> sent, received, arrivals; ///< By rank of this process: [blocks], [blocks], [arrivals].
    runtime::SymmetricBuffer told;
  };
  Status allocateWords(Words &words, uint64_t told, uint32_t blocks, uint32_t arrivals, const std::string &name);
  /// One launch of low_latency or two_level: of a kernel of that file, with the words and what it does of the call.
  KernelCall launch(const runtime::Rank &rank, const Words &words, std::string_view source, std::string_view kernel,
                    Part part) const;
  /// Sets of memory that calls use in turns.
  static constexpr uint64_t sets = 2;

  explicit ExpertParallelProtocol(ExpertParallelSetting setting) : setting(std::move(setting)) {}

  const ExpertParallelOptions &options() const { return setting.options; }
  runtime::World &world() const { return *setting.world; }
  uint32_t numRanks() const { return setting.world->numRanks(); }
  int64_t maxSlots() const { return options().maxTokens * options().topK; }
  /// Of rows that travel: the bits of the tokens, or fp8.
  DataType rowType() const;
  /// Elements from row to row in memory of the ranks: so that each begins at a multiple of 16 bytes.
  int64_t rowStride(DataType type) const;
  /// Elements of each of so many rows that a block moves at once, by so many accesses of each thread.
  int64_t chunkOf(const runtime::Rank &rank, uint32_t numWarps, DataType type, int64_t accesses = 1,
                  int64_t rows = 1) const;
  /// Accesses of a thread that are on their way at the same time, so that the latency of memory is paid once for all of them.
  static constexpr int64_t accessesOfThread = 4;
  /// Rows that a block copies together, and elements of each at a time.
  static constexpr uint32_t copiedRows = 8;
  int64_t chunkOfCopiedRow(const runtime::Rank &rank, uint32_t numWarps) const {
    return chunkOf(rank, numWarps, options().dtype, accessesOfThread, copiedRows);
  }
  uint32_t slotsOfToken() const; ///< A power of two.
  /// Slots that are compared with those of a token at once, as registers hold.
  uint32_t scanOf() const;
  /// The arguments that all device code has, and None for each of `names` that is not among the operands.
  void addCommon(KernelCall &call, const runtime::Rank &rank, const Operands &operands,
                 std::initializer_list<std::string_view> names) const;
  /// Rows as the code of dispatch is compiled for them.
  Operands asBits(const Operands &operands) const;

  static int64_t scaledBlocks(int64_t hidden);

  ExpertParallelSetting setting;
};

std::unique_ptr<ExpertParallelProtocol> makeLowLatency(ExpertParallelSetting setting);
std::unique_ptr<ExpertParallelProtocol> makeHighThroughput(ExpertParallelSetting setting);
std::unique_ptr<ExpertParallelProtocol> makeTwoLevel(ExpertParallelSetting setting);

/// No less than the value, which is at least 0.
uint32_t powerOfTwoFor(int64_t value);
inline runtime::Argument i64Argument(int64_t value) { return runtime::Argument::typed(DataType::I64, value); }
/// HANDLE_BEGIN of the device code.
inline constexpr int64_t handleBegin = 16;

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_EXPERTPARALLELPROTOCOL_H
