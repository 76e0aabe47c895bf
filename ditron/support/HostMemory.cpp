//===- HostMemory.cpp - How much memory this process may still take -------------------------------------------------===//
#include "ditron/support/HostMemory.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace ditron {

namespace {

constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();

/// The number that a file of the system holds; unknown when it is not there or says "max".
uint64_t numberIn(const std::string &path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : unknown;
}

/// Value of a line "NAME:  123 kB", in bytes.
uint64_t kilobytesIn(const std::string &path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      uint64_t value = 0;
      std::istringstream rest(line.substr(name.size() + 1));
      return rest >> value ? value << 10 : unknown;
    }
  return unknown;
}

uint64_t leftOf(uint64_t limit, uint64_t used) { return limit == unknown ? unknown : limit - std::min(limit, used); }

/// What the control groups leave (version 2, in which limits hold for all groups above too; and version 1's memory controller).
uint64_t leftInGroups() {
  uint64_t least = unknown;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t colon = line.rfind(':');
    const bool isUnified = line.starts_with("0::");
    if (colon == std::string::npos || (!isUnified && line.find(":memory:") == std::string::npos))
      continue;
    const std::string root = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string limit = isUnified ? "/memory.max" : "/memory.limit_in_bytes";
    const std::string used = isUnified ? "/memory.current" : "/memory.usage_in_bytes";
    for (std::string group = line.substr(colon + 1);; group.resize(group.rfind('/'))) {
      const std::string folder = root + (group == "/" ? "" : group);
      // Pages of the file cache count as used and are given up first; only part of them is known, so this errs on the safe side.
      const uint64_t most = numberIn(folder + limit), now = numberIn(folder + used);
      if (most != unknown && now != unknown)
        least = std::min(least, leftOf(most, now));
      if (group.empty() || group.rfind('/') == std::string::npos)
        break;
    }
  }
  return least;
}

uint64_t leftOfLimit(int resource, uint64_t used) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || used == unknown)
    return unknown;
  return leftOf(limit.rlim_cur, used);
}

} // namespace

uint64_t availableHostMemory() {
  return std::min({kilobytesIn("/proc/meminfo", "MemAvailable"), leftInGroups(),
                   leftOfLimit(RLIMIT_AS, kilobytesIn("/proc/self/status", "VmSize")),
                   leftOfLimit(RLIMIT_DATA, kilobytesIn("/proc/self/status", "VmData"))});
}

std::string memoryText(uint64_t bytes) {
  constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.4g} {}", value, units[unit]);
}

} // namespace ditron
