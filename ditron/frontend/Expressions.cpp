//===- Expressions.cpp - Evaluation of expressions -----------------------------------------------------------------------===//
//
// One function per form of expression. What is known at compile time is computed with Python's semantics; sides that are
// ruled out at compile time are not visited.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
#include "ditron/frontend/Vectors.h"
#include "ditron/frontend/syntax/AstPrinter.h"

#include <fmt/format.h>

namespace ditron::frontend {

LangValue Evaluator::evaluate(const ast::Expr *expression) {
  if (isStopped)
    return LangValue::poison();
  if (evaluationDepth >= maxEvaluationDepth) {
    if (frame().isPython())
      return fail(expression->range, "expressions and calls at compile time are nested too deeply", "RecursionError");
    isStopped = true;
    return emit.fail(expression->range, "expressions and calls are nested too deeply");
  }
  if (frame().isPython() && !countSteps(1, expression->range))
    return LangValue::poison();
  ++evaluationDepth;
  Emitter::At at(emit, expression->range);
  LangValue value = evaluateKind(expression);
  --evaluationDepth;
  if (!frame().isPython())
    return value;
  bool isMade = !llvm::isa<ast::Name, ast::Attribute>(expression);
  if (isMade && !remember(value, expression->range))
    return LangValue::poison();
  if (value.isUnknown() && isMade && !options.defines.empty())
    if (auto defined = definedValue(unparse(expression)))
      return *defined;
  return value;
}

LangValue Evaluator::evaluateValue(const ast::Expr *expression) {
  LangValue value = evaluate(expression);
  const auto *foreign = value.getIf<ForeignValue>();
  if (!foreign || foreign->name.empty() || !frame().isPython())
    return value;
  value = resolveForeign(*foreign);
  return value.is<ForeignValue>() ? unknown(expression->range, unparse(expression)) : value;
}

/// What kernels do not have.
static llvm::StringRef refusal(ast::NodeKind kind) {
  switch (kind) {
  case ast::NodeKind::Lambda: return "lambda is not part of the kernel language; write a @jit function";
  case ast::NodeKind::Dict:
  case ast::NodeKind::Set: return "dicts and sets are not part of the kernel language";
  default: return "this expression is not part of the kernel language";
  }
}

LangValue Evaluator::evaluateKind(const ast::Expr *expression) {
  switch (expression->kind) {
  case ast::NodeKind::Constant: {
    const ConstValue &value = *llvm::cast<ast::Constant>(expression)->value;
    bool isOdd = value.kind() == ConstValue::Kind::Bytes || value.kind() == ConstValue::Kind::Ellipsis;
    if (isOdd && !frame().isPython())
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
    LangValue left = evaluateValue(operation->left);
    LangValue right = evaluateValue(operation->right);
    return binaryOf(operation->op, left, right, expression->range);
  }
  case ast::NodeKind::UnaryOp: return evaluateUnary(llvm::cast<ast::UnaryOp>(expression));
  case ast::NodeKind::BoolOp:
    return frame().isPython() ? evaluatePythonBoolOp(llvm::cast<ast::BoolOp>(expression))
                              : evaluateBoolOp(llvm::cast<ast::BoolOp>(expression));
  case ast::NodeKind::Compare: return evaluateCompare(llvm::cast<ast::Compare>(expression));
  case ast::NodeKind::IfExp: return evaluateIfExp(llvm::cast<ast::IfExp>(expression));
  case ast::NodeKind::Call: return evaluateCall(llvm::cast<ast::Call>(expression));
  case ast::NodeKind::Subscript: return evaluateSubscript(llvm::cast<ast::Subscript>(expression));
  case ast::NodeKind::Tuple: return evaluateElements(llvm::cast<ast::Tuple>(expression)->elements);
  case ast::NodeKind::List: {
    LangValue elements = evaluateElements(llvm::cast<ast::List>(expression)->elements);
    return frame().isPython() && elements.isTuple() ? LangValue::list(elements.elements()) : elements;
  }
  case ast::NodeKind::JoinedStr: return evaluateFString(llvm::cast<ast::JoinedStr>(expression));
  case ast::NodeKind::NamedExpr: return evaluateNamed(llvm::cast<ast::NamedExpr>(expression));
  case ast::NodeKind::Comprehension: return evaluateComprehension(llvm::cast<ast::Comprehension>(expression));
  case ast::NodeKind::Unsupported:
    return fail(expression->range, llvm::cast<ast::Unsupported>(expression)->reason.str(), "");
  case ast::NodeKind::Lambda:
  case ast::NodeKind::Dict:
  case ast::NodeKind::Set: return evaluatePythonOnly(expression);
  default:
    return fail(expression->range,
                frame().isPython() ? "this expression cannot be evaluated at compile time"
                                   : "this expression is not part of the kernel language",
                "");
  }
}

LangValue Evaluator::evaluateNamed(const ast::NamedExpr *expression) {
  LangValue value = evaluate(expression->value);
  if (frame().isPython() && value.isPoison())
    return value;
  // A comprehension has no names of its own for this.
  std::shared_ptr<Environment> inner = frame().environment;
  while (frame().environment && frame().environment->isComprehension)
    frame().environment = frame().environment->parent;
  assignName(expression->target.text, value, expression->target.range);
  frame().environment = std::move(inner);
  if (frame().isPython())
    return value;
  auto it = frame().locals.find(expression->target.text);
  return it == frame().locals.end() ? LangValue::poison() : it->second.value;
}

LangValue Evaluator::evaluatePythonOnly(const ast::Expr *expression) {
  if (!frame().domain().hasAllExpressions)
    return emit.fail(expression->range, refusal(expression->kind).str());
  if (const auto *dict = llvm::dyn_cast<ast::Dict>(expression))
    return evaluateDict(dict);
  if (const auto *lambda = llvm::dyn_cast<ast::Lambda>(expression)) {
    std::shared_ptr<Environment> around = outsideOfClasses(frame().environment);
    environments.push_back(around);
    return LangValue(LambdaValue{lambda, around, evaluateDefaults(lambda->params)});
  }
  LangValue elements = evaluateElements(llvm::cast<ast::Set>(expression)->elements);
  return elements.isTuple() ? makeSet(*this, elements.elements(), expression->range) : elements;
}

LangValue Evaluator::evaluateUnary(const ast::UnaryOp *expression) {
  LangValue operand = evaluateValue(expression->operand);
  if (operand.isPoison() || operand.isUnknown() || !frame().isPython() || operand.isTensor()) {
    return operand.isUnknown() ? operand : emit.unary(expression->op, operand, expression->range);
  }
  if (expression->op == UnaryOp::Not) {
    auto isTrue = truthOf(operand, expression->range);
    return isTrue ? LangValue::boolean(!*isTrue) : LangValue::poison();
  }
  if (operand.instance() && numberOf(operand).instance()) {
    llvm::StringRef method = expression->op == UnaryOp::USub ? "__neg__" : expression->op == UnaryOp::UAdd ? "__pos__" : "__invert__";
    if (std::optional<LangValue> result = callProtocol(operand, method, {}, expression->range))
      return *result;
  }
  if (expression->op == UnaryOp::Invert && operand.instance() && operand.instance()->cls->combinations)
    return call(LangValue(ClassValue{operand.instance()->cls}), {emit.unary(expression->op, numberOf(operand), expression->range)}, {},
                expression->range);
  operand = numberOf(operand);
  if (!operand.isConstant())
    return fail(expression->range, fmt::format("bad operand type for unary {}: '{}'", spelling(expression->op).str(),
                                               operand.typeName()));
  LangValue result = emit.unary(expression->op, operand, expression->range);
  result.isWrapped = operand.isWrapped;
  return result;
}

LangValue Evaluator::evaluateCompare(const ast::Compare *expression) {
  if (!frame().domain().hasAllExpressions && expression->ops.size() != 1) {
    emit.error(expression->range, "comparisons cannot be chained in a kernel").hint("write a < b and b < c");
    return LangValue::poison();
  }
  LangValue left = evaluateValue(expression->left), result = LangValue::boolean(true);
  for (auto [op, operand] : llvm::zip_equal(expression->ops, expression->comparators)) {
    LangValue right = evaluateValue(operand);
    if (!frame().isPython())
      return emit.compare(op, left, right, expression->range);
    if (left.isPoison() || right.isPoison())
      return LangValue::poison();
    const bool isIdentity = op == CompareOp::Is || op == CompareOp::IsNot;
    if (isIdentity && (left.isUnknown() || right.isUnknown()))
      return left.isUnknown() ? left : right;
    if (const LangValue *undecided = unknownIn(left) ? unknownIn(left) : unknownIn(right); undecided && !isIdentity)
      return *undecided;
    if (left.isTensor() || right.isTensor())
      return emit.compare(op, left, right, expression->range);
    auto holds = compareOf(op, left, right, expression->range);
    if (!holds)
      return LangValue::poison();
    result = LangValue::boolean(*holds);
    const bool isMembership = op == CompareOp::In || op == CompareOp::NotIn;
    result.isWrapped = !isIdentity && !isMembership && (left.isWrapped || right.isWrapped); // constexpr's operators give constexprs
    if (!*holds)
      break;
    left = std::move(right);
  }
  return result;
}

LangValue Evaluator::evaluatePythonBoolOp(const ast::BoolOp *expression) {
  LangValue value, undecided;
  for (const ast::Expr *operand : expression->values) {
    value = evaluateValue(operand);
    if (value.isPoison())
      return value;
    if (value.isUnknown()) {
      undecided = undecided.isUnknown() ? undecided : value;
      continue;
    }
    auto isTrue = truthOf(value, operand->range);
    if (!isTrue)
      return LangValue::poison();
    // What decides, decides whatever the others are; as a truth value, that is.
    if (*isTrue != expression->isAnd)
      return undecided.isUnknown() ? LangValue::boolean(*isTrue) : value;
  }
  return undecided.isUnknown() ? undecided : value;
}

LangValue Evaluator::evaluateElements(ast::ExprList elements) {
  std::vector<LangValue> values;
  bool isPoisoned = false;
  for (const ast::Expr *element : elements) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(element)) {
      auto parts = elementsOf(evaluate(starred->value), starred->range);
      if (!parts) {
        isPoisoned = true;
        continue;
      }
      values.insert(values.end(), parts->begin(), parts->end());
      continue;
    }
    values.push_back(evaluateValue(element));
    isPoisoned |= values.back().isPoison();
  }
  return isPoisoned ? LangValue::poison() : LangValue::tuple(std::move(values));
}

LangValue Evaluator::evaluateBoolOp(const ast::BoolOp *expression) {
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

LangValue Evaluator::evaluateIfExp(const ast::IfExp *expression) {
  if (frame().isPython()) {
    LangValue condition = evaluateValue(expression->condition);
    if (condition.isPoison() || condition.isUnknown())
      return condition;
    auto isTrue = truthOf(condition, expression->condition->range);
    return isTrue ? evaluate(*isTrue ? expression->thenValue : expression->elseValue) : LangValue::poison();
  }
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

LangValue Evaluator::evaluateSubscript(const ast::Subscript *expression) {
  LangValue value = evaluate(expression->value);
  if (value.isPoison() || value.isUnknown())
    return value;
  bool isSequence = value.isTuple() || value.isString() || value.isList() || value.isDict() ||
                    (frame().isPython() && (value.is<std::shared_ptr<const RangeValue>>() || value.instance() || value.is<ViewValue>() ||
                                            value.isSet() || value.iterator()));
  if (isSequence)
    return subscriptContainer(value, expression);
  if (frame().isPython() && (value.object() || value.is<ForeignValue>() || value.is<NativeValue>() || value.is<BuiltinValue>() ||
                             value.is<ClassValue>())) {
    // Optional[int], os.environ["X"], and kernel[grid]: what native functions know, or nobody.
    const auto *cls = value.getIf<ClassValue>();
    if (cls && cls->info->isEnum) {
      LangValue name = evaluateValue(expression->index);
      const Binding *member = name.isString() ? cls->info->members->find(name.constant().getString()) : nullptr;
      return name.isPoison() || name.isUnknown() ? name
             : member && member->value.instance() ? member->value
                                                  : fail(expression->range, name.repr(), "KeyError");
    }
    if (const NativeFunction *native = findNativeMethod(value, "__getitem__")) {
      LangValue index = evaluate(expression->index);
      return index.isPoison() ? index : callNativeFunction(*native, value, CallArgument{"", index, expression->index->range, {}, false}, expression->range);
    }
    return unknown(expression->range, unparse(expression));
  }
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
    return subscriptBlock(value, expression);
  }
  // An argument that is specialised to a number is a scalar to the program.
  if (value.isLiteral() && !frame().isPython())
    return subscriptBlock(emit.toTensor(value, expression->value->range), expression);
  if (frame().isPython() && value.is<FunctionValue>())
    return unknown(expression->range, unparse(expression)); // kernel[grid]
  return fail(expression->range, fmt::format("{} cannot be subscripted", value.describe()));
}

LangValue Evaluator::subscriptBlock(const LangValue &value, const ast::Subscript *expression) {
  llvm::SmallVector<const ast::Expr *> indices;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(expression->index))
    indices.append(tuple->elements.begin(), tuple->elements.end());
  else
    indices.push_back(expression->index);
  bool isScalar = !value.type().isBlock();
  auto reject = [&](const ast::Expr *index) {
    if (isScalar)
      emit.error(expression->range, fmt::format("a scalar cannot be subscripted, but got {}", value.describe()))
          .hint(value.type().isPointer() ? "load through a pointer with tl.load(p + i)" : "only None and ':' make sense here: x[None, :]");
    else
      emit.error(index->range, "unsupported tensor index").hint("a block takes only None and ':' as indices");
    return LangValue::poison();
  };
  LangValue result = value;
  unsigned slices = 0;
  for (auto [position, index] : llvm::enumerate(indices)) {
    const auto *slice = llvm::dyn_cast<ast::Slice>(index);
    // A slice may say None for what it leaves out.
    auto isOmitted = [&](const ast::Expr *bound) { return !bound || evaluate(bound).isNone(); };
    if (slice && isOmitted(slice->lower) && isOmitted(slice->upper) && isOmitted(slice->step)) {
      if (!isScalar && ++slices > value.type().rank()) // of a scalar it says nothing
        return emit.fail(index->range, fmt::format("too many indices for {}", value.describe()));
      continue;
    }
    LangValue at = slice ? LangValue::integer(0) : evaluate(index);
    if (at.isPoison())
      return at;
    if (!at.isNone())
      return reject(index);
    result = emit.expandDims(result, std::min<unsigned>(position, result.type().rank()));
  }
  return result;
}

//===------------------------------------------------------------------------------------------------------------------===//
// f-strings, comprehensions
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::evaluateFString(const ast::JoinedStr *expression) {
  std::string text;
  for (const ast::Expr *part : expression->values) {
    if (const auto *constant = llvm::dyn_cast<ast::Constant>(part)) {
      text += constant->value->getString();
      continue;
    }
    const auto *field = llvm::cast<ast::FormattedValue>(part);
    LangValue value = evaluateValue(field->value);
    if (const LangValue *undecided = unknownIn(value))
      return *undecided;
    if (value.isPoison())
      return value;
    if (!value.isCompileTime())
      return emit.fail(
          field->value->range,
          fmt::format("the parts of an f-string must be known at compile time, but got {}", value.describe()));
    std::string spec;
    if (field->formatSpec && !frame().isPython()) {
      emit.warning(field->range, "the format of a value in an f-string has no effect in a kernel, as in Triton");
    } else if (field->formatSpec) {
      LangValue specValue = evaluateFString(field->formatSpec);
      if (specValue.isPoison() || specValue.isUnknown())
        return specValue;
      spec = specValue.constant().getString();
    }
    bool isRepr = field->conversion == 'r' || field->conversion == 'a';
    value.isWrapped &= frame().isPython(); // a kernel sees what constexprs hold
    if (field->conversion != 0 || (spec.empty() && !value.instance())) {
      value = textOfValue(*this, value, isRepr, field->range);
      if (value.isPoison() || value.isUnknown())
        return value;
    }
    auto result = formatValue(*this, value, spec, field->range);
    if (!result)
      return LangValue::poison();
    text += *result;
    if (text.size() > ConstValue::maxStringBytes)
      return fail(expression->range, "the text is too long", "");
  }
  return LangValue::string(std::move(text));
}

LangValue Evaluator::evaluateComprehension(const ast::Comprehension *expression) {
  bool isPlain = expression->comprehensionKind == ast::ComprehensionKind::List && expression->clauses.size() == 1;
  if ((!isPlain && !frame().domain().hasAllExpressions) || expression->clauses.front().isAsync)
    return emit.fail(expression->range, "only list comprehensions with one 'for' are part of the kernel language");
  if (frame().isPython() && expression->comprehensionKind == ast::ComprehensionKind::Generator)
    return makeGenerator(expression);
  std::vector<LangValue> keys, values;
  Scope saved = frame().locals;
  std::shared_ptr<Environment> outer = frame().environment;
  if (frame().isPython())
    frame().environment = enterComprehension();
  bool isGood = comprehend(expression, 0, keys, values);
  frame().environment = std::move(outer);
  frame().locals = std::move(saved);
  if (!isGood)
    return undecidedElements.isUnknown() ? std::exchange(undecidedElements, LangValue()) : LangValue::poison();
  if (!frame().isPython())
    return LangValue::tuple(std::move(values));
  switch (expression->comprehensionKind) {
  case ast::ComprehensionKind::Generator:
  case ast::ComprehensionKind::List: return LangValue::list(std::move(values));
  case ast::ComprehensionKind::Set: return makeSet(*this, values, expression->range);
  case ast::ComprehensionKind::Dict: break;
  }
  LangValue dict = LangValue::dict();
  for (auto [key, value] : llvm::zip_equal(keys, values))
    setItem(*dict.getIf<DictValue>(), key, std::move(value));
  return dict;
}

bool Evaluator::comprehend(const ast::Comprehension *expression, size_t index, std::vector<LangValue> &keys,
                          std::vector<LangValue> &values) {
  if (index == expression->clauses.size()) {
    if (expression->key)
      keys.push_back(evaluateValue(expression->key));
    values.push_back(evaluateValue(expression->element));
    if (values.size() > maxElements)
      fail(expression->range, fmt::format("a list at compile time may have at most {} elements", maxElements), "");
    return !isStopped && values.size() <= maxElements && !values.back().isPoison() &&
           (!expression->key || !keys.back().isPoison());
  }
  const ast::ComprehensionClause &clause = expression->clauses[index];
  LangValue iterable = evaluateValue(clause.iterable);
  if (iterable.isUnknown()) {
    undecidedElements = iterable;
    return false;
  }
  std::shared_ptr<Iterator> iterator = iteratorOf(iterable, clause.iterable->range);
  while (iterator) {
    std::optional<LangValue> next = iterator->next(*this, clause.iterable->range);
    if (!next)
      return true;
    const LangValue &element = *next;
    if (element.isPoison() || (frame().isPython() && !countSteps(1, clause.iterable->range)))
      return false;
    bindElement(clause.target, element);
    bool isKept = true;
    for (const ast::Expr *condition : clause.conditions) {
      LangValue value = evaluateValue(condition);
      if (value.isUnknown())
        undecidedElements = value;
      if (!value.isPoison() && !value.isConstant() && !frame().isPython())
        value = emit.fail(condition->range,
                          fmt::format("the condition of a list comprehension must be known at compile time, but got {}",
                                      value.describe()));
      auto isTrue = value.isPoison() || value.isUnknown() ? std::nullopt : truthOf(value, condition->range);
      if (!isTrue)
        return false;
      if (!(isKept = *isTrue))
        break;
    }
    if (isStopped || (isKept && !comprehend(expression, index + 1, keys, values)))
      return false;
  }
  return false;
}

void Evaluator::bindElement(const ast::Expr *target, const LangValue &element) {
  const auto *tuple = llvm::dyn_cast<ast::Tuple>(target);
  if (frame().isPython())
    return assignTarget(target, element);
  // The names of a comprehension in a kernel do not decay.
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    Variable variable;
    variable.value = element;
    variable.range = name->range;
    frame().locals[name->id] = std::move(variable);
  } else if (tuple && element.isTuple() && tuple->elements.size() == element.elements().size()) {
    for (auto [each, part] : llvm::zip_equal(tuple->elements, element.elements()))
      bindElement(each, part);
  } else {
    assignTarget(target, element); // which says what is wrong
  }
}

} // namespace ditron::frontend
