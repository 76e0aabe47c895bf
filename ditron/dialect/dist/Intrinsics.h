//===- Intrinsics.h - What dist.intrinsic may name --------------------------------------------------------*- C++ -*-===//
//
// Intrinsics.def lists the hardware leaves of the thread level: special registers, elections, mbarriers, tensor copies,
// proxy fences. A target emits each by name or refuses it by name.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DIST_INTRINSICS_H
#define DITRON_DIALECT_DIST_INTRINSICS_H

#include "ditron/dialect/dist/Dist.h"

namespace ditron::dist {

/// A row of Intrinsics.def; types are written "i32, ptr".
struct Intrinsic {
  llvm::StringRef name, operands, results, summary;
};

/// Null if there is none of that name.
const Intrinsic *findIntrinsic(llvm::StringRef name);

} // namespace ditron::dist

#endif // DITRON_DIALECT_DIST_INTRINSICS_H
