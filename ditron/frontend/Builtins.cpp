//===- Builtins.cpp - Look-up in the table of functions and modules -----------------------------------------------------===//
//
// Reads Builtins.def into rows with parsed parameters, once, and answers questions about names and modules.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Builtins.h"

#include "ditron/frontend/Libdevice.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

std::optional<ParamRule> parseRule(llvm::StringRef text) {
  static const std::pair<llvm::StringRef, ParamRule> rules[] = {
      {"any", ParamRule::Any},     {"num", ParamRule::Number},  {"tensor", ParamRule::Tensor},
      {"block", ParamRule::Block}, {"ptr", ParamRule::Pointer}, {"int", ParamRule::Int},
      {"bool", ParamRule::Bool},   {"str", ParamRule::Str},     {"dtype", ParamRule::DType},
      {"shape", ParamRule::Shape}, {"const", ParamRule::Const}, {"fn", ParamRule::Function},
      {"desc", ParamRule::Descriptor},
      {"bptr", ParamRule::BlockPointer}, {"mem", ParamRule::Memory}};
  for (auto [name, rule] : rules)
    if (name == text)
      return rule;
  return std::nullopt;
}

ConstValue parseDefault(llvm::StringRef text) {
  if (text == "None" || text == "()")
    return text == "None" ? ConstValue::none() : ConstValue::ellipsis(); // `...` stands for an empty tuple
  if (text == "True" || text == "False")
    return ConstValue::boolean(text == "True");
  if (text.starts_with("'")) {
    llvm::StringRef body = text.drop_front().drop_back();
    return ConstValue::string(body == "\\n" ? "\n" : body.str());
  }
  int64_t number = 0;
  text.getAsInteger(10, number);
  return ConstValue::integer(number);
}

/// The table is ours, so its syntax is not checked here; a test reads every row.
std::vector<BuiltinParam> parseParams(llvm::StringRef text) {
  std::vector<BuiltinParam> params;
  while (!text.empty()) {
    llvm::StringRef item;
    std::tie(item, text) = text.split(", ");
    BuiltinParam param;
    auto [head, defaultText] = item.split('=');
    if (item.contains('='))
      param.defaultValue = parseDefault(defaultText);
    auto [name, rule] = head.split(": ");
    param.isVariadic = name.consume_front("*");
    param.name = name.str();
    if (!rule.empty())
      param.rule = parseRule(rule).value_or(ParamRule::Any);
    params.push_back(std::move(param));
  }
  return params;
}

const std::vector<Builtin> &table() {
  static const std::vector<Builtin> rows = [] {
    std::vector<Builtin> result;
#define DITRON_FUNCTION(modules, name, parameters, handler, doc)                                                       \
  result.push_back({modules, name, parameters, &builtins::handler, doc, parseParams(parameters)});
#define DITRON_LIBRARY(modules, name, file, parameters, doc)                                                           \
  result.push_back({modules, name, parameters, nullptr, doc, {}, file});
#define DITRON_REFUSED(modules, name, reason) result.push_back({modules, name, "", nullptr, reason, {}});
#include "ditron/frontend/Builtins.def"
    addLibdeviceRows(result);
    return result;
  }();
  return rows;
}

/// The numbers of libshmem_device, which follow NVSHMEM also where a name is rocSHMEM's (which orders the comparisons otherwise).
constexpr std::pair<llvm::StringLiteral, int64_t> shmemConstants[] = {
    {"NVSHMEM_CMP_EQ", 0},       {"NVSHMEM_CMP_NE", 1},        {"NVSHMEM_CMP_GT", 2},
    {"NVSHMEM_CMP_LE", 3},       {"NVSHMEM_CMP_LT", 4},        {"NVSHMEM_CMP_GE", 5},
    {"NVSHMEM_SIGNAL_SET", 9},   {"NVSHMEM_SIGNAL_ADD", 10},   {"NVSHMEM_TEAM_WORLD", 0},
    {"NVSHMEM_TEAM_SHARED", 1},  {"NVSHMEMX_TEAM_NODE", 2},    {"NVSHMEMX_TEAM_SAME_MYPE_NODE", 3},
    {"NVSHMEM_TEAM_NODE", 2},    {"NVSHMEM_TEAM_SAME_MYPE_NODE", 3}, {"ROCSHMEM_CMP_EQ", 0},
    {"ROCSHMEM_CMP_NE", 1},      {"ROCSHMEM_CMP_GT", 2},       {"ROCSHMEM_CMP_LE", 3},
    {"ROCSHMEM_CMP_LT", 4},      {"ROCSHMEM_CMP_GE", 5},       {"ROCSHMEM_SIGNAL_SET", 9},
    {"ROCSHMEM_SIGNAL_ADD", 10}, {"ROCSHMEM_TEAM_WORLD", 0},   {"ROCSHMEM_TEAM_SHARED", 1}};

struct Submodule {
  BuiltinModule parent;
  llvm::StringLiteral name;
  BuiltinModule module;
};
constexpr Submodule submodules[] = {{ModuleTriton, "language", ModuleTile},
                                    {ModulePeer, "language", ModuleDist},
                                    // What its kernels share is found in the package itself.
                                    {ModulePeer, "kernels", ModulePeer},
                                    {ModulePeer, "nvidia", ModulePeer},
                                    {ModulePeer, "common_ops", ModulePeer},
                                    {ModuleTile, "math", ModuleMath},
                                    {ModuleTile, "core", ModuleTile},
                                    {ModuleTile, "PropagateNan", ModuleNan},
                                    {ModuleTile, "ReductionOrdering", ModuleOrdering},
                                    {ModuleTile, "extra", ModuleExtra},
                                    {ModuleTile, "target_info", ModuleExtra},
                                    {ModuleDist, "extra", ModuleExtra},
                                    {ModuleExtra, "libdevice", ModuleDevice},
                                    {ModuleExtra, "cuda", ModuleExtra},
                                    {ModuleExtra, "hip", ModuleExtra},
                                    {ModuleExtra, "language_extra", ModuleThread},
                                    {ModuleExtra, "tma_language", ModuleThread},
                                    {ModuleDist, "distributed_ops", ModuleDist},
                                    {ModuleDist, "simt_ops", ModuleDist},
                                    {ModuleDist, "smem_ops", ModuleDist},
                                    {ModuleDist, "tma", ModuleDist},
                                    {ModuleDist, "pipeline", ModuleDist},
                                    {ModuleDist, "tensormap", ModuleDist},
                                    {ModuleExtra, "libshmem_device", ModuleShmem},
                                    {ModuleExtra, "libdevice", ModuleDevice},
                                    {ModuleTile, "standard", ModuleTile}};

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

const Builtin *findBuiltin(BuiltinModule module, llvm::StringRef name) {
  for (const Builtin &row : table())
    if ((row.modules & module) && row.name == name)
      return &row;
  // The generic extra modules give the thread level directly.
  if (module == ModuleExtra)
    return findBuiltin(ModuleThread, name);
  return nullptr;
}

std::optional<LangValue> findBuiltinConstant(BuiltinModule module, llvm::StringRef name) {
  if (module == ModuleTile) {
    if (name == "TRITON_MAX_TENSOR_NUMEL")
      return LangValue::integer(maxBlockElements);
    if (name == "pi32_t")
      return LangValue(LangType::pointer(ScalarKind::Int32));
    // Only the long names are attributes of tl: tl.float32, not tl.fp32.
    if (name.starts_with("float") || name.starts_with("bfloat") || name.starts_with("int") ||
        name.starts_with("uint") || name == "void")
      if (auto kind = parseScalarKind(name))
        return LangValue(LangType(*kind));
  }
  // Any value but zero propagates, as with a plain True.
  if (module == ModuleNan && (name == "NONE" || name == "ALL"))
    return LangValue::integer(name == "ALL" ? 0xFFFF : 0);
  // The words that reduction_ordering takes.
  if (module == ModuleOrdering && (name == "UNORDERED" || name == "INNER_TREE"))
    return LangValue::string(name.lower());
  if (module == ModuleShmem)
    for (auto [constant, value] : shmemConstants)
      if (constant == name)
        return LangValue::integer(value);
  return std::nullopt;
}

std::optional<BuiltinModule> findSubmodule(BuiltinModule module, llvm::StringRef name) {
  for (const Submodule &entry : submodules)
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
  for (const Builtin &row : table())
    if (row.modules & module)
      consider(row.name);
  if (module == ModuleTile)
    for (llvm::StringRef dtype : {"int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                  "float8e5", "float8e4nv", "float16", "bfloat16", "float32", "float64"})
      consider(dtype);
  for (const Submodule &entry : submodules)
    if (entry.parent == module)
      consider(entry.name);
  return best;
}

const std::vector<Builtin> &builtinTable() { return table(); }

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
      {ModuleShmem, "`libshmem_device`"},
      {ModulePeer, "`triton_dist.kernels.nvidia.common_ops`"},
      {ModuleDevice, "`libdevice`"},
      {ModulePython, "Python"},
      {ModuleMember, "Member functions of tensors (the first parameter is the tensor)"},
      {ModuleDescriptor, "Member functions of tensor descriptors (the first parameter is the descriptor)"},
      {ModuleVector, "Member functions of vectors (the first parameter is the vector)"}};
  std::string text = "# Functions of the kernel language\n";
  for (const Section &section : sections) {
    text += fmt::format("\n## {}\n\n| function | |\n|---|---|\n", section.title.str());
    std::string refused;
    for (const Builtin &row : table()) {
      if (!(row.modules & section.module))
        continue;
      if (row.handler || !row.libraryFile.empty())
        text += fmt::format("| `{}({})` | {} |\n", row.name.str(), row.parameterText.str(), row.doc.str());
      else
        refused += (refused.empty() ? "" : ", ") + row.name.str();
    }
    if (!refused.empty())
      text += fmt::format("\nRefused by this version: {}.\n", refused);
  }
  return text;
}

size_t BuiltinCall::indexOf(llvm::StringRef name) const {
  for (size_t i = 0; i < builtin->params.size(); ++i)
    if (builtin->params[i].name == name)
      return i;
  assert(false && "a handler asked for a parameter that its row in Builtins.def does not have");
  return 0;
}

llvm::SmallVector<int64_t> BuiltinCall::dims(llvm::StringRef name) const {
  llvm::SmallVector<LangValue> leaves;
  flatten((*this)[name], leaves);
  llvm::SmallVector<int64_t> result;
  for (const LangValue &leaf : leaves)
    result.push_back(*leaf.constant().toInt64());
  return result;
}

} // namespace ditron::frontend
