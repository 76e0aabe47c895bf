//===- Expressions.cpp - Evaluation of expressions -----------------------------------------------------------------------===//
//
// One function per form of expression. What is known at compile time is computed with Python's semantics; sides that are
// ruled out at compile time are not visited.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"
#include "ditron/frontend/Vectors.h"

#include <fmt/format.h>

namespace ditron::frontend {

LangValue Importer::evaluate(const ast::Expr *expression) {
  if (isStopped)
    return LangValue::poison();
  if (evaluationDepth >= maxEvaluationDepth) {
    isStopped = true;
    return emit.fail(expression->range, "expressions and calls are nested too deeply");
  }
  ++evaluationDepth;
  Emitter::At at(emit, expression->range);
  LangValue value = evaluateKind(expression);
  --evaluationDepth;
  return value;
}

LangValue Importer::evaluateKind(const ast::Expr *expression) {
  switch (expression->kind) {
  case ast::NodeKind::Constant: {
    const ConstValue &value = *llvm::cast<ast::Constant>(expression)->value;
    if (value.kind() == ConstValue::Kind::Bytes || value.kind() == ConstValue::Kind::Ellipsis)
      return emit.fail(expression->range, fmt::format("{} is not part of the kernel language", value.repr()));
    return LangValue(value);
  }
  case ast::NodeKind::Name: return lookup(llvm::cast<ast::Name>(expression));
  case ast::NodeKind::Attribute: {
    const auto *attribute = llvm::cast<ast::Attribute>(expression);
    LangValue object = evaluate(attribute->value);
    if (object.isPoison())
      return object;
    return resolveLibrary(attributeOf(object, attribute->attr.text, attribute->attr.range), attribute->attr.range);
  }
  case ast::NodeKind::BinOp: {
    const auto *operation = llvm::cast<ast::BinOp>(expression);
    LangValue left = evaluate(operation->left);
    LangValue right = evaluate(operation->right);
    return emit.binary(operation->op, left, right, expression->range);
  }
  case ast::NodeKind::UnaryOp: {
    const auto *operation = llvm::cast<ast::UnaryOp>(expression);
    return emit.unary(operation->op, evaluate(operation->operand), expression->range);
  }
  case ast::NodeKind::BoolOp: return evaluateBoolOp(llvm::cast<ast::BoolOp>(expression));
  case ast::NodeKind::Compare: {
    const auto *comparison = llvm::cast<ast::Compare>(expression);
    if (comparison->ops.size() != 1) {
      emit.error(expression->range, "comparisons cannot be chained in a kernel").hint("write a < b and b < c");
      return LangValue::poison();
    }
    LangValue left = evaluate(comparison->left);
    LangValue right = evaluate(comparison->comparators.front());
    return emit.compare(comparison->ops.front(), left, right, expression->range);
  }
  case ast::NodeKind::IfExp: return evaluateIfExp(llvm::cast<ast::IfExp>(expression));
  case ast::NodeKind::Call: return evaluateCall(llvm::cast<ast::Call>(expression));
  case ast::NodeKind::Subscript: return evaluateSubscript(llvm::cast<ast::Subscript>(expression));
  case ast::NodeKind::Tuple: return evaluateElements(llvm::cast<ast::Tuple>(expression)->elements);
  case ast::NodeKind::List: return evaluateElements(llvm::cast<ast::List>(expression)->elements);
  case ast::NodeKind::JoinedStr: return evaluateFString(llvm::cast<ast::JoinedStr>(expression));
  case ast::NodeKind::NamedExpr: {
    const auto *walrus = llvm::cast<ast::NamedExpr>(expression);
    assignName(walrus->target.text, evaluate(walrus->value), walrus->target.range);
    auto it = frame().locals.find(walrus->target.text);
    return it == frame().locals.end() ? LangValue::poison() : it->second.value;
  }
  case ast::NodeKind::Comprehension: return evaluateComprehension(llvm::cast<ast::Comprehension>(expression));
  case ast::NodeKind::Unsupported:
    return emit.fail(expression->range, llvm::cast<ast::Unsupported>(expression)->reason.str());
  case ast::NodeKind::Lambda:
    return emit.fail(expression->range, "lambda is not part of the kernel language; write a @jit function");
  case ast::NodeKind::Dict:
  case ast::NodeKind::Set: return emit.fail(expression->range, "dicts and sets are not part of the kernel language");
  default: return emit.fail(expression->range, "this expression is not part of the kernel language");
  }
}

LangValue Importer::evaluateElements(ast::ExprList elements) {
  std::vector<LangValue> values;
  bool isPoisoned = false;
  for (const ast::Expr *element : elements) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(element)) {
      auto parts = staticElements(evaluate(starred->value), starred->range);
      if (!parts) {
        isPoisoned = true;
        continue;
      }
      values.insert(values.end(), parts->begin(), parts->end());
      continue;
    }
    values.push_back(evaluate(element));
    isPoisoned |= values.back().isPoison();
  }
  return isPoisoned ? LangValue::poison() : LangValue::tuple(std::move(values));
}

LangValue Importer::evaluateBoolOp(const ast::BoolOp *expression) {
  LangValue runTime; // poison: nothing so far
  SourceRange range = expression->values.front()->range;
  for (auto [index, operand] : llvm::enumerate(expression->values)) {
    LangValue value = evaluate(operand);
    if (value.isPoison())
      return value;
    bool isLast = index + 1 == expression->values.size();
    if (!value.isTensor()) {
      if (!value.isConstant() && !value.isTuple())
        return emit.fail(operand->range, fmt::format("operator '{}' does not take {}", expression->isAnd ? "and" : "or",
                                                     value.describe()));
      // A value that decides ends the expression; a neutral one is dropped unless it is the last.
      bool isTrue = value.isTuple() ? !value.elements().empty() : value.constant().isTrue();
      bool decides = isTrue != expression->isAnd;
      if (runTime.isPoison() && (decides || isLast))
        return value;
      if (decides)
        return LangValue::boolean(!expression->isAnd);
      continue;
    }
    range = range.join(operand->range);
    if (runTime.isPoison() && !value.type().isBool() && !value.type().isPointer())
      return emit.fail(operand->range, fmt::format("operator '{}' needs int1 operands, but got {}",
                                                   expression->isAnd ? "and" : "or", value.describe()));
    runTime = runTime.isPoison() ? value : emit.logical(expression->isAnd, runTime, value, range);
    if (runTime.isPoison())
      return runTime;
  }
  return runTime;
}

LangValue Importer::evaluateIfExp(const ast::IfExp *expression) {
  LangValue condition = evaluateCondition(expression->condition);
  if (condition.isPoison())
    return condition;
  if (condition.isConstant())
    return evaluate(condition.constant().isTrue() ? expression->thenValue : expression->elseValue);
  Branches branches = beginBranches(condition.ir());
  auto side = [&](mlir::Region &region, const ast::Expr *value) {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&region.front());
    ++frame().depth;
    LangValue result = evaluate(value);
    --frame().depth;
    return result;
  };
  LangValue first = side(branches.op.getThenRegion(), expression->thenValue);
  LangValue second = side(branches.op.getElseRegion(), expression->elseValue);
  JoinedValue joined;
  if (auto mismatch = join(branches, first, second, expression->range, joined)) {
    emit.error(expression->range, fmt::format("the two sides of a run-time conditional expression must have one type, "
                                              "but they are {}",
                                              *mismatch));
    joined = JoinedValue{LangValue::poison(), {LangValue::poison()}, {-1}};
  }
  auto op = finishBranches(branches);
  return resolve(joined, op, branches);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Subscripts
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Importer::evaluateSubscript(const ast::Subscript *expression) {
  LangValue value = evaluate(expression->value);
  if (value.isPoison())
    return value;
  if (value.isTuple() || value.isString())
    return subscriptTuple(value, expression);
  if (value.isAggregate() && value.classInfo()->method("__getitem__")) {
    LangValue index = evaluate(expression->index);
    if (index.isPoison())
      return index;
    return *callSpecialMethod(value, "__getitem__", CallArgument{"", index, expression->index->range, {}, false},
                              expression->value->range, expression->range);
  }
  if (value.isTensor()) {
    if (auto element = loadElement(value, expression))
      return *element;
    if (value.type().isBlock())
      return subscriptBlock(value, expression);
    emit.error(expression->range, fmt::format("a scalar cannot be subscripted, but got {}", value.describe()))
        .hint(value.type().isPointer() ? "load through a pointer with tl.load(p + i)" : "only blocks take [:, None]");
    return LangValue::poison();
  }
  return emit.fail(expression->range, fmt::format("{} cannot be subscripted", value.describe()));
}

LangValue Importer::subscriptBlock(const LangValue &value, const ast::Subscript *expression) {
  llvm::SmallVector<const ast::Expr *> indices;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(expression->index))
    indices.append(tuple->elements.begin(), tuple->elements.end());
  else
    indices.push_back(expression->index);
  LangValue result = value;
  unsigned slices = 0;
  for (auto [position, index] : llvm::enumerate(indices)) {
    const auto *slice = llvm::dyn_cast<ast::Slice>(index);
    if (slice && !slice->lower && !slice->upper && !slice->step) {
      if (++slices > value.type().rank())
        return emit.fail(index->range, fmt::format("too many indices for {}", value.describe()));
      continue;
    }
    LangValue at = slice ? LangValue::integer(0) : evaluate(index);
    if (at.isPoison())
      return at;
    if (!at.isNone()) {
      emit.error(index->range, "unsupported tensor index").hint("a block takes only None and ':' as indices");
      return LangValue::poison();
    }
    result = emit.expandDims(result, position);
  }
  return result;
}

LangValue Importer::subscriptTuple(const LangValue &value, const ast::Subscript *expression) {
  auto bound = [&](const ast::Expr *part) -> std::optional<LangValue> {
    if (!part)
      return LangValue::none();
    LangValue index = evaluate(part);
    if (index.isPoison())
      return std::nullopt;
    if (index.isNone() || (index.isConstant() && index.constant().isIntegral()))
      return index;
    emit.error(part->range,
               fmt::format("the index of a tuple must be a compile-time int, but got {}", index.describe()));
    return std::nullopt;
  };
  int64_t size = value.isTuple() ? value.elements().size() : value.constant().getString().size();
  auto element = [&](int64_t i) {
    return value.isTuple() ? value.elements()[i] : LangValue::string(value.constant().getString().substr(i, 1));
  };
  if (const auto *slice = llvm::dyn_cast<ast::Slice>(expression->index)) {
    auto lower = bound(slice->lower), upper = bound(slice->upper), step = bound(slice->step);
    if (!lower || !upper || !step)
      return LangValue::poison();
    int64_t stride = step->isNone() ? 1 : step->constant().toInt64().value_or(0);
    if (stride == 0)
      return emit.fail(expression->index->range, "slice step cannot be zero");
    auto clamp = [&](const LangValue &at, int64_t missing) {
      if (at.isNone())
        return missing;
      int64_t i = at.constant().toInt64().value_or(at.constant().getInt().isNegative() ? INT64_MIN / 2 : INT64_MAX / 2);
      if (i < 0)
        i += size;
      return stride > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
    };
    int64_t begin = clamp(*lower, stride > 0 ? 0 : size - 1);
    int64_t end = clamp(*upper, stride > 0 ? size : -1);
    std::vector<LangValue> elements;
    for (int64_t i = begin; stride > 0 ? i < end : i > end; i += stride)
      elements.push_back(element(i));
    if (value.isTuple()) // a slice of a vector is a vector
      return isVector(value) ? value.withParts(std::move(elements)) : LangValue::tuple(std::move(elements));
    std::string text;
    for (const LangValue &character : elements)
      text += character.constant().getString();
    return LangValue::string(std::move(text));
  }
  auto index = bound(expression->index);
  if (!index)
    return LangValue::poison();
  auto i = index->isNone() ? std::nullopt : index->constant().toInt64();
  if (!i || *i < -size || *i >= size)
    return emit.fail(expression->index->range,
                     fmt::format("index {} is out of range for {}", index->display(), value.describe()));
  return element(*i < 0 ? *i + size : *i);
}

//===------------------------------------------------------------------------------------------------------------------===//
// f-strings, comprehensions
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Importer::evaluateFString(const ast::JoinedStr *expression) {
  std::string text;
  for (const ast::Expr *part : expression->values) {
    if (const auto *constant = llvm::dyn_cast<ast::Constant>(part)) {
      text += constant->value->getString();
      continue;
    }
    const auto *field = llvm::cast<ast::FormattedValue>(part);
    LangValue value = evaluate(field->value);
    if (value.isPoison())
      return value;
    if (!value.isCompileTime())
      return emit.fail(
          field->value->range,
          fmt::format("the parts of an f-string must be known at compile time, but got {}", value.describe()));
    std::string spec;
    if (field->formatSpec) {
      LangValue specValue = evaluateFString(field->formatSpec);
      if (specValue.isPoison())
        return specValue;
      spec = specValue.constant().getString();
    }
    ConstValue formatted = value.isConstant() && field->conversion == 0 ? value.constant()
                           : field->conversion == 'r' || field->conversion == 'a'
                               ? ConstValue::string(value.isConstant() ? value.constant().repr() : value.display())
                               : ConstValue::string(value.display());
    auto result = format(formatted, spec);
    if (!result.isOk())
      return emit.fail(field->range, result.status().message());
    text += *result;
  }
  return LangValue::string(std::move(text));
}

std::optional<std::vector<LangValue>> Importer::staticElements(const LangValue &iterable, SourceRange range) {
  if (iterable.isPoison())
    return std::nullopt;
  if (iterable.isTuple())
    return iterable.elements();
  const auto *sequence = iterable.getIf<std::shared_ptr<const RangeValue>>();
  if (!sequence) {
    emit.error(range, fmt::format("{} is not a sequence that is known at compile time", iterable.describe()));
    return std::nullopt;
  }
  const RangeValue &bounds = **sequence;
  auto start = bounds.start.isConstant() ? bounds.start.constant().toInt64() : std::nullopt;
  auto stop = bounds.stop.isConstant() ? bounds.stop.constant().toInt64() : std::nullopt;
  auto step = bounds.step.isConstant() ? bounds.step.constant().toInt64() : std::nullopt;
  if (!start || !stop || !step) {
    emit.error(range, "the bounds of this range are not compile-time ints");
    return std::nullopt;
  }
  std::vector<LangValue> elements;
  for (int64_t i = *start; *step > 0 ? i < *stop : i > *stop; i += *step) {
    if (elements.size() >= maxStatements) {
      emit.error(range, fmt::format("a loop of more than {} iterations cannot be unrolled", maxStatements));
      return std::nullopt;
    }
    elements.push_back(LangValue::integer(i));
  }
  return elements;
}

LangValue Importer::evaluateComprehension(const ast::Comprehension *expression) {
  if (expression->comprehensionKind != ast::ComprehensionKind::List || expression->clauses.size() != 1 ||
      expression->clauses.front().isAsync)
    return emit.fail(expression->range, "only list comprehensions with one 'for' are part of the kernel language");
  const ast::ComprehensionClause &clause = expression->clauses.front();
  auto elements = staticElements(evaluate(clause.iterable), clause.iterable->range);
  if (!elements)
    return LangValue::poison();
  Scope saved = frame().locals;
  std::vector<LangValue> results;
  bool isPoisoned = false;
  for (const LangValue &element : *elements) {
    // The target is a name of the comprehension alone, and does not decay.
    const auto *name = llvm::dyn_cast<ast::Name>(clause.target);
    if (name) {
      Variable variable;
      variable.value = element;
      variable.range = name->range;
      frame().locals[name->id] = std::move(variable);
    } else {
      bool decays = !std::exchange(frame().isPython, true);
      assignTarget(clause.target, element);
      frame().isPython = !decays;
    }
    bool isKept = true;
    for (const ast::Expr *condition : clause.conditions) {
      LangValue value = evaluate(condition);
      if (!value.isPoison() && !value.isConstant())
        value = emit.fail(condition->range,
                          fmt::format("the condition of a list comprehension must be known at compile time, but got {}",
                                      value.describe()));
      isPoisoned |= value.isPoison();
      isKept = isKept && !value.isPoison() && value.constant().isTrue();
    }
    if (isKept) {
      results.push_back(evaluate(expression->element));
      isPoisoned |= results.back().isPoison();
    }
    if (isStopped || isPoisoned)
      break;
  }
  frame().locals = std::move(saved);
  return isPoisoned ? LangValue::poison() : LangValue::tuple(std::move(results));
}

} // namespace ditron::frontend
