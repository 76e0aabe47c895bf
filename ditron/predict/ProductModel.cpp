//===- ProductModel.cpp - How long the tiles of a product take ------------------------------------------------------===//
#include "ditron/predict/ProductModel.h"

#include <algorithm>

namespace ditron::predict {

namespace {

constexpr double accumulatorBytes = 4;

/// What ops calls the target. AMD's GPUs have no forms of tiles there yet; those of warp-level tensor cores stand for them.
std::string targetOf(const GpuDescription &gpu) {
  return gpu.architecture.starts_with("sm_") ? "cuda:" + gpu.architecture : "cuda:sm_80";
}

} // namespace

ProductTiming timeProduct(const GpuDescription &gpu, const Product &product, const ops::TileConfig &tile,
                          uint32_t parts) {
  ProductTiming timing;
  timing.tile = tile;
  timing.tileRows = ops::ceilDivide(product.m, tile.blockM);
  timing.tileColumns = ops::ceilDivide(product.n, tile.blockN);
  timing.tiles = static_cast<uint64_t>(timing.tileRows * timing.tileColumns * product.groups) * parts;
  timing.blocks = static_cast<uint32_t>(std::min<uint64_t>(timing.tiles, gpu.smCount));
  const double depth =
      static_cast<double>(ops::ceilDivide(ops::ceilDivide(product.k, parts), tile.blockK) * tile.blockK);
  const double elementBytes = sizeOf(product.dtype), tiles = static_cast<double>(timing.tiles);
  const double waves = static_cast<double>(ops::ceilDivide(static_cast<int64_t>(timing.tiles), timing.blocks));

  const double cycles = 2.0 * tile.blockM * tile.blockN * depth /
                        (gpu.mmaFlopsPerClock(product.dtype) * gpu.mmaEfficiency * product.efficiency);
  const double operandBytes = (tile.blockM + tile.blockN) * depth * elementBytes;
  const double multiply = cycles / gpu.boostClockMhz;
  const double operands = operandBytes / (gpu.l2BytesPerClockPerSm * gpu.boostClockMhz);
  const double m = static_cast<double>(product.m), n = static_cast<double>(product.n),
               k = static_cast<double>(product.k);
  double memoryBytes = static_cast<double>(product.groups) * elementBytes * (m * k + k * n + m * n);
  if (parts > 1) // sums of the parts are written and read again
    memoryBytes += 2.0 * accumulatorBytes * parts * static_cast<double>(product.groups) * m * n;
  const double memory = memoryBytes / tiles * timing.blocks / gpu.hbmBytesPerUs();
  const double freely = std::max({multiply, operands, memory}) + gpu.tileOverheadUs;
  const double powerLimited = tiles * cycles / (waves * gpu.smCount * gpu.sustainedClockMhz);
  timing.tileUs = std::max(freely, powerLimited);
  return timing;
}

ProductTiming timeOwnProduct(const GpuDescription &gpu, const Product &product,
                             const std::optional<ops::TileConfig> &tile) {
  if (tile)
    return timeProduct(gpu, product, *tile);
  const ops::GemmProblem problem = {.m = product.m, .n = product.n, .k = product.k, .dtype = product.dtype};
  return timeProduct(gpu, product, ops::chooseTile(problem, targetOf(gpu), gpu.smCount));
}

ProductTiming timeVendorProduct(const GpuDescription &gpu, const Product &product) {
  ProductTiming best;
  for (auto [blockM, blockN] :
       {std::pair(128u, 256u), {256u, 128u}, {128u, 128u}, {64u, 256u}, {64u, 128u}, {64u, 64u}})
    for (uint32_t parts : {1u, 2u, 4u, 8u}) {
      const ops::TileConfig tile = {
          .blockM = blockM, .blockN = blockN, .blockK = 64, .groupM = 8, .numWarps = 8, .numStages = 3};
      const ProductTiming timing = timeProduct(gpu, product, tile, parts);
      if (best.tiles == 0 || timing.totalUs() < best.totalUs())
        best = timing;
    }
  return best;
}

Time timeAttention(const GpuDescription &gpu, double flops, DataType dtype) {
  const double perMicrosecond = gpu.mmaFlopsPerClock(dtype) * gpu.mmaEfficiency * gpu.attentionEfficiency * gpu.smCount;
  return flops / (perMicrosecond * gpu.sustainedClockMhz);
}

} // namespace ditron::predict
