//===- Assembler.h - NVIDIA's assembler as a program --------------------------------------------------------*- C++ -*-===//
//
// By default the driver of the machine that runs a kernel assembles its PTX. Where one wants the machine code earlier, or
// wants PTX checked on a machine that has no GPU, DITRON_PTXAS names a ptxas. The tests of PTX set it: then every kernel that
// they compile for CUDA goes through here, and one that ptxas refuses fails its test.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_ASSEMBLER_H
#define DITRON_TARGET_NVPTX_ASSEMBLER_H

#include "ditron/support/Status.h"

namespace ditron::target {

struct AssembledPtx {
  std::string cubin;
  std::string log; ///< Registers, spills and advice for each function, as `ptxas -v` prints them.
};

/// Runs `ptxas` (a path, or a name on PATH) for an architecture such as "sm_90a". NotFound when there is no such program,
/// Internal with what it says when it refuses the text.
Expected<AssembledPtx> assemblePtx(const std::string &ptxas, std::string_view architecture, const std::string &ptx);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_ASSEMBLER_H
