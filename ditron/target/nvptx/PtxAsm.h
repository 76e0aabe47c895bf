//===- PtxAsm.h - Inline PTX ------------------------------------------------------------------------------*- C++ -*-===//
//
// Builds one llvm.inline_asm: operands get their register class from their type, and the text is put together while operands
// are added, so that nobody counts them. Also calls of LLVM's intrinsics by name.
//
//   PtxAsm code(e);
//   std::string value = code.output(i32);
//   std::string address = code.input(pointer);
//   code.emit(fmt::format("ld.acquire.gpu.global.b32 {}, [{}];", value, address))[0]
//
// After translation, NvptxCodegen marks all inline assembly convergent, and that without effects as free of memory accesses.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_PTXASM_H
#define DITRON_TARGET_NVPTX_PTXASM_H

#include "ditron/target/common/Emitter.h"

#include <string>

namespace ditron::target {

class PtxAsm {
public:
  explicit PtxAsm(Emitter &e) : e(e) {}

  /// Adds a result and gives the text that names it. All results come before all inputs.
  std::string output(mlir::Type type);
  std::string input(mlir::Value value);
  /// Says that output number `index` holds this value before the code runs.
  void initialize(int index, mlir::Value value);
  /// "@$n " for a predicate, the empty text for none.
  std::string guard(mlir::Value predicate);

  /// Creates the operation. Without effects it may be removed, merged and moved, and must not touch memory.
  llvm::SmallVector<mlir::Value> emit(llvm::StringRef text, bool hasEffects = true);

private:
  Emitter &e;
  llvm::SmallVector<mlir::Type> results;
  llvm::SmallVector<mlir::Value> operands;
  std::string constraints;
};

/// Inline assembly as it stands: constraints of LLVM, results first.
llvm::SmallVector<mlir::Value> emitInlineAsm(Emitter &e, llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands,
                                             llvm::ArrayRef<mlir::Type> results, bool hasEffects);

/// Calls an LLVM intrinsic; null for one without result.
mlir::Value callIntrinsic(Emitter &e, llvm::StringRef name, mlir::Type result, mlir::ValueRange arguments);

/// "{a, b}", or "a" alone.
std::string ptxVector(llvm::ArrayRef<std::string> names);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_PTXASM_H
