//===- Status.h - The one error type of Ditron -------------------------------------------------------------*- C++ -*-===//
//
// Errors are values. Every fallible function outside MLIR passes returns a Status, or an Expected<T> that holds either a
// T or a Status. A Status that is not ok carries a code and a message in full sentences; context is added on the way up
// with withContext. Nothing throws across a public API and no library calls exit.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_STATUS_H
#define DITRON_SUPPORT_STATUS_H

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ditron {

enum class StatusCode {
  Ok,
  InvalidArgument,   ///< The caller's value is wrong; the message names the value, the limit and what is accepted.
  NotFound,          ///< A file, kernel, buffer or parameter of that name does not exist.
  Unsupported,       ///< Correct in principle, refused by this version.
  CompileError,      ///< The kernel's source is wrong; the message is the rendered diagnostic.
  Deadlock,          ///< Nothing can run and nothing is in flight.
  TimeOut,           ///< A time limit passed: of a run, a wait, a meeting; or the process that is waited for has ended.
  OutOfBounds,       ///< A kernel touched memory outside of every allocation.
  ResourceExhausted, ///< Memory, shared memory, threads or residency.
  Internal,          ///< A bug of Ditron itself.
  DataRace,          ///< Two accesses of one byte that nothing orders.
};

/// The name of a code as users see it, for example "invalid argument".
std::string_view toString(StatusCode code);

/// A place in a kernel's source. Lines and columns count from 1; 0 where they are not known.
struct SourceLocation {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
};

/// A success or an error. Pointer-sized; a success allocates nothing.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : state(code == StatusCode::Ok ? nullptr : std::make_shared<State>(State{code, std::move(message), {}})) {}

  static Status ok() { return Status(); }

  bool isOk() const { return state == nullptr; }
  explicit operator bool() const = delete; // ask isOk(): the meaning of "true" differs between projects

  StatusCode code() const { return state ? state->code : StatusCode::Ok; }
  /// The message without the code; empty for a success.
  const std::string &message() const;

  /// The place in a kernel's source that the error is about; null when there is none. The message names it too.
  const SourceLocation *location() const { return state && state->location ? &*state->location : nullptr; }
  /// The same error about a place; a success stays a success.
  Status at(SourceLocation location) const;

  /// The same error with "context: " put before its message; a success stays a success.
  Status withContext(std::string_view context) const;

private:
  struct State {
    StatusCode code;
    std::string message;
    std::optional<SourceLocation> location;
  };
  std::shared_ptr<const State> state;
};

inline Status invalidArgument(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }
inline Status notFound(std::string message) { return {StatusCode::NotFound, std::move(message)}; }
inline Status unsupported(std::string message) { return {StatusCode::Unsupported, std::move(message)}; }
inline Status internalError(std::string message) { return {StatusCode::Internal, std::move(message)}; }

/// Either a T or the Status that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Status error) : storage(std::in_place_index<1>, std::move(error)) {
    assert(!std::get<1>(storage).isOk() && "an Expected without a value needs an error");
  }

  bool isOk() const { return storage.index() == 0; }
  /// The error, or ok.
  Status status() const { return isOk() ? Status::ok() : std::get<1>(storage); }

  T &value() & { return std::get<0>(storage); }
  const T &value() const & { return std::get<0>(storage); }
  T &&value() && { return std::get<0>(std::move(storage)); }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

private:
  std::variant<T, Status> storage;
};

} // namespace ditron

/// Returns from the current function when the expression is an error.
#define DITRON_RETURN_IF_ERROR(expression)                                                                             \
  do {                                                                                                                 \
    if (::ditron::Status ditronStatus_ = (expression); !ditronStatus_.isOk())                                          \
      return ditronStatus_;                                                                                            \
  } while (false)

#define DITRON_CONCAT_INNER(a, b) a##b
#define DITRON_CONCAT(a, b) DITRON_CONCAT_INNER(a, b)
#define DITRON_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression)                                               \
  auto temporary = (expression);                                                                                       \
  if (!temporary.isOk())                                                                                               \
    return temporary.status();                                                                                         \
  declaration = std::move(temporary).value()
/// DITRON_ASSIGN_OR_RETURN(auto x, f()): declares x from an Expected, or returns its error.
#define DITRON_ASSIGN_OR_RETURN(declaration, expression)                                                               \
  DITRON_ASSIGN_OR_RETURN_IMPL(DITRON_CONCAT(ditronExpected_, __LINE__), declaration, expression)

#endif // DITRON_SUPPORT_STATUS_H
