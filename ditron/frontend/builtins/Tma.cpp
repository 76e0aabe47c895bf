//===- Tma.cpp - mbarriers, tensor copies, tensor maps -------------------------------------------------------------===//
//
// Handlers of tma_language. Each function is an intrinsic of dialect/dist/Intrinsics.def: arguments become its operands in
// order, those that are known at compile time its options. Places in shared memory may be given by pointers or, as the peer
// does, by 32-bit addresses; tensor maps and global memory by pointers or 64-bit addresses.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/dist/Intrinsics.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSwitch.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

dist::IntrinsicOp emitIntrinsic(Emitter &emit, llvm::StringRef name, mlir::TypeRange results, mlir::ValueRange operands,
                                mlir::DictionaryAttr options = {}) {
  return emit.create<dist::IntrinsicOp>(results, emit.builder.getStringAttr(name), operands, options);
}

/// What the intrinsic is called.
llvm::StringRef intrinsicName(llvm::StringRef function) {
  return llvm::StringSwitch<llvm::StringRef>(function)
      .Case("mbarrier_expect_tx", "mbarrier_arrive_expect_tx") // arrives too, whatever the name says
      .Case("cp_async_bulk_global_to_shared", "bulk_load")
      .Case("cp_async_bulk_shared_to_global", "bulk_store")
      .Case("cp_async_bulk_commit_group", "bulk_commit_group")
      .Case("cp_async_bulk_wait_group", "bulk_wait_group")
      .Case("tma_sync", "bulk_wait_group")
      .Default(function);
}

/// What a compile-time parameter is called among the options.
llvm::StringRef optionName(llvm::StringRef parameter) {
  return llvm::StringSwitch<llvm::StringRef>(parameter)
      .Case("ord", "ordinal")
      .Case("N", "pending")
      .Case("barrier_id", "id")
      .Case("num_threads", "threads")
      .Case("read", "read")
      .Default("value");
}

bool isSharedParameter(llvm::StringRef name) { return name.contains("smem") || name.contains("mbar"); }

/// An address argument as a pointer.
LangValue addressArgument(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  Emitter &emit = evaluator.emit;
  const LangValue &value = *argument.given;
  LangType bytes = LangType::pointer(ScalarKind::Int8);
  if (value.isTensor() && !value.type().isBlock() && value.type().isPointer())
    return value;
  if (!value.isTensor() || value.type().isBlock() || !value.type().isInt())
    return reject(evaluator, call, argument,
                  isSharedParameter(argument.name()) ? "a pointer to shared memory, or an address in it"
                                                     : "a scalar pointer, or an address");
  if (!isSharedParameter(argument.name()))
    return emit.cast(emit.cast(value, ScalarKind::UInt64, argument.range), bytes, argument.range);
  mlir::Value address = emit.cast(value, ScalarKind::UInt32, argument.range).ir();
  return emit.wrap(emitIntrinsic(emit, "shared_pointer", emit.ir(bytes), address).getResult(0), bytes);
}

} // namespace

LangValue hardware(Evaluator &evaluator, BuiltinCall &call, llvm::ArrayRef<AnyArg> arguments) {
  Emitter &emit = evaluator.emit;
  llvm::StringRef name = intrinsicName(call.builtin->name);
  const dist::Intrinsic *intrinsic = dist::findIntrinsic(name);
  llvm::SmallVector<llvm::StringRef> types;
  intrinsic->operands.split(types, ',', -1, /*KeepEmpty=*/false);
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::NamedAttribute> options;
  size_t next = 0;
  for (const AnyArg &argument : arguments) {
    const BuiltinParam &param = *argument.param;
    const LangValue &given = *argument.given;
    if (param.rule == ParamRule::Int || param.rule == ParamRule::Bool) {
      int64_t value = *given.constant().toInt64();
      options.push_back(emit.builder.getNamedAttr(optionName(param.name), emit.builder.getI64IntegerAttr(value)));
      continue;
    }
    llvm::StringRef type = types[next++].trim();
    LangValue value;
    if (type == "ptr")
      value = addressArgument(evaluator, call, argument);
    else if (type == "i1")
      value = emit.toBool(given, argument.range);
    else if (type == "i64" && given.isTensor() && given.type().isPointer())
      value = emit.cast(given, ScalarKind::UInt64, argument.range);
    else
      value = scalarInt(evaluator, call, argument, type == "i64" ? ScalarKind::Int64 : ScalarKind::Int32);
    if (value.isPoison())
      return value;
    operands.push_back(value.ir());
  }
  mlir::DictionaryAttr attributes = options.empty() ? mlir::DictionaryAttr() : emit.builder.getDictionaryAttr(options);
  if (intrinsic->results.empty()) {
    emitIntrinsic(emit, name, {}, operands, attributes);
    return LangValue::none();
  }
  // Truth values are 32-bit numbers here.
  mlir::Value truth = emitIntrinsic(emit, name, emit.builder.getI1Type(), operands, attributes).getResult(0);
  LangType type(name == "elect_one_sync" ? ScalarKind::Int32 : ScalarKind::UInt32);
  return emit.wrap(emit.create<arith::ExtUIOp>(emit.ir(type), truth), type);
}

LangValue namedBarrier(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> barrierId, Arg<int64_t> numThreads) {
  const int64_t id = *barrierId, threads = *numThreads, perWarp = evaluator.options.threadsPerWarp;
  const int64_t all = int64_t(evaluator.options.numWarps) * perWarp;
  if (id < 1 || id > 15)
    return evaluator.emit.fail(barrierId.range, fmt::format("named barriers are 1 to 15 (0 is __syncthreads), not {}", id));
  if (threads < 1 || threads % perWarp != 0 || threads > all)
    return evaluator.emit.fail(
        numThreads.range,
        fmt::format("a named barrier is for whole warps, at most the block's {} threads; not for {}", all, threads));
  return hardware(evaluator, call, call.arguments());
}

LangValue genericToShared(Evaluator &evaluator, BuiltinCall &call, ScalarKind element, ValueArg generic) {
  Emitter &emit = evaluator.emit;
  LangValue pointer = *generic;
  if (pointer.isTensor() && !pointer.type().isPointer() && pointer.type().bitWidth() == 64)
    pointer = emit.cast(pointer, LangType::pointer(ScalarKind::Int8), call.range);
  if (!pointer.isTensor() || pointer.type().isBlock() || !pointer.type().isPointer())
    return reject(evaluator, call, generic, "a pointer to shared memory");
  mlir::Value address = emitIntrinsic(emit, "shared_address", emit.builder.getI32Type(), pointer.ir()).getResult(0);
  if (element == ScalarKind::UInt32)
    return emit.wrap(address, element);
  return emit.wrap(emit.create<arith::ExtUIOp>(emit.builder.getI64Type(), address), element);
}

LangValue globalToGeneric(Evaluator &evaluator, BuiltinCall &call, ValueArg address) {
  // Global addresses have the same bits in both forms.
  if (!address->isTensor() || address->type().isBlock())
    return reject(evaluator, call, address, "an address");
  return evaluator.emit.cast(*address, ScalarKind::UInt64, call.range);
}

LangValue zeroTensorMap(Evaluator &evaluator, BuiltinCall &call, ValueArg smemU32Base) {
  Emitter &emit = evaluator.emit;
  LangValue place = addressArgument(evaluator, call, smemU32Base);
  if (place.isPoison())
    return place;
  LangType word(ScalarKind::Int32);
  LangValue words = emit.cast(place, LangType::pointer(word), call.range);
  mlir::Value thread = emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(0));
  mlir::Value isFirstWarp = emit.create<arith::CmpIOp>(arith::CmpIPredicate::ult, thread, emit.integerConstant(32, thread.getType()));
  auto branch = emit.create<mlir::scf::IfOp>(isFirstWarp, /*withElseRegion=*/false);
  mlir::OpBuilder::InsertionGuard guard(emit.builder);
  emit.builder.setInsertionPointToStart(branch.thenBlock());
  LangValue mine = emit.binary(BinaryOp::Add, words, emit.wrap(thread, word), call.range);
  emit.create<dist::StOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::Block, mine.ir(), emit.integerConstant(0, emit.ir(word)));
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
