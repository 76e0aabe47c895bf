//===- TypedHeader.h - A package's kernels as C++ functions ---------------------------------------------------*- C++ -*-===//
//
// Writes a header over include/ditron/ditron.hpp with a class for each kernel of a package, whose call has the kernel's
// parameters with the types that its variants have. A compile-time parameter that is the same in all variants is no parameter
// of the call. cmake/DitronAddKernels.cmake makes such headers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_TYPEDHEADER_H
#define DITRON_PACKAGE_TYPEDHEADER_H

#include "ditron/package/Package.h"

namespace ditron::package {

/// `space` is the namespace; `path` is where programs find the package.
std::string typedHeader(const Package &package, const std::string &space, const std::string &path);

} // namespace ditron::package
#endif // DITRON_PACKAGE_TYPEDHEADER_H
