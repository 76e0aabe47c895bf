//===- RandomDescriptorKernel.cpp - Random kernels that move tiles through tensor descriptors --------------------------------===//
//
// Chooses what DescriptorKernel.h describes. Most tensors are ones that the copy engine could move, as far as the compiler knows
// (rows and offsets at multiples of 16 bytes, or of 16 where they are arguments); the others may lie anywhere.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "descriptors/DescriptorKernel.h"

#include <algorithm>

namespace ditron::e2e {
namespace {

class Chooser {
public:
  explicit Chooser(uint64_t seed) : random(seed * 7919 + 17) {}

  int64_t below(int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); }
  bool oneIn(int64_t count) { return below(count) == 0; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }

  DescriptorKernel kernel() {
    DescriptorKernel result;
    result.seed = random();
    result.walk = of({Walk::Once, Walk::Once, Walk::Range, Walk::Stages, Walk::Specialized, Walk::Static, Walk::Persistent});
    result.tilesPerProgram = result.walk == Walk::Once ? 1 : 1 + below(4);
    result.shape = {.grid = {static_cast<uint32_t>(1 + below(3)), 1, 1},
                    .numWarps = 1u << below(4),
                    .numStages = static_cast<uint32_t>(1 + below(4))};
    numTiles = result.numTiles();
    elementsPerThread = 64;
    largestTile = std::min<int64_t>(4096, 32 * int64_t(result.shape.numWarps) * elementsPerThread);
    for (int64_t count = 1 + below(3); count > 0; --count)
      result.pieces.push_back(piece());
    return result;
  }

private:
  Piece piece() {
    Piece result;
    result.access = of({Access::Copy, Access::Copy, Access::Store, Access::Store, Access::Store, Access::Update, Access::Gather,
                        Access::Scatter});
    const DataType type = typeFor(result);
    const bool isListed = result.access == Access::Gather || result.access == Access::Scatter;
    const std::vector<int64_t> block = isListed ? rowBlock(type) : tileBlock(type);
    const size_t walked = isListed ? 1 : below(static_cast<int64_t>(block.size()));
    if (result.access == Access::Copy || result.access == Access::Gather)
      result.source = tensor(type, block, walked, /*isWritten=*/false);
    if (result.access != Access::Gather)
      result.target = tensor(type, block, walked, /*isWritten=*/true);
    result.sourceOfHost = oneIn(3);
    result.targetOfHost = oneIn(3);
    result.fillsNan = isFloat(type) && oneIn(3) && !result.sourceOfHost;
    result.readsBack = result.access == Access::Copy && oneIn(3);
    result.isTransposed = (result.access == Access::Store || result.access == Access::Update) && oneIn(3);
    if (isListed)
      chooseRows(result);
    return result;
  }

  DataType typeFor(Piece &piece) {
    using enum DataType;
    if (piece.access == Access::Update) {
      piece.update = of<std::string>({"add", "min", "max", "and", "or", "xor"});
      if (piece.update == "add")
        return of({U32, I32, U64, F32, F16, BF16});
      return piece.update == "min" || piece.update == "max" ? of({U32, I32, U64, I64, F16, BF16}) : of({U32, I32, U64, I64});
    }
    const DataType type = of({I8, U8, I16, U16, F16, F16, BF16, I32, U32, F32, F32, I64, U64, F64});
    return piece.access == Access::Copy && oneIn(8) ? F8E5 : type;
  }

  std::vector<int64_t> tileBlock(DataType type) {
    const int64_t rank = of<int64_t>({1, 2, 2, 2, 2, 2, 3, 4, 5});
    std::vector<int64_t> block(rank, 1);
    block.back() = std::min(largestTile, (int64_t(16) << below(7)) / sizeOf(type));
    int64_t rest = largestTile / block.back();
    for (int64_t dim = rank - 1; dim-- > 0; rest /= block[dim])
      block[dim] = std::min(rest, int64_t(1) << below(rank == 2 ? 8 : 4));
    return block;
  }

  /// Of gather and scatter: at least as many columns as the language wants.
  std::vector<int64_t> rowBlock(DataType type) {
    const int64_t least = std::max<int64_t>(32 / (8 * sizeOf(type)) * 8, 16 / sizeOf(type));
    return {1, least << below(3)};
  }

  void chooseRows(Piece &piece) {
    const int64_t most = (piece.access == Access::Gather ? piece.source : piece.target).sizes[0];
    const int64_t count = std::min<int64_t>(8 << below(3), largestTile / piece.accessed().block[1]);
    for (int32_t row = -2; row < std::max<int64_t>(most + 3, count); ++row)
      piece.rows.push_back(row);
    std::shuffle(piece.rows.begin(), piece.rows.end(), random);
    piece.rows.resize(count);
  }

  TiledTensor tensor(DataType type, const std::vector<int64_t> &block, size_t walked, bool isWritten) {
    TiledTensor result;
    result.type = type;
    result.block = block;
    result.walked = walked;
    const bool isCopyable = !oneIn(5);
    result.isLiteral = isCopyable && !oneIn(8);
    const int64_t unit = !isCopyable ? 1 : result.isLiteral ? std::max<int64_t>(1, 16 / sizeOf(type)) : 16;
    for (size_t dim = 0; dim < block.size(); ++dim) {
      const bool isLast = dim + 1 == block.size();
      const int64_t step = isLast ? unit : 1;
      // From one element to a block more than the tiles reach.
      const int64_t reach = block[dim] * (dim == walked ? numTiles : 1);
      int64_t size = oneIn(3) ? reach : 1 + below(reach + block[dim]);
      size = (size + step - 1) / step * step;
      int64_t first = oneIn(2) ? 0 : below(block[dim]);
      // The hardware stores no tile that begins before the tensor; the compiler has to see that it does not, in sums it does not look.
      if (oneIn(5) && !(isWritten && dim == walked))
        first = -first;
      result.sizes.push_back(size);
      result.first.push_back(first / step * step);
    }
    result.layOut(oneIn(2) ? 0 : (1 + below(8)) * unit, random);
    return result;
  }

  std::mt19937_64 random;
  int64_t numTiles = 1, elementsPerThread = 64, largestTile = 4096;
};

} // namespace

DescriptorKernel DescriptorKernel::random(uint64_t seed) { return Chooser(seed).kernel(); }

} // namespace ditron::e2e
