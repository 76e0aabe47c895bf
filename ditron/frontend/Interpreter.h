//===- Interpreter.h - Python that runs while compiling -------------------------------------------------------*- C++ -*-===//
//
// Executes what a kernel file leaves to Python: functions decorated with constexpr_function, the constants of the module
// level, default arguments, lists of configurations, heuristics. It is a subset of Python without classes, exceptions,
// generators and anything of the machine (files, environment, other packages), with limits that turn endless programs into
// errors. It emits nothing and needs no IR; what it cannot know it asks of its owner. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_INTERPRETER_H
#define DITRON_FRONTEND_INTERPRETER_H

#include "ditron/frontend/HostValue.h"
#include "ditron/frontend/Modules.h"
#include <map>
#include <set>

namespace ditron::frontend {

/// The arguments of a call.
struct HostArguments {
  HostSequence positional;
  std::vector<std::pair<std::string, HostValue>> keywords;
};

/// What the owner of an interpreter knows and it does not. All may be missing; a result of poison is a failure that the owner
/// has reported.
struct InterpreterHooks {
  /// Calls a function or class of the language.
  std::function<LangValue(const LangValue &callee, const HostArguments &, SourceRange)> call;
  /// An attribute of a value of the language; nullopt if there is none.
  std::function<std::optional<LangValue>(const LangValue &, llvm::StringRef name, SourceRange)> attribute;
  /// A class of a kernel file, and a call that makes one (collections.namedtuple; nullopt for other calls).
  std::function<LangValue(const ast::ClassDef *, const ModuleScope *, SourceRange)> classOf;
  std::function<std::optional<LangValue>(const ast::Call *, const ModuleScope *)> classOfCall;
  /// A name of the built-in modules that stands for a function of the library.
  std::function<LangValue(const LangValue &, SourceRange)> library;
};

class Interpreter {
public:
  /// Limits of one evaluation.
  static constexpr unsigned maxSteps = 4'000'000;
  static constexpr unsigned maxCallDepth = 160;
  static constexpr unsigned maxDepth = 1100;
  static constexpr size_t maxElements = size_t(1) << 20;

  /// Why an evaluation ended. An empty message: the owner has reported it.
  struct Failure {
    SourceRange range;
    std::string message;
    std::vector<SourceRange> calls; ///< That lead to it, outermost first.
    std::string hint;
  };

  explicit Interpreter(Modules *modules, InterpreterHooks hooks = {}) : modules(modules), hooks(std::move(hooks)) {}
  ~Interpreter();
  Interpreter(const Interpreter &) = delete;

  /// Evaluates an expression of the module level.
  HostValue evaluate(const ast::Expr *expression, const ModuleScope &scope);
  /// The value of a name of the module level, which binds it.
  HostValue global(llvm::StringRef name, const ModuleScope &scope, SourceRange use);
  /// Calls a function.
  HostValue call(const HostValue &callee, const HostArguments &arguments, SourceRange range);
  /// An attribute; null with a failure if there is none, or without one if it is not to be reported.
  std::optional<HostValue> attribute(const HostValue &object, llvm::StringRef name, SourceRange range, bool reports);

  bool hasFailed() const { return failure.has_value(); }
  /// The failure, if there was one; the interpreter is ready again.
  std::optional<Failure> takeFailure() {
    std::optional<Failure> taken = std::move(failure);
    failure.reset();
    return taken;
  }
  /// Ends the evaluation; returns None.
  HostValue fail(SourceRange range, std::string message, std::string hint = {});

private:
  using Env = std::shared_ptr<HostScope>;
  enum class Flow { Next, Break, Continue, Return, Failed };

  /// Resets the limits at the outermost entry.
  class Entry;

  //===--- Statements and calls (Interpreter.cpp) ---------------------------------------------------------------------===//
  bool step(SourceRange range);
  Env envOf(const ModuleScope &scope);
  HostValue readBinding(llvm::StringRef name, const GlobalBinding &binding, const ModuleScope &scope, SourceRange use);
  HostValue readImport(const GlobalBinding &binding, SourceRange use);
  std::optional<HostValue> replay(llvm::StringRef name, const ModuleScope &scope);
  Flow run(ast::StmtList statements, const Env &env, HostValue &result);
  Flow run(const ast::Stmt *statement, const Env &env, HostValue &result);
  void assign(const ast::Expr *target, const HostValue &value, const Env &env);
  HostValue callFunction(const HostFunction &function, const HostArguments &arguments, SourceRange range);
  bool bind(llvm::ArrayRef<ast::Param> params, const HostArguments &arguments, const Env &env, const Env &outer,
            const std::string &name, SourceRange range);

  //===--- Expressions (InterpreterExpressions.cpp) -------------------------------------------------------------------===//
  HostValue evaluate(const ast::Expr *expression, const Env &env);
  HostValue evaluateKind(const ast::Expr *expression, const Env &env);
  HostValue lookup(const ast::Name *name, const Env &env);
  HostValue evaluateCall(const ast::Call *call, const Env &env);
  bool evaluateElements(ast::ExprList elements, const Env &env, HostSequence &values);
  HostValue evaluateComprehension(const ast::Comprehension *expression, const Env &env);
  bool comprehend(const ast::Comprehension *expression, size_t clause, const Env &env, HostSequence &keys,
                  HostSequence &values);
  HostValue evaluateFString(const ast::JoinedStr *expression, const Env &env);
  HostValue evaluateSubscript(const ast::Subscript *expression, const Env &env);
  HostValue slice(const HostValue &value, const ast::Slice *slice, const Env &env);
  HostValue binaryOf(BinaryOp op, const HostValue &a, const HostValue &b, SourceRange range);
  std::optional<bool> compareOf(CompareOp op, const HostValue &a, const HostValue &b, SourceRange range);
  /// The elements that a loop over the value visits.
  std::optional<HostSequence> elementsOf(const HostValue &value, SourceRange range);
  std::optional<int64_t> integerOf(const HostValue &value, SourceRange range, llvm::StringRef what);
  HostValue constantResult(Expected<ConstValue> value, SourceRange range);

  //===--- Functions and methods (InterpreterFunctions.cpp, InterpreterMethods.cpp) -------------------------------------===//
  HostValue callNative(llvm::StringRef name, const HostArguments &arguments, SourceRange range);
  HostValue callMath(llvm::StringRef name, const HostArguments &arguments, SourceRange range);
  std::optional<HostValue> callSequenceFunction(llvm::StringRef name, const HostArguments &arguments, SourceRange range);
  HostValue makeConfig(const HostArguments &arguments, SourceRange range);
  bool isInstance(const HostValue &value, const HostValue &cls, SourceRange range);
  HostValue callMethod(const HostValue &self, llvm::StringRef name, const HostArguments &arguments, SourceRange range);
  HostValue callStringMethod(const std::string &text, llvm::StringRef name, const HostArguments &arguments,
                             SourceRange range);
  std::optional<HostValue> callListMethod(HostSequence &list, llvm::StringRef name, const HostArguments &arguments,
                                          SourceRange range);
  HostValue callDictMethod(const HostDict &dict, llvm::StringRef name, const HostArguments &arguments, SourceRange range);
  bool sort(HostSequence &values, const HostArguments &arguments, SourceRange range);

  Modules *modules;
  InterpreterHooks hooks;
  std::map<std::pair<const ModuleScope *, std::string>, HostValue> globals;
  std::set<std::pair<const ModuleScope *, std::string>> inProgress;
  std::map<const ModuleScope *, Env> envs;
  /// Every list, tuple and dict: they die one by one, the newest first, so that deep nesting and circles do no harm.
  std::vector<HostValue> made;
  std::vector<Env> closures; ///< Scopes that functions in them hold, which would keep each other alive.
  std::optional<Failure> failure;
  std::vector<SourceRange> calls;
  unsigned entries = 0;
  unsigned depth = 0;
  unsigned steps = 0;
};

/// A function of Python's own modules that the interpreter knows, by its dotted name ("len", "math.log2").
bool isHostFunction(llvm::StringRef name);
/// A constant of Python's math module.
std::optional<double> mathConstant(llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_INTERPRETER_H
