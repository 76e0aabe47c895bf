//===- Stubs.h - The declaration of the language, read ---------------------------------------------------*- C++ -*-===//
//
// library/*.pyi declare every name of the language in Python's own syntax for that, stub files: functions with their parameters
// and a docstring, classes with their member functions, constants, what a module takes from others. This is their reader: text to
// plain data, with every mistake reported at its place. Two use it: ditron-stub-table, which makes the C++ table of the language
// while Ditron is built (so a mistake in a stub fails the build, and a start of Ditron reads nothing), and the writer of stubs
// for editors. No MLIR. What stands in a stub:
//
//     from . import math, extra as target_info     modules within this one
//     from .tl import cdiv, exp                    names of another module that are names of this one, too
//     float32: dtype                               a type; LIMIT: int = 7 is a number, const: annotation a word of annotations
//     class PropagateNan(enumeration): ...         numbers in a module of their own
//     class constexpr: def __init__(self, x): ...  with @handler: called like a function of __init__'s parameters
//     class tensor: ...                            a class for isinstance; in it member functions, and for editors what the evaluator
//                                                  knows by itself: attributes (shape: tuple), operators (def __add__(...))
//     def load(pointer: mem, mask: num | None = None) -> tensor:
//         """elements behind pointers"""           the C++ function is builtins::load
//     putmem_wave = putmem_warp                    another name of the function above; a docstring may follow
//
// Decorators of a function: @handler("castTo") names the C++ function where it is not the name in lowerCamel. It gets the arguments one
// by one, each in the C++ type of its word. Values by keyword are given to it in front of them: @handler("shmemPut", nonblocking=True),
// also numbers, texts, and ScalarKind.Int32 for the C++ constant ScalarKind::Int32. @handler("hardware", ...): arguments as a list.
// @scope("block") or @scope("warp"): the threads that carry it out together. @member: also a member function of tensors.
// @library("random"): written in the language, in library/random.py. @refused("why"): known, but not there.
//
// Words of parameters: any (also without a word), num (a number or tensor), tensor (run time), block (rank 1 or more), ptr (run-time
// pointer or block of pointers), int, bool, str, dtype, shape (compile-time ints), const (anything known at compile time), fn (a
// @jit function), tensor_descriptor, block_ptr, mem (a pointer, a block of pointers or a block pointer); `| None` for None, too.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_STUBS_STUBS_H
#define DITRON_FRONTEND_STUBS_STUBS_H

#include "ditron/frontend/syntax/Ast.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include <map>
#include <memory>

namespace ditron::frontend {

struct StubParam {
  std::string name;
  std::string rule; ///< A word of the list above.
  bool isVariadic = false;
  bool takesNone = false;
  std::optional<ConstValue> defaultValue; ///< Ellipsis stands for an empty tuple.
};

/// A value that a handler gets in front of its arguments, as C++.
struct StubFixedValue {
  std::string name, type, value;
};

/// A function or class, under one name.
struct StubFunction {
  enum class Kind { Function, Class, Library, LibraryClass, Refused };
  Kind kind = Kind::Function;
  std::string name, doc, handler;
  std::string reason;      ///< Of Refused.
  std::string libraryFile; ///< Of Library, LibraryClass.
  std::string result;      ///< A word; empty where none is given.
  std::string scope;       ///< "", "warp" or "block".
  bool isMember = false;
  bool isClass = false;
  bool takesList = false; ///< The handler takes the arguments as a list.
  std::vector<StubParam> params;
  std::vector<StubFixedValue> fixed;
  std::string owner;                ///< The module that declares it: "tl", or "tl.tensor" for a member.
  std::vector<std::string> modules; ///< All modules that hold it, the owner first.
  SourceRange range;                ///< Of the name.

  /// "pointer: mem, mask: num=None": as documentation and messages show it.
  std::string parameterText() const;
};

/// What the evaluator itself knows of a class: an attribute, or an operator's function. For documentation and editors.
struct StubAttribute {
  std::string owner, name, word; ///< "tl.tensor", "shape", "tuple".
  bool isOperator = false;
  std::vector<StubParam> params; ///< Of an operator, with self.
};

struct StubConstant {
  enum class Kind { Type, PointerType, Number, Annotation, Refused };
  Kind kind = Kind::Type;
  std::string module, name, doc;
  std::string pointee; ///< Of PointerType.
  int64_t number = 0;
};

struct StubSubmodule {
  std::string parent, name, module;
};

/// All that the stub files say.
struct Stubs {
  std::vector<StubFunction> functions; ///< In the order of the files.
  std::vector<StubAttribute> attributes;
  std::vector<StubConstant> constants;
  std::vector<StubSubmodule> submodules;
};

/// A stub file in memory: its module's name and text.
struct StubFile {
  std::string name, path, text;
};

/// Reads stub files; nullopt after errors, which are reported to the diagnostics.
std::optional<Stubs> readStubs(const std::vector<StubFile> &files, DiagnosticEngine &diagnostics);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_STUBS_STUBS_H
