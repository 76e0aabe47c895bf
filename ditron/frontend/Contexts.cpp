//===- Contexts.cpp - with statements and element access -------------------------------------------------------------===//
//
// A `with` statement enters what a function of the language gives: a ContextValue. Inside of its body a context may give
// a meaning to subscripts that plain kernels do not have, `x[i]` and `x[i] = v`; the innermost context is asked first.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include <fmt/format.h>

namespace ditron::frontend {

void Evaluator::executeWith(const ast::With *statement) {
  if (statement->isAsync) {
    emit.error(statement->range.start(), "'async with' is not part of the kernel language");
    return;
  }
  std::vector<std::shared_ptr<const ContextValue>> entered;
  bool isGood = true;
  for (const ast::WithItem &item : statement->items) {
    LangValue value = evaluate(item.context);
    const auto *context = value.getIf<std::shared_ptr<const ContextValue>>();
    if (!context && !value.isPoison())
      emit.error(item.context->range,
                 fmt::format("'with' takes a context of the kernel language, but got {}", value.describe()));
    isGood = context != nullptr;
    if (!isGood)
      break;
    Emitter::At at(emit, item.context->range);
    LangValue target = (*context)->enter(*this, item.context->range);
    isGood = !target.isPoison();
    if (!isGood)
      break;
    contexts.push_back(*context);
    entered.push_back(*context);
    if (item.target)
      assignTarget(item.target, target);
  }
  if (isGood) {
    ++frame().contexts;
    executeBlock(statement->body);
    --frame().contexts;
  }
  while (!entered.empty()) {
    if (entered.back()->exit)
      entered.back()->exit(*this, statement->range);
    contexts.pop_back();
    entered.pop_back();
  }
}

std::optional<llvm::SmallVector<LangValue>> Evaluator::evaluateIndices(const ast::Expr *index) {
  llvm::SmallVector<const ast::Expr *> parts;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(index))
    parts.append(tuple->elements.begin(), tuple->elements.end());
  else
    parts.push_back(index);
  llvm::SmallVector<LangValue> values;
  for (const ast::Expr *part : parts) {
    if (llvm::isa<ast::Slice>(part)) {
      emit.error(part->range, "unsupported tensor index").hint("elements are chosen by numbers");
      return std::nullopt;
    }
    values.push_back(evaluate(part));
    if (values.back().isPoison())
      return std::nullopt;
  }
  return values;
}

std::optional<LangValue> Evaluator::loadElement(const LangValue &object, const ast::Subscript *expression) {
  if (llvm::none_of(contexts, [](const auto &context) { return context->loadElement != nullptr; }))
    return std::nullopt;
  // None and full slices keep their usual meaning.
  bool isView = false;
  auto look = [&](const ast::Expr *part) {
    const auto *constant = llvm::dyn_cast<ast::Constant>(part);
    isView |= llvm::isa<ast::Slice>(part) || (constant && constant->value->isNone());
  };
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(expression->index))
    llvm::for_each(tuple->elements, look);
  else
    look(expression->index);
  if (isView)
    return std::nullopt;
  auto indices = evaluateIndices(expression->index);
  if (!indices)
    return LangValue::poison();
  const auto *variable = llvm::dyn_cast<ast::Name>(expression->value);
  elementTarget = variable ? variable->id : llvm::StringRef();
  for (const auto &context : llvm::reverse(contexts))
    if (context->loadElement)
      if (auto value = context->loadElement(*this, object, *indices, expression->range))
        return value;
  return emit.fail(expression->index->range,
                   fmt::format("unsupported tensor index: {} has no elements here", object.describe()));
}

void Evaluator::assignElement(const ast::Subscript *target, const LangValue &value) {
  if (llvm::none_of(contexts, [](const auto &context) { return context->storeElement != nullptr; })) {
    emit.error(target->range, "cannot assign to an element in a kernel; only to names and tuples of names");
    return;
  }
  LangValue object = evaluate(target->value);
  auto indices = evaluateIndices(target->index);
  if (object.isPoison() || value.isPoison() || !indices)
    return;
  const auto *variable = llvm::dyn_cast<ast::Name>(target->value);
  elementTarget = variable ? variable->id : llvm::StringRef();
  for (const auto &context : llvm::reverse(contexts)) {
    if (!context->storeElement)
      continue;
    auto changed = context->storeElement(*this, object, *indices, value, target->range);
    if (!changed)
      continue;
    if (changed->isNone())
      return;
    const auto *name = llvm::dyn_cast<ast::Name>(target->value);
    if (name)
      assignName(name->id, *changed, name->range);
    else if (!changed->isPoison())
      emit.error(target->value->range, "only an element of a variable can be assigned to");
    return;
  }
  emit.error(target->range, fmt::format("cannot assign to an element of {}", object.describe()));
}

} // namespace ditron::frontend
