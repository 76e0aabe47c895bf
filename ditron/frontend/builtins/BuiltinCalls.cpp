//===- BuiltinCalls.cpp - Calls of the language's functions ----------------------------------------------------------------===//
//
// Binds arguments to the parameters that the stubs declare and checks their rules, so that handlers see only good
// arguments and all messages about wrong calls have one form.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BlockPointers.h"
#include "ditron/frontend/Evaluator.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

std::string signatureOf(const Builtin &builtin) {
  return fmt::format("{}({})", qualifiedName(builtin), builtin.parameterText.str());
}

/// What a rule accepts, in words.
llvm::StringRef expectation(ParamRule rule) {
  switch (rule) {
  case ParamRule::Any: return "a value";
  case ParamRule::Number: return "a number or a tensor";
  case ParamRule::Tensor: return "a run-time scalar or block";
  case ParamRule::Block: return "a block";
  case ParamRule::Pointer: return "a pointer or a block of pointers";
  case ParamRule::Int: return "a compile-time int";
  case ParamRule::Bool: return "a compile-time bool";
  case ParamRule::Str: return "a compile-time string";
  case ParamRule::DType: return "a dtype";
  case ParamRule::Shape: return "compile-time ints";
  case ParamRule::Const: return "a compile-time value";
  case ParamRule::Function: return "a @jit function";
  case ParamRule::Descriptor: return "a tensor descriptor";
  case ParamRule::BlockPointer: return "a block pointer";
  case ParamRule::Memory: return "a pointer, a block of pointers or a block pointer";
  }
  return "a value";
}

bool isInt(const LangValue &value) {
  return value.isConstant() && value.constant().isIntegral() && value.constant().toInt64().has_value();
}

bool accepts(ParamRule rule, const LangValue &value) {
  switch (rule) {
  case ParamRule::Any: return true;
  case ParamRule::Number: return value.isLiteral() || (value.isTensor() && !value.type().isVoid());
  case ParamRule::Tensor: return value.isTensor();
  case ParamRule::Block: return value.isTensor() && value.type().isBlock();
  case ParamRule::Pointer: return value.isTensor() && value.type().isPointer();
  case ParamRule::Int: return isInt(value);
  case ParamRule::Bool: return value.isConstant() && value.constant().isIntegral();
  case ParamRule::Str: return value.isString();
  case ParamRule::DType: return value.isType();
  case ParamRule::Shape: return isInt(value) || (value.isTuple() && llvm::all_of(value.elements(), isInt));
  case ParamRule::Const: return value.isCompileTime();
  case ParamRule::Descriptor: return value.isDescriptor();
  case ParamRule::BlockPointer: return isBlockPointer(value);
  case ParamRule::Memory: return isBlockPointer(value) || accepts(ParamRule::Pointer, value);
  case ParamRule::Function: {
    const auto *function = value.getIf<FunctionValue>();
    return function && function->isJit;
  }
  }
  return false;
}

} // namespace

bool Evaluator::checkRule(const Builtin &builtin, const BuiltinParam &param, LangValue &value,
                         const CallArgument &argument) {
  if ((param.takesNone && value.isNone()) || accepts(param.rule, value))
    return true;
  // None for a text or a shape whose default is empty is this default.
  const BuiltinDefault &missing = param.defaultValue;
  const bool defaultsToEmpty = missing.kind == BuiltinDefault::EmptyTuple ||
                               (missing.kind == BuiltinDefault::Str && missing.text.empty());
  if (value.isNone() && defaultsToEmpty && (param.rule == ParamRule::Str || param.rule == ParamRule::Shape) && !param.isVariadic) {
    value = missing.value();
    return true;
  }
  // A dtype may also be given by its name.
  if (param.rule == ParamRule::DType && value.isString())
    if (auto kind = parseScalarKind(value.constant().getString())) {
      value = LangValue(LangType(*kind));
      return true;
    }
  std::string given = value.describe();
  if (param.rule == ParamRule::Shape && value.isTuple())
    for (const LangValue &element : value.elements())
      if (!isInt(element)) {
        given = fmt::format("{} with {} in it", given, element.describe());
        break;
      }
  Diagnostic &diagnostic =
      emit.error(argument.range, fmt::format("argument '{}' of {} must be {}, but got {}", param.name.str(),
                                             qualifiedName(builtin), expectation(param.rule).str(), given));
  bool wantsConstant = param.rule == ParamRule::Int || param.rule == ParamRule::Bool ||
                       param.rule == ParamRule::Const || param.rule == ParamRule::Shape;
  bool isRunTimeInTuple = param.rule == ParamRule::Shape && value.isTuple() && !value.isCompileTime();
  if (wantsConstant && (argument.isDecayedName || isRunTimeInTuple))
    diagnostic.hint("a number becomes a run-time value when it is assigned; declare the name with `: tl.constexpr`");
  else
    diagnostic.hint("the function is " + signatureOf(builtin));
  return false;
}

bool Evaluator::matchBuiltinArguments(const Builtin &builtin, llvm::ArrayRef<CallArgument> arguments,
                                     llvm::MutableArrayRef<llvm::SmallVector<const CallArgument *, 1>> matched) {
  std::string name = qualifiedName(builtin);
  auto reject = [&](SourceRange place, std::string message) {
    emit.error(place, std::move(message)).hint("the function is " + signatureOf(builtin));
    return false;
  };
  llvm::ArrayRef<BuiltinParam> params = builtin.params;
  size_t next = 0;
  for (const CallArgument &argument : arguments) {
    if (argument.keyword.empty()) {
      if (next == params.size())
        return reject(argument.range, fmt::format("{} takes at most {}, but more are given", name, plural(params.size(), "argument")));
      matched[next].push_back(&argument);
      next += !params[next].isVariadic;
      continue;
    }
    auto param = llvm::find_if(params, [&](const BuiltinParam &each) { return each.name == argument.keyword; });
    if (param == params.end()) {
      llvm::StringRef nearest;
      unsigned best = 3;
      for (const BuiltinParam &each : params)
        if (unsigned distance = argument.keyword.edit_distance(each.name, true, best); distance < best) {
          best = distance;
          nearest = each.name;
        }
      return reject(argument.keywordRange,
                    fmt::format("{} has no parameter '{}'{}", name, argument.keyword.str(),
                                nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest.str())));
    }
    auto &given = matched[param - params.begin()];
    if (!given.empty())
      return reject(argument.keywordRange,
                    fmt::format("argument '{}' of {} is given twice", argument.keyword.str(), name));
    given.push_back(&argument);
  }
  return true;
}

LangValue Evaluator::callBuiltin(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range) {
  if (!builtin.handler)
    return emit.fail(range, fmt::format("{} is not supported by this version: {}", qualifiedName(builtin), builtin.doc.str()));
  if (llvm::any_of(arguments, [](const CallArgument &argument) { return argument.value.isPoison(); }))
    return LangValue::poison();
  llvm::SmallVector<llvm::SmallVector<const CallArgument *, 1>> matched(builtin.params.size());
  if (!matchBuiltinArguments(builtin, arguments, matched))
    return LangValue::poison();
  BuiltinCall call;
  call.builtin = &builtin;
  call.range = range;
  bool isGood = true;
  for (auto [param, given] : llvm::zip_equal(builtin.params, matched)) {
    if (given.empty() && !param.isVariadic) {
      if (param.defaultValue.kind == BuiltinDefault::Missing) {
        emit.error(range, fmt::format("{} needs an argument for '{}'", qualifiedName(builtin), param.name.str()))
            .hint("the function is " + signatureOf(builtin));
        return LangValue::poison();
      }
      call.values.push_back(param.defaultValue.value());
      call.ranges.push_back({});
      continue;
    }
    std::vector<LangValue> values;
    SourceRange place;
    for (const CallArgument *argument : given) {
      values.push_back(argument->value);
      isGood &= checkRule(builtin, param, values.back(), *argument);
      place = place.isValid() ? place.join(argument->range) : argument->range;
    }
    call.values.push_back(param.isVariadic ? LangValue::tuple(std::move(values)) : std::move(values.front()));
    call.ranges.push_back(place);
  }
  if (!isGood)
    return LangValue::poison();
  Emitter::At at(emit, range);
  return builtin.handler(*this, call);
}

} // namespace ditron::frontend
