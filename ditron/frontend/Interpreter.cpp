//===- Interpreter.cpp - Python that runs while compiling: names, statements, calls ------------------------------------===//
//
// Names of the module level are evaluated when they are first read. Where several statements of the module level make a value
// (a list that a loop fills, a constant that an `if` chooses), these statements are executed, and no others.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Interpreter.h"

#include "ditron/frontend/Builtins.h"

#include <fmt/format.h>

namespace ditron::frontend {

class Interpreter::Entry {
public:
  explicit Entry(Interpreter &interpreter) : interpreter(interpreter) {
    if (interpreter.entries++ == 0)
      interpreter.steps = interpreter.depth = 0;
  }
  ~Entry() { --interpreter.entries; }

private:
  Interpreter &interpreter;
};

Interpreter::~Interpreter() {
  for (const Env &env : closures)
    env->names.clear();
  globals.clear();
  for (const HostValue &value : made) {
    if (const auto *list = value.getIf<HostList>())
      list->elements->clear();
    else if (const auto *dict = value.getIf<HostDict>())
      dict->items->clear();
  }
  while (!made.empty())
    made.pop_back();
}

HostValue Interpreter::fail(SourceRange range, std::string message, std::string hint) {
  if (failure)
    return HostValue();
  failure = Failure{range, std::move(message), calls, std::move(hint)};
  // Of an endless recursion both ends are enough.
  constexpr size_t shown = 6;
  if (std::vector<SourceRange> &chain = failure->calls; chain.size() > 2 * shown)
    chain.erase(chain.begin() + shown, chain.end() - shown);
  return HostValue();
}

bool Interpreter::step(SourceRange range) {
  if (failure)
    return false;
  if (++steps <= maxSteps)
    return true;
  fail(range, fmt::format("the evaluation at compile time took more than {} steps", maxSteps));
  return false;
}

Interpreter::Env Interpreter::envOf(const ModuleScope &scope) {
  Env &env = envs[&scope];
  if (!env) {
    env = std::make_shared<HostScope>();
    env->file = &scope;
  }
  return env;
}

HostValue Interpreter::evaluate(const ast::Expr *expression, const ModuleScope &scope) {
  Entry entry(*this);
  return evaluate(expression, envOf(scope));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Names of the module level
//===------------------------------------------------------------------------------------------------------------------===//

HostValue Interpreter::global(llvm::StringRef name, const ModuleScope &scope, SourceRange use) {
  Entry entry(*this);
  const GlobalBinding *binding = scope.find(name);
  if (!binding)
    return fail(use, fmt::format("name '{}' is not defined", name.str()));
  auto key = std::make_pair(&scope, name.str());
  if (auto known = globals.find(key); known != globals.end())
    return known->second;
  if (!inProgress.insert(key).second)
    return fail(use, fmt::format("the value of '{}' depends on itself", name.str()));
  HostValue value = readBinding(name, *binding, scope, use);
  inProgress.erase(key);
  if (!failure)
    globals.emplace(std::move(key), value);
  return value;
}

HostValue Interpreter::readBinding(llvm::StringRef name, const GlobalBinding &binding, const ModuleScope &scope,
                                   SourceRange use) {
  switch (binding.kind) {
  case GlobalBinding::Kind::Function:
    if (scope.isJit(binding.function))
      return HostValue::fromLanguage(LangValue(FunctionValue{binding.function, true, &scope}));
    return HostFunction{binding.function, nullptr, envOf(scope)};
  case GlobalBinding::Kind::Class: {
    if (!hooks.classOf)
      return fail(use, fmt::format("class '{}' is not known outside of a kernel", name.str()));
    LangValue cls = hooks.classOf(binding.classDef, &scope, use);
    return cls.isPoison() ? fail(use, "") : HostValue::fromLanguage(cls);
  }
  case GlobalBinding::Kind::Import: return readImport(binding, use);
  case GlobalBinding::Kind::Assignment: break;
  }
  if (binding.isChanged)
    if (std::optional<HostValue> value = replay(name, scope))
      return *value;
  if (failure)
    return HostValue();
  if (!binding.initializer)
    return fail(use, fmt::format("the value of '{}' is not known at compile time", name.str()));
  if (const auto *made = llvm::dyn_cast<ast::Call>(binding.initializer); made && hooks.classOfCall)
    if (std::optional<LangValue> cls = hooks.classOfCall(made, &scope))
      return HostValue::fromLanguage(*cls);
  HostValue value = evaluate(binding.initializer, envOf(scope));
  for (unsigned index : binding.unpacked) {
    if (failure)
      return value;
    std::optional<HostSequence> elements = elementsOf(value, binding.initializer->range);
    if (!elements)
      return HostValue();
    if (index >= elements->size())
      return fail(binding.range, "not enough values to unpack");
    value = HostValue((*elements)[index]);
  }
  return value;
}

HostValue Interpreter::readImport(const GlobalBinding &binding, SourceRange use) {
  const LangValue &imported = binding.imported;
  if (imported.isPoison()) {
    return fail(use, fmt::format("module '{}' has no '{}'", toString(binding.importedFrom).str(), binding.importedName));
  }
  const auto *foreign = imported.getIf<ForeignValue>();
  if (!foreign) {
    LangValue value = hooks.library ? hooks.library(imported, use) : imported;
    return value.isPoison() ? fail(use, "") : HostValue::fromLanguage(value);
  }
  if (!foreign->name.empty()) {
    std::string dotted = foreign->module + "." + foreign->name;
    if (isHostFunction(dotted))
      return HostNative{std::move(dotted)};
    if (auto constant = mathConstant(foreign->name); constant && foreign->module == "math")
      return HostValue(ConstValue::floating(*constant));
  }
  if (!modules)
    return HostValue::fromLanguage(imported);
  ImportedName target = modules->resolve(*foreign);
  if (target.binding && target.binding->kind != GlobalBinding::Kind::Import)
    return global(target.name, *target.scope, use);
  if (target.binding)
    return readImport(*target.binding, use);
  if (target.value.isPoison())
    return fail(use, fmt::format("module '{}' has no '{}'", target.scope->origin().path, foreign->name));
  return HostValue::fromLanguage(target.value);
}

std::optional<HostValue> Interpreter::replay(llvm::StringRef name, const ModuleScope &scope) {
  auto env = std::make_shared<HostScope>();
  env->file = &scope;
  HostValue result;
  for (const ast::Stmt *statement : scope.changesOf(name)) {
    // An `if` whose condition asks for the machine says nothing; then the plain rule holds: its body is executed.
    if (const auto *conditional = llvm::dyn_cast<ast::If>(statement)) {
      evaluate(conditional->condition, env);
      if (failure) {
        failure.reset();
        run(conditional->body, env, result);
        if (failure)
          return std::nullopt;
        continue;
      }
    }
    if (run(statement, env, result) == Flow::Failed)
      return std::nullopt;
  }
  auto value = env->names.find(name);
  return value == env->names.end() ? std::nullopt : std::optional<HostValue>(value->second);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Statements
//===------------------------------------------------------------------------------------------------------------------===//

Interpreter::Flow Interpreter::run(ast::StmtList statements, const Env &env, HostValue &result) {
  for (const ast::Stmt *statement : statements)
    if (Flow flow = run(statement, env, result); flow != Flow::Next)
      return flow;
  return Flow::Next;
}

Interpreter::Flow Interpreter::run(const ast::Stmt *statement, const Env &env, HostValue &result) {
  if (!step(statement->range))
    return Flow::Failed;
  auto done = [&] { return failure ? Flow::Failed : Flow::Next; };
  switch (statement->kind) {
  case ast::NodeKind::Pass: return Flow::Next;
  case ast::NodeKind::Break: return Flow::Break;
  case ast::NodeKind::Continue: return Flow::Continue;
  case ast::NodeKind::ExprStmt: {
    const ast::Expr *value = llvm::cast<ast::ExprStmt>(statement)->value;
    if (!llvm::isa<ast::Constant>(value)) // docstrings
      evaluate(value, env);
    return done();
  }
  case ast::NodeKind::Return: {
    const auto *given = llvm::cast<ast::Return>(statement);
    result = given->value ? evaluate(given->value, env) : HostValue();
    return failure ? Flow::Failed : Flow::Return;
  }
  case ast::NodeKind::Assign: {
    const auto *assignment = llvm::cast<ast::Assign>(statement);
    HostValue value = evaluate(assignment->value, env);
    for (const ast::Expr *target : assignment->targets)
      if (!failure)
        assign(target, value, env);
    return done();
  }
  case ast::NodeKind::AnnAssign: {
    const auto *assignment = llvm::cast<ast::AnnAssign>(statement);
    if (assignment->value)
      if (HostValue value = evaluate(assignment->value, env); !failure)
        assign(assignment->target, value, env);
    return done();
  }
  case ast::NodeKind::AugAssign: {
    const auto *assignment = llvm::cast<ast::AugAssign>(statement);
    HostValue before = evaluate(assignment->target, env);
    HostValue value = evaluate(assignment->value, env);
    if (failure)
      return Flow::Failed;
    if (const auto *list = before.getIf<HostList>(); list && assignment->op == BinaryOp::Add) {
      // In place, as Python does: others that hold the list see it.
      std::optional<HostSequence> elements = elementsOf(value, assignment->value->range);
      if (elements)
        llvm::append_range(*list->elements, *elements);
      return done();
    }
    HostValue after = binaryOf(assignment->op, before, value, statement->range);
    if (!failure)
      assign(assignment->target, after, env);
    return done();
  }
  case ast::NodeKind::If: {
    const auto *conditional = llvm::cast<ast::If>(statement);
    HostValue condition = evaluate(conditional->condition, env);
    if (failure)
      return Flow::Failed;
    return run(condition.isTrue() ? conditional->body : conditional->orelse, env, result);
  }
  case ast::NodeKind::For: {
    const auto *loop = llvm::cast<ast::For>(statement);
    HostValue iterable = evaluate(loop->iterable, env);
    std::optional<HostSequence> elements = failure ? std::nullopt : elementsOf(iterable, loop->iterable->range);
    if (!elements)
      return Flow::Failed;
    for (const HostValue &element : *elements) {
      if (!step(loop->headerRange))
        return Flow::Failed;
      assign(loop->target, element, env);
      Flow flow = failure ? Flow::Failed : run(loop->body, env, result);
      if (flow == Flow::Break)
        return Flow::Next;
      if (flow == Flow::Return || flow == Flow::Failed)
        return flow;
    }
    return run(loop->orelse, env, result);
  }
  case ast::NodeKind::While: {
    const auto *loop = llvm::cast<ast::While>(statement);
    while (true) {
      HostValue condition = evaluate(loop->condition, env);
      if (!step(loop->condition->range))
        return Flow::Failed;
      if (!condition.isTrue())
        return run(loop->orelse, env, result);
      Flow flow = run(loop->body, env, result);
      if (flow == Flow::Break)
        return Flow::Next;
      if (flow == Flow::Return || flow == Flow::Failed)
        return flow;
    }
  }
  case ast::NodeKind::Assert: {
    const auto *assertion = llvm::cast<ast::Assert>(statement);
    HostValue condition = evaluate(assertion->condition, env);
    if (failure)
      return Flow::Failed;
    if (condition.isTrue())
      return Flow::Next;
    std::string text = assertion->message ? evaluate(assertion->message, env).str() : "";
    fail(assertion->range, text.empty() ? "assertion failed" : "assertion failed: " + text);
    return Flow::Failed;
  }
  case ast::NodeKind::Raise: {
    const auto *raise = llvm::cast<ast::Raise>(statement);
    const auto *call = llvm::dyn_cast_or_null<ast::Call>(raise->exception);
    const ast::Expr *name = call ? call->callee : raise->exception;
    std::string kind = "an exception";
    if (const auto *plain = llvm::dyn_cast_or_null<ast::Name>(name))
      kind = plain->id.str();
    else if (const auto *attribute = llvm::dyn_cast_or_null<ast::Attribute>(name))
      kind = attribute->attr.text.str();
    std::string text = call && !call->args.empty() ? evaluate(call->args.front(), env).str() : "";
    fail(raise->range, text.empty() ? fmt::format("{} was raised", kind) : fmt::format("{}: {}", kind, text));
    return Flow::Failed;
  }
  case ast::NodeKind::FunctionDef: {
    const auto *function = llvm::cast<ast::FunctionDef>(statement);
    closures.push_back(env);
    env->names[function->name.text] = HostValue(HostFunction{function, nullptr, env});
    return Flow::Next;
  }
  case ast::NodeKind::Import:
  case ast::NodeKind::ImportFrom: {
    // The same as at the module level, for the modules of Python that the interpreter knows.
    auto add = [&](llvm::StringRef bound, LangValue value) {
      GlobalBinding binding;
      binding.imported = std::move(value);
      HostValue read = readImport(binding, statement->range);
      if (!failure)
        env->names[bound] = std::move(read);
    };
    if (const auto *import = llvm::dyn_cast<ast::Import>(statement)) {
      for (const ast::Alias &alias : import->names) {
        llvm::StringRef module = alias.asName.text.empty() ? alias.name.text.split('.').first : alias.name.text;
        auto known = findModule(module);
        add(alias.boundName(), known ? LangValue(ModuleValue{*known})
                                     : LangValue(ForeignValue{module.str(), "", env->file}));
      }
    } else {
      const auto *from = llvm::cast<ast::ImportFrom>(statement);
      auto known = from->level == 0 ? findModule(from->module.text) : std::nullopt;
      for (const ast::Alias &alias : from->names) {
        std::optional<LangValue> member = known ? memberOf(*known, alias.name.text) : std::nullopt;
        add(alias.boundName(), member ? *member
                                      : LangValue(ForeignValue{std::string(from->level, '.') + from->module.text.str(),
                                                               alias.name.text.str(), env->file}));
      }
    }
    return done();
  }
  default:
    fail(statement->range, "this statement cannot be executed at compile time");
    return Flow::Failed;
  }
}

void Interpreter::assign(const ast::Expr *target, const HostValue &value, const Env &env) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    env->names[name->id] = value;
    return;
  }
  if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target)) {
    HostValue object = evaluate(subscript->value, env);
    HostValue index = evaluate(subscript->index, env);
    if (failure)
      return;
    if (const auto *dict = object.getIf<HostDict>()) {
      if (const HostValue *known = find(*dict, index))
        const_cast<HostValue &>(*known) = value;
      else
        dict->items->emplace_back(index, value);
      return;
    }
    const auto *list = object.getIf<HostList>();
    if (!list) {
      fail(target->range, fmt::format("an element of {} cannot be assigned", object.typeName()));
      return;
    }
    std::optional<int64_t> i = integerOf(index, subscript->index->range, "the index of a list");
    if (!i)
      return;
    int64_t size = list->elements->size();
    if (*i < -size || *i >= size) {
      fail(subscript->index->range, fmt::format("list assignment index {} is out of range", *i));
      return;
    }
    (*list->elements)[*i < 0 ? *i + size : *i] = value;
    return;
  }
  ast::ExprList targets;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    targets = tuple->elements;
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    targets = list->elements;
  else {
    fail(target->range, "this cannot be assigned at compile time");
    return;
  }
  std::optional<HostSequence> elements = elementsOf(value, target->range);
  if (!elements)
    return;
  auto star = llvm::find_if(targets, [](const ast::Expr *each) { return llvm::isa<ast::Starred>(each); });
  size_t fixed = targets.size() - (star != targets.end());
  if (elements->size() < fixed || (star == targets.end() && elements->size() != fixed)) {
    fail(target->range, fmt::format("{} values cannot be unpacked into {}", elements->size(), targets.size()));
    return;
  }
  size_t next = 0;
  for (const ast::Expr *each : targets) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(each)) {
      size_t count = elements->size() - fixed;
      assign(starred->value, HostValue::list(HostSequence(elements->begin() + next, elements->begin() + next + count)), env);
      next += count;
    } else {
      assign(each, (*elements)[next++], env);
    }
    if (failure)
      return;
  }
}

//===------------------------------------------------------------------------------------------------------------------===//
// Calls
//===------------------------------------------------------------------------------------------------------------------===//

HostValue Interpreter::call(const HostValue &callee, const HostArguments &arguments, SourceRange range) {
  Entry entry(*this);
  if (!step(range))
    return HostValue();
  if (const auto *function = callee.getIf<HostFunction>())
    return callFunction(*function, arguments, range);
  if (const auto *native = callee.getIf<HostNative>())
    return callNative(native->name, arguments, range);
  if (const auto *method = callee.getIf<HostMethod>())
    return callMethod(*method->self, method->name, arguments, range);
  const LangValue *value = callee.language();
  if (!value)
    return fail(range, fmt::format("{} cannot be called", callee.repr()));
  if (const auto *function = value->getIf<FunctionValue>()) {
    if (function->isJit)
      return fail(range, fmt::format("@jit function '{}' cannot be called at compile time",
                                     function->node->name.text.str()));
    return callFunction(HostFunction{function->node, nullptr, envOf(*function->scope)}, arguments, range);
  }
  if (const auto *builtin = value->getIf<BuiltinValue>()) {
    llvm::StringRef name = builtin->builtin->name;
    if (name == "constexpr" && arguments.positional.size() == 1)
      return arguments.positional.front();
    bool isOfTriton = name == "cdiv" || name == "next_power_of_2" || name == "Config";
    std::string known = isOfTriton ? "triton." + name.str() : name.str();
    if (isHostFunction(known) && ((builtin->builtin->modules & ModulePython) || isOfTriton))
      return callNative(known, arguments, range);
  }
  if (value->is<ForeignValue>())
    return fail(range, fmt::format("{} cannot be called at compile time", value->describe()),
                "only Python's own functions, the user's files and what compiles them exist here");
  if (!hooks.call)
    return fail(range, fmt::format("{} cannot be called outside of a kernel", value->describe()));
  LangValue result = hooks.call(*value, arguments, range);
  return result.isPoison() ? fail(range, "") : HostValue::fromLanguage(result);
}

HostValue Interpreter::callFunction(const HostFunction &function, const HostArguments &arguments, SourceRange range) {
  std::string name = function.function ? function.function->name.text.str() : "<lambda>";
  if (calls.size() >= maxCallDepth)
    return fail(range, fmt::format("calls at compile time are nested more than {} deep: '{}' seems to call itself without "
                                   "end",
                                   maxCallDepth, name));
  auto env = std::make_shared<HostScope>();
  env->parent = function.scope;
  env->file = function.scope->file;
  if (!bind(function.function ? function.function->params : function.lambda->params, arguments, env, function.scope, name,
            range))
    return HostValue();
  calls.push_back(range);
  HostValue result;
  if (function.function)
    run(function.function->body, env, result);
  else
    result = evaluate(function.lambda->body, env);
  calls.pop_back();
  return failure ? HostValue() : result;
}

bool Interpreter::bind(llvm::ArrayRef<ast::Param> params, const HostArguments &arguments, const Env &env,
                       const Env &outer, const std::string &name, SourceRange range) {
  HostSequence extra;
  std::vector<std::pair<HostValue, HostValue>> extraKeywords;
  const ast::Param *variadic = nullptr, *keywords = nullptr;
  std::vector<const ast::Param *> positional;
  for (const ast::Param &param : params) {
    if (param.kind == ast::ParamKind::VarPositional)
      variadic = &param;
    else if (param.kind == ast::ParamKind::VarKeyword)
      keywords = &param;
    else if (param.kind != ast::ParamKind::KeywordOnly)
      positional.push_back(&param);
  }
  for (auto [index, value] : llvm::enumerate(arguments.positional)) {
    if (index < positional.size())
      env->names[positional[index]->name.text] = value;
    else
      extra.push_back(value);
  }
  if (!extra.empty() && !variadic) {
    fail(range, fmt::format("function '{}' takes {} positional arguments, but {} are given", name, positional.size(),
                            arguments.positional.size()));
    return false;
  }
  if (variadic)
    env->names[variadic->name.text] = HostValue::tuple(std::move(extra));
  for (const auto &[keyword, value] : arguments.keywords) {
    auto param = llvm::find_if(params, [&](const ast::Param &each) {
      return each.name.text == keyword &&
             (each.kind == ast::ParamKind::PositionalOrKeyword || each.kind == ast::ParamKind::KeywordOnly);
    });
    if (param == params.end() && keywords) {
      extraKeywords.emplace_back(HostValue::string(keyword), value);
      continue;
    }
    if (param == params.end() || env->names.contains(keyword)) {
      fail(range, param == params.end() ? fmt::format("function '{}' has no parameter '{}'", name, keyword)
                                        : fmt::format("parameter '{}' of function '{}' is given twice", keyword, name));
      return false;
    }
    env->names[keyword] = value;
  }
  if (keywords)
    env->names[keywords->name.text] = HostValue::dict(std::move(extraKeywords));
  for (const ast::Param &param : params) {
    if (env->names.contains(param.name.text))
      continue;
    if (!param.defaultValue) {
      fail(range, fmt::format("the call of '{}' has no argument for parameter '{}'", name, param.name.text.str()));
      return false;
    }
    HostValue value = evaluate(param.defaultValue, outer);
    if (failure)
      return false;
    env->names[param.name.text] = std::move(value);
  }
  return true;
}

} // namespace ditron::frontend
