//===- descriptor_property_test.cpp - Tiles of every shape and type through tensor descriptors ------------------------------===//
//
// What a descriptor moves must be where a plain model of positions and strides says: loads, stores, updates, listed rows; of ranks
// 1 to 5, rows of 16 bytes to a kilobyte, one row or hundreds; descriptors of kernels and of the host; tiles that reach out of the
// tensor on any side; several tiles, loops of all kinds, several tensors in one kernel.
//
// DESCRIPTOR_CASES=5000 runs so many random kernels instead of a few hundred; GTEST_TOTAL_SHARDS spreads them over processes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "descriptors/DescriptorKernel.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class DescriptorProperty : public KernelTest {
protected:
  /// Runs the kernel and compares all memory.
  void check(const DescriptorKernel &kernel) {
    jit::CallArguments arguments;
    const std::string text = kernel.text(arguments.keywords);
    std::string trace = fmt::format("{} warps, {} stages, grid {}{}", kernel.shape.numWarps, kernel.shape.numStages,
                                    kernel.shape.grid[0], text);
    for (const Piece &piece : kernel.pieces)
      trace += testing::PrintToString(piece) + "\n";
    SCOPED_TRACE(trace);
    std::vector<Memory> memories;
    for (size_t p = 0; p < kernel.pieces.size(); ++p)
      memories.push_back(place(kernel.pieces[p], p, kernel.numTiles(), arguments));
    ASSERT_OK(run(text, "kernel", kernel.shape, arguments));
    count(text, kernel, arguments);
    for (size_t p = 0; p < kernel.pieces.size(); ++p) {
      const PieceResult expected = resultOf(kernel.pieces[p], kernel.numTiles());
      if (!expected.target.empty())
        expectSame(getFloats(memories[p].target), expected.target, fmt::format("y{}", p));
      if (!expected.shown.empty())
        expectSame(getFloats(memories[p].shown), expected.shown, fmt::format("z{}", p));
    }
  }

  static inline int numKernels = 0, numWithCopies = 0; ///< Run so far; with tensor maps.

private:
  void count(const std::string &text, const DescriptorKernel &kernel, const jit::CallArguments &arguments) {
    const compiler::KernelSource source{"kernel.py", std::string(kernelPrologue) + text};
    auto function = sharedJit().load(source, "kernel");
    ASSERT_OK(function);
    auto variant =
        sharedJit().specialise(*function, arguments, {.numWarps = kernel.shape.numWarps, .numStages = kernel.shape.numStages});
    ASSERT_OK(variant);
    ++numKernels;
    numWithCopies += !variant->kernel.artifact().tensorMaps.empty();
  }

  struct Memory {
    Buffer source, target, shown, rows;
  };

  Argument argumentFor(const TiledTensor &tensor, const Buffer &memory, bool isOfHost) {
    if (isOfHost)
      return runtime::TensorDescriptor{memory.pointer(), tensor.sizes, tensor.strides, tensor.block, false};
    return memory;
  }

  /// Puts a piece's tensors in memory and adds them to the arguments.
  Memory place(const Piece &piece, size_t p, int64_t numTiles, jit::CallArguments &arguments) {
    Memory memory;
    auto add = [&](std::string_view letter, Argument argument) {
      arguments.keywords.emplace_back(fmt::format("{}{}", letter, p), std::move(argument));
    };
    if (!piece.source.block.empty()) {
      memory.source = putAs(piece.source.type, piece.source.values, "x");
      add("x", argumentFor(piece.source, memory.source, piece.sourceOfHost));
      memory.shown = zeros(piece.source.type, numTiles * piece.length(), "z");
      add("z", memory.shown);
    }
    if (!piece.target.block.empty()) {
      memory.target = putAs(piece.target.type, piece.target.values, "y");
      add("y", argumentFor(piece.target, memory.target, piece.targetOfHost));
    }
    if (!piece.rows.empty()) {
      memory.rows = put(piece.rows, "rows");
      add("r", memory.rows);
    }
    return memory;
  }
};

//===--------------------------------------------------------------------------------------------------------------------===//
// All shapes of tiles
//===--------------------------------------------------------------------------------------------------------------------===//

struct Shapes {
  int64_t rows = 1;
  DataType type = DataType::I32;
};

void PrintTo(const Shapes &shapes, std::ostream *stream) { *stream << shapes.rows << " rows of " << toString(shapes.type); }

/// One kernel stores tiles of all widths, another one copies them: the first tile inside of the tensor, the second one partly.
class DescriptorShapes : public DescriptorProperty, public testing::WithParamInterface<Shapes> {
protected:
  DescriptorKernel kernelOf(Access access) {
    const auto [rows, type] = GetParam();
    constexpr int64_t largestBytes = 16 * 1024;
    DescriptorKernel kernel;
    kernel.walk = Walk::Range;
    kernel.tilesPerProgram = 2;
    kernel.seed = 2; // of no importance
    std::mt19937_64 random(rows);
    for (int64_t bytes = 16; bytes <= 1024 && rows * bytes <= largestBytes; bytes *= 2) {
      const int64_t columns = bytes / sizeOf(type), unit = 16 / sizeOf(type);
      TiledTensor tensor;
      tensor.type = type;
      tensor.block = {rows, columns};
      tensor.sizes = {rows + 1, 2 * columns - unit};
      tensor.first = {0, 0};
      tensor.walked = 1;
      tensor.isLiteral = true;
      Piece &piece = kernel.pieces.emplace_back();
      piece.access = access;
      tensor.layOut(unit, random);
      piece.target = tensor;
      tensor.first = {1, unit};
      tensor.layOut(0, random);
      if (access == Access::Copy)
        piece.source = tensor;
    }
    return kernel;
  }
};

TEST_P(DescriptorShapes, areStored) { check(kernelOf(Access::Store)); }
TEST_P(DescriptorShapes, areCopied) { check(kernelOf(Access::Copy)); }

std::vector<Shapes> allShapes() {
  std::vector<Shapes> shapes;
  for (DataType type : {DataType::I8, DataType::F16, DataType::I32, DataType::F64})
    for (int64_t rows = 1; rows <= 512; rows *= 2)
      shapes.push_back({rows, type});
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(All, DescriptorShapes, testing::ValuesIn(allShapes()));

//===--------------------------------------------------------------------------------------------------------------------===//
// Random kernels
//===--------------------------------------------------------------------------------------------------------------------===//

class RandomDescriptors : public DescriptorProperty, public testing::WithParamInterface<int> {
protected:
  static void SetUpTestSuite() { numKernels = numWithCopies = 0; }
  /// The test would be worth little if the copy engine had little to do.
  static void TearDownTestSuite() {
    constexpr int enough = 50;
    if (targetUnderTest() == "sim:sm_90a" && numKernels >= enough)
      EXPECT_GE(numWithCopies, numKernels / 4) << "of " << numKernels << " kernels";
  }
};

TEST_P(RandomDescriptors, moveWhatIsInside) { check(DescriptorKernel::random(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDescriptors, testing::Range(0, casesWanted("DESCRIPTOR_CASES", 150)));

} // namespace
} // namespace ditron::e2e
