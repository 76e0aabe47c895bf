//===- BuiltinsMultimem.cpp - Accesses to the same place on all ranks -------------------------------------------------------===//
//
// Handlers of multimem stores and load-reduces, by each thread. They move words of 32 or 64 bits; a pointer to fp16 or bf16 names
// words that hold two of them, which the language sees as uint32.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/BuiltinArguments.h"
#include "ditron/frontend/Importer.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// A scalar mask as i1; null after a reported error.
mlir::Value maskOf(Importer &importer, BuiltinCall &call) {
  LangValue mask = importer.emit.toTensor(call["mask"], call.rangeOf("mask"));
  if (mask.isPoison())
    return {};
  if (mask.type().isBlock()) {
    reject(importer, call, "mask", "a scalar");
    return {};
  }
  mask = importer.emit.toBool(mask, call.rangeOf("mask"));
  return mask.isPoison() ? mlir::Value() : mask.ir();
}

} // namespace

LangValue multimemStore(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkWritablePointer(importer, call, "ptr"))
    return LangValue::poison();
  const LangValue &pointer = call["ptr"];
  llvm::StringRef name = call.builtin->name;
  const unsigned bits = name == "multimem_st_b64" ? 64 : 32;
  LangType element = pointer.type().pointee();
  if (element.isPointer() || element.bitWidth() > bits)
    return reject(importer, call, "ptr", fmt::format("a pointer to numbers of at most {} bits", bits));
  // Narrower numbers go several to a word, whose bits are given.
  const bool isWord = element.bitWidth() == bits;
  LangType word = isWord ? element : LangType(bits == 64 ? ScalarKind::UInt64 : ScalarKind::UInt32);
  mlir::Value address = pointer.ir();
  if (!isWord)
    address = emit.create<tile::PtrCastOp>(tile::PointerType::get(emit.ir(word)), address);
  llvm::SmallVector<llvm::StringRef> names = {"val"};
  if (name.ends_with("_v4"))
    names = {"val0", "val1", "val2", "val3"};
  else if (name.ends_with("_v2"))
    names = {"val0", "val1"};
  llvm::SmallVector<mlir::Value> values;
  for (llvm::StringRef one : names) {
    LangValue value = isWord ? scalarFor(importer, call, one, word) : scalarBits(importer, call, one, word);
    if (value.isPoison())
      return LangValue::poison();
    values.push_back(value.ir());
  }
  mlir::Value mask;
  if (name == "multimem_st_p_b32" && !(mask = maskOf(importer, call)))
    return LangValue::poison();
  emit.create<dist::MultimemStOp>(address, values, mask);
  return LangValue::none();
}

LangValue multimemLoadReduce(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (!checkScalarPointer(importer, call, "ptr"))
    return LangValue::poison();
  const LangValue &pointer = call["ptr"];
  const bool isMasked = call.builtin->name == "multimem_ld_reduce_p_v4";
  LangType element = pointer.type().pointee();
  const bool isHalf = element == LangType(ScalarKind::FP16) || element == LangType(ScalarKind::BF16);
  if (!isHalf && element != LangType(ScalarKind::FP32))
    return reject(importer, call, "ptr", "a pointer to fp32, fp16 or bf16");
  if (!isMasked && !call.isNone("acc_dtype") && call.dtype("acc_dtype") != LangType(ScalarKind::FP32))
    return reject(importer, call, "acc_dtype", "tl.float32 or None: sums are always made in fp32");
  mlir::Value mask;
  if (isMasked && !(mask = maskOf(importer, call)))
    return LangValue::poison();
  LangType word = isHalf ? LangType(ScalarKind::UInt32) : element;
  mlir::Value address = pointer.ir();
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

} // namespace ditron::frontend::builtins
