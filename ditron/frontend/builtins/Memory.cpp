//===- Memory.cpp - Loads, stores, atomics, hints -----------------------------------------------------------------===//
//
// Handlers of the block-level memory functions and of promises about values.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BlockPointers.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

template <typename Op>
bool setHints(Evaluator &evaluator, BuiltinCall &call, Op op, const AnyArg &cacheModifier, const AnyArg &evictionPolicy) {
  auto cache = cacheModifierOf(evaluator, call, cacheModifier, /*isLoad=*/true);
  auto policy = evictionPolicyOf(evaluator, call, evictionPolicy);
  if (!cache || !policy)
    return false;
  op.setCache(*cache);
  op.setEvict(*policy);
  return true;
}

/// A mask as int1 in any shape; poison if there is none, or after an error.
LangValue maskOf(Evaluator &evaluator, BuiltinCall &call, const LangValue &given, SourceRange range, bool &isGood) {
  if (given.isNone())
    return LangValue::poison();
  LangValue mask = evaluator.emit.toTensor(given, range);
  if (mask.isTensor() && !mask.type().isBool()) {
    evaluator.emit
        .error(range,
               fmt::format("argument 'mask' of {} must be int1, but got {}", qualifiedName(*call.builtin), mask.describe()))
        .hint("compare it: mask != 0");
    mask = LangValue::poison();
  }
  isGood = !mask.isPoison();
  return mask;
}

/// A value in the element type behind a pointer.
LangValue convertValue(Evaluator &evaluator, const LangValue &value, SourceRange range, const LangType &element) {
  Emitter &emit = evaluator.emit;
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
bool fitToPointer(Evaluator &evaluator, BuiltinCall &call, LangValue &value, const AnyArg &argument, const LangValue &pointer) {
  LangValue pair[] = {pointer, value};
  auto shape = evaluator.emit.commonShape(pair, argument.range);
  if (!shape)
    return false;
  if (llvm::ArrayRef<int64_t>(*shape) != pointer.type().shape()) {
    evaluator.emit.error(argument.range,
                        fmt::format("argument '{}' of {} has shape {}, which does not fit the pointer's shape {}",
                                    argument.name(), qualifiedName(*call.builtin),
                                    LangValue::shape(value.type().shape()).display(),
                                    LangValue::shape(pointer.type().shape()).display()));
    return false;
  }
  value = evaluator.emit.broadcastTo(value, *shape);
  return true;
}

bool refuseConstPointer(Evaluator &evaluator, BuiltinCall &call, const LangType &pointer, SourceRange range) {
  if (!pointer.isConstPointer())
    return true;
  evaluator.emit.error(
      range, fmt::format("Cannot store to a constant pointer: {} through {}", qualifiedName(*call.builtin), pointer.str()));
  return false;
}

} // namespace

LangValue load(Evaluator &evaluator, BuiltinCall &call, ValueArg pointerArg, ValueArg maskArg, ValueArg otherArg,
               Arg<Dims> boundaryCheck, Arg<llvm::StringRef> paddingOption, Arg<llvm::StringRef> cacheModifier,
               Arg<llvm::StringRef> evictionPolicy, Arg<bool> isVolatile) {
  Emitter &emit = evaluator.emit;
  AccessOperands operands{*pointerArg, *maskArg, *otherArg};
  if (!resolveBlockPointer(evaluator, call, operands, maskArg, &otherArg, {boundaryCheck, &paddingOption}))
    return LangValue::poison();
  const LangValue &pointer = operands.pointer;
  const LangType element = pointer.type().element().pointee();
  bool isGood = true;
  LangValue mask = maskOf(evaluator, call, operands.mask, maskArg.range, isGood);
  if (!isGood)
    return LangValue::poison();
  bool hasMask = !mask.isPoison(), hasOther = !operands.other.isNone();
  if (hasOther && !hasMask)
    return emit.fail(otherArg.range, "argument 'other' of tl.load needs a mask");
  LangValue other;
  if (hasOther) {
    other = convertValue(evaluator, operands.other, otherArg.range, element);
    if (other.isPoison())
      return other;
  }
  for (const LangValue *extra : {&mask, &other})
    if (extra->isTensor() && extra->type().isBlock() && !pointer.type().isBlock())
      return emit.fail(
          extra == &mask ? maskArg.range : otherArg.range,
          fmt::format("argument '{}' of tl.load is a block, but the pointer is a scalar", extra == &mask ? "mask" : "other"));
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
  if (!setHints(evaluator, call, op, cacheModifier, evictionPolicy))
    return LangValue::poison();
  op.setIsVolatile(*isVolatile);
  return emit.wrap(op.getResult(), type);
}

LangValue store(Evaluator &evaluator, BuiltinCall &call, ValueArg pointerArg, ValueArg valueArg, ValueArg maskArg,
                Arg<Dims> boundaryCheck, Arg<llvm::StringRef> cacheModifier, Arg<llvm::StringRef> evictionPolicy,
                Arg<bool> isVolatile) {
  Emitter &emit = evaluator.emit;
  AccessOperands operands{*pointerArg, *maskArg, LangValue::none()};
  if (!resolveBlockPointer(evaluator, call, operands, maskArg, nullptr, {boundaryCheck}))
    return LangValue::poison();
  const LangValue &pointer = operands.pointer;
  if (!refuseConstPointer(evaluator, call, pointer.type(), pointerArg.range))
    return LangValue::poison();
  LangValue value = convertValue(evaluator, *valueArg, valueArg.range, pointer.type().element().pointee());
  bool isGood = true;
  LangValue mask = maskOf(evaluator, call, operands.mask, maskArg.range, isGood);
  if (value.isPoison() || !isGood || !fitToPointer(evaluator, call, value, valueArg, pointer))
    return LangValue::poison();
  if (!mask.isPoison() && !fitToPointer(evaluator, call, mask, maskArg, pointer))
    return LangValue::poison();
  auto cache = cacheModifierOf(evaluator, call, cacheModifier, /*isLoad=*/false);
  auto policy = evictionPolicyOf(evaluator, call, evictionPolicy);
  if (!cache || !policy)
    return LangValue::poison();
  emit.create<tile::StoreOp>(pointer.ir(), value.ir(), mask.isPoison() ? mlir::Value() : mask.ir(), *cache, *policy, *isVolatile);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Atomics
//===------------------------------------------------------------------------------------------------------------------===//

LangValue atomicRmw(Evaluator &evaluator, BuiltinCall &call, tile::AtomicOp op, ValueArg pointer, ValueArg val, ValueArg maskArg,
                    Arg<std::optional<llvm::StringRef>> sem, Arg<std::optional<llvm::StringRef>> scopeArg) {
  Emitter &emit = evaluator.emit;
  const LangType element = pointer->type().element().pointee();
  if (!refuseConstPointer(evaluator, call, pointer->type(), pointer.range))
    return LangValue::poison();

  bool isBitwise = op == tile::AtomicOp::And || op == tile::AtomicOp::Or || op == tile::AtomicOp::Xor;
  bool isHalf = element.is(ScalarKind::FP16) || element.is(ScalarKind::BF16);
  bool isWide = element.bitWidth() >= 32;
  bool allowed = !element.isPointer() && (isWide || (isHalf && op == tile::AtomicOp::Add)) && !(isBitwise && !element.isInt());
  if (!allowed)
    return emit.fail(pointer.range,
                     fmt::format("{} does not support elements of type {}", qualifiedName(*call.builtin), element.str()));

  LangValue value = convertValue(evaluator, *val, val.range, element);
  bool isGood = true;
  LangValue mask = maskOf(evaluator, call, *maskArg, maskArg.range, isGood);
  if (value.isPoison() || !isGood || !fitToPointer(evaluator, call, value, val, *pointer))
    return LangValue::poison();
  if (!mask.isPoison() && !fitToPointer(evaluator, call, mask, maskArg, *pointer))
    return LangValue::poison();
  auto order = memoryOrderOf(evaluator, call, sem, tile::MemoryOrder::AcquireRelease);
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  if (!order || !scope)
    return LangValue::poison();
  auto old = emit.create<tile::AtomicRmwOp>(value.ir().getType(), atomicKind(op, element), *order, *scope, pointer->ir(),
                                            value.ir(), mask.isPoison() ? mlir::Value() : mask.ir());
  return emit.wrap(old.getResult(), value.type());
}

LangValue atomicCas(Evaluator &evaluator, BuiltinCall &call, ValueArg pointer, ValueArg cmp, ValueArg val,
                    Arg<std::optional<llvm::StringRef>> sem, Arg<std::optional<llvm::StringRef>> scopeArg) {
  Emitter &emit = evaluator.emit;
  const LangType element = pointer->type().element().pointee();
  if (!refuseConstPointer(evaluator, call, pointer->type(), pointer.range))
    return LangValue::poison();
  if (element.isPointer() || element.bitWidth() < 16)
    return emit.fail(pointer.range, fmt::format("tl.atomic_cas does not support elements of type {}", element.str()));
  // Nothing is converted here: tensors must have the element type, and literals take it only where both are numbers of one kind.
  LangValue operands[2];
  for (int index = 0; index < 2; ++index) {
    const ValueArg &argument = index == 0 ? cmp : val;
    LangValue value = *argument;
    if (value.isLiteral() && value.constant().isIntegral() && element.isFloat())
      return emit.fail(argument.range, fmt::format("argument '{}' of tl.atomic_cas must have the element type {}, but got {}",
                                                   argument.name(), element.str(), value.describe()));
    if (value.isLiteral())
      value = convertValue(evaluator, value, argument.range, element);
    if (value.isPoison())
      return value;
    if (value.type().element() != element)
      return emit.fail(argument.range, fmt::format("argument '{}' of tl.atomic_cas must have the element type {}, but got {}",
                                                   argument.name(), element.str(), value.describe()));
    if (!fitToPointer(evaluator, call, value, argument, *pointer))
      return LangValue::poison();
    operands[index] = value;
  }
  auto order = memoryOrderOf(evaluator, call, sem, tile::MemoryOrder::AcquireRelease);
  auto scope = memoryScopeOf(evaluator, call, scopeArg, tile::MemoryScope::Gpu);
  if (!order || !scope)
    return LangValue::poison();
  auto op = emit.create<tile::AtomicCasOp>(operands[1].ir().getType(), *order, *scope, pointer->ir(), operands[0].ir(),
                                           operands[1].ir());
  return emit.wrap(op.getResult(), operands[1].type());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Hints
//===------------------------------------------------------------------------------------------------------------------===//

LangValue hint(Evaluator &evaluator, BuiltinCall &call, ValueArg value, Arg<Dims> numbers) {
  Emitter &emit = evaluator.emit;
  if (value->isLiteral())
    return *value; // what is promised of a number is known anyway
  size_t wanted = std::max(1u, value->type().rank());
  if (numbers->size() != wanted)
    return emit.fail(numbers.range, fmt::format("{} needs one number per dimension, {} for {}, but got {}",
                                                qualifiedName(*call.builtin), wanted, value->describe(), numbers->size()));
  for (int64_t number : *numbers)
    if (number <= 0)
      return emit.fail(numbers.range,
                       fmt::format("{} needs positive numbers, but got {}", qualifiedName(*call.builtin), number));
  auto array = emit.builder.getDenseI64ArrayAttr(*numbers);
  llvm::StringRef name = call.builtin->name;
  mlir::DenseI64ArrayAttr none;
  return emit.wrap(emit.create<tile::HintOp>(value->ir().getType(), value->ir(), name == "multiple_of" ? array : none,
                                             name == "max_contiguous" ? array : none, name == "max_constancy" ? array : none),
                   value->type());
}

LangValue assume(Evaluator &evaluator, BuiltinCall &call, ValueArg condition) {
  if (condition->isLiteral()) {
    if (!condition->constant().isTrue())
      evaluator.emit.warning(call.range, "this assumption is false at compile time");
    return LangValue::none();
  }
  if (condition->type().isBlock())
    return evaluator.emit.fail(condition.range,
                              fmt::format("tl.assume needs a scalar condition, but got {}", condition->describe()));
  LangValue bit = evaluator.emit.toBool(*condition, call.range);
  evaluator.emit.create<tile::AssumeOp>(bit.ir());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
