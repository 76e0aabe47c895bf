//===- CudaKernel.h - A kernel that a GPU holds ready --------------------------------------------------------*- C++ -*-===//
//
// What a launch needs, looked up once.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_CUDAKERNEL_H
#define DITRON_RUNTIME_CUDA_CUDAKERNEL_H

#include "ditron/runtime/cuda/CudaDevice.h"

#include <cstring>

namespace ditron::cuda {

/// The values of a launch, for one that comes later.
struct KeptValues {
  struct alignas(64) Value {
    std::byte bytes[sizeof(runtime::TensorMap::bytes)];
  };
  std::vector<Value> storage;
  std::vector<void *> pointers;

  static std::shared_ptr<const KeptValues> of(const Artifact &artifact, void *const *values) {
    auto kept = std::make_shared<KeptValues>();
    const size_t parameters = artifact.parameters.size(), count = parameters + artifact.tensorMaps.size() + 1;
    kept->storage.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t bytes = i < parameters  ? artifact.parameters[i].bytes
                           : i + 1 < count ? sizeof(runtime::TensorMap::bytes)
                                           : sizeof(void *);
      std::memcpy(kept->storage[i].bytes, values[i], bytes);
      kept->pointers.push_back(kept->storage[i].bytes);
    }
    return kept;
  }
};

class CudaKernel final : public runtime::LoadedKernel {
public:
  CudaKernel(std::shared_ptr<CudaDevice> device, const runtime::Kernel &kernel)
      : device(std::move(device)), kernelValue(kernel) {}

  /// Null as long as it is not loaded, which GPUs that were busy may have put off.
  FunctionRef function() const;
  const runtime::Kernel &kernel() const { return kernelValue; }
  Status launch(runtime::StreamHandle stream, const runtime::LaunchConfig &config, void *const *values) override;
  Expected<runtime::KernelResources> resources() override;

private:
  std::shared_ptr<CudaDevice> device;
  runtime::Kernel kernelValue;
  mutable std::atomic<FunctionRef> functionRef = nullptr;
  mutable std::atomic<bool> mayWait = true; ///< Once it is loaded.
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_CUDAKERNEL_H
