//===- PackageFile.cpp - Packages as bytes -------------------------------------------------------------------------------===//
//
// One list of fields serves writing and reading. It takes the structs apart by structured bindings, so that a member added to
// one of them and forgotten here does not compile.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/package/PackageFile.h"

#include "ditron/cache/Sha256.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace ditron::package {

namespace {

constexpr std::string_view magic = "DITRONPK";

/// The kinds of Value, as the file counts them.
enum class ValueKind : uint8_t { None, Bool, Signed, Unsigned, Float, Text, Type };
constexpr uint8_t mostTypes = static_cast<uint8_t>(DataType::F64);

/// The hash in bytes.
std::string rawHash(std::string_view bytes) {
  const std::string digits = cache::sha256(bytes);
  std::string raw;
  auto nibble = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    raw += static_cast<char>(nibble(digits[i]) << 4 | nibble(digits[i + 1]));
  return raw;
}

/// Appends fields.
class Writer {
public:
  static constexpr bool isWriting = true;

  void number(std::unsigned_integral auto value) {
    for (size_t i = 0; i < sizeof(value); ++i)
      bytes += static_cast<char>(static_cast<uint64_t>(value) >> 8 * i);
  }
  void field(std::unsigned_integral auto value) { number(value); }
  void field(int32_t value) { number(static_cast<uint32_t>(value)); }
  void field(int64_t value) { number(static_cast<uint64_t>(value)); }
  void field(bool value) { number(static_cast<uint8_t>(value)); }
  void field(const std::string &text) {
    number(static_cast<uint32_t>(text.size()));
    bytes += text;
  }
  void blob(const std::string &text) {
    number(static_cast<uint64_t>(text.size()));
    bytes += text;
  }
  template <typename Enum> void choice(Enum value, Enum) { number(static_cast<uint8_t>(value)); }
  template <typename T> void list(const std::vector<T> &values, size_t, auto each) {
    number(static_cast<uint32_t>(values.size()));
    for (const T &value : values)
      each(*this, value);
  }

  std::string bytes;
};

/// Takes fields from bytes; behind the first that is not there or not right, nothing more is read.
class Reader {
public:
  static constexpr bool isWriting = false;

  explicit Reader(std::string_view bytes) : bytes(bytes), total(bytes.size()) {}

  template <std::unsigned_integral T> void number(T &value) {
    if (bytes.size() < sizeof(T))
      return fail("it ends too early");
    uint64_t wide = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      wide |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
    value = static_cast<T>(wide);
    bytes.remove_prefix(sizeof(T));
  }
  void field(std::unsigned_integral auto &value) { number(value); }
  void field(int32_t &value) {
    uint32_t bits = 0;
    number(bits);
    value = static_cast<int32_t>(bits);
  }
  void field(int64_t &value) {
    uint64_t bits = 0;
    number(bits);
    value = static_cast<int64_t>(bits);
  }
  void field(bool &value) {
    uint8_t byte = 0;
    number(byte);
    if (byte > 1)
      fail(fmt::format("a bool is {}", byte));
    value = byte == 1;
  }
  void field(std::string &text) {
    uint32_t size = 0;
    number(size);
    take(size, text);
  }
  void blob(std::string &text) {
    uint64_t size = 0;
    number(size);
    take(size, text);
  }
  /// An enumeration of which `last` is the last.
  template <typename Enum> void choice(Enum &value, Enum last) {
    uint8_t byte = 0;
    number(byte);
    if (byte > static_cast<uint8_t>(last))
      return fail(fmt::format("a choice is {}; accepted are 0 to {}", byte, static_cast<uint8_t>(last)));
    value = static_cast<Enum>(byte);
  }
  /// A list of elements that take `least` bytes each: a count that cannot be ends the reading, not the memory.
  template <typename T> void list(std::vector<T> &values, size_t least, auto each) {
    uint32_t count = 0;
    number(count);
    if (isGood() && count > bytes.size() / least)
      return fail(fmt::format("a list of {} elements in {} bytes", count, bytes.size()));
    for (uint32_t i = 0; i < count && isGood(); ++i)
      each(*this, values.emplace_back());
  }
  void fail(std::string what) {
    if (problem.empty())
      problem = fmt::format("at byte {}: {}", headerBytes + total - bytes.size(), what);
    bytes = {};
  }

  bool isGood() const { return problem.empty(); }
  bool isAtEnd() const { return bytes.empty(); }
  const std::string &what() const { return problem; }

private:
  void take(uint64_t size, std::string &text) {
    if (!isGood())
      return;
    if (size > bytes.size())
      return fail(fmt::format("{} bytes are announced and {} are left", size, bytes.size()));
    text = bytes.substr(0, size);
    bytes.remove_prefix(size);
  }

  std::string_view bytes;
  const size_t total;
  std::string problem;
};

void writeValue(Writer &stream, const Value &value) {
  auto kind = [&](ValueKind each) { stream.number(static_cast<uint8_t>(each)); };
  if (value.is<bool>()) {
    kind(ValueKind::Bool);
    stream.field(value.get<bool>());
  } else if (value.is<int64_t>()) {
    kind(ValueKind::Signed);
    stream.field(value.get<int64_t>());
  } else if (value.is<uint64_t>()) {
    kind(ValueKind::Unsigned);
    stream.field(value.get<uint64_t>());
  } else if (value.is<double>()) {
    kind(ValueKind::Float);
    stream.number(std::bit_cast<uint64_t>(value.get<double>()));
  } else if (value.is<std::string>()) {
    kind(ValueKind::Text);
    stream.field(value.get<std::string>());
  } else if (value.is<DataType>()) {
    kind(ValueKind::Type);
    stream.number(static_cast<uint8_t>(value.get<DataType>()));
  } else {
    kind(ValueKind::None);
  }
}

template <typename T> T readField(Reader &stream) {
  T value = {};
  stream.field(value);
  return value;
}

void readValue(Reader &stream, Value &value) {
  ValueKind kind = ValueKind::None;
  stream.choice(kind, ValueKind::Type);
  switch (kind) {
  case ValueKind::None: value = runtime::None(); break;
  case ValueKind::Bool: value = readField<bool>(stream); break;
  case ValueKind::Signed: value = readField<int64_t>(stream); break;
  case ValueKind::Unsigned: value = readField<uint64_t>(stream); break;
  case ValueKind::Float: value = std::bit_cast<double>(readField<uint64_t>(stream)); break;
  case ValueKind::Text: value = readField<std::string>(stream); break;
  case ValueKind::Type: {
    const uint8_t type = readField<uint8_t>(stream);
    if (type > mostTypes)
      return stream.fail(fmt::format("an element type is {}; accepted are 0 to {}", type, mostTypes));
    value = static_cast<DataType>(type);
  }
  }
}

void visitValue(Writer &stream, const Value &value) { writeValue(stream, value); }
void visitValue(Reader &stream, Value &value) { readValue(stream, value); }

void visitText(auto &stream, auto &text) { stream.field(text); }

void visitStamp(auto &stream, auto &stamp) {
  auto &[name, hash] = stamp;
  stream.field(name);
  stream.field(hash);
}

void visitParameter(auto &stream, auto &parameter) {
  auto &[name, isConstexpr, hasDefault, specialiseValue, specialiseAlignment, isTuned, isComputed, defaultValue, type] =
      parameter;
  stream.field(name);
  for (auto *flag : {&isConstexpr, &hasDefault, &specialiseValue, &specialiseAlignment, &isTuned, &isComputed})
    stream.field(*flag);
  bool isKnown = defaultValue.has_value();
  stream.field(isKnown);
  if constexpr (!std::remove_reference_t<decltype(stream)>::isWriting)
    if (isKnown)
      defaultValue.emplace();
  if (isKnown)
    visitValue(stream, *defaultValue);
  stream.field(type);
}

void visitItem(auto &stream, auto &item) {
  auto &[path, kind, value, type, divisibility, block, fillNan, sizeDivisibility] = item;
  stream.field(path);
  stream.choice(kind, Item::Kind::Descriptor);
  visitValue(stream, value);
  stream.field(type);
  stream.field(divisibility);
  stream.list(block, 4, [](auto &inner, auto &extent) { inner.field(extent); });
  stream.field(fillNan);
  stream.field(sizeDivisibility);
}

void visitLaunchParameter(auto &stream, auto &parameter) {
  auto &[name, type, bytes, divisibility] = parameter;
  stream.field(name);
  stream.field(type);
  stream.field(bytes);
  stream.field(divisibility);
}

void visitMapNumber(auto &stream, auto &number) {
  auto &[parameter, value] = number;
  stream.field(parameter);
  stream.field(value);
}

void visitTensorMap(auto &stream, auto &map) {
  auto &[base, sizes, strides, box, swizzleBytes, element, fillNan] = map;
  auto mapNumber = [](auto &inner, auto &number) { visitMapNumber(inner, number); };
  stream.field(base);
  stream.list(sizes, 12, mapNumber);
  stream.list(strides, 12, mapNumber);
  stream.list(box, 4, [](auto &inner, auto &extent) { inner.field(extent); });
  stream.field(swizzleBytes);
  stream.field(element);
  stream.field(fillNan);
}

void visitArtifact(auto &stream, auto &artifact) {
  // The code stands beside the artifact, in all its forms.
  auto &[kernel, entrySymbol, target, sourceFile, parameters, tensorMaps, numWarps, launchWarps, threadsPerWarp,
         sharedBytes, loopsOverPrograms, codeKind, code] = artifact;
  stream.field(kernel);
  stream.field(entrySymbol);
  stream.field(target);
  stream.field(sourceFile);
  stream.list(parameters, 16, [](auto &inner, auto &each) { visitLaunchParameter(inner, each); });
  stream.list(tensorMaps, 25, [](auto &inner, auto &each) { visitTensorMap(inner, each); });
  stream.field(numWarps);
  stream.field(launchWarps);
  stream.field(threadsPerWarp);
  stream.field(sharedBytes);
  stream.field(loopsOverPrograms);
}

void visitCode(auto &stream, auto &code) {
  auto &[kind, bytes] = code;
  stream.choice(kind, ArtifactCode::Cubin);
  stream.blob(bytes);
}

void visitVariant(auto &stream, auto &variant) {
  auto &[signature, numStages, debug, config, items, artifact, codes] = variant;
  stream.field(signature);
  stream.field(numStages);
  stream.field(debug);
  stream.field(config);
  stream.list(items, 23, [](auto &inner, auto &each) { visitItem(inner, each); });
  visitArtifact(stream, artifact);
  stream.list(codes, 9, [](auto &inner, auto &each) { visitCode(inner, each); });
}

void visitKernel(auto &stream, auto &kernel) {
  auto &[name, source, imports, parameters, variants] = kernel;
  stream.field(name);
  visitStamp(stream, source);
  stream.list(imports, 8, [](auto &inner, auto &each) { visitStamp(inner, each); });
  stream.list(parameters, 15, [](auto &inner, auto &each) { visitParameter(inner, each); });
  stream.list(variants, 66, [](auto &inner, auto &each) { visitVariant(inner, each); });
}

void visitPlan(auto &stream, auto &plan) {
  auto &[op, target, problem, choice, workspaceBytes] = plan;
  for (auto *text : {&op, &target, &problem, &choice})
    stream.field(*text);
  stream.field(workspaceBytes);
}

void visitPackage(auto &stream, auto &package) {
  auto &[compiler, features, kernels, plans] = package;
  stream.field(compiler);
  stream.list(features, 4, [](auto &inner, auto &each) { visitText(inner, each); });
  stream.list(kernels, 24, [](auto &inner, auto &each) { visitKernel(inner, each); });
  stream.list(plans, 24, [](auto &inner, auto &each) { visitPlan(inner, each); });
}

} // namespace

std::string writePackage(const Package &package) {
  Writer body;
  visitPackage(body, package);
  Writer file;
  file.bytes = magic;
  file.number(formatVersion);
  file.number(uint32_t(0));
  file.number(static_cast<uint64_t>(headerBytes + body.bytes.size() + hashBytes));
  file.bytes += body.bytes;
  file.bytes += rawHash(file.bytes);
  return std::move(file.bytes);
}

Expected<Package> readPackage(std::string_view bytes) {
  if (!bytes.starts_with(magic))
    return invalidArgument(bytes.empty() ? "it is empty" : "it is no package of Ditron");
  if (bytes.size() < headerBytes + hashBytes)
    return invalidArgument(fmt::format("it has {} bytes, less than the smallest package", bytes.size()));
  Reader header(bytes.substr(magic.size(), headerBytes - magic.size()));
  uint32_t version = 0, reserved = 0;
  uint64_t size = 0;
  header.number(version);
  header.number(reserved);
  header.number(size);
  if (version != formatVersion || reserved != 0)
    return unsupported(
        fmt::format("it is of version {} of the format; this program reads {}: build it again with this version",
                    version, formatVersion));
  if (size != bytes.size())
    return invalidArgument(
        fmt::format("it has {} bytes and should have {}: it was cut short or appended to", bytes.size(), size));
  const std::string_view body = bytes.substr(0, bytes.size() - hashBytes);
  if (bytes.substr(body.size()) != rawHash(body))
    return invalidArgument("it is damaged: its contents do not match its hash");
  Package package;
  Reader reader(body.substr(headerBytes));
  visitPackage(reader, package);
  if (!reader.isGood())
    return invalidArgument(fmt::format("it is malformed {}", reader.what()));
  if (!reader.isAtEnd())
    return invalidArgument("it is malformed: there is more than a package");
  if (const Status status = verify(package); !status.isOk())
    return Status(status.code(), "it is malformed: " + status.message());
  return package;
}

Status savePackage(const std::string &path, const Package &package) {
  DITRON_RETURN_IF_ERROR(verify(package).withContext("compiler bug: the package cannot be read back"));
  return writeWholeFile(path, writePackage(package));
}

/// The file's bytes, but no more than the first ones if it is no package: a device that never ends is seen at once.
static Expected<std::string> readPackageFile(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path, "package"));
  std::string bytes(magic.size(), 0);
  DITRON_ASSIGN_OR_RETURN(const uint64_t got, file.read(bytes.data(), bytes.size()));
  bytes.resize(got);
  if (bytes != magic)
    return bytes;
  DITRON_ASSIGN_OR_RETURN(const std::string rest, readToEnd(file, mostPackageBytes));
  return bytes + rest;
}

Expected<Package> loadPackage(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(const std::string bytes, readPackageFile(path));
  Expected<Package> package = readPackage(bytes);
  if (!package.isOk())
    return package.status().withContext(fmt::format("package '{}'", path));
  return package;
}

} // namespace ditron::package
