//===- KernelLaunch.h - Get a library kernel for its arguments and launch it ----------------------------------*- C++ -*-===//
//
// The one way in which operators run device code: name the embedded kernel and its arguments; the variant for them comes from
// the program's KernelProvider, is loaded, and then launched on streams. An operator makes all calls it needs before it
// enqueues the first.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_KERNELLAUNCH_H
#define DITRON_OPS_KERNELLAUNCH_H

#include "ditron/runtime/KernelProvider.h"
#include "ditron/runtime/PreparedLaunch.h"
#include "ditron/runtime/World.h"

#include <array>
#include <optional>
#include <span>

namespace ditron::ops {

/// A kernel file of the kernels/ folder, as text in this library.
struct EmbeddedSource {
  std::string_view path; ///< Where it was at build time, for diagnostics.
  std::string_view text; ///< Empty when there is no such file.
};
/// The file kernels/<name>.py; kernels/<name>/<name>.py where the name has no '/'.
EmbeddedSource kernelSource(std::string_view name);
/// The names of all files.
std::span<const std::string_view> kernelSourceNames();
/// A kernel of a file, by a name as kernelSource has it, with all files that the file may import. Its texts live as long as the
/// process; NotFound when there is no such file.
Expected<runtime::KernelReference> libraryKernel(std::string_view source, std::string_view kernel);

/// An argument that a kernel may do without.
inline runtime::Argument orNone(bool isGiven, runtime::Pointer pointer) {
  return isGiven ? runtime::Argument(pointer) : runtime::Argument(runtime::None());
}
inline runtime::Argument orNone(runtime::Pointer pointer) { return orNone(pointer.address != nullptr, pointer); }
inline runtime::Argument orNone(const std::optional<runtime::Pointer> &pointer) {
  return orNone(pointer.value_or(runtime::Pointer()));
}

struct KernelCall {
  std::string_view source; ///< As kernelSource names it.
  std::string_view kernel;
  std::vector<std::pair<std::string, runtime::Argument>> arguments; ///< By parameter name, compile-time ones included.
  std::array<uint32_t, 3> grid = {1, 1, 1};
  uint32_t numWarps = 4;
  uint32_t numStages = 1;
  uint32_t residentBlocks = 1; ///< As of runtime::LaunchOptions.
};

/// A call whose variant is there and loaded and whose arguments are bound: enqueue() only launches, as often as wanted. Copies share
/// the launch.
class PreparedCall {
public:
  PreparedCall() = default;
  static Expected<PreparedCall> create(runtime::KernelProvider &kernels, runtime::Rank &rank, const KernelCall &call);

  Status enqueue(runtime::Stream &stream) const { return launch.enqueue(stream); }
  /// Memory that the kernel works in lives as long as the call and its copies.
  void keep(std::shared_ptr<const void> memory) { workspace = std::move(memory); }
  void keep(std::vector<runtime::Buffer> buffers) {
    keep(std::make_shared<std::vector<runtime::Buffer>>(std::move(buffers)));
  }
  const runtime::PreparedLaunch &prepared() const { return launch; }
  void setAgreedCall(runtime::AgreedCall call) { launch.setAgreedCall(std::move(call)); }
  const runtime::Kernel &kernel() const { return launch.kernel(); }
  /// Another address for a pointer, as PreparedLaunch's.
  Expected<uint32_t> pointerParameter(std::string_view name) const { return launch.pointerParameter(name); }
  Status setPointer(uint32_t parameter, runtime::Pointer pointer) { return launch.setPointer(parameter, pointer.address); }
  /// Another value for a parameter of type i64, as PreparedLaunch's.
  Expected<uint32_t> integerParameter(std::string_view name) const { return launch.integerParameter(name); }
  Status setInteger(uint32_t parameter, int64_t value) { return launch.setInteger(parameter, value); }

private:
  runtime::PreparedLaunch launch;
  std::shared_ptr<const void> workspace;
};

} // namespace ditron::ops
#endif // DITRON_OPS_KERNELLAUNCH_H
