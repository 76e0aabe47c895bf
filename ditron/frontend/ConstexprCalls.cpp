//===- ConstexprCalls.cpp - What the interpreter and the importer ask of each other ----------------------------------------===//
//
// Kernels call constexpr functions and read constants of the module level, which the interpreter computes; it in turn asks for
// classes, attributes of tensors, and functions of the language.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

#include <fmt/format.h>

namespace ditron::frontend {

Importer::Importer(mlir::MLIRContext &context, Modules &modules, const ModuleScope &globals, const ImportOptions &options,
                   DiagnosticEngine &diagnostics)
    : emit(context, diagnostics), options(options), globals(globals), modules(modules), library(diagnostics),
      interpreter(&modules, interpreterHooks()) {
  emit.checksOverflow = options.debug;
}

InterpreterHooks Importer::interpreterHooks() {
  // Whatever is executed for the interpreter sees no names of the function that is being imported.
  auto inOwnFrame = [this](auto body) {
    frames.push_back(std::make_unique<Frame>());
    frame().scope = &globals;
    auto result = body();
    frames.pop_back();
    return result;
  };
  InterpreterHooks hooks;
  hooks.call = [this, inOwnFrame](const LangValue &callee, const HostArguments &given, SourceRange range) {
    std::vector<CallArgument> arguments;
    auto add = [&](llvm::StringRef keyword, const HostValue &value) {
      std::optional<LangValue> argument = value.toLanguage();
      if (!argument) {
        emit.error(range, fmt::format("{} cannot be handed to {}", value.typeName(), callee.describe()));
        return false;
      }
      arguments.push_back(CallArgument{keyword, std::move(*argument), range, range, false});
      return true;
    };
    for (const HostValue &value : given.positional)
      if (!add("", value))
        return LangValue::poison();
    for (const auto &[keyword, value] : given.keywords)
      if (!add(keyword, value))
        return LangValue::poison();
    LangValue result = inOwnFrame([&] { return callValue(callee, std::move(arguments), range, range, range); });
    if (!result.isPoison() && !result.isCompileTime())
      return emit.fail(range, fmt::format("{} gives a run-time value and cannot be called at compile time",
                                          callee.describe()));
    return result;
  };
  hooks.attribute = [this, inOwnFrame](const LangValue &object, llvm::StringRef name, SourceRange range) {
    LangValue value = inOwnFrame([&] { return attributeOf(object, name, range, false); });
    return value.isPoison() ? std::nullopt : std::optional<LangValue>(value);
  };
  hooks.classOf = [this](const ast::ClassDef *node, const ModuleScope *scope, SourceRange use) {
    auto cls = classOf(node, scope, use);
    return cls ? LangValue(ClassValue{cls}) : LangValue::poison();
  };
  hooks.classOfCall = [this](const ast::Call *call, const ModuleScope *scope) -> std::optional<LangValue> {
    if (auto cls = namedTupleOf(call, scope))
      return LangValue(ClassValue{cls});
    return std::nullopt;
  };
  hooks.library = [this](const LangValue &value, SourceRange range) { return resolveLibrary(value, range); };
  return hooks;
}

LangValue Importer::fromHost(const HostValue &value, SourceRange use) {
  if (auto failure = interpreter.takeFailure()) {
    if (failure->message.empty())
      return LangValue::poison();
    size_t outer = emit.callSites.size();
    llvm::append_range(emit.callSites, failure->calls);
    Diagnostic &diagnostic = emit.error(failure->range.isValid() ? failure->range : use, std::move(failure->message));
    emit.callSites.resize(outer);
    if (!failure->hint.empty())
      diagnostic.hint(std::move(failure->hint));
    return LangValue::poison();
  }
  std::optional<LangValue> result = value.toLanguage();
  if (!result)
    return emit.fail(use, fmt::format("a value of type '{}' exists only at compile time and has no meaning in a kernel",
                                      value.typeName()));
  return *result;
}

LangValue Importer::callConstexpr(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                  SourceRange range) {
  HostArguments given;
  for (const CallArgument &argument : arguments) {
    if (argument.value.isPoison())
      return LangValue::poison();
    HostValue value = HostValue::fromLanguage(argument.value);
    if (argument.keyword.empty())
      given.positional.push_back(std::move(value));
    else
      given.keywords.emplace_back(argument.keyword.str(), std::move(value));
  }
  HostValue result = interpreter.call(HostValue::fromLanguage(LangValue(function)), given, range);
  return fromHost(result, range);
}

} // namespace ditron::frontend
