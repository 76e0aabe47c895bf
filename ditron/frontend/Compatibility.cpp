//===- Compatibility.cpp - What of Triton and Triton-distributed is there -------------------------------------------------===//
//
// The page docs/compatibility.md: every name of the modules that kernels import, supported or refused with the message
// that a kernel gets. It is read from the tables, so it cannot promise more than there is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Builtins.h"

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

/// Names that are no functions; what the look-up does not know is left out.
constexpr llvm::StringLiteral constantNames[] = {"void",
                                                 "int1",
                                                 "int8",
                                                 "int16",
                                                 "int32",
                                                 "int64",
                                                 "uint8",
                                                 "uint16",
                                                 "uint32",
                                                 "uint64",
                                                 "float8e5",
                                                 "float8e4nv",
                                                 "float8e4b15",
                                                 "float8e4b8",
                                                 "float8e5b16",
                                                 "float16",
                                                 "bfloat16",
                                                 "float32",
                                                 "float64",
                                                 "pi32_t",
                                                 "TRITON_MAX_TENSOR_NUMEL",
                                                 "PropagateNan",
                                                 "math",
                                                 "extra",
                                                 "core",
                                                 "standard",
                                                 "language",
                                                 "target_info",
                                                 "libdevice",
                                                 "NVSHMEM_CMP_EQ",
                                                 "NVSHMEM_CMP_NE",
                                                 "NVSHMEM_CMP_GT",
                                                 "NVSHMEM_CMP_LE",
                                                 "NVSHMEM_CMP_LT",
                                                 "NVSHMEM_CMP_GE",
                                                 "NVSHMEM_SIGNAL_SET",
                                                 "NVSHMEM_SIGNAL_ADD",
                                                 "NVSHMEM_TEAM_WORLD",
                                                 "NVSHMEM_TEAM_SHARED",
                                                 "NVSHMEM_TEAM_NODE",
                                                 "NVSHMEMX_TEAM_NODE",
                                                 "NVSHMEMX_TEAM_SAME_MYPE_NODE"};

/// What is neither function nor value: decorators, and what stands in annotations.
struct Declaration {
  BuiltinModule module;
  llvm::StringLiteral name;
  llvm::StringLiteral doc;
  bool isRefused = false;
};
constexpr Declaration declarations[] = {
    {ModuleTriton, "jit", "decorator: a kernel, or a function of kernels"},
    {ModuleTriton, "autotune", "decorator: the configurations are read as a tuning space"},
    {ModuleTriton, "heuristics", "decorator: compile-time arguments computed from the others"},
    {ModuleTriton, "Config", "a configuration of autotune"},
    {ModuleTriton, "constexpr_function", "decorator: a function that runs at compile time"},
    {ModuleTile, "const", "annotation: a pointer that is only read"},
    {ModuleTile, "float8e4b8", "a format of AMD hardware; use float8e4nv", true},
    {ModuleTile, "float8e5b16", "a format of AMD hardware; use float8e5", true}};

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
  for (const Declaration &declaration : declarations)
    if (declaration.module == module)
      rows[declaration.name.str()] = {declaration.isRefused, declaration.doc.str()};
  for (llvm::StringRef name : constantNames) {
    if (findSubmodule(module, name))
      rows.try_emplace(name.str(), Row{false, "module"});
    else if (std::optional<LangValue> value = findBuiltinConstant(module, name))
      rows.try_emplace(name.str(), Row{false, value->isType() ? "type" : "constant"});
  }
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
