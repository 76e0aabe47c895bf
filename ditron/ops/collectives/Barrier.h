//===- Barrier.h - Ranks meet on their streams ---------------------------------------------------------*- C++ -*-===//
//
// What stands behind a barrier in a rank's stream begins when all ranks have come to theirs, and sees what they did before. One launch of
// one block, no host in it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_BARRIER_H
#define DITRON_OPS_COLLECTIVES_BARRIER_H

#include "ditron/ops/KernelLaunch.h"
#include "ditron/runtime/World.h"

#include <optional>

namespace ditron::ops {

class Barrier {
public:
  /// Of all ranks of the world, which may be a group of another one (World::group). Refuses worlds of several nodes.
  static Expected<Barrier> create(runtime::World &world, runtime::KernelProvider &kernels);

  /// Compiles and loads the kernel on a rank, before the first call on any.
  Status prepare(runtime::Rank &rank);
  /// Every rank must make the same number of calls, on one stream after the other. InvalidArgument in a capture without prepare().
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream);

private:
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  runtime::SymmetricBuffer words;
  std::vector<runtime::Buffer> counters; ///< Per rank of this process: calls so far.
  std::vector<std::optional<PreparedCall>> calls;
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_BARRIER_H
