//===- PythonStatements.cpp - Statements of Python that runs while compiling ------------------------------------------------===//
//
// All control flow is executed, by what the conditions are now. A failure ends the evaluation, unless a `try` handles it or
// the frame is tolerant (ModuleLevel.cpp).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>

namespace ditron::frontend {

Flow Evaluator::runPython(ast::StmtList statements) {
  for (const ast::Stmt *statement : statements)
    if (Flow flow = frame().isTolerant ? executeTolerantly(statement) : runPython(statement); flow != Flow::Next)
      return flow;
  return Flow::Next;
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
    return llvm::isa<ast::Constant>(value) ? Flow::Next : flowOf(evaluate(value)); // docstrings
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
    if (auto elements = elementsOf(value, statement->value->range))
      llvm::append_range(*list->elements, *elements);
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
  LangValue index = llvm::isa<ast::Slice>(target->index) ? LangValue::none() : evaluate(target->index);
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
  auto elements = iterable.isPoison() ? std::nullopt : elementsOf(iterable, statement->iterable->range);
  if (!elements)
    return Flow::Failed;
  const auto *list = iterable.getIf<ListValue>();
  for (size_t i = 0; i < (list ? list->elements->size() : elements->size()); ++i) { // a list may grow in the body
    const LangValue element = list ? (*list->elements)[i] : (*elements)[i];
    size_t errorsBefore = emit.diagnosticEngine().errorCount();
    if (!countSteps(1, statement->headerRange))
      return Flow::Failed;
    assignTarget(statement->target, element);
    if (emit.diagnosticEngine().errorCount() != errorsBefore)
      return Flow::Failed;
    Flow flow = runPython(statement->body);
    if (flow == Flow::Break)
      return Flow::Next;
    if (flow != Flow::Next && flow != Flow::Continue)
      return flow;
  }
  return runPython(statement->orelse);
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

Flow Evaluator::runPythonWith(const ast::With *statement) {
  for (const ast::WithItem &item : statement->items) {
    LangValue value = evaluate(item.context);
    if (value.isPoison())
      return Flow::Failed;
    if (value.is<std::shared_ptr<const ContextValue>>())
      return flowOf(fail(item.context->range, "a context of the kernel language has no meaning at compile time", ""));
    if (item.target)
      assignTarget(item.target, unknown(item.context->range, unparse(item.context)));
  }
  return runPython(statement->body);
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

//===------------------------------------------------------------------------------------------------------------------===//
// Exceptions
//===------------------------------------------------------------------------------------------------------------------===//

Flow Evaluator::runRaise(const ast::Raise *statement) {
  const auto *call = llvm::dyn_cast_or_null<ast::Call>(statement->exception);
  const ast::Expr *name = call ? call->callee : statement->exception;
  std::string kind = "an exception";
  if (const auto *plain = llvm::dyn_cast_or_null<ast::Name>(name))
    kind = plain->id.str();
  else if (const auto *attribute = llvm::dyn_cast_or_null<ast::Attribute>(name))
    kind = attribute->attr.text.str();
  std::string text;
  if (call && !call->args.empty()) {
    LangValue message = evaluate(call->args.front());
    if (message.isPoison())
      return Flow::Failed;
    text = message.display();
  }
  return flowOf(fail(statement->range, text.empty() ? fmt::format("{} was raised", kind) : fmt::format("{}: {}", kind, text),
                     kind));
}

const ast::ExceptHandler *Evaluator::handlerFor(const ast::Try *statement, llvm::StringRef exception) {
  auto matches = [&](const ast::Expr *type) {
    llvm::StringRef name;
    if (const auto *plain = llvm::dyn_cast<ast::Name>(type))
      name = plain->id;
    else if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(type))
      name = attribute->attr.text;
    return isExceptionOf(exception, name);
  };
  for (const ast::ExceptHandler &handler : statement->handlers) {
    if (!handler.type)
      return &handler;
    if (const auto *types = llvm::dyn_cast<ast::Tuple>(handler.type)) {
      if (llvm::any_of(types->elements, matches))
        return &handler;
    } else if (matches(handler.type)) {
      return &handler;
    }
  }
  return nullptr;
}

Flow Evaluator::runTry(const ast::Try *statement) {
  const auto before = frame().environment->names;
  std::vector<LangValue> doubts;
  std::vector<LangValue> *outerDoubts = std::exchange(frame().doubts, &doubts);
  const bool wasTolerant = std::exchange(frame().isTolerant, false);
  auto handle = [&](const ast::ExceptHandler &handler) {
    if (!handler.name.text.empty())
      bindName(handler.name.text, unknown(handler.range, handler.name.text.str()), handler.name.range);
    return runPython(handler.body);
  };
  Flow flow = Flow::Next;
  std::vector<Diagnostic> errors;
  {
    Emitter::Capture capture(emit);
    flow = runPython(statement->body);
    if (flow == Flow::Failed)
      errors = capture.takeBack();
  }
  frame().doubts = outerDoubts;
  frame().isTolerant = wasTolerant;
  auto error = llvm::find_if(errors, [](const Diagnostic &each) { return each.severity == Severity::Error; });
  const ast::ExceptHandler *handler = nullptr;
  if (error != errors.end()) {
    handler = error->exception.empty() ? nullptr : handlerFor(statement, error->exception);
    if (handler)
      flow = handle(*handler);
    else
      llvm::for_each(errors, [&](const Diagnostic &each) { emit.report(each); });
  } else if (!doubts.empty()) {
    // Whether a package is there decides what follows; so does what an unknown function does.
    const LangValue &doubt = doubts.front();
    bool isImport = llvm::StringRef(doubt.unknown().text).starts_with("import ");
    handler = handlerFor(statement, isImport ? "ModuleNotFoundError" : "Exception");
    if (handler && flow == Flow::Return && !frame().isTolerant) {
      // Both ways may give the same.
      const LangValue given = frame().result;
      if (handle(*handler) == Flow::Return && !unknownIn(given) && !unknownIn(frame().result) && given.equals(frame().result))
        return Flow::Return;
    }
    if (handler && !frame().isTolerant) {
      frame().unknownCondition = doubt;
      return Flow::Unknown;
    }
    if (handler) {
      auto afterBody = frame().environment->names;
      flow = executeBoth(
          [&] {
            frame().environment->names = afterBody;
            return flow == Flow::Next ? runPython(statement->orelse) : flow;
          },
          [&] {
            frame().environment->names = before;
            return handle(*handler);
          },
          doubt);
    } else if (outerDoubts) {
      llvm::append_range(*outerDoubts, doubts);
    }
  }
  if (!handler && flow == Flow::Next)
    flow = runPython(statement->orelse);
  Flow last = runPython(statement->finalBody);
  return last == Flow::Next ? flow : last;
}

} // namespace ditron::frontend
