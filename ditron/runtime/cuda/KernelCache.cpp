//===- KernelCache.cpp - Kernels loaded on one GPU ----------------------------------------------------------------===//
//
// Loading by the driver's compiler, with its log in the error.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/KernelCache.h"

#include "ditron/runtime/cuda/PtxLog.h"
#include "ditron/runtime/cuda/StreamKernels.h"

#include <fmt/format.h>

namespace ditron::cuda {

namespace {
/// Without an attribute a kernel may have this much dynamic shared memory.
constexpr uint64_t plainSharedBytes = 48 << 10;
/// With so many threads on a multiprocessor loads hide each other well enough: half of what it can hold.
constexpr uint32_t enoughThreads = 1024;
} // namespace

std::optional<std::string> withResidentBlocks(std::string_view ptx, uint32_t blocks) {
  const size_t size = ptx.find(".reqntid");
  if (size == ptx.npos || ptx.find(".minnctapersm") != ptx.npos || ptx.find(".maxnreg") != ptx.npos)
    return std::nullopt;
  const size_t lineEnd = ptx.find('\n', size);
  return fmt::format("{}\n.minnctapersm {}{}", ptx.substr(0, lineEnd), blocks,
                     ptx.substr(std::min(lineEnd, ptx.size())));
}

bool readsWhatOthersWrite(std::string_view ptx) {
  for (std::string_view word : {"ld.acquire", "ld.relaxed", "ld.volatile", "ld.mmio", "atom."})
    if (ptx.find(word) != std::string_view::npos)
      return true;
  return false;
}

KernelCache::~KernelCache() {
  if (abandoned)
    return;
  ContextScope scope(*driver, context);
  for (const auto &[identity, loaded] : kernels)
    driver->moduleUnload(loaded.module);
  for (ModuleRef module : unused)
    driver->moduleUnload(module);
  if (streamModule)
    driver->moduleUnload(streamModule);
}

Expected<ModuleRef> KernelCache::loadModule(std::string_view name, const std::string &ptx) {
  std::string errors(16 << 10, '\0'), notes(4 << 10, '\0');
  JitOption options[] = {JitOption::ErrorLogBuffer, JitOption::ErrorLogBufferBytes, JitOption::InfoLogBuffer,
                         JitOption::InfoLogBufferBytes};
  // The driver takes numbers in the place of pointers.
  auto number = [](size_t value) { return reinterpret_cast<void *>(static_cast<uintptr_t>(value)); };
  void *values[] = {errors.data(), number(errors.size()), notes.data(), number(notes.size())};
  ModuleRef module = nullptr;
  const Result result = driver->moduleLoadDataEx(&module, ptx.c_str(), std::size(options), options, values);
  if (result == success)
    return module;
  const std::string log = explainPtxLog(errors.c_str(), ptx);
  const Status status = driver->check(result, fmt::format("the driver cannot load kernel '{}' on {}", name, gpuName));
  std::string message = status.message();
  if (result == errorUnsupportedPtxVersion)
    message += fmt::format(". The driver speaks CUDA {}.{}; a newer one is needed", driver->version() / 1000,
                           driver->version() % 1000 / 10);
  if (!log.empty())
    message += "\n" + log;
  return Status(status.code(), std::move(message));
}

Expected<FunctionRef> KernelCache::findFunction(ModuleRef module, std::string_view name, const char *symbol) {
  FunctionRef function = nullptr;
  DITRON_RETURN_IF_ERROR(driver->check(driver->moduleGetFunction(&function, module, symbol),
                                       fmt::format("kernel '{}' has no entry '{}'", name, symbol)));
  // Drivers load functions when they are first needed, unless they are told to.
  if (driver->functionLoad)
    DITRON_RETURN_IF_ERROR(
        driver->check(driver->functionLoad(function), fmt::format("cannot load kernel '{}' on {}", name, gpuName)));
  return function;
}

void KernelCache::reserveStack(FunctionRef function) {
  int needed = 0;
  size_t present = 0;
  if (!driver->contextGetLimit || !driver->contextSetLimit ||
      driver->functionGetAttribute(&needed, FunctionAttribute::LocalBytes, function) != success ||
      driver->contextGetLimit(&present, ContextLimit::StackBytes) != success || needed <= 0 ||
      static_cast<size_t>(needed) <= present)
    return;
  // Otherwise the first launch does that. Where there is no memory for it, that launch says so.
  driver->contextSetLimit(ContextLimit::StackBytes, static_cast<size_t>(needed));
}

FunctionRef KernelCache::find(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  const auto found = kernels.find(kernel.identity());
  return found == kernels.end() ? nullptr : found->second.function;
}

FunctionRef KernelCache::findReady(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  const auto found = kernels.find(kernel.identity());
  return found == kernels.end() || !found->second.isReady ? nullptr : found->second.function;
}

void KernelCache::setReady(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  kernels.at(kernel.identity()).isReady = true;
}

bool KernelCache::mayWait(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  const auto found = kernels.find(kernel.identity());
  return found == kernels.end() || found->second.mayWait;
}

uint32_t KernelCache::blocksPerMultiprocessor(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  const auto found = kernels.find(kernel.identity());
  return found == kernels.end() ? 1 : found->second.blocksPerMultiprocessor;
}

bool KernelCache::waitsByItself(const runtime::Kernel &kernel) {
  std::lock_guard lock(mutex);
  const auto found = kernels.find(kernel.identity());
  return found != kernels.end() && found->second.waitsByItself;
}

Expected<KernelCache::Code> KernelCache::loadCode(const runtime::Kernel &kernel, const std::string &ptx) {
  const Artifact &artifact = kernel.artifact();
  Code code;
  DITRON_ASSIGN_OR_RETURN(code.module, loadModule(kernel.name(), ptx));
  Expected<FunctionRef> function = findFunction(code.module, kernel.name(), artifact.entrySymbol.c_str());
  Status status = function.status();
  if (status.isOk() && artifact.sharedBytes > plainSharedBytes)
    status = driver->check(driver->functionSetAttribute(*function, FunctionAttribute::MaxDynamicSharedBytes,
                                                        static_cast<int>(artifact.sharedBytes)),
                           fmt::format("kernel '{}' cannot have {} bytes of shared memory on {}", kernel.name(),
                                       artifact.sharedBytes, gpuName));
  if (!status.isOk()) {
    driver->moduleUnload(code.module);
    return status;
  }
  code.function = *function;
  return code;
}

uint32_t KernelCache::residentBlocksOf(const runtime::Kernel &kernel, FunctionRef function) const {
  int blocks = 0;
  const Result result = driver->occupancyBlocksPerMultiprocessor(
      &blocks, function, static_cast<int>(kernel.threadsPerBlock()), kernel.artifact().sharedBytes);
  return result == success ? static_cast<uint32_t>(std::max(blocks, 1)) : 1;
}

Expected<KernelCache::Code> KernelCache::loadCode(const runtime::Kernel &kernel) {
  const std::string &ptx = kernel.image().code;
  const std::optional<std::string> one = withResidentBlocks(ptx, 1);
  DITRON_ASSIGN_OR_RETURN(Code code, loadCode(kernel, one.value_or(ptx)));
  if (!one)
    return code;
  auto localBytes = [&](FunctionRef function) {
    int bytes = 0;
    return driver->functionGetAttribute(&bytes, FunctionAttribute::LocalBytes, function) == success ? bytes : 0;
  };
  for (uint32_t blocks = residentBlocksOf(kernel, code.function); blocks * kernel.threadsPerBlock() < enoughThreads;) {
    const Expected<Code> next = loadCode(kernel, *withResidentBlocks(ptx, blocks + 1));
    if (!next.isOk())
      break;
    // Shared memory may leave no place, and what registers do not hold goes through memory.
    const uint32_t placed = residentBlocksOf(kernel, next->function);
    const bool isBetter = placed > blocks && localBytes(next->function) <= localBytes(code.function);
    unused.push_back(isBetter ? code.module : next->module);
    if (!isBetter)
      break;
    code = *next;
    blocks = placed;
  }
  return code;
}

Expected<FunctionRef> KernelCache::function(const runtime::Kernel &kernel, bool *isNew) {
  std::lock_guard lock(loading);
  if (FunctionRef found = find(kernel))
    return found;
  const Artifact &artifact = kernel.artifact();
  if (artifact.codeKind == ArtifactCode::HostObject)
    return invalidArgument(
        fmt::format("kernel '{}' is compiled for {} and cannot run on {}", kernel.name(), artifact.target, gpuName));
  Loaded loaded;
  loaded.kernel = kernel;
  DITRON_ASSIGN_OR_RETURN(const Code code, loadCode(kernel));
  reserveStack(code.function);
  loaded.module = code.module;
  loaded.function = code.function;
  if (artifact.loopsOverPrograms)
    loaded.blocksPerMultiprocessor = residentBlocksOf(kernel, code.function);
  loaded.mayWait = artifact.codeKind != ArtifactCode::Ptx || readsWhatOthersWrite(kernel.image().code);
  loaded.waitsByItself =
      artifact.codeKind == ArtifactCode::Ptx && kernel.image().code.find("griddepcontrol.wait") != std::string::npos;
  {
    std::lock_guard mapLock(mutex);
    kernels.emplace(kernel.identity(), std::move(loaded));
  }
  if (isNew)
    *isNew = true;
  return code.function;
}

Expected<FunctionRef> KernelCache::streamFunction(const char *name) {
  std::lock_guard lock(loading);
  if (auto found = streamFunctions.find(name); found != streamFunctions.end())
    return found->second;
  if (!streamModule) {
    DITRON_ASSIGN_OR_RETURN(streamModule, loadModule("stream operations", streamKernelsPtx));
  }
  DITRON_ASSIGN_OR_RETURN(FunctionRef function, findFunction(streamModule, "stream operations", name));
  streamFunctions.emplace(name, function);
  return function;
}

} // namespace ditron::cuda
