//===- KernelCache.h - Kernels loaded on one GPU ---------------------------------------------------------------*- C++ -*-===//
//
// The driver compiles a kernel's PTX when its module is loaded; this keeps the result for as long as the GPU is in use. All
// ranks on one GPU share it: loading may have to wait until the GPU is idle, which it never is while a kernel of another rank
// waits for what is about to be launched. For the same reason everything is loaded to the last byte here, not lazily at the
// launch, and the memory for what its threads keep on their stacks is there before.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_KERNELCACHE_H
#define DITRON_RUNTIME_CUDA_KERNELCACHE_H

#include "ditron/runtime/Kernel.h"
#include "ditron/runtime/cuda/CudaDriver.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace ditron::cuda {

/// Whether code reads words of which others may change the value meanwhile: what a loop that waits for another kernel cannot do
/// without. Volatile and ordered loads and atomics count; polls of mbarriers do not, which only the block's own copies complete.
bool readsWhatOthersWrite(std::string_view ptx);

/// The code with registers for so many blocks of its kernel on a multiprocessor; none where it says already how many there shall be.
std::optional<std::string> withResidentBlocks(std::string_view ptx, uint32_t blocks);

class KernelCache {
public:
  KernelCache(std::shared_ptr<const CudaDriver> driver, Context context, std::string gpuName)
      : driver(std::move(driver)), context(context), gpuName(std::move(gpuName)) {}
  /// Unloads, unless abandoned.
  ~KernelCache();

  /// The loaded entry function; loads it when it is new, which `isNew` tells. The context must be current.
  Expected<FunctionRef> function(const runtime::Kernel &kernel, bool *isNew = nullptr);
  /// The same if it is loaded already, or null.
  FunctionRef find(const runtime::Kernel &kernel);
  /// The same if it may be launched as well: it is on the other GPUs, too, where it would not get any more once it runs here.
  FunctionRef findReady(const runtime::Kernel &kernel);
  void setReady(const runtime::Kernel &kernel);
  /// Whether the kernel, which is loaded, may run until others have written something; else it ends by itself.
  bool mayWait(const runtime::Kernel &kernel);
  /// Blocks of a loaded kernel that loops over programs that a multiprocessor holds at once; of others 1. Asked once, at the load.
  uint32_t blocksPerMultiprocessor(const runtime::Kernel &kernel);
  /// Whether the kernel, which is loaded, waits by itself for those that it depends on, so that its launch need not: it calls gdc_wait.
  bool waitsByItself(const runtime::Kernel &kernel);
  /// A kernel of StreamKernels.h.
  Expected<FunctionRef> streamFunction(const char *name);
  void abandon() { abandoned = true; }

private:
  struct Loaded {
    runtime::Kernel kernel; ///< Keeps the key of the map unique.
    ModuleRef module = nullptr;
    FunctionRef function = nullptr;
    bool isReady = false, mayWait = true, waitsByItself = false;
    uint32_t blocksPerMultiprocessor = 1;
  };
  struct Code {
    ModuleRef module = nullptr;
    FunctionRef function = nullptr; ///< The module's entry.
  };
  /// Loads the kernel's code, of which `ptx` is what the driver gets.
  Expected<Code> loadCode(const runtime::Kernel &kernel, const std::string &ptx);
  /// The kernel's code, with as many resident blocks as LaunchOptions::residentBlocks says where nobody has said it.
  Expected<Code> loadCode(const runtime::Kernel &kernel);
  uint32_t residentBlocksOf(const runtime::Kernel &kernel, FunctionRef function) const;
  Expected<ModuleRef> loadModule(std::string_view name, const std::string &ptx);
  void reserveStack(FunctionRef function);
  Expected<FunctionRef> findFunction(ModuleRef module, std::string_view name, const char *symbol);

  const std::shared_ptr<const CudaDriver> driver;
  const Context context;
  const std::string gpuName;
  std::mutex loading; ///< One load at a time. Taken before `mutex`, which is never held while the driver loads.
  std::mutex mutex;   ///< For `kernels`.
  std::map<const void *, Loaded> kernels; ///< By Kernel::identity.
  std::vector<ModuleRef>
      unused; ///< Code with other registers than what runs. Unloading may wait for kernels, as loading may.
  ModuleRef streamModule = nullptr;
  std::map<std::string, FunctionRef, std::less<>> streamFunctions;
  bool abandoned = false;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_KERNELCACHE_H
