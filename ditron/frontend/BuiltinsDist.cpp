//===- BuiltinsDist.cpp - Ranks, signals, threads ------------------------------------------------------------------------===//
//
// Handlers of the distributed functions (dl) and of the thread level (language_extra).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/BuiltinKeywords.h"
#include "ditron/frontend/Descriptors.h"
#include "ditron/frontend/Importer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

LangValue reject(Importer &importer, BuiltinCall &call, llvm::StringRef name, llvm::StringRef wanted) {
  return importer.emit.fail(call.rangeOf(name),
                            fmt::format("argument '{}' of {} must be {}, but got {}", name.str(),
                                        qualifiedName(*call.builtin), wanted.str(), call[name].describe()));
}

/// A scalar pointer argument.
bool checkScalarPointer(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  if (!call[name].type().isBlock())
    return true;
  reject(importer, call, name, "a scalar pointer");
  return false;
}

/// A pointer to signal words: 32 or 64 bit integers.
bool checkSignalPointer(Importer &importer, BuiltinCall &call, llvm::StringRef name) {
  if (!checkScalarPointer(importer, call, name))
    return false;
  LangType word = call[name].type().pointee();
  if (word.isInt() && word.bitWidth() >= 32)
    return true;
  reject(importer, call, name, "a pointer to 32 or 64 bit integers");
  return false;
}

/// A scalar int argument as a type.
LangValue scalarInt(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &type) {
  Emitter &emit = importer.emit;
  const LangValue &value = call[name];
  if (value.isLiteral() && value.constant().isIntegral()) {
    // All ones may be written as 0xffffffff or as -1.
    bool fits = value.constant().getInt().fitsUnsigned(type.bitWidth()) ||
                value.constant().getInt().fitsSigned(type.bitWidth());
    if (fits)
      return emit.constantOf(value.constant(), type);
  }
  if (!value.isTensor() || value.type().isBlock() || !value.type().isInt())
    return reject(importer, call, name, fmt::format("a scalar integer that fits into {}", type.str()));
  return emit.cast(value, type, call.rangeOf(name));
}

/// A scalar value converted to the type behind a pointer.
LangValue scalarFor(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &element) {
  Emitter &emit = importer.emit;
  const LangValue &value = call[name];
  if (value.isLiteral() && !element.isPointer()) {
    if (!emit.checkLiteralFits(value.constant(), element, call.rangeOf(name)))
      return LangValue::poison();
    return emit.constantOf(value.constant(), element);
  }
  LangValue tensor = emit.toTensor(value, call.rangeOf(name));
  if (tensor.isPoison())
    return tensor;
  if (tensor.type().isBlock())
    return reject(importer, call, name, "a scalar");
  return emit.cast(tensor, element, call.rangeOf(name));
}

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

LangValue rank(Importer &importer, BuiltinCall &) {
  Emitter &emit = importer.emit;
  return emit.wrap(emit.create<dist::RankOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue numRanks(Importer &importer, BuiltinCall &) {
  Emitter &emit = importer.emit;
  return emit.wrap(emit.create<dist::NumRanksOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue symmAt(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangValue rank = scalarInt(importer, call, "rank", ScalarKind::Int32);
  if (rank.isPoison())
    return rank;
  return emit.wrap(emit.create<dist::SymmAtOp>(pointer.ir().getType(), pointer.ir(), rank.ir()), pointer.type());
}

LangValue wait(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["barrierPtrs"];
  if (!checkSignalPointer(importer, call, "barrierPtrs"))
    return LangValue::poison();
  LangValue count = scalarInt(importer, call, "numBarriers", ScalarKind::Int32);
  LangValue value = scalarInt(importer, call, "waitValue", pointer.type().pointee());
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Acquire);
  auto compare = compareOf(importer, call, "compare");
  if (count.isPoison() || value.isPoison() || !scope || !order || !compare)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Acquire && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(call.rangeOf("semantic"),
                     fmt::format("dl.wait is 'acquire' or 'relaxed', not '{}'", call.text("semantic").str()));
  auto op = emit.create<dist::WaitOp>(emit.builder.getI32Type(), pointer.ir(), count.ir(), value.ir(), *scope, *order,
                                      *compare);
  return emit.wrap(op.getResult(), ScalarKind::Int32);
}

LangValue consumeToken(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &value = call["value"], &token = call["token"];
  if (!token.isTensor() || token.type() != LangType(ScalarKind::Int32) || !mayBeToken(token.ir()))
    return reject(importer, call, "token", "the token of a dl.wait");
  if (value.isDescriptor())
    return consumeDescriptor(emit, value.descriptor(), token.ir());
  if (!value.isTensor())
    return reject(importer, call, "value", "a run-time scalar, a block or a tensor descriptor");
  return emit.wrap(emit.create<dist::ConsumeTokenOp>(value.ir().getType(), value.ir(), token.ir()), value.type());
}

LangValue notify(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkSignalPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangValue rank = scalarInt(importer, call, "rank", ScalarKind::Int32);
  LangValue signal = scalarInt(importer, call, "signal", pointer.type().pointee());
  auto op = signalOpOf(importer, call, "sig_op");
  auto scope = commScopeOf(importer, call, "comm_scope");
  if (rank.isPoison() || signal.isPoison() || !op || !scope)
    return LangValue::poison();
  emit.create<dist::NotifyOp>(pointer.ir(), rank.ir(), signal.ir(), *op, *scope);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Threads
//===------------------------------------------------------------------------------------------------------------------===//

LangValue threadId(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  int64_t axis = call.integer("axis");
  if (axis < 0 || axis > 2)
    return emit.fail(call.rangeOf("axis"), fmt::format("a block of threads has the axes 0, 1 and 2, not {}", axis));
  return emit.wrap(emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(axis)),
                   ScalarKind::Int32);
}

LangValue laneId(Importer &importer, BuiltinCall &) {
  Emitter &emit = importer.emit;
  return emit.wrap(emit.create<dist::LaneIdOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue numWarps(Importer &importer, BuiltinCall &) { return LangValue::integer(importer.options.numWarps); }
LangValue threadsPerWarp(Importer &importer, BuiltinCall &) {
  return LangValue::integer(importer.options.threadsPerWarp);
}
LangValue numThreads(Importer &importer, BuiltinCall &) {
  return LangValue::integer(int64_t(importer.options.numWarps) * importer.options.threadsPerWarp);
}

LangValue syncThreads(Importer &importer, BuiltinCall &) {
  importer.emit.create<dist::SyncThreadsOp>();
  return LangValue::none();
}

LangValue threadLoad(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  bool isAcquire = call.builtin->name == "ld_acquire";
  auto order = isAcquire ? std::optional(tile::MemoryOrder::Acquire)
                         : memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (!scope || !order)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Acquire && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(call.rangeOf("semantic"),
                     fmt::format("a load is 'acquire' or 'relaxed', not '{}'", call.text("semantic").str()));
  LangType element = pointer.type().pointee();
  return emit.wrap(emit.create<dist::LdOp>(emit.ir(element), *order, *scope, pointer.ir()), element);
}

LangValue threadStore(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  if (pointer.type().isConstPointer())
    return emit.fail(call.rangeOf("ptr"), fmt::format("st cannot write through {}", pointer.type().str()));
  LangValue value = scalarFor(importer, call, "val", pointer.type().pointee());
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (value.isPoison() || !scope || !order)
    return LangValue::poison();
  if (*order != tile::MemoryOrder::Release && *order != tile::MemoryOrder::Relaxed)
    return emit.fail(call.rangeOf("semantic"),
                     fmt::format("a store is 'release' or 'relaxed', not '{}'", call.text("semantic").str()));
  emit.create<dist::StOp>(*order, *scope, pointer.ir(), value.ir());
  return LangValue::none();
}

LangValue multimemStore(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  if (pointer.type().isConstPointer())
    return emit.fail(call.rangeOf("ptr"),
                     fmt::format("{} cannot write through {}", call.builtin->name, pointer.type().str()));
  LangType element = pointer.type().pointee();
  const bool isVector = call.builtin->name == "multimem_st_v4";
  const unsigned bits = call.builtin->name == "multimem_st_b64" ? 64 : 32;
  if (element.isPointer() || element.bitWidth() != bits || (isVector && !element.isFloat()))
    return reject(importer, call, "ptr", isVector ? "a pointer to fp32" : fmt::format("a pointer to {} bit numbers", bits));
  llvm::SmallVector<mlir::Value> values;
  for (const char *name : {"val0", "val1", "val2", "val3"}) {
    LangValue value = scalarFor(importer, call, isVector ? name : "val", element);
    if (value.isPoison())
      return LangValue::poison();
    values.push_back(value.ir());
    if (!isVector)
      break;
  }
  emit.create<dist::MultimemStOp>(pointer.ir(), values);
  return LangValue::none();
}

LangValue multimemLoadReduce(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangType element = pointer.type().pointee();
  if (element.isPointer() || !element.isFloat() || element.bitWidth() != 32)
    return reject(importer, call, "ptr", "a pointer to fp32");
  llvm::SmallVector<mlir::Type> types(4, emit.ir(element));
  auto sums = emit.create<dist::MultimemLdReduceOp>(types, pointer.ir());
  std::vector<LangValue> results;
  for (mlir::Value sum : sums.getResults())
    results.push_back(emit.wrap(sum, element));
  return LangValue::tuple(std::move(results));
}

LangValue threadAtomicAdd(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangType element = pointer.type().pointee();
  if (element.isPointer() || element.bitWidth() < 32)
    return reject(importer, call, "ptr", "a pointer to 32 or 64 bit numbers");
  LangValue value = scalarFor(importer, call, "value", element);
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (value.isPoison() || !scope || !order)
    return LangValue::poison();
  auto kind = element.isFloat() ? tile::AtomicOp::FAdd : tile::AtomicOp::Add;
  return emit.wrap(
      emit.create<dist::ThreadAtomicRmwOp>(emit.ir(element), kind, *order, *scope, pointer.ir(), value.ir()), element);
}

LangValue threadAtomicCas(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkSignalPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangType element = pointer.type().pointee();
  LangValue expected = scalarInt(importer, call, "value", element);
  LangValue desired = scalarInt(importer, call, "target_value", element);
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (expected.isPoison() || desired.isPoison() || !scope || !order)
    return LangValue::poison();
  return emit.wrap(
      emit.create<dist::ThreadAtomicCasOp>(emit.ir(element), *order, *scope, pointer.ir(), expected.ir(), desired.ir()),
      element);
}

LangValue shuffle(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  auto kind = name.contains("_up_")     ? dist::ShuffleKind::Up
              : name.contains("_down_") ? dist::ShuffleKind::Down
              : name.contains("_xor_")  ? dist::ShuffleKind::Butterfly
                                        : dist::ShuffleKind::Index;
  LangValue mask = scalarInt(importer, call, "mask", ScalarKind::UInt32);
  LangValue value = scalarInt(importer, call, "value", ScalarKind::Int32);
  LangValue operand = scalarInt(importer, call, call.builtin->params[2].name, ScalarKind::Int32);
  if (mask.isPoison() || value.isPoison() || operand.isPoison())
    return LangValue::poison();
  return emit.wrap(emit.create<dist::ShuffleOp>(value.ir().getType(), kind, mask.ir(), value.ir(), operand.ir()),
                   value.type());
}

LangValue ballot(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  LangValue mask = scalarInt(importer, call, "mask", ScalarKind::UInt32);
  LangValue predicate = emit.toBool(call["predicate"], call.rangeOf("predicate"));
  if (mask.isPoison() || predicate.isPoison())
    return LangValue::poison();
  if (predicate.type().isBlock())
    return reject(importer, call, "predicate", "a scalar");
  return emit.wrap(emit.create<dist::BallotOp>(emit.builder.getI32Type(), mask.ir(), predicate.ir()),
                   ScalarKind::UInt32);
}

LangValue findFirstSet(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  LangValue x = emit.toTensor(call["x"], call.rangeOf("x"));
  if (x.isPoison())
    return x;
  if (!x.type().isInt())
    return reject(importer, call, "x", "an integer");
  // Zero has no set bit and gives 0; otherwise the count of trailing zeros is the index of the lowest one.
  mlir::Type type = x.ir().getType();
  mlir::Value zero = emit.integerConstant(0, type);
  mlir::Value index = emit.create<mlir::math::CountTrailingZerosOp>(x.ir());
  mlir::Value position = emit.create<arith::AddIOp>(index, emit.integerConstant(1, type));
  mlir::Value isZero = emit.create<arith::CmpIOp>(arith::CmpIPredicate::eq, x.ir(), zero);
  mlir::Value result = emit.create<arith::SelectOp>(isZero, zero, position);
  return emit.cast(emit.wrap(result, x.type()), ScalarKind::Int32, call.range);
}

} // namespace ditron::frontend::builtins
