//===- Reader.cpp - From JSON to a checked program ----------------------------------------------------------------===//
//
// First the declarations, then the host code, then, when all names are known, whether each name that the steps use is one of them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/Reader.h"

#include "ditron/program/Scope.h"
#include "ditron/program/StepReader.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace ditron::program {

namespace {

constexpr int64_t mostRanks = 1024, mostSms = 1024;
constexpr int64_t leastPriority = -100, mostPriority = 100;
constexpr size_t mostSteps = 100'000;

bool isName(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class ProgramReader {
public:
  ProgramReader(Program &program, const ReadOptions &options) : program(program), options(options) {}

  Status read(const JsonValue &root) {
    DITRON_ASSIGN_OR_RETURN(Fields fields, Fields::of(program.source, root, "a program"));
    DITRON_RETURN_IF_ERROR(readMachine(fields));
    DITRON_ASSIGN_OR_RETURN(program.variables, fields.texts("variables"));
    for (const auto &[name, value] : program.variables) {
      DITRON_RETURN_IF_ERROR(checkReserved(name, value.place));
      DITRON_RETURN_IF_ERROR(declare(variables, name, value.place, "variable"));
    }
    DITRON_ASSIGN_OR_RETURN(const NamedTexts buffers, fields.texts("buffers"));
    for (const auto &[name, value] : buffers) {
      DITRON_RETURN_IF_ERROR(declare(this->buffers, name, value.place, "buffer"));
      program.buffers.push_back({name, value});
    }
    DITRON_RETURN_IF_ERROR(readResults(fields));
    DITRON_RETURN_IF_ERROR(readStreams(fields));
    DITRON_RETURN_IF_ERROR(readEvents(fields));
    DITRON_RETURN_IF_ERROR(readOperators(fields));
    DITRON_RETURN_IF_ERROR(readHosts(fields));
    DITRON_RETURN_IF_ERROR(fields.finish());
    return checkNames();
  }

private:
  using Names = std::vector<std::string>;

  Status error(const Place &place, std::string_view message) const { return program.source.error(place, message); }

  Status declare(Names &names, const std::string &name, const Place &place, std::string_view what) {
    if (!isName(name))
      return error(place,
                   fmt::format("'{}' is no name of a {}; write letters, digits and _, no digit first", name, what));
    if (std::ranges::find(names, name) != names.end())
      return error(place, fmt::format("there is a {} '{}' already", what, name));
    names.push_back(name);
    return Status::ok();
  }

  Status checkReserved(const std::string &name, const Place &place) const {
    for (const auto &[reserved, meaning] : reservedNames)
      if (name == reserved)
        return error(place, fmt::format("'{}' means {} everywhere; a variable needs another name", name, meaning));
    return Status::ok();
  }

  Status readMachine(Fields &fields) {
    DITRON_ASSIGN_OR_RETURN(const auto ranks, fields.integer("ranks", 1, mostRanks));
    program.ranks = options.ranks.value_or(static_cast<uint32_t>(ranks.value_or(1)));
    DITRON_ASSIGN_OR_RETURN(const auto perNode, fields.integer("ranks_per_node", 1, mostRanks));
    program.ranksPerNode = options.ranksPerNode.value_or(static_cast<uint32_t>(perNode.value_or(0)));
    if (perNode && !options.ranksPerNode && program.ranks % program.ranksPerNode)
      return error(fields.find("ranks_per_node")->place,
                   fmt::format("{} ranks do not fill nodes of {}; write a divisor of {}", program.ranks,
                               program.ranksPerNode, program.ranks));
    DITRON_ASSIGN_OR_RETURN(const auto sms, fields.integer("sms", 1, mostSms));
    if (sms)
      program.sms = static_cast<uint32_t>(*sms);
    if (fields.find("target")) {
      DITRON_ASSIGN_OR_RETURN(program.target, fields.word("target"));
    }
    if (fields.find("file")) {
      DITRON_ASSIGN_OR_RETURN(kernelFile, fields.word("file"));
    }
    return Status::ok();
  }

  /// The items of a list, where there is one.
  Expected<std::vector<const JsonValue *>> itemsOf(Fields &fields, std::string_view name, std::string_view what) {
    std::vector<const JsonValue *> items;
    const JsonValue *list = fields.find(name);
    if (list && list->kind != JsonValue::Kind::List)
      return error(list->place, fmt::format("{} is not accepted; write a list of {}", list->kindName(), what));
    for (size_t i = 0; list && i < list->items.size(); ++i)
      items.push_back(&list->items[i]);
    return items;
  }

  Status readResults(Fields &fields) {
    DITRON_ASSIGN_OR_RETURN(const auto items, itemsOf(fields, "results", "names of buffers"));
    for (const JsonValue *item : items) {
      DITRON_ASSIGN_OR_RETURN(const Text name, asText(program.source, *item));
      DITRON_RETURN_IF_ERROR(known(buffers, name.text, item->place, "buffer"));
      program.results.push_back(name.text);
    }
    if (const JsonValue *list = fields.find("results"); list && items.empty())
      return error(list->place,
                   "an empty list is not accepted; write names of buffers, or leave it out to compare all");
    return Status::ok();
  }

  Status readStreams(Fields &fields) {
    DITRON_ASSIGN_OR_RETURN(const auto items, itemsOf(fields, "streams", "names of streams"));
    streams.emplace_back(defaultStream);
    for (const JsonValue *item : items) {
      StreamDeclaration stream;
      if (item->kind == JsonValue::Kind::Object) {
        DITRON_ASSIGN_OR_RETURN(Fields each, Fields::of(program.source, *item, "a stream"));
        DITRON_ASSIGN_OR_RETURN(stream.name, each.word("name"));
        DITRON_ASSIGN_OR_RETURN(const auto priority, each.integer("priority", leastPriority, mostPriority));
        stream.priority = static_cast<int>(priority.value_or(0));
        DITRON_RETURN_IF_ERROR(each.finish());
      } else {
        DITRON_ASSIGN_OR_RETURN(Text name, asText(program.source, *item));
        stream.name = std::move(name.text);
      }
      DITRON_RETURN_IF_ERROR(declare(streams, stream.name, item->place, "stream"));
      program.streams.push_back(std::move(stream));
    }
    return Status::ok();
  }

  Status readEvents(Fields &fields) {
    DITRON_ASSIGN_OR_RETURN(const auto items, itemsOf(fields, "events", "names of events"));
    for (const JsonValue *item : items) {
      DITRON_ASSIGN_OR_RETURN(const Text name, asText(program.source, *item));
      if (std::ranges::find(streams, name.text) != streams.end())
        return error(item->place, fmt::format("'{}' is a stream; an event needs a name of its own", name.text));
      DITRON_RETURN_IF_ERROR(declare(events, name.text, item->place, "event"));
      program.events.push_back(name.text);
    }
    return Status::ok();
  }

  Status readCollective(Fields &fields, ops::CollectiveOptions &options) {
    DITRON_RETURN_IF_ERROR(fields.require("elements").status());
    DITRON_ASSIGN_OR_RETURN(const auto elements, fields.integer("elements", 1, int64_t{1} << 40));
    options.maxElements = *elements;
    if (fields.find("type")) {
      DITRON_ASSIGN_OR_RETURN(const std::string type, fields.word("type"));
      const std::optional<DataType> parsed = parseDataType(type);
      if (!parsed)
        return error(fields.find("type")->place, fmt::format("'{}' is no element type", type));
      options.dtype = *parsed;
    }
    if (fields.find("reduction")) {
      DITRON_ASSIGN_OR_RETURN(const std::string word, fields.word("reduction"));
      Expected<ops::Reduction> reduction = ops::parseReduction(word);
      if (!reduction.isOk())
        return error(fields.find("reduction")->place, reduction.status().message());
      options.reduction = *reduction;
    }
    DITRON_ASSIGN_OR_RETURN(const auto root, fields.integer("root", 0, program.ranks - 1));
    options.root = static_cast<uint32_t>(root.value_or(0));
    return fields.finish();
  }

  Status readOperators(Fields &fields) {
    const JsonValue *all = fields.find("operators");
    if (!all)
      return Status::ok();
    DITRON_RETURN_IF_ERROR(Fields::of(program.source, *all, "'operators'").status());
    for (const JsonMember &member : all->members) {
      DITRON_RETURN_IF_ERROR(declare(operators, member.name, member.place, "operator"));
      DITRON_ASSIGN_OR_RETURN(Fields each,
                              Fields::of(program.source, member.value, fmt::format("operator '{}'", member.name)));
      OperatorDeclaration op;
      op.name = member.name;
      op.place = member.place;
      DITRON_ASSIGN_OR_RETURN(const std::string kind, each.word("operator"));
      if (Expected<ops::CollectiveKind> collective = ops::parseCollectiveKind(kind); collective.isOk()) {
        op.kind = OperatorDeclaration::Kind::Collective;
        op.collective.kind = *collective;
        DITRON_RETURN_IF_ERROR(readCollective(each, op.collective));
        program.operators.push_back(std::move(op));
        continue;
      }
      if (kind != "ag_gemm" && kind != "gemm_rs" && kind != "gemm_ar") {
        Names names = {"ag_gemm", "gemm_rs", "gemm_ar"};
        for (ops::CollectiveKind each : ops::allCollectiveKinds())
          names.emplace_back(ops::toString(each));
        return error(each.find("operator")->place, fmt::format("there is no operator '{}'{}; accepted are {}", kind,
                                                               didYouMean(kind, names), fmt::join(names, ", ")));
      }
      op.kind = kind == "ag_gemm"   ? OperatorDeclaration::Kind::AllGatherGemm
                : kind == "gemm_rs" ? OperatorDeclaration::Kind::GemmReduceScatter
                                    : OperatorDeclaration::Kind::GemmAllReduce;
      for (const auto &[name, size] : {std::pair("m", &op.m), std::pair("n", &op.n), std::pair("k", &op.k)}) {
        DITRON_RETURN_IF_ERROR(each.require(name).status());
        DITRON_ASSIGN_OR_RETURN(const auto given, each.integer(name, 1, std::numeric_limits<int32_t>::max()));
        *size = *given;
      }
      if (each.find("type")) {
        DITRON_ASSIGN_OR_RETURN(const std::string type, each.word("type"));
        const std::optional<DataType> parsed = parseDataType(type);
        if (!parsed || (*parsed != DataType::BF16 && *parsed != DataType::F16 && *parsed != DataType::F32))
          return error(each.find("type")->place,
                       fmt::format("'{}' is not accepted; operators take bf16, fp16 and fp32", type));
        op.dtype = *parsed;
      }
      DITRON_RETURN_IF_ERROR(each.finish());
      program.operators.push_back(std::move(op));
    }
    return Status::ok();
  }

  Status readHosts(Fields &fields) {
    const StepContext context{&program.source, program.ranks, kernelFile};
    const JsonValue *steps = fields.find("steps"), *hosts = fields.find("hosts");
    if (steps && hosts)
      return error(hosts->place, "a program has 'steps', which every rank does, or 'hosts', not both");
    if (steps) {
      HostDeclaration &host = program.hosts.emplace_back();
      host.place = steps->place;
      DITRON_ASSIGN_OR_RETURN(host.steps, readSteps(context, *steps));
      return Status::ok();
    }
    if (!hosts) {
      DITRON_RETURN_IF_ERROR(fields.finish()); // "stpes" explains more than that something is missing
      return error(fields.place(), "a program needs 'steps', which every rank does, or 'hosts'");
    }
    DITRON_ASSIGN_OR_RETURN(const auto items, itemsOf(fields, "hosts", "objects {\"rank\": R, \"steps\": [...]}"));
    for (const JsonValue *item : items) {
      DITRON_ASSIGN_OR_RETURN(Fields each, Fields::of(program.source, *item, "a host"));
      HostDeclaration host;
      host.place = item->place;
      DITRON_ASSIGN_OR_RETURN(const JsonValue *ranks, each.require("rank"));
      DITRON_ASSIGN_OR_RETURN(host.ranks, readRanks(context, *ranks));
      if (each.find("name")) {
        DITRON_ASSIGN_OR_RETURN(host.name, each.word("name"));
      }
      DITRON_ASSIGN_OR_RETURN(const JsonValue *own, each.require("steps"));
      DITRON_ASSIGN_OR_RETURN(host.steps, readSteps(context, *own));
      DITRON_RETURN_IF_ERROR(each.finish());
      program.hosts.push_back(std::move(host));
    }
    for (const HostDeclaration &host : program.hosts)
      for (const HostDeclaration &other : program.hosts)
        if (&other < &host && other.name == host.name && meet(host, other))
          return error(
              host.place,
              host.name.empty()
                  ? "two hosts of one rank have no name; give each a \"name\" of its own"
                  : fmt::format("two hosts of one rank are called '{}'; give each a \"name\" of its own", host.name));
    return Status::ok();
  }

  bool meet(const HostDeclaration &a, const HostDeclaration &b) const {
    for (uint32_t rank = 0; rank < program.ranks; ++rank)
      if ((!a.ranks || a.ranks->contains(rank)) && (!b.ranks || b.ranks->contains(rank)))
        return true;
    return false;
  }

  //===- Names ----------------------------------------------------------------------------------------------------===//

  Status checkNames() {
    size_t count = 0;
    Status problem;
    for (const HostDeclaration &host : program.hosts)
      forEachStep(host.steps, [&](const Step &step) {
        ++count;
        if (problem.isOk())
          problem = collect(step);
      });
    DITRON_RETURN_IF_ERROR(problem);
    if (count > mostSteps)
      return error(program.hosts.front().place,
                   fmt::format("{} steps; accepted are {}; see 'repeat'", count, mostSteps));
    for (HostDeclaration &host : program.hosts)
      DITRON_RETURN_IF_ERROR(checkSteps(host.steps, /*isCaptured=*/false));
    return Status::ok();
  }

  /// Names that steps make.
  Status collect(const Step &step) {
    auto add = [](Names &names, const std::string &name) {
      if (!name.empty() && std::ranges::find(names, name) == names.end())
        names.push_back(name);
    };
    auto addChecked = [&](Names &names, const std::string &name, std::string_view what) -> Status {
      if (&names == &variables)
        DITRON_RETURN_IF_ERROR(checkReserved(name, step.place));
      if (!name.empty() && !isName(name))
        return error(step.place,
                     fmt::format("'{}' is no name of a {}; write letters, digits and _, no digit first", name, what));
      add(names, name);
      return Status::ok();
    };
    if (const auto *allocate = std::get_if<AllocateStep>(&step.action))
      return addChecked(buffers, allocate->buffer, "buffer");
    if (const auto *capture = std::get_if<CaptureStep>(&step.action))
      return addChecked(graphs, capture->graph, "graph");
    if (const auto *read = std::get_if<ReadStep>(&step.action))
      return addChecked(variables, read->variable, "variable");
    if (const auto *repeat = std::get_if<RepeatStep>(&step.action))
      return addChecked(variables, repeat->counter, "variable");
    return Status::ok();
  }

  Status known(const Names &names, const std::string &name, const Place &place, std::string_view what) const {
    if (std::ranges::find(names, name) != names.end())
      return Status::ok();
    return error(place, fmt::format("there is no {} '{}'{}; {}", what, name, didYouMean(name, names),
                                    names.empty() ? fmt::format("the program has no {}s", what)
                                                  : fmt::format("{}s are {}", what, fmt::join(names, ", "))));
  }
  Status knownPart(const Text &part) const { return known(buffers, bufferOfPart(part.text), part.place, "buffer"); }

  Status checkSteps(std::vector<Step> &steps, bool isCaptured) {
    for (Step &step : steps) {
      if (!step.stream.empty())
        DITRON_RETURN_IF_ERROR(known(streams, step.stream, step.place, "stream"));
      if (isCaptured)
        DITRON_RETURN_IF_ERROR(checkCaptured(step));
      DITRON_RETURN_IF_ERROR(std::visit([&](auto &action) { return check(step, action, isCaptured); }, step.action));
    }
    return Status::ok();
  }

  Status checkCaptured(const Step &step) const {
    static const Names capturable = {"launch",      "call",   "copy", "memset", "signal_write", "signal_add",
                                     "signal_wait", "record", "wait", "set",    "repeat"};
    if (std::ranges::find(capturable, step.verb) != capturable.end())
      return Status::ok();
    return error(step.place, fmt::format("'{}' cannot be captured in a graph; accepted are {}", step.verb,
                                         fmt::join(capturable, ", ")));
  }

  Status check(const Step &, const LaunchStep &, bool) const { return Status::ok(); }
  Status check(const Step &step, const CallStep &call, bool) const {
    DITRON_RETURN_IF_ERROR(known(operators, call.name, step.place, "operator"));
    const auto op = std::ranges::find(program.operators, call.name, &OperatorDeclaration::name);
    const bool isCollective = op->kind == OperatorDeclaration::Kind::Collective;
    if (isCollective != call.isCollective)
      return error(step.place, fmt::format("operator '{}' takes {}", call.name,
                                           isCollective ? "'in' and 'out'" : "'a', 'b' and 'out'"));
    if (!isCollective)
      DITRON_RETURN_IF_ERROR(knownPart(call.b));
    DITRON_RETURN_IF_ERROR(knownPart(call.a));
    return knownPart(call.result);
  }
  Status check(const Step &, const CopyStep &copy, bool) const {
    DITRON_RETURN_IF_ERROR(knownPart(copy.from));
    return knownPart(copy.to);
  }
  Status check(const Step &, const MemsetStep &memset, bool) const { return knownPart(memset.part); }
  Status check(const Step &, const SignalStep &signal, bool) const { return knownPart(signal.word); }
  Status check(const Step &step, const RecordStep &record, bool) const {
    return known(events, record.event, step.place, "event");
  }
  Status check(const Step &step, const WaitStep &wait, bool) const {
    return known(events, wait.event, step.place, "event");
  }
  Status check(const Step &step, SynchronizeStep &synchronize, bool) const {
    using What = SynchronizeStep::What;
    if (synchronize.name == "rank")
      return Status::ok();
    synchronize.what = std::ranges::find(events, synchronize.name) != events.end() ? What::Event : What::Stream;
    if (synchronize.what == What::Event)
      return Status::ok();
    Names accepted = streams;
    accepted.insert(accepted.end(), events.begin(), events.end());
    accepted.emplace_back("rank");
    return known(accepted, synchronize.name, step.place, "stream or event");
  }
  Status check(const Step &, const BarrierStep &, bool) const { return Status::ok(); }
  Status check(const Step &, CaptureStep &capture, bool) { return checkSteps(capture.steps, /*isCaptured=*/true); }
  Status check(const Step &step, const ReplayStep &replay, bool) const {
    return known(graphs, replay.graph, step.place, "graph");
  }
  Status check(const Step &, const AllocateStep &, bool) const { return Status::ok(); }
  Status check(const Step &step, const FreeStep &free, bool) const {
    return known(buffers, free.buffer, step.place, "buffer");
  }
  Status check(const Step &, const WriteStep &write, bool) const { return knownPart(write.part); }
  Status check(const Step &, const ReadStep &read, bool) const { return knownPart(read.part); }
  Status check(const Step &, const SetStep &set, bool) const {
    for (const auto &[name, value] : set.values) {
      DITRON_RETURN_IF_ERROR(checkReserved(name, value.place));
      if (std::ranges::find(variables, name) == variables.end())
        return error(
            value.place,
            fmt::format("there is no variable '{}'{}; declare it in \"variables\"{}", name, didYouMean(name, variables),
                        variables.empty() ? std::string() : fmt::format("; there are {}", fmt::join(variables, ", "))));
    }
    return Status::ok();
  }
  Status check(const Step &, RepeatStep &repeat, bool isCaptured) { return checkSteps(repeat.steps, isCaptured); }
  Status check(const Step &, const ExpectStep &expect, bool) const { return knownPart(expect.part); }
  Status check(const Step &, const PrintStep &print, bool) const { return knownPart(print.part); }
  Status check(const Step &, const SaveStep &save, bool) const { return knownPart(save.part); }

  Program &program;
  const ReadOptions &options;
  std::string kernelFile;
  Names variables, buffers, streams, events, operators, graphs;
};

} // namespace

Expected<Program> parseProgram(std::string name, std::string text, std::string folder, const ReadOptions &options) {
  Program program;
  program.source = {std::move(name), std::move(text)};
  program.folder = std::move(folder);
  DITRON_ASSIGN_OR_RETURN(const JsonValue root, parseJson(program.source));
  DITRON_RETURN_IF_ERROR(ProgramReader(program, options).read(root));
  return program;
}

Expected<Program> readProgram(const std::string &path, const ReadOptions &options) {
  DITRON_ASSIGN_OR_RETURN(std::string text, readWholeFile(path, "run file", maxSourceBytes));
  return parseProgram(path, std::move(text), std::filesystem::path(path).parent_path().string(), options);
}

} // namespace ditron::program
