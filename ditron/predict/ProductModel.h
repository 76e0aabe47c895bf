//===- ProductModel.h - How long the tiles of a product take --------------------------------------------*- C++ -*-===//
//
// A tile takes as long as the slowest of: its multiplications at the boost clock; its operands from the L2 cache; its part of the
// bytes that must come from memory at least once; and then what of its beginning and end nothing hides. Waves of tiles make the
// product. And the power limit: whatever the tiles do, the whole product never multiplies faster than at the sustained clock. Small
// products, which leave SMs idle in the last wave and between tiles, therefore run at a higher clock than large ones.
//
//   8192x3584x8192 in bf16, tiles of 128x256: 896 tiles in 7 waves on 132 SMs of an H200
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_PREDICT_PRODUCTMODEL_H
#define DITRON_PREDICT_PRODUCTMODEL_H

#include "ditron/ops/Gemm.h"
#include "ditron/predict/MachineDescription.h"
#include "ditron/predict/Simulation.h"

namespace ditron::predict {

struct Product {
  int64_t m = 0, n = 0, k = 0; ///< Of one group.
  int64_t groups = 1;          ///< Independent products of this size: experts.
  DataType dtype = DataType::BF16;
  double efficiency = 1; ///< Relative to the main loop of a large tile.
};

/// How a product is cut, and how long each tile takes.
struct ProductTiming {
  ops::TileConfig tile;
  int64_t tileRows = 0, tileColumns = 0; ///< Of one group.
  uint64_t tiles = 0;                    ///< Of all groups, and all parts of K.
  uint32_t blocks = 0;                   ///< That run at once.
  Time tileUs = 0;

  Time totalUs() const { return static_cast<double>((tiles + blocks - 1) / std::max(blocks, 1u)) * tileUs; }
};

/// With this tile; K is cut into `parts`, whose sums are added in memory.
ProductTiming timeProduct(const GpuDescription &gpu, const Product &product, const ops::TileConfig &tile,
                          uint32_t parts = 1);
/// As the library cuts it (ops::chooseTile).
ProductTiming timeOwnProduct(const GpuDescription &gpu, const Product &product,
                             const std::optional<ops::TileConfig> &tile);
/// As the vendor's library does: the best of many tiles and cuts of K.
ProductTiming timeVendorProduct(const GpuDescription &gpu, const Product &product);

/// Time of so many multiplications and additions of attention.
Time timeAttention(const GpuDescription &gpu, double flops, DataType dtype);

} // namespace ditron::predict
#endif // DITRON_PREDICT_PRODUCTMODEL_H
