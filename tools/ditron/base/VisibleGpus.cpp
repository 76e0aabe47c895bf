//===- VisibleGpus.cpp - Which GPUs the driver is to see --------------------------------------------------------------===//
#include "base/VisibleGpus.h"

#include "ditron/runtime/bootstrap/RankEnvironment.h"

#include <cstdlib>
#include <fmt/format.h>

namespace ditron::tool {

std::string firstGpus(std::optional<std::string_view> present, uint32_t count) {
  std::string list;
  if (!present) {
    for (uint32_t gpu = 0; gpu < count; ++gpu)
      list += fmt::format("{}{}", gpu ? "," : "", gpu);
    return list;
  }
  size_t end = 0;
  for (uint32_t gpu = 0; gpu < count && end != std::string_view::npos; ++gpu)
    end = present->find(',', gpu ? end + 1 : 0);
  return std::string(present->substr(0, end));
}

void seeOnlyGpusOf(std::string_view target, uint32_t numRanks) {
  constexpr const char *variable = "CUDA_VISIBLE_DEVICES";
  const Expected<bootstrap::RankEnvironment> place = bootstrap::RankEnvironment::fromProcess();
  if (!target.starts_with("cuda") || numRanks == 0 || !place.isOk() || place->launched())
    return;
  const char *present = std::getenv(variable);
  setenv(variable, firstGpus(present ? std::optional<std::string_view>(present) : std::nullopt, numRanks).c_str(),
         /*overwrite=*/1);
}

void takeFewQueues() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", /*overwrite=*/0); }

} // namespace ditron::tool
