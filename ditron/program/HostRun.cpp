//===- HostRun.cpp - One host code of a run -----------------------------------------------------------------------===//
//
// The steps, and how values are found. Launches are in HostLaunch.cpp, allocation and free in HostMemory.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/HostRun.h"

#include "ditron/support/OutputFile.h"
#include "ditron/values/ArrayPrint.h"
#include "ditron/values/LiteralText.h"
#include "ditron/values/OutputText.h"
#include "ditron/values/RankText.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::program {

namespace {

constexpr int64_t mostRepeats = 1'000'000;

/// A number of turns.
Expected<int64_t> checkTimes(int64_t times) {
  if (times < 0 || times > mostRepeats)
    return invalidArgument(fmt::format("{} times is not accepted; write 0 to {}", times, mostRepeats));
  return times;
}

/// The part as `rows` runs of equal length that are equally far apart: how far, in elements. None where it is not.
std::optional<int64_t> pitchOf(const Part &part, int64_t rows) {
  if (part.runs.size() == 1)
    return part.elements / rows;
  if (static_cast<int64_t>(part.runs.size()) != rows)
    return std::nullopt;
  const int64_t pitch = part.runs[1].first - part.runs[0].first;
  for (size_t i = 0; i < part.runs.size(); ++i)
    if (part.runs[i].count != part.runs[0].count ||
        part.runs[i].first != part.runs[0].first + static_cast<int64_t>(i) * pitch)
      return std::nullopt;
  return pitch;
}

} // namespace

HostRun::HostRun(Run::State &state, const HostDeclaration &host, uint32_t rank)
    : state(state), host(host), rank(rank), world(*state.world),
      scope(rank, state.program.ranks, world.rank(rank).attributes().multiprocessors) {}

Status HostRun::run() {
  for (const auto &[name, value] : state.program.variables) {
    Expected<int64_t> number = scope.evaluate(value.text);
    if (!number.isOk())
      return state.at(value.place, rank, number.status());
    scope.set(name, *number);
  }
  return runSteps(host.steps);
}

Status HostRun::runSteps(const std::vector<Step> &steps) {
  for (const Step &step : steps)
    if (step.isFor(rank))
      DITRON_RETURN_IF_ERROR(runStep(step));
  return Status::ok();
}

Status HostRun::runStep(const Step &step) {
  world.hostStep({state.program.source.name, step.place.line, step.place.column});
  const Status status = std::visit([&](const auto &action) { return perform(step, action); }, step.action);
  return state.at(step.place, rank, status);
}

//===- Values -----------------------------------------------------------------------------------------------------===//

void HostRun::noteBaked(BakedValue::Kind kind, std::string what, const Place &place, std::string name,
                        std::string value) {
  if (!capturing)
    return;
  BakedValue &baked =
      capturing->emplace_back(BakedValue{kind, std::move(what), place, std::move(name), std::move(value), {}, {}});
  for (const std::string &variable : decided)
    if (const std::optional<int64_t> now = scope.find(variable))
      baked.decided[variable] = *now;
  for (const std::string &counter : counters)
    if (const std::optional<int64_t> now = scope.find(counter); now && !decided.contains(counter))
      baked.counters[counter] = *now;
}

void HostRun::noteAddress(const LocalArray &array, const std::string &what, const Place &place) {
  if (capturing)
    noteBaked(BakedValue::Kind::Buffer, what, place, fmt::format("{}@{}", array.name, array.rank),
              std::to_string(reinterpret_cast<uintptr_t>(array.pointer.address)));
}

Expected<std::string> HostRun::text(const Text &text, const std::string &what) {
  DITRON_ASSIGN_OR_RETURN(std::string value, scope.substitute(text.text));
  if (text.text.find('{') != std::string::npos)
    noteBaked(BakedValue::Kind::Text, what, text.place, text.text, value);
  return value;
}

Expected<int64_t> HostRun::number(const Text &text, const std::string &what) {
  DITRON_ASSIGN_OR_RETURN(const int64_t value, scope.evaluate(text.text));
  noteBaked(BakedValue::Kind::Number, what, text.place, text.text, std::to_string(value));
  return value;
}

std::optional<std::string> HostRun::valueNow(const BakedValue &baked) const {
  Scope scope = this->scope;
  for (const auto &[name, value] : baked.decided)
    scope.set(name, value);
  for (const auto &[name, value] : baked.counters)
    if (!scope.find(name))
      scope.set(name, value);
  switch (baked.kind) {
  case BakedValue::Kind::Text: {
    Expected<std::string> value = scope.substitute(baked.name);
    return value.isOk() ? std::optional(*value) : std::nullopt;
  }
  case BakedValue::Kind::Number: {
    Expected<int64_t> value = scope.evaluate(baked.name);
    return value.isOk() ? std::optional(std::to_string(*value)) : std::nullopt;
  }
  case BakedValue::Kind::Variable: {
    const std::optional<int64_t> value = scope.find(baked.name);
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
  }
  case BakedValue::Kind::Buffer: {
    const size_t at = baked.name.find('@');
    Expected<LocalArray> array =
        state.memory->find(baked.name.substr(0, at), static_cast<uint32_t>(std::stoul(baked.name.substr(at + 1))));
    return array.isOk() ? std::to_string(reinterpret_cast<uintptr_t>(array->pointer.address)) : "freed";
  }
  }
  return std::nullopt;
}

Expected<Part> HostRun::part(const Text &given, const std::string &what) {
  DITRON_ASSIGN_OR_RETURN(const std::string own, text(given, what));
  DITRON_ASSIGN_OR_RETURN(Part part, state.memory->part(own, rank));
  noteAddress(part.array, what, given.place);
  return part;
}

Expected<Part> HostRun::word(const Text &given, const std::string &what) {
  DITRON_ASSIGN_OR_RETURN(Part part, this->part(given, what));
  if (part.elements != 1)
    return invalidArgument(
        fmt::format("{} is {} elements; write one word, as in {}[0]", part.text, part.elements, part.array.name));
  return part;
}

Expected<NpyArray> HostRun::valueFor(const Part &part, const Text &value, std::string *written) {
  const DataType type = part.array.pointer.type;
  DITRON_ASSIGN_OR_RETURN(const std::string substituted, scope.substitute(value.text));
  DITRON_ASSIGN_OR_RETURN(const std::string own,
                          values::textForRank(part.array.name, substituted, rank, state.program.ranks));
  if (written)
    *written = own;
  if (const std::optional<runtime::Argument> literal = values::parseLiteral(own)) {
    NpyArray data{type, part.shape, std::vector<std::byte>(static_cast<size_t>(part.elements) * sizeOf(type))};
    for (int64_t i = 0; i < part.elements; ++i)
      DITRON_RETURN_IF_ERROR(values::storeLiteral(type, *literal, data.data.data() + i * sizeOf(type)));
    return data;
  }
  if (own.starts_with(values::addressMark)) {
    DITRON_ASSIGN_OR_RETURN(const Part other, state.memory->part(own.substr(values::addressMark.size()), rank));
    return state.memory->download(other);
  }
  return values::readExpected(part.array.name, own, rank, state.program.ranks, state.options.dataSeed);
}

//===- Work of streams --------------------------------------------------------------------------------------------===//

Status HostRun::perform(const Step &step, const CopyStep &copy) {
  DITRON_ASSIGN_OR_RETURN(const Part from, part(copy.from, "the source of a copy"));
  DITRON_ASSIGN_OR_RETURN(const Part to, part(copy.to, "the destination of a copy"));
  const DataType type = from.array.pointer.type;
  if (to.array.pointer.type != type || from.elements != to.elements)
    return invalidArgument(fmt::format("a copy of {} elements of {} to {} of {}; both sides have as many, of one type",
                                       from.elements, ditron::toString(type), to.elements,
                                       ditron::toString(to.array.pointer.type)));
  const auto rows = static_cast<int64_t>(std::max({from.runs.size(), to.runs.size(), size_t(1)}));
  const std::optional<int64_t> source = from.elements % rows ? std::nullopt : pitchOf(from, rows);
  const std::optional<int64_t> destination = from.elements % rows ? std::nullopt : pitchOf(to, rows);
  if (from.elements == 0)
    return Status::ok();
  if (!source || !destination)
    return unsupported(fmt::format(
        "a copy of {} to {}: one copy moves rows of one length, equally far apart on either side; write several",
        from.text, to.text));
  runtime::Copy description;
  description.source = Memory::begin(from).address;
  description.destination = Memory::begin(to).address;
  description.rows = static_cast<uint64_t>(rows);
  description.rowBytes = static_cast<uint64_t>(from.elements / rows) * sizeOf(type);
  description.sourcePitch = static_cast<uint64_t>(*source) * sizeOf(type);
  description.destinationPitch = static_cast<uint64_t>(*destination) * sizeOf(type);
  description.name = fmt::format("copy of {} to {}", from.text, to.text);
  return state.stream(rank, step.stream).copy(description);
}

Status HostRun::perform(const Step &step, const MemsetStep &memset) {
  DITRON_ASSIGN_OR_RETURN(const Part where, part(memset.part, "the memory of a memset"));
  DITRON_ASSIGN_OR_RETURN(const int64_t byte, number(memset.byte, "the byte of a memset"));
  if (byte < 0 || byte > 255)
    return invalidArgument(fmt::format("the byte {} is not accepted; write 0 to 255", byte));
  if (where.runs.size() > 1)
    return unsupported(fmt::format("a memset of {}: its elements do not lie side by side; write several", where.text));
  if (where.elements == 0)
    return Status::ok();
  return state.stream(rank, step.stream)
      .fill(Memory::begin(where), static_cast<int>(byte), static_cast<uint64_t>(where.elements));
}

Status HostRun::perform(const Step &step, const SignalStep &signal) {
  DITRON_ASSIGN_OR_RETURN(const Part where, word(signal.word, "the word of a " + step.verb));
  DITRON_ASSIGN_OR_RETURN(const int64_t value,
                          number(signal.value, fmt::format("the value of a {} of {}", step.verb, signal.word.text)));
  if (const DataType type = where.array.pointer.type; !isInteger(type) || sizeOf(type) < 4)
    return invalidArgument(fmt::format("{} on {}, whose words are {}; signals are i32, u32, i64 or u64", step.verb,
                                       where.text, ditron::toString(type)));
  runtime::Stream &stream = state.stream(rank, step.stream);
  switch (signal.kind) {
  case SignalStep::Kind::Write: return stream.signalWrite(Memory::begin(where), static_cast<uint64_t>(value));
  case SignalStep::Kind::Add: return stream.signalAdd(Memory::begin(where), static_cast<uint64_t>(value));
  case SignalStep::Kind::Wait:
    return stream.signalWait(Memory::begin(where), signal.compare, static_cast<uint64_t>(value));
  }
  return Status::ok();
}

Status HostRun::perform(const Step &step, const RecordStep &record) {
  return state.stream(rank, step.stream).record(state.ranks[rank].events.at(record.event));
}

Status HostRun::perform(const Step &step, const WaitStep &wait) {
  int64_t of = rank;
  if (wait.rank) {
    DITRON_ASSIGN_OR_RETURN(of, number(*wait.rank, "the rank of an event"));
    if (of < 0 || of >= state.program.ranks)
      return invalidArgument(fmt::format("event {}@{}: ranks are 0 to {}", wait.event, of, state.program.ranks - 1));
  }
  return state.stream(rank, step.stream).wait(state.ranks[static_cast<size_t>(of)].events.at(wait.event));
}

//===- Graphs -----------------------------------------------------------------------------------------------------===//

Status HostRun::perform(const Step &step, const CaptureStep &capture) {
  runtime::Stream &stream = state.stream(rank, step.stream);
  CapturedGraph captured;
  DITRON_RETURN_IF_ERROR(stream.beginCapture());
  capturing = &captured.baked;
  captured.by = &host;
  decided.clear();
  const Status inner = runSteps(capture.steps);
  capturing = nullptr;
  Expected<runtime::Graph> graph = stream.endCapture();
  DITRON_RETURN_IF_ERROR(inner);
  DITRON_ASSIGN_OR_RETURN(captured.graph, std::move(graph));
  std::lock_guard lock(state.mutex);
  state.ranks[rank].graphs[capture.graph] = std::move(captured);
  return Status::ok();
}

Status HostRun::perform(const Step &step, const ReplayStep &replay) {
  int64_t times = 1;
  if (replay.times) {
    DITRON_ASSIGN_OR_RETURN(times, number(*replay.times, "the number of replays"));
    DITRON_RETURN_IF_ERROR(checkTimes(times).status());
  }
  CapturedGraph captured;
  {
    std::lock_guard lock(state.mutex);
    const auto found = state.ranks[rank].graphs.find(replay.graph);
    if (found == state.ranks[rank].graphs.end())
      return invalidArgument(fmt::format("graph '{}' has not been captured on this rank yet", replay.graph));
    captured = found->second;
  }
  for (const BakedValue &baked : captured.baked) {
    if (baked.kind != BakedValue::Kind::Buffer && captured.by != &host)
      continue;
    const std::optional<std::string> now = valueNow(baked);
    if (!now || *now == baked.value)
      continue;
    if (baked.kind == BakedValue::Kind::Buffer)
      return Status(
          StatusCode::OutOfBounds,
          fmt::format(
              "use after free: graph '{}' holds the address of buffer {} as {}, captured at line {}; the buffer {}",
              replay.graph, baked.name, baked.what, baked.place.line,
              *now == "freed" ? "was freed since" : "lies elsewhere now"));
    return invalidArgument(fmt::format(
        "graph '{}' was captured with {} = {} ('{}' at line {}), which is {} now; a replay repeats the value of the "
        "capture: let the kernel find it in memory, which is written between replays or counted up by the "
        "kernel itself",
        replay.graph, baked.what, baked.value, baked.name, baked.place.line, *now));
  }
  for (int64_t i = 0; i < times; ++i)
    DITRON_RETURN_IF_ERROR(state.stream(rank, step.stream).launch(captured.graph));
  return Status::ok();
}

//===- Host code --------------------------------------------------------------------------------------------------===//

Status HostRun::perform(const Step &, const SynchronizeStep &synchronize) {
  switch (synchronize.what) {
  case SynchronizeStep::What::Rank: return world.rank(rank).synchronize();
  case SynchronizeStep::What::Stream: return state.stream(rank, synchronize.name).synchronize();
  case SynchronizeStep::What::Event: return state.ranks[rank].events.at(synchronize.name).synchronize();
  }
  return Status::ok();
}

Status HostRun::perform(const Step &step, const BarrierStep &barrier) {
  return world.hostMeet("barrier " + barrier.name, state.barriers.at(barrier.name),
                        fmt::format("barrier '{}' at {}:{}", barrier.name, state.program.source.name, step.place.line));
}

Status HostRun::perform(const Step &, const WriteStep &write) {
  DITRON_ASSIGN_OR_RETURN(const Part where, part(write.part, "a written part"));
  DITRON_ASSIGN_OR_RETURN(const NpyArray data, valueFor(where, write.value));
  if (data.type != where.array.pointer.type || data.elementCount() != where.elements)
    return invalidArgument(fmt::format("{} is {} elements of {}; the value has {} of {}", where.text, where.elements,
                                       ditron::toString(where.array.pointer.type), data.elementCount(),
                                       ditron::toString(data.type)));
  return state.memory->upload(where, data);
}

Status HostRun::perform(const Step &, const ReadStep &read) {
  DITRON_ASSIGN_OR_RETURN(const Part where, word(read.part, "a read word"));
  if (!isInteger(where.array.pointer.type))
    return invalidArgument(fmt::format("{} is of type {}; variables are integers", where.text,
                                       ditron::toString(where.array.pointer.type)));
  DITRON_ASSIGN_OR_RETURN(const NpyArray data, state.memory->download(where));
  int64_t value = static_cast<int64_t>(loadElement(data.type, data.data.data()));
  if (sizeOf(data.type) == sizeof value)
    std::memcpy(&value, data.data.data(), sizeof value); // exact
  scope.set(read.variable, value);
  return Status::ok();
}

Status HostRun::perform(const Step &, const SetStep &set) {
  for (const auto &[name, value] : set.values) {
    DITRON_ASSIGN_OR_RETURN(const int64_t number, scope.evaluate(value.text));
    scope.set(name, number);
    if (capturing)
      decided.insert(name);
  }
  return Status::ok();
}

Status HostRun::perform(const Step &, const RepeatStep &repeat) {
  DITRON_ASSIGN_OR_RETURN(const int64_t times, number(repeat.times, "the number of turns of a loop"));
  DITRON_RETURN_IF_ERROR(checkTimes(times).status());
  const std::optional<int64_t> outer = scope.find(repeat.counter);
  const bool decides = capturing && !repeat.counter.empty() && decided.insert(repeat.counter).second;
  if (!repeat.counter.empty())
    counters.push_back(repeat.counter);
  for (int64_t i = 0; i < times; ++i) {
    if (!repeat.counter.empty())
      scope.set(repeat.counter, i);
    DITRON_RETURN_IF_ERROR(runSteps(repeat.steps));
  }
  if (decides)
    decided.erase(repeat.counter);
  if (!repeat.counter.empty()) {
    counters.pop_back();
    if (outer)
      scope.set(repeat.counter, *outer);
    else
      scope.remove(repeat.counter);
  }
  return Status::ok();
}

//===- Results ----------------------------------------------------------------------------------------------------===//

Status HostRun::perform(const Step &step, const ExpectStep &expect) {
  DITRON_ASSIGN_OR_RETURN(const Part where, part(expect.part, "an expected part"));
  std::string written;
  DITRON_ASSIGN_OR_RETURN(NpyArray wanted, valueFor(where, expect.value, &written));
  DITRON_ASSIGN_OR_RETURN(NpyArray actual, state.memory->download(where));
  if (const size_t at = written.find('@'); at != std::string::npos && at > 0)
    if (const std::optional<DataType> type = parseDataType(std::string_view(written).substr(0, at))) {
      std::string overflow; // what is infinite then differs, and is reported so
      DITRON_ASSIGN_OR_RETURN(actual, values::interpretArray(std::move(actual), *type, where.array.name, &overflow));
    }
  const std::optional<std::string> mismatch = values::describeMismatch(actual, wanted, written, expect.tolerance);
  std::lock_guard lock(state.mutex);
  ++state.outcome.expectations;
  if (mismatch)
    state.outcome.mismatches.push_back(
        state.program.source.error(step.place, fmt::format("{} is not as expected{}", where.text, *mismatch))
            .message());
  return Status::ok();
}

Status HostRun::perform(const Step &, const PrintStep &print) {
  DITRON_ASSIGN_OR_RETURN(const Part where, part(print.part, "a printed part"));
  DITRON_ASSIGN_OR_RETURN(const NpyArray data, state.memory->download(where));
  const auto abbreviate =
      where.elements == elementCount(where.array.shape) ? values::Abbreviate::Long : values::Abbreviate::Never;
  const std::string text =
      fmt::format("{}: {} {}{}\n{}\n", where.text, ditron::toString(data.type), shapeToString(data.shape),
                  data.elementCount() == 0 ? ", 0 elements" : "", values::arrayText(data, abbreviate));
  std::lock_guard lock(state.mutex);
  if (state.options.print)
    state.options.print(text);
  else
    fmt::print("{}", text);
  return Status::ok();
}

Status HostRun::perform(const Step &, const SaveStep &save) {
  DITRON_ASSIGN_OR_RETURN(const Part where, part(save.part, "a saved part"));
  DITRON_ASSIGN_OR_RETURN(const std::string file, scope.substitute(save.file.text));
  DITRON_ASSIGN_OR_RETURN(const values::OutputText output, values::parseOutputText(where.array.name, file));
  DITRON_ASSIGN_OR_RETURN(NpyArray data, state.memory->download(where));
  if (output.type) {
    std::string overflow;
    DITRON_ASSIGN_OR_RETURN(data, values::interpretArray(std::move(data), *output.type, where.array.name, &overflow));
  }
  std::lock_guard lock(state.mutex);
  const auto [writer, isNew] = state.savedBy.try_emplace(output.path, rank);
  if (!isNew && writer->second != rank)
    return invalidArgument(
        fmt::format("rank {} has written {} already; put {{rank}} into the path", writer->second, output.path));
  return writeNpy(output.path, data.type, data.shape, data.data);
}

} // namespace ditron::program
