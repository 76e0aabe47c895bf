//===- PythonNames.cpp - What Python has, known here or not -------------------------------------------------------------===//
//
// dir() of the module and the types, without names in double underscores, which all count as Python's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/natives/PythonNames.h"

#include "llvm/ADT/StringSet.h"

namespace ditron::frontend {

bool isFunctionOfPython(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup", "BlockingIOError",
      "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError", "ConnectionAbortedError", "ConnectionError",
      "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning",
      "EnvironmentError", "Exception", "ExceptionGroup", "False", "FileExistsError", "FileNotFoundError",
      "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning",
      "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt",
      "LookupError", "MemoryError", "ModuleNotFoundError", "NameError", "None", "NotADirectoryError", "NotImplemented",
      "NotImplementedError", "OSError", "OverflowError", "PendingDeprecationWarning", "PermissionError",
      "ProcessLookupError", "RecursionError", "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning",
      "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError", "SystemExit", "TabError",
      "TimeoutError", "True", "TypeError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError",
      "UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning", "ValueError", "Warning",
      "ZeroDivisionError", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray",
      "bytes", "callable", "chr", "classmethod", "compile", "complex", "copyright", "credits", "delattr", "dict", "dir",
      "divmod", "enumerate", "eval", "exec", "exit", "filter", "float", "format", "frozenset", "getattr", "globals",
      "hasattr", "hash", "help", "hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len", "license",
      "list", "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open", "ord", "pow", "print",
      "property", "quit", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod",
      "str", "sum", "super", "tuple", "type", "vars", "zip"};
  return names.contains(name) || (name.starts_with("__") && name.ends_with("__"));
}

bool isAttributeOfPython(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "_asdict", "_field_defaults", "_fields", "_make", "_member_map_", "_name_", "_replace", "_value_", "add",
      "add_note", "append", "appendleft", "args", "as_integer_ratio", "bit_count", "bit_length", "c_contiguous",
      "cache_clear", "cache_info", "cache_parameters", "capitalize", "casefold", "cast", "center", "characters_written",
      "clear", "close", "conjugate", "contiguous", "copy", "count", "decode", "default_factory", "deleter", "denominator",
      "difference", "difference_update", "discard", "elements", "encode", "endswith", "errno", "expandtabs", "extend",
      "extendleft", "f_contiguous", "fdel", "fget", "filename", "filename2", "find", "format", "format_map", "from_bytes",
      "fromhex", "fromkeys", "fset", "func", "get", "getter", "gi_code", "gi_frame", "gi_running", "gi_suspended",
      "gi_yieldfrom", "hex", "imag", "index", "indices", "insert", "intersection", "intersection_update", "is_integer",
      "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isdisjoint", "isidentifier", "islower", "isnumeric",
      "isprintable", "isspace", "issubset", "issuperset", "istitle", "isupper", "items", "itemsize", "join", "keys",
      "keywords", "ljust", "lower", "lstrip", "maketrans", "maxlen", "most_common", "move_to_end", "mro", "msg", "name",
      "nbytes", "ndim", "new_child", "numerator", "obj", "parents", "partition", "path", "pop", "popitem", "popleft",
      "readonly", "real", "release", "remove", "removeprefix", "removesuffix", "replace", "reverse", "rfind", "rindex",
      "rjust", "rotate", "rpartition", "rsplit", "rstrip", "send", "setdefault", "setter", "shape", "sort", "split",
      "splitlines", "start", "startswith", "step", "stop", "strerror", "strides", "strip", "suboffsets", "subtract",
      "swapcase", "symmetric_difference", "symmetric_difference_update", "throw", "title", "to_bytes", "tobytes",
      "tolist", "toreadonly", "total", "translate", "union", "update", "upper", "value", "values", "with_traceback",
      "zfill"};
  return names.contains(name) || (name.starts_with("__") && name.ends_with("__"));
}

} // namespace ditron::frontend
