//===- Libdevice.cpp - NVIDIA's library of math functions ---------------------------------------------------------------------===//
//
// See Libdevice.h. Looked for at CUDA_HOME and CUDA_PATH, beside the ptxas on PATH, in /usr/local/cuda, and in the site
// packages of an active virtual environment and of the user.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/Libdevice.h"

#include "ditron/support/InputFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace ditron::target {

namespace fs = std::filesystem;

static constexpr const char *fileName = "libdevice.10.bc";

/// Folders <root>/lib*/python3*/site-packages/nvidia/*, in which wheels put their files.
static void addWheelFolders(const fs::path &root, std::vector<fs::path> &folders) {
  std::error_code ignored;
  for (const char *lib : {"lib", "lib64"})
    for (const fs::directory_entry &python : fs::directory_iterator(root / lib, ignored))
      if (python.path().filename().string().starts_with("python3"))
        for (const char *packages : {"site-packages", "dist-packages"})
          for (const fs::directory_entry &package : fs::directory_iterator(python.path() / packages / "nvidia", ignored))
            folders.push_back(package.path() / "nvvm" / "libdevice");
}

/// Where the library may be, in order of preference.
static std::vector<fs::path> searchFolders() {
  std::vector<fs::path> folders;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(name))
      folders.push_back(fs::path(home) / "nvvm" / "libdevice");
  if (const char *path = std::getenv("PATH")) {
    llvm::SmallVector<llvm::StringRef> entries;
    llvm::StringRef(path).split(entries, ':', -1, /*KeepEmpty=*/false);
    std::error_code ignored;
    for (llvm::StringRef entry : entries)
      if (fs::path folder = entry.str(); fs::exists(folder / "ptxas", ignored))
        folders.push_back(folder.parent_path() / "nvvm" / "libdevice");
  }
  folders.push_back("/usr/local/cuda/nvvm/libdevice");
  for (const char *name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char *root = std::getenv(name))
      addWheelFolders(root, folders);
  if (const char *home = std::getenv("HOME"))
    addWheelFolders(fs::path(home) / ".local", folders);
  return folders;
}

/// Links one file in; what it defines is then private to the module and inlined.
static Status linkFile(llvm::Module &module, const std::string &file) {
  constexpr uint64_t mostBytes = uint64_t(64) << 20; // NVIDIA's has half a million
  DITRON_ASSIGN_OR_RETURN(const std::string bytes, readWholeFile(file, "DITRON_LIBDEVICE:", mostBytes));
  llvm::SMDiagnostic problem;
  const auto buffer = llvm::MemoryBuffer::getMemBuffer(bytes, file, /*RequiresNullTerminator=*/true);
  std::unique_ptr<llvm::Module> library = llvm::parseIR(*buffer, problem, module.getContext());
  if (!library)
    return invalidArgument(fmt::format("'{}' is no bitcode of LLVM: {}; DITRON_LIBDEVICE names NVIDIA's {}", file,
                                       problem.getMessage().str(), fileName));
  library->setDataLayout(module.getDataLayout());
  library->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::Flags::LinkOnlyNeeded))
    return internalError(fmt::format("cannot link '{}'", file));
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && function.getName().starts_with("__nv_")) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  return Status::ok();
}

/// The same, for functions that must be there then: PTX with names that nobody defines would fail when it is loaded.
static Status linkAll(llvm::Module &module, const std::string &file, const std::vector<std::string> &needed) {
  llvm::StringMap<llvm::FunctionType *> types;
  for (const std::string &name : needed)
    types[name] = module.getFunction(name)->getFunctionType();
  DITRON_RETURN_IF_ERROR(linkFile(module, file));
  for (const std::string &name : needed) {
    const llvm::Function *function = module.getFunction(name);
    // Unused by now, when what called it is gone.
    if (function && (function->isDeclaration() || function->getFunctionType() != types[name]))
      return invalidArgument(fmt::format("'{}' has no function {} as the kernel calls it; DITRON_LIBDEVICE names NVIDIA's {}",
                                         file, name, fileName));
  }
  return Status::ok();
}

Status linkLibdevice(llvm::Module &module, std::string_view file) {
  std::vector<std::string> needed;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      needed.push_back(function.getName().str());
  if (needed.empty())
    return Status::ok();

  std::vector<std::string> candidates{std::string(file)};
  if (file.empty()) {
    candidates.clear();
    for (const fs::path &folder : searchFolders())
      candidates.push_back((folder / fileName).string());
  }
  for (const std::string &candidate : candidates)
    if (std::error_code ignored; fs::exists(candidate, ignored))
      return linkAll(module, candidate, needed);
  return notFound(fmt::format("the kernel calls {}, which are functions of NVIDIA's {}, and none of these files exists: {}. "
                              "Install the CUDA toolkit or the Python wheel nvidia-cuda-nvcc, or set CUDA_HOME or "
                              "DITRON_LIBDEVICE.",
                              fmt::join(needed, ", "), fileName, fmt::join(candidates, ", ")));
}

} // namespace ditron::target
