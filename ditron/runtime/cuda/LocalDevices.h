//===- LocalDevices.h - All GPUs of a world in one process ---------------------------------------------------*- C++ -*-===//
//
// One device per rank, after a check that the GPUs can reach each other.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_LOCALDEVICES_H
#define DITRON_RUNTIME_CUDA_LOCALDEVICES_H

#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/support/TargetName.h"

namespace ditron::cuda {

/// Rank r gets GPU r; with `share`, GPU r modulo their number, so that protocols can be tried with more ranks than GPUs
/// (blocks of different ranks then compete for one GPU's multiprocessors).
/// `wanted`, unless it is empty, says instead which each rank gets.
Expected<std::vector<DeviceOrdinal>> chooseGpus(const CudaDriver &driver, uint32_t numRanks, bool share,
                                                const std::vector<int> &wanted = {});

/// Ok when kernels and copies of each of these GPUs can touch the memory of every other; the error names the first pair that
/// cannot.
Status checkPeerAccess(const CudaDriver &driver, const std::vector<DeviceOrdinal> &ordinals);

/// Ok when code for the target runs on the GPU.
Status checkTarget(const CudaDriver &driver, DeviceOrdinal ordinal, const TargetName &target);

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_LOCALDEVICES_H
