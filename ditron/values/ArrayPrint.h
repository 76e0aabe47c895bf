//===- ArrayPrint.h - Arrays as text for people ---------------------------------------------------------*- C++ -*-===//
//
// An array in NumPy's form: nested brackets, columns of one width, "..." for the middle of long axes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_ARRAYPRINT_H
#define DITRON_VALUES_ARRAYPRINT_H

#include "ditron/support/Npy.h"

namespace ditron::values {

/// An element: integers in full, floats with as many digits as tell them from their neighbours.
std::string elementText(DataType type, const std::byte *address);

/// Whether axes longer than 16 are cut to their first and last three, when the array has more than 256 elements.
enum class Abbreviate { Never, Long };

std::string arrayText(const NpyArray &array, Abbreviate abbreviate);

} // namespace ditron::values
#endif // DITRON_VALUES_ARRAYPRINT_H
