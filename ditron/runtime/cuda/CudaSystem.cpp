//===- CudaSystem.cpp - What the GPUs of one world share ----------------------------------------------------------===//
//
// Tables under one lock; none of it is on the path of a launch but the look at `ended`.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaSystem.h"

#include "ditron/explain/board/BoardReport.h"
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/GpuTrace.h"
#include "ditron/runtime/cuda/KernelCache.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace ditron::cuda {

namespace {
/// A load that took less has not waited for a kernel that waits.
constexpr double longLoadSeconds = 1;
} // namespace

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

void CudaSystem::nameWord(explain::PublishedWait &wait) const {
  std::lock_guard lock(mutex);
  auto next = allocations.upper_bound(wait.address);
  if (next == allocations.begin())
    return;
  const auto &[begin, allocation] = *std::prev(next);
  const uint64_t offset = wait.address - begin;
  if (offset >= allocation.bytes)
    return;
  const uint32_t element = allocation.elementBytes ? allocation.elementBytes : wait.wordBytes;
  wait.homeRank = allocation.rank;
  wait.memory = allocation.name;
  wait.element = offset / element;
  wait.restBytes = static_cast<uint32_t>(offset % element);
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

void CudaSystem::addEventRing(uint32_t rank, std::shared_ptr<const EventRing> ring) {
  std::lock_guard lock(mutex);
  if (ring)
    rings[rank] = std::move(ring);
  else
    rings.erase(rank);
}

CudaSystem::KernelName CudaSystem::kernelName(uint32_t hash) const {
  std::lock_guard lock(mutex);
  auto kernel = kernels.find(hash);
  return kernel == kernels.end() ? KernelName{fmt::format("kernel {:08x}", hash), "line"} : kernel->second;
}

Expected<std::string> CudaSystem::chromeTrace() const {
  std::vector<RankEvents> ranks;
  std::vector<std::shared_ptr<const EventRing>> sources;
  {
    std::lock_guard lock(mutex);
    for (const auto &[rank, ring] : rings) {
      RankEvents &events = ranks.emplace_back();
      events.rank = rank;
      // Only a run that has failed has waits that will not end.
      if (auto board = boards.find(rank); board != boards.end() && hasEnded())
        events.waiting = explain::readBoard(*board->second);
      sources.push_back(ring);
    }
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    DITRON_ASSIGN_OR_RETURN(ranks[i].noted, sources[i]->read());
  }
  const EventNames names{
      [this](uint32_t hash) { return kernelName(hash).name; },
      [this](uint32_t hash, uint32_t line) { return fmt::format("{}:{}", kernelName(hash).sourceFile, line); },
      [this](uint64_t address) {
        explain::PublishedWait word;
        word.address = address;
        word.wordBytes = 8;
        nameWord(word);
        return explain::wordText(word);
      }};
  return renderGpuTrace(ranks, names, status());
}

explain::PublishedWait CudaSystem::waitOf(const WaitReport &report) const {
  explain::PublishedWait wait;
  wait.rank = report.rank;
  {
    std::lock_guard lock(mutex);
    auto kernel = kernels.find(report.kernel);
    if (kernel == kernels.end() && kernels.size() == 1)
      kernel = kernels.begin();
    if (kernel != kernels.end()) {
      wait.kernel = kernel->second.name;
      wait.sourceFile = kernel->second.sourceFile;
    }
  }
  wait.line = report.line;
  wait.column = report.column;
  std::copy_n(report.block, 3, wait.block.begin());
  wait.thread = report.thread;
  wait.kind = static_cast<DitronWaitKind>(report.kind);
  wait.compare = report.compare;
  wait.address = report.address;
  wait.wordBytes = report.wordBytes;
  wait.seen = static_cast<int64_t>(report.seen);
  wait.wanted = static_cast<int64_t>(report.wanted);
  if (wait.kind != DITRON_WAIT_MBARRIER)
    nameWord(wait);
  return wait;
}

std::string CudaSystem::publishedWaits(std::vector<explain::PublishedWait> waits) const {
  auto isSame = [](const explain::PublishedWait &a, const explain::PublishedWait &b) {
    return a.rank == b.rank && a.block == b.block && a.thread == b.thread && a.line == b.line && a.address == b.address;
  };
  std::lock_guard lock(mutex);
  for (auto [rank, board] : boards)
    for (explain::PublishedWait &wait : explain::readBoard(*board))
      if (std::none_of(waits.begin(), waits.end(), [&](const auto &known) { return isSame(known, wait); }))
        waits.push_back(std::move(wait));
  return explain::textOf(explain::waitsOf(waits));
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
  std::vector<explain::PublishedWait> waits;
  for (auto [rank, report] : current) {
    if (report->state != DITRON_WAIT_COMPLETE)
      continue;
    WaitReport copy;
    auto *words = reinterpret_cast<uint32_t *>(&copy);
    const auto *source = reinterpret_cast<const volatile uint32_t *>(report);
    for (size_t i = 0; i < sizeof(WaitReport) / sizeof(uint32_t); ++i)
      words[i] = source[i];
    copy.rank = rank;
    waits.push_back(waitOf(copy));
  }
  return Status(StatusCode::TimeOut,
                "deadlock: a wait passed its time limit\nwaiting:\n" + publishedWaits(std::move(waits)) + loadsText());
}

void CudaSystem::addDevice(uint32_t rank, std::weak_ptr<CudaDevice> device) {
  std::lock_guard lock(mutex);
  devices[rank] = std::move(device);
}

std::vector<std::shared_ptr<CudaDevice>> CudaSystem::livingDevices() const {
  std::vector<std::shared_ptr<CudaDevice>> living;
  std::lock_guard lock(mutex);
  for (const auto &[rank, device] : devices)
    if (std::shared_ptr<CudaDevice> held = device.lock())
      living.push_back(std::move(held));
  return living;
}

UnfinishedWork CudaSystem::unfinishedWork() const {
  UnfinishedWork work;
  for (const std::shared_ptr<CudaDevice> &device : livingDevices())
    device->addUnfinishedWork(work);
  return work;
}

uint64_t CudaSystem::beginLoad(uint32_t rank, std::string_view kernel, std::string unfinished) {
  std::lock_guard lock(mutex);
  loads[nextLoad] = {rank, std::string(kernel), std::move(unfinished), std::chrono::steady_clock::now(), {}};
  return nextLoad++;
}

void CudaSystem::endLoad(uint64_t load) {
  std::lock_guard lock(mutex);
  Load &ended = loads[load];
  ended.end = std::chrono::steady_clock::now();
  if (ended.seconds() < longLoadSeconds)
    loads.erase(load);
}

std::string CudaSystem::loadsText() const {
  std::string text;
  std::lock_guard lock(mutex);
  for (const auto &[number, load] : loads)
    if (load.seconds() >= longLoadSeconds || !load.end)
      text += fmt::format(
          "\nrank {} {} kernel {} {} {:.1f} s, begun when {} had unfinished work: the driver may wait for it. "
          "Load kernels before any of them can wait for another (docs/troubleshooting.md)",
          load.rank, load.end ? "has loaded" : "is loading", load.kernel, load.end ? "in" : "for", load.seconds(),
          load.unfinished);
  return text;
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
  ownCaptures.insert(id);
}

void CudaSystem::keepForCapture(uint64_t id, std::shared_ptr<const void> object) {
  std::lock_guard lock(mutex);
  captures[id].push_back(std::move(object));
}

bool CudaSystem::isCapturing() const {
  std::lock_guard lock(mutex);
  return !ownCaptures.empty();
}

KeepAlive CudaSystem::endCapture(uint64_t id) {
  std::lock_guard lock(mutex);
  ownCaptures.erase(id);
  auto found = captures.find(id);
  if (found == captures.end())
    return {};
  KeepAlive kept = std::move(found->second);
  captures.erase(found);
  return kept;
}

} // namespace ditron::cuda
