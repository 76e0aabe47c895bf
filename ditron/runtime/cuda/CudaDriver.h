//===- CudaDriver.h - libcuda, opened at run time ------------------------------------------------------------*- C++ -*-===//
//
// The table of the driver's functions (DriverFunctions.def), found with dlopen, so that one binary runs on machines with
// and without a GPU. Failures of the driver become Status values that carry the driver's own name and text for the error.
//
// A CudaDriver is a value without global state: a process may open it as often as it likes (dlopen counts).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_CUDADRIVER_H
#define DITRON_RUNTIME_CUDA_CUDADRIVER_H

#include "ditron/runtime/cuda/DriverTypes.h"
#include "ditron/support/Status.h"

#include <memory>
#include <string_view>

namespace ditron::cuda {

class CudaDriver {
public:
  /// Opens the library, finds the functions and initialises the driver. `library` is a name for the dynamic loader or a
  /// path.
  static Expected<std::shared_ptr<const CudaDriver>> open(std::string_view library = "libcuda.so.1");
  ~CudaDriver();
  CudaDriver(const CudaDriver &) = delete;
  CudaDriver &operator=(const CudaDriver &) = delete;

#define DITRON_CUDA(member, symbol, parameters) Result(*member) parameters = nullptr;
#include "ditron/runtime/cuda/DriverFunctions.def"

  /// The highest CUDA version that the driver speaks, as 1000 * major + 10 * minor.
  int version() const { return versionValue; }
  int deviceCount() const { return deviceCountValue; }
  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string describe(Result result) const;
  /// Ok, or an error that says what was tried.
  Status check(Result result, std::string_view action) const {
    return result == success ? Status::ok() : failure(result, action);
  }
  /// An attribute of a device; 0 when the driver does not know it.
  int attribute(Attribute attribute, DeviceOrdinal device) const;

private:
  CudaDriver() = default;
  Status failure(Result result, std::string_view action) const;

  void *library = nullptr;
  int versionValue = 0;
  int deviceCountValue = 0;
};

/// Makes a context current for the calling thread until the end of the scope, and restores the one that was.
class ContextScope {
public:
  ContextScope(const CudaDriver &driver, Context context) : driver(driver) { result = driver.contextPush(context); }
  ~ContextScope() {
    Context previous;
    if (result == success)
      driver.contextPop(&previous);
  }
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

private:
  const CudaDriver &driver;
  Result result;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_CUDADRIVER_H
