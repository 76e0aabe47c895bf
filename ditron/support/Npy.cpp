//===- Npy.cpp - NumPy array files --------------------------------------------------------------------------------===//
//
// The header of an .npy file is a Python dictionary literal with exactly the keys descr, fortran_order and shape. A
// small scanner reads just that form; anything else is refused with its position.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/Npy.h"

#include "ditron/support/HostMemory.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace ditron {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Scans the dictionary literal of a header.
class HeaderScanner {
public:
  HeaderScanner(std::string_view text, const std::string &name) : text(text), name(name) {}

  Expected<Header> scan() {
    Header header;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return fail("'{'");
    while (!take('}')) {
      std::string key;
      if (!takeString(key) || !take(':'))
        return fail("a quoted key and ':'");
      if (key == "descr") {
        skipSpace();
        if (position < text.size() && text[position] == '[')
          return unsupported(fmt::format("{}: structured arrays (records) are not supported; save one field", name));
        if (!takeString(header.descr))
          return fail("a quoted type after 'descr'");
        hasDescr = true;
      } else if (key == "fortran_order") {
        if (takeWord("True"))
          header.fortranOrder = true;
        else if (!takeWord("False"))
          return fail("True or False after 'fortran_order'");
        hasOrder = true;
      } else if (key == "shape") {
        if (!takeShape(header.shape))
          return fail("a tuple of sizes after 'shape'");
        hasShape = true;
      } else {
        return invalidArgument(fmt::format("{}: unknown key '{}' in the .npy header", name, key));
      }
      take(',');
    }
    if (!hasDescr || !hasOrder || !hasShape)
      return invalidArgument(fmt::format("{}: the .npy header lacks descr, fortran_order or shape", name));
    return header;
  }

private:
  Status fail(std::string_view wanted) const {
    return invalidArgument(
        fmt::format("{}: damaged .npy header: expected {} at byte {} of it", name, wanted, position));
  }
  void skipSpace() {
    while (position < text.size() && std::isspace(static_cast<unsigned char>(text[position])))
      ++position;
  }
  bool take(char c) {
    skipSpace();
    if (position >= text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }
  bool takeWord(std::string_view word) {
    skipSpace();
    if (text.substr(position, word.size()) != word)
      return false;
    position += word.size();
    return true;
  }
  bool takeString(std::string &value) {
    skipSpace();
    if (position >= text.size() || (text[position] != '\'' && text[position] != '"'))
      return false;
    const size_t end = text.find(text[position], position + 1);
    if (end == std::string_view::npos)
      return false;
    value = text.substr(position + 1, end - position - 1);
    position = end + 1;
    return true;
  }
  bool takeShape(std::vector<int64_t> &shape) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] = std::from_chars(text.data() + position, text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        return false;
      position = static_cast<size_t>(end - text.data());
      shape.push_back(size);
      take(',');
    }
    return true;
  }

  std::string_view text;
  const std::string &name;
  size_t position = 0;
};

Expected<DataType> typeOfDescr(const std::string &descr, const std::string &name) {
  const std::string accepted = "accepted are b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4, f8, little-endian";
  std::string_view text = descr;
  if (!text.empty() && text.front() == '>' && text.size() > 2 && text.back() != '1')
    return unsupported(fmt::format("{}: the elements are big-endian ({}); {}", name, descr, accepted));
  if (!text.empty() && (text.front() == '<' || text.front() == '|' || text.front() == '=' || text.front() == '>'))
    text.remove_prefix(1);
  struct Row {
    std::string_view text;
    DataType type;
  };
  static constexpr Row rows[] = {
      {"b1", DataType::I1},  {"i1", DataType::I8},  {"i2", DataType::I16}, {"i4", DataType::I32}, {"i8", DataType::I64},
      {"u1", DataType::U8},  {"u2", DataType::U16}, {"u4", DataType::U32}, {"u8", DataType::U64}, {"f2", DataType::F16},
      {"f4", DataType::F32}, {"f8", DataType::F64}, {"V1", DataType::U8},  {"V2", DataType::U16},
  };
  for (const Row &row : rows)
    if (row.text == text)
      return row.type;
  return unsupported(fmt::format("{}: element type '{}' is not supported; {}", name, descr, accepted));
}

std::string_view descrOf(DataType type) {
  switch (type) {
  case DataType::I1: return "|b1";
  case DataType::I8: return "|i1";
  case DataType::I16: return "<i2";
  case DataType::I32: return "<i4";
  case DataType::I64: return "<i8";
  case DataType::U8: return "|u1";
  case DataType::U16: return "<u2";
  case DataType::U32: return "<u4";
  case DataType::U64: return "<u8";
  case DataType::F8E5: return "|u1";
  case DataType::F8E4NV: return "|u1";
  case DataType::F16: return "<f2";
  case DataType::BF16: return "<u2";
  case DataType::F32: return "<f4";
  case DataType::F64: return "<f8";
  }
  return "|u1";
}

} // namespace

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t NpyArray::elementCount() const { return ditron::elementCount(shape); }

std::string shapeToString(std::span<const int64_t> shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape.begin(), shape.end(), "x"));
}

Expected<NpyArray> parseNpy(std::span<const std::byte> bytes, const std::string &name) {
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (text.substr(0, magic.size()) != magic || text.size() < 10)
    return invalidArgument(fmt::format("{}: not an .npy file (it does not begin with \\x93NUMPY)", name));
  const unsigned major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3)
    return unsupported(fmt::format("{}: .npy version {} is not supported; accepted are 1, 2 and 3", name, major));
  // Version 1 has a 2-byte header length, later ones a 4-byte one.
  const size_t lengthBytes = major == 1 ? 2 : 4;
  uint32_t headerLength = 0;
  if (text.size() < 8 + lengthBytes)
    return invalidArgument(fmt::format("{}: the file ends inside the .npy header", name));
  for (size_t i = 0; i < lengthBytes; ++i)
    headerLength |= static_cast<uint32_t>(static_cast<unsigned char>(text[8 + i])) << (8 * i);
  const size_t dataStart = 8 + lengthBytes + headerLength;
  if (dataStart > text.size())
    return invalidArgument(fmt::format("{}: the file ends inside the .npy header", name));

  DITRON_ASSIGN_OR_RETURN(Header header, HeaderScanner(text.substr(8 + lengthBytes, headerLength), name).scan());
  NpyArray array;
  DITRON_ASSIGN_OR_RETURN(array.type, typeOfDescr(header.descr, name));
  // One dimension is both orders at once.
  const auto longDimensions = std::count_if(header.shape.begin(), header.shape.end(), [](int64_t n) { return n != 1; });
  if (header.fortranOrder && longDimensions > 1)
    return unsupported(fmt::format("{}: the array is in Fortran order; save numpy.ascontiguousarray(x)", name));
  array.shape = header.shape;
  uint64_t wanted = sizeOf(array.type);
  for (int64_t size : array.shape)
    if (size != 0 && wanted > std::numeric_limits<uint64_t>::max() / 2 / static_cast<uint64_t>(size))
      return invalidArgument(fmt::format("{}: the shape {} is too large", name, shapeToString(array.shape)));
    else
      wanted *= static_cast<uint64_t>(size);
  const uint64_t present = text.size() - dataStart;
  if (present != wanted)
    return invalidArgument(fmt::format("{}: shape {} of {} needs {} bytes of data, the file has {}", name,
                                       shapeToString(array.shape), toString(array.type), wanted, present));
  array.data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(dataStart), bytes.end());
  return array;
}

Expected<NpyArray> readNpy(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path, "array file"));
  // The magic first: what is no array may have no end.
  std::vector<std::byte> bytes(magic.size());
  DITRON_ASSIGN_OR_RETURN(const uint64_t start, file.read(bytes.data(), bytes.size()));
  bytes.resize(start);
  if (start < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return parseNpy(bytes, path);
  const uint64_t available = availableHostMemory() / 2; // the elements are copied out of it
  if (file.size() != UINT64_MAX && file.size() > available)
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("'{}' has {} bytes; there is memory for {} (half of what is available)", path, file.size(),
                              available));
  if (file.size() != UINT64_MAX) {
    bytes.resize(std::max<uint64_t>(file.size(), start));
    DITRON_ASSIGN_OR_RETURN(const uint64_t rest, file.read(bytes.data() + start, bytes.size() - start));
    bytes.resize(start + rest);
    return parseNpy(bytes, path);
  }
  DITRON_ASSIGN_OR_RETURN(const std::string rest, readToEnd(file, available));
  bytes.insert(bytes.end(), reinterpret_cast<const std::byte *>(rest.data()),
               reinterpret_cast<const std::byte *>(rest.data()) + rest.size());
  return parseNpy(bytes, path);
}

std::vector<std::byte> formatNpy(DataType type, std::span<const int64_t> shape, std::span<const std::byte> data) {
  // A tuple of one needs its comma.
  std::string shapeText = fmt::format("{}", fmt::join(shape.begin(), shape.end(), ", "));
  if (shape.size() == 1)
    shapeText += ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descrOf(type), shapeText);
  // The data starts at a multiple of 64, and the header ends in a newline.
  const size_t prefix = magic.size() + 4;
  header.append((64 - (prefix + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::vector<std::byte> bytes(prefix + header.size() + data.size());
  std::memcpy(bytes.data(), magic.data(), magic.size());
  bytes[6] = std::byte(1);
  bytes[7] = std::byte(0);
  bytes[8] = std::byte(header.size() & 0xff);
  bytes[9] = std::byte(header.size() >> 8);
  std::memcpy(bytes.data() + prefix, header.data(), header.size());
  if (!data.empty())
    std::memcpy(bytes.data() + prefix + header.size(), data.data(), data.size());
  return bytes;
}

Status writeNpy(const std::string &path, DataType type, std::span<const int64_t> shape,
                std::span<const std::byte> data) {
  const uint64_t wanted = static_cast<uint64_t>(elementCount(shape)) * sizeOf(type);
  if (wanted != data.size())
    return invalidArgument(fmt::format("cannot write '{}': shape {} of {} needs {} bytes, {} were given", path,
                                       shapeToString(shape), toString(type), wanted, data.size()));
  DITRON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  DITRON_RETURN_IF_ERROR(file.write(formatNpy(type, shape, {})));
  DITRON_RETURN_IF_ERROR(file.write(data));
  return file.commit();
}

} // namespace ditron
