//===- Libdevice.h - NVIDIA's library of math functions ---------------------------------------------------*- C++ -*-===//
//
// Links libdevice.10.bc, which comes with the CUDA toolkit and with the wheel nvidia-cuda-nvcc, into modules that call its
// functions (__nv_*). Most kernels call none and need no toolkit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_LIBDEVICE_H
#define DITRON_TARGET_NVPTX_LIBDEVICE_H

#include "ditron/support/Status.h"

namespace llvm {
class Module;
}

namespace ditron::target {

/// Links what the module calls. NotFound, naming the functions and the places looked at, when it is needed and absent.
Status linkLibdevice(llvm::Module &module);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_LIBDEVICE_H
