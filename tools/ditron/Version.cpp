//===- Version.cpp - Which build of ditron this is ----------------------------------------------------------------===//
//
// Version.inc is written by cmake/WriteVersion.cmake at every build, when it would change. It is included here only, so that a
// new commit costs the compilation of this file.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "Version.h"

#include "ditron/Version.inc"

namespace ditron::tool {

std::string versionText() { return "ditron " DITRON_VERSION ", commit " DITRON_COMMIT; }

} // namespace ditron::tool
