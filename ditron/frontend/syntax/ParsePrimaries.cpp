//===- ParsePrimaries.cpp - Calls, subscripts, atoms and displays -------------------------------------------------===//
//
// The tightest forms of expressions: what may stand next to an operator without parentheses.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ParserState.h"

#include "llvm/ADT/DenseSet.h"
#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

//===--------------------------------------------------------------------------------------------------------------===//
// Primaries: attributes, calls, subscripts
//===--------------------------------------------------------------------------------------------------------------===//

Expr *ParserState::parsePrimary() {
  uint32_t begin = current().begin;
  Expr *value = parseAtom();
  while (value) {
    if (accept(TokenKind::Dot)) {
      Identifier attr;
      if (!expectName(attr, "a name after '.'"))
        return nullptr;
      auto *node = create<Attribute>(begin);
      node->value = value;
      node->attr = attr;
      value = finish(node);
    } else if (at(TokenKind::LParen)) {
      Exprs args;
      llvm::SmallVector<Keyword, 4> keywords;
      if (!parseArguments(args, keywords))
        return nullptr;
      auto *node = create<Call>(begin);
      node->callee = value;
      node->args = list(args);
      node->keywords = module.copy(llvm::ArrayRef<Keyword>(keywords));
      value = finish(node);
    } else if (at(TokenKind::LBracket)) {
      Expr *subscript = parseSubscript();
      if (!subscript)
        return nullptr;
      auto *node = create<Subscript>(begin);
      node->value = value;
      node->index = subscript;
      value = finish(node);
    } else {
      break;
    }
  }
  return value;
}

/// Arguments with their parentheses; for calls and for the bases of a class.
bool ParserState::parseArguments(Exprs &args, llvm::SmallVectorImpl<Keyword> &keywords) {
  uint32_t openBegin = take().begin;
  llvm::DenseSet<llvm::StringRef> names;
  bool hasDoubleStar = false;
  while (!at(TokenKind::RParen)) {
    uint32_t begin = current().begin;
    if (at(TokenKind::DoubleStar) || (at(TokenKind::Name) && ahead(1).kind == TokenKind::Equal)) {
      Keyword keyword;
      if (at(TokenKind::Name)) {
        keyword.name = identifier(take());
        if (!names.insert(keyword.name.text).second)
          return error(keyword.name.range, fmt::format("keyword argument repeated: {}", keyword.name.text.str())),
                 false;
      } else {
        hasDoubleStar = true;
      }
      take();
      keyword.value = parseExpression();
      if (!keyword.value)
        return false;
      keyword.range = rangeFrom(begin);
      keywords.push_back(keyword);
    } else {
      Expr *arg = parseArgument();
      if (!arg)
        return false;
      if (atComprehension()) {
        bool isOnly = args.empty() && keywords.empty();
        arg = parseComprehension(openBegin, ComprehensionKind::Generator, nullptr, arg, TokenKind::RParen);
        if (!arg)
          return false;
        if (!isOnly)
          return error(arg->range, "Generator expression must be parenthesized"), false;
        args.push_back(arg);
        return true; // the comprehension has taken the parenthesis
      }
      if (!keywords.empty() && !llvm::isa<Starred>(arg))
        return error(arg->range, hasDoubleStar ? "positional argument follows keyword argument unpacking"
                                               : "positional argument follows keyword argument"),
               false;
      args.push_back(arg);
    }
    if (!at(TokenKind::RParen) && !accept(TokenKind::Comma))
      return unexpected("',' or ')' in the argument list"), false;
  }
  take();
  return true;
}

/// A positional argument. Unlike in displays, anything may follow the star here: f(*a or b).
Expr *ParserState::parseArgument() {
  uint32_t begin = current().begin;
  if (!accept(TokenKind::Star))
    return parseNamed();
  Expr *value = parseExpression();
  if (!value)
    return nullptr;
  auto *node = create<Starred>(begin);
  node->value = value;
  return finish(node);
}

Expr *ParserState::parseSubscript() {
  take();
  uint32_t begin = current().begin;
  Exprs items;
  bool isTuple = false;
  do {
    if (!items.empty() && at(TokenKind::RBracket))
      break;
    Expr *item = parseSubscriptItem();
    if (!item)
      return nullptr;
    items.push_back(item);
    isTuple |= at(TokenKind::Comma);
  } while (accept(TokenKind::Comma));
  Expr *result = items.front();
  if (isTuple || llvm::isa<Starred>(result)) {
    auto *node = create<Tuple>(begin);
    node->elements = list(items);
    result = finish(node);
  }
  if (!result || !expect(TokenKind::RBracket, "after the subscript"))
    return nullptr;
  return result;
}

Expr *ParserState::parseSubscriptItem() {
  uint32_t begin = current().begin;
  Expr *lower = nullptr;
  if (!at(TokenKind::Colon)) {
    lower = parseStarredOrNamed();
    if (!lower || !at(TokenKind::Colon))
      return lower;
  }
  take();
  auto part = [&](Expr *&value) {
    if (at(TokenKind::Colon) || at(TokenKind::Comma) || at(TokenKind::RBracket))
      return true;
    value = parseExpression();
    return value != nullptr;
  };
  Expr *upper = nullptr, *step = nullptr;
  if (!part(upper) || (accept(TokenKind::Colon) && !part(step)))
    return nullptr;
  auto *node = create<Slice>(begin);
  node->lower = lower;
  node->upper = upper;
  node->step = step;
  return finish(node);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Atoms and displays
//===--------------------------------------------------------------------------------------------------------------===//

Expr *ParserState::parseAtom() {
  switch (current().kind) {
  case TokenKind::Name: {
    Token token = take();
    auto *node = module.create<Name>(rangeOf(token));
    node->id = textOf(token);
    return finish(node);
  }
  case TokenKind::Number: return parseNumber();
  case TokenKind::String:
  case TokenKind::FString: return parseStrings();
  case TokenKind::KwNone: return constant(rangeOf(take()), ConstValue::none());
  case TokenKind::KwTrue: return constant(rangeOf(take()), ConstValue::boolean(true));
  case TokenKind::KwFalse: return constant(rangeOf(take()), ConstValue::boolean(false));
  case TokenKind::Ellipsis: return constant(rangeOf(take()), ConstValue::ellipsis());
  case TokenKind::LParen: return parseParenthesized();
  case TokenKind::LBracket: return parseListDisplay();
  case TokenKind::LBrace: return parseBraceDisplay();
  default: return unexpected("an expression");
  }
}

Expr *ParserState::parseParenthesized() {
  uint32_t begin = take().begin;
  if (accept(TokenKind::RParen))
    return finish(create<Tuple>(begin));
  if (at(TokenKind::KwYield)) {
    Expr *value = parseYield();
    return value && expect(TokenKind::RParen, "to close the parenthesis") ? value : nullptr;
  }
  Expr *first = parseStarredOrNamed();
  if (!first)
    return nullptr;
  if (atComprehension())
    return parseComprehension(begin, ComprehensionKind::Generator, nullptr, first, TokenKind::RParen);
  if (!at(TokenKind::Comma)) {
    if (llvm::isa<Starred>(first))
      return error(first->range, "cannot use starred expression here");
    return expect(TokenKind::RParen, "to close the parenthesis") ? first : nullptr;
  }
  Exprs elements{first};
  while (accept(TokenKind::Comma) && !at(TokenKind::RParen)) {
    Expr *element = parseStarredOrNamed();
    if (!element)
      return nullptr;
    elements.push_back(element);
  }
  if (!expect(TokenKind::RParen, "or ',' in the tuple"))
    return nullptr;
  auto *node = create<Tuple>(begin);
  node->elements = list(elements);
  return finish(node);
}

Expr *ParserState::parseListDisplay() {
  uint32_t begin = take().begin;
  Exprs elements;
  while (!at(TokenKind::RBracket)) {
    Expr *element = parseStarredOrNamed();
    if (!element)
      return nullptr;
    if (elements.empty() && atComprehension())
      return parseComprehension(begin, ComprehensionKind::List, nullptr, element, TokenKind::RBracket);
    elements.push_back(element);
    if (!at(TokenKind::RBracket) && !accept(TokenKind::Comma))
      return unexpected("',' or ']' in the list");
  }
  take();
  auto *node = create<List>(begin);
  node->elements = list(elements);
  return finish(node);
}

/// A set or a dict, or a comprehension of either.
Expr *ParserState::parseBraceDisplay() {
  uint32_t begin = take().begin;
  Exprs elements;
  llvm::SmallVector<DictItem, 4> items;
  while (!at(TokenKind::RBrace)) {
    bool isFirst = elements.empty() && items.empty();
    DictItem item;
    bool isDict;
    if (accept(TokenKind::DoubleStar)) {
      isDict = true;
      item.value = parseOperand();
      if (!item.value)
        return nullptr;
    } else {
      Expr *element = parseStarredOrNamed();
      if (!element)
        return nullptr;
      isDict = accept(TokenKind::Colon);
      (isDict ? item.key : item.value) = element;
      if (isDict && !(item.value = parseExpression()))
        return nullptr;
      if (isFirst && atComprehension())
        return parseComprehension(begin, isDict ? ComprehensionKind::Dict : ComprehensionKind::Set, item.key,
                                  item.value, TokenKind::RBrace);
    }
    if (isDict ? !elements.empty() : !items.empty())
      return error(item.value->range, "dict items and set elements cannot be mixed");
    if (isDict)
      items.push_back(item);
    else
      elements.push_back(item.value);
    if (!at(TokenKind::RBrace) && !accept(TokenKind::Comma))
      return unexpected(isDict ? "',' or '}' in the dict" : "',', ':' or '}' in the set or dict");
  }
  take();
  if (!elements.empty()) {
    auto *node = create<Set>(begin);
    node->elements = list(elements);
    return finish(node);
  }
  auto *node = create<Dict>(begin);
  node->items = module.copy(llvm::ArrayRef<DictItem>(items));
  return finish(node);
}

bool ParserState::atComprehension() const {
  return at(TokenKind::KwFor) || (at(TokenKind::KwAsync) && ahead(1).kind == TokenKind::KwFor);
}

Expr *ParserState::parseComprehension(uint32_t begin, ComprehensionKind kind, Expr *key, Expr *element,
                                      TokenKind closing) {
  DepthGuard guard(*this); // the iterable is parsed below the level of conditionals
  if (!guard.check())
    return nullptr;
  if (llvm::isa<Starred>(element))
    return error(element->range, "iterable unpacking cannot be used in comprehension");
  llvm::SmallVector<ComprehensionClause, 2> clauses;
  while (atComprehension()) {
    ComprehensionClause clause;
    clause.isAsync = accept(TokenKind::KwAsync);
    take();
    clause.target = parseTargetList("assign to");
    if (!clause.target || !expect(TokenKind::KwIn, "after the target of the comprehension"))
      return nullptr;
    clause.iterable = parseOr();
    if (!clause.iterable)
      return nullptr;
    Exprs conditions;
    while (accept(TokenKind::KwIf)) {
      // A named expression or a lambda needs parentheses here, but a conditional must not swallow the next `if`.
      Expr *condition = at(TokenKind::Name) && ahead(1).kind == TokenKind::ColonEqual ? parseNamed() : parseOr();
      if (!condition)
        return nullptr;
      conditions.push_back(condition);
    }
    clause.conditions = list(conditions);
    clauses.push_back(clause);
  }
  if (!expect(closing, "after the comprehension"))
    return nullptr;
  auto *node = create<Comprehension>(begin);
  node->comprehensionKind = kind;
  node->key = key;
  node->element = element;
  node->clauses = module.copy(llvm::ArrayRef<ComprehensionClause>(clauses));
  return finish(node);
}

} // namespace ditron::frontend
