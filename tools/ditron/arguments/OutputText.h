//===- OutputText.h - Files for arrays as text ----------------------------------------------------------*- C++ -*-===//
//
// The value of --out, and the mark {rank} in paths.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OUTPUTTEXT_H
#define DITRON_TOOLS_DITRON_OUTPUTTEXT_H

#include "ditron/support/DataType.h"

namespace ditron::tool {

/// What --out says after NAME=: a path, with the type to convert to before an '@'.
struct OutputText {
  std::string path; ///< With {rank} in it.
  std::optional<DataType> type;
};
Expected<OutputText> parseOutputText(std::string_view name, std::string_view text);

/// The text with {rank} replaced.
std::string pathForRank(const std::string &path, uint32_t rank);
bool hasRank(const std::string &path);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_OUTPUTTEXT_H
