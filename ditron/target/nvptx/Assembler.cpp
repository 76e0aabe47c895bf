//===- Assembler.cpp - NVIDIA's assembler as a program ------------------------------------------------------------------------===//
//
// See Assembler.h. Text and machine code travel through files in a folder of their own, which only this user may enter.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/Assembler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

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

} // namespace

Expected<AssembledPtx> assemblePtx(const std::string &ptxas, std::string_view architecture, const std::string &ptx) {
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName(ptxas);
  if (!program || !llvm::sys::fs::can_execute(*program))
    return notFound(fmt::format("DITRON_PTXAS: there is no program '{}'", ptxas));
  ScratchFolder folder;
  if (std::error_code error = folder.create())
    return internalError(fmt::format("cannot make a folder for temporary files: {}", error.message()));
  const std::string input = folder.file("kernel.ptx"), output = folder.file("kernel.cubin"), log = folder.file("log");
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(input, error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      return internalError(fmt::format("cannot write '{}'", input));
    }
  }
  const std::string target = fmt::format("-arch={}", architecture);
  const llvm::StringRef arguments[] = {*program, target, "-v", input, "-o", output};
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string problem;
  const int code =
      llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, /*SecondsToWait=*/300, 0, &problem);
  AssembledPtx result;
  result.log = contents(log);
  if (code != 0)
    return internalError(fmt::format("{} refuses the PTX (exit code {}): {}{}", *program, code, problem, result.log));
  result.cubin = contents(output);
  if (result.cubin.empty())
    return internalError(fmt::format("{} wrote no machine code: {}", *program, result.log));
  return result;
}

} // namespace ditron::target
