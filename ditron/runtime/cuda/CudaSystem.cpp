//===- CudaSystem.cpp - What the GPUs of one world share ----------------------------------------------------------===//
//
// Tables under one lock; none of it is on the path of a launch but the look at `ended`.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaSystem.h"

#include "ditron/runtime/cuda/KernelCache.h"

#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace ditron::cuda {

uint32_t hashOfName(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (unsigned char character : name)
    hash = (hash ^ character) * 16777619u;
  return hash;
}

Status CudaSystem::status() const {
  if (!hasEnded())
    return Status::ok();
  std::lock_guard lock(mutex);
  return endStatus;
}

Status CudaSystem::end(Status status) {
  std::lock_guard lock(mutex);
  if (endStatus.isOk()) {
    endStatus = std::move(status);
    ended = true;
  }
  return endStatus;
}

void CudaSystem::addAllocation(const void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes,
                               uint32_t rank) {
  std::lock_guard lock(mutex);
  allocations[reinterpret_cast<uint64_t>(address)] = {bytes, std::string(name), elementBytes, rank};
}

void CudaSystem::removeAllocation(const void *address) {
  std::lock_guard lock(mutex);
  allocations.erase(reinterpret_cast<uint64_t>(address));
}

std::string CudaSystem::nameOf(uint64_t address, uint32_t wordBytes) const {
  std::lock_guard lock(mutex);
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin())
    return fmt::format("{:#x}", address);
  const auto &[begin, allocation] = *std::prev(next);
  const uint64_t offset = address - begin;
  if (offset >= allocation.bytes)
    return fmt::format("{:#x}", address);
  const uint32_t element = allocation.elementBytes ? allocation.elementBytes : wordBytes;
  std::string text = fmt::format("{}[{}]", allocation.name, offset / element);
  if (offset % element)
    text += fmt::format("+{} bytes", offset % element);
  return fmt::format("{} on rank {}", text, allocation.rank);
}

void CudaSystem::addReport(uint32_t rank, volatile WaitReport *report) {
  std::lock_guard lock(mutex);
  if (report)
    reports[rank] = report;
  else
    reports.erase(rank);
}

void CudaSystem::addKernel(std::string_view entry, std::string_view name, std::string_view sourceFile) {
  std::lock_guard lock(mutex);
  kernels[hashOfName(entry)] = {std::string(name), std::string(sourceFile)};
  for (auto [rank, board] : boards)
    board->addKernel(hashOfName(entry), name, sourceFile);
}

void CudaSystem::addBoard(uint32_t rank, explain::WaitBoard *board) {
  std::lock_guard lock(mutex);
  if (!board) {
    boards.erase(rank);
    return;
  }
  boards[rank] = board;
  for (const auto &[hash, kernel] : kernels)
    board->addKernel(hash, kernel.name, kernel.sourceFile);
}

std::string CudaSystem::describe(const WaitReport &report) const {
  static constexpr std::string_view compares[] = {"==", "!=", ">", "<=", "<", ">="};
  std::string site = "an unknown kernel";
  {
    std::lock_guard lock(mutex);
    auto kernel = kernels.find(report.kernel);
    if (kernel == kernels.end() && kernels.size() == 1)
      kernel = kernels.begin();
    if (kernel != kernels.end())
      site = fmt::format("kernel {} at {}:{}:{}", kernel->second.name, kernel->second.sourceFile, report.line,
                         report.column);
    else if (report.line)
      site = fmt::format("a kernel at line {}, column {}", report.line, report.column);
  }
  std::string text = fmt::format("  rank {}, {}, block ({},{},{}), thread {}\n", report.rank, site, report.block[0],
                                 report.block[1], report.block[2], report.thread);
  if (report.kind == DITRON_WAIT_MBARRIER)
    return text + fmt::format("    waits for another warp of its block, which fetches or frees a tile: phase of parity {} of an "
                              "mbarrier at shared address {}",
                              report.wanted, report.address & 0xffffff);
  text += fmt::format("    waits for {}: has {}, ", nameOf(report.address, report.wordBytes),
                      static_cast<int64_t>(report.seen));
  if (report.kind == DITRON_WAIT_SIGNAL)
    text += fmt::format("wants {} {}", compares[report.compare % 6], static_cast<int64_t>(report.wanted));
  else
    text += "polls it in a loop until it changes";
  return text;
}

Status CudaSystem::checkReports() {
  std::map<uint32_t, volatile WaitReport *> current;
  {
    std::lock_guard lock(mutex);
    current = reports;
  }
  bool any = false;
  for (auto [rank, report] : current)
    any |= report->state != DITRON_WAIT_NONE;
  if (!any)
    return Status::ok();
  // The waits of the other ranks run out at about the same time: give them a moment to be reported too.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  for (auto [rank, report] : current)
    while (report->state != DITRON_WAIT_COMPLETE && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::atomic_thread_fence(std::memory_order_acquire);
  std::string text = "deadlock: a wait passed its time limit\nwaiting:";
  for (auto [rank, report] : current) {
    if (report->state != DITRON_WAIT_COMPLETE)
      continue;
    WaitReport copy;
    auto *words = reinterpret_cast<uint32_t *>(&copy);
    const auto *source = reinterpret_cast<const volatile uint32_t *>(report);
    for (size_t i = 0; i < sizeof(WaitReport) / sizeof(uint32_t); ++i)
      words[i] = source[i];
    copy.rank = rank;
    text += "\n" + describe(copy);
  }
  return Status(StatusCode::TimeOut, std::move(text));
}

std::shared_ptr<KernelCache> CudaSystem::kernelCache(DeviceOrdinal ordinal, Context context, std::string_view gpuName) {
  std::lock_guard lock(mutex);
  std::shared_ptr<KernelCache> cache = caches[ordinal].lock();
  if (!cache) {
    cache = std::make_shared<KernelCache>(driver, context, std::string(gpuName));
    caches[ordinal] = cache;
  }
  return cache;
}

void CudaSystem::beginCapture(uint64_t id) {
  std::lock_guard lock(mutex);
  captures[id];
}

void CudaSystem::keepForCapture(uint64_t id, std::shared_ptr<const void> object) {
  std::lock_guard lock(mutex);
  captures[id].push_back(std::move(object));
}

KeepAlive CudaSystem::endCapture(uint64_t id) {
  std::lock_guard lock(mutex);
  auto found = captures.find(id);
  if (found == captures.end())
    return {};
  KeepAlive kept = std::move(found->second);
  captures.erase(found);
  return kept;
}

} // namespace ditron::cuda
