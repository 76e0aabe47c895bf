//===- CompiledAs.cpp - What of an argument goes into the code for it -------------------------------------------------===//
#include "ditron/runtime/CompiledAs.h"

namespace ditron::runtime {

bool fitsInteger(DataType type, const Argument &argument) {
  const uint64_t value = argument.integerBits();
  const unsigned bits = sizeOf(type) * 8;
  const bool isNegative = argument.is<int64_t>() && argument.get<int64_t>() < 0;
  // The largest value of the type; the smallest is its complement (signed) or 0.
  const uint64_t largest = (isSignedInteger(type) ? ~uint64_t(0) >> 1 : ~uint64_t(0)) >> (64 - bits);
  return isNegative ? isSignedInteger(type) && ~value <= largest : value <= largest;
}

DataType naturalType(const Argument &argument) {
  if (argument.is<bool>())
    return DataType::I1;
  if (argument.is<double>())
    return DataType::F32;
  if (fitsInteger(DataType::I32, argument))
    return DataType::I32;
  return fitsInteger(DataType::I64, argument) ? DataType::I64 : DataType::U64;
}

bool rowsAreMultiples(const TensorDescriptor &given, uint32_t bytes) {
  const TensorDescriptor descriptor = given.withStrides();
  bool aligned = isMultiple(descriptor.base.address, bytes);
  for (size_t dim = 0; dim + 1 < descriptor.strides.size(); ++dim)
    aligned &= descriptor.strides[dim] * int64_t(sizeOf(descriptor.base.type)) % bytes == 0;
  return aligned;
}

} // namespace ditron::runtime
