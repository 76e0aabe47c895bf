//===- HostLaunch.cpp - Kernels and operators from host code ------------------------------------------------------===//
//
// A parameter gets what "args" and "constexprs" give it; without that the buffer or the variable of its name, where there is one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/program/HostRun.h"

#include "ditron/values/LiteralText.h"
#include "ditron/values/RankText.h"
#include "ditron/values/TupleText.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::program {

using runtime::Argument;

Status HostRun::addGiven(const std::string &name, const Text &value, bool isConstexpr, const std::string &kernel,
                         runtime::CallArguments &call) {
  const std::string what = fmt::format("argument '{}' of kernel {}", name, kernel);
  DITRON_ASSIGN_OR_RETURN(const std::string substituted, text(value, what));
  DITRON_ASSIGN_OR_RETURN(const std::string own, values::textForRank(name, substituted, rank, state.program.ranks));
  DITRON_ASSIGN_OR_RETURN(const std::vector<values::TupleLeaf> leaves, values::parseTupleText(name, own));
  for (const values::TupleLeaf &leaf : leaves) {
    const bool isQuoted = leaf.path != name && (leaf.text.starts_with('"') || leaf.text.starts_with('\''));
    if (isConstexpr || isQuoted) {
      DITRON_ASSIGN_OR_RETURN(Argument constant, values::parseConstexprText(leaf.path, leaf.text));
      call.keywords.emplace_back(leaf.path, std::move(constant));
      continue;
    }
    if (state.memory->has(leaf.text)) {
      DITRON_ASSIGN_OR_RETURN(const LocalArray array, state.memory->find(leaf.text, rank));
      noteAddress(array, what, value.place);
      call.keywords.emplace_back(leaf.path, array.argument());
      continue;
    }
    Expected<values::ArgumentText> read = values::parseArgumentText(leaf.path, leaf.text, state.program.ranks);
    if (!read.isOk()) {
      if (leaf.path != name || !scope.evaluate(value.text).isOk())
        return invalidArgument(read.status().message() +
                               "; also the name of a buffer, and an expression of integers and variables");
      DITRON_ASSIGN_OR_RETURN(const int64_t number, this->number(value, what));
      call.keywords.emplace_back(leaf.path, number);
      continue;
    }
    const values::ArgumentText &parsed = *read;
    if (const auto *address = std::get_if<values::AddressText>(&parsed)) {
      DITRON_ASSIGN_OR_RETURN(const runtime::Pointer pointer, state.memory->addressOf(*address, rank));
      DITRON_ASSIGN_OR_RETURN(const LocalArray array, state.memory->find(address->array, address->rank.value_or(rank)));
      noteAddress(array, what, value.place);
      call.keywords.emplace_back(leaf.path, pointer);
    } else if (const auto *scalar = std::get_if<Argument>(&parsed)) {
      call.keywords.emplace_back(leaf.path, *scalar);
    } else {
      return invalidArgument(
          fmt::format("argument {}='{}': launches make no arrays; declare it in \"buffers\" and write its name",
                      leaf.path, leaf.text));
    }
  }
  return Status::ok();
}

Expected<runtime::CallArguments> HostRun::bind(const LaunchStep &launch, const jit::KernelFunction &function,
                                               values::IntegerNames &integers, const Place &place) {
  runtime::CallArguments call;
  for (const auto &[name, value] : launch.constexprs)
    DITRON_RETURN_IF_ERROR(addGiven(name, value, /*isConstexpr=*/true, function.name(), call));
  for (const auto &[name, value] : launch.arguments)
    DITRON_RETURN_IF_ERROR(addGiven(name, value, /*isConstexpr=*/false, function.name(), call));
  auto isGiven = [&](const std::string &name) {
    auto named = [&](const auto &each) { return each.first == name; };
    return std::ranges::any_of(launch.constexprs, named) || std::ranges::any_of(launch.arguments, named);
  };
  for (const std::string &name : function.parameterNames()) {
    if (isGiven(name))
      continue;
    const std::string what = fmt::format("argument '{}' of kernel {}", name, function.name());
    if (!function.isConstexpr(name) && state.memory->has(name)) {
      DITRON_ASSIGN_OR_RETURN(const LocalArray array, state.memory->find(name, rank));
      noteAddress(array, what, place);
      call.keywords.emplace_back(name, array.argument());
    } else if (const std::optional<int64_t> value = scope.find(name)) {
      noteBaked(BakedValue::Kind::Variable, what, place, name, std::to_string(*value));
      call.keywords.emplace_back(name, *value);
    }
  }
  integers = scope.names();
  for (const auto &[name, value] : call.keywords)
    if (value.is<int64_t>())
      integers[name] = value.get<int64_t>();
  return call;
}

Status HostRun::perform(const Step &step, const LaunchStep &launch) {
  const LoadedSource &loaded = state.kernels.at(launch.file + ":" + launch.kernel);
  values::IntegerNames integers;
  DITRON_ASSIGN_OR_RETURN(const runtime::CallArguments given, bind(launch, loaded.function, integers, step.place));
  runtime::LaunchOptions options;
  options.numWarps = launch.numWarps;
  options.numStages = launch.numStages;
  options.config = launch.config;
  options.debug = state.options.debug;
  DITRON_ASSIGN_OR_RETURN(jit::TunedCall tuned, state.jit.tune(loaded.function, given, options));
  tuned.options.config.reset(); // its values are among the arguments now
  for (const auto &[name, value] : tuned.arguments.keywords)
    if (value.is<int64_t>())
      integers[name] = value.get<int64_t>();
  runtime::LaunchConfig config;
  config.cooperative = launch.cooperative;
  if (launch.grid) {
    DITRON_ASSIGN_OR_RETURN(const std::string grid, text(*launch.grid, "the grid of kernel " + launch.kernel));
    DITRON_ASSIGN_OR_RETURN(config.grid, values::evaluateGrid(grid, integers));
    if (std::ranges::find(config.grid, 0u) != config.grid.end())
      return invalidArgument(
          fmt::format("the grid '{}' of kernel {} is [{}], which has no block; accepted are 1 to {} in each dimension; "
                      "\"ranks\" says which ranks do a step",
                      grid, launch.kernel, fmt::join(config.grid, ", "), INT32_MAX));
  }
  DITRON_ASSIGN_OR_RETURN(const jit::Specialisation variant,
                          state.jit.specialise(loaded.function, tuned.arguments, tuned.options));
  return state.stream(rank, step.stream).launch(variant.kernel, config, variant.arguments);
}

Status HostRun::performCollective(const Step &step, const CallStep &call, ops::Collective &op) {
  using Kind = ops::CollectiveKind;
  const ops::CollectiveOptions &options = op.options();
  auto operand = [&](const Text &given, std::string_view role) -> Expected<Part> {
    DITRON_ASSIGN_OR_RETURN(Part part, this->part(given, fmt::format("operand {} of {}", role, call.name)));
    if (part.array.pointer.type != options.dtype || part.runs.size() > 1)
      return invalidArgument(fmt::format("operand {} of '{}' is {} {}; accepted are elements of {}, side by side", role,
                                         call.name, ditron::toString(part.array.pointer.type),
                                         shapeToString(part.shape), ditron::toString(options.dtype)));
    return part;
  };
  DITRON_ASSIGN_OR_RETURN(const Part in, operand(call.a, "in"));
  DITRON_ASSIGN_OR_RETURN(const Part out, operand(call.result, "out"));
  const int64_t ranks = state.program.ranks;
  const int64_t inParts = options.kind == Kind::ReduceScatter || options.kind == Kind::AllToAll ? ranks : 1;
  const int64_t outParts = options.kind == Kind::AllGather || options.kind == Kind::AllToAll ? ranks : 1;
  const int64_t elements = in.elements / inParts;
  if (elements * inParts != in.elements || elements * outParts != out.elements)
    return invalidArgument(
        fmt::format("'{}' is {} of {} ranks: with n elements for each part 'in' has {} and 'out' {}; given are {} "
                    "and {} elements",
                    call.name, ops::toString(options.kind), ranks, inParts == 1 ? "n" : fmt::format("{} n", ranks),
                    outParts == 1 ? "n" : fmt::format("{} n", ranks), in.elements, out.elements));
  return op.enqueue(world.rank(rank), state.stream(rank, step.stream), Memory::begin(in), Memory::begin(out), elements);
}

Status HostRun::perform(const Step &step, const CallStep &call) {
  OperatorState &op = state.operators.at(call.name);
  if (auto *collective = std::get_if<ops::Collective>(&op.op))
    return performCollective(step, call, *collective);
  const OperatorDeclaration &declared = *op.declaration;
  const int64_t shard = ops::RowShards(declared.m, state.program.ranks).rowsOf(rank);
  const bool gathers = declared.kind == OperatorDeclaration::Kind::AllGatherGemm,
             scatters = declared.kind == OperatorDeclaration::Kind::GemmReduceScatter;
  auto operand = [&](const Text &given, std::string_view role, int64_t rows,
                     int64_t columns) -> Expected<runtime::Pointer> {
    DITRON_ASSIGN_OR_RETURN(const Part part, this->part(given, fmt::format("operand {} of {}", role, call.name)));
    if (part.array.pointer.type != declared.dtype || part.shape != std::vector<int64_t>{rows, columns} ||
        part.runs.size() > 1)
      return invalidArgument(
          fmt::format("operand {} of '{}' is {} {}; on this rank it takes {} [{}, {}], row after row", role, call.name,
                      ditron::toString(part.array.pointer.type), shapeToString(part.shape),
                      ditron::toString(declared.dtype), rows, columns));
    return Memory::begin(part);
  };
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer a, operand(call.a, "a", gathers ? shard : declared.m, declared.k));
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer b, operand(call.b, "b", declared.k, declared.n));
  DITRON_ASSIGN_OR_RETURN(const runtime::Pointer result,
                          operand(call.result, "out", scatters ? shard : declared.m, declared.n));
  runtime::Stream &stream = state.stream(rank, step.stream);
  if (auto *gather = std::get_if<ops::AllGatherGemm>(&op.op))
    return gather->enqueue(world.rank(rank), stream, a, b, result, declared.m, declared.n);
  if (auto *allReduce = std::get_if<ops::GemmAllReduce>(&op.op))
    return allReduce->enqueue(world.rank(rank), stream, a, b, result, declared.m, declared.k);
  return std::get<ops::GemmReduceScatter>(op.op).enqueue(world.rank(rank), stream, a, b, result, declared.m,
                                                         declared.k);
}

} // namespace ditron::program
