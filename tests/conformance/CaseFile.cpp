//===- CaseFile.cpp - Files of conformance cases ------------------------------------------------------------------------===//
//
// Lines that begin with `---` divide a file: `--- kernel NAME` begins a kernel's text, `--- cases` a list of cases, one
// JSON object per line.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "CaseFile.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <zlib.h>

namespace ditron::conformance {
namespace {

constexpr std::string_view imports = "import triton\nimport triton.language as tl\n";

Status badFile(const std::filesystem::path &path, size_t line, const std::string &what) {
  return invalidArgument(fmt::format("{}:{}: {}", path.string(), line, what));
}

/// The `.ref` file: the size in 8 bytes, then one zlib stream.
Expected<std::shared_ptr<const std::vector<std::byte>>> readReferences(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::shared_ptr<const std::vector<std::byte>>();
  const std::string packed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uint64_t size = 0;
  if (packed.size() < sizeof(size))
    return badFile(path, 1, "too short");
  std::memcpy(&size, packed.data(), sizeof(size));
  if (size > (1u << 30))
    return badFile(path, 1, "no sensible size at its beginning");
  auto data = std::make_shared<std::vector<std::byte>>(size);
  uLongf written = size;
  if (uncompress(reinterpret_cast<Bytef *>(data->data()), &written,
                 reinterpret_cast<const Bytef *>(packed.data() + sizeof(size)), packed.size() - sizeof(size)) != Z_OK ||
      written != size)
    return badFile(path, 1, "damaged");
  return std::shared_ptr<const std::vector<std::byte>>(std::move(data));
}

/// Every `${NAME}` of a text replaced. Replacements may hold further ones.
std::string substitute(std::string text, const nlohmann::json &values) {
  for (int round = 0; round < 4; ++round) {
    const std::string before = text;
    for (const auto &[name, value] : values.items()) {
      const std::string mark = "${" + name + "}";
      const std::string replacement = value.is_string() ? value.get<std::string>() : value.dump();
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + replacement.size()))
        text.replace(at, mark.size(), replacement);
    }
    if (text == before)
      break;
  }
  return text;
}

} // namespace

Expected<std::vector<Case>> readCases(const std::filesystem::path &path) {
  std::ifstream file(path);
  if (!file)
    return Status(StatusCode::NotFound, fmt::format("{}: cannot be read", path.string()));
  std::filesystem::path referencePath = path;
  referencePath.replace_extension(".ref");
  DITRON_ASSIGN_OR_RETURN(auto references, readReferences(referencePath));

  std::map<std::string, std::string> kernels;
  std::string *kernel = nullptr;
  bool inCases = false;
  std::vector<Case> cases;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("---")) {
      inCases = line == "--- cases";
      kernel = nullptr;
      if (line.starts_with("--- kernel ")) {
        const std::string name = line.substr(11);
        if (kernels.contains(name))
          return badFile(path, number, fmt::format("kernel '{}' is defined a second time", name));
        kernel = &kernels[name];
      } else if (!inCases) {
        return badFile(path, number, "expected `--- kernel NAME` or `--- cases`");
      }
      continue;
    }
    if (kernel) {
      *kernel += line + "\n";
      continue;
    }
    if (line.empty() || line.starts_with("#"))
      continue;
    if (!inCases)
      return badFile(path, number, "text before the first `--- kernel NAME`");

    Case result;
    result.fields = nlohmann::json::parse(line, nullptr, false);
    if (!result.fields.is_object())
      return badFile(path, number, "not a JSON object");
    if (!result.fields.contains("name") || !result.fields.contains("kernel"))
      return badFile(path, number, "a case needs \"name\" and \"kernel\"");
    result.name = result.fields["name"];
    result.entry = result.fields.value("entry", "kernel");
    const std::string kernelName = result.fields["kernel"];
    const auto text = kernels.find(kernelName);
    if (text == kernels.end())
      return badFile(path, number, fmt::format("no kernel '{}' above", kernelName));
    result.kernelText = substitute(text->second, result.fields.value("with", nlohmann::json::object()));
    if (!result.kernelText.starts_with("import") && !result.kernelText.starts_with("from"))
      result.kernelText = std::string(imports) + result.kernelText;
    const size_t def = result.kernelText.find("def " + result.entry + "(");
    if (def == std::string::npos)
      return badFile(path, number, fmt::format("kernel '{}' has no function '{}'", kernelName, result.entry));
    result.defLine = 1 + std::count(result.kernelText.begin(), result.kernelText.begin() + def, '\n');
    result.references = references;
    result.folder = path.parent_path();
    cases.push_back(std::move(result));
  }
  return cases;
}

Expected<std::vector<Case>> readCaseFolder(const std::filesystem::path &folder) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".cases")
      paths.push_back(entry.path());
  if (error || paths.empty())
    return Status(StatusCode::NotFound, fmt::format("{}: no .cases files there", folder.string()));
  std::sort(paths.begin(), paths.end());
  std::vector<Case> all;
  std::set<std::string> names;
  for (const std::filesystem::path &path : paths) {
    DITRON_ASSIGN_OR_RETURN(std::vector<Case> cases, readCases(path));
    for (Case &one : cases) {
      if (!names.insert(one.name).second)
        return invalidArgument(fmt::format("{}: case {} exists twice", path.string(), one.name));
      all.push_back(std::move(one));
    }
  }
  return all;
}

} // namespace ditron::conformance
