//===- TableMain.cpp - ditron-stub-table: the language's stubs to C++ ---------------------------------------------------===//
//
// ditron-stub-table --table TABLE.cpp --handlers HANDLERS.inc FILE.pyi...: runs while Ditron is built. TABLE.cpp holds the rows of
// builtins/Builtins.h as constants, HANDLERS.inc the declarations of the C++ functions that the stubs name. A mistake in a stub is an error
// with its place; a handler that no source defines does not link, and one that no stub names does not compile.
// An output is only written when it changes, so that a new docstring compiles one file.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/stubs/Stubs.h"

#include "llvm/ADT/StringSwitch.h"
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <sstream>

using namespace ditron;
using namespace ditron::frontend;

namespace {

/// A C++ string literal. Octal escapes, because hexadecimal ones have no end.
std::string literal(llvm::StringRef text) {
  std::string result = "\"";
  for (unsigned char c : text)
    result += c >= 0x20 && c < 0x7f && c != '"' && c != '\\' ? std::string(1, char(c)) : fmt::format("\\{:03o}", c);
  return result + "\"";
}

llvm::StringRef moduleOf(llvm::StringRef name) {
  return llvm::StringSwitch<llvm::StringRef>(name)
      .Case("python", "ModulePython")
      .Case("triton", "ModuleTriton")
      .Case("tl", "ModuleTile")
      .Case("tl.tensor", "ModuleMember")
      .Case("tl.tensor_descriptor", "ModuleDescriptor")
      .Case("tl.PropagateNan", "ModuleNan")
      .Case("tl.ReductionOrdering", "ModuleOrdering")
      .Case("math", "ModuleMath")
      .Case("extra", "ModuleExtra")
      .Case("dl", "ModuleDist")
      .Case("dl.vector", "ModuleVector")
      .Case("language_extra", "ModuleThread")
      .Case("libdevice", "ModuleDevice")
      .Case("libshmem_device", "ModuleShmem")
      .Case("triton_dist", "ModulePeer")
      .Default("");
}

llvm::StringRef ruleOf(llvm::StringRef word) {
  return llvm::StringSwitch<llvm::StringRef>(word)
      .Case("num", "Number")
      .Case("tensor", "Tensor")
      .Case("block", "Block")
      .Case("ptr", "Pointer")
      .Case("int", "Int")
      .Case("bool", "Bool")
      .Case("str", "Str")
      .Case("dtype", "DType")
      .Case("shape", "Shape")
      .Case("const", "Const")
      .Case("fn", "Function")
      .Case("tensor_descriptor", "Descriptor")
      .Case("block_ptr", "BlockPointer")
      .Case("mem", "Memory")
      .Default("Any");
}

/// A default as the initialiser of a BuiltinDefault.
std::string defaultOf(const std::optional<ConstValue> &value) {
  if (!value)
    return "{}";
  switch (value->kind()) {
  case ConstValue::Kind::None: return "{BuiltinDefault::None}";
  case ConstValue::Kind::Ellipsis: return "{BuiltinDefault::EmptyTuple}";
  case ConstValue::Kind::Bool: return fmt::format("{{BuiltinDefault::Bool, {}}}", value->getBool() ? 1 : 0);
  case ConstValue::Kind::Int: return fmt::format("{{BuiltinDefault::Int, {}}}", *value->toInt64());
  case ConstValue::Kind::Float: return fmt::format("{{BuiltinDefault::Float, 0, {}}}", value->getFloat());
  default: return fmt::format("{{BuiltinDefault::Str, 0, 0, {}}}", literal(value->getString()));
  }
}

std::string paramsOf(const StubFunction &function) {
  std::string text;
  for (const StubParam &param : function.params)
    text += fmt::format("    {{{}, ParamRule::{}, {}, {}, {}}},\n", literal(param.name), ruleOf(param.rule).str(),
                        param.isVariadic, param.takesNone, defaultOf(param.defaultValue));
  return text;
}

/// The C++ type in which a handler gets an argument.
std::string typeOf(const StubParam &param) {
  if (param.isVariadic && param.rule != "shape")
    return "const std::vector<LangValue> &";
  llvm::StringRef type = llvm::StringSwitch<llvm::StringRef>(param.rule)
                             .Case("int", "int64_t")
                             .Case("bool", "bool")
                             .Case("str", "llvm::StringRef")
                             .Case("dtype", "LangType")
                             .Case("shape", "Dims")
                             .Case("fn", "const FunctionValue &")
                             .Case("tensor_descriptor", "const DescriptorValue &")
                             .Default("const LangValue &");
  return param.takesNone && !type.ends_with("&") ? fmt::format("std::optional<{}>", type.str()) : type.str();
}

bool hasHandler(const StubFunction &function) {
  return function.kind == StubFunction::Kind::Function || function.kind == StubFunction::Kind::Class;
}

std::string scopeOf(const StubFunction &function) {
  return function.scope == "block" ? "Block" : function.scope == "warp" ? "Warp" : "Thread";
}

class TableWriter {
public:
  TableWriter(const Stubs &stubs, const std::vector<StubFile> &files, DiagnosticEngine &diagnostics)
      : stubs(stubs), files(files), diagnostics(diagnostics) {}

  std::string table();
  std::string handlers();

private:
  std::string moduleName(const std::string &name, SourceRange range = {}) {
    llvm::StringRef module = moduleOf(name);
    if (module.empty())
      diagnostics.error(range, fmt::format("no BuiltinModule stands for '{}'; add one to TableMain.cpp", name));
    return module.str();
  }
  std::string row(const StubFunction &function, size_t index);
  /// What follows the evaluator and the call in the handler's declaration.
  std::vector<std::string> handlerTypes(const StubFunction &function);
  /// A function that takes a call apart for its handler; its name.
  std::string thunk(const StubFunction &function);
  std::string constant(const StubConstant &constant);

  const Stubs &stubs;
  const std::vector<StubFile> &files;
  DiagnosticEngine &diagnostics;
  std::map<std::string, std::string> thunks; ///< Name by body.
  std::string thunkText;
};

std::vector<std::string> TableWriter::handlerTypes(const StubFunction &function) {
  std::vector<std::string> types;
  for (const StubFixedValue &value : function.fixed)
    types.push_back(value.type);
  if (function.takesList)
    types.push_back("llvm::ArrayRef<AnyArg>");
  else if (function.kind == StubFunction::Kind::Function)
    for (const StubParam &param : function.params)
      types.push_back(fmt::format("Arg<{}>", typeOf(param)));
  return types;
}

std::string TableWriter::thunk(const StubFunction &function) {
  std::vector<std::string> arguments = {"evaluator", "call"};
  for (const StubFixedValue &value : function.fixed)
    arguments.push_back(value.value);
  if (function.takesList)
    arguments.push_back("call.arguments()");
  else if (function.kind == StubFunction::Kind::Function)
    for (auto [index, param] : llvm::enumerate(function.params))
      arguments.push_back(fmt::format("call.argument<{}>({})", typeOf(param), index));
  std::string body = fmt::format("return builtins::{}({});", function.handler, fmt::join(arguments, ", "));
  auto [it, isNew] = thunks.try_emplace(body, fmt::format("call{}", thunks.size()));
  if (isNew)
    thunkText += fmt::format("LangValue {}(Evaluator &evaluator, BuiltinCall &call) {{\n  using namespace builtins;\n  {}\n}}\n",
                             it->second, body);
  return it->second;
}

std::string TableWriter::row(const StubFunction &function, size_t index) {
  std::vector<std::string> modules;
  for (const std::string &module : function.modules)
    modules.push_back(moduleName(module, function.range));
  std::string params = function.params.empty() ? "{}" : fmt::format("params{}", index);
  return fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, BuiltinScope::{}, {}}},\n", fmt::join(modules, " | "),
                     literal(function.name), literal(function.parameterText()), literal(function.result),
                     hasHandler(function) ? "&" + thunk(function) : "nullptr", literal(function.doc), params, scopeOf(function),
                     literal(function.libraryFile));
}

std::string TableWriter::constant(const StubConstant &constant) {
  static constexpr llvm::StringLiteral kinds[] = {"Type", "PointerType", "Number", "Annotation", "Refused"};
  return fmt::format("    {{{}, {}, BuiltinConstant::{}, {}, {}, {}}},\n", moduleName(constant.module), literal(constant.name),
                     kinds[size_t(constant.kind)].str(), constant.number, literal(constant.pointee), literal(constant.doc));
}

std::string TableWriter::table() {
  std::string params, rows, constants, submodules, texts;
  for (auto [index, function] : llvm::enumerate(stubs.functions)) {
    if (!function.params.empty())
      params += fmt::format("constexpr BuiltinParam params{}[] = {{\n{}}};\n", index, paramsOf(function));
    rows += row(function, index);
  }
  for (const StubConstant &each : stubs.constants)
    constants += constant(each);
  for (const StubSubmodule &each : stubs.submodules)
    submodules += fmt::format("    {{{}, {}, {}}},\n", moduleName(each.parent), literal(each.name), moduleName(each.module));
  for (const StubFile &file : files)
    texts += fmt::format("    {{{}, {}, {}}},\n", literal(file.name), literal(file.path), literal(file.text));
  return fmt::format(R"(// Generated by ditron-stub-table from library/*.pyi.
#include {}
#include {}

namespace ditron::frontend {{
namespace {{
{}
{}
constexpr Builtin rows[] = {{
{}}};
constexpr BuiltinConstant constants[] = {{
{}}};
constexpr BuiltinSubmodule submodules[] = {{
{}}};
constexpr StubText texts[] = {{
{}}};
}} // namespace

llvm::ArrayRef<Builtin> declaredBuiltins() {{ return rows; }}
llvm::ArrayRef<BuiltinConstant> builtinConstants() {{ return constants; }}
llvm::ArrayRef<BuiltinSubmodule> builtinSubmodules() {{ return submodules; }}
llvm::ArrayRef<StubText> stubTexts() {{ return texts; }}

}} // namespace ditron::frontend
)",
                     literal("ditron/frontend/builtins/BuiltinHandlers.h"), literal("ditron/frontend/EditorStubs.h"), thunkText, params,
                     rows, constants, submodules, texts);
}

std::string TableWriter::handlers() {
  std::string text = "// Generated by ditron-stub-table from library/*.pyi.\n";
  std::map<std::string, std::pair<const StubFunction *, std::vector<std::string>>> seen;
  for (const StubFunction &function : stubs.functions) {
    if (!hasHandler(function))
      continue;
    std::vector<std::string> types = handlerTypes(function);
    auto [it, isNew] = seen.try_emplace(function.handler, &function, types);
    const auto &[first, firstTypes] = it->second;
    if (!isNew && firstTypes != types)
      diagnostics.error(function.range,
                        fmt::format("the handler '{}' gets ({}) for '{}', but ({}) for '{}'; name another one, or take a list: "
                                    "@handler(\"{}\", ...)",
                                    function.handler, fmt::join(types, ", "), function.name, fmt::join(firstTypes, ", "),
                                    first->name, function.handler));
    std::string parameters;
    for (const std::string &type : types)
      parameters += ", " + type;
    if (isNew)
      text += fmt::format("LangValue {}(Evaluator &, BuiltinCall &{});\n", function.handler, parameters);
  }
  return text;
}

void writeIfChanged(const std::string &path, const std::string &text) {
  std::stringstream old;
  if (std::ifstream file(path); file)
    old << file.rdbuf();
  if (old.str() != text)
    std::ofstream(path) << text;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Makes the C++ table of the language from its stubs"};
  std::string tablePath, handlersPath;
  std::vector<std::string> inputs;
  app.add_option("--table", tablePath, "the C++ file with the rows")->required();
  app.add_option("--handlers", handlersPath, "the C++ file with the declarations of handlers")->required();
  app.add_option("files", inputs, "library/*.pyi")->required();
  CLI11_PARSE(app, argc, argv);
  std::vector<StubFile> files;
  for (const std::string &path : inputs) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      fmt::print(stderr, "error: cannot read {}\n", path);
      return 1;
    }
    files.push_back({std::filesystem::path(path).stem().string(), path, text.str()});
  }
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  if (std::optional<Stubs> stubs = readStubs(files, diagnostics)) {
    TableWriter writer(*stubs, files, diagnostics);
    std::string table = writer.table(), handlers = writer.handlers();
    if (!diagnostics.hasErrors()) {
      writeIfChanged(tablePath, table);
      writeIfChanged(handlersPath, handlers);
      return 0;
    }
  }
  fmt::print(stderr, "{}", diagnostics.renderAll());
  return 1;
}
