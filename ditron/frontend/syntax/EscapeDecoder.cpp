//===- EscapeDecoder.cpp - Escapes of string literals -------------------------------------------------------------===//
//
// Unknown escapes keep their backslash, as in Python. Two things that Python can do are left out: \N{...}, which needs
// the names of all characters, and lone surrogates, which have no UTF-8.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/EscapeDecoder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <fmt/format.h>

namespace ditron::frontend {

namespace {

class Decoder {
public:
  Decoder(llvm::StringRef source, bool isRaw, bool isBytes) : source(source), isRaw(isRaw), isBytes(isBytes) {}

  DecodedText run() {
    while (pos < source.size() && out.error.empty())
      step();
    return std::move(out);
  }

private:
  void step();
  void escape();
  void hexEscape(size_t begin, unsigned digits, char letter);
  void octalEscape();
  void append(uint32_t codePoint, size_t begin);

  char at(size_t i) const { return i < source.size() ? source[i] : '\0'; }
  size_t lineEndLength(size_t i) const { return at(i) == '\n' ? 1 : at(i) == '\r' ? (at(i + 1) == '\n' ? 2 : 1) : 0; }
  void fail(size_t begin, size_t end, std::string message) {
    out.error = std::move(message);
    out.errorBegin = static_cast<uint32_t>(begin);
    out.errorEnd = static_cast<uint32_t>(std::min(end, source.size()));
  }

  llvm::StringRef source;
  bool isRaw;
  bool isBytes;
  size_t pos = 0;
  DecodedText out;
};

void Decoder::step() {
  if (size_t length = lineEndLength(pos)) {
    out.text += '\n';
    pos += length;
    return;
  }
  char c = source[pos];
  if (c == '\\' && !isRaw) {
    escape();
    return;
  }
  if (isBytes && static_cast<unsigned char>(c) >= 0x80) {
    fail(pos, pos + 1, "bytes can only contain ASCII literal characters");
    return;
  }
  out.text += c;
  ++pos;
}

void Decoder::escape() {
  size_t begin = pos++;
  if (size_t length = lineEndLength(pos)) { // a joined line
    pos += length;
    return;
  }
  char letter = at(pos);
  switch (letter) {
  case '\\':
  case '\'':
  case '"': out.text += letter; break;
  case 'a': out.text += '\a'; break;
  case 'b': out.text += '\b'; break;
  case 'f': out.text += '\f'; break;
  case 'n': out.text += '\n'; break;
  case 'r': out.text += '\r'; break;
  case 't': out.text += '\t'; break;
  case 'v': out.text += '\v'; break;
  case 'x': hexEscape(begin, 2, letter); return;
  case 'u':
  case 'U':
    if (!isBytes) {
      hexEscape(begin, letter == 'u' ? 4 : 8, letter);
      return;
    }
    out.text += '\\';
    return;
  case 'N':
    if (!isBytes) {
      out.unsupported = "the escape \\N{...} is not supported; write the character or its \\u escape";
      ++pos;
      return;
    }
    out.text += '\\';
    return;
  default:
    if (letter >= '0' && letter <= '7')
      octalEscape();
    else
      out.text += '\\'; // the character itself is taken by the next step
    return;
  }
  ++pos;
}

void Decoder::hexEscape(size_t begin, unsigned digits, char letter) {
  ++pos;
  uint32_t value = 0;
  unsigned count = 0;
  for (; count < digits && llvm::isHexDigit(at(pos)); ++count, ++pos)
    value = value * 16 + llvm::hexDigitValue(at(pos));
  if (count < digits) {
    fail(begin, pos,
         isBytes ? std::string("invalid \\x escape")
                 : fmt::format("truncated \\{}{} escape", letter, std::string(digits, 'X')));
    return;
  }
  append(value, begin);
}

void Decoder::octalEscape() {
  size_t begin = pos - 1;
  uint32_t value = 0;
  for (unsigned count = 0; count < 3 && at(pos) >= '0' && at(pos) <= '7'; ++count, ++pos)
    value = value * 8 + static_cast<uint32_t>(at(pos) - '0');
  append(isBytes ? value & 0xff : value, begin);
}

void Decoder::append(uint32_t codePoint, size_t begin) {
  if (isBytes) {
    out.text += static_cast<char>(codePoint);
    return;
  }
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) {
    out.unsupported = "lone surrogates in strings are not supported";
    return;
  }
  char buffer[4];
  char *end = buffer;
  if (!llvm::ConvertCodePointToUTF8(codePoint, end)) {
    fail(begin, pos, "illegal Unicode character");
    return;
  }
  out.text.append(buffer, end);
}

} // namespace

DecodedText decodeEscapes(llvm::StringRef text, bool isRaw, bool isBytes) {
  return Decoder(text, isRaw, isBytes).run();
}

} // namespace ditron::frontend
