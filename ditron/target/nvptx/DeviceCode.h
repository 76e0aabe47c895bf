//===- DeviceCode.h - Calls of device code that is written in C ---------------------------------------------*- C++ -*-===//
//
// Kernels call functions of ditron/devicelib by name; before optimisation their code is linked in, as libdevice is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_DEVICECODE_H
#define DITRON_TARGET_NVPTX_DEVICECODE_H

#include "ditron/support/Status.h"
#include "ditron/target/common/Emitter.h"

namespace llvm {
class Module;
}

namespace ditron::target {

/// Calls a function without result; declares it at its first use.
void callDevice(Emitter &e, llvm::StringRef function, mlir::ValueRange arguments);
/// Links the definitions of what the module calls; they become private to it.
Status linkDeviceCode(llvm::Module &module);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_DEVICECODE_H
