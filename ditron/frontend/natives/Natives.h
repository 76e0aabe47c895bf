//===- Natives.h - Functions of Python that run while compiling -----------------------------------------------*- C++ -*-===//
//
// One table of the functions, methods and constants of Python's own modules, and of the few other packages whose answers
// follow from the target (torch.cuda.get_device_capability): {name, how many arguments, handler}. A name is dotted as the
// program writes it ("len", "math.log2"); a method's begins with the type ("str.upper"). What the table does not have is
// not known at compile time. Rows are in the file of their family beside this one. Private to the room.
//
// callNative checks a call against its row before the handler sees it. A handler gets positional arguments that are neither
// poison nor unknown, within the limits of its row, and only keywords that the row names; the elements of a container may
// still be unknown (firstUnknown). A failure is an error through `call.fail`, which is an exception of Python's to the
// program.
//
// A method named `__call__` makes an object callable (functools.partial), one named `__getitem__` lets it be subscripted
// (typing.Optional[int]). Objects with the attribute `__key__` are compared by it (packaging.version.Version).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_NATIVES_H
#define DITRON_FRONTEND_NATIVES_H

#include "ditron/frontend/Value.h"

namespace ditron::frontend {

using Keywords = std::vector<std::pair<llvm::StringRef, LangValue>>;

/// A call of a native function.
struct NativeCall {
  Evaluator &evaluator;
  const NativeFunction &function;
  LangValue self; ///< Of a method: its object; else poison.
  std::vector<LangValue> args;
  Keywords keywords;
  SourceRange range;

  /// A keyword argument; null if it is not given.
  const LangValue *keyword(llvm::StringRef name) const;
  /// An argument by position or, if there are not so many, by keyword; null if it is not given.
  const LangValue *argument(size_t index, llvm::StringRef name) const;
  /// Reports a failure; `exception` is the name of Python's class, which `except` clauses ask for.
  LangValue fail(std::string message, llvm::StringRef exception = "TypeError") const;
  /// The result of an operation on scalars, or its failure.
  LangValue result(Expected<ConstValue> value) const;
  /// The value of this call, which depends on the machine.
  LangValue unknown() const;
  /// The elements that a loop over an argument visits; nullopt after a reported error.
  std::optional<std::vector<LangValue>> elements(size_t index) const;
  /// Those of all arguments from `first` on.
  std::optional<std::vector<std::vector<LangValue>>> allElements(size_t first = 0) const;
  /// An argument as an int; nullopt after a reported error. `what` begins the message: "the base".
  std::optional<int64_t> integer(const LangValue &value, llvm::StringRef what) const;
  /// The text of a string; null after a reported error.
  const std::string *text(const LangValue &value, llvm::StringRef what) const;
  /// False, after an error, for a list or text that has become too large.
  bool checkSize(size_t elements) const;
  bool checkText(const std::string &text) const;
};

using NativeHandler = LangValue (*)(NativeCall &);

/// A row of the table.
struct NativeFunction {
  static constexpr unsigned any = ~0u;

  llvm::StringLiteral name;
  unsigned least, most; ///< Positional arguments, without a method's object; `any`: as many as one likes.
  NativeHandler handler;
  llvm::StringLiteral keywords = ""; ///< Those it takes, separated by blanks; "*": any.
  bool takesUnknown = false;         ///< Hands unknown arguments on: list.append.
  bool isClass = false;              ///< A class in Python: int, ValueError, torch.dtype.

  /// "log2" of "math.log2".
  llvm::StringRef shortName() const {
    llvm::StringRef last = llvm::StringRef(name).rsplit('.').second;
    return last.empty() ? llvm::StringRef(name) : last;
  }
};

/// A row of the table of constants.
struct NativeConstant {
  llvm::StringLiteral name;
  LangValue (*make)(Evaluator &);
};

/// A function by its dotted name; null if the table has none.
const NativeFunction *findNative(llvm::StringRef dotted);
/// A method of a value of the table's types; null if there is none.
const NativeFunction *findNativeMethod(const LangValue &self, llvm::StringRef name);
/// A constant of a module ("math.pi", "torch.float16", "sys.version_info"), as far as it follows from the target.
std::optional<LangValue> nativeConstant(Evaluator &evaluator, llvm::StringRef dotted);
/// Whether a dotted name is a module or object of the table because functions or constants are in it: "os.path", "math".
bool isNativeModule(llvm::StringRef dotted);
/// Checks the arguments against the row and calls the handler. An unknown argument makes the result unknown. A method that
/// is called without an object (str.upper(x)) has it as its first argument.
LangValue callNative(NativeCall call);
/// An attribute of a native function itself: `__name__`; nullopt if it has none of that name.
std::optional<LangValue> nativeAttribute(const NativeFunction &function, llvm::StringRef name);
/// Which of two objects of the table comes first (versions): negative, zero or positive; nullopt if they have no order.
std::optional<int> orderOfObjects(const LangValue &a, const LangValue &b);
/// Whether a module is there for the program: Python's own, and the packages that every Triton program has (torch, numpy).
/// nullopt: only the user's machine knows.
std::optional<bool> moduleExists(llvm::StringRef module);
/// The table as Markdown, for docs/modules.md.
std::string listNatives();

/// "torch.nn.Module" of what comes from outside.
std::string dottedName(const ForeignValue &foreign);
/// The first value that is unknown, or null.
const LangValue *firstUnknown(llvm::ArrayRef<LangValue> values);
/// Whether the value can be called.
bool isCallable(const LangValue &value);
/// Python's class of the failures of ConstValue's operators, by their text: "ZeroDivisionError".
llvm::StringRef exceptionOf(llvm::StringRef message);
/// Whether an exception is caught by a clause that names `base`: KeyError by LookupError. Also for names that are none.
bool isExceptionOf(llvm::StringRef exception, llvm::StringRef base);
/// Whether the value is an instance of the class; poison after an error, unknown for a class of a package that is not here.
LangValue isInstanceOf(Evaluator &evaluator, const LangValue &value, const LangValue &cls, SourceRange range);
/// The values in order as a list, by the keywords `key` and `reverse` of the call; poison after an error.
LangValue sortValues(const NativeCall &call, std::vector<LangValue> values);
/// The value of a key; of a defaultdict also if it is missing. A KeyError otherwise.
LangValue itemOf(Evaluator &evaluator, const DictValue &dict, const LangValue &key, SourceRange range);
/// Whether the value may be the key of a dict or an element of a set.
bool isHashable(const LangValue &value);
/// The elements without repetitions, as a set; poison after an error.
LangValue makeSet(Evaluator &evaluator, llvm::ArrayRef<LangValue> elements, SourceRange range);
/// `a op b` of sets (`|`, `&`, `-`, `^`); nullopt if the operands are not two sets or the operator is another one.
std::optional<LangValue> setOperation(Evaluator &evaluator, BinaryOp op, const LangValue &a, const LangValue &b,
                                      SourceRange range);
/// `a <= b` and the like of sets; nullopt if the operands are not two sets.
std::optional<bool> compareSets(CompareOp op, const LangValue &a, const LangValue &b);
/// str() or repr() of a value: poison after a reported error, unknown where the order of a set is.
LangValue textOfValue(Evaluator &evaluator, const LangValue &value, bool isRepr, SourceRange range);
/// format(value, spec); nullopt after a reported error.
std::optional<std::string> formatValue(Evaluator &evaluator, const LangValue &value, llvm::StringRef spec,
                                       SourceRange range);
/// `text % values`.
LangValue formatPercent(Evaluator &evaluator, llvm::StringRef text, const LangValue &values, SourceRange range);
/// torch.float16 and so on, for the element type of an array.
LangValue torchDtype(const LangType &type);
/// A named tuple of the compiler's own: sys.version_info.
LangValue namedTuple(std::string name, std::vector<std::pair<std::string, LangValue>> fields);

/// Handlers that several families use: an exception as an object, for `raise`; a decorator that changes nothing while
/// compiling (`@cache`, `@cache()`, `@lru_cache(maxsize=8)`); a call whose result depends on the machine.
LangValue makeException(NativeCall &call);
LangValue identityDecorator(NativeCall &call);
LangValue notKnown(NativeCall &call);
LangValue formatText(NativeCall &call); ///< str.format
/// The length of UTF-8 text as Python counts it, and where one of its characters begins; the size for one behind the end.
int64_t codePoints(llvm::StringRef text);
size_t codePointOffset(llvm::StringRef text, int64_t index);

/// The rows of a family; each is defined in the file of that name.
llvm::ArrayRef<NativeFunction> nativePythonFunctions();   ///< Python.cpp: int, round, isinstance, ValueError ...
llvm::ArrayRef<NativeFunction> nativeSequenceFunctions(); ///< Sequences.cpp: list, len, sorted, map, zip ...
llvm::ArrayRef<NativeFunction> nativeIteratorFunctions(); ///< Itertools.cpp: itertools, functools
llvm::ArrayRef<NativeFunction> nativeMathFunctions();     ///< Math.cpp: math, operator
llvm::ArrayRef<NativeFunction> nativeStringMethods();     ///< Strings.cpp: of str
llvm::ArrayRef<NativeFunction> nativeMethods();           ///< Methods.cpp: of list, set, dict, tuple, int, float
llvm::ArrayRef<NativeFunction> nativeEnvironmentMethods();   ///< Environment.cpp: of os.environ
llvm::ArrayRef<NativeFunction> nativeEnvironmentFunctions(); ///< Environment.cpp: os, os.path
llvm::ArrayRef<NativeFunction> nativePackageFunctions(); ///< Packages.cpp: importlib, platform, typing, triton
llvm::ArrayRef<NativeFunction> nativePackageMethods();   ///< Packages.cpp: of triton.Config, of the loaders of modules
llvm::ArrayRef<NativeFunction> nativeVersionFunctions(); ///< Versions.cpp: packaging.version and the like
llvm::ArrayRef<NativeFunction> nativeTorchFunctions();   ///< Torch.cpp: torch, numpy
llvm::ArrayRef<NativeConstant> nativeMathConstants();    ///< Math.cpp
llvm::ArrayRef<NativeConstant> nativePackageConstants(); ///< Packages.cpp: versions, sys, typing
llvm::ArrayRef<NativeConstant> nativeTorchConstants();   ///< Torch.cpp: dtypes

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_NATIVES_H
