//===- Context.cpp - Ranks and a source of kernels ----------------------------------------------------------------===//
#include "ditron/api/Handles.h"
#include "ditron/api/PackagedKernels.h"
#include "ditron/sim/engine/TimeLimit.h"

#include <fmt/format.h>

namespace ditron::api {

namespace {

Status checkPolicy(const ditron_context_options_t &options) {
  switch (options.policy) {
  case DITRON_KERNELS_DEFAULT:
  case DITRON_KERNELS_AOT_ONLY: return Status::ok();
  case DITRON_KERNELS_JIT:
  case DITRON_KERNELS_JIT_WARN:
    return hasCompiler()
               ? Status::ok()
               : unsupported("the policy asks for the compiler, and libditron_runtime has none: link libditron, or "
                             "take DITRON_KERNELS_AOT_ONLY");
  }
  return invalidArgument(
      fmt::format("policy {}; accepted are the members of ditron_kernel_policy_t", static_cast<int>(options.policy)));
}

runtime::WorldOptions worldOptionsOf(const ditron_context_options_t &options) {
  runtime::WorldOptions world;
  world.heapBytes = options.heap_bytes;
  world.timeLimitSeconds = options.time_limit_seconds;
  world.seed = options.seed;
  world.ranksPerNode = options.ranks_per_node;
  if (options.multiprocessors)
    world.sms = options.multiprocessors;
  world.checkBounds = !options.no_bounds_check;
  world.callGraphs = !options.no_call_graphs;
  world.checkRaces = !options.no_race_check;
  return world;
}

MessageSink messageSinkOf(const ditron_context_options_t &options) {
  std::function<void(const std::string &)> line = [](const std::string &text) {
    fmt::print(stderr, "ditron: {}\n", text);
  };
  if (options.message)
    line = [send = options.message, user = options.message_user](const std::string &text) { send(user, text.c_str()); };
  return [line = std::move(line)](std::string_view lines) {
    while (!lines.empty()) {
      const size_t end = lines.find('\n');
      line(std::string(lines.substr(0, end)));
      lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
    }
  };
}

} // namespace

Expected<std::shared_ptr<Context>> Context::create(const ditron_context_options_t &options) {
  DITRON_RETURN_IF_ERROR(checkPolicy(options));
  auto context = std::make_shared<Context>();
  context->targetText = options.target ? options.target : "";
  context->numRanks = options.ranks ? options.ranks : 1;
  context->fromEnvironment = options.from_environment;
  context->worldOptions = worldOptionsOf(options);
  if (options.gpus)
    context->worldOptions.gpus.assign(options.gpus, options.gpus + context->numRanks);
  context->policy = options.policy != DITRON_KERNELS_DEFAULT ? options.policy
                    : hasCompiler()                          ? DITRON_KERNELS_JIT
                                                             : DITRON_KERNELS_AOT_ONLY;
  context->messages = messageSinkOf(options);
  context->maker = std::this_thread::get_id();
  DITRON_ASSIGN_OR_RETURN(context->worldValue, context->makeWorld());
  if (options.package_count)
    DITRON_RETURN_IF_ERROR(context->openPackages(options));
  return context;
}

Expected<std::shared_ptr<runtime::World>> Context::makeWorld() const {
  auto make = [&](std::string_view target) {
    return fromEnvironment ? runtime::World::fromEnvironment(target, worldOptions)
                           : runtime::World::local(numRanks, target, worldOptions);
  };
  // Without a target: GPUs if there are any.
  Expected<std::unique_ptr<runtime::World>> world = make(targetText.empty() ? "cuda" : targetText);
  if (!world.isOk() && targetText.empty() && !fromEnvironment)
    world = make("sim");
  DITRON_RETURN_IF_ERROR(world.status());
  return std::shared_ptr<runtime::World>(std::move(world).value());
}

std::shared_ptr<Context> Context::child() {
  auto made = std::make_shared<Context>();
  made->parent = shared_from_this();
  made->targetText = targetText;
  made->policy = policy;
  made->messages = messages;
  made->maker = maker;
  made->packages = packages;
  return made;
}

void Context::giveWorld(Context &child, std::unique_ptr<runtime::World> world) {
  // The world of the parent outlives the child's, whatever becomes of the handles.
  child.worldValue =
      std::shared_ptr<runtime::World>(world.release(), [whole = worldValue](runtime::World *own) { delete own; });
  child.numRanks = child.worldValue->numRanks();
}

Expected<std::shared_ptr<Context>> Context::group(const std::vector<uint32_t> &ranks) {
  std::shared_ptr<Context> group = child();
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<runtime::World> made, worldValue->group(ranks));
  giveWorld(*group, std::move(made));
  return group;
}

Expected<std::shared_ptr<Context>> Context::over(runtime::AdoptedHeapOptions heap) {
  // Whether the pieces can be a heap is known before the simulator learns of them.
  DITRON_RETURN_IF_ERROR(runtime::AdoptedHeap::create(heap, worldValue->numRanks()).status());
  auto adopted = std::make_shared<std::vector<void *>>();
  std::shared_ptr<void> hold(nullptr, [self = shared_from_this(), adopted, bytes = heap.bytes](void *) {
    for (void *piece : *adopted)
      (void)self->release(piece, bytes);
  });
  for (uint32_t id : worldValue->localRanks()) {
    DITRON_RETURN_IF_ERROR(adopt(id, heap.addresses[id], heap.bytes, heap.name));
    adopted->push_back(heap.addresses[id]);
  }
  std::shared_ptr<Context> over = child();
  over->heapHold = std::move(hold);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<runtime::World> made, worldValue->over(std::move(heap)));
  giveWorld(*over, std::move(made));
  return over;
}

Expected<std::shared_ptr<Compiler>> Context::compiler() {
  if (parent)
    return parent->compiler();
  if (policy == DITRON_KERNELS_AOT_ONLY && hasCompiler())
    return unsupported("the context takes kernels from packages only (DITRON_KERNELS_AOT_ONLY)");
  std::lock_guard lock(mutex);
  if (!compilerValue) {
    DITRON_ASSIGN_OR_RETURN(compilerValue, makeCompiler(target(), messages, policy == DITRON_KERNELS_JIT_WARN));
  }
  return compilerValue;
}

Status Context::openPackages(const ditron_context_options_t &options) {
  DITRON_RETURN_IF_ERROR(checkGiven(options.packages, "the list of packages"));
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < options.package_count; ++i) {
    DITRON_RETURN_IF_ERROR(checkGiven(options.packages[i], "the path of a package"));
    paths.push_back(options.packages[i]);
  }
  package::PackageOptions choice;
  choice.target = target();
  if (policy != DITRON_KERNELS_AOT_ONLY) {
    DITRON_ASSIGN_OR_RETURN(const std::shared_ptr<Compiler> fallback, compiler());
    choice.policy = policy == DITRON_KERNELS_JIT_WARN ? package::Policy::JitWarn : package::Policy::Jit;
    choice.fallback = &fallback->provider();
  }
  choice.warn = messages;
  DITRON_ASSIGN_OR_RETURN(packages, package::PackageProvider::open(paths, choice));
  return Status::ok();
}

Expected<std::shared_ptr<KernelTemplate>> Context::load(const compiler::KernelSource &source, std::string_view kernel) {
  // A text that imports modules which only the caller knows is not what a package was built from.
  if (packages && source.imported.empty()) {
    const std::string_view file = std::string_view(source.path).substr(source.path.rfind('/') + 1);
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<KernelTemplate> found,
                            findPackaged(packages, file, source.path, source.text, kernel));
    if (found)
      return found;
  }
  if (policy == DITRON_KERNELS_AOT_ONLY)
    return notFound(
        fmt::format("kernel '{}' of '{}' is in no package of the context, whose policy is DITRON_KERNELS_AOT_ONLY; "
                    "`ditron build '{}:{}' --signature ... --target {} -o app.ditron` makes one",
                    kernel, source.path, source.path, kernel, target()));
  DITRON_ASSIGN_OR_RETURN(const std::shared_ptr<Compiler> own, compiler());
  return own->load(source, kernel);
}

Expected<std::shared_ptr<KernelTemplate>> Context::find(std::string_view source, std::string_view kernel) const {
  if (!packages)
    return notFound(fmt::format("kernel '{}': the context has no packages", kernel));
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<KernelTemplate> found, findPackaged(packages, source, {}, {}, kernel));
  if (!found)
    return notFound(fmt::format("kernel '{}'{} is in no package of the context", kernel,
                                source.empty() ? "" : fmt::format(" of '{}'", source)));
  return found;
}

Expected<runtime::KernelProvider *> Context::kernels() {
  if (packages)
    return packages.get();
  DITRON_ASSIGN_OR_RETURN(const std::shared_ptr<Compiler> found, compiler());
  return &found->provider();
}

Status Context::checkThread() const {
  if (!isSimulated() || std::this_thread::get_id() == maker)
    return Status::ok();
  return invalidArgument("a context of simulated GPUs is used by the thread that made it; make one for this thread");
}

Expected<runtime::Rank *> Context::rank(uint32_t rank) const {
  if (rank >= worldValue->numRanks())
    return invalidArgument(
        fmt::format("rank {} does not exist; accepted are 0 to {}", rank, worldValue->numRanks() - 1));
  if (!worldValue->isLocal(rank))
    return invalidArgument(
        fmt::format("rank {} is of another process; this one has rank {}", rank, worldValue->localRanks().front()));
  return &worldValue->rank(rank);
}

Status Context::restart() {
  if (parent)
    return unsupported(
        "a group begins again with the context that it was made from: restart that, and make the group again");
  if (!isSimulated())
    return unsupported("real GPUs that failed cannot be used again by this process");
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<runtime::World> fresh, makeWorld());
  std::lock_guard lock(mutex);
  for (const auto &[begin, range] : adopted)
    DITRON_RETURN_IF_ERROR(
        fresh->rank(range.rank).device()->adoptMemory(reinterpret_cast<void *>(begin), range.bytes, range.name, 1));
  worldValue = std::move(fresh);
  return Status::ok();
}

std::map<uintptr_t, AdoptedRange>::iterator Context::adoptedAround(void *address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  auto found = adopted.upper_bound(begin);
  if (found == adopted.begin())
    return adopted.end();
  --found;
  const uint64_t before = begin - found->first, room = found->second.bytes;
  return before <= room && bytes <= room - before ? found : adopted.end();
}

Status Context::adopt(uint32_t rankId, void *address, uint64_t bytes, std::string_view name) {
  DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, rank(rankId));
  if (parent)
    return parent->adopt(owner->device()->rank(), address, bytes, name);
  std::lock_guard lock(mutex);
  if (const auto found = adoptedAround(address, bytes); found != adopted.end()) {
    ++found->second.owners;
    return Status::ok();
  }
  DITRON_RETURN_IF_ERROR(owner->device()->adoptMemory(address, bytes, name, 1));
  adopted[reinterpret_cast<uintptr_t>(address)] = {bytes, std::string(name), rankId, 1};
  return Status::ok();
}

Status Context::release(void *address, uint64_t bytes) {
  if (parent)
    return parent->release(address, bytes);
  std::lock_guard lock(mutex);
  const auto found = adoptedAround(address, bytes);
  if (found == adopted.end() || --found->second.owners > 0)
    return Status::ok();
  const auto [begin, range] = *found;
  adopted.erase(found);
  return worldValue->rank(range.rank).device()->releaseMemory(reinterpret_cast<void *>(begin));
}

Status checkTogether(const Context &context, std::string_view what, const ditron_stream &stream) {
  if (&context.root() == &stream.context->root())
    return Status::ok();
  return invalidArgument(fmt::format("the {} and the stream are of different contexts", what));
}

Status checkUsable(const Context &context, const std::shared_ptr<runtime::World> &world, std::string_view what) {
  DITRON_RETURN_IF_ERROR(context.checkThread());
  if (world != context.world())
    return invalidArgument(
        fmt::format("the {} is of the run that ended before ditron_context_restart; make another", what));
  return Status::ok();
}

} // namespace ditron::api

using namespace ditron;
using namespace ditron::api;

extern "C" {

ditron_status_t ditron_context_create(const ditron_context_options_t *options, ditron_context_h *context) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(const ditron_context_options_t complete, readStruct(options, "ditron_context_options_t"));
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<Context> made, Context::create(complete));
    *context = new ditron_context{std::move(made)};
    return Status::ok();
  });
}

void ditron_context_destroy(ditron_context_h context) { delete context; }

const char *ditron_context_target(ditron_context_h context) {
  return context ? context->state->target().c_str() : nullptr;
}
uint32_t ditron_context_ranks(ditron_context_h context) { return context ? context->state->world()->numRanks() : 0; }

int ditron_context_is_local(ditron_context_h context, uint32_t rank) {
  return context && rank < context->state->world()->numRanks() && context->state->world()->isLocal(rank);
}

uint32_t ditron_context_first_rank(ditron_context_h context) {
  return context ? context->state->world()->localRanks().front() : 0;
}

void ditron_interrupt(int signal) { sim::TimeLimit::interrupt(signal); }

ditron_status_t ditron_context_synchronize(ditron_context_h context) {
  const sim::TimeLimit::Call call;
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    return context->state->world()->synchronize();
  });
}

ditron_status_t ditron_context_check(ditron_context_h context) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    return context->state->world()->status();
  });
}

ditron_status_t ditron_context_restart(ditron_context_h context) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    return context->state->restart();
  });
}

ditron_status_t ditron_context_group(ditron_context_h context, const uint32_t *ranks, uint32_t count,
                                     ditron_context_h *group) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(ranks, "the list of ranks"));
    DITRON_RETURN_IF_ERROR(checkGiven(group, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<Context> made, context->state->group({ranks, ranks + count}));
    *group = new ditron_context{std::move(made)};
    return Status::ok();
  });
}

ditron_status_t ditron_context_adopt_symmetric(ditron_context_h context, const ditron_symmetric_heap_t *heap,
                                               ditron_context_h *adopted) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_RETURN_IF_ERROR(checkGiven(heap, "ditron_symmetric_heap_t"));
    DITRON_RETURN_IF_ERROR(checkGiven(adopted, "the place of the result"));
    DITRON_RETURN_IF_ERROR(context->state->checkThread());
    DITRON_ASSIGN_OR_RETURN(const ditron_symmetric_heap_t given, readStruct(heap, "ditron_symmetric_heap_t"));
    DITRON_RETURN_IF_ERROR(checkGiven(given.addresses, "the table of addresses"));
    runtime::AdoptedHeapOptions options;
    options.addresses.assign(given.addresses, given.addresses + given.count);
    options.bytes = given.bytes;
    options.reservedBytes = given.reserved_bytes;
    if (given.name)
      options.name = given.name;
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<Context> made, context->state->over(std::move(options)));
    *adopted = new ditron_context{std::move(made)};
    return Status::ok();
  });
}

ditron_status_t ditron_context_device(ditron_context_h context, uint32_t rank, ditron_device_info_t *info) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * found, context->state->rank(rank));
    const runtime::DeviceAttributes &attributes = found->attributes();
    ditron_device_info_t result = {};
    result.name = attributes.name.c_str();
    result.multiprocessors = attributes.multiprocessors;
    result.warp_size = attributes.warpSize;
    result.shared_bytes_per_block = attributes.sharedBytesPerBlock;
    result.max_threads_per_block = attributes.maxThreadsPerBlock;
    return writeStruct(info, result, "ditron_device_info_t");
  });
}

} // extern "C"
