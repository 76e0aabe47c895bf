//===- TypedHeader.cpp - A package's kernels as C++ functions -------------------------------------------------------------===//
#include "ditron/package/TypedHeader.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace ditron::package {

namespace {

/// C++ of an element type; empty for those that C++ has no type for.
std::string_view cppElement(DataType type) {
  switch (type) {
  case DataType::I1: return "bool";
  case DataType::I8: return "int8_t";
  case DataType::I16: return "int16_t";
  case DataType::I32: return "int32_t";
  case DataType::I64: return "int64_t";
  case DataType::U8: return "uint8_t";
  case DataType::U16: return "uint16_t";
  case DataType::U32: return "uint32_t";
  case DataType::U64: return "uint64_t";
  case DataType::F32: return "float";
  case DataType::F64: return "double";
  default: return "";
  }
}

/// A text as a C++ string.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else
      result += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\{:03o}", c) : std::string(1, c);
  return result + "\"";
}

/// A name that C++ takes: "class" becomes "class_", "a.b" "a_b".
std::string cppName(std::string_view name) {
  static const std::set<std::string_view> taken = {
      "and",     "auto",     "bool",     "break",     "case",     "catch",     "char",    "class", "const",
      "context", "continue", "default",  "delete",    "do",       "double",    "else",    "enum",  "explicit",
      "export",  "extern",   "false",    "float",     "for",      "friend",    "goto",    "if",    "inline",
      "int",     "kernel",   "launch",   "long",      "mutable",  "namespace", "new",     "not",   "operator",
      "or",      "package",  "private",  "protected", "public",   "register",  "return",  "short", "signed",
      "sizeof",  "static",   "stream",   "struct",    "switch",   "template",  "this",    "throw", "true",
      "try",     "typedef",  "typename", "union",     "unsigned", "using",     "virtual", "void",  "volatile",
      "while",   "xor"};
  std::string result;
  for (char c : name)
    result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return taken.contains(result) ? result + "_" : result;
}

/// "softmax_kernel" becomes SoftmaxKernel.
std::string className(std::string_view kernel) {
  std::string result;
  bool isStart = true;
  for (char c : cppName(kernel)) {
    if (c != '_')
      result += isStart ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    isStart = c == '_';
  }
  return result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) ? "Kernel" + result : result;
}

/// What the call has for one parameter.
struct CallParameter {
  std::string declaration; ///< "float *x"; empty: nothing.
  std::string argument;    ///< What is passed on: "x", or a constant.
};

/// Nothing for a parameter that no typed call can have.
std::optional<CallParameter> describe(const Kernel &kernel, const Parameter &parameter) {
  std::set<std::string> types, constants;
  bool mayBeMissing = false;
  for (const Variant &variant : kernel.variants)
    for (const Item &item : variant.items) {
      if (item.path.starts_with(parameter.name + ".") ||
          (item.path == parameter.name && item.kind == Item::Kind::Descriptor))
        return std::nullopt;
      if (item.path != parameter.name)
        continue;
      if (item.kind == Item::Kind::Number)
        types.insert(item.type);
      else if (item.kind == Item::Kind::Constant)
        constants.insert(valueText(item.value));
      else
        mayBeMissing = true;
    }
  const std::string name = cppName(parameter.name);
  if (types.empty() && constants.empty())
    return CallParameter(); // its default, always
  const bool isNumber =
      constants.size() == 1 && constants.begin()->find_first_not_of("-0123456789") == std::string::npos;
  if (types.empty() && constants.size() == 1 && !mayBeMissing && parameter.isConstexpr) {
    if (isNumber)
      return CallParameter{"", fmt::format("int64_t({})", *constants.begin())};
    if (*constants.begin() == "True" || *constants.begin() == "False")
      return CallParameter{"", *constants.begin() == "True" ? "true" : "false"};
  }
  if (types.size() != 1 || mayBeMissing)
    return CallParameter{"ditron::Argument " + name, name};
  const std::string &type = *types.begin();
  const bool isPointer = type.starts_with("*");
  const DataType element = *parseDataType(std::string_view(type).substr(!isPointer               ? 0
                                                                        : type.starts_with("*k") ? 2
                                                                                                 : 1));
  const std::string_view cpp = cppElement(element);
  if (isPointer && cpp.empty())
    return CallParameter{
        fmt::format("void *{}", name),
        fmt::format("ditron::Pointer{{{}, static_cast<ditron_dtype_t>({})}}", name, static_cast<int>(element))};
  if (isPointer)
    return CallParameter{fmt::format("{} *{}", cpp, name), name};
  return CallParameter{fmt::format("{} {}", cpp.empty() || element == DataType::F32 ? "double" : cpp, name), name};
}

std::string kernelClass(const Kernel &kernel) {
  std::vector<std::string> declarations = {"ditron::Stream &stream", "const ditron::Launch &launch"}, keywords;
  std::string signatures;
  for (const Variant &variant : kernel.variants)
    signatures +=
        fmt::format("///   {}, {} warps: {}\n", variant.artifact.target, variant.artifact.numWarps, variant.signature);
  std::ranges::replace(signatures, '\\', '/'); // at the end of a comment's line it would go on
  for (const Parameter &parameter : kernel.parameters) {
    const std::optional<CallParameter> described = describe(kernel, parameter);
    if (!described)
      return fmt::format(
          "// {} of {} takes tuples or descriptors, which a typed call does not have: ditron::Kernel::launch does.\n\n",
          kernel.name, kernel.source.name);
    if (!described->declaration.empty())
      declarations.push_back(described->declaration);
    if (!described->argument.empty())
      keywords.push_back(fmt::format("{{{}, {}}}", quoted(parameter.name), described->argument));
  }
  return fmt::format(R"(/// {0} of {1}, compiled for
{2}class {3} {{
public:
  /// From the package of the context.
  static ditron::Expected<{3}> find(ditron::Context &context) {{
    ditron_kernel_h handle = nullptr;
    if (ditron::Status status = ditron::Status::of(ditron_kernel_find(context.get(), {4}, {5}, &handle)); !status.ok())
      return status;
    return {3}(handle);
  }}
  ditron::Status operator()({6}) {{
    return kernel_.launch(stream, launch, {{}}, {{{7}}});
  }}
  ditron::Kernel &kernel() {{ return kernel_; }}

private:
  explicit {3}(ditron_kernel_h handle) : kernel_(handle) {{}}
  ditron::Kernel kernel_;
}};

)",
                     kernel.name, kernel.source.name, signatures, className(kernel.name), quoted(kernel.source.name),
                     quoted(kernel.name), fmt::join(declarations, ", "), fmt::join(keywords, ", "));
}

} // namespace

std::string typedHeader(const Package &package, const std::string &space, const std::string &path) {
  std::string text =
      fmt::format("// Made by ditron build ({}). The kernels of {} with their types.\n#pragma once\n\n"
                  "#include <ditron/ditron.hpp>\n\nnamespace {} {{\n\n"
                  "/// For ditron_context_options_t::packages.\ninline constexpr const char *packagePath = {};\n\n",
                  package.compiler, path, space, quoted(path));
  for (const Kernel &kernel : package.kernels)
    if (!kernel.source.name.starts_with("ditron:"))
      text += kernelClass(kernel);
  return text + fmt::format("}} // namespace {}\n", space);
}

} // namespace ditron::package
