//===- Libdevice.h - NVIDIA's library of math functions ---------------------------------------------------*- C++ -*-===//
//
// Links libdevice.10.bc, which comes with the CUDA toolkit and with the wheel nvidia-cuda-nvcc, into modules that call its
// functions (__nv_*). Most kernels call none and need no toolkit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_LIBDEVICE_H
#define DITRON_TARGET_NVPTX_LIBDEVICE_H

#include "ditron/support/Status.h"

#include <string_view>

namespace llvm {
class Module;
}

namespace ditron::target {

/// Links what the module calls, from `file` or, when that is empty, from wherever the library is found. NotFound, naming the functions and the places looked at, when it is needed and absent.
Status linkLibdevice(llvm::Module &module, std::string_view file);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_LIBDEVICE_H
