//===- LocalNames.cpp - Which names belong to a function -----------------------------------------------------------------===//
//
// See LocalNames.h. Functions, classes and lambdas inside have names of their own; of a comprehension only what := binds counts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/LocalNames.h"

namespace ditron::frontend {

static void addTarget(const ast::Expr *target, llvm::StringSet<> &names) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target))
    names.insert(name->id);
  else if (const auto *starred = llvm::dyn_cast<ast::Starred>(target))
    addTarget(starred->value, names);
  else if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    for (const ast::Expr *each : tuple->elements)
      addTarget(each, names);
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    for (const ast::Expr *each : list->elements)
      addTarget(each, names);
}

static void addImports(llvm::ArrayRef<ast::Alias> aliases, llvm::StringSet<> &names) {
  for (const ast::Alias &alias : aliases)
    if (alias.boundName() != "*")
      names.insert(alias.boundName());
}

/// What one statement or expression binds, apart from those below it.
static void addBindings(const ast::Node *node, llvm::StringSet<> &names) {
  if (const auto *assign = llvm::dyn_cast<ast::Assign>(node))
    for (const ast::Expr *target : assign->targets)
      addTarget(target, names);
  else if (const auto *remove = llvm::dyn_cast<ast::Delete>(node))
    for (const ast::Expr *target : remove->targets)
      addTarget(target, names);
  else if (const auto *augmented = llvm::dyn_cast<ast::AugAssign>(node))
    addTarget(augmented->target, names);
  else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(node))
    addTarget(annotated->target, names);
  else if (const auto *walrus = llvm::dyn_cast<ast::NamedExpr>(node))
    names.insert(walrus->target.text);
  else if (const auto *loop = llvm::dyn_cast<ast::For>(node))
    addTarget(loop->target, names);
  else if (const auto *with = llvm::dyn_cast<ast::With>(node)) {
    for (const ast::WithItem &item : with->items)
      if (item.target)
        addTarget(item.target, names);
  } else if (const auto *attempt = llvm::dyn_cast<ast::Try>(node)) {
    for (const ast::ExceptHandler &handler : attempt->handlers)
      if (!handler.name.text.empty())
        names.insert(handler.name.text);
  } else if (const auto *import = llvm::dyn_cast<ast::Import>(node)) {
    addImports(import->names, names);
  } else if (const auto *from = llvm::dyn_cast<ast::ImportFrom>(node)) {
    addImports(from->names, names);
  }
}

llvm::StringSet<> localNames(const ast::FunctionDef *function) {
  llvm::StringSet<> names;
  std::vector<llvm::StringRef> elsewhere;
  for (const ast::Stmt *statement : function->body)
    ast::walk(statement, [&](const ast::Node *node) {
      if (const auto *inner = llvm::dyn_cast<ast::FunctionDef>(node)) {
        names.insert(inner->name.text);
        return false;
      }
      if (const auto *inner = llvm::dyn_cast<ast::ClassDef>(node)) {
        names.insert(inner->name.text);
        return false;
      }
      if (const auto *global = llvm::dyn_cast<ast::Global>(node))
        for (const ast::Identifier &name : global->names)
          elsewhere.push_back(name.text);
      if (const auto *nonlocal = llvm::dyn_cast<ast::Nonlocal>(node))
        for (const ast::Identifier &name : nonlocal->names)
          elsewhere.push_back(name.text);
      addBindings(node, names);
      return !llvm::isa<ast::Lambda>(node);
    });
  for (llvm::StringRef name : elsewhere)
    names.erase(name);
  return names;
}

} // namespace ditron::frontend
