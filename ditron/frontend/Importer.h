//===- Importer.h - Evaluates a kernel's source into IR -------------------------------------------------------*- C++ -*-===//
//
// The importer executes the syntax tree of one kernel with abstract values (Value.h): what is known at compile time is
// computed, what is not becomes operations. Statements are in Statements.cpp, run-time control flow in ControlFlow.cpp,
// expressions in Expressions.cpp and Attributes.cpp, names in Names.cpp, calls in Calls.cpp and BuiltinCalls.cpp; the
// functions of the language are in the Builtins*.cpp files. This header is private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_IMPORTER_H
#define DITRON_FRONTEND_IMPORTER_H

#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/Builtins.h"
#include "ditron/frontend/Emitter.h"
#include "ditron/frontend/Import.h"
#include "ditron/frontend/Interpreter.h"
#include "ditron/frontend/Library.h"
#include "ditron/frontend/ModuleScope.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ditron::frontend {

/// A name of a function body.
struct Variable {
  LangValue value;
  SourceRange range;        ///< Of the assignment that gave the value.
  bool isConstexpr = false; ///< Declared with tl.constexpr.
  bool isDecayed = false;   ///< Became a run-time value only because it was assigned.
  unsigned depth = 0;       ///< Run-time regions around the declaration.
};

/// The names of a function body; ordered, so that the emitted IR is the same every time.
using Scope = llvm::MapVector<llvm::StringRef, Variable>;

/// One function that is being executed.
struct Frame {
  const ast::FunctionDef *function = nullptr; ///< Null while a module-level expression is evaluated.
  const ModuleScope *scope = nullptr;         ///< The file whose names it sees.
  Scope locals;
  /// Why names that were assigned are not visible any more, with the place of the statement that hid them.
  llvm::DenseMap<llvm::StringRef, std::pair<SourceRange, llvm::StringRef>> hidden;
  llvm::SmallVector<llvm::StringRef> pendingConstexpr; ///< From `name: tl.constexpr` without a value.
  unsigned depth = 0;                                  ///< Run-time regions (loops, branches) around the statement.
  unsigned loops = 0;
  unsigned contexts = 0; ///< Statements `with` around the statement.
  bool isEntry = false;
  bool isCombine = false;           ///< Called from a reduction or scan: nothing but arithmetic.
  bool isPython = false;            ///< An undecorated function of a class, executed at compile time: nothing decays.
  llvm::StringRef self;             ///< The parameter whose fields the body may assign; empty outside of methods.
  const ClassInfo *owner = nullptr; ///< The class whose method it is.
};

/// How a function of the file is entered.
struct CallOptions {
  bool isPython = false;
  bool bindsSelf = false;         ///< The first argument is the instance of a method.
  LangValue *selfAfter = nullptr; ///< Receives the instance as the body left it.
  const ClassInfo *owner = nullptr;
};

/// How a function body ended.
struct Outcome {
  bool isReturn = false; ///< False: control fell off the end.
  LangValue value = LangValue::none();
  SourceRange range;
};

/// What is executed after a list of statements ends without a return.
struct Continuation {
  ast::StmtList statements;
  const Continuation *next = nullptr;
};

class Importer {
public:
  /// Limits that turn endless or absurd programs into errors.
  static constexpr unsigned maxCallDepth = 64;
  static constexpr unsigned maxRegionDepth = 256;
  static constexpr unsigned maxEvaluationDepth = 1200;
  static constexpr unsigned maxStatements = 400000;

  Importer(mlir::MLIRContext &context, Modules &modules, const ModuleScope &globals, const ImportOptions &options,
           DiagnosticEngine &diagnostics);

  Emitter emit;
  const ImportOptions &options;

  /// Imports the kernel as a function of the module; errors are in the diagnostics. Parameters without an argument (null)
  /// have their defaults.
  void importEntry(mlir::ModuleOp module, const ast::FunctionDef *kernel,
                   llvm::ArrayRef<const ArgumentSpec *> arguments);

  //===--- For the built-in functions -----------------------------------------------------------------------------===//

  /// Calls a function of the file with positional arguments and inlines it.
  LangValue callFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  /// The same in a region on scalars, of a reduction or map: operations that need the whole block are errors.
  LangValue callCombine(const FunctionValue &function, llvm::ArrayRef<LangValue> arguments, SourceRange range);
  /// `value.name`; without `reports`, poison for an attribute that does not exist.
  LangValue attributeOf(const LangValue &value, llvm::StringRef name, SourceRange range, bool reports = true);
  /// Whether the statement that is executed is this call alone, whose result it drops.
  bool isDiscarded(SourceRange call) const { return droppedCall == call; }
  /// For contexts: the variable whose element is accessed, empty if the subscript is of something else; the functions being
  /// executed, and a variable of the innermost, or null; an assignment to one.
  llvm::StringRef elementTarget;
  unsigned callDepth() const { return frames.size(); }
  const LangValue *variable(llvm::StringRef name) const {
    auto it = frames.back()->locals.find(name);
    return it == frames.back()->locals.end() ? nullptr : &it->second.value;
  }
  void assignVariable(llvm::StringRef name, LangValue value, SourceRange range) {
    auto it = frames.back()->locals.find(name); // the key outlives the caller's text
    if (it != frames.back()->locals.end())
      assignName(it->first, std::move(value), range);
  }
  /// Reports a shape that is no block: sizes must be powers of two, at most maxBlockElements in all.
  bool checkBlockShape(llvm::ArrayRef<int64_t> shape, SourceRange range);

private:
  //===--- The kernel's parameters (Importer.cpp) -------------------------------------------------------------------------------===//
  /// The value of an argument; `take` gives the next parameter of the function.
  LangValue argumentValue(const ArgumentSpec &spec, const std::string &name,
                          llvm::function_ref<LangValue(const RunTimeParameter &)> take);
  /// The class that an annotation names; null if it names none.
  std::shared_ptr<const ClassInfo> annotatedClass(const ast::Expr *annotation, const ModuleScope *scope, SourceRange range);
  /// A tuple as an instance of a class, tuples in it by the annotations of its fields.
  LangValue asNamedTuple(const LangValue &value, std::shared_ptr<const ClassInfo> cls, SourceRange range);

  //===--- Names (Names.cpp) ----------------------------------------------------------------------------------------===//
  Frame &frame() { return *frames.back(); }
  const ModuleScope &scope() { return *frame().scope; }
  LangValue lookup(const ast::Name *name);
  /// The value of a name of a file. Code that runs while compiling may read what kernels may not.
  LangValue readGlobal(llvm::StringRef name, const GlobalBinding &binding, const ModuleScope &scope, SourceRange range,
                       bool isHostRead);
  LangValue readImported(const ForeignValue &foreign, SourceRange range, bool isHostRead);
  LangValue fileAttribute(const FileValue &file, llvm::StringRef name, SourceRange range, bool reports);
  /// Reports the use of a module that is neither ours nor a file. `verb`: "used", "called".
  LangValue reportForeign(const ForeignValue &foreign, SourceRange range, llvm::StringRef verb);
  /// The result of the interpreter, or its failure as a message.
  LangValue fromHost(const HostValue &value, SourceRange use);
  /// Executes a function decorated with constexpr_function.
  LangValue callConstexpr(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  InterpreterHooks interpreterHooks();
  LangValue evaluateAtModuleLevel(const ast::Expr *expression, const ModuleScope *scope);
  /// What a name of the built-in modules stands for, which is in the library for some.
  LangValue resolveLibrary(const LangValue &value, SourceRange range);
  void reportUnknownName(llvm::StringRef name, SourceRange range);
  /// Binds a name to a value after decay; reports misuse of constexpr names.
  void assignName(llvm::StringRef name, LangValue value, SourceRange range);
  void declareConstexpr(llvm::StringRef name, LangValue value, SourceRange range);
  LangValue decay(const LangValue &value, SourceRange range);
  void assignTarget(const ast::Expr *target, const LangValue &value);

  //===--- Statements (Statements.cpp) --------------------------------------------------------------------------------===//
  Outcome runBody(ast::StmtList statements, const Continuation *next);
  /// Executes statements; what follows a possible break or continue is put under a condition.
  void executeBlock(ast::StmtList statements);
  void execute(const ast::Stmt *statement);
  void executeAnnotatedAssign(const ast::AnnAssign *statement);
  void executeAssert(const ast::Assert *statement);
  bool countStatement(const ast::Stmt *statement);

  //===--- Run-time control flow (ControlFlow.cpp, Loops.cpp) -----------------------------------------------------------===//
  /// A condition: a compile-time bool, a run-time int1 scalar, or poison.
  LangValue evaluateCondition(const ast::Expr *expression);
  Outcome runIf(const ast::If *statement, const Continuation &rest);
  void executeIf(const ast::If *statement);
  void executeRunTimeIf(const ast::If *statement, mlir::Value condition);
  void executeFor(const ast::For *statement);
  /// Executes the body once for each element.
  void unroll(const ast::For *statement, llvm::ArrayRef<LangValue> elements);
  void executeRunTimeFor(const ast::For *statement, const RangeValue &range);
  void executeWhile(const ast::While *statement);
  /// A while loop that is executed at compile time.
  void repeat(const ast::While *statement);

  /// Two values of a variable that meet after a branch.
  struct JoinedValue {
    LangValue shape; ///< Gives the nesting of tuples.
    llvm::SmallVector<LangValue> leaves;
    llvm::SmallVector<int> slots; ///< Per leaf: the result it becomes, or -1 to keep the leaf.
  };
  /// An scf.if under construction, with one block per branch and no terminators yet.
  struct Branches {
    mlir::scf::IfOp op;
    llvm::SmallVector<mlir::Value> thenYields, elseYields;
    llvm::SmallVector<LangType> types;
  };
  /// The end of the two branches of a statement: joins the names of both scopes into the frame. A name that only one side
  /// has is hidden, unless the other side is left by break or continue. Finishes the branches.
  void joinScopes(Branches &branches, const Scope &before, Scope thenScope, Scope elseScope, SourceRange place);
  Branches beginBranches(mlir::Value condition);
  std::optional<std::string> join(Branches &branches, const LangValue &a, const LangValue &b, SourceRange range,
                                  JoinedValue &joined);
  /// Adds the terminators and results; returns the operation that replaces the unfinished one.
  mlir::scf::IfOp finishBranches(Branches &branches);
  LangValue resolve(const JoinedValue &joined, mlir::scf::IfOp op, const Branches &branches);
  LangValue undefinedLike(const LangValue &value);

  /// The variables that a loop carries.
  struct CarriedVariable {
    llvm::StringRef name;
    Variable before;
    llvm::SmallVector<unsigned> slots; ///< Indices of its run-time leaves among the loop's values.
  };
  struct CarriedSet {
    llvm::SmallVector<CarriedVariable> variables;
    llvm::SmallVector<mlir::Value> inits;
    llvm::SmallVector<LangType> types;
  };
  //===--- break and continue (LoopExits.cpp) ---------------------------------------------------------------------------------===//
  // Inside of a loop two names that no program can use, the keywords themselves, stand for: the rest of this round is left
  // out ("continue"), and no further round follows ("break"). They are bools like any other, so branches join them; a loop
  // takes them over from the code around it and gives them back.
  struct LoopExits {
    std::optional<Variable> round, loop;
  };
  /// Clears both marks; gives those of the loop around.
  LoopExits enterExits();
  void restoreExits(LoopExits outer);
  /// Whether a mark is set: a compile-time bool or a run-time int1; false outside of loops.
  LangValue exitMark(llvm::StringRef keyword);
  void setExitMark(llvm::StringRef keyword, LangValue value);
  /// True if a scope ends in break or continue in any case.
  bool isLeft(const Scope &scope) const;
  void executeExit(const ast::Stmt *statement);
  /// Executes under the condition that a run-time mark is not set. With `leavesRound`, nothing of this round follows where
  /// it is set.
  void executeUnless(LangValue mark, SourceRange place, bool leavesRound, llvm::function_ref<void()> body);
  /// A mark as a value of the IR; null if it is known not to be set.
  mlir::Value runTimeMark(const LangValue &mark);
  /// The loop as an scf.while that ends when the mark is set at the end of a round. Its first results are those of the loop.
  mlir::Operation *addBreak(mlir::scf::ForOp loop, mlir::Value mark);
  mlir::Operation *addBreak(mlir::scf::WhileOp loop, mlir::Value mark);

  CarriedSet findCarried(llvm::ArrayRef<const ast::Node *> parts, llvm::StringRef loopVariable);
  void bindCarried(const CarriedSet &carried, mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> collectCarried(CarriedSet &carried, mlir::ValueRange current, SourceRange range);
  void leaveLoop(const CarriedSet &carried, Scope before, mlir::ValueRange results, SourceRange range);

  //===--- Classes (Aggregates.cpp) -----------------------------------------------------------------------------------------===//
  /// The class of a statement; null after an error.
  std::shared_ptr<const ClassInfo> classOf(const ast::ClassDef *node, const ModuleScope *scope, SourceRange use);
  /// True if the statement alone says that kernels may use the class.
  bool isKernelClass(const ast::ClassDef *node, const ModuleScope *scope);
  /// The class that a call of namedtuple makes; null if it is another call.
  std::shared_ptr<const ClassInfo> namedTupleOf(const ast::Call *call, const ModuleScope *scope);
  /// A value for a field by its annotation; poison after an error.
  LangValue checkField(const ClassInfo &cls, size_t index, const LangValue &value, SourceRange range);
  LangValue withField(const LangValue &instance, llvm::StringRef name, const LangValue &value, SourceRange range);
  LangValue replaceFields(llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  void assignAttribute(const ast::Attribute *target, const LangValue &value);
  LangValue construct(const std::shared_ptr<const ClassInfo> &cls, llvm::ArrayRef<CallArgument> arguments,
                      SourceRange range);
  LangValue initialize(const ClassMethod &method, const LangValue &instance, llvm::ArrayRef<CallArgument> arguments,
                       SourceRange range, size_t errorsBefore);
  LangValue instanceAttribute(const LangValue &value, llvm::StringRef name);
  LangValue classAttribute(const std::shared_ptr<const ClassInfo> &cls, llvm::StringRef name);
  LangValue callMethod(const MethodValue &method, SourceRange selfRange, llvm::ArrayRef<CallArgument> arguments,
                       SourceRange range);
  /// `super().method(...)`; nullopt if the call is another one.
  std::optional<LangValue> callSuper(const ast::Call *call);
  /// Calls `__getitem__` and the like; nullopt if the class has none.
  std::optional<LangValue> callSpecialMethod(const LangValue &object, llvm::StringRef name,
                                             llvm::ArrayRef<CallArgument> arguments, SourceRange objectRange,
                                             SourceRange range);

  //===--- with, and what it does to subscripts (Contexts.cpp) ------------------------------------------------------------===//
  void executeWith(const ast::With *statement);
  std::optional<llvm::SmallVector<LangValue>> evaluateIndices(const ast::Expr *index);
  /// `object[...]` by the contexts around it; nullopt: it is a plain subscript.
  std::optional<LangValue> loadElement(const LangValue &object, const ast::Subscript *expression);
  void assignElement(const ast::Subscript *target, const LangValue &value);

  //===--- Expressions (Expressions.cpp, Attributes.cpp) ------------------------------------------------------------------===//
  LangValue evaluate(const ast::Expr *expression);
  LangValue evaluateKind(const ast::Expr *expression);
  LangValue evaluateBoolOp(const ast::BoolOp *expression);
  LangValue evaluateIfExp(const ast::IfExp *expression);
  LangValue evaluateSubscript(const ast::Subscript *expression);
  LangValue subscriptTuple(const LangValue &value, const ast::Subscript *expression);
  LangValue subscriptBlock(const LangValue &value, const ast::Subscript *expression);
  LangValue evaluateFString(const ast::JoinedStr *expression);
  LangValue evaluateComprehension(const ast::Comprehension *expression);
  LangValue evaluateElements(ast::ExprList elements);
  std::optional<std::vector<LangValue>> staticElements(const LangValue &iterable, SourceRange range);
  LangValue tensorAttribute(const LangValue &tensor, llvm::StringRef name);
  LangValue descriptorAttribute(const LangValue &value, llvm::StringRef name);

  //===--- Calls (Calls.cpp, BuiltinCalls.cpp) -----------------------------------------------------------------------------===//
  LangValue evaluateCall(const ast::Call *call);
  /// Calls any value that can be called; the ranges are those of the object of a method, of the callee, and of the call.
  LangValue callValue(const LangValue &callee, std::vector<CallArgument> arguments, SourceRange selfRange,
                      SourceRange calleeRange, SourceRange range);
  bool collectArguments(const ast::Call *call, std::vector<CallArgument> &arguments);
  bool bindParameters(const ast::FunctionDef *function, const ModuleScope *scope,
                      llvm::ArrayRef<CallArgument> arguments, SourceRange range, Scope &locals);
  /// Executes a function of the file in place.
  LangValue enterFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                          const CallOptions &options);
  /// The rule of functions that are not inlined: no blocks as arguments. Ours are inlined all the same.
  bool checkNoinline(const ast::FunctionDef *function, const Scope &locals);
  /// Reports a call whose result must be used and is not.
  void checkDiscarded(const ast::Call *call, const LangValue &callee);
  LangValue callBuiltin(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range);
  bool checkRule(const Builtin &builtin, const BuiltinParam &param, LangValue &value, const CallArgument &argument);
  LangValue callConstantMethod(const MethodValue &method, llvm::ArrayRef<CallArgument> arguments, SourceRange range);

  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::shared_ptr<const ContextValue>> contexts; ///< Entered ones, of callers too; innermost last.
  const ModuleScope &globals;                                ///< Of the kernel's file.
  Modules &modules;
  Library library;
  Interpreter interpreter;
  llvm::DenseMap<const ast::Node *, std::shared_ptr<const ClassInfo>> classes;
  const ast::Expr *discarded = nullptr; ///< The expression whose value the statement drops.
  SourceRange droppedCall;              ///< The last call that was one.
  unsigned evaluationDepth = 0;
  unsigned statementCount = 0;
  bool isStopped = false; ///< A limit was hit: nothing more is executed.
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_IMPORTER_H
