//===- OutputText.h - Files for arrays as text ----------------------------------------------------------*- C++ -*-===//
//
// The value of --out, and the mark {rank} in paths.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_OUTPUTTEXT_H
#define DITRON_VALUES_OUTPUTTEXT_H

#include "ditron/support/DataType.h"

namespace ditron::values {

/// What --out says after NAME=: a path, with the type to convert to before an '@'.
struct OutputText {
  std::string path; ///< With {rank} in it.
  std::optional<DataType> type;
};
Expected<OutputText> parseOutputText(std::string_view name, std::string_view text);

/// The text with {rank} replaced.
std::string pathForRank(const std::string &path, uint32_t rank);
bool hasRank(const std::string &path);

} // namespace ditron::values
#endif // DITRON_VALUES_OUTPUTTEXT_H
