//===- ProgramLoop.h - The launch of kernels whose blocks run one program after the other ------------------*- C++ -*-===//
//
// Artifact::loopsOverPrograms: the kernel's blocks stay, and each runs its share of the programs that the caller asks for. Callers know
// nothing of it and give the grid of programs; every device makes of it what goes to the hardware, at the last moment, so that all ways of
// launching a kernel and graphs agree:
//
//   asked for {64, 32, 1}, and 132 multiprocessors hold a block each   ->   grid {132, 1, 1}, and 64, 32, 1 as values behind the parameters
//
// The order of values is parameters, the three extents, tensor maps, world view.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_PROGRAMLOOP_H
#define DITRON_RUNTIME_PROGRAMLOOP_H

#include "ditron/runtime/Kernel.h"

#include <vector>

namespace ditron::runtime {

/// What goes to the hardware for a launch; of kernels without such a loop, what was given. Values point into it: it stays where it is until
/// they have been read.
class HardwareLaunch {
public:
  /// `values`: the artifact's parameters, its tensor maps, the world view. `resident`: blocks of the kernel that the device holds at once.
  HardwareLaunch(const Artifact &artifact, const std::array<uint32_t, 3> &programs, void *const *values,
                 uint32_t resident);
  HardwareLaunch(const HardwareLaunch &) = delete;
  HardwareLaunch &operator=(const HardwareLaunch &) = delete;

  const std::array<uint32_t, 3> &grid() const { return blocks; }
  void **values() const { return given; }

private:
  std::array<uint32_t, 3> programs, blocks;
  std::vector<void *> all;
  void **given;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_PROGRAMLOOP_H
