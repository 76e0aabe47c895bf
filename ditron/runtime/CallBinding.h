//===- CallBinding.h - Which argument each parameter gets ---------------------------------------------------*- C++ -*-===//
//
// Python's rules: positional arguments in order, keywords by name, no parameter twice, and those without a default must be
// there. A keyword "t.0" or "t.x" is an element of the tuple t. What an argument is compiled as is decided elsewhere: by
// jit/ArgumentBinding.h, or by comparison with what was compiled (package/CallMatch.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CALLBINDING_H
#define DITRON_RUNTIME_CALLBINDING_H

#include "ditron/runtime/KernelProvider.h"

namespace ditron::runtime {

/// What has to be known of a parameter.
struct CallParameter {
  std::string name;
  bool isConstexpr = false;
  bool mayBeMissing = false; ///< It has a default, or something else gives it.
};

/// What a parameter gets: one value, the elements of a tuple by their paths, or nothing. Points into the call.
struct GivenArgument {
  const Argument *value = nullptr;
  std::vector<std::pair<std::string_view, const Argument *>> elements;

  bool isMissing() const { return !value && elements.empty(); }
};

/// One for each parameter; errors name the kernel, the argument and the parameters that there are.
Expected<std::vector<GivenArgument>> assignArguments(std::string_view kernel, std::span<const CallParameter> parameters,
                                                     const CallArguments &call);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_CALLBINDING_H
