//===- Unparse.cpp - Expressions back to source text --------------------------------------------------------------===//
//
// Each form has a binding strength; an operand that binds less tightly than its place asks for is put in parentheses.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/AstPrinter.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

namespace {

/// How tightly a form binds, loosest first.
enum Strength : unsigned {
  looseTuple,
  named,
  conditional,
  disjunction,
  conjunction,
  negation,
  comparison,
  bitOr,
  bitXor,
  bitAnd,
  shift,
  sum,
  product,
  sign,
  power,
  awaited,
  atom,
};

Strength strengthOf(BinaryOp op) {
  switch (op) {
  case BinaryOp::BitOr: return bitOr;
  case BinaryOp::BitXor: return bitXor;
  case BinaryOp::BitAnd: return bitAnd;
  case BinaryOp::LShift:
  case BinaryOp::RShift: return shift;
  case BinaryOp::Add:
  case BinaryOp::Sub: return sum;
  case BinaryOp::Pow: return power;
  default: return product;
  }
}

Strength strengthOf(const Expr *node) {
  switch (node->kind) {
  case NodeKind::NamedExpr:
  case NodeKind::Yield: return named;
  case NodeKind::Lambda:
  case NodeKind::IfExp: return conditional;
  case NodeKind::BoolOp: return llvm::cast<BoolOp>(node)->isAnd ? conjunction : disjunction;
  case NodeKind::UnaryOp: return llvm::cast<ast::UnaryOp>(node)->op == frontend::UnaryOp::Not ? negation : sign;
  case NodeKind::Compare: return comparison;
  case NodeKind::BinOp: return strengthOf(llvm::cast<BinOp>(node)->op);
  case NodeKind::Await: return awaited;
  case NodeKind::Starred:
  case NodeKind::Slice: return looseTuple;
  default: return atom;
  }
}

class Unparser {
public:
  void print(const Expr *node, Strength wanted = looseTuple) {
    bool isLoose = strengthOf(node) < wanted;
    out += isLoose ? "(" : "";
    printBare(node);
    out += isLoose ? ")" : "";
  }

  std::string out;

private:
  void printBare(const Expr *node);
  void printBinary(const BinOp *node);
  void printConstant(const ConstValue &value);
  void printTuple(const Tuple *node, bool inSubscript);
  void printComprehension(const Comprehension *node);
  void printCall(const Call *node);
  void printParams(llvm::ArrayRef<Param> params);
  void printParts(const JoinedStr *node);
  void printSlice(const Slice *node);
  /// An operand of `.`, `()` and `[]`; a number would swallow the dot.
  void printPrimary(const Expr *node) {
    bool isNumber = llvm::isa<Constant>(node) && llvm::cast<Constant>(node)->value->isNumber() &&
                    !llvm::cast<Constant>(node)->value->isBool();
    out += isNumber ? "(" : "";
    print(node, atom);
    out += isNumber ? ")" : "";
  }
  void printList(ExprList items) {
    for (size_t i = 0; i < items.size(); ++i) {
      out += i ? ", " : "";
      // Only a starred element may be looser than a named expression.
      print(items[i], llvm::isa<Starred>(items[i]) ? looseTuple : conditional);
    }
  }
};

void Unparser::printBare(const Expr *node) {
  switch (node->kind) {
  case NodeKind::Name: out += llvm::cast<Name>(node)->id.str(); break;
  case NodeKind::Constant: printConstant(*llvm::cast<Constant>(node)->value); break;
  case NodeKind::BinOp: printBinary(llvm::cast<BinOp>(node)); break;
  case NodeKind::Call: printCall(llvm::cast<Call>(node)); break;
  case NodeKind::Comprehension: printComprehension(llvm::cast<Comprehension>(node)); break;
  case NodeKind::Slice: printSlice(llvm::cast<Slice>(node)); break;
  case NodeKind::Tuple: printTuple(llvm::cast<Tuple>(node), /*inSubscript=*/false); break;
  case NodeKind::BoolOp: {
    auto *e = llvm::cast<BoolOp>(node);
    for (size_t i = 0; i < e->values.size(); ++i) {
      out += i == 0 ? "" : e->isAnd ? " and " : " or ";
      print(e->values[i], e->isAnd ? negation : conjunction);
    }
    break;
  }
  case NodeKind::NamedExpr:
    out += llvm::cast<NamedExpr>(node)->target.text.str() + " := ";
    print(llvm::cast<NamedExpr>(node)->value, conditional);
    break;
  case NodeKind::UnaryOp: {
    auto *e = llvm::cast<ast::UnaryOp>(node);
    bool isNot = e->op == frontend::UnaryOp::Not;
    out += spelling(e->op).str() + (isNot ? " " : "");
    print(e->operand, isNot ? negation : sign);
    break;
  }
  case NodeKind::Lambda: {
    auto *e = llvm::cast<Lambda>(node);
    out += e->params.empty() ? "lambda" : "lambda ";
    printParams(e->params);
    out += ": ";
    print(e->body, conditional);
    break;
  }
  case NodeKind::IfExp: {
    auto *e = llvm::cast<IfExp>(node);
    print(e->thenValue, disjunction);
    out += " if ";
    print(e->condition, disjunction);
    out += " else ";
    print(e->elseValue, conditional);
    break;
  }
  case NodeKind::Dict: {
    out += "{";
    bool isFirst = true;
    for (const DictItem &item : llvm::cast<Dict>(node)->items) {
      out += isFirst ? "" : ", ";
      isFirst = false;
      if (item.key)
        print(item.key, conditional);
      out += item.key ? ": " : "**";
      print(item.value, item.key ? conditional : bitOr);
    }
    out += "}";
    break;
  }
  case NodeKind::Set:
    out += "{";
    printList(llvm::cast<Set>(node)->elements);
    out += "}";
    break;
  case NodeKind::List:
    out += "[";
    printList(llvm::cast<List>(node)->elements);
    out += "]";
    break;
  case NodeKind::Await:
    out += "await ";
    print(llvm::cast<Await>(node)->value, atom);
    break;
  case NodeKind::Yield: {
    auto *e = llvm::cast<Yield>(node);
    out += e->isFrom ? "yield from" : "yield";
    if (e->value) {
      out += " ";
      print(e->value, conditional);
    }
    break;
  }
  case NodeKind::Compare: {
    auto *e = llvm::cast<Compare>(node);
    print(e->left, bitOr);
    for (size_t i = 0; i < e->ops.size(); ++i) {
      out += " " + spelling(e->ops[i]).str() + " ";
      print(e->comparators[i], bitOr);
    }
    break;
  }
  case NodeKind::JoinedStr:
    out += "f\"";
    printParts(llvm::cast<JoinedStr>(node));
    out += "\"";
    break;
  case NodeKind::FormattedValue: print(llvm::cast<FormattedValue>(node)->value); break;
  case NodeKind::Attribute:
    printPrimary(llvm::cast<Attribute>(node)->value);
    out += "." + llvm::cast<Attribute>(node)->attr.text.str();
    break;
  case NodeKind::Subscript: {
    auto *e = llvm::cast<Subscript>(node);
    printPrimary(e->value);
    out += "[";
    if (auto *tuple = llvm::dyn_cast<Tuple>(e->index))
      printTuple(tuple, /*inSubscript=*/true);
    else
      print(e->index);
    out += "]";
    break;
  }
  case NodeKind::Starred:
    out += "*";
    print(llvm::cast<Starred>(node)->value, bitOr);
    break;
  case NodeKind::Unsupported: out += "<" + llvm::cast<Unsupported>(node)->reason.str() + ">"; break;
  default: break;
  }
}

void Unparser::printBinary(const BinOp *node) {
  Strength strength = strengthOf(node->op);
  bool isPower = node->op == BinaryOp::Pow;
  // Equal operators group from the left, but for the power: its exponent may be a sign or another power.
  print(node->left, isPower ? awaited : strength);
  out += " " + spelling(node->op).str() + " ";
  print(node->right, isPower ? sign : static_cast<Strength>(strength + 1));
}

void Unparser::printConstant(const ConstValue &value) {
  if (value.kind() == ConstValue::Kind::Ellipsis)
    out += "...";
  else if (value.isFloat() && std::isinf(value.getFloat()))
    out += "1e309"; // the only literal that reads as infinity is one that is too large
  else
    out += value.repr();
}

void Unparser::printTuple(const Tuple *node, bool inSubscript) {
  if (!inSubscript || node->elements.empty())
    out += "(";
  for (size_t i = 0; i < node->elements.size(); ++i) {
    out += i ? ", " : "";
    const Expr *element = node->elements[i];
    print(element, llvm::isa<Starred, Slice>(element) ? looseTuple : conditional);
  }
  if (node->elements.size() == 1 && !(inSubscript && llvm::isa<Starred>(node->elements[0])))
    out += ",";
  if (!inSubscript || node->elements.empty())
    out += ")";
}

void Unparser::printSlice(const Slice *node) {
  if (node->lower)
    print(node->lower, conditional);
  out += ":";
  if (node->upper)
    print(node->upper, conditional);
  if (node->step) {
    out += ":";
    print(node->step, conditional);
  }
}

void Unparser::printComprehension(const Comprehension *node) {
  bool isParenthesized = node->comprehensionKind == ComprehensionKind::Generator;
  bool isList = node->comprehensionKind == ComprehensionKind::List;
  out += isParenthesized ? "(" : isList ? "[" : "{";
  if (node->key) {
    print(node->key, conditional);
    out += ": ";
  }
  print(node->element, conditional);
  for (const ComprehensionClause &clause : node->clauses) {
    out += clause.isAsync ? " async for " : " for ";
    print(clause.target);
    out += " in ";
    print(clause.iterable, disjunction);
    for (const Expr *condition : clause.conditions) {
      out += " if ";
      print(condition, disjunction);
    }
  }
  out += isParenthesized ? ")" : isList ? "]" : "}";
}

void Unparser::printCall(const Call *node) {
  printPrimary(node->callee);
  bool isOneGenerator = node->args.size() == 1 && node->keywords.empty() && llvm::isa<Comprehension>(node->args[0]) &&
                        llvm::cast<Comprehension>(node->args[0])->comprehensionKind == ComprehensionKind::Generator;
  if (isOneGenerator) {
    print(node->args[0]); // its parentheses are the call's
    return;
  }
  out += "(";
  printList(node->args);
  bool isFirst = node->args.empty();
  for (const Keyword &keyword : node->keywords) {
    out += isFirst ? "" : ", ";
    isFirst = false;
    out += keyword.isDoubleStar() ? "**" : keyword.name.text.str() + "=";
    print(keyword.value, conditional);
  }
  out += ")";
}

void Unparser::printParams(llvm::ArrayRef<Param> params) {
  bool starPrinted = false;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param &param = params[i];
    out += i ? ", " : "";
    if (param.kind == ParamKind::KeywordOnly && !starPrinted) {
      out += "*, ";
      starPrinted = true;
    }
    if (param.kind == ParamKind::VarPositional) {
      out += "*";
      starPrinted = true;
    } else if (param.kind == ParamKind::VarKeyword) {
      out += "**";
    }
    out += param.name.text.str();
    if (param.defaultValue) {
      out += "=";
      print(param.defaultValue, conditional);
    }
    bool isLastPositionalOnly = param.kind == ParamKind::PositionalOnly &&
                                (i + 1 == params.size() || params[i + 1].kind != ParamKind::PositionalOnly);
    out += isLastPositionalOnly ? ", /" : "";
  }
}

void Unparser::printParts(const JoinedStr *node) {
  for (const Expr *part : node->values) {
    if (auto *text = llvm::dyn_cast<Constant>(part)) {
      for (char c : text->value->getString()) {
        switch (c) {
        case '\n': out += "\\n"; break;
        case '\t': out += "\\t"; break;
        case '\r': out += "\\r"; break;
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '{':
        case '}': out += c; [[fallthrough]];
        default: out += c;
        }
      }
      continue;
    }
    auto *field = llvm::cast<FormattedValue>(part);
    out += "{";
    size_t begin = out.size();
    print(field->value, disjunction);
    if (out[begin] == '{')
      out.insert(begin, 1, ' '); // a dict or set, not a doubled brace
    if (field->conversion)
      out += fmt::format("!{}", field->conversion);
    if (field->formatSpec) {
      out += ":";
      printParts(field->formatSpec);
    }
    out += "}";
  }
}

} // namespace

std::string unparse(const Expr *expression) {
  Unparser unparser;
  unparser.print(expression);
  return std::move(unparser.out);
}

} // namespace ditron::frontend
