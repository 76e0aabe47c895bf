//===- Thread.cpp - The thread level --------------------------------------------------------------------------------===//
//
// Handlers of language_extra: who a thread is, loads and stores of single threads in all widths, atomics, fences, shuffles.
// What is made of these alone is written in the language (library/thread.py).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

bool checkLoadOrder(Evaluator &evaluator, const Arg<llvm::StringRef> &semantic, tile::MemoryOrder order) {
  if (order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::Relaxed)
    return true;
  evaluator.emit.error(semantic.range, fmt::format("a load is 'acquire' or 'relaxed', not '{}'", semantic->str()));
  return false;
}

bool checkStoreOrder(Evaluator &evaluator, const Arg<llvm::StringRef> &semantic, tile::MemoryOrder order) {
  if (order == tile::MemoryOrder::Release || order == tile::MemoryOrder::Relaxed)
    return true;
  evaluator.emit.error(semantic.range, fmt::format("a store is 'release' or 'relaxed', not '{}'", semantic->str()));
  return false;
}

/// A value of the machine, by the name of the intrinsic.
mlir::Value special(Emitter &emit, llvm::StringRef name, unsigned bits) {
  return emit.create<dist::IntrinsicOp>(mlir::TypeRange(emit.builder.getIntegerType(bits)), emit.builder.getStringAttr(name),
                                        mlir::ValueRange(), mlir::DictionaryAttr())
      .getResult(0);
}

/// The type behind a pointer to words of 32 bits; nullopt after an error.
std::optional<LangType> wordBehind(Evaluator &evaluator, BuiltinCall &call, const ValueArg &pointer) {
  LangType element = pointer->type().pointee();
  if (!element.isPointer() && element.bitWidth() == 32)
    return element;
  reject(evaluator, call, pointer, "a pointer to 32 bit numbers");
  return std::nullopt;
}

LangValue loadOf(Emitter &emit, const ValueArg &pointer, tile::MemoryOrder order, tile::MemoryScope scope) {
  LangType element = pointer->type().pointee();
  return emit.wrap(emit.create<dist::LdOp>(emit.ir(element), order, scope, pointer->ir()), element);
}

/// Emits a fence; membar and __fence are the sequentially consistent ones.
LangValue fenceOf(Emitter &emit, std::optional<tile::MemoryOrder> order, std::optional<tile::MemoryScope> scope,
                  bool isSequential) {
  if (!scope || !order)
    return LangValue::poison();
  auto op = emit.create<dist::FenceOp>(*order, *scope);
  if (isSequential)
    op->setAttr(dist::sequentialAttrName, emit.builder.getUnitAttr());
  return LangValue::none();
}

/// A fence's scope; "gl" is PTX's older name of gpu.
std::optional<tile::MemoryScope> fenceScopeOf(Evaluator &evaluator, BuiltinCall &call, const Arg<llvm::StringRef> &scope) {
  return *scope == "gl" ? std::optional(tile::MemoryScope::Gpu) : memoryScopeOf(evaluator, call, scope, tile::MemoryScope::Gpu);
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Who and when
//===------------------------------------------------------------------------------------------------------------------===//

LangValue threadId(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  Emitter &emit = evaluator.emit;
  if (*axis < 0 || *axis > 2)
    return emit.fail(axis.range, fmt::format("a block of threads has the axes 0, 1 and 2, not {}", *axis));
  return emit.wrap(emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(*axis)),
                   ScalarKind::Int32);
}

LangValue laneId(Evaluator &evaluator, BuiltinCall &call) {
  Emitter &emit = evaluator.emit;
  return emit.wrap(emit.create<dist::LaneIdOp>(emit.builder.getI32Type()), ScalarKind::Int32);
}

LangValue numWarps(Evaluator &evaluator, BuiltinCall &call) { return LangValue::integer(evaluator.options.numWarps); }
LangValue threadsPerWarp(Evaluator &evaluator, BuiltinCall &call) { return LangValue::integer(evaluator.options.threadsPerWarp); }
LangValue numThreads(Evaluator &evaluator, BuiltinCall &call) {
  return LangValue::integer(int64_t(evaluator.options.numWarps) * evaluator.options.threadsPerWarp);
}

LangValue syncThreads(Evaluator &evaluator, BuiltinCall &call) {
  evaluator.emit.create<dist::SyncThreadsOp>();
  return LangValue::none();
}

LangValue threadCount(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> axis) {
  if (*axis < 0 || *axis > 2)
    return evaluator.emit.fail(axis.range, fmt::format("a block of threads has the axes 0, 1 and 2, not {}", *axis));
  return LangValue::integer(*axis == 0 ? int64_t(evaluator.options.numWarps) * evaluator.options.threadsPerWarp : 1);
}

LangValue warpIndex(Evaluator &evaluator, BuiltinCall &call) {
  Emitter &emit = evaluator.emit;
  mlir::Value thread = emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(0));
  mlir::Value width = emit.integerConstant(evaluator.options.threadsPerWarp, thread.getType());
  return emit.wrap(emit.create<arith::DivUIOp>(thread, width), ScalarKind::Int32);
}

LangValue multiprocessor(Evaluator &evaluator, BuiltinCall &call, ScalarKind type) {
  return evaluator.emit.wrap(special(evaluator.emit, "smid", 32), type);
}

LangValue clockValue(Evaluator &evaluator, BuiltinCall &call, llvm::StringRef clock, ScalarKind type) {
  return evaluator.emit.wrap(special(evaluator.emit, clock, 64), type);
}

LangValue timerHalf(Evaluator &evaluator, BuiltinCall &call, bool isHigh) {
  Emitter &emit = evaluator.emit;
  mlir::Value time = special(emit, "globaltimer", 64);
  if (isHigh)
    time = emit.create<arith::ShRUIOp>(time, emit.integerConstant(32, time.getType()));
  return emit.wrap(emit.create<arith::TruncIOp>(emit.builder.getI32Type(), time), ScalarKind::UInt32);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Loads and stores
//===------------------------------------------------------------------------------------------------------------------===//

LangValue threadLoad(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, Arg<llvm::StringRef> scopeArg,
                     Arg<llvm::StringRef> semantic) {
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (!scope || !order || !checkLoadOrder(evaluator, semantic, *order))
    return LangValue::poison();
  return loadOf(evaluator.emit, pointer, *order, *scope);
}

LangValue ldAcquire(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, Arg<llvm::StringRef> scopeArg) {
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  return scope ? loadOf(evaluator.emit, pointer, tile::MemoryOrder::Acquire, *scope) : LangValue::poison();
}

LangValue ldB32(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer) {
  if (!checkScalarPointer(evaluator, call, pointer) || !wordBehind(evaluator, call, pointer))
    return LangValue::poison();
  return loadOf(evaluator.emit, pointer, tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu);
}

LangValue threadStore(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg val, Arg<llvm::StringRef> scopeArg,
                      Arg<llvm::StringRef> semantic) {
  Emitter &emit = evaluator.emit;
  if (!checkWritablePointer(evaluator, call, pointer))
    return LangValue::poison();
  LangType element = pointer->type().pointee();
  LangValue value = scalarFor(evaluator, call, val, element);
  if (value.isPoison())
    return value;
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (!scope || !order || !checkStoreOrder(evaluator, semantic, *order))
    return LangValue::poison();
  emit.create<dist::StOp>(*order, *scope, pointer->ir(), value.ir());
  return LangValue::none();
}

LangValue stB32(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg val) {
  if (!checkWritablePointer(evaluator, call, pointer))
    return LangValue::poison();
  LangValue value = scalarFor(evaluator, call, val, pointer->type().pointee());
  if (value.isPoison() || !wordBehind(evaluator, call, pointer))
    return LangValue::poison();
  evaluator.emit.create<dist::StOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu, pointer->ir(), value.ir());
  return LangValue::none();
}

LangValue wideLoad(Evaluator &evaluator, BuiltinCall &call, int64_t count, ScalarKind element, ValueArg ptr) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, ptr))
    return LangValue::poison();
  LangValue pointer = emit.cast(*ptr, LangType::pointer(element), ptr.range);
  llvm::SmallVector<mlir::Type> types(count, emit.ir(element));
  auto op = emit.create<dist::LdVectorOp>(types, tile::MemoryOrder::Relaxed, tile::MemoryScope::System, pointer.ir());
  std::vector<LangValue> words;
  for (mlir::Value word : op.getResults())
    words.push_back(emit.wrap(word, element));
  return LangValue::tuple(std::move(words));
}

LangValue wideStore(Evaluator &evaluator, BuiltinCall &call, ScalarKind element, llvm::ArrayRef<AnyArg> arguments) {
  Emitter &emit = evaluator.emit;
  const AnyArg &ptr = arguments.front();
  if (!checkWritablePointer(evaluator, call, ptr))
    return LangValue::poison();
  LangValue pointer = emit.cast(*ptr.given, LangType::pointer(element), ptr.range);
  llvm::SmallVector<mlir::Value> words;
  for (const AnyArg &argument : arguments.drop_front()) {
    LangValue word = scalarBits(evaluator, call, argument, element);
    if (word.isPoison())
      return word;
    words.push_back(word.ir());
  }
  emit.create<dist::StVectorOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::System, pointer.ir(), words);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Fences and barriers
//===------------------------------------------------------------------------------------------------------------------===//

LangValue sequentialFence(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef> scope) {
  return fenceOf(evaluator.emit, tile::MemoryOrder::AcquireRelease, fenceScopeOf(evaluator, call, scope), /*isSequential=*/true);
}

LangValue threadFence(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef> semantic, Arg<llvm::StringRef> scopeArg) {
  auto scope = fenceScopeOf(evaluator, call, scopeArg);
  if (!llvm::is_contained({"sc", "acq_rel", "acquire", "release", "acquire_release"}, *semantic))
    return evaluator.emit.fail(
        semantic.range,
        fmt::format("argument 'semantic' of fence cannot be '{}'; it is one of 'sc', 'acq_rel', 'acquire', 'release'",
                    semantic->str()));
  bool isSequential = *semantic == "sc";
  auto order = isSequential ? std::optional(tile::MemoryOrder::AcquireRelease)
                            : memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::AcquireRelease);
  return fenceOf(evaluator.emit, order, scope, isSequential);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Atomics
//===------------------------------------------------------------------------------------------------------------------===//

LangValue redRelease(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg valueArg,
                     Arg<llvm::StringRef> scopeArg) {
  Emitter &emit = evaluator.emit;
  if (!checkSignalPointer(evaluator, call, pointer) || !checkWritablePointer(evaluator, call, pointer))
    return LangValue::poison();
  LangType word = pointer->type().pointee();
  LangValue value = scalarInt(evaluator, call, valueArg, word);
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  if (value.isPoison() || !scope)
    return LangValue::poison();
  emit.create<dist::ThreadAtomicRmwOp>(emit.ir(word), tile::AtomicOp::Add, tile::MemoryOrder::Release, *scope, pointer->ir(),
                                       value.ir());
  return LangValue::none();
}

LangValue threadAtomicAdd(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg valueArg,
                          Arg<llvm::StringRef> scopeArg, Arg<llvm::StringRef> semantic) {
  Emitter &emit = evaluator.emit;
  if (!checkScalarPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangType element = pointer->type().pointee();
  if (element.isPointer() || element.bitWidth() < 32)
    return reject(evaluator, call, pointer, "a pointer to 32 or 64 bit numbers");
  LangValue value = scalarFor(evaluator, call, valueArg, element);
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (value.isPoison() || !scope || !order)
    return LangValue::poison();
  auto kind = element.isFloat() ? tile::AtomicOp::FAdd : tile::AtomicOp::Add;
  return emit.wrap(emit.create<dist::ThreadAtomicRmwOp>(emit.ir(element), kind, *order, *scope, pointer->ir(), value.ir()),
                   element);
}

LangValue threadAtomicCas(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg value, ValueArg targetValue,
                          Arg<llvm::StringRef> scopeArg, Arg<llvm::StringRef> semantic) {
  Emitter &emit = evaluator.emit;
  if (!checkSignalPointer(evaluator, call, pointer))
    return LangValue::poison();
  LangType element = pointer->type().pointee();
  LangValue expected = scalarInt(evaluator, call, value, element);
  LangValue desired = scalarInt(evaluator, call, targetValue, element);
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(evaluator, call, semantic, tile::MemoryOrder::Relaxed);
  if (expected.isPoison() || desired.isPoison() || !scope || !order)
    return LangValue::poison();
  return emit.wrap(
      emit.create<dist::ThreadAtomicCasOp>(emit.ir(element), *order, *scope, pointer->ir(), expected.ir(), desired.ir()),
      element);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Warps and bits
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shuffle(Evaluator &evaluator, BuiltinCall &call, dist::ShuffleKind kind, ValueArg maskArg, ValueArg valueArg,
                  ValueArg lane) {
  Emitter &emit = evaluator.emit;
  LangValue mask = scalarInt(evaluator, call, maskArg, ScalarKind::UInt32);
  // The value keeps its sign.
  bool isUnsigned = valueArg->isTensor() && valueArg->type().is(ScalarKind::UInt32);
  LangValue value = scalarInt(evaluator, call, valueArg, isUnsigned ? ScalarKind::UInt32 : ScalarKind::Int32);
  LangValue operand = scalarInt(evaluator, call, lane, ScalarKind::Int32);
  if (mask.isPoison() || value.isPoison() || operand.isPoison())
    return LangValue::poison();
  return emit.wrap(emit.create<dist::ShuffleOp>(value.ir().getType(), kind, mask.ir(), value.ir(), operand.ir()),
                   value.type());
}

LangValue ballot(Evaluator &evaluator, BuiltinCall &call, ValueArg maskArg, ValueArg predicateArg) {
  Emitter &emit = evaluator.emit;
  LangValue mask = scalarInt(evaluator, call, maskArg, ScalarKind::UInt32);
  LangValue predicate = emit.toBool(*predicateArg, predicateArg.range);
  if (mask.isPoison() || predicate.isPoison())
    return LangValue::poison();
  if (predicate.type().isBlock())
    return reject(evaluator, call, predicateArg, "a scalar");
  return emit.wrap(emit.create<dist::BallotOp>(emit.builder.getI32Type(), mask.ir(), predicate.ir()), ScalarKind::Int32);
}

LangValue findFirstSet(Evaluator &evaluator, BuiltinCall &call, ValueArg xArg) {
  Emitter &emit = evaluator.emit;
  LangValue x = emit.toTensor(*xArg, xArg.range);
  if (x.isPoison())
    return x;
  if (!x.type().isInt())
    return reject(evaluator, call, xArg, "an integer");
  // Zero has no set bit and gives 0; otherwise the count of trailing zeros is the index of the lowest one.
  mlir::Type type = x.ir().getType();
  mlir::Value zero = emit.integerConstant(0, type);
  mlir::Value index = emit.create<mlir::math::CountTrailingZerosOp>(x.ir());
  mlir::Value position = emit.create<arith::AddIOp>(index, emit.integerConstant(1, type));
  mlir::Value isZero = emit.create<arith::CmpIOp>(arith::CmpIPredicate::eq, x.ir(), zero);
  mlir::Value result = emit.create<arith::SelectOp>(isZero, zero, position);
  return emit.cast(emit.wrap(result, x.type()), ScalarKind::Int32, call.range);
}

LangValue packWords(Evaluator &evaluator, BuiltinCall &call, ValueArg val0, ValueArg val1) {
  Emitter &emit = evaluator.emit;
  LangValue low = scalarBits(evaluator, call, val0, ScalarKind::UInt32),
            high = scalarBits(evaluator, call, val1, ScalarKind::UInt32);
  if (low.isPoison() || high.isPoison())
    return LangValue::poison();
  mlir::Type i64 = emit.builder.getI64Type();
  mlir::Value upper = emit.create<arith::ExtUIOp>(i64, high.ir());
  mlir::Value shifted = emit.create<arith::ShLIOp>(upper, emit.integerConstant(32, i64));
  return emit.wrap(emit.create<arith::OrIOp>(shifted, emit.create<arith::ExtUIOp>(i64, low.ir())), ScalarKind::UInt64);
}

} // namespace ditron::frontend::builtins
