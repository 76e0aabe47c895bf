//===- ByteSizes.h - Sizes of command lines ---------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_BYTESIZES_H
#define DITRON_TOOLS_DITRON_BYTESIZES_H

#include "ditron/support/Status.h"

#include <string>
#include <vector>

namespace ditron::tool {

/// "64K", "1M", "4096": the values of --bytes.
Expected<std::vector<uint64_t>> parseByteSizes(const std::vector<std::string> &texts);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_BYTESIZES_H
