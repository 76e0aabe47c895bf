"""Exceptions: one type for each kind of failure. The text is the rendered message; a mistake in a kernel has its place as data."""


class Error(RuntimeError):
    """Any failure of Ditron."""

    file = None
    line = None
    column = None


class InvalidArgumentError(Error, ValueError):
    """A value is wrong; the message names it, the limit and what is accepted."""


class NotFoundError(Error, LookupError):
    """No file, kernel or parameter of that name."""


class UnsupportedError(Error, NotImplementedError):
    """Correct in principle, refused by this version."""


class CompilationError(Error):
    """A kernel's source is wrong: `file`, `line` and `column` say where, the text shows the line with a caret."""

    def __init__(self, message="", *rest):
        super().__init__(message)
        self.message = message


class DeadlockError(Error):
    """Nothing can run and nothing is in flight (simulated GPUs)."""


class OutOfBoundsError(Error):
    """A kernel touched memory outside of every tensor that it was given, or failed an assertion."""


class DataRaceError(Error):
    """Two accesses of one byte that nothing orders (simulated GPUs)."""


class ResourceExhaustedError(Error, MemoryError):
    """Memory, shared memory, threads or residency."""


class InternalError(Error):
    """A bug of Ditron."""


class TimeoutError(Error, TimeoutError):
    """A time limit passed, or the process that is waited for has ended."""


class InterpreterError(Error):
    """There for programs that name it; Ditron has no interpreter."""


_BY_STATUS = {1: InvalidArgumentError, 2: NotFoundError, 3: UnsupportedError, 4: CompilationError, 5: DeadlockError, 6: OutOfBoundsError,
              7: ResourceExhaustedError, 8: InternalError, 9: TimeoutError, 10: DataRaceError}


def make_error(status, message, file, line, column):
    """The exception for a failed call of the library."""
    message = message.rstrip("\n")
    if status == 4:
        message = "\n" + message  # so that the caret stands under its line
    error = _BY_STATUS.get(status, Error)(message)
    error.file, error.line, error.column = file, line or None, column or None
    return error
