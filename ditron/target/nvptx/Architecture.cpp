//===- Architecture.cpp - What NVIDIA architectures have ------------------------------------------------------------------===//
//
// Shared memory: CUDA programming guide, table of technical specifications, "maximum amount of shared memory per thread block".
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/Architecture.h"

#include <fmt/format.h>
#include <string>

namespace ditron::target {

static constexpr NvptxArchitecture architectures[] = {
    {"sm_80", 80, "+ptx74", 163 * 1024},
    {"sm_89", 89, "+ptx81", 99 * 1024},
    {"sm_90a", 90, "+ptx81", 227 * 1024},
    {"sm_100a", 100, "+ptx86", 227 * 1024},
};

Expected<NvptxArchitecture> nvptxArchitectureOf(std::string_view targetName) {
  std::string known;
  for (const NvptxArchitecture &architecture : architectures) {
    std::string full = fmt::format("cuda:{}", architecture.name);
    if (full == targetName)
      return architecture;
    known += (known.empty() ? "" : ", ") + full;
  }
  return unsupported(fmt::format("unknown CUDA target '{}'; known: {}", targetName, known));
}

} // namespace ditron::target
