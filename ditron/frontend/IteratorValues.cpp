//===- IteratorValues.cpp - iter() and generator expressions while compiling ---------------------------------------------------===//
//
// What a `for` walks. A list is walked by position, so that one that grows in the body is walked to its new end; a dict or
// set that changes its size meanwhile is Python's RuntimeError.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Iterators.h"

#include "ditron/frontend/Evaluator.h"
#include <fmt/format.h>

namespace ditron::frontend {

using Element = std::optional<LangValue>;

Iterator::Step walkList(std::shared_ptr<const std::vector<LangValue>> elements, bool isSet) {
  return [elements, isSet, size = elements->size(), i = size_t(0)](Evaluator &evaluator, SourceRange range) mutable -> Element {
    if (isSet && elements->size() != size)
      return evaluator.fail(range, "Set changed size during iteration", "RuntimeError");
    return i < elements->size() ? Element((*elements)[i++]) : std::nullopt;
  };
}

namespace {

Iterator::Step walkDict(const DictValue &dict, ViewValue::Kind kind) {
  return [items = dict.items, kind, size = dict.items->size(), i = size_t(0)](Evaluator &evaluator, SourceRange range) mutable -> Element {
    if (items->size() != size)
      return evaluator.fail(range, "dictionary changed size during iteration", "RuntimeError");
    if (i == size)
      return std::nullopt;
    const auto &[key, value] = (*items)[i++];
    return kind == ViewValue::Kind::Keys ? key : kind == ViewValue::Kind::Values ? value : LangValue::tuple({key, value});
  };
}

Iterator::Step walkText(std::string text) {
  return [text = std::move(text), at = size_t(0)](Evaluator &, SourceRange) mutable -> Element {
    if (at >= text.size())
      return std::nullopt;
    size_t size = codePointOffset(llvm::StringRef(text).substr(at), 1);
    at += size;
    return LangValue::string(text.substr(at - size, size));
  };
}

/// An element that a method of the object's class gives, nullopt when it raises `end`; poison after another error.
Element elementByMethod(Evaluator &evaluator, const LangValue &object, llvm::StringRef method, std::vector<LangValue> arguments,
                        llvm::StringRef end, SourceRange range) {
  Emitter::Capture capture(evaluator.emit);
  std::optional<LangValue> element = evaluator.callProtocol(object, method, std::move(arguments), range);
  if (element && !element->isPoison())
    return element;
  std::vector<Diagnostic> errors = capture.takeBack();
  if (!errors.empty() && errors.front().exception == end)
    return std::nullopt;
  for (const Diagnostic &each : errors)
    evaluator.emit.report(each);
  return errors.empty() ? evaluator.fail(range, fmt::format("'{}' object is not an iterator", object.typeName())) : LangValue::poison();
}

/// Of an object with `__next__`.
Iterator::Step walkObject(LangValue object) {
  return [object](Evaluator &evaluator, SourceRange range) {
    return elementByMethod(evaluator, object, "__next__", {}, "StopIteration", range);
  };
}

/// Of an object with `__getitem__` alone.
Iterator::Step walkByIndex(LangValue object) {
  return [object, i = int64_t(0)](Evaluator &evaluator, SourceRange range) mutable {
    return elementByMethod(evaluator, object, "__getitem__", {LangValue::integer(i++)}, "IndexError", range);
  };
}

std::shared_ptr<Iterator> make(std::string type, Iterator::Step step) {
  return std::make_shared<Iterator>(std::move(type), std::move(step));
}

} // namespace

std::shared_ptr<Iterator> Evaluator::iteratorOf(const LangValue &iterable, SourceRange range) {
  if (const auto *iterator = iterable.getIf<std::shared_ptr<Iterator>>())
    return *iterator;
  if (const auto *list = iterable.getIf<ListValue>())
    return make(list->isSet ? "set_iterator" : "list_iterator", walkList(list->elements, list->isSet));
  if (const auto *dict = iterable.getIf<DictValue>())
    return make("dict_keyiterator", walkDict(*dict, ViewValue::Kind::Keys));
  if (const auto *view = iterable.getIf<ViewValue>())
    return make("dict_iterator", walkDict(view->dict, view->kind));
  if (iterable.isString() && frame().isPython())
    return make("str_iterator", walkText(iterable.constant().getString()));
  if (iterable.instance() && numberOf(iterable).instance()) {
    LangValue self = iterable;
    if (std::optional<LangValue> given = callProtocol(iterable, "__iter__", {}, range)) {
      if (given->isPoison())
        return nullptr;
      if (!given->instance())
        return iteratorOf(*given, range);
      self = *given;
    } else if (iterable.instance()->cls->member("__getitem__")) {
      return make("iterator", walkByIndex(iterable));
    }
    if (self.instance()->cls->member("__next__"))
      return make("iterator", walkObject(self));
    fail(range, fmt::format("'{}' object is not iterable", iterable.typeName()));
    return nullptr;
  }
  auto elements = elementsOf(iterable, range);
  if (!elements)
    return nullptr;
  return make(iterable.typeName() + "_iterator", walkList(std::make_shared<std::vector<LangValue>>(std::move(*elements)), false));
}

std::shared_ptr<Environment> Evaluator::enterComprehension() {
  auto environment = std::make_shared<Environment>();
  environment->parent = frame().environment;
  environment->file = frame().environment->file;
  environment->qualifier = frame().environment->qualifier;
  environment->isComprehension = true;
  environments.push_back(environment);
  return environment;
}

LangValue Evaluator::makeGenerator(const ast::Comprehension *expression) {
  LangValue first = evaluateValue(expression->clauses.front().iterable);
  if (first.isPoison() || first.isUnknown())
    return first;
  std::shared_ptr<Iterator> outermost = iteratorOf(first, expression->clauses.front().iterable->range);
  if (!outermost)
    return LangValue::poison();
  std::shared_ptr<Environment> environment = enterComprehension();
  const ast::FunctionDef *function = frame().function;
  const bool mayEmit = frame().mayEmit;
  auto open = std::make_shared<std::vector<std::shared_ptr<Iterator>>>(1, std::move(outermost));
  LangValue generator = makeIterator("generator", [=](Evaluator &evaluator, SourceRange range) -> std::optional<LangValue> {
    evaluator.frames.push_back(evaluator.pythonFrame(environment));
    evaluator.frame().function = function;
    evaluator.frame().mayEmit = mayEmit;
    std::optional<LangValue> element = evaluator.nextOfGenerator(*expression, *open, range);
    evaluator.frames.pop_back();
    return element;
  });
  return generator;
}

std::optional<LangValue> Evaluator::nextOfGenerator(const ast::Comprehension &expression,
                                                   std::vector<std::shared_ptr<Iterator>> &open, SourceRange range) {
  while (!open.empty()) {
    if (isStopped || !countSteps(1, range))
      return LangValue::poison();
    const ast::ComprehensionClause &clause = expression.clauses[open.size() - 1];
    std::optional<LangValue> element = open.back()->next(*this, range);
    if (!element) {
      open.pop_back();
      continue;
    }
    if (element->isPoison())
      return element;
    const size_t errorsBefore = emit.diagnosticEngine().errorCount();
    bindElement(clause.target, *element);
    if (emit.diagnosticEngine().errorCount() != errorsBefore)
      return LangValue::poison();
    bool isKept = true;
    for (const ast::Expr *condition : clause.conditions) {
      LangValue value = evaluateValue(condition);
      std::optional<bool> truth = value.isPoison() ? std::nullopt : truthOf(value, condition->range);
      if (!truth)
        return LangValue::poison();
      if (!(isKept = *truth))
        break;
    }
    if (!isKept)
      continue;
    if (open.size() == expression.clauses.size())
      return evaluateValue(expression.element);
    const ast::Expr *inner = expression.clauses[open.size()].iterable;
    LangValue iterable = evaluateValue(inner);
    std::shared_ptr<Iterator> next = iterable.isPoison() ? nullptr : iteratorOf(iterable, inner->range);
    if (!next)
      return LangValue::poison();
    open.push_back(std::move(next));
  }
  return std::nullopt;
}

} // namespace ditron::frontend
