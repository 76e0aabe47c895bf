//===- Loops.cpp - for and while ---------------------------------------------------------------------------------------===//
//
// tl.static_range unrolls at compile time; range and tl.range become scf.for, while becomes scf.while. A run-time loop
// carries every variable that is live before it and assigned in it; the set comes from the
// syntax, so the body is executed once.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Vectors.h"

#include "ditron/dialect/tile/Tile.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace scf = mlir::scf;
namespace {

void collectNames(const ast::Expr *target, llvm::SetVector<llvm::StringRef> &names) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target))
    names.insert(name->id);
  else if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target))
    collectNames(subscript->value, names);
  else if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(target))
    collectNames(attribute->value, names);
  else if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    for (const ast::Expr *each : tuple->elements)
      collectNames(each, names);
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    for (const ast::Expr *each : list->elements)
      collectNames(each, names);
}

/// Every name that a part of the tree may assign, in order of appearance.
llvm::SetVector<llvm::StringRef> assignedNames(llvm::ArrayRef<const ast::Node *> parts) {
  llvm::SetVector<llvm::StringRef> names;
  for (const ast::Node *part : parts)
    ast::walk(part, [&](const ast::Node *node) {
      if (const auto *assign = llvm::dyn_cast<ast::Assign>(node))
        for (const ast::Expr *target : assign->targets)
          collectNames(target, names);
      else if (const auto *augmented = llvm::dyn_cast<ast::AugAssign>(node))
        collectNames(augmented->target, names);
      else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(node))
        collectNames(annotated->target, names);
      else if (const auto *walrus = llvm::dyn_cast<ast::NamedExpr>(node))
        names.insert(walrus->target.text);
      else if (const auto *loop = llvm::dyn_cast<ast::For>(node))
        collectNames(loop->target, names);
      else if (const auto *with = llvm::dyn_cast<ast::With>(node))
        for (const ast::WithItem &item : with->items)
          if (item.target)
            collectNames(item.target, names);
      return true;
    });
  return names;
}

/// True if the statements of a loop's body mention a break of this loop.
bool containsBreak(ast::StmtList statements) {
  bool found = false;
  for (const ast::Stmt *statement : statements)
    ast::walk(statement, [&](const ast::Node *node) {
      found |= llvm::isa<ast::Break>(node);
      return !found && !llvm::isa<ast::For, ast::While, ast::FunctionDef, ast::Expr>(node);
    });
  return found;
}

/// True if the function reads the name after a place, or before it when a loop around leads back there. Other loops over
/// the same name give it their own values.
bool isReadAfter(const ast::Node *root, llvm::StringRef name, SourceRange place, bool isRepeated) {
  bool found = false;
  ast::walk(root, [&](const ast::Node *node) {
    const auto *loop = llvm::dyn_cast<ast::For>(node);
    const auto *variable = loop ? llvm::dyn_cast<ast::Name>(loop->target) : nullptr;
    bool isAround = node->range.begin <= place.begin && place.end <= node->range.end;
    if (variable && variable->id == name && !isAround) {
      found |= isReadAfter(loop->iterable, name, place, isRepeated);
      return false;
    }
    const auto *assign = llvm::dyn_cast<ast::Assign>(node);
    if (assign && assign->targets.size() == 1 && llvm::isa<ast::Name>(assign->targets.front())) {
      found |= isReadAfter(assign->value, name, place, isRepeated);
      return false;
    }
    if (const auto *use = llvm::dyn_cast<ast::Name>(node))
      found |= use->id == name && (use->range.begin >= place.end || (isRepeated && use->range.begin < place.begin));
    return !found;
  });
  return found;
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Carried variables
//===------------------------------------------------------------------------------------------------------------------===//

Evaluator::CarriedSet Evaluator::findCarried(llvm::ArrayRef<const ast::Node *> parts, llvm::StringRef loopVariable) {
  CarriedSet carried;
  for (llvm::StringRef name : assignedNames(parts)) {
    auto it = frame().locals.find(name);
    if (it == frame().locals.end() || name == loopVariable)
      continue;
    CarriedVariable variable;
    variable.name = name;
    variable.before = it->second;
    // An argument that happens to be specialised to a number is a run-time value as soon as the loop changes it.
    if (!it->second.isConstexpr)
      variable.before.value = decay(variable.before.value, it->second.range);
    llvm::SmallVector<LangValue> leaves;
    flatten(variable.before.value, leaves);
    for (const LangValue &leaf : leaves) {
      if (!leaf.isTensor())
        continue;
      variable.slots.push_back(carried.inits.size());
      carried.inits.push_back(leaf.ir());
      carried.types.push_back(leaf.type());
    }
    carried.variables.push_back(std::move(variable));
  }
  return carried;
}

void Evaluator::bindCarried(const CarriedSet &carried, mlir::ValueRange values) {
  for (const CarriedVariable &variable : carried.variables) {
    llvm::SmallVector<LangValue> leaves;
    flatten(variable.before.value, leaves);
    unsigned next = 0;
    for (LangValue &leaf : leaves) {
      if (!leaf.isTensor())
        continue;
      unsigned slot = variable.slots[next++];
      leaf = LangValue::tensor(values[slot], carried.types[slot]);
    }
    llvm::ArrayRef<LangValue> rest = leaves;
    Variable inside = variable.before;
    inside.value = unflatten(variable.before.value, rest);
    frame().locals[variable.name] = std::move(inside);
  }
}

llvm::SmallVector<mlir::Value> Evaluator::collectCarried(CarriedSet &carried, mlir::ValueRange current,
                                                        SourceRange range) {
  llvm::SmallVector<mlir::Value> yields(current.begin(), current.end());
  for (CarriedVariable &variable : carried.variables) {
    auto it = frame().locals.find(variable.name);
    auto reject = [&](std::string before, std::string after, SourceRange place) {
      emit.error(place, fmt::format("Loop-carried variable {} has initial type {} but is re-assigned to {} in loop",
                                    variable.name.str(), before, after))
          .note(variable.before.range, "its value before the loop comes from here")
          .hint("a variable that changes in a run-time loop must keep its type");
      variable.before.value = LangValue::poison();
      variable.slots.clear();
    };
    if (it == frame().locals.end())
      continue; // hidden by a branch, which was reported
    const Variable &after = it->second;
    if (after.value.isPoison() || variable.before.value.isPoison()) {
      variable.before.value = LangValue::poison();
      variable.slots.clear();
      continue;
    }
    SourceRange place = after.range.isValid() && after.range != variable.before.range ? after.range : range;
    if (!sameStructure(variable.before.value, after.value)) {
      auto [old, now] = describeDifference(variable.before.value, after.value);
      reject(old, now, place);
      continue;
    }
    llvm::SmallVector<LangValue> old, now;
    flatten(variable.before.value, old);
    flatten(after.value, now);
    unsigned next = 0;
    for (auto [x, y] : llvm::zip(old, now)) {
      if (!x.isTensor()) {
        if (!x.identical(y) && !y.isPoison()) {
          reject(x.describe(), y.describe(), place);
          break;
        }
        continue;
      }
      if (y.isPoison()) { // reported where it arose
        variable.before.value = LangValue::poison();
        variable.slots.clear();
        break;
      }
      LangValue value = y.isLiteral() ? emit.toTensor(y, place) : y;
      if (!value.isTensor() || value.type() != x.type()) {
        reject(x.type().str(), value.isTensor() ? value.type().str() : y.describe(), place);
        break;
      }
      yields[variable.slots[next++]] = value.ir();
    }
  }
  return yields;
}

void Evaluator::leaveLoop(const CarriedSet &carried, Scope before, mlir::ValueRange results, SourceRange range) {
  for (auto &[name, variable] : frame().locals)
    if (before.find(name) == before.end())
      frame().hidden[name] = {range, "it is assigned only inside of this loop"};
  Scope inside = std::exchange(frame().locals, std::move(before));
  CarriedSet visible = carried;
  // A carried variable's message should point at the assignment in the loop from now on.
  for (CarriedVariable &variable : visible.variables)
    if (auto it = inside.find(variable.name); it != inside.end())
      variable.before.isDecayed &= it->second.isDecayed;
  bindCarried(visible, results);
}

//===------------------------------------------------------------------------------------------------------------------===//
// for
//===------------------------------------------------------------------------------------------------------------------===//

void Evaluator::executeFor(const ast::For *statement) {
  if (statement->isAsync || !statement->orelse.empty()) {
    emit.error(statement->headerRange, statement->isAsync ? "'async for' is not part of the kernel language"
                                                          : "'for' with 'else' is not part of the kernel language");
    return;
  }
  LangValue iterable = evaluate(statement->iterable);
  if (iterable.isPoison())
    return;
  const auto *range = iterable.getIf<std::shared_ptr<const RangeValue>>();
  if (isVector(iterable)) {
    if (auto elements = elementsOf(iterable, statement->iterable->range))
      unroll(statement, *elements);
    return;
  }
  if (!range) {
    emit.error(
        statement->iterable->range,
        fmt::format("a for loop runs over range, tl.range or tl.static_range, not over {}", iterable.describe()));
    return;
  }
  if (!llvm::isa<ast::Name>(statement->target)) {
    emit.error(statement->target->range, "the variable of a for loop must be a name");
    return;
  }
  if ((*range)->kind != RangeValue::Kind::StaticRange)
    executeRunTimeFor(statement, **range);
  else if (auto elements = elementsOf(iterable, statement->iterable->range))
    unroll(statement, *elements);
}

void Evaluator::unroll(const ast::For *statement, llvm::ArrayRef<LangValue> elements) {
  const auto *name = llvm::dyn_cast<ast::Name>(statement->target);
  LoopExits outer = enterExits();
  auto round = [&](const LangValue &element) {
    if (name) {
      Variable variable;
      variable.value = element;
      variable.range = name->range;
      variable.depth = frame().depth;
      frame().locals[name->id] = std::move(variable);
      frame().hidden.erase(name->id);
    } else {
      assignTarget(statement->target, element);
    }
    setExitMark("continue", LangValue::boolean(false));
    ++frame().loops;
    executeBlock(statement->body);
    --frame().loops;
  };
  for (const LangValue &element : elements) {
    LangValue ended = exitMark("break");
    if (ended.isTensor()) {
      setExitMark("continue", LangValue::boolean(false));
      executeUnless(ended, statement->headerRange, /*leavesRound=*/false, [&] { round(element); });
    } else if (ended.isConstant() && !ended.constant().isTrue()) {
      round(element);
    }
    if (isStopped)
      break;
  }
  restoreExits(std::move(outer));
}

/// The options of tl.range, for the passes that follow.
static void attachOptions(scf::ForOp loop, const RangeValue &range) {
  mlir::OpBuilder builder(loop);
  auto attach = [&](llvm::StringRef name, mlir::Attribute attribute) { loop->setAttr(name, attribute); };
  if (range.numStages)
    attach("tile.num_stages", builder.getI32IntegerAttr(*range.numStages));
  if (range.unrollFactor)
    attach("tile.loop_unroll_factor", builder.getI32IntegerAttr(*range.unrollFactor));
  if (range.flatten)
    attach("tile.flatten", builder.getUnitAttr());
  if (range.warpSpecialize)
    attach("tile.warp_specialize", builder.getUnitAttr());
  if (range.clusterBlocks != 1)
    attach("tile.cluster_blocks", builder.getI32IntegerAttr(range.clusterBlocks));
  if (range.disallowAccMultiBuffer)
    attach("tile.disallow_acc_multi_buffer", builder.getUnitAttr());
}

bool Evaluator::makeLoopBounds(LangValue &lower, LangValue &upper, LangValue &step, SourceRange place) {
  LangValue *bounds[] = {&lower, &upper, &step};
  for (LangValue *bound : bounds)
    *bound = emit.toTensor(*bound, place);
  if (lower.isPoison() || upper.isPoison() || step.isPoison())
    return false;
  auto type = emit.promote(lower.type(), upper.type(), ArithmeticKind::Plain, place);
  if (type)
    type = emit.promote(*type, step.type(), ArithmeticKind::Plain, place);
  if (!type)
    return false;
  for (LangValue *bound : bounds)
    *bound = emit.cast(*bound, *type, place);
  return true;
}

/// A negative compile-time step runs the loop upwards and counts the value down; whether it is one.
static bool turnUpwards(Emitter &emit, const RangeValue &range, LangValue &lower, LangValue &upper, LangValue &step) {
  const bool isReversed = step.isConstant() && step.constant().getInt().isNegative();
  if (isReversed) {
    std::swap(lower, upper);
    step = emit.unary(UnaryOp::USub, step, range.stepRange);
  }
  return isReversed;
}

/// A loop without rounds leaves its variable as it was, if it was an integer.
static LangValue valueWithoutRounds(Emitter &emit, const LangValue &before, const LangValue &start, SourceRange place) {
  const bool isInt = before.isTensor() && !before.type().isBlock() && before.type().isInt();
  return isInt ? emit.cast(before, start.type(), place) : start;
}

static void bindLoopVariable(Frame &frame, const ast::Name *target, LangValue value, unsigned depth) {
  Variable variable;
  variable.value = std::move(value);
  variable.range = target->range;
  variable.depth = depth;
  frame.locals[target->id] = std::move(variable);
  frame.hidden.erase(target->id);
}

void Evaluator::executeRunTimeFor(const ast::For *statement, const RangeValue &range) {
  Emitter::At at(emit, statement->headerRange);
  SourceRange place = statement->headerRange;
  const auto *target = llvm::cast<ast::Name>(statement->target);

  LangValue lower = range.start, upper = range.stop, step = range.step;
  const bool isReversed = turnUpwards(emit, range, lower, upper, step);
  if (!makeLoopBounds(lower, upper, step, place))
    return;
  const LangType type = lower.type();

  llvm::SmallVector<const ast::Node *> parts(statement->body.begin(), statement->body.end());
  CarriedSet carried = findCarried(parts, target->id);
  // The loop variable keeps its last value after the loop; it is carried only if somebody asks for it.
  bool keepsVariable =
      frame().function && isReadAfter(frame().function, target->id, statement->range, frame().loops > 0);
  auto previous = frame().locals.find(target->id);
  llvm::SmallVector<mlir::Value> inits = carried.inits;
  if (keepsVariable) {
    const LangValue before = previous != frame().locals.end() ? previous->second.value : LangValue::poison();
    inits.push_back(valueWithoutRounds(emit, before, isReversed ? upper : lower, place).ir());
  }

  auto loop = scf::ForOp::create(emit.builder, emit.location(), lower.ir(), upper.ir(), step.ir(), inits);
  mlir::Block *body = loop.getBody();
  if (!body->empty())
    body->back().erase();
  attachOptions(loop, range);

  Scope before = frame().locals;
  mlir::Value mark; // Of a break that may be taken.
  {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(body);
    LangValue induction = LangValue::tensor(loop.getInductionVar(), type);
    if (isReversed)
      induction = emit.binary(BinaryOp::Sub, upper, emit.binary(BinaryOp::Sub, induction, lower, place), place);
    bindCarried(carried, loop.getRegionIterArgs().take_front(carried.inits.size()));
    bindLoopVariable(frame(), target, induction, frame().depth + 1);
    LoopExits outer = enterExits();
    ++frame().depth;
    ++frame().loops;
    executeBlock(statement->body);
    --frame().loops;
    --frame().depth;
    emit.builder.setInsertionPointToEnd(body);
    LangValue ended = exitMark("break");
    restoreExits(std::move(outer));
    auto yields = collectCarried(carried, loop.getRegionIterArgs().take_front(carried.inits.size()), statement->range);
    if (keepsVariable)
      yields.push_back(induction.ir());
    mark = runTimeMark(ended);
    scf::YieldOp::create(emit.builder, emit.location(), yields);
  }
  mlir::ResultRange results = mark ? addBreak(loop, mark)->getResults() : loop.getResults();
  leaveLoop(carried, std::move(before), results.take_front(carried.inits.size()), place);
  if (keepsVariable)
    bindLoopVariable(frame(), target, LangValue::tensor(results[carried.inits.size()], type), frame().depth);
}

//===------------------------------------------------------------------------------------------------------------------===//
// while
//===------------------------------------------------------------------------------------------------------------------===//

void Evaluator::executeWhile(const ast::While *statement) {
  if (!statement->orelse.empty()) {
    emit.error(statement->condition->range, "'while' with 'else' is not part of the kernel language");
    return;
  }
  SourceRange place = statement->condition->range;
  Emitter::At at(emit, place);
  llvm::SmallVector<const ast::Node *> parts(statement->body.begin(), statement->body.end());
  parts.push_back(statement->condition);
  CarriedSet carried = findCarried(parts, "");
  llvm::SmallVector<mlir::Type> types;
  for (const LangType &type : carried.types)
    types.push_back(emit.ir(type));
  llvm::SmallVector<mlir::Location> locations(types.size(), emit.location());
  auto loop = scf::WhileOp::create(emit.builder, emit.location(), types, carried.inits);
  Scope before = frame().locals;
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  ++frame().depth;
  ++frame().loops;

  mlir::Block *header = emit.builder.createBlock(&loop.getBefore(), {}, types, locations);
  bindCarried(carried, header->getArguments());
  LangValue condition = evaluateCondition(statement->condition);
  if (condition.isConstant()) {
    // Nothing changes it, so the loop never ends or never starts; with break, `while True` is a way to write loops.
    if (!containsBreak(statement->body) && condition.constant().isTrue())
      emit.error(place, "the condition of a while loop must be a run-time int1, but this one is always true")
          .hint("leave the loop with break, or make the condition depend on a variable");
    condition = emit.constantOf(condition.constant(), ScalarKind::Int1);
  }
  if (condition.isPoison()) // keeps the unfinished operation well-formed; nothing of it survives the error
    condition = emit.constantOf(ConstValue::boolean(false), ScalarKind::Int1);
  auto forwarded = collectCarried(carried, header->getArguments(), place);
  scf::ConditionOp::create(emit.builder, emit.location(), condition.ir(), forwarded);

  mlir::Block *body = emit.builder.createBlock(&loop.getAfter(), {}, types, locations);
  frame().locals = before;
  bindCarried(carried, body->getArguments());
  LoopExits outer = enterExits();
  executeBlock(statement->body);
  emit.builder.setInsertionPointToEnd(body);
  mlir::Value mark = runTimeMark(exitMark("break"));
  restoreExits(std::move(outer));
  auto yields = collectCarried(carried, body->getArguments(), statement->range);
  scf::YieldOp::create(emit.builder, emit.location(), yields);
  if (mlir::wouldOpBeTriviallyDead(loop)) {
    emit.builder.setInsertionPointToStart(body);
    emit.create<tile::KeepLoopOp>();
  }

  --frame().loops;
  --frame().depth;
  mlir::ResultRange results = mark ? addBreak(loop, mark)->getResults() : loop.getResults();
  leaveLoop(carried, std::move(before), results.take_front(carried.inits.size()), place);
}

} // namespace ditron::frontend
