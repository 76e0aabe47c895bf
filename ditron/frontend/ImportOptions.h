//===- ImportOptions.h - For what a kernel file is read -------------------------------------------------------*- C++ -*-===//
//
// What the frontend knows besides the text of a kernel file. Plain values, free of MLIR.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_IMPORTOPTIONS_H
#define DITRON_FRONTEND_IMPORTOPTIONS_H

#include "ditron/frontend/SourceText.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ditron::frontend {

struct ImportOptions {
  /// Folders in which a kernel file's own imports are searched, after the folder of the importing file.
  std::vector<std::string> searchPaths;
  /// Imported files as they were read before (importedFiles): used instead of what is on disk now.
  std::vector<SourceText> imported;
  /// What num_warps(), num_threads() and threads_per_warp() give.
  unsigned numWarps = 4;
  unsigned threadsPerWarp = 32;
  /// The compute capability that target_info reports, for example 90.
  unsigned capability = 80;
  /// Values of names and expressions of the module level that only the user's machine knows, as Python texts:
  /// {"USE_TMA", "True"}, {"torch.cuda.device_count()", "8"}, {"import flash_attn", "False"}.
  std::vector<std::pair<std::string, std::string>> defines;
  /// device_assert and assert are checked, and integer arithmetic of less than 64 bits for overflow.
  bool debug = false;
  /// Receives the text of each tl.static_print without the newline at its end; nothing is printed without it.
  std::function<void(llvm::StringRef)> printStatic;
};

/// The variables of this process' environment whose names stand in quotes in a text: those that the module levels of the files
/// can read. Part of what a kernel is compiled from, like the files.
std::vector<std::pair<std::string, std::string>> environmentOf(const std::vector<SourceText> &texts);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_IMPORTOPTIONS_H
