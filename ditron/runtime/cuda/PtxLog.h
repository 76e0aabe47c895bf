//===- PtxLog.h - What the driver's compiler says, in terms of the kernel's source ---------------------------*- C++ -*-===//
//
// The driver compiles PTX when a module is loaded, and its log counts lines of the PTX. The .loc directives above such a
// line tell which line of the kernel's source it belongs to.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_PTXLOG_H
#define DITRON_RUNTIME_CUDA_PTXLOG_H

#include <string>
#include <string_view>

namespace ditron::cuda {

/// The log with every "line N" followed by the source place and the text of that PTX line:
///   ptxas application ptx input, line 42; error : ...
///     at gemm.py:12:5, in the PTX: wgmma.fence.sync;
std::string explainPtxLog(std::string_view log, std::string_view ptx);

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_PTXLOG_H
