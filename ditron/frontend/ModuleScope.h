//===- ModuleScope.h - The module level of a kernel file ------------------------------------------------------*- C++ -*-===//
//
// What the names at the module level of a file are bound to, without evaluating anything: functions and their
// decorators, imports resolved by name to the built-in modules, assignments. A file also holds host code, which is never
// looked at beyond its bindings. The importer evaluates bindings when a kernel reads them, and looks for the files behind
// other imports then (Modules.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_MODULESCOPE_H
#define DITRON_FRONTEND_MODULESCOPE_H

#include "ditron/frontend/Value.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ditron::frontend {

class Modules;

/// Where a module level comes from.
struct ScopeOrigin {
  Modules *modules = nullptr; ///< Finds the files it imports; null: it imports none.
  std::string path;
  std::string folder;
  bool isPackage = false; ///< An `__init__.py`, or a folder without one.
};

/// What a module-level name stands for.
struct GlobalBinding {
  enum class Kind { Function, Class, Assignment, Import };
  Kind kind = Kind::Import;
  SourceRange range;
  const ast::FunctionDef *function = nullptr;
  const ast::ClassDef *classDef = nullptr;
  const ast::Expr *initializer = nullptr;  ///< Assignment; null for a bare annotation or an unpacked target.
  bool isAnnotated = false;                ///< Assignment with an annotation.
  llvm::SmallVector<unsigned, 2> unpacked; ///< Assignment to a tuple: where the value is in the initializer's.
  bool isChanged = false;                  ///< Other statements of the module level change it: see changesOf.
  LangValue imported;                      ///< Import: a module, function, constant or foreign name; poison if unknown.
  BuiltinModule importedFrom = ModuleTile; ///< Import of an unknown name: the module that lacks it.
  std::string importedName;
};

class ModuleScope {
public:
  explicit ModuleScope(const ast::Module &module, ScopeOrigin origin = {});
  ModuleScope(const ModuleScope &) = delete;

  const ScopeOrigin &origin() const { return itsOrigin; }
  /// The last binding of a name; null if the module binds no such name.
  const GlobalBinding *find(llvm::StringRef name) const;
  /// The statements of the module level, in order, that make and change the value of a name.
  llvm::ArrayRef<const ast::Stmt *> changesOf(llvm::StringRef name) const;
  /// The modules of `from m import *`, and those of `import a.b.c`, whose binding names only a.
  llvm::ArrayRef<ForeignValue> starImports() const { return stars; }
  llvm::ArrayRef<ForeignValue> dottedImports() const { return dotted; }
  /// True if one of the decorators is a jit of ours.
  bool isJit(const ast::FunctionDef *function) const;
  /// True if a decorator makes the function one that is executed at compile time.
  bool isConstexprFunction(const ast::FunctionDef *function) const;
  /// The name of the function of ours that a decorator applies ("jit", "autotune"); empty if it is none.
  llvm::StringRef decoratorName(const ast::Expr *decorator) const;
  /// The jit functions of the file in order.
  std::vector<const ast::FunctionDef *> kernels() const;
  /// All names, for "did you mean".
  const llvm::MapVector<llvm::StringRef, GlobalBinding> &bindings() const { return names; }
  /// What a name or dotted name (an expression of names and attributes) means if it is a built-in module or a member of
  /// one; poison otherwise.
  LangValue resolveDotted(const ast::Expr *expression) const;

private:
  void collect(ast::StmtList statements, bool isTopLevel);
  void collectImport(const ast::Import *import);
  void collectImport(const ast::ImportFrom *import);
  void collectTarget(const ast::Expr *target, const ast::Expr *initializer, bool isAnnotated,
                     llvm::ArrayRef<unsigned> path);
  /// Remembers what a statement of the top level does to names.
  void collectChanges(const ast::Stmt *statement);
  void bind(llvm::StringRef name, GlobalBinding binding) { names[name] = std::move(binding); }

  ScopeOrigin itsOrigin;
  llvm::MapVector<llvm::StringRef, GlobalBinding> names;
  mutable llvm::StringMap<GlobalBinding> starNames; ///< Those that were looked up.
  mutable llvm::StringSet<> beingLookedUp;          ///< Files may import all names of each other.
  std::vector<ForeignValue> stars, dotted;
  llvm::StringMap<std::vector<const ast::Stmt *>> changes;
};

/// True if a parameter's annotation says tl.constexpr.
bool isConstexprParam(const ast::Param &param);

/// A member of a built-in module: a submodule, function or constant; nullopt if there is none.
std::optional<LangValue> memberOf(BuiltinModule module, llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_MODULESCOPE_H
