//===- TuningSpace.cpp - Configurations and heuristics of a kernel's decorators -------------------------------------------===//
#include "ditron/frontend/TuningSpace.h"

#include "ditron/frontend/Decorators.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// Why a value is not known, as one line.
std::string describe(const LangValue &value, const SourceManager &sources) {
  const UnknownValue &reason = value.unknown();
  std::string message = reason.errors.empty() ? fmt::format("`{}` is not known at compile time", reason.text)
                                              : reason.errors.front().message;
  if (!reason.range.isValid())
    return message;
  LineColumn place = sources.beginOf(reason.range);
  return fmt::format("{}:{}:{}: {}", sources.file(reason.range.file).path().str(), place.line, place.column, message);
}

/// The same of a failure that was reported.
std::string describe(const Diagnostic &failure, const SourceManager &sources) {
  if (!failure.range.isValid())
    return failure.message;
  LineColumn place = sources.beginOf(failure.range);
  return fmt::format("{}:{}:{}: {}", sources.file(failure.range.file).path().str(), place.line, place.column,
                     failure.message);
}

/// A launch option of a configuration, or why it is refused.
std::optional<uint32_t> numberOf(const ObjectValue &config, llvm::StringRef name) {
  const LangValue *value = find(config, name);
  std::optional<int64_t> number = value && value->isConstant() && value->constant().isIntegral() ? value->constant().toInt64() : std::nullopt;
  return number && *number >= 0 && *number <= 65535 ? std::optional<uint32_t>(*number) : std::nullopt;
}

TuningConfig toConfig(const ObjectValue &object, const ast::FunctionDef *kernel) {
  TuningConfig config;
  auto refuse = [&](std::string reason) {
    if (config.refusal.empty())
      config.refusal = std::move(reason);
  };
  for (const auto &[key, value] : find(object, "kwargs")->items()) {
    std::string name = key.display();
    if (llvm::none_of(kernel->params, [&](const ast::Param &param) { return param.name.text == name; })) {
      // A launch gets the dict with the options set over it: those of the arguments, given or by default.
      if (const LangValue *option = find(object, name); option && name != "kwargs" && name != "pre_hook" && !option->isNone()) {
        config.ineffective.push_back(std::move(name));
        continue;
      }
      refuse(fmt::format("the kernel has no parameter '{}'", name));
    }
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

std::optional<ConstexprArgument> constexprArgument(const LangValue &value) {
  if (value.isConstant())
    return ConstexprArgument(value.constant());
  if (value.isType())
    return ConstexprArgument(value.asType());
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
  for (const std::string &name : ineffective)
    text += fmt::format(" ('{}' in the dict of its values has no effect, as in Triton)", name);
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

TuningSpace readTuningSpace(const FunctionValue &kernel, const Evaluator &evaluator, const SourceManager &sources) {
  TuningSpace space;
  auto known = [&](const LangValue *value) {
    if (value && value->isUnknown() && space.problem.empty())
      space.problem = describe(*value, sources);
    return value && !value->isUnknown() ? value : nullptr;
  };
  for (const Decoration &decoration : evaluator.decorationsOf(kernel.node)) {
    if (decoration.name == "heuristics") {
      if (const LangValue *dict = known(decoration.argument("values", 0)); dict && dict->isDict())
        for (const auto &[key, function] : dict->items())
          space.heuristics.push_back(key.display());
      continue;
    }
    // A tuner of the program's own takes what triton.autotune takes.
    bool isOther = decoration.isUnapplied && decoration.argument("configs", NativeFunction::any);
    if (decoration.name != "autotune" && !isOther)
      continue;
    const LangValue *configs = known(decoration.argument("configs", 0));
    if (const auto *list = configs ? configs->sequence() : nullptr)
      for (const LangValue &each : *list) {
        const ObjectValue *object = each.object();
        if (object && object->type == "Config")
          space.configs.push_back(toConfig(*object, kernel.node));
        else if (each.isUnknown())
          space.problem = describe(each, sources);
        else
          space.problem = fmt::format("a configuration of @triton.autotune is {}, not a triton.Config", each.repr());
      }
    if (const LangValue *keys = known(decoration.argument("key", 1)); keys && keys->sequence())
      for (const LangValue &key : *keys->sequence())
        space.keys.push_back(key.display());
  }
  return space;
}

Status applySpecialisationRules(KernelInfo &info, const FunctionValue &kernel, Evaluator &evaluator,
                                const SourceManager &sources) {
  for (const Decoration &decoration : evaluator.decorationsOf(kernel.node)) {
    if (decoration.name != "jit")
      continue;
    for (const auto &[keyword, list] : decoration.keywords) {
      const bool isAll = keyword == "do_not_specialize";
      if (!isAll && keyword != "do_not_specialize_on_alignment")
        continue;
      if (list.isUnknown())
        return invalidArgument(fmt::format("kernel '{}': {}: {}", info.name, keyword.str(), describe(list, sources)));
      for (const LangValue &item : list.sequence() ? *list.sequence() : std::vector<LangValue>()) {
        ParameterInfo *parameter = nullptr;
        for (ParameterInfo &each : info.parameters)
          if (item.isString() && each.name == item.constant().getString())
            parameter = &each;
        bool isIndex = item.isConstant() && item.constant().isIntegral();
        if (std::optional<int64_t> index = isIndex ? item.constant().toInt64() : std::nullopt;
            index && *index >= 0 && *index < static_cast<int64_t>(info.parameters.size()))
          parameter = &info.parameters[*index];
        if (!parameter)
          continue; // as Triton does
        if (parameter->isConstexpr)
          return invalidArgument(fmt::format("kernel '{}': {} marked as constexpr and listed in {}", info.name,
                                             parameter->name, keyword.str()));
        parameter->specialiseAlignment = false;
        if (isAll)
          parameter->specialiseValue = false;
      }
    }
  }
  return Status::ok();
}

void noteUnappliedDecorators(const FunctionValue &kernel, const Evaluator &evaluator, DiagnosticEngine &diagnostics) {
  for (const Decoration &decoration : evaluator.decorationsOf(kernel.node))
    if (decoration.isUnapplied && decoration.isAboveJit && !decoration.argument("configs", NativeFunction::any))
      diagnostics.warning(decoration.expression->range,
                          fmt::format("what the decorator '@{}' does to launches is not known at compile time: the kernel is "
                                      "compiled as @triton.jit gives it",
                                      unparse(decoration.expression)));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Heuristics
//===------------------------------------------------------------------------------------------------------------------===//

namespace {

/// Keeps the files that the functions of the heuristics live in.
class ParsedHeuristics : public KernelHeuristics {
public:
  explicit ParsedHeuristics(ImportOptions given)
      : diagnostics(sources), context(mlir::MLIRContext::Threading::DISABLED), options(std::move(given)),
        modules(diagnostics, options.searchPaths, options.imported) {}

  Status parse(const SourceText &source, llvm::StringRef kernel) {
    DITRON_ASSIGN_OR_RETURN(FileId id, sources.add(source.path, source.text));
    const ModuleScope *scope = modules.addRoot(sources.file(id));
    DITRON_RETURN_IF_ERROR(diagnostics.status());
    evaluator = std::make_unique<Evaluator>(context, modules, *scope, options, diagnostics);
    auto kernels = evaluator->kernelsOf(*scope);
    auto found = llvm::find_if(kernels, [&](const auto &each) { return each.first == kernel; });
    if (found == kernels.end())
      return notFound(fmt::format("{} has no kernel '{}'", source.path, kernel.str()));
    for (const Decoration &decoration : evaluator->decorationsOf(found->second.node)) {
      const LangValue *values = decoration.name == "heuristics" ? decoration.argument("values", 0) : nullptr;
      if (values && values->isUnknown())
        return Status(StatusCode::CompileError, "@triton.heuristics: " + describe(*values, sources) + "\n");
      if (values && values->isDict())
        for (const auto &[key, function] : values->items())
          functions.push_back({key.display(), function,
                               decoration.expression ? decoration.expression->range : found->second.node->headerRange});
    }
    return Status::ok();
  }

  Expected<std::vector<std::pair<std::string, ConstexprArgument>>>
  evaluate(const std::vector<HeuristicArgument> &arguments) override {
    LangValue known = LangValue::dict();
    const auto &dict = *known.getIf<DictValue>();
    for (const HeuristicArgument &argument : arguments)
      setItem(dict, LangValue::string(argument.name), valueOf(argument));
    std::vector<std::pair<std::string, ConstexprArgument>> results;
    for (const Entry &entry : functions) {
      auto reject = [&](std::string reason) {
        return Status(StatusCode::CompileError, fmt::format("the heuristic for '{}': {}\n", entry.name, reason));
      };
      std::vector<Diagnostic> errors;
      LangValue value = evaluator->callFromOutside(entry.function, known, entry.range, errors);
      if (!errors.empty())
        return reject(describe(errors.front(), sources));
      if (value.isUnknown())
        return reject(describe(value, sources));
      std::optional<ConstexprArgument> argument = constexprArgument(value);
      if (!argument)
        return Status(StatusCode::CompileError, fmt::format("the heuristic for '{}' gives {}, which is no value for a parameter\n",
                                                            entry.name, value.repr()));
      llvm::erase_if(known.items(), [&](const auto &item) { return item.first.display() == entry.name; });
      setItem(dict, LangValue::string(entry.name), value);
      results.emplace_back(entry.name, std::move(*argument));
    }
    return results;
  }

private:
  struct Entry {
    std::string name;
    LangValue function;
    SourceRange range;
  };

  static LangValue valueOf(const HeuristicArgument &argument) {
    if (!argument.value)
      return LangValue::object("Tensor", {{"dtype", LangValue(argument.element)}});
    if (const auto *type = std::get_if<LangType>(&*argument.value))
      return LangValue(*type);
    return LangValue(std::get<ConstValue>(*argument.value));
  }

  SourceManager sources;
  DiagnosticEngine diagnostics;
  mlir::MLIRContext context;
  ImportOptions options;
  Modules modules;
  std::unique_ptr<Evaluator> evaluator;
  std::vector<Entry> functions;
};

} // namespace

Expected<std::shared_ptr<KernelHeuristics>> KernelHeuristics::create(const SourceText &source, llvm::StringRef kernel,
                                                                     ImportOptions options) {
  auto heuristics = std::make_shared<ParsedHeuristics>(std::move(options));
  DITRON_RETURN_IF_ERROR(heuristics->parse(source, kernel));
  return std::shared_ptr<KernelHeuristics>(std::move(heuristics));
}

} // namespace ditron::frontend
