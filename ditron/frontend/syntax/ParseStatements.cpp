//===- ParseStatements.cpp - Statements of kernel files -----------------------------------------------------------===//
//
// The module, blocks and statements, and the recovery after mistakes: a statement that does not parse is dropped with
// the indented lines below it, and the next one is tried.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ParserState.h"

#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

//===--------------------------------------------------------------------------------------------------------------===//
// Tokens and errors
//===--------------------------------------------------------------------------------------------------------------===//

Token ParserState::take() {
  Token token = current();
  bool isText = token.kind != TokenKind::Newline && token.kind != TokenKind::Indent &&
                token.kind != TokenKind::Dedent && token.kind != TokenKind::EndOfFile;
  if (isText)
    previousEnd = token.end;
  if (index + 1 < tokens.size())
    ++index;
  return token;
}

bool ParserState::accept(TokenKind kind) {
  if (!at(kind))
    return false;
  take();
  return true;
}

bool ParserState::expect(TokenKind kind, llvm::StringRef where) {
  if (accept(kind))
    return true;
  unexpected(where.empty() ? describe(kind).str() : fmt::format("{} {}", describe(kind).str(), where.str()));
  return false;
}

bool ParserState::expectName(Identifier &name, llvm::StringRef what) {
  if (!at(TokenKind::Name)) {
    unexpected(what);
    return false;
  }
  name = identifier(take());
  return true;
}

std::nullptr_t ParserState::error(SourceRange range, std::string message) {
  diagnostics.error(range, std::move(message));
  return nullptr;
}

std::string ParserState::describeCurrent() const {
  switch (current().kind) {
  case TokenKind::Name:
  case TokenKind::Number: return fmt::format("'{}'", textOf(current()).str());
  default: return describe(current().kind).str();
  }
}

bool ParserState::insideUnclosedBracket() const {
  for (size_t i = index; i < tokens.size() && tokens[i].kind != TokenKind::Newline; ++i)
    if (tokens[i].kind == TokenKind::Error)
      return tokens[i].begin < current().begin;
  return false;
}

std::nullptr_t ParserState::unexpected(llvm::StringRef expected) {
  if (at(TokenKind::Error) || insideUnclosedBracket()) // the lexer has reported it
    return nullptr;
  SourceRange range = rangeOf(current());
  // A missing token is missed where the text before it ends, not on a later line or at the end of the file.
  if (at(TokenKind::Newline) || at(TokenKind::EndOfFile) || at(TokenKind::Dedent))
    range = file.range(previousEnd, previousEnd);
  return error(range, fmt::format("expected {}, found {}", expected.str(), describeCurrent()));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Blocks and recovery
//===--------------------------------------------------------------------------------------------------------------===//

StmtList ParserState::parseFile() {
  Stmts statements;
  parseStatementsUntil(TokenKind::EndOfFile, statements);
  return module.copy(llvm::ArrayRef<Stmt *>(statements));
}

void ParserState::parseStatementsUntil(TokenKind end, Stmts &statements) {
  while (!at(end) && !at(TokenKind::EndOfFile) && !diagnostics.limitReached(file.id())) {
    if (accept(TokenKind::Newline))
      continue;
    if (at(TokenKind::Dedent)) { // of a block whose beginning was skipped
      take();
      continue;
    }
    if (at(TokenKind::Indent)) {
      error(file.range(current().end, current().end), "unexpected indent");
      skipIndented();
      continue;
    }
    if (!parseStatement(statements))
      recover();
  }
}

/// Steps over an indented block, of which the Indent is the current token.
void ParserState::skipIndented() {
  unsigned depth = 0;
  do {
    depth += at(TokenKind::Indent);
    depth -= at(TokenKind::Dedent);
    take();
  } while (depth > 0 && !at(TokenKind::EndOfFile));
}

/// Steps to the start of the next statement of the same block.
void ParserState::recover() {
  while (!at(TokenKind::EndOfFile) && !at(TokenKind::Dedent)) {
    if (accept(TokenKind::Newline)) {
      if (at(TokenKind::Indent))
        skipIndented();
      return;
    }
    if (at(TokenKind::Indent)) {
      skipIndented();
      return;
    }
    take();
  }
}

bool ParserState::parseBlock(llvm::StringRef owner, const Token &ownerToken, StmtList &body) {
  if (at(TokenKind::Equal)) {
    diagnostics.error(rangeOf(current()), fmt::format("expected ':' after {}, found '='", owner.str()))
        .hint("use '==' to compare and ':=' to assign inside an expression");
    return false;
  }
  if (!expect(TokenKind::Colon, fmt::format("after {}", owner.str())))
    return false;
  Stmts statements;
  if (!at(TokenKind::Newline)) {
    if (!parseSimpleLine(statements))
      return false;
    body = module.copy(llvm::ArrayRef<Stmt *>(statements));
    return true;
  }
  take();
  if (!at(TokenKind::Indent)) {
    LineColumn place = file.lineColumn(ownerToken.begin);
    error(file.range(previousEnd, previousEnd),
          fmt::format("expected an indented block after {} on line {}", owner.str(), place.line));
    return true; // the lines that follow are fine
  }
  if (blockDepth >= maxBlockDepth) {
    error(rangeOf(ownerToken), fmt::format("too many levels of indentation: at most {}", maxBlockDepth));
    skipIndented();
    return true;
  }
  take();
  ++blockDepth;
  parseStatementsUntil(TokenKind::Dedent, statements);
  --blockDepth;
  accept(TokenKind::Dedent);
  body = module.copy(llvm::ArrayRef<Stmt *>(statements));
  return true;
}

bool ParserState::parseElse(StmtList &orelse) {
  if (!at(TokenKind::KwElse))
    return true;
  Token token = take();
  return parseBlock("'else'", token, orelse);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Simple statements
//===--------------------------------------------------------------------------------------------------------------===//

bool ParserState::parseStatement(Stmts &statements) {
  Stmt *statement = nullptr;
  uint32_t begin = current().begin;
  switch (current().kind) {
  case TokenKind::At: statement = parseDecorated(); break;
  case TokenKind::KwDef: statement = parseFunction(begin, {}); break;
  case TokenKind::KwClass: statement = parseClass(begin, {}); break;
  case TokenKind::KwAsync: statement = parseAsync(); break;
  case TokenKind::KwIf: statement = parseIf(); break;
  case TokenKind::KwFor: statement = parseFor(begin, /*isAsync=*/false); break;
  case TokenKind::KwWhile: statement = parseWhile(); break;
  case TokenKind::KwWith: statement = parseWith(begin, /*isAsync=*/false); break;
  case TokenKind::KwTry: statement = parseTry(); break;
  default:
    if (!startsMatch())
      return parseSimpleLine(statements);
    statement = parseMatch();
  }
  if (!statement)
    return false;
  statements.push_back(statement);
  return true;
}

bool ParserState::parseSimpleLine(Stmts &statements) {
  do {
    if (at(TokenKind::Newline)) // after a trailing semicolon
      break;
    Stmt *statement = parseSimple();
    if (!statement)
      return false;
    statements.push_back(statement);
  } while (accept(TokenKind::Semicolon));
  if (at(TokenKind::EndOfFile) || accept(TokenKind::Newline))
    return true;
  unexpected("the end of the statement");
  return false;
}

Stmt *ParserState::parseSimple() {
  switch (current().kind) {
  case TokenKind::KwPass: return module.create<Pass>(rangeOf(take()));
  case TokenKind::KwBreak: return module.create<Break>(rangeOf(take()));
  case TokenKind::KwContinue: return module.create<Continue>(rangeOf(take()));
  case TokenKind::KwReturn: return parseReturn();
  case TokenKind::KwRaise: return parseRaise();
  case TokenKind::KwAssert: return parseAssert();
  case TokenKind::KwDel: return parseDelete();
  case TokenKind::KwGlobal: return parseNameList(/*isGlobal=*/true);
  case TokenKind::KwNonlocal: return parseNameList(/*isGlobal=*/false);
  case TokenKind::KwImport: return parseImport();
  case TokenKind::KwFrom: return parseImportFrom();
  case TokenKind::KwElif:
  case TokenKind::KwElse:
  case TokenKind::KwExcept:
  case TokenKind::KwFinally: return unexpected("a statement");
  default: break;
  }
  bool isTypeAlias = atWord("type") && ahead(1).kind == TokenKind::Name &&
                     (ahead(2).kind == TokenKind::Equal || ahead(2).kind == TokenKind::LBracket);
  return isTypeAlias ? parseTypeAlias() : parseExpressionStatement();
}

/// The augmented assignment of a token; false for none.
static bool augmentedOp(TokenKind kind, BinaryOp &op) {
  switch (kind) {
  case TokenKind::PlusEqual: return op = BinaryOp::Add, true;
  case TokenKind::MinusEqual: return op = BinaryOp::Sub, true;
  case TokenKind::StarEqual: return op = BinaryOp::Mult, true;
  case TokenKind::AtEqual: return op = BinaryOp::MatMult, true;
  case TokenKind::SlashEqual: return op = BinaryOp::Div, true;
  case TokenKind::DoubleSlashEqual: return op = BinaryOp::FloorDiv, true;
  case TokenKind::PercentEqual: return op = BinaryOp::Mod, true;
  case TokenKind::DoubleStarEqual: return op = BinaryOp::Pow, true;
  case TokenKind::LeftShiftEqual: return op = BinaryOp::LShift, true;
  case TokenKind::RightShiftEqual: return op = BinaryOp::RShift, true;
  case TokenKind::PipeEqual: return op = BinaryOp::BitOr, true;
  case TokenKind::CaretEqual: return op = BinaryOp::BitXor, true;
  case TokenKind::AmpersandEqual: return op = BinaryOp::BitAnd, true;
  default: return false;
  }
}

/// Whether a value can be assigned to or deleted; reports what it is otherwise.
bool ParserState::checkTarget(const Expr *target, llvm::StringRef action) {
  llvm::StringRef what;
  switch (target->kind) {
  case NodeKind::Name:
  case NodeKind::Attribute:
  case NodeKind::Subscript: return true;
  case NodeKind::Starred: return checkTarget(llvm::cast<Starred>(target)->value, action);
  case NodeKind::List:
  case NodeKind::Tuple: {
    ExprList elements =
        llvm::isa<List>(target) ? llvm::cast<List>(target)->elements : llvm::cast<Tuple>(target)->elements;
    return llvm::all_of(elements, [&](const Expr *element) { return checkTarget(element, action); });
  }
  case NodeKind::Call: what = "a function call"; break;
  case NodeKind::Constant: what = "a literal"; break;
  case NodeKind::Compare: what = "a comparison"; break;
  case NodeKind::Lambda: what = "a lambda"; break;
  case NodeKind::IfExp: what = "a conditional expression"; break;
  case NodeKind::JoinedStr: what = "an f-string"; break;
  case NodeKind::NamedExpr: what = "a named expression"; break;
  case NodeKind::Comprehension: what = "a comprehension"; break;
  case NodeKind::Dict: what = "a dict"; break;
  case NodeKind::Set: what = "a set"; break;
  default: what = "an expression"; break;
  }
  error(target->range, fmt::format("cannot {} {}", action.str(), what.str()));
  return false;
}

Stmt *ParserState::parseExpressionStatement() {
  Token first = current();
  uint32_t begin = first.begin;
  if (first.kind == TokenKind::Name && ahead(1).kind == TokenKind::ColonEqual)
    return error(rangeOf(ahead(1)), "a named expression needs parentheses here; write '=' to assign");
  Expr *value = parseListOrYield();
  if (!value)
    return nullptr;
  if (at(TokenKind::Colon))
    return parseAnnotated(begin, first, value);
  BinaryOp op;
  if (augmentedOp(current().kind, op)) {
    SourceRange opRange = rangeOf(current());
    if (llvm::isa<Tuple, List>(value))
      return error(value->range, "a tuple or list is an illegal target of an augmented assignment");
    if (!checkTarget(value, "assign to"))
      return nullptr;
    take();
    Expr *operand = parseListOrYield();
    if (!operand)
      return nullptr;
    auto *node = create<AugAssign>(begin);
    node->target = value;
    node->op = op;
    node->value = operand;
    node->opRange = opRange;
    return node;
  }
  Exprs targets;
  while (at(TokenKind::Equal)) {
    if (!checkTarget(value, "assign to"))
      return nullptr;
    if (llvm::isa<Starred>(value))
      return error(value->range, "starred assignment target must be in a list or tuple");
    take();
    targets.push_back(value);
    value = parseListOrYield();
    if (!value)
      return nullptr;
  }
  if (llvm::isa<Starred>(value))
    return error(value->range, "cannot use starred expression here");
  if (targets.empty()) {
    auto *node = create<ExprStmt>(begin);
    node->value = value;
    return node;
  }
  auto *node = create<Assign>(begin);
  node->targets = list(targets);
  node->value = value;
  return node;
}

Stmt *ParserState::parseAnnotated(uint32_t begin, const Token &first, Expr *target) {
  if (!llvm::isa<Name, Attribute, Subscript>(target))
    return error(target->range, "only a name, an attribute or a subscript can be annotated");
  take();
  Expr *annotation = parseExpression();
  if (!annotation)
    return nullptr;
  Expr *value = nullptr;
  if (accept(TokenKind::Equal) && !(value = parseListOrYield()))
    return nullptr;
  auto *node = create<AnnAssign>(begin);
  node->target = target;
  node->annotation = annotation;
  node->value = value;
  node->isSimple = llvm::isa<Name>(target) && first.kind == TokenKind::Name;
  return node;
}

Stmt *ParserState::parseReturn() {
  uint32_t begin = take().begin;
  Expr *value = nullptr;
  if (startsExpression() && !(value = parseExpressionList()))
    return nullptr;
  auto *node = create<Return>(begin);
  node->value = value;
  return node;
}

Stmt *ParserState::parseRaise() {
  uint32_t begin = take().begin;
  Expr *exception = nullptr, *cause = nullptr;
  if (startsExpression()) {
    exception = parseExpression();
    if (!exception || (accept(TokenKind::KwFrom) && !(cause = parseExpression())))
      return nullptr;
  }
  auto *node = create<Raise>(begin);
  node->exception = exception;
  node->cause = cause;
  return node;
}

Stmt *ParserState::parseAssert() {
  uint32_t begin = take().begin;
  Expr *condition = parseExpression();
  Expr *message = nullptr;
  if (!condition || (accept(TokenKind::Comma) && !(message = parseExpression())))
    return nullptr;
  auto *node = create<Assert>(begin);
  node->condition = condition;
  node->message = message;
  return node;
}

Stmt *ParserState::parseDelete() {
  uint32_t begin = take().begin;
  Exprs targets;
  do {
    if (!targets.empty() && !startsExpression())
      break;
    Expr *target = parseOperand();
    if (!target || !checkTarget(target, "delete"))
      return nullptr;
    targets.push_back(target);
  } while (accept(TokenKind::Comma));
  auto *node = create<Delete>(begin);
  node->targets = list(targets);
  return node;
}

Stmt *ParserState::parseNameList(bool isGlobal) {
  uint32_t begin = take().begin;
  llvm::SmallVector<Identifier, 4> names;
  do {
    if (!expectName(names.emplace_back(), "a name"))
      return nullptr;
  } while (accept(TokenKind::Comma));
  llvm::ArrayRef<Identifier> kept = module.copy(llvm::ArrayRef<Identifier>(names));
  if (isGlobal) {
    auto *node = create<Global>(begin);
    node->names = kept;
    return node;
  }
  auto *node = create<Nonlocal>(begin);
  node->names = kept;
  return node;
}

Stmt *ParserState::parseTypeAlias() {
  uint32_t begin = take().begin;
  Identifier name = identifier(take());
  if (!skipTypeParameters() || !expect(TokenKind::Equal, "in the type alias"))
    return nullptr;
  Expr *value = parseExpression();
  if (!value)
    return nullptr;
  auto *node = create<TypeAlias>(begin);
  node->name = name;
  node->value = value;
  return node;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Imports
//===--------------------------------------------------------------------------------------------------------------===//

bool ParserState::parseDottedName(Identifier &name) {
  if (!expectName(name, "the name of a module"))
    return false;
  std::string text = name.text.str();
  bool isDotted = false;
  while (accept(TokenKind::Dot)) {
    Identifier part;
    if (!expectName(part, "a name after '.'"))
      return false;
    text += "." + part.text.str();
    name.range = name.range.join(part.range);
    isDotted = true;
  }
  if (isDotted)
    name.text = module.copy(llvm::StringRef(text));
  return true;
}

bool ParserState::parseAlias(bool isDotted, llvm::SmallVectorImpl<Alias> &names) {
  Alias alias;
  if (isDotted ? !parseDottedName(alias.name) : !expectName(alias.name, "the name to import"))
    return false;
  if (accept(TokenKind::KwAs) && !expectName(alias.asName, "a name after 'as'"))
    return false;
  names.push_back(alias);
  return true;
}

Stmt *ParserState::parseImport() {
  uint32_t begin = take().begin;
  llvm::SmallVector<Alias, 4> names;
  do {
    if (!parseAlias(/*isDotted=*/true, names))
      return nullptr;
  } while (accept(TokenKind::Comma));
  auto *node = create<Import>(begin);
  node->names = module.copy(llvm::ArrayRef<Alias>(names));
  return node;
}

Stmt *ParserState::parseImportFrom() {
  uint32_t begin = take().begin;
  unsigned level = 0;
  for (; at(TokenKind::Dot) || at(TokenKind::Ellipsis); take())
    level += at(TokenKind::Dot) ? 1 : 3;
  Identifier from;
  if ((level == 0 || at(TokenKind::Name)) && !parseDottedName(from))
    return nullptr;
  if (!expect(TokenKind::KwImport, "after the name of the module"))
    return nullptr;
  llvm::SmallVector<Alias, 8> names;
  if (at(TokenKind::Star)) {
    Alias &alias = names.emplace_back();
    alias.name = identifier(take());
  } else {
    bool isParenthesized = accept(TokenKind::LParen);
    do {
      if (isParenthesized && !names.empty() && at(TokenKind::RParen))
        break;
      if (!parseAlias(/*isDotted=*/false, names))
        return nullptr;
    } while (accept(TokenKind::Comma));
    if (isParenthesized && !expect(TokenKind::RParen, "after the imported names"))
      return nullptr;
  }
  auto *node = create<ImportFrom>(begin);
  node->module = from;
  node->level = level;
  node->names = module.copy(llvm::ArrayRef<Alias>(names));
  return node;
}

} // namespace ditron::frontend
