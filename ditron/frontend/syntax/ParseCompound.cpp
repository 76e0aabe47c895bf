//===- ParseCompound.cpp - Functions, classes and control flow ----------------------------------------------------===//
//
// Statements that own blocks. An elif chain is collected in a loop and linked from its end, so that its length costs no
// recursion here.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ParserState.h"

#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

std::unique_ptr<Module> parseModule(const SourceFile &file, DiagnosticEngine &diagnostics) {
  auto module = std::make_unique<Module>(file.id());
  ParserState parser(*module, file, diagnostics, tokenize(file, diagnostics));
  module->body = parser.parseFile();
  return module;
}

Expr *parseExpression(Module &module, const SourceFile &file, DiagnosticEngine &diagnostics) {
  size_t before = diagnostics.errorCount();
  ParserState parser(module, file, diagnostics, tokenizeExpression(file, 0, file.size(), diagnostics));
  Expr *result = parser.parseWholeExpression();
  return diagnostics.errorCount() == before ? result : nullptr;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Functions and classes
//===--------------------------------------------------------------------------------------------------------------===//

Stmt *ParserState::parseDecorated() {
  uint32_t begin = current().begin;
  Exprs decorators;
  while (accept(TokenKind::At)) {
    Expr *decorator = parseNamed();
    if (!decorator || !expect(TokenKind::Newline, "after the decorator"))
      return nullptr;
    decorators.push_back(decorator);
  }
  ExprList kept = list(decorators);
  if (at(TokenKind::KwDef) || (at(TokenKind::KwAsync) && ahead(1).kind == TokenKind::KwDef))
    return parseFunction(begin, kept);
  if (at(TokenKind::KwClass))
    return parseClass(begin, kept);
  return unexpected("'def' or 'class' after the decorators");
}

/// `[T, *Ts]` of Python 3.12, which is of no interest here.
bool ParserState::skipTypeParameters() {
  if (!at(TokenKind::LBracket))
    return true;
  size_t close = matchingBracket(index);
  if (close == tokens.size())
    return unexpected("']' after the type parameters"), false;
  while (index <= close)
    take();
  return true;
}

/// The index of the token that closes the bracket at an index, or tokens.size().
size_t ParserState::matchingBracket(size_t open) const {
  unsigned depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    switch (tokens[i].kind) {
    case TokenKind::LParen:
    case TokenKind::LBracket:
    case TokenKind::LBrace: ++depth; break;
    case TokenKind::RParen:
    case TokenKind::RBracket:
    case TokenKind::RBrace:
      if (--depth == 0)
        return i;
      break;
    case TokenKind::Error:
    case TokenKind::Newline: return tokens.size(); // not inside brackets
    default: break;
    }
  }
  return tokens.size();
}

Stmt *ParserState::parseFunction(uint32_t begin, ExprList decorators) {
  bool isAsync = accept(TokenKind::KwAsync);
  Token def = take();
  Identifier name;
  llvm::SmallVector<Param, 8> params;
  if (!expectName(name, "the name of the function") || !skipTypeParameters() ||
      !expect(TokenKind::LParen, "after the name of the function") || !parseParameters(TokenKind::RParen, params) ||
      !expect(TokenKind::RParen, "after the parameters"))
    return nullptr;
  Expr *returns = nullptr;
  if (accept(TokenKind::Arrow) && !(returns = parseExpression()))
    return nullptr;
  SourceRange header = file.range(def.begin, at(TokenKind::Colon) ? current().end : previousEnd);
  StmtList body;
  if (!parseBlock("the function definition", def, body))
    return nullptr;
  auto *node = create<FunctionDef>(begin);
  node->name = name;
  node->decorators = decorators;
  node->params = module.copy(llvm::ArrayRef<Param>(params));
  node->returns = returns;
  node->body = body;
  node->headerRange = header;
  node->isAsync = isAsync;
  return node;
}

Stmt *ParserState::parseClass(uint32_t begin, ExprList decorators) {
  Token keyword = take();
  Identifier name;
  Exprs bases;
  llvm::SmallVector<Keyword, 2> keywords;
  if (!expectName(name, "the name of the class") || !skipTypeParameters() ||
      (at(TokenKind::LParen) && !parseArguments(bases, keywords)))
    return nullptr;
  StmtList body;
  if (!parseBlock("the class definition", keyword, body))
    return nullptr;
  auto *node = create<ClassDef>(begin);
  node->name = name;
  node->decorators = decorators;
  node->bases = list(bases);
  node->keywords = module.copy(llvm::ArrayRef<Keyword>(keywords));
  node->body = body;
  return node;
}

Stmt *ParserState::parseAsync() {
  uint32_t begin = current().begin;
  switch (ahead(1).kind) {
  case TokenKind::KwDef: return parseFunction(begin, {});
  case TokenKind::KwFor: take(); return parseFor(begin, /*isAsync=*/true);
  case TokenKind::KwWith: take(); return parseWith(begin, /*isAsync=*/true);
  default: take(); return unexpected("'def', 'for' or 'with' after 'async'");
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Control flow
//===--------------------------------------------------------------------------------------------------------------===//

Stmt *ParserState::parseIf() {
  llvm::SmallVector<If *, 4> chain;
  StmtList orelse;
  do {
    Token keyword = take();
    if (chain.size() >= maxElifChain)
      return error(rangeOf(keyword), fmt::format("the if-elif chain is too long: at most {} links", maxElifChain));
    Expr *condition = parseNamed();
    if (!condition)
      return nullptr;
    auto *node = create<If>(keyword.begin);
    node->condition = condition;
    if (!parseBlock(chain.empty() ? "'if'" : "'elif'", keyword, node->body))
      return nullptr;
    chain.push_back(node);
  } while (at(TokenKind::KwElif));
  if (!parseElse(orelse))
    return nullptr;
  for (size_t i = chain.size(); i-- > 0;) {
    chain[i]->orelse = orelse;
    chain[i]->range.end = previousEnd;
    if (i > 0)
      orelse = module.copy(llvm::ArrayRef<Stmt *>(chain[i]));
  }
  return chain.front();
}

Stmt *ParserState::parseFor(uint32_t begin, bool isAsync) {
  Token keyword = take();
  Expr *target = parseTargetList("assign to");
  if (!target || !expect(TokenKind::KwIn, "after the target of 'for'"))
    return nullptr;
  Expr *iterable = parseExpressionList();
  if (!iterable)
    return nullptr;
  SourceRange header = file.range(keyword.begin, at(TokenKind::Colon) ? current().end : previousEnd);
  StmtList body, orelse;
  if (!parseBlock("'for'", keyword, body) || !parseElse(orelse))
    return nullptr;
  auto *node = create<For>(begin);
  node->target = target;
  node->iterable = iterable;
  node->body = body;
  node->orelse = orelse;
  node->headerRange = header;
  node->isAsync = isAsync;
  return node;
}

Stmt *ParserState::parseWhile() {
  Token keyword = take();
  Expr *condition = parseNamed();
  StmtList body, orelse;
  if (!condition || !parseBlock("'while'", keyword, body) || !parseElse(orelse))
    return nullptr;
  auto *node = create<While>(keyword.begin);
  node->condition = condition;
  node->body = body;
  node->orelse = orelse;
  return node;
}

/// `with (a as b, c as d):` against `with (a):`, whose parentheses belong to an expression.
bool ParserState::withItemsInParentheses() const {
  if (!at(TokenKind::LParen))
    return false;
  size_t close = matchingBracket(index);
  if (close == tokens.size() || tokens[close + 1].kind != TokenKind::Colon)
    return false;
  unsigned depth = 0;
  for (size_t i = index; i < close; ++i) {
    switch (tokens[i].kind) {
    case TokenKind::LParen:
    case TokenKind::LBracket:
    case TokenKind::LBrace: ++depth; break;
    case TokenKind::RParen:
    case TokenKind::RBracket:
    case TokenKind::RBrace: --depth; break;
    case TokenKind::Comma:
    case TokenKind::KwAs:
      if (depth == 1)
        return true;
      break;
    default: break;
    }
  }
  return false;
}

Stmt *ParserState::parseWith(uint32_t begin, bool isAsync) {
  Token keyword = take();
  bool isParenthesized = withItemsInParentheses() && accept(TokenKind::LParen);
  llvm::SmallVector<WithItem, 2> items;
  do {
    if (isParenthesized && !items.empty() && at(TokenKind::RParen))
      break;
    WithItem item;
    item.context = parseExpression();
    if (!item.context)
      return nullptr;
    if (accept(TokenKind::KwAs)) {
      item.target = parseOperand();
      if (!item.target || !checkTarget(item.target, "assign to"))
        return nullptr;
    }
    items.push_back(item);
  } while (accept(TokenKind::Comma));
  if (isParenthesized && !expect(TokenKind::RParen, "after the items of 'with'"))
    return nullptr;
  StmtList body;
  if (!parseBlock("'with'", keyword, body))
    return nullptr;
  auto *node = create<With>(begin);
  node->items = module.copy(llvm::ArrayRef<WithItem>(items));
  node->body = body;
  node->isAsync = isAsync;
  return node;
}

Stmt *ParserState::parseTry() {
  Token keyword = take();
  StmtList body, orelse, finalBody;
  if (!parseBlock("'try'", keyword, body))
    return nullptr;
  llvm::SmallVector<ExceptHandler, 2> handlers;
  while (at(TokenKind::KwExcept)) {
    Token except = take();
    ExceptHandler handler;
    handler.isStar = accept(TokenKind::Star);
    if (!at(TokenKind::Colon)) {
      handler.type = parseExpressionList();
      if (!handler.type || (accept(TokenKind::KwAs) && !expectName(handler.name, "a name after 'as'")))
        return nullptr;
    }
    if (!parseBlock("'except'", except, handler.body))
      return nullptr;
    handler.range = rangeFrom(except.begin);
    handlers.push_back(handler);
  }
  if (!handlers.empty() && !parseElse(orelse))
    return nullptr;
  if (at(TokenKind::KwFinally)) {
    Token token = take();
    if (!parseBlock("'finally'", token, finalBody))
      return nullptr;
  } else if (handlers.empty()) {
    unexpected("'except' or 'finally' after the block of 'try'"); // what follows is fine
  }
  auto *node = create<Try>(keyword.begin);
  node->body = body;
  node->handlers = module.copy(llvm::ArrayRef<ExceptHandler>(handlers));
  node->orelse = orelse;
  node->finalBody = finalBody;
  return node;
}

//===--------------------------------------------------------------------------------------------------------------===//
// match
//===--------------------------------------------------------------------------------------------------------------===//

/// `match` is a name unless its line ends in a colon and an indented `case` follows.
bool ParserState::startsMatch() const {
  if (!atWord("match"))
    return false;
  switch (ahead(1).kind) {
  case TokenKind::Equal:
  case TokenKind::Dot:
  case TokenKind::Comma:
  case TokenKind::Colon:
  case TokenKind::Newline: return false;
  default: break;
  }
  size_t i = index;
  while (tokens[i].kind != TokenKind::Newline && tokens[i].kind != TokenKind::EndOfFile)
    ++i;
  return i + 2 < tokens.size() && tokens[i - 1].kind == TokenKind::Colon && tokens[i + 1].kind == TokenKind::Indent &&
         tokens[i + 2].kind == TokenKind::Name && textOf(tokens[i + 2]) == "case";
}

Stmt *ParserState::parseMatch() {
  Token keyword = take();
  Expr *subject = parseExpressionList();
  if (!subject || !expect(TokenKind::Colon, "after the subject of 'match'") || !expect(TokenKind::Newline) ||
      !expect(TokenKind::Indent))
    return nullptr;
  llvm::SmallVector<MatchCase, 4> cases;
  if (blockDepth >= maxBlockDepth)
    return error(rangeOf(keyword), fmt::format("too many levels of indentation: at most {}", maxBlockDepth));
  ++blockDepth;
  while (!at(TokenKind::Dedent) && !at(TokenKind::EndOfFile) && !diagnostics.limitReached(file.id()))
    if (!parseCase(cases))
      recover();
  --blockDepth;
  accept(TokenKind::Dedent);
  auto *node = create<Match>(keyword.begin);
  node->subject = subject;
  node->cases = module.copy(llvm::ArrayRef<MatchCase>(cases));
  return node;
}

bool ParserState::parseCase(llvm::SmallVectorImpl<MatchCase> &cases) {
  if (!atWord("case"))
    return unexpected("'case'"), false;
  Token keyword = take();
  MatchCase matchCase;
  uint32_t patternBegin = current().begin;
  // The pattern ends at the first `if` or colon that is not inside its brackets.
  for (unsigned depth = 0; depth > 0 || (!at(TokenKind::KwIf) && !at(TokenKind::Colon)); take()) {
    if (at(TokenKind::Newline) || at(TokenKind::EndOfFile) || at(TokenKind::Error))
      return unexpected("':' after the pattern of 'case'"), false;
    depth += at(TokenKind::LParen) || at(TokenKind::LBracket) || at(TokenKind::LBrace);
    depth -= at(TokenKind::RParen) || at(TokenKind::RBracket) || at(TokenKind::RBrace);
  }
  matchCase.patternRange = rangeFrom(patternBegin);
  if (accept(TokenKind::KwIf) && !(matchCase.guard = parseNamed()))
    return false;
  if (!parseBlock("'case'", keyword, matchCase.body))
    return false;
  cases.push_back(matchCase);
  return true;
}

} // namespace ditron::frontend
