//===- Aggregates.h - Classes of kernel files -----------------------------------------------------------------*- C++ -*-===//
//
// Aggregates of Triton (classes decorated with triton.aggregate) and subclasses of NamedTuple: named fields that are
// values of the language, and methods. An instance is nothing but its fields: in the IR there is no trace of it. Private to
// the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_AGGREGATES_H
#define DITRON_FRONTEND_AGGREGATES_H

#include "ditron/frontend/Value.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

namespace ditron::frontend {

/// One field as its class declares it.
struct ClassField {
  std::string name;
  SourceRange range;
  const ast::Expr *annotation = nullptr;   ///< Null for the fields of collections.namedtuple.
  const ast::Expr *defaultValue = nullptr; ///< May be null.
  std::shared_ptr<Environment> names = nullptr; ///< Where the annotation and the default are evaluated.
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

/// A class of a kernel file. Classes are the same if their ClassInfo is.
struct ClassInfo {
  std::string name;
  SourceRange range;
  bool isNamedTuple = false;      ///< Instances are tuples; else they are aggregates.
  bool isEnum = false;            ///< Inherits from enum.Enum: its constants are objects with a name and a value.
  bool isPlain = false;           ///< Neither: a class of Python, which kernels cannot use.
  std::vector<ClassField> fields; ///< Inherited ones first.
  std::vector<std::shared_ptr<const ClassInfo>> bases;
  llvm::MapVector<llvm::StringRef, ClassMethod> methods; ///< Inherited ones too.
  /// Assigned in the class without an annotation: constants, seen through the class and its instances.
  llvm::MapVector<llvm::StringRef, const ast::Expr *> constants;
  std::shared_ptr<Environment> environment; ///< The names around the class.

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
  /// True for the class itself and what inherits from it.
  bool isOrInherits(const ClassInfo *base) const {
    return this == base || llvm::any_of(bases, [&](const auto &each) { return each->isOrInherits(base); });
  }
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_AGGREGATES_H
