//===- Version.h - Which build of ditron this is --------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_VERSION_H
#define DITRON_TOOLS_DITRON_VERSION_H

#include <string>

namespace ditron::tool {

/// "ditron 0.1.0, commit 0123456789ab, modified": the commit of the sources at the time of the build, and whether they differed
/// from it; "commit unknown" when they were no Git checkout.
std::string versionText();

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_VERSION_H
