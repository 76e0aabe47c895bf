//===- Builtins.cpp - Look-up in the table of functions and modules -----------------------------------------------------===//
//
// Answers questions about names and modules from the rows that ditron-stub-table has made, and prints the reference.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/Builtins.h"

#include "ditron/frontend/builtins/Libdevice.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// Rows by name; the module decides among rows of one name.
const llvm::StringMap<llvm::SmallVector<const Builtin *, 2>> &rowsByName() {
  static const auto map = [] {
    llvm::StringMap<llvm::SmallVector<const Builtin *, 2>> result;
    for (const Builtin &row : builtinTable())
      result[row.name].push_back(&row);
    return result;
  }();
  return map;
}

std::optional<LangValue> valueOf(const BuiltinConstant &constant) {
  switch (constant.kind) {
  case BuiltinConstant::Number: {
    LangValue number = LangValue::integer(constant.number);
    number.isWrapped = true; // kernels may read it under a name that is imported
    return number;
  }
  case BuiltinConstant::Type:
    if (auto kind = parseScalarKind(constant.name))
      return LangValue(LangType(*kind));
    return std::nullopt;
  case BuiltinConstant::PointerType:
    if (auto kind = parseScalarKind(constant.pointee))
      return LangValue(LangType::pointer(*kind));
    return std::nullopt;
  case BuiltinConstant::Annotation:
  case BuiltinConstant::Refused: return std::nullopt;
  }
  return std::nullopt;
}

llvm::StringRef shortName(unsigned modules) {
  if (modules & ModulePython)
    return "";
  if (modules & ModuleTile)
    return "tl.";
  if (modules & ModuleTriton)
    return "triton.";
  if (modules & ModuleDist)
    return "dl.";
  if (modules & ModuleDevice)
    return "libdevice.";
  if (modules & ModuleShmem)
    return "libshmem_device.";
  if (modules & ModuleDescriptor)
    return "desc.";
  return "";
}

} // namespace

std::string qualifiedName(const Builtin &builtin) { return (shortName(builtin.modules) + builtin.name).str(); }

LangValue BuiltinDefault::value() const {
  switch (kind) {
  case Missing:
  case None: return LangValue::none();
  case EmptyTuple: return LangValue::tuple({});
  case Bool: return LangValue::boolean(number != 0);
  case Int: return LangValue::integer(number);
  case Float: return LangValue(ConstValue::floating(real));
  case Str: return LangValue::string(text.str());
  }
  return LangValue::none();
}

const Builtin *findBuiltin(BuiltinModule module, llvm::StringRef name) {
  const auto &rows = rowsByName();
  if (auto found = rows.find(name); found != rows.end())
    for (const Builtin *row : found->second)
      if (row->modules & module)
        return row;
  // The generic extra modules give the thread level directly.
  if (module == ModuleExtra)
    return findBuiltin(ModuleThread, name);
  return nullptr;
}

std::optional<LangValue> findBuiltinConstant(BuiltinModule module, llvm::StringRef name) {
  for (const BuiltinConstant &constant : builtinConstants())
    if (constant.module == module && constant.name == name)
      return valueOf(constant);
  return std::nullopt;
}

std::optional<BuiltinModule> findSubmodule(BuiltinModule module, llvm::StringRef name) {
  for (const BuiltinSubmodule &entry : builtinSubmodules())
    if (entry.parent == module && entry.name == name)
      return entry.module;
  return std::nullopt;
}

std::optional<BuiltinModule> findModule(llvm::StringRef dottedName) {
  auto [root, rest] = dottedName.split('.');
  std::optional<BuiltinModule> module;
  if (root == "triton")
    module = ModuleTriton;
  else if (root == "triton_dist" || root == "ditron")
    module = ModulePeer;
  while (module && !rest.empty()) {
    llvm::StringRef part;
    std::tie(part, rest) = rest.split('.');
    module = findSubmodule(*module, part);
  }
  return module;
}

std::string nearestName(BuiltinModule module, llvm::StringRef name) {
  std::string best;
  unsigned bestDistance = std::max<unsigned>(1, name.size() / 3) + 1;
  auto consider = [&](llvm::StringRef candidate) {
    unsigned distance = name.edit_distance(candidate, true, bestDistance);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate.str();
    }
  };
  for (const Builtin &row : builtinTable())
    if (row.modules & module)
      consider(row.name);
  for (const BuiltinConstant &constant : builtinConstants())
    if (constant.module == module)
      consider(constant.name);
  for (const BuiltinSubmodule &entry : builtinSubmodules())
    if (entry.parent == module)
      consider(entry.name);
  return best;
}

const std::vector<Builtin> &builtinTable() {
  static const std::vector<Builtin> rows = [] {
    std::vector<Builtin> result = declaredBuiltins().vec();
    addLibdeviceRows(result);
    return result;
  }();
  return rows;
}

/// " -> tensor"; nothing where there is no result or nothing is known of it.
static std::string resultText(const Builtin &row) {
  return row.result.empty() || row.result == "None" || row.result == "any" ? "" : " -> " + row.result.str();
}

std::string listLanguage() {
  struct Section {
    BuiltinModule module;
    llvm::StringLiteral title;
  };
  static constexpr Section sections[] = {
      {ModuleTile, "`triton.language` (tl)"},
      {ModuleTriton, "`triton`"},
      {ModuleMath, "`triton.language.math`"},
      {ModuleDist, "`triton_dist.language` (dl), `ditron.language`"},
      {ModuleThread, "`language_extra`: the thread level"},
      {ModuleExtra, "`tl.target_info`, `tl.extra.cuda`: the target"},
      {ModuleShmem, "`libshmem_device`"},
      {ModulePeer, "`triton_dist.kernels.nvidia.common_ops`"},
      {ModuleDevice, "`libdevice`"},
      {ModulePython, "Python"},
      {ModuleMember, "Member functions of tensors (the first parameter is the tensor)"},
      {ModuleDescriptor, "Member functions of tensor descriptors (the first parameter is the descriptor)"},
      {ModuleVector, "Member functions of vectors (the first parameter is the vector)"}};
  std::string text =
      "# Functions of the kernel language\n\n"
      "Declared in `ditron/frontend/library/*.pyi`; printed by `ditron-import --list-language`. What a parameter takes: `num` "
      "a number or\n"
      "tensor, `tensor` a run-time value, `block` a tensor of rank 1 or more, `ptr` a pointer or block of pointers, `mem` that "
      "or a\n"
      "`block_ptr`, `shape` compile-time ints (one, several or a tuple), `const` anything known at compile time, `fn` a "
      "`@triton.jit`\n"
      "function, `dtype`, `tensor_descriptor`, compile-time `int`, `bool` and `str`; without a word anything. A parameter that "
      "is None by\n"
      "default takes None.\n\n"
      "For Pylance, mypy and other tools: `ditron-import --write-stubs typings` writes all of this as Python stub files "
      "(packages `triton`,\n"
      "`triton_dist`, `ditron`) into a folder `typings`, which Pylance reads by itself; for mypy set `MYPYPATH=typings`.\n";
  for (const Section &section : sections) {
    text += fmt::format("\n## {}\n\n| function | |\n|---|---|\n", section.title.str());
    std::string refused;
    for (const Builtin &row : builtinTable()) {
      if (!(row.modules & section.module))
        continue;
      if (row.handler || !row.libraryFile.empty())
        text += fmt::format("| `{}({}){}` | {} |\n", row.name.str(), row.parameterText.str(), resultText(row), row.doc.str());
      else
        refused += (refused.empty() ? "" : ", ") + row.name.str();
    }
    if (!refused.empty())
      text += fmt::format("\nRefused by this version: {}.\n", refused);
  }
  return text;
}

Dims BuiltinCall::dims(const LangValue &value) {
  llvm::SmallVector<LangValue> leaves;
  flatten(value, leaves);
  Dims result;
  for (const LangValue &leaf : leaves)
    result.push_back(*leaf.constant().toInt64());
  return result;
}

} // namespace ditron::frontend
