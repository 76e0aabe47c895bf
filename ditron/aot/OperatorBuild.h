//===- OperatorBuild.h - The kernels that operators need, into a package -------------------------------------*- C++ -*-===//
//
// `ditron build --op` makes what an operator of the library needs for given shapes: the operator is prepared as a program
// would, in a world without devices (runtime::World::forPlanning), and the provider that it asks for kernels compiles each into
// the package. So the package has exactly the variants that the operator will ask for, on all ranks.
//
// A shape is a text of NAME=VALUE words, "m=4096 n=2048 k=8192 ranks=4 dtype=bf16"; operatorHelp() says which names each
// operator takes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_AOT_OPERATORBUILD_H
#define DITRON_AOT_OPERATORBUILD_H

#include "ditron/aot/PackageBuilder.h"

namespace ditron::aot {

/// Compiles every kernel that it is asked for into a package. The kernels that it gives cannot be launched.
class RecordingProvider final : public runtime::KernelProvider {
public:
  RecordingProvider(PackageBuilder &builder, std::string target) : builder(builder), targetText(std::move(target)) {}

  const std::string &target() const override { return targetText; }
  Expected<runtime::Specialisation> specialise(const runtime::KernelReference &kernel,
                                               const runtime::CallArguments &arguments,
                                               const runtime::LaunchOptions &options) override;

private:
  PackageBuilder &builder;
  const std::string targetText;
};

/// "ag_gemm", "gemm_rs", "gemm_ar", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "all_to_all_v", "send_receive", "barrier", "gemm", "attention", "softmax", "rms_norm", "layer_norm".
const std::vector<std::string> &operatorNames();
/// A line for each operator: its names and their defaults.
std::string operatorHelp();

struct OperatorOrder {
  std::string op;
  std::string shape;
  std::string target; ///< A full name.
  uint32_t multiprocessors =
      0; ///< Of the GPU, for operators that choose tiles by it; 0: those of the usual GPU of the target.
};

/// Compiles what the operator needs, and notes what it chose.
Status addOperator(PackageBuilder &builder, const OperatorOrder &order);

} // namespace ditron::aot
#endif // DITRON_AOT_OPERATORBUILD_H
