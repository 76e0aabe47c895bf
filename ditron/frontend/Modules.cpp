//===- Modules.cpp - The files of one import ------------------------------------------------------------------------------===//
//
// Looks for modules as Python does: packages with an `__init__.py` before modules before plain folders.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Modules.h"

#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/syntax/Parser.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::frontend {

namespace fs = std::filesystem;

namespace {

/// The most files that one kernel may need.
constexpr size_t maxFiles = 4096;

std::string join(const std::string &folder, const std::string &name) {
  return (fs::path(folder) / name).lexically_normal().string();
}

std::string folderOf(const std::string &path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string parentOf(const std::string &folder) {
  std::error_code error;
  fs::path absolute = fs::absolute(folder, error).lexically_normal();
  if (!absolute.has_filename())
    absolute = absolute.parent_path();
  return absolute.parent_path().string();
}

} // namespace

Modules::Modules(DiagnosticEngine &diagnostics, std::vector<std::string> searchPaths, std::vector<SourceText> texts)
    : diagnostics(diagnostics), searchPaths(std::move(searchPaths)), texts(std::move(texts)) {}

bool Modules::exists(const std::string &path) const {
  std::error_code error;
  return llvm::any_of(texts, [&](const SourceText &text) { return text.module.empty() && text.path == path; }) ||
         fs::is_regular_file(path, error);
}

const ModuleScope *Modules::addRoot(const SourceFile &file) {
  std::string path = file.path().str();
  rootFolder = folderOf(path);
  File &entry = files[fs::path(path).lexically_normal().string()];
  entry.id = file.id();
  entry.module = parseModule(file, diagnostics);
  entry.scope = std::make_unique<ModuleScope>(
      *entry.module, ScopeOrigin{this, path, rootFolder, fs::path(path).filename() == "__init__.py"});
  order.push_back(entry.scope.get());
  return entry.scope.get();
}

const ModuleScope *Modules::open(const std::string &path, bool isPackage) {
  auto [it, isNew] = files.try_emplace(path);
  File &entry = it->second;
  if (!isNew)
    return entry.scope.get();
  SourceManager &sources = diagnostics.sourceManager();
  auto given = llvm::find_if(texts, [&](const SourceText &text) { return text.module.empty() && text.path == path; });
  auto id = given != texts.end() ? sources.add(path, given->text) : sources.load(path);
  if (!id.isOk() || files.size() > maxFiles)
    return nullptr;
  entry.id = *id;
  entry.module = parseModule(sources.file(*id), diagnostics);
  entry.scope = std::make_unique<ModuleScope>(*entry.module, ScopeOrigin{this, path, folderOf(path), isPackage});
  order.push_back(entry.scope.get());
  return entry.scope.get();
}

const ModuleScope *Modules::openGiven(llvm::StringRef module) {
  auto given = llvm::find_if(texts, [&](const SourceText &text) { return !module.empty() && text.module == module; });
  if (given == texts.end())
    return nullptr;
  std::string key = fmt::format("<{}>", module.str());
  auto [it, isNew] = files.try_emplace(key);
  File &entry = it->second;
  if (!isNew)
    return entry.scope.get();
  SourceManager &sources = diagnostics.sourceManager();
  auto id = sources.add(given->path, given->text);
  if (!id.isOk())
    return nullptr;
  entry.id = *id;
  entry.given = given->module;
  entry.module = parseModule(sources.file(*id), diagnostics);
  entry.scope = std::make_unique<ModuleScope>(*entry.module, ScopeOrigin{this, key, folderOf(given->path), false});
  order.push_back(entry.scope.get());
  return entry.scope.get();
}

const ModuleScope *Modules::openFolder(const std::string &folder) {
  if (std::string init = join(folder, "__init__.py"); exists(init))
    return open(init, true);
  std::error_code error;
  const std::string prefix = folder + "/";
  if (!fs::is_directory(folder, error) &&
      llvm::none_of(texts, [&](const SourceText &text) { return text.module.empty() && text.path.starts_with(prefix); }))
    return nullptr;
  auto [it, isNew] = files.try_emplace(folder);
  File &entry = it->second;
  if (isNew) {
    entry.module = std::make_unique<ast::Module>(noFile);
    entry.scope = std::make_unique<ModuleScope>(*entry.module, ScopeOrigin{this, folder, folder, true});
  }
  return entry.scope.get();
}

const ModuleScope *Modules::lookIn(const std::string &folder, llvm::ArrayRef<llvm::StringRef> parts,
                                   bool takesFolders) {
  std::string place = folder;
  for (llvm::StringRef part : parts.drop_back())
    place = join(place, part.str());
  place = join(place, parts.back().str());
  if (std::string init = join(place, "__init__.py"); exists(init))
    return open(init, true);
  if (exists(place + ".py"))
    return open(place + ".py", false);
  return takesFolders ? openFolder(place) : nullptr;
}

std::vector<std::string> Modules::rootsOf(const ModuleScope &from) const {
  std::vector<std::string> roots;
  auto add = [&](const std::string &root) {
    std::string folder = root.empty() ? "." : fs::path(root).lexically_normal().string();
    if (llvm::find(roots, folder) == roots.end())
      roots.push_back(folder);
  };
  add(from.origin.folder);
  // The folder that holds the outermost package of the file.
  std::string folder = from.origin.folder;
  bool isInPackage = false;
  while (exists(join(folder, "__init__.py"))) {
    isInPackage = true;
    std::string parent = parentOf(folder);
    if (parent == folder)
      break;
    folder = parent;
  }
  if (isInPackage)
    add(folder);
  add(rootFolder);
  for (const std::string &path : searchPaths)
    add(path);
  return roots;
}

const ModuleScope *Modules::find(const ModuleScope &from, llvm::StringRef module) {
  // Python's own modules are never files of the user's.
  static const llvm::StringLiteral hostModules[] = {"math",      "os",       "sys",         "typing",     "functools", "itertools",
                                                    "operator",  "enum",     "collections", "dataclasses", "importlib", "contextlib",
                                                    "functools", "platform", "warnings",    "logging",    "re",        "abc"};
  if (!from.origin.modules || llvm::is_contained(hostModules, module.split('.').first))
    return nullptr;
  llvm::StringRef dotted = module.ltrim('.');
  size_t level = module.size() - dotted.size();
  llvm::SmallVector<llvm::StringRef> parts;
  if (!dotted.empty())
    dotted.split(parts, '.');
  if (llvm::any_of(parts, [](llvm::StringRef part) { return part.empty(); }))
    return nullptr;
  if (level != 0) {
    std::string folder = from.origin.folder;
    for (size_t i = 1; i < level; ++i)
      folder = parentOf(folder);
    return parts.empty() ? openFolder(folder) : lookIn(folder, parts, true);
  }
  if (parts.empty())
    return nullptr;
  if (const ModuleScope *given = openGiven(module))
    return given;
  for (bool takesFolders : {false, true})
    for (const std::string &root : rootsOf(from))
      if (const ModuleScope *scope = lookIn(root, parts, takesFolders))
        return scope;
  return nullptr;
}

const ModuleScope *Modules::findSubmodule(const ModuleScope &package, llvm::StringRef name) {
  return package.origin.isPackage ? lookIn(package.origin.folder, name, true) : nullptr;
}

std::string Modules::searchedPlaces(const ForeignValue &foreign) const {
  if (!foreign.scope)
    return "";
  llvm::StringRef module = foreign.module;
  llvm::StringRef dotted = module.ltrim('.');
  std::vector<std::string> places;
  if (size_t level = module.size() - dotted.size()) {
    std::string folder = foreign.scope->origin.folder;
    for (size_t i = 1; i < level; ++i)
      folder = parentOf(folder);
    places.push_back(folder);
  } else {
    places = rootsOf(*foreign.scope);
  }
  return fmt::format("'{}'", fmt::join(places, "', '"));
}

void Modules::loadAll() {
  for (size_t i = 0; i < order.size(); ++i) { // grows while it is walked
    const ModuleScope &scope = *order[i];
    auto follow = [&](llvm::StringRef module) {
      if (module.starts_with(".") || !findModule(module) || module.contains(".kernels"))
        return find(scope, module);
      return static_cast<const ModuleScope *>(nullptr);
    };
    auto visit = [&](const ast::Node *node) {
      if (const auto *import = llvm::dyn_cast<ast::Import>(node)) {
        for (const ast::Alias &alias : import->names)
          follow(alias.name.text);
      } else if (const auto *import = llvm::dyn_cast<ast::ImportFrom>(node)) {
        const ModuleScope *file = follow(std::string(import->level, '.') + import->module.text.str());
        for (const ast::Alias &alias : import->names)
          if (file && alias.name.text != "*")
            findSubmodule(*file, alias.name.text);
      }
      return !llvm::isa<ast::Expr>(node);
    };
    for (const ast::Stmt *statement : scope.module.body)
      ast::walk(statement, visit);
  }
}

bool Modules::mentions(llvm::StringRef name) const {
  auto quotes = [&](llvm::StringRef text, char quote) { return text.contains(quote + name.str() + quote); };
  return llvm::any_of(order, [&](const ModuleScope *scope) {
    auto it = files.find(scope->origin.path);
    if (it == files.end() || it->second.id == noFile)
      return false;
    llvm::StringRef text = diagnostics.sourceManager().file(it->second.id).text();
    return quotes(text, '"') || quotes(text, '\'');
  });
}

std::vector<SourceText> Modules::importedTexts() const {
  std::vector<SourceText> result;
  for (const ModuleScope *scope : llvm::drop_begin(order)) {
    auto it = files.find(scope->origin.path);
    const SourceFile &file = diagnostics.sourceManager().file(it->second.id);
    result.push_back({file.path().str(), file.text().str(), it->second.given});
  }
  return result;
}

} // namespace ditron::frontend
