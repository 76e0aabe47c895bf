//===- DataType.cpp - Element types of buffers and kernel parameters ----------------------------------------------===//
//
// Names, sizes and value conversions. All narrow floats go through two generic routines that are told the number of
// exponent and fraction bits; bf16 and fp32 have short cuts since whole matrices pass through them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/DataType.h"

#include "ditron/support/Suggest.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace ditron {

namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  uint32_t bytes;
};

constexpr std::array<TypeRow, 15> rows = {{
    {DataType::I1, "i1", 1},
    {DataType::I8, "i8", 1},
    {DataType::I16, "i16", 2},
    {DataType::I32, "i32", 4},
    {DataType::I64, "i64", 8},
    {DataType::U8, "u8", 1},
    {DataType::U16, "u16", 2},
    {DataType::U32, "u32", 4},
    {DataType::U64, "u64", 8},
    {DataType::F8E5, "fp8e5", 1},
    {DataType::F8E4NV, "fp8e4nv", 1},
    {DataType::F16, "fp16", 2},
    {DataType::BF16, "bf16", 2},
    {DataType::F32, "fp32", 4},
    {DataType::F64, "fp64", 8},
}};

const TypeRow &rowOf(DataType type) { return rows[static_cast<size_t>(type)]; }

/// What an encoding does with its all-ones exponent.
enum class TopExponent {
  Infinities, ///< IEEE: fraction 0 is infinity, others NaN.
  OnlyNan,    ///< All ones everywhere is NaN, the rest are numbers (fp8e4nv).
};

/// Encodes with `exponentBits` and `fractionBits`, ties to even; returns sign, exponent and fraction in the low bits.
uint32_t encode(float value, unsigned exponentBits, unsigned fractionBits, TopExponent top) {
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 31 << (exponentBits + fractionBits);
  const uint32_t allOnes = (1u << (exponentBits + fractionBits)) - 1;
  const uint32_t infinity = ((1u << exponentBits) - 1) << fractionBits;
  // The largest finite pattern: one below infinity, or one below the lone NaN.
  const uint32_t largest = top == TopExponent::Infinities ? infinity - 1 : allOnes - 1;
  if (std::isnan(value))
    return sign | (top == TopExponent::Infinities ? infinity | (1u << (fractionBits - 1)) : allOnes);
  const uint32_t overflow = top == TopExponent::Infinities ? infinity : largest;
  if (std::isinf(value))
    return sign | overflow;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0)
    return sign;
  const int bias = (1 << (exponentBits - 1)) - 1;
  int exponent = 0;
  std::frexp(magnitude, &exponent); // magnitude = m * 2^exponent with m in [0.5, 1)
  // The unit of the last place of the result; subnormals share the smallest normal's.
  const int unitExponent = std::max(exponent - 1, 1 - bias) - static_cast<int>(fractionBits);
  // nearbyint rounds half to even in the default mode, and the quotient is exact.
  const double units = std::nearbyint(std::ldexp(magnitude, -unitExponent));
  // units has fractionBits + 1 bits for a normal value, fewer for a subnormal one, and may have carried one further:
  // adding it onto the exponent field below its implicit bit handles all three.
  const int field = unitExponent + static_cast<int>(fractionBits) - (1 - bias);
  const uint64_t pattern = (static_cast<uint64_t>(field) << fractionBits) + static_cast<uint64_t>(units);
  return sign | (pattern > largest ? overflow : static_cast<uint32_t>(pattern));
}

float decode(uint32_t bits, unsigned exponentBits, unsigned fractionBits, TopExponent top) {
  const uint32_t fractionMask = (1u << fractionBits) - 1;
  const uint32_t exponentMask = (1u << exponentBits) - 1;
  const uint32_t fraction = bits & fractionMask;
  const uint32_t exponent = bits >> fractionBits & exponentMask;
  const float sign = bits >> (exponentBits + fractionBits) & 1 ? -1.0f : 1.0f;
  if (exponent == exponentMask) {
    if (top == TopExponent::Infinities)
      return fraction ? std::copysign(std::nanf(""), sign) : sign * INFINITY;
    if (fraction == fractionMask)
      return std::copysign(std::nanf(""), sign);
  }
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint32_t significand = exponent ? fraction | (1u << fractionBits) : fraction;
  return sign * std::ldexp(static_cast<float>(significand),
                           static_cast<int>(std::max(exponent, 1u)) - bias - static_cast<int>(fractionBits));
}

template <typename T> T loadAs(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T> void storeAs(void *address, T value) { std::memcpy(address, &value, sizeof(T)); }

/// Conversion to an integer type that is defined for every double: truncation, clamped to the range, NaN gives 0.
template <typename T> T toIntegerSaturating(double value) {
  if (std::isnan(value))
    return 0;
  // 2^digits is exact in a double, while the largest T may not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= limit)
    return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

} // namespace

std::string_view toString(DataType type) { return rowOf(type).name; }

std::optional<DataType> parseDataType(std::string_view name) {
  for (const TypeRow &row : rows)
    if (row.name == name)
      return row.type;
  if (name == "u1" || name == "bool")
    return DataType::I1;
  return std::nullopt;
}

const std::vector<std::string> &dataTypeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const TypeRow &row : rows)
      result.emplace_back(row.name);
    result.insert(result.end(), {"u1", "bool"});
    return result;
  }();
  return names;
}

Expected<DataType> parseDataTypeOrError(std::string_view name) {
  if (std::optional<DataType> type = parseDataType(name))
    return *type;
  return invalidArgument(fmt::format("'{}' is not an element type{}; accepted are {}", name,
                                     didYouMean(name, dataTypeNames()), fmt::join(dataTypeNames(), ", ")));
}

uint32_t sizeOf(DataType type) { return rowOf(type).bytes; }
bool isFloat(DataType type) { return type >= DataType::F8E5; }
bool isInteger(DataType type) { return !isFloat(type); }
bool isSignedInteger(DataType type) { return type >= DataType::I8 && type <= DataType::I64; }

uint16_t floatToHalf(float value) { return static_cast<uint16_t>(encode(value, 5, 10, TopExponent::Infinities)); }

uint16_t floatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  // Adding just under half a unit, plus one when the kept part is odd, rounds to nearest even; overflow carries into
  // infinity.
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint8_t floatToFloat8E5(float value) { return static_cast<uint8_t>(encode(value, 5, 2, TopExponent::Infinities)); }
uint8_t floatToFloat8E4NV(float value) { return static_cast<uint8_t>(encode(value, 4, 3, TopExponent::OnlyNan)); }
float halfToFloat(uint16_t bits) { return decode(bits, 5, 10, TopExponent::Infinities); }
float bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
float float8E5ToFloat(uint8_t bits) { return decode(bits, 5, 2, TopExponent::Infinities); }
float float8E4NVToFloat(uint8_t bits) { return decode(bits, 4, 3, TopExponent::OnlyNan); }

double loadElement(DataType type, const void *address) {
  switch (type) {
  case DataType::I1: return loadAs<uint8_t>(address) != 0;
  case DataType::I8: return loadAs<int8_t>(address);
  case DataType::I16: return loadAs<int16_t>(address);
  case DataType::I32: return loadAs<int32_t>(address);
  case DataType::I64: return static_cast<double>(loadAs<int64_t>(address));
  case DataType::U8: return loadAs<uint8_t>(address);
  case DataType::U16: return loadAs<uint16_t>(address);
  case DataType::U32: return loadAs<uint32_t>(address);
  case DataType::U64: return static_cast<double>(loadAs<uint64_t>(address));
  case DataType::F8E5: return float8E5ToFloat(loadAs<uint8_t>(address));
  case DataType::F8E4NV: return float8E4NVToFloat(loadAs<uint8_t>(address));
  case DataType::F16: return halfToFloat(loadAs<uint16_t>(address));
  case DataType::BF16: return bfloat16ToFloat(loadAs<uint16_t>(address));
  case DataType::F32: return loadAs<float>(address);
  case DataType::F64: return loadAs<double>(address);
  }
  return 0;
}

void storeElement(DataType type, void *address, double value) {
  switch (type) {
  case DataType::I1: return storeAs<uint8_t>(address, value != 0);
  case DataType::I8: return storeAs(address, toIntegerSaturating<int8_t>(value));
  case DataType::I16: return storeAs(address, toIntegerSaturating<int16_t>(value));
  case DataType::I32: return storeAs(address, toIntegerSaturating<int32_t>(value));
  case DataType::I64: return storeAs(address, toIntegerSaturating<int64_t>(value));
  case DataType::U8: return storeAs(address, toIntegerSaturating<uint8_t>(value));
  case DataType::U16: return storeAs(address, toIntegerSaturating<uint16_t>(value));
  case DataType::U32: return storeAs(address, toIntegerSaturating<uint32_t>(value));
  case DataType::U64: return storeAs(address, toIntegerSaturating<uint64_t>(value));
  case DataType::F8E5: return storeAs(address, floatToFloat8E5(static_cast<float>(value)));
  case DataType::F8E4NV: return storeAs(address, floatToFloat8E4NV(static_cast<float>(value)));
  case DataType::F16: return storeAs(address, floatToHalf(static_cast<float>(value)));
  case DataType::BF16: return storeAs(address, floatToBfloat16(static_cast<float>(value)));
  case DataType::F32: return storeAs(address, static_cast<float>(value));
  case DataType::F64: return storeAs(address, value);
  }
}

std::vector<float> toFloats(DataType type, const void *data, size_t count) {
  std::vector<float> result(count);
  const auto *bytes = static_cast<const std::byte *>(data);
  const size_t step = sizeOf(type);
  if (type == DataType::F32) {
    if (count)
      std::memcpy(result.data(), data, count * step);
    return result;
  }
  if (type == DataType::BF16) {
    for (size_t i = 0; i < count; ++i)
      result[i] = bfloat16ToFloat(loadAs<uint16_t>(bytes + i * step));
    return result;
  }
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<float>(loadElement(type, bytes + i * step));
  return result;
}

std::vector<std::byte> fromFloats(DataType type, const float *values, size_t count) {
  const size_t step = sizeOf(type);
  std::vector<std::byte> result(count * step);
  if (type == DataType::BF16) {
    for (size_t i = 0; i < count; ++i)
      storeAs(result.data() + i * step, floatToBfloat16(values[i]));
    return result;
  }
  for (size_t i = 0; i < count; ++i)
    storeElement(type, result.data() + i * step, values[i]);
  return result;
}

} // namespace ditron
