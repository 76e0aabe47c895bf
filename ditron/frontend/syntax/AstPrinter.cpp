//===- AstPrinter.cpp - The tree of a file as text ----------------------------------------------------------------===//
//
// One node per line: its role in its parent, its kind, what it says itself. Lists repeat the role. The form is part of
// the tests' golden files; change them together.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/AstPrinter.h"

#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

namespace {

llvm::StringRef describe(ParamKind kind) {
  switch (kind) {
  case ParamKind::PositionalOnly: return " (positional-only)";
  case ParamKind::PositionalOrKeyword: return "";
  case ParamKind::VarPositional: return " (*)";
  case ParamKind::KeywordOnly: return " (keyword-only)";
  case ParamKind::VarKeyword: return " (**)";
  }
  return "";
}

llvm::StringRef describe(ComprehensionKind kind) {
  switch (kind) {
  case ComprehensionKind::List: return "list";
  case ComprehensionKind::Set: return "set";
  case ComprehensionKind::Dict: return "dict";
  case ComprehensionKind::Generator: return "generator";
  }
  return "";
}

class Dumper {
public:
  explicit Dumper(const DumpOptions &options) : options(options) {}

  void module(const Module &module) {
    out += "Module\n";
    indent = 1;
    for (const Stmt *statement : module.body)
      node("", statement);
  }
  void node(llvm::StringRef role, const Node *node);

  std::string out;

private:
  void startLine(llvm::StringRef role) {
    out.append(2 * indent, ' ');
    if (!role.empty())
      out += role.str() + ": ";
  }
  /// A line for a part that is no node, and a deeper level for what it holds.
  template <typename Function> void part(llvm::StringRef role, const std::string &text, Function children) {
    startLine(role);
    out += text + "\n";
    ++indent;
    children();
    --indent;
  }
  void one(llvm::StringRef role, const Node *child) {
    if (child)
      node(role, child);
  }
  template <typename T> void all(llvm::StringRef role, llvm::ArrayRef<T *> children) {
    for (const Node *child : children)
      node(role, child);
  }
  void all(llvm::ArrayRef<Param> params);
  void all(llvm::ArrayRef<Keyword> keywords);
  void all(llvm::ArrayRef<Alias> names);
  void all(llvm::ArrayRef<Identifier> names);
  std::string detail(const Node *node) const;
  void children(const Stmt *node);
  void children(const Expr *node);

  const DumpOptions &options;
  size_t indent = 0;
};

void Dumper::node(llvm::StringRef role, const Node *node) {
  startLine(role);
  out += toString(node->kind).str();
  std::string text = detail(node);
  if (!text.empty())
    out += " " + text;
  if (options.ranges) {
    LineColumn begin = options.ranges->beginOf(node->range), end = options.ranges->endOf(node->range);
    out += fmt::format(" <{}:{}-{}:{}>", begin.line, begin.column, end.line, end.column);
  }
  out += '\n';
  ++indent;
  if (auto *statement = llvm::dyn_cast<Stmt>(node))
    children(statement);
  else
    children(llvm::cast<Expr>(node));
  --indent;
}

/// What a node says itself, apart from its children.
std::string Dumper::detail(const Node *node) const {
  switch (node->kind) {
  case NodeKind::FunctionDef: {
    auto *s = llvm::cast<FunctionDef>(node);
    return s->name.text.str() + (s->isAsync ? " (async)" : "");
  }
  case NodeKind::ClassDef: return llvm::cast<ClassDef>(node)->name.text.str();
  case NodeKind::TypeAlias: return llvm::cast<TypeAlias>(node)->name.text.str();
  case NodeKind::AugAssign: return spelling(llvm::cast<AugAssign>(node)->op).str() + "=";
  case NodeKind::AnnAssign: return llvm::cast<AnnAssign>(node)->isSimple ? "" : "(not simple)";
  case NodeKind::For: return llvm::cast<For>(node)->isAsync ? "(async)" : "";
  case NodeKind::With: return llvm::cast<With>(node)->isAsync ? "(async)" : "";
  case NodeKind::ImportFrom: {
    auto *s = llvm::cast<ImportFrom>(node);
    return std::string(s->level, '.') + s->module.text.str();
  }
  case NodeKind::BoolOp: return llvm::cast<BoolOp>(node)->isAnd ? "and" : "or";
  case NodeKind::NamedExpr: return llvm::cast<NamedExpr>(node)->target.text.str();
  case NodeKind::BinOp: return spelling(llvm::cast<BinOp>(node)->op).str();
  case NodeKind::UnaryOp: return spelling(llvm::cast<ast::UnaryOp>(node)->op).str();
  case NodeKind::Comprehension: return describe(llvm::cast<Comprehension>(node)->comprehensionKind).str();
  case NodeKind::Yield: return llvm::cast<Yield>(node)->isFrom ? "from" : "";
  case NodeKind::Compare: {
    std::string text;
    for (CompareOp op : llvm::cast<Compare>(node)->ops)
      text += (text.empty() ? "" : ", ") + spelling(op).str();
    return text;
  }
  case NodeKind::FormattedValue: {
    char conversion = llvm::cast<FormattedValue>(node)->conversion;
    return conversion ? fmt::format("!{}", conversion) : "";
  }
  case NodeKind::Constant: return llvm::cast<Constant>(node)->value->repr();
  case NodeKind::Attribute: return llvm::cast<Attribute>(node)->attr.text.str();
  case NodeKind::Name: return llvm::cast<Name>(node)->id.str();
  case NodeKind::Unsupported: return "(" + llvm::cast<Unsupported>(node)->reason.str() + ")";
  default: return "";
  }
}

void Dumper::all(llvm::ArrayRef<Param> params) {
  for (const Param &param : params)
    part("param", param.name.text.str() + describe(param.kind).str(), [&] {
      one("annotation", param.annotation);
      one("default", param.defaultValue);
    });
}

void Dumper::all(llvm::ArrayRef<Keyword> keywords) {
  for (const Keyword &keyword : keywords)
    part("keyword", keyword.isDoubleStar() ? "**" : keyword.name.text.str(), [&] { one("value", keyword.value); });
}

void Dumper::all(llvm::ArrayRef<Alias> names) {
  for (const Alias &alias : names)
    part("name", alias.name.text.str() + (alias.asName.text.empty() ? std::string() : " as " + alias.asName.text.str()),
         [] {});
}

void Dumper::all(llvm::ArrayRef<Identifier> names) {
  for (const Identifier &name : names)
    part("name", name.text.str(), [] {});
}

void Dumper::children(const Stmt *node) {
  if (auto *s = llvm::dyn_cast<FunctionDef>(node)) {
    all("decorator", s->decorators), all(s->params), one("returns", s->returns), all("body", s->body);
  } else if (auto *s = llvm::dyn_cast<ClassDef>(node)) {
    all("decorator", s->decorators), all("base", s->bases), all(s->keywords), all("body", s->body);
  } else if (auto *s = llvm::dyn_cast<Return>(node)) {
    one("value", s->value);
  } else if (auto *s = llvm::dyn_cast<Delete>(node)) {
    all("target", s->targets);
  } else if (auto *s = llvm::dyn_cast<Assign>(node)) {
    all("target", s->targets), one("value", s->value);
  } else if (auto *s = llvm::dyn_cast<AugAssign>(node)) {
    one("target", s->target), one("value", s->value);
  } else if (auto *s = llvm::dyn_cast<AnnAssign>(node)) {
    one("target", s->target), one("annotation", s->annotation), one("value", s->value);
  } else if (auto *s = llvm::dyn_cast<TypeAlias>(node)) {
    one("value", s->value);
  } else if (auto *s = llvm::dyn_cast<For>(node)) {
    one("target", s->target), one("iter", s->iterable), all("body", s->body), all("else", s->orelse);
  } else if (auto *s = llvm::dyn_cast<While>(node)) {
    one("condition", s->condition), all("body", s->body), all("else", s->orelse);
  } else if (auto *s = llvm::dyn_cast<If>(node)) {
    one("condition", s->condition), all("body", s->body), all("else", s->orelse);
  } else if (auto *s = llvm::dyn_cast<With>(node)) {
    for (const WithItem &item : s->items)
      one("context", item.context), one("as", item.target);
    all("body", s->body);
  } else if (auto *s = llvm::dyn_cast<Match>(node)) {
    one("subject", s->subject);
    for (const MatchCase &matchCase : s->cases)
      part("", "case", [&] { one("guard", matchCase.guard), all("body", matchCase.body); });
  } else if (auto *s = llvm::dyn_cast<Raise>(node)) {
    one("exception", s->exception), one("cause", s->cause);
  } else if (auto *s = llvm::dyn_cast<Try>(node)) {
    all("body", s->body);
    for (const ExceptHandler &handler : s->handlers)
      part("",
           std::string(handler.isStar ? "except*" : "except") +
               (handler.name.text.empty() ? "" : " as " + handler.name.text.str()),
           [&] { one("type", handler.type), all("body", handler.body); });
    all("else", s->orelse), all("finally", s->finalBody);
  } else if (auto *s = llvm::dyn_cast<Assert>(node)) {
    one("condition", s->condition), one("message", s->message);
  } else if (auto *s = llvm::dyn_cast<Import>(node)) {
    all(s->names);
  } else if (auto *s = llvm::dyn_cast<ImportFrom>(node)) {
    all(s->names);
  } else if (auto *s = llvm::dyn_cast<Global>(node)) {
    all(s->names);
  } else if (auto *s = llvm::dyn_cast<Nonlocal>(node)) {
    all(s->names);
  } else if (auto *s = llvm::dyn_cast<ExprStmt>(node)) {
    one("value", s->value);
  }
}

void Dumper::children(const Expr *node) {
  if (auto *e = llvm::dyn_cast<BoolOp>(node)) {
    all("value", e->values);
  } else if (auto *e = llvm::dyn_cast<NamedExpr>(node)) {
    one("value", e->value);
  } else if (auto *e = llvm::dyn_cast<BinOp>(node)) {
    one("left", e->left), one("right", e->right);
  } else if (auto *e = llvm::dyn_cast<ast::UnaryOp>(node)) {
    one("operand", e->operand);
  } else if (auto *e = llvm::dyn_cast<Lambda>(node)) {
    all(e->params), one("body", e->body);
  } else if (auto *e = llvm::dyn_cast<IfExp>(node)) {
    one("condition", e->condition), one("then", e->thenValue), one("else", e->elseValue);
  } else if (auto *e = llvm::dyn_cast<Dict>(node)) {
    for (const DictItem &item : e->items)
      one("key", item.key), one(item.key ? "value" : "**", item.value);
  } else if (auto *e = llvm::dyn_cast<Set>(node)) {
    all("element", e->elements);
  } else if (auto *e = llvm::dyn_cast<Comprehension>(node)) {
    one("key", e->key), one("element", e->element);
    for (const ComprehensionClause &clause : e->clauses)
      part("", clause.isAsync ? "for (async)" : "for",
           [&] { one("target", clause.target), one("iter", clause.iterable), all("if", clause.conditions); });
  } else if (auto *e = llvm::dyn_cast<Await>(node)) {
    one("value", e->value);
  } else if (auto *e = llvm::dyn_cast<Yield>(node)) {
    one("value", e->value);
  } else if (auto *e = llvm::dyn_cast<Compare>(node)) {
    one("left", e->left), all("right", e->comparators);
  } else if (auto *e = llvm::dyn_cast<Call>(node)) {
    one("callee", e->callee), all("arg", e->args), all(e->keywords);
  } else if (auto *e = llvm::dyn_cast<FormattedValue>(node)) {
    one("value", e->value), one("format", e->formatSpec);
  } else if (auto *e = llvm::dyn_cast<JoinedStr>(node)) {
    all("part", e->values);
  } else if (auto *e = llvm::dyn_cast<Attribute>(node)) {
    one("value", e->value);
  } else if (auto *e = llvm::dyn_cast<Subscript>(node)) {
    one("value", e->value), one("index", e->index);
  } else if (auto *e = llvm::dyn_cast<Starred>(node)) {
    one("value", e->value);
  } else if (auto *e = llvm::dyn_cast<List>(node)) {
    all("element", e->elements);
  } else if (auto *e = llvm::dyn_cast<Tuple>(node)) {
    all("element", e->elements);
  } else if (auto *e = llvm::dyn_cast<Slice>(node)) {
    one("lower", e->lower), one("upper", e->upper), one("step", e->step);
  }
}

} // namespace

std::string dump(const Module &module, const DumpOptions &options) {
  Dumper dumper(options);
  dumper.module(module);
  return std::move(dumper.out);
}

std::string dump(const Node *node, const DumpOptions &options) {
  Dumper dumper(options);
  dumper.node("", node);
  return std::move(dumper.out);
}

} // namespace ditron::frontend
