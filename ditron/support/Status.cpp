//===- Status.cpp - The one error type of Ditron --------------------------------------------------------------------===//
#include "ditron/support/Status.h"

namespace ditron {

std::string_view toString(StatusCode code) {
  switch (code) {
  case StatusCode::Ok: return "ok";
  case StatusCode::InvalidArgument: return "invalid argument";
  case StatusCode::NotFound: return "not found";
  case StatusCode::Unsupported: return "unsupported";
  case StatusCode::CompileError: return "compile error";
  case StatusCode::Deadlock: return "deadlock";
  case StatusCode::OutOfBounds: return "out of bounds";
  case StatusCode::ResourceExhausted: return "resource exhausted";
  case StatusCode::Internal: return "internal error (a bug of Ditron)";
  }
  return "unknown";
}

const std::string &Status::message() const {
  static const std::string none;
  return state ? state->message : none;
}

Status Status::withContext(std::string_view context) const {
  if (isOk())
    return *this;
  return Status(state->code, std::string(context) + ": " + state->message);
}

} // namespace ditron
