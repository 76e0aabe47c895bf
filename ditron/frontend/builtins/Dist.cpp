//===- Dist.cpp - Ranks and signals ------------------------------------------------------------------------------===//
//
// Handlers of the distributed functions (dl).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BlockPointers.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/builtins/Descriptors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

/// True for the result of a wait, and for what a branch or loop may have made of one. Arguments, constants and the results of
/// other operations order nothing.
bool mayBeToken(mlir::Value value) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
    return !llvm::isa<mlir::FunctionOpInterface>(argument.getOwner()->getParentOp());
  return llvm::isa<dist::WaitOp, mlir::RegionBranchOpInterface>(value.getDefiningOp());
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// World and signals
//===------------------------------------------------------------------------------------------------------------------===//

LangValue rank(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<dist::RankOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue numRanks(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<dist::NumRanksOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue symmAt(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg rankArg) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue rank = scalarInt(evaluator, call, rankArg, ScalarKind::Int32);
  if (rank.isPoison())
    return rank;
  return emit.wrap(emit.create<dist::SymmAtOp>(pointer->ir().getType(), pointer->ir(), rank.ir()), pointer->type());
}

LangValue wait(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg numBarriers, Arg<llvm::StringRef> scopeArg,
               Arg<llvm::StringRef> semantic, ValueArg waitValue, Arg<llvm::StringRef> compareArg) {
  Emitter &emit = evaluator.emit;
  if (!checkSignalPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue count = scalarInt(evaluator, call, numBarriers, ScalarKind::Int32);
  LangValue value = scalarInt(evaluator, call, waitValue, pointer->type().pointee());
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Acquire);
  auto compare = compareOf(evaluator, call, compareArg);
  if (count.isPoison() || value.isPoison() || !scope || !order || !compare)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Acquire && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(semantic.range, fmt::format("dl.wait is 'acquire' or 'relaxed', not '{}'", semantic->str()));
  auto op =
      emit.create<dist::WaitOp>(emit.builder.getI32Type(), pointer->ir(), count.ir(), value.ir(), *scope, *order, *compare);
  if (evaluator.isDiscarded(call.range)) // what follows relies on the block's acquire, and wants no token
    op->setAttr(dist::tokenDroppedAttrName, emit.builder.getUnitAttr());
  return emit.wrap(op.getResult(), ScalarKind::Int32);
}

LangValue consumeToken(Evaluator &evaluator, BuiltinCall &call, ValueArg value, ValueArg token) {
  Emitter &emit = evaluator.emit;
  if (!token->isTensor() || token->type() != LangType(ScalarKind::Int32) || !mayBeToken(token->ir()))
    return reject(evaluator, call, token, "the token of a dl.wait");
  if (value->isDescriptor())
    return consumeDescriptor(emit, value->descriptor(), token->ir());
  if (isBlockPointer(*value))
    return consumeBlockPointer(emit, *value, token->ir());
  if (!value->isTensor())
    return reject(evaluator, call, value, "a run-time scalar, a block, a tensor descriptor or a block pointer");
  return emit.wrap(emit.create<dist::ConsumeTokenOp>(value->ir().getType(), value->ir(), token->ir()), value->type());
}

LangValue notify(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg rankArg, ValueArg signalArg,
                 Arg<llvm::StringRef> sigOp, Arg<llvm::StringRef> commScope) {
  Emitter &emit = evaluator.emit;
  if (!checkSignalPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue rank = scalarInt(evaluator, call, rankArg, ScalarKind::Int32);
  LangValue signal = scalarInt(evaluator, call, signalArg, pointer->type().pointee());
  auto op = signalOpOf(evaluator, call, sigOp);
  auto scope = commScopeOf(evaluator, call, commScope);
  if (rank.isPoison() || signal.isPoison() || !op || !scope)
    return LangValue::poison();
  emit.create<dist::NotifyOp>(pointer->ir(), rank.ir(), signal.ir(), *op, *scope);
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
