//===- DataType.h - Element types of buffers and kernel parameters --------------------------------------*- C++ -*-===//
//
// The element types that host code can name, with the names of Triton's kernel signatures ("bf16", "fp32", "i32", "u8",
// "fp8e5"), their sizes, and conversions of single values and of whole arrays to and from float and double. Narrow
// floats round to nearest, ties to even, as the hardware's conversions do.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_DATATYPE_H
#define DITRON_SUPPORT_DATATYPE_H

#include "ditron/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ditron {

enum class DataType : uint8_t {
  I1, ///< bool: one byte in memory, 0 or 1.
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F8E5,   ///< 5 exponent bits, 2 fraction bits, with infinities.
  F8E4NV, ///< 4 exponent bits, 3 fraction bits, no infinities, largest value 448.
  F16,
  BF16,
  F32,
  F64,
};

/// The name in kernel signatures: "i1", "i32", "u8", "fp8e5", "fp8e4nv", "fp16", "bf16", "fp32", "fp64".
std::string_view toString(DataType type);
/// The type of that name. Also takes "u1" and "bool" for I1.
std::optional<DataType> parseDataType(std::string_view name);
/// The same with an error that names the nearest type.
Expected<DataType> parseDataTypeOrError(std::string_view name);
/// All names that parseDataType takes, the canonical ones first.
const std::vector<std::string> &dataTypeNames();

/// Bytes of one element in memory.
uint32_t sizeOf(DataType type);
bool isFloat(DataType type);
/// Integers and bool.
bool isInteger(DataType type);
bool isSignedInteger(DataType type);

/// Bit pattern of a narrow float nearest to the value, ties to even. Past the largest value: infinity where the type
/// has one, else (fp8e4nv) the largest finite value; NaN stays NaN.
uint16_t floatToHalf(float value);
uint16_t floatToBfloat16(float value);
uint8_t floatToFloat8E5(float value);
uint8_t floatToFloat8E4NV(float value);
float halfToFloat(uint16_t bits);
float bfloat16ToFloat(uint16_t bits);
float float8E5ToFloat(uint8_t bits);
float float8E4NVToFloat(uint8_t bits);

/// The element at `address` as a double; 64-bit integers may round.
double loadElement(DataType type, const void *address);
/// Stores a value as an element: floats round to nearest even, integers truncate towards zero, bool is value != 0.
void storeElement(DataType type, void *address, double value);

/// `count` elements as floats.
std::vector<float> toFloats(DataType type, const void *data, size_t count);
/// Elements of the type, rounded from floats.
std::vector<std::byte> fromFloats(DataType type, const float *values, size_t count);

} // namespace ditron
#endif // DITRON_SUPPORT_DATATYPE_H
