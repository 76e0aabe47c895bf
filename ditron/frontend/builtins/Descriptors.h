//===- Descriptors.h - Tensor descriptors in kernels ----------------------------------------------------------*- C++ -*-===//
//
// A descriptor is an aggregate of base, sizes and strides, so that variables, tuples, branches and loops may hold it like any
// other; the operation that makes it a value of the IR stands where it was created, or where a joined one is used. Private to
// the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_DESCRIPTORS_H
#define DITRON_FRONTEND_DESCRIPTORS_H

#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/Emitter.h"

namespace ditron::frontend {

/// Bytes that the last dimension of a descriptor's block has at least: Triton's limit, and what the hardware copies.
inline constexpr int64_t smallestDescriptorRow = 16;

/// The value of a descriptor; emits tile.make_descriptor if there is none yet.
mlir::Value descriptorIr(Emitter &emit, const DescriptorValue &descriptor);
/// A descriptor whose operation stands here.
LangValue emitDescriptor(Emitter &emit, DescriptorValue descriptor);
/// The descriptor, usable only after the wait that gave the token.
LangValue consumeDescriptor(Emitter &emit, const DescriptorValue &descriptor, mlir::Value token);

namespace builtins {
/// The argument 'offsets' of an access, one int32 per dimension (offsets are 32-bit, as the hardware's are); nullopt after an
/// error.
std::optional<std::vector<LangValue>> descriptorOffsets(Evaluator &evaluator, BuiltinCall &call,
                                                        const DescriptorValue &descriptor, const ValueArg &offsets);
/// Reports an argument 'value' that is no tile of the descriptor, and memory that must not be written.
bool fitsDescriptor(Evaluator &evaluator, BuiltinCall &call, const Arg<const DescriptorValue &> &descriptor,
                    const ValueArg &value);
} // namespace builtins

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_DESCRIPTORS_H
