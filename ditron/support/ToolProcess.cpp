//===- ToolProcess.cpp - What every program of ours does first and last ---------------------------------------------===//
//
// stdout and stderr become streams with write functions of ours (fopencookie): those of the C library report a failed write to
// whoever calls, and fmt turns that into an exception, in any thread and on any fiber.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/ToolProcess.h"

#include "ditron/support/OutputFile.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <iostream>
#include <new>
#include <system_error>
#include <unistd.h>

namespace ditron {

namespace {

const char *programName = "ditron";
/// The first error of writing to standard output; 0 for none.
std::atomic<int> outputError = 0;

ssize_t writeOutput(void *, const char *data, size_t size) {
  if (outputError == 0)
    if (const int error = writeAll(STDOUT_FILENO, {data, size}))
      outputError = error;
  return static_cast<ssize_t>(size); // what came before cannot be completed: the rest is dropped
}

ssize_t writeErrors(void *, const char *data, size_t size) {
  (void)writeAll(STDERR_FILENO, {data, size});
  return static_cast<ssize_t>(size);
}

/// A descriptor that nobody opened is the next file's number: our messages would go into a user's array.
void occupyClosedStreams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      // The wrong way round, so that using it is an error. open takes the lowest number that is free, this one.
      (void)!::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

[[noreturn]] void endUncaught() {
  std::string text;
  int code = ExitBug;
  try {
    if (std::exception_ptr exception = std::current_exception())
      std::rethrow_exception(exception);
    text = "a bug of Ditron: std::terminate without an exception";
  } catch (const std::bad_alloc &) {
    endWithoutMemory();
  } catch (const std::system_error &error) {
    if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory) {
      code = ExitExhausted;
      text = "cannot start a thread: the limit on processes (ulimit -u) or memory is reached";
    } else {
      text = fmt::format("a bug of Ditron: an exception that nobody caught: {}", error.what());
    }
  } catch (const std::exception &error) {
    text = fmt::format("a bug of Ditron: an exception that nobody caught: {}", error.what());
  } catch (...) {
    text = "a bug of Ditron: an exception that nobody caught";
  }
  endProcess(code, text);
}

} // namespace

void endProcess(int exitCode, std::string_view message) noexcept {
  // Pieces, since there may be no memory to join them.
  for (std::string_view piece : {std::string_view(programName), std::string_view(": error: "), message, std::string_view("\n")})
    (void)writeAll(STDERR_FILENO, piece);
  removeUnfinishedFiles();
  ::_exit(exitCode);
}

void endWithoutMemory() noexcept {
  endProcess(ExitExhausted, "not enough memory: the system, or a limit of this process (ulimit -v), refuses more; smaller arrays, "
                            "fewer ranks or a higher limit");
}

ToolProcess::ToolProcess(const char *name) {
  programName = name;
  occupyClosedStreams();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler([] { endWithoutMemory(); });
  std::set_terminate(endUncaught);
  const bool isTerminal = ::isatty(STDOUT_FILENO) == 1;
  if (std::FILE *stream = ::fopencookie(nullptr, "w", {nullptr, writeOutput, nullptr, nullptr})) {
    std::setvbuf(stream, nullptr, isTerminal ? _IOLBF : _IOFBF, size_t(1) << 16);
    stdout = stream;
  }
  if (std::FILE *stream = ::fopencookie(nullptr, "w", {nullptr, writeErrors, nullptr, nullptr})) {
    std::setvbuf(stream, nullptr, _IONBF, 0);
    stderr = stream;
  }
}

int ToolProcess::finish(int exitCode) {
  // The C++ streams still write to the C library's own standard output.
  errno = 0;
  if (!std::cout.flush().good() && outputError == 0)
    outputError = errno ? errno : EIO;
  std::fflush(stdout);
  const int error = outputError;
  if (error == 0)
    return exitCode;
  fmt::print(stderr, "{}: error: cannot write all of standard output: {}\n", programName, std::strerror(error));
  if (exitCode != 0)
    return exitCode;
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? ExitExhausted : ExitUserError;
}

void ToolProcess::restoreForChild() {
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
}

} // namespace ditron
