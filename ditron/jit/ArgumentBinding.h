//===- ArgumentBinding.h - From a call's arguments to a signature ---------------------------------------*- C++ -*-===//
//
// Binds arguments to parameters as Python does and decides what each is compiled as (the table in Jit.h). The result is
// a signature, which selects the variant, and the values that are left for run time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_JIT_ARGUMENTBINDING_H
#define DITRON_JIT_ARGUMENTBINDING_H

#include "ditron/compiler/KernelInterface.h"
#include "ditron/jit/Jit.h"

namespace ditron::jit {

struct BoundCall {
  frontend::KernelSignature signature;
  std::vector<runtime::Argument> arguments; ///< Of the run-time items of the signature, in order.
};

/// The type that an annotation such as tl.int64 or "*fp16" forces; others (int, torch.Tensor) mean nothing.
std::optional<frontend::LangType> annotatedType(std::string_view annotation);
/// The argument as a compile-time value; none for a pointer or descriptor.
std::optional<frontend::ConstexprArgument> toConstexpr(const runtime::Argument &argument);
/// A compile-time value as an argument; none for an integer of more than 64 bits.
std::optional<runtime::Argument> toArgument(const frontend::ConstexprArgument &value);

Expected<BoundCall> bindArguments(const compiler::KernelInterface &kernel, const CallArguments &arguments);

} // namespace ditron::jit
#endif // DITRON_JIT_ARGUMENTBINDING_H
