//===- NormalData.cpp - Large random operands in a short time -------------------------------------------------------------===//
#include "base/NormalData.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace ditron::tool {

NormalData::NormalData(DataType type, uint64_t seed) : type(type), values(4194301) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal;
  for (float &value : values)
    value = type == DataType::I8 ? std::clamp(std::round(40 * normal(bits)), -127.0f, 127.0f) : normal(bits);
  bytes = fromFloats(type, values.data(), values.size());
  values = toFloats(type, bytes.data(), values.size());
}

Status NormalData::fill(runtime::Buffer &buffer, uint64_t salt) const {
  const uint64_t size = sizeOf(type);
  uint64_t from = salt * saltStep % values.size();
  for (uint64_t done = 0; done < buffer.count();) {
    const uint64_t count = std::min(buffer.count() - done, values.size() - from);
    DITRON_RETURN_IF_ERROR(buffer.upload(bytes.data() + from * size, count * size, done * size));
    done += count;
    from = 0;
  }
  return Status::ok();
}

} // namespace ditron::tool
