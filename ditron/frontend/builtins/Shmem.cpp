//===- Shmem.cpp - OpenSHMEM --------------------------------------------------------------------------------------===//
//
// Handlers of libshmem_device: puts, gets, signals, order, teams, collectives. @scope in
// libshmem_device.pyi says which threads carry a function out together.
// docs/openshmem.md says what each promises.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

dist::ExecScope scopeOf(const BuiltinCall &call) {
  switch (call.builtin->scope) {
  case BuiltinScope::Thread: return dist::ExecScope::Thread;
  case BuiltinScope::Warp: return dist::ExecScope::Warp;
  case BuiltinScope::Block: return dist::ExecScope::Block;
  }
  return dist::ExecScope::Thread;
}

/// The numbers that NVSHMEM and rocSHMEM have for setting and adding differ from each other, so both are understood.
std::optional<dist::SignalOp> signalOp(Evaluator &evaluator, BuiltinCall &call, const Arg<int64_t> &number) {
  switch (*number) {
  case 9:
  case 0:
    return dist::SignalOp::Set;
  case 10:
  case 1:
    return dist::SignalOp::Add;
  default: reject(evaluator, call, number, "NVSHMEM_SIGNAL_SET (9) or NVSHMEM_SIGNAL_ADD (10)"); return std::nullopt;
  }
}

/// A signal pointer that may be written.
bool checkSignal(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  return checkSignalPointer(evaluator, call, argument) && checkWritablePointer(evaluator, call, argument);
}

/// The team of a call; constants must be among the four that there are.
LangValue teamOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  const LangValue &team = *argument.given;
  if (team.isLiteral())
    if (std::optional<int64_t> number = team.constant().toInt64(); number && (*number < 0 || *number > 3))
      return reject(
          evaluator, call, argument,
          "NVSHMEM_TEAM_WORLD (0), NVSHMEM_TEAM_SHARED (1), NVSHMEMX_TEAM_NODE (2) or NVSHMEMX_TEAM_SAME_MYPE_NODE (3)");
  return scalarInt(evaluator, call, argument, ScalarKind::Int32);
}

/// What puts and gets have in common.
struct Copy {
  mlir::Value dest, src, bytes, pe;
};
std::optional<Copy> copyOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &dest, const ValueArg &src,
                           const ValueArg &count, const ValueArg &pe, int64_t bytesEach = 1) {
  if (!checkWritablePointer(evaluator, call, dest) || !checkScalarPointer(evaluator, call, src))
    return std::nullopt;
  LangValue bytes = scalarInt(evaluator, call, count, ScalarKind::Int64);
  LangValue there = scalarInt(evaluator, call, pe, ScalarKind::Int32);
  if (bytes.isPoison() || there.isPoison())
    return std::nullopt;
  Emitter &emit = evaluator.emit;
  mlir::Value size = bytes.ir();
  if (bytesEach != 1)
    size = emit.create<mlir::arith::MulIOp>(size, emit.integerConstant(bytesEach, emit.builder.getI64Type()));
  return Copy{dest->ir(), src->ir(), size, there.ir()};
}

LangValue putWithSignal(Evaluator &evaluator, BuiltinCall &call, bool isNonblocking, const std::optional<Copy> &copy,
                        const ValueArg &address, const ValueArg &signal, const Arg<int64_t> &sigOp) {
  if (!copy || !checkSignal(evaluator, call, address))
    return LangValue::poison();
  LangValue value = scalarInt(evaluator, call, signal, address->type().pointee());
  std::optional<dist::SignalOp> op = signalOp(evaluator, call, sigOp);
  if (value.isPoison() || !op)
    return LangValue::poison();
  evaluator.emit.create<dist::PutSignalOp>(scopeOf(call), *op, isNonblocking, copy->dest, copy->src, copy->bytes, address->ir(),
                                          value.ir(), copy->pe);
  return LangValue::none();
}

/// Waits until a signal word compares true; gives the word.
LangValue waitForSignal(Evaluator &evaluator, BuiltinCall &call, dist::Compare compare, const ValueArg &signal,
                        const ValueArg &wanted) {
  Emitter &emit = evaluator.emit;
  LangValue value = scalarInt(evaluator, call, wanted, signal->type().pointee());
  if (value.isPoison())
    return value;
  mlir::Value seen = emit.create<dist::SignalWaitUntilOp>(value.ir().getType(), compare, signal->ir(), value.ir());
  return emit.wrap(seen, signal->type().pointee());
}

/// A count of elements of what dest points to, in bytes.
mlir::Value bytesOf(Evaluator &evaluator, bool inBytes, const ValueArg &dest, const LangValue &count) {
  if (inBytes)
    return count.ir();
  Emitter &emit = evaluator.emit;
  const LangType element = dest->type().pointee();
  const int64_t size = element.isPointer() ? 8 : std::max(1u, element.bitWidth() / 8);
  return emit.create<mlir::arith::MulIOp>(count.ir(), emit.integerConstant(size, emit.builder.getI64Type()));
}

bool checkCollective(Evaluator &evaluator, BuiltinCall &call, bool inBytes, const ValueArg &dest, const ValueArg &src) {
  if (!checkWritablePointer(evaluator, call, dest) || !checkScalarPointer(evaluator, call, src))
    return false;
  const LangType element = dest->type().pointee();
  if (inBytes || element == src->type().pointee())
    return true;
  reject(evaluator, call, src, fmt::format("a pointer to {}, as dest is", element.str()));
  return false;
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Puts, gets, signals
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shmemPut(Evaluator &evaluator, BuiltinCall &call, bool isNonblocking, ValueArg dest, ValueArg src, ValueArg bytes,
                   ValueArg pe, ValueArg qpId) {
  std::optional<Copy> copy = copyOf(evaluator, call, dest, src, bytes, pe);
  if (!copy)
    return LangValue::poison();
  evaluator.emit.create<dist::PutOp>(scopeOf(call), isNonblocking, copy->dest, copy->src, copy->bytes, copy->pe);
  return LangValue::none();
}

LangValue shmemGet(Evaluator &evaluator, BuiltinCall &call, bool isNonblocking, ValueArg dest, ValueArg src, ValueArg bytes,
                   ValueArg pe, ValueArg qpId) {
  std::optional<Copy> copy = copyOf(evaluator, call, dest, src, bytes, pe);
  if (!copy)
    return LangValue::poison();
  evaluator.emit.create<dist::GetOp>(scopeOf(call), isNonblocking, copy->dest, copy->src, copy->bytes, copy->pe);
  return LangValue::none();
}

LangValue shmemPutSignal(Evaluator &evaluator, BuiltinCall &call, bool isNonblocking, ValueArg dest, ValueArg src, ValueArg bytes,
                         ValueArg sigAddr, ValueArg signal, Arg<int64_t> sigOp, ValueArg pe, ValueArg qpId) {
  return putWithSignal(evaluator, call, isNonblocking, copyOf(evaluator, call, dest, src, bytes, pe), sigAddr, signal, sigOp);
}

LangValue ulongPutSignal(Evaluator &evaluator, BuiltinCall &call, ValueArg dest, ValueArg src, ValueArg nelems, ValueArg sigAddr,
                         ValueArg signal, Arg<int64_t> sigOp, ValueArg pe) {
  return putWithSignal(evaluator, call, /*isNonblocking=*/false, copyOf(evaluator, call, dest, src, nelems, pe, /*bytesEach=*/8),
                       sigAddr, signal, sigOp);
}

/// int_p: one number, by each thread.
LangValue shmemPutValue(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg valueArg, ValueArg peArg,
                        ValueArg qpId) {
  Emitter &emit = evaluator.emit;
  if (!checkWritablePointer(evaluator, call, pointer))
    return LangValue::poison();
  LangType element = pointer->type().pointee();
  if (!element.isInt() || element.bitWidth() != 32)
    return reject(evaluator, call, pointer, "a pointer to 32 bit integers");
  LangValue value = scalarInt(evaluator, call, valueArg, element);
  LangValue pe = scalarInt(evaluator, call, peArg, ScalarKind::Int32);
  if (value.isPoison() || pe.isPoison())
    return LangValue::poison();
  mlir::Value there = emit.create<dist::SymmAtOp>(pointer->ir().getType(), pointer->ir(), pe.ir());
  emit.create<dist::IntrinsicOp>(mlir::TypeRange(), "shmem_value", mlir::ValueRange{there, value.ir(), pe.ir()},
                                 mlir::DictionaryAttr());
  return LangValue::none();
}

LangValue shmemSignalOp(Evaluator &evaluator, BuiltinCall &call, ValueArg sigAddr, ValueArg signal, Arg<int64_t> sigOp,
                        ValueArg peArg) {
  if (!checkSignal(evaluator, call, sigAddr))
    return LangValue::poison();
  LangValue value = scalarInt(evaluator, call, signal, sigAddr->type().pointee());
  LangValue pe = scalarInt(evaluator, call, peArg, ScalarKind::Int32);
  std::optional<dist::SignalOp> op = signalOp(evaluator, call, sigOp);
  if (value.isPoison() || pe.isPoison() || !op)
    return LangValue::poison();
  evaluator.emit.create<dist::SignalOpOp>(*op, sigAddr->ir(), value.ir(), pe.ir());
  return LangValue::none();
}

LangValue shmemWaitUntil(Evaluator &evaluator, BuiltinCall &call, ValueArg sigAddr, Arg<int64_t> cmp, ValueArg val) {
  if (!checkSignalPointer(evaluator, call, sigAddr))
    return LangValue::poison();
  if (*cmp < 0 || *cmp > 5)
    return reject(evaluator, call, cmp, "NVSHMEM_CMP_EQ, _NE, _GT, _LE, _LT or _GE (0 to 5)");
  return waitForSignal(evaluator, call, static_cast<dist::Compare>(*cmp), sigAddr, val);
}

LangValue uint64WaitUntilEquals(Evaluator &evaluator, BuiltinCall &call, ValueArg addr, ValueArg val) {
  if (!checkSignalPointer(evaluator, call, addr))
    return LangValue::poison();
  LangValue seen = waitForSignal(evaluator, call, dist::Compare::EQ, addr, val);
  return seen.isPoison() ? seen : LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Order and meetings
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shmemOrder(Evaluator &evaluator, BuiltinCall &call, dist::OrderKind kind) {
  evaluator.emit.create<dist::OrderOp>(kind);
  return LangValue::none();
}

LangValue quietPe(Evaluator &evaluator, BuiltinCall &call, ValueArg pe) {
  return shmemOrder(evaluator, call, dist::OrderKind::Quiet);
}

/// barrier_all*, sync_all*.
LangValue shmemBarrierAll(Evaluator &evaluator, BuiltinCall &call, bool isSync) {
  Emitter &emit = evaluator.emit;
  mlir::Value world = emit.integerConstant(0, emit.builder.getI32Type());
  emit.create<dist::TeamBarrierOp>(scopeOf(call), isSync, world);
  return LangValue::none();
}

/// barrier*(team), team_sync_*(team).
LangValue shmemBarrier(Evaluator &evaluator, BuiltinCall &call, bool isSync, ValueArg team) {
  LangValue number = teamOf(evaluator, call, team);
  if (number.isPoison())
    return number;
  evaluator.emit.create<dist::TeamBarrierOp>(scopeOf(call), isSync, number.ir());
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Teams and collectives
//===------------------------------------------------------------------------------------------------------------------===//

LangValue myPe(Evaluator &evaluator, BuiltinCall &call) {
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<dist::RankOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue nPes(Evaluator &evaluator, BuiltinCall &call) {
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<dist::NumRanksOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue teamMyPe(Evaluator &evaluator, BuiltinCall &call, ValueArg team) {
  Emitter &emit = evaluator.emit;
  LangValue number = teamOf(evaluator, call, team);
  return number.isPoison()
             ? number
             : emit.wrap(emit.create<dist::TeamRankOp>(emit.builder.getI32Type(), number.ir()), ScalarKind::Int32);
}

LangValue teamNPes(Evaluator &evaluator, BuiltinCall &call, ValueArg team) {
  Emitter &emit = evaluator.emit;
  LangValue number = teamOf(evaluator, call, team);
  return number.isPoison()
             ? number
             : emit.wrap(emit.create<dist::TeamSizeOp>(emit.builder.getI32Type(), number.ir()), ScalarKind::Int32);
}

LangValue shmemTeamTranslate(Evaluator &evaluator, BuiltinCall &call, ValueArg srcTeam, ValueArg peArg, ValueArg dstTeam) {
  Emitter &emit = evaluator.emit;
  LangValue from = teamOf(evaluator, call, srcTeam), to = teamOf(evaluator, call, dstTeam);
  LangValue pe = scalarInt(evaluator, call, peArg, ScalarKind::Int32);
  if (from.isPoison() || to.isPoison() || pe.isPoison())
    return LangValue::poison();
  return emit.wrap(emit.create<dist::TeamTranslateOp>(emit.builder.getI32Type(), from.ir(), pe.ir(), to.ir()), ScalarKind::Int32);
}

LangValue shmemRemotePtr(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg peArg) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue pe = scalarInt(evaluator, call, peArg, ScalarKind::Int32);
  if (pe.isPoison())
    return pe;
  mlir::Type type = pointer->ir().getType();
  mlir::Value there = emit.create<dist::SymmAtOp>(type, pointer->ir(), pe.ir());
  mlir::Value isReached = emit.create<dist::ReachesOp>(emit.builder.getI1Type(), pe.ir());
  mlir::Value zero = emit.create<mlir::arith::ConstantOp>(emit.builder.getI64IntegerAttr(0));
  mlir::Value null = emit.create<tile::IntToPtrOp>(type, zero);
  return emit.wrap(emit.create<mlir::arith::SelectOp>(isReached, there, null), pointer->type());
}

LangValue shmemMulticastPtr(Evaluator &evaluator, BuiltinCall &call, ValueArg teamArg, ValueArg pointer) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue team = teamOf(evaluator, call, teamArg);
  if (team.isPoison())
    return team;
  return emit.wrap(emit.create<dist::MulticastPtrOp>(pointer->ir().getType(), pointer->ir(), team.ir()), pointer->type());
}

/// Sizes are bytes in the forms with `mem`, else elements.
LangValue shmemBroadcast(Evaluator &evaluator, BuiltinCall &call, bool inBytes, ValueArg team, ValueArg dest, ValueArg src,
                         ValueArg nelems, ValueArg root) {
  if (!checkCollective(evaluator, call, inBytes, dest, src))
    return LangValue::poison();
  LangValue number = teamOf(evaluator, call, team);
  LangValue count = scalarInt(evaluator, call, nelems, ScalarKind::Int64);
  LangValue from = scalarInt(evaluator, call, root, ScalarKind::Int32);
  if (number.isPoison() || count.isPoison() || from.isPoison())
    return LangValue::poison();
  mlir::Value bytes = bytesOf(evaluator, inBytes, dest, count);
  evaluator.emit.create<dist::CollectiveOp>(dist::CollectiveKind::Broadcast, scopeOf(call), number.ir(), dest->ir(), src->ir(),
                                           bytes, from.ir());
  return LangValue::none();
}

LangValue shmemCollect(Evaluator &evaluator, BuiltinCall &call, bool inBytes, ValueArg team, ValueArg dest, ValueArg src,
                       ValueArg nelems) {
  if (!checkCollective(evaluator, call, inBytes, dest, src))
    return LangValue::poison();
  Emitter &emit = evaluator.emit;
  LangValue number = teamOf(evaluator, call, team);
  LangValue count = scalarInt(evaluator, call, nelems, ScalarKind::Int64);
  LangValue root = emit.constantOf(ConstValue::integer(0), ScalarKind::Int32);
  if (number.isPoison() || count.isPoison())
    return LangValue::poison();
  mlir::Value bytes = bytesOf(evaluator, inBytes, dest, count);
  emit.create<dist::CollectiveOp>(dist::CollectiveKind::Collect, scopeOf(call), number.ir(), dest->ir(), src->ir(), bytes,
                                  root.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
