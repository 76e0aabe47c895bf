//===- Multimem.cpp - Accesses to the same place on all ranks -------------------------------------------------------===//
//
// Handlers of multimem stores and load-reduces, by each thread. They move words of 32 or 64 bits; a pointer to fp16 or bf16 names
// words that hold two of them, which the language sees as uint32.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// A scalar mask as i1; null after a reported error.
mlir::Value maskOf(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  LangValue mask = evaluator.emit.toTensor(*argument.given, argument.range);
  if (mask.isPoison())
    return {};
  if (mask.type().isBlock()) {
    reject(evaluator, call, argument, "a scalar");
    return {};
  }
  mask = evaluator.emit.toBool(mask, argument.range);
  return mask.isPoison() ? mlir::Value() : mask.ir();
}

} // namespace

LangValue multimemStore(Evaluator &evaluator, BuiltinCall &call, int64_t bits, bool isMasked, llvm::ArrayRef<AnyArg> arguments) {
  Emitter &emit = evaluator.emit;
  const AnyArg &ptr = arguments.front();
  if (!checkWritablePointer(evaluator, call, ptr))
    return LangValue::poison();
  const LangValue &pointer = *ptr.given;
  LangType element = pointer.type().pointee();
  if (element.isPointer() || int64_t(element.bitWidth()) > bits)
    return reject(evaluator, call, ptr, fmt::format("a pointer to numbers of at most {} bits", bits));
  // Narrower numbers go several to a word, whose bits are given.
  const bool isWord = int64_t(element.bitWidth()) == bits;
  LangType word = isWord ? element : LangType(bits == 64 ? ScalarKind::UInt64 : ScalarKind::UInt32);
  mlir::Value address = pointer.ir();
  if (!isWord)
    address = emit.create<tile::PtrCastOp>(tile::PointerType::get(emit.ir(word)), address);
  llvm::SmallVector<mlir::Value> values;
  for (const AnyArg &argument : arguments.drop_front().drop_back(isMasked)) {
    LangValue value = isWord ? scalarFor(evaluator, call, argument, word) : scalarBits(evaluator, call, argument, word);
    if (value.isPoison())
      return LangValue::poison();
    values.push_back(value.ir());
  }
  mlir::Value mask;
  if (isMasked && !(mask = maskOf(evaluator, call, arguments.back())))
    return LangValue::poison();
  emit.create<dist::MultimemStOp>(address, values, mask);
  return LangValue::none();
}

/// The type behind a pointer whose values can be summed; nullopt after an error.
static std::optional<LangType> summandOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &pointer) {
  if (!checkScalarPointer(evaluator, call, pointer))
    return std::nullopt;
  LangType element = pointer->type().pointee();
  if (element == LangType(ScalarKind::FP16) || element == LangType(ScalarKind::BF16) || element == LangType(ScalarKind::FP32))
    return element;
  reject(evaluator, call, pointer, "a pointer to fp32, fp16 or bf16");
  return std::nullopt;
}

/// The sums over all ranks of 16 bytes; without a mask everywhere.
static LangValue loadSums(Evaluator &evaluator, const ValueArg &pointer, const LangType &element, mlir::Value mask) {
  Emitter &emit = evaluator.emit;
  const bool isHalf = element.bitWidth() == 16;
  LangType word = isHalf ? LangType(ScalarKind::UInt32) : element;
  mlir::Value address = pointer->ir();
  mlir::TypeAttr packed;
  if (isHalf) {
    address = emit.create<tile::PtrCastOp>(tile::PointerType::get(emit.ir(word)), address);
    packed = mlir::TypeAttr::get(emit.ir(element));
  }
  llvm::SmallVector<mlir::Type> types(4, emit.ir(word));
  auto sums = emit.create<dist::MultimemLdReduceOp>(types, address, mask, dist::MultimemReduction::Add, packed);
  std::vector<LangValue> results;
  for (mlir::Value sum : sums.getResults())
    results.push_back(emit.wrap(sum, word));
  return LangValue::tuple(std::move(results));
}

LangValue multimemLoadReduce(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, Arg<std::optional<LangType>> accDtype) {
  std::optional<LangType> element = summandOf(evaluator, call, pointer);
  if (!element)
    return LangValue::poison();
  if (*accDtype && **accDtype != LangType(ScalarKind::FP32))
    return reject(evaluator, call, accDtype, "tl.float32 or None: sums are always made in fp32");
  return loadSums(evaluator, pointer, *element, mlir::Value());
}

LangValue maskedMultimemLoadReduce(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg maskArg) {
  std::optional<LangType> element = summandOf(evaluator, call, pointer);
  mlir::Value mask = element ? maskOf(evaluator, call, maskArg) : mlir::Value();
  return mask ? loadSums(evaluator, pointer, *element, mask) : LangValue::poison();
}

} // namespace ditron::frontend::builtins
