//===- TuningSpace.cpp - Configurations and heuristics of a kernel's decorators -------------------------------------------===//
#include "ditron/frontend/TuningSpace.h"

#include "ditron/frontend/Decorators.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

const ast::Expr *argumentOf(const ast::Call *call, llvm::StringRef name, size_t position) {
  for (const ast::Keyword &keyword : call->keywords)
    if (keyword.name.text == name)
      return keyword.value;
  return position < call->args.size() ? call->args[position] : nullptr;
}

std::string describe(const Interpreter::Failure &failure, const SourceManager &sources) {
  if (!failure.range.isValid())
    return failure.message;
  LineColumn place = sources.beginOf(failure.range);
  return fmt::format("{}:{}:{}: {}", sources.file(failure.range.file).path().str(), place.line, place.column,
                     failure.message);
}

/// A launch option of a configuration, or why it is refused.
std::optional<uint32_t> numberOf(const HostObject &config, llvm::StringRef name) {
  const HostValue *value = find(config, name);
  std::optional<int64_t> number = value && value->isIntegral() ? value->constant().toInt64() : std::nullopt;
  return number && *number >= 0 && *number <= 65535 ? std::optional<uint32_t>(*number) : std::nullopt;
}

TuningConfig toConfig(const HostObject &object, const ast::FunctionDef *kernel) {
  TuningConfig config;
  auto refuse = [&](std::string reason) {
    if (config.refusal.empty())
      config.refusal = std::move(reason);
  };
  for (const auto &[key, value] : *find(object, "kwargs")->getIf<HostDict>()->items) {
    std::string name = key.str();
    if (llvm::none_of(kernel->params, [&](const ast::Param &param) { return param.name.text == name; }))
      refuse(fmt::format("the kernel has no parameter '{}'", name));
    std::optional<ConstexprArgument> argument = constexprArgument(value);
    if (argument)
      config.values.emplace_back(std::move(name), std::move(*argument));
    else
      refuse(fmt::format("the value of '{}' is a {}, which a launch cannot give", name, value.typeName()));
  }
  for (auto [name, field] : {std::pair("num_warps", &TuningConfig::numWarps), std::pair("num_stages", &TuningConfig::numStages),
                             std::pair("num_ctas", &TuningConfig::numCtas)}) {
    if (std::optional<uint32_t> number = numberOf(object, name))
      config.*field = *number;
    else
      refuse(fmt::format("{} is {}", name, find(object, name)->repr()));
  }
  if (config.numWarps == 0 || config.numWarps > 32 || (config.numWarps & (config.numWarps - 1)) != 0)
    refuse(fmt::format("num_warps is {}; 1, 2, 4, 8, 16 or 32 is accepted", config.numWarps));
  if (config.numCtas != 1)
    refuse(fmt::format("num_ctas is {}; clusters are not supported, only 1 is", config.numCtas));
  config.maxRegisters = numberOf(object, "maxnreg");
  return config;
}

} // namespace

std::optional<ConstexprArgument> constexprArgument(const HostValue &value) {
  if (value.isConstant())
    return ConstexprArgument(value.constant());
  if (const auto *type = value.getIf<LangType>())
    return ConstexprArgument(*type);
  return std::nullopt;
}

std::string TuningConfig::str() const {
  std::string text;
  for (const auto &[name, value] : values)
    text += fmt::format("{}={} ", name, printConstexpr(value));
  text += fmt::format("num_warps={} num_stages={}", numWarps, numStages);
  if (numCtas != 1)
    text += fmt::format(" num_ctas={}", numCtas);
  if (maxRegisters)
    text += fmt::format(" maxnreg={}", *maxRegisters);
  return text;
}

std::vector<std::string> TuningSpace::tunedParameters() const {
  std::vector<std::string> names;
  for (const TuningConfig &config : configs)
    for (const auto &[name, value] : config.values)
      if (!llvm::is_contained(names, name))
        names.push_back(name);
  return names;
}

const TuningConfig *TuningSpace::first() const {
  for (const TuningConfig &config : configs)
    if (config.refusal.empty())
      return &config;
  return nullptr;
}

TuningSpace readTuningSpace(const ast::FunctionDef *kernel, const ModuleScope &scope, Interpreter &interpreter,
                            const SourceManager &sources) {
  TuningSpace space;
  auto evaluate = [&](const ast::Expr *expression) -> std::optional<HostValue> {
    HostValue value = interpreter.evaluate(expression, scope);
    if (auto failure = interpreter.takeFailure()) {
      if (space.problem.empty())
        space.problem = describe(*failure, sources);
      return std::nullopt;
    }
    return value;
  };
  for (const ast::Expr *decorator : kernel->decorators) {
    const auto *call = llvm::dyn_cast<ast::Call>(decorator);
    llvm::StringRef name = scope.decoratorName(decorator);
    if (call && name == "autotune") {
      const ast::Expr *configs = argumentOf(call, "configs", 0), *keys = argumentOf(call, "key", 1);
      std::optional<HostValue> list = configs ? evaluate(configs) : std::nullopt;
      if (list && list->sequence()) {
        for (const HostValue &each : *list->sequence()) {
          const auto *object = each.getIf<std::shared_ptr<const HostObject>>();
          if (object && (*object)->type == "Config")
            space.configs.push_back(toConfig(**object, kernel));
          else
            space.problem = fmt::format("a configuration of @triton.autotune is {}, not a triton.Config", each.repr());
        }
      }
      if (std::optional<HostValue> value = keys ? evaluate(keys) : std::nullopt; value && value->sequence())
        for (const HostValue &key : *value->sequence())
          space.keys.push_back(key.str());
    } else if (call && name == "heuristics") {
      const ast::Expr *values = argumentOf(call, "values", 0);
      std::optional<HostValue> dict = values ? evaluate(values) : std::nullopt;
      if (dict && dict->is<HostDict>())
        for (const auto &[key, function] : *dict->getIf<HostDict>()->items)
          space.heuristics.push_back(key.str());
    }
  }
  return space;
}

Status applySpecialisationRules(KernelInfo &info, const ast::FunctionDef *kernel, const ModuleScope &scope,
                                Interpreter &interpreter) {
  for (const ast::Expr *decorator : kernel->decorators) {
    const auto *call = llvm::dyn_cast<ast::Call>(decorator);
    if (!call || scope.decoratorName(decorator) != "jit")
      continue;
    for (const ast::Keyword &keyword : call->keywords) {
      const bool isAll = keyword.name.text == "do_not_specialize";
      if (!isAll && keyword.name.text != "do_not_specialize_on_alignment")
        continue;
      HostValue list = interpreter.evaluate(keyword.value, scope);
      if (auto failure = interpreter.takeFailure())
        return invalidArgument(fmt::format("kernel '{}': {}: {}", info.name, keyword.name.text.str(), failure->message));
      for (const HostValue &item : list.sequence() ? *list.sequence() : HostSequence()) {
        ParameterInfo *parameter = nullptr;
        for (ParameterInfo &each : info.parameters)
          if (item.isString() && each.name == item.str())
            parameter = &each;
        if (std::optional<int64_t> index = item.isIntegral() ? item.constant().toInt64() : std::nullopt;
                 index && *index >= 0 && *index < static_cast<int64_t>(info.parameters.size()))
          parameter = &info.parameters[*index];
        if (!parameter)
          continue; // as Triton does
        if (parameter->isConstexpr)
          return invalidArgument(fmt::format("kernel '{}': {} marked as constexpr and listed in {}", info.name,
                                             parameter->name, keyword.name.text.str()));
        parameter->specialiseAlignment = false;
        if (isAll)
          parameter->specialiseValue = false;
      }
    }
  }
  return Status::ok();
}

void noteUnknownDecorators(const ast::FunctionDef *kernel, const ModuleScope &scope, DiagnosticEngine &diagnostics) {
  for (const ast::Expr *decorator : kernel->decorators) {
    const auto *call = llvm::dyn_cast<ast::Call>(decorator);
    const ast::Expr *head = call ? call->callee : decorator;
    std::string text = unparse(head);
    // Those of ahead-of-time compilation describe what to build, not what the kernel does.
    if (scope.decoratorName(decorator).empty() && !llvm::StringRef(text).ends_with("aot_compile_spaces"))
      diagnostics.remark(decorator->range, fmt::format("decorator '@{}' is unknown to the compiler and ignored", text));
  }
}

//===------------------------------------------------------------------------------------------------------------------===//
// Heuristics
//===------------------------------------------------------------------------------------------------------------------===//

namespace {

/// Keeps the files that the functions of the heuristics live in.
class ParsedHeuristics : public KernelHeuristics {
public:
  ParsedHeuristics(std::vector<std::string> searchPaths, std::vector<SourceText> imported)
      : diagnostics(sources), modules(diagnostics, std::move(searchPaths), std::move(imported)), interpreter(&modules) {}

  Status parse(const SourceText &source, llvm::StringRef kernel) {
    DITRON_ASSIGN_OR_RETURN(FileId id, sources.add(source.path, source.text));
    const ModuleScope *scope = modules.addRoot(sources.file(id));
    DITRON_RETURN_IF_ERROR(diagnostics.status());
    const GlobalBinding *binding = scope->find(kernel);
    if (!binding || binding->kind != GlobalBinding::Kind::Function)
      return notFound(fmt::format("{} has no kernel '{}'", source.path, kernel.str()));
    for (const ast::Expr *decorator : binding->function->decorators) {
      const auto *call = llvm::dyn_cast<ast::Call>(decorator);
      if (!call || scope->decoratorName(decorator) != "heuristics")
        continue;
      const ast::Expr *values = argumentOf(call, "values", 0);
      HostValue dict = values ? interpreter.evaluate(values, *scope) : HostValue();
      if (auto failure = interpreter.takeFailure())
        return Status(StatusCode::CompileError, "@triton.heuristics: " + describe(*failure, sources) + "\n");
      if (const auto *items = dict.getIf<HostDict>())
        for (const auto &[key, function] : *items->items)
          functions.push_back({key.str(), function, values->range});
    }
    return Status::ok();
  }

  Expected<std::vector<std::pair<std::string, ConstexprArgument>>>
  evaluate(const std::vector<HeuristicArgument> &arguments) override {
    HostValue known = HostValue::dict({});
    auto &items = *known.getIf<HostDict>()->items;
    for (const HeuristicArgument &argument : arguments) {
      HostValue value;
      if (!argument.value) {
        auto tensor = std::make_shared<HostObject>();
        tensor->type = "Tensor";
        tensor->fields.emplace_back("dtype", HostValue(argument.element));
        value = HostValue(std::shared_ptr<const HostObject>(std::move(tensor)));
      } else if (const auto *type = std::get_if<LangType>(&*argument.value)) {
        value = HostValue(*type);
      } else {
        value = HostValue(std::get<ConstValue>(*argument.value));
      }
      items.emplace_back(HostValue::string(argument.name), std::move(value));
    }
    std::vector<std::pair<std::string, ConstexprArgument>> results;
    for (const Entry &entry : functions) {
      HostValue value = interpreter.call(entry.function, {{known}, {}}, entry.range);
      if (auto failure = interpreter.takeFailure())
        return Status(StatusCode::CompileError, fmt::format("the heuristic for '{}': {}\n", entry.name, describe(*failure, sources)));
      std::optional<ConstexprArgument> argument = constexprArgument(value);
      if (!argument)
        return Status(StatusCode::CompileError, fmt::format("the heuristic for '{}' gives {}, which is no value for a parameter\n", entry.name,
                                        value.repr()));
      llvm::erase_if(items, [&](const auto &item) { return item.first.str() == entry.name; });
      items.emplace_back(HostValue::string(entry.name), value);
      results.emplace_back(entry.name, std::move(*argument));
    }
    return results;
  }

private:
  struct Entry {
    std::string name;
    HostValue function;
    SourceRange range;
  };
  SourceManager sources;
  DiagnosticEngine diagnostics;
  Modules modules;
  Interpreter interpreter;
  std::vector<Entry> functions;
};

} // namespace

Expected<std::shared_ptr<KernelHeuristics>> KernelHeuristics::create(const SourceText &source, llvm::StringRef kernel,
                                                                     const std::vector<std::string> &searchPaths,
                                                                     const std::vector<SourceText> &imported) {
  auto heuristics = std::make_shared<ParsedHeuristics>(searchPaths, imported);
  DITRON_RETURN_IF_ERROR(heuristics->parse(source, kernel));
  return std::shared_ptr<KernelHeuristics>(std::move(heuristics));
}

} // namespace ditron::frontend
