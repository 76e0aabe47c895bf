//===- TensorMap.h - Descriptions of tensors for the copy engine ------------------------------------------*- C++ -*-===//
//
// A kernel that moves tiles with the tensor copy engine gets, for each tensor, 128 bytes that describe it. What stands in them
// follows from the arguments of the launch: this computes the description; the device encodes it in its own format.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TENSORMAP_H
#define DITRON_RUNTIME_TENSORMAP_H

#include "ditron/runtime/Argument.h"

#include <array>

namespace ditron::runtime {

/// A tensor and the box that a copy moves. Dimension 0 is the contiguous one, as the hardware counts.
struct TensorMapDescription {
  static constexpr uint32_t maxRank = 5;

  void *base = nullptr;
  DataType type = DataType::U8;
  bool fillNan = false;
  bool roundsTf32 = false; ///< Loads round fp32 to tf32.
  uint32_t rank = 0;
  uint32_t swizzleBytes = 0;
  std::array<uint64_t, maxRank> sizes = {};        ///< In elements.
  std::array<uint64_t, maxRank> stridesBytes = {}; ///< Of dimensions 1 and up; the first entry is the element's size.
  std::array<uint32_t, maxRank> box = {};

  bool operator==(const TensorMapDescription &) const = default;
};

struct TensorMapHash {
  size_t operator()(const TensorMapDescription &map) const;
};

/// A tensor map as kernels receive it.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes = {};
};

/// The description for one launch. `arguments` are packed as the artifact's parameters; refuses what no copy engine takes.
Expected<TensorMapDescription> describeTensorMap(const Artifact &artifact, const ArtifactTensorMap &map,
                                                 const PackedArguments &arguments);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_TENSORMAP_H
