//===- ModuleScope.h - The module level of a kernel file ------------------------------------------------------*- C++ -*-===//
//
// A file and its names. The module level is executed by the evaluator when a name of it is first needed (ModuleLevel.cpp),
// in order, as Python would; what it cannot know it says to whoever reads the name. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_MODULESCOPE_H
#define DITRON_FRONTEND_MODULESCOPE_H

#include "ditron/frontend/Environment.h"

namespace ditron::frontend {

class Modules;

/// Where a module level comes from.
struct ScopeOrigin {
  Modules *modules = nullptr; ///< Finds the files it imports; null: it imports none.
  std::string path;
  std::string folder;
  bool isPackage = false; ///< An `__init__.py`, or a folder without one.
};

class ModuleScope {
public:
  explicit ModuleScope(const ast::Module &module, ScopeOrigin origin = {})
      : module(module), origin(std::move(origin)), environment(std::make_shared<Environment>()) {
    environment->file = this;
  }
  ModuleScope(const ModuleScope &) = delete;

  enum class State { Unread, Executing, Executed };

  const ast::Module &module;
  const ScopeOrigin origin;
  /// The names, as far as the module level was executed.
  const std::shared_ptr<Environment> environment;
  mutable State state = State::Unread;
  /// What `from m import *` names: modules of ours, of which nothing is copied, and modules that are not here.
  mutable std::vector<LangValue> stars;
  /// The exception with which the module level ended; poison if it did not.
  mutable LangValue raised;
  mutable bool isSearched = false; ///< A name is being looked for; files may import all names of each other.
};

/// True if a parameter's annotation says tl.constexpr.
bool isConstexprParam(const ast::Param &param);

/// A member of a built-in module: a submodule, function or constant; nullopt if there is none.
std::optional<LangValue> memberOf(BuiltinModule module, llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_MODULESCOPE_H
