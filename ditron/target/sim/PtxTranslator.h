//===- PtxTranslator.h - Inline assembly for the simulated GPU ---------------------------------------------*- C++ -*-===//
//
// Emits, for straight-line PTX, the LLVM code of one thread that does the same. Covers what kernels write in
// tl.inline_asm_elementwise: arithmetic and logic on integers and floats (packed 16-bit ones too), conversions with the 16- and 8-bit
// formats, approximations, permutations of bytes, predicates, loads and stores of global memory. Everything else is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_PTXTRANSLATOR_H
#define DITRON_TARGET_SIM_PTXTRANSLATOR_H

#include "ditron/target/common/TargetInfo.h"
#include "ditron/target/sim/PtxProgram.h"

#include <map>
#include <optional>

namespace ditron::target {

/// A type suffix: "u32", "bf16x2", "e4m3x2".
struct PtxType {
  enum class Kind { Bits, Unsigned, Signed, Float, Predicate };
  Kind kind = Kind::Bits;
  unsigned bits = 32; ///< Of one element.
  unsigned lanes = 1;
  mlir::FloatType format; ///< Of floats.

  bool isFloat() const { return kind == Kind::Float; }
  bool isSigned() const { return kind == Kind::Signed; }
};

class PtxTranslator {
public:
  PtxTranslator(Emitter &e, TargetInfo &target) : e(e), target(target) {}

  /// The values of the outputs ($0 ..), operands follow them; reports what is not modelled at the emitter's place.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> translate(llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands,
                                                            llvm::ArrayRef<mlir::Type> results);

private:
  using Values = llvm::SmallVector<mlir::Value>;

  bool run(const PtxStatement &statement);
  /// The family of an instruction, each false if it knows none of this form.
  bool move(const PtxStatement &statement);
  bool integers(const PtxStatement &statement, const PtxType &type);
  bool bitwise(const PtxStatement &statement, const PtxType &type);
  bool floats(const PtxStatement &statement, const PtxType &type);
  bool approximate(const PtxStatement &statement, const PtxType &type);
  bool compareOrSelect(const PtxStatement &statement, const PtxType &type);
  bool convert(const PtxStatement &statement);
  bool memory(const PtxStatement &statement, const PtxType &type);

  std::optional<PtxType> typeOf(llvm::StringRef suffix);
  mlir::Type irType(const PtxType &type);
  /// An operand as the bits of a type, all lanes together.
  mlir::Value read(const PtxOperand &operand, unsigned bits);
  /// An operand of one lane as a value of its type; floats of 8 and 16 bits as f32.
  Values readLanes(const PtxOperand &operand, const PtxType &type);
  void write(const PtxOperand &operand, mlir::Value value);
  /// Values of lanes back to their formats and into one register.
  void writeLanes(const PtxOperand &operand, const PtxType &type, mlir::ValueRange lanes);
  mlir::Value immediate(llvm::StringRef text, unsigned bits);
  mlir::Value specialRegister(llvm::StringRef name);
  mlir::Value narrow(mlir::Value value, mlir::FloatType format);
  mlir::Value widen(mlir::Value bits, mlir::FloatType format);
  mlir::Value toInteger(mlir::Value value, const PtxType &type);
  mlir::Value callLibrary(llvm::StringRef symbol, mlir::Value operand);

  Emitter &e;
  TargetInfo &target;
  std::map<std::string, mlir::Value> registers; ///< Integers of the registers' widths.
  mlir::Value guard;                            ///< Of the current statement; null without one.
  bool isGood = true;                           ///< False after an operand that cannot be read.
};

/// The instructions that are modelled, for messages.
llvm::StringRef modelledInstructions();

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_PTXTRANSLATOR_H
