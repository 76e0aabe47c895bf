//===- PythonStatements.cpp - Statements of Python that runs while compiling ------------------------------------------------===//
//
// All control flow is executed, by what the conditions are now. A failure ends the evaluation, unless a `try` handles it or
// the frame is tolerant (ModuleLevel.cpp).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>

namespace ditron::frontend {

Flow Evaluator::runPython(ast::StmtList statements) {
  for (const ast::Stmt *statement : statements)
    if (Flow flow = frame().isTolerant ? executeTolerantly(statement) : runPython(statement); flow != Flow::Next)
      return flow;
  return Flow::Next;
}

/// Whether the program itself says what a call does.
static bool isOwnFunction(const LangValue &callee) {
  return callee.is<FunctionValue>() || callee.is<LambdaValue>() || callee.is<MethodValue>();
}

Flow Evaluator::runPython(const ast::Stmt *statement) {
  if (!countSteps(1, statement->range))
    return Flow::Failed;
  Emitter::At at(emit, statement->range);
  switch (statement->kind) {
  case ast::NodeKind::Pass:
  case ast::NodeKind::TypeAlias: return Flow::Next;
  case ast::NodeKind::Break: return Flow::Break;
  case ast::NodeKind::Continue: return Flow::Continue;
  case ast::NodeKind::Return: {
    const auto *given = llvm::cast<ast::Return>(statement);
    frame().result = given->value ? evaluate(given->value) : LangValue::none();
    return frame().result.isPoison() ? Flow::Failed : Flow::Return;
  }
  case ast::NodeKind::If: return runPythonIf(llvm::cast<ast::If>(statement));
  case ast::NodeKind::For: return runPythonFor(llvm::cast<ast::For>(statement));
  case ast::NodeKind::While: return runPythonWhile(llvm::cast<ast::While>(statement));
  case ast::NodeKind::With: return runPythonWith(llvm::cast<ast::With>(statement));
  case ast::NodeKind::Try: return runTry(llvm::cast<ast::Try>(statement));
  case ast::NodeKind::Assert: return runPythonAssert(llvm::cast<ast::Assert>(statement));
  case ast::NodeKind::Raise: return runRaise(llvm::cast<ast::Raise>(statement));
  case ast::NodeKind::Import: return executeImport(llvm::cast<ast::Import>(statement));
  case ast::NodeKind::ImportFrom: return executeImport(llvm::cast<ast::ImportFrom>(statement));
  default: return runPlainStatement(statement);
  }
}

Flow Evaluator::runPlainStatement(const ast::Stmt *statement) {
  size_t errorsBefore = emit.diagnosticEngine().errorCount();
  auto ended = [&] { return emit.diagnosticEngine().errorCount() == errorsBefore ? Flow::Next : Flow::Failed; };
  switch (statement->kind) {
  case ast::NodeKind::ExprStmt: {
    const ast::Expr *value = llvm::cast<ast::ExprStmt>(statement)->value;
    if (llvm::isa<ast::Constant>(value)) // docstrings
      return Flow::Next;
    LangValue result = evaluate(value);
    const auto *call = llvm::dyn_cast<ast::Call>(value);
    const bool isInFunction = frame().function && !frame().isTolerant;
    if (!result.isUnknown() || !isInFunction || !call || !isOwnFunction(evaluateQuietly(call->callee)))
      return flowOf(result);
    // What the function would have done, had it been executed to its end, is missing from here on.
    frame().unknownCondition = std::move(result);
    return Flow::Unknown;
  }
  case ast::NodeKind::Assign: {
    const auto *assignment = llvm::cast<ast::Assign>(statement);
    LangValue value = evaluate(assignment->value);
    for (const ast::Expr *target : assignment->targets)
      if (!value.isPoison())
        assignTarget(target, value);
    return value.isPoison() ? Flow::Failed : ended();
  }
  case ast::NodeKind::AnnAssign: {
    const auto *assignment = llvm::cast<ast::AnnAssign>(statement);
    if (!assignment->value)
      return Flow::Next;
    LangValue value = evaluate(assignment->value);
    if (value.isPoison())
      return Flow::Failed;
    if (const auto *name = llvm::dyn_cast<ast::Name>(assignment->target))
      bindName(name->id, std::move(value), name->range, /*isAnnotated=*/true);
    else
      assignTarget(assignment->target, value);
    return ended();
  }
  case ast::NodeKind::AugAssign: augmentPython(llvm::cast<ast::AugAssign>(statement)); return ended();
  case ast::NodeKind::Global:
  case ast::NodeKind::Nonlocal: redirectNames(statement); return ended();
  case ast::NodeKind::Delete: deleteNames(llvm::cast<ast::Delete>(statement)); return ended();
  case ast::NodeKind::FunctionDef: {
    const auto *function = llvm::cast<ast::FunctionDef>(statement);
    bindName(function->name.text, defineFunction(function), function->name.range);
    return ended();
  }
  case ast::NodeKind::ClassDef: {
    const auto *cls = llvm::cast<ast::ClassDef>(statement);
    LangValue value = defineClass(cls);
    if (!value.isPoison())
      bindName(cls->name.text, std::move(value), cls->name.range);
    return ended();
  }
  default: fail(statement->range, "this statement cannot be executed at compile time", ""); return Flow::Failed;
  }
}

void Evaluator::augmentPython(const ast::AugAssign *statement) {
  LangValue before = evaluate(statement->target);
  LangValue value = evaluateValue(statement->value);
  if (before.isPoison() || value.isPoison())
    return;
  if (const auto *list = before.getIf<ListValue>(); list && statement->op == BinaryOp::Add && !value.isUnknown()) {
    // In place, as Python does: others that hold the list see it.
    if (list->isSet) {
      fail(statement->range, fmt::format("unsupported operand type(s) for +=: '{}' and '{}'", before.typeName(), value.typeName()));
      return;
    }
    if (auto elements = elementsOf(value, statement->value->range))
      llvm::append_range(*list->elements, *elements);
    if (!llvm::isa<ast::Name>(statement->target))
      assignTarget(statement->target, before);
    return;
  }
  const auto *changed = before.getIf<ListValue>();
  const auto *dict = before.getIf<DictValue>();
  const bool isInPlace = (changed && !changed->isFrozen && (changed->isSet || statement->op == BinaryOp::Mult)) ||
                         (dict && statement->op == BinaryOp::BitOr);
  if (isInPlace && !value.isUnknown()) {
    LangValue after = binaryOf(statement->op, before, value, statement->range);
    if (changed && after.is<ListValue>())
      *changed->elements = std::vector<LangValue>(*after.sequence());
    else if (dict && after.isDict())
      before.items() = std::vector<std::pair<LangValue, LangValue>>(after.items());
    return;
  }
  if (before.instance() && numberOf(before).instance() && statement->op == BinaryOp::Add)
    if (std::optional<LangValue> changed = callProtocol(before, "__iadd__", {value}, statement->range)) {
      if (!changed->isPoison())
        assignTarget(statement->target, *changed);
      return;
    }
  LangValue after = binaryOf(statement->op, before, value, statement->range);
  if (!after.isPoison())
    assignTarget(statement->target, after);
}

void Evaluator::redirectNames(const ast::Stmt *statement) {
  auto redirect = [&](llvm::ArrayRef<ast::Identifier> names, bool isGlobal) {
    for (const ast::Identifier &name : names) {
      std::shared_ptr<Environment> target = isGlobal ? scope().environment : frame().environment->parent;
      while (!isGlobal && target && !target->find(name.text))
        target = target->parent;
      if (!target)
        fail(name.range, fmt::format("no binding for nonlocal '{}' found", name.text.str()), "SyntaxError");
      else if (target != frame().environment)
        frame().redirected.emplace_back(name.text, std::move(target));
    }
  };
  if (const auto *global = llvm::dyn_cast<ast::Global>(statement))
    redirect(global->names, true);
  else
    redirect(llvm::cast<ast::Nonlocal>(statement)->names, false);
}

void Evaluator::deleteItem(const ast::Subscript *target) {
  LangValue object = evaluate(target->value);
  if (const auto *slice = llvm::dyn_cast<ast::Slice>(target->index); slice && object.isList()) {
    assignSlice(object, slice, nullptr);
    return;
  }
  LangValue index = llvm::isa<ast::Slice>(target->index) ? LangValue::none() : numberOf(evaluate(target->index));
  if (object.isPoison() || index.isPoison() || object.isUnknown())
    return;
  if (index.isUnknown())
    return spoilObject(target->value, index);
  if (object.isDict()) {
    if (!find(*object.getIf<DictValue>(), index))
      fail(target->index->range, fmt::format("the dict has no key {}", index.repr()), "KeyError");
    return llvm::erase_if(object.items(), [&](const auto &item) { return item.first.equals(index); });
  }
  if (const auto *list = object.getIf<ListValue>(); list && !llvm::isa<ast::Slice>(target->index)) {
    auto at = index.isConstant() && index.constant().isIntegral() ? index.constant().toInt64() : std::nullopt;
    int64_t size = list->elements->size();
    if (!at || *at < -size || *at >= size) {
      fail(target->index->range, fmt::format("list index {} is out of range", index.repr()), "IndexError");
      return;
    }
    list->elements->erase(list->elements->begin() + (*at < 0 ? *at + size : *at));
    return;
  }
  if (std::optional<LangValue> done = callProtocol(object, "__delitem__", {index}, target->range))
    return;
  // os.environ
  if (const NativeFunction *pop = object.object() || object.is<NativeValue>() ? findNativeMethod(object, "pop") : nullptr) {
    callNativeFunction(*pop, object, CallArgument{"", index, target->index->range, {}, false}, target->range);
    return;
  }
  fail(target->range, "this cannot be deleted at compile time", "");
}

void Evaluator::deleteNames(const ast::Delete *statement) {
  for (const ast::Expr *target : statement->targets) {
    if (const auto *name = llvm::dyn_cast<ast::Name>(target))
      frame().environment->names.erase(name->id);
    else if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(target)) {
      LangValue object = evaluate(attribute->value);
      if (!object.isPoison() && !object.isUnknown())
        deleteAttribute(object, attribute->attr.text, target->range);
    }
    else if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target))
      deleteItem(subscript);
    else
      fail(target->range, "this cannot be deleted at compile time", "");
  }
}

//===------------------------------------------------------------------------------------------------------------------===//
// Branches and loops
//===------------------------------------------------------------------------------------------------------------------===//

Flow Evaluator::runPythonIf(const ast::If *statement) {
  LangValue condition = evaluateValue(statement->condition);
  if (condition.isPoison())
    return Flow::Failed;
  if (condition.isUnknown()) {
    frame().unknownCondition = condition;
    if (!frame().isTolerant)
      return Flow::Unknown;
    return executeBoth([&] { return runPython(statement->body); }, [&] { return runPython(statement->orelse); }, condition);
  }
  std::optional<bool> isTrue = truthOf(condition, statement->condition->range);
  if (!isTrue)
    return Flow::Failed;
  return runPython(*isTrue ? statement->body : statement->orelse);
}

Flow Evaluator::runPythonFor(const ast::For *statement) {
  LangValue iterable = evaluateValue(statement->iterable);
  if (iterable.isUnknown()) {
    frame().unknownCondition = iterable;
    return Flow::Unknown;
  }
  SourceRange place = statement->iterable->range;
  std::shared_ptr<Iterator> iterator = iterable.isPoison() ? nullptr : iteratorOf(iterable, place);
  while (iterator) {
    std::optional<LangValue> element = iterator->next(*this, place);
    if (!element)
      return runPython(statement->orelse);
    size_t errorsBefore = emit.diagnosticEngine().errorCount();
    if (element->isPoison() || !countSteps(1, statement->headerRange))
      return Flow::Failed;
    assignTarget(statement->target, *element);
    if (emit.diagnosticEngine().errorCount() != errorsBefore)
      return Flow::Failed;
    Flow flow = runPython(statement->body);
    if (flow == Flow::Break)
      return Flow::Next;
    if (flow != Flow::Next && flow != Flow::Continue)
      return flow;
  }
  return Flow::Failed;
}

Flow Evaluator::runPythonWhile(const ast::While *statement) {
  while (true) {
    LangValue condition = evaluateValue(statement->condition);
    if (condition.isUnknown()) {
      frame().unknownCondition = condition;
      return Flow::Unknown;
    }
    auto isTrue = condition.isPoison() ? std::nullopt : truthOf(condition, statement->condition->range);
    if (!isTrue || !countSteps(1, statement->condition->range))
      return Flow::Failed;
    if (!*isTrue)
      return runPython(statement->orelse);
    Flow flow = runPython(statement->body);
    if (flow == Flow::Break)
      return Flow::Next;
    if (flow != Flow::Next && flow != Flow::Continue)
      return flow;
  }
}

Flow Evaluator::runPythonWith(const ast::With *statement) { return runWithItem(statement, 0); }

Flow Evaluator::runWithItem(const ast::With *statement, size_t index) {
  if (index == statement->items.size())
    return runPython(statement->body);
  const ast::WithItem &item = statement->items[index];
  SourceRange place = item.context->range;
  LangValue value = evaluate(item.context);
  if (value.isPoison())
    return Flow::Failed;
  if (value.is<std::shared_ptr<const ContextValue>>())
    return flowOf(fail(place, "a context of the kernel language has no meaning at compile time", ""));
  if (!value.instance()) { // what a package that is not here does around the body is not known
    if (item.target)
      assignTarget(item.target, unknown(place, unparse(item.context)));
    return runWithItem(statement, index + 1);
  }
  std::optional<LangValue> entered = callProtocol(value, "__enter__", {}, place);
  if (!entered || entered->isPoison())
    return entered ? Flow::Failed : flowOf(fail(place, fmt::format("'{}' object does not support the context manager protocol", value.typeName())));
  if (item.target)
    assignTarget(item.target, *entered);
  std::vector<Diagnostic> errors;
  const bool wasTolerant = std::exchange(frame().isTolerant, false); // what fails is for __exit__ to see
  Flow flow = runCaptured([&] { return runWithItem(statement, index + 1); }, errors);
  frame().isTolerant = wasTolerant;
  const LangValue result = frame().result;
  std::vector<LangValue> why(3, LangValue::none());
  const bool isException = !errors.empty() && !errors.front().exception.empty();
  if (isException) {
    why[1] = exceptionOfFailure(errors.front(), place);
    why[0] = call(LangValue(NativeValue{findNative("type")}), {why[1]}, {}, place);
    why[2] = unknown(place, "the traceback");
  }
  std::optional<LangValue> left = callProtocol(value, "__exit__", std::move(why), place);
  frame().result = result;
  std::optional<bool> swallows = left && !left->isPoison() ? truthOf(*left, place) : std::nullopt;
  if (isException && swallows.value_or(false))
    return Flow::Next;
  for (const Diagnostic &each : errors)
    emit.report(each);
  return left && !swallows ? Flow::Failed : flow;
}

Flow Evaluator::runPythonAssert(const ast::Assert *statement) {
  LangValue condition = evaluateValue(statement->condition);
  if (condition.isPoison())
    return Flow::Failed;
  if (condition.isUnknown()) // the program goes on only if it holds
    return Flow::Next;
  auto isTrue = truthOf(condition, statement->condition->range);
  if (!isTrue)
    return Flow::Failed;
  if (*isTrue)
    return Flow::Next;
  LangValue message = statement->message ? evaluate(statement->message) : LangValue::string("");
  if (message.isPoison())
    return Flow::Failed;
  std::string text = message.display();
  return flowOf(fail(statement->range, text.empty() ? "assertion failed" : "assertion failed: " + text, "AssertionError"));
}

} // namespace ditron::frontend
