//===- PeerProbe.h - Do two GPUs really reach each other? ----------------------------------------------------*- C++ -*-===//
//
// Drivers have said yes where an IOMMU or a switch then lost or garbled the data. The probe does what operators do: one GPU
// stores a pattern into the other's memory and releases a signal; a kernel there waits for the signal and verifies every
// word; the first reads the pattern back through the link; the copy engine moves a pattern the same way; and a remote atomic
// counts. A GPU that such traffic wedges takes its process with it, so the probe belongs into a child process with a time
// limit (`ditron doctor` does that).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_PEERPROBE_H
#define DITRON_RUNTIME_CUDA_PEERPROBE_H

#include "ditron/runtime/cuda/CudaDriver.h"

namespace ditron::cuda {

struct PeerProbeResult {
  double copyGigabytesPerSecond = 0; ///< By the copy engine of `from`.
};

/// Probes the direction from -> to. The error says which kind of access failed and how.
Expected<PeerProbeResult> probePeers(std::shared_ptr<const CudaDriver> driver, DeviceOrdinal from, DeviceOrdinal to);

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_PEERPROBE_H
