//===- Environment.h - The names of Python that runs while compiling ------------------------------------------*- C++ -*-===//
//
// The names of a module level, or of a Python function that runs, or ran and was left with functions that still see its
// names. A kernel has a Scope (Evaluator.h) instead, whose values are copied where its branches part. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_ENVIRONMENT_H
#define DITRON_FRONTEND_ENVIRONMENT_H

#include "ditron/frontend/Value.h"
#include "llvm/ADT/MapVector.h"

namespace ditron::frontend {

/// What a name stands for.
struct Binding {
  LangValue value;
  SourceRange range;        ///< Of the place that bound it.
  bool isAnnotated = false; ///< By an assignment with an annotation.
};

struct Environment {
  llvm::MapVector<llvm::StringRef, Binding> names; ///< In the order of their first binding; the keys outlive the environment.
  std::shared_ptr<Environment> parent;             ///< Of the function around it; null for the module level.
  const ModuleScope *file = nullptr;
  std::string qualifier; ///< What stands before the names of functions and classes that are defined here: "make.<locals>."
  const ast::FunctionDef *function = nullptr; ///< Whose call these are; null for others, and where not everything is executed.
  bool isComprehension = false; ///< Holds the targets of a comprehension alone.
  bool isClass = false;         ///< Of a class: functions and comprehensions in it do not see its names.

  /// The binding here, not in the environments around; null if there is none.
  const Binding *find(llvm::StringRef name) const {
    auto it = names.find(name);
    return it == names.end() ? nullptr : &it->second;
  }
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_ENVIRONMENT_H
