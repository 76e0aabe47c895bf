//===- ArgumentText.h - Kernel arguments as text --------------------------------------------------------*- C++ -*-===//
//
// The values of --arg, --constexpr and --out.
//
//   3   -0x10   2.5   inf   true   None         literals
//   i64:7   fp32:1.5   u8:3                     literals of a type
//   @x.npy                                      array from a file; {rank} in the path is replaced by the rank
//   bf16@x.npy                                  words of the file seen as bf16 (also fp16, fp8e5, fp8e4nv); a file of
//   floats
//                                               is rounded to the type
//   zeros:fp32[128,64]   ones:   arange:        array of zeros, of ones, or 0, 1, 2, ...
//   rand:bf16[128,64]                           reproducible numbers, floats in [-1, 1), integers in [-8, 8) or [0, 16)
//   symm:@x.npy   symm:zeros:fp32[128]          the same on the symmetric heap
//   desc[64,32]@x.npy   desc[64,32]:zeros:bf16[100,70]    a descriptor of the array for tiles of 64 x 32; desc[64,32,nan] pads
//                                               with NaN; symm: stands after the colon
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_ARGUMENTTEXT_H
#define DITRON_TOOLS_DITRON_ARGUMENTTEXT_H

#include "ditron/runtime/Argument.h"
#include "ditron/support/Npy.h"

namespace ditron::tool {

/// An array argument that has not been made yet.
struct ArrayText {
  enum class Source { File, Zeros, Ones, Arange, Random };
  Source source = Source::Zeros;
  bool symmetric = false;
  std::string path;             ///< Of a file, with {rank} in it.
  std::optional<DataType> type; ///< Always set but for files read as they are.
  std::vector<int64_t> shape;   ///< Not of files.
  std::vector<int64_t> block;   ///< Not empty: the argument is a tensor descriptor for tiles of this shape.
  bool fillNan = false;         ///< Of a descriptor: its padding.

  /// The array for one rank. `seed` makes random numbers; `name` is the parameter.
  Expected<NpyArray> make(uint32_t rank, uint64_t seed, std::string_view name) const;
};

/// What --arg says after NAME=.
using ArgumentText = std::variant<runtime::Argument, ArrayText>;
Expected<ArgumentText> parseArgumentText(std::string_view name, std::string_view text);

/// What --constexpr says after NAME=: any compile-time value, dtypes and quoted strings too.
Expected<runtime::Argument> parseConstexprText(std::string_view name, const std::string &text);

/// What --out says after NAME=: a path, with the type to convert to before an '@'.
struct OutputText {
  std::string path; ///< With {rank} in it.
  std::optional<DataType> type;
};
Expected<OutputText> parseOutputText(std::string_view name, std::string_view text);

/// The path with {rank} replaced.
std::string pathForRank(const std::string &path, uint32_t rank);
bool hasRank(const std::string &path);

/// The array's values in another type. Words (u2, u1, i2, i1 files) are seen as the float type of their width; floats
/// are rounded to it; anything else must be of that type already.
Expected<NpyArray> interpretArray(NpyArray array, DataType type, std::string_view name);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_ARGUMENTTEXT_H
