//===- Emitter.h - The language's operators on run-time values ------------------------------------------------*- C++ -*-===//
//
// Everything that turns values of the language into operations of the IR under the language's type rules,
// with no knowledge of the syntax tree: constants, casts, promotion, broadcasting, arithmetic, comparison.
// The evaluator and the built-in functions are written in terms of it. It also owns the place where operations are put,
// the location they get, and the reporting of errors with the chain of inlined calls.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_EMITTER_H
#define DITRON_FRONTEND_EMITTER_H

#include "ditron/frontend/Value.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "mlir/IR/Builders.h"
#include <set>

namespace ditron::frontend {

/// The IR type of a language type.
mlir::Type toIrType(const LangType &type, mlir::MLIRContext *context);

/// Rounding of a narrowing floating point cast.
enum class CastRounding { Default, NearestEven, TowardZero };

/// How an operator treats its operand types.
enum class ArithmeticKind { Plain, DivisionLike, Bitwise };

class Emitter {
public:
  Emitter(mlir::MLIRContext &context, DiagnosticEngine &diagnostics);

  //===--- Places and messages ------------------------------------------------------------------------------------===//

  mlir::OpBuilder builder;

  mlir::MLIRContext *context() { return builder.getContext(); }
  DiagnosticEngine &diagnosticEngine() { return diagnostics; }
  /// The IR location of a source range, inside of the calls that are being inlined.
  mlir::Location locationOf(SourceRange range);
  /// The location of the operations that are created now.
  mlir::Location location() { return locationOf(currentRange); }
  SourceRange range() const { return currentRange; }
  template <typename Op, typename... Args> Op create(Args &&...args) {
    return Op::create(builder, location(), std::forward<Args>(args)...);
  }

  /// Reports an error with notes for the calls being inlined; the same error at the same place is reported once.
  Diagnostic &error(SourceRange range, std::string message);
  Diagnostic &warning(SourceRange range, std::string message);
  /// Reports an error that was taken back before, with its notes.
  void report(const Diagnostic &diagnostic);
  /// error() as a value.
  LangValue fail(SourceRange range, std::string message) {
    error(range, std::move(message));
    return LangValue::poison();
  }

  /// Holds errors back for a C++ scope: those reported in it can be taken back.
  class Capture {
  public:
    explicit Capture(Emitter &emitter) : emitter(emitter), mark(emitter.diagnostics.mark()) { ++emitter.captures; }
    ~Capture() { --emitter.captures; }
    Capture(const Capture &) = delete;
    bool hasFailed() const { return emitter.diagnostics.errorCount() != mark.errors; }
    std::vector<Diagnostic> takeBack() { return emitter.diagnostics.rollBack(mark); }

  private:
    Emitter &emitter;
    DiagnosticEngine::Mark mark;
  };

  /// Sets the place of new operations for a C++ scope.
  class At {
  public:
    At(Emitter &emitter, SourceRange range) : emitter(emitter), saved(emitter.currentRange) {
      if (range.isValid())
        emitter.currentRange = range;
    }
    ~At() { emitter.currentRange = saved; }
    At(const At &) = delete;

  private:
    Emitter &emitter;
    SourceRange saved;
  };

  /// The call sites that lead to the code being imported, outermost first.
  std::vector<SourceRange> callSites;

  /// Whether + - * on integers of less than 64 bits assert that the result fits (the option debug).
  bool checksOverflow = false;

  //===--- Constants and shapes -----------------------------------------------------------------------------------===//

  /// A compile-time number as a constant of a scalar or block type; the value must fit (see checkLiteralFits).
  LangValue constantOf(const ConstValue &value, const LangType &type);
  /// An integer constant of an IR scalar or tensor type, splatted.
  mlir::Value integerConstant(int64_t value, mlir::Type type);
  /// A floating point constant of an IR scalar or tensor type, splatted.
  mlir::Value floatConstant(double value, mlir::Type type);
  /// The type that a literal takes by itself: int1, int32/uint32/int64/uint64, fp32/fp64.
  std::optional<LangType> naturalType(const ConstValue &value);
  /// A number or tensor as a tensor; anything else is an error.
  LangValue toTensor(const LangValue &value, SourceRange range);
  /// Reports a literal that a result type cannot hold.
  bool checkLiteralFits(const ConstValue &value, const LangType &scalar, SourceRange range);
  /// A scalar repeated into a shape.
  LangValue splat(const LangValue &scalar, llvm::ArrayRef<int64_t> shape);
  /// Broadcasts a tensor to a shape, adding leading dimensions; the shape must be compatible.
  LangValue broadcastTo(const LangValue &value, llvm::ArrayRef<int64_t> shape);
  /// The common shape of several tensors, or an error.
  std::optional<llvm::SmallVector<int64_t>> commonShape(llvm::ArrayRef<LangValue> values, SourceRange range);
  /// Brings tensors to their common shape in place.
  bool broadcastTogether(llvm::MutableArrayRef<LangValue> values, SourceRange range);
  LangValue expandDims(const LangValue &value, unsigned axis);
  LangValue reshape(const LangValue &value, llvm::ArrayRef<int64_t> shape);
  /// The IR type of a language type.
  mlir::Type ir(const LangType &type) { return toIrType(type, context()); }
  /// A tensor value around an IR value.
  LangValue wrap(mlir::Value value, LangType type) { return LangValue::tensor(value, std::move(type)); }

  //===--- Casts --------------------------------------------------------------------------------------------------===//

  /// A tensor with another element type, by the rules of 3.5.
  LangValue cast(const LangValue &value, const LangType &element, SourceRange range,
                 CastRounding rounding = CastRounding::Default);
  /// The same bits as another type.
  LangValue bitcast(const LangValue &value, const LangType &element, SourceRange range);
  /// A number or tensor as int1: not equal to zero.
  LangValue toBool(const LangValue &value, SourceRange range);

  //===--- Operators ----------------------------------------------------------------------------------------------===//

  /// The result type of two tensors' element types (3.2 rule 2); an error and nullopt if there is none.
  std::optional<LangType> promote(const LangType &a, const LangType &b, ArithmeticKind kind, SourceRange range);
  /// Converts two operands (at least one a tensor) to their common element type and shape.
  bool promoteOperands(LangValue &a, LangValue &b, ArithmeticKind kind, SourceRange range);
  /// The same for operators that make a tensor of a literal first (comparison, minimum, maximum).
  bool promoteAsTensors(LangValue &a, LangValue &b, SourceRange range);
  LangValue binary(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue unary(UnaryOp op, const LangValue &a, SourceRange range);
  LangValue compare(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range);
  /// `and` / `or` of run-time values, which must be int1.
  LangValue logical(bool isAnd, const LangValue &a, const LangValue &b, SourceRange range);
  /// tl.minimum / tl.maximum.
  LangValue minMax(bool isMax, const LangValue &a, const LangValue &b, bool propagateNan, SourceRange range);
  /// tl.where.
  LangValue select(const LangValue &condition, const LangValue &a, const LangValue &b, SourceRange range);

private:
  friend class At;
  friend class Capture;

  LangValue pointerArithmetic(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue tupleArithmetic(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range);
  LangValue numericBinary(BinaryOp op, LangValue a, LangValue b, SourceRange range);
  /// Asserts that a sum, difference or product of two integers fits into their type.
  void assertNoOverflow(BinaryOp op, const LangValue &a, const LangValue &b);
  /// Asserts that a quotient, remainder or shift of two integers is defined: no division by zero, nor of the least number by -1, and
  /// no shift by less than zero or by the width and more.
  void assertDefined(BinaryOp op, const LangValue &a, const LangValue &b);

  DiagnosticEngine &diagnostics;
  SourceRange currentRange;
  unsigned captures = 0;
  std::set<std::tuple<FileId, uint32_t, uint32_t, std::string>> reported;
  Diagnostic repeated; ///< Stands for an error that was already reported.
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_EMITTER_H
