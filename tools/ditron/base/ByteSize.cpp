//===- ByteSize.cpp - "64K" ---------------------------------------------------------------------------------------------------===//
#include "base/ByteSize.h"

#include <charconv>
#include <fmt/format.h>

namespace ditron::tool {

Expected<uint64_t> parseByteSize(std::string_view option, const std::string &text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size() - end);
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value == 0 || value > (uint64_t{1} << 40 >> shift))
    return invalidArgument(
        fmt::format("{} '{}': a positive number, or one with K, M or G behind it, is accepted", option, text));
  return value << shift;
}

Status verifyWholeElements(uint64_t bytes, DataType dtype) {
  if (bytes % sizeOf(dtype) == 0)
    return Status::ok();
  return invalidArgument(fmt::format("--bytes {}: elements of {} have {} bytes each; multiples of {} are accepted",
                                     bytes, toString(dtype), sizeOf(dtype), sizeOf(dtype)));
}

Expected<std::vector<uint64_t>> parseByteSizes(const std::vector<std::string> &texts) {
  std::vector<uint64_t> sizes;
  for (const std::string &text : texts) {
    DITRON_ASSIGN_OR_RETURN(const uint64_t bytes, parseByteSize("--bytes", text));
    sizes.push_back(bytes);
  }
  return sizes;
}

} // namespace ditron::tool
