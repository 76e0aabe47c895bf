//===- BuiltinsThread.cpp - The thread level --------------------------------------------------------------------------------===//
//
// Handlers of language_extra: who a thread is, loads and stores of single threads in all widths, atomics, fences, shuffles.
// What is made of these alone is written in the language (library/thread.py).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/BuiltinArguments.h"
#include "ditron/frontend/BuiltinKeywords.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace {

bool checkLoadOrder(Importer &importer, BuiltinCall &call, tile::MemoryOrder order) {
  if (order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::Relaxed)
    return true;
  importer.emit.error(call.rangeOf("semantic"), fmt::format("a load is 'acquire' or 'relaxed', not '{}'", call.text("semantic").str()));
  return false;
}

bool checkStoreOrder(Importer &importer, BuiltinCall &call, tile::MemoryOrder order) {
  if (order == tile::MemoryOrder::Release || order == tile::MemoryOrder::Relaxed)
    return true;
  importer.emit.error(call.rangeOf("semantic"), fmt::format("a store is 'release' or 'relaxed', not '{}'", call.text("semantic").str()));
  return false;
}

/// A value of the machine, by the name of the intrinsic.
mlir::Value special(Emitter &emit, llvm::StringRef name, unsigned bits) {
  return emit.create<dist::IntrinsicOp>(mlir::TypeRange(emit.builder.getIntegerType(bits)), emit.builder.getStringAttr(name),
                                        mlir::ValueRange(), mlir::DictionaryAttr())
      .getResult(0);
}

/// load_v4_u32 and its kin by their names: "v4", "b32" and the like at the end.
struct WideForm {
  unsigned count;
  LangType element;
};
WideForm wideFormOf(llvm::StringRef name) {
  unsigned count = name.contains("_v4_") ? 4 : name.contains("_v2_") ? 2 : 1;
  ScalarKind kind = name.ends_with("u32") ? ScalarKind::UInt32 : name.ends_with("64") ? ScalarKind::Int64 : ScalarKind::Int32;
  return {count, kind};
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Who and when
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

LangValue threadCount(Importer &importer, BuiltinCall &call) {
  int64_t axis = call.integer("axis");
  if (axis < 0 || axis > 2)
    return importer.emit.fail(call.rangeOf("axis"), fmt::format("a block of threads has the axes 0, 1 and 2, not {}", axis));
  return LangValue::integer(axis == 0 ? int64_t(importer.options.numWarps) * importer.options.threadsPerWarp : 1);
}

LangValue warpIndex(Importer &importer, BuiltinCall &) {
  Emitter &emit = importer.emit;
  mlir::Value thread = emit.create<dist::ThreadIdOp>(emit.builder.getI32Type(), emit.builder.getI32IntegerAttr(0));
  mlir::Value width = emit.integerConstant(importer.options.threadsPerWarp, thread.getType());
  return emit.wrap(emit.create<arith::DivUIOp>(thread, width), ScalarKind::Int32);
}

/// Triton's own functions of tl.extra.cuda are signed, Triton-distributed's are not.
static bool isOfTriton(const Builtin &builtin) { return (builtin.modules & ModuleExtra) != 0; }

LangValue multiprocessor(Importer &importer, BuiltinCall &call) {
  return importer.emit.wrap(special(importer.emit, "smid", 32),
                            isOfTriton(*call.builtin) ? ScalarKind::Int32 : ScalarKind::UInt32);
}

LangValue globalTimer(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  mlir::Value time = special(emit, name == "clock" || name == "clock64" ? "clock64" : "globaltimer", 64);
  if (name == "globaltimer_hi")
    time = emit.create<arith::ShRUIOp>(time, emit.integerConstant(32, time.getType()));
  if (name == "globaltimer_hi" || name == "globaltimer_lo")
    return emit.wrap(emit.create<arith::TruncIOp>(emit.builder.getI32Type(), time), ScalarKind::UInt32);
  return emit.wrap(time, isOfTriton(*call.builtin) ? ScalarKind::Int64 : ScalarKind::UInt64);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Loads and stores
//===------------------------------------------------------------------------------------------------------------------===//

LangValue threadLoad(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  LangType element = pointer.type().pointee();
  llvm::StringRef name = call.builtin->name;
  if (name == "ld_b32") {
    if (element.isPointer() || element.bitWidth() != 32)
      return reject(importer, call, "ptr", "a pointer to 32 bit numbers");
    return emit.wrap(emit.create<dist::LdOp>(emit.ir(element), tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu, pointer.ir()), element);
  }
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = name == "ld_acquire" ? std::optional(tile::MemoryOrder::Acquire)
                                    : memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (!scope || !order || !checkLoadOrder(importer, call, *order))
    return LangValue::poison();
  return emit.wrap(emit.create<dist::LdOp>(emit.ir(element), *order, *scope, pointer.ir()), element);
}

LangValue threadStore(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["ptr"];
  if (!checkWritablePointer(importer, call, "ptr"))
    return LangValue::poison();
  LangType element = pointer.type().pointee();
  LangValue value = scalarFor(importer, call, "val", element);
  if (value.isPoison())
    return value;
  if (call.builtin->name == "st_b32") {
    if (element.isPointer() || element.bitWidth() != 32)
      return reject(importer, call, "ptr", "a pointer to 32 bit numbers");
    emit.create<dist::StOp>(tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu, pointer.ir(), value.ir());
    return LangValue::none();
  }
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  auto order = memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::Relaxed);
  if (!scope || !order || !checkStoreOrder(importer, call, *order))
    return LangValue::poison();
  emit.create<dist::StOp>(*order, *scope, pointer.ir(), value.ir());
  return LangValue::none();
}

LangValue wideLoad(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  WideForm form = wideFormOf(call.builtin->name);
  LangValue pointer = emit.cast(call["ptr"], LangType::pointer(form.element), call.rangeOf("ptr"));
  llvm::SmallVector<mlir::Type> types(form.count, emit.ir(form.element));
  auto op = emit.create<dist::LdVectorOp>(types, tile::MemoryOrder::Relaxed, tile::MemoryScope::System, pointer.ir());
  std::vector<LangValue> words;
  for (mlir::Value word : op.getResults())
    words.push_back(emit.wrap(word, form.element));
  return LangValue::tuple(std::move(words));
}

LangValue wideStore(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkWritablePointer(importer, call, "ptr"))
    return LangValue::poison();
  WideForm form = wideFormOf(call.builtin->name);
  LangValue pointer = emit.cast(call["ptr"], LangType::pointer(form.element), call.rangeOf("ptr"));
  llvm::SmallVector<mlir::Value> words;
  for (unsigned i = 0; i < form.count; ++i) {
    LangValue word = scalarBits(importer, call, fmt::format("val{}", i), form.element);
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

LangValue threadFence(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef scopeText = call.text("scope");
  // PTX's older name of the scope.
  auto scope = scopeText == "gl" ? std::optional(tile::MemoryScope::Gpu) : memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  if (call.builtin->name == "fence" && !llvm::is_contained({"sc", "acq_rel", "acquire", "release", "acquire_release"}, call.text("semantic")))
    return emit.fail(call.rangeOf("semantic"), fmt::format("argument 'semantic' of fence cannot be '{}'; it is one of 'sc', 'acq_rel', 'acquire', 'release'",
                                                           call.text("semantic").str()));
  // membar and __fence are the sequentially consistent ones.
  bool isSequential = call.builtin->name != "fence" || call.text("semantic") == "sc";
  auto order = isSequential ? std::optional(tile::MemoryOrder::AcquireRelease)
                            : memoryOrderOf(importer, call, "semantic", tile::MemoryOrder::AcquireRelease);
  if (!scope || !order)
    return LangValue::poison();
  auto op = emit.create<dist::FenceOp>(*order, *scope);
  if (isSequential)
    op->setAttr(dist::sequentialAttrName, emit.builder.getUnitAttr());
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Atomics
//===------------------------------------------------------------------------------------------------------------------===//

LangValue redRelease(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkSignalPointer(importer, call, "barrier_ptr") || !checkWritablePointer(importer, call, "barrier_ptr"))
    return LangValue::poison();
  const LangValue &pointer = call["barrier_ptr"];
  LangType word = pointer.type().pointee();
  LangValue value = scalarInt(importer, call, "value", word);
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  if (value.isPoison() || !scope)
    return LangValue::poison();
  emit.create<dist::ThreadAtomicRmwOp>(emit.ir(word), tile::AtomicOp::Add, tile::MemoryOrder::Release, *scope, pointer.ir(), value.ir());
  return LangValue::none();
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

//===------------------------------------------------------------------------------------------------------------------===//
// Warps and bits
//===------------------------------------------------------------------------------------------------------------------===//

LangValue shuffle(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  auto kind = name.contains("_up_")     ? dist::ShuffleKind::Up
              : name.contains("_down_") ? dist::ShuffleKind::Down
              : name.contains("_xor_")  ? dist::ShuffleKind::Butterfly
                                        : dist::ShuffleKind::Index;
  LangValue mask = scalarInt(importer, call, "mask", ScalarKind::UInt32);
  // The value keeps its sign.
  bool isUnsigned = call["value"].isTensor() && call["value"].type().is(ScalarKind::UInt32);
  LangValue value = scalarInt(importer, call, "value", isUnsigned ? ScalarKind::UInt32 : ScalarKind::Int32);
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
  return emit.wrap(emit.create<dist::BallotOp>(emit.builder.getI32Type(), mask.ir(), predicate.ir()), ScalarKind::Int32);
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

LangValue packWords(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  LangValue low = scalarBits(importer, call, "val0", ScalarKind::UInt32), high = scalarBits(importer, call, "val1", ScalarKind::UInt32);
  if (low.isPoison() || high.isPoison())
    return LangValue::poison();
  mlir::Type i64 = emit.builder.getI64Type();
  mlir::Value upper = emit.create<arith::ExtUIOp>(i64, high.ir());
  mlir::Value shifted = emit.create<arith::ShLIOp>(upper, emit.integerConstant(32, i64));
  return emit.wrap(emit.create<arith::OrIOp>(shifted, emit.create<arith::ExtUIOp>(i64, low.ir())), ScalarKind::UInt64);
}

} // namespace ditron::frontend::builtins
