//===- TransferReport.h - What was wrong with the sizes of a transfer ----------------------------------*- C++ -*-===//
//
// Sizes that stand on the device, or that only another rank knows, cannot be refused before the launch. Device code (report() in
// kernels/collectives/pairs.py) leaves out the transfer, goes on with the others and keeps the first problem in words of device memory,
// where check() finds it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_TRANSFERREPORT_H
#define DITRON_OPS_COLLECTIVES_TRANSFERREPORT_H

#include "ditron/runtime/World.h"

namespace ditron::ops {

class TransferReport {
public:
  TransferReport() = default;
  /// `operation` begins messages and the words' names; `unit` is what sizes count: "rows".
  static Expected<TransferReport> create(runtime::World &world, std::string operation, std::string unit);

  /// The words of a rank: i64 [4].
  runtime::Pointer on(uint32_t rank) const { return words[rank].pointer(); }
  /// Ok, or InvalidArgument for the first problem of the rank's calls since the last check(), which is thereby told. The stream of the
  /// calls must have been synchronised.
  Status check(uint32_t rank);

private:
  std::string operation, unit;
  std::vector<runtime::Buffer> words; ///< Per rank of this process.
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_TRANSFERREPORT_H
