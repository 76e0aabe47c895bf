//===- BuiltinsShmem.cpp - OpenSHMEM --------------------------------------------------------------------------------------===//
//
// Handlers of libshmem_device: puts, gets, signals, order, teams, collectives. @scope in
// libshmem_device.pyi says which threads carry a function out together.
// docs/openshmem.md says what each promises.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/BuiltinArguments.h"
#include "ditron/frontend/Importer.h"

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

bool isNonblocking(const BuiltinCall &call) { return call.builtin->name.contains("_nbi"); }

/// The numbers that NVSHMEM and rocSHMEM have for setting and adding differ from each other, so both are understood.
std::optional<dist::SignalOp> signalOp(Importer &importer, BuiltinCall &call) {
  switch (call.integer("sig_op")) {
  case 9:
  case 0:
    return dist::SignalOp::Set;
  case 10:
  case 1:
    return dist::SignalOp::Add;
  default:
    reject(importer, call, "sig_op", "NVSHMEM_SIGNAL_SET (9) or NVSHMEM_SIGNAL_ADD (10)");
    return std::nullopt;
  }
}

/// A signal pointer that may be written.
bool checkSignal(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  return checkSignalPointer(importer, call, name) && checkWritablePointer(importer, call, name);
}

/// The team of a call; constants must be among the four that there are.
LangValue teamOf(Importer &importer, BuiltinCall &call, llvm::StringRef name = "team") {
  const LangValue &team = call[name];
  if (team.isLiteral())
    if (std::optional<int64_t> number = team.constant().toInt64(); number && (*number < 0 || *number > 3))
      return reject(importer, call, name,
                    "NVSHMEM_TEAM_WORLD (0), NVSHMEM_TEAM_SHARED (1), NVSHMEMX_TEAM_NODE (2) or NVSHMEMX_TEAM_SAME_MYPE_NODE (3)");
  return scalarInt(importer, call, name, ScalarKind::Int32);
}

/// What puts and gets have in common.
struct CopyArguments {
  LangValue bytes, pe;
  bool isValid = false;
};
CopyArguments copyArguments(Importer &importer, BuiltinCall &call, llvm::StringRef sizeName = "bytes", int64_t scale = 1) {
  CopyArguments result;
  if (!checkWritablePointer(importer, call, "dest") || !checkScalarPointer(importer, call, "src"))
    return result;
  result.bytes = scalarInt(importer, call, sizeName, ScalarKind::Int64);
  result.pe = scalarInt(importer, call, "pe", ScalarKind::Int32);
  result.isValid = !result.bytes.isPoison() && !result.pe.isPoison();
  if (result.isValid && scale != 1) {
    Emitter &emit = importer.emit;
    mlir::Value factor = emit.integerConstant(scale, emit.builder.getI64Type());
    result.bytes = emit.wrap(emit.create<mlir::arith::MulIOp>(result.bytes.ir(), factor), ScalarKind::Int64);
  }
  return result;
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Puts, gets, signals
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shmemPut(Importer &importer, BuiltinCall &call) {
  CopyArguments copy = copyArguments(importer, call);
  if (!copy.isValid)
    return LangValue::poison();
  importer.emit.create<dist::PutOp>(scopeOf(call), isNonblocking(call), call["dest"].ir(), call["src"].ir(), copy.bytes.ir(),
                                    copy.pe.ir());
  return LangValue::none();
}

LangValue shmemGet(Importer &importer, BuiltinCall &call) {
  CopyArguments copy = copyArguments(importer, call);
  if (!copy.isValid)
    return LangValue::poison();
  importer.emit.create<dist::GetOp>(scopeOf(call), isNonblocking(call), call["dest"].ir(), call["src"].ir(), copy.bytes.ir(),
                                    copy.pe.ir());
  return LangValue::none();
}

LangValue shmemPutSignal(Importer &importer, BuiltinCall &call) {
  const bool isTyped = call.builtin->name == "ulong_put_signal";
  CopyArguments copy = isTyped ? copyArguments(importer, call, "nelems", 8) : copyArguments(importer, call);
  if (!copy.isValid || !checkSignal(importer, call, "sig_addr"))
    return LangValue::poison();
  const LangValue &signal = call["sig_addr"];
  LangValue value = scalarInt(importer, call, "signal", signal.type().pointee());
  std::optional<dist::SignalOp> op = signalOp(importer, call);
  if (value.isPoison() || !op)
    return LangValue::poison();
  importer.emit.create<dist::PutSignalOp>(scopeOf(call), *op, isNonblocking(call), call["dest"].ir(), call["src"].ir(),
                                          copy.bytes.ir(), signal.ir(), value.ir(), copy.pe.ir());
  return LangValue::none();
}

/// int_p: one number, by each thread.
LangValue shmemPutValue(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkWritablePointer(importer, call, "dest"))
    return LangValue::poison();
  const LangValue &pointer = call["dest"];
  LangType element = pointer.type().pointee();
  if (!element.isInt() || element.bitWidth() != 32)
    return reject(importer, call, "dest", "a pointer to 32 bit integers");
  LangValue value = scalarInt(importer, call, "value", element);
  LangValue pe = scalarInt(importer, call, "pe", ScalarKind::Int32);
  if (value.isPoison() || pe.isPoison())
    return LangValue::poison();
  mlir::Value there = emit.create<dist::SymmAtOp>(pointer.ir().getType(), pointer.ir(), pe.ir());
  emit.create<dist::IntrinsicOp>(mlir::TypeRange(), "shmem_value", mlir::ValueRange{there, value.ir(), pe.ir()},
                                 mlir::DictionaryAttr());
  return LangValue::none();
}

LangValue shmemSignalOp(Importer &importer, BuiltinCall &call) {
  if (!checkSignal(importer, call, "sig_addr"))
    return LangValue::poison();
  const LangValue &signal = call["sig_addr"];
  LangValue value = scalarInt(importer, call, "signal", signal.type().pointee());
  LangValue pe = scalarInt(importer, call, "pe", ScalarKind::Int32);
  std::optional<dist::SignalOp> op = signalOp(importer, call);
  if (value.isPoison() || pe.isPoison() || !op)
    return LangValue::poison();
  importer.emit.create<dist::SignalOpOp>(*op, signal.ir(), value.ir(), pe.ir());
  return LangValue::none();
}

LangValue shmemWaitUntil(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const bool isEquals = call.builtin->name == "uint64_wait_until_equals";
  llvm::StringRef pointerName = isEquals ? "addr" : "sig_addr";
  if (!checkSignalPointer(importer, call, pointerName))
    return LangValue::poison();
  const LangValue &signal = call[pointerName];
  dist::Compare compare = dist::Compare::EQ;
  if (!isEquals) {
    const int64_t number = call.integer("cmp");
    if (number < 0 || number > 5)
      return reject(importer, call, "cmp", "NVSHMEM_CMP_EQ, _NE, _GT, _LE, _LT or _GE (0 to 5)");
    compare = static_cast<dist::Compare>(number);
  }
  LangValue value = scalarInt(importer, call, "val", signal.type().pointee());
  if (value.isPoison())
    return value;
  mlir::Value seen = emit.create<dist::SignalWaitUntilOp>(value.ir().getType(), compare, signal.ir(), value.ir());
  return isEquals ? LangValue::none() : emit.wrap(seen, signal.type().pointee());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Order and meetings
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shmemOrder(Importer &importer, BuiltinCall &call) {
  importer.emit.create<dist::OrderOp>(call.builtin->name == "fence" ? dist::OrderKind::Fence : dist::OrderKind::Quiet);
  return LangValue::none();
}

/// barrier_all*, barrier*(team), sync_all*, team_sync_*(team).
LangValue shmemBarrier(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  const bool isSync = name.contains("sync");
  mlir::Value team;
  if (name.contains("_all")) {
    team = emit.integerConstant(0, emit.builder.getI32Type());
  } else {
    LangValue given = teamOf(importer, call);
    if (given.isPoison())
      return given;
    team = given.ir();
  }
  emit.create<dist::TeamBarrierOp>(scopeOf(call), isSync, team);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Teams and collectives
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shmemTeamRank(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  LangValue team = teamOf(importer, call);
  if (team.isPoison())
    return team;
  mlir::Type i32 = emit.builder.getI32Type();
  if (call.builtin->name == "team_n_pes")
    return emit.wrap(emit.create<dist::TeamSizeOp>(i32, team.ir()), ScalarKind::Int32);
  return emit.wrap(emit.create<dist::TeamRankOp>(i32, team.ir()), ScalarKind::Int32);
}

LangValue shmemTeamTranslate(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  LangValue from = teamOf(importer, call, "src_team"), to = teamOf(importer, call, "dst_team");
  LangValue pe = scalarInt(importer, call, "pe", ScalarKind::Int32);
  if (from.isPoison() || to.isPoison() || pe.isPoison())
    return LangValue::poison();
  return emit.wrap(emit.create<dist::TeamTranslateOp>(emit.builder.getI32Type(), from.ir(), pe.ir(), to.ir()), ScalarKind::Int32);
}

LangValue shmemRemotePtr(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangValue pe = scalarInt(importer, call, "pe", ScalarKind::Int32);
  if (pe.isPoison())
    return pe;
  return emit.wrap(emit.create<dist::SymmAtOp>(pointer.ir().getType(), pointer.ir(), pe.ir()), pointer.type());
}

LangValue shmemMulticastPtr(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangValue team = teamOf(importer, call);
  if (team.isPoison())
    return team;
  return emit.wrap(emit.create<dist::MulticastPtrOp>(pointer.ir().getType(), pointer.ir(), team.ir()), pointer.type());
}

/// broadcast*, fcollect*: sizes are bytes in the forms with `mem`, else elements.
LangValue shmemCollective(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  if (!checkWritablePointer(importer, call, "dest") || !checkScalarPointer(importer, call, "src"))
    return LangValue::poison();
  const LangType &dest = call["dest"].type(), &source = call["src"].type();
  const bool isBytes = name.contains("mem");
  if (!isBytes && dest.pointee() != source.pointee())
    return reject(importer, call, "src", fmt::format("a pointer to {}, as dest is", dest.pointee().str()));
  LangValue team = teamOf(importer, call);
  LangValue count = scalarInt(importer, call, "nelems", ScalarKind::Int64);
  const bool collects = name.starts_with("fcollect");
  LangValue root = collects ? emit.constantOf(ConstValue::integer(0), ScalarKind::Int32)
                            : scalarInt(importer, call, "root", ScalarKind::Int32);
  if (team.isPoison() || count.isPoison() || root.isPoison())
    return LangValue::poison();
  mlir::Value bytes = count.ir();
  if (!isBytes) {
    const int64_t size = dest.pointee().isPointer() ? 8 : std::max(1u, dest.pointee().bitWidth() / 8);
    bytes = emit.create<mlir::arith::MulIOp>(bytes, emit.integerConstant(size, emit.builder.getI64Type()));
  }
  emit.create<dist::CollectiveOp>(collects ? dist::CollectiveKind::Collect : dist::CollectiveKind::Broadcast, scopeOf(call), team.ir(),
                                  call["dest"].ir(), call["src"].ir(), bytes, root.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
