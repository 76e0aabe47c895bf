//===- Kernel.h - Compiled kernels that can be launched -------------------------------------------------*- C++ -*-===//
//
// A Kernel is an Artifact (what was compiled and what a launch has to know) together with a ModuleImage (the code in
// the form that a device loads): for simulated devices the address of the linked entry function and whatever keeps it
// mapped; for GPUs the text of the module. It belongs to no device; devices load it when it is first launched on them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_KERNEL_H
#define DITRON_RUNTIME_KERNEL_H

#include "ditron/runtime/Argument.h"
#include "ditron/runtime/CallAgreement.h"

#include <algorithm>
#include <array>

namespace ditron::runtime {

/// Entry point of a kernel in this process; arguments[i] points at the i-th parameter's value, the world view last.
using HostEntry = void (*)(void **arguments);

/// Code in loadable form.
struct ModuleImage {
  HostEntry hostEntry = nullptr; ///< Simulated devices.
  std::shared_ptr<void> owner;   ///< Keeps hostEntry's code mapped; held by every launch until it has run.
  std::string code;              ///< GPUs: PTX or an object.
};

/// How many blocks run.
struct LaunchConfig {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  bool cooperative = false; ///< All blocks must be resident at once; refused when they cannot be.
  AgreedCall agreed = {};   ///< What it begins.
};

class Kernel {
public:
  Kernel() = default;

  /// Checks that the image holds what the artifact's target needs.
  static Expected<Kernel> create(Artifact artifact, ModuleImage image);

  bool isValid() const { return storage != nullptr; }
  const Artifact &artifact() const { return storage->artifact; }
  const ModuleImage &image() const { return storage->image; }
  const std::string &name() const { return storage->artifact.kernel; }
  /// The same for all copies of a Kernel and for no other living one: devices know by it what they have loaded.
  const void *identity() const { return storage.get(); }
  uint32_t threadsPerBlock() const {
    return std::max(artifact().numWarps, artifact().launchWarps) * artifact().threadsPerWarp;
  }

  /// Checks and packs the arguments of one launch (without the hidden one).
  Expected<PackedArguments> pack(std::span<const Argument> arguments) const;

private:
  struct Storage {
    Artifact artifact;
    ModuleImage image;
  };
  std::shared_ptr<const Storage> storage;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_KERNEL_H
