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
  case StatusCode::TimeOut: return "time limit passed";
  case StatusCode::OutOfBounds: return "out of bounds";
  case StatusCode::DataRace: return "data race";
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
  Status result(state->code, std::string(context) + ": " + state->message);
  return state->location ? result.at(*state->location) : result;
}

Status Status::at(SourceLocation location) const {
  Status result;
  if (!isOk())
    result.state = std::make_shared<State>(State{state->code, state->message, std::move(location)});
  return result;
}

} // namespace ditron
