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

#include "ditron/frontend/Builtins.h"
#include "ditron/frontend/Emitter.h"
#include "ditron/frontend/Import.h"
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
  Scope locals;
  /// Why names that were assigned are not visible any more, with the place of the statement that hid them.
  llvm::DenseMap<llvm::StringRef, std::pair<SourceRange, llvm::StringRef>> hidden;
  llvm::SmallVector<llvm::StringRef> pendingConstexpr; ///< From `name: tl.constexpr` without a value.
  unsigned depth = 0;                                  ///< Run-time regions (loops, branches) around the statement.
  unsigned loops = 0;
  unsigned contexts = 0; ///< Statements `with` around the statement.
  bool isEntry = false;
  bool isCombine = false; ///< Called from a reduction or scan: nothing but arithmetic.
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
  static constexpr unsigned maxEvaluationDepth = 1200;
  static constexpr unsigned maxStatements = 400000;

  Importer(mlir::MLIRContext &context, const ModuleScope &globals, const ImportOptions &options,
           DiagnosticEngine &diagnostics)
      : emit(context, diagnostics), globals(globals), options(options) {}

  Emitter emit;
  const ModuleScope &globals;
  const ImportOptions &options;

  /// Imports the kernel as a function of the module; errors are in the diagnostics.
  void importEntry(mlir::ModuleOp module, const ast::FunctionDef *kernel, llvm::ArrayRef<ArgumentSpec> arguments);

  //===--- For the built-in functions -----------------------------------------------------------------------------===//

  /// Calls a function of the file with positional arguments and inlines it.
  LangValue callFunction(const FunctionValue &function, llvm::ArrayRef<CallArgument> arguments, SourceRange range);
  /// The same in a combine region of a reduction: operations that are not plain arithmetic are errors.
  LangValue callCombine(const FunctionValue &function, llvm::ArrayRef<LangValue> arguments, SourceRange range);
  /// `value.name`; without `reports`, poison for an attribute that does not exist.
  LangValue attributeOf(const LangValue &value, llvm::StringRef name, SourceRange range, bool reports = true);
  /// Reports a shape that is no block: sizes must be powers of two, at most maxBlockElements in all.
  bool checkBlockShape(llvm::ArrayRef<int64_t> shape, SourceRange range);

private:
  //===--- Names (Names.cpp) ----------------------------------------------------------------------------------------===//
  Frame &frame() { return *frames.back(); }
  LangValue lookup(const ast::Name *name);
  LangValue readGlobal(llvm::StringRef name, const GlobalBinding &binding, SourceRange range);
  LangValue evaluateAtModuleLevel(const ast::Expr *expression);
  void reportUnknownName(llvm::StringRef name, SourceRange range);
  /// Binds a name to a value after decay; reports misuse of constexpr names.
  void assignName(llvm::StringRef name, LangValue value, SourceRange range);
  void declareConstexpr(llvm::StringRef name, LangValue value, SourceRange range);
  LangValue decay(const LangValue &value, SourceRange range);
  void assignTarget(const ast::Expr *target, const LangValue &value);

  //===--- Statements (Statements.cpp) --------------------------------------------------------------------------------===//
  Outcome runBody(ast::StmtList statements, const Continuation *next);
  void executeBlock(ast::StmtList statements);
  void execute(const ast::Stmt *statement);
  void executeAnnotatedAssign(const ast::AnnAssign *statement);
  bool countStatement(const ast::Stmt *statement);

  //===--- Run-time control flow (ControlFlow.cpp, Loops.cpp) -----------------------------------------------------------===//
  /// A condition: a compile-time bool, a run-time int1 scalar, or poison.
  LangValue evaluateCondition(const ast::Expr *expression);
  Outcome runIf(const ast::If *statement, const Continuation &rest);
  void executeIf(const ast::If *statement);
  void executeRunTimeIf(const ast::If *statement, mlir::Value condition);
  void executeFor(const ast::For *statement);
  void executeStaticFor(const ast::For *statement, const RangeValue &range);
  void executeRunTimeFor(const ast::For *statement, const RangeValue &range);
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
  CarriedSet findCarried(llvm::ArrayRef<const ast::Node *> parts, llvm::StringRef loopVariable);
  void bindCarried(const CarriedSet &carried, mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> collectCarried(CarriedSet &carried, mlir::ValueRange current, SourceRange range);
  void leaveLoop(const CarriedSet &carried, Scope before, mlir::ValueRange results, SourceRange range);

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
  LangValue typeAttribute(const LangType &type, llvm::StringRef name);
  LangValue tensorAttribute(const LangValue &tensor, llvm::StringRef name);
  LangValue descriptorAttribute(const LangValue &value, llvm::StringRef name);

  //===--- Calls (Calls.cpp, BuiltinCalls.cpp) -----------------------------------------------------------------------------===//
  LangValue evaluateCall(const ast::Call *call);
  bool collectArguments(const ast::Call *call, std::vector<CallArgument> &arguments);
  bool bindParameters(const ast::FunctionDef *function, llvm::ArrayRef<CallArgument> arguments, SourceRange range,
                      Scope &locals);
  LangValue callBuiltin(const Builtin &builtin, std::vector<CallArgument> arguments, SourceRange range);
  bool checkRule(const Builtin &builtin, const BuiltinParam &param, LangValue &value, const CallArgument &argument);
  LangValue callConstantMethod(const MethodValue &method, llvm::ArrayRef<CallArgument> arguments, SourceRange range);

  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::shared_ptr<const ContextValue>> contexts; ///< Entered ones, of callers too; innermost last.
  llvm::SmallPtrSet<const ast::Expr *, 8> globalsInProgress;
  unsigned evaluationDepth = 0;
  unsigned statementCount = 0;
  bool isStopped = false; ///< A limit was hit: nothing more is executed.
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_IMPORTER_H
