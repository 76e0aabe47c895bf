//===- Statements.cpp - Execution of statements --------------------------------------------------------------------------===//
//
// Straight-line statements and the walk over statement lists. A list that may return is run by runBody, which carries the
// rest of the function along, so that an early return becomes a structured if around the rest; everything else goes
// through execute. Branches that are ruled out at compile time are never visited.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

bool containsReturn(const ast::Node *node) {
  bool found = false;
  ast::walk(node, [&](const ast::Node *each) {
    found |= llvm::isa<ast::Return>(each);
    return !found && !llvm::isa<ast::FunctionDef, ast::Expr>(each);
  });
  return found;
}

/// What a refused statement is called.
llvm::StringRef refusal(ast::NodeKind kind) {
  switch (kind) {
  case ast::NodeKind::FunctionDef: return "nested function definitions are not allowed inside a @triton.jit kernel";
  case ast::NodeKind::ClassDef: return "classes cannot be defined in kernels";
  case ast::NodeKind::Delete: return "'del' is not part of the kernel language";
  case ast::NodeKind::TypeAlias: return "'type' is not part of the kernel language";
  case ast::NodeKind::Match: return "'match' is not part of the kernel language";
  case ast::NodeKind::Raise:
    return "'raise' is reached in a kernel; it is allowed only in branches that are never taken";
  case ast::NodeKind::Try: return "'try' is not part of the kernel language";
  case ast::NodeKind::Import:
  case ast::NodeKind::ImportFrom: return "imports belong at module level, not into a kernel";
  case ast::NodeKind::Global: return "'global' is not part of the kernel language";
  case ast::NodeKind::Nonlocal: return "'nonlocal' is not part of the kernel language";
  default: return "this statement is not part of the kernel language";
  }
}

} // namespace

bool Evaluator::countStatement(const ast::Stmt *statement) {
  if (isStopped)
    return false;
  if (emit.diagnosticEngine().limitReached(statement->range.file)) {
    isStopped = true;
  } else if (++statementCount > maxStatements) {
    emit.error(statement->range, fmt::format("the kernel is too large: more than {} statements were executed while "
                                             "unrolling loops and inlining calls",
                                             maxStatements));
    isStopped = true;
  }
  return !isStopped;
}

Outcome Evaluator::runBody(ast::StmtList statements, const Continuation *next) {
  for (size_t i = 0; i < statements.size(); ++i) {
    const ast::Stmt *statement = statements[i];
    if (const auto *result = llvm::dyn_cast<ast::Return>(statement)) {
      if (!countStatement(statement))
        return {};
      Emitter::At at(emit, statement->range);
      Outcome outcome;
      outcome.isReturn = true;
      outcome.range = statement->range;
      if (result->value)
        outcome.value = evaluate(result->value);
      if (frame().isEntry && result->value && !outcome.value.isNone() && !outcome.value.isPoison())
        emit.error(result->value->range,
                   fmt::format("a kernel cannot return a value, but this returns {}", outcome.value.describe()));
      return outcome;
    }
    const auto *conditional = llvm::dyn_cast<ast::If>(statement);
    if (conditional && containsReturn(conditional)) {
      if (!countStatement(statement))
        return {};
      Continuation rest{statements.drop_front(i + 1), frame().depth, next};
      return runIf(conditional, rest);
    }
    execute(statement);
    if (isStopped)
      return {};
  }
  if (!next)
    return {};
  unsigned inside = std::exchange(frame().depth, next->depth);
  Outcome outcome = runBody(next->statements, next->next);
  frame().depth = inside;
  return outcome;
}

void Evaluator::executeBlock(ast::StmtList statements) {
  for (auto [index, statement] : llvm::enumerate(statements)) {
    execute(statement);
    if (isStopped || llvm::isa<ast::Return>(statement))
      return;
    LangValue left = exitMark("continue");
    if (left.isConstant() && !left.constant().isTrue())
      continue;
    ast::StmtList rest = statements.drop_front(index + 1);
    if (left.isTensor() && !rest.empty())
      executeUnless(left, statement->range, /*leavesRound=*/true, [&] { executeBlock(rest); });
    return;
  }
}

void Evaluator::execute(const ast::Stmt *statement) {
  if (!countStatement(statement))
    return;
  Emitter::At at(emit, statement->range);
  switch (statement->kind) {
  case ast::NodeKind::Pass: return;
  case ast::NodeKind::Return:
    emit.error(statement->range,
               frame().contexts ? "Cannot have `return` statements inside of `with` in a kernel"
               : frame().loops
                   ? "Cannot have `return` statements inside `while` or `for` statements in triton: write break, or "
                     "compute the condition before the loop"
                   : "'return' is not allowed here");
    return;
  case ast::NodeKind::ExprStmt: {
    const auto *expression = llvm::cast<ast::ExprStmt>(statement)->value;
    const auto *constant = llvm::dyn_cast<ast::Constant>(expression);
    if (constant && constant->value->isStr()) // a docstring
      return;
    discarded = expression;
    evaluate(expression);
    discarded = nullptr;
    return;
  }
  case ast::NodeKind::Assign: {
    const auto *assign = llvm::cast<ast::Assign>(statement);
    if (assign->targets.size() != 1) {
      emit.error(assign->targets[1]->range, "a kernel assigns to one target at a time; write one statement for each");
      return;
    }
    // The target is checked by assignTarget; the value comes first, as in Python.
    LangValue value = evaluate(assign->value);
    assignTarget(assign->targets.front(), value);
    return;
  }
  case ast::NodeKind::AugAssign: executeAugmentedAssign(llvm::cast<ast::AugAssign>(statement)); return;
  case ast::NodeKind::AnnAssign: executeAnnotatedAssign(llvm::cast<ast::AnnAssign>(statement)); return;
  case ast::NodeKind::If: executeIf(llvm::cast<ast::If>(statement)); return;
  case ast::NodeKind::For: executeFor(llvm::cast<ast::For>(statement)); return;
  case ast::NodeKind::While: executeWhile(llvm::cast<ast::While>(statement)); return;
  case ast::NodeKind::Assert: executeAssert(llvm::cast<ast::Assert>(statement)); return;
  case ast::NodeKind::Break:
  case ast::NodeKind::Continue: executeExit(statement); return;
  case ast::NodeKind::With: executeWith(llvm::cast<ast::With>(statement)); return;
  case ast::NodeKind::FunctionDef:
    emit.error(statement->range, refusal(statement->kind).str());
    // Its uses are not mistakes of their own.
    assignName(llvm::cast<ast::FunctionDef>(statement)->name.text, LangValue::poison(), statement->range);
    return;
  case ast::NodeKind::ClassDef:
    emit.error(statement->range, refusal(statement->kind).str());
    assignName(llvm::cast<ast::ClassDef>(statement)->name.text, LangValue::poison(), statement->range);
    return;
  default: emit.error(statement->range, refusal(statement->kind).str()); return;
  }
}

void Evaluator::executeAugmentedAssign(const ast::AugAssign *statement) {
  bool isElement = llvm::isa<ast::Subscript>(statement->target) && !contexts.empty();
  if (!isElement && !llvm::isa<ast::Name, ast::Attribute>(statement->target)) {
    emit.error(statement->target->range, "the target of an augmented assignment must be a name");
    return;
  }
  LangValue left = evaluate(statement->target);
  LangValue right = evaluate(statement->value);
  assignTarget(statement->target, binaryOf(statement->op, left, right, statement->range));
}

void Evaluator::executeAssert(const ast::Assert *statement) {
  std::vector<CallArgument> arguments;
  auto add = [&](const ast::Expr *expression) {
    arguments.push_back(CallArgument{"", evaluate(expression), expression->range, {}, false});
    return arguments.back().value;
  };
  add(statement->condition);
  if (statement->message)
    add(statement->message);
  callBuiltin(*findBuiltin(ModuleTile, "device_assert"), std::move(arguments), statement->range);
}

void Evaluator::executeAnnotatedAssign(const ast::AnnAssign *statement) {
  const auto *name = llvm::dyn_cast<ast::Name>(statement->target);
  if (!name) {
    emit.error(statement->target->range, "only names can have annotations in a kernel");
    return;
  }
  bool isConstexpr = llvm::StringRef(unparse(statement->annotation)).contains("constexpr");
  if (!statement->value) {
    if (isConstexpr)
      frame().pendingConstexpr.push_back(name->id);
    return;
  }
  LangValue value = evaluate(statement->value);
  if (isConstexpr)
    declareConstexpr(name->id, std::move(value), name->range);
  else
    assignName(name->id, std::move(value), name->range);
}

} // namespace ditron::frontend
