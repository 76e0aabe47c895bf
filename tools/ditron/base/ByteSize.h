//===- ByteSize.h - "64K" ---------------------------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_BYTESIZE_H
#define DITRON_TOOLS_DITRON_BYTESIZE_H

#include "ditron/support/DataType.h"
#include "ditron/support/Status.h"

#include <string>
#include <vector>

namespace ditron::tool {

/// "4096", "64K", "1M", "2G": from 1 byte to 2^40. `option` names the option in the error.
Expected<uint64_t> parseByteSize(std::string_view option, const std::string &text);
/// Refuses a value of --bytes that is no number of whole elements.
Status verifyWholeElements(uint64_t bytes, DataType dtype);
/// The values of --bytes.
Expected<std::vector<uint64_t>> parseByteSizes(const std::vector<std::string> &texts);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_BYTESIZE_H
