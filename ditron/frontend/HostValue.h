//===- HostValue.h - Values of code that runs while compiling -------------------------------------------------*- C++ -*-===//
//
// What the interpreter computes with: Python's values, among them lists and dicts that can be changed and are shared by
// reference. Whatever else there is in the language (modules, classes, jit functions, tensors) is carried along as a
// LangValue that nothing looks into. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_HOSTVALUE_H
#define DITRON_FRONTEND_HOSTVALUE_H

#include "ditron/frontend/Value.h"
#include "llvm/ADT/StringMap.h"

namespace ditron::frontend {

class HostValue;
using HostSequence = std::vector<HostValue>;

struct HostTuple {
  std::shared_ptr<const HostSequence> elements;
};
struct HostList {
  std::shared_ptr<HostSequence> elements;
};
struct HostDict {
  std::shared_ptr<std::vector<std::pair<HostValue, HostValue>>> items; ///< In the order of insertion.
};
struct HostRange {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
};

/// The names of a function that runs, or ran and was left with functions that still see its names.
struct HostScope {
  llvm::StringMap<HostValue> names;
  std::shared_ptr<HostScope> parent;
  const ModuleScope *file = nullptr;
};

/// A function or lambda of a kernel file.
struct HostFunction {
  const ast::FunctionDef *function = nullptr; ///< Null for a lambda.
  const ast::Lambda *lambda = nullptr;
  std::shared_ptr<HostScope> scope; ///< What it sees from outside.
};

/// A function of Python's own modules: "len", "math.log2", "triton.cdiv".
struct HostNative {
  std::string name;
};

/// A method of a value: a list's append.
struct HostMethod {
  std::shared_ptr<const HostValue> self;
  std::string name;
};

/// An object with named attributes: a triton.Config, a tensor among the arguments of a launch.
struct HostObject {
  std::string type;
  std::vector<std::pair<std::string, HostValue>> fields;
};

class HostValue {
public:
  /// Lists may hold each other in circles: comparison and printing go this deep, and what is nested deeper is no value of the
  /// language.
  static constexpr unsigned maxNesting = 64;

  HostValue() = default; ///< None.
  HostValue(ConstValue value) : storage(std::move(value)) {}
  HostValue(LangType type) : storage(std::move(type)) {}
  HostValue(HostTuple value) : storage(std::move(value)) {}
  HostValue(HostList value) : storage(std::move(value)) {}
  HostValue(HostDict value) : storage(std::move(value)) {}
  HostValue(HostRange value) : storage(value) {}
  HostValue(HostFunction value) : storage(std::move(value)) {}
  HostValue(HostNative value) : storage(std::move(value)) {}
  HostValue(HostMethod value) : storage(std::move(value)) {}
  HostValue(std::shared_ptr<const HostObject> value) : storage(std::move(value)) {}

  static HostValue integer(int64_t value) { return HostValue(ConstValue::integer(value)); }
  static HostValue boolean(bool value) { return HostValue(ConstValue::boolean(value)); }
  static HostValue string(std::string text) { return HostValue(ConstValue::string(std::move(text))); }
  static HostValue tuple(HostSequence elements);
  static HostValue list(HostSequence elements);
  static HostValue dict(std::vector<std::pair<HostValue, HostValue>> items);
  /// A value of the language: numbers, types and plain tuples are taken apart, all else is carried as it is.
  static HostValue fromLanguage(const LangValue &value);
  /// As a value of the language; lists are tuples there. Nullopt for dicts, lambdas and objects.
  std::optional<LangValue> toLanguage(unsigned depth = 0) const;

  template <typename T> const T *getIf() const { return std::get_if<T>(&storage); }
  template <typename T> bool is() const { return std::holds_alternative<T>(storage); }
  bool isConstant() const { return is<ConstValue>(); }
  const ConstValue &constant() const { return std::get<ConstValue>(storage); }
  bool isNone() const { return isConstant() && constant().isNone(); }
  bool isString() const { return isConstant() && constant().isStr(); }
  bool isIntegral() const { return isConstant() && constant().isIntegral(); }
  /// A value that is carried along; null for all others.
  const LangValue *language() const {
    const auto *carried = getIf<std::shared_ptr<const LangValue>>();
    return carried ? carried->get() : nullptr;
  }
  /// The elements of a tuple or list; null for anything else.
  const HostSequence *sequence() const;
  /// Python's truth value.
  bool isTrue() const;
  /// Python's ==; values of different kinds differ.
  bool equals(const HostValue &other, unsigned depth = 0) const;
  /// Python's repr() and str().
  std::string repr(unsigned depth = 0) const;
  std::string str() const;
  /// Python's name of the type.
  std::string typeName() const;

private:
  std::variant<ConstValue, LangType, HostTuple, HostList, HostDict, HostRange, HostFunction, HostNative, HostMethod,
               std::shared_ptr<const HostObject>, std::shared_ptr<const LangValue>>
      storage;
};

/// The value of a key; null if the dict has no such key.
const HostValue *find(const HostDict &dict, const HostValue &key);
/// The attribute of an object; null if it has none of that name.
const HostValue *find(const HostObject &object, llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_HOSTVALUE_H
