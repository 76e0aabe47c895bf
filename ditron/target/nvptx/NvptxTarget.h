//===- NvptxTarget.h - NVIDIA GPUs as targets -------------------------------------------------------------*- C++ -*-===//
//
// Offers the leaves of the `cuda` family of targets: "cuda:sm_80", "cuda:sm_89", "cuda:sm_90a" and "cuda:sm_100a", all with
// mma.sync and cp.async.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_NVPTXTARGET_H
#define DITRON_TARGET_NVPTX_NVPTXTARGET_H

namespace ditron::target {

/// Makes "cuda:..." known to createTargetInfo. May be called again.
void registerNvptxTarget();

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_NVPTXTARGET_H
