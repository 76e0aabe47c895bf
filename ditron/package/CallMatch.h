//===- CallMatch.h - The variant that was compiled for a call ------------------------------------------------*- C++ -*-===//
//
// A package has the variants that somebody built, and a call is to be served by one of them. The jit asks which variant these
// arguments *would be* compiled to; here the question is which of the variants that are there is *right* for them:
//
//   compiled as                 right for
//   constant 64                 a compile-time parameter that is given 64 (the same kind: not 64.0); a run-time parameter,
//                               such as an integer 1, whose value is 64 and whose type was not forced
//   *bf16:16                    a pointer to bf16 whose address is a multiple of 16
//   i64, multiple of 16         an integer that fits, is a multiple of 16, and has no other forced type
//   fp32                        a float
//   tensordesc<bf16[128,64]>    a descriptor with such blocks and padding, aligned as promised
//   default                     a parameter that the call leaves out
//
// So an integer 1 is served by a variant for 1, else by one for any i32. Of several variants the most specialised wins: most
// constants, then most promises of divisibility, then most values in the type that they would have by themselves (i32 before
// i64), then the first in the package.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PACKAGE_CALLMATCH_H
#define DITRON_PACKAGE_CALLMATCH_H

#include "ditron/package/Package.h"
#include "ditron/runtime/CallBinding.h"

namespace ditron::package {

/// A call with its arguments at the parameters of a kernel.
class BoundCall {
public:
  /// Refuses what the kernel's parameters do not take. The call must outlive the result.
  static Expected<BoundCall> bind(const Kernel &kernel, const runtime::CallArguments &call,
                                  const runtime::LaunchOptions &options);

  /// How specialised the variant is for the call; nothing if it is not right for it, and then `reason`, unless null,
  /// says why: texts cost more than comparisons, and mostly nobody asks.
  struct Score {
    uint32_t constants = 0, promises = 0, naturalTypes = 0;
    auto operator<=>(const Score &) const = default;
  };
  std::optional<Score> score(const Variant &variant, std::string *reason) const;
  /// The arguments that the variant takes at run time, in order. For a variant that is right for the call.
  std::vector<runtime::Argument> runTimeArguments(const Variant &variant) const;
  /// What `ditron build --signature` takes to make a variant for this call.
  std::string signatureText() const;

private:
  BoundCall(const Kernel &kernel, const runtime::LaunchOptions &options) : kernel(&kernel), options(options) {}
  bool matchItem(const Item &item, Score &score, std::string *reason) const;
  const Parameter &parameterOf(std::string_view path) const;
  const runtime::Argument *argumentAt(std::string_view path) const;

  const Kernel *kernel;
  runtime::LaunchOptions options;
  /// By path: "x", "t.0". Values are in the call, or defaults of the kernel.
  std::vector<std::pair<std::string, const runtime::Argument *>> values;
};

} // namespace ditron::package
#endif // DITRON_PACKAGE_CALLMATCH_H
