//===- ModuleScope.h - The module level of a kernel file ------------------------------------------------------*- C++ -*-===//
//
// What the names at the module level of a file are bound to, without evaluating anything: functions and their
// decorators, imports resolved by name to the built-in modules, assignments. A file also holds host code, which is never
// looked at beyond its bindings. The importer evaluates bindings when a kernel reads them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_MODULESCOPE_H
#define DITRON_FRONTEND_MODULESCOPE_H

#include "ditron/frontend/Value.h"
#include "llvm/ADT/MapVector.h"

namespace ditron::frontend {

/// What a module-level name stands for.
struct GlobalBinding {
  enum class Kind { Function, Class, Assignment, Import };
  Kind kind = Kind::Import;
  SourceRange range;
  const ast::FunctionDef *function = nullptr;
  const ast::ClassDef *classDef = nullptr;
  const ast::Expr *initializer = nullptr;  ///< Assignment; null for a bare annotation or an unpacked target.
  bool isAnnotated = false;                ///< Assignment with an annotation.
  LangValue imported;                      ///< Import: a module, function, constant or foreign name; poison if unknown.
  BuiltinModule importedFrom = ModuleTile; ///< Import of an unknown name: the module that lacks it.
  std::string importedName;
};

class ModuleScope {
public:
  explicit ModuleScope(const ast::Module &module);

  /// The last binding of a name; null if the module binds no such name.
  const GlobalBinding *find(llvm::StringRef name) const;
  /// True if one of the decorators is a jit of ours.
  bool isJit(const ast::FunctionDef *function) const;
  /// The jit functions of the file in order.
  std::vector<const ast::FunctionDef *> kernels() const;
  /// All names, for "did you mean".
  const llvm::MapVector<llvm::StringRef, GlobalBinding> &bindings() const { return names; }
  /// What a name or dotted name (an expression of names and attributes) means if it is a built-in module or a member of
  /// one; poison otherwise.
  LangValue resolveDotted(const ast::Expr *expression) const;

private:
  void collect(ast::StmtList statements);
  void collectTarget(const ast::Expr *target, const ast::Expr *initializer, bool isAnnotated);
  void bind(llvm::StringRef name, GlobalBinding binding) { names[name] = std::move(binding); }

  llvm::MapVector<llvm::StringRef, GlobalBinding> names;
};

/// True if a parameter's annotation says tl.constexpr.
bool isConstexprParam(const ast::Param &param);

/// A member of a built-in module: a submodule, function or constant; nullopt if there is none.
std::optional<LangValue> memberOf(BuiltinModule module, llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_MODULESCOPE_H
