//===- Import.h - From a kernel file to tile IR ---------------------------------------------------------------*- C++ -*-===//
//
// The public face of the frontend: describe the kernels of a file, and import one kernel for one signature into a module
// of tile, dist, arith, math, scf and func operations. The file is parsed and analysed for that one specialisation:
// branches that its compile-time values rule out are never looked at, calls of other @jit functions are inlined.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_IMPORT_H
#define DITRON_FRONTEND_IMPORT_H

#include "ditron/frontend/ImportOptions.h"
#include "ditron/frontend/Signature.h"
#include "ditron/frontend/SourceText.h"
#include "ditron/frontend/TuningSpace.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ditron::frontend {

/// One parameter of a kernel as the file declares it.
struct ParameterInfo {
  std::string name;
  bool isConstexpr = false;                      ///< Annotated with tl.constexpr.
  std::string annotation;                        ///< As written; empty without one.
  std::string defaultText;                       ///< As written; empty without one.
  std::optional<ConstexprArgument> defaultValue; ///< Set if the default could be evaluated to a number, string or dtype.
  bool specialiseValue = true;                   ///< Not listed in do_not_specialize.
  bool specialiseAlignment = true;               ///< Nor in do_not_specialize_on_alignment.
  bool hasDefault() const { return !defaultText.empty(); }
};

/// One kernel of a file.
struct KernelInfo {
  std::string name;
  LineColumn place;
  std::vector<ParameterInfo> parameters;
  TuningSpace tuning;
};

/// The @jit functions of a file in order. Parse errors are in the diagnostics and in the status.
Expected<std::vector<KernelInfo>> listKernels(const SourceFile &file, DiagnosticEngine &diagnostics,
                                              const ImportOptions &options = {});

/// One kernel of a file; NotFound names the kernels that exist.
Expected<KernelInfo> describeKernel(const SourceFile &file, llvm::StringRef kernel, DiagnosticEngine &diagnostics,
                                    const ImportOptions &options = {});

/// All files of the user's to which the imports of a file lead, directly or through others, as they are now. What belongs
/// into a key under which the compiled kernel is kept, besides the file itself. Those of `given` that it leads to are among them.
std::vector<SourceText> importedFiles(const SourceText &source, const std::vector<std::string> &searchPaths,
                                      std::vector<SourceText> given = {});

/// Imports a kernel. On success the module is verified, holds one func.func with the attribute `tile.kernel`, and every
/// operation has a location in the file. Errors of the kernel's source are in the diagnostics; the status of a failure is
/// CompileError with the rendered messages, or InvalidArgument when the signature does not fit the kernel.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> importKernel(mlir::MLIRContext &context, const SourceFile &file,
                                                         llvm::StringRef kernel, const KernelSignature &signature,
                                                         const ImportOptions &options, DiagnosticEngine &diagnostics);

/// The table of the language's functions as Markdown.
std::string listLanguage();
/// Every name of the language with what it is: supported or refused, and why.
std::string listCompatibility();
/// Writes the language as stub files for editors and type checkers into a folder.
Status writeEditorStubs(const std::string &folder);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_IMPORT_H
