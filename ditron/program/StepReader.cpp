//===- StepReader.cpp - Steps of host code from JSON --------------------------------------------------------------===//
//
// A step is an object with exactly one verb among its keys; the other keys say the rest. A table has the verbs.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/StepReader.h"

#include "ditron/support/Suggest.h"
#include "ditron/values/TextPieces.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::program {

namespace {

using Action = decltype(Step::action);
using runtime::Compare;

constexpr int64_t mostWarps = 32, mostStages = 16, mostConfigs = 65535;

/// A step while it is read.
struct Reading {
  const StepContext &context;
  Fields &fields;
  Step &step;

  /// The stream of a step that enqueues.
  Status stream() {
    const JsonValue *on = fields.find("on");
    if (on && (on->kind != JsonValue::Kind::Text || on->text.empty()))
      return fields.error(on->place, fmt::format("{} is not accepted; write the name of a stream", on->kindName()));
    step.stream = on ? on->text : defaultStream;
    return Status::ok();
  }
};

template <typename Number> std::optional<uint32_t> asNumber(const std::optional<Number> &value) {
  return value ? std::optional<uint32_t>(static_cast<uint32_t>(*value)) : std::nullopt;
}

Expected<Action> readLaunch(Reading &reading) {
  Fields &fields = reading.fields;
  LaunchStep launch;
  DITRON_ASSIGN_OR_RETURN(const JsonValue *operand, fields.require("launch"));
  DITRON_ASSIGN_OR_RETURN(const std::string kernel, fields.word("launch"));
  const size_t colon = kernel.rfind(':');
  launch.file = colon == std::string::npos ? reading.context.kernelFile : kernel.substr(0, colon);
  launch.kernel = colon == std::string::npos ? kernel : kernel.substr(colon + 1);
  if (launch.file.empty() || launch.kernel.empty())
    return fields.error(operand->place,
                        fmt::format("'{}' names no kernel of a file; write \"FILE.py:KERNEL\", or give the program a "
                                    "\"file\"",
                                    kernel));
  DITRON_RETURN_IF_ERROR(reading.stream());
  DITRON_ASSIGN_OR_RETURN(launch.grid, fields.optionalText("grid"));
  DITRON_ASSIGN_OR_RETURN(launch.arguments, fields.texts("args"));
  DITRON_ASSIGN_OR_RETURN(launch.constexprs, fields.texts("constexprs"));
  DITRON_ASSIGN_OR_RETURN(const auto warps, fields.integer("num_warps", 1, mostWarps));
  if (warps && (*warps & (*warps - 1)))
    return fields.error(fields.find("num_warps")->place,
                        fmt::format("{} is not accepted; write a power of two from 1 to {}", *warps, mostWarps));
  launch.numWarps = asNumber(warps);
  DITRON_ASSIGN_OR_RETURN(const auto stages, fields.integer("num_stages", 1, mostStages));
  launch.numStages = asNumber(stages);
  DITRON_ASSIGN_OR_RETURN(const auto config, fields.integer("config", 0, mostConfigs));
  launch.config = asNumber(config);
  DITRON_ASSIGN_OR_RETURN(launch.cooperative, fields.flag("cooperative"));
  return Action(std::move(launch));
}

Expected<Action> readCall(Reading &reading) {
  CallStep call;
  DITRON_ASSIGN_OR_RETURN(call.name, reading.fields.word("call"));
  DITRON_RETURN_IF_ERROR(reading.stream());
  call.isCollective = reading.fields.find("in");
  DITRON_ASSIGN_OR_RETURN(call.a, reading.fields.text(call.isCollective ? "in" : "a"));
  if (!call.isCollective) {
    DITRON_ASSIGN_OR_RETURN(call.b, reading.fields.text("b"));
  }
  DITRON_ASSIGN_OR_RETURN(call.result, reading.fields.text("out"));
  return Action(std::move(call));
}

Expected<Action> readCopy(Reading &reading) {
  CopyStep copy;
  DITRON_ASSIGN_OR_RETURN(copy.from, reading.fields.text("copy"));
  DITRON_ASSIGN_OR_RETURN(copy.to, reading.fields.text("to"));
  DITRON_RETURN_IF_ERROR(reading.stream());
  return Action(std::move(copy));
}

Expected<Action> readMemset(Reading &reading) {
  MemsetStep memset;
  DITRON_ASSIGN_OR_RETURN(memset.part, reading.fields.text("memset"));
  DITRON_ASSIGN_OR_RETURN(std::optional<Text> byte, reading.fields.optionalText("byte"));
  memset.byte = byte ? std::move(*byte) : Text{"0", reading.step.place};
  DITRON_RETURN_IF_ERROR(reading.stream());
  return Action(std::move(memset));
}

Expected<Action> readSignal(Reading &reading, SignalStep::Kind kind) {
  SignalStep signal;
  signal.kind = kind;
  DITRON_ASSIGN_OR_RETURN(signal.word, reading.fields.text(reading.step.verb));
  DITRON_RETURN_IF_ERROR(reading.stream());
  if (kind != SignalStep::Kind::Wait) {
    DITRON_ASSIGN_OR_RETURN(signal.value, reading.fields.text("value"));
    return Action(std::move(signal));
  }
  constexpr std::array<std::pair<std::string_view, Compare>, 6> comparisons = {{{"==", Compare::Equal},
                                                                                {"!=", Compare::NotEqual},
                                                                                {">=", Compare::GreaterEqual},
                                                                                {"<=", Compare::LessEqual},
                                                                                {">", Compare::Greater},
                                                                                {"<", Compare::Less}}};
  DITRON_ASSIGN_OR_RETURN(signal.value, reading.fields.text("until"));
  for (const auto &[sign, compare] : comparisons)
    if (signal.value.text.starts_with(sign)) {
      signal.compare = compare;
      signal.value.text.erase(0, sign.size());
      return Action(std::move(signal));
    }
  return reading.fields.error(
      signal.value.place,
      fmt::format("'{}' is not accepted; write a comparison, as in \">= 1\", with == != >= <= > or <",
                  signal.value.text));
}
Expected<Action> readSignalWrite(Reading &reading) { return readSignal(reading, SignalStep::Kind::Write); }
Expected<Action> readSignalAdd(Reading &reading) { return readSignal(reading, SignalStep::Kind::Add); }
Expected<Action> readSignalWait(Reading &reading) { return readSignal(reading, SignalStep::Kind::Wait); }

Expected<Action> readRecord(Reading &reading) {
  RecordStep record;
  DITRON_ASSIGN_OR_RETURN(record.event, reading.fields.word("record"));
  DITRON_RETURN_IF_ERROR(reading.stream());
  return Action(std::move(record));
}

Expected<Action> readWait(Reading &reading) {
  WaitStep wait;
  DITRON_ASSIGN_OR_RETURN(wait.event, reading.fields.word("wait"));
  if (const size_t at = wait.event.find('@'); at != std::string::npos) {
    wait.rank = Text{wait.event.substr(at + 1), reading.fields.find("wait")->place};
    wait.event.resize(at);
  }
  DITRON_RETURN_IF_ERROR(reading.stream());
  return Action(std::move(wait));
}

Expected<Action> readSynchronize(Reading &reading) {
  SynchronizeStep synchronize;
  DITRON_ASSIGN_OR_RETURN(synchronize.name, reading.fields.word("synchronize"));
  return Action(std::move(synchronize));
}

Expected<Action> readBarrier(Reading &reading) {
  BarrierStep barrier;
  DITRON_ASSIGN_OR_RETURN(barrier.name, reading.fields.word("barrier"));
  return Action(std::move(barrier));
}

Expected<Action> readCapture(Reading &reading) {
  CaptureStep capture;
  DITRON_ASSIGN_OR_RETURN(capture.graph, reading.fields.word("capture"));
  DITRON_RETURN_IF_ERROR(reading.stream());
  DITRON_ASSIGN_OR_RETURN(const JsonValue *steps, reading.fields.require("steps"));
  DITRON_ASSIGN_OR_RETURN(capture.steps, readSteps(reading.context, *steps));
  return Action(std::move(capture));
}

Expected<Action> readReplay(Reading &reading) {
  ReplayStep replay;
  DITRON_ASSIGN_OR_RETURN(replay.graph, reading.fields.word("replay"));
  DITRON_RETURN_IF_ERROR(reading.stream());
  DITRON_ASSIGN_OR_RETURN(replay.times, reading.fields.optionalText("times"));
  return Action(std::move(replay));
}

Expected<Action> readAllocate(Reading &reading) {
  AllocateStep allocate;
  DITRON_ASSIGN_OR_RETURN(allocate.buffer, reading.fields.word("allocate"));
  DITRON_ASSIGN_OR_RETURN(allocate.value, reading.fields.text("value"));
  return Action(std::move(allocate));
}

Expected<Action> readFree(Reading &reading) {
  FreeStep free;
  DITRON_ASSIGN_OR_RETURN(free.buffer, reading.fields.word("free"));
  return Action(std::move(free));
}

Expected<Action> readWrite(Reading &reading) {
  WriteStep write;
  DITRON_ASSIGN_OR_RETURN(write.part, reading.fields.text("write"));
  DITRON_ASSIGN_OR_RETURN(write.value, reading.fields.text("value"));
  return Action(std::move(write));
}

Expected<Action> readRead(Reading &reading) {
  ReadStep read;
  DITRON_ASSIGN_OR_RETURN(read.part, reading.fields.text("read"));
  DITRON_ASSIGN_OR_RETURN(read.variable, reading.fields.word("into"));
  return Action(std::move(read));
}

Expected<Action> readSet(Reading &reading) {
  SetStep set;
  DITRON_RETURN_IF_ERROR(reading.fields.require("set").status());
  DITRON_ASSIGN_OR_RETURN(set.values, reading.fields.texts("set"));
  return Action(std::move(set));
}

Expected<Action> readRepeat(Reading &reading) {
  RepeatStep repeat;
  DITRON_ASSIGN_OR_RETURN(repeat.times, reading.fields.text("repeat"));
  if (reading.fields.find("as")) {
    DITRON_ASSIGN_OR_RETURN(repeat.counter, reading.fields.word("as"));
  }
  DITRON_ASSIGN_OR_RETURN(const JsonValue *steps, reading.fields.require("steps"));
  DITRON_ASSIGN_OR_RETURN(repeat.steps, readSteps(reading.context, *steps));
  return Action(std::move(repeat));
}

Expected<Action> readExpect(Reading &reading) {
  ExpectStep expect;
  DITRON_ASSIGN_OR_RETURN(expect.part, reading.fields.text("expect"));
  DITRON_ASSIGN_OR_RETURN(expect.value, reading.fields.text("value"));
  DITRON_ASSIGN_OR_RETURN(const std::optional<Text> tolerance, reading.fields.optionalText("tolerance"));
  if (tolerance) {
    Expected<values::Tolerance> parsed = values::parseTolerance(tolerance->text);
    if (!parsed.isOk())
      return reading.fields.error(tolerance->place, parsed.status().message());
    expect.tolerance = *parsed;
  }
  return Action(std::move(expect));
}

Expected<Action> readPrint(Reading &reading) {
  PrintStep print;
  DITRON_ASSIGN_OR_RETURN(print.part, reading.fields.text("print"));
  return Action(std::move(print));
}

Expected<Action> readSave(Reading &reading) {
  SaveStep save;
  DITRON_ASSIGN_OR_RETURN(save.part, reading.fields.text("save"));
  DITRON_ASSIGN_OR_RETURN(save.file, reading.fields.text("to"));
  return Action(std::move(save));
}

struct Verb {
  std::string_view name;
  Expected<Action> (*read)(Reading &);
};
constexpr Verb verbs[] = {{"launch", readLaunch},
                          {"call", readCall},
                          {"copy", readCopy},
                          {"memset", readMemset},
                          {"signal_write", readSignalWrite},
                          {"signal_add", readSignalAdd},
                          {"signal_wait", readSignalWait},
                          {"record", readRecord},
                          {"wait", readWait},
                          {"synchronize", readSynchronize},
                          {"barrier", readBarrier},
                          {"capture", readCapture},
                          {"replay", readReplay},
                          {"allocate", readAllocate},
                          {"free", readFree},
                          {"write", readWrite},
                          {"read", readRead},
                          {"set", readSet},
                          {"repeat", readRepeat},
                          {"expect", readExpect},
                          {"print", readPrint},
                          {"save", readSave}};

/// The step's one verb.
Expected<const Verb *> verbOf(const StepContext &context, const JsonValue &object) {
  const Verb *found = nullptr;
  std::vector<std::string> names;
  for (const Verb &verb : verbs)
    names.emplace_back(verb.name);
  for (const JsonMember &member : object.members)
    for (const Verb &verb : verbs)
      if (member.name == verb.name) {
        if (found)
          return context.source->error(
              member.place,
              fmt::format("a step does one thing, but '{}' and '{}' are two; write two steps", found->name, verb.name));
        found = &verb;
      }
  if (found)
    return found;
  for (const JsonMember &member : object.members)
    if (std::string hint = didYouMean(member.name, names); !hint.empty())
      return context.source->error(member.place, fmt::format("'{}' is nothing that a step does{}; accepted are {}",
                                                             member.name, hint, fmt::join(names, ", ")));
  return context.source->error(
      object.members.empty() ? object.place : object.members.front().place,
      fmt::format("{} nothing that a step does; accepted are {}",
                  object.members.empty() ? "this says" : fmt::format("'{}' is", object.members.front().name),
                  fmt::join(names, ", ")));
}

Expected<Step> readStep(const StepContext &context, const JsonValue &object) {
  DITRON_ASSIGN_OR_RETURN(Fields fields, Fields::of(*context.source, object, "a step"));
  DITRON_ASSIGN_OR_RETURN(const Verb *verb, verbOf(context, object));
  DITRON_ASSIGN_OR_RETURN(fields, Fields::of(*context.source, object, fmt::format("the step '{}'", verb->name)));
  Step step{object.place, std::string(verb->name), "", std::nullopt, {}};
  Reading reading{context, fields, step};
  DITRON_ASSIGN_OR_RETURN(step.action, verb->read(reading));
  if (const JsonValue *ranks = fields.find("ranks")) {
    DITRON_ASSIGN_OR_RETURN(step.only, readRanks(context, *ranks));
  }
  DITRON_RETURN_IF_ERROR(fields.finish());
  return step;
}

} // namespace

Expected<std::vector<Step>> readSteps(const StepContext &context, const JsonValue &list) {
  if (list.kind != JsonValue::Kind::List)
    return context.source->error(list.place, fmt::format("{} is not accepted; write a list of steps", list.kindName()));
  std::vector<Step> steps;
  for (const JsonValue &item : list.items) {
    DITRON_ASSIGN_OR_RETURN(Step step, readStep(context, item));
    steps.push_back(std::move(step));
  }
  return steps;
}

Expected<std::optional<std::set<uint32_t>>> readRanks(const StepContext &context, const JsonValue &value) {
  std::set<uint32_t> ranks;
  auto add = [&](const JsonValue &item) -> Status {
    const std::optional<uint32_t> rank = item.kind == JsonValue::Kind::Number && item.isInteger
                                             ? values::wholeNumber<uint32_t>(item.text)
                                             : std::nullopt;
    if (!rank || *rank >= context.ranks)
      return context.source->error(
          item.place, fmt::format("{} is no rank of this program, which has {}; write 0 to {}, a list of them, or "
                                  "\"all\"",
                                  item.text.empty() ? item.kindName() : item.text, context.ranks, context.ranks - 1));
    ranks.insert(*rank);
    return Status::ok();
  };
  if (value.kind == JsonValue::Kind::Text && value.text == "all")
    return std::optional<std::set<uint32_t>>();
  if (value.kind != JsonValue::Kind::List) {
    DITRON_RETURN_IF_ERROR(add(value));
    return std::optional(std::move(ranks));
  }
  for (const JsonValue &item : value.items)
    DITRON_RETURN_IF_ERROR(add(item));
  return std::optional(std::move(ranks));
}

std::string bufferOfPart(const std::string &part) { return part.substr(0, part.find_first_of("[@")); }

} // namespace ditron::program
