//===- Python.cpp - Python's functions and compile-time tools --------------------------------------------------===//
//
// Handlers of the functions that mostly work at compile time: ranges, min and max, conversions, isinstance, static_assert.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/frontend/natives/PythonNames.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// The common part of range() and tl.range(): one to three scalar int bounds.
LangValue makeRange(Evaluator &evaluator, std::shared_ptr<RangeValue> range, const AnyArg &start, const AnyArg &stop,
                    const AnyArg &step) {
  Emitter &emit = evaluator.emit;
  bool hasStop = !stop.given->isNone();
  range->start = hasStop ? *start.given : LangValue::integer(0);
  range->stop = hasStop ? *stop.given : *start.given;
  range->step = step.given->isNone() ? LangValue::integer(1) : *step.given;
  range->startRange = start.range;
  range->stopRange = hasStop ? stop.range : start.range;
  range->stepRange = step.range;
  std::tuple<LangValue *, SourceRange, const char *> bounds[] = {{&range->start, range->startRange, "start"},
                                                                 {&range->stop, range->stopRange, "stop"},
                                                                 {&range->step, range->stepRange, "step"}};
  for (auto [value, place, name] : bounds) {
    bool isInt = (value->isConstant() && value->constant().isIntegral()) ||
                 (value->isTensor() && value->type().isInt() && !value->type().isBlock());
    if (!isInt)
      return emit.fail(place,
                       fmt::format("the {} of a range must be a scalar int, but got {}", name, value->describe()));
  }
  if (range->step.isConstant() && !range->step.constant().isTrue())
    return emit.fail(range->stepRange, "the step of a range must not be zero");
  return LangValue(std::shared_ptr<const RangeValue>(std::move(range)));
}

LangValue fold(Evaluator &evaluator, BuiltinCall &call, const ListArg &given, bool isMax) {
  Emitter &emit = evaluator.emit;
  llvm::StringRef name = call.builtin->name;
  std::vector<LangValue> values = *given;
  if (values.size() == 1 && values[0].isTuple())
    values = std::vector<LangValue>(values[0].elements());
  if (values.empty())
    return emit.fail(call.range, fmt::format("{} needs at least one argument", name.str()));
  LangValue result = values.front();
  for (const LangValue &value : llvm::drop_begin(values)) {
    if (result.isConstant() && value.isConstant()) {
      auto isNan = [](const LangValue &v) { return v.constant().isFloat() && std::isnan(v.constant().getFloat()); };
      if (isNan(result) || isNan(value))
        return emit.fail(call.range, fmt::format("{} of nan is not defined", name.str()));
      auto isNegativeZero = [](const LangValue &v) {
        return v.constant().isFloat() && v.constant().getFloat() == 0 && std::signbit(v.constant().getFloat());
      };
      if (isNegativeZero(result) || isNegativeZero(value))
        return emit.fail(call.range, fmt::format("{} of -0.0 is not defined: it is equal to 0.0", name.str()));
      LangValue better = emit.compare(isMax ? CompareOp::Gt : CompareOp::Lt, value, result, call.range);
      if (better.isPoison())
        return better;
      if (better.constant().isTrue())
        result = value;
      continue;
    }
    if (!(result.isTensor() || result.isLiteral()) || !(value.isTensor() || value.isLiteral()))
      return emit.fail(call.range,
                       fmt::format("{} does not take {} and {}", name.str(), result.describe(), value.describe()));
    result = emit.minMax(isMax, result, value, false, call.range);
    if (result.isPoison())
      return result;
    if (result.type().isBlock())
      emit.warning(call.range, fmt::format("{0} of blocks is deprecated in Triton: use tl.{0}imum", name.str()));
  }
  return result;
}

LangValue convert(Evaluator &evaluator, BuiltinCall &call, const ValueArg &x,
                  Expected<ConstValue> (*conversion)(const ConstValue &)) {
  if (!x->isConstant())
    return evaluator.emit.fail(x.range, fmt::format("{}() does not take {}", call.builtin->name.str(), x->describe()));
  auto result = conversion(x->constant());
  return result.isOk() ? LangValue(*result) : evaluator.emit.fail(call.range, result.status().message());
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Ranges
//===------------------------------------------------------------------------------------------------------------------===//

LangValue pythonRange(Evaluator &evaluator, BuiltinCall &call, ValueArg start, ValueArg stop, ValueArg step, ValueArg numStages,
                      ValueArg loopUnrollFactor, ValueArg disallowsAccMultiBuffer, ValueArg flattens, ValueArg specializesWarps,
                      ValueArg disableLicm) {
  for (const ValueArg *option : {&numStages, &loopUnrollFactor, &disallowsAccMultiBuffer, &flattens, &specializesWarps, &disableLicm})
    if (!(*option)->isNone())
      evaluator.emit.warning(option->range, fmt::format("{} has no effect on Python's range: use tl.range", option->name()));
  return makeRange(evaluator, std::make_shared<RangeValue>(), start, stop, step);
}

LangValue tileRange(Evaluator &evaluator, BuiltinCall &call, ValueArg start, ValueArg stop, ValueArg step,
                    Arg<std::optional<int64_t>> numStages, Arg<std::optional<int64_t>> loopUnrollFactor,
                    Arg<bool> disallowsAccMultiBuffer, Arg<bool> flattens, Arg<bool> specializesWarps,
                    Arg<bool> disableLicm, Arg<int64_t> clusterBlocks) {
  auto range = std::make_shared<RangeValue>();
  range->kind = RangeValue::Kind::TileRange;
  range->numStages = *numStages;
  range->unrollFactor = *loopUnrollFactor;
  range->disallowAccMultiBuffer = *disallowsAccMultiBuffer;
  range->flatten = *flattens;
  range->warpSpecialize = *specializesWarps;
  range->clusterBlocks = *clusterBlocks;
  if (*clusterBlocks != 1 && *clusterBlocks != 2)
    return evaluator.emit.fail(clusterBlocks.range,
                               fmt::format("{} must be 1 or 2, but is {}", clusterBlocks.name(), *clusterBlocks));
  for (const auto *option : {&numStages, &loopUnrollFactor})
    if (const std::optional<int64_t> &value = **option; value && (*value < 0 || *value > 1024))
      return evaluator.emit.fail(option->range, fmt::format("{} must be between 0 and 1024, but is {}", option->name(), *value));
  return makeRange(evaluator, std::move(range), start, stop, step);
}

LangValue staticRange(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> start, Arg<std::optional<int64_t>> stop,
                      Arg<std::optional<int64_t>> step) {
  auto range = std::make_shared<RangeValue>();
  range->kind = RangeValue::Kind::StaticRange;
  return makeRange(evaluator, std::move(range), start, stop, step);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Python's functions
//===------------------------------------------------------------------------------------------------------------------===//

LangValue pythonMin(Evaluator &evaluator, BuiltinCall &call, ListArg values) { return fold(evaluator, call, values, false); }
LangValue pythonMax(Evaluator &evaluator, BuiltinCall &call, ListArg values) { return fold(evaluator, call, values, true); }

LangValue pythonInt(Evaluator &evaluator, BuiltinCall &call, ValueArg x) {
  return convert(evaluator, call, x, [](const ConstValue &value) { return toInt(value); });
}
LangValue pythonFloat(Evaluator &evaluator, BuiltinCall &call, ValueArg x) {
  return convert(evaluator, call, x, [](const ConstValue &value) { return toFloat(value); });
}
LangValue pythonBool(Evaluator &evaluator, BuiltinCall &call, ValueArg x) {
  return convert(evaluator, call, x,
                 [](const ConstValue &value) -> Expected<ConstValue> { return ConstValue::boolean(value.isTrue()); });
}
LangValue pythonStr(Evaluator &evaluator, BuiltinCall &call, ValueArg x) { return LangValue::string(x->display()); }

LangValue pythonLen(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  if (value->isTuple())
    return LangValue::integer(value->elements().size());
  if (value->isTensor() && value->type().isBlock())
    return LangValue::integer(value->type().shape().front());
  if (value->isString()) {
    auto size = length(value->constant());
    return size.isOk() ? LangValue(*size) : evaluator.emit.fail(call.range, size.status().message());
  }
  return evaluator.emit.fail(value.range, fmt::format("{} has no length", value->describe()));
}

LangValue pythonTuple(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  if (value->isTuple())
    return *value;
  return evaluator.emit.fail(value.range, fmt::format("{} is not a sequence that is known at compile time", value->describe()));
}

LangValue pythonIsinstance(Evaluator &evaluator, BuiltinCall &call, ValueArg value, ValueArg classesArg) {
  auto matches = [&](const LangValue &cls) -> std::optional<bool> {
    if (const auto *declared = cls.getIf<ClassValue>())
      return value->classInfo() && value->classInfo()->isOrInherits(declared->info.get());
    const auto *builtin = cls.getIf<BuiltinValue>();
    if (!builtin)
      return std::nullopt;
    llvm::StringRef name = builtin->builtin->name;
    if (name == "tensor")
      return value->isTensor();
    if (name == "tensor_descriptor")
      return value->isDescriptor();
    if (name == "dtype" || name == "pointer_type" || name == "block_type") {
      if (!value->isType())
        return false;
      return name == "dtype" || (name == "block_type" ? value->asType().isBlock() : value->asType().isPointer());
    }
    if (name == "constexpr_type")
      return value->classInfo() == constexprTypeClass().get();
    if (name == "constexpr")
      return value->isCompileTime();
    if (name == "tuple" || name == "list")
      return value->isTuple();
    if (!value->isConstant())
      return name == "int" || name == "float" || name == "bool" || name == "str" ? std::optional(false) : std::nullopt;
    const ConstValue &constant = value->constant();
    if (name == "int")
      return constant.isIntegral();
    if (name == "bool")
      return constant.isBool();
    if (name == "float")
      return constant.isFloat();
    if (name == "str")
      return constant.isStr();
    return std::nullopt;
  };
  llvm::SmallVector<LangValue> classes;
  flatten(*classesArg, classes);
  bool result = false;
  for (const LangValue &cls : classes) {
    auto matched = matches(cls);
    if (!matched)
      return evaluator.emit.fail(classesArg.range, fmt::format("isinstance does not know {} as a class", cls.describe()));
    result |= *matched;
  }
  return LangValue::boolean(result);
}

LangValue pythonGetattr(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<llvm::StringRef> name, ListArg fallbackArg) {
  const std::vector<LangValue> &fallback = *fallbackArg;
  if (fallback.size() > 1)
    return evaluator.emit.fail(call.range, "getattr takes two or three arguments");
  LangValue value = evaluator.attributeOf(*x, *name, call.range, fallback.empty());
  return value.isPoison() && !fallback.empty() ? fallback.front() : value;
}

LangValue pythonHasattr(Evaluator &evaluator, BuiltinCall &call, ValueArg x, Arg<llvm::StringRef> name) {
  // Triton asks the number itself, which has no `dtype`, whatever attributes constexprs have in kernels.
  if (x->isConstant() && !isAttributeOfPython(*name))
    return LangValue::boolean(false);
  return LangValue::boolean(!evaluator.attributeOf(*x, *name, call.range, false).isPoison());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Compile-time tools of tl
//===------------------------------------------------------------------------------------------------------------------===//

LangValue staticPrint(Evaluator &evaluator, BuiltinCall &call, ListArg values, Arg<llvm::StringRef> sep, Arg<llvm::StringRef> end,
                      ValueArg file, ValueArg flush) {
  std::string text;
  for (const LangValue &value : *values)
    text += (text.empty() ? "" : sep->str()) + value.display();
  text += end->ends_with("\n") ? end->drop_back() : *end;
  if (evaluator.options.printStatic)
    evaluator.options.printStatic(text);
  return LangValue::none();
}

LangValue staticAssert(Evaluator &evaluator, BuiltinCall &call, ValueArg condition, ValueArg msg) {
  if (!condition->isConstant() || !condition->constant().isIntegral())
    return evaluator.emit.fail(condition.range,
                              fmt::format("tl.static_assert needs a compile-time bool, but got {}", condition->describe()));
  if (condition->constant().isTrue())
    return LangValue::none();
  std::string message = msg->display();
  return evaluator.emit.fail(call.range,
                            message.empty() ? "static assertion failed" : "static assertion failed: " + message);
}

LangValue condition(Evaluator &evaluator, BuiltinCall &call, ValueArg arg, Arg<bool> disableLicm) { return *arg; }

LangValue constexprOf(Evaluator &evaluator, BuiltinCall &call, ValueArg value) { return *value; }

LangValue toTensor(Evaluator &evaluator, BuiltinCall &call, ValueArg x) { return evaluator.emit.toTensor(*x, x.range); }

LangValue makeDtype(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef> name) {
  std::optional<ScalarKind> kind = parseScalarKind(*name);
  if (!kind || toString(*kind) != *name)
    return evaluator.fail(name.range,
                          fmt::format("tl.dtype has no type '{}'; its names are int1, int8 ... int64, uint8 ... uint64, fp8e5, "
                                      "fp8e4nv, fp8e4b15, fp16, bf16, fp32, fp64 and void",
                                      name->str()),
                          "AssertionError");
  return LangValue(LangType(*kind));
}

LangValue pointerType(Evaluator &evaluator, BuiltinCall &call, Arg<LangType> elementTy, Arg<int64_t> addressSpace,
                      Arg<bool> isConst) {
  if (elementTy->isBlock())
    return evaluator.emit.fail(elementTy.range, "a pointer points at a scalar, not at a block");
  if (*addressSpace != 1)
    return evaluator.emit.fail(addressSpace.range, "only pointers to global memory (address space 1) are supported");
  return LangValue(LangType::pointer(*elementTy, *isConst));
}

LangValue blockType(Evaluator &evaluator, BuiltinCall &call, Arg<LangType> elementTy, Arg<Dims> shape) {
  if (!evaluator.checkBlockShape(*shape, shape.range))
    return LangValue::poison();
  return LangValue(elementTy->element().withShape(*shape));
}

LangValue classOnly(Evaluator &evaluator, BuiltinCall &call) {
  return evaluator.emit.fail(
      call.range, fmt::format("{} is a class for isinstance and cannot be called", qualifiedName(*call.builtin)));
}

} // namespace ditron::frontend::builtins
