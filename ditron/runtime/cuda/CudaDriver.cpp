//===- CudaDriver.cpp - libcuda, opened at run time ---------------------------------------------------------------===//
//
// Loading, and the translation of the driver's errors.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaDriver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace ditron::cuda {

namespace {

/// What a user can do about an error that the machine, not the program, is the cause of.
std::string_view adviceFor(Result result) {
  switch (result) {
  case errorNoDevice: return ". No GPU is visible: see `nvidia-smi`, and CUDA_VISIBLE_DEVICES";
  case 802: return ". The NVSwitch fabric is not up: start nvidia-fabricmanager, of the driver's version";
  case 803: return ". The libcuda found does not belong to the loaded kernel driver; reboot, or fix LD_LIBRARY_PATH";
  case 999: return ". The driver has no more to say; `dmesg | grep NVRM` often has";
  default: return "";
  }
}

StatusCode codeFor(Result result) {
  switch (result) {
  case errorOutOfMemory:
  case errorLaunchOutOfResources:
  case errorCooperativeLaunchTooLarge: return StatusCode::ResourceExhausted;
  case errorNotSupported:
  case errorNoBinaryForGpu:
  case errorUnsupportedPtxVersion:
  case errorNoDevice: return StatusCode::Unsupported;
  case errorIllegalAddress:
  case errorMisalignedAddress: return StatusCode::OutOfBounds;
  default: return StatusCode::Internal;
  }
}

} // namespace

Expected<std::shared_ptr<const CudaDriver>> CudaDriver::open(std::string_view name) {
  std::shared_ptr<CudaDriver> driver(new CudaDriver());
  const std::string path(name);
  driver->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) {
    const char *reason = dlerror();
    return unsupported(fmt::format("cannot open the NVIDIA driver's library {} ({}). It comes with the driver; in a "
                                   "container, start it with the GPUs (--gpus all)",
                                   name, reason ? reason : "no reason given"));
  }
  std::string missing;
  auto find = [&](const char *symbol, bool optional) {
    void *address = dlsym(driver->library, symbol);
    if (!address && !optional)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", symbol);
    return address;
  };
#define DITRON_CUDA(member, symbol, parameters)                                                                        \
  driver->member = reinterpret_cast<decltype(driver->member)>(find(symbol, false));
#define DITRON_CUDA_OPTIONAL(member, symbol, parameters)                                                               \
  driver->member = reinterpret_cast<decltype(driver->member)>(find(symbol, true));
#include "ditron/runtime/cuda/DriverFunctions.def"
  if (!missing.empty())
    return unsupported(fmt::format(
        "the NVIDIA driver's library {} has no {}: it is too old; version 525 or newer is needed", name, missing));
  // Streams that share one of the hardware's queues wait for each other, which can be a deadlock where a kernel waits for a
  // stream. The driver gives a process 8 queues unless it is told otherwise before it starts; what the user says holds.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  // A function that is loaded at its first launch may wait there for kernels that wait for that launch. Where the driver has no
  // call that loads one function, it is told to load all: not elsewhere, since that holds for all code of the process, and other
  // libraries have gigabytes of it.
  if (!driver->functionLoad)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  DITRON_RETURN_IF_ERROR(driver->check(driver->init(0), "cannot initialise the NVIDIA driver"));
  DITRON_RETURN_IF_ERROR(
      driver->check(driver->driverGetVersion(&driver->versionValue), "cannot ask the driver's version"));
  DITRON_RETURN_IF_ERROR(driver->check(driver->deviceGetCount(&driver->deviceCountValue), "cannot count the GPUs"));
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

CudaDriver::~CudaDriver() {
  // The library stays: the driver keeps threads and exit handlers of its own, and dlopen hands it out again.
}

std::string CudaDriver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(result, &name) != success || !name)
    return fmt::format("CUDA error {}", result);
  if (getErrorString(result, &text) != success || !text)
    return name;
  return fmt::format("{}: {}", name, text);
}

Status CudaDriver::failure(Result result, std::string_view action) const {
  return Status(codeFor(result), fmt::format("{}: {}{}", action, describe(result), adviceFor(result)));
}

int CudaDriver::attribute(Attribute attribute, DeviceOrdinal device) const {
  int value = 0;
  return deviceGetAttribute(&value, attribute, device) == success ? value : 0;
}

} // namespace ditron::cuda
