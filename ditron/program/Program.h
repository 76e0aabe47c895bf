//===- Program.h - A run file, read ---------------------------------------------------------------------*- C++ -*-===//
//
// What the hosts of a distributed program do, as data: buffers, streams, events, operators, and host code as lists of steps. The
// grammar, for users: docs/run-files.md. Reader.h makes it from JSON and checks all that can be known without running: names,
// kinds, ranges. What depends on values (texts with {expressions}) is checked when the step runs (Run.h).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PROGRAM_PROGRAM_H
#define DITRON_PROGRAM_PROGRAM_H

#include "ditron/ops/collectives/Collective.h"
#include "ditron/program/Json.h"

#include "ditron/runtime/Device.h"
#include "ditron/values/Comparison.h"

#include <map>
#include <optional>
#include <set>
#include <variant>

namespace ditron::program {

/// A value as it was written, with {expressions} in it.
struct Text {
  std::string text;
  Place place;
};

using NamedTexts = std::vector<std::pair<std::string, Text>>;

struct Step;

struct LaunchStep {
  std::string file, kernel;
  std::optional<Text> grid; ///< Without one: one block.
  NamedTexts arguments, constexprs;
  std::optional<uint32_t> numWarps, numStages, config;
  bool cooperative = false;
};
/// A call of a library operator; `result` is C of ag_gemm, the output of gemm_rs and gemm_ar. A collective has `a`, called "in", and no b.
struct CallStep {
  std::string name;
  Text a, b, result;
  bool isCollective = false;
};
struct CopyStep {
  Text from, to; ///< Parts of buffers.
};
struct MemsetStep {
  Text part;
  Text byte;
};
struct SignalStep {
  enum class Kind { Write, Add, Wait };
  Kind kind = Kind::Write;
  Text word;
  runtime::Compare compare = runtime::Compare::GreaterEqual;
  Text value;
};
/// Of an event: `place` may be another rank's, "ready@1".
struct RecordStep {
  std::string event;
};
struct WaitStep {
  std::string event;
  std::optional<Text> rank;
};
struct SynchronizeStep {
  enum class What { Rank, Stream, Event };
  What what = What::Rank;
  std::string name;
};
/// Host codes that have a barrier of this name meet.
struct BarrierStep {
  std::string name;
};
struct CaptureStep {
  std::string graph;
  std::vector<Step> steps;
};
struct ReplayStep {
  std::string graph;
  std::optional<Text> times;
};
struct AllocateStep {
  std::string buffer;
  Text value;
};
struct FreeStep {
  std::string buffer;
};
/// Host code writes memory, past all streams.
struct WriteStep {
  Text part;
  Text value;
};
/// Host code reads an integer into a variable.
struct ReadStep {
  Text part;
  std::string variable;
};
struct SetStep {
  NamedTexts values;
};
struct RepeatStep {
  Text times;
  std::string counter; ///< Empty: none.
  std::vector<Step> steps;
};
struct ExpectStep {
  Text part;
  Text value;
  values::Tolerance tolerance;
};
struct PrintStep {
  Text part;
};
struct SaveStep {
  Text part;
  Text file;
};

/// One thing that host code does.
struct Step {
  Place place;
  std::string verb;
  std::string stream;                     ///< Of steps that enqueue.
  std::optional<std::set<uint32_t>> only; ///< The ranks that do it; unset: all that have this host code.
  std::variant<LaunchStep, CallStep, CopyStep, MemsetStep, SignalStep, RecordStep, WaitStep, SynchronizeStep,
               BarrierStep, CaptureStep, ReplayStep, AllocateStep, FreeStep, WriteStep, ReadStep, SetStep, RepeatStep,
               ExpectStep, PrintStep, SaveStep>
      action;

  bool isFor(uint32_t rank) const { return !only || only->contains(rank); }
};

struct BufferDeclaration {
  std::string name;
  Text value;
};
struct StreamDeclaration {
  std::string name;
  int priority = 0;
};
struct OperatorDeclaration {
  enum class Kind { AllGatherGemm, GemmReduceScatter, GemmAllReduce, Collective };
  std::string name;
  Place place;
  Kind kind = Kind::AllGatherGemm;
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::BF16;
  ops::CollectiveOptions collective; ///< Of a Collective, dtype included.
};
/// A thread of the program: the same code on each of the ranks.
struct HostDeclaration {
  std::string name; ///< Empty for the only one.
  Place place;
  std::optional<std::set<uint32_t>> ranks; ///< Unset: all.
  std::vector<Step> steps;
};

struct Program {
  JsonSource source;
  std::string folder; ///< Where kernel files are looked for; "" is the current one.
  uint32_t ranks = 1;
  uint32_t ranksPerNode = 0; ///< 0: one node.
  std::optional<std::string> target;
  std::optional<uint32_t> sms;
  NamedTexts variables;
  std::vector<BufferDeclaration> buffers;
  std::vector<std::string> results; ///< The buffers that explorations compare; empty: all.
  std::vector<StreamDeclaration> streams;
  std::vector<std::string> events;
  std::vector<OperatorDeclaration> operators;
  std::vector<HostDeclaration> hosts;
};

/// The stream that every rank has without declaring it.
inline constexpr const char *defaultStream = "default";
/// What a buffer in host memory begins with: "host:zeros:i32[4]".
inline constexpr std::string_view hostMark = "host:";

/// Calls `visit` for every step, outer ones first.
template <typename Visit> void forEachStep(const std::vector<Step> &steps, const Visit &visit) {
  for (const Step &step : steps) {
    visit(step);
    if (const auto *repeat = std::get_if<RepeatStep>(&step.action))
      forEachStep(repeat->steps, visit);
    if (const auto *capture = std::get_if<CaptureStep>(&step.action))
      forEachStep(capture->steps, visit);
  }
}

} // namespace ditron::program
#endif // DITRON_PROGRAM_PROGRAM_H
