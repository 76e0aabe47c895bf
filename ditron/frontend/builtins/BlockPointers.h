//===- BlockPointers.h - Block pointers in kernels ------------------------------------------------------------*- C++ -*-===//
//
// A block pointer is an aggregate of the language: base, shape, strides and offsets, which exist at run time, and block_shape
// and order, which belong to its type. So variables, loops, branches, tuples and functions treat it like any aggregate, and
// in the IR there is no trace of it: loads and stores expand to a block of pointers and a mask. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_BLOCKPOINTERS_H
#define DITRON_FRONTEND_BLOCKPOINTERS_H

#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend {

bool isBlockPointer(const LangValue &value);
/// `pointer.name` where that is no field: dtype, type, the member functions. Poison if there is no such attribute.
LangValue blockPointerAttribute(const LangValue &pointer, llvm::StringRef name);
/// The block pointer, usable only after the wait that gave the token.
LangValue consumeBlockPointer(Emitter &emit, const LangValue &pointer, mlir::Value token);

namespace builtins {
/// The operands of a load or store. Without mask, other or value these are None.
struct AccessOperands {
  LangValue pointer, mask, other;
};
/// What only accesses through block pointers have.
struct BlockPointerOptions {
  const Arg<Dims> &boundaryCheck;
  const Arg<llvm::StringRef> *padding = nullptr; ///< Null for a store.
};
/// Makes a load or store through a block pointer one through a block of pointers; refuses the options for other pointers. False
/// after an error.
bool resolveBlockPointer(Evaluator &evaluator, BuiltinCall &call, AccessOperands &operands, const AnyArg &mask,
                         const AnyArg *other, const BlockPointerOptions &options);
} // namespace builtins

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_BLOCKPOINTERS_H
