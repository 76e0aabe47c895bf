//===- Fuzzer.cpp - libFuzzer's entry points for the frontend ---------------------------------------------------------===//
//
// `./dev fuzz` builds and runs this. Mutations of bytes seldom get past the parser, so half of them are mutations of lines:
// they keep statements whole and move them to where they were not meant to be.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "tests/fuzz/FrontendFuzz.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Moves, copies, removes or indents a line, or replaces a word of one by a word of another.
void mutateLines(std::vector<std::string> &lines, std::minstd_rand &random) {
  auto pick = [&] { return random() % lines.size(); };
  size_t at = pick();
  std::string line = lines[pick()];
  switch (random() % 6) {
  case 0:
    lines.insert(lines.begin() + at, line);
    return;
  case 1:
    std::swap(lines[at], lines[pick()]);
    return;
  case 2:
    lines.erase(lines.begin() + at);
    return;
  case 3:
    lines[at].insert(0, 4, ' ');
    return;
  case 4:
    if (lines[at].starts_with("    "))
      lines[at].erase(0, 4);
    return;
  default: {
    auto wordOf = [&](const std::string &text) -> std::pair<size_t, size_t> {
      size_t begin = text.empty() ? 0 : random() % text.size();
      auto isWord = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'; };
      while (begin < text.size() && !isWord(begin))
        ++begin;
      size_t end = begin;
      while (end < text.size() && isWord(end))
        ++end;
      return {begin, end - begin};
    };
    auto [begin, size] = wordOf(lines[at]);
    auto [from, count] = wordOf(line);
    lines[at].replace(begin, size, line, from, count);
    return;
  }
  }
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::string> lines = linesOf({reinterpret_cast<const char *>(data), size});
  if (lines.empty() || random() % 2)
    return LLVMFuzzerMutate(data, size, maxSize);
  for (unsigned count = 1 + random() % 3; count && !lines.empty(); --count)
    mutateLines(lines, random);
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  size_t newSize = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), newSize);
  return newSize;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ditron::fuzz::tryText({reinterpret_cast<const char *>(data), size});
  return 0;
}
