//===- LoopExits.cpp - break and continue ---------------------------------------------------------------------------------===//
//
// Only structured control flow exists in the IR, so leaving a round of a loop is a mark that the following statements ask
// for: they are put into an scf.if. A break at compile time costs nothing. A loop that may end early at run time becomes
// an scf.while that carries the mark; options of tl.range do not reach such a loop.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace arith = mlir::arith;
namespace scf = mlir::scf;

Evaluator::LoopExits Evaluator::enterExits() {
  LoopExits outer;
  auto take = [&](llvm::StringRef keyword, std::optional<Variable> &saved) {
    if (auto it = frame().locals.find(keyword); it != frame().locals.end())
      saved = it->second;
    setExitMark(keyword, LangValue::boolean(false));
  };
  take("continue", outer.round);
  take("break", outer.loop);
  return outer;
}

void Evaluator::restoreExits(LoopExits outer) {
  auto give = [&](llvm::StringRef keyword, std::optional<Variable> &saved) {
    if (saved)
      frame().locals[keyword] = std::move(*saved);
    else
      frame().locals.erase(keyword);
  };
  give("continue", outer.round);
  give("break", outer.loop);
}

LangValue Evaluator::exitMark(llvm::StringRef keyword) {
  auto it = frame().locals.find(keyword);
  return it == frame().locals.end() ? LangValue::boolean(false) : it->second.value;
}

void Evaluator::setExitMark(llvm::StringRef keyword, LangValue value) {
  Variable mark;
  mark.value = std::move(value);
  mark.depth = frame().depth;
  frame().locals[keyword] = std::move(mark);
}

bool Evaluator::isLeft(const Scope &scope) const {
  auto it = scope.find("continue");
  return it != scope.end() && it->second.value.isConstant() && it->second.value.constant().isTrue();
}

void Evaluator::executeExit(const ast::Stmt *statement) {
  bool isBreak = llvm::isa<ast::Break>(statement);
  if (frame().loops == 0) {
    emit.error(statement->range, fmt::format("'{}' outside of a loop", isBreak ? "break" : "continue"));
    return;
  }
  setExitMark("continue", LangValue::boolean(true));
  if (isBreak)
    setExitMark("break", LangValue::boolean(true));
}

void Evaluator::executeUnless(LangValue mark, SourceRange place, bool leavesRound, llvm::function_ref<void()> body) {
  Emitter::At at(emit, place);
  Branches branches = beginBranches(mark.ir());
  Scope before = frame().locals;
  if (leavesRound)
    setExitMark("continue", LangValue::boolean(true));
  Scope left = std::exchange(frame().locals, before);
  ++frame().depth;
  {
    mlir::OpBuilder::InsertionGuard guard(emit.builder);
    emit.builder.setInsertionPointToEnd(&branches.op.getElseRegion().front());
    // Here the loop goes on for sure.
    setExitMark("continue", LangValue::boolean(false));
    setExitMark("break", LangValue::boolean(false));
    body();
  }
  --frame().depth;
  Scope rest = std::exchange(frame().locals, Scope());
  joinScopes(branches, before, std::move(left), std::move(rest), place);
}

mlir::Value Evaluator::runTimeMark(const LangValue &mark) {
  if (mark.isTensor())
    return mark.ir();
  if (mark.isConstant() && mark.constant().isTrue())
    return emit.constantOf(ConstValue::boolean(true), ScalarKind::Int1).ir();
  return nullptr;
}

namespace {

/// Moves the operations of a block but its terminator to the end of another, whose arguments stand for the old ones.
/// Gives the operands of the terminator.
llvm::SmallVector<mlir::Value> moveBlock(mlir::Block &from, mlir::Block &to, mlir::ValueRange arguments) {
  for (auto [old, now] : llvm::zip_equal(from.getArguments(), arguments))
    old.replaceAllUsesWith(now);
  llvm::SmallVector<mlir::Value> operands(from.getTerminator()->getOperands());
  from.getTerminator()->erase();
  to.getOperations().splice(to.end(), from.getOperations());
  return operands;
}

} // namespace

mlir::Operation *Evaluator::addBreak(scf::ForOp loop, mlir::Value mark) {
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  mlir::OpBuilder &builder = emit.builder;
  builder.setInsertionPoint(loop);
  mlir::Location location = loop.getLoc();
  mlir::Value no = arith::ConstantOp::create(builder, location, builder.getBoolAttr(false));
  mlir::Value yes = arith::ConstantOp::create(builder, location, builder.getBoolAttr(true));
  llvm::SmallVector<mlir::Value> inits(loop.getInitArgs());
  inits.append({loop.getLowerBound(), no});
  llvm::SmallVector<mlir::Type> types(mlir::ValueRange(inits).getTypes());
  llvm::SmallVector<mlir::Location> locations(types.size(), location);
  auto result = scf::WhileOp::create(builder, location, types, inits);

  mlir::Block *header = builder.createBlock(&result.getBefore(), {}, types, locations);
  unsigned own = loop.getNumResults();
  mlir::Value isInside = arith::CmpIOp::create(builder, location, arith::CmpIPredicate::slt, header->getArgument(own),
                                               loop.getUpperBound());
  mlir::Value goesOn = arith::XOrIOp::create(builder, location, header->getArgument(own + 1), yes);
  scf::ConditionOp::create(builder, location, arith::AndIOp::create(builder, location, isInside, goesOn),
                           header->getArguments());

  mlir::Block *body = builder.createBlock(&result.getAfter(), {}, types, locations);
  llvm::SmallVector<mlir::Value> arguments{body->getArgument(own)};
  llvm::append_range(arguments, body->getArguments().take_front(own));
  auto yields = moveBlock(*loop.getBody(), *body, arguments);
  builder.setInsertionPointToEnd(body);
  yields.push_back(arith::AddIOp::create(builder, location, body->getArgument(own), loop.getStep()));
  yields.push_back(mark);
  scf::YieldOp::create(builder, location, yields);
  loop.erase();
  return result;
}

mlir::Operation *Evaluator::addBreak(scf::WhileOp loop, mlir::Value mark) {
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  mlir::OpBuilder &builder = emit.builder;
  builder.setInsertionPoint(loop);
  mlir::Location location = loop.getLoc();
  mlir::Value no = arith::ConstantOp::create(builder, location, builder.getBoolAttr(false));
  llvm::SmallVector<mlir::Value> inits(loop.getInits());
  inits.push_back(no);
  llvm::SmallVector<mlir::Type> types(mlir::ValueRange(inits).getTypes());
  llvm::SmallVector<mlir::Location> locations(types.size(), location);
  auto result = scf::WhileOp::create(builder, location, types, inits);
  unsigned own = loop.getNumResults();

  // After a break the condition is not evaluated again.
  mlir::Block *header = builder.createBlock(&result.getBefore(), {}, types, locations);
  llvm::SmallVector<mlir::Type> answers{builder.getI1Type()};
  answers.append(types.begin(), types.begin() + own);
  auto question = scf::IfOp::create(builder, location, answers, header->getArgument(own), /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
  builder.setInsertionPointToEnd(&question.getThenRegion().front());
  llvm::SmallVector<mlir::Value> stopped{no};
  llvm::append_range(stopped, header->getArguments().take_front(own));
  scf::YieldOp::create(builder, location, stopped);
  mlir::Block &ask = question.getElseRegion().front();
  auto answer = moveBlock(*loop.getBeforeBody(), ask, header->getArguments().take_front(own));
  builder.setInsertionPointToEnd(&ask);
  scf::YieldOp::create(builder, location, answer);
  builder.setInsertionPointToEnd(header);
  llvm::SmallVector<mlir::Value> forwarded(question.getResults().drop_front());
  forwarded.push_back(header->getArgument(own));
  scf::ConditionOp::create(builder, location, question.getResult(0), forwarded);

  mlir::Block *body = builder.createBlock(&result.getAfter(), {}, types, locations);
  auto yields = moveBlock(*loop.getAfterBody(), *body, body->getArguments().take_front(own));
  yields.push_back(mark);
  builder.setInsertionPointToEnd(body);
  scf::YieldOp::create(builder, location, yields);
  loop.erase();
  return result;
}

} // namespace ditron::frontend
