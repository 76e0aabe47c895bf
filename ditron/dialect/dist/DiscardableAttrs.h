//===- DiscardableAttrs.h - Attributes that operations of the dist dialect may carry ----------------------*- C++ -*-===//
//
// What the importer and passes leave on operations beyond their own attributes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DIST_DISCARDABLEATTRS_H
#define DITRON_DIALECT_DIST_DISCARDABLEATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ditron::dist {

/// Of dist.wait: the kernel does not take the token; what follows relies on the acquire of the whole block.
inline constexpr llvm::StringLiteral tokenDroppedAttrName = "dist.token_dropped";
/// Of dist.fence: one that all threads within its scope agree about the order of (membar, fence.sc).
inline constexpr llvm::StringLiteral sequentialAttrName = "dist.sequential";
/// Of the module: the kernel's file is written for Triton-distributed (it imports triton_dist and not ditron), whose programs
/// run although some of their scopes are too narrow; these are warnings then.
inline constexpr llvm::StringLiteral peerSourceAttrName = "dist.peer_source";
/// Unit, of dist.ld and of volatile scalar tile.load: the only effect of a loop without carried values (dgpu-annotate-accesses).
inline constexpr llvm::StringLiteral spinAttrName = "dist.spin";
/// Unit, of operations on scalars with effects: the work of every thread that reaches them, not of the block's first thread alone
/// (dgpu-annotate-accesses, dgpu-guard-effects).
inline constexpr llvm::StringLiteral perThreadAttrName = "dist.per_thread";

} // namespace ditron::dist

#endif // DITRON_DIALECT_DIST_DISCARDABLEATTRS_H
