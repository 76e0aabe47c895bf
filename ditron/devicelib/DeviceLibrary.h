//===- DeviceLibrary.h - Device code that is written in C -------------------------------------------------*- C++ -*-===//
//
// The files devicelib/*.c, compiled to textual LLVM IR when Ditron is built, and embedded. A target links the ones that a kernel
// calls; their functions are named ditron_device_*.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DEVICELIB_DEVICELIBRARY_H
#define DITRON_DEVICELIB_DEVICELIBRARY_H

#include <string_view>

namespace ditron {

struct DeviceSource {
  std::string_view path; ///< Where it was at build time.
  std::string_view text; ///< LLVM IR; empty when there is no such file.
};
/// The file devicelib/<name>.c for NVIDIA GPUs.
DeviceSource nvptxDeviceSource(std::string_view name);

} // namespace ditron

#endif // DITRON_DEVICELIB_DEVICELIBRARY_H
