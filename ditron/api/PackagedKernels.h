//===- PackagedKernels.h - Kernels of ahead-of-time packages --------------------------------------------------*- C++ -*-===//
#ifndef DITRON_API_PACKAGEDKERNELS_H
#define DITRON_API_PACKAGEDKERNELS_H

#include "ditron/api/KernelTemplate.h"
#include "ditron/package/PackageProvider.h"

namespace ditron::api {

/// A kernel of the packages, or null when they have none of that name. `source` is the name of its file, empty for any; `text` the
/// file's text where it is known: a package that was built from another one does not count, and a fallback of the provider
/// compiles it.
Expected<std::shared_ptr<KernelTemplate>> findPackaged(std::shared_ptr<package::PackageProvider> packages,
                                                       std::string_view source, std::string_view path,
                                                       std::string_view text, std::string_view kernel);

} // namespace ditron::api
#endif // DITRON_API_PACKAGEDKERNELS_H
