//===- CudaKernel.h - A kernel that a GPU holds ready --------------------------------------------------------*- C++ -*-===//
//
// What a launch needs, looked up once.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_CUDAKERNEL_H
#define DITRON_RUNTIME_CUDA_CUDAKERNEL_H

#include "ditron/runtime/cuda/CudaDevice.h"

namespace ditron::cuda {

class CudaKernel final : public runtime::LoadedKernel {
public:
  CudaKernel(std::shared_ptr<CudaDevice> device, FunctionRef function, const runtime::Kernel &kernel)
      : device(std::move(device)), functionRef(function), kernelValue(kernel) {}

  FunctionRef function() const { return functionRef; }
  const runtime::Kernel &kernel() const { return kernelValue; }
  Status launch(runtime::StreamHandle stream, const runtime::LaunchConfig &config, void *const *values) override;

private:
  std::shared_ptr<CudaDevice> device;
  FunctionRef functionRef;
  runtime::Kernel kernelValue;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_CUDAKERNEL_H
