//===- Calls.cpp - Calls and inlining --------------------------------------------------------------------------------------===//
//
// A call of a @jit function binds its arguments by Python's rules and executes the body in place; operations of the body
// get a location that holds the call site, and errors in it get a note.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Importer.h"

#include "ditron/frontend/syntax/AstPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

} // namespace

bool Importer::collectArguments(const ast::Call *call, std::vector<CallArgument> &arguments) {
  bool isGood = true;
  auto add = [&](llvm::StringRef keyword, SourceRange keywordRange, const ast::Expr *expression) {
    CallArgument argument;
    argument.keyword = keyword;
    argument.keywordRange = keywordRange;
    argument.value = evaluate(expression);
    argument.range = expression->range;
    if (const auto *name = llvm::dyn_cast<ast::Name>(expression))
      if (auto it = frame().locals.find(name->id); it != frame().locals.end())
        argument.isDecayedName = it->second.isDecayed;
    isGood &= !argument.value.isPoison();
    arguments.push_back(std::move(argument));
  };
  for (const ast::Expr *expression : call->args) {
    if (const auto *starred = llvm::dyn_cast<ast::Starred>(expression)) {
      auto elements = staticElements(evaluate(starred->value), starred->range);
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
      emit.error(keyword.range, "'**' arguments are not part of the kernel language");
      isGood = false;
      continue;
    }
    add(keyword.name.text, keyword.name.range, keyword.value);
  }
  return isGood;
}

LangValue Importer::evaluateCall(const ast::Call *call) {
  if (auto result = callSuper(call))
    return *result;
  LangValue callee = evaluate(call->callee);
  if (callee.isPoison())
    return callee;
  if (const auto *foreign = callee.getIf<ForeignValue>())
    return reportForeign(*foreign, call->callee->range, "called");
  std::vector<CallArgument> arguments;
  if (!collectArguments(call, arguments))
    return LangValue::poison();
  checkDiscarded(call, callee);
  SourceRange selfRange = call->callee->range;
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(call->callee))
    selfRange = attribute->value->range;
  return callValue(callee, std::move(arguments), selfRange, call->callee->range, call->range);
}

LangValue Importer::callValue(const LangValue &callee, std::vector<CallArgument> arguments, SourceRange selfRange,
                              SourceRange calleeRange, SourceRange range) {
  if (const auto *builtin = callee.getIf<BuiltinValue>()) {
    if (builtin->builtin->name == "aggregate_replace") // binds fields, not parameters
      return replaceFields(arguments, range);
    return callBuiltin(*builtin->builtin, std::move(arguments), range);
  }
  if (const auto *cls = callee.getIf<ClassValue>())
    return construct(cls->info, arguments, range);
  if (auto result = callSpecialMethod(callee, "__call__", arguments, calleeRange, range))
    return *result;
  if (const auto *method = callee.getIf<MethodValue>()) {
    if (method->function.node)
      return callMethod(*method, selfRange, arguments, range);
    if (method->name == "_replace") {
      arguments.insert(arguments.begin(), CallArgument{"", *method->self, selfRange, {}, false});
      return replaceFields(arguments, range);
    }
    if (!method->builtin)
      return callConstantMethod(*method, arguments, range);
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

void Importer::checkDiscarded(const ast::Call *call, const LangValue &callee) {
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

bool Importer::bindParameters(const ast::FunctionDef *function, const ModuleScope *scope,
                              llvm::ArrayRef<CallArgument> arguments, SourceRange range, Scope &locals) {
  std::string name = function->name.text.str();
  auto reject = [&](SourceRange place, std::string message) {
    emit.error(place, std::move(message)).note(function->headerRange, "the function is declared here");
    return false;
  };
  auto set = [&](const ast::Param &param, LangValue value, SourceRange place) {
    Variable variable;
    // A run-time argument of a tl.constexpr parameter is accepted; it fails where it has to be compile-time.
    variable.isConstexpr = isConstexprParam(param) && value.isCompileTime();
    variable.value = std::move(value);
    variable.range = place;
    locals[param.name.text] = std::move(variable);
  };
  const ast::Param *variadic = nullptr;
  std::vector<const ast::Param *> positional;
  for (const ast::Param &param : function->params) {
    if (param.kind == ast::ParamKind::VarPositional)
      variadic = &param;
    else if (param.kind == ast::ParamKind::VarKeyword)
      return reject(range, fmt::format("parameter '**{}': such parameters are not part of the kernel language",
                                       param.name.text.str()));
    else if (param.kind != ast::ParamKind::KeywordOnly)
      positional.push_back(&param);
  }
  std::vector<LangValue> extra;
  size_t next = 0;
  for (const CallArgument &argument : arguments) {
    if (!argument.keyword.empty())
      continue;
    if (next < positional.size())
      set(*positional[next++], argument.value, argument.range);
    else if (variadic)
      extra.push_back(argument.value);
    else
      return reject(argument.range, fmt::format("function '{}' takes {} positional argument{}, but more are given",
                                                name, positional.size(), positional.size() == 1 ? "" : "s"));
  }
  if (variadic)
    set(*variadic, LangValue::tuple(std::move(extra)), range);
  for (const CallArgument &argument : arguments) {
    if (argument.keyword.empty())
      continue;
    auto param = llvm::find_if(function->params, [&](const ast::Param &each) {
      return each.name.text == argument.keyword && each.kind != ast::ParamKind::PositionalOnly &&
             each.kind != ast::ParamKind::VarPositional;
    });
    if (param == function->params.end())
      return reject(argument.keywordRange,
                    fmt::format("function '{}' has no parameter '{}'", name, argument.keyword.str()));
    if (locals.find(param->name.text) != locals.end())
      return reject(argument.keywordRange,
                    fmt::format("parameter '{}' of function '{}' is given twice", argument.keyword.str(), name));
    set(*param, argument.value, argument.range);
  }
  for (const ast::Param &param : function->params) {
    if (locals.find(param.name.text) != locals.end())
      continue;
    if (!param.defaultValue)
      return reject(range,
                    fmt::format("the call of '{}' has no argument for parameter '{}'", name, param.name.text.str()));
    LangValue value = evaluateAtModuleLevel(param.defaultValue, scope);
    if (value.isPoison())
      return false;
    set(param, std::move(value), param.range);
  }
  return true;
}

LangValue Importer::callFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                 SourceRange range) {
  const ast::FunctionDef *node = function.node;
  if (!function.isJit && function.scope && function.scope->isConstexprFunction(node))
    return callConstexpr(function, arguments, range);
  if (!function.isJit) {
    emit.error(range, fmt::format("function '{}' cannot be called from a kernel: it is not decorated with @triton.jit",
                                  node->name.text.str()))
        .note(node->headerRange, "declared here");
    return LangValue::poison();
  }
  return enterFunction(function, arguments, range, {});
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

bool Importer::checkNoinline(const ast::FunctionDef *function, const Scope &locals) {
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

LangValue Importer::enterFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments,
                                  SourceRange range, const CallOptions &options) {
  const ast::FunctionDef *node = function.node;
  if (emit.callSites.size() >= maxCallDepth) {
    isStopped = true;
    emit.diagnosticEngine()
        .error(range, fmt::format("calls are nested more than {} deep: '{}' seems to call itself without end",
                                  maxCallDepth, node->name.text.str()))
        .note(emit.callSites.front(), "the outermost call is here");
    return LangValue::poison();
  }
  auto next = std::make_unique<Frame>();
  if (!bindParameters(node, function.scope, arguments, range, next->locals))
    return LangValue::poison();
  if (isNoinline(node) && !checkNoinline(node, next->locals))
    return LangValue::poison();
  next->function = node;
  next->scope = function.scope;
  next->isCombine = !frames.empty() && frame().isCombine;
  next->isPython = options.isPython;
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

LangValue Importer::callCombine(const FunctionValue &function, llvm::ArrayRef<LangValue> arguments, SourceRange range) {
  std::vector<CallArgument> bound;
  for (const LangValue &argument : arguments)
    bound.push_back(CallArgument{"", argument, range, {}, false});
  mlir::Block *block = emit.builder.getInsertionBlock();
  LangValue result = callFunction(function, bound, range);
  if (result.isPoison())
    return result;
  result = selectInsteadOfBranches(emit, *block, result);
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

bool Importer::checkBlockShape(llvm::ArrayRef<int64_t> shape, SourceRange range) {
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
