//===- Version.cpp - Which build of the library this is -----------------------------------------------------------===//
//
// Version.inc is written by cmake/WriteVersion.cmake at every build, when it would change. It is included here only, so that a
// new commit costs the compilation of this file.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include <ditron/ditron.h>

#include "ditron/Version.inc"

extern "C" const char *ditron_version_text(void) { return DITRON_VERSION " (commit " DITRON_COMMIT ")"; }
