//===- Evaluator.h - The evaluator: executes the source of kernels and of Python ---------------------------------*- C++ -*-===//
//
// One evaluator executes the syntax tree with values that are known now or exist at run time (Value.h). Every function runs
// in one of two domains (Domain below):
//
// - A *kernel* is compiled: what is known is computed, what is not becomes operations, and control flow on run-time values
//   becomes structured operations.
// - *Python* runs while compiling: the module level of files, constexpr functions, methods of classes without a decorator,
//   default arguments, decorators. All its control flow is executed; nothing of it decays to run-time values.
//
// Expressions, calls, binding of arguments and assignment exist once, and ask the domain where the two differ. Statements are
// in Statements.cpp (both), ControlFlow.cpp, Loops.cpp, LoopExits.cpp (kernels) and PythonStatements.cpp; expressions in
// Expressions.cpp, Attributes.cpp, Containers.cpp; names in Names.cpp and ModuleLevel.cpp, functions and decorators in
// Functions.cpp, calls in Calls.cpp and builtins/BuiltinCalls.cpp. This header is private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_EVALUATOR_H
#define DITRON_FRONTEND_EVALUATOR_H

#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/Emitter.h"
#include "ditron/frontend/Import.h"
#include "ditron/frontend/Library.h"
#include "ditron/frontend/Modules.h"
#include "ditron/frontend/natives/Natives.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

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

/// What is different between kernels and Python that runs while compiling: all of it.
struct Domain {
  /// Kernels: numbers become run-time scalars when they are assigned, strings cannot be; a list is a tuple.
  bool decays;
  /// Kernels read of the module level only functions, classes, modules, dtypes, None and what tl.constexpr made.
  bool readsPlainGlobals;
  /// Python: chained comparisons, dicts, sets, lambdas, several clauses of comprehensions, `**` arguments.
  bool hasAllExpressions;
  unsigned maxCallDepth;
  llvm::StringLiteral phrase; ///< For messages.
};
inline constexpr Domain kernelDomain{true, false, false, 64, "in a kernel"};
inline constexpr Domain pythonDomain{false, true, true, 160, "at compile time"};

/// One function that is being executed.
struct Frame {
  const ast::FunctionDef *function = nullptr; ///< Null while the module level is executed.
  const ModuleScope *scope = nullptr;         ///< The file whose names it sees.
  /// The names of Python; null in a kernel, whose names are `locals`.
  std::shared_ptr<Environment> environment;
  std::shared_ptr<Environment> closure; ///< Of a kernel within a Python function: the names around it.
  /// A statement that fails, or that depends on what is not known, makes its names unknown, and the next one is executed.
  bool isTolerant = false;
  /// Called by a kernel for its values: operations may be emitted (methods of classes, functions that only compute).
  bool mayEmit = false;
  /// In a `try`: what it depends on and nobody knows, such as whether a package is installed; and names of its makers.
  std::vector<LangValue> *doubts = nullptr;
  /// Names that `global` and `nonlocal` bind elsewhere.
  llvm::SmallVector<std::pair<llvm::StringRef, std::shared_ptr<Environment>>, 0> redirected;
  LangValue unknownCondition; ///< Of Flow::Unknown: what decides. Of Flow::Raised: the exception.
  LangValue result = LangValue::none(); ///< Of Python's Flow::Return.
  Scope locals;
  /// Why names that were assigned are not visible any more, with the place of the statement that hid them.
  llvm::DenseMap<llvm::StringRef, std::pair<SourceRange, llvm::StringRef>> hidden;
  llvm::SmallVector<llvm::StringRef> pendingConstexpr; ///< From `name: tl.constexpr` without a value.
  unsigned depth = 0;                                  ///< Run-time regions (loops, branches) around the statement.
  unsigned loops = 0;
  unsigned contexts = 0; ///< Statements `with` around the statement.
  bool isEntry = false;
  bool isCombine = false;           ///< Called from a reduction or scan: nothing but arithmetic.
  llvm::StringRef self;             ///< The parameter whose fields the body may assign; empty outside of methods.
  const ClassInfo *owner = nullptr; ///< The class whose method it is.

  bool isPython() const { return environment != nullptr; }
  const Domain &domain() const { return isPython() ? pythonDomain : kernelDomain; }
};

/// A decorator of a function, applied to it when the function was defined.
struct Decoration {
  const ast::Expr *expression = nullptr;
  llvm::StringRef name; ///< Of a function of ours: "jit", "autotune"; empty: of the user's or of another package.
  std::vector<LangValue> args; ///< Of a decorator that is called.
  Keywords keywords;
  bool isAboveJit = false;
  /// Not ours, and what it makes of the function could not be found out: launches do not go through it.
  bool isUnapplied = false;

  /// An argument by name or position; null if it is not given.
  const LangValue *argument(llvm::StringRef name, size_t position) const;
};

/// How the statements of Python end.
///
/// Failed: an error was reported. Unknown: the frame's unknownCondition decides how to go on. Raised: `raise` was reached at a
/// module level, which ends there.
enum class Flow { Next, Break, Continue, Return, Failed, Unknown, Raised };

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
  unsigned depth = 0; ///< Of the frame before the statement: the rest stands in no branch, to the program.
  const Continuation *next = nullptr;
};

class Evaluator {
public:
  /// Limits that turn endless or absurd programs into errors.
  static constexpr unsigned maxRegionDepth = 256;
  static constexpr unsigned maxEvaluationDepth = 1100;
  static constexpr unsigned maxStatements = 400000;
  /// Limits of Python for one statement of the module level, or one call from a kernel.
  static constexpr size_t maxSteps = 4'000'000;
  static constexpr size_t maxElements = size_t(1) << 20;

  Evaluator(mlir::MLIRContext &context, Modules &modules, const ModuleScope &globals, const ImportOptions &options,
           DiagnosticEngine &diagnostics);
  ~Evaluator();

  Emitter emit;
  const ImportOptions &options;

  /// Imports the kernel as a function of a name in the module; errors are in the diagnostics. Parameters without an argument (null)
  /// have their defaults.
  void importEntry(mlir::ModuleOp module, const FunctionValue &kernel, llvm::StringRef name,
                   llvm::ArrayRef<const ArgumentSpec *> arguments);

  //===--- For those who ask about a file (Import.cpp, TuningSpace.cpp) ----------------------------------------------===//

  /// Evaluates an expression in Python's domain; poison after a reported error.
  LangValue evaluatePython(const ast::Expr *expression, const std::shared_ptr<Environment> &environment);
  /// The default value of a parameter, in the names of its function's definition.
  LangValue defaultOf(const FunctionValue &function, const ast::Param &param);
  /// The names of a file, whose module level is executed at the first call.
  const Environment &namesOf(const ModuleScope &file);
  /// A name of a file; nullopt if there is none.
  std::optional<Binding> findGlobal(const ModuleScope &file, llvm::StringRef name);
  /// The jit functions of a file by their names; of those within a function "maker.kernel".
  std::vector<std::pair<std::string, FunctionValue>> kernelsOf(const ModuleScope &file);
  /// Calls a function of the file with one argument, for a caller outside of the program; failures are put into `errors`.
  LangValue callFromOutside(const LangValue &function, const LangValue &argument, SourceRange range,
                            std::vector<Diagnostic> &errors);
  /// Why a name that should be a kernel is unknown.
  Status explainUnknown(const LangValue &value, llvm::StringRef name, SourceRange range);
  /// The decorators of a function, the outermost first.
  llvm::ArrayRef<Decoration> decorationsOf(const ast::FunctionDef *function) const;

  //===--- For native functions (natives/Natives.h) ---------------------------------------------------------------------------===//

  /// The elements that a loop over a value visits; nullopt after a reported error.
  std::optional<std::vector<LangValue>> elementsOf(const LangValue &iterable, SourceRange range);
  /// iter(value); null after a reported error.
  std::shared_ptr<Iterator> iteratorOf(const LangValue &iterable, SourceRange range);
  /// `object[index]`, of any object that has elements.
  LangValue itemOfValue(const LangValue &object, const LangValue &index, SourceRange range);
  /// Sets an attribute of an object or class of Python; poison after a reported error.
  LangValue setAttribute(const LangValue &object, llvm::StringRef name, const LangValue &value, SourceRange range);
  LangValue deleteAttribute(const LangValue &object, llvm::StringRef name, SourceRange range);
  /// Calls a method of Python's protocols (`__len__`) on an instance; nullopt if its class has none.
  std::optional<LangValue> callProtocol(const LangValue &object, llvm::StringRef name, std::vector<LangValue> args,
                                        SourceRange range);
  /// For LangValue: whether two instances are equal, and the text of one by `__str__` or `__repr__`.
  bool equalInstances(const LangValue &a, const LangValue &b);
  std::string textOfInstance(const LangValue &value, bool isRepr, unsigned depth);
  /// Python's truth value; nullopt after a reported error. The value must be known at compile time.
  std::optional<bool> truthOf(const LangValue &value, SourceRange range);
  /// An operator; containers too.
  LangValue binaryOf(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  /// A comparison of compile-time values; nullopt after a reported error.
  std::optional<bool> compareOf(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue call(const LangValue &callee, std::vector<LangValue> args, const Keywords &keywords, SourceRange range);
  /// Counts work; false, with an error reported, when there was too much of it.
  bool countSteps(size_t count, SourceRange range);
  /// Reports an error that is an exception of Python's to the program.
  LangValue fail(SourceRange range, std::string message, llvm::StringRef exception = "TypeError");
  /// A value that only the user's machine knows.
  LangValue unknown(SourceRange range, std::string text);
  /// Text that lives as long as the evaluator.
  llvm::StringRef intern(llvm::StringRef text);
  /// The module of an `import name`; unknown if nobody knows it.
  LangValue importModule(llvm::StringRef name, SourceRange range);
  /// Whether there is a module of that absolute name: ours, a file of the user's, or one that the table knows; nullopt if only
  /// the user's machine knows.
  std::optional<bool> hasModule(llvm::StringRef name, SourceRange range);
  /// What the option --define gives for a name or an expression.
  std::optional<LangValue> definedValue(llvm::StringRef text);
  /// Says that a result depends on a variable of the environment; false if the program's text does not name it, so that nobody
  /// would notice a change of it.
  bool noteEnvironmentRead(llvm::StringRef name);
  /// What the program has set in os.environ, by name; None for what it has taken out.
  LangValue environmentChanges = LangValue::dict();

  //===--- For the built-in functions -----------------------------------------------------------------------------===//

  /// Calls a function of the file with positional arguments and inlines it.
  LangValue callFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  /// The same in a region on scalars, of a reduction or map: operations that need the whole block are errors.
  LangValue callCombine(const FunctionValue &function, llvm::ArrayRef<LangValue> arguments, SourceRange range);
  /// `value.name`; without `reports`, poison for an attribute that does not exist.
  /// Python has no such attribute, or it has and this program does not know it: only the first is an exception.
  LangValue reportMissingAttribute(const LangValue &value, llvm::StringRef name, SourceRange range);
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
  //===--- The kernel's parameters (Evaluator.cpp) -------------------------------------------------------------------------------===//
  /// The value of "@name" in a signature.
  LangValue globalArgument(llvm::StringRef name);
  /// The value of an argument; `take` gives the next parameter of the function.
  LangValue argumentValue(const ArgumentSpec &spec, const std::string &name,
                          llvm::function_ref<LangValue(const RunTimeParameter &)> take);
  /// The class that an annotation names; null if it names none.
  std::shared_ptr<const ClassInfo> annotatedClass(const ast::Expr *annotation, const std::shared_ptr<Environment> &names);
  /// A tuple as an instance of a class, tuples in it by the annotations of its fields.
  LangValue asNamedTuple(const LangValue &value, std::shared_ptr<const ClassInfo> cls, SourceRange range);

  //===--- Names (Names.cpp) ----------------------------------------------------------------------------------------===//
  Frame &frame() { return *frames.back(); }
  const ModuleScope &scope() { return *frame().scope; }
  LangValue lookup(const ast::Name *name);
  /// A name around the function: of the Python functions that hold it, of its file, of Python.
  LangValue lookupOutside(const ast::Name *name);
  /// Whether a name without a value in `names` belongs there all the same, because the function binds it somewhere.
  bool isUnboundLocal(const Environment &names, llvm::StringRef name);
  /// What a kernel, or Python, gets for a name of the module level.
  LangValue readGlobal(llvm::StringRef name, const Binding &binding, SourceRange range);
  /// The value behind an import, or the import itself if it leads nowhere.
  LangValue resolveForeign(const ForeignValue &foreign, unsigned depth = 0);
  LangValue fileAttribute(const FileValue &file, llvm::StringRef name, SourceRange range, bool reports);
  /// `name` of another package: a native function, a constant, or a longer dotted name.
  LangValue foreignAttribute(const ForeignValue &foreign, llvm::StringRef name, SourceRange range, bool reports);
  /// Reports the use of a module that is neither ours nor a file. `verb`: "used", "called".
  LangValue reportForeign(const ForeignValue &foreign, SourceRange range, llvm::StringRef verb);
  /// Reports why a value is not known.
  LangValue reportUnknown(const LangValue &value, llvm::StringRef name, SourceRange range);
  /// A value of Python as a kernel sees it: lists are tuples; what has no meaning there is an error.
  LangValue toKernel(const LangValue &value, SourceRange range, unsigned depth = 0);
  /// What a name of the built-in modules stands for, which is in the library for some.
  LangValue resolveLibrary(const LangValue &value, SourceRange range);

  //===--- The module level (ModuleLevel.cpp) ----------------------------------------------------------------------------===//
  void executeFile(const ModuleScope &file);
  /// Executes the body of a function that makes kernels, with its parameters as far as they are known.
  std::shared_ptr<Environment> executeMaker(const FunctionValue &maker);
  /// One statement after which the next one is executed in any case.
  Flow executeTolerantly(const ast::Stmt *statement);
  /// Makes the names that statements bind unknown.
  void makeUnknown(llvm::ArrayRef<const ast::Stmt *> statements, const LangValue &reason);
  /// Executes two alternatives, of which nobody knows which one Python takes; names that differ afterwards become unknown.
  Flow executeBoth(llvm::function_ref<Flow()> first, llvm::function_ref<Flow()> second, const LangValue &reason);
  //===--- Imports (Imports.cpp) --------------------------------------------------------------------------------------===//
  /// The module of an absolute or relative name; poison, with an ImportError, if there is none.
  LangValue findModuleValue(llvm::StringRef name, SourceRange range);
  /// Whether a module that is neither ours nor a file is there, as the user or the table says.
  std::optional<bool> hasForeignModule(llvm::StringRef name, SourceRange range);
  Flow executeImport(const ast::Import *statement);
  Flow executeImport(const ast::ImportFrom *statement);
  LangValue importedMember(const LangValue &module, llvm::StringRef moduleName, llvm::StringRef name, SourceRange range);
  void importAll(const LangValue &module);
  void bindName(llvm::StringRef name, LangValue value, SourceRange range, bool isAnnotated = false);
  /// The expression of one side of a --define; null after a reported error.
  const ast::Expr *parseDefinition(const std::string &name, const std::string &text);
  /// A new frame of Python.
  std::unique_ptr<Frame> pythonFrame(std::shared_ptr<Environment> environment);

  //===--- Functions and their decorators (Functions.cpp) ---------------------------------------------------------------===//
  LangValue defineFunction(const ast::FunctionDef *function);
  /// The names that a function sees which is defined here: not those of a class.
  static std::shared_ptr<Environment> outsideOfClasses(std::shared_ptr<Environment> environment);
  void evaluateArguments(const ast::Call *call, Decoration &decoration);
  /// The default values of parameters that are being defined; unknown, with the reason, where they cannot be evaluated.
  std::shared_ptr<const std::vector<LangValue>> evaluateDefaults(llvm::ArrayRef<ast::Param> params);
  /// The value of an expression, or an unknown one with the reason.
  LangValue evaluateTolerantly(const ast::Expr *expression);
  LangValue applyDecorator(const ast::Expr *expression, LangValue decorated, std::vector<Decoration> &decorations);
  /// What Python's own decorators for functions of classes, and caches, make of a function; nullopt for other decorators.
  std::optional<LangValue> applyKnownDecorator(const ast::Expr *expression, llvm::StringRef name, const LangValue &decorated);
  /// Something that is evaluated in the names of a definition.
  LangValue quietlyIn(const std::shared_ptr<Environment> &names, llvm::function_ref<LangValue()> body);
  /// The value of an expression; poison, and no error, if it has none.
  LangValue evaluateQuietly(const ast::Expr *expression);
  std::string nameOfDefinition(const ast::Expr *expression);
  /// The result of a call that functools.lru_cache keeps; `body` calls. Nullopt after a reported error.
  LangValue callCached(CallCache &cache, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                       llvm::function_ref<LangValue()> body);
  LangValue callPython(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                       const CallOptions &options);
  LangValue callLambda(const LambdaValue &lambda, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  LangValue callNativeFunction(const NativeFunction &function, const LangValue &self, llvm::ArrayRef<CallArgument> arguments,
                               SourceRange range);

  //===--- Statements of Python (PythonStatements.cpp) ------------------------------------------------------------------===//
  Flow runPython(ast::StmtList statements);
  Flow runPython(const ast::Stmt *statement);
  Flow runPlainStatement(const ast::Stmt *statement);
  Flow runPythonIf(const ast::If *statement);
  Flow runPythonFor(const ast::For *statement);
  Flow runPythonWhile(const ast::While *statement);
  Flow runPythonWith(const ast::With *statement);
  Flow runWithItem(const ast::With *statement, size_t index);
  Flow runPythonAssert(const ast::Assert *statement);
  void augmentPython(const ast::AugAssign *statement);
  void deleteNames(const ast::Delete *statement);
  void deleteItem(const ast::Subscript *target);
  /// `global` and `nonlocal`: where the names are bound from now on.
  void redirectNames(const ast::Stmt *statement);
  /// The end of a statement: Failed after a reported error.
  Flow flowOf(const LangValue &value) const { return value.isPoison() ? Flow::Failed : Flow::Next; }

  //===--- Exceptions (Exceptions.cpp) ----------------------------------------------------------------------------------===//
  Flow runRaise(const ast::Raise *statement);
  Flow runTry(const ast::Try *statement);
  Flow raiseObject(const LangValue &exception, SourceRange range);
  /// Python's class of an exception's object, of which the program's own class is one; empty: it is no exception.
  std::string exceptionClassOf(const LangValue &exception);
  /// What `except ... as name` binds.
  LangValue exceptionOfFailure(const Diagnostic &error, SourceRange range);
  bool isCaughtBy(const Diagnostic &error, const ast::Expr *type);
  const ast::ExceptHandler *handlerFor(const ast::Try *statement, const Diagnostic &error);
  Flow runHandler(const ast::ExceptHandler &handler, const Diagnostic &error);
  /// Takes back what a body that fails has reported.
  Flow runCaptured(llvm::function_ref<Flow()> body, std::vector<Diagnostic> &errors);
  /// A `try` of which nobody knows whether its body fails; `before`: the names before it.
  Flow decideDoubt(const ast::Try *statement, const LangValue &doubt, Flow flow,
                   const llvm::MapVector<llvm::StringRef, Binding> &before);

  //===--- Containers (Containers.cpp) ----------------------------------------------------------------------------------===//
  LangValue subscriptContainer(const LangValue &value, const ast::Subscript *expression);
  LangValue sliceContainer(const LangValue &value, const ast::Slice *slice);
  bool assignItem(const ast::Subscript *target, const LangValue &value);
  struct SlicePlaces {
    int64_t begin = 0, end = 0, step = 1;
    std::vector<int64_t> indices;
  };
  /// What a slice of a sequence of a size picks; nullopt after an error, or with `failure` an unknown bound.
  std::optional<SlicePlaces> placesOf(const LangValue &value, const ast::Slice *slice, int64_t size, LangValue &failure);
  /// `list[a:b:c] = value`, or its deletion (null).
  bool assignSlice(const LangValue &object, const ast::Slice *slice, const LangValue *value);
  /// elementsOf, and the characters of a text in kernels, too.
  std::optional<std::vector<LangValue>> elementsOfAny(const LangValue &value, SourceRange range);
  /// `element in container`, and the order of two sequences or objects; nullopt after a reported error.
  std::optional<bool> contains(const LangValue &container, const LangValue &element, SourceRange range);
  std::optional<bool> compareOrder(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range);
  /// Makes the name of a list or dict unknown that was changed in a way that nobody knows.
  void spoilObject(const ast::Expr *object, const LangValue &reason);
  LangValue evaluateDict(const ast::Dict *expression);
  /// Remembers a container, so that deep nesting and circles do no harm when they die.
  bool remember(const LangValue &value, SourceRange range);

  void reportUnknownName(llvm::StringRef name, SourceRange range);
  /// Binds a name to a value after decay; reports misuse of constexpr names.
  void assignName(llvm::StringRef name, LangValue value, SourceRange range);
  void declareConstexpr(llvm::StringRef name, LangValue value, SourceRange range);
  LangValue decay(const LangValue &value, SourceRange range);
  void assignTarget(const ast::Expr *target, const LangValue &value);
  /// The elements of a value to the targets of a tuple, one of which may be starred in Python.
  void unpack(ast::ExprList targets, const LangValue &value, SourceRange place);

  //===--- Statements (Statements.cpp) --------------------------------------------------------------------------------===//
  Outcome runBody(ast::StmtList statements, const Continuation *next);
  /// Executes statements; what follows a possible break or continue is put under a condition.
  void executeBlock(ast::StmtList statements);
  void execute(const ast::Stmt *statement);
  void executeAnnotatedAssign(const ast::AnnAssign *statement);
  void executeAugmentedAssign(const ast::AugAssign *statement);
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
  /// The bounds and step of a run-time loop, of one type; false after a reported error.
  bool makeLoopBounds(LangValue &lower, LangValue &upper, LangValue &step, SourceRange place);
  void executeWhile(const ast::While *statement);

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
    llvm::SmallVector<CarriedVariable, 2> variables;
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
  /// The class of a statement; poison after an error.
  LangValue defineClass(const ast::ClassDef *node);
  /// One base class; false after a reported error.
  bool addBase(ClassInfo &info, const ast::Expr *base, bool isAggregate);
  void runClassBody(ClassInfo &info, const ast::ClassDef *node);
  void addFields(ClassInfo &info, const ast::ClassDef *node);
  void makeEnumMembers(const std::shared_ptr<ClassInfo> &info);
  LangValue decorateClass(const ast::Expr *decorator, LangValue decorated, ClassInfo &info);
  /// The class that a call of namedtuple makes; null if it is another call.
  std::shared_ptr<const ClassInfo> namedTupleOf(const ast::Call *call);
  /// A value for a field by its annotation; poison after an error.
  LangValue checkField(const ClassInfo &cls, size_t index, const LangValue &value, SourceRange range);
  LangValue withField(const LangValue &instance, llvm::StringRef name, const LangValue &value, SourceRange range);
  LangValue replaceFields(llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  void assignAttribute(const ast::Attribute *target, const LangValue &value);
  LangValue construct(const std::shared_ptr<const ClassInfo> &cls, llvm::ArrayRef<CallArgument> arguments,
                      SourceRange range);
  /// Classes of Python (Instances.cpp).
  LangValue constructInstance(const std::shared_ptr<const ClassInfo> &cls, llvm::ArrayRef<CallArgument> arguments,
                              SourceRange range);
  LangValue constructDataclass(const LangValue &instance, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  LangValue objectAttribute(const LangValue &value, llvm::StringRef name, SourceRange range);
  LangValue bindMember(const LangValue &member, const LangValue &object, SourceRange range);
  LangValue binaryOfViews(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue operateOnInstance(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  /// A comparison of instances; nullopt after a reported error.
  std::optional<bool> compareInstances(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue initialize(const ClassMethod &method, const LangValue &instance, llvm::ArrayRef<CallArgument> arguments,
                       SourceRange range, size_t errorsBefore);
  LangValue instanceAttribute(const LangValue &value, llvm::StringRef name);
  LangValue classAttribute(const std::shared_ptr<const ClassInfo> &cls, llvm::StringRef name);
  LangValue callMethod(const MethodValue &method, SourceRange selfRange, llvm::ArrayRef<CallArgument> arguments,
                       SourceRange range);
  /// The instance whose method is executed.
  LangValue &selfValue();
  /// `super().method(...)`; nullopt if the call is another one.
  std::optional<LangValue> callSuper(const ast::Call *call);
  /// The same for an object of Python, by the order of its class; `self` is the class in a class method.
  LangValue callSuperOfInstance(const LangValue &self, const ast::Attribute *attribute, llvm::ArrayRef<CallArgument> arguments,
                                SourceRange range);
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
  /// An expression whose value counts, not what can be found in it or called: what another package holds is not known.
  LangValue evaluateValue(const ast::Expr *expression);
  LangValue evaluateUnary(const ast::UnaryOp *expression);
  LangValue evaluateNamed(const ast::NamedExpr *expression);
  /// Dicts, sets and lambdas, which kernels do not have.
  LangValue evaluatePythonOnly(const ast::Expr *expression);
  LangValue evaluateBoolOp(const ast::BoolOp *expression);
  LangValue evaluatePythonBoolOp(const ast::BoolOp *expression);
  LangValue evaluateIfExp(const ast::IfExp *expression);
  LangValue evaluateSubscript(const ast::Subscript *expression);
  /// `scalar[None]` and `scalar[None, :]`, whose result has a dimension for each None.
  LangValue subscriptBlock(const LangValue &value, const ast::Subscript *expression);
  LangValue evaluateFString(const ast::JoinedStr *expression);
  LangValue evaluateComprehension(const ast::Comprehension *expression);
  /// A new environment for the targets of a comprehension, inside the present one.
  std::shared_ptr<Environment> enterComprehension();
  /// A generator expression, whose first iterable is evaluated now and all else when an element is asked for.
  LangValue makeGenerator(const ast::Comprehension *expression);
  std::optional<LangValue> nextOfGenerator(const ast::Comprehension &expression, std::vector<std::shared_ptr<Iterator>> &open,
                                           SourceRange range);
  LangValue evaluateElements(ast::ExprList elements);
  bool comprehend(const ast::Comprehension *expression, size_t clause, std::vector<LangValue> &keys,
                  std::vector<LangValue> &values);
  void bindElement(const ast::Expr *target, const LangValue &element);
  LangValue evaluateCompare(const ast::Compare *expression);
  LangValue moduleAttribute(const ModuleValue &module, llvm::StringRef name, SourceRange range, bool reports);
  LangValue functionAttribute(const LangValue &value, llvm::StringRef name, SourceRange range, bool reports);
  /// Of a number, string, list or dict.
  LangValue constantAttribute(const LangValue &value, llvm::StringRef name);
  LangValue tensorAttribute(const LangValue &tensor, llvm::StringRef name);
  LangValue descriptorAttribute(const LangValue &value, llvm::StringRef name);

  //===--- Calls (Calls.cpp, builtins/BuiltinCalls.cpp) --------------------------------------------------------------------===//
  LangValue evaluateCall(const ast::Call *call);
  /// Calls any value that can be called; the ranges are those of the object of a method, of the callee, and of the call.
  LangValue callValue(const LangValue &callee, std::vector<CallArgument> arguments, SourceRange selfRange,
                      SourceRange calleeRange, SourceRange range);
  bool collectArguments(const ast::Call *call, std::vector<CallArgument> &arguments);
  bool addKeywords(const ast::Keyword &keyword, std::vector<CallArgument> &arguments);
  /// A function of ours, called by Python: with compile-time values, or for what it emits.
  LangValue callBuiltinFromPython(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range);
  /// `triton.jit(f)`, and `triton.autotune(...)` as a value that is called with a function later.
  LangValue callDecorator(const Builtin &builtin, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  LangValue applyDecoratorObject(const ObjectValue &decorator, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  bool isConstexprFunction(const ast::FunctionDef *function) const;
  /// The function or lambda that is called, for messages and defaults.
  struct Callee {
    std::string name;
    llvm::ArrayRef<ast::Param> params;
    SourceRange declared; ///< Invalid for a lambda.
    std::shared_ptr<const std::vector<LangValue>> defaults; ///< As its definition made them.
  };
  struct BoundParameter {
    const ast::Param *param;
    LangValue value;
    SourceRange range;
  };
  /// Python's binding of arguments; nullopt after a reported error.
  std::optional<std::vector<BoundParameter>> bindParameters(const Callee &callee, llvm::ArrayRef<CallArgument> arguments,
                                                            SourceRange range);
  bool bindArguments(const Callee &callee, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                     std::vector<BoundParameter> &bound);
  bool bindKernelParameters(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                            Scope &locals);
  /// Executes a function of the file in place.
  LangValue enterFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                          const CallOptions &options);
  /// The rule of functions that are not inlined: no blocks as arguments. Ours are inlined all the same.
  bool checkNoinline(const ast::FunctionDef *function, const Scope &locals);
  /// Reports a call whose result must be used and is not.
  void checkDiscarded(const ast::Call *call, const LangValue &callee);
  LangValue callBuiltin(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range);
  /// The arguments of each parameter by Python's rules; false after a reported error.
  bool matchBuiltinArguments(const Builtin &builtin, llvm::ArrayRef<CallArgument> arguments,
                             llvm::MutableArrayRef<llvm::SmallVector<const CallArgument *, 1>> matched);
  bool checkRule(const Builtin &builtin, const BuiltinParam &param, LangValue &value, const CallArgument &argument);

  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::shared_ptr<const ContextValue>> contexts; ///< Entered ones, of callers too; innermost last.
  const ModuleScope &globals;                                ///< Of the kernel's file.
  Modules &modules;
  Library library;
  llvm::DenseMap<const ast::Node *, std::shared_ptr<const ClassInfo>> namedTuples; ///< By the call that makes them.
  llvm::DenseMap<const ast::Node *, std::vector<Decoration>> decorations;
  llvm::DenseMap<const ast::Node *, std::shared_ptr<Environment>> makers; ///< Names of functions that make kernels.
  llvm::StringSet<> interned;
  std::vector<std::unique_ptr<ast::Module>> definedTexts;
  std::optional<llvm::StringMap<LangValue>> defined; ///< What --define gives, by the text of the expression.
  /// Lists, tuples and dicts of Python: they die one by one, the newest first.
  std::vector<LangValue> made;
  std::vector<std::shared_ptr<Environment>> environments; ///< Functions in them hold them, and each other.
  llvm::DenseMap<const ast::FunctionDef *, llvm::StringSet<>> locals; ///< localNames of functions that were asked for.
  std::vector<LangValue> raisedObjects; ///< By the numbers of Diagnostic::raised.
  std::vector<Diagnostic> handled;      ///< By the `except` clauses around the statement, the innermost last.
  size_t steps = 0;
  LangValue undecidedElements; ///< Why a comprehension is not known.
  const ast::Expr *discarded = nullptr; ///< The expression whose value the statement drops.
  SourceRange droppedCall;              ///< The last call that was one.
  unsigned evaluationDepth = 0;
  unsigned statementCount = 0;
  bool isStopped = false; ///< A limit was hit: nothing more is executed.
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_EVALUATOR_H
