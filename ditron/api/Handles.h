//===- Handles.h - What is behind the handles of ditron.h -----------------------------------------------------*- C++ -*-===//
//
// Every handle owns a share of the context's state, so that handles may be destroyed in any order. A world that ended with an
// error and was begun again (ditron_context_restart) is another one: what was made from the first keeps it until it is
// destroyed, and says so when it is used.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_API_HANDLES_H
#define DITRON_API_HANDLES_H

#include "ditron/api/Boundary.h"
#include "ditron/api/KernelTemplate.h"
#include "ditron/package/PackageProvider.h"
#include "ditron/runtime/World.h"

#include <map>
#include <mutex>
#include <thread>

namespace ditron::api {

/// Memory of the caller's that a rank's kernels may touch.
struct AdoptedRange {
  uint64_t bytes = 0;
  std::string name;
  uint32_t rank = 0;
  uint32_t owners = 0; ///< Handles of the range and of parts of it.
};

class Context : public std::enable_shared_from_this<Context> {
public:
  static Expected<std::shared_ptr<Context>> create(const ditron_context_options_t &options);

  const std::shared_ptr<runtime::World> &world() const { return worldValue; }
  const std::string &target() const { return worldValue->target(); }
  bool isSimulated() const { return worldValue->machine() != nullptr; }
  /// A kernel of a source: from the packages if they have it, else from the compiler, as the policy says.
  Expected<std::shared_ptr<KernelTemplate>> load(const compiler::KernelSource &source, std::string_view kernel);
  /// A kernel of the packages.
  Expected<std::shared_ptr<KernelTemplate>> find(std::string_view source, std::string_view kernel) const;
  /// Where operators take their kernels from.
  Expected<runtime::KernelProvider *> kernels();
  /// The context that this one and its other groups were made from; itself when it is no group.
  const Context &root() const { return parent ? parent->root() : *this; }
  /// Ok, or an error when the calling thread may not use the context.
  Status checkThread() const;
  /// Ok, or an error that names the rank when this process has none of that number.
  Expected<runtime::Rank *> rank(uint32_t rank) const;

  Status restart();
  Expected<std::shared_ptr<Context>> group(const std::vector<uint32_t> &ranks);
  /// The same ranks with symmetric memory of the caller's.
  Expected<std::shared_ptr<Context>> over(runtime::AdoptedHeapOptions heap);
  Status adopt(uint32_t rank, void *address, uint64_t bytes, std::string_view name);
  Status release(void *address, uint64_t bytes);

private:
  Expected<std::shared_ptr<runtime::World>> makeWorld() const;
  /// A context that shares everything with this one but the world.
  std::shared_ptr<Context> child();
  void giveWorld(Context &child, std::unique_ptr<runtime::World> world);
  /// The adopted range that the bytes lie in.
  std::map<uintptr_t, AdoptedRange>::iterator adoptedAround(void *address, uint64_t bytes);
  Status openPackages(const ditron_context_options_t &options);
  Expected<std::shared_ptr<Compiler>> compiler();

  std::shared_ptr<Context> parent; ///< Of a group; its compiler and packages are the parent's.
  std::string targetText;
  uint32_t numRanks = 1;
  bool fromEnvironment = false;
  runtime::WorldOptions worldOptions;
  ditron_kernel_policy_t policy = DITRON_KERNELS_DEFAULT;
  MessageSink messages;
  std::thread::id maker;
  std::shared_ptr<void> heapHold; ///< Over a heap of the caller's: gives its pieces back, after the world.
  std::shared_ptr<runtime::World> worldValue;

  std::mutex mutex; ///< For all below.
  std::shared_ptr<Compiler> compilerValue;
  std::shared_ptr<package::PackageProvider> packages; ///< Null without packages; set once.
  std::map<uintptr_t, AdoptedRange> adopted;          ///< By address.
};

} // namespace ditron::api

struct ditron_context {
  std::shared_ptr<ditron::api::Context> state;
};

struct ditron_stream {
  std::shared_ptr<ditron::api::Context> context;
  std::shared_ptr<ditron::runtime::World> world;
  ditron::runtime::Stream stream;
};

struct ditron_event {
  std::shared_ptr<ditron::api::Context> context;
  std::shared_ptr<ditron::runtime::World> world;
  ditron::runtime::Event event;
};

struct ditron_graph {
  std::shared_ptr<ditron::api::Context> context;
  std::shared_ptr<ditron::runtime::World> world;
  ditron::runtime::Graph graph;
};

struct ditron_kernel {
  std::shared_ptr<ditron::api::Context> context;
  std::shared_ptr<ditron::api::KernelTemplate> kernel;
};

namespace ditron::api {

/// Ok, or why the calling thread may not use what belongs to this world of the context.
Status checkUsable(const Context &context, const std::shared_ptr<runtime::World> &world, std::string_view what);

/// checkGiven and checkUsable of a stream, an event, a graph.
template <typename Handle> Status checkHandle(const Handle *handle, std::string_view what) {
  DITRON_RETURN_IF_ERROR(checkGiven(handle, what));
  return checkUsable(*handle->context, handle->world, what);
}

/// Ok, or an error when the object and the stream are of contexts that have nothing to do with each other: their events and memory are
/// not each other's.
Status checkTogether(const Context &context, std::string_view what, const ditron_stream &stream);

} // namespace ditron::api
#endif // DITRON_API_HANDLES_H
