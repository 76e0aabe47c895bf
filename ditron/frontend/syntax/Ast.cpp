//===- Ast.cpp - The syntax tree of a kernel file -----------------------------------------------------------------===//
//
// Names of the kinds and the one walk over the children of a node, on which heights, searches and counts are built.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/Ast.h"

namespace ditron::frontend::ast {

llvm::StringRef toString(NodeKind kind) {
  switch (kind) {
  case NodeKind::FunctionDef: return "FunctionDef";
  case NodeKind::ClassDef: return "ClassDef";
  case NodeKind::Return: return "Return";
  case NodeKind::Delete: return "Delete";
  case NodeKind::Assign: return "Assign";
  case NodeKind::AugAssign: return "AugAssign";
  case NodeKind::AnnAssign: return "AnnAssign";
  case NodeKind::TypeAlias: return "TypeAlias";
  case NodeKind::For: return "For";
  case NodeKind::While: return "While";
  case NodeKind::If: return "If";
  case NodeKind::With: return "With";
  case NodeKind::Match: return "Match";
  case NodeKind::Raise: return "Raise";
  case NodeKind::Try: return "Try";
  case NodeKind::Assert: return "Assert";
  case NodeKind::Import: return "Import";
  case NodeKind::ImportFrom: return "ImportFrom";
  case NodeKind::Global: return "Global";
  case NodeKind::Nonlocal: return "Nonlocal";
  case NodeKind::ExprStmt: return "ExprStmt";
  case NodeKind::Pass: return "Pass";
  case NodeKind::Break: return "Break";
  case NodeKind::Continue: return "Continue";
  case NodeKind::BoolOp: return "BoolOp";
  case NodeKind::NamedExpr: return "NamedExpr";
  case NodeKind::BinOp: return "BinOp";
  case NodeKind::UnaryOp: return "UnaryOp";
  case NodeKind::Lambda: return "Lambda";
  case NodeKind::IfExp: return "IfExp";
  case NodeKind::Dict: return "Dict";
  case NodeKind::Set: return "Set";
  case NodeKind::Comprehension: return "Comprehension";
  case NodeKind::Await: return "Await";
  case NodeKind::Yield: return "Yield";
  case NodeKind::Compare: return "Compare";
  case NodeKind::Call: return "Call";
  case NodeKind::FormattedValue: return "FormattedValue";
  case NodeKind::JoinedStr: return "JoinedStr";
  case NodeKind::Constant: return "Constant";
  case NodeKind::Attribute: return "Attribute";
  case NodeKind::Subscript: return "Subscript";
  case NodeKind::Starred: return "Starred";
  case NodeKind::Name: return "Name";
  case NodeKind::List: return "List";
  case NodeKind::Tuple: return "Tuple";
  case NodeKind::Slice: return "Slice";
  case NodeKind::Unsupported: return "Unsupported";
  }
  return "?";
}

namespace {

/// Calls the visitor for single children and lists of them, leaving out the null ones.
class ChildVisitor {
public:
  explicit ChildVisitor(llvm::function_ref<void(const Node *)> visit) : visit(visit) {}

  void statement(const Stmt *node);
  void expression(const Expr *node);

private:
  void one(const Node *child) {
    if (child)
      visit(child);
  }
  template <typename T> void all(llvm::ArrayRef<T *> children) {
    for (const Node *child : children)
      visit(child);
  }
  void all(llvm::ArrayRef<Param> params) {
    for (const Param &param : params) {
      one(param.annotation);
      one(param.defaultValue);
    }
  }
  void all(llvm::ArrayRef<Keyword> keywords) {
    for (const Keyword &keyword : keywords)
      one(keyword.value);
  }

  llvm::function_ref<void(const Node *)> visit;
};

void ChildVisitor::statement(const Stmt *node) {
  if (auto *s = llvm::dyn_cast<FunctionDef>(node)) {
    all(s->decorators), all(s->params), one(s->returns), all(s->body);
  } else if (auto *s = llvm::dyn_cast<ClassDef>(node)) {
    all(s->decorators), all(s->bases), all(s->keywords), all(s->body);
  } else if (auto *s = llvm::dyn_cast<Return>(node)) {
    one(s->value);
  } else if (auto *s = llvm::dyn_cast<Delete>(node)) {
    all(s->targets);
  } else if (auto *s = llvm::dyn_cast<Assign>(node)) {
    all(s->targets), one(s->value);
  } else if (auto *s = llvm::dyn_cast<AugAssign>(node)) {
    one(s->target), one(s->value);
  } else if (auto *s = llvm::dyn_cast<AnnAssign>(node)) {
    one(s->target), one(s->annotation), one(s->value);
  } else if (auto *s = llvm::dyn_cast<TypeAlias>(node)) {
    one(s->value);
  } else if (auto *s = llvm::dyn_cast<For>(node)) {
    one(s->target), one(s->iterable), all(s->body), all(s->orelse);
  } else if (auto *s = llvm::dyn_cast<While>(node)) {
    one(s->condition), all(s->body), all(s->orelse);
  } else if (auto *s = llvm::dyn_cast<If>(node)) {
    one(s->condition), all(s->body), all(s->orelse);
  } else if (auto *s = llvm::dyn_cast<With>(node)) {
    for (const WithItem &item : s->items)
      one(item.context), one(item.target);
    all(s->body);
  } else if (auto *s = llvm::dyn_cast<Match>(node)) {
    one(s->subject);
    for (const MatchCase &matchCase : s->cases)
      one(matchCase.guard), all(matchCase.body);
  } else if (auto *s = llvm::dyn_cast<Raise>(node)) {
    one(s->exception), one(s->cause);
  } else if (auto *s = llvm::dyn_cast<Try>(node)) {
    all(s->body);
    for (const ExceptHandler &handler : s->handlers)
      one(handler.type), all(handler.body);
    all(s->orelse), all(s->finalBody);
  } else if (auto *s = llvm::dyn_cast<Assert>(node)) {
    one(s->condition), one(s->message);
  } else if (auto *s = llvm::dyn_cast<ExprStmt>(node)) {
    one(s->value);
  }
}

void ChildVisitor::expression(const Expr *node) {
  switch (node->kind) {
  case NodeKind::BoolOp: all(llvm::cast<BoolOp>(node)->values); break;
  case NodeKind::NamedExpr: one(llvm::cast<NamedExpr>(node)->value); break;
  case NodeKind::BinOp: one(llvm::cast<BinOp>(node)->left), one(llvm::cast<BinOp>(node)->right); break;
  case NodeKind::UnaryOp: one(llvm::cast<ast::UnaryOp>(node)->operand); break;
  case NodeKind::Lambda: all(llvm::cast<Lambda>(node)->params), one(llvm::cast<Lambda>(node)->body); break;
  case NodeKind::IfExp: {
    auto *e = llvm::cast<IfExp>(node);
    one(e->thenValue), one(e->condition), one(e->elseValue);
    break;
  }
  case NodeKind::Dict:
    for (const DictItem &item : llvm::cast<Dict>(node)->items)
      one(item.key), one(item.value);
    break;
  case NodeKind::Set: all(llvm::cast<Set>(node)->elements); break;
  case NodeKind::Comprehension: {
    auto *e = llvm::cast<Comprehension>(node);
    one(e->key), one(e->element);
    for (const ComprehensionClause &clause : e->clauses)
      one(clause.target), one(clause.iterable), all(clause.conditions);
    break;
  }
  case NodeKind::Await: one(llvm::cast<Await>(node)->value); break;
  case NodeKind::Yield: one(llvm::cast<Yield>(node)->value); break;
  case NodeKind::Compare: one(llvm::cast<Compare>(node)->left), all(llvm::cast<Compare>(node)->comparators); break;
  case NodeKind::Call: {
    auto *e = llvm::cast<Call>(node);
    one(e->callee), all(e->args), all(e->keywords);
    break;
  }
  case NodeKind::FormattedValue: {
    auto *e = llvm::cast<FormattedValue>(node);
    one(e->value), one(e->formatSpec);
    break;
  }
  case NodeKind::JoinedStr: all(llvm::cast<JoinedStr>(node)->values); break;
  case NodeKind::Attribute: one(llvm::cast<Attribute>(node)->value); break;
  case NodeKind::Subscript: one(llvm::cast<Subscript>(node)->value), one(llvm::cast<Subscript>(node)->index); break;
  case NodeKind::Starred: one(llvm::cast<Starred>(node)->value); break;
  case NodeKind::List: all(llvm::cast<List>(node)->elements); break;
  case NodeKind::Tuple: all(llvm::cast<Tuple>(node)->elements); break;
  case NodeKind::Slice: {
    auto *e = llvm::cast<Slice>(node);
    one(e->lower), one(e->upper), one(e->step);
    break;
  }
  default: break; // names and constants
  }
}

} // namespace

void forEachChild(const Node *node, llvm::function_ref<void(const Node *)> visit) {
  ChildVisitor visitor(visit);
  if (auto *statement = llvm::dyn_cast<Stmt>(node))
    visitor.statement(statement);
  else
    visitor.expression(llvm::cast<Expr>(node));
}

void walk(const Node *node, llvm::function_ref<bool(const Node *)> visit) {
  if (visit(node))
    forEachChild(node, [&](const Node *child) { walk(child, visit); });
}

llvm::StringRef lastName(const Expr *expression) {
  if (const auto *call = llvm::dyn_cast_or_null<Call>(expression))
    expression = call->callee;
  if (const auto *name = llvm::dyn_cast_or_null<Name>(expression))
    return name->id;
  const auto *attribute = llvm::dyn_cast_or_null<Attribute>(expression);
  return attribute ? attribute->attr.text : "";
}

} // namespace ditron::frontend::ast
