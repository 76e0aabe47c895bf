//===- Identity.cpp - Which compiler this is ----------------------------------------------------------------------------===//
//
// Finds the loaded file in which a function lies, and the build ID among its notes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Identity.h"

#include "ditron/support/TargetName.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"

#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fmt/format.h>
#include <link.h>
#include <map>

namespace ditron::compiler {

namespace {

struct Search {
  uintptr_t address; ///< In the file that is looked for.
  std::string found;
};

std::string fileStamp(const char *path) {
  std::error_code error;
  const std::filesystem::path file = path && *path ? path : "/proc/self/exe";
  const auto time = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return fmt::format("{}-{}", std::filesystem::file_size(file, error), time);
}

/// Note segments are sequences of headers, names and contents, each padded to four bytes.
std::string buildIdIn(const char *note, const char *end) {
  auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t(3); };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof(header));
    const char *name = note + sizeof(header), *contents = name + padded(header.n_namesz);
    if (contents + header.n_descsz > end)
      break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string digits;
      for (size_t i = 0; i < header.n_descsz; ++i)
        digits += fmt::format("{:02x}", static_cast<unsigned char>(contents[i]));
      return digits;
    }
    note = contents + padded(header.n_descsz);
  }
  return "";
}

int visitFile(dl_phdr_info *info, size_t, void *context) {
  auto &search = *static_cast<Search *>(context);
  bool holdsAddress = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    holdsAddress |= segment.p_type == PT_LOAD && search.address >= begin && search.address < begin + segment.p_memsz;
  }
  if (!holdsAddress)
    return 0;
  for (int i = 0; i < info->dlpi_phnum && search.found.empty(); ++i)
    if (const ElfW(Phdr) &segment = info->dlpi_phdr[i]; segment.p_type == PT_NOTE) {
      const char *begin = reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
      search.found = buildIdIn(begin, begin + segment.p_memsz);
    }
  if (search.found.empty())
    search.found = fileStamp(info->dlpi_name);
  return 1;
}

/// Names the loaded file that holds the function.
template <typename Function> std::string buildOf(Function *function) {
  Search search = {reinterpret_cast<uintptr_t>(function), ""};
  dl_iterate_phdr(visitFile, &search);
  return search.found.empty() ? "unknown" : search.found;
}

/// The processor that code for this machine is generated for: see hostMachine in target/sim/SimCodegen.cpp.
std::string hostProcessor() {
  std::map<std::string, bool> sorted; // LLVM's map has no order of its own
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    sorted[feature.first().str()] = feature.second;
  std::string text = llvm::sys::getHostCPUName().str();
  for (const auto &[name, isPresent] : sorted)
    if (isPresent)
      text += " " + name;
  return text;
}

} // namespace

std::string compilerIdentity(std::string_view target) {
  std::string text =
      fmt::format("ditron 0.1.0 {}, LLVM {} {}, MLIR {}", buildOf(&compilerIdentity), LLVM_VERSION_STRING,
                  buildOf(&llvm::sys::getHostCPUName), buildOf(&mlir::registerMLIRContextCLOptions));
  Expected<TargetName> name = parseTargetName(target);
  if (name.isOk() && name->simulated)
    text += ", " + hostProcessor();
  return text;
}

} // namespace ditron::compiler
