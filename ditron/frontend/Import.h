//===- Import.h - From a kernel file to tile IR ---------------------------------------------------------------*- C++ -*-===//
//
// The public face of the frontend: describe the kernels of a file, and import one kernel for one signature into a module
// of tile, dist, arith, math, scf and func operations. The file is parsed and analysed for that one specialisation:
// branches that its compile-time values rule out are never looked at, calls of other @jit functions are inlined.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_IMPORT_H
#define DITRON_FRONTEND_IMPORT_H

#include "ditron/frontend/Signature.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace ditron::frontend {

struct ImportOptions {
  /// Folders in which a kernel file's own imports would be searched; files of the user's own are refused for now.
  std::vector<std::string> searchPaths;
  /// What num_warps(), num_threads() and threads_per_warp() give.
  unsigned numWarps = 4;
  unsigned threadsPerWarp = 32;
  /// Receives the text of each tl.static_print without the newline at its end; nothing is printed without it.
  std::function<void(llvm::StringRef)> printStatic;
};

/// One parameter of a kernel as the file declares it.
struct ParameterInfo {
  std::string name;
  bool isConstexpr = false;                      ///< Annotated with tl.constexpr.
  std::string annotation;                        ///< As written; empty without one.
  std::string defaultText;                       ///< As written; empty without one.
  std::optional<ConstexprArgument> defaultValue; ///< Set if the default is a literal.
  bool hasDefault() const { return !defaultText.empty(); }
};

/// One kernel of a file.
struct KernelInfo {
  std::string name;
  LineColumn place;
  std::vector<ParameterInfo> parameters;
};

/// The @jit functions of a file in order. Parse errors are in the diagnostics and in the status.
Expected<std::vector<KernelInfo>> listKernels(const SourceFile &file, DiagnosticEngine &diagnostics);

/// One kernel of a file; NotFound names the kernels that exist.
Expected<KernelInfo> describeKernel(const SourceFile &file, llvm::StringRef kernel, DiagnosticEngine &diagnostics);

/// Imports a kernel. On success the module is verified, holds one func.func with the attribute `tile.kernel`, and every
/// operation has a location in the file. Errors of the kernel's source are in the diagnostics; the status of a failure is
/// CompileError with the rendered messages, or InvalidArgument when the signature does not fit the kernel.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> importKernel(mlir::MLIRContext &context, const SourceFile &file,
                                                         llvm::StringRef kernel, const KernelSignature &signature,
                                                         const ImportOptions &options, DiagnosticEngine &diagnostics);

/// The table of the language's functions as Markdown.
std::string listLanguage();

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_IMPORT_H
