//===- Atomics.h - Arithmetic of atomic operations ------------------------------------------------------*- C++ -*-===//
//
// What a read-modify-write makes of an old and a given value, as bit patterns. No memory and no threads here.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_MEMORY_ATOMICS_H
#define DITRON_SIM_MEMORY_ATOMICS_H

#include <cstdint>
#include <optional>

namespace ditron::sim {

/// Bytes of an element of that DitronSimType; 0 for an unknown type.
uint32_t typeBytes(uint32_t type);
/// The new value; none when the type has no such operation. Patterns are zero-extended.
std::optional<uint64_t> atomicResult(uint32_t op, uint32_t type, uint64_t old, uint64_t value);
/// Conversions of the 16-bit float formats, to nearest even.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

} // namespace ditron::sim

#endif // DITRON_SIM_MEMORY_ATOMICS_H
