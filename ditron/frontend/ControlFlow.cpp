//===- ControlFlow.cpp - Branches ---------------------------------------------------------------------------------------===//
//
// Compile-time branches choose a list of statements; run-time branches become scf.if. Values that differ after the two
// branches become results of the scf.if; an early return puts the rest of the function into the branch that goes on.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace scf = mlir::scf;
namespace {

/// What Python calls the type of a value.
std::string pythonType(const LangValue &value) {
  if (const ClassInfo *cls = value.classInfo())
    return cls->name;
  if (value.isConstant())
    return value.constant().typeName().str();
  return value.isTuple() ? "tuple" : value.isType() ? "dtype" : value.isDescriptor() ? "tensor_descriptor" : "function";
}

} // namespace

LangValue Evaluator::evaluateCondition(const ast::Expr *expression) {
  LangValue value = evaluate(expression);
  if (value.isPoison())
    return value;
  if (value.isConstant()) {
    const ConstValue &constant = value.constant();
    if (constant.isIntegral() || constant.isNone())
      return LangValue::boolean(constant.isTrue());
  }
  if (!value.isTensor())
    return emit.fail(expression->range,
                     fmt::format("`if` conditionals can only accept values of type {{bool, int, NoneType}}, "
                                 "not objects of type {}: this is {}; a run-time condition is a scalar",
                                 pythonType(value), value.describe()));
  Emitter::At at(emit, expression->range);
  if (value.type().isBlock()) {
    if (value.type().numElements() != 1) {
      emit.error(expression->range, fmt::format("a condition must be a scalar, but got {}", value.describe()))
          .hint("use tl.where to choose element by element, or reduce the condition with tl.max");
      return LangValue::poison();
    }
    value = emit.reshape(value, {});
  }
  if (value.type().isPointer()) // whether there is one
    value = emit.cast(value, ScalarKind::Int64, expression->range);
  return emit.cast(value, ScalarKind::Int1, expression->range);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Joining the values of two branches
//===------------------------------------------------------------------------------------------------------------------===//

Evaluator::Branches Evaluator::beginBranches(mlir::Value condition) {
  // Statements behind a return, break or continue nest; whoever walks the IR does so recursively.
  unsigned depth = 0;
  for (mlir::Operation *op = emit.builder.getInsertionBlock()->getParentOp(); op; op = op->getParentOp())
    ++depth;
  if (depth > maxRegionDepth && !isStopped) {
    emit.error(emit.range(),
               fmt::format("run-time branches are nested more than {} deep (statements behind a return, break or "
                           "continue count as a branch of their own)",
                           maxRegionDepth));
    isStopped = true;
  }
  Branches branches;
  branches.op = scf::IfOp::create(emit.builder, emit.location(), mlir::TypeRange(), condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (mlir::Region *region : {&branches.op.getThenRegion(), &branches.op.getElseRegion()})
    if (!region->front().empty())
      region->front().back().erase();
  return branches;
}

std::optional<std::string> Evaluator::join(Branches &branches, const LangValue &a, const LangValue &b, SourceRange range,
                                          JoinedValue &joined) {
  llvm::SmallVector<LangValue> left, right;
  flatten(a, left);
  flatten(b, right);
  if (!sameStructure(a, b)) {
    // A part that was reported spoils all.
    auto isPoison = [](const LangValue &leaf) { return leaf.isPoison(); };
    if (llvm::any_of(left, isPoison) || llvm::any_of(right, isPoison)) {
      joined = JoinedValue{LangValue::poison(), {LangValue::poison()}, {-1}};
      return std::nullopt;
    }
    auto [inA, inB] = describeDifference(a, b);
    return fmt::format("{} and {}", inA, inB);
  }
  // A descriptor that a branch made is of no use after it.
  joined.shape = a.identical(b) ? a : withoutDescriptorIr(a);
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  Emitter::At at(emit, range);
  for (auto [x, y] : llvm::zip(left, right)) {
    if (x.isPoison() || y.isPoison()) {
      joined.leaves.push_back(LangValue::poison());
      joined.slots.push_back(-1);
      continue;
    }
    if (x.identical(y)) {
      joined.leaves.push_back(x);
      joined.slots.push_back(-1);
      continue;
    }
    bool canMeet = (x.isTensor() || x.isLiteral()) && (y.isTensor() || y.isLiteral());
    if (!canMeet)
      return fmt::format("{} and {}", x.describe(), y.describe());
    emit.builder.setInsertionPointToEnd(&branches.op.getThenRegion().front());
    LangValue p = emit.toTensor(x, range);
    emit.builder.setInsertionPointToEnd(&branches.op.getElseRegion().front());
    LangValue q = emit.toTensor(y, range);
    if (p.isPoison() || q.isPoison())
      return std::string("values without a run-time form");
    if (p.type() != q.type())
      return fmt::format("{} and {}", p.type().str(), q.type().str());
    joined.leaves.push_back(p);
    joined.slots.push_back(branches.types.size());
    branches.types.push_back(p.type());
    branches.thenYields.push_back(p.ir());
    branches.elseYields.push_back(q.ir());
  }
  return std::nullopt;
}

scf::IfOp Evaluator::finishBranches(Branches &branches) {
  scf::IfOp op = branches.op;
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  mlir::Location location = op.getLoc();
  emit.builder.setInsertionPointToEnd(&op.getThenRegion().front());
  scf::YieldOp::create(emit.builder, location, branches.thenYields);
  emit.builder.setInsertionPointToEnd(&op.getElseRegion().front());
  scf::YieldOp::create(emit.builder, location, branches.elseYields);
  if (branches.types.empty()) {
    mlir::Block &otherwise = op.getElseRegion().front();
    if (otherwise.getOperations().size() == 1)
      otherwise.erase();
    return op;
  }
  llvm::SmallVector<mlir::Type> types;
  for (const LangType &type : branches.types)
    types.push_back(emit.ir(type));
  emit.builder.setInsertionPoint(op);
  auto result = scf::IfOp::create(emit.builder, location, types, op.getCondition(), /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
  result.getThenRegion().takeBody(op.getThenRegion());
  result.getElseRegion().takeBody(op.getElseRegion());
  op.erase();
  branches.op = result;
  return result;
}

LangValue Evaluator::resolve(const JoinedValue &joined, scf::IfOp op, const Branches &branches) {
  llvm::SmallVector<LangValue> leaves;
  for (auto [leaf, slot] : llvm::zip(joined.leaves, joined.slots))
    leaves.push_back(slot < 0 ? leaf : LangValue::tensor(op.getResult(slot), branches.types[slot]));
  llvm::ArrayRef<LangValue> rest = leaves;
  return unflatten(joined.shape, rest);
}

LangValue Evaluator::undefinedLike(const LangValue &value) {
  if (value.isCompound()) {
    std::vector<LangValue> elements;
    for (const LangValue &element : value.parts())
      elements.push_back(undefinedLike(element));
    return value.withParts(std::move(elements));
  }
  if (value.isDescriptor()) {
    llvm::SmallVector<LangValue> parts;
    flatten(value, parts);
    for (LangValue &part : parts)
      part = undefinedLike(part);
    llvm::ArrayRef<LangValue> rest = parts;
    return unflatten(value, rest);
  }
  if (!value.isTensor())
    return value;
  if (!value.type().isPointer())
    return emit.constantOf(ConstValue::integer(0), value.type());
  LangValue zero = emit.constantOf(ConstValue::integer(0), LangType(ScalarKind::Int64).withShape(value.type().shape()));
  return emit.cast(zero, value.type().element(), emit.range());
}

//===------------------------------------------------------------------------------------------------------------------===//
// if without return
//===------------------------------------------------------------------------------------------------------------------===//

void Evaluator::executeIf(const ast::If *statement) {
  LangValue condition = evaluateCondition(statement->condition);
  if (condition.isPoison())
    return;
  if (condition.isConstant()) {
    executeBlock(condition.constant().isTrue() ? statement->body : statement->orelse);
    return;
  }
  executeRunTimeIf(statement, condition.ir());
}

void Evaluator::executeRunTimeIf(const ast::If *statement, mlir::Value condition) {
  SourceRange place = statement->condition->range;
  Branches branches = beginBranches(condition);
  Scope before = frame().locals;
  ++frame().depth;
  {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&branches.op.getThenRegion().front());
    executeBlock(statement->body);
  }
  Scope thenScope = std::exchange(frame().locals, before);
  {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&branches.op.getElseRegion().front());
    executeBlock(statement->orelse);
  }
  Scope elseScope = std::exchange(frame().locals, Scope());
  --frame().depth;
  joinScopes(branches, before, std::move(thenScope), std::move(elseScope), place);
}

void Evaluator::joinScopes(Branches &branches, const Scope &before, Scope thenScope, Scope elseScope,
                          SourceRange place) {
  // What a side that is left by break or continue would have made of a new name is never seen.
  auto complete = [&](Scope &missing, const Scope &present, mlir::Region &region) {
    if (!isLeft(missing) || isLeft(present))
      return;
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&region.front());
    for (const auto &[name, variable] : present)
      if (missing.find(name) == missing.end()) {
        missing[name] = variable;
        missing[name].value = undefinedLike(variable.value);
      }
  };
  complete(thenScope, elseScope, branches.op.getThenRegion());
  complete(elseScope, thenScope, branches.op.getElseRegion());
  struct Pending {
    llvm::StringRef name;
    Variable variable;
    JoinedValue joined;
  };
  std::vector<Pending> pending;
  for (auto &[name, inThen] : thenScope) {
    auto other = elseScope.find(name);
    if (other == elseScope.end()) {
      frame().hidden[name] = {place, "it is assigned only in one branch of this if"};
      continue;
    }
    Pending each{name, inThen, {}};
    if (auto mismatch = join(branches, inThen.value, other->second.value, place, each.joined)) {
      emit.error(place, fmt::format("variable '{}' has different types after the two branches of this if: {}",
                                    name.str(), *mismatch))
          .note(inThen.range, "assigned here")
          .note(other->second.range, "and here");
      each.joined = JoinedValue{LangValue::poison(), {LangValue::poison()}, {-1}};
    }
    // A name that kept its value is the same variable; otherwise it is a new one of the enclosing depth.
    auto original = before.find(name);
    bool isSame = inThen.value.identical(other->second.value);
    if (original != before.end() && isSame && inThen.value.identical(original->second.value)) {
      each.variable = original->second;
    } else {
      each.variable.isDecayed = inThen.isDecayed && other->second.isDecayed;
      each.variable.isConstexpr = inThen.isConstexpr && other->second.isConstexpr && isSame;
      each.variable.depth = frame().depth;
    }
    pending.push_back(std::move(each));
  }
  for (auto &[name, inElse] : elseScope)
    if (thenScope.find(name) == thenScope.end())
      frame().hidden[name] = {place, "it is assigned only in one branch of this if"};

  scf::IfOp op = finishBranches(branches);
  for (Pending &each : pending) {
    each.variable.value = resolve(each.joined, op, branches);
    frame().locals[each.name] = std::move(each.variable);
  }
}

//===------------------------------------------------------------------------------------------------------------------===//
// if with return
//===------------------------------------------------------------------------------------------------------------------===//

Outcome Evaluator::runIf(const ast::If *statement, const Continuation &rest) {
  Emitter::At at(emit, statement->condition->range);
  LangValue condition = evaluateCondition(statement->condition);
  if (condition.isPoison())
    return {true, LangValue::poison(), statement->range};
  if (condition.isConstant())
    return runBody(condition.constant().isTrue() ? statement->body : statement->orelse, &rest);

  SourceRange place = statement->condition->range;
  Branches branches = beginBranches(condition.ir());
  Scope before = frame().locals;
  auto hiddenBefore = frame().hidden;
  // Nothing follows the if, so each branch may bind names as it likes; constexpr names of before stay protected.
  ++frame().depth;
  auto runBranch = [&](mlir::Region &region, ast::StmtList statements) {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&region.front());
    frame().locals = before;
    frame().hidden = hiddenBefore;
    return runBody(statements, &rest);
  };
  Outcome first = runBranch(branches.op.getThenRegion(), statement->body);
  Outcome second = runBranch(branches.op.getElseRegion(), statement->orelse);
  --frame().depth;

  // A path that falls off the end of a function with a value elsewhere gives an undefined value.
  auto complete = [&](Outcome &missing, const Outcome &present, mlir::Region &region) {
    if (missing.isReturn || !present.isReturn || present.value.isPoison())
      return;
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&region.front());
    missing.value = undefinedLike(present.value);
  };
  complete(first, second, branches.op.getThenRegion());
  complete(second, first, branches.op.getElseRegion());

  Outcome outcome;
  outcome.isReturn = first.isReturn || second.isReturn;
  outcome.range = first.isReturn ? first.range : second.range;
  JoinedValue joined;
  if (frame().isEntry || isStopped) {
    joined = JoinedValue{LangValue::none(), {LangValue::none()}, {-1}};
  } else if (auto mismatch = join(branches, first.value, second.value, place, joined)) {
    Diagnostic &diagnostic =
        emit.error(second.range.isValid() ? second.range : place, fmt::format("Return type mismatch: {}", *mismatch));
    if (first.range.isValid())
      diagnostic.note(first.range, "the other return is here");
    joined = JoinedValue{LangValue::poison(), {LangValue::poison()}, {-1}};
  }
  scf::IfOp op = finishBranches(branches);
  outcome.value = resolve(joined, op, branches);
  return outcome;
}

} // namespace ditron::frontend
