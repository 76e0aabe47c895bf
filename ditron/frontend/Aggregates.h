//===- Aggregates.h - Classes of kernel files -----------------------------------------------------------------*- C++ -*-===//
//
// Aggregates of Triton (classes decorated with triton.aggregate) and subclasses of NamedTuple: named fields that are
// values of the language, and methods. An instance is nothing but its fields: in the IR there is no trace of it. Private to
// the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_AGGREGATES_H
#define DITRON_FRONTEND_AGGREGATES_H

#include "ditron/frontend/Environment.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <optional>

namespace ditron::frontend {

/// One field as its class declares it.
struct ClassField {
  std::string name;
  SourceRange range;
  const ast::Expr *annotation = nullptr;   ///< Null for the fields of collections.namedtuple.
  const ast::Expr *defaultValue = nullptr; ///< May be null.
  std::shared_ptr<Environment> names = nullptr; ///< Where the annotation is evaluated.
  LangValue initial = LangValue::poison();      ///< The default, evaluated with the class; poison if there is none.
};

struct ClassInfo;

/// A method, or a function of the class that takes no instance.
struct ClassMethod {
  FunctionValue function;
  bool isStatic = false;            ///< Decorated with staticmethod.
  bool isClass = false;             ///< Decorated with classmethod: the first parameter is the class.
  const ClassInfo *owner = nullptr; ///< The class whose statement holds it, for super().
};

/// The class of the types of compile-time values: what `.type` of one gives.
const std::shared_ptr<const ClassInfo> &constexprTypeClass();

/// What @dataclass was told.
struct DataclassOptions {
  bool eq = true, repr = true, order = false, isFrozen = false;
};

/// A class of a kernel file. Classes are the same if their ClassInfo is.
struct ClassInfo {
  std::string name;
  std::string qualifiedName; ///< With the functions and classes around it, as Python writes it.
  SourceRange range;
  bool isNamedTuple = false;      ///< Instances are tuples; else they are aggregates.
  bool isEnum = false;            ///< Inherits from enum.Enum: its constants are instances with a name and a value.
  bool isPlain = false;           ///< Neither: a class of Python, which kernels cannot use.
  bool isNamespace = false;       ///< types.SimpleNamespace: whatever attributes an object has are its fields.
  bool isOpaque = false;          ///< Has a base or a decorator that nobody knows: so are its instances.
  std::string nativeBase;         ///< The class of Python's that it inherits from: "ValueError", of an enum "int" or "str".
  bool showsNumber = false;       ///< IntEnum and its kin: the text of a member is that of its number.
  /// Of an enum.IntFlag: the members that are no constants of the class, such as `F.A | F.B`, by number; else null.
  std::shared_ptr<std::map<int64_t, LangValue>> combinations = nullptr;
  std::optional<DataclassOptions> dataclass = std::nullopt;
  std::vector<ClassField> fields; ///< Inherited ones first.
  std::vector<std::shared_ptr<const ClassInfo>> bases;
  llvm::MapVector<llvm::StringRef, ClassMethod> methods; ///< Inherited ones too.
  std::shared_ptr<Environment> environment; ///< The names around the class.
  std::shared_ptr<Environment> members;     ///< What its body has bound; may be null.
  std::vector<const ClassInfo *> order;     ///< Where attributes are looked for: itself, then its bases in Python's order.
  Evaluator *evaluator = nullptr;           ///< Of a class of Python: who calls its methods.

  /// Position of a field; nullopt if there is none.
  std::optional<size_t> indexOf(llvm::StringRef field) const {
    for (size_t i = 0; i < fields.size(); ++i)
      if (fields[i].name == field)
        return i;
    return std::nullopt;
  }
  /// A method by name, or null.
  const ClassMethod *method(llvm::StringRef method) const {
    auto it = methods.find(method);
    return it == methods.end() ? nullptr : &it->second;
  }
  /// What a name means in the class or, by Python's order, in a base; null if it means nothing.
  const LangValue *member(llvm::StringRef name) const {
    for (const ClassInfo *each : order)
      if (const Binding *binding = each->members ? each->members->find(name) : nullptr)
        return &binding->value;
    return nullptr;
  }
  /// True for the class itself and what inherits from it.
  bool isOrInherits(const ClassInfo *base) const {
    return this == base || llvm::any_of(bases, [&](const auto &each) { return each->isOrInherits(base); });
  }
};

/// An object of a class of Python.
struct Instance {
  std::shared_ptr<const ClassInfo> cls;
  llvm::MapVector<llvm::StringRef, LangValue> attributes;
  LangValue number = LangValue::poison(); ///< Of a member of an IntEnum or its kin: what else it is.
};

/// What functools.lru_cache keeps of a function.
struct CallCache {
  std::vector<std::pair<LangValue, LangValue>> results; ///< By the tuple of the arguments.
};

/// A member of an enumeration that is a number or text stands for it; any other value for itself.
inline const LangValue &numberOf(const LangValue &value) {
  const Instance *instance = value.instance();
  return instance && !instance->number.isPoison() ? instance->number : value;
}

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_AGGREGATES_H
