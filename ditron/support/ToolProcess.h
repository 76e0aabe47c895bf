//===- ToolProcess.h - What every program of ours does first and last --------------------------------------*- C++ -*-===//
//
// A program is started with streams that are closed, full or read by nobody, and with limits on memory, threads and files. None
// of that may end in a signal, an exception or a result that is missing although the exit code says 0:
//
//   - a closed standard stream is put onto /dev/null, so that no file of ours gets its number, and writing to it fails;
//   - writing to stdout or stderr never throws and never blocks the rest: the first error of stdout is kept for finish(), and what
//     cannot be said on stderr is not said;
//   - memory that cannot be had, also by code without exceptions and on a fiber, ends the process with a message and exit code 3;
//     so do threads that cannot be started;
//   - any other exception that nobody catches is a bug of Ditron: a message and exit code 4;
//   - SIGPIPE and SIGXFSZ become errors of write.
//
//   int main(int argc, char **argv) {
//     ToolProcess process("ditron");
//     ...
//     return process.finish(exitCode);
//   }
//
// For programs only: a library does not touch what belongs to the whole process.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_TOOLPROCESS_H
#define DITRON_SUPPORT_TOOLPROCESS_H

#include "ditron/support/Status.h"

namespace ditron {

/// The same for all programs.
enum ExitCode {
  ExitDone = 0,
  ExitUserError = 1,    ///< The command line, a file or the kernel's source is wrong.
  ExitKernelFailed = 2, ///< The kernel failed while it ran: deadlock, access out of bounds, failed device_assert.
  ExitExhausted = 3,    ///< Not enough memory, shared memory, threads or room on the disk.
  ExitBug = 4,          ///< A bug of Ditron itself.
  ExitMismatch = 5      ///< A result is not the one that --expect names.
};
/// What shells say of a process that a signal ended (Ctrl-C: 130).
constexpr int exitOfSignal(int signal) { return 128 + signal; }

class ToolProcess {
public:
  /// `name` stands before messages. One object for each process.
  explicit ToolProcess(const char *name);
  ToolProcess(const ToolProcess &) = delete;
  ToolProcess &operator=(const ToolProcess &) = delete;

  /// Flushes stdout. The exit code of the process: `exitCode`, or, when that is 0 and not all of the output could be
  /// written, that of a failure, which is then reported.
  int finish(int exitCode);

  /// What a child process should have as we were started with it: call between fork and exec.
  static void restoreForChild();
};

/// Writes a message to stderr and ends the process at once, from any place: no destructors, no memory. For handlers.
[[noreturn]] void endProcess(int exitCode, std::string_view message) noexcept;
/// endProcess for memory that cannot be had.
[[noreturn]] void endWithoutMemory() noexcept;

} // namespace ditron
#endif // DITRON_SUPPORT_TOOLPROCESS_H
