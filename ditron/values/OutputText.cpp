//===- OutputText.cpp - Files for arrays as text ------------------------------------------------------------------===//
#include "ditron/values/OutputText.h"

#include <fmt/format.h>

namespace ditron::values {

static constexpr std::string_view rankMark = "{rank}";

Expected<OutputText> parseOutputText(std::string_view name, std::string_view text) {
  OutputText output;
  const size_t at = text.find('@');
  if (at != std::string_view::npos && at > 0) {
    Expected<DataType> type = parseDataTypeOrError(text.substr(0, at));
    if (!type.isOk())
      return type.status().withContext(fmt::format("output {}='{}'", name, text));
    output.type = *type;
  }
  output.path = at == std::string_view::npos ? text : text.substr(at + 1);
  if (output.path.empty())
    return invalidArgument(fmt::format("output {}='{}': a file name is missing", name, text));
  return output;
}

bool hasRank(const std::string &path) { return path.find(rankMark) != std::string::npos; }

std::string pathForRank(const std::string &path, uint32_t rank) {
  std::string result = path;
  const std::string number = std::to_string(rank);
  for (size_t at = result.find(rankMark); at != std::string::npos; at = result.find(rankMark, at + number.size()))
    result.replace(at, rankMark.size(), number);
  return result;
}

} // namespace ditron::values
