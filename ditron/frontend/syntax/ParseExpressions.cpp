//===- ParseExpressions.cpp - Expressions of kernel files ---------------------------------------------------------===//
//
// From the loosest form to the tightest: named expression, conditional and lambda, or, and, not, comparison, binary
// operators (by precedence climbing), unary, power; ParsePrimaries.cpp has the rest. Operators of one precedence are a
// loop, so a long sum does not recurse here; its tree is high on the left, which finish() bounds for those who walk it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ParserState.h"

#include "llvm/ADT/DenseSet.h"
#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

bool ParserState::DepthGuard::check() {
  if (parser.expressionDepth <= maxExpressionDepth)
    return true;
  parser.error(parser.rangeOf(parser.current()),
               fmt::format("the expression is nested too deeply: at most {} levels", maxExpressionDepth));
  return false;
}

Expr *ParserState::finish(Expr *node) {
  unsigned height = 0;
  forEachChild(node, [&](const Node *child) { height = std::max<unsigned>(height, child->height); });
  if (height >= maxExpressionHeight)
    return error(node->range, fmt::format("the expression is too complex: more than {} operations are chained; "
                                          "use a variable for a part of it",
                                          maxExpressionHeight));
  node->height = static_cast<uint16_t>(height + 1);
  return node;
}

Expr *ParserState::parseWholeExpression() {
  Expr *result = parseExpression();
  if (result && !at(TokenKind::EndOfFile))
    return unexpected("the end of the expression");
  return result;
}

Expr *ParserState::parseField() {
  Expr *result = parseListOrYield();
  if (result && !at(TokenKind::EndOfFile))
    return unexpected("'}', '!' or ':' after the expression of the f-string");
  return result;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Lists, named expressions, conditionals, lambdas
//===--------------------------------------------------------------------------------------------------------------===//

bool ParserState::startsExpression() const {
  switch (current().kind) {
  case TokenKind::Name:
  case TokenKind::Number:
  case TokenKind::String:
  case TokenKind::FString:
  case TokenKind::KwFalse:
  case TokenKind::KwNone:
  case TokenKind::KwTrue:
  case TokenKind::KwAwait:
  case TokenKind::KwLambda:
  case TokenKind::KwNot:
  case TokenKind::Ellipsis:
  case TokenKind::LParen:
  case TokenKind::LBracket:
  case TokenKind::LBrace:
  case TokenKind::Plus:
  case TokenKind::Minus:
  case TokenKind::Tilde:
  case TokenKind::Star:
  case TokenKind::Error: return true;
  default: return false;
  }
}

Expr *ParserState::parseNamed() {
  if (at(TokenKind::Name) && ahead(1).kind == TokenKind::ColonEqual) {
    Token name = take();
    take();
    Expr *value = parseExpression();
    if (!value)
      return nullptr;
    auto *node = create<NamedExpr>(name.begin);
    node->target = identifier(name);
    node->value = value;
    return finish(node);
  }
  return parseExpression();
}

Expr *ParserState::parseStarredOrNamed() {
  if (!at(TokenKind::Star))
    return parseNamed();
  uint32_t begin = take().begin;
  Expr *value = parseOperand();
  if (!value)
    return nullptr;
  auto *node = create<Starred>(begin);
  node->value = value;
  return finish(node);
}

Expr *ParserState::parseExpressionList() {
  uint32_t begin = current().begin;
  Expr *first = parseStarredOrNamed();
  if (!first || !at(TokenKind::Comma))
    return first;
  Exprs elements{first};
  while (accept(TokenKind::Comma) && startsExpression()) {
    Expr *element = parseStarredOrNamed();
    if (!element)
      return nullptr;
    elements.push_back(element);
  }
  auto *node = create<Tuple>(begin);
  node->elements = list(elements);
  return finish(node);
}

Expr *ParserState::parseListOrYield() { return at(TokenKind::KwYield) ? parseYield() : parseExpressionList(); }

Expr *ParserState::parseYield() {
  uint32_t begin = take().begin;
  bool isFrom = accept(TokenKind::KwFrom);
  Expr *value = nullptr;
  if (isFrom || startsExpression()) {
    value = isFrom ? parseExpression() : parseExpressionList();
    if (!value)
      return nullptr;
  }
  auto *node = create<Yield>(begin);
  node->isFrom = isFrom;
  node->value = value;
  return finish(node);
}

/// The targets of `for` and of comprehensions: no comparison, so that `in` is left alone.
Expr *ParserState::parseTargetList(llvm::StringRef action) {
  uint32_t begin = current().begin;
  Exprs elements;
  bool hasComma = false;
  do {
    if (!elements.empty() && !startsExpression())
      break;
    uint32_t elementBegin = current().begin;
    bool isStarred = accept(TokenKind::Star);
    Expr *element = parseOperand();
    if (element && isStarred) {
      auto *starred = create<Starred>(elementBegin);
      starred->value = element;
      element = finish(starred);
    }
    if (!element || !checkTarget(element, action))
      return nullptr;
    elements.push_back(element);
    hasComma |= at(TokenKind::Comma);
  } while (accept(TokenKind::Comma));
  if (!hasComma)
    return elements.front();
  auto *node = create<Tuple>(begin);
  node->elements = list(elements);
  return finish(node);
}

Expr *ParserState::parseExpression() {
  DepthGuard guard(*this);
  if (!guard.check())
    return nullptr;
  if (at(TokenKind::KwLambda))
    return parseLambda();
  uint32_t begin = current().begin;
  Expr *value = parseOr();
  if (!value || !at(TokenKind::KwIf))
    return value;
  take();
  Expr *condition = parseOr();
  if (!condition || !expect(TokenKind::KwElse, "after the condition of the conditional expression"))
    return nullptr;
  Expr *elseValue = parseExpression();
  if (!elseValue)
    return nullptr;
  auto *node = create<IfExp>(begin);
  node->condition = condition;
  node->thenValue = value;
  node->elseValue = elseValue;
  return finish(node);
}

Expr *ParserState::parseLambda() {
  uint32_t begin = take().begin;
  llvm::SmallVector<Param, 4> params;
  if (!parseParameters(TokenKind::Colon, params) || !expect(TokenKind::Colon, "after the parameters of the lambda"))
    return nullptr;
  Expr *body = parseExpression();
  if (!body)
    return nullptr;
  auto *node = create<Lambda>(begin);
  node->params = module.copy(llvm::ArrayRef<Param>(params));
  node->body = body;
  return finish(node);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Parameters
//===--------------------------------------------------------------------------------------------------------------===//

/// Parameters up to the end token, which is not taken: a parenthesis for `def`, a colon (no annotations) for lambda.
bool ParserState::parseParameters(TokenKind end, llvm::SmallVectorImpl<Param> &params) {
  ParamKind kind = ParamKind::PositionalOrKeyword;
  bool hasSlash = false, hasStar = false, hasDoubleStar = false;
  while (!at(end)) {
    Token first = current();
    if (hasDoubleStar)
      return error(rangeOf(first), "arguments cannot follow var-keyword argument"), false;
    if (accept(TokenKind::Slash)) {
      if (hasSlash || hasStar || params.empty())
        return error(rangeOf(first), params.empty() ? "at least one argument must precede /"
                                     : hasSlash     ? "/ may appear only once"
                                                    : "/ must be ahead of *"),
               false;
      hasSlash = true;
      for (Param &param : params)
        param.kind = ParamKind::PositionalOnly;
    } else if (at(TokenKind::Star)) {
      if (hasStar)
        return error(rangeOf(first), "* argument may appear only once"), false;
      hasStar = true;
      kind = ParamKind::KeywordOnly;
      if (ahead(1).kind == TokenKind::Comma || ahead(1).kind == end) {
        take();
        if (at(end) || ahead(1).kind == end || ahead(1).kind == TokenKind::DoubleStar)
          return error(rangeOf(first), "named arguments must follow bare *"), false;
      } else if (!parseParameter(end, params, ParamKind::VarPositional)) {
        return false;
      }
    } else if (at(TokenKind::DoubleStar)) {
      hasDoubleStar = true;
      if (!parseParameter(end, params, ParamKind::VarKeyword))
        return false;
    } else if (!parseParameter(end, params, kind)) {
      return false;
    }
    if (!at(end) && !accept(TokenKind::Comma))
      return unexpected(end == TokenKind::RParen ? "',' or ')' after a parameter" : "',' or ':' after a parameter"),
             false;
  }
  return checkParameters(params);
}

bool ParserState::parseParameter(TokenKind end, llvm::SmallVectorImpl<Param> &params, ParamKind kind) {
  Param param;
  param.kind = kind;
  uint32_t begin = current().begin;
  bool isStarred = kind == ParamKind::VarPositional || kind == ParamKind::VarKeyword;
  if (isStarred)
    take();
  if (!expectName(param.name, "the name of a parameter"))
    return false;
  if (end == TokenKind::RParen && accept(TokenKind::Colon)) {
    param.annotation = kind == ParamKind::VarPositional ? parseStarredOrNamed() : parseExpression();
    if (!param.annotation)
      return false;
  }
  if (at(TokenKind::Equal)) {
    if (isStarred)
      return error(rangeOf(current()), "a starred argument cannot have a default value"), false;
    take();
    param.defaultValue = parseExpression();
    if (!param.defaultValue)
      return false;
  }
  param.range = rangeFrom(begin);
  params.push_back(param);
  return true;
}

bool ParserState::checkParameters(llvm::ArrayRef<Param> params) {
  llvm::DenseSet<llvm::StringRef> names;
  bool hasDefault = false;
  for (const Param &param : params) {
    if (!names.insert(param.name.text).second)
      return error(param.name.range,
                   fmt::format("duplicate argument '{}' in function definition", param.name.text.str())),
             false;
    bool isPositional = param.kind == ParamKind::PositionalOnly || param.kind == ParamKind::PositionalOrKeyword;
    if (isPositional && hasDefault && !param.defaultValue)
      return error(param.range, "non-default argument follows default argument"), false;
    hasDefault |= isPositional && param.defaultValue;
  }
  return true;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Operators
//===--------------------------------------------------------------------------------------------------------------===//

Expr *ParserState::parseOr() {
  uint32_t begin = current().begin;
  Expr *first = parseAnd();
  if (!first || !at(TokenKind::KwOr))
    return first;
  Exprs values{first};
  while (accept(TokenKind::KwOr)) {
    Expr *value = parseAnd();
    if (!value)
      return nullptr;
    values.push_back(value);
  }
  auto *node = create<BoolOp>(begin);
  node->isAnd = false;
  node->values = list(values);
  return finish(node);
}

Expr *ParserState::parseAnd() {
  uint32_t begin = current().begin;
  Expr *first = parseNot();
  if (!first || !at(TokenKind::KwAnd))
    return first;
  Exprs values{first};
  while (accept(TokenKind::KwAnd)) {
    Expr *value = parseNot();
    if (!value)
      return nullptr;
    values.push_back(value);
  }
  auto *node = create<BoolOp>(begin);
  node->values = list(values);
  return finish(node);
}

Expr *ParserState::parseNot() {
  if (!at(TokenKind::KwNot))
    return parseComparison();
  DepthGuard guard(*this);
  if (!guard.check())
    return nullptr;
  uint32_t begin = take().begin;
  Expr *operand = parseNot();
  if (!operand)
    return nullptr;
  auto *node = create<ast::UnaryOp>(begin);
  node->op = frontend::UnaryOp::Not;
  node->operand = operand;
  return finish(node);
}

/// The comparison operator that starts at a token, and how many tokens it has; 0 for none.
static unsigned comparisonAt(TokenKind first, TokenKind second, CompareOp &op) {
  switch (first) {
  case TokenKind::EqualEqual: return op = CompareOp::Eq, 1;
  case TokenKind::NotEqual: return op = CompareOp::NotEq, 1;
  case TokenKind::Less: return op = CompareOp::Lt, 1;
  case TokenKind::LessEqual: return op = CompareOp::LtE, 1;
  case TokenKind::Greater: return op = CompareOp::Gt, 1;
  case TokenKind::GreaterEqual: return op = CompareOp::GtE, 1;
  case TokenKind::KwIn: return op = CompareOp::In, 1;
  case TokenKind::KwIs:
    op = second == TokenKind::KwNot ? CompareOp::IsNot : CompareOp::Is;
    return second == TokenKind::KwNot ? 2 : 1;
  case TokenKind::KwNot: return op = CompareOp::NotIn, second == TokenKind::KwIn ? 2 : 0;
  default: return 0;
  }
}

Expr *ParserState::parseComparison() {
  uint32_t begin = current().begin;
  Expr *left = parseBinary(0);
  if (!left)
    return nullptr;
  llvm::SmallVector<CompareOp, 2> ops;
  Exprs comparators;
  CompareOp op;
  while (unsigned length = comparisonAt(current().kind, ahead(1).kind, op)) {
    while (length--)
      take();
    Expr *comparator = parseBinary(0);
    if (!comparator)
      return nullptr;
    ops.push_back(op);
    comparators.push_back(comparator);
  }
  if (ops.empty())
    return left;
  auto *node = create<Compare>(begin);
  node->left = left;
  node->ops = module.copy(llvm::ArrayRef<CompareOp>(ops));
  node->comparators = list(comparators);
  return finish(node);
}

/// The binary operator of a token and its precedence from 1 (loosest); 0 for none. `**` is not among them.
static unsigned binaryPrecedence(TokenKind kind, BinaryOp &op) {
  switch (kind) {
  case TokenKind::Pipe: return op = BinaryOp::BitOr, 1;
  case TokenKind::Caret: return op = BinaryOp::BitXor, 2;
  case TokenKind::Ampersand: return op = BinaryOp::BitAnd, 3;
  case TokenKind::LeftShift: return op = BinaryOp::LShift, 4;
  case TokenKind::RightShift: return op = BinaryOp::RShift, 4;
  case TokenKind::Plus: return op = BinaryOp::Add, 5;
  case TokenKind::Minus: return op = BinaryOp::Sub, 5;
  case TokenKind::Star: return op = BinaryOp::Mult, 6;
  case TokenKind::Slash: return op = BinaryOp::Div, 6;
  case TokenKind::DoubleSlash: return op = BinaryOp::FloorDiv, 6;
  case TokenKind::Percent: return op = BinaryOp::Mod, 6;
  case TokenKind::At: return op = BinaryOp::MatMult, 6;
  default: return 0;
  }
}

/// Operators of at least that precedence. The recursion climbs one precedence per level: at most six.
Expr *ParserState::parseBinary(unsigned minPrecedence) {
  uint32_t begin = current().begin;
  Expr *left = parseUnary();
  BinaryOp op;
  while (left) {
    unsigned precedence = binaryPrecedence(current().kind, op);
    if (precedence == 0 || precedence < minPrecedence)
      break;
    Token opToken = take();
    Expr *right = parseBinary(precedence + 1);
    if (!right)
      return nullptr;
    auto *node = create<BinOp>(begin);
    node->left = left;
    node->op = op;
    node->right = right;
    node->opRange = rangeOf(opToken);
    left = finish(node);
  }
  return left;
}

/// What may stand after a star and as a target: no comparisons, no `not`, no conditionals.
Expr *ParserState::parseOperand() {
  DepthGuard guard(*this);
  return guard.check() ? parseBinary(0) : nullptr;
}

Expr *ParserState::parseUnary() {
  frontend::UnaryOp op;
  switch (current().kind) {
  case TokenKind::Plus: op = frontend::UnaryOp::UAdd; break;
  case TokenKind::Minus: op = frontend::UnaryOp::USub; break;
  case TokenKind::Tilde: op = frontend::UnaryOp::Invert; break;
  default: return parsePower();
  }
  DepthGuard guard(*this);
  if (!guard.check())
    return nullptr;
  uint32_t begin = take().begin;
  Expr *operand = parseUnary();
  if (!operand)
    return nullptr;
  auto *node = create<ast::UnaryOp>(begin);
  node->op = op;
  node->operand = operand;
  return finish(node);
}

Expr *ParserState::parsePower() {
  uint32_t begin = current().begin;
  bool isAwait = accept(TokenKind::KwAwait);
  Expr *base = parsePrimary();
  if (!base)
    return nullptr;
  if (isAwait) {
    auto *node = create<Await>(begin);
    node->value = base;
    base = finish(node);
  }
  if (!base || !at(TokenKind::DoubleStar))
    return base;
  DepthGuard guard(*this);
  if (!guard.check())
    return nullptr;
  Token opToken = take();
  Expr *exponent = parseUnary(); // `**` binds tighter on its left than on its right: 2 ** -x
  if (!exponent)
    return nullptr;
  auto *node = create<BinOp>(begin);
  node->left = base;
  node->op = BinaryOp::Pow;
  node->right = exponent;
  node->opRange = rangeOf(opToken);
  return finish(node);
}

} // namespace ditron::frontend
