//===- BuiltinsMemory.cpp - Loads, stores, atomics, hints -----------------------------------------------------------------===//
//
// Handlers of the block-level memory functions and of promises about values.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/BlockPointers.h"
#include "ditron/frontend/BuiltinKeywords.h"
#include "ditron/frontend/Importer.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

bool refuseBlockPointerArguments(Importer &importer, BuiltinCall &call) {
  if (call.dims("boundary_check").empty() && (call.builtin->name != "load" || call.text("padding_option").empty()))
    return true;
  importer.emit.error(call.range, "`padding_option` or `boundary_check` argument is not supported for pointers and blocks of "
                                  "pointers; use mask and other, or block pointers (defined by `make_block_ptr`)");
  return false;
}

template <typename Op> bool setHints(Importer &importer, BuiltinCall &call, Op op) {
  auto cache = cacheModifierOf(importer, call, "cache_modifier");
  auto policy = evictionPolicyOf(importer, call, "eviction_policy");
  if (!cache || !policy)
    return false;
  op.setCache(*cache);
  op.setEvict(*policy);
  return true;
}

/// A mask as int1 in any shape; poison if there is none, or after an error.
LangValue maskOf(Importer &importer, BuiltinCall &call, bool &isGood) {
  if (call.isNone("mask"))
    return LangValue::poison();
  LangValue mask = importer.emit.toTensor(call["mask"], call.rangeOf("mask"));
  if (mask.isTensor() && !mask.type().isBool()) {
    importer.emit
        .error(call.rangeOf("mask"), fmt::format("argument 'mask' of {} must be int1, but got {}",
                                                 qualifiedName(*call.builtin), mask.describe()))
        .hint("compare it: mask != 0");
    mask = LangValue::poison();
  }
  isGood = !mask.isPoison();
  return mask;
}

/// A value in the element type behind a pointer.
LangValue convertValue(Importer &importer, BuiltinCall &call, llvm::StringRef name, const LangType &element) {
  Emitter &emit = importer.emit;
  const LangValue &value = call[name];
  SourceRange range = call.rangeOf(name);
  if (value.isLiteral() && !element.isPointer()) {
    if (!emit.checkLiteralFits(value.constant(), element, range))
      return LangValue::poison();
    return emit.constantOf(value.constant(), element);
  }
  LangValue tensor = emit.toTensor(value, range);
  if (tensor.isTensor() && tensor.type().isInt() && !tensor.type().isBool() && element.isPointer())
    tensor = emit.cast(tensor, ScalarKind::Int64, range);
  return tensor.isPoison() ? tensor : emit.cast(tensor, element, range);
}

/// Broadcasts a value or mask to the pointer's shape, which it must not exceed.
bool fitToPointer(Importer &importer, BuiltinCall &call, LangValue &value, llvm::StringRef name,
                  const LangValue &pointer) {
  LangValue pair[] = {pointer, value};
  auto shape = importer.emit.commonShape(pair, call.rangeOf(name));
  if (!shape)
    return false;
  if (llvm::ArrayRef<int64_t>(*shape) != pointer.type().shape()) {
    importer.emit.error(call.rangeOf(name),
                        fmt::format("argument '{}' of {} has shape {}, which does not fit the pointer's shape {}",
                                    name.str(), qualifiedName(*call.builtin),
                                    LangValue::shape(value.type().shape()).display(),
                                    LangValue::shape(pointer.type().shape()).display()));
    return false;
  }
  value = importer.emit.broadcastTo(value, *shape);
  return true;
}

bool refuseConstPointer(Importer &importer, BuiltinCall &call, const LangType &pointer) {
  if (!pointer.isConstPointer())
    return true;
  importer.emit.error(call.rangeOf("pointer"),
                      fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin), pointer.str()));
  return false;
}

} // namespace

LangValue load(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (isBlockPointer(call["pointer"]) ? !expandBlockPointer(importer, call) : !refuseBlockPointerArguments(importer, call))
    return LangValue::poison();
  LangValue pointer = call["pointer"];
  const LangType element = pointer.type().element().pointee();
  bool isGood = true;
  LangValue mask = maskOf(importer, call, isGood);
  if (!isGood)
    return LangValue::poison();
  bool hasMask = !mask.isPoison(), hasOther = !call.isNone("other");
  if (hasOther && !hasMask)
    return emit.fail(call.rangeOf("other"), "argument 'other' of tl.load needs a mask");
  LangValue other;
  if (hasOther) {
    other = convertValue(importer, call, "other", element);
    if (other.isPoison())
      return other;
  }
  for (const LangValue *extra : {&mask, &other})
    if (extra->isTensor() && extra->type().isBlock() && !pointer.type().isBlock())
      return emit.fail(call.rangeOf(extra == &mask ? "mask" : "other"),
                       fmt::format("argument '{}' of tl.load is a block, but the pointer is a scalar",
                                   extra == &mask ? "mask" : "other"));
  // Pointer, mask and other meet in one shape.
  llvm::SmallVector<LangValue> together{pointer};
  if (hasMask)
    together.push_back(mask);
  if (hasOther)
    together.push_back(other);
  if (!emit.broadcastTogether(together, call.range))
    return LangValue::poison();
  LangType type = element.withShape(together[0].type().shape());
  auto op = emit.create<tile::LoadOp>(together[0].ir(), hasMask ? together[1].ir() : mlir::Value(),
                                      hasOther ? together[2].ir() : mlir::Value());
  if (!setHints(importer, call, op))
    return LangValue::poison();
  op.setIsVolatile(call.flag("volatile"));
  return emit.wrap(op.getResult(), type);
}

LangValue store(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  if (isBlockPointer(call["pointer"]) ? !expandBlockPointer(importer, call) : !refuseBlockPointerArguments(importer, call))
    return LangValue::poison();
  const LangValue &pointer = call["pointer"];
  if (!refuseConstPointer(importer, call, pointer.type()))
    return LangValue::poison();
  LangValue value = convertValue(importer, call, "value", pointer.type().element().pointee());
  bool isGood = true;
  LangValue mask = maskOf(importer, call, isGood);
  if (value.isPoison() || !isGood || !fitToPointer(importer, call, value, "value", pointer))
    return LangValue::poison();
  if (!mask.isPoison() && !fitToPointer(importer, call, mask, "mask", pointer))
    return LangValue::poison();
  auto cache = cacheModifierOf(importer, call, "cache_modifier");
  auto policy = evictionPolicyOf(importer, call, "eviction_policy");
  if (!cache || !policy)
    return LangValue::poison();
  emit.create<tile::StoreOp>(pointer.ir(), value.ir(), mask.isPoison() ? mlir::Value() : mask.ir(), *cache, *policy);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Atomics
//===------------------------------------------------------------------------------------------------------------------===//

LangValue atomicRmw(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["pointer"];
  const LangType element = pointer.type().element().pointee();
  llvm::StringRef name = call.builtin->name.drop_front(strlen("atomic_"));
  if (!refuseConstPointer(importer, call, pointer.type()))
    return LangValue::poison();

  bool isBitwise = name == "and" || name == "or" || name == "xor";
  bool isHalf = element.is(ScalarKind::FP16) || element.is(ScalarKind::BF16);
  bool isWide = element.bitWidth() >= 32;
  bool allowed = !element.isPointer() && (isWide || (isHalf && name == "add")) && !(isBitwise && !element.isInt());
  if (!allowed)
    return emit.fail(call.rangeOf("pointer"), fmt::format("{} does not support elements of type {}",
                                                          qualifiedName(*call.builtin), element.str()));

  auto kind = [&]() -> tile::AtomicOp {
    bool isFloat = element.isFloat(), isSigned = element.isSigned();
    if (name == "add")
      return isFloat ? tile::AtomicOp::FAdd : tile::AtomicOp::Add;
    if (name == "max")
      return isFloat ? tile::AtomicOp::FMax : isSigned ? tile::AtomicOp::Max : tile::AtomicOp::UMax;
    if (name == "min")
      return isFloat ? tile::AtomicOp::FMin : isSigned ? tile::AtomicOp::Min : tile::AtomicOp::UMin;
    if (name == "and")
      return tile::AtomicOp::And;
    if (name == "or")
      return tile::AtomicOp::Or;
    return name == "xor" ? tile::AtomicOp::Xor : tile::AtomicOp::Exchange;
  }();
  LangValue value = convertValue(importer, call, "val", element);
  bool isGood = true;
  LangValue mask = maskOf(importer, call, isGood);
  if (value.isPoison() || !isGood || !fitToPointer(importer, call, value, "val", pointer))
    return LangValue::poison();
  if (!mask.isPoison() && !fitToPointer(importer, call, mask, "mask", pointer))
    return LangValue::poison();
  auto order = memoryOrderOf(importer, call, "sem", tile::MemoryOrder::AcquireRelease);
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  if (!order || !scope)
    return LangValue::poison();
  auto op = emit.create<tile::AtomicRmwOp>(value.ir().getType(), kind, *order, *scope, pointer.ir(), value.ir(),
                                           mask.isPoison() ? mlir::Value() : mask.ir());
  return emit.wrap(op.getResult(), value.type());
}

LangValue atomicCas(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &pointer = call["pointer"];
  const LangType element = pointer.type().element().pointee();
  if (!refuseConstPointer(importer, call, pointer.type()))
    return LangValue::poison();
  if (element.isPointer() || element.bitWidth() < 16)
    return emit.fail(call.rangeOf("pointer"),
                     fmt::format("tl.atomic_cas does not support elements of type {}", element.str()));
  // Nothing is converted here: tensors must have the element type, and literals take it only where both are numbers of one kind.
  LangValue operands[2];
  for (int index = 0; index < 2; ++index) {
    llvm::StringRef name = index == 0 ? "cmp" : "val";
    LangValue value = call[name];
    if (value.isLiteral() && value.constant().isIntegral() && element.isFloat())
      return emit.fail(call.rangeOf(name),
                       fmt::format("argument '{}' of tl.atomic_cas must have the element type {}, but got {}",
                                   name.str(), element.str(), value.describe()));
    if (value.isLiteral())
      value = convertValue(importer, call, name, element);
    if (value.isPoison())
      return value;
    if (value.type().element() != element)
      return emit.fail(call.rangeOf(name),
                       fmt::format("argument '{}' of tl.atomic_cas must have the element type {}, but got {}",
                                   name.str(), element.str(), value.describe()));
    if (!fitToPointer(importer, call, value, name, pointer))
      return LangValue::poison();
    operands[index] = value;
  }
  auto order = memoryOrderOf(importer, call, "sem", tile::MemoryOrder::AcquireRelease);
  auto scope = memoryScopeOf(importer, call, "scope", tile::MemoryScope::Gpu);
  if (!order || !scope)
    return LangValue::poison();
  auto op = emit.create<tile::AtomicCasOp>(operands[1].ir().getType(), *order, *scope, pointer.ir(), operands[0].ir(),
                                           operands[1].ir());
  return emit.wrap(op.getResult(), operands[1].type());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Hints
//===------------------------------------------------------------------------------------------------------------------===//

LangValue hint(Importer &importer, BuiltinCall &call) {
  Emitter &emit = importer.emit;
  const LangValue &value = call["input"];
  if (value.isLiteral())
    return value; // what is promised of a number is known anyway
  auto numbers = call.dims("values");
  size_t wanted = std::max(1u, value.type().rank());
  if (numbers.size() != wanted)
    return emit.fail(call.rangeOf("values"),
                     fmt::format("{} needs one number per dimension, {} for {}, but got {}",
                                 qualifiedName(*call.builtin), wanted, value.describe(), numbers.size()));
  for (int64_t number : numbers)
    if (number <= 0)
      return emit.fail(call.rangeOf("values"),
                       fmt::format("{} needs positive numbers, but got {}", qualifiedName(*call.builtin), number));
  auto array = emit.builder.getDenseI64ArrayAttr(numbers);
  llvm::StringRef name = call.builtin->name;
  mlir::DenseI64ArrayAttr none;
  return emit.wrap(emit.create<tile::HintOp>(value.ir().getType(), value.ir(), name == "multiple_of" ? array : none,
                                             name == "max_contiguous" ? array : none,
                                             name == "max_constancy" ? array : none),
                   value.type());
}

LangValue assume(Importer &importer, BuiltinCall &call) {
  const LangValue &condition = call["cond"];
  if (condition.isLiteral()) {
    if (!condition.constant().isTrue())
      importer.emit.warning(call.range, "this assumption is false at compile time");
    return LangValue::none();
  }
  if (condition.type().isBlock())
    return importer.emit.fail(call.rangeOf("cond"),
                              fmt::format("tl.assume needs a scalar condition, but got {}", condition.describe()));
  LangValue bit = importer.emit.toBool(condition, call.range);
  importer.emit.create<tile::AssumeOp>(bit.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
