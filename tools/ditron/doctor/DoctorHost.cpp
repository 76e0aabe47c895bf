//===- DoctorHost.cpp - What the operating system grants ----------------------------------------------------------===//
//
// Reads files and limits; changes nothing but for the meeting directory, which it makes as World::fromEnvironment would.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "doctor/DoctorReport.h"

#include "ditron/cache/KernelStore.h"

#include "ditron/runtime/bootstrap/Rendezvous.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace ditron::tool {

namespace {

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string sizeText(uint64_t bytes) {
  return bytes >= (uint64_t(1) << 30) ? fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30))
                                      : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void examineControlGroup(DoctorReport &report) {
  // Version 2 has one hierarchy, version 1 one for each controller.
  std::string memory = firstLine("/sys/fs/cgroup/memory.max");
  if (memory.empty())
    memory = firstLine("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  std::string processes = firstLine("/sys/fs/cgroup/pids.max");
  if (processes.empty())
    processes = firstLine("/sys/fs/cgroup/pids/pids.max");
  const uint64_t bytes = std::strtoull(memory.c_str(), nullptr, 10);
  constexpr uint64_t little = uint64_t(8) << 30;
  if (memory.empty() || memory == "max" || bytes > (uint64_t(1) << 60))
    report.add("memory limit", Verdict::Ok, "none");
  else
    report.add("memory limit", bytes < little ? Verdict::Slower : Verdict::Ok,
               fmt::format("{} for this container", sizeText(bytes)),
               bytes < little ? "give the container 8 GiB or more; compilations run one at a time meanwhile" : "");
  const uint64_t most = std::strtoull(processes.c_str(), nullptr, 10);
  const bool few = !processes.empty() && processes != "max" && most < 256;
  report.add("process limit", few ? Verdict::Slower : Verdict::Ok,
             processes.empty() || processes == "max" ? "none" : processes,
             few ? "docker run --pids-limit -1 (the driver and the compiler start threads)" : "");
}

void examineLimits(DoctorReport &report) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  report.add("open files", files.rlim_cur < 1024 ? Verdict::Slower : Verdict::Ok,
             fmt::format("{} allowed", files.rlim_cur), files.rlim_cur < 1024 ? "ulimit -n 4096" : "");
  rlimit locked = {};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  report.add("locked memory", Verdict::Ok,
             locked.rlim_cur == RLIM_INFINITY
                 ? "no limit"
                 : fmt::format("{}; the driver pins memory without it", sizeText(locked.rlim_cur)));
  struct statvfs shared = {};
  if (statvfs("/dev/shm", &shared) == 0)
    report.add("/dev/shm", Verdict::Ok,
               fmt::format("{}; Ditron does not use it", sizeText(shared.f_blocks * shared.f_frsize)));
}

std::string homePath(const char *variable, const std::string &below) {
  if (const char *value = std::getenv(variable); value && *value)
    return value;
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + below : "";
}

/// The first folder upwards that exists is writable.
bool canBeMade(std::filesystem::path path) {
  std::error_code error;
  while (!path.empty() && !std::filesystem::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  return access(path.c_str(), W_OK) == 0;
}

void examineCache(DoctorReport &report) {
  const char *off = std::getenv("CUDA_CACHE_DISABLE");
  const std::string path = homePath("CUDA_CACHE_PATH", "/.nv/ComputeCache");
  if (off && std::string_view(off) == "1") {
    report.add("driver's code cache", Verdict::Slower,
               "switched off by CUDA_CACHE_DISABLE=1: every start compiles again", "unset CUDA_CACHE_DISABLE");
    return;
  }
  if (path.empty() || !canBeMade(path))
    report.add("driver's code cache", Verdict::Slower,
               path.empty() ? "HOME is not set: every start compiles again"
                            : fmt::format("{} cannot be written: every start compiles again", path),
               "CUDA_CACHE_PATH=<a writable directory>");
  else
    report.add("driver's code cache", Verdict::Ok, path);
}

} // namespace

void examineKernelCache(DoctorReport &report, const Knobs &knobs) {
  const char *subject = "compiled kernels";
  if (!knobs.usesCache()) {
    report.add(subject, Verdict::Slower,
               knobs.cache ? "no folder to keep them in: HOME is not set" : "not kept, since DITRON_CACHE=0",
               knobs.cache ? "DITRON_CACHE_DIR=<a folder of your own>" : "unset DITRON_CACHE");
    return;
  }
  Expected<std::unique_ptr<cache::KernelStore>> store =
      cache::KernelStore::openExisting(knobs.cacheDir, static_cast<uint64_t>(knobs.cacheMegabytes) << 20);
  if (!store.isOk() && store.status().code() != StatusCode::NotFound) {
    report.add(subject, Verdict::Slower, store.status().message(), "DITRON_CACHE_DIR=<a folder of your own>");
    return;
  }
  const bool isWritable = store.isOk() ? access(knobs.cacheDir.c_str(), W_OK) == 0 : canBeMade(knobs.cacheDir);
  if (isWritable)
    report.add(subject, Verdict::Ok, knobs.cacheDir);
  else
    report.add(subject, Verdict::Slower,
               fmt::format("{} cannot be written: every start compiles again", knobs.cacheDir),
               "DITRON_CACHE_DIR=<a folder of your own>");
}

void examineHost(DoctorReport &report) {
  examineControlGroup(report);
  examineLimits(report);
  examineCache(report);
  const Expected<std::string> meeting = bootstrap::privateDirectory();
  if (meeting.isOk())
    report.add("meeting of processes", Verdict::Ok, fmt::format("Unix sockets in {}", *meeting));
  else
    report.add("meeting of processes", Verdict::NotUsable, meeting.status().message(),
               "XDG_RUNTIME_DIR=<a directory of this user with mode 0700>; one process for all GPUs works without");
}

} // namespace ditron::tool
