//===- Compatibility.cpp - What of Triton and Triton-distributed is there -------------------------------------------------===//
//
// The page docs/compatibility.md: every name of the modules that kernels import, supported or refused with the message
// that a kernel gets. It is read from the tables, so it cannot promise more than there is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/Builtins.h"

#include <fmt/format.h>
#include <map>

namespace ditron::frontend {
namespace {

struct Section {
  BuiltinModule module;
  llvm::StringLiteral title;
};

constexpr Section sections[] = {{ModuleTile, "`triton.language` (tl)"},
                                {ModuleMember, "Member functions of tensors"},
                                {ModuleDescriptor, "Member functions of tensor descriptors"},
                                {ModuleTriton, "`triton`"},
                                {ModuleDevice, "`triton.language.extra.libdevice`"},
                                {ModuleDist, "`triton_dist.language` (dl)"},
                                {ModuleThread, "`language_extra`: the thread level"},
                                {ModuleShmem, "`libshmem_device`"}};

/// A name's row: how it is there, and what it does or why it is refused.
struct Row {
  bool isRefused = false;
  std::string text;
};

std::map<std::string, Row> rowsOf(BuiltinModule module) {
  std::map<std::string, Row> rows;
  for (const Builtin &builtin : builtinTable())
    if (builtin.modules & module)
      rows[builtin.name.str()] = {builtin.isRefused(), builtin.doc.str()};
  for (const BuiltinConstant &constant : builtinConstants()) {
    if (constant.module != module)
      continue;
    const bool isType = constant.kind == BuiltinConstant::Type || constant.kind == BuiltinConstant::PointerType;
    const std::string doc = constant.doc.empty() ? (isType ? "type" : "constant") : constant.doc.str();
    rows.try_emplace(constant.name.str(), Row{constant.kind == BuiltinConstant::Refused, doc});
  }
  for (const BuiltinSubmodule &submodule : builtinSubmodules())
    if (submodule.parent == module)
      rows.try_emplace(submodule.name.str(), Row{false, "module"});
  return rows;
}

} // namespace

std::string listCompatibility() {
  std::string summary, body;
  for (const Section &section : sections) {
    const std::map<std::string, Row> rows = rowsOf(section.module);
    size_t refused = 0;
    body += fmt::format("\n## {}\n\n| name | | |\n|---|---|---|\n", section.title.str());
    for (const auto &[name, row] : rows) {
      refused += row.isRefused;
      body += fmt::format("| `{}` | {} | {} |\n", name, row.isRefused ? "**refused**" : "supported", row.text);
    }
    summary += fmt::format("| {} | {} | {} |\n", section.title.str(), rows.size() - refused, refused);
  }
  return "# Compatibility with Triton and Triton-distributed\n\n"
         "Every name of the modules that kernels import. A kernel that calls a refused one does not compile; the "
         "message is\n"
         "\"NAME is not supported by this version: \" and the text given here. Printed by `ditron-import "
         "--list-compatibility`\n"
         "from the frontend's tables; parameters are in [language.md](language.md), measured agreement is in\n"
         "[conformance.md](conformance.md). Public projects: which of their kernels compile is in [adoption.md](adoption.md), "
         "with\nthe command that says it of yours.\n\n| | supported | refused |\n|---|---|---|\n" +
         summary + body;
}

} // namespace ditron::frontend
