//===- Ast.h - The syntax tree of a kernel file ---------------------------------------------------------*- C++ -*-===//
//
// One class per form of Python's grammar, named after Python's own `ast` module where that is unambiguous (ExprStmt is
// its Expr). Every node has the range of its text: a parenthesised expression has the range without the parentheses,
// except a tuple, whose parentheses belong to it. Nodes, their lists and their strings live in the arena of their
// Module and die with it; they are plain data, filled by the parser and read-only after it. Use llvm::isa, cast and
// dyn_cast.
//
// Parts that are not expressions or statements of their own (parameters, keywords, with-items, comprehension clauses,
// except handlers, match cases) are plain structs inside the node that has them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_AST_H
#define DITRON_FRONTEND_SYNTAX_AST_H

#include "ditron/frontend/syntax/ConstValue.h"
#include "ditron/frontend/syntax/Source.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Casting.h"
#include <deque>
#include <type_traits>

namespace ditron::frontend::ast {

enum class NodeKind : uint8_t {
  // Statements.
  FunctionDef,
  ClassDef,
  Return,
  Delete,
  Assign,
  AugAssign,
  AnnAssign,
  TypeAlias,
  For,
  While,
  If,
  With,
  Match,
  Raise,
  Try,
  Assert,
  Import,
  ImportFrom,
  Global,
  Nonlocal,
  ExprStmt,
  Pass,
  Break,
  Continue,
  // Expressions.
  BoolOp,
  NamedExpr,
  BinOp,
  UnaryOp,
  Lambda,
  IfExp,
  Dict,
  Set,
  Comprehension,
  Await,
  Yield,
  Compare,
  Call,
  FormattedValue,
  JoinedStr,
  Constant,
  Attribute,
  Subscript,
  Starred,
  Name,
  List,
  Tuple,
  Slice,
  Unsupported,
};

/// The name of a kind as the dump prints it: "FunctionDef", "BinOp".
llvm::StringRef toString(NodeKind kind);

/// The base of everything in the tree.
struct Node {
  NodeKind kind;
  /// Expressions: one more than the highest operand, so that the parser can bound the depth of any recursion over them.
  uint16_t height = 0;
  SourceRange range;

protected:
  explicit Node(NodeKind kind) : kind(kind) {}
};

struct Stmt : Node {
  static bool classof(const Node *node) { return node->kind <= NodeKind::Continue; }

protected:
  using Node::Node;
};

struct Expr : Node {
  static bool classof(const Node *node) { return node->kind >= NodeKind::BoolOp; }

protected:
  using Node::Node;
};

using ExprList = llvm::ArrayRef<Expr *>;
using StmtList = llvm::ArrayRef<Stmt *>;

/// A name that is not an expression (a function's name, an attribute, an imported name) and its place.
struct Identifier {
  llvm::StringRef text;
  SourceRange range;
};

namespace detail {
/// Gives a node class its kind and its classof.
template <typename Base, NodeKind K> struct NodeOf : Base {
  static constexpr NodeKind nodeKind = K;
  NodeOf() : Base(K) {}
  static bool classof(const Node *node) { return node->kind == K; }
};
} // namespace detail

//===--------------------------------------------------------------------------------------------------------------===//
// Parts of functions
//===--------------------------------------------------------------------------------------------------------------===//

enum class ParamKind : uint8_t { PositionalOnly, PositionalOrKeyword, VarPositional, KeywordOnly, VarKeyword };

/// One parameter of a function or lambda. The markers `/` and `*` are not parameters: they show in the kinds.
struct Param {
  ParamKind kind = ParamKind::PositionalOrKeyword;
  Identifier name;
  SourceRange range;            ///< Stars, name, annotation and default.
  Expr *annotation = nullptr;   ///< May be null.
  Expr *defaultValue = nullptr; ///< May be null.
};

//===--------------------------------------------------------------------------------------------------------------===//
// Statements
//===--------------------------------------------------------------------------------------------------------------===//

/// `def` and `async def`. The range starts at the first decorator, if there is one.
struct FunctionDef : detail::NodeOf<Stmt, NodeKind::FunctionDef> {
  Identifier name;
  ExprList decorators; ///< Without the `@`.
  llvm::ArrayRef<Param> params;
  Expr *returns = nullptr; ///< The annotation after `->`; may be null.
  StmtList body;
  SourceRange headerRange; ///< From `def` to the colon.
  bool isAsync = false;
};

/// An argument `name=value` of a call or class; `**value` has an empty name.
struct Keyword {
  Identifier name;
  Expr *value = nullptr;
  SourceRange range;
  bool isDoubleStar() const { return name.text.empty(); }
};

struct ClassDef : detail::NodeOf<Stmt, NodeKind::ClassDef> {
  Identifier name;
  ExprList decorators;
  ExprList bases;
  llvm::ArrayRef<Keyword> keywords;
  StmtList body;
};

struct Return : detail::NodeOf<Stmt, NodeKind::Return> {
  Expr *value = nullptr; ///< May be null.
};

struct Delete : detail::NodeOf<Stmt, NodeKind::Delete> {
  ExprList targets;
};

/// `a = b = value` has two targets.
struct Assign : detail::NodeOf<Stmt, NodeKind::Assign> {
  ExprList targets;
  Expr *value = nullptr;
};

struct AugAssign : detail::NodeOf<Stmt, NodeKind::AugAssign> {
  Expr *target = nullptr;
  BinaryOp op = BinaryOp::Add;
  Expr *value = nullptr;
  SourceRange opRange;
};

struct AnnAssign : detail::NodeOf<Stmt, NodeKind::AnnAssign> {
  Expr *target = nullptr;
  Expr *annotation = nullptr;
  Expr *value = nullptr; ///< May be null.
  bool isSimple = false; ///< The target is a name without parentheses.
};

/// `type X = value` of Python 3.12.
struct TypeAlias : detail::NodeOf<Stmt, NodeKind::TypeAlias> {
  Identifier name;
  Expr *value = nullptr;
};

struct For : detail::NodeOf<Stmt, NodeKind::For> {
  Expr *target = nullptr;
  Expr *iterable = nullptr;
  StmtList body;
  StmtList orelse;
  SourceRange headerRange; ///< From `for` to the colon.
  bool isAsync = false;
};

struct While : detail::NodeOf<Stmt, NodeKind::While> {
  Expr *condition = nullptr;
  StmtList body;
  StmtList orelse;
};

/// An `elif` is a single If in orelse.
struct If : detail::NodeOf<Stmt, NodeKind::If> {
  Expr *condition = nullptr;
  StmtList body;
  StmtList orelse;
};

struct WithItem {
  Expr *context = nullptr;
  Expr *target = nullptr; ///< After `as`; may be null.
};

struct With : detail::NodeOf<Stmt, NodeKind::With> {
  llvm::ArrayRef<WithItem> items;
  StmtList body;
  bool isAsync = false;
};

/// One `case`. The pattern is not analysed, only its range is kept: kernels may not use `match`.
struct MatchCase {
  SourceRange patternRange;
  Expr *guard = nullptr; ///< May be null.
  StmtList body;
};

struct Match : detail::NodeOf<Stmt, NodeKind::Match> {
  Expr *subject = nullptr;
  llvm::ArrayRef<MatchCase> cases;
};

struct Raise : detail::NodeOf<Stmt, NodeKind::Raise> {
  Expr *exception = nullptr; ///< May be null.
  Expr *cause = nullptr;     ///< After `from`; may be null.
};

struct ExceptHandler {
  Expr *type = nullptr; ///< May be null.
  Identifier name;      ///< After `as`; may be empty.
  StmtList body;
  bool isStar = false; ///< `except*`
  SourceRange range;
};

struct Try : detail::NodeOf<Stmt, NodeKind::Try> {
  StmtList body;
  llvm::ArrayRef<ExceptHandler> handlers;
  StmtList orelse;
  StmtList finalBody;
};

struct Assert : detail::NodeOf<Stmt, NodeKind::Assert> {
  Expr *condition = nullptr;
  Expr *message = nullptr; ///< May be null.
};

/// One `a.b.c as name`.
struct Alias {
  Identifier name;   ///< Dotted for Import; "*" for `from m import *`.
  Identifier asName; ///< May be empty.
  /// The name that is bound: asName, or the first component of name.
  llvm::StringRef boundName() const { return asName.text.empty() ? name.text.split('.').first : asName.text; }
};

struct Import : detail::NodeOf<Stmt, NodeKind::Import> {
  llvm::ArrayRef<Alias> names;
};

struct ImportFrom : detail::NodeOf<Stmt, NodeKind::ImportFrom> {
  Identifier module;  ///< Dotted; empty for `from . import x`.
  unsigned level = 0; ///< Leading dots.
  llvm::ArrayRef<Alias> names;
};

struct Global : detail::NodeOf<Stmt, NodeKind::Global> {
  llvm::ArrayRef<Identifier> names;
};

struct Nonlocal : detail::NodeOf<Stmt, NodeKind::Nonlocal> {
  llvm::ArrayRef<Identifier> names;
};

/// An expression for its effect: calls and docstrings.
struct ExprStmt : detail::NodeOf<Stmt, NodeKind::ExprStmt> {
  Expr *value = nullptr;
};

struct Pass : detail::NodeOf<Stmt, NodeKind::Pass> {};
struct Break : detail::NodeOf<Stmt, NodeKind::Break> {};
struct Continue : detail::NodeOf<Stmt, NodeKind::Continue> {};

//===--------------------------------------------------------------------------------------------------------------===//
// Expressions
//===--------------------------------------------------------------------------------------------------------------===//

/// `a and b and c` is one node with three values.
struct BoolOp : detail::NodeOf<Expr, NodeKind::BoolOp> {
  bool isAnd = true;
  ExprList values; ///< At least two.
};

/// `(name := value)`.
struct NamedExpr : detail::NodeOf<Expr, NodeKind::NamedExpr> {
  Identifier target;
  Expr *value = nullptr;
};

struct BinOp : detail::NodeOf<Expr, NodeKind::BinOp> {
  Expr *left = nullptr;
  BinaryOp op = BinaryOp::Add;
  Expr *right = nullptr;
  SourceRange opRange;
};

struct UnaryOp : detail::NodeOf<Expr, NodeKind::UnaryOp> {
  frontend::UnaryOp op = frontend::UnaryOp::USub;
  Expr *operand = nullptr;
};

struct Lambda : detail::NodeOf<Expr, NodeKind::Lambda> {
  llvm::ArrayRef<Param> params;
  Expr *body = nullptr;
};

/// `thenValue if condition else elseValue`.
struct IfExp : detail::NodeOf<Expr, NodeKind::IfExp> {
  Expr *condition = nullptr;
  Expr *thenValue = nullptr;
  Expr *elseValue = nullptr;
};

struct DictItem {
  Expr *key = nullptr; ///< Null for `**value`.
  Expr *value = nullptr;
};

struct Dict : detail::NodeOf<Expr, NodeKind::Dict> {
  llvm::ArrayRef<DictItem> items;
};

struct Set : detail::NodeOf<Expr, NodeKind::Set> {
  ExprList elements;
};

/// One `for target in iterable if c1 if c2`.
struct ComprehensionClause {
  Expr *target = nullptr;
  Expr *iterable = nullptr;
  ExprList conditions;
  bool isAsync = false;
};

enum class ComprehensionKind : uint8_t { List, Set, Dict, Generator };

/// All four comprehensions; only a dict comprehension has a key.
struct Comprehension : detail::NodeOf<Expr, NodeKind::Comprehension> {
  ComprehensionKind comprehensionKind = ComprehensionKind::List;
  Expr *key = nullptr;
  Expr *element = nullptr; ///< The value, for a dict.
  llvm::ArrayRef<ComprehensionClause> clauses;
};

struct Await : detail::NodeOf<Expr, NodeKind::Await> {
  Expr *value = nullptr;
};

struct Yield : detail::NodeOf<Expr, NodeKind::Yield> {
  Expr *value = nullptr; ///< May be null.
  bool isFrom = false;
};

/// `left ops[0] comparators[0] ops[1] comparators[1] ...`: more than one operator is a chain.
struct Compare : detail::NodeOf<Expr, NodeKind::Compare> {
  Expr *left = nullptr;
  llvm::ArrayRef<CompareOp> ops;
  ExprList comparators;
};

struct Call : detail::NodeOf<Expr, NodeKind::Call> {
  Expr *callee = nullptr;
  ExprList args; ///< `*x` is a Starred.
  llvm::ArrayRef<Keyword> keywords;
};

struct JoinedStr;

/// A `{value!conversion:spec}` of an f-string.
struct FormattedValue : detail::NodeOf<Expr, NodeKind::FormattedValue> {
  Expr *value = nullptr;
  char conversion = 0;             ///< 's', 'r', 'a', or 0.
  JoinedStr *formatSpec = nullptr; ///< May be null.
};

/// An f-string: Constants of kind str and FormattedValues in order. `{x=}` has become the text "x=" and the value.
struct JoinedStr : detail::NodeOf<Expr, NodeKind::JoinedStr> {
  ExprList values;
};

/// None, True, False, Ellipsis, numbers, strings (adjacent ones are joined) and bytes.
struct Constant : detail::NodeOf<Expr, NodeKind::Constant> {
  const ConstValue *value = nullptr; ///< Never null in a finished tree.
};

struct Attribute : detail::NodeOf<Expr, NodeKind::Attribute> {
  Expr *value = nullptr;
  Identifier attr;
};

/// `value[index]`; `x[a, b]` has a Tuple as its index, parts of which may be Slices.
struct Subscript : detail::NodeOf<Expr, NodeKind::Subscript> {
  Expr *value = nullptr;
  Expr *index = nullptr;
};

struct Starred : detail::NodeOf<Expr, NodeKind::Starred> {
  Expr *value = nullptr;
};

struct Name : detail::NodeOf<Expr, NodeKind::Name> {
  llvm::StringRef id;
};

struct List : detail::NodeOf<Expr, NodeKind::List> {
  ExprList elements;
};

struct Tuple : detail::NodeOf<Expr, NodeKind::Tuple> {
  ExprList elements;
};

/// `lower:upper:step`; only as a subscript's index or a part of it.
struct Slice : detail::NodeOf<Expr, NodeKind::Slice> {
  Expr *lower = nullptr; ///< All three may be null.
  Expr *upper = nullptr;
  Expr *step = nullptr;
};

/// A literal that Python accepts and Ditron does not (complex numbers, \N{...} escapes). It is legal in host code and
/// in branches that are never taken; whoever has to evaluate it reports the reason.
struct Unsupported : detail::NodeOf<Expr, NodeKind::Unsupported> {
  llvm::StringRef reason;
};

//===--------------------------------------------------------------------------------------------------------------===//
// Module
//===--------------------------------------------------------------------------------------------------------------===//

/// The tree of one file, and the owner of its memory.
class Module {
public:
  explicit Module(FileId file) : fileId(file) {}
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  FileId file() const { return fileId; }
  StmtList body;

  /// A new node in the arena.
  template <typename T> T *create(SourceRange range) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena runs no destructors");
    T *node = new (arena.Allocate<T>()) T();
    node->range = range;
    return node;
  }
  /// A copy of a list in the arena.
  template <typename T> llvm::ArrayRef<T> copy(llvm::ArrayRef<T> items) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena runs no destructors");
    return items.copy(arena);
  }
  /// A copy of a text in the arena.
  llvm::StringRef copy(llvm::StringRef text) { return text.copy(arena); }
  /// Keeps a constant for as long as the module.
  const ConstValue *keep(ConstValue value) {
    constants.push_back(std::move(value));
    return &constants.back();
  }

private:
  FileId fileId;
  llvm::BumpPtrAllocator arena;
  std::deque<ConstValue> constants; ///< Apart from the arena, because big integers and strings have destructors.
};

/// Calls the function for every statement and expression directly below the node, in the order of the source
/// (decorators, parameters' annotations and defaults, then the body; a FormattedValue's format comes after its value).
void forEachChild(const Node *node, llvm::function_ref<void(const Node *)> visit);

/// Visits the node and everything below it in pre-order. The function returns false to leave a node's children out.
void walk(const Node *node, llvm::function_ref<bool(const Node *)> visit);

/// The name that an expression ends in: "jit" of triton.jit and of triton.jit(noinline=True); empty for other expressions.
llvm::StringRef lastName(const Expr *expression);

} // namespace ditron::frontend::ast

#endif // DITRON_FRONTEND_SYNTAX_AST_H
