//===- BuiltinsPython.cpp - Python's functions and compile-time tools --------------------------------------------------===//
//
// Handlers of the functions that mostly work at compile time: ranges, min and max, conversions, isinstance, static_assert.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// The common part of range() and tl.range(): one to three scalar int bounds.
LangValue makeRange(Importer &importer, BuiltinCall &call, std::shared_ptr<RangeValue> range) {
  Emitter &emit = importer.emit;
  bool hasStop = !call.isNone("stop");
  range->start = hasStop ? call["start"] : LangValue::integer(0);
  range->stop = hasStop ? call["stop"] : call["start"];
  range->step = call.isNone("step") ? LangValue::integer(1) : call["step"];
  range->startRange = call.rangeOf("start");
  range->stopRange = hasStop ? call.rangeOf("stop") : call.rangeOf("start");
  range->stepRange = call.rangeOf("step");
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

LangValue fold(Importer &importer, BuiltinCall &call, bool isMax) {
  Emitter &emit = importer.emit;
  llvm::StringRef name = call.builtin->name;
  std::vector<LangValue> values = call["values"].elements();
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

LangValue convert(Importer &importer, BuiltinCall &call, Expected<ConstValue> (*conversion)(const ConstValue &)) {
  if (!call["x"].isConstant())
    return importer.emit.fail(call.rangeOf("x"),
                              fmt::format("{}() does not take {}", call.builtin->name.str(), call["x"].describe()));
  auto result = conversion(call["x"].constant());
  return result.isOk() ? LangValue(*result) : importer.emit.fail(call.range, result.status().message());
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Ranges
//===------------------------------------------------------------------------------------------------------------------===//

LangValue pythonRange(Importer &importer, BuiltinCall &call) {
  return makeRange(importer, call, std::make_shared<RangeValue>());
}

LangValue tileRange(Importer &importer, BuiltinCall &call) {
  auto range = std::make_shared<RangeValue>();
  range->kind = RangeValue::Kind::TileRange;
  range->numStages = call.optionalInteger("num_stages");
  range->unrollFactor = call.optionalInteger("loop_unroll_factor");
  range->disallowAccMultiBuffer = call.flag("disallow_acc_multi_buffer");
  range->flatten = call.flag("flatten");
  range->warpSpecialize = call.flag("warp_specialize");
  for (auto [name, value] :
       {std::pair("num_stages", range->numStages), std::pair("loop_unroll_factor", range->unrollFactor)})
    if (value && (*value < 0 || *value > 1024))
      return importer.emit.fail(call.rangeOf(name),
                                fmt::format("{} must be between 0 and 1024, but is {}", name, *value));
  return makeRange(importer, call, std::move(range));
}

LangValue staticRange(Importer &importer, BuiltinCall &call) {
  auto range = std::make_shared<RangeValue>();
  range->kind = RangeValue::Kind::StaticRange;
  return makeRange(importer, call, std::move(range));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Python's functions
//===------------------------------------------------------------------------------------------------------------------===//

LangValue pythonMin(Importer &importer, BuiltinCall &call) { return fold(importer, call, false); }
LangValue pythonMax(Importer &importer, BuiltinCall &call) { return fold(importer, call, true); }

LangValue pythonInt(Importer &importer, BuiltinCall &call) {
  return convert(importer, call, [](const ConstValue &value) { return toInt(value); });
}
LangValue pythonFloat(Importer &importer, BuiltinCall &call) {
  return convert(importer, call, [](const ConstValue &value) { return toFloat(value); });
}
LangValue pythonBool(Importer &importer, BuiltinCall &call) {
  return convert(importer, call,
                 [](const ConstValue &value) -> Expected<ConstValue> { return ConstValue::boolean(value.isTrue()); });
}
LangValue pythonStr(Importer &, BuiltinCall &call) { return LangValue::string(call["x"].display()); }

LangValue pythonLen(Importer &importer, BuiltinCall &call) {
  const LangValue &value = call["x"];
  if (value.isTuple())
    return LangValue::integer(value.elements().size());
  if (value.isTensor() && value.type().isBlock())
    return LangValue::integer(value.type().shape().front());
  if (value.isString()) {
    auto size = length(value.constant());
    return size.isOk() ? LangValue(*size) : importer.emit.fail(call.range, size.status().message());
  }
  return importer.emit.fail(call.rangeOf("x"), fmt::format("{} has no length", value.describe()));
}

LangValue pythonTuple(Importer &importer, BuiltinCall &call) {
  const LangValue &value = call["x"];
  if (value.isTuple())
    return value;
  return importer.emit.fail(call.rangeOf("x"),
                            fmt::format("{} is not a sequence that is known at compile time", value.describe()));
}

LangValue pythonIsinstance(Importer &importer, BuiltinCall &call) {
  const LangValue &value = call["x"];
  auto matches = [&](const LangValue &cls) -> std::optional<bool> {
    if (const auto *declared = cls.getIf<ClassValue>())
      return value.classInfo() && value.classInfo()->isOrInherits(declared->info.get());
    const auto *builtin = cls.getIf<BuiltinValue>();
    if (!builtin)
      return std::nullopt;
    llvm::StringRef name = builtin->builtin->name;
    if (name == "tensor")
      return value.isTensor();
    if (name == "tensor_descriptor")
      return value.isDescriptor();
    if (name == "dtype" || name == "pointer_type" || name == "block_type") {
      if (!value.isType())
        return false;
      return name == "dtype" || (name == "block_type" ? value.asType().isBlock() : value.asType().isPointer());
    }
    if (name == "constexpr_type")
      return value.classInfo() == constexprTypeClass().get();
    if (name == "constexpr")
      return value.isCompileTime();
    if (name == "tuple" || name == "list")
      return value.isTuple();
    if (!value.isConstant())
      return name == "int" || name == "float" || name == "bool" || name == "str" ? std::optional(false) : std::nullopt;
    const ConstValue &constant = value.constant();
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
  flatten(call["cls"], classes);
  bool result = false;
  for (const LangValue &cls : classes) {
    auto matched = matches(cls);
    if (!matched)
      return importer.emit.fail(call.rangeOf("cls"),
                                fmt::format("isinstance does not know {} as a class", cls.describe()));
    result |= *matched;
  }
  return LangValue::boolean(result);
}

LangValue pythonGetattr(Importer &importer, BuiltinCall &call) {
  const std::vector<LangValue> &fallback = call["default"].elements();
  if (fallback.size() > 1)
    return importer.emit.fail(call.range, "getattr takes two or three arguments");
  LangValue value = importer.attributeOf(call["x"], call.text("name"), call.range, fallback.empty());
  return value.isPoison() && !fallback.empty() ? fallback.front() : value;
}

LangValue pythonHasattr(Importer &importer, BuiltinCall &call) {
  return LangValue::boolean(!importer.attributeOf(call["x"], call.text("name"), call.range, false).isPoison());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Compile-time tools of tl
//===------------------------------------------------------------------------------------------------------------------===//

LangValue staticPrint(Importer &importer, BuiltinCall &call) {
  std::string text;
  for (const LangValue &value : call["values"].elements())
    text += (text.empty() ? "" : call.text("sep").str()) + value.display();
  llvm::StringRef end = call.text("end");
  text += end.ends_with("\n") ? end.drop_back() : end;
  if (importer.options.printStatic)
    importer.options.printStatic(text);
  return LangValue::none();
}

LangValue staticAssert(Importer &importer, BuiltinCall &call) {
  const LangValue &condition = call["cond"];
  if (!condition.isConstant() || !condition.constant().isIntegral())
    return importer.emit.fail(
        call.rangeOf("cond"),
        fmt::format("tl.static_assert needs a compile-time bool, but got {}", condition.describe()));
  if (condition.constant().isTrue())
    return LangValue::none();
  std::string message = call["msg"].display();
  return importer.emit.fail(call.range,
                            message.empty() ? "static assertion failed" : "static assertion failed: " + message);
}

LangValue condition(Importer &, BuiltinCall &call) { return call["arg"]; }

LangValue constexprOf(Importer &, BuiltinCall &call) { return call["value"]; }

LangValue toTensor(Importer &importer, BuiltinCall &call) {
  return importer.emit.toTensor(call["x"], call.rangeOf("x"));
}

LangValue pointerType(Importer &importer, BuiltinCall &call) {
  if (call.dtype("element_ty").isBlock())
    return importer.emit.fail(call.rangeOf("element_ty"), "a pointer points at a scalar, not at a block");
  if (call.integer("address_space") != 1)
    return importer.emit.fail(call.rangeOf("address_space"),
                              "only pointers to global memory (address space 1) are supported");
  return LangValue(LangType::pointer(call.dtype("element_ty"), call.flag("const")));
}

LangValue blockType(Importer &importer, BuiltinCall &call) {
  auto shape = call.dims("shape");
  if (!importer.checkBlockShape(shape, call.rangeOf("shape")))
    return LangValue::poison();
  return LangValue(call.dtype("element_ty").element().withShape(shape));
}

LangValue classOnly(Importer &importer, BuiltinCall &call) {
  return importer.emit.fail(
      call.range, fmt::format("{} is a class for isinstance and cannot be called", qualifiedName(*call.builtin)));
}

} // namespace ditron::frontend::builtins
