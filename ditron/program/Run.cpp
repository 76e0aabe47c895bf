//===- Run.cpp - Runs a program once ------------------------------------------------------------------------------===//
#include "ditron/program/Run.h"

#include "ditron/ops/Gemm.h"
#include "ditron/program/HostRun.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::program {

//===- State ------------------------------------------------------------------------------------------------------===//

Status Run::State::at(const Place &place, uint32_t rank, const Status &problem) const {
  const bool isPlaced =
      problem.location() && (problem.location()->file == program.source.name || !world->status().isOk());
  if (problem.isOk() || isPlaced || problem.code() == StatusCode::CompileError || !world->status().isOk())
    return problem;
  return program.source.error(
      place, program.ranks > 1 ? fmt::format("rank {}: {}", rank, problem.message()) : problem.message(),
      problem.code());
}

runtime::Stream &Run::State::stream(uint32_t rank, const std::string &name) {
  return name == defaultStream ? world->rank(rank).stream() : ranks[rank].streams.at(name);
}

void Run::State::noteError(const Status &error) {
  std::lock_guard lock(mutex);
  if (firstError.isOk() && world->status().isOk())
    firstError = error;
}

Status Run::State::describeOpenCollective(const Status &following) const {
  for (const Collective &collective : collectives) {
    if (collective.came.empty() || collective.came.size() == program.ranks)
      continue;
    std::vector<std::string> missing;
    for (uint32_t rank = 0; rank < program.ranks; ++rank)
      if (!collective.came.contains(rank))
        missing.push_back(
            fmt::format("rank {} never comes to it ({})", rank,
                        ranks[rank].hosts == 0 ? "its host code has ended" : "its host code waits for something else"));
    const auto &[rank, place] = *collective.came.begin();
    const Status error = program.source.error(place, fmt::format("the {} by rank {} is a call of all ranks, and {}",
                                                                 collective.what, rank, fmt::join(missing, ", ")));
    return Status(StatusCode::Deadlock, error.message() + following.message()).at(*error.location());
  }
  return following;
}

//===- Making -----------------------------------------------------------------------------------------------------===//

namespace {

std::string kernelPath(const Program &program, const std::string &file) {
  const std::filesystem::path path(file);
  return path.is_absolute() || program.folder.empty() ? file : (std::filesystem::path(program.folder) / path).string();
}

/// Names of a launch that are no parameters, or are of the other kind.
Status checkParameters(const Program &program, const LaunchStep &launch, const jit::KernelFunction &function) {
  const std::vector<std::string> names = function.parameterNames();
  for (const bool isConstexpr : {false, true})
    for (const auto &[name, value] : isConstexpr ? launch.constexprs : launch.arguments) {
      if (std::ranges::find(names, name) == names.end())
        return program.source.error(value.place,
                                    fmt::format("kernel '{}' has no parameter '{}'{}; it has {}", function.name(), name,
                                                didYouMean(name, names), fmt::join(names, ", ")));
      if (function.isConstexpr(name) != isConstexpr)
        return program.source.error(
            value.place,
            fmt::format("parameter '{}' of kernel '{}' is {}declared tl.constexpr; write it in \"{}\"", name,
                        function.name(), isConstexpr ? "not " : "", isConstexpr ? "args" : "constexprs"));
    }
  return Status::ok();
}

Status loadKernels(Run::State &state) {
  std::map<std::string, compiler::KernelSource> files;
  Status problem;
  auto load = [&](const Step &step) -> Status {
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch)
      return Status::ok();
    const std::string key = launch->file + ":" + launch->kernel;
    if (!state.kernels.contains(key)) {
      if (!files.contains(launch->file)) {
        Expected<compiler::KernelSource> source = compiler::KernelSource::read(kernelPath(state.program, launch->file));
        if (!source.isOk())
          return state.at(step.place, 0, source.status());
        source->searchPaths = state.options.searchPaths;
        source->defines = state.options.defines;
        files.emplace(launch->file, std::move(*source));
      }
      Expected<jit::KernelFunction> function = state.jit.load(files.at(launch->file), launch->kernel);
      if (!function.isOk())
        return state.at(step.place, 0, function.status());
      state.kernels[key] = {files.at(launch->file), std::move(*function)};
    }
    return checkParameters(state.program, *launch, state.kernels.at(key).function);
  };
  for (const HostDeclaration &host : state.program.hosts)
    forEachStep(host.steps, [&](const Step &step) {
      if (problem.isOk())
        problem = load(step);
    });
  return problem;
}

Status makeStreams(Run::State &state) {
  state.ranks.resize(state.program.ranks);
  for (uint32_t id = 0; id < state.program.ranks; ++id) {
    runtime::Rank &rank = state.world->rank(id);
    for (const StreamDeclaration &declared : state.program.streams) {
      DITRON_ASSIGN_OR_RETURN(runtime::Stream stream, rank.createStream(declared.name, declared.priority));
      state.ranks[id].streams.emplace(declared.name, std::move(stream));
    }
    for (const std::string &name : state.program.events) {
      DITRON_ASSIGN_OR_RETURN(runtime::Event event, rank.createEvent(name));
      state.ranks[id].events.emplace(name, std::move(event));
    }
  }
  return Status::ok();
}

Status makeBuffers(Run::State &state) {
  state.memory = std::make_unique<Memory>(*state.world, state.options.dataSeed);
  // An address may be of a buffer that is declared later.
  for (const bool hasAddresses : {false, true})
    for (const BufferDeclaration &buffer : state.program.buffers) {
      if ((buffer.value.text.find(values::addressMark) != std::string::npos) != hasAddresses)
        continue;
      std::vector<std::string> perRank;
      for (uint32_t rank = 0; rank < state.program.ranks; ++rank) {
        Scope scope(rank, state.program.ranks, state.world->rank(rank).attributes().multiprocessors);
        for (const auto &[name, value] : state.program.variables)
          if (Expected<int64_t> number = scope.evaluate(value.text); number.isOk())
            scope.set(name, *number);
        Expected<std::string> text = scope.substitute(buffer.value.text);
        if (!text.isOk())
          return state.program.source.error(buffer.value.place, text.status().message());
        perRank.push_back(std::move(*text));
      }
      if (const Status declared = state.memory->declare(buffer, perRank); !declared.isOk())
        return state.program.source.error(buffer.value.place, declared.message(), declared.code());
    }
  return Status::ok();
}

Status makeCollective(Run::State &state, const OperatorDeclaration &declared) {
  runtime::World &world = *state.world;
  DITRON_ASSIGN_OR_RETURN(ops::Collective made, ops::Collective::create(world, state.jit, declared.collective));
  OperatorState op{&declared, std::move(made)};
  auto &kept = std::get<ops::Collective>(state.operators.emplace(declared.name, std::move(op)).first->second.op);
  for (uint32_t rank = 0; rank < state.program.ranks; ++rank)
    DITRON_RETURN_IF_ERROR(kept.prepare(world.rank(rank), declared.collective.maxElements));
  return Status::ok();
}

Status makeOperator(Run::State &state, const OperatorDeclaration &declared) {
  if (declared.kind == OperatorDeclaration::Kind::Collective)
    return makeCollective(state, declared);
  runtime::World &world = *state.world;
  OperatorState op;
  op.declaration = &declared;
  if (declared.kind == OperatorDeclaration::Kind::AllGatherGemm) {
    ops::AllGatherGemmOptions options;
    options.dtype = declared.dtype;
    options.maxRows = declared.m;
    options.depth = declared.k;
    DITRON_ASSIGN_OR_RETURN(op.op, ops::AllGatherGemm::create(world, state.jit, options));
  } else if (declared.kind == OperatorDeclaration::Kind::GemmAllReduce) {
    ops::GemmAllReduceOptions options;
    options.dtype = declared.dtype;
    options.maxRows = declared.m;
    options.columns = declared.n;
    options.depth = declared.k;
    DITRON_ASSIGN_OR_RETURN(op.op, ops::GemmAllReduce::create(world, state.jit, options));
  } else {
    ops::GemmReduceScatterOptions options;
    options.dtype = declared.dtype;
    options.maxRows = declared.m;
    options.columns = declared.n;
    options.depth = declared.k;
    DITRON_ASSIGN_OR_RETURN(op.op, ops::GemmReduceScatter::create(world, state.jit, options));
  }
  // Plans point to the operator: it is where it stays.
  OperatorState &kept = state.operators.emplace(declared.name, std::move(op)).first->second;
  for (uint32_t rank = 0; rank < state.program.ranks; ++rank) {
    if (auto *gather = std::get_if<ops::AllGatherGemm>(&kept.op))
      DITRON_RETURN_IF_ERROR(gather->prepare(world.rank(rank), declared.m, declared.n));
    else if (auto *allReduce = std::get_if<ops::GemmAllReduce>(&kept.op))
      DITRON_RETURN_IF_ERROR(allReduce->prepare(world.rank(rank), declared.m, declared.k));
    else
      DITRON_RETURN_IF_ERROR(
          std::get<ops::GemmReduceScatter>(kept.op).prepare(world.rank(rank), declared.m, declared.k));
  }
  return Status::ok();
}

bool isOn(const HostDeclaration &host, uint32_t rank) { return !host.ranks || host.ranks->contains(rank); }

/// How many host codes have a barrier of each name.
void countBarriers(Run::State &state) {
  for (const HostDeclaration &host : state.program.hosts)
    for (uint32_t rank = 0; rank < state.program.ranks; ++rank) {
      if (!isOn(host, rank))
        continue;
      ++state.ranks[rank].hosts;
      std::set<std::string> own;
      std::function<void(const std::vector<Step> &)> collect = [&](const std::vector<Step> &steps) {
        for (const Step &step : steps) {
          if (!step.isFor(rank))
            continue;
          if (const auto *barrier = std::get_if<BarrierStep>(&step.action))
            own.insert(barrier->name);
          if (const auto *repeat = std::get_if<RepeatStep>(&step.action))
            collect(repeat->steps);
        }
      };
      collect(host.steps);
      for (const std::string &name : own)
        ++state.barriers[name];
    }
}

} // namespace

Run::Run(std::unique_ptr<State> state) : state(std::move(state)) {}
Run::~Run() = default;

Expected<std::unique_ptr<Run>> Run::create(const Program &program, jit::Jit &jit, const RunOptions &options) {
  auto state = std::make_unique<State>(program, jit, options);
  DITRON_ASSIGN_OR_RETURN(state->world, runtime::World::local(program.ranks, options.target, options.world));
  DITRON_RETURN_IF_ERROR(loadKernels(*state));
  DITRON_RETURN_IF_ERROR(makeStreams(*state));
  DITRON_RETURN_IF_ERROR(makeBuffers(*state));
  for (const OperatorDeclaration &declared : program.operators)
    if (const Status made = makeOperator(*state, declared); !made.isOk())
      return program.source.error(declared.place, made.message(), made.code());
  countBarriers(*state);
  return std::unique_ptr<Run>(new Run(std::move(state)));
}

Outcome Run::execute() {
  std::vector<runtime::HostCode> codes;
  for (const HostDeclaration &host : state->program.hosts)
    for (uint32_t rank = 0; rank < state->program.ranks; ++rank)
      if (isOn(host, rank))
        codes.push_back({rank, host.name, [this, &host, rank] {
                           const Status status = HostRun(*state, host, rank).run();
                           if (!status.isOk()) {
                             state->noteError(status);
                             return status;
                           }
                           std::lock_guard lock(state->mutex);
                           --state->ranks[rank].hosts;
                           return status;
                         }});
  state->outcome.hasStarted = true;
  Status status = state->world->runHosts(codes);
  if (status.isOk())
    status = state->world->synchronize();
  if (!state->firstError.isOk())
    status = state->firstError; // others have waited in vain for the host code that ended with it
  if (status.code() == StatusCode::Deadlock)
    status = state->describeOpenCollective(status);
  state->outcome.status = state->program.source.withLine(status);
  return state->outcome;
}

runtime::World &Run::world() { return *state->world; }

Expected<NpyArray> Run::array(const std::string &name, uint32_t rank) const {
  DITRON_ASSIGN_OR_RETURN(const Part whole, state->memory->part(name, rank));
  return state->memory->download(whole);
}

std::vector<const compiler::KernelSource *> Run::sources() const {
  std::vector<const compiler::KernelSource *> sources;
  for (const auto &[name, loaded] : state->kernels)
    sources.push_back(&loaded.source);
  return sources;
}

std::string targetOf(const Program &program, const std::optional<std::string> &wanted) {
  return wanted ? *wanted : program.target.value_or("sim:sm_80");
}

} // namespace ditron::program
