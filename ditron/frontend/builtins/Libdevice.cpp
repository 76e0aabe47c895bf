//===- Libdevice.cpp - Functions of libdevice --------------------------------------------------------------------===//
//
// A call names one of several overloads, which its operands' types must match exactly. What MLIR has an operation for becomes that
// operation, which the compiler understands and needs no library for; the rest becomes tile.extern_call of the symbol.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/Libdevice.h"

#include "ditron/dialect/tile/Tile.h"
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace ditron::frontend {
namespace {
namespace arith = mlir::arith;
namespace math = mlir::math;

struct Overload {
  llvm::StringRef name, symbol, result, operands;

  llvm::SmallVector<llvm::StringRef> operandTypes() const {
    llvm::SmallVector<llvm::StringRef> types;
    operands.split(types, ',');
    return types;
  }
};

constexpr Overload overloads[] = {
#define DITRON_LIBDEVICE(name, symbol, result, operands) {name, #symbol, result, operands},
#include "ditron/support/Libdevice.def"
};

/// The overloads of one name stand together.
llvm::ArrayRef<Overload> overloadsOf(llvm::StringRef name) {
  auto isNamed = [&](const Overload &each) { return each.name == name; };
  const Overload *first = llvm::find_if(overloads, isNamed), *last = first;
  while (last != std::end(overloads) && isNamed(*last))
    ++last;
  return {first, last};
}

LangType typeNamed(llvm::StringRef text) { return *parseScalarKind(text); }

/// "(fp32), (fp64)" in the language's names.
std::string describe(llvm::ArrayRef<Overload> choices) {
  std::vector<std::string> texts;
  for (const Overload &each : choices) {
    std::vector<std::string> types;
    for (llvm::StringRef type : each.operandTypes())
      types.push_back(typeNamed(type).str());
    texts.push_back(fmt::format("({})", fmt::join(types, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

using UnaryMaker = mlir::Value (*)(Emitter &, mlir::Value);
template <typename Op> mlir::Value makeUnary(Emitter &emit, mlir::Value x) { return emit.create<Op>(x); }

/// The operation for a symbol's name without "__nv_" and without the "f" of fp32; null if there is none.
UnaryMaker unaryOperation(llvm::StringRef name) {
  static const std::map<llvm::StringRef, UnaryMaker> makers = {
      {"ceil", makeUnary<math::CeilOp>},   {"cos", makeUnary<math::CosOp>},     {"erf", makeUnary<math::ErfOp>},
      {"exp", makeUnary<math::ExpOp>},     {"exp2", makeUnary<math::Exp2Op>},   {"fast_expf", makeUnary<math::ExpOp>},
      {"floor", makeUnary<math::FloorOp>}, {"log", makeUnary<math::LogOp>},     {"log2", makeUnary<math::Log2Op>},
      {"rint", makeUnary<math::RoundEvenOp>}, {"nearbyint", makeUnary<math::RoundEvenOp>},
      {"rsqrt", makeUnary<math::RsqrtOp>}, {"sin", makeUnary<math::SinOp>},     {"sqrt", makeUnary<math::SqrtOp>},
      {"sqrt_rn", makeUnary<math::SqrtOp>}, {"tanh", makeUnary<math::TanhOp>},  {"trunc", makeUnary<math::TruncOp>}};
  auto found = makers.find(name);
  return found == makers.end() ? nullptr : found->second;
}

/// The operation that does what a function does, or null.
mlir::Value asOperation(Emitter &emit, llvm::StringRef name, llvm::ArrayRef<LangValue> operands) {
  mlir::Value x = operands[0].ir();
  bool isFloat = operands[0].type().isFloat();
  if (operands.size() == 1 && isFloat)
    if (UnaryMaker make = unaryOperation(name))
      return make(emit, x);
  if (name == "abs")
    return isFloat ? emit.create<math::AbsFOp>(x).getResult() : emit.create<math::AbsIOp>(x).getResult();
  if (name == "fma" || name == "fma_rn")
    return emit.create<math::FmaOp>(x, operands[1].ir(), operands[2].ir());
  if (name == "div_rn")
    return emit.create<arith::DivFOp>(x, operands[1].ir());
  if (name == "copysign")
    return emit.create<math::CopySignOp>(x, operands[1].ir());
  if (name == "pow" && operands[1].type().isFloat())
    return emit.create<math::PowFOp>(x, operands[1].ir());
  return {};
}

/// Calls a symbol on operands that have been brought to one shape.
LangValue callSymbol(Emitter &emit, llvm::StringRef symbol, const LangType &result, llvm::ArrayRef<LangValue> operands, bool isPure) {
  llvm::SmallVector<mlir::Value> values;
  for (const LangValue &operand : operands)
    values.push_back(operand.ir());
  LangType type = result.withShape(operands[0].type().shape());
  auto call = emit.create<tile::ExternCallOp>(emit.ir(type), emit.builder.getStringAttr(symbol), values,
                                              isPure ? emit.builder.getUnitAttr() : mlir::UnitAttr());
  return emit.wrap(call.getResult(), type);
}

bool matches(const Overload &overload, llvm::ArrayRef<LangValue> operands) {
  auto types = overload.operandTypes();
  return types.size() == operands.size() && llvm::all_of(llvm::zip(types, operands), [](auto pair) {
           return typeNamed(std::get<0>(pair)) == std::get<1>(pair).type().element();
         });
}

/// The operands as tensors of one shape; false after an error.
bool prepareOperands(Evaluator &evaluator, llvm::ArrayRef<LangValue> given, SourceRange range, llvm::SmallVector<LangValue> &operands) {
  for (const LangValue &value : given) {
    operands.push_back(evaluator.emit.toTensor(value, range));
    if (operands.back().isPoison())
      return false;
  }
  return evaluator.emit.broadcastTogether(operands, range);
}

std::string typesOf(llvm::ArrayRef<LangValue> operands) {
  std::vector<std::string> types;
  for (const LangValue &operand : operands)
    types.push_back(operand.type().element().str());
  return fmt::format("({})", fmt::join(types, ", "));
}

LangValue libdeviceFunction(Evaluator &evaluator, BuiltinCall &call) {
  llvm::SmallVector<LangValue> operands;
  if (!prepareOperands(evaluator, call.values, call.range, operands))
    return LangValue::poison();
  llvm::ArrayRef<Overload> choices = overloadsOf(call.builtin->name);
  const Overload *choice = llvm::find_if(choices, [&](const Overload &each) { return matches(each, operands); });
  if (choice == choices.end())
    return evaluator.emit.fail(call.range, fmt::format("input arg type does not match: {} takes {}, but got {}",
                                                      qualifiedName(*call.builtin), describe(choices), typesOf(operands)));
  LangType result = typeNamed(choice->result);
  if (mlir::Value value = asOperation(evaluator.emit, choice->name, operands))
    return evaluator.emit.wrap(value, result.withShape(operands[0].type().shape()));
  return callSymbol(evaluator.emit, choice->symbol, result, operands, /*isPure=*/true);
}

} // namespace

void addLibdeviceRows(std::vector<Builtin> &rows) {
  static constexpr llvm::StringLiteral parameterTexts[] = {"arg0", "arg0, arg1", "arg0, arg1, arg2", "arg0, arg1, arg2, arg3"};
  static constexpr BuiltinParam params[] = {
      {"arg0", ParamRule::Number}, {"arg1", ParamRule::Number}, {"arg2", ParamRule::Number}, {"arg3", ParamRule::Number}};
  static std::vector<std::string> docs; // rows refer to these
  docs.reserve(std::size(overloads));
  for (const Overload *each = std::begin(overloads); each != std::end(overloads);) {
    llvm::ArrayRef<Overload> choices = overloadsOf(each->name);
    std::vector<std::string> forms;
    for (const Overload &choice : choices)
      forms.push_back(fmt::format("{} -> {}", describe(choice), typeNamed(choice.result).str()));
    docs.push_back(fmt::format("{}", fmt::join(forms, "; ")));
    size_t arity = each->operandTypes().size();
    rows.push_back({ModuleDevice, each->name, parameterTexts[arity - 1], "tensor", &libdeviceFunction, docs.back(),
                    llvm::ArrayRef(params).take_front(arity)});
    each = choices.end();
  }
}

namespace {

/// The function of libdevice of a symbol, for operands of these types; null after a reported error.
const Overload *findSymbol(Evaluator &evaluator, BuiltinCall &call, llvm::StringRef symbol, SourceRange place,
                           llvm::ArrayRef<LangValue> operands) {
  llvm::ArrayRef<Overload> all(overloads);
  const Overload *known = llvm::find_if(all, [&](const Overload &each) { return each.symbol == symbol; });
  if (known == all.end()) {
    evaluator.emit.error(place, fmt::format("{} knows no function '{}': foreign bitcode is not linked, only the "
                                            "functions of libdevice (__nv_...) can be called",
                                            qualifiedName(*call.builtin), symbol.str()));
    return nullptr;
  }
  if (matches(*known, operands))
    return known;
  evaluator.emit.error(call.range, fmt::format("input arg type does not match: {} takes {}, but got {}", symbol.str(),
                                               describe(*known), typesOf(operands)));
  return nullptr;
}

/// The operands of an argument that is a tuple, as tensors of one shape; empty after an error.
llvm::SmallVector<LangValue> operandsOf(Evaluator &evaluator, BuiltinCall &call, const ValueArg &args) {
  llvm::SmallVector<LangValue> operands;
  if (!args->isTuple() || args->elements().empty())
    evaluator.emit.error(args.range, fmt::format("argument 'args' of {} must be a tuple of operands", qualifiedName(*call.builtin)));
  else if (prepareOperands(evaluator, args->elements(), call.range, operands))
    return operands;
  return {};
}

/// The entry of a program's own table for operands, (symbol, result type); null if there is none.
const std::vector<LangValue> *entryFor(const DictValue &table, llvm::ArrayRef<LangValue> operands) {
  std::vector<LangValue> types;
  for (const LangValue &operand : operands)
    types.push_back(LangValue(operand.type().element()));
  const LangValue *entry = find(table, LangValue::tuple(std::move(types)));
  const std::vector<LangValue> *parts = entry ? entry->sequence() : nullptr;
  return parts && parts->size() == 2 && (*parts)[0].isString() && (*parts)[1].isType() ? parts : nullptr;
}

} // namespace

namespace builtins {

LangValue externElementwiseByTypes(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef>, Arg<llvm::StringRef>, ValueArg args,
                                   ValueArg symbols, Arg<bool> isPure) {
  llvm::SmallVector<LangValue> operands = operandsOf(evaluator, call, args);
  if (operands.empty())
    return LangValue::poison();
  if (!symbols->isDict())
    return evaluator.emit.fail(symbols.range, fmt::format("argument 'arg_type_symbol_dict' of {} must be a dict, but got {}",
                                                         qualifiedName(*call.builtin), symbols->describe()));
  const auto &table = *symbols->getIf<DictValue>();
  const std::vector<LangValue> *entry = entryFor(table, operands);
  if (!entry) {
    std::vector<std::string> keys;
    for (const auto &[key, value] : *table.items)
      keys.push_back(key.display());
    return evaluator.emit.fail(call.range, fmt::format("input arg type does not match: the dict has {}, but got {}",
                                                      fmt::join(keys, ", "), typesOf(operands)));
  }
  std::string symbol = (*entry)[0].constant().getString();
  const Overload *known = findSymbol(evaluator, call, symbol, symbols.range, operands);
  if (!known)
    return LangValue::poison();
  if (typeNamed(known->result) != (*entry)[1].asType())
    return evaluator.emit.fail(symbols.range, fmt::format("{} gives {}, not {}", symbol, typeNamed(known->result).str(),
                                                         (*entry)[1].asType().str()));
  return callSymbol(evaluator.emit, known->symbol, typeNamed(known->result), operands, *isPure);
}

/// The table of overloads is a compile-time mapping from tuples of types to (symbol, type).
LangValue externElementwise(Evaluator &evaluator, BuiltinCall &call, Arg<llvm::StringRef> symbol, ValueArg args,
                            Arg<bool> isPure) {
  llvm::SmallVector<LangValue> operands = operandsOf(evaluator, call, args);
  if (operands.empty())
    return LangValue::poison();
  const Overload *known = findSymbol(evaluator, call, *symbol, symbol.range, operands);
  return known ? callSymbol(evaluator.emit, *symbol, typeNamed(known->result), operands, *isPure) : LangValue::poison();
}

} // namespace builtins
} // namespace ditron::frontend
