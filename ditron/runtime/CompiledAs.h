//===- CompiledAs.h - What of an argument goes into the code for it ----------------------------------------*- C++ -*-===//
//
// Triton's rules, in one place for those who choose a variant (jit), find one (package), and check the call of one (runtime): the type
// that a value has by itself, whether an integer fits a type, and what counts as aligned.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_COMPILEDAS_H
#define DITRON_RUNTIME_COMPILEDAS_H

#include "ditron/runtime/Argument.h"

namespace ditron::runtime {

/// Addresses (in bytes), integers and sizes (in elements) that are multiples of this are compiled as such.
inline constexpr uint32_t alignmentUnit = 16;

inline bool isMultiple(const void *address, uint32_t of) { return reinterpret_cast<uintptr_t>(address) % of == 0; }

/// Of an integer or bool, in an integer type.
bool fitsInteger(DataType type, const Argument &argument);

/// The type of a bool, integer or float when nothing forces one: i1, the first of i32, i64 and u64 that it fits, fp32.
DataType naturalType(const Argument &argument);

/// The address and all strides but the last are multiples of so many bytes.
bool rowsAreMultiples(const TensorDescriptor &descriptor, uint32_t bytes);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_COMPILEDAS_H
