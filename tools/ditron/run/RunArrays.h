//===- RunArrays.h - The memory of a run ----------------------------------------------------------------*- C++ -*-===//
//
// The arrays that --arg and --memory describe, allocated on every rank, by name.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_RUNARRAYS_H
#define DITRON_TOOLS_DITRON_RUNARRAYS_H

#include "ditron/runtime/World.h"
#include "ditron/values/ArgumentText.h"

#include <deque>

namespace ditron::tool {

/// An array on all ranks.
struct RunArray {
  std::string name;
  DataType type = DataType::F32;
  std::vector<std::vector<int64_t>> shapes; ///< Per rank.
  std::vector<runtime::Buffer> buffers;     ///< Per rank, unless symmetric.
  runtime::SymmetricBuffer symmetric;
  std::vector<int64_t> block; ///< Not empty: kernels get a tensor descriptor for tiles of this shape.
  bool fillNan = false;

  runtime::Pointer on(uint32_t rank) const {
    return symmetric.isValid() ? symmetric.on(rank) : buffers[rank].pointer();
  }
  /// What a rank's kernel gets.
  runtime::Argument argument(uint32_t rank) const;
  Expected<NpyArray> download(uint32_t rank) const;
};

class RunArrays {
public:
  /// `dataSeed` makes random numbers.
  RunArrays(runtime::World &world, uint64_t dataSeed) : world(world), dataSeed(dataSeed) {}

  /// Makes the array from what it is on each rank, fills it, and keeps it. Its addresses are looked up among earlier ones.
  Expected<const RunArray *> add(const std::string &name, const std::vector<values::ArrayText> &perRank);
  /// Null for a name that no array has.
  const RunArray *find(std::string_view name) const;
  const std::deque<RunArray> &all() const { return arrays; }
  /// The same, or an error that names `option` and the arrays that there are.
  Expected<const RunArray *> require(std::string_view option, const std::string &name) const;
  /// Where an address points for a kernel or table of `rank`.
  Expected<runtime::Pointer> addressOf(const values::AddressText &address, uint32_t rank) const;

private:
  runtime::World &world;
  uint64_t dataSeed;
  std::deque<RunArray> arrays; ///< Their addresses stay.
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_RUNARRAYS_H
