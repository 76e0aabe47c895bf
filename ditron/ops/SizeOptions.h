//===- SizeOptions.h - Sizes that operators are given, and the errors of those that do not fit ---------------*- C++ -*-===//
//
// Kernels count rows and columns in 32 bits, and the host multiplies sizes before it allocates. So each size is checked by itself first, then
// the products that memory is made for, before anything is computed from them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SIZEOPTIONS_H
#define DITRON_OPS_SIZEOPTIONS_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace ditron::ops {

constexpr int64_t mostSize = std::numeric_limits<int32_t>::max();
/// Of one operand: four times what 48 bits of address hold of bytes, and far from where 64 bits end.
constexpr int64_t mostElementsOfOperand = int64_t{1} << 50;

/// A size as its caller knows it, and what is accepted.
struct SizeOption {
  std::string_view name;
  int64_t value = 0;
  int64_t least = 1;
  int64_t most = mostSize;
};

/// An error that names the first option that is out of its range, its value and the range.
Status verifySizeOptions(std::string_view operation, std::initializer_list<SizeOption> options);

/// An error that names the factors if their product, of non-negative ones, is above `most`; `what` is that of which there are so many.
Status verifyProductOfSizes(std::string_view operation, std::string_view what,
                            std::initializer_list<SizeOption> factors, int64_t most = mostElementsOfOperand);

/// A call's tokens: `least` to maxTokens, of an operator's options.
Status verifyTokenCount(std::string_view operation, int64_t tokens, int64_t least, int64_t maxTokens);

} // namespace ditron::ops
#endif // DITRON_OPS_SIZEOPTIONS_H
