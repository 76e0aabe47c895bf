//===- Exceptions.cpp - raise and try in Python that runs while compiling --------------------------------------------------===//
//
// An exception is an error that was reported: the diagnostic names Python's class, and the number of the object that `raise`
// was given. `try` takes the diagnostics back and asks its handlers. A failure of ours (an index, a division) has a class but
// no object: `except ... as error` sees one whose text is not known, since CPython words its messages in its own way.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>

namespace ditron::frontend {

//===------------------------------------------------------------------------------------------------------------------===//
// raise
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::exceptionOfFailure(const Diagnostic &error, SourceRange range) {
  if (error.raised)
    return raisedObjects[error.raised - 1];
  LangValue text = LangValue(std::make_shared<const UnknownValue>(
      UnknownValue{range, fmt::format("the text of the {} '{}'", error.exception, error.message), {}}));
  return LangValue::object(error.exception, {{"args", text}, {"__str__", text}, {"__repr__", text}});
}

std::string Evaluator::exceptionClassOf(const LangValue &exception) {
  if (const ObjectValue *object = exception.object(); object && isExceptionOf(object->type, "BaseException"))
    return object->type;
  const ClassInfo *cls = exception.classInfo();
  return cls && isExceptionOf(cls->nativeBase, "BaseException") ? cls->nativeBase : "";
}

Flow Evaluator::raiseObject(const LangValue &exception, SourceRange range) {
  std::string kind = exceptionClassOf(exception);
  if (kind.empty())
    return flowOf(fail(range, "exceptions must derive from BaseException"));
  std::string text = exception.display(), name = exception.typeName();
  raisedObjects.push_back(exception);
  Diagnostic &error = emit.error(range, text.empty() ? fmt::format("{} was raised", name) : fmt::format("{}: {}", name, text));
  error.raises(kind).raised = raisedObjects.size();
  return Flow::Failed;
}

Flow Evaluator::runRaise(const ast::Raise *statement) {
  if (!statement->exception) {
    if (handled.empty())
      return flowOf(fail(statement->range, "No active exception to reraise", "RuntimeError"));
    emit.report(handled.back());
    return Flow::Failed;
  }
  const auto *call = llvm::dyn_cast<ast::Call>(statement->exception);
  LangValue callee = evaluateQuietly(call ? call->callee : statement->exception);
  const auto *native = callee.getIf<NativeValue>();
  const bool isKnown = callee.object() || callee.is<ClassValue>() || callee.is<FunctionValue>() ||
                       (native && isExceptionOf(native->function->shortName(), "BaseException"));
  if (isKnown) {
    LangValue exception = call || callee.object() ? evaluate(statement->exception) : this->call(callee, {}, {}, statement->range);
    if (exception.isPoison())
      return Flow::Failed;
    if (!exception.isUnknown())
      return raiseObject(exception, statement->range);
  }
  // Of a package that is not here: its name is all that is known.
  std::string kind = ast::lastName(statement->exception).str(), text;
  if (kind.empty())
    kind = "an exception";
  if (call && !call->args.empty()) {
    LangValue message = evaluate(call->args.front());
    if (message.isPoison())
      return Flow::Failed;
    text = message.display();
  }
  return flowOf(fail(statement->range, text.empty() ? fmt::format("{} was raised", kind) : fmt::format("{}: {}", kind, text),
                     kind));
}

//===------------------------------------------------------------------------------------------------------------------===//
// try
//===------------------------------------------------------------------------------------------------------------------===//

bool Evaluator::isCaughtBy(const Diagnostic &error, const ast::Expr *type) {
  if (const auto *types = llvm::dyn_cast<ast::Tuple>(type))
    return llvm::any_of(types->elements, [&](const ast::Expr *each) { return isCaughtBy(error, each); });
  LangValue given = evaluateQuietly(type);
  std::vector<LangValue> classes = given.isTuple() ? given.elements() : std::vector<LangValue>{given};
  return llvm::any_of(classes, [&](const LangValue &each) {
    if (const auto *declared = each.getIf<ClassValue>(); declared && error.raised) {
      const ClassInfo *cls = raisedObjects[error.raised - 1].classInfo();
      return cls && cls->isOrInherits(declared->info.get());
    }
    if (each.is<ClassValue>())
      return false;
    if (const auto *native = each.getIf<NativeValue>())
      return isExceptionOf(error.exception, native->function->name);
    return isExceptionOf(error.exception, ast::lastName(type));
  });
}

const ast::ExceptHandler *Evaluator::handlerFor(const ast::Try *statement, const Diagnostic &error) {
  for (const ast::ExceptHandler &handler : statement->handlers)
    if (!handler.type || isCaughtBy(error, handler.type))
      return &handler;
  return nullptr;
}

Flow Evaluator::runCaptured(llvm::function_ref<Flow()> body, std::vector<Diagnostic> &errors) {
  Emitter::Capture capture(emit);
  Flow flow = body();
  if (flow == Flow::Failed)
    errors = capture.takeBack();
  return flow;
}

Flow Evaluator::runHandler(const ast::ExceptHandler &handler, const Diagnostic &error) {
  llvm::StringRef name = handler.name.text;
  if (!name.empty())
    bindName(name, exceptionOfFailure(error, handler.range), handler.name.range);
  handled.push_back(error);
  Flow flow = runPython(handler.body);
  handled.pop_back();
  if (!name.empty())
    frame().environment->names.erase(name);
  return flow;
}

Flow Evaluator::decideDoubt(const ast::Try *statement, const LangValue &doubt, Flow flow,
                            const llvm::MapVector<llvm::StringRef, Binding> &before) {
  // Whether a package is there decides what follows; so does what an unknown function does.
  bool isImport = llvm::StringRef(doubt.unknown().text).starts_with("import ");
  Diagnostic failure{Severity::Error, doubt.unknown().range, "", {}, isImport ? "ModuleNotFoundError" : "Exception"};
  const ast::ExceptHandler *handler = handlerFor(statement, failure);
  auto handle = [&] { return runHandler(*handler, failure); };
  if (handler && flow == Flow::Return && !frame().isTolerant) {
    // Both ways may give the same.
    const LangValue given = frame().result;
    if (handle() == Flow::Return && !unknownIn(given) && !unknownIn(frame().result) && given.equals(frame().result))
      return Flow::Return;
  }
  if (handler && !frame().isTolerant) {
    frame().unknownCondition = doubt;
    return Flow::Unknown;
  }
  if (!handler)
    return flow == Flow::Next ? runPython(statement->orelse) : flow;
  auto afterBody = frame().environment->names;
  return executeBoth(
      [&] {
        frame().environment->names = afterBody;
        return flow == Flow::Next ? runPython(statement->orelse) : flow;
      },
      [&] {
        frame().environment->names = before;
        return handle();
      },
      doubt);
}

Flow Evaluator::runTry(const ast::Try *statement) {
  const auto before = frame().environment->names;
  std::vector<LangValue> doubts;
  std::vector<LangValue> *outerDoubts = std::exchange(frame().doubts, &doubts);
  const bool wasTolerant = std::exchange(frame().isTolerant, false);
  std::vector<Diagnostic> errors;
  Flow flow = runCaptured([&] { return runPython(statement->body); }, errors);
  frame().doubts = outerDoubts;
  frame().isTolerant = wasTolerant;
  auto error = llvm::find_if(errors, [](const Diagnostic &each) { return each.severity == Severity::Error; });
  if (error != errors.end()) {
    const Diagnostic failure = *error;
    if (const ast::ExceptHandler *handler = failure.exception.empty() ? nullptr : handlerFor(statement, failure)) {
      errors.clear();
      flow = runCaptured([&] { return runHandler(*handler, failure); }, errors);
    }
  } else if (!doubts.empty()) {
    const LangValue &doubt = doubts.front();
    bool isImport = llvm::StringRef(doubt.unknown().text).starts_with("import ");
    Diagnostic failure{Severity::Error, {}, "", {}, isImport ? "ModuleNotFoundError" : "Exception"};
    if (!handlerFor(statement, failure) && outerDoubts)
      llvm::append_range(*outerDoubts, doubts);
    flow = runCaptured([&] { return decideDoubt(statement, doubt, flow, before); }, errors);
    if (flow == Flow::Unknown)
      return flow;
  } else if (flow == Flow::Next) {
    flow = runCaptured([&] { return runPython(statement->orelse); }, errors);
  }
  const LangValue result = frame().result;
  Flow last = runPython(statement->finalBody);
  if (last != Flow::Next) // what leaves `finally` drops the exception
    return last;
  frame().result = result;
  llvm::for_each(errors, [&](const Diagnostic &each) { emit.report(each); });
  return flow;
}

} // namespace ditron::frontend
