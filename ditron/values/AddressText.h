//===- AddressText.h - Addresses of arrays as text ------------------------------------------------------*- C++ -*-===//
//
//   ptr:x             where the array x lies on the rank that gets the value
//   ptr:x[2,0]        where its element (2, 0) lies
//   ptr:x@3           where rank 3's copy of the symmetric array x lies
//   ptr:x[2,0]@3
//
// As an argument it is a pointer to x's type. In a list of words, [ptr:x, ptr:y], it is a number, for kernels that take a table of
// pointers; [ptr:x@*] is a list of all ranks' copies.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_ADDRESSTEXT_H
#define DITRON_VALUES_ADDRESSTEXT_H

#include "ditron/runtime/Buffer.h"

#include <functional>

namespace ditron::values {

inline constexpr std::string_view addressMark = "ptr:";

struct AddressText {
  std::string array;
  std::vector<int64_t> index;   ///< Empty: the first element.
  std::optional<uint32_t> rank; ///< Unset: the rank that gets the value.
};

/// One of the forms above but for '@*'.
Expected<AddressText> parseAddressText(std::string_view name, std::string_view text);

/// Finds what an address means.
using AddressLookup = std::function<Expected<runtime::Pointer>(const AddressText &)>;

} // namespace ditron::values
#endif // DITRON_VALUES_ADDRESSTEXT_H
