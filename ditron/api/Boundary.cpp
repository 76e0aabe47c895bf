//===- Boundary.cpp - Between the C interface and the library -----------------------------------------------------===//
#include "ditron/api/Boundary.h"

#include "ditron/support/ForkGate.h"

#include <exception>
#include <fmt/format.h>
#include <new>

namespace ditron::api {

namespace {

thread_local Status lastFailure;

ditron_status_t toNumber(StatusCode code) {
  switch (code) {
  case StatusCode::Ok: return DITRON_OK;
  case StatusCode::InvalidArgument: return DITRON_INVALID_ARGUMENT;
  case StatusCode::NotFound: return DITRON_NOT_FOUND;
  case StatusCode::Unsupported: return DITRON_UNSUPPORTED;
  case StatusCode::CompileError: return DITRON_COMPILE_ERROR;
  case StatusCode::Deadlock: return DITRON_DEADLOCK;
  case StatusCode::TimeOut: return DITRON_TIMEOUT;
  case StatusCode::OutOfBounds: return DITRON_OUT_OF_BOUNDS;
  case StatusCode::DataRace: return DITRON_DATA_RACE;
  case StatusCode::ResourceExhausted: return DITRON_RESOURCE_EXHAUSTED;
  case StatusCode::Internal: return DITRON_INTERNAL;
  }
  return DITRON_INTERNAL;
}

} // namespace

ditron_status_t report(const Status &status) {
  if (!status.isOk())
    lastFailure = status;
  return toNumber(status.code());
}

ditron_status_t guarded(const std::function<Status()> &body) {
  const ForkGate gate;
  try {
    return report(body());
  } catch (const std::bad_alloc &) {
    return report(Status(StatusCode::ResourceExhausted, "out of host memory"));
  } catch (const std::exception &error) {
    return report(internalError(fmt::format("exception: {}", error.what())));
  }
}

Status checkGiven(const void *pointer, std::string_view what) {
  return pointer ? Status::ok() : invalidArgument(fmt::format("{} is null", what));
}

Status checkFlags(std::string_view type, std::initializer_list<Flag> flags) {
  for (const auto &[name, value] : flags)
    if (value > 1)
      return invalidArgument(fmt::format("{}: {} is {}; 0 and 1 are accepted", type, name, value));
  return Status::ok();
}

Status checkStructSize(const void *given, size_t givenSize, size_t knownSize, std::string_view type) {
  if (givenSize <= sizeof(size_t))
    return invalidArgument(fmt::format("{}: struct_size is {}; DITRON_INIT sets it to {}", type, givenSize, knownSize));
  constexpr size_t mostBytes = 4096;
  if (givenSize > mostBytes || givenSize % sizeof(uint32_t) != 0 ||
      (givenSize < knownSize && givenSize % alignof(void *) != 0))
    return invalidArgument(fmt::format("{}: struct_size is {}; accepted are up to {}", type, givenSize, mostBytes));
  const auto *bytes = static_cast<const unsigned char *>(given);
  for (size_t i = knownSize; i < givenSize; ++i)
    if (bytes[i] != 0)
      return invalidArgument(
          fmt::format("{}: byte {} is not zero, and this library (version {}) knows {} bytes of it: it is "
                      "older than the program",
                      type, i, DITRON_VERSION_STRING, knownSize));
  return Status::ok();
}

Expected<DataType> toDataType(ditron_dtype_t dtype, std::string_view what) {
  static_assert(static_cast<int>(DataType::I1) == DITRON_I1 && static_cast<int>(DataType::U8) == DITRON_U8 &&
                static_cast<int>(DataType::F8E5) == DITRON_F8E5 && static_cast<int>(DataType::F64) == DITRON_F64);
  if (static_cast<unsigned>(dtype) > DITRON_F64)
    return invalidArgument(fmt::format("{}: {} is no ditron_dtype_t; accepted are 0 to {}", what,
                                       static_cast<unsigned>(dtype), static_cast<unsigned>(DITRON_F64)));
  return static_cast<DataType>(dtype);
}

} // namespace ditron::api

using namespace ditron;

extern "C" {

void ditron_last_error(ditron_error_t *error) {
  if (!error)
    return;
  ditron_error_t found = {};
  found.status = api::toNumber(api::lastFailure.code());
  found.message = api::lastFailure.message().c_str();
  if (const SourceLocation *place = api::lastFailure.location(); place && !place->file.empty()) {
    found.file = place->file.c_str();
    found.line = place->line;
    found.column = place->column;
  }
  found.struct_size = error->struct_size;
  std::memcpy(error, &found, std::min(error->struct_size, sizeof(found)));
}

const char *ditron_status_name(ditron_status_t status) {
  switch (status) {
  case DITRON_OK: return "ok";
  case DITRON_INVALID_ARGUMENT: return "invalid argument";
  case DITRON_NOT_FOUND: return "not found";
  case DITRON_UNSUPPORTED: return "unsupported";
  case DITRON_COMPILE_ERROR: return "compile error";
  case DITRON_DEADLOCK: return "deadlock";
  case DITRON_OUT_OF_BOUNDS: return "out of bounds";
  case DITRON_DATA_RACE: return "data race";
  case DITRON_RESOURCE_EXHAUSTED: return "resource exhausted";
  case DITRON_INTERNAL: return "internal error";
  case DITRON_TIMEOUT: return "time limit passed";
  }
  return "unknown status";
}

uint32_t ditron_version(void) { return DITRON_VERSION_NUMBER; }

uint32_t ditron_dtype_size(ditron_dtype_t dtype) {
  Expected<DataType> type = api::toDataType(dtype, "dtype");
  return type.isOk() ? sizeOf(*type) : 0;
}

const char *ditron_dtype_name(ditron_dtype_t dtype) {
  Expected<DataType> type = api::toDataType(dtype, "dtype");
  return type.isOk() ? toString(*type).data() : nullptr;
}

} // extern "C"
