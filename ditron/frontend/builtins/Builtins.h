//===- Builtins.h - The functions of the language -------------------------------------------------------------*- C++ -*-===//
//
// library/*.pyi declare the language's functions in its own syntax: where a function is found, its parameters with defaults and
// rules, the C++ function that emits it and a line of documentation (stubs/Stubs.h says how they are written). While Ditron is
// built, ditron-stub-table makes constants of them: these rows. Binding of arguments and every message about a wrong call come
// from the table, and so does the reference documentation. Functions of the library (Library.h) bind their arguments themselves.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_BUILTINS_H
#define DITRON_FRONTEND_BUILTINS_H

#include "ditron/frontend/Value.h"

namespace ditron::frontend {

class Evaluator;
class BuiltinCall;
using BuiltinHandler = LangValue (*)(Evaluator &, BuiltinCall &);

/// What a parameter of a built-in function accepts.
enum class ParamRule { Any, Number, Tensor, Block, Pointer, Int, Bool, Str, DType, Shape, Const, Function, Descriptor, BlockPointer, Memory };

/// What a parameter is when no argument is given.
struct BuiltinDefault {
  enum Kind { Missing, None, EmptyTuple, Bool, Int, Float, Str };
  Kind kind = Missing; ///< Missing: an argument must be given.
  int64_t number = 0;  ///< Of Bool and Int.
  double real = 0;
  llvm::StringLiteral text = "";

  LangValue value() const;
};

struct BuiltinParam {
  llvm::StringLiteral name;
  ParamRule rule = ParamRule::Any;
  bool isVariadic = false; ///< Collects all arguments without a keyword that are left.
  bool takesNone = false;  ///< None is taken, too.
  BuiltinDefault defaultValue = {};
};

/// The threads that carry a function out together.
enum class BuiltinScope { Thread, Warp, Block };

/// A row of the table.
struct Builtin {
  unsigned modules; ///< Of BuiltinModule.
  llvm::StringRef name;
  llvm::StringRef parameterText; ///< "pointer: mem, mask: num=None"
  llvm::StringRef result;        ///< What it gives, in words of stubs: tensor, None; empty if not declared.
  BuiltinHandler handler;        ///< Null: written in the language, or known to the language and refused by this version.
  llvm::StringRef doc;           ///< Of a refused function: why, and what to use instead.
  llvm::ArrayRef<BuiltinParam> params;
  BuiltinScope scope = BuiltinScope::Thread;
  llvm::StringRef libraryFile = {}; ///< Not empty: a function or class of library/<libraryFile>.py.

  /// Known to the language, not to this version.
  bool isRefused() const { return !handler && libraryFile.empty(); }
};

/// A name of a module that is no function.
struct BuiltinConstant {
  enum Kind { Type, PointerType, Number, Annotation, Refused };
  BuiltinModule module;
  llvm::StringRef name;
  Kind kind;
  int64_t number = 0;
  llvm::StringRef pointee = {};
  llvm::StringRef doc = {}; ///< Of Refused: why.
};

/// A module that is found within another.
struct BuiltinSubmodule {
  BuiltinModule parent;
  llvm::StringRef name;
  BuiltinModule module;
};

/// "tl.load", "dl.wait", "tid": the name with its module's usual short name.
std::string qualifiedName(const Builtin &builtin);
/// The function of a module; null if there is none.
const Builtin *findBuiltin(BuiltinModule module, llvm::StringRef name);
/// A constant of a module, for example tl.float32; nullopt if there is none.
std::optional<LangValue> findBuiltinConstant(BuiltinModule module, llvm::StringRef name);
/// A module within a module: triton.language, tl.math; nullopt if there is none.
std::optional<BuiltinModule> findSubmodule(BuiltinModule module, llvm::StringRef name);
/// The built-in module of a dotted name; nullopt if the name is not ours.
std::optional<BuiltinModule> findModule(llvm::StringRef dottedName);
/// The names of a module that resemble a name most: empty or one name, for "did you mean".
std::string nearestName(BuiltinModule module, llvm::StringRef name);
/// All functions: those of the stubs in their order, then libdevice.
const std::vector<Builtin> &builtinTable();
/// What the stubs declare. Generated.
llvm::ArrayRef<Builtin> declaredBuiltins();
llvm::ArrayRef<BuiltinConstant> builtinConstants();
llvm::ArrayRef<BuiltinSubmodule> builtinSubmodules();
/// The whole table as Markdown.
std::string listLanguage();
/// The page docs/compatibility.md: every name, supported or refused with the reason.
std::string listCompatibility();

/// An argument of a call before it is bound.
struct CallArgument {
  llvm::StringRef keyword; ///< Empty: positional.
  LangValue value;
  SourceRange range;
  SourceRange keywordRange;
  bool isDecayedName = false; ///< A variable that lost its compile-time value when it was assigned.
};

/// The numbers of a shape.
using Dims = llvm::SmallVector<int64_t>;

/// An argument that obeys its parameter's rule, of any type.
struct AnyArg {
  const BuiltinParam *param = nullptr;
  const LangValue *given = nullptr; ///< The argument, or the parameter's default.
  SourceRange range;                ///< Its place, or the call's when the default is used.

  std::string name() const { return param->name.str(); }
};

/// An argument in the C++ type of its parameter's word in the stubs: int is int64_t, bool bool, str StringRef, dtype LangType, shape
/// Dims, fn FunctionValue, tensor_descriptor DescriptorValue, all others LangValue; std::optional where the first five take None.
template <typename T> struct Arg : AnyArg {
  T value;

  const std::remove_reference_t<T> &operator*() const { return value; }
  const std::remove_reference_t<T> *operator->() const { return &value; }
};
using ValueArg = Arg<const LangValue &>;
using ListArg = Arg<const std::vector<LangValue> &>;

/// A call whose arguments are bound to the parameters and obey their rules. Only the table of handlers takes it apart.
class BuiltinCall {
public:
  const Builtin *builtin = nullptr;
  SourceRange range; ///< Of the whole call.
  std::vector<LangValue> values;
  std::vector<SourceRange> ranges; ///< Invalid where the default is used.

  AnyArg any(size_t index) const {
    return {&builtin->params[index], &values[index], ranges[index].isValid() ? ranges[index] : range};
  }
  std::vector<AnyArg> arguments() const {
    std::vector<AnyArg> result;
    for (size_t index = 0; index < values.size(); ++index)
      result.push_back(any(index));
    return result;
  }
  template <typename T> Arg<T> argument(size_t index) const { return {any(index), decode<T>(values[index])}; }

private:
  template <typename T> static T decode(const LangValue &value) {
    if constexpr (requires {
                    typename T::value_type;
                    requires std::is_same_v<T, std::optional<typename T::value_type>>;
                  })
      return value.isNone() ? T() : T(decode<typename T::value_type>(value));
    else if constexpr (std::is_same_v<T, int64_t>)
      return *value.constant().toInt64();
    else if constexpr (std::is_same_v<T, bool>)
      return value.constant().isTrue();
    else if constexpr (std::is_same_v<T, llvm::StringRef>)
      return value.constant().getString();
    else if constexpr (std::is_same_v<T, LangType>)
      return value.asType();
    else if constexpr (std::is_same_v<T, Dims>)
      return dims(value);
    else if constexpr (std::is_same_v<T, const FunctionValue &>)
      return *value.getIf<FunctionValue>();
    else if constexpr (std::is_same_v<T, const DescriptorValue &>)
      return value.descriptor();
    else if constexpr (std::is_same_v<T, const std::vector<LangValue> &>)
      return value.elements();
    else
      return value;
  }
  /// One tuple or several ints.
  static Dims dims(const LangValue &value);
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_BUILTINS_H
