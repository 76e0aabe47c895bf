//===- InterpreterExpressions.cpp - Python that runs while compiling: expressions ----------------------------------------===//
#include "ditron/frontend/Interpreter.h"

#include "ditron/frontend/Builtins.h"

#include <fmt/format.h>

namespace ditron::frontend {

HostValue Interpreter::evaluate(const ast::Expr *expression, const Env &env) {
  if (!step(expression->range))
    return HostValue();
  if (depth >= maxDepth)
    return fail(expression->range, "expressions and calls at compile time are nested too deeply");
  ++depth;
  HostValue value = evaluateKind(expression, env);
  --depth;
  if (!llvm::isa<ast::Name, ast::Attribute>(expression) &&
      (value.is<HostList>() || value.is<HostTuple>() || value.is<HostDict>())) {
    if (made.size() >= maxElements)
      return fail(expression->range, fmt::format("an evaluation at compile time may make {} lists and tuples", maxElements));
    made.push_back(value);
  }
  return failure ? HostValue() : value;
}

HostValue Interpreter::evaluateKind(const ast::Expr *expression, const Env &env) {
  switch (expression->kind) {
  case ast::NodeKind::Constant: return HostValue(*llvm::cast<ast::Constant>(expression)->value);
  case ast::NodeKind::Name: return lookup(llvm::cast<ast::Name>(expression), env);
  case ast::NodeKind::Attribute: {
    const auto *access = llvm::cast<ast::Attribute>(expression);
    HostValue object = evaluate(access->value, env);
    if (failure)
      return object;
    return attribute(object, access->attr.text, access->attr.range, true).value_or(HostValue());
  }
  case ast::NodeKind::BinOp: {
    const auto *operation = llvm::cast<ast::BinOp>(expression);
    HostValue left = evaluate(operation->left, env), right = evaluate(operation->right, env);
    return failure ? HostValue() : binaryOf(operation->op, left, right, expression->range);
  }
  case ast::NodeKind::UnaryOp: {
    const auto *operation = llvm::cast<ast::UnaryOp>(expression);
    HostValue operand = evaluate(operation->operand, env);
    if (failure)
      return operand;
    if (operation->op == UnaryOp::Not)
      return HostValue::boolean(!operand.isTrue());
    if (!operand.isConstant())
      return fail(expression->range, fmt::format("bad operand type for unary {}: '{}'", spelling(operation->op).str(),
                                                 operand.typeName()));
    return constantResult(unary(operation->op, operand.constant()), expression->range);
  }
  case ast::NodeKind::BoolOp: {
    const auto *operation = llvm::cast<ast::BoolOp>(expression);
    HostValue value;
    for (const ast::Expr *operand : operation->values) {
      value = evaluate(operand, env);
      if (failure || value.isTrue() != operation->isAnd)
        return value;
    }
    return value;
  }
  case ast::NodeKind::Compare: {
    const auto *comparison = llvm::cast<ast::Compare>(expression);
    HostValue left = evaluate(comparison->left, env);
    for (auto [op, operand] : llvm::zip(comparison->ops, comparison->comparators)) {
      HostValue right = evaluate(operand, env);
      if (failure)
        return HostValue();
      std::optional<bool> holds = compareOf(op, left, right, expression->range);
      if (!holds || !*holds)
        return HostValue::boolean(false);
      left = std::move(right);
    }
    return HostValue::boolean(true);
  }
  case ast::NodeKind::IfExp: {
    const auto *choice = llvm::cast<ast::IfExp>(expression);
    HostValue condition = evaluate(choice->condition, env);
    return failure ? HostValue() : evaluate(condition.isTrue() ? choice->thenValue : choice->elseValue, env);
  }
  case ast::NodeKind::NamedExpr: {
    const auto *walrus = llvm::cast<ast::NamedExpr>(expression);
    HostValue value = evaluate(walrus->value, env);
    env->names[walrus->target.text] = value;
    return value;
  }
  case ast::NodeKind::Call: return evaluateCall(llvm::cast<ast::Call>(expression), env);
  case ast::NodeKind::Subscript: return evaluateSubscript(llvm::cast<ast::Subscript>(expression), env);
  case ast::NodeKind::Tuple:
  case ast::NodeKind::List:
  case ast::NodeKind::Set: {
    HostSequence values;
    ast::ExprList elements = llvm::isa<ast::Tuple>(expression)  ? llvm::cast<ast::Tuple>(expression)->elements
                             : llvm::isa<ast::List>(expression) ? llvm::cast<ast::List>(expression)->elements
                                                                : llvm::cast<ast::Set>(expression)->elements;
    if (!evaluateElements(elements, env, values))
      return HostValue();
    if (llvm::isa<ast::List>(expression))
      return HostValue::list(std::move(values));
    if (llvm::isa<ast::Tuple>(expression))
      return HostValue::tuple(std::move(values));
    return callNative("set", {{HostValue::tuple(std::move(values))}, {}}, expression->range);
  }
  case ast::NodeKind::Dict: {
    HostValue result = HostValue::dict({});
    const auto &dict = *result.getIf<HostDict>();
    auto set = [&](const HostValue &key, const HostValue &value) {
      if (const HostValue *known = find(dict, key))
        const_cast<HostValue &>(*known) = value;
      else
        dict.items->emplace_back(key, value);
    };
    for (const ast::DictItem &item : llvm::cast<ast::Dict>(expression)->items) {
      HostValue key = item.key ? evaluate(item.key, env) : HostValue();
      HostValue value = evaluate(item.value, env);
      if (failure)
        return HostValue();
      if (item.key) {
        set(key, value);
        continue;
      }
      const auto *other = value.getIf<HostDict>();
      if (!other)
        return fail(item.value->range, fmt::format("'{}' is no dict", value.typeName()));
      for (const auto &[eachKey, eachValue] : *other->items)
        set(eachKey, eachValue);
    }
    return result;
  }
  case ast::NodeKind::Lambda:
    closures.push_back(env);
    return HostFunction{nullptr, llvm::cast<ast::Lambda>(expression), env};
  case ast::NodeKind::Comprehension: return evaluateComprehension(llvm::cast<ast::Comprehension>(expression), env);
  case ast::NodeKind::JoinedStr: return evaluateFString(llvm::cast<ast::JoinedStr>(expression), env);
  case ast::NodeKind::Unsupported: return fail(expression->range, llvm::cast<ast::Unsupported>(expression)->reason.str());
  default: return fail(expression->range, "this expression cannot be evaluated at compile time");
  }
}

HostValue Interpreter::lookup(const ast::Name *name, const Env &env) {
  for (const HostScope *scope = env.get(); scope; scope = scope->parent.get())
    if (auto it = scope->names.find(name->id); it != scope->names.end())
      return it->second;
  if (env->file->find(name->id))
    return global(name->id, *env->file, name->range);
  if (name->id == "__name__")
    return HostValue::string(env->file->origin().path);
  if (isHostFunction(name->id))
    return HostNative{name->id.str()};
  return fail(name->range, fmt::format("name '{}' is not defined", name->id.str()));
}

std::optional<HostValue> Interpreter::attribute(const HostValue &object, llvm::StringRef name, SourceRange range,
                                                bool reports) {
  auto missing = [&](std::string message, std::string hint = {}) -> std::optional<HostValue> {
    if (reports)
      fail(range, std::move(message), std::move(hint));
    return std::nullopt;
  };
  if (const auto *plain = object.getIf<std::shared_ptr<const HostObject>>()) {
    if (const HostValue *field = find(**plain, name))
      return *field;
    return missing(fmt::format("'{}' has no attribute '{}'", (*plain)->type, name.str()));
  }
  if (const auto *type = object.getIf<LangType>()) {
    LangValue value = typeAttribute(*type, name);
    if (value.is<MethodValue>())
      return HostValue(HostMethod{std::make_shared<const HostValue>(object), name.str()});
    if (!value.isPoison())
      return HostValue::fromLanguage(value);
    return missing(fmt::format("{} has no attribute '{}'", LangValue(*type).describe(), name.str()));
  }
  const LangValue *value = object.language();
  if (!value) {
    if (object.isConstant() && name == "value")
      return object; // of a tl.constexpr
    if (object.isConstant() && !object.isString() && !object.constant().isNumber())
      return missing(fmt::format("'{}' has no attribute '{}'", object.typeName(), name.str()));
    return HostValue(HostMethod{std::make_shared<const HostValue>(object), name.str()});
  }
  if (const auto *module = value->getIf<ModuleValue>()) {
    if (auto member = memberOf(module->module, name)) {
      LangValue resolved = hooks.library ? hooks.library(*member, range) : *member;
      return HostValue::fromLanguage(resolved);
    }
    return missing(fmt::format("module '{}' has no '{}'", toString(module->module).str(), name.str()));
  }
  if (const auto *file = value->getIf<FileValue>()) {
    if (file->scope->find(name))
      return global(name, *file->scope, range);
    if (const ModuleScope *inner = modules ? modules->findSubmodule(*file->scope, name) : nullptr)
      return HostValue::fromLanguage(LangValue(FileValue{inner}));
    return missing(fmt::format("{} has no '{}'", value->describe(), name.str()));
  }
  if (const auto *foreign = value->getIf<ForeignValue>()) {
    std::string dotted = (foreign->name.empty() ? foreign->module : foreign->module + "." + foreign->name) + "." + name.str();
    if (isHostFunction(dotted))
      return HostValue(HostNative{std::move(dotted)});
    if (auto constant = mathConstant(name); constant && foreign->module == "math" && foreign->name.empty())
      return HostValue(ConstValue::floating(*constant));
    if (foreign->module == "os" || foreign->module == "sys")
      return missing(fmt::format("'{}' is not available at compile time: kernels do not depend on the environment", dotted),
                     "pass the value as an argument of the kernel");
    return missing(fmt::format("{} cannot be used at compile time", value->describe()),
                   modules ? "it is no file in " + modules->searchedPlaces(*foreign) : "");
  }
  if (hooks.attribute)
    if (auto found = hooks.attribute(*value, name, range))
      return found->isPoison() ? (fail(range, ""), std::nullopt) : std::optional(HostValue::fromLanguage(*found));
  return missing(fmt::format("{} has no attribute '{}'", value->describe(), name.str()));
}

HostValue Interpreter::evaluateCall(const ast::Call *call, const Env &env) {
  HostValue callee = evaluate(call->callee, env);
  HostArguments arguments;
  if (failure || !evaluateElements(call->args, env, arguments.positional))
    return HostValue();
  for (const ast::Keyword &keyword : call->keywords) {
    HostValue value = evaluate(keyword.value, env);
    if (failure)
      return HostValue();
    if (!keyword.isDoubleStar()) {
      arguments.keywords.emplace_back(keyword.name.text.str(), std::move(value));
      continue;
    }
    const auto *dict = value.getIf<HostDict>();
    if (!dict)
      return fail(keyword.range, fmt::format("the argument after ** must be a dict, not '{}'", value.typeName()));
    for (const auto &[key, each] : *dict->items) {
      if (!key.isString())
        return fail(keyword.range, "keywords must be strings");
      arguments.keywords.emplace_back(key.constant().getString(), each);
    }
  }
  return this->call(callee, arguments, call->range);
}

bool Interpreter::evaluateElements(ast::ExprList elements, const Env &env, HostSequence &values) {
  for (const ast::Expr *element : elements) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(element)) {
      HostValue value = evaluate(starred->value, env);
      std::optional<HostSequence> parts = failure ? std::nullopt : elementsOf(value, starred->range);
      if (!parts)
        return false;
      llvm::append_range(values, *parts);
      continue;
    }
    values.push_back(evaluate(element, env));
    if (failure)
      return false;
  }
  return true;
}

HostValue Interpreter::evaluateComprehension(const ast::Comprehension *expression, const Env &env) {
  auto inner = std::make_shared<HostScope>();
  inner->parent = env;
  inner->file = env->file;
  HostSequence keys, values;
  if (!comprehend(expression, 0, inner, keys, values))
    return HostValue();
  switch (expression->comprehensionKind) {
  case ast::ComprehensionKind::List:
  case ast::ComprehensionKind::Generator: return HostValue::list(std::move(values));
  case ast::ComprehensionKind::Set:
    return callNative("set", {{HostValue::tuple(std::move(values))}, {}}, expression->range);
  case ast::ComprehensionKind::Dict: break;
  }
  HostSequence pairs;
  for (auto [key, value] : llvm::zip(keys, values))
    pairs.push_back(HostValue::tuple({key, value}));
  return callNative("dict", {{HostValue::list(std::move(pairs))}, {}}, expression->range);
}

bool Interpreter::comprehend(const ast::Comprehension *expression, size_t index, const Env &env, HostSequence &keys,
                             HostSequence &values) {
  if (index == expression->clauses.size()) {
    if (expression->key)
      keys.push_back(evaluate(expression->key, env));
    values.push_back(evaluate(expression->element, env));
    if (values.size() > maxElements)
      fail(expression->range, fmt::format("a list at compile time may have at most {} elements", maxElements));
    return !failure;
  }
  const ast::ComprehensionClause &clause = expression->clauses[index];
  HostValue iterable = evaluate(clause.iterable, env);
  std::optional<HostSequence> elements = failure ? std::nullopt : elementsOf(iterable, clause.iterable->range);
  if (!elements)
    return false;
  for (const HostValue &element : *elements) {
    assign(clause.target, element, env);
    bool isKept = true;
    for (const ast::Expr *condition : clause.conditions)
      isKept = isKept && !failure && evaluate(condition, env).isTrue();
    if (failure || (isKept && !comprehend(expression, index + 1, env, keys, values)))
      return false;
  }
  return true;
}

HostValue Interpreter::evaluateFString(const ast::JoinedStr *expression, const Env &env) {
  std::string text;
  for (const ast::Expr *part : expression->values) {
    if (const auto *constant = llvm::dyn_cast<ast::Constant>(part)) {
      text += constant->value->getString();
      continue;
    }
    const auto *field = llvm::cast<ast::FormattedValue>(part);
    HostValue value = evaluate(field->value, env);
    std::string spec = field->formatSpec && !failure ? evaluateFString(field->formatSpec, env).str() : "";
    if (failure)
      return HostValue();
    ConstValue formatted = value.isConstant() && field->conversion == 0 ? value.constant()
                           : ConstValue::string(field->conversion == 'r' || field->conversion == 'a' ? value.repr() : value.str());
    auto result = format(formatted, spec);
    if (!result.isOk())
      return fail(field->range, result.status().message());
    text += *result;
    if (text.size() > ConstValue::maxStringBytes)
      return fail(expression->range, "the text is too long");
  }
  return HostValue::string(std::move(text));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Subscripts
//===------------------------------------------------------------------------------------------------------------------===//

HostValue Interpreter::evaluateSubscript(const ast::Subscript *expression, const Env &env) {
  HostValue value = evaluate(expression->value, env);
  if (failure)
    return value;
  if (const auto *part = llvm::dyn_cast<ast::Slice>(expression->index))
    return slice(value, part, env);
  HostValue index = evaluate(expression->index, env);
  if (failure)
    return index;
  if (const auto *dict = value.getIf<HostDict>()) {
    const HostValue *found = find(*dict, index);
    return found ? *found : fail(expression->index->range, fmt::format("the dict has no key {}", index.repr()));
  }
  const LangValue *carried = value.language();
  const bool isNamedTuple = carried && carried->isTuple();
  const HostSequence *elements = value.sequence();
  const auto *range = value.getIf<HostRange>();
  if (!elements && !range && !value.isString() && !isNamedTuple)
    return fail(expression->range, fmt::format("'{}' cannot be subscripted", value.typeName()));
  std::optional<int64_t> i = integerOf(index, expression->index->range, "an index");
  if (!i)
    return HostValue();
  int64_t size = elements ? elements->size() : range ? range->size() : isNamedTuple ? carried->elements().size() : value.constant().getString().size();
  if (*i < -size || *i >= size)
    return fail(expression->index->range, fmt::format("{} index {} is out of range", value.typeName(), *i));
  int64_t at = *i < 0 ? *i + size : *i;
  if (elements)
    return HostValue((*elements)[at]);
  if (range)
    return HostValue::integer(range->start + at * range->step);
  return isNamedTuple ? HostValue::fromLanguage(carried->elements()[at])
                      : HostValue::string(value.constant().getString().substr(at, 1));
}

HostValue Interpreter::slice(const HostValue &value, const ast::Slice *part, const Env &env) {
  std::optional<HostSequence> elements;
  int64_t size = 0;
  if (value.isString()) {
    size = value.constant().getString().size();
  } else {
    if (!value.sequence() && !value.is<HostRange>())
      return fail(part->range, fmt::format("'{}' cannot be sliced", value.typeName()));
    elements = elementsOf(value, part->range);
    if (!elements)
      return HostValue();
    size = elements->size();
  }
  auto bound = [&](const ast::Expr *expression) -> std::optional<int64_t> {
    HostValue given = expression ? evaluate(expression, env) : HostValue();
    if (failure || given.isNone())
      return std::nullopt;
    return integerOf(given, expression->range, "the bound of a slice");
  };
  std::optional<int64_t> lower = bound(part->lower), upper = bound(part->upper), step = bound(part->step);
  if (failure)
    return HostValue();
  int64_t stride = step.value_or(1);
  if (stride == 0)
    return fail(part->range, "slice step cannot be zero");
  auto clamp = [&](std::optional<int64_t> at, int64_t missing) {
    if (!at)
      return missing;
    int64_t i = *at < 0 ? *at + size : *at;
    return stride > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
  };
  int64_t begin = clamp(lower, stride > 0 ? 0 : size - 1), end = clamp(upper, stride > 0 ? size : -1);
  HostSequence picked;
  std::string text;
  // The stride may be so large that the next place does not fit into 64 bits.
  for (int64_t i = begin; stride > 0 ? i < end : i > end;) {
    if (elements)
      picked.push_back((*elements)[i]);
    else
      text += value.constant().getString()[i];
    if (stride > 0 ? end - i <= stride : end - i >= stride)
      break;
    i += stride;
  }
  if (!elements)
    return HostValue::string(std::move(text));
  return value.is<HostTuple>() ? HostValue::tuple(std::move(picked)) : HostValue::list(std::move(picked));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Operators
//===------------------------------------------------------------------------------------------------------------------===//

HostValue Interpreter::constantResult(Expected<ConstValue> value, SourceRange range) {
  return value.isOk() ? HostValue(*value) : fail(range, value.status().message());
}

std::optional<int64_t> Interpreter::integerOf(const HostValue &value, SourceRange range, llvm::StringRef what) {
  std::optional<int64_t> number = value.isIntegral() ? value.constant().toInt64() : std::nullopt;
  if (!number)
    fail(range, fmt::format("{} must be an int, but is {}", what.str(), value.repr()));
  return number;
}

HostValue Interpreter::binaryOf(BinaryOp op, const HostValue &a, const HostValue &b, SourceRange range) {
  if (a.isConstant() && b.isConstant())
    return constantResult(binary(op, a.constant(), b.constant()), range);
  auto like = [](const HostValue &value, HostSequence elements) {
    return value.is<HostList>() ? HostValue::list(std::move(elements)) : HostValue::tuple(std::move(elements));
  };
  const HostSequence *left = a.sequence(), *right = b.sequence();
  if (op == BinaryOp::Add && ((a.is<HostTuple>() && b.is<HostTuple>()) || (a.is<HostList>() && b.is<HostList>()))) {
    if (left->size() + right->size() > maxElements)
      return fail(range, fmt::format("a list at compile time may have at most {} elements", maxElements));
    steps += left->size() + right->size();
    HostSequence elements = *left;
    llvm::append_range(elements, *right);
    return like(a, std::move(elements));
  }
  if (op == BinaryOp::Mult && ((left && b.isIntegral()) || (right && a.isIntegral()))) {
    const HostValue &sequence = left ? a : b;
    std::optional<int64_t> count = integerOf(left ? b : a, range, "the factor");
    if (!count)
      return HostValue();
    const HostSequence &pattern = *sequence.sequence();
    if (*count > 0 && pattern.size() > maxElements / static_cast<size_t>(*count))
      return fail(range, fmt::format("a list at compile time may have at most {} elements", maxElements));
    HostSequence elements;
    for (int64_t i = 0; i < *count; ++i)
      llvm::append_range(elements, pattern);
    steps += elements.size();
    return like(sequence, std::move(elements));
  }
  if (op == BinaryOp::BitOr && a.is<HostDict>() && b.is<HostDict>()) {
    HostValue result = HostValue::dict(*a.getIf<HostDict>()->items);
    callMethod(result, "update", {{b}, {}}, range);
    return result;
  }
  return fail(range, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op).str(), a.typeName(),
                                 b.typeName()));
}

std::optional<bool> Interpreter::compareOf(CompareOp op, const HostValue &a, const HostValue &b, SourceRange range) {
  switch (op) {
  case CompareOp::Eq: return a.equals(b);
  case CompareOp::NotEq: return !a.equals(b);
  case CompareOp::Is:
  case CompareOp::IsNot: {
    bool isSame = a.isConstant() && b.isConstant() ? a.constant().identical(b.constant()) : a.equals(b);
    if (const auto *list = a.getIf<HostList>())
      isSame = b.is<HostList>() && list->elements == b.getIf<HostList>()->elements;
    return isSame == (op == CompareOp::Is);
  }
  case CompareOp::In:
  case CompareOp::NotIn: {
    bool isIn = false;
    if (const auto *dict = b.getIf<HostDict>()) {
      isIn = find(*dict, a) != nullptr;
    } else if (b.isConstant()) {
      auto result = compare(CompareOp::In, a.isConstant() ? a.constant() : ConstValue::none(), b.constant());
      if (!result.isOk()) {
        fail(range, result.status().message());
        return std::nullopt;
      }
      isIn = result->isTrue();
    } else {
      std::optional<HostSequence> elements = elementsOf(b, range);
      if (!elements)
        return std::nullopt;
      isIn = llvm::any_of(*elements, [&](const HostValue &element) { return element.equals(a); });
    }
    return isIn == (op == CompareOp::In);
  }
  default: break;
  }
  if (a.isConstant() && b.isConstant()) {
    HostValue result = constantResult(compare(op, a.constant(), b.constant()), range);
    return failure ? std::nullopt : std::optional(result.isTrue());
  }
  const HostSequence *left = a.sequence(), *right = b.sequence();
  if (!left || !right || a.is<HostList>() != b.is<HostList>()) {
    fail(range, fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op).str(), a.typeName(),
                            b.typeName()));
    return std::nullopt;
  }
  for (auto [x, y] : llvm::zip(*left, *right))
    if (!x.equals(y))
      return compareOf(op, x, y, range);
  HostValue sizes[] = {HostValue::integer(left->size()), HostValue::integer(right->size())};
  return compareOf(op, sizes[0], sizes[1], range);
}

std::optional<HostSequence> Interpreter::elementsOf(const HostValue &value, SourceRange range) {
  HostSequence elements;
  auto count = [&](size_t size) {
    steps += size;
    if (size <= maxElements && steps <= maxSteps)
      return true;
    fail(range, fmt::format("a loop at compile time may have at most {} rounds", maxElements));
    return false;
  };
  if (const HostSequence *sequence = value.sequence()) {
    if (!count(sequence->size()))
      return std::nullopt;
    return *sequence;
  }
  if (const auto *bounds = value.getIf<HostRange>()) {
    if (!count(bounds->size()))
      return std::nullopt;
    for (int64_t i = 0, size = bounds->size(); i < size; ++i)
      elements.push_back(HostValue::integer(bounds->start + i * bounds->step));
    return elements;
  }
  if (const auto *dict = value.getIf<HostDict>()) {
    if (!count(dict->items->size()))
      return std::nullopt;
    for (const auto &[key, each] : *dict->items)
      elements.push_back(key);
    return elements;
  }
  if (value.isString()) {
    if (!count(value.constant().getString().size()))
      return std::nullopt;
    for (char c : value.constant().getString())
      elements.push_back(HostValue::string(std::string(1, c)));
    return elements;
  }
  if (const LangValue *carried = value.language(); carried && carried->isTuple()) {
    for (const LangValue &element : carried->elements())
      elements.push_back(HostValue::fromLanguage(element));
    return elements;
  }
  fail(range, fmt::format("'{}' is no sequence that is known at compile time", value.typeName()));
  return std::nullopt;
}

} // namespace ditron::frontend
