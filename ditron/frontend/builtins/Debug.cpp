//===- Debug.cpp - Prints and assertions of kernels ----------------------------------------------------------===//
//
// tl.device_print always prints. tl.device_assert and `assert` cost nothing unless the kernel is compiled with the option
// `debug`: then a false condition ends the run with the message.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "ditron/dialect/tile/Tile.h"
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace {

/// What Triton makes of a prefix: " prefix: ".
std::string normalised(llvm::StringRef prefix, bool hasValues) {
  std::string text = prefix.str();
  if (hasValues) {
    if (!prefix.ends_with(" "))
      text += " ";
    if (!llvm::StringRef(text).ends_with(": "))
      text = text.substr(0, text.size() - 1) + ": ";
  }
  return text.size() > 2 && text.front() != ' ' ? " " + text : text;
}

/// A value as the operation takes it: numbers of formats that no printf knows become fp32, but 8 bits in hexadecimal stay bits.
LangValue printable(Evaluator &evaluator, const LangValue &value, bool hex, SourceRange range) {
  LangValue tensor = evaluator.emit.toTensor(value, range);
  if (tensor.isPoison())
    return tensor;
  const LangType type = tensor.type().element();
  if (type.isBool())
    return evaluator.emit.cast(tensor, ScalarKind::Int32, range);
  if (type.isFloat() && hex && type.bitWidth() == 8)
    return evaluator.emit.bitcast(tensor, integerKind(type.bitWidth(), false), range);
  if (type.isFloat() && type.bitWidth() < 32)
    return evaluator.emit.cast(tensor, ScalarKind::FP32, range);
  return tensor;
}

} // namespace

/// Of tl.device_print and of print, which has no option hex.
static LangValue printValues(Evaluator &evaluator, BuiltinCall &call, const std::vector<LangValue> &given, bool hex) {
  Emitter &emit = evaluator.emit;
  if (given.empty() || !given.front().isString())
    return emit.fail(call.range, fmt::format("the first argument of {} must be a compile-time string, which begins every line",
                                             qualifiedName(*call.builtin)));
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<bool> isSigned;
  for (const LangValue &value : llvm::ArrayRef(given).drop_front()) {
    LangValue tensor = printable(evaluator, value, hex, call.range);
    if (tensor.isPoison())
      return tensor;
    values.push_back(tensor.ir());
    isSigned.push_back(tensor.type().isSigned());
  }
  emit.create<tile::PrintOp>(normalised(given.front().constant().getString(), !values.empty()), values, hex, isSigned);
  return LangValue::none();
}

LangValue devicePrint(Evaluator &evaluator, BuiltinCall &call, ListArg values, ValueArg hex) {
  return printValues(evaluator, call, *values, hex->isConstant() && hex->constant().isTrue());
}

LangValue pythonPrint(Evaluator &evaluator, BuiltinCall &call, ListArg values) {
  return printValues(evaluator, call, *values, /*hex=*/false);
}

LangValue deviceAssert(Evaluator &evaluator, BuiltinCall &call, ValueArg cond, ValueArg msg, ValueArg mask) {
  Emitter &emit = evaluator.emit;
  if (!evaluator.options.debug)
    return LangValue::none();
  LangValue condition = emit.toBool(*cond, cond.range);
  if (condition.isPoison())
    return condition;
  std::vector<LangValue> pair = {condition};
  if (!mask->isNone()) {
    pair.push_back(emit.toBool(*mask, mask.range));
    if (pair.back().isPoison() || !emit.broadcastTogether(pair, call.range))
      return LangValue::poison();
  }
  emit.create<tile::AssertOp>(pair[0].ir(), msg->display(), pair.size() > 1 ? pair[1].ir() : mlir::Value());
  return LangValue::none();
}

} // namespace ditron::frontend::builtins
