//===- ArrayFill.cpp - Values of input arrays by rule -------------------------------------------------------------------===//
//
// Random words are SplitMix64 of the index, so element i needs no other. Floats are made of few bits in double precision,
// where every step is exact, and rounded once (to fp32 first where the type is narrower).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ArrayFill.h"

#include "ditron/support/Npy.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace ditron::conformance {
namespace {

uint64_t randomWord(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void storeBits(DataType type, std::byte *at, uint64_t bits) { std::memcpy(at, &bits, sizeOf(type)); }

/// An integer in the type: its low bits, or as a float.
void storeInteger(DataType type, std::byte *at, int64_t value) {
  if (type == DataType::I1)
    storeBits(type, at, value != 0);
  else if (isInteger(type))
    storeBits(type, at, static_cast<uint64_t>(value));
  else
    storeElement(type, at, static_cast<double>(value));
}

void storeFloat(DataType type, std::byte *at, double value) {
  storeElement(type, at, type == DataType::F64 || isInteger(type) ? value : static_cast<float>(value));
}

/// A number in decimal, as bits in hexadecimal, or one of the special floats.
bool storeText(DataType type, std::byte *at, const std::string &text) {
  if (text.starts_with("0x")) {
    uint64_t bits = 0;
    const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    storeBits(type, at, bits);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  }
  char *end = nullptr;
  storeFloat(type, at, std::strtod(text.c_str(), &end)); // takes nan and inf as well
  return !text.empty() && *end == 0;
}

Status storeListed(DataType type, std::byte *at, const nlohmann::json &value) {
  if (value.is_boolean())
    storeInteger(type, at, value.get<bool>());
  else if (value.is_number_unsigned())
    storeInteger(type, at, static_cast<int64_t>(value.get<uint64_t>()));
  else if (value.is_number_integer())
    storeInteger(type, at, value.get<int64_t>());
  else if (value.is_number())
    storeFloat(type, at, value.get<double>());
  else if (!value.is_string() || !storeText(type, at, value.get<std::string>()))
    return invalidArgument(fmt::format("{} is no element of an array", value.dump()));
  return Status::ok();
}

double numberOf(const nlohmann::json &array, const char *name, double otherwise) {
  return array.contains(name) ? array[name].get<double>() : otherwise;
}

} // namespace

Expected<std::vector<std::byte>> listedElements(const nlohmann::json &list, DataType type) {
  std::vector<std::byte> data(list.size() * sizeOf(type));
  for (size_t i = 0; i < list.size(); ++i)
    DITRON_RETURN_IF_ERROR(storeListed(type, data.data() + i * sizeOf(type), list[i]));
  return data;
}

Expected<std::vector<std::byte>> fillArray(const nlohmann::json &array, DataType type, uint64_t count,
                                           uint64_t seedOffset, const std::filesystem::path &folder) {
  const uint32_t size = sizeOf(type);
  std::vector<std::byte> data(count * size);
  if (array.contains("npy")) {
    DITRON_ASSIGN_OR_RETURN(NpyArray file, readNpy((folder / array["npy"].get<std::string>()).string()));
    if (file.data.size() != data.size())
      return invalidArgument(fmt::format("{} holds {} bytes, {} are expected", array["npy"].get<std::string>(),
                                         file.data.size(), data.size()));
    return std::move(file.data);
  }
  if (array.contains("values")) {
    DITRON_ASSIGN_OR_RETURN(std::vector<std::byte> listed, listedElements(array["values"], type));
    if (listed.empty())
      return invalidArgument("\"values\" lists nothing");
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = listed[i % listed.size()];
    return data;
  }
  const std::string fill = array.value("fill", "zeros");
  const uint64_t seed = array.value("seed", uint64_t(0)) + seedOffset;
  auto each = [&](auto &&store) {
    for (uint64_t i = 0; i < count; ++i)
      store(data.data() + i * size, i);
  };
  if (fill == "ints") {
    const int64_t low = array["low"], high = array["high"];
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    const bool noZero = array.value("nonzero", false);
    each([&](std::byte *at, uint64_t i) {
      const uint64_t word = randomWord(seed, i);
      const auto value = static_cast<int64_t>(static_cast<uint64_t>(low) + (span == 0 ? word : word % span));
      storeInteger(type, at, noZero && value == 0 ? 1 : value);
    });
  } else if (fill == "bits") {
    each([&](std::byte *at, uint64_t i) { storeBits(type, at, randomWord(seed, i)); });
  } else if (fill == "uniform") {
    const double low = numberOf(array, "low", -1), high = numberOf(array, "high", 1);
    each([&](std::byte *at, uint64_t i) {
      storeFloat(type, at, low + (high - low) * static_cast<double>(randomWord(seed, i) >> 40) * 0x1p-24);
    });
  } else if (fill == "bell") { // the sum of four uniform numbers: about normal, standard deviation 1.15 * scale
    const double scale = numberOf(array, "scale", 1);
    each([&](std::byte *at, uint64_t i) {
      const uint64_t word = randomWord(seed, i);
      const auto sum =
          static_cast<double>((word & 0xFFFF) + ((word >> 16) & 0xFFFF) + ((word >> 32) & 0xFFFF) + (word >> 48));
      storeFloat(type, at, (sum * 0x1p-15 - 4) * scale);
    });
  } else if (fill == "arange") {
    const int64_t start = array.value("start", int64_t(0)), step = array.value("step", int64_t(1));
    const int64_t modulo = array.value("modulo", int64_t(0));
    each([&](std::byte *at, uint64_t i) {
      const int64_t value = start + static_cast<int64_t>(i) * step;
      storeInteger(type, at, modulo ? value % modulo : value);
    });
  } else if (fill == "count") { // every bit pattern in turn
    const uint64_t start = array.value("start", uint64_t(0)), step = array.value("step", uint64_t(1));
    each([&](std::byte *at, uint64_t i) { storeBits(type, at, start + i * step); });
  } else if (fill == "patterns") { // bit patterns in a range
    const uint64_t low = array["low"], high = array["high"];
    each([&](std::byte *at, uint64_t i) { storeBits(type, at, low + randomWord(seed, i) % (high - low + 1)); });
  } else if (fill == "permutation") {
    std::vector<int64_t> order(count);
    for (uint64_t i = 0; i < count; ++i)
      order[i] = static_cast<int64_t>(i);
    for (uint64_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[randomWord(seed, i) % i]);
    each([&](std::byte *at, uint64_t i) { storeInteger(type, at, order[i]); });
  } else if (fill != "zeros") {
    return invalidArgument(
        fmt::format("no rule \"{}\": zeros, ints, bits, uniform, bell, arange, count, patterns, permutation", fill));
  }
  if (array.contains("and")) { // keeps these bits only, as a conversion to tf32 does
    const uint64_t mask = std::stoull(array["and"].get<std::string>(), nullptr, 16);
    each([&](std::byte *at, uint64_t) {
      uint64_t bits = 0;
      std::memcpy(&bits, at, size);
      storeBits(type, at, bits & mask);
    });
  }
  if (array.contains("first")) {
    DITRON_ASSIGN_OR_RETURN(std::vector<std::byte> listed, listedElements(array["first"], type));
    std::copy_n(listed.begin(), std::min(listed.size(), data.size()), data.begin());
  }
  return data;
}

} // namespace ditron::conformance
