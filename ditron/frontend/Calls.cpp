//===- Calls.cpp - Calls and inlining --------------------------------------------------------------------------------------===//
//
// A call of a @jit function binds its arguments by Python's rules and executes the body in place; operations of the body
// get a location that holds the call site, and errors in it get a note.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/support/Plural.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// Replaces every branch of a block that only computes by both sides and a choice, and gives the value of the block in
/// terms of the new operations. Combine regions hold no control flow.
LangValue selectInsteadOfBranches(Emitter &emit, mlir::Block &block, const LangValue &value) {
  llvm::SmallVector<LangValue> leaves;
  flatten(value, leaves);
  auto computes = [](mlir::Region &region) {
    return region.empty() || llvm::all_of(region.front().without_terminator(), [](mlir::Operation &op) {
             return mlir::isPure(&op) && op.getNumRegions() == 0;
           });
  };
  // Inner branches first, so that the outer ones then hold nothing but plain operations.
  llvm::SmallVector<mlir::scf::IfOp> branches;
  block.walk([&](mlir::scf::IfOp op) { branches.push_back(op); });
  for (mlir::scf::IfOp op : branches) {
    if (op.getNumResults() == 0 || !computes(op.getThenRegion()) || !computes(op.getElseRegion()))
      continue;
    mlir::OpBuilder builder(op);
    auto inlined = [&](mlir::Region &region) {
      mlir::Block &side = region.front();
      llvm::SmallVector<mlir::Value> yields(side.getTerminator()->getOperands());
      op->getBlock()->getOperations().splice(op->getIterator(), side.getOperations(), side.begin(),
                                             std::prev(side.end()));
      return yields;
    };
    auto thenValues = inlined(op.getThenRegion()), elseValues = inlined(op.getElseRegion());
    for (auto [result, x, y] : llvm::zip(op.getResults(), thenValues, elseValues)) {
      mlir::Value chosen = mlir::arith::SelectOp::create(builder, op.getLoc(), op.getCondition(), x, y);
      for (LangValue &leaf : leaves)
        if (leaf.isTensor() && leaf.ir() == result)
          leaf = LangValue::tensor(chosen, leaf.type());
      result.replaceAllUsesWith(chosen);
    }
    op.erase();
  }
  llvm::ArrayRef<LangValue> rest = leaves;
  return unflatten(value, rest);
}

/// Erases what a value does not depend on: blocks of which a function asked nothing but their type.
void eraseUnused(mlir::Block &block, const LangValue &value) {
  llvm::SmallVector<LangValue> leaves;
  flatten(value, leaves);
  llvm::SmallPtrSet<mlir::Operation *, 4> kept;
  for (const LangValue &leaf : leaves)
    if (leaf.isTensor())
      kept.insert(leaf.ir().getDefiningOp());
  for (mlir::Operation &outer : llvm::make_early_inc_range(llvm::reverse(block)))
    outer.walk<mlir::WalkOrder::PostOrder, mlir::ReverseIterator>([&](mlir::Operation *op) {
      if (!kept.contains(op) && mlir::isOpTriviallyDead(op))
        op->erase();
    });
}

} // namespace

bool Evaluator::collectArguments(const ast::Call *call, std::vector<CallArgument> &arguments) {
  bool isGood = true;
  auto add = [&](llvm::StringRef keyword, SourceRange keywordRange, const ast::Expr *expression) {
    CallArgument argument;
    argument.keyword = keyword;
    argument.keywordRange = keywordRange;
    argument.value = evaluateValue(expression);
    argument.range = expression->range;
    if (const auto *name = llvm::dyn_cast<ast::Name>(expression))
      if (auto it = frame().locals.find(name->id); it != frame().locals.end())
        argument.isDecayedName = it->second.isDecayed;
    isGood &= !argument.value.isPoison();
    arguments.push_back(std::move(argument));
  };
  for (const ast::Expr *expression : call->args) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(expression)) {
      auto elements = elementsOf(evaluate(starred->value), starred->range);
      isGood &= elements.has_value();
      if (elements)
        for (const LangValue &element : *elements)
          arguments.push_back(CallArgument{"", element, starred->range, {}, false});
      continue;
    }
    add("", {}, expression);
  }
  for (const ast::Keyword &keyword : call->keywords) {
    // What Triton's own builder functions hand on has no meaning here.
    if (keyword.name.text == "_semantic" || keyword.name.text == "_builder" || keyword.name.text == "_generator")
      continue;
    if (keyword.isDoubleStar()) {
      isGood &= addKeywords(keyword, arguments);
      continue;
    }
    add(keyword.name.text, keyword.name.range, keyword.value);
  }
  return isGood;
}

bool Evaluator::addKeywords(const ast::Keyword &keyword, std::vector<CallArgument> &arguments) {
  if (!frame().domain().hasAllExpressions) {
    emit.error(keyword.range, "'**' arguments are not part of the kernel language");
    return false;
  }
  LangValue value = evaluate(keyword.value);
  if (value.isPoison())
    return false;
  if (!value.isDict()) {
    if (value.isUnknown())
      reportUnknown(value, "", keyword.range);
    else
      fail(keyword.range, fmt::format("the argument after ** must be a dict, not '{}'", value.typeName()));
    return false;
  }
  for (const auto &[key, each] : value.items()) {
    if (!key.isString()) {
      fail(keyword.range, "keywords must be strings");
      return false;
    }
    arguments.push_back(CallArgument{intern(key.constant().getString()), each, keyword.range, keyword.range, false});
  }
  return true;
}

LangValue Evaluator::evaluateCall(const ast::Call *call) {
  if (auto result = callSuper(call))
    return *result;
  LangValue callee = evaluate(call->callee);
  if (callee.isPoison())
    return callee;
  if (const auto *foreign = callee.getIf<ForeignValue>()) {
    if (!frame().isPython())
      return reportForeign(*foreign, call->callee->range, "called");
    if (auto cls = namedTupleOf(call))
      return LangValue(ClassValue{cls});
    callee = unknown(call->range, unparse(call));
  }
  if (callee.isUnknown()) {
    LangValue result = unknown(call->range, unparse(call));
    if (result.isUnknown() && frame().doubts)
      frame().doubts->push_back(result);
    // Nobody knows what it does to lists and dicts that it is given, or that it is a method of.
    for (const ast::Expr *argument : call->args)
      if (result.isUnknown() && frame().isPython())
        spoilObject(argument, result);
    // The reason is what was not known first.
    return result.isUnknown() && callee.unknown().text != result.unknown().text ? callee : result;
  }
  std::vector<CallArgument> arguments;
  if (!collectArguments(call, arguments))
    return LangValue::poison();
  checkDiscarded(call, callee);
  SourceRange selfRange = call->callee->range;
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(call->callee))
    selfRange = attribute->value->range;
  LangValue result = callValue(callee, std::move(arguments), selfRange, call->callee->range, call->range);
  // `names.extend(unknown)`
  if (const auto *method = llvm::dyn_cast<ast::Attribute>(call->callee);
      method && result.isUnknown() && frame().isPython() && callee.is<MethodValue>())
    spoilObject(method->value, result);
  return result;
}

LangValue Evaluator::callValue(const LangValue &callee, std::vector<CallArgument> arguments, SourceRange selfRange,
                              SourceRange calleeRange, SourceRange range) {
  if (const auto *builtin = callee.getIf<BuiltinValue>()) {
    if (builtin->builtin->name == "aggregate_replace") // binds fields, not parameters
      return replaceFields(arguments, range);
    if (frame().isPython())
      return callBuiltinFromPython(*builtin->builtin, std::move(arguments), range);
    return callBuiltin(*builtin->builtin, std::move(arguments), range);
  }
  if (const auto *native = callee.getIf<NativeValue>())
    return callNativeFunction(*native->function, LangValue::poison(), arguments, range);
  if (const auto *cls = callee.getIf<ClassValue>()) {
    if (cls->info->isPlain && !frame().isPython())
      return emit.fail(calleeRange, fmt::format("class '{}' cannot be used in a kernel", cls->info->name));
    if (cls->info->isPlain)
      return constructInstance(cls->info, arguments, range);
    return construct(cls->info, arguments, range);
  }
  if (callee.instance()) {
    LangValue method = callee.instance()->cls->member("__call__") ? objectAttribute(callee, "__call__", calleeRange) : LangValue::poison();
    return method.isPoison() ? fail(calleeRange, fmt::format("'{}' object is not callable", callee.typeName()))
                             : callValue(method, std::move(arguments), selfRange, calleeRange, range);
  }
  if (const auto *lambda = callee.getIf<LambdaValue>())
    return callLambda(*lambda, arguments, range);
  if (const ObjectValue *object = callee.object(); object && object->type == "decorator")
    return applyDecoratorObject(*object, arguments, range);
  if (const NativeFunction *native = callee.object() ? findNativeMethod(callee, "__call__") : nullptr)
    return callNativeFunction(*native, callee, arguments, range); // functools.partial, operator.itemgetter
  if (auto result = callSpecialMethod(callee, "__call__", arguments, calleeRange, range))
    return *result;
  if (const auto *method = callee.getIf<MethodValue>()) {
    if (method->function.node)
      return callMethod(*method, selfRange, arguments, range);
    if (method->name == "_replace") {
      arguments.insert(arguments.begin(), CallArgument{"", *method->self, selfRange, {}, false});
      return replaceFields(arguments, range);
    }
    if (method->name == "_asdict") {
      LangValue all = LangValue::dict();
      for (auto [field, part] : llvm::zip_equal(method->self->classInfo()->fields, method->self->parts()))
        setItem(*all.getIf<DictValue>(), LangValue::string(field.name), part);
      return all;
    }
    if (method->self->isType() && !method->builtin && !method->native) {
      if (!arguments.empty())
        return fail(range, fmt::format("'{}' takes no arguments", method->name.str()));
      return LangValue::boolean(typePredicate(method->self->asType(), method->name).value_or(false));
    }
    if (!method->builtin)
      return callNativeFunction(*method->native, *method->self, arguments, range);
    arguments.insert(arguments.begin(), CallArgument{"", *method->self, selfRange, {}, false});
    LangValue written = resolveLibrary(LangValue(BuiltinValue{method->builtin}), calleeRange);
    if (const auto *function = written.getIf<FunctionValue>())
      return callFunction(*function, arguments, range);
    return callBuiltin(*method->builtin, std::move(arguments), range);
  }
  if (const auto *function = callee.getIf<FunctionValue>())
    return callFunction(*function, arguments, range);
  Diagnostic &diagnostic = emit.error(calleeRange, fmt::format("{} cannot be called", callee.describe()));
  if (callee.isType())
    diagnostic.hint("convert with x.to(dtype)");
  return LangValue::poison();
}

void Evaluator::checkDiscarded(const ast::Call *call, const LangValue &callee) {
  if (call != discarded)
    return;
  discarded = nullptr;
  droppedCall = call->range;
  auto report = [&](llvm::StringRef extra) {
    emit.error(call->range, fmt::format("The result of {} is not being used.{}{}", unparse(call->callee),
                                        extra.empty() ? "" : " ", extra.str()));
  };
  const auto *method = callee.getIf<MethodValue>();
  const auto *builtin = callee.getIf<BuiltinValue>();
  const Builtin *known = method ? method->builtin : builtin ? builtin->builtin : nullptr;
  if (known && known->name == "advance" && (known->modules & (ModuleTile | ModuleMember)))
    return report("Block pointers are values: write p = tl.advance(p, ...).");
  const auto *function = method ? &method->function : callee.getIf<FunctionValue>();
  if (!function || !function->node)
    return;
  for (const ast::Expr *decorator : function->node->decorators) {
    const auto *application = llvm::dyn_cast<ast::Call>(decorator);
    llvm::StringRef name;
    const ast::Expr *head = application ? application->callee : decorator;
    if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(head))
      name = attribute->attr.text;
    else if (const auto *plain = llvm::dyn_cast<ast::Name>(head))
      name = plain->id;
    if (name != "must_use_result")
      continue;
    const auto *text =
        application && !application->args.empty() ? llvm::dyn_cast<ast::Constant>(application->args[0]) : nullptr;
    return report(text && text->value->isStr() ? text->value->getString() : "");
  }
}

/// Functions of ours that emit nothing.
static bool isKnownToCompute(const Builtin &builtin) {
  static const llvm::StringSet<> names = {"pointer_type", "block_type",    "constexpr_type", "tuple_type",          "static_assert",
                                          "static_print", "is_cuda",       "is_hip",         "cuda_capability_geq", "num_warps",
                                          "num_threads",  "tuple",         "constexpr",      "dtype"};
  return names.contains(builtin.name);
}

LangValue Evaluator::callBuiltinFromPython(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range) {
  std::string name = qualifiedName(builtin);
  // A few functions of ours do more, or take more, where all is known: triton.cdiv, tl.constexpr.
  if (const NativeFunction *native = findNative(builtin.modules & ModuleTriton ? "triton." + builtin.name.str() : name))
    return callNativeFunction(*native, LangValue::poison(), arguments, range);
  if (builtin.name == "constexpr" && arguments.size() == 1) {
    LangValue value = arguments.front().value;
    value.isWrapped = true;
    return value;
  }
  static const llvm::StringSet<> decorators = {"jit", "autotune", "heuristics", "constexpr_function", "builtin", "extern"};
  if (decorators.contains(builtin.name))
    return callDecorator(builtin, std::move(arguments), range);
  if (auto reason = llvm::find_if(arguments, [](const CallArgument &each) { return each.value.isUnknown(); });
      reason != arguments.end())
    return reason->value;
  for (CallArgument &argument : arguments)
    if (argument.value.is<ListValue>() || argument.value.iterator() || argument.value.is<ViewValue>()) {
      auto elements = elementsOf(argument.value, argument.range);
      if (!elements)
        return LangValue::poison();
      argument.value = LangValue::tuple(std::move(*elements));
    } else if (argument.value.instance()) {
      argument.value = numberOf(argument.value);
    }
  if (!frame().mayEmit && !emit.builder.getInsertionBlock())
    if (builtin.handler && !isKnownToCompute(builtin))
      return fail(range, fmt::format("{} gives a run-time value and cannot be called at compile time", name), "");
  LangValue result = callBuiltin(builtin, std::move(arguments), range);
  if (result.isPoison() || result.isCompileTime() || frame().mayEmit)
    return result;
  return fail(range, fmt::format("function '{}' gives a run-time value and cannot be called at compile time", name), "");
}

bool Evaluator::bindArguments(const Callee &callee, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                             std::vector<BoundParameter> &bound) {
  auto reject = [&](SourceRange place, std::string message) {
    Diagnostic &error = emit.error(place, std::move(message));
    if (callee.declared.isValid())
      error.note(callee.declared, "the function is declared here");
    return false;
  };
  auto isBound = [&](const ast::Param &param) {
    return llvm::any_of(bound, [&](const BoundParameter &each) { return each.param == &param; });
  };
  const ast::Param *variadic = nullptr, *keywords = nullptr;
  std::vector<const ast::Param *> positional;
  for (const ast::Param &param : callee.params) {
    if (param.kind == ast::ParamKind::VarPositional)
      variadic = &param;
    else if (param.kind == ast::ParamKind::VarKeyword)
      keywords = &param;
    else if (param.kind != ast::ParamKind::KeywordOnly)
      positional.push_back(&param);
  }
  std::vector<LangValue> extra;
  size_t next = 0;
  for (const CallArgument &argument : arguments) {
    if (!argument.keyword.empty())
      continue;
    if (next < positional.size())
      bound.push_back({positional[next++], argument.value, argument.range});
    else if (variadic)
      extra.push_back(argument.value);
    else
      return reject(argument.range, fmt::format("function '{}' takes {}, but more are given", callee.name,
                                                plural(positional.size(), "positional argument")));
  }
  if (variadic)
    bound.push_back({variadic, LangValue::tuple(std::move(extra)), range});
  LangValue extraKeywords = LangValue::dict();
  for (const CallArgument &argument : arguments) {
    if (argument.keyword.empty())
      continue;
    auto param = llvm::find_if(callee.params, [&](const ast::Param &each) {
      return each.name.text == argument.keyword && each.kind != ast::ParamKind::PositionalOnly &&
             each.kind != ast::ParamKind::VarPositional && each.kind != ast::ParamKind::VarKeyword;
    });
    if (param == callee.params.end() && keywords) {
      setItem(*extraKeywords.getIf<DictValue>(), LangValue::string(argument.keyword.str()), argument.value);
      continue;
    }
    if (param == callee.params.end())
      return reject(argument.keywordRange,
                    fmt::format("function '{}' has no parameter '{}'", callee.name, argument.keyword.str()));
    if (isBound(*param))
      return reject(argument.keywordRange, fmt::format("parameter '{}' of function '{}' is given twice",
                                                       argument.keyword.str(), callee.name));
    bound.push_back({&*param, argument.value, argument.range});
  }
  if (keywords)
    bound.push_back({keywords, std::move(extraKeywords), range});
  return true;
}

std::optional<std::vector<Evaluator::BoundParameter>>
Evaluator::bindParameters(const Callee &callee, llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  std::vector<BoundParameter> bound;
  if (!bindArguments(callee, arguments, range, bound))
    return std::nullopt;
  for (const ast::Param &param : callee.params) {
    if (llvm::any_of(bound, [&](const BoundParameter &each) { return each.param == &param; }))
      continue;
    if (!param.defaultValue) {
      Diagnostic &error = emit.error(range, fmt::format("the call of '{}' has no argument for parameter '{}'", callee.name,
                                                        param.name.text.str()));
      if (callee.declared.isValid())
        error.note(callee.declared, "the function is declared here");
      return std::nullopt;
    }
    LangValue value = (*callee.defaults)[&param - callee.params.begin()];
    if (value.isUnknown() && !frame().isPython())
      value = reportUnknown(value, param.name.text, range);
    if (value.isPoison())
      return std::nullopt;
    bound.push_back({&param, std::move(value), param.range});
  }
  return bound;
}

bool Evaluator::bindKernelParameters(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                    SourceRange range, Scope &locals) {
  const ast::FunctionDef *node = function.node;
  for (const ast::Param &param : node->params)
    if (param.kind == ast::ParamKind::VarKeyword) {
      emit.error(range, fmt::format("parameter '**{}': such parameters are not part of the kernel language",
                                    param.name.text.str()))
          .note(node->headerRange, "the function is declared here");
      return false;
    }
  auto bound = bindParameters(Callee{node->name.text.str(), node->params, node->headerRange, function.defaults}, arguments, range);
  if (!bound)
    return false;
  for (BoundParameter &each : *bound) {
    LangValue value = toKernel(each.value, each.range);
    if (value.isPoison() && !each.value.isPoison())
      return false;
    Variable variable;
    // A run-time argument of a tl.constexpr parameter is accepted; it fails where it has to be compile-time.
    variable.isConstexpr = isConstexprParam(*each.param) && value.isCompileTime();
    variable.value = std::move(value);
    variable.range = each.range;
    locals[each.param->name.text] = std::move(variable);
  }
  return true;
}

LangValue Evaluator::callFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                 SourceRange range) {
  const ast::FunctionDef *node = function.node;
  if (frame().isPython() && !function.isJit)
    return callPython(function, arguments, range, {});
  if (frame().isPython() && !frame().mayEmit)
    return fail(range, fmt::format("@jit function '{}' cannot be called at compile time", node->name.text.str()), "");
  if (!function.isJit && !function.isCompileTime) {
    emit.error(range, fmt::format("function '{}' cannot be called from a kernel: it is not decorated with @triton.jit",
                                  node->name.text.str()))
        .note(node->headerRange, "declared here");
    return LangValue::poison();
  }
  if (function.isJit)
    return enterFunction(function, arguments, range, {});
  CallOptions options;
  options.isPython = decorationsOf(node).empty() || !isConstexprFunction(node);
  return toKernel(callPython(function, arguments, range, options), range);
}

/// True for @triton.jit(noinline=True).
static bool isNoinline(const ast::FunctionDef *function) {
  for (const ast::Expr *decorator : function->decorators)
    if (const auto *call = llvm::dyn_cast<ast::Call>(decorator))
      for (const ast::Keyword &keyword : call->keywords)
        if (const auto *value = llvm::dyn_cast<ast::Constant>(keyword.value); value && keyword.name.text == "noinline")
          return value->value->isTrue();
  return false;
}

bool Evaluator::checkNoinline(const ast::FunctionDef *function, const Scope &locals) {
  for (const auto &[name, variable] : locals) {
    llvm::SmallVector<LangValue> leaves;
    flatten(variable.value, leaves);
    for (const LangValue &leaf : leaves)
      if (leaf.isTensor() && leaf.type().isBlock()) {
        emit.error(variable.range,
                   fmt::format("Function {} is marked noinline, but was called with non-scalar argument {}: {}",
                               function->name.text.str(), name.str(), leaf.type().str()));
        return false;
      }
  }
  return true;
}

LangValue Evaluator::enterFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                  SourceRange range, const CallOptions &options) {
  const ast::FunctionDef *node = function.node;
  if (options.isPython) {
    LangValue result = callPython(function, arguments, range, options);
    return frame().isPython() ? result : toKernel(result, range);
  }
  if (emit.callSites.size() >= kernelDomain.maxCallDepth) {
    isStopped = true;
    emit.diagnosticEngine()
        .error(range, fmt::format("calls are nested more than {} deep: '{}' seems to call itself without end",
                                  kernelDomain.maxCallDepth, node->name.text.str()))
        .note(emit.callSites.front(), "the outermost call is here");
    return LangValue::poison();
  }
  auto next = std::make_unique<Frame>();
  if (!bindKernelParameters(function, arguments, range, next->locals))
    return LangValue::poison();
  if (isNoinline(node) && !checkNoinline(node, next->locals))
    return LangValue::poison();
  next->function = node;
  next->scope = function.scope;
  next->closure = function.environment;
  next->isCombine = !frames.empty() && frame().isCombine;
  next->owner = options.owner;
  if (options.bindsSelf && !node->params.empty())
    next->self = node->params.front().name.text;
  emit.callSites.push_back(range);
  frames.push_back(std::move(next));
  Outcome outcome = runBody(node->body, nullptr);
  if (options.selfAfter && !frame().self.empty())
    *options.selfAfter = frame().locals[frame().self].value;
  frames.pop_back();
  emit.callSites.pop_back();
  return isStopped ? LangValue::poison() : outcome.value;
}

LangValue Evaluator::callCombine(const FunctionValue &function, llvm::ArrayRef<LangValue> arguments, SourceRange range) {
  std::vector<CallArgument> bound;
  for (const LangValue &argument : arguments)
    bound.push_back(CallArgument{"", argument, range, {}, false});
  mlir::Block *block = emit.builder.getInsertionBlock();
  LangValue result = callFunction(function, bound, range);
  if (result.isPoison())
    return result;
  result = selectInsteadOfBranches(emit, *block, result);
  eraseUnused(*block, result);
  // Each thread runs the function by itself: nothing in it may need the others.
  auto needsBlock = [](mlir::Operation *op) {
    auto isBlock = [](mlir::Type type) { return llvm::isa<mlir::RankedTensorType>(type); };
    return llvm::any_of(op->getOperandTypes(), isBlock) || llvm::any_of(op->getResultTypes(), isBlock) ||
           llvm::isa<dist::SyncThreadsOp, dist::WaitOp, dist::NotifyOp>(op);
  };
  mlir::WalkResult walk = block->walk([&](mlir::Operation *op) {
    return needsBlock(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return emit.fail(range, fmt::format("the function '{}' works on single elements: it cannot make blocks or wait for "
                                        "other threads",
                                        function.node->name.text.str()));
  return result;
}

bool Evaluator::checkBlockShape(llvm::ArrayRef<int64_t> shape, SourceRange range) {
  int64_t count = 1;
  for (auto [index, size] : llvm::enumerate(shape)) {
    if (size <= 0 || (size & (size - 1)) != 0) {
      emit.error(range, fmt::format("Shape element {} must be a power of 2, but is {}", index, size));
      return false;
    }
    count = size > maxBlockElements ? maxBlockElements + 1 : count * size;
    if (count > maxBlockElements) {
      emit.error(range, fmt::format("a block may have at most {} elements, but this shape has more", maxBlockElements));
      return false;
    }
  }
  return true;
}

} // namespace ditron::frontend
