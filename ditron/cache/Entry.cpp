//===- Entry.cpp - One compiled kernel as a file ------------------------------------------------------------------------===//
//
// One list of fields serves writing and reading. It takes the structs apart by structured bindings, so that a member added to
// one of them and forgotten here does not compile.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/cache/Entry.h"

#include "ditron/cache/Sha256.h"

#include <charconv>
#include <concepts>
#include <fmt/format.h>

namespace ditron::cache {

namespace {

constexpr std::string_view magic = "ditron-kernel ";
constexpr int formatVersion = 2;
constexpr size_t trailerBytes = 7 + 64 + 1; // "sha256 ", digits, newline

template <typename T>
concept Number = std::integral<T> || std::is_enum_v<T>;

/// Appends fields to a text.
class Writer {
public:
  void field(std::string_view name, const std::string &value) {
    text += fmt::format("{} {}\n", name, value.size());
    text += value;
    text += '\n';
  }
  void field(std::string_view name, Number auto value) { field(name, std::to_string(static_cast<int64_t>(value))); }
  template <typename T> void list(std::string_view name, const std::vector<T> &values, auto each) {
    field(name, values.size());
    for (const T &value : values)
      each(*this, value);
  }

  std::string text;
};

/// Takes fields from a text; after the first that is not there, nothing more is read.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  void field(std::string_view name, std::string &value) {
    const size_t lineEnd = text.find('\n');
    size_t bytes = 0;
    const bool isHeader = lineEnd != std::string_view::npos && lineEnd > name.size() + 1 && text.starts_with(name) &&
                          text[name.size()] == ' ' &&
                          parse(text.substr(name.size() + 1, lineEnd - name.size() - 1), bytes);
    if (!isHeader || bytes >= text.size() - lineEnd - 1 || text[lineEnd + 1 + bytes] != '\n')
      return fail(name);
    value = text.substr(lineEnd + 1, bytes);
    text.remove_prefix(lineEnd + 1 + bytes + 1);
  }
  template <Number T> void field(std::string_view name, T &value) {
    std::string digits;
    int64_t number = 0;
    field(name, digits);
    if (isGood() && !parse(digits, number))
      return fail(name);
    value = static_cast<T>(number);
  }
  template <typename T> void list(std::string_view name, std::vector<T> &values, auto each) {
    size_t count = 0;
    field(name, count);
    // An element takes some bytes: a count that cannot be ends the reading, not the memory.
    for (size_t i = 0; i < count && isGood(); ++i)
      each(*this, values.emplace_back());
  }

  bool isGood() const { return missing.empty(); }
  bool isAtEnd() const { return text.empty(); }
  const std::string &missingField() const { return missing; }

private:
  static bool parse(std::string_view digits, auto &value) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  }
  void fail(std::string_view name) {
    if (missing.empty())
      missing = name;
    text = {};
  }

  std::string_view text;
  std::string missing;
};

void visitParameter(auto &stream, auto &parameter) {
  auto &[name, type, bytes, divisibility] = parameter;
  stream.field("parameter", name);
  stream.field("type", type);
  stream.field("bytes", bytes);
  stream.field("divisibility", divisibility);
}

void visitMapNumber(auto &stream, auto &number) {
  auto &[parameter, value] = number;
  stream.field("of-parameter", parameter);
  stream.field("value", value);
}

void visitTensorMap(auto &stream, auto &map) {
  auto &[base, sizes, strides, box, swizzleBytes, element, fillNan] = map;
  auto mapNumber = [](auto &stream, auto &number) { visitMapNumber(stream, number); };
  stream.field("map-base", base);
  stream.list("map-sizes", sizes, mapNumber);
  stream.list("map-strides", strides, mapNumber);
  stream.list("map-box", box, [](auto &stream, auto &extent) { stream.field("extent", extent); });
  stream.field("swizzle", swizzleBytes);
  stream.field("element", element);
  stream.field("fill-nan", fillNan);
}

void visitArtifact(auto &stream, auto &artifact) {
  auto &[kernel, entrySymbol, target, sourceFile, parameters, tensorMaps, numWarps, launchWarps, threadsPerWarp,
         sharedBytes, loopsOverPrograms, codeKind, code] = artifact;
  stream.field("kernel", kernel);
  stream.field("entry", entrySymbol);
  stream.field("target", target);
  stream.field("source", sourceFile);
  stream.list("parameters", parameters, [](auto &stream, auto &parameter) { visitParameter(stream, parameter); });
  stream.list("tensor-maps", tensorMaps, [](auto &stream, auto &map) { visitTensorMap(stream, map); });
  stream.field("warps", numWarps);
  stream.field("launch-warps", launchWarps);
  stream.field("threads-per-warp", threadsPerWarp);
  stream.field("shared-bytes", sharedBytes);
  stream.field("loops-over-programs", loopsOverPrograms);
  stream.field("code-kind", codeKind);
  stream.field("code", code);
}

void visitEntry(auto &stream, auto &entry) {
  auto &[key, compiler, signature, options, messages, printed, artifact] = entry;
  stream.field("key", key);
  stream.field("compiler", compiler);
  stream.field("signature", signature);
  stream.field("options", options);
  stream.field("messages", messages);
  stream.field("printed", printed);
  visitArtifact(stream, artifact);
}

} // namespace

std::string writeEntry(const Entry &entry) {
  Writer writer;
  writer.text = fmt::format("{}{}\n", magic, formatVersion);
  visitEntry(writer, entry);
  writer.text += fmt::format("sha256 {}\n", sha256(writer.text));
  return std::move(writer.text);
}

Expected<Entry> readEntry(std::string_view bytes) {
  const size_t firstLine = bytes.find('\n');
  if (!bytes.starts_with(magic) || firstLine == std::string_view::npos)
    return invalidArgument(bytes.empty() ? "empty" : "not an entry of Ditron's cache");
  const std::string_view version = bytes.substr(magic.size(), firstLine - magic.size());
  if (version != std::to_string(formatVersion))
    return invalidArgument(
        fmt::format("of version {} of the format; this program reads {}", version.substr(0, 16), formatVersion));
  if (bytes.size() < firstLine + 1 + trailerBytes || !bytes.substr(bytes.size() - trailerBytes).starts_with("sha256 "))
    return invalidArgument("cut short");
  const std::string_view body = bytes.substr(0, bytes.size() - trailerBytes);
  if (bytes.substr(body.size() + 7, 64) != sha256(body) || bytes.back() != '\n')
    return invalidArgument("damaged: the contents do not match their hash");
  Entry entry;
  Reader reader(body.substr(firstLine + 1));
  visitEntry(reader, entry);
  if (!reader.isGood())
    return invalidArgument(fmt::format("malformed at the field '{}'", reader.missingField()));
  if (!reader.isAtEnd())
    return invalidArgument("malformed: more than an entry");
  if (entry.artifact.codeKind > ArtifactCode::Cubin || entry.artifact.codeKind < ArtifactCode::HostObject)
    return invalidArgument("malformed: code of an unknown kind");
  return entry;
}

} // namespace ditron::cache
