//===- Environment.cpp - Functions of Python that run while compiling: os ------------------------------------------===//
//
// Variables of the environment, read from the process that compiles, and the functions of os.path that only work on text.
// Each read is noted in the evaluator, for the key under which compiled kernels are kept. The file system is not looked at:
// os.path.exists and the like are not known.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <cstdlib>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// os.environ
//===------------------------------------------------------------------------------------------------------------------===//

/// The value of a variable as a str, or None if it is not set: what the program has set itself, or what the process that
/// compiles was given. Unknown if nobody would notice a change of it; poison after a reported error.
LangValue readVariable(NativeCall &call) {
  const std::string *name = call.text(call.args[0], "the name of a variable of the environment");
  if (!name)
    return LangValue::poison();
  if (const LangValue *changed = find(*call.evaluator.environmentChanges.getIf<DictValue>(), call.args[0]))
    return *changed;
  if (!call.evaluator.noteEnvironmentRead(*name))
    return call.evaluator.unknown(call.range, fmt::format("os.environ[{}]", call.args[0].repr()));
  const char *value = std::getenv(name->c_str());
  return value ? LangValue::string(value) : LangValue::none();
}

LangValue changeVariable(NativeCall &call, LangValue value) {
  setItem(*call.evaluator.environmentChanges.getIf<DictValue>(), call.args[0], std::move(value));
  return LangValue::none();
}

/// os.getenv and os.environ.get.
LangValue getVariable(NativeCall &call) {
  LangValue value = readVariable(call);
  const LangValue *fallback = call.argument(1, "default");
  return value.isNone() && fallback ? *fallback : value;
}

LangValue setVariable(NativeCall &call) {
  if (!call.args[1].isUnknown() && !call.text(call.args[1], "a variable of the environment"))
    return LangValue::poison();
  return call.args[0].isUnknown() ? call.args[0] : changeVariable(call, call.args[1]);
}

LangValue setDefault(NativeCall &call) {
  LangValue value = readVariable(call);
  if (!value.isNone())
    return value;
  changeVariable(call, call.args[1]);
  return call.args[1];
}

LangValue popVariable(NativeCall &call) {
  LangValue value = readVariable(call);
  if (value.isNone())
    return call.args.size() > 1 ? call.args[1] : call.fail(fmt::format("the environment has no variable {}", call.args[0].repr()), "KeyError");
  if (!value.isPoison())
    changeVariable(call, LangValue::none());
  return value;
}

LangValue subscriptEnvironment(NativeCall &call) {
  LangValue value = readVariable(call);
  return value.isNone() ? call.fail(fmt::format("the environment has no variable {}", call.args[0].repr()), "KeyError") : value;
}

LangValue environmentContains(NativeCall &call) {
  LangValue value = readVariable(call);
  return value.isPoison() || value.isUnknown() ? value : LangValue::boolean(!value.isNone());
}

//===------------------------------------------------------------------------------------------------------------------===//
// os.path
//===------------------------------------------------------------------------------------------------------------------===//

/// A path argument: text, or what has `__fspath__` (which is not known here). Null after a reported error.
const std::string *path(const NativeCall &call, size_t index) { return call.text(call.args[index], "a path"); }

LangValue joinPaths(NativeCall &call) {
  std::string joined;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const std::string *part = path(call, i);
    if (!part)
      return LangValue::poison();
    if (i == 0 || llvm::StringRef(*part).starts_with("/"))
      joined = *part;
    else
      joined += (joined.empty() || joined.back() == '/' ? "" : "/") + *part;
    if (!call.checkText(joined))
      return LangValue::poison();
  }
  return LangValue::string(std::move(joined));
}

/// The folder and the last name of a path.
std::pair<std::string, std::string> splitPath(llvm::StringRef text) {
  size_t last = text.rfind('/');
  if (last == llvm::StringRef::npos)
    return {"", text.str()};
  llvm::StringRef folder = text.substr(0, last + 1), trimmed = folder.rtrim('/');
  return {(trimmed.empty() ? folder : trimmed).str(), text.substr(last + 1).str()};
}

/// dirname, basename and split.
LangValue partsOfPath(NativeCall &call) {
  const std::string *text = path(call, 0);
  if (!text)
    return LangValue::poison();
  auto [folder, name] = splitPath(*text);
  llvm::StringRef wanted = call.function.shortName();
  if (wanted == "dirname" || wanted == "basename")
    return LangValue::string(wanted == "dirname" ? folder : name);
  return LangValue::tuple({LangValue::string(folder), LangValue::string(name)});
}

/// The name without its extension, and the extension. Points that begin the name are no extension.
LangValue splitExtension(NativeCall &call) {
  const std::string *text = path(call, 0);
  if (!text)
    return LangValue::poison();
  llvm::StringRef whole = *text;
  size_t nameBegin = whole.rfind('/') + 1, point = whole.rfind('.');
  size_t first = whole.find_first_not_of('.', nameBegin);
  if (point == llvm::StringRef::npos || first == llvm::StringRef::npos || point < first)
    point = whole.size();
  return LangValue::tuple(
      {LangValue::string(whole.substr(0, point).str()), LangValue::string(whole.substr(point).str())});
}

LangValue isAbsolute(NativeCall &call) {
  const std::string *text = path(call, 0);
  return text ? LangValue::boolean(llvm::StringRef(*text).starts_with("/")) : LangValue::poison();
}

std::string normalized(llvm::StringRef text) {
  llvm::StringRef root = text.starts_with("//") && !text.starts_with("///") ? "//" : text.starts_with("/") ? "/" : "";
  llvm::SmallVector<llvm::StringRef> parts, kept;
  text.split(parts, '/', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (part == ".")
      continue;
    if (part != ".." || (kept.empty() ? root.empty() : kept.back() == ".."))
      kept.push_back(part);
    else if (!kept.empty())
      kept.pop_back();
  }
  std::string result = root.str();
  for (auto [index, part] : llvm::enumerate(kept))
    result += (index ? "/" : "") + part.str();
  return result.empty() ? "." : result;
}

/// normpath; abspath of an absolute path, as the current folder is not known.
LangValue normalizePath(NativeCall &call) {
  const std::string *text = path(call, 0);
  if (!text)
    return LangValue::poison();
  if (call.function.shortName() == "abspath" && !llvm::StringRef(*text).starts_with("/"))
    return call.unknown();
  return LangValue::string(normalized(*text));
}

} // namespace

llvm::ArrayRef<NativeFunction> nativeEnvironmentMethods() {
  static constexpr NativeFunction rows[] = {
      {"os.environ.__contains__", 1, 1, environmentContains},
      {"os.environ.__getitem__", 1, 1, subscriptEnvironment},
      {"os.environ.__setitem__", 2, 2, setVariable, "", true},
      {"os.environ.get", 1, 2, getVariable, "default"},
      {"os.environ.pop", 1, 2, popVariable},
      {"os.environ.setdefault", 2, 2, setDefault},
  };
  return rows;
}

llvm::ArrayRef<NativeFunction> nativeEnvironmentFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"os.fspath", 1, 1, [](NativeCall &call) { return path(call, 0) ? call.args[0] : LangValue::poison(); }},
      {"os.getenv", 1, 2, getVariable, "default"},
      {"os.path.abspath", 1, 1, normalizePath},
      {"os.path.basename", 1, 1, partsOfPath},
      {"os.path.dirname", 1, 1, partsOfPath},
      {"os.path.isabs", 1, 1, isAbsolute},
      {"os.path.join", 1, any, joinPaths},
      {"os.path.normpath", 1, 1, normalizePath},
      {"os.path.split", 1, 1, partsOfPath},
      {"os.path.splitext", 1, 1, splitExtension},
  };
  return rows;
}

} // namespace ditron::frontend
