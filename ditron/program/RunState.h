//===- RunState.h - What the host codes of a run share --------------------------------------------------*- C++ -*-===//
#ifndef DITRON_PROGRAM_RUNSTATE_H
#define DITRON_PROGRAM_RUNSTATE_H

#include "ditron/program/Run.h"

#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "ditron/values/GridExpression.h"

namespace ditron::program {

/// A kernel that launches name.
struct LoadedSource {
  compiler::KernelSource source;
  jit::KernelFunction function;
};

/// A value of host code that a captured operation keeps: what it was, and how it would be found again.
struct BakedValue {
  enum class Kind {
    Text,     ///< A text with {expressions}.
    Number,   ///< A text that is an expression.
    Variable, ///< The variable `name`, for the parameter that is called the same.
    Buffer    ///< Where the buffer `name` lies.
  };
  Kind kind = Kind::Text;
  std::string what; ///< "argument 'round' of kernel step"
  Place place;
  std::string name; ///< The text, the variable, the buffer.
  std::string value;
  values::IntegerNames decided;  ///< Variables that the captured steps set themselves, and counters of their loops.
  values::IntegerNames counters; ///< Of loops around the capture: as they were, for when those are over.
};

struct CapturedGraph {
  runtime::Graph graph;
  std::vector<BakedValue> baked;
  const HostDeclaration *by = nullptr; ///< Whose variables they are: each host code has its own.
};

/// A call that all ranks make: of symmetric memory's allocation or its end.
struct Collective {
  std::string what; ///< "free of symmetric buffer 'x'"
  std::map<uint32_t, Place> came;
};

struct RankState {
  std::map<std::string, runtime::Stream> streams; ///< Without the default one.
  std::map<std::string, runtime::Event> events;
  std::map<std::string, CapturedGraph> graphs;
  uint64_t collectives = 0; ///< That it has come to.
  uint32_t hosts = 0;       ///< Host codes that have not come to their end.
};

struct OperatorState {
  const OperatorDeclaration *declaration = nullptr;
  std::variant<ops::AllGatherGemm, ops::GemmReduceScatter, ops::GemmAllReduce, ops::Collective> op;
};

struct Run::State {
  State(const Program &program, jit::Jit &jit, const RunOptions &options)
      : program(program), jit(jit), options(options) {}

  /// Of a step, seen from a rank, in front of its line. What is only a consequence of the run's end, or tells its own place, stays.
  Status at(const Place &place, uint32_t rank, const Status &problem) const;
  runtime::Stream &stream(uint32_t rank, const std::string &name);
  /// Remembers the error of a host code that was first: others then wait in vain.
  void noteError(const Status &error);
  /// Where a call of all ranks stands that not all have come to; empty when there is none.
  Status describeOpenCollective(const Status &following) const;

  const Program &program;
  jit::Jit &jit;
  RunOptions options;
  std::unique_ptr<runtime::World> world;       ///< Outlives everything that lies in it.
  std::map<std::string, LoadedSource> kernels; ///< By FILE:KERNEL.
  std::map<std::string, OperatorState> operators;
  std::map<std::string, uint32_t> barriers; ///< How many host codes meet, by name.
  std::unique_ptr<Memory> memory;
  std::vector<RankState> ranks;

  mutable std::mutex mutex; ///< For all below, and the collectives and hosts of ranks.
  std::vector<Collective> collectives;
  std::map<std::string, uint32_t> savedBy; ///< Rank that wrote a file.
  Status firstError;
  Outcome outcome;
};

} // namespace ditron::program
#endif // DITRON_PROGRAM_RUNSTATE_H
