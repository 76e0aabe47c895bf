//===- Boundary.h - Between the C interface and the library ---------------------------------------------------*- C++ -*-===//
//
// What every function of ditron.h does first and last: structures of callers that know fewer members than this library are
// completed with zeros, errors become a number and the calling thread's latest failure, and no exception gets out.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_API_BOUNDARY_H
#define DITRON_API_BOUNDARY_H

#include "ditron/support/DataType.h"
#include "ditron/support/Status.h"

#include <ditron/ditron.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>

namespace ditron::api {

/// Remembers the error for ditron_last_error and gives its number; a success leaves the latest failure as it is.
ditron_status_t report(const Status &status);

/// Runs the body of a function of the C interface, inside of a ForkGate: what it returns or throws is reported.
ditron_status_t guarded(const std::function<Status()> &body);

/// An error that says so when a pointer that must not be null is.
Status checkGiven(const void *pointer, std::string_view what);

/// A member of an options struct that says yes or no: its name and its value.
using Flag = std::pair<const char *, uint32_t>;
/// Refuses values that are neither 0 nor 1: whoever gives another one takes the member for a count.
Status checkFlags(std::string_view type, std::initializer_list<Flag> flags);

/// Refuses sizes that no version of the structure has, and members from the future that are not zero.
Status checkStructSize(const void *given, size_t givenSize, size_t knownSize, std::string_view type);

/// The structure as this library knows it; `given` may be null where that means all defaults.
template <typename T> Expected<T> readStruct(const T *given, std::string_view type) {
  T complete = {};
  complete.struct_size = sizeof(T);
  if (!given)
    return complete;
  DITRON_RETURN_IF_ERROR(checkStructSize(given, given->struct_size, sizeof(T), type));
  std::memcpy(&complete, given, std::min(given->struct_size, sizeof(T)));
  return complete;
}

/// Copies as much of a result as the caller's structure has room for, its size kept.
template <typename T> Status writeStruct(T *target, T value, std::string_view type) {
  DITRON_RETURN_IF_ERROR(checkGiven(target, type));
  const size_t size = std::min(target->struct_size, sizeof(T));
  if (size <= sizeof(size_t))
    return invalidArgument(std::string(type) + ": struct_size is not set; DITRON_INIT does so");
  value.struct_size = target->struct_size;
  std::memcpy(target, &value, size);
  return Status::ok();
}

/// The element type of that number.
Expected<DataType> toDataType(ditron_dtype_t dtype, std::string_view what);

} // namespace ditron::api
#endif // DITRON_API_BOUNDARY_H
