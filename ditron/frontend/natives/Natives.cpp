//===- Natives.cpp - Functions of Python that run while compiling: the table ----------------------------------------------===//
//
// Look-up of the rows, the check of a call against its row, and what handlers ask of a call.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/natives/Natives.h"

#include "ditron/frontend/Evaluator.h"
#include "ditron/support/Plural.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace ditron::frontend {
namespace {

/// All rows, family by family.
std::vector<llvm::ArrayRef<NativeFunction>> families() {
  return {nativePythonFunctions(),    nativeSequenceFunctions(),   nativeIteratorFunctions(),
          nativeMathFunctions(),      nativeStringMethods(),       nativeMethods(),
          nativePackageFunctions(),   nativeVersionFunctions(),    nativeTorchFunctions(),
          nativeEnvironmentMethods(), nativeEnvironmentFunctions(), nativePackageMethods()};
}

std::vector<llvm::ArrayRef<NativeConstant>> constantFamilies() {
  return {nativeMathConstants(), nativePackageConstants(), nativeTorchConstants()};
}

/// The table's name of a value's type: the part before the dot of its methods.
std::string methodType(const LangValue &value) {
  if (value.isConstant())
    return value.constant().isBool() ? "int" : value.constant().typeName().str();
  if (value.isTuple())
    return "tuple";
  if (value.isDict())
    return "dict";
  if (value.isSet())
    return "set";
  return value.typeName();
}

/// True for a row of a method: what stands before its last dot is the name of a type.
bool isMethod(const NativeFunction &function) {
  if (llvm::StringRef(function.name).contains('.') && function.shortName().starts_with("__"))
    return true;
  for (llvm::ArrayRef<NativeFunction> rows : {nativeStringMethods(), nativeMethods(), nativeEnvironmentMethods(), nativePackageMethods()})
    if (&function >= rows.begin() && &function < rows.end())
      return true;
  return false;
}

std::string countText(const NativeFunction &function) {
  if (function.most == NativeFunction::any)
    return "at least " + plural(function.least, "argument");
  return function.least == function.most ? plural(function.least, "argument")
                                         : fmt::format("{} to {}", function.least, plural(function.most, "argument"));
}

bool takesKeyword(const NativeFunction &function, llvm::StringRef keyword) {
  llvm::StringRef rest = function.keywords;
  while (!rest.empty()) {
    auto [first, tail] = rest.split(' ');
    if (first == "*" || first == keyword)
      return true;
    rest = tail;
  }
  return false;
}

/// Whether the arguments fit the row; reports it if not.
bool checkArguments(const NativeCall &call) {
  const NativeFunction &function = call.function;
  const std::string name = llvm::StringRef(function.name).str();
  if (call.args.size() < function.least || call.args.size() > function.most) {
    call.fail(fmt::format("{} takes {}, but got {}", name, countText(function), call.args.size()));
    return false;
  }
  for (const auto &[keyword, value] : call.keywords)
    if (!takesKeyword(function, keyword)) {
      call.fail(fmt::format("{} has no parameter '{}' that can be given by name", name, keyword.str()));
      return false;
    }
  return true;
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Look-up
//===------------------------------------------------------------------------------------------------------------------===//

const NativeFunction *findNative(llvm::StringRef dotted) {
  static const llvm::StringMap<const NativeFunction *> table = [] {
    llvm::StringMap<const NativeFunction *> rows;
    for (llvm::ArrayRef<NativeFunction> family : families())
      for (const NativeFunction &row : family)
        rows[row.name] = &row;
    return rows;
  }();
  return table.lookup(dotted);
}

const NativeFunction *findNativeMethod(const LangValue &self, llvm::StringRef name) {
  if (self.isTensor() || self.isPoison() || self.isUnknown())
    return nullptr;
  static const llvm::StringSet<> changing = {"add",    "clear",  "difference_update", "discard", "intersection_update", "pop",
                                             "remove", "update"};
  if (const auto *list = self.getIf<ListValue>(); list && list->isFrozen && changing.contains(name))
    return nullptr;
  const NativeFunction *function = findNative(methodType(self) + "." + name.str());
  return function && isMethod(*function) ? function : nullptr;
}

std::optional<LangValue> nativeConstant(Evaluator &evaluator, llvm::StringRef dotted) {
  static const llvm::StringMap<LangValue (*)(Evaluator &)> table = [] {
    llvm::StringMap<LangValue (*)(Evaluator &)> rows;
    for (llvm::ArrayRef<NativeConstant> family : constantFamilies())
      for (const NativeConstant &row : family)
        rows[row.name] = row.make;
    return rows;
  }();
  auto it = table.find(dotted);
  if (it == table.end())
    return std::nullopt;
  // What the table emulates, the command line may set.
  if (std::optional<LangValue> defined = evaluator.definedValue(dotted))
    return defined;
  return it->second(evaluator);
}

bool isNativeModule(llvm::StringRef dotted) {
  static const llvm::StringSet<> modules = [] {
    llvm::StringSet<> names;
    auto add = [&](llvm::StringRef name) {
      for (name = name.rsplit('.').first; names.insert(name).second && name.contains('.');
           name = name.rsplit('.').first)
        continue;
    };
    for (llvm::ArrayRef<NativeFunction> family : families())
      for (const NativeFunction &row : family)
        if (llvm::StringRef(row.name).contains('.') && !isMethod(row))
          add(row.name);
    for (llvm::ArrayRef<NativeConstant> family : constantFamilies())
      for (const NativeConstant &row : family)
        if (llvm::StringRef(row.name).contains('.'))
          add(row.name);
    return names;
  }();
  return modules.contains(dotted);
}

std::optional<LangValue> nativeAttribute(const NativeFunction &function, llvm::StringRef name) {
  if (name == "__name__" || name == "__qualname__")
    return LangValue::string(function.shortName().str());
  if (const NativeFunction *inner = findNative((llvm::StringRef(function.name) + "." + name).str()))
    return LangValue(NativeValue{inner});
  return std::nullopt;
}

std::string listNatives() {
  std::map<std::string, std::vector<std::string>> groups;
  auto add = [&](llvm::StringRef name) {
    auto [group, last] = name.rsplit('.');
    groups[last.empty() ? "" : group.str()].push_back(last.empty() ? name.str() : last.str());
  };
  for (llvm::ArrayRef<NativeFunction> family : families())
    for (const NativeFunction &row : family)
      add(row.name);
  for (llvm::ArrayRef<NativeConstant> family : constantFamilies())
    for (const NativeConstant &row : family)
      add(row.name);
  std::string text = "| of | names |\n|---|---|\n";
  for (auto &[group, names] : groups) {
    std::sort(names.begin(), names.end());
    text += fmt::format("| {} |", group.empty() ? "Python" : "`" + group + "`");
    for (const std::string &name : names)
      text += " " + name;
    text += " |\n";
  }
  return text;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Calls
//===------------------------------------------------------------------------------------------------------------------===//

LangValue callNative(NativeCall call) {
  if (isMethod(call.function) && call.self.isPoison()) {
    if (call.args.empty())
      return call.fail(fmt::format("{} needs an object", llvm::StringRef(call.function.name).str()));
    call.self = call.args.front();
    call.args.erase(call.args.begin());
    if (!call.self.isPoison() && !call.self.isUnknown() &&
        findNativeMethod(call.self, call.function.shortName()) != &call.function)
      return call.fail(fmt::format("{} is a method of another type than '{}'",
                                   llvm::StringRef(call.function.name).str(), call.self.typeName()));
  }
  std::vector<LangValue> all = call.args;
  for (const auto &[name, value] : call.keywords)
    all.push_back(value);
  if (llvm::any_of(all, [](const LangValue &value) { return value.isPoison(); }))
    return LangValue::poison();
  if (!checkArguments(call))
    return LangValue::poison();
  if (call.self.isUnknown())
    return call.self;
  if (call.function.takesUnknown)
    return call.function.handler(call);
  if (const LangValue *unknown = firstUnknown(all))
    return *unknown;
  // What looks into containers knows no more than they hold; what only moves elements about does.
  static const llvm::StringSet<> moving = {
      "len",     "list",   "tuple",      "range",     "enumerate",      "zip",           "reversed",          "isinstance",
      "type",    "id",     "callable",   "map",       "filter",         "print",         "itertools.chain",   "itertools.product",
      "append",  "extend", "insert",     "pop",       "copy",           "get",           "items",             "keys",
      "values",  "update", "setdefault", "clear",     "triton.Config",  "functools.partial", "getattr",       "hasattr",
      "dict",    "iter",   "next",       "operator.getitem",  "setattr",   "itertools.islice", "itertools.cycle", "itertools.repeat",
      "dataclasses.field"};
  if (!moving.contains(call.function.name) && !(isMethod(call.function) && moving.contains(call.function.shortName()))) {
    all.push_back(call.self);
    for (const LangValue &value : all)
      if (const LangValue *unknown = unknownIn(value))
        return *unknown;
  }
  // A member of an IntEnum is a number to all but these.
  static const llvm::StringSet<> keepsMembers = {"isinstance", "type",   "str",  "repr", "format", "getattr", "hasattr", "setattr", "list",
                                                 "tuple",      "sorted", "dict", "set",  "print",  "map",     "append",  "insert",  "add",
                                                 "index",      "count",  "get",  "setdefault", "pop", "max", "min", "vars", "remove"};
  if (!keepsMembers.contains(call.function.shortName()))
    for (LangValue &value : call.args)
      value = numberOf(value);
  // What a package that is not here gives.
  for (const LangValue &value : all)
    if (const auto *foreign = value.getIf<ForeignValue>())
      return call.evaluator.unknown(call.range, dottedName(*foreign));
  return call.function.handler(call);
}

const LangValue *NativeCall::keyword(llvm::StringRef name) const {
  for (const auto &[each, value] : keywords)
    if (each == name)
      return &value;
  return nullptr;
}

const LangValue *NativeCall::argument(size_t index, llvm::StringRef name) const {
  return index < args.size() ? &args[index] : keyword(name);
}

LangValue NativeCall::fail(std::string message, llvm::StringRef exception) const {
  return evaluator.fail(range, std::move(message), exception);
}

LangValue NativeCall::result(Expected<ConstValue> value) const {
  if (value.isOk())
    return LangValue(*value);
  std::string message = value.status().message();
  llvm::StringRef exception = exceptionOf(message);
  return fail(std::move(message), exception);
}

LangValue NativeCall::unknown() const {
  std::string text = llvm::StringRef(function.name).str();
  std::string given;
  for (const LangValue &value : args)
    given += (given.empty() ? "" : ", ") + value.repr();
  for (const auto &[name, value] : keywords)
    given += fmt::format("{}{}={}", given.empty() ? "" : ", ", name.str(), value.repr());
  return evaluator.unknown(range, fmt::format("{}({})", text, given));
}

std::optional<std::vector<LangValue>> NativeCall::elements(size_t index) const {
  return evaluator.elementsOf(args[index], range);
}

std::optional<std::vector<std::vector<LangValue>>> NativeCall::allElements(size_t first) const {
  std::vector<std::vector<LangValue>> lists;
  for (size_t i = first; i < args.size(); ++i) {
    std::optional<std::vector<LangValue>> each = elements(i);
    if (!each)
      return std::nullopt;
    lists.push_back(std::move(*each));
  }
  return lists;
}

std::optional<int64_t> NativeCall::integer(const LangValue &value, llvm::StringRef what) const {
  const bool isInt = value.isConstant() && value.constant().isIntegral();
  std::optional<int64_t> number = isInt ? value.constant().toInt64() : std::nullopt;
  if (!number)
    fail(fmt::format("{} must be an int{}, but is {}", what.str(), isInt ? " of 64 bits" : "", value.repr()),
         isInt ? "OverflowError" : "TypeError");
  return number;
}

const std::string *NativeCall::text(const LangValue &value, llvm::StringRef what) const {
  if (value.isString())
    return &value.constant().getString();
  fail(fmt::format("{} must be a str, but is {}", what.str(), value.describe()));
  return nullptr;
}

bool NativeCall::checkSize(size_t elements) const {
  if (elements <= Evaluator::maxElements)
    return true;
  fail(fmt::format("a list at compile time may have at most {} elements", Evaluator::maxElements), "");
  return false;
}

bool NativeCall::checkText(const std::string &text) const {
  if (text.size() <= ConstValue::maxStringBytes)
    return true;
  fail(fmt::format("string result too long: compile-time strings have at most {} bytes", ConstValue::maxStringBytes),
       "");
  return false;
}

std::string dottedName(const ForeignValue &foreign) {
  return foreign.name.empty() ? foreign.module : foreign.module + "." + foreign.name;
}

const LangValue *firstUnknown(llvm::ArrayRef<LangValue> values) {
  const auto *it = llvm::find_if(values, [](const LangValue &value) { return value.isUnknown(); });
  return it == values.end() ? nullptr : it;
}

LangValue notKnown(NativeCall &call) { return call.unknown(); }

/// Compares keys: tuples of ints, strings and such tuples; nullopt for values of different kinds.
static std::optional<int> orderOfKeys(const LangValue &a, const LangValue &b) {
  if (a.isTuple() && b.isTuple()) {
    for (auto [x, y] : llvm::zip(a.elements(), b.elements())) {
      std::optional<int> order = orderOfKeys(x, y);
      if (!order || *order != 0)
        return order;
    }
    return a.elements().size() < b.elements().size() ? -1 : a.elements().size() > b.elements().size();
  }
  if (!a.isConstant() || !b.isConstant())
    return std::nullopt;
  auto isLess = compare(CompareOp::Lt, a.constant(), b.constant()),
       isGreater = compare(CompareOp::Gt, a.constant(), b.constant());
  if (!isLess.isOk() || !isGreater.isOk())
    return std::nullopt;
  return isLess->isTrue() ? -1 : isGreater->isTrue();
}

std::optional<int> orderOfObjects(const LangValue &a, const LangValue &b) {
  if (!a.object() || !b.object() || a.object()->type != b.object()->type)
    return std::nullopt;
  const LangValue *left = find(*a.object(), "__key__"), *right = find(*b.object(), "__key__");
  return left && right ? orderOfKeys(*left, *right) : std::nullopt;
}

LangValue namedTuple(std::string name, std::vector<std::pair<std::string, LangValue>> fields) {
  auto cls = std::make_shared<ClassInfo>();
  cls->name = std::move(name);
  cls->isNamedTuple = true;
  std::vector<LangValue> values;
  for (auto &[field, value] : fields) {
    ClassField &declared = cls->fields.emplace_back();
    declared.name = field;
    values.push_back(std::move(value));
  }
  return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(std::move(values)), std::move(cls)});
}

//===------------------------------------------------------------------------------------------------------------------===//
// Exceptions
//===------------------------------------------------------------------------------------------------------------------===//

llvm::StringRef exceptionOf(llvm::StringRef message) {
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> beginnings[] = {
      {"invalid literal", "ValueError"},
      {"int() of a string takes the bases", ""},
      {"a negative number to a fractional power", ""},
      {"could not convert", "ValueError"},
      {"cannot convert float NaN", "ValueError"},
      {"cannot convert float infinity", "OverflowError"},
      {"Exceeds the limit", "ValueError"},
      {"%c arg not in range", "OverflowError"},
      {"the surrogate", ""},
      {"negative shift count", "ValueError"},
      {"float division", "ZeroDivisionError"},
      {"float floor division", "ZeroDivisionError"},
      {"float modulo", "ZeroDivisionError"},
      {"division by zero", "ZeroDivisionError"},
      {"integer division or modulo", "ZeroDivisionError"},
      {"integer modulo", "ZeroDivisionError"},
      {"0.0 cannot be raised", "ZeroDivisionError"},
      {"(34,", "OverflowError"},
      {"int too large", "OverflowError"},
      {"integer division result", "OverflowError"},
      {"integer result too large", ""},
      {"string result too long", ""},
      {"Unknown format code", "ValueError"},
      {"Invalid format", "ValueError"},
      {"byte must be in range", "ValueError"},
      {"math domain error", "ValueError"}};
  for (const auto &[beginning, exception] : beginnings)
    if (message.starts_with(beginning))
      return exception;
  return message.contains("not allowed with") || message.contains("format spec") ? "ValueError" : "TypeError";
}

bool isExceptionOf(llvm::StringRef exception, llvm::StringRef base) {
  static const llvm::StringMap<llvm::StringRef> bases = {
      {"ArithmeticError", "Exception"},
      {"AssertionError", "Exception"},
      {"AttributeError", "Exception"},
      {"BufferError", "Exception"},
      {"DeprecationWarning", "Warning"},
      {"EOFError", "Exception"},
      {"Exception", "BaseException"},
      {"FileExistsError", "OSError"},
      {"FloatingPointError", "ArithmeticError"},
      {"GeneratorExit", "BaseException"},
      {"PendingDeprecationWarning", "Warning"},
      {"UnicodeDecodeError", "UnicodeError"},
      {"UnicodeEncodeError", "UnicodeError"},
      {"FileNotFoundError", "OSError"},
      {"FutureWarning", "Warning"},
      {"ImportError", "Exception"},
      {"ImportWarning", "Warning"},
      {"IndexError", "LookupError"},
      {"KeyError", "LookupError"},
      {"KeyboardInterrupt", "BaseException"},
      {"LookupError", "Exception"},
      {"MemoryError", "Exception"},
      {"ModuleNotFoundError", "ImportError"},
      {"NameError", "Exception"},
      {"NotImplementedError", "RuntimeError"},
      {"OSError", "Exception"},
      {"OverflowError", "ArithmeticError"},
      {"PermissionError", "OSError"},
      {"RecursionError", "RuntimeError"},
      {"RuntimeError", "Exception"},
      {"RuntimeWarning", "Warning"},
      {"StopIteration", "Exception"},
      {"SyntaxError", "Exception"},
      {"SystemExit", "BaseException"},
      {"TimeoutError", "OSError"},
      {"TypeError", "Exception"},
      {"FrozenInstanceError", "AttributeError"},
      {"UnboundLocalError", "NameError"},
      {"UnicodeError", "ValueError"},
      {"UserWarning", "Warning"},
      {"ValueError", "Exception"},
      {"Warning", "Exception"},
      {"ZeroDivisionError", "ArithmeticError"},
      {"importlib.metadata.PackageNotFoundError", "ModuleNotFoundError"},
      {"packaging.version.InvalidVersion", "ValueError"},
      {"PackageNotFoundError", "ModuleNotFoundError"},
      {"InvalidVersion", "ValueError"}};
  if (base == "EnvironmentError" || base == "IOError")
    base = "OSError";
  for (llvm::StringRef name = exception; !name.empty(); name = bases.lookup(name))
    if (name == base || name.rsplit('.').second == base || base.rsplit('.').second == name)
      return true;
  return false;
}

} // namespace ditron::frontend
