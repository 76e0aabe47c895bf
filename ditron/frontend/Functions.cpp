//===- Functions.cpp - Functions of kernel files: decorators, and calls of Python ---------------------------------------------===//
//
// A function gets its decorators when it is defined, the innermost first. Ours say what it is: a kernel, Python that runs at
// compile time, configurations. Those of Python's modules and of the user's files are executed; where one gives back the
// function, or another one, that is what the name means. One that cannot be executed, above a jit, changes launches and not
// the kernel: it is kept as such, so that its configurations are read and the user is told. Below a jit it would have changed
// the kernel's body, so the kernel is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>

namespace ditron::frontend {

const LangValue *Decoration::argument(llvm::StringRef name, size_t position) const {
  for (const auto &[keyword, value] : keywords)
    if (keyword == name)
      return &value;
  return position < args.size() ? &args[position] : nullptr;
}

llvm::ArrayRef<Decoration> Evaluator::decorationsOf(const ast::FunctionDef *function) const {
  auto it = decorations.find(function);
  return it == decorations.end() ? llvm::ArrayRef<Decoration>() : llvm::ArrayRef<Decoration>(it->second);
}

LangValue Evaluator::evaluateQuietly(const ast::Expr *expression) {
  Emitter::Capture capture(emit);
  LangValue value = evaluate(expression);
  if (value.isPoison() || capture.hasFailed()) {
    capture.takeBack();
    return LangValue::poison();
  }
  return value;
}

std::string Evaluator::nameOfDefinition(const ast::Expr *expression) {
  if (const auto *call = llvm::dyn_cast<ast::Call>(expression))
    expression = call->callee;
  LangValue value = evaluateQuietly(expression);
  if (const auto *builtin = value.getIf<BuiltinValue>())
    return builtin->builtin->name.str();
  if (const auto *native = value.getIf<NativeValue>())
    return native->function->shortName().str();
  if (const auto *foreign = value.getIf<ForeignValue>(); foreign && !foreign->name.empty())
    return llvm::StringRef(foreign->name).rsplit('.').second.empty() ? foreign->name
                                                                    : llvm::StringRef(foreign->name).rsplit('.').second.str();
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(expression))
    return attribute->attr.text.str();
  const auto *name = llvm::dyn_cast<ast::Name>(expression);
  return name ? name->id.str() : "";
}

std::shared_ptr<Environment> Evaluator::outsideOfClasses(std::shared_ptr<Environment> environment) {
  while (environment->isClass)
    environment = environment->parent;
  return environment;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Definition
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::defineFunction(const ast::FunctionDef *function) {
  FunctionValue plain;
  plain.node = function;
  plain.scope = frame().scope;
  std::shared_ptr<Environment> around = outsideOfClasses(frame().environment);
  if (around != frame().scope->environment) {
    plain.environment = around;
    environments.push_back(around);
  }
  plain.defaults = evaluateDefaults(function->params);
  LangValue value = plain;
  std::vector<Decoration> applied;
  decorations.erase(function);
  for (const ast::Expr *decorator : llvm::reverse(function->decorators))
    value = applyDecorator(decorator, std::move(value), applied);
  std::reverse(applied.begin(), applied.end());
  const auto *result = value.getIf<FunctionValue>();
  auto unapplied = llvm::find_if(applied, [](const Decoration &each) { return each.isUnapplied && !each.isAboveJit; });
  if (result && unapplied != applied.end()) {
    UnknownValue reason{unapplied->expression->range, "", {}};
    Diagnostic error{Severity::Error, unapplied->expression->range,
                     fmt::format("what the decorator '@{}' makes of the function is not known at compile time",
                                 unparse(unapplied->expression)),
                     {}, ""};
    if (result->isJit)
      error.hint("it is applied before @triton.jit and may change what is compiled");
    const auto *call = llvm::dyn_cast<ast::Call>(unapplied->expression);
    const LangValue decorator = evaluateTolerantly(call ? call->callee : unapplied->expression);
    if (decorator.isUnknown() && !decorator.unknown().errors.empty())
      error.hint(decorator.unknown().errors.front().message);
    reason.errors.push_back(std::move(error));
    value = LangValue(std::make_shared<const UnknownValue>(std::move(reason)));
  }
  // Those that decorators of the user's applied come first.
  auto &all = decorations[function];
  llvm::append_range(all, applied);
  return value;
}

/// The decorators of ours that make a function Python which kernels may call.
static bool runsAtCompileTime(llvm::StringRef decorator) {
  return decorator == "constexpr_function" || decorator == "constexpr" || decorator == "builtin" || decorator == "extern";
}

LangValue Evaluator::evaluateTolerantly(const ast::Expr *expression) {
  Emitter::Capture capture(emit);
  LangValue value = evaluate(expression);
  if (!value.isPoison() && !capture.hasFailed())
    return value;
  return LangValue(std::make_shared<const UnknownValue>(UnknownValue{expression->range, "", capture.takeBack()}));
}

std::shared_ptr<const std::vector<LangValue>> Evaluator::evaluateDefaults(llvm::ArrayRef<ast::Param> params) {
  auto values = std::make_shared<std::vector<LangValue>>();
  for (const ast::Param &param : params)
    values->push_back(param.defaultValue ? evaluateTolerantly(param.defaultValue) : LangValue::poison());
  return values;
}

void Evaluator::evaluateArguments(const ast::Call *call, Decoration &decoration) {
  if (!call)
    return;
  for (const ast::Expr *argument : call->args)
    if (!llvm::isa<ast::Starred>(argument))
      decoration.args.push_back(evaluateTolerantly(argument));
  for (const ast::Keyword &keyword : call->keywords) {
    LangValue value = evaluateTolerantly(keyword.value);
    if (!keyword.isDoubleStar())
      decoration.keywords.emplace_back(keyword.name.text, std::move(value));
    else if (value.isDict())
      for (const auto &[key, item] : value.items())
        decoration.keywords.emplace_back(intern(key.display()), item);
  }
}

std::optional<LangValue> Evaluator::applyKnownDecorator(const ast::Expr *expression, llvm::StringRef name, const LangValue &decorated) {
  using Binding = FunctionValue::Binding;
  static const llvm::StringMap<Binding> bindings = {{"staticmethod", Binding::Static},
                                                    {"classmethod", Binding::Class},
                                                    {"property", Binding::Property},
                                                    {"cached_property", Binding::CachedProperty}};
  const auto *function = decorated.getIf<FunctionValue>();
  if (name == "lru_cache" || name == "cache") {
    if (!function || function->isJit)
      return std::nullopt;
    FunctionValue cached = *function;
    cached.cache = std::make_shared<CallCache>();
    return LangValue(std::move(cached));
  }
  if (!function)
    return std::nullopt;
  if (name == "wraps" && function->environment) {
    // The name of this function, in the names around it: it is made anew with each of them.
    const auto *call = llvm::dyn_cast<ast::Call>(expression);
    LangValue wrapped = call && !call->args.empty() ? evaluateQuietly(call->args.front()) : LangValue::poison();
    LangValue shown = attributeOf(wrapped, "__name__", expression->range, /*reports=*/false);
    if (shown.isString())
      function->environment->names[intern(function->node->name.text.str() + ".__name__")].value = shown;
  }
  if (name == "abstractmethod" || name == "override" || name == "wraps" || name == "overload")
    return decorated;
  // `@size.setter` above a function gives the property with one.
  const auto *attribute = llvm::dyn_cast<ast::Attribute>(expression);
  if (attribute && (name == "setter" || name == "deleter")) {
    LangValue known = evaluateQuietly(attribute->value);
    const auto *property = known.getIf<FunctionValue>();
    if (!property || property->binding != Binding::Property)
      return std::nullopt;
    FunctionValue changed = *property;
    if (name == "setter")
      changed.setter = std::make_shared<const FunctionValue>(*function);
    return LangValue(std::move(changed));
  }
  auto known = bindings.find(name);
  if (known == bindings.end() || llvm::isa<ast::Call>(expression))
    return std::nullopt;
  FunctionValue changed = *function;
  changed.binding = known->second;
  return LangValue(std::move(changed));
}

LangValue Evaluator::applyDecorator(const ast::Expr *expression, LangValue decorated, std::vector<Decoration> &applied) {
  const auto *call = llvm::dyn_cast<ast::Call>(expression);
  LangValue callee = evaluateQuietly(call ? call->callee : expression);
  const std::string name = nameOfDefinition(expression);
  const bool isOwn = callee.is<FunctionValue>() || callee.is<LambdaValue>() || callee.is<ClassValue>();
  if (!isOwn)
    if (std::optional<LangValue> known = applyKnownDecorator(expression, name, decorated))
      return *known;
  Decoration decoration;
  decoration.expression = expression;
  const auto *function = decorated.getIf<FunctionValue>();
  decoration.isAboveJit = function && function->isJit;
  constexpr unsigned ours = ModuleTriton | ModulePeer | ModuleTile | ModuleDist;
  const auto *builtin = callee.getIf<BuiltinValue>();
  if (builtin && (builtin->builtin->modules & ours)) {
    decoration.name = builtin->builtin->name;
    evaluateArguments(call, decoration);
    if (function) {
      FunctionValue changed = *function;
      changed.isJit |= decoration.name == "jit";
      changed.isCompileTime |= runsAtCompileTime(decoration.name);
      decorated = changed;
    }
    applied.push_back(std::move(decoration));
    return decorated;
  }
  // Python's own, of the user's files, or of packages that are not here.
  const bool isObject = callee.object() && (callee.object()->type == "decorator" || findNativeMethod(callee, "__call__"));
  if (callee.is<NativeValue>() || isOwn || callee.instance() || isObject || callee.is<MethodValue>()) {
    Emitter::Capture capture(emit);
    LangValue decorator = call ? evaluate(expression) : callee;
    LangValue result = decorator.isPoison() || decorator.isUnknown()
                           ? decorator
                           : callValue(decorator, {CallArgument{"", decorated, expression->range, {}, false}},
                                       expression->range, expression->range, expression->range);
    if (!result.isPoison() && !result.isUnknown() && !capture.hasFailed())
      return result;
    capture.takeBack();
  }
  if (!function)
    return decorated;
  // What describes an ahead-of-time build does not concern the kernel.
  if (name != "aot_compile_spaces") {
    decoration.isUnapplied = true;
    evaluateArguments(call, decoration);
  }
  applied.push_back(std::move(decoration));
  return decorated;
}

bool Evaluator::isConstexprFunction(const ast::FunctionDef *function) const {
  return llvm::any_of(decorationsOf(function), [](const Decoration &each) { return each.name == "constexpr_function"; });
}

LangValue Evaluator::callDecorator(const Builtin &builtin, llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  std::vector<std::pair<std::string, LangValue>> fields = {{"", LangValue::string(builtin.name.str())}};
  // triton.jit(function), also with options.
  const bool isApplied = !arguments.empty() && arguments[0].keyword.empty() && arguments[0].value.is<FunctionValue>();
  for (const CallArgument &argument : arguments.drop_front(isApplied))
    fields.emplace_back(argument.keyword.str(), argument.value);
  ObjectValue decorator{"decorator", std::move(fields)};
  if (isApplied)
    return applyDecoratorObject(decorator, arguments.take_front(), range);
  return LangValue(std::make_shared<const ObjectValue>(std::move(decorator)));
}

LangValue Evaluator::applyDecoratorObject(const ObjectValue &decorator, llvm::ArrayRef<CallArgument> arguments,
                                         SourceRange range) {
  const auto *function = arguments.size() == 1 ? arguments[0].value.getIf<FunctionValue>() : nullptr;
  if (!function)
    return fail(range, "a decorator is called with one function");
  Decoration decoration;
  decoration.name = intern(decorator.fields.front().second.constant().getString());
  decoration.isAboveJit = function->isJit;
  for (const auto &[keyword, value] : llvm::drop_begin(decorator.fields)) {
    if (keyword.empty())
      decoration.args.push_back(value);
    else
      decoration.keywords.emplace_back(intern(keyword), value);
  }
  FunctionValue changed = *function;
  changed.isJit |= decoration.name == "jit";
  changed.isCompileTime |= runsAtCompileTime(decoration.name);
  auto &all = decorations[function->node];
  all.insert(all.begin(), std::move(decoration));
  return LangValue(changed);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Kernels of a file
//===------------------------------------------------------------------------------------------------------------------===//

std::shared_ptr<Environment> Evaluator::executeMaker(const FunctionValue &maker) {
  std::shared_ptr<Environment> &known = makers[maker.node];
  if (known)
    return known;
  auto environment = std::make_shared<Environment>();
  environment->file = maker.scope;
  environment->parent = maker.environment;
  environment->qualifier = maker.node->name.text.str() + ".<locals>.";
  known = environment;
  environments.push_back(environment);
  frames.push_back(pythonFrame(environment));
  frame().function = maker.node;
  frame().isTolerant = true;
  for (const ast::Param &param : maker.node->params) {
    LangValue value = unknown(param.range, param.name.text.str());
    if (value.isUnknown() && param.defaultValue) {
      LangValue given = evaluateQuietly(param.defaultValue);
      value = given.isPoison() ? value : given;
    }
    bindName(param.name.text, std::move(value), param.range);
  }
  runPython(maker.node->body);
  frames.pop_back();
  return environment;
}

/// True if a function with a decorator is defined inside of a statement.
static bool containsDecorated(const ast::Stmt *statement) {
  bool found = false;
  ast::walk(statement, [&](const ast::Node *node) {
    const auto *function = llvm::dyn_cast<ast::FunctionDef>(node);
    found |= function && !function->decorators.empty();
    return !found && !llvm::isa<ast::Expr>(node);
  });
  return found;
}

Status Evaluator::explainUnknown(const LangValue &value, llvm::StringRef name, SourceRange range) {
  reportUnknown(value, name, range);
  return emit.diagnosticEngine().status();
}

std::vector<std::pair<std::string, FunctionValue>> Evaluator::kernelsOf(const ModuleScope &file) {
  std::vector<std::pair<std::string, FunctionValue>> kernels;
  auto collect = [&](auto &self, const Environment &names, const std::string &prefix) -> void {
    for (const auto &[name, binding] : names.names) {
      if (const auto *cls = binding.value.getIf<ClassValue>(); cls && cls->info->environment.get() == &names) {
        for (const auto &[method, definition] : cls->info->methods)
          if (definition.function.isJit && definition.isStatic)
            kernels.emplace_back(prefix + name.str() + "." + method.str(), definition.function);
        continue;
      }
      const auto *function = binding.value.getIf<FunctionValue>();
      if (!function || function->scope != &file || (names.parent && function->environment.get() != &names))
        continue;
      if (function->isJit) {
        kernels.emplace_back(prefix + name.str(), *function);
      } else if (llvm::any_of(function->node->body, [](const ast::Stmt *each) { return containsDecorated(each); })) {
        std::shared_ptr<Environment> inner = executeMaker(*function);
        self(self, *inner, prefix + name.str() + ".");
      }
    }
  };
  collect(collect, namesOf(file), "");
  return kernels;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Calls of Python
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::defaultOf(const FunctionValue &function, const ast::Param &param) {
  LangValue value = (*function.defaults)[&param - function.node->params.begin()];
  return value.isUnknown() ? reportUnknown(value, param.name.text, param.range) : value;
}

LangValue Evaluator::evaluatePython(const ast::Expr *expression, const std::shared_ptr<Environment> &environment) {
  if (!environment->parent)
    executeFile(*environment->file);
  bool isOutermost = frames.empty() || !frame().isPython();
  if (isOutermost)
    steps = 0;
  frames.push_back(pythonFrame(environment));
  LangValue value = evaluate(expression);
  frames.pop_back();
  return value;
}

LangValue Evaluator::callFromOutside(const LangValue &function, const LangValue &argument, SourceRange range,
                                    std::vector<Diagnostic> &errors) {
  Emitter::Capture capture(emit);
  steps = 0;
  frames.push_back(pythonFrame(globals.environment));
  LangValue value = callValue(function, {CallArgument{"", argument, range, {}, false}}, range, range, range);
  frames.pop_back();
  if (capture.hasFailed())
    errors = capture.takeBack();
  llvm::erase_if(errors, [](const Diagnostic &each) { return each.severity != Severity::Error; });
  return value;
}

LangValue Evaluator::callCached(CallCache &cache, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                                llvm::function_ref<LangValue()> body) {
  std::vector<LangValue> parts;
  for (const CallArgument &argument : arguments) {
    if (argument.value.isPoison())
      return LangValue::poison();
    if (!argument.keyword.empty())
      parts.push_back(LangValue::tuple({LangValue::string(argument.keyword.str())}));
    parts.push_back(argument.value);
    if (!isHashable(argument.value))
      return fail(range, fmt::format("unhashable type: '{}'", argument.value.typeName()));
  }
  LangValue key = LangValue::tuple(std::move(parts));
  if (unknownIn(key) || !key.isCompileTime())
    return body();
  if (!countSteps(1 + cache.results.size() / 16, range))
    return LangValue::poison();
  for (const auto &[known, result] : cache.results)
    if (known.equals(key))
      return result;
  LangValue result = body();
  if (!result.isPoison())
    cache.results.emplace_back(std::move(key), result);
  return result;
}

LangValue Evaluator::callPython(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                               const CallOptions &options) {
  const ast::FunctionDef *node = function.node;
  if (function.cache) {
    FunctionValue plain = function;
    plain.cache = nullptr;
    return callCached(*function.cache, arguments, range, [&] { return callPython(plain, arguments, range, options); });
  }
  if (emit.callSites.size() >= pythonDomain.maxCallDepth) {
    return fail(range,
                fmt::format("calls at compile time are nested more than {} deep: '{}' seems to call itself without end",
                            pythonDomain.maxCallDepth, node->name.text.str()),
                "RecursionError");
  }
  executeFile(*function.scope);
  if (frames.empty() || !frame().isPython())
    steps = 0;
  auto bound = bindParameters(Callee{node->name.text.str(), node->params, node->headerRange, function.defaults}, arguments, range);
  if (!bound)
    return LangValue::poison();
  auto environment = std::make_shared<Environment>();
  environment->file = function.scope;
  environment->parent = function.environment;
  environment->function = node;
  environment->qualifier = fmt::format("{}{}.<locals>.", function.environment ? function.environment->qualifier : "", node->name.text.str());
  auto next = pythonFrame(environment);
  next->function = node;
  next->owner = options.owner;
  const bool isOfPython = options.owner && options.owner->isPlain;
  next->mayEmit = (options.isPython && !isOfPython) || (!frames.empty() && frame().mayEmit);
  if (options.bindsSelf && !node->params.empty())
    next->self = node->params.front().name.text;
  emit.callSites.push_back(range);
  frames.push_back(std::move(next));
  for (BoundParameter &each : *bound)
    bindName(each.param->name.text, std::move(each.value), each.range);
  Flow flow = runPython(node->body);
  LangValue result = flow == Flow::Failed ? LangValue::poison() : flow == Flow::Unknown ? frame().unknownCondition : frame().result;
  if (options.selfAfter && !frame().self.empty() && flow != Flow::Failed)
    *options.selfAfter = environment->names[frame().self].value;
  frames.pop_back();
  emit.callSites.pop_back();
  return isStopped ? LangValue::poison() : result;
}

LangValue Evaluator::callLambda(const LambdaValue &lambda, llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  if (lambda.cache) {
    LambdaValue plain = lambda;
    plain.cache = nullptr;
    return callCached(*lambda.cache, arguments, range, [&] { return callLambda(plain, arguments, range); });
  }
  if (emit.callSites.size() >= pythonDomain.maxCallDepth)
    return fail(range, "calls at compile time are nested too deeply: a lambda seems to call itself without end", "RecursionError");
  auto bound = bindParameters(Callee{"<lambda>", lambda.node->params, {}, lambda.defaults}, arguments, range);
  if (!bound)
    return LangValue::poison();
  auto environment = std::make_shared<Environment>();
  environment->file = lambda.environment->file;
  // The module level is found through the file.
  environment->parent = lambda.environment == lambda.environment->file->environment ? nullptr : lambda.environment;
  environment->qualifier = lambda.environment->qualifier + "<lambda>.<locals>.";
  emit.callSites.push_back(range);
  frames.push_back(pythonFrame(environment));
  for (BoundParameter &each : *bound)
    bindName(each.param->name.text, std::move(each.value), each.range);
  LangValue result = evaluate(lambda.node->body);
  frames.pop_back();
  emit.callSites.pop_back();
  return result;
}

LangValue Evaluator::callNativeFunction(const NativeFunction &function, const LangValue &self,
                                       llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  NativeCall call{*this, function, self, {}, {}, range};
  for (const CallArgument &argument : arguments) {
    if (argument.value.isPoison())
      return argument.value;
    if (argument.keyword.empty())
      call.args.push_back(argument.value);
    else
      call.keywords.emplace_back(argument.keyword, argument.value);
  }
  return callNative(std::move(call));
}

LangValue Evaluator::call(const LangValue &callee, std::vector<LangValue> args, const Keywords &keywords, SourceRange range) {
  std::vector<CallArgument> arguments;
  for (LangValue &value : args)
    arguments.push_back(CallArgument{"", std::move(value), range, {}, false});
  for (const auto &[keyword, value] : keywords)
    arguments.push_back(CallArgument{keyword, value, range, range, false});
  return callValue(callee, std::move(arguments), range, range, range);
}

} // namespace ditron::frontend
