//===- Assembler.cpp - NVIDIA's assembler as a program ------------------------------------------------------------------------===//
//
// See Assembler.h. Text and machine code travel through files in a folder of their own, which only this user may enter.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/Assembler.h"

#include "ditron/support/OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <fmt/format.h>

namespace ditron::target {

namespace {

/// A folder for temporary files that goes with its owner.
class ScratchFolder {
public:
  ~ScratchFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  std::error_code create() { return llvm::sys::fs::createUniqueDirectory("ditron-ptxas", path); }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }

private:
  llvm::SmallString<128> path;
};

std::string contents(const std::string &file) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Whether a program says that it is NVIDIA's assembler.
bool isPtxas(const std::string &program, const ScratchFolder &folder) {
  const std::string log = folder.file("version");
  const llvm::StringRef arguments[] = {program, "--version"};
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  return llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects, /*SecondsToWait=*/10) == 0 &&
         contents(log).find("ptxas") != std::string::npos;
}

} // namespace

Expected<AssembledPtx> assemblePtx(const std::string &ptxas, std::string_view architecture, const std::string &ptx) {
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName(ptxas);
  if (!program || !llvm::sys::fs::can_execute(*program))
    return notFound(fmt::format("DITRON_PTXAS: there is no program '{}'", ptxas));
  ScratchFolder folder;
  if (std::error_code error = folder.create())
    return invalidArgument(fmt::format("DITRON_PTXAS: cannot make a folder for temporary files: {}", error.message()));
  const std::string input = folder.file("kernel.ptx"), output = folder.file("kernel.cubin"), log = folder.file("log");
  DITRON_RETURN_IF_ERROR(writeWholeFile(input, ptx).withContext("DITRON_PTXAS"));
  const std::string target = fmt::format("-arch={}", architecture);
  const llvm::StringRef arguments[] = {*program, target, "-v", input, "-o", output};
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string problem;
  const int code =
      llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, /*SecondsToWait=*/300, 0, &problem);
  AssembledPtx result;
  result.log = contents(log);
  result.cubin = contents(output);
  if (code == 0 && !result.cubin.empty())
    return result;
  const std::string what = code < 0   ? fmt::format("was ended or could not be started: {}", problem)
                           : code > 0 ? fmt::format("refuses the PTX (exit code {}): {}", code, result.log)
                                      : fmt::format("wrote no machine code: {}", result.log);
  // Only the real one's word counts against us. What it does not know yet is not in PTX of ours, but in a later PTX.
  const bool isTooOld = result.log.find("Unsupported .version") != std::string::npos;
  if (code > 0 && !isTooOld && isPtxas(*program, folder))
    return internalError(fmt::format("{} {}", *program, what));
  return invalidArgument(fmt::format("DITRON_PTXAS: {} {}; name the ptxas of a CUDA toolkit that knows {}", *program, what,
                                     architecture));
}

} // namespace ditron::target
