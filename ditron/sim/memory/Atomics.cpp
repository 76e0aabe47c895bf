//===- Atomics.cpp - Arithmetic of atomic operations --------------------------------------------------------------===//
//
// One switch over types, one over operations. Floating minimum and maximum ignore a NaN when the other operand is a
// number, as the hardware's do.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/memory/Atomics.h"

#include "ditron/abi/Simulator.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace ditron::sim {

float halfToFloat(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
uint16_t floatToHalf(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t floatToBfloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint32_t typeBytes(uint32_t type) {
  switch (type) {
  case DITRON_SIM_I8: return 1;
  case DITRON_SIM_I16:
  case DITRON_SIM_F16:
  case DITRON_SIM_BF16: return 2;
  case DITRON_SIM_I32:
  case DITRON_SIM_F32:
  case DITRON_SIM_TF32: return 4;
  case DITRON_SIM_I64:
  case DITRON_SIM_F64: return 8;
  default: return 0;
  }
}

namespace {

template <typename Unsigned> std::optional<uint64_t> integerResult(uint32_t op, uint64_t oldBits, uint64_t valueBits) {
  using Signed = std::make_signed_t<Unsigned>;
  auto old = static_cast<Unsigned>(oldBits), value = static_cast<Unsigned>(valueBits);
  auto signedLess = static_cast<Signed>(old) < static_cast<Signed>(value);
  switch (op) {
  case DITRON_SIM_RMW_ADD: return static_cast<Unsigned>(old + value);
  case DITRON_SIM_RMW_AND: return static_cast<Unsigned>(old & value);
  case DITRON_SIM_RMW_OR: return static_cast<Unsigned>(old | value);
  case DITRON_SIM_RMW_XOR: return static_cast<Unsigned>(old ^ value);
  case DITRON_SIM_RMW_MAX: return signedLess ? value : old;
  case DITRON_SIM_RMW_MIN: return signedLess ? old : value;
  case DITRON_SIM_RMW_UMAX: return old < value ? value : old;
  case DITRON_SIM_RMW_UMIN: return old < value ? old : value;
  case DITRON_SIM_RMW_EXCHANGE: return value;
  default: return std::nullopt;
  }
}

template <typename Float> std::optional<Float> floatResult(uint32_t op, Float old, Float value) {
  switch (op) {
  case DITRON_SIM_RMW_FADD: return old + value;
  // By the order of the bit patterns, in which -0.0 is below 0.0.
  case DITRON_SIM_RMW_FMAX: return old == value ? (std::signbit(old) ? value : old) : std::fmax(old, value);
  case DITRON_SIM_RMW_FMIN: return old == value ? (std::signbit(old) ? old : value) : std::fmin(old, value);
  default: return std::nullopt;
  }
}

} // namespace

std::optional<uint64_t> atomicResult(uint32_t op, uint32_t type, uint64_t old, uint64_t value) {
  const bool isFloatOp = op == DITRON_SIM_RMW_FADD || op == DITRON_SIM_RMW_FMAX || op == DITRON_SIM_RMW_FMIN;
  if (!isFloatOp)
    switch (typeBytes(type)) {
    case 1: return integerResult<uint8_t>(op, old, value);
    case 2: return integerResult<uint16_t>(op, old, value);
    case 4: return integerResult<uint32_t>(op, old, value);
    case 8: return integerResult<uint64_t>(op, old, value);
    default: return std::nullopt;
    }
  switch (type) {
  case DITRON_SIM_F16:
    if (auto r = floatResult(op, halfToFloat(static_cast<uint16_t>(old)), halfToFloat(static_cast<uint16_t>(value))))
      return floatToHalf(*r);
    return std::nullopt;
  case DITRON_SIM_BF16:
    if (auto r =
            floatResult(op, bfloatToFloat(static_cast<uint16_t>(old)), bfloatToFloat(static_cast<uint16_t>(value))))
      return floatToBfloat(*r);
    return std::nullopt;
  case DITRON_SIM_F32:
    if (auto r = floatResult(op, std::bit_cast<float>(static_cast<uint32_t>(old)),
                             std::bit_cast<float>(static_cast<uint32_t>(value))))
      return std::bit_cast<uint32_t>(*r);
    return std::nullopt;
  case DITRON_SIM_F64:
    if (auto r = floatResult(op, std::bit_cast<double>(old), std::bit_cast<double>(value)))
      return std::bit_cast<uint64_t>(*r);
    return std::nullopt;
  default: return std::nullopt;
  }
}

} // namespace ditron::sim
