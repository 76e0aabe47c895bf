//===- EditorStubs.cpp - The language for editors and type checkers ------------------------------------------------------===//
//
// Each module of the language is written once, under its main name; its other names import everything from there.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/stubs/EditorStubs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// Where a module of the stubs is found; the first place of each is its main one.
struct Place {
  llvm::StringLiteral path, module;
  bool isPackage = false;
};
constexpr Place places[] = {{"triton", "triton", true},
                            {"triton/language", "tl", true},
                            {"triton/language/math", "math"},
                            {"triton/language/core", "tl"},
                            {"triton/language/standard", "tl"},
                            {"triton/language/random", "tl"},
                            {"triton/language/extra", "extra", true},
                            {"triton/language/target_info", "extra"},
                            {"triton/language/extra/cuda", "extra", true},
                            {"triton/language/extra/cuda/utils", "extra"},
                            {"triton/language/extra/cuda/gdc", "extra"},
                            {"triton/language/extra/libdevice", "libdevice"},
                            {"triton/language/extra/cuda/libdevice", "libdevice"},
                            {"triton_dist", "triton_dist", true},
                            {"triton_dist/language", "dl", true},
                            {"triton_dist/language/extra", "extra", true},
                            {"triton_dist/language/extra/language_extra", "language_extra"},
                            {"triton_dist/language/extra/libshmem_device", "libshmem_device"},
                            {"triton_dist/language/extra/libdevice", "libdevice"},
                            {"triton_dist/language/extra/cuda", "extra", true},
                            {"triton_dist/language/extra/cuda/language_extra", "language_extra"},
                            {"triton_dist/kernels", "triton_dist", true},
                            {"triton_dist/kernels/nvidia", "triton_dist", true},
                            {"triton_dist/kernels/nvidia/common_ops", "triton_dist"},
                            {"ditron", "triton_dist", true},
                            {"ditron/language", "dl", true}};

const Place &mainPlace(llvm::StringRef module) {
  return *llvm::find_if(places, [&](const Place &place) { return place.module == module; });
}

std::string dotted(llvm::StringRef path) {
  std::string name = path.str();
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

/// What stands at the top of each file: names that nothing of the language hides.
constexpr llvm::StringLiteral prelude =
    R"(from builtins import bool as _bool, float as _float, int as _int, str as _str, tuple as _tuple
from typing import Any as _Any, Callable as _Callable, Sequence as _Sequence, TypeAlias as _TypeAlias, Union as _Union

import triton.language as _tl

_Number: _TypeAlias = _Union[_tl.tensor, _int, _float, _bool]
_Shape: _TypeAlias = _Union[_int, _Sequence[_int]]
)";

/// A word of the stubs as a Python type.
std::string typeOf(llvm::StringRef word) {
  return llvm::StringSwitch<std::string>(word)
      .Cases({"tensor", "block", "ptr"}, "_tl.tensor")
      .Case("num", "_Number")
      .Case("int", "_int")
      .Case("bool", "_bool")
      .Case("float", "_float")
      .Case("str", "_str")
      .Case("tuple", "_tuple[_Any, ...]")
      .Case("dtype", "_tl.dtype")
      .Case("tensor_descriptor", "_tl.tensor_descriptor")
      .Case("shape", "_Shape")
      .Case("fn", "_Callable[..., _Any]")
      .Case("None", "None")
      .Default("_Any");
}

std::string paramOf(const StubParam &param, bool isSelf) {
  if (isSelf)
    return "self";
  std::string text = (param.isVariadic ? "*" : "") + param.name + ": " + typeOf(param.rule);
  if (param.takesNone && param.rule != "any")
    text += " | None";
  if (param.defaultValue)
    text += " = " + (param.defaultValue->kind() == ConstValue::Kind::Ellipsis ? std::string("()") : param.defaultValue->repr());
  return text;
}

std::string paramsOf(const std::vector<StubParam> &params, bool isMember) {
  std::string text;
  for (const StubParam &param : params)
    text += (text.empty() ? "" : ", ") + paramOf(param, isMember && &param == &params.front());
  return text;
}

std::string quotedDoc(llvm::StringRef doc) {
  std::string text;
  for (char c : doc)
    text += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return fmt::format("\"\"\"{}{}\"\"\"", text, doc.ends_with("\"") ? " " : "");
}

class EditorWriter {
public:
  explicit EditorWriter(const Stubs &stubs) : stubs(stubs) {}

  std::vector<EditorFile> run() {
    std::vector<EditorFile> files;
    for (const Place &place : places) {
      const bool isMain = &mainPlace(place.module) == &place;
      files.push_back(
          {place.path.str() + (place.isPackage ? "/__init__.pyi" : ".pyi"), isMain ? moduleText(place) : aliasText(place)});
    }
    return files;
  }

private:
  bool isThere(const StubFunction &function, llvm::StringRef module) const {
    return function.kind != StubFunction::Kind::Refused && llvm::is_contained(function.modules, module.str());
  }

  std::string functionText(const StubFunction &function, llvm::StringRef indent, bool isMember) const {
    const std::string result = function.result.empty() ? "_Any" : typeOf(function.result);
    return fmt::format("{0}def {1}({2}) -> {3}:\n{0}    {4}\n", indent.str(), function.name,
                       paramsOf(function.params, isMember), result, quotedDoc(function.doc));
  }

  std::string classText(const StubFunction &cls) const {
    const std::string owner = cls.owner + "." + cls.name;
    // What a call makes may stand for what it is made of: a tl.constexpr for an int.
    const bool isMade = cls.kind != StubFunction::Kind::Class;
    std::string text = fmt::format("class {}{}:\n    {}\n", cls.name, isMade ? "(_Any)" : "", quotedDoc(cls.doc));
    if (isMade)
      text +=
          fmt::format("    def __init__(self{}{}) -> None: ...\n", cls.params.empty() ? "" : ", ", paramsOf(cls.params, false));
    for (const StubAttribute &attribute : stubs.attributes) {
      if (attribute.owner != owner)
        continue;
      // Python's own classes compare with anything; a tensor gives a tensor.
      const bool overrides = attribute.name == "__eq__" || attribute.name == "__ne__";
      if (attribute.isOperator)
        text += fmt::format("    def {}({}) -> {}: ...{}\n", attribute.name, paramsOf(attribute.params, true),
                            typeOf(attribute.word), overrides ? "  # type: ignore[override]" : "");
      else
        text += fmt::format("    {}: {}\n", attribute.name, typeOf(attribute.word));
    }
    for (const StubFunction &function : stubs.functions)
      if (isThere(function, owner))
        text += functionText(function, "    ", true);
    return text;
  }

  std::string constantText(const StubConstant &constant, llvm::StringRef indent) const {
    if (constant.kind == StubConstant::Kind::Refused)
      return "";
    if (constant.kind == StubConstant::Kind::Annotation)
      return fmt::format("{}class {}(_Any): ...\n", indent.str(), constant.name);
    const bool isType = constant.kind == StubConstant::Kind::Type || constant.kind == StubConstant::Kind::PointerType;
    const char *type = isType ? "_tl.dtype" : "_int";
    return fmt::format("{}{}: {}\n", indent.str(), constant.name, type);
  }

  std::string moduleText(const Place &place) const {
    std::string text = prelude.str();
    for (const StubSubmodule &submodule : stubs.submodules)
      if (submodule.parent == place.module)
        text += submoduleText(place, submodule);
    for (const StubFunction &function : stubs.functions)
      if (isThere(function, place.module) && function.owner != place.module)
        text += fmt::format("from {} import {} as {}\n", dotted(mainPlace(function.owner).path), function.name, function.name);
    text += '\n';
    for (const StubConstant &constant : stubs.constants)
      if (constant.module == place.module)
        text += constantText(constant, "");
    for (const StubFunction &function : stubs.functions)
      if (isThere(function, place.module) && function.owner == place.module) {
        text += '\n' + (function.isClass ? classText(function) : functionText(function, "", false));
      }
    return text;
  }

  /// A module within this one: an import where there is a file of that name, else a class of its numbers.
  std::string submoduleText(const Place &place, const StubSubmodule &submodule) const {
    const std::string path = place.path.str() + "/" + submodule.name;
    if (llvm::any_of(places, [&](const Place &each) { return each.path == path; }))
      return fmt::format("from . import {0} as {0}\n", submodule.name);
    if (llvm::any_of(places, [&](const Place &each) { return each.module == submodule.module; }))
      return fmt::format("import {} as {}\n", dotted(mainPlace(submodule.module).path), submodule.name);
    std::string text = fmt::format("class {}:\n", submodule.name);
    for (const StubConstant &constant : stubs.constants)
      if (constant.module == submodule.module)
        text += constantText(constant, "    ");
    return text;
  }

  std::string aliasText(const Place &place) const {
    const std::string main = dotted(mainPlace(place.module).path);
    std::string text = fmt::format("from {} import *\n", main);
    for (const StubFunction &function : stubs.functions) // a star leaves these out
      if (isThere(function, place.module) && function.name.starts_with("_"))
        text += fmt::format("from {0} import {1} as {1}\n", main, function.name);
    return text;
  }

  const Stubs &stubs;
};

} // namespace

std::vector<EditorFile> editorStubs(const Stubs &stubs) { return EditorWriter(stubs).run(); }

} // namespace ditron::frontend
