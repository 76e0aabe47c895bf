//===- PtxLog.cpp - What the driver's compiler says, in terms of the kernel's source ------------------------------===//
//
// Works on the text: one directive a line is how LLVM writes PTX.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/PtxLog.h"

#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <vector>

namespace ditron::cuda {

namespace {

std::vector<std::string_view> splitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Paths by the numbers of the .file directives.
std::map<unsigned, std::string> filesOf(const std::vector<std::string_view> &lines) {
  std::map<unsigned, std::string> files;
  for (std::string_view line : lines) {
    line = trim(line);
    unsigned number = 0;
    const size_t open = line.find('"'), close = line.rfind('"');
    if (line.starts_with(".file") && open < close &&
        std::sscanf(std::string(line.substr(0, open)).c_str(), ".file %u", &number) == 1)
      files[number] = line.substr(open + 1, close - open - 1);
  }
  return files;
}

/// "gemm.py:12:5", or nothing when no directive above the line says.
std::string placeOf(const std::vector<std::string_view> &lines, size_t index) {
  for (size_t i = index + 1; i-- > 0;) {
    const std::string line(trim(lines[i]));
    unsigned file = 0, row = 0, column = 0;
    if (std::sscanf(line.c_str(), ".loc %u %u %u", &file, &row, &column) == 3) {
      const std::map<unsigned, std::string> files = filesOf(lines);
      const auto path = files.find(file);
      return fmt::format("{}:{}:{}", path == files.end() ? "?" : path->second, row, column);
    }
    if (line.starts_with(".visible .entry") || line.starts_with(".entry"))
      break;
  }
  return {};
}

} // namespace

std::string explainPtxLog(std::string_view log, std::string_view ptx) {
  const std::vector<std::string_view> code = splitLines(ptx);
  std::string text;
  for (std::string_view message : splitLines(log)) {
    message = trim(message);
    if (message.empty() || message.front() == '\0')
      continue;
    text += fmt::format("{}{}", text.empty() ? "" : "\n", message);
    unsigned line = 0;
    const size_t mention = message.find("line ");
    if (mention == std::string_view::npos ||
        std::sscanf(std::string(message.substr(mention)).c_str(), "line %u", &line) != 1 || line < 1 ||
        line > code.size())
      continue;
    const std::string place = placeOf(code, line - 1);
    text += fmt::format("\n  {}{}in the PTX: {}", place.empty() ? "" : "at ", place.empty() ? "" : place + ", ",
                        trim(code[line - 1]));
  }
  return text;
}

} // namespace ditron::cuda
